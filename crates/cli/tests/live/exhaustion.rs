//! What a machine runs out of: room on its disk, and file descriptors. Limits of the process stand in for both, so that
//! nobody has to be root; `prlimit` sets and lifts them while it runs.

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::Value;

use crate::{
    draft::{node, pod},
    load::{PODS, all_is_well, empty_stage, loaded_stage, make_pods, slow_bindings, wait_for_bindings},
    process::{Resource, wait_until},
    recording::Recording,
};

const RUN_OUT: &str = "Too many open files";
const CANNOT_WRITE: &str = "the decision log cannot be written";

fn length(path: &str) -> u64 {
    fs::metadata(path).map_or(0, |about| about.len())
}

/// The pods whose decisions are in a log. Every line of it has to be whole.
fn pods_logged(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).expect("the decision log");
    let pod_of = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        line["pod"].as_str().unwrap_or_default().to_owned()
    };
    text.lines().map(pod_of).collect()
}

#[test]
fn a_disk_that_is_full_for_a_while_then_pods_are_bound_meanwhile_and_the_decision_log_goes_on() {
    let stage = empty_stage();
    slow_bindings(stage.cluster());
    let decisions = stage.path("decisions.jsonl");
    let scheduler = stage.scheduler_for_full_disk(&["--decision-log", &decisions]);
    make_pods(&stage, "before", PODS / 2);
    wait_for_bindings(&stage, PODS / 10);
    // The next line is cut in the middle. Whoever waits to be bound may be in the log already: there have to be more pods.
    scheduler.limit(Resource::FileBytes, Some(length(&decisions) + 100));
    make_pods(&stage, "meanwhile", PODS / 2);
    wait_until("the disk is full", || scheduler.log().contains(CANNOT_WRITE));
    // Nothing can be written any more, the log not either.
    scheduler.limit(Resource::FileBytes, Some(1));
    let full_bytes = length(&decisions);
    wait_for_bindings(&stage, PODS * 3 / 4);
    assert_eq!(length(&decisions), full_bytes);
    scheduler.limit(Resource::FileBytes, None);
    all_is_well(&stage, &scheduler, PODS);
    // Room for one more, whose decision is written again.
    stage.make(node("late"));
    stage.make(pod("late"));
    stage.wait_until_bound("late");
    let late = format!("{}/late", stage.name);
    wait_until("the decision is written", || pods_logged(&decisions).contains(&late));
    assert_eq!(scheduler.log().matches(CANNOT_WRITE).count(), 1, "it is told once");
}

#[test]
fn a_decision_log_that_can_never_be_written_then_all_is_well() {
    let stage = loaded_stage();
    let scheduler = stage.scheduler_with("", &["--decision-log", "/dev/full"]);
    all_is_well(&stage, &scheduler, PODS);
    assert_eq!(scheduler.log().matches(CANNOT_WRITE).count(), 1, "it is told once");
}

#[test]
fn a_disk_that_is_full_for_a_recording_then_it_ends_and_says_so_and_can_be_begun_anew() {
    let stage = loaded_stage();
    let trace = stage.path("trace.jsonl.gz");
    let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" record --for 60s \"$@\"";
    let ran = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_supercargo"), "--master", &stage.cluster().url()])
        .args(["-o", &trace])
        .output()
        .expect("a shell");
    let told = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{told}");
    assert!(told.contains("trace.jsonl.gz") && told.contains("cannot write this"), "{told}");
    // Four blocks, of a kilobyte at most.
    assert!((1..=4096).contains(&length(&trace)));
    let folder = Path::new(&trace).parent().expect("a folder");
    Recording::start(&stage, folder, "recording ").end();
    let replayed = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(["replay", "--trace", &trace, "--config", &stage.config_file(""), "-o", "json", "-q"])
        .output()
        .expect("the binary starts");
    let text = String::from_utf8_lossy(&replayed.stdout);
    assert_eq!(text.lines().count(), PODS + 1, "a line for each pod, and a summary: {text}");
}

#[test]
fn no_file_descriptors_for_a_while_and_the_server_hangs_up_then_all_is_well() {
    let stage = loaded_stage();
    slow_bindings(stage.cluster());
    let scheduler = stage.scheduler();
    wait_for_bindings(&stage, PODS / 4);
    // All connections are gone, and none can be made.
    scheduler.limit(Resource::FileDescriptors, Some(0));
    stage.cluster().faults().restart(Duration::from_millis(100), true);
    wait_until("they have run out", || scheduler.log().contains(RUN_OUT));
    // Whoever takes the process for dead would start another one: let it last for a few tries.
    std::thread::sleep(Duration::from_secs(3));
    scheduler.limit(Resource::FileDescriptors, None);
    all_is_well(&stage, &scheduler, PODS);
}

#[test]
fn hardly_more_file_descriptors_than_watches_need_then_health_answers_and_all_is_well() {
    let stage = empty_stage();
    slow_bindings(stage.cluster());
    let scheduler = stage.scheduler();
    // Far fewer than there are bindings at once.
    scheduler.limit(Resource::FileDescriptors, Some(scheduler.open_files() + 4));
    make_pods(&stage, "p", PODS);
    for tenth in 1..=10 {
        wait_for_bindings(&stage, PODS * tenth / 10);
        let answer = scheduler.get("/livez");
        assert_eq!(answer, Some((200, "ok".to_owned())));
    }
    all_is_well(&stage, &scheduler, PODS);
}
