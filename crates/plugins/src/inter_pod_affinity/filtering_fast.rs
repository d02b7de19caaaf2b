//! The fast form of requirements: how many pods are in each domain that this one must be near to, or far from.

use std::{iter::repeat, sync::Arc};

use supercargo_framework::{
    Status,
    fast::{CLOSED, Compiled, DomainFilter, FastFilter, FilterPart, NodeFilter, OPEN},
};
use supercargo_model::{
    Cluster, Name, NodeId, Pod,
    changes::PodChange,
    label_columns::{ABSENT, LabelColumn},
};

use super::{InterPodAffinity, filtering::Counts};

/// Requirements, for pods of one signature.
struct Required {
    pod: Arc<Pod>,
    counts: Counts,
    /// The nodes that it closes; empty if it has closed none so far.
    closed: Vec<f64>,
}

impl Required {
    /// Finds out about all nodes anew.
    fn close_all(&mut self, cluster: &Cluster) {
        self.closed.clear();
        if self.counts.is_idle() {
            return;
        }
        self.closed.resize(cluster.columns().len(), OPEN);
        for node in self.counts.far_from(cluster) {
            self.closed[node.index()] = CLOSED;
        }
        for key in self.counts.near_keys().to_vec() {
            self.close_where_nobody_is_near(cluster, &key);
        }
    }

    /// Closes the nodes that have nobody in their domain whom the pod wants near; the first of a group that wants to be together
    /// may go wherever there is a domain.
    fn close_where_nobody_is_near(&mut self, cluster: &Cluster, key: &Name) {
        let column = cluster.label_columns().get(key);
        let mut will_do = vec![self.counts.is_first_of_its_group(); column.map_or(0, LabelColumn::range)];
        for value in self.counts.occupied_near(key) {
            if let Some(number) = column.and_then(|column| column.number(value)) {
                will_do[number as usize] = true;
            }
        }
        let numbers = column.map_or(&[][..], LabelColumn::numbers).iter().copied().chain(repeat(ABSENT));
        for (closed, number) in self.closed.iter_mut().zip(numbers) {
            if number == ABSENT || !will_do[number as usize] {
                *closed = CLOSED;
            }
        }
    }
}

impl NodeFilter for Required {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        self.counts = Counts::by_class(cluster, &self.pod);
        self.close_all(cluster);
        for (open, closed) in open.iter_mut().zip(&self.closed) {
            *open += closed;
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
        let (node, labels) = (&cluster.node_at(change.node).node, cluster.label_columns());
        let is_shared = |key: &Name| {
            let column = labels.get(key);
            column.is_some_and(|column| column.nodes(column.of(change.node)).len() > 1)
        };
        let (mut flipped, mut elsewhere) = (false, false);
        let was_alone = self.counts.has_nobody_near();
        self.counts.update_and_tell(&self.pod, &change.pod, node, change.sign(), |key| {
            flipped = true;
            elsewhere |= is_shared(key);
        });
        // The first of a group that wants to be together may go anywhere; the others may not.
        elsewhere |= was_alone != self.counts.has_nobody_near();
        if elsewhere {
            self.close_all(cluster);
        } else if flipped {
            self.closed.resize(cluster.columns().len(), OPEN);
            let passes = self.passes(cluster, change.node);
            self.closed[change.node.index()] = if passes { OPEN } else { CLOSED };
        }
        elsewhere
    }

    fn closed(&self) -> Option<&[f64]> {
        (!self.closed.is_empty()).then_some(&self.closed)
    }

    fn is_idle(&self) -> bool {
        self.counts.is_idle()
    }
}

impl FastFilter for InterPodAffinity {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let counts = Counts::empty(cluster, pod);
        Compiled::Part(FilterPart::ByDomain(Box::new(Required {
            pod: pod.clone(),
            counts,
            closed: Vec::new(),
        })))
    }
}
