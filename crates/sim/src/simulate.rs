//! Schedules the pending pods of a cluster that was read from files, until nothing more can happen.

use std::sync::Arc;

use supercargo_engine::{Engine, Outcome, QueueSettings};
use supercargo_model::{Cluster, Pod, object::Object};
use supercargo_scheduler::offline::{Attempt, OfflineScheduler};

/// What was read, in its two parts.
#[derive(Clone, Default)]
pub struct Input {
    /// The cluster with everything that is bound.
    pub cluster: Cluster,
    /// The pods that wait for a node, in the order of their making; those that were not made yet come last, as written.
    pub pending: Vec<Arc<Pod>>,
}

impl Input {
    /// Sorts objects into the cluster and the pending pods. Pods that have ended belong to neither.
    pub fn new(objects: impl IntoIterator<Item = Object>) -> Self {
        let mut input = Self::default();
        for object in objects {
            match object {
                Object::Pod(pod) if pod.node.is_none() => {
                    if !pod.finished && !pod.terminating {
                        input.pending.push(Arc::new(pod));
                    }
                }
                other => input.cluster.put(other),
            }
        }
        input.pending.sort_by_key(|pod| (pod.created.is_none(), pod.created));
        input
    }
}

/// Counts of what came of the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationSummary {
    /// Pods that got a node.
    pub scheduled: usize,
    /// Pods that no node is left for.
    pub unschedulable: usize,
    /// Pods that are held back.
    pub gated: usize,
    /// Pods whose cycle failed.
    pub errors: usize,
}

impl SimulationSummary {
    /// Counts one more pod.
    pub fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Scheduled { .. } => self.scheduled += 1,
            Outcome::Unschedulable => self.unschedulable += 1,
            Outcome::Gated => self.gated += 1,
            Outcome::Error { .. } => self.errors += 1,
        }
    }
}

/// Schedules all pods, each attempt on the fast path where that is possible. Each is shown as it is made.
pub fn run(
    engine: Engine,
    settings: QueueSettings,
    pods: impl IntoIterator<Item = Arc<Pod>>,
    mut show: impl FnMut(&Attempt),
) -> OfflineScheduler {
    let mut scheduler = OfflineScheduler::new(engine, settings, pods);
    while let Some(attempt) = scheduler.next_attempt(|engine, pod, _| engine.place(pod)) {
        show(&attempt);
    }
    scheduler
}
