//! What has changed lately, so that whoever keeps answers knows which of them to update.

use std::{collections::VecDeque, sync::Arc};

use crate::{NodeId, Pod};

/// Whoever is further behind than this starts anew.
const KEPT_CHANGES: usize = 4096;
/// The pods that changes are about are kept along with them: about so much memory at most.
const KEPT_BYTES: usize = 64 * 1024 * 1024;

/// A pod came to a node, or left it.
#[derive(Clone, Debug)]
pub struct PodChange {
    /// The node.
    pub node: NodeId,
    /// The pod.
    pub pod: Arc<Pod>,
    /// It came.
    pub added: bool,
}

impl PodChange {
    /// 1 for a pod that came, −1 for one that left.
    #[inline]
    pub fn sign(&self) -> i64 {
        if self.added { 1 } else { -1 }
    }
}

/// A moment in the history of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// How often everything had been invalidated.
    invalidations: u64,
    /// How many pods had come or left.
    pods: u64,
    /// Which change was the last. A trial that is undone leaves the count of changes as it was: its own moments are told from
    /// later ones by this.
    last: u64,
}

impl Moment {
    /// Whether pods have come or left since another moment.
    #[inline]
    pub fn is_after(self, other: Self) -> bool {
        self.pods > other.pods
    }
}

/// Tells one history from another. A copy of a cluster has a history of its own from then on.
#[derive(Debug, Default)]
pub struct ChangeLogId(Arc<()>);

impl ChangeLogId {
    /// The same history, to compare with later.
    #[must_use]
    pub fn mark(&self) -> Self {
        Self(self.0.clone())
    }

    /// Whether both are the same history.
    #[inline]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Clone for ChangeLogId {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// What a change leaves untrue of what is kept about pods and nodes. It is stated where the change is made.
#[derive(Clone, Debug)]
pub(crate) enum Invalidation {
    /// What is read from a node and from its topology domains: a pod came to it, or left it.
    Pod(PodChange),
    /// Everything.
    Everything,
}

/// A change and its number, which no other has.
#[derive(Clone, Debug)]
struct Logged {
    number: u64,
    change: PodChange,
}

/// The latest changes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    history: ChangeLogId,
    /// How often everything has been invalidated.
    invalidations: u64,
    /// How many pods have come or left.
    pods: u64,
    latest: VecDeque<Logged>,
    /// The number of the change before the latest, and of the last that was ever made.
    before_latest: u64,
    last_given: u64,
    /// What the latest take together, as if nobody shared a spec.
    bytes: usize,
    /// Nothing is forgotten while a trial is open: it may be undone.
    on_trial: bool,
}

/// Where a trial began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    moment: Moment,
    len: usize,
    bytes: usize,
}

impl Changes {
    /// Which history this is: moments of different ones cannot be compared.
    #[inline]
    pub fn history(&self) -> &ChangeLogId {
        &self.history
    }

    /// Now.
    #[inline]
    pub fn now(&self) -> Moment {
        let last = self.number_before(self.latest.len());
        Moment { invalidations: self.invalidations, pods: self.pods, last }
    }

    /// How often everything has been invalidated: what nodes are, for example, stays the same in between.
    #[inline]
    pub fn invalidations(&self) -> u64 {
        self.invalidations
    }

    /// The pods that came or left since a moment; `None` if more than that has changed, or too long ago, or the moment was
    /// undone.
    #[inline]
    pub fn since(&self, moment: Moment) -> Option<impl ExactSizeIterator<Item = &PodChange> + Clone> {
        let missed = usize::try_from(self.pods.checked_sub(moment.pods)?).ok()?;
        let first = self.latest.len().checked_sub(missed)?;
        let known = moment.invalidations == self.invalidations && moment.last == self.number_before(first);
        known.then(|| self.latest.range(first..).map(|logged| &logged.change))
    }

    fn number_before(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(self.before_latest, |index| self.latest[index].number)
    }

    /// Takes note of what a change invalidates.
    pub(crate) fn note(&mut self, invalidation: Invalidation) {
        match invalidation {
            Invalidation::Everything => self.invalidations += 1,
            Invalidation::Pod(change) => {
                self.bytes += change.pod.spec.bytes;
                self.last_given += 1;
                self.make_room();
                self.latest.push_back(Logged { number: self.last_given, change });
                self.pods += 1;
            }
        }
    }

    fn make_room(&mut self) {
        if self.on_trial {
            return;
        }
        while (self.latest.len() >= KEPT_CHANGES || self.bytes > KEPT_BYTES)
            && let Some(oldest) = self.latest.pop_front()
        {
            self.bytes -= oldest.change.pod.spec.bytes;
            self.before_latest = oldest.number;
        }
    }

    /// Begins a trial.
    pub(crate) fn begin_trial(&mut self) -> Mark {
        self.on_trial = true;
        Mark { moment: self.now(), len: self.latest.len(), bytes: self.bytes }
    }

    /// Ends a trial whose changes stay.
    pub(crate) fn commit_trial(&mut self) {
        self.on_trial = false;
        self.make_room();
    }

    /// Ends a trial whose changes were taken back: they never were.
    pub(crate) fn undo_trial(&mut self, mark: Mark) {
        self.on_trial = false;
        self.latest.truncate(mark.len);
        self.bytes = mark.bytes;
        self.pods = mark.moment.pods;
    }
}

impl Mark {
    /// When that was.
    pub(crate) fn moment(self) -> Moment {
        self.moment
    }
}
