//! A file is a guest or it is not; one that is does no harm. Whatever it holds, it costs bounded time and memory.
//!
//! A text is a module, or, if it is not one in itself, what follows `guests/beginning.wat`; anything else is a binary module.
#![no_main]

#[path = "../guests/stage.rs"]
mod stage;

use libfuzzer_sys::fuzz_target;
use stage::{BEGINNING, Stage, check, check_problems};
use supercargo_model::testing::{cluster, node, pod};

/// A small part of what is allowed by default: the compiler is not optimised here, and counts wherever it goes.
const LIMITS: &str = "fuel: 1000000, timeout: 1s, memory: 4Mi, moduleSize: 32Ki, functionSize: 4Ki";

thread_local! {
    static STAGE: Stage = Stage::new();
}

fuzz_target!(|bytes: &[u8]| {
    let Some(module) = module(bytes) else { return };
    let cluster = cluster([node("a").label("x", "1"), node("b")]);
    let engine = STAGE.with(|stage| {
        stage.write(&module);
        stage.engine(cluster, LIMITS)
    });
    match engine {
        Ok(mut engine) => {
            let pod = engine.admit(pod("p").pod());
            check(&engine.decide(&pod).expect("there is a profile for it"));
            engine.place(&pod).expect("there is a profile for it");
        }
        Err(problems) => check_problems(&problems),
    }
});

/// The module that bytes stand for; `None` if they are a text that stands for none.
fn module(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = str::from_utf8(bytes).ok().filter(|text| text.trim_start().starts_with('('));
    let Some(text) = text else { return Some(bytes.to_vec()) };
    let whole = text.trim_start().starts_with("(module");
    let text = if whole { text.to_owned() } else { format!("(module {BEGINNING} {text})") };
    wat::parse_str(text).ok()
}
