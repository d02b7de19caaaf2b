//! What has changed lately, so that whoever keeps answers knows which of them to mend.

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
    pub fn sign(&self) -> i64 {
        if self.added { 1 } else { -1 }
    }
}

/// A moment in the history of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    facts: u64,
    pods: u64,
}

/// Tells one history from another. A copy of a cluster has a history of its own from then on.
#[derive(Debug, Default)]
pub struct History(Arc<()>);

impl History {
    /// The same history, to compare with later.
    #[must_use]
    pub fn mark(&self) -> Self {
        Self(self.0.clone())
    }

    /// Whether both are the same history.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Clone for History {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// The latest changes.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    history: History,
    /// How often something other than a pod's place has changed.
    facts: u64,
    /// How many pods have come or left.
    pods: u64,
    latest: VecDeque<PodChange>,
    /// What the latest take together, as if nobody shared a spec.
    bytes: usize,
}

impl Changes {
    /// Which history this is: moments of different ones cannot be compared.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Now.
    pub fn now(&self) -> Moment {
        Moment { facts: self.facts, pods: self.pods }
    }

    /// The pods that came or left since a moment; `None` if more than that has changed, or too long ago.
    pub fn since(&self, moment: Moment) -> Option<impl ExactSizeIterator<Item = &PodChange> + Clone> {
        let missed = usize::try_from(self.pods.checked_sub(moment.pods)?).ok()?;
        let known = moment.facts == self.facts && missed <= self.latest.len();
        known.then(|| self.latest.range(self.latest.len() - missed..))
    }

    pub(crate) fn fact(&mut self) {
        self.facts += 1;
    }

    pub(crate) fn pod(&mut self, change: PodChange) {
        self.bytes += change.pod.spec.bytes;
        while (self.latest.len() >= KEPT_CHANGES || self.bytes > KEPT_BYTES)
            && let Some(oldest) = self.latest.pop_front()
        {
            self.bytes -= oldest.pod.spec.bytes;
        }
        self.latest.push_back(change);
        self.pods += 1;
    }
}
