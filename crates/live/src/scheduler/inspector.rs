//! Questions about what the scheduler knows, from other threads: answered between decisions.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use supercargo_engine::{Decision, Engine, Explained, PendingPod, QueuePlace, Refusal, SchedulingQueue};
use supercargo_framework::profile::Profile;
use supercargo_model::{Key, Name, Pod};
use tokio::sync::{mpsc, oneshot};

use super::{Report, Scheduler};

/// A question with the way back for its answer.
pub(super) type Question = Box<dyn FnOnce(&mut Scheduler) + Send>;

/// Asks the scheduler while it runs. Every answer is `None` when it has stopped. Nobody is scheduled while it answers.
#[derive(Clone)]
pub struct Inspector {
    scheduler: mpsc::UnboundedSender<Report>,
    asked: Arc<AtomicU64>,
}

/// A pod that has no node yet: where it waits, since when, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueRecord {
    /// The pod.
    pub pod: Key,
    /// Its uid.
    pub uid: Name,
    /// Its priority.
    pub priority: i32,
    /// Where it waits.
    pub place: QueuePlace,
    /// Since when, by the world's uptime.
    pub since: Duration,
    /// Until when it is kept back, if it is.
    pub until: Option<Duration>,
    /// How many times it was tried.
    pub attempts: u32,
    /// Who refused it.
    pub refused_by: Refusal,
    /// Who gates it.
    pub gated_by: Option<Name>,
    /// The node that room is being made on.
    pub nominated_node: Option<Name>,
    /// How its last attempt failed, if it was tried.
    pub last_failure: Option<LastFailure>,
}

/// What the scheduler knows about one pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodRecord {
    /// Where it stands.
    pub state: PodState,
    /// How it waits, as long as the watch has not shown it on a node.
    pub waiting: Option<QueueRecord>,
    /// How its last attempt failed, if it was tried and has no node yet.
    pub last_failure: Option<LastFailure>,
}

/// Where a pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// It has no node.
    Waiting,
    /// A node was chosen, and its binding is on its way.
    Binding(Name),
    /// It is on a node.
    Bound(Name),
    /// There is no such pod, or it asks for another scheduler and has no node.
    Unknown,
}

/// How an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastFailure {
    /// When, by the world's uptime.
    pub at: Duration,
    /// Why, as the pod's status says it.
    pub message: Arc<str>,
}

/// What would be decided now.
#[derive(Clone, Debug, PartialEq)]
pub enum WhatIf {
    /// This, with the full record.
    Decided(Box<Decision>),
    /// Nothing: no profile has the scheduler name that the pod asks for.
    OtherScheduler,
}

/// Why a pod would go where it would go now.
#[derive(Clone, Debug, PartialEq)]
pub enum PodExplanation {
    /// There is no such pod.
    Unknown,
    /// No profile has the scheduler name that it asks for.
    OtherScheduler,
    /// This.
    Explained {
        /// The decision, and what explains it.
        explained: Box<Explained>,
        /// The node that it is on, or that it is being bound to.
        bound_to: Option<Name>,
    },
}

impl Scheduler {
    fn explain(&mut self, key: &Key, nodes: &[Name]) -> PodExplanation {
        self.tell_time();
        let on_node = self.engine.cluster().pod(key).cloned();
        let Some(pod) = on_node.or_else(|| self.queue.named(key).map(|pending| pending.pod.clone())) else {
            return PodExplanation::Unknown;
        };
        match self.engine.explain_now(&pod, nodes) {
            Some(explained) => {
                PodExplanation::Explained { explained: Box::new(explained), bound_to: pod.node.clone() }
            }
            None => PodExplanation::OtherScheduler,
        }
    }

    fn kept(&self) -> BTreeMap<&'static str, usize> {
        let counts = self.queue.counts();
        BTreeMap::from([
            ("pods on nodes", self.engine.cluster().pods().len()),
            ("nodes", self.engine.cluster().node_count()),
            ("pods that wait", self.queue.pending().count()),
            ("pods in queues", counts.active + counts.backoff + counts.unschedulable + counts.gated),
            ("events for pods in flight", self.queue.in_flight_events().values().sum()),
            ("assumed pods", self.assumed.len()),
            ("pods that wait on Permit", self.waiting.list().len()),
            ("failures", self.last_failures.len()),
            ("nominations", self.engine.nominations().len()),
            ("checks", self.checks.len()),
            ("assumed objects", self.assumed_objects.len()),
            ("statuses", self.reporter.statuses().len()),
            ("pods that extenders are asked about", self.extender_calls.waiting()),
            ("texts of objects", self.originals.len()),
            ("pods that plugins keep something for", self.engine.profiles().iter().map(Profile::kept).sum()),
        ])
    }

    /// The way to ask it while it runs.
    pub fn inspector(&self) -> Inspector {
        Inspector { scheduler: self.report_to.clone(), asked: Arc::default() }
    }

    fn waiting(&self, pending: &PendingPod<'_>) -> QueueRecord {
        let nominated = self.engine.nominations().node_of(&pending.pod.uid);
        QueueRecord {
            pod: pending.pod.key(),
            uid: pending.pod.uid.clone(),
            priority: pending.pod.spec.priority,
            place: pending.place,
            since: pending.since,
            until: pending.until,
            attempts: pending.attempts,
            refused_by: pending.refused_by.clone(),
            gated_by: pending.held_by.cloned(),
            nominated_node: nominated.or(pending.pod.nominated_node.as_ref()).cloned(),
            last_failure: self.last_failures.get(&pending.pod.uid).cloned(),
        }
    }

    fn record_of(&self, key: &Key) -> PodRecord {
        let pending = self.queue.named(key);
        let uid = pending.as_ref().map(|pending| pending.pod.uid.clone());
        let assumed = uid.as_ref().and_then(|uid| self.assumed.get(uid));
        let on_node = self.engine.cluster().pod(key).and_then(|pod| pod.node.clone());
        PodRecord {
            state: match (assumed, on_node, &pending) {
                (Some(assumed), ..) => PodState::Binding(assumed.node.clone()),
                (None, Some(node), _) => PodState::Bound(node),
                (None, None, Some(_)) => PodState::Waiting,
                (None, None, None) => PodState::Unknown,
            },
            waiting: pending.map(|pending| self.waiting(&pending)),
            last_failure: uid.and_then(|uid| self.last_failures.get(&uid).cloned()),
        }
    }
}

impl Inspector {
    /// How many questions were asked through this and its clones.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// What the scheduler's state says. It should be a short look: what takes time is done with the answer.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, &SchedulingQueue) -> T + Send + 'static,
    ) -> Option<T> {
        self.ask_scheduler(move |scheduler| question(&scheduler.engine, &scheduler.queue)).await
    }

    /// All pods that have no node yet, the most important first; among equals, who waits for longest.
    pub async fn queue(&self) -> Option<Vec<QueueRecord>> {
        let waiting = |scheduler: &mut Scheduler| -> Vec<QueueRecord> {
            scheduler.queue.pending().map(|pending| scheduler.waiting(&pending)).collect()
        };
        let mut pods = self.ask_scheduler(waiting).await?;
        pods.sort_by(|one, two| {
            (two.priority, one.since, &one.pod).cmp(&(one.priority, two.since, &two.pod))
        });
        Some(pods)
    }

    /// How many things are kept about pods, by what they are. All of it is over when no pod is left.
    pub async fn kept(&self) -> Option<BTreeMap<&'static str, usize>> {
        self.ask_scheduler(|scheduler| scheduler.kept()).await
    }

    /// What is known about one pod.
    pub async fn pod(&self, key: Key) -> Option<PodRecord> {
        self.ask_scheduler(move |scheduler| scheduler.record_of(&key)).await
    }

    /// What would be decided for a pod now, without placing it. It need not exist. Extenders are not asked.
    pub async fn what_if(&self, pod: Pod) -> Option<WhatIf> {
        let decide = move |scheduler: &mut Scheduler| {
            scheduler.tell_time();
            scheduler.engine.what_if(&pod)
        };
        let decision = self.ask_scheduler(decide).await?;
        Some(decision.map_or(WhatIf::OtherScheduler, |decision| WhatIf::Decided(Box::new(decision))))
    }

    /// What would be decided now for a pod that exists, and why, also with regard to these nodes. One that is on a node is
    /// decided without itself, on a copy of the cluster: that takes a while where there are many pods. Extenders are not
    /// asked.
    pub async fn explain(&self, pod: Key, nodes: Vec<Name>) -> Option<PodExplanation> {
        self.ask_scheduler(move |scheduler| scheduler.explain(&pod, &nodes)).await
    }

    async fn ask_scheduler<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Scheduler) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let question = Box::new(move |scheduler: &mut Scheduler| {
            // Whoever asked may have gone.
            drop(reply.send(question(scheduler)));
        });
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.scheduler.send(Report::Asked(question)).ok()?;
        answer.await.ok()
    }
}
