//! The search for devices ends. What it finds is compared with kube-scheduler's in the conformance data (theme `dra`).

use serde_json::Value;
use supercargo_model::{Cluster, Key, Kind, object::Object};
use supercargo_plugins::dynamic_resources::allocator::{
    AllocationError, NodeInQuestion, SelectorCache, allocate,
};

#[test]
fn a_search_without_end_is_given_up() {
    let device = |number: usize| serde_json::json!({ "name": format!("d{number}") });
    let devices: Vec<Value> = (0..30).map(device).collect();
    let request = |name: &str, count: usize, expression: &str| {
        let selectors = [serde_json::json!({ "cel": { "expression": expression } })];
        let exactly = serde_json::json!({
            "deviceClassName": "any", "allocationMode": "ExactCount", "count": count, "selectors": selectors,
        });
        serde_json::json!({ "name": name, "exactly": exactly })
    };
    // There are 30 million ways to choose 10 of 30, and none leads to the device that is not there.
    let scenario = serde_json::json!({ "objects": [
        { "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } },
        { "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "any" } },
        { "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": "s" }, "spec": {
            "driver": "d.example.com", "pool": { "name": "p", "generation": 1, "resourceSliceCount": 1 },
            "nodeName": "n", "devices": devices } },
        { "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": "c", "namespace": "default" },
          "spec": { "devices": { "requests": [request("many", 10, "true"), request("none", 1, "false")] } } },
    ] });
    let mut cluster = Cluster::default();
    for (kind, written) in [Kind::Node, Kind::DeviceClass, Kind::ResourceSlice, Kind::ResourceClaim]
        .into_iter()
        .zip(scenario["objects"].as_array().unwrap())
    {
        cluster.put(Object::deserialize(kind, &[], written.clone()).unwrap());
    }
    let (devices, node) = (cluster.devices(), &cluster.node("n").unwrap().node);
    let claim = devices.claim(&Key::new("default", "c")).unwrap();
    let question = NodeInQuestion { name: &node.name, labels: &node.labels };
    let found = allocate(devices, question, &[claim], &mut SelectorCache::default(), &mut || "share".into());
    let given_up = "claim default/c: the search for devices on node n was given up after 1000000 steps: \
        too many devices match spec.devices.requests for all combinations to be tried"
        .to_owned();
    assert_eq!(found, Err(AllocationError::Pod(given_up)));
}

/// What is said of a claim with these requests, where the node has one device.
fn refusal(requests: Value, device: Value) -> Result<bool, AllocationError> {
    let mut cluster = Cluster::default();
    for (kind, written) in [
        (Kind::Node, serde_json::json!({ "metadata": { "name": "n" } })),
        (Kind::DeviceClass, serde_json::json!({ "metadata": { "name": "any" } })),
        (
            Kind::ResourceSlice,
            serde_json::json!({ "metadata": { "name": "s" }, "spec": {
            "driver": "d.example.com", "pool": { "name": "p", "generation": 1, "resourceSliceCount": 1 },
            "nodeName": "n", "devices": [device] } }),
        ),
        (
            Kind::ResourceClaim,
            serde_json::json!({ "metadata": { "name": "c", "namespace": "default" },
            "spec": { "devices": { "requests": requests } } }),
        ),
    ] {
        cluster.put(Object::deserialize(kind, &[], written).unwrap());
    }
    let (devices, node) = (cluster.devices(), &cluster.node("n").unwrap().node);
    let claim = devices.claim(&Key::new("default", "c")).unwrap();
    let question = NodeInQuestion { name: &node.name, labels: &node.labels };
    let found = allocate(devices, question, &[claim], &mut SelectorCache::default(), &mut || "share".into());
    found.map(|found| found.is_some())
}

#[test]
fn what_no_api_server_stores_costs_its_pod_and_is_named() {
    let exactly = |count: i64| serde_json::json!({ "deviceClassName": "any", "allocationMode": "ExactCount", "count": count });
    let request = |name: usize, count: i64| serde_json::json!({ "name": format!("r{name}"), "exactly": exactly(count) });
    let plain = serde_json::json!({ "name": "d0" });
    let failed = |message: &str| Err(AllocationError::Pod(message.to_owned()));
    assert_eq!(
        refusal(serde_json::json!([request(0, -1)]), plain.clone()),
        failed("claim default/c, request r0: count is negative: -1")
    );
    let huge: Vec<Value> = (0..4).map(|i| request(i, i64::MAX)).collect();
    let message = refusal(huge.into(), plain.clone()).unwrap_err();
    assert!(matches!(message, AllocationError::Pod(why) if why.contains("exceeds the claim limit of 32")));
    let many: Vec<Value> = (0..100_000).map(|i| request(i, 0)).collect();
    assert_eq!(
        refusal(many.into(), plain.clone()),
        failed("claim default/c: the pod's claims, their requests and devices are more than 1024 together")
    );
    // A device whose policy has a step of nothing, or goes down, is given to nobody.
    for step in ["0", "-1"] {
        let range = serde_json::json!({ "min": "-9223372036854775808", "step": step });
        let policy = serde_json::json!({ "default": "1", "validRange": range });
        let capacity = serde_json::json!({ "memory": { "value": "8", "requestPolicy": policy } });
        let device =
            serde_json::json!({ "name": "d0", "capacity": capacity, "allowMultipleAllocations": true });
        let mut asked = exactly(1);
        asked["capacity"] = serde_json::json!({ "requests": { "memory": "3" } });
        let found = refusal(serde_json::json!([{ "name": "r", "exactly": asked }]), device);
        assert!(found.is_ok(), "{found:?}");
    }
}
