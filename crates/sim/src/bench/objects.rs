//! The clusters and the pods of the workloads.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_model::{Cluster, Name, Node, Pod, object::Object};

use super::{BenchWorkload, Size, devices};

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const NAMESPACE: &str = "default";
const DRIVER: &str = "csi.example.com";
const CLASS: &str = "zonal";

/// How many templates the pods of `churn` alternate between.
const CHURN_TEMPLATES: usize = 200;
/// How many apps keep apart in `affinity-required`; their pods come in rows, as those of a ReplicaSet do.
const APPS: usize = 50;
const APP_ROW: usize = 20;
/// How many of the bound pods of `affinity-required` have an anti-affinity already.
pub(super) const KEEP_APART: usize = 2_000;
/// How many volumes a node can attach in `nodevolumelimits`.
const VOLUME_LIMIT: usize = 32;

/// Whether a pod is bound before, or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Bound,
    Pending,
}

/// What pods want, besides what their kind adds.
struct Wants {
    app: String,
    cpu: String,
    memory: String,
    priority: i32,
}

impl Wants {
    fn of(app: impl Into<String>, cpu: impl Into<String>) -> Self {
        Self { app: app.into(), cpu: cpu.into(), memory: "500Mi".to_owned(), priority: 0 }
    }
}

impl BenchWorkload {
    /// Which of the templates the i-th pod has; `None` if its shape is its own.
    fn template(self, i: usize) -> Option<usize> {
        match self {
            Self::Unique | Self::Volumes | Self::NodeVolumeLimits => None,
            Self::Churn => Some(i % CHURN_TEMPLATES),
            Self::AffinityRequired => Some(i / APP_ROW % APPS),
            _ => Some(0),
        }
    }

    fn wants(self, i: usize, role: Role) -> Wants {
        let template = self.template(i).unwrap_or(i);
        match (self, role) {
            (Self::Unique, _) => Wants {
                memory: format!("{}Mi", 64 + i % 1009),
                ..Wants::of(format!("web-{i}"), format!("{}m", 50 + i % 997))
            },
            (Self::Churn, _) => Wants::of(format!("web-{template}"), format!("{}m", 50 + template)),
            (Self::AffinityRequired, _) => Wants::of(format!("web-{template}"), "100m"),
            // A whole node: none is empty.
            (Self::Refused | Self::RefusedChanged, Role::Pending) => Wants::of("web", "32"),
            // Two of them fill a node; one of them has to go, and then it is full again.
            (Self::Preempt, Role::Bound) => Wants::of("web", "15"),
            (Self::Preempt, Role::Pending) => Wants { priority: 1000, ..Wants::of("important", "17") },
            _ => Wants::of("web", "100m"),
        }
    }

    /// What the pods of a mixed workload are, one after another.
    fn in_turn(self, i: usize) -> Self {
        let turns = [Self::Basic, Self::NodeAffinity, Self::Spread, Self::InterPod];
        match self {
            Self::Unique => turns[i % turns.len()],
            Self::Churn => turns[i % CHURN_TEMPLATES % turns.len()],
            other => other,
        }
    }

    fn pod(self, i: usize, role: Role) -> Pod {
        let Wants { app, cpu, memory, priority } = self.wants(i, role);
        let name = pod_name(i);
        let mut pod = json!({
            "metadata": {"name": &*name, "namespace": NAMESPACE, "uid": &*name, "labels": {"app": app}},
            "spec": {"priority": priority, "containers": [{
                "name": "main", "image": "registry.local/web:1",
                "resources": {"requests": {"cpu": cpu, "memory": memory}},
            }]},
        });
        self.in_turn(i).decorate(&mut pod["spec"], &app, i);
        object(&pod)
    }

    fn decorate(self, spec: &mut Value, app: &str, i: usize) {
        let selector = |app: &str| json!({"matchLabels": {"app": app}});
        let term = |key: &str, app: &str| json!({"labelSelector": selector(app), "topologyKey": key});
        let weighted =
            |key: &str, weight: i32| json!([{"weight": weight, "podAffinityTerm": term(key, app)}]);
        let constraint = |key: &str, skew: i32, action: &str| json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector(app)});
        match self {
            Self::NodeAffinity => {
                let disk =
                    json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]});
                spec["affinity"] = json!({"nodeAffinity": {PREFERRED: [{"weight": 10, "preference": disk}]}});
            }
            Self::Spread => {
                let soft = |key: &str, skew: i32| constraint(key, skew, "ScheduleAnyway");
                spec["topologySpreadConstraints"] = json!([soft(ZONE, 1), soft(HOST, 5)]);
            }
            Self::SpreadHard => {
                let hard = |key: &str, skew: i32| constraint(key, skew, "DoNotSchedule");
                spec["topologySpreadConstraints"] = json!([hard(ZONE, 1), hard(HOST, 5)]);
            }
            Self::InterPod => {
                spec["affinity"] = json!({
                    "podAntiAffinity": {PREFERRED: weighted(HOST, 100)},
                    "podAffinity": {PREFERRED: weighted(ZONE, 50)},
                });
            }
            Self::AffinityRequired => {
                // Not beside another of the app, and not in the zone of what it is apart from.
                let apart = app.replace("web", "apart");
                spec["affinity"] =
                    json!({"podAntiAffinity": {REQUIRED: [term(HOST, app), term(ZONE, &apart)]}});
            }
            Self::Volumes | Self::NodeVolumeLimits => {
                spec["volumes"] =
                    json!([{"name": "data", "persistentVolumeClaim": {"claimName": &*claim_name(i)}}]);
            }
            Self::Devices(_) => devices::decorate(spec),
            _ => {}
        }
    }

    /// What the i-th of those is that are bound before.
    fn of_bound(self, i: usize) -> Self {
        match self {
            // Of those that keep apart there are only so many.
            Self::AffinityRequired if i >= KEEP_APART => Self::Basic,
            // All devices are free.
            Self::Devices(_) => Self::Basic,
            other => other,
        }
    }

    /// Every second pod's volume is made only when it has a node; those of `nodevolumelimits` are all there.
    fn is_delayed(self, i: usize) -> bool {
        self == Self::Volumes && i % 2 == 1
    }
}

fn pod_name(i: usize) -> Name {
    format!("pod-{i:07}").into()
}

fn claim_name(i: usize) -> Name {
    format!("claim-{i:07}").into()
}

fn node_name(i: usize) -> Name {
    format!("node-{i:05}").into()
}

/// The node that the i-th bound pod sits on.
fn node_of(i: usize, size: Size) -> usize {
    i.wrapping_mul(7919) % size.nodes.max(1)
}

fn written_node(i: usize) -> Value {
    let name = node_name(i);
    let disk = if i.is_multiple_of(2) { "ssd" } else { "hdd" };
    json!({
        "metadata": {"name": &*name, "labels": {
            HOST: &*name, ZONE: format!("zone-{}", i % 3), "disk": disk,
        }},
        "spec": {},
        "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
    })
}

fn node(i: usize) -> Node {
    object(&written_node(i))
}

fn object<T: serde::de::DeserializeOwned>(written: &Value) -> T {
    serde_json::from_str(&written.to_string()).expect("an object")
}

/// The cluster of a workload, with its bound pods.
pub fn cluster(workload: BenchWorkload, size: Size) -> Cluster {
    let mut cluster = Cluster::default();
    for i in 0..size.nodes {
        cluster.put_node(node(i));
    }
    add_storage(&mut cluster, workload, size);
    let (mut made, mut plain) = (Made::default(), Made::default());
    for i in 0..size.bound {
        let kind = workload.of_bound(i);
        let made = if kind == workload { &mut made } else { &mut plain };
        let mut pod = made.pod(kind, i, Role::Bound);
        pod.node = Some(node_name(node_of(i, size)));
        let pod = cluster.share(Arc::new(pod));
        cluster.put_pod(pod);
    }
    match workload {
        BenchWorkload::AffinityRequired => add_what_keeps_apart(&mut cluster, size),
        BenchWorkload::Devices(demand) => {
            devices::offer(&mut cluster, (0..size.nodes).map(node_name));
            pending(workload, size).iter().for_each(|pod| devices::put_claim(&mut cluster, demand, pod));
        }
        _ => {}
    }
    cluster
}

/// The pending pods of a workload, numbered on after the bound ones.
pub fn pending(workload: BenchWorkload, size: Size) -> Vec<Arc<Pod>> {
    let mut made = Made::default();
    let pods = size.bound..size.bound + size.pods;
    pods.map(|i| Arc::new(made.pod(workload, i, Role::Pending))).collect()
}

/// Building the JSON of pods that are alike once is enough.
#[derive(Default)]
struct Made(std::collections::HashMap<usize, Pod>);

impl Made {
    fn pod(&mut self, workload: BenchWorkload, i: usize, role: Role) -> Pod {
        let Some(template) = workload.template(i) else {
            return workload.pod(i, role);
        };
        let template = self.0.entry(template).or_insert_with(|| workload.pod(i, role));
        let pod = Pod { name: pod_name(i), uid: pod_name(i), ..template.clone() };
        if matches!(workload, BenchWorkload::Devices(_)) { devices::with_claim(pod) } else { pod }
    }
}

/// For each app, a pod in one of the zones that the app's pods must not be in.
fn add_what_keeps_apart(cluster: &mut Cluster, size: Size) {
    for app in 0..APPS.min(size.nodes) {
        let mut pod = BenchWorkload::Basic.pod(size.bound + size.pods + app, Role::Bound);
        let mut spec = (*pod.spec).clone();
        spec.labels = object(&json!({"app": format!("apart-{app}")}));
        pod.spec = Arc::new(spec);
        pod.node = Some(node_name(app));
        cluster.put_pod(Arc::new(pod));
    }
}

/// A claim for each pod, and a volume for those that are bound; and what nodes can attach.
fn add_storage(cluster: &mut Cluster, workload: BenchWorkload, size: Size) {
    if !matches!(workload, BenchWorkload::Volumes | BenchWorkload::NodeVolumeLimits) {
        return;
    }
    cluster.put(Object::StorageClass(object(&json!({
        "metadata": {"name": CLASS}, "provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer",
    }))));
    if workload == BenchWorkload::NodeVolumeLimits {
        for i in 0..size.nodes {
            let driver = json!({"name": DRIVER, "nodeID": "n", "allocatable": {"count": VOLUME_LIMIT}});
            cluster.put(Object::CsiNode(object(&json!({
                "metadata": {"name": &*node_name(i)}, "spec": {"drivers": [driver]},
            }))));
        }
    }
    for i in 0..size.bound + size.pods {
        let is_bound = i < size.bound || !workload.is_delayed(i);
        let zone = if i < size.bound { node_of(i, size) % 3 } else { i % 3 };
        add_claim(cluster, i, is_bound.then(|| format!("zone-{zone}")));
    }
}

/// The claim of a pod, with a volume in a zone or without one.
fn add_claim(cluster: &mut Cluster, i: usize, zone: Option<String>) {
    let (name, volume) = (claim_name(i), format!("volume-{i:07}"));
    let mut claim = json!({
        "metadata": {"name": &*name, "namespace": NAMESPACE, "uid": &*name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
                 "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    });
    if let Some(zone) = zone {
        claim["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
        claim["spec"]["volumeName"] = volume.clone().into();
        claim["status"]["phase"] = "Bound".into();
        let place = json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]});
        cluster.put(Object::PersistentVolume(object(&json!({
            "metadata": {"name": volume, "labels": {ZONE: zone}},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
                     "csi": {"driver": DRIVER, "volumeHandle": volume},
                     "claimRef": {"name": &*name, "namespace": NAMESPACE, "uid": &*name},
                     "nodeAffinity": {"required": {"nodeSelectorTerms": [place]}}},
            "status": {"phase": "Bound"},
        }))));
    }
    cluster.put(Object::PersistentVolumeClaim(object(&claim)));
}

/// What changes in the cluster before the i-th pod is scheduled, besides the pods that are.
pub(super) fn happening(workload: BenchWorkload, size: Size, i: usize) -> Option<Object> {
    match workload {
        BenchWorkload::RefusedChanged => {
            // A pod that runs is about to end: one node is concerned.
            let i = i % size.bound.max(1);
            let mut pod = Made::default().pod(workload, i, Role::Bound);
            pod.node = Some(node_name(node_of(i, size)));
            pod.terminating = true;
            Some(Object::Pod(pod))
        }
        BenchWorkload::Churn if i % 100 == 99 => {
            let labels = json!({"round": i.to_string()});
            Some(Object::Namespace(object(&json!({"metadata": {"name": NAMESPACE, "labels": labels}}))))
        }
        BenchWorkload::Churn if i % 10 == 9 => Some(Object::Node(changed_node(i, size))),
        _ => None,
    }
}

/// A node with another label, a taint that tells the time as an autoscaler's do, or another amount of cpu.
fn changed_node(i: usize, size: Size) -> Node {
    let mut node = written_node(node_of(i, size));
    match i / 10 % 3 {
        0 => node["metadata"]["labels"]["rack"] = format!("rack-{}", i % 40).into(),
        1 => {
            let taint =
                json!({"key": "DeletionCandidate", "value": i.to_string(), "effect": "PreferNoSchedule"});
            node["spec"]["taints"] = json!([taint]);
        }
        _ => node["status"]["allocatable"]["cpu"] = format!("{}", 28 + i / 10 % 4).into(),
    }
    object(&node)
}
