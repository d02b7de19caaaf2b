//! Each plugin alone, asked about every one of 1,000 nodes: what a plugin without a fast form costs a pod, and what the
//! fast forms save.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use supercargo_framework::{
    profile::{Choice, PreFilterEnd, Profile, ProfileSpec},
    registry::{Args, Plugin, Point, Registration, Registry},
};
use supercargo_manifest::{Source, read};
use supercargo_model::{
    Cluster, Name, NodeInfo, Pod,
    testing::{self, Builder, node, object, pod},
};
use supercargo_plugins::{default_binder, node_resources_fit, priority_sort};

const NODES: usize = 1_000;
const BOUND_PODS: usize = 2_000;
const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const DRIVER: &str = "csi.example.com";

fn plugins(criterion: &mut Criterion) {
    let registry = supercargo_plugins::registry();
    let (cluster, pod) = (cluster(), demanding_pod());
    for plugin in registry.iter() {
        let serves = |point| plugin.points().contains(&point);
        if !serves(Point::Filter) && !serves(Point::Score) {
            continue;
        }
        let profile = alone(&registry, plugin);
        let nodes: Vec<&NodeInfo> = cluster.nodes().collect();
        let mut group = criterion.benchmark_group(plugin.name());
        if serves(Point::Filter) {
            assert_ne!(filter(&profile, &cluster, &pod, &nodes), 0, "{} refuses every node", plugin.name());
            group.bench_function("filter", |bencher| {
                bencher.iter(|| filter(&profile, &cluster, black_box(&pod), &nodes));
            });
        }
        if serves(Point::Score) {
            group.bench_function("score", |bencher| {
                bencher.iter(|| profile.score(&cluster, black_box(&pod), &nodes).expect("scores"));
            });
        }
        group.finish();
    }
}

/// How many nodes are feasible.
fn filter(profile: &Profile, cluster: &Cluster, pod: &Pod, nodes: &[&NodeInfo]) -> usize {
    match profile.pre_filter(cluster, pod).expect("no fault") {
        PreFilterEnd::Rejected { .. } => 0,
        PreFilterEnd::Go(go) => {
            let feasible = |node: &&&NodeInfo| profile.filter(&go.state, cluster, pod, node).is_ok();
            nodes.iter().filter(feasible).count()
        }
    }
}

/// A profile with one plugin at its filter and score points, and what no profile can do without.
fn alone(registry: &Registry, plugin: &Registration) -> Profile {
    let measured = [Point::PreFilter, Point::Filter, Point::PreScore, Point::Score];
    let served = measured.into_iter().filter(|point| plugin.points().contains(point));
    let needed = [(Point::QueueSort, priority_sort::NAME), (Point::Bind, default_binder::NAME)];
    let mut spec = ProfileSpec::default();
    for (point, name) in served.map(|point| (point, plugin.name())).chain(needed) {
        let name: Name = name.into();
        spec.plugins.insert(name.clone(), made(registry.get(&name).expect("registered")));
        spec.points.insert(point, vec![Choice { plugin: name, weight: 1 }]);
    }
    Profile::new(spec).expect("a whole profile")
}

/// The plugin with its default arguments; with a plain shape where one must be given.
fn made(plugin: &Registration) -> Plugin {
    if plugin.name() != node_resources_fit::REQUESTED_TO_CAPACITY_RATIO {
        return plugin.build(&Args::none()).expect("default arguments");
    }
    let shape = r#"{"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}"#;
    let source = Source::new("args", shape);
    let values = read(&source).expect("JSON");
    plugin.build(&Args::new(&source, &values[0], "args")).expect("a shape")
}

/// Nodes and pods that give each plugin something to look at.
fn cluster() -> Cluster {
    let nodes = (0..NODES).flat_map(|i| {
        let name = format!("node-{i:04}");
        let node = node(&name)
            .label(ZONE, &format!("zone-{}", i % 3))
            .label("disk", if i % 2 == 0 { "ssd" } else { "hdd" })
            .allocatable("cpu", "32")
            .allocatable("memory", "128Gi");
        let node = if i % 4 == 0 { node.taint("slow", "yes", "PreferNoSchedule") } else { node };
        let node = if i % 5 == 0 { node.taint("dedicated", "batch", "NoSchedule") } else { node };
        let node = if i % 3 == 0 { node.has_image("registry.local/web:1", 300_000_000) } else { node };
        [node, csi_node(&name)]
    });
    let bound = (0..BOUND_PODS).map(|i| {
        let pod = web_pod(&format!("pod-{i:04}")).on(&format!("node-{:04}", i * 7_919 % NODES));
        if i % 10 == 0 { pod.set("/spec/containers/0/ports", host_port(8080)) } else { pod }
    });
    testing::cluster(nodes.chain(volume()).chain(bound))
}

fn csi_node(name: &str) -> Builder {
    object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "allocatable": {"count": 20}}]},
    }))
}

/// A claim, and the volume in one zone that it is bound to.
fn volume() -> [Builder; 2] {
    let in_zone = json!({"key": ZONE, "operator": "In", "values": ["zone-0"]});
    let claim = object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "data",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "disk-1", "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Bound"},
    }));
    let volume = object(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "disk-1", "labels": {ZONE: "zone-0"}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": DRIVER, "volumeHandle": "disk-1"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}},
        },
        "status": {"phase": "Bound"},
    }));
    [claim, volume]
}

/// As the pods that are bound.
fn web_pod(name: &str) -> Builder {
    pod(name)
        .label("app", "web")
        .container(&[("cpu", "100m"), ("memory", "500Mi")])
        .set("/spec/containers/0/image", "registry.local/web:1")
}

fn host_port(port: u16) -> serde_json::Value {
    json!([{"containerPort": 80, "hostPort": port}])
}

/// A pod that asks something of every plugin.
fn demanding_pod() -> Arc<Pod> {
    let selector = json!({"matchLabels": {"app": "web"}});
    let term = |key: &str| json!({"labelSelector": selector, "topologyKey": key});
    let spread = |key: &str, skew: i32, otherwise: &str| json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": otherwise, "labelSelector": selector});
    let on_ssd = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]});
    let in_zone_1 = json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone-1"]}]});
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    web_pod("demanding")
        .set("/spec/containers/0/ports", host_port(8080))
        .claim("data")
        .toleration(
            json!({"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}),
        )
        .set(
            "/spec/affinity",
            json!({
                "nodeAffinity": {
                    REQUIRED: {"nodeSelectorTerms": [on_ssd]},
                    PREFERRED: [{"weight": 10, "preference": in_zone_1}],
                },
                "podAffinity": {
                    REQUIRED: [term(ZONE)],
                    PREFERRED: [{"weight": 50, "podAffinityTerm": term(ZONE)}],
                },
                "podAntiAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term(HOST)}]},
            }),
        )
        .set(
            "/spec/topologySpreadConstraints",
            json!([
                spread(ZONE, 5, "DoNotSchedule"),
                spread(ZONE, 1, "ScheduleAnyway"),
                spread(HOST, 5, "ScheduleAnyway")
            ]),
        )
        .pod()
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300)).sample_size(20);
    targets = plugins
}
criterion_main!(benches);
