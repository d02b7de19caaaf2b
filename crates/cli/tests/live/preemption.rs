//! Room that is made for more important pods.

use serde_json::{Value, json};

use crate::{
    draft::{Draft, node, pod, strict_budget},
    process::wait_until,
    stage::Stage,
};

#[test]
fn a_full_node_when_a_more_important_pod_comes_then_the_least_important_is_evicted_and_told() {
    let stage = Stage::new();
    stage.make_priority_classes();
    stage.make(node("a").cpu("2"));
    let _scheduler = stage.scheduler();
    stage.make_all([pod("low").cpu("1").class("low"), pod("middle").cpu("1").class("middle")]);
    stage.wait_until_bound("low");
    stage.wait_until_bound("middle");
    let made = stage.make(pod("high").cpu("1").class("high"));
    assert_eq!(stage.wait_until_bound("high"), "a");
    assert!(stage.pod("low").is_none());
    assert_eq!(stage.node_of("middle").as_deref(), Some("a"));
    let event = stage.wait_for_event("low", "Preempted");
    let uid = made["metadata"]["uid"].as_str().unwrap_or_default();
    assert_eq!(event["note"], format!("Preempted by pod {uid} on node {}", stage.node_name("a")));
}

#[test]
fn a_less_important_anti_affinity_blocker_when_a_high_pod_comes_then_the_blocker_is_evicted() {
    let stage = Stage::new();
    stage.make_priority_classes();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    stage.make(pod("blocker").class("low"));
    stage.wait_until_bound("blocker");
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "labelSelector": {"matchLabels": {"name": "blocker"}}, "topologyKey": "kubernetes.io/hostname"}]}});
    stage.make(pod("high").class("high").with("/spec/affinity", apart));
    assert_eq!(stage.wait_until_bound("high"), "a");
    assert!(stage.pod("blocker").is_none());
}

#[test]
fn a_policy_of_never_when_there_is_no_room_then_nothing_is_evicted() {
    let stage = Stage::new();
    stage.make_priority_classes();
    stage.make(node("a").cpu("1"));
    let _scheduler = stage.scheduler();
    stage.make(pod("low").cpu("1").class("low"));
    stage.wait_until_bound("low");
    stage.make(pod("polite").cpu("1").class("polite"));
    let message = stage.wait_until_rejected("polite");
    assert!(message.contains("not eligible due to preemptionPolicy=Never"), "{message}");
    // Its turn came, and it was not even nominated.
    assert_eq!(stage.node_of("low").as_deref(), Some("a"));
    let polite = stage.pod("polite").expect("it waits");
    assert_eq!(polite["status"]["nominatedNodeName"], Value::Null);
}

#[test]
fn a_nomination_in_progress_when_a_flood_of_pods_comes_then_none_steals_the_room() {
    let stage = Stage::new();
    stage.make_priority_classes();
    stage.make(node("a").cpu("2"));
    let _scheduler = stage.scheduler();
    stage.make(pod("victim").cpu("2").class("low").slow_to_end());
    stage.wait_until_bound("victim");
    stage.make(pod("high").cpu("2").class("high"));
    wait_until("room is promised", || nominated(&stage, "high").as_deref() == Some("a"));
    let flood: Vec<String> = (0..20).map(|i| format!("flood-{i}")).collect();
    stage.make_all(flood.iter().map(|name| pod(name).cpu("1").class("middle")));
    flood.iter().for_each(|name| drop(stage.wait_until_rejected(name)));
    // The victim has come to its end.
    stage.client.delete(&stage.pod_path("victim"));
    assert_eq!(stage.wait_until_bound("high"), "a");
    assert!(flood.iter().all(|name| stage.node_of(name).is_none()));
}

/// The node, by its short name, that a pod is to get.
fn nominated(stage: &Stage, pod: &str) -> Option<String> {
    let pod = stage.pod(pod)?;
    let node = pod["status"]["nominatedNodeName"].as_str()?;
    Some(node.trim_start_matches(&stage.node_name("")).to_owned())
}

#[test]
fn several_candidates_when_room_is_made_then_the_fewest_budgets_are_violated() {
    let stage = Stage::new();
    stage.make_priority_classes();
    stage.make_all([
        node("guarded").cpu("1").label("place", "guarded"),
        node("open").cpu("1").label("place", "open"),
    ]);
    stage.make(strict_budget("guarded"));
    let _scheduler = stage.scheduler();
    let on = |name: &str, class: &str| {
        pod(name).cpu("1").class(class).label("app", name).with("/spec/nodeSelector", json!({"place": name}))
    };
    // By importance alone, the guarded pod would be the one to go.
    stage.make_all([on("guarded", "low"), on("open", "middle")]);
    stage.wait_until_bound("guarded");
    stage.wait_until_bound("open");
    stage.make(pod("high").cpu("1").class("high"));
    assert_eq!(stage.wait_until_bound("high"), "open");
    assert_eq!(stage.node_of("guarded").as_deref(), Some("guarded"));
}

#[test]
fn a_single_pod_volume_held_by_a_low_pod_when_a_high_pod_wants_it_then_the_holder_is_evicted() {
    let stage = Stage::new();
    stage.make_priority_classes();
    stage.make(node("a"));
    make_single_pod_claim(&stage);
    let _scheduler = stage.scheduler();
    let volume = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]);
    stage.make(pod("low").class("low").with("/spec/volumes", volume.clone()));
    stage.wait_until_bound("low");
    stage.make(pod("high").class("high").with("/spec/volumes", volume));
    assert_eq!(stage.wait_until_bound("high"), "a");
    assert!(stage.pod("low").is_none());
}

/// A claim that one pod at a time may use, bound as a volume controller would have done it.
fn make_single_pod_claim(stage: &Stage) {
    let volume = stage.node_name("volume");
    let size = json!({"storage": "1Gi"});
    stage.make(Draft(json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "volume"},
        "spec": {"capacity": size, "accessModes": ["ReadWriteOncePod"], "storageClassName": "e2e",
                 "persistentVolumeReclaimPolicy": "Retain",
                 "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": stage.name, "name": "claim"},
                 "csi": {"driver": "e2e.example", "volumeHandle": volume}},
    })));
    stage.make(Draft(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "claim", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": size}, "storageClassName": "e2e",
                 "volumeName": volume},
    })));
}

#[test]
fn a_nominated_pod_when_its_node_is_deleted_then_the_nomination_is_cleared() {
    let stage = Stage::in_memory();
    stage.make_priority_classes();
    stage.make(node("a").cpu("1"));
    let scheduler = stage.scheduler();
    stage.make(pod("victim").cpu("1").class("low").slow_to_end());
    stage.wait_until_bound("victim");
    stage.make(pod("high").cpu("1").class("high"));
    wait_until("room is promised", || nominated(&stage, "high").is_some());
    stage.client.delete(&stage.node_path("a"));
    // Nodes and pods are watched side by side: who sees the victim go first may bind to a node that is no more.
    wait_until("the node is forgotten", || scheduler.metric("scheduler_cache_size", "type=\"nodes\"") == 0.0);
    // What a garbage collector does with the pods of a node that is no more.
    stage.client.delete(&stage.pod_path("victim"));
    wait_until("the nomination is cleared", || nominated(&stage, "high").is_none());
    stage.make(node("b").cpu("1"));
    assert_eq!(stage.wait_until_bound("high"), "b");
}
