//! Pods with claims to devices: no device is given twice, and a pod costs what has changed, not what there is.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use supercargo_engine::{Engine, Placement, Settings};
use supercargo_framework::assumed::{AssumedObjects, ReserveCycle};
use supercargo_model::{
    Key, Name, Pod,
    devices::DeviceId,
    testing::{Builder, node, object, pod},
    work,
};

use crate::support::engine_with;

const DEVICES: usize = 8;

fn slice(i: usize) -> Builder {
    let device = |d: usize| {
        json!({"name": format!("gpu-{d}"), "attributes": {"root": {"int": d / 2}},
            "capacity": {"memory": {"value": "80Gi"}}})
    };
    let devices: Vec<Value> = (0..DEVICES).map(device).collect();
    object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("s{i}")},
        "spec": {"driver": "gpu.example.com", "nodeName": format!("n{i}"), "devices": devices,
            "pool": {"name": format!("n{i}"), "generation": 1, "resourceSliceCount": 1}}}))
}

fn engine(nodes: usize) -> Engine {
    let class = object(
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
        "spec": {"selectors": [{"cel": {"expression": "device.driver == \"gpu.example.com\""}}]}}),
    );
    let settings = Settings { percentage_of_nodes_to_score: 100, ..Settings::default() };
    let nodes = (0..nodes)
        .flat_map(|i| [node(&format!("n{i}")).allocatable("cpu", "64").allocatable("pods", "110"), slice(i)]);
    engine_with(nodes.chain([class]), settings)
}

/// A pod with a claim of its own that was made from a template.
fn pod_with_claim(engine: &mut Engine, i: usize, devices: &Value) -> Arc<Pod> {
    let (pod_name, claim) = (format!("p{i}"), format!("p{i}-gpu"));
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": pod_name, "controller": true});
    let written = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": claim, "namespace": "default", "uid": claim, "ownerReferences": [owner]},
        "spec": {"devices": devices}});
    engine.cluster_mut().put(object(written).object());
    let named = json!([{"name": "gpu", "resourceClaimTemplateName": "gpu"}]);
    let made = json!([{"name": "gpu", "resourceClaimName": claim}]);
    let pod = pod(&pod_name).set("/metadata/uid", json!(pod_name)).set("/spec/resourceClaims", named);
    let pod = pod.set("/status/resourceClaimStatuses", made).pod();
    engine.admit(pod)
}

/// Puts the pod where it is decided to go, with its devices in flight. The node, and how many steps were taken.
fn place(engine: &mut Engine, assumed: &mut AssumedObjects, pod: &Arc<Pod>) -> (Option<Name>, u64) {
    let before = work::steps();
    let placement = engine.place(pod).expect("a profile");
    let Some(node) = placement.node().cloned() else { return (None, work::steps() - before) };
    assert!(matches!(placement, Placement::On { .. }), "the fast path serves pods with claims");
    let profile = engine.profiles().shared(&pod.spec.scheduler_name).expect("a profile");
    engine.assume(pod, node.clone());
    let mut cycle = ReserveCycle::new(engine.cluster_mut(), assumed, pod.uid.clone());
    profile.profile.reserve(&mut cycle, pod, &node).expect("what was found is there");
    (Some(node), work::steps() - before)
}

fn one_device() -> Value {
    json!({"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1,
        "selectors": [{"cel": {"expression": "device.capacity[\"gpu.example.com\"].memory.compareTo(quantity(\"40Gi\")) >= 0"}}]}}]})
}

#[test]
fn every_device_is_given_once_and_then_nobody_gets_one() {
    let (nodes, mut assumed) = (5, AssumedObjects::default());
    let mut engine = engine(nodes);
    let mut owners: BTreeMap<DeviceId, Name> = BTreeMap::new();
    for i in 0..nodes * DEVICES {
        let pod = pod_with_claim(&mut engine, i, &one_device());
        let (node, _) = place(&mut engine, &mut assumed, &pod);
        let node = node.unwrap_or_else(|| panic!("pod {i} has no node"));
        let claim = engine.cluster().devices().claim(&Key::new("default", format!("p{i}-gpu"))).unwrap();
        let given = engine.cluster().devices().in_flight(&claim.uid).expect("devices in flight");
        for device in &given.devices.results {
            assert_eq!(device.pool, node);
            let id = DeviceId {
                driver: device.driver.clone(),
                pool: device.pool.clone(),
                device: device.device.clone(),
            };
            assert_eq!(owners.insert(id, pod.name.clone()), None, "given twice");
        }
    }
    let late = pod_with_claim(&mut engine, 1000, &one_device());
    assert_eq!(place(&mut engine, &mut assumed, &late).0, None);
    let decision = engine.decide(&late).unwrap();
    assert_eq!(
        decision.message().unwrap(),
        "0/5 nodes are available: 5 cannot allocate all claims. \
        still not schedulable, preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."
    );
    // A pod that is given up gives its devices back.
    assumed.restore(engine.cluster_mut(), "p7");
    engine.cluster_mut().remove_pod(&Key::new("default", "p7"));
    assert!(place(&mut engine, &mut assumed, &late).0.is_some());
}

#[test]
fn a_pod_costs_the_nodes_that_have_changed() {
    let constrained = json!({
        "requests": [one_device()["requests"][0].clone(), {"name": "other", "exactly":
            {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}],
        "constraints": [{"matchAttribute": "gpu.example.com/root"}],
    });
    let alternative = |name: &str, least: usize| {
        let expression = format!("device.attributes[\"gpu.example.com\"].root >= {least}");
        json!({"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1,
            "selectors": [{"cel": {"expression": expression}}]})
    };
    let alternatives =
        json!({"requests": [{"name": "gpu", "firstAvailable": [alternative("a", 3), alternative("b", 0)]}]});
    for devices in [one_device(), constrained, alternatives] {
        let steps: Vec<u64> = [100, 1000]
            .map(|nodes| {
                let (mut engine, mut assumed) = (engine(nodes), AssumedObjects::default());
                let steps = (0..60).map(|i| {
                    let pod = pod_with_claim(&mut engine, i, &devices);
                    let (node, steps) = place(&mut engine, &mut assumed, &pod);
                    assert!(node.is_some());
                    steps
                });
                // The first pods of a signature look at all nodes.
                steps.skip(10).max().unwrap()
            })
            .into();
        // Two nodes of eight devices: the one that changed, and the one that was chosen.
        assert!(steps.iter().all(|steps| *steps < 200), "{steps:?} for {devices}");
    }
}
