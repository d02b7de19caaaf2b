//! Schedules pending pods one after another, in queue order, each seeing the ones before it.

use std::{collections::VecDeque, sync::Arc};

use supercargo_engine::{
    Admission, Decision, Engine, Outcome, Queue,
    extender_calls::{self, ExtenderAnswer, ExtenderCall},
};
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
        input.pending.sort_by_key(|pod| (pod.created.is_none(), pod.created));
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

/// Pods on their way through an engine, one after another.
pub struct Schedule<'e> {
    engine: &'e mut Engine,
    queue: Queue,
    held: VecDeque<(Arc<Pod>, Decision)>,
    other_schedulers: usize,
}

impl<'e> Schedule<'e> {
    /// Queues pods. Those that ask for other schedulers are left alone.
    pub fn new(engine: &'e mut Engine, pods: impl IntoIterator<Item = Arc<Pod>>) -> Self {
        let mut schedule =
            Self { engine, queue: Queue::default(), held: VecDeque::new(), other_schedulers: 0 };
        for pod in pods {
            schedule.enqueue(pod);
        }
        schedule
    }

    fn enqueue(&mut self, pod: Arc<Pod>) {
        let Some(profile) = self.engine.profile(&pod.spec.scheduler_name) else {
            self.other_schedulers += 1;
            return;
        };
        match self.queue.push(self.engine.cluster(), profile, pod.clone()) {
            Admission::Queued => {
                if let Some(node) = &pod.nominated_node {
                    self.engine.nominations_mut().nominate(pod.clone(), node.clone());
                }
            }
            Admission::Held(_) => {
                let decision = self.engine.held(&pod);
                self.held.extend(decision.map(|decision| (pod, decision)));
            }
        }
    }

    /// Decides the next pod; those that are held back come first. Nothing is placed yet: see [`Self::place`].
    pub fn decide_next(&mut self) -> Option<(Arc<Pod>, Decision)> {
        self.decide_with(|engine, pod| engine.decide(pod))
    }

    /// The same, with the say of the engine's extenders; whoever calls gets their answers.
    pub fn decide_next_asking(
        &mut self,
        mut ask: impl FnMut(&Pod, &ExtenderCall) -> ExtenderAnswer,
    ) -> Option<(Arc<Pod>, Decision)> {
        self.decide_with(|engine, pod| extender_calls::decide_calling(engine, pod, &mut ask))
    }

    fn decide_with(
        &mut self,
        mut decide: impl FnMut(&mut Engine, &Pod) -> Option<Decision>,
    ) -> Option<(Arc<Pod>, Decision)> {
        if let Some(held) = self.held.pop_front() {
            return Some(held);
        }
        loop {
            let pod = self.queue.pop()?;
            if let Some(decision) = decide(self.engine, &pod) {
                return Some((pod, decision));
            }
        }
    }

    /// Does what was decided, so that the next pod sees it.
    ///
    /// Room that can be made for a pod is kept for it, but nobody is evicted: the victims still run when the next pod comes.
    pub fn place(&mut self, pod: &Arc<Pod>, decision: &Decision) {
        if let Some(node) = decision.node() {
            self.engine.assume(pod, node.clone());
        } else if let Some(Ok(nomination)) = &decision.preemption {
            self.engine.nominations_mut().nominate(pod.clone(), nomination.node.clone());
        }
    }

    /// How many pods ask for other schedulers.
    pub fn other_schedulers(&self) -> usize {
        self.other_schedulers
    }
}

/// Schedules all pods. Each decision is shown as it is made, with the pod; pods that are held back come first.
pub fn run(
    engine: &mut Engine,
    pods: impl IntoIterator<Item = Arc<Pod>>,
    mut show: impl FnMut(&Arc<Pod>, &Decision),
) -> Summary {
    let mut schedule = Schedule::new(engine, pods);
    let mut summary = Summary { other_schedulers: schedule.other_schedulers(), ..Summary::default() };
    while let Some((pod, decision)) = schedule.decide_next() {
        schedule.place(&pod, &decision);
        summary.count(&decision.outcome);
        show(&pod, &decision);
    }
    summary
}
