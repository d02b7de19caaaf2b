//! `supercargo capacity`.

use serde_json::{Value, json};

use crate::invocation::{data, run, supercargo};

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: p, labels: {app: p}}
spec: {containers: [{name: c, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]}
";

#[test]
fn says_how_many_fit_where_and_what_runs_out_first() {
    let ran = run(&crate::invocation::project(), "capacity --cluster examples/cluster --pod - -q", POD);
    insta::assert_snapshot!(ran);
}

fn node(name: &str, cpu: u32, memory: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node",
           "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
           "status": {"allocatable": {"cpu": cpu.to_string(), "memory": memory, "pods": "5"}}})
}

/// The capacity of a cluster, with the pod in a file.
fn capacity(cluster: &[Value], spec: Value, flags: &str) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("pod.json");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "p"}}, "spec": spec});
    std::fs::write(&file, pod.to_string()).expect("it can be written");
    let cluster: String = cluster.iter().map(|object| format!("{object}\n")).collect();
    let ran =
        run(&data(), &format!("capacity --cluster - --pod {} -o json {flags}", file.display()), &cluster);
    assert_eq!(ran.code, Some(0), "{ran}");
    serde_json::from_str(&ran.stdout).expect("one object")
}

fn asks(cpu: &str, memory: &str) -> Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]})
}

/// Two nodes with three devices each, a template of claims for one of them, and a resource that the devices stand for.
fn with_devices() -> Vec<Value> {
    let api = "resource.k8s.io/v1";
    let slice = |node: &str| {
        let devices: Vec<Value> = (0..3).map(|i| json!({"name": format!("gpu-{i}")})).collect();
        json!({"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": node}, "spec": {
            "driver": "gpu.example.com", "nodeName": node, "devices": devices,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}})
    };
    let claim = json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 2}}]}});
    vec![
        node("a", 100, "100Gi"),
        node("b", 100, "100Gi"),
        slice("a"),
        slice("b"),
        json!({"apiVersion": api, "kind": "DeviceClass", "metadata": {"name": "gpu"},
               "spec": {"extendedResourceName": "example.com/gpu"}}),
        json!({"apiVersion": api, "kind": "ResourceClaimTemplate", "metadata": {"name": "two"}, "spec": {"spec": claim}}),
    ]
}

#[test]
fn devices_run_out() {
    let claims = json!({
        "containers": [{"name": "c", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "two"}],
    });
    let gpus = json!({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}});
    let extended = json!({"containers": [{"name": "c", "resources": gpus}]});
    // One pod for two of three devices on each node; and one for each device.
    for (spec, fits) in [(claims, 2), (extended, 6)] {
        let counted = capacity(&with_devices(), spec, "");
        assert_eq!(counted["fits"], fits, "{counted}");
        assert_eq!(counted["stoppedBy"][0]["reason"], "cannot allocate all claims", "{counted}");
    }
}

#[test]
fn counts_what_fits_and_stops_where_something_runs_out() {
    // 4 by cpu; 2 by memory; 5 pods at most.
    let cluster = [node("cpu", 4, "100Gi"), node("memory", 100, "2Gi"), node("pods", 100, "100Gi")];
    let counted = capacity(&cluster, asks("1", "1Gi"), "");
    assert_eq!((&counted["fits"], &counted["orMore"]), (&(4 + 2 + 5).into(), &false.into()), "{counted}");
    let reasons: Vec<(&str, &str, u64)> = (counted["nodes"].as_array().expect("nodes").iter())
        .map(|node| {
            let text = |field: &str| node[field].as_str().expect("a text");
            (text("name"), text("reason"), node["fits"].as_u64().expect("a number"))
        })
        .collect();
    let expected =
        [("cpu", "Insufficient cpu", 4), ("memory", "Insufficient memory", 2), ("pods", "Too many pods", 5)];
    assert_eq!(reasons, expected);
    let bounded = capacity(&cluster, asks("1", "1Gi"), "--max 3");
    assert_eq!((&bounded["fits"], &bounded["orMore"]), (&3.into(), &true.into()));
}

#[test]
fn a_constraint_may_stop_pods_before_resources_do() {
    let cluster = [node("a", 4, "100Gi"), node("b", 4, "100Gi")];
    let mut spec = asks("1", "1Gi");
    spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "p"}}}]}});
    let counted = capacity(&cluster, spec, "");
    // One on each node; three cores are left on both.
    assert_eq!((&counted["fits"], &counted["fitsByResources"]), (&2.into(), &6.into()), "{counted}");
    assert_eq!(counted["stoppedBy"][0]["plugin"], "InterPodAffinity");
}

#[test]
fn pods_that_wait_come_first_and_nobody_is_evicted() {
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "low"},
                       "spec": {"nodeName": "a", "priority": -5, "containers": asks("1", "1Gi")["containers"]}});
    let waits =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits"}, "spec": asks("1", "1Gi")});
    let counted = capacity(&[node("a", 4, "100Gi"), bound, waits], asks("1", "1Gi"), "-q");
    assert_eq!(counted["fits"], 2, "{counted}");
}

#[test]
fn what_is_no_pod_is_told() {
    let ran = supercargo("capacity --cluster examples/cluster --pod examples/cluster/nodes.yaml -q");
    assert!(ran.code == Some(2) && ran.stderr.contains("there is no pod in this file"), "{ran}");
    let ran = supercargo("capacity --cluster examples/cluster --pod examples/pods.yaml -q");
    assert!(ran.code == Some(2) && ran.stderr.contains("there is more than one pod in this file"), "{ran}");
}
