//! The file of a recording, packed or not, whole or cut off: `record` goes on with it, and `replay` plays it.
#![no_main]

use std::{io::Write, sync::LazyLock, time::Duration};

use flate2::{Compression, write::GzEncoder};
use libfuzzer_sys::fuzz_target;
use supercargo::fuzzing;
use supercargo_config::Configuration;
use supercargo_engine::Placement;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Source;
use supercargo_model::{Cluster, Declared};
use supercargo_plugins::registry;
use supercargo_scheduler::setup::{self, Overrides};
use supercargo_sim::{
    measures::PodMix,
    replay::{self, ReplayOptions},
    trace::{self, ExpectedAnswer, TimedEvent, Trace, TraceEvent},
};

static REGISTRY: LazyLock<Registry> = LazyLock::new(registry);
static DEFAULTS: LazyLock<Configuration> =
    LazyLock::new(|| supercargo_config::default_configuration(&REGISTRY).expect("the defaults hold"));

/// A pod that waits is tried again every few minutes: a longer trace takes longer to replay, and tells nothing more.
const LONGEST_REPLAY: Duration = Duration::from_secs(24 * 3600);

fuzz_target!(|bytes: &[u8]| {
    let packed = packed(bytes);
    goes_on(bytes, false);
    goes_on(bytes, true);
    goes_on(&packed, true);
    // Cut off, it is read as far as it is whole.
    let _ = fuzzing::trace(packed[..packed.len() / 2].to_vec());
    match fuzzing::trace(bytes.to_vec()) {
        Ok((text, trace)) => {
            assert!(trace.events.is_sorted_by_key(|timed| timed.at), "events stand in the order of time");
            reads_the_same_with_locations(&text, &trace);
            goes_on_in_another_file(&text);
            plays(&trace);
        }
        Err(problems) => {
            assert!(!problems.is_empty(), "a trace that is refused is told why");
            let _ = problems.to_string();
        }
    }
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = ExpectedAnswer::read(&Source::new("fuzz.jsonl", text));
    }
});

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(bytes).and_then(|()| packer.finish()).expect("memory takes everything")
}

/// What is gone on with is whole, and is the same when it is read again.
fn goes_on(bytes: &[u8], packed: bool) {
    let resumed = |bytes: &[u8], packed| fuzzing::resumed(bytes.to_vec(), packed).expect("inputs are short");
    let (text, whole, snapshot) = resumed(bytes, packed);
    assert!(whole <= bytes.len() as u64, "the whole part is part of the file");
    let (again, whole_again, _) = resumed(&bytes[..whole as usize], packed);
    assert_eq!((again, whole_again), (text, whole), "what is whole stays whole");
    let (_, _, same) = resumed(snapshot.as_bytes(), false);
    assert_eq!(same, snapshot, "what a new file begins with is all that is there");
}

/// The reader that can tell where a problem is comes to the same as the quick one: objects on one line are left to it.
fn reads_the_same_with_locations(text: &str, trace: &Trace) {
    let is_json = |line: &&str| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if !lines.iter().all(is_json) {
        return;
    }
    let source = Source::new("fuzz.jsonl", lines.join(" "));
    let located = match Trace::read(&source, &Declared::default()) {
        Ok(located) => located,
        Err(problems) => panic!("it was read line by line:\n{problems}"),
    };
    assert_eq!(located.events.len(), trace.events.len());
    for (one, other) in located.events.iter().zip(&trace.events) {
        assert!(one.at == other.at && same(&one.event, &other.event), "{}", lines.join("\n"));
    }
}

fn same(one: &TraceEvent, other: &TraceEvent) -> bool {
    match (one, other) {
        (TraceEvent::Arrival(one), TraceEvent::Arrival(other)) => one == other,
        (TraceEvent::Put(one), TraceEvent::Put(other)) => one == other,
        (TraceEvent::Remove(kind, key), TraceEvent::Remove(other_kind, other)) => {
            kind == other_kind && key == other
        }
        _ => false,
    }
}

/// The two halves of a trace follow each other.
fn goes_on_in_another_file(text: &str) {
    let lines: Vec<&str> = text.lines().collect();
    let (first, second) = lines.split_at(lines.len() / 2);
    let read = |lines: &[&str]| {
        let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
        Trace::read(&Source::new("fuzz.jsonl", text), &Declared::default()).ok()
    };
    if let (Some(first), Some(second)) = (read(first), read(second)) {
        let events = first.events.len() + second.events.len();
        let whole = first.and(second).expect("the second half begins where the first ends, or later");
        assert_eq!(whole.events.len(), events);
        assert!(whole.events.is_sorted_by_key(|timed: &TimedEvent| timed.at));
    }
}

fn plays(trace: &Trace) {
    let mut engine = setup::engine(Cluster::default(), &DEFAULTS, &REGISTRY, Overrides::default())
        .expect("the defaults can be built");
    trace::replay(trace, &mut engine, |engine, pod| {
        engine.place(pod).as_ref().and_then(Placement::node).cloned()
    });
    if trace.length() > LONGEST_REPLAY {
        return;
    }
    let mix = PodMix::of(trace);
    for follow_recording in [false, true] {
        let options = ReplayOptions { follow_recording, ..ReplayOptions::default() };
        let replay = replay::replay(trace, &mix, (&DEFAULTS, &REGISTRY), options, || ());
        let replay = replay.unwrap_or_else(|problems| panic!("{problems}"));
        let measures = &replay.measures;
        assert_eq!(measures.pods, replay.pods.len());
        assert_eq!(measures.placed + measures.never_placed, measures.pods, "every pod is counted once");
        assert!(measures.pending_at_end <= measures.never_placed);
    }
}
