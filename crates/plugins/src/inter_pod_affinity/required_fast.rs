//! The fast form of requirements: how many pods are in each domain that this one must be near to, or far from.

use std::sync::Arc;

use supercargo_framework::fast::{CLOSED, Compiled, FastFilter, FilterPart, OPEN, Redo};
use supercargo_model::{Cluster, Labels, NodeId, Pod, changes::PodChange, pod_groups::TermList};

use super::{InterPodAffinity, all_match, required::Counts};

/// Requirements, for pods of one shape.
struct Required {
    pod: Arc<Pod>,
    counts: Counts,
}

impl Required {
    fn count_all(&mut self, cluster: &Cluster) {
        let mut counts = Counts::empty(cluster, &self.pod);
        let anywhere = Labels::default();
        // Every pod near must meet all terms, so it is enough to look among those that meet the first.
        if let Some(first) = counts.affinity_terms.first().cloned() {
            for group in cluster.groups().selected(&first.selector) {
                if all_match(&counts.affinity_terms, &group.sample) {
                    for term in counts.affinity_terms.clone() {
                        for (node, count) in group.nodes() {
                            let node = &cluster.node_at(node).node;
                            counts.affinity.add(node, &term.topology_key, i64::from(count));
                        }
                    }
                }
            }
        }
        for term in counts.anti_affinity_terms.clone() {
            for group in cluster.groups().selected(&term.selector) {
                if term.matches(&group.sample, &anywhere) {
                    for (node, count) in group.nodes() {
                        let node = &cluster.node_at(node).node;
                        counts.anti_affinity.add(node, &term.topology_key, i64::from(count));
                    }
                }
            }
        }
        for (group, list, _, term) in cluster.groups().terms_about(&self.pod.spec) {
            if list == TermList::RequiredFar && term.matches(&self.pod, &counts.namespace_labels) {
                for (node, count) in group.nodes() {
                    let node = &cluster.node_at(node).node;
                    counts.existing_anti_affinity.add(node, &term.topology_key, i64::from(count));
                }
            }
        }
        self.counts = counts;
    }
}

impl FilterPart for Required {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        self.count_all(cluster);
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
            self.counts.satisfies_affinity(&self.pod, node)
                && self.counts.satisfies_anti_affinity(node)
                && self.counts.satisfies_existing(node)
        }
    }

    fn note(&mut self, cluster: &Cluster, change: &PodChange) -> Redo {
        let theirs = &change.pod.spec.pod_anti_affinity.required;
        if theirs.is_empty()
            && self.counts.affinity_terms.is_empty()
            && self.counts.anti_affinity_terms.is_empty()
        {
            return Redo::Nothing;
        }
        let node = &cluster.node_at(change.node).node;
        self.counts.update(&self.pod, &change.pod, node, change.sign());
        Redo::All
    }
}

impl FastFilter for InterPodAffinity {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn FilterPart> {
        let counts = Counts::empty(cluster, pod);
        Compiled::Part(Box::new(Required { pod: pod.clone(), counts }))
    }
}
