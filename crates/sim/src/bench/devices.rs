//! Workloads with devices: 8 on every node, and a claim for each pod, as kube-scheduler was measured with them.

use serde_json::{Value, json};
use supercargo_model::{
    Cluster, Name, Pod,
    object::{Kind, Object},
    pod::{GeneratedClaim, PodClaimStatuses},
};

const DRIVER: &str = "gpu.example.com";
const CLASS: &str = "gpu";
const DEVICES_OF_A_NODE: usize = 8;
/// The claim's name within its pod, and of the template that it was made from.
const CLAIM: &str = "devices";

/// What a pod's claim asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// One device with enough memory.
    Plain,
    /// Two of them that are attached to the same root.
    Constraints,
    /// One device of a model, or else of another.
    Alternatives,
}

impl Demand {
    fn devices(self) -> Value {
        let enough = format!("device.capacity[\"{DRIVER}\"].memory.compareTo(quantity(\"40Gi\")) >= 0");
        let one = |name: &str| json!({"name": name, "exactly": wanted(&enough)});
        match self {
            Self::Plain => json!({"requests": [one("gpu")]}),
            Self::Constraints => json!({
                "requests": [one("first"), one("second")],
                "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
            }),
            Self::Alternatives => {
                let alternative = |model: &str| {
                    let mut asked = wanted(&format!("device.attributes[\"{DRIVER}\"].model == \"{model}\""));
                    asked["name"] = model.into();
                    asked
                };
                json!({"requests": [{"name": "gpu", "firstAvailable": [alternative("h100"), alternative("a100")]}]})
            }
        }
    }
}

fn wanted(selector: &str) -> Value {
    json!({
        "deviceClassName": CLASS, "allocationMode": "ExactCount", "count": 1,
        "selectors": [{"cel": {"expression": selector}}],
    })
}

/// Puts the class, and a slice for each node.
pub(super) fn offer(cluster: &mut Cluster, nodes: impl Iterator<Item = Name>) {
    let selector = json!({"cel": {"expression": format!("device.driver == \"{DRIVER}\"")}});
    let class = json!({"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}});
    put(cluster, Kind::DeviceClass, &class);
    for (i, node) in nodes.enumerate() {
        let devices: Vec<Value> = (0..DEVICES_OF_A_NODE).map(|index| device(i, index)).collect();
        let slice = json!({
            "metadata": {"name": format!("{node}-{DRIVER}")},
            "spec": {
                "driver": DRIVER, "nodeName": &*node, "devices": devices,
                "pool": {"name": &*node, "generation": 1, "resourceSliceCount": 1},
            },
        });
        put(cluster, Kind::ResourceSlice, &slice);
    }
}

/// Even nodes have one model, odd ones another; two devices share a root.
fn device(node: usize, index: usize) -> Value {
    let model = if node.is_multiple_of(2) { "h100" } else { "a100" };
    json!({
        "name": format!("gpu-{index}"),
        "attributes": {
            "model": {"string": model},
            "index": {"int": index},
            "numa": {"int": index / 4},
            "healthy": {"bool": true},
            "driverVersion": {"version": "1.2.3"},
            "uuid": {"string": format!("gpu-{node:05}-{index}")},
            "resource.kubernetes.io/pcieRoot": {"string": format!("pci{node:05}:{}", index / 2)},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    })
}

/// Asks for a claim, in a pod's spec.
pub(super) fn decorate(spec: &mut Value) {
    spec["resourceClaims"] = json!([{"name": CLAIM, "resourceClaimTemplateName": CLAIM}]);
}

/// A pod with the claim that was made for it.
pub(super) fn with_claim(mut pod: Pod) -> Pod {
    let generated = vec![GeneratedClaim { name: CLAIM.into(), resource_claim_name: Some(claim_name(&pod)) }];
    pod.claims = Some(PodClaimStatuses { generated, ..PodClaimStatuses::default() }.into());
    pod
}

fn claim_name(pod: &Pod) -> Name {
    format!("{}-{CLAIM}", pod.name).into()
}

/// Puts the claim of a pod.
pub(super) fn put_claim(cluster: &mut Cluster, demand: Demand, pod: &Pod) {
    let name = claim_name(pod);
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": &*pod.name, "uid": &*pod.uid, "controller": true});
    let claim = json!({
        "metadata": {
            "name": &*name, "namespace": &*pod.namespace, "uid": &*name, "ownerReferences": [owner],
        },
        "spec": {"devices": demand.devices()},
    });
    put(cluster, Kind::ResourceClaim, &claim);
}

fn put(cluster: &mut Cluster, kind: Kind, written: &Value) {
    cluster.put(Object::from_value(kind, written).expect("an object"));
}
