//! Schedules pending pods one after another, in queue order, each seeing the ones before it.

use std::sync::Arc;

use supercargo_engine::{Admission, Decision, Engine, Outcome, Queue};
use supercargo_model::{Cluster, Pod, object::Object};

/// What was read, in its two parts.
#[derive(Default)]
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
        input
            .pending
            .sort_by_key(|pod| (pod.created.is_none(), pod.created));
        input
    }
}

/// Counts of what came of the pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Pods that got a node.
    pub scheduled: usize,
    /// Pods that no node is left for.
    pub unschedulable: usize,
    /// Pods that are held back.
    pub gated: usize,
    /// Pods whose cycle failed.
    pub errors: usize,
    /// Pods of other schedulers, which are left alone.
    pub other_schedulers: usize,
}

impl Summary {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Scheduled { .. } => self.scheduled += 1,
            Outcome::Unschedulable => self.unschedulable += 1,
            Outcome::Gated => self.gated += 1,
            Outcome::Error { .. } => self.errors += 1,
        }
    }
}

/// Schedules all pods. Each decision is shown as it is made, with the pod; pods that are held back come first.
///
/// Room that can be made for a pod is kept for it, but nobody is evicted: the victims still run when the next pod comes.
pub fn run(
    engine: &mut Engine,
    pods: impl IntoIterator<Item = Arc<Pod>>,
    mut show: impl FnMut(&Arc<Pod>, &Decision),
) -> Summary {
    let mut summary = Summary::default();
    let mut queue = Queue::default();
    for pod in pods {
        let Some(profile) = engine.profile(&pod.spec.scheduler_name) else {
            summary.other_schedulers += 1;
            continue;
        };
        match queue.push(profile, pod.clone()) {
            Admission::Queued => {
                if let Some(node) = &pod.nominated_node {
                    engine.nominate(pod.clone(), node.clone());
                }
            }
            Admission::Held(_) => {
                if let Some(decision) = engine.held(&pod) {
                    summary.count(&decision.outcome);
                    show(&pod, &decision);
                }
            }
        }
    }
    while let Some(pod) = queue.pop() {
        let Some(decision) = engine.decide(&pod) else {
            continue;
        };
        if let Some(node) = decision.node() {
            engine.assume(&pod, node.clone());
        } else if let Some(Ok(nomination)) = &decision.preemption {
            engine.nominate(pod.clone(), nomination.node.clone());
        }
        summary.count(&decision.outcome);
        show(&pod, &decision);
    }
    summary
}
