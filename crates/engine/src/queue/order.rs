//! The pods whose turn it is, in the order of the profile.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use supercargo_framework::{
    handle::NoPendingPods,
    points::{QueueSort, QueuedPod},
    preemption::Rejection,
    profile::Profile,
    queueing::QueueView,
};
use supercargo_model::{Cluster, Pod};

/// A pod's place in the order. All profiles order alike; each pod brings along by what.
#[derive(Clone)]
pub(super) struct QueueTurn {
    pub(super) queued: QueuedPod,
    pub(super) sort: Arc<dyn QueueSort>,
}

impl Ord for QueueTurn {
    /// Who came first goes first where the profile does not mind.
    fn cmp(&self, other: &Self) -> Ordering {
        let (one, two) = (&self.queued, &other.queued);
        if self.sort.before(one, two) {
            Ordering::Less
        } else if self.sort.before(two, one) {
            Ordering::Greater
        } else {
            one.arrival.cmp(&two.arrival)
        }
    }
}

impl PartialOrd for QueueTurn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for QueueTurn {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for QueueTurn {}

/// Whether a pod was let into the queue.
pub enum Admission {
    /// It waits for its turn.
    Queued,
    /// A PreEnqueue plugin holds it back.
    Held(Rejection),
}

/// Pods in the order in which they are to be scheduled.
#[derive(Default)]
pub struct Queue {
    turns: BTreeSet<QueueTurn>,
    arrivals: u64,
}

impl Queue {
    /// Lets a pod in, unless a PreEnqueue plugin holds it back.
    pub fn push(&mut self, cluster: &Cluster, profile: &Profile, pod: Arc<Pod>) -> Admission {
        if let Err(rejection) = profile.pre_enqueue(&QueueView { cluster, pending: &NoPendingPods }, &pod) {
            return Admission::Held(rejection);
        }
        let queued = QueuedPod { pod, arrival: self.arrivals };
        self.arrivals += 1;
        self.insert(QueueTurn { queued, sort: profile.queue_rules().sort().clone() });
        Admission::Queued
    }

    /// The next pod.
    pub fn pop(&mut self) -> Option<Arc<Pod>> {
        self.pop_turn().map(|turn| turn.queued.pod)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub(super) fn pop_turn(&mut self) -> Option<QueueTurn> {
        self.turns.pop_first()
    }

    pub(super) fn insert(&mut self, turn: QueueTurn) {
        self.turns.insert(turn);
    }

    pub(super) fn remove(&mut self, turn: &QueueTurn) {
        self.turns.remove(turn);
    }
}
