//! What the scheduler decides and how its queue changes, for whoever wants to follow it while it runs.
//!
//! What is kept for those who follow is bounded by count and by bytes: whoever is too slow loses the oldest, and is told how
//! many. While nobody follows, a record costs one look at a number.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use supercargo_engine::{Decision, QueueName, QueueObserver, QueueingCause, Removal};
use supercargo_model::{Key, Name, Pod};
use tokio::sync::Notify;

use crate::world::SharedWorld;

/// Sees every decision in full. While there is one, all pods are decided on the full path.
pub trait DecisionObserver: Send + Sync {
    /// A pod was decided about, in this attempt. Short: nobody is scheduled meanwhile.
    fn decided(&self, attempt: u32, decision: &Decision);
}

/// How much is kept for those who follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLimits {
    /// Records.
    pub count: usize,
    /// Their size in memory, about.
    pub bytes: usize,
}

impl Default for RecordLimits {
    fn default() -> Self {
        Self { count: 10_000, bytes: 8 << 20 }
    }
}

/// Something that the scheduler did.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When, from the world's start on.
    pub at: Duration,
    /// The pod that it is about.
    pub pod: Key,
    /// Its uid.
    pub uid: Name,
    /// What it did.
    pub what: RecordKind,
}

/// What the scheduler did with a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordKind {
    /// An attempt ended with a node. The pod is not bound yet.
    Decided {
        /// The number of the attempt.
        attempt: u32,
        /// The node.
        node: Name,
        /// How many nodes were feasible.
        feasible: usize,
        /// The node's total, the highest.
        total: Option<i64>,
        /// How many nodes share it.
        ties: usize,
    },
    /// An attempt ended without a node, or what was decided could not be done.
    Failed {
        /// Why, as the pod's status says it.
        message: String,
        /// The node that room is being made on.
        nominated_node: Option<Name>,
    },
    /// It came into a queue.
    Queued {
        /// Which one.
        queue: QueueName,
        /// Why.
        cause: QueueingCause,
    },
    /// It is not waiting any more: the watch shows it on a node, or it is gone.
    Left {
        /// Why.
        why: Removal,
    },
}

impl Record {
    /// Its size in memory, about.
    pub fn bytes(&self) -> usize {
        let texts = match &self.what {
            RecordKind::Decided { node, .. } => node.len(),
            RecordKind::Failed { message, nominated_node } => {
                message.len() + nominated_node.as_ref().map_or(0, |node| node.len())
            }
            RecordKind::Queued { .. } | RecordKind::Left { .. } => 0,
        };
        size_of::<Self>() + self.pod.namespace.len() + self.pod.name.len() + self.uid.len() + texts
    }
}

#[derive(Default)]
struct Shared {
    /// Those who follow everything.
    followers: AtomicUsize,
    /// Those who follow decisions alone.
    decision_followers: AtomicUsize,
    closed: AtomicBool,
    kept: Mutex<Kept>,
    news: Notify,
}

#[derive(Default)]
struct Kept {
    limits: RecordLimits,
    records: VecDeque<Arc<Record>>,
    bytes: usize,
    /// The number of the first that is kept.
    first: u64,
}

impl Kept {
    fn push(&mut self, record: Record) {
        self.bytes += record.bytes();
        self.records.push_back(Arc::new(record));
        while self.records.len() > self.limits.count || self.bytes > self.limits.bytes {
            let Some(oldest) = self.records.pop_front() else { break };
            self.bytes -= oldest.bytes();
            self.first += 1;
        }
    }

    fn end(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    fn clear(&mut self) {
        self.first = self.end();
        self.records = VecDeque::new();
        self.bytes = 0;
    }
}

impl Shared {
    fn count(&self, decisions_only: bool) -> &AtomicUsize {
        if decisions_only { &self.decision_followers } else { &self.followers }
    }

    /// Whether anybody follows, also if it is for decisions alone.
    fn is_followed(&self, for_decisions: bool) -> bool {
        self.followers.load(Ordering::Relaxed) > 0
            || (for_decisions && self.decision_followers.load(Ordering::Relaxed) > 0)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The way to follow what a scheduler does.
#[derive(Clone)]
pub struct Records(Arc<Shared>);

impl Records {
    /// Everything from here on.
    pub fn follow(&self) -> Follower {
        self.follow_as(false)
    }

    /// Decisions from here on; for them alone, changes of the queue are not recorded.
    pub fn follow_decisions(&self) -> Follower {
        self.follow_as(true)
    }

    fn follow_as(&self, decisions_only: bool) -> Follower {
        let next = self.0.kept().end();
        self.0.count(decisions_only).fetch_add(1, Ordering::Relaxed);
        Follower { shared: self.0.clone(), next, decisions_only }
    }

    /// Keeps no more than this for those who follow.
    pub fn limit(&self, limits: RecordLimits) {
        self.0.kept().limits = limits;
    }
}

/// A record, and how many before it were lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// How many were lost since the one before, because they were not taken in time.
    pub lost: u64,
    /// The record.
    pub record: Arc<Record>,
}

/// Somebody who follows.
pub struct Follower {
    shared: Arc<Shared>,
    next: u64,
    /// Others may follow everything, so that there may be more.
    decisions_only: bool,
}

impl Follower {
    /// The next record; `None` when the scheduler has stopped and all were taken.
    pub async fn next(&mut self) -> Option<Delivery> {
        loop {
            let shared = self.shared.clone();
            let mut news = pin!(shared.news.notified());
            news.as_mut().enable();
            if let Some(delivery) = self.try_next() {
                return Some(delivery);
            }
            if shared.closed.load(Ordering::Acquire) {
                return self.try_next();
            }
            news.await;
        }
    }

    /// The next record, if it is there already.
    pub fn try_next(&mut self) -> Option<Delivery> {
        let kept = self.shared.kept();
        let at = self.next.max(kept.first);
        let record = kept.records.get(usize::try_from(at - kept.first).ok()?)?.clone();
        let lost = at - self.next;
        drop(kept);
        self.next = at + 1;
        Some(Delivery { lost, record })
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.shared.count(self.decisions_only).fetch_sub(1, Ordering::Relaxed);
        if !self.shared.is_followed(true) {
            self.shared.kept().clear();
        }
    }
}

/// The scheduler's end.
pub(super) struct Recorder {
    shared: Arc<Shared>,
    world: SharedWorld,
}

impl Recorder {
    pub(super) fn new(world: &SharedWorld) -> Self {
        Self { shared: Arc::default(), world: world.clone() }
    }

    pub(super) fn records(&self) -> Records {
        Records(self.shared.clone())
    }

    /// Sees how the queue changes.
    pub(super) fn of_queue(&self) -> Arc<dyn QueueObserver> {
        Arc::new(OfQueue { shared: self.shared.clone(), world: self.world.clone() })
    }

    /// Keeps what was decided about a pod, if anybody follows.
    pub(super) fn keep(&self, pod: &Pod, what: impl FnOnce() -> RecordKind) {
        if self.shared.is_followed(true) {
            keep(&self.shared, &self.world, pod, what());
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.news.notify_waiters();
    }
}

fn keep(shared: &Shared, world: &SharedWorld, pod: &Pod, what: RecordKind) {
    let record = Record { at: world.uptime(), pod: pod.key(), uid: pod.uid.clone(), what };
    shared.kept().push(record);
    shared.news.notify_waiters();
}

struct OfQueue {
    shared: Arc<Shared>,
    world: SharedWorld,
}

impl QueueObserver for OfQueue {
    fn queued(&self, pod: &Pod, queue: QueueName, cause: QueueingCause) {
        if self.shared.is_followed(false) {
            keep(&self.shared, &self.world, pod, RecordKind::Queued { queue, cause });
        }
    }

    fn left(&self, pod: &Pod, why: Removal) {
        if self.shared.is_followed(false) {
            keep(&self.shared, &self.world, pod, RecordKind::Left { why });
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use supercargo_model::testing::pod;

    use super::*;

    fn shared(limits: RecordLimits) -> (Arc<Shared>, Records) {
        let records = Records(Arc::default());
        records.limit(limits);
        (records.0.clone(), records)
    }

    fn left(name: &str) -> Record {
        let pod = pod(name).pod();
        let what = RecordKind::Left { why: Removal::Deleted };
        Record { at: Duration::ZERO, pod: pod.key(), uid: pod.uid.clone(), what }
    }

    fn names(follower: &mut Follower) -> Vec<(u64, String)> {
        let deliveries = std::iter::from_fn(|| follower.try_next());
        deliveries.map(|delivery| (delivery.lost, delivery.record.pod.name.to_string())).collect()
    }

    #[test]
    fn whoever_is_slow_loses_the_oldest_and_is_told_how_many() {
        let (shared, records) = shared(RecordLimits { count: 2, bytes: usize::MAX });
        let (mut slow, mut quick) = (records.follow(), records.follow());
        for name in ["a", "b", "c", "d"] {
            shared.kept().push(left(name));
            assert_eq!(names(&mut quick), [(0, name.to_owned())]);
        }
        assert_eq!(names(&mut slow), [(2, "c".to_owned()), (0, "d".to_owned())]);
        assert_eq!(names(&mut records.follow()), []);
    }

    #[test]
    fn bytes_bound_what_is_kept_too() {
        let one = left("a").bytes();
        let (shared, records) = shared(RecordLimits { count: 100, bytes: 2 * one });
        let mut follower = records.follow();
        ["a", "b", "c"].into_iter().for_each(|name| shared.kept().push(left(name)));
        assert_eq!(names(&mut follower), [(1, "b".to_owned()), (0, "c".to_owned())]);
        assert_eq!(shared.kept().bytes, 2 * one);
        drop(follower);
        let kept = shared.kept();
        assert_eq!((kept.bytes, kept.records.len()), (0, 0), "nobody follows any more");
    }

    #[test]
    fn a_follower_waits_for_news_and_ends_with_the_scheduler() {
        let (shared, records) = shared(RecordLimits::default());
        let mut follower = records.follow();
        assert!(follower.next().now_or_never().is_none());
        shared.kept().push(left("a"));
        shared.closed.store(true, Ordering::Release);
        assert!(follower.next().now_or_never().flatten().is_some());
        assert!(follower.next().now_or_never().expect("it has stopped").is_none());
    }
}
