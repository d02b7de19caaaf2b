//! The cluster with its nominations: what every cycle reads, on either path.

use std::sync::Arc;

use supercargo_framework::preemption::Nominations;
use supercargo_model::{Cluster, Name, Pod};

use crate::extender_calls::Revision;

/// The cluster, and the claims of pods that wait for preemption.
#[derive(Clone)]
pub(crate) struct ClusterState {
    pub(crate) cluster: Cluster,
    pub(crate) nominations: Nominations,
}

impl ClusterState {
    /// Without nominations.
    pub(crate) fn new(cluster: Cluster) -> Self {
        Self { cluster, nominations: Nominations::default() }
    }

    /// What tells whether anything has changed, with how often plugins have come to judge otherwise.
    pub(crate) fn revision(&self, plugin_changes: u64) -> Revision {
        let Self { cluster, nominations } = self;
        (cluster.changes().now(), cluster.devices().revision(), nominations.revision(), plugin_changes)
    }

    /// The same without a pod, as a copy.
    pub(crate) fn without(&self, pod: &Pod) -> Self {
        let mut copy = self.clone();
        copy.cluster.remove_pod(&pod.key());
        copy.nominations.forget(&pod.uid);
        copy
    }

    /// Whether nothing on any node is kept for pods that go before this one.
    pub(crate) fn is_all_free_for(&self, pod: &Pod) -> bool {
        self.nominations.is_empty() || !self.nominations.any_ahead_of(pod)
    }

    /// Puts a pod on a node, so that the next one sees it there. It has no claim to another any more.
    pub(crate) fn assume(&mut self, pod: &Pod, node: Name) {
        self.nominations.forget(&pod.uid);
        self.cluster.put_pod(Arc::new(pod.bound_to(node)));
    }
}
