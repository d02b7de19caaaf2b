//! What the exported functions do: they find the plugin, show it what the host wrote, and answer in the host's numbers.

use std::{cell::OnceCell, thread::LocalKey};

use crate::{
    Args, Attributes, Nodes, Plugin, Pod, PreScore, Verdicts,
    memory::{self, Frame, host, slice, slice_mut},
    view::PodAttributes,
};

/// Where the macro keeps the plugin. A module has one thread.
type Kept<P> = &'static LocalKey<OnceCell<P>>;

const DONE: u32 = 0;
const SKIP: u32 = 1;
const FAILED: u32 = 2;

fn ended(result: Result<(), String>) -> u32 {
    match result {
        Ok(()) => DONE,
        Err(message) => {
            host::fail(&message);
            FAILED
        }
    }
}

/// Makes the plugin.
pub fn init<P: Plugin>(kept: Kept<P>, args: u32, length: u32) -> u32 {
    let args = std::str::from_utf8(slice(args, length)).unwrap_or_default();
    let made = P::new(Args(args), &mut Attributes(()));
    ended(made.map(|plugin| kept.with(|kept| drop(kept.set(plugin)))))
}

/// Calls the plugin with what a frame shows.
fn call<P: Plugin>(
    kept: Kept<P>,
    frame: u32,
    run: impl FnOnce(&P, &Frame, &Pod<'_>, &Nodes<'_>) -> Result<(), String>,
) -> u32 {
    kept.with(|kept| {
        let Some(plugin) = kept.get() else {
            return ended(Err("supercargo_init was not called".to_owned()));
        };
        let frame = memory::frame(frame);
        let nodes = Nodes::of(&frame);
        let pod = Pod { attributes: PodAttributes::Memory(frame.pod), texts: nodes.texts };
        ended(run(plugin, &frame, &pod, &nodes))
    })
}

/// Filter.
pub fn filter<P: Plugin>(kept: Kept<P>, frame: u32) -> u32 {
    call(kept, frame, |plugin, frame, pod, nodes| {
        let codes = slice_mut(frame.verdicts, frame.rows);
        let reasons = slice_mut(frame.reasons, frame.rows);
        plugin.filter(pod, nodes, &mut Verdicts { codes, reasons })
    })
}

/// PreScore.
pub fn pre_score<P: Plugin>(kept: Kept<P>, frame: u32) -> u32 {
    let mut skips = false;
    let ended = call(kept, frame, |plugin, _, pod, nodes| {
        skips = plugin.pre_score(pod, nodes)? == PreScore::Skip;
        Ok(())
    });
    if skips { SKIP } else { ended }
}

/// Score.
pub fn score<P: Plugin>(kept: Kept<P>, frame: u32) -> u32 {
    call(kept, frame, |plugin, frame, pod, nodes| {
        plugin.score(pod, nodes, slice_mut(frame.scores, frame.rows))
    })
}

/// NormalizeScore.
pub fn normalize<P: Plugin>(kept: Kept<P>, frame: u32) -> u32 {
    call(kept, frame, |plugin, frame, pod, nodes| {
        plugin.normalize(pod, nodes, slice_mut(frame.scores, frame.rows))
    })
}
