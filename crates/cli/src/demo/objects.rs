//! The objects of the demo: nodes of three zones, and pods of everyday kinds.

use serde_json::{Value, json};

/// The namespace of everything.
pub(super) const NAMESPACE: &str = "default";
/// The Deployment that is rolled out, and loses pods with a node.
pub(super) const SHOP: &str = "shop";
/// The pod that waits.
pub(super) const WHALE: &str = "whale";
pub(super) const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
pub(super) const GPU: &str = "example.com/gpu";
/// The largest pod of the stream has to fit; and no node is as large as the pod that waits for one wants it.
const MIN_CORES: usize = 4;
const MAX_CORES: usize = 48;
const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
/// Other training has none.
const URGENT_PRIORITY: i32 = 100_000;

/// The driver of the accelerators that pods claim, and their class.
pub(super) const ACCELERATORS: &str = "accelerators.example.com";
/// What the claims of pods are made from.
const PAIR: &str = "pair-of-accelerators";
/// How many accelerators a node of those that have some has.
const ACCELERATORS_OF_A_NODE: usize = 8;

/// How many accelerators a cluster of so many nodes has.
pub(super) fn accelerators(nodes: usize) -> usize {
    (0..nodes).filter(|i| has_accelerators(*i)).count() * ACCELERATORS_OF_A_NODE
}

fn has_accelerators(node: usize) -> bool {
    node % 10 == 5
}

/// A node with so many cores; every tenth has GPUs, and another tenth accelerators, which their driver publishes.
pub(super) fn node(i: usize, cores: usize) -> Value {
    let name = format!("node-{i:04}");
    let gpu = i.is_multiple_of(10);
    let (cpu, memory) = (cores.to_string(), format!("{}Gi", 4 * cores));
    let mut amounts = json!({"cpu": cpu, "memory": memory, "pods": "110", "ephemeral-storage": "100Gi"});
    if gpu {
        amounts[GPU] = "4".into();
    }
    let mut labels = json!({
        "kubernetes.io/hostname": name,
        ZONE_LABEL: ZONES[i % ZONES.len()],
        "node.kubernetes.io/instance-type": if gpu { "gpu" } else { "general" },
    });
    if has_accelerators(i) {
        labels["testcluster/devices"] = ACCELERATORS_OF_A_NODE.to_string().into();
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Demo", "message": "pretends to be ready"}],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "none", "kernelVersion": "none",
                         "containerRuntimeVersion": "none"},
        },
    })
}

/// A node as it is while it fails: it says so, and keeps pods away.
pub(super) fn failed(mut node: Value) -> Value {
    node["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
                                    {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]);
    node["status"]["conditions"][0]["status"] = "Unknown".into();
    node
}

/// The same when it is back.
pub(super) fn recovered(mut node: Value) -> Value {
    node["spec"]["taints"] = json!([]);
    node["status"]["conditions"][0]["status"] = "True".into();
    node
}

/// How many cores a node needs for the stream of pods to fill the cluster to two thirds or so.
pub(super) fn cores(nodes: usize, pods_at_a_time: f64) -> usize {
    const MEAN_CORES: f64 = 0.78;
    const FILLED: f64 = 0.7;
    let needed = pods_at_a_time * MEAN_CORES / FILLED / nodes.max(1) as f64;
    (needed.round() as usize).clamp(MIN_CORES, MAX_CORES)
}

/// Which pod of the stream has a name, if one has.
pub(super) fn number_in(name: &str) -> Option<usize> {
    let (app, number) = name.split_once('-')?;
    let number = number.trim_end_matches('r').parse().ok()?;
    (app == kind(number).0).then_some(number)
}

/// The name of a pod of the stream.
pub(super) fn pod_name(i: usize) -> String {
    format!("{}-{i:06}", kind(i).0)
}

/// App, cpu and memory.
fn kind(i: usize) -> (&'static str, &'static str, &'static str) {
    match i % 30 {
        29 => ("train", "2", "4Gi"),
        i => [
            ("web", "250m", "256Mi"),
            ("web", "250m", "256Mi"),
            ("api", "500m", "512Mi"),
            ("cache", "200m", "2Gi"),
            ("batch", "1500m", "1Gi"),
            ("batch", "2", "1Gi"),
        ][i % 6],
    }
}

/// Pods of some everyday kinds, in turn.
pub(super) fn pod(i: usize, name: &str) -> Value {
    let (app, cpu, memory) = kind(i);
    let selector = json!({"matchLabels": {"app": app}});
    let mut requests = json!({"cpu": cpu, "memory": memory});
    let mut spec = json!({});
    match app {
        "web" | "api" => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": ZONE_LABEL,
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}]);
        }
        "cache" => {
            spec["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}]}});
        }
        "train" => requests[GPU] = "1".into(),
        _ => {}
    }
    spec["containers"] = json!([{"name": "main", "image": format!("registry.example/{app}:1"),
                                "resources": {"requests": requests}}]);
    whole(name, app, spec)
}

fn whole(name: &str, app: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": app}}, "spec": spec})
}

/// Training on one GPU.
pub(super) fn spare(name: &str) -> Value {
    on_gpus(name, "spare", 1, 0)
}

/// Training that cannot wait, on two GPUs.
pub(super) fn urgent(name: &str) -> Value {
    on_gpus(name, "urgent", 2, URGENT_PRIORITY)
}

fn on_gpus(name: &str, app: &str, gpus: u32, priority: i32) -> Value {
    let requests = json!({"cpu": "100m", "memory": "1Gi", GPU: gpus.to_string()});
    let container = json!({"name": "main", "image": "registry.example/train:1",
                           "resources": {"requests": requests, "limits": {GPU: gpus.to_string()}}});
    whole(
        name,
        app,
        json!({"priority": priority, "terminationGracePeriodSeconds": 1, "containers": [container]}),
    )
}

/// The class of the accelerators, and what claims for two that are attached to the same root are made from.
pub(super) fn device_objects() -> [Value; 2] {
    let is_ours = json!({"cel": {"expression": format!("device.driver == {ACCELERATORS:?}")}});
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": ACCELERATORS},
                       "spec": {"selectors": [is_ours]}});
    let two = json!({"name": "pair", "exactly": {"deviceClassName": ACCELERATORS, "count": 2}});
    let claim = json!({"devices": {"requests": [two],
                                   "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}]}});
    let template = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
                          "metadata": {"name": PAIR, "namespace": NAMESPACE}, "spec": {"spec": claim}});
    [class, template]
}

/// Inference on two accelerators.
pub(super) fn inference(name: &str) -> Value {
    let container = json!({"name": "main", "image": "registry.example/infer:1",
                           "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}, "claims": [{"name": "pair"}]}});
    let claims = json!([{"name": "pair", "resourceClaimTemplateName": PAIR}]);
    whole(
        name,
        "infer",
        json!({"terminationGracePeriodSeconds": 1, "containers": [container], "resourceClaims": claims}),
    )
}

/// A pod that no node is large enough for.
pub(super) fn whale() -> Value {
    let container = json!({"name": "main", "image": "registry.example/whale:1",
                           "resources": {"requests": {"cpu": "64", "memory": "16Gi"}}});
    whole(WHALE, WHALE, json!({"containers": [container]}))
}

/// A Deployment whose pods must be spread over the zones.
pub(super) fn shop(replicas: usize) -> Value {
    let labels = json!({"app": SHOP});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": SHOP, "namespace": NAMESPACE},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": labels}, "spec": {
                "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE_LABEL,
                    "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": labels},
                    "matchLabelKeys": ["pod-template-hash"]}],
                "containers": [{"name": "main", "image": version(1),
                                "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}}}]}}}})
}

/// The image of a version of the shop.
pub(super) fn version(number: usize) -> String {
    format!("registry.example/shop:{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_as_large_as_the_stream_needs() {
        // 50 a second for 45 s: 2,250 × 0.78 / 0.7 / 300 = 8.4.
        assert_eq!(cores(300, 2250.0), 8);
        // 90,000 × 0.78 / 0.7 / 5,000 = 20.1.
        assert_eq!(cores(5000, 90_000.0), 20);
        assert_eq!((cores(1000, 1.0), cores(1, 90_000.0), cores(0, 0.0)), (4, 48, 4));
    }

    #[test]
    fn a_pod_of_the_stream_is_known_by_its_name() {
        for i in [0, 5, 29, 30, 123_456] {
            assert_eq!(number_in(&pod_name(i)), Some(i));
            assert_eq!(number_in(&format!("{}r", pod_name(i))), Some(i), "made again after its node failed");
        }
        for other in ["whale", "shop-5d4c-x2", "urgent-1-2", "web-29"] {
            assert_eq!(number_in(other), None, "{other}");
        }
    }
}
