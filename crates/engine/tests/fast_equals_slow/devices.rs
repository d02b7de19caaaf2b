//! Devices: what drivers offer, and who claims what.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_model::{
    Cluster, Key, Name,
    object::{Kind, Object},
    testing::{Random, object},
};

use crate::Scene;

/// What the cluster has from the beginning.
pub(crate) fn put_devices(random: &mut Random, cluster: &mut Cluster, nodes: usize) {
    for i in 0..nodes {
        cluster.put(slice(random, i));
    }
    for (k, namespace) in (0..CLAIMS).flat_map(|k| [(k, "default"), (k, "other")]) {
        cluster.put(claim(random, &Key::new(namespace, format!("claim-{k}")), k));
    }
    cluster.put(
        object(
            json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}),
        )
        .object(),
    );
}

/// How many claims there are in each namespace.
pub(crate) const CLAIMS: usize = 4;

/// Something happens to devices: a driver offers others, a claim comes, gets devices, loses them or goes, a class changes.
pub(crate) fn device_event(random: &mut Random, cluster: &mut Cluster, scene: &Scene) {
    let (i, k) = (random.below(scene.nodes), random.below(CLAIMS));
    let claim_key = Key::new(random.one(&["default", "other"]), format!("claim-{k}"));
    match random.below(9) {
        0..=2 => cluster.put(slice(random, i)),
        3 => cluster.remove(Kind::ResourceSlice, &Key::new("", format!("slice-{i}"))),
        4 => cluster.put(
            object(
                json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
                "spec": {"extendedResourceName": random.one(&["example.com/gpu", "example.com/other"])}}),
            )
            .object(),
        ),
        5 => {
            // What is chosen for some claim, and comes to nothing.
            let uid: Name = format!("flying-{k}").into();
            let results = [json!({"request": "r", "driver": "d", "pool": format!("n{i}"), "device": "d0"})];
            let allocation = serde_json::from_value(json!({"devices": {"results": results}})).unwrap();
            match random.chance(2) {
                true => cluster.devices_mut().take_off(uid, Arc::new(allocation)),
                false => cluster.devices_mut().land(&uid),
            }
        }
        6 => cluster.remove(Kind::ResourceClaim, &claim_key),
        _ => cluster.put(claim(random, &claim_key, i)),
    }
}

/// Devices of a node, or of nobody in particular, some of them of the better kind.
fn slice(random: &mut Random, i: usize) -> Object {
    let device = |(d, random): (usize, &mut Random)| {
        json!({"name": format!("d{d}"), "attributes": {
            "kind": {"string": random.one(&["small", "large"])}, "bus": {"int": random.below(2)}}})
    };
    let devices: Vec<Value> = (0..random.below(4)).map(|d| device((d, random))).collect();
    let mut spec = json!({"driver": "d", "devices": devices,
        "pool": {"name": format!("n{i}"), "generation": 1, "resourceSliceCount": 1}});
    match random.below(8) {
        0 => spec["allNodes"] = true.into(),
        1 => {
            let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]});
            spec["nodeSelector"] = json!({"nodeSelectorTerms": [{"matchExpressions": [zone]}]});
        }
        _ => spec["nodeName"] = format!("n{i}").into(),
    }
    object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("slice-{i}")}, "spec": spec}))
    .object()
}

/// A claim to one device, to two on one bus, or to the first of two kinds; now and then it has devices already.
fn claim(random: &mut Random, key: &Key, i: usize) -> Object {
    let asks = |name: &str, count: usize, kind: &str| {
        let expression = format!("device.attributes[\"d\"].kind == \"{kind}\"");
        json!({"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count,
            "selectors": [{"cel": {"expression": expression}}]})
    };
    let request = match random.below(3) {
        0 => json!({"name": "r", "exactly": asks("", 1, "small")}),
        1 => json!({"name": "r", "exactly": asks("", 2, "large")}),
        _ => json!({"name": "r", "firstAvailable": [asks("best", 2, "large"), asks("good", 1, "small")]}),
    };
    let mut devices = json!({"requests": [request]});
    if random.chance(2) {
        devices["constraints"] = json!([{"matchAttribute": "d/bus"}]);
    }
    let mut status = json!({});
    if random.chance(4) {
        let here = json!({"key": "metadata.name", "operator": "In", "values": [format!("n{i}")]});
        status["allocation"] = json!({
            "devices": {"results": [{"request": "r", "driver": "d", "pool": format!("n{i}"), "device": "d1"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        });
    }
    object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": &*key.name, "namespace": &*key.namespace, "uid": format!("{key}-{}", random.below(1000))},
        "spec": {"devices": devices}, "status": status}))
    .object()
}
