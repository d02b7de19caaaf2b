//! When pods are tried, and when not.

use serde_json::json;
use supercargo_testcluster::{Fault, FaultRule};

use crate::{
    draft::{node, pod},
    process::wait_until,
    stage::Stage,
};

#[test]
fn a_gated_pod_when_its_last_gate_is_removed_then_it_is_scheduled_and_never_before() {
    let stage = Stage::new();
    stage.make(node("a"));
    let scheduler = stage.scheduler();
    let gates = json!([{"name": "e2e/one"}, {"name": "e2e/two"}]);
    stage.make(pod("gated").with("/spec/schedulingGates", gates));
    wait_until("it is counted as gated", || {
        scheduler.metric("scheduler_pending_pods", "queue=\"gated\"") >= 1.0
    });
    stage
        .client
        .patch(&stage.pod_path("gated"), &json!({"spec": {"schedulingGates": [{"name": "e2e/two"}]}}));
    // Whatever comes later is served first.
    stage.make(pod("control"));
    stage.wait_until_bound("control");
    assert_eq!(stage.node_of("gated"), None);
    stage.client.patch(&stage.pod_path("gated"), &json!({"spec": {"schedulingGates": null}}));
    assert_eq!(stage.wait_until_bound("gated"), "a");
}

#[test]
fn a_long_backoff_and_an_idle_queue_when_a_node_appears_then_the_pod_binds_now() {
    let stage = Stage::new();
    stage.make(node("closed").tainted("e2e/closed"));
    let backoff = "podInitialBackoffSeconds: 600\npodMaxBackoffSeconds: 600";
    let _scheduler = stage.scheduler_with(backoff, &[]);
    stage.make(pod("p"));
    stage.wait_until_rejected("p");
    stage.make(node("a"));
    assert_eq!(stage.wait_until_bound("p"), "a");
}

#[test]
fn no_node_at_all_when_one_appears_then_the_pod_binds() {
    let stage = Stage::in_memory();
    let _scheduler = stage.scheduler();
    stage.make(pod("p"));
    assert_eq!(stage.wait_until_rejected("p"), "no nodes available to schedule pods");
    stage.make(node("a"));
    assert_eq!(stage.wait_until_bound("p"), "a");
}

#[test]
fn a_rejected_pod_when_an_event_cannot_help_it_then_it_is_not_tried_again() {
    let stage = Stage::in_memory();
    stage.make(node("a").cpu("1"));
    let scheduler = stage.scheduler();
    stage.make(pod("too-large").cpu("2"));
    stage.wait_until_rejected("too-large");
    stage.patch_node("a", json!({"metadata": {"labels": {"colour": "blue"}}}));
    stage.make(pod("control"));
    stage.wait_until_bound("control");
    let attempts = || scheduler.metric("scheduler_schedule_attempts_total", "result=\"unschedulable\"");
    wait_until("the control is counted", || {
        scheduler.metric("scheduler_schedule_attempts_total", "result=\"scheduled\"") == 1.0
    });
    assert_eq!(attempts(), 1.0);
    let more = json!({"status": {"allocatable": {"cpu": "3"}}});
    stage.client.patch(&format!("{}/status", stage.node_path("a")), &more);
    stage.wait_until_bound("too-large");
}

#[test]
fn a_first_bind_that_fails_when_nothing_else_happens_then_the_pod_is_bound_on_retry() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    let faults = stage.cluster().faults();
    let failing = Fault::Answer { code: 500, retry_after_seconds: 0 };
    faults.add(FaultRule::new(failing).verb("create").resource("pods/binding").times(1));
    stage.make(pod("p"));
    assert_eq!(stage.wait_until_bound("p"), "a");
    let event = stage.wait_for_event("p", "FailedScheduling");
    assert!(
        event["note"].as_str().unwrap_or_default().starts_with("running Bind plugin \"DefaultBinder\": "),
        "{event}"
    );
    stage.wait_for_event("p", "Scheduled");
    assert_eq!(stage.cluster().violations(), []);
}

#[test]
fn a_pod_for_another_scheduler_when_there_is_room_then_it_is_left_alone() {
    let stage = Stage::new();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    stage.make(pod("theirs").for_scheduler("foreign"));
    stage.make(pod("ours"));
    stage.wait_until_bound("ours");
    assert_eq!(stage.node_of("theirs"), None);
    assert!(stage.events("theirs", "FailedScheduling").is_empty());
}

#[test]
fn a_pod_deleted_while_its_binding_is_on_its_way_then_its_room_is_free_again() {
    let stage = Stage::in_memory();
    stage.make(node("a").cpu("1"));
    let _scheduler = stage.scheduler();
    let faults = stage.cluster().faults();
    faults.add(FaultRule::new(Fault::Delay { millis: 500 }).verb("create").resource("pods/binding").times(1));
    stage.make(pod("p").cpu("1"));
    wait_until("its binding is sent", || stage.cluster().requests_for("create", "pods/binding") == 1);
    stage.client.delete(&stage.pod_path("p"));
    stage.make(pod("next").cpu("1"));
    assert_eq!(stage.wait_until_bound("next"), "a");
    assert_eq!(stage.cluster().violations(), []);
}

#[test]
fn a_pod_recreated_with_the_same_name_while_its_binding_is_on_its_way_then_the_new_one_is_bound_once() {
    let stage = Stage::in_memory();
    stage.make(node("a").cpu("1"));
    let _scheduler = stage.scheduler();
    let faults = stage.cluster().faults();
    faults.add(FaultRule::new(Fault::Delay { millis: 500 }).verb("create").resource("pods/binding").times(1));
    stage.make(pod("p").cpu("1"));
    wait_until("its binding is sent", || stage.cluster().requests_for("create", "pods/binding") == 1);
    stage.client.delete(&stage.pod_path("p"));
    let anew = stage.make(pod("p").cpu("1"));
    assert_eq!(stage.wait_until_bound("p"), "a");
    let bindings = stage.cluster().bindings();
    assert_eq!(
        bindings.iter().map(|binding| binding.uid.as_str()).collect::<Vec<_>>(),
        [anew["metadata"]["uid"].as_str().unwrap_or_default()]
    );
    assert_eq!(stage.cluster().violations(), []);
}

#[test]
fn a_node_deleted_and_made_anew_under_its_name_then_its_whole_room_is_there() {
    let stage = Stage::new();
    stage.make(node("a").cpu("1"));
    let _scheduler = stage.scheduler();
    stage.make(pod("before").cpu("1"));
    stage.wait_until_bound("before");
    stage.client.delete(&stage.node_path("a"));
    stage.client.delete(&stage.pod_path("before"));
    stage.make(pod("after").cpu("2"));
    stage.wait_until_rejected("after");
    stage.make(node("a").cpu("2"));
    assert_eq!(stage.wait_until_bound("after"), "a");
}
