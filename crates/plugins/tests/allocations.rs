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
