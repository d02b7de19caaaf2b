//! Replays a trace under several configurations, and says what that changes.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use supercargo_config::Configuration;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problems;
use supercargo_model::{Key, Name};

use crate::{
    measures::{Better, MeasureKind, Measures, PodMix, Unit, measure},
    replay::{Replay, ReplayOptions, replay},
    trace::Trace,
};

/// Replays a trace under each of some configurations, on all cores. `passed` is told of every event.
pub fn replay_each(
    trace: &Trace,
    mix: &PodMix,
    configurations: &[&Configuration],
    registry: &Registry,
    options: ReplayOptions,
    passed: impl Fn() + Sync,
) -> Result<Vec<Replay>, Problems> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<Replay, Problems>>>> =
        configurations.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while let Some((configuration, slot)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            configurations.get(index).zip(done.get(index))
        } {
            let replayed = replay(trace, mix, (configuration, registry), options, &passed);
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(replayed);
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(configurations.len());
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    // A thread that panicked has ended the scope with its panic: every slot is filled.
    done.into_iter().filter_map(|slot| slot.into_inner().ok().flatten()).collect()
}

/// A pod that goes elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedPod {
    /// The pod.
    pub pod: Key,
    /// Where it went under the first configuration.
    pub from: Option<Name>,
    /// Where it goes under the other.
    pub to: Option<Name>,
}

/// What moved from one replay to another of the same trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Pods that go to another node.
    pub other_node: Vec<MovedPod>,
    /// Pods that got a node only under the second.
    pub newly_placed: Vec<MovedPod>,
    /// Pods that got a node only under the first.
    pub newly_pending: Vec<MovedPod>,
}

impl Moves {
    /// Pods are the same by their order of arrival.
    pub fn between(first: &Replay, second: &Replay) -> Self {
        let mut moves = Self::default();
        for (before, after) in first.pods.iter().zip(&second.pods) {
            let node = |of: &Option<(Name, _)>| of.as_ref().map(|(node, _)| node.clone());
            let (from, to) = (node(&before.placed), node(&after.placed));
            let list = match (&from, &to) {
                (Some(one), Some(other)) if one != other => &mut moves.other_node,
                (None, Some(_)) => &mut moves.newly_placed,
                (Some(_), None) => &mut moves.newly_pending,
                _ => continue,
            };
            list.push(MovedPod { pod: before.pod.clone(), from, to });
        }
        moves
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &MovedPod> {
        self.other_node.iter().chain(&self.newly_placed).chain(&self.newly_pending)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all().count()
    }
}

/// How one value compares with another of the same measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureChange {
    /// As good, or too close to tell.
    Same,
    /// Better.
    Better,
    /// Worse.
    Worse,
    /// Different; what is better depends on what one wants.
    Different,
}

/// Differences below this are not worth a word: a share by so much of 1, anything else by so much of itself.
const TOLERANCE_SHARE: f64 = 0.0005;
const TOLERANCE_RELATIVE: f64 = 0.005;

/// How a value of a measure compares with an earlier one.
pub fn judge(kind: &MeasureKind, before: f64, after: f64) -> MeasureChange {
    let difference = after - before;
    let tolerance = match kind.unit {
        Unit::Share => TOLERANCE_SHARE,
        Unit::Count | Unit::Seconds => TOLERANCE_RELATIVE * before.abs().max(after.abs()),
    };
    if difference.abs() <= tolerance {
        return MeasureChange::Same;
    }
    match kind.better {
        Better::Neither => MeasureChange::Different,
        Better::Lower if difference < 0.0 => MeasureChange::Better,
        Better::Higher if difference > 0.0 => MeasureChange::Better,
        Better::Lower | Better::Higher => MeasureChange::Worse,
    }
}

/// A value as people read it.
pub fn shown(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{:.2} %", 100.0 * value),
        Unit::Seconds => format!("{} s", rounded(value)),
        Unit::Count => rounded(value),
    }
}

/// A difference as people read it, with its sign.
pub fn shown_difference(unit: Unit, difference: f64) -> String {
    let sign = if difference < 0.0 { "−" } else { "+" };
    match (unit, shown(unit, difference.abs())) {
        (Unit::Share, text) => format!("{sign}{}", text.replace('%', "points").trim_end()),
        (_, text) => format!("{sign}{text}"),
    }
}

fn rounded(value: f64) -> String {
    let text = if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") };
    match text.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", grouped(whole)),
        None => grouped(&text),
    }
}

/// Thousands apart.
fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The measures that a verdict goes by, the gravest first, and what they are called in it.
const DECISIVE: &[(&str, &str)] = &[
    ("never_placed", "pods that never got a node"),
    ("evictions", "evictions"),
    ("spread_violations", "spread violations"),
    ("pending_p99", "99th percentile of pending time"),
    ("fragmentation", "fragmentation"),
    ("imbalance", "imbalance"),
];

/// What a comparison comes to, in one sentence. The first one is what the others are compared with.
pub fn verdict(names: &[&str], measures: &[&Measures], moves: &[usize]) -> String {
    let others = || names.iter().zip(measures).skip(1);
    let mut sentences: Vec<String> = Vec::new();
    for ((name, other), moved) in others().zip(moves.iter().skip(1)) {
        sentences.push(against(names[0], measures[0], name, other, *moved));
    }
    sentences.join("; ") + "."
}

fn against(base_name: &str, base: &Measures, name: &str, other: &Measures, moved: usize) -> String {
    let (mut better, mut worse): (Vec<String>, Vec<String>) = Default::default();
    for (measure_name, called) in DECISIVE {
        let (Some(kind), Some(before), Some(after)) =
            (measure(measure_name), base.get(measure_name, None), other.get(measure_name, None))
        else {
            continue;
        };
        let words = format!("{called} {} instead of {}", shown(kind.unit, after), shown(kind.unit, before));
        match judge(kind, before, after) {
            MeasureChange::Better => better.push(words),
            MeasureChange::Worse => worse.push(words),
            MeasureChange::Same | MeasureChange::Different => {}
        }
    }
    let moved = match moved {
        0 => "no pod moves".to_owned(),
        1 => "1 pod moves".to_owned(),
        n => format!("{} pods move", grouped(&n.to_string())),
    };
    match (better.is_empty(), worse.is_empty()) {
        (true, true) => format!("{name} is as good as {base_name} ({moved})"),
        (false, true) => format!("{name} is better than {base_name}: {} ({moved})", better.join(", ")),
        (true, false) => format!("{name} is worse than {base_name}: {} ({moved})", worse.join(", ")),
        (false, false) => format!(
            "{name} trades against {base_name}: better is {}; worse is {} ({moved})",
            better.join(", "),
            worse.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_judged_by_what_is_better() {
        let check = |name: &str, before, after| judge(measure(name).unwrap(), before, after);
        assert_eq!(check("placed", 10.0, 11.0), MeasureChange::Better);
        assert_eq!(check("never_placed", 10.0, 11.0), MeasureChange::Worse);
        // 0.04 points of 100 are noise; 0.4 points are not.
        assert_eq!(check("fragmentation", 0.5, 0.4996), MeasureChange::Same);
        assert_eq!(check("fragmentation", 0.5, 0.496), MeasureChange::Better);
        assert_eq!(check("utilisation", 0.5, 0.6), MeasureChange::Different);
    }

    #[test]
    fn values_are_shown_for_people() {
        assert_eq!(shown(Unit::Count, 1_234_567.0), "1,234,567");
        assert_eq!(shown(Unit::Seconds, 30.25), "30.2 s");
        assert_eq!(shown(Unit::Share, 0.12345), "12.35 %");
        assert_eq!(shown_difference(Unit::Share, -0.01), "−1.00 points");
        assert_eq!(shown_difference(Unit::Count, 1000.0), "+1,000");
    }

    #[test]
    fn a_verdict_names_what_got_better_and_what_got_worse() {
        let base = Measures { never_placed: 2, evictions: 1, ..Measures::default() };
        let other = Measures { never_placed: 1, evictions: 3, ..Measures::default() };
        assert_eq!(
            verdict(&["a", "b"], &[&base, &other], &[0, 7]),
            "b trades against a: better is pods that never got a node 1 instead of 2; worse is evictions 3 instead of 1 \
             (7 pods move)."
        );
        assert_eq!(verdict(&["a", "b"], &[&base, &base], &[0, 0]), "b is as good as a (no pod moves).");
    }
}
