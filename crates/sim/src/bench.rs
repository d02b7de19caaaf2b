//! The workloads that speed is measured on: the same work for every scheduler.

mod devices;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};
use supercargo_engine::{Admission, Engine, Queue};
use supercargo_framework::assumed::{AssumedObjects, ReserveCycle};
use supercargo_model::{Cluster, Name, Node, Pod};

pub use devices::Demand;

/// What the pods ask for besides cpu and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchWorkload {
    /// Nothing.
    Basic,
    /// A preferred node affinity.
    NodeAffinity,
    /// Two soft spread constraints.
    Spread,
    /// A preferred affinity and anti-affinity.
    InterPod,
    /// Every pod has a shape of its own, of the four kinds in turn.
    Unique,
    /// Devices, by a claim for each pod.
    Devices(Demand),
}

impl BenchWorkload {
    /// All without devices, in the order of the tables.
    pub const ALL: [Self; 5] = [Self::Basic, Self::NodeAffinity, Self::Spread, Self::InterPod, Self::Unique];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::NodeAffinity => "nodeaffinity",
            Self::Spread => "spread",
            Self::InterPod => "interpod",
            Self::Unique => "unique",
            Self::Devices(Demand::Plain) => "devices",
            Self::Devices(Demand::Constraints) => "devices-constraints",
            Self::Devices(Demand::Alternatives) => "devices-alternatives",
        }
    }

    /// The i-th pod.
    fn pod(self, i: usize) -> Pod {
        let turns = [Self::Basic, Self::NodeAffinity, Self::Spread, Self::InterPod];
        let unique = self == Self::Unique;
        let (kind, app, cpu, memory) = if unique {
            let cpu = format!("{}m", 50 + i % 997);
            (turns[i % turns.len()], format!("web-{i}"), cpu, format!("{}Mi", 64 + i % 1009))
        } else {
            (self, "web".to_owned(), "100m".to_owned(), "500Mi".to_owned())
        };
        let name = format!("pod-{i:07}");
        let mut pod = json!({
            "metadata": {"name": name, "namespace": "default", "uid": name, "labels": {"app": app}},
            "spec": {"containers": [{
                "name": "main", "image": "registry.local/web:1",
                "resources": {"requests": {"cpu": cpu, "memory": memory}},
            }]},
        });
        kind.decorate(&mut pod["spec"], &app);
        serde_json::from_value(pod).expect("a pod")
    }

    fn decorate(self, spec: &mut Value, app: &str) {
        let selector = json!({"matchLabels": {"app": app}});
        let term = |key: &str, weight: i32| json!([{"weight": weight, "podAffinityTerm": {"labelSelector": selector, "topologyKey": key}}]);
        const HOST: &str = "kubernetes.io/hostname";
        const ZONE: &str = "topology.kubernetes.io/zone";
        const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
        match self {
            Self::Basic | Self::Unique => {}
            Self::Devices(_) => devices::decorate(spec),
            Self::NodeAffinity => {
                let disk =
                    json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]});
                spec["affinity"] = json!({"nodeAffinity": {PREFERRED: [{"weight": 10, "preference": disk}]}});
            }
            Self::Spread => {
                let soft = |key: &str, skew: i32| {
                    json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway",
                           "labelSelector": selector})
                };
                spec["topologySpreadConstraints"] = json!([soft(ZONE, 1), soft(HOST, 5)]);
            }
            Self::InterPod => {
                spec["affinity"] = json!({
                    "podAntiAffinity": {PREFERRED: term(HOST, 100)},
                    "podAffinity": {PREFERRED: term(ZONE, 50)},
                });
            }
        }
    }
}

/// How large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Nodes.
    pub nodes: usize,
    /// Pods that are bound before.
    pub bound: usize,
    /// Pods to schedule.
    pub pods: usize,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchResult {
    /// The workload.
    pub kind: &'static str,
    /// Nodes.
    pub nodes: usize,
    /// Pods that were bound before.
    pub bound: usize,
    /// Pods that were scheduled.
    pub pods: usize,
    /// Pods a second, from queue to assumed.
    pub pods_per_second: f64,
    /// Half of the cycles took no longer.
    pub p50_us: f64,
    /// 99 of 100 cycles took no longer.
    pub p99_us: f64,
    /// 999 of 1,000 cycles took no longer.
    pub p999_us: f64,
    /// How many pods found a node.
    pub placed: usize,
}

/// The cluster of a workload, with its bound pods.
pub fn cluster(workload: BenchWorkload, size: Size) -> Cluster {
    let mut cluster = Cluster::default();
    for i in 0..size.nodes {
        cluster.put_node(node(i));
    }
    // Who is bound before has no devices: all of them are free.
    let of_bound = match workload {
        BenchWorkload::Devices(demand) => {
            devices::offer(&mut cluster, (0..size.nodes).map(node_name));
            pending(workload, size).iter().for_each(|pod| devices::put_claim(&mut cluster, demand, pod));
            BenchWorkload::Basic
        }
        other => other,
    };
    let mut template: Option<Arc<Pod>> = None;
    for i in 0..size.bound {
        let mut pod = match &template {
            // Building the JSON of pods that are alike once is enough.
            Some(template) if workload != BenchWorkload::Unique => renamed(template, i),
            _ => of_bound.pod(i),
        };
        pod.node = Some(node_name(i.wrapping_mul(7919) % size.nodes.max(1)));
        let pod = cluster.share(Arc::new(pod));
        template.get_or_insert_with(|| pod.clone());
        cluster.put_pod(pod);
    }
    cluster
}

fn renamed(template: &Pod, i: usize) -> Pod {
    let name: Name = format!("pod-{i:07}").into();
    Pod { name: name.clone(), uid: name, ..template.clone() }
}

fn node_name(i: usize) -> Name {
    format!("node-{i:05}").into()
}

fn node(i: usize) -> Node {
    let name = node_name(i);
    let disk = if i.is_multiple_of(2) { "ssd" } else { "hdd" };
    let node = json!({
        "metadata": {"name": &*name, "labels": {
            "kubernetes.io/hostname": &*name,
            "topology.kubernetes.io/zone": format!("zone-{}", i % 3),
            "disk": disk,
        }},
        "status": {"allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"}},
    });
    serde_json::from_value(node).expect("a node")
}

/// The pending pods of a workload, numbered on after the bound ones.
pub fn pending(workload: BenchWorkload, size: Size) -> Vec<Arc<Pod>> {
    let mut template: Option<Arc<Pod>> = None;
    let one = |i: usize| match (&template, workload) {
        (Some(template), BenchWorkload::Devices(_)) => Arc::new(devices::with_claim(renamed(template, i))),
        (Some(template), workload) if workload != BenchWorkload::Unique => Arc::new(renamed(template, i)),
        _ => {
            let pod = workload.pod(i);
            let has_claim = matches!(workload, BenchWorkload::Devices(_));
            let pod = Arc::new(if has_claim { devices::with_claim(pod) } else { pod });
            template.get_or_insert_with(|| pod.clone());
            pod
        }
    };
    (size.bound..size.bound + size.pods).map(one).collect()
}

/// Schedules all pods through the queue, each seeing the ones before it, and measures every cycle.
pub fn run(
    workload: BenchWorkload,
    size: Size,
    engine: &mut Engine,
    pods: Vec<Arc<Pod>>,
    fast: bool,
    mut progress: impl FnMut(usize),
) -> BenchResult {
    let mut queue = Queue::default();
    let mut taken = Vec::with_capacity(pods.len());
    let mut placed = 0;
    for pod in pods {
        let pod = engine.admit(pod);
        let Some(profile) = engine.profile(&pod.spec.scheduler_name) else {
            continue;
        };
        let Admission::Queued = queue.push(engine.cluster(), profile, pod) else {
            continue;
        };
    }
    // What was chosen for one pod is nobody else's: keeping it is a part of the decision.
    let reserves = matches!(workload, BenchWorkload::Devices(_));
    let mut assumed = AssumedObjects::default();
    let start = Instant::now();
    let mut before = start;
    while let Some(pod) = queue.pop() {
        let node = if fast {
            engine.place(&pod).and_then(|placement| placement.node().cloned())
        } else {
            engine.decide(&pod).and_then(|decision| decision.node().cloned())
        };
        if let Some(node) = node {
            engine.assume(&pod, node.clone());
            let is_kept = !reserves || reserve(engine, &mut assumed, &pod, &node);
            placed += usize::from(is_kept);
        }
        let now = Instant::now();
        taken.push(now - before);
        before = now;
        if taken.len().is_multiple_of(1024) {
            progress(taken.len());
        }
    }
    let total = start.elapsed();
    taken.sort_unstable();
    let micros = |time: Duration| time.as_secs_f64() * 1e6;
    let percentile = |share: f64| {
        let place = (taken.len() as f64 * share) as usize;
        taken.get(place.min(taken.len().saturating_sub(1))).map_or(0.0, |time| micros(*time))
    };
    BenchResult {
        kind: workload.name(),
        nodes: size.nodes,
        bound: size.bound,
        pods: taken.len(),
        pods_per_second: taken.len() as f64 / total.as_secs_f64().max(1e-9),
        p50_us: percentile(0.5),
        p99_us: percentile(0.99),
        p999_us: percentile(0.999),
        placed,
    }
}

/// Keeps for a pod what was chosen for it on its node; whether that went well.
fn reserve(engine: &mut Engine, assumed: &mut AssumedObjects, pod: &Arc<Pod>, node: &Name) -> bool {
    let Some(profile) = engine.profiles().shared(&pod.spec.scheduler_name) else { return false };
    let mut cycle = ReserveCycle::new(engine.cluster_mut(), assumed, pod.uid.clone());
    profile.profile.reserve(&mut cycle, pod, node).is_ok()
}
