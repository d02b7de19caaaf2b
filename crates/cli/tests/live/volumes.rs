//! Volumes that are bound before their pod is: made where the pod goes, or chosen there.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_testcluster::{Fault, FaultRule, TestClusterOptions};

use crate::{
    draft::{Draft, node, pod},
    process::wait_until,
    stage::Stage,
};

/// A stage with a volume controller and a class whose volumes wait for their first pod.
fn stage_with_volumes() -> Stage {
    let stage = Stage::with(TestClusterOptions {
        volumes: Some(Duration::from_millis(50)),
        ..TestClusterOptions::default()
    });
    let class = |name: &str, provisioner: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
               "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
    };
    for class in [class("made", "disks.example"), class("kept", "kubernetes.io/no-provisioner")] {
        stage.cluster().create(class).expect("a class");
    }
    stage
}

fn claim(stage: &Stage, name: &str, class: &str) {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": stage.name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                 "resources": {"requests": {"storage": "1Gi"}}},
    });
    stage.cluster().create(claim).expect("a claim");
}

fn with_claim(draft: Draft, claim: &str) -> Draft {
    draft.with("/spec/volumes", json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]))
}

/// A volume that only one node reaches.
fn volume(stage: &Stage, name: &str, node: &str) {
    let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [stage.node_name(node)]});
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "kept",
                 "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/data"},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}},
        "status": {"phase": "Available"},
    });
    stage.cluster().create(volume).expect("a volume");
}

fn bound_claim(stage: &Stage, name: &str) -> Value {
    let claim = stage.cluster().get("persistentvolumeclaims", &stage.name, name).expect("the claim");
    assert_eq!(claim["status"]["phase"], "Bound", "{claim}");
    claim
}

#[test]
fn a_claim_without_volume_when_its_pod_comes_then_the_volume_is_made_for_its_node() {
    let stage = stage_with_volumes();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    claim(&stage, "data", "made");
    stage.make(with_claim(pod("p"), "data"));
    assert_eq!(stage.wait_until_bound("p"), "a");
    let claim = bound_claim(&stage, "data");
    let selected = &claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
    assert_eq!(*selected, stage.node_name("a"));
    stage.wait_for_event("p", "Scheduled");
}

#[test]
fn two_claims_and_two_volumes_when_two_pods_come_at_once_then_each_gets_its_own() {
    let stage = stage_with_volumes();
    stage.make_all([node("a"), node("b")]);
    volume(&stage, "on-a", "a");
    volume(&stage, "on-b", "b");
    claim(&stage, "one", "kept");
    claim(&stage, "other", "kept");
    stage.make_all([with_claim(pod("p"), "one"), with_claim(pod("q"), "other")]);
    let _scheduler = stage.scheduler();
    let (p, q) = (stage.wait_until_bound("p"), stage.wait_until_bound("q"));
    assert_ne!(p, q, "the volumes are on different nodes");
    for (claim, node) in [("one", p), ("other", q)] {
        assert_eq!(bound_claim(&stage, claim)["spec"]["volumeName"], format!("on-{node}"));
    }
}

#[test]
fn a_write_of_a_claim_that_fails_when_tried_again_then_the_pod_is_bound() {
    let stage = stage_with_volumes();
    stage.make(node("a"));
    let _scheduler = stage.scheduler();
    claim(&stage, "data", "made");
    let conflict = Fault::Answer { code: 409, retry_after_seconds: 0 };
    let rule = FaultRule::new(conflict).verb("update").resource("persistentvolumeclaims").times(1);
    stage.cluster().faults().add(rule);
    stage.make(with_claim(pod("p"), "data"));
    assert_eq!(stage.wait_until_bound("p"), "a");
    let told = |event: &Value| {
        let note = event["note"].as_str().unwrap_or_default();
        note.starts_with("running PreBind plugin \"VolumeBinding\": ")
    };
    wait_until("it is told", || stage.events("p", "FailedScheduling").iter().any(told));
    bound_claim(&stage, "data");
}
