//! Pods that are placed on trial: when they are taken back, the cluster is what it was, bit for bit, and its change log too.

use std::sync::Arc;

use super::{Cluster, NodeId};
use crate::{
    Key, Pod, Resources,
    changes::{Mark, Moment},
};

/// A trial: what is needed to undo it.
#[derive(Debug)]
pub struct ClusterTrial {
    mark: Mark,
    /// How many places there were for classes of pods.
    classes: usize,
    /// In the order in which they came.
    tried: Vec<Tried>,
}

/// A pod that was placed on trial.
#[derive(Debug)]
struct Tried {
    key: Key,
    /// What was held on its node before; `None` if the node is not known.
    before: Option<Held>,
}

/// What the pods on a node hold. Sums saturate, so that they cannot be had back by subtracting.
#[derive(Debug)]
struct Held {
    node: NodeId,
    requested: Resources,
    or_default_milli_cpu: i64,
    or_default_memory: i64,
}

/// A pod cannot be tried, because it is bound already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlreadyBound;

impl Cluster {
    /// Begins a trial. Until it is committed or undone, nothing but [`Self::try_pod`] may change the cluster.
    pub fn begin_trial(&mut self) -> ClusterTrial {
        ClusterTrial { mark: self.changes.begin_trial(), classes: self.groups.places(), tried: Vec::new() }
    }

    /// Adds a bound pod on trial.
    pub fn try_pod(&mut self, trial: &mut ClusterTrial, pod: Arc<Pod>) -> Result<(), AlreadyBound> {
        let key = pod.key();
        if self.bound.contains_key(&key) {
            return Err(AlreadyBound);
        }
        let node = pod.node.as_ref().and_then(|name| self.node(name));
        let before = node.map(|node| Held {
            node: node.id,
            requested: node.requested.clone(),
            or_default_milli_cpu: node.requested_or_default_milli_cpu,
            or_default_memory: node.requested_or_default_memory,
        });
        self.put_pod(pod);
        trial.tried.push(Tried { key, before });
        Ok(())
    }

    /// Ends a trial: its pods stay.
    pub fn commit_trial(&mut self, _: ClusterTrial) {
        self.changes.commit_trial();
    }

    /// Ends a trial: its pods are taken back. Before their coming and leaving is struck from the log, whoever keeps answers can
    /// follow: the cluster is what it was when the trial began, at the moment that is told.
    pub fn undo_trial(&mut self, trial: ClusterTrial, follow: impl FnOnce(&Self, Moment)) {
        let ClusterTrial { mark, classes, tried } = trial;
        for Tried { key, before } in tried.into_iter().rev() {
            self.remove_pod(&key);
            if let Some(held) = before {
                self.restore(held);
            }
        }
        self.groups.shrink(classes);
        follow(self, mark.moment());
        self.changes.undo_trial(mark);
    }

    fn restore(&mut self, held: Held) {
        let info = self.slots[held.node.index()].as_mut().expect("a node at its place");
        info.requested = held.requested;
        info.requested_or_default_milli_cpu = held.or_default_milli_cpu;
        info.requested_or_default_memory = held.or_default_memory;
        self.columns.set_load(info);
    }
}
