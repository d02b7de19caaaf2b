//! The nodes and pods of a load test: every pod takes one of a node's places, so that it is known how many fit.

use serde_json::{Value, json};

use super::load::Size;

pub(super) const NAMESPACE: &str = "default";
const ZONES: usize = 3;

pub(super) fn node_name(number: usize) -> String {
    format!("node-{number:05}")
}

pub(super) fn pod_name(number: usize) -> String {
    format!("pod-{number:07}")
}

/// A node. All together have exactly as many places as the size says.
pub(super) fn node(number: usize, size: Size) -> Value {
    let (places, name) = (size.places(), node_name(number));
    let own = places / size.nodes + usize::from(number < places % size.nodes);
    let amounts =
        json!({"cpu": own.to_string(), "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{}", number % ZONES),
        }},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    })
}

/// A pod of one of a few everyday kinds. Each asks for a cpu, and fits wherever there is one.
pub(super) fn pod(number: usize) -> Value {
    let app = format!("app-{}", number % 20);
    let selector = json!({"matchLabels": {"app": app}});
    let mut spec = json!({"containers": [{"name": "main", "image": format!("registry.example/{app}:1"),
        "resources": {"requests": {"cpu": "1", "memory": "256Mi"}}}]});
    match number % 20 {
        0..4 => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}]);
        }
        4..6 => {
            spec["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}]}});
        }
        6..8 => {
            spec["affinity"] = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "preference": {"matchExpressions": [
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-0"]}]}}]}});
        }
        _ => {}
    }
    json!({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": pod_name(number), "namespace": NAMESPACE, "labels": {"app": app}},
           "spec": spec})
}

/// A pod that runs already.
pub(super) fn running_pod(number: usize, size: Size) -> Value {
    let mut pod = pod(number);
    pod["spec"]["nodeName"] = node_name(number % size.nodes).into();
    pod["status"] = json!({"phase": "Running"});
    pod
}
