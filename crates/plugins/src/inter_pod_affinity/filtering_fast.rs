//! The fast form of requirements: how many pods are in each domain that this one must be near to, or far from.

use std::sync::Arc;

use supercargo_framework::{
    Status,
    fast::{CLOSED, Compiled, DomainFilter, FastFilter, FilterPart, NodeFilter, OPEN},
};
use supercargo_model::{Cluster, NodeId, Pod, changes::PodChange};

use super::{InterPodAffinity, filtering::Counts};

/// Requirements, for pods of one signature.
struct Required {
    pod: Arc<Pod>,
    counts: Counts,
}

impl NodeFilter for Required {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        self.counts = Counts::by_class(cluster, &self.pod);
        if self.counts.is_idle() {
            return;
        }
        for node in cluster.columns().live.iter() {
            if open[node.index()] == OPEN && !self.passes(cluster, node) {
                open[node.index()] = CLOSED;
            }
        }
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        self.counts.is_idle() || {
            let node = &cluster.node_at(node).node;
            self.counts.satisfies_affinity(node)
                && self.counts.satisfies_anti_affinity(node)
                && self.counts.satisfies_existing(node)
        }
    }

    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        self.counts.check(&cluster.node_at(node).node).err()
    }
}

impl DomainFilter for Required {
    fn note(&mut self, cluster: &Cluster, change: &PodChange) -> bool {
        if change.pod.spec.pod_anti_affinity.required.is_empty() && self.counts.requires_nothing() {
            return false;
        }
        let node = &cluster.node_at(change.node).node;
        self.counts.update(&self.pod, &change.pod, node, change.sign());
        true
    }
}

impl FastFilter for InterPodAffinity {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let counts = Counts::empty(cluster, pod);
        Compiled::Part(FilterPart::ByDomain(Box::new(Required { pod: pod.clone(), counts })))
    }
}
