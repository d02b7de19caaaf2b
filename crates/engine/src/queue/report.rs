//! What the queue tells about itself: where pods are and why, and counts for metrics.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use supercargo_framework::event::ClusterEvent;
use supercargo_model::{Name, Pod};

use super::{
    Removal,
    entry::{Entry, Refusal, Spot},
};

/// Where a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueuePlace {
    /// It waits for its turn.
    Active,
    /// It was tried in vain, and is kept back for a while.
    Backoff,
    /// It waits for an event that can help it.
    Unschedulable,
    /// A PreEnqueue plugin holds it back.
    Gated,
    /// It is being scheduled or bound.
    InFlight,
}

/// Which queue a pod came into, as metrics tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum QueueName {
    Active,
    Backoff,
    Unschedulable,
}

impl QueueName {
    /// kube-scheduler's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Backoff => "backoff",
            Self::Unschedulable => "unschedulable",
        }
    }
}

/// Why a pod came into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum QueueingCause {
    /// Something happened in the cluster, or to the pod.
    Event(ClusterEvent),
    /// An attempt failed.
    ScheduleAttemptFailure,
    /// It was kept back for long enough.
    BackoffComplete,
    /// Nobody else wanted a turn.
    PopFromBackoffQ,
    /// Somebody asked for it to be tried.
    ForceActivate,
    /// It had waited for too long.
    UnschedulableTimeout,
}

impl QueueingCause {
    /// kube-scheduler's name for it.
    pub fn label(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Event(event) => return Cow::Owned(event.label()),
            Self::ScheduleAttemptFailure => "ScheduleAttemptFailure",
            Self::BackoffComplete => "BackoffComplete",
            Self::PopFromBackoffQ => "PopFromBackoffQ",
            Self::ForceActivate => "ForceActivate",
            Self::UnschedulableTimeout => "UnschedulableTimeout",
        })
    }
}

/// Sees how the queue changes. It must be quick: nobody is scheduled meanwhile.
pub trait QueueObserver: Send + Sync {
    /// A pod came into a queue.
    fn queued(&self, pod: &Pod, queue: QueueName, cause: QueueingCause);

    /// A pod left all of them.
    fn left(&self, pod: &Pod, why: Removal);
}

/// How many pods came into each queue, and why.
pub type Incoming = BTreeMap<(QueueName, QueueingCause), u64>;

/// How many pods are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    /// Waiting for their turn.
    pub active: usize,
    /// Kept back for a while.
    pub backoff: usize,
    /// Waiting for events.
    pub unschedulable: usize,
    /// Held back by PreEnqueue plugins.
    pub gated: usize,
    /// Being scheduled.
    pub in_flight: usize,
    /// Events that are remembered for those.
    pub in_flight_events: usize,
}

/// A pod whose turn has come.
#[derive(Clone, Debug)]
pub struct Popped {
    /// The pod.
    pub pod: Arc<Pod>,
    /// How many times it has been tried, with this one.
    pub attempts: u32,
    /// When it first waited for its turn.
    pub first_queued: Duration,
    /// When it came into the queue the last time.
    pub since: Duration,
    /// No event woke it, it had only waited for too long. If it is bound now, an event was missed.
    pub after_flush: bool,
}

/// A pod that waits, and why.
#[derive(Clone, Debug)]
pub struct PendingPod<'a> {
    /// The pod.
    pub pod: &'a Arc<Pod>,
    /// Where it is.
    pub place: QueuePlace,
    /// Who refused it.
    pub refused_by: &'a Refusal,
    /// Who holds it back.
    pub held_by: Option<&'a Name>,
    /// How many times it was tried.
    pub attempts: u32,
    /// When it came into the queue the last time: since then it is unschedulable, if it is.
    pub since: Duration,
    /// Until when it is kept back.
    pub until: Option<Duration>,
}

impl Entry {
    pub(super) fn place(&self) -> QueuePlace {
        match self.spot {
            Spot::Active => QueuePlace::Active,
            Spot::Backoff(_) | Spot::ErrorBackoff(_) => QueuePlace::Backoff,
            Spot::UnschedulablePods(..) if self.held_by.is_some() => QueuePlace::Gated,
            Spot::UnschedulablePods(..) => QueuePlace::Unschedulable,
            Spot::InFlight | Spot::Leaving => QueuePlace::InFlight,
        }
    }

    pub(super) fn pending(&self) -> PendingPod<'_> {
        PendingPod {
            pod: &self.pod,
            place: self.place(),
            refused_by: &self.refused_by,
            held_by: self.held_by.as_ref(),
            attempts: self.attempts,
            since: self.since,
            until: match self.spot {
                Spot::Backoff(until) | Spot::ErrorBackoff(until) => Some(super::backoff::end(until)),
                _ => None,
            },
        }
    }
}
