//! The log of a real run: plain values, each thing once, and as JSON by kube-scheduler's names.

use std::time::Duration;

use serde_json::Value;

use crate::{
    draft::{node, pod},
    process::SchedulerProcess,
    stage::Stage,
};

/// A node for one of two pods; the log of a scheduler that has seen them and was stopped.
fn log_of_a_run(stage: &Stage, flags: &[&str]) -> String {
    stage.make(node("a").cpu("2"));
    let mut scheduler = stage.scheduler_with("", flags);
    stage.make(pod("fits").cpu("1"));
    stage.wait_until_bound("fits");
    stage.make(pod("too-large").cpu("100"));
    stage.wait_until_rejected("too-large");
    stop(&mut scheduler)
}

fn stop(scheduler: &mut SchedulerProcess) -> String {
    scheduler.signal("TERM");
    scheduler.wait_for_end();
    scheduler.log()
}

/// A line without what differs from run to run.
fn shape(line: &str, stage: &Stage) -> String {
    let mut line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert!(line["ts"].as_f64().is_some_and(|millis| millis > 1.7e12), "{line}");
    let caller = line["caller"].as_str().expect("a caller");
    assert!(caller.contains(".rs:") && caller.split('/').count() == 2, "{line}");
    let fields = line.as_object_mut().expect("an object");
    for differs in ["ts", "caller", "version", "server", "address", "identity", "holder"] {
        if fields.contains_key(differs) {
            fields.insert(differs.to_owned(), "…".into());
        }
    }
    line.to_string().replace(&*stage.name, "stage")
}

#[test]
fn as_json_lines_have_kube_schedulers_names() {
    let stage = Stage::in_memory();
    let log = log_of_a_run(&stage, &["--logging-format=json", "--v=2"]);
    // How often health was asked for before all was read is chance.
    let told = log.lines().filter(|line| !line.contains("a health check failed"));
    let mut lines: Vec<String> = told.map(|line| shape(line, &stage)).collect();
    // What is done side by side comes in any order.
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn as_text_values_are_plain_and_nothing_is_said_twice() {
    let stage = Stage::in_memory();
    let log = log_of_a_run(&stage, &["--v=10"]);
    assert!(!log.contains("Some(") && !log.contains("None"), "{log}");
    let node = format!("node={}", stage.node_name("a"));
    assert!(log.lines().any(|line| line.contains("decided") && line.contains(&node)), "{log}");
    for once in ["supercargo starts", "serving address=", "caches synced", "stopped"] {
        assert_eq!(log.matches(once).count(), 1, "{once}\n{log}");
    }
}

#[test]
fn a_server_that_is_away_is_told_once_and_not_for_each_kind() {
    let stage = Stage::in_memory();
    let mut scheduler = stage.scheduler();
    stage.cluster().faults().restart(Duration::from_secs(7), false);
    std::thread::sleep(Duration::from_secs(6));
    let log = stop(&mut scheduler);
    let warned: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
    // The watches are cut, the connection is refused, the lease cannot be renewed.
    assert!((1..=6).contains(&warned.len()), "{}", warned.join("\n"));
    let refused = warned.iter().filter(|line| line.contains("kinds=") && line.contains("connection refused"));
    assert_eq!(refused.count(), 1, "{}", warned.join("\n"));
}
