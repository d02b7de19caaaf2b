//! The workloads that speed is measured on: the same work for every scheduler.

mod course;
mod devices;
mod objects;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use supercargo_engine::{Admission, Engine, Queue};
use supercargo_framework::assumed::AssumedObjects;
use supercargo_model::{Pod, object::Object};

pub use devices::Demand;
pub use objects::{cluster, pending};

/// How many pods preempt, at most: each takes its victims from a node of its own.
const MAX_PREEMPTORS: usize = 1_000;

/// What the pods ask for besides cpu and memory, and what happens around them.
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
    /// They fit nowhere, and nothing changes.
    Refused,
    /// They fit nowhere, and before each of them something changes on one node.
    RefusedChanged,
    /// They are important, and the cluster is full.
    Preempt,
    /// 200 templates of the four kinds in turn, while nodes and namespaces change.
    Churn,
    /// A claim each, bound to a volume of some zone or to be bound with the pod.
    Volumes,
    /// A claim each, and nodes that can attach so many volumes.
    NodeVolumeLimits,
    /// A required anti-affinity by host and by zone.
    AffinityRequired,
    /// Two hard spread constraints.
    SpreadHard,
    /// An extender is asked about each of them.
    Extender,
    /// Devices, by a claim for each pod.
    Devices(Demand),
}

impl BenchWorkload {
    /// All, in the order of the tables.
    pub const ALL: [Self; 17] = [
        Self::Basic,
        Self::NodeAffinity,
        Self::Spread,
        Self::InterPod,
        Self::Unique,
        Self::Refused,
        Self::RefusedChanged,
        Self::Preempt,
        Self::Churn,
        Self::Volumes,
        Self::NodeVolumeLimits,
        Self::AffinityRequired,
        Self::SpreadHard,
        Self::Extender,
        Self::Devices(Demand::Plain),
        Self::Devices(Demand::Constraints),
        Self::Devices(Demand::Alternatives),
    ];

    /// Those that are measured with a share of the nodes, too.
    pub const SAMPLED: [Self; 5] =
        [Self::Basic, Self::NodeAffinity, Self::Spread, Self::InterPod, Self::Unique];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::NodeAffinity => "nodeaffinity",
            Self::Spread => "spread",
            Self::InterPod => "interpod",
            Self::Unique => "unique",
            Self::Refused => "refused",
            Self::RefusedChanged => "refused-changed",
            Self::Preempt => "preempt",
            Self::Churn => "churn",
            Self::Volumes => "volumes",
            Self::NodeVolumeLimits => "nodevolumelimits",
            Self::AffinityRequired => "affinity-required",
            Self::SpreadHard => "spread-hard",
            Self::Extender => "extender",
            Self::Devices(Demand::Plain) => "devices",
            Self::Devices(Demand::Constraints) => "devices-constraints",
            Self::Devices(Demand::Alternatives) => "devices-alternatives",
        }
    }

    /// Whether the same work can be done by asking every plugin about every node.
    pub fn has_from_scratch_mode(self) -> bool {
        self != Self::Extender
    }

    /// The size at which it makes sense.
    pub fn fit(self, size: Size) -> Size {
        match self {
            Self::Preempt => Size { pods: size.pods.min(MAX_PREEMPTORS).min(size.nodes), ..size },
            _ => size,
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

/// How pods are scheduled.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// On the fast path; otherwise every plugin is asked about every node.
    pub fast: bool,
    /// No further pod is begun after so long.
    pub longest: Duration,
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
    /// How many pods found what they were to find: a node; where nothing fits, that it is so; or victims.
    pub placed: usize,
}

/// Schedules pods through the queue, each seeing the ones before it, and measures every cycle: all of them, or as many as
/// there is time for.
pub fn run(
    workload: BenchWorkload,
    size: Size,
    engine: &mut Engine,
    pods: Vec<Arc<Pod>>,
    Pace { fast, longest }: Pace,
    mut progress: impl FnMut(usize),
) -> BenchResult {
    let mut queue = queued(engine, pods);
    if workload == BenchWorkload::Extender {
        engine.set_extenders(vec![course::extender()]);
    }
    let mut happenings: Vec<Option<Object>> =
        (0..size.pods).map(|i| objects::happening(workload, size, i)).collect();
    let mut assumed = AssumedObjects::default();
    let mut taken = Vec::with_capacity(size.pods);
    let mut placed = 0;
    let began = Instant::now();
    let mut before = began;
    while before - began < longest
        && let Some(pod) = queue.pop()
    {
        if let Some(object) = happenings.get_mut(taken.len()).and_then(Option::take) {
            engine.cluster_mut().put(object);
        }
        let came = course::schedule(workload, engine, &mut assumed, &pod, fast);
        placed += usize::from(came.well);
        let now = Instant::now();
        taken.push((now - before).saturating_sub(came.outside));
        before = now;
        if taken.len().is_multiple_of(1024) {
            progress(taken.len());
        }
    }
    summary(workload, size, taken, placed)
}

fn queued(engine: &mut Engine, pods: Vec<Arc<Pod>>) -> Queue {
    let mut queue = Queue::default();
    for pod in pods {
        let pod = engine.admit(pod);
        let Some(profile) = engine.profile(&pod.spec.scheduler_name) else {
            continue;
        };
        let Admission::Queued = queue.push(engine.cluster(), profile, pod) else {
            continue;
        };
    }
    queue
}

fn summary(workload: BenchWorkload, size: Size, mut taken: Vec<Duration>, placed: usize) -> BenchResult {
    let total: Duration = taken.iter().sum();
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
