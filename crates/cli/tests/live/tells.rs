//! What people and programs are told: events, conditions, health and metrics.

use std::time::Duration;

use serde_json::json;

use crate::{
    draft::{node, pod},
    process::wait_until,
    stage::Stage,
};

#[test]
fn a_bound_pod_is_told_in_kube_schedulers_words() {
    let stage = Stage::new();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    stage.make(pod("p"));
    stage.wait_until_bound("p");
    let event = stage.wait_for_event("p", "Scheduled");
    assert_eq!(event["note"], format!("Successfully assigned {}/p to {}", stage.name, stage.node_name("a")));
    assert_eq!((event["type"].as_str(), event["action"].as_str()), (Some("Normal"), Some("Binding")));
    assert_eq!(event["reportingController"], stage.name);
}

#[test]
fn a_rejected_pod_is_told_in_kube_schedulers_words_in_event_and_condition() {
    let stage = Stage::in_memory();
    stage.make_all([node("full").cpu("2"), node("tainted").tainted("e2e/closed")]);
    let _scheduler = stage.scheduler();
    stage.make(pod("first").cpu("1"));
    stage.wait_until_bound("first");
    stage.make(pod("p").cpu("2"));
    let words = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s). \
                 no new claims to deallocate, preemption: 0/2 nodes are available: \
                 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling.";
    assert_eq!(stage.wait_until_rejected("p"), words);
    let event = stage.wait_for_event("p", "FailedScheduling");
    assert_eq!(event["note"], words);
    assert_eq!((event["type"].as_str(), event["action"].as_str()), (Some("Warning"), Some("Scheduling")));
}

#[test]
fn two_profiles_when_pods_come_for_each_then_events_carry_the_right_name() {
    let stage = Stage::new();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    stage.make_all([pod("one"), pod("two").for_scheduler("other")]);
    let other = format!("{}-other", stage.name);
    for (pod, scheduler) in [("one", &stage.name), ("two", &other)] {
        stage.wait_until_bound(pod);
        assert_eq!(&stage.wait_for_event(pod, "Scheduled")["reportingController"], scheduler);
    }
}

#[test]
fn metrics_tell_of_pods_that_wait_and_pods_that_were_scheduled() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let scheduler = stage.scheduler();
    stage.make_all((0..3).map(|i| pod(&format!("fits-{i}"))));
    stage.make(pod("too-large").cpu("100"));
    stage.wait_until_rejected("too-large");
    (0..3).for_each(|i| drop(stage.wait_until_bound(&format!("fits-{i}"))));
    let attempts =
        |result: &str| scheduler.metric("scheduler_schedule_attempts_total", &format!("result=\"{result}\""));
    wait_until("all attempts are counted", || {
        attempts("scheduled") == 3.0 && attempts("unschedulable") == 1.0
    });
    wait_until("the waiting pod is counted", || {
        scheduler.metric("scheduler_pending_pods", "queue=\"unschedulable\"") == 1.0
    });
    assert_eq!(scheduler.metric("scheduler_pod_scheduling_attempts_count", ""), 3.0);
}

#[test]
fn an_api_server_that_is_unreachable_then_readyz_fails_and_healthz_does_not() {
    let stage = Stage::in_memory();
    let scheduler = stage.scheduler();
    stage.cluster().faults().restart(Duration::from_secs(8), false);
    wait_until("readyz fails", || scheduler.answers("/readyz", 500));
    assert!(scheduler.answers("/healthz", 200));
    assert!(scheduler.answers("/livez", 200));
    wait_until("readyz is well again", || scheduler.answers("/readyz", 200));
}

#[test]
fn an_api_server_that_is_not_there_yet_then_the_scheduler_waits_for_it() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    stage.make(pod("p"));
    stage.cluster().faults().restart(Duration::from_secs(3), true);
    let scheduler = stage.start("", &[]);
    wait_until("it serves", || scheduler.answers("/healthz", 200));
    assert_eq!(stage.wait_until_bound("p"), "a");
}

#[test]
fn a_pod_with_a_broken_field_and_a_node_with_nonsense_in_its_status_then_everything_else_goes_on() {
    let stage = Stage::in_memory();
    let nonsense = json!({"cpu": "-9223372036854775808", "memory": "99999999999E", "pods": "perhaps"});
    stage.make_all([
        node("nonsense").with("/status/allocatable", nonsense),
        node("list").with("/status/allocatable", json!(["cpu"])),
        node("a"),
    ]);
    let (_, broken) = stage.placed(pod("broken").with("/spec/containers", json!("none")));
    stage.cluster().create(broken).expect("it is let in");
    let (_, broken) = stage.placed(pod("strange").with("/spec/priority", json!("very")));
    stage.cluster().create(broken).expect("it is let in");
    let scheduler = stage.scheduler();
    stage.make(pod("p").cpu("1"));
    assert_eq!(stage.wait_until_bound("p"), "a");
    for name in ["broken", "strange", "list"] {
        let told = scheduler.log().lines().any(|line| line.contains("cannot be read") && line.contains(name));
        assert!(told, "nothing is told of {name}");
    }
    // A reference to what does not exist costs the pod that makes it.
    let claim = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]);
    stage.make(pod("missing").with("/spec/volumes", claim));
    let message = stage.wait_until_rejected("missing");
    assert!(message.contains("persistentvolumeclaim \"missing\" not found"), "{message}");
    stage.make(pod("later").cpu("1"));
    assert_eq!(stage.wait_until_bound("later"), "a");
}
