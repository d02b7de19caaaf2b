//! Nodes that are closed to a pod, and open later.

use serde_json::{Value, json};

use crate::{
    draft::{Draft, node, pod},
    stage::Stage,
};

#[test]
fn the_only_node_cordoned_when_it_is_uncordoned_then_the_pod_binds() {
    let stage = Stage::new();
    stage.make(node("a").cordoned());
    let _scheduler = stage.scheduler();
    stage.make(pod("p"));
    let message = stage.wait_until_rejected("p");
    assert!(message.contains("1 node(s) were unschedulable"), "{message}");
    stage.patch_node("a", json!({"spec": {"unschedulable": null}}));
    assert_eq!(stage.wait_until_bound("p"), "a");
}

#[test]
fn a_full_and_a_tainted_node_when_the_taint_is_removed_then_the_pod_binds() {
    let stage = Stage::new();
    stage.make_all([node("full").cpu("1"), node("tainted").tainted("e2e/closed")]);
    let _scheduler = stage.scheduler();
    stage.make(pod("first").cpu("1"));
    assert_eq!(stage.wait_until_bound("first"), "full");
    stage.make(pod("p").cpu("1"));
    let message = stage.wait_until_rejected("p");
    assert!(message.contains("1 Insufficient cpu"), "{message}");
    assert!(message.contains("1 node(s) had untolerated taint(s)"), "{message}");
    stage.patch_node("tainted", json!({"spec": {"taints": null}}));
    assert_eq!(stage.wait_until_bound("p"), "tainted");
}

#[test]
fn a_rejected_pod_when_one_update_changes_label_and_taint_then_it_binds() {
    let stage = Stage::new();
    stage.make(node("a").label("disk", "slow").tainted("e2e/closed"));
    let _scheduler = stage.scheduler();
    stage.make(pod("p").with("/spec/nodeSelector", json!({"disk": "fast"})));
    stage.wait_until_rejected("p");
    stage.patch_node("a", json!({"metadata": {"labels": {"disk": "fast"}}, "spec": {"taints": null}}));
    assert_eq!(stage.wait_until_bound("p"), "a");
}

#[test]
fn a_node_filled_by_another_scheduler_when_a_pod_comes_then_it_stays_pending() {
    let stage = Stage::new();
    stage.make(node("a").cpu("1"));
    let _scheduler = stage.scheduler();
    stage.make(pod("theirs").cpu("1").for_scheduler("foreign"));
    bind(&stage, "theirs", "a");
    stage.make(pod("ours").cpu("1"));
    let message = stage.wait_until_rejected("ours");
    assert!(message.contains("1 Insufficient cpu"), "{message}");
    stage.client.delete(&stage.pod_path("theirs"));
    assert_eq!(stage.wait_until_bound("ours"), "a");
}

/// Binds a pod as another scheduler would.
pub(crate) fn bind(stage: &Stage, pod: &str, node: &str) {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
        "target": {"kind": "Node", "name": stage.node_name(node)},
    });
    stage.client.create(&format!("{}/binding", stage.pod_path(pod)), &binding);
}

#[test]
fn allocatable_below_capacity_when_a_pod_lies_in_between_then_it_stays_pending() {
    let stage = Stage::new();
    stage.make(node("a").cpu("2").with("/status/capacity/cpu", "4".into()));
    let _scheduler = stage.scheduler();
    stage.make(pod("too-large").cpu("3"));
    let message = stage.wait_until_rejected("too-large");
    assert!(message.contains("1 Insufficient cpu"), "{message}");
    stage.make(pod("fits").cpu("2"));
    assert_eq!(stage.wait_until_bound("fits"), "a");
    assert_eq!(stage.node_of("too-large"), None);
}

fn port(number: u16) -> Value {
    json!([{"containerPort": number, "hostPort": number}])
}

#[test]
fn a_host_port_taken_by_a_container_when_another_wants_it_then_the_second_is_pending() {
    host_port_taken_by(pod("first").with("/spec/containers/0/ports", port(8080)));
}

#[test]
fn a_host_port_taken_by_a_sidecar_when_another_wants_it_then_the_second_is_pending() {
    let sidecar = json!([{"name": "sidecar", "image": "registry.example/e2e:1", "restartPolicy": "Always",
                         "ports": port(8080)}]);
    host_port_taken_by(pod("first").with("/spec/initContainers", sidecar));
}

fn host_port_taken_by(first: Draft) {
    let stage = Stage::new();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    stage.make(first);
    stage.wait_until_bound("first");
    stage.make(pod("second").with("/spec/containers/0/ports", port(8080)));
    let message = stage.wait_until_rejected("second");
    assert!(message.contains("1 node(s) didn't have free ports for the requested pod ports"), "{message}");
    stage.client.delete(&stage.pod_path("first"));
    assert_eq!(stage.wait_until_bound("second"), "a");
}
