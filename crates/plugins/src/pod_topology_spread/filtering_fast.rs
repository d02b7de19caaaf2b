//! The fast form of hard constraints: counts by domain, and the domains that are too full.

use std::sync::Arc;

use supercargo_framework::{
    Status,
    fast::{CLOSED, Compiled, DomainFilter, FastFilter, FilterPart, NodeFilter, OPEN},
};
use supercargo_model::{
    Cluster, NodeId, NodeSet, Pod, changes::PodChange, label_columns::ABSENT, pod::WhenUnsatisfiable,
};

use super::{Constraint, PodTopologySpread, any_key_is_absent, filtering::Obstacle, has_all_keys};
use crate::required_nodes::RequiredNodes;

/// Hard constraints, for pods of one signature.
struct Hard {
    pod: Arc<Pod>,
    constraints: Vec<Constraint>,
    required: RequiredNodes,
    /// The nodes that have the labels of all constraints.
    complete: NodeSet,
    /// For each constraint and domain: how many matching pods there are, and how many nodes that count.
    counts: Vec<Vec<i64>>,
    nodes: Vec<Vec<u32>>,
    fewest: Vec<i64>,
    /// For each constraint: whether the pod itself counts.
    itself: Vec<i64>,
}

impl Hard {
    /// The domain that a node's pods count for.
    fn domain(&self, i: usize, cluster: &Cluster, node: NodeId) -> Option<usize> {
        let constraint = &self.constraints[i];
        let counts = self.complete.contains(node)
            && constraint.includes(&self.required, &self.pod.spec, cluster.node_at(node));
        let column = cluster.label_columns().get(&constraint.topology_key)?;
        let domain = column.of(node);
        (counts && domain != ABSENT).then_some(domain as usize)
    }

    fn count_all(&mut self, cluster: &Cluster) {
        let labels = |node: &NodeId| &cluster.node_at(*node).node.labels;
        let complete = |node: &NodeId| has_all_keys(labels(node), &self.constraints);
        self.complete = cluster.columns().live.iter().filter(complete).collect();
        for i in 0..self.constraints.len() {
            let column = cluster.label_columns().get(&self.constraints[i].topology_key);
            let range = column.map_or(0, |c| c.range());
            self.counts[i] = vec![0; range];
            self.nodes[i] = vec![0; range];
            for node in cluster.columns().live.iter() {
                if let Some(domain) = self.domain(i, cluster, node) {
                    self.nodes[i][domain] += 1;
                }
            }
            let selector = self.constraints[i].selector.clone();
            for group in cluster.groups().selected(&selector) {
                if self.constraints[i].can_count(&group.sample, &self.pod.namespace) {
                    for (node, count) in group.nodes() {
                        if let Some(domain) = self.domain(i, cluster, node) {
                            self.counts[i][domain] += i64::from(count);
                        }
                    }
                }
            }
            self.find_fewest(i);
        }
    }

    fn find_fewest(&mut self, i: usize) {
        let there = self.counts[i].iter().zip(&self.nodes[i]).filter(|(_, nodes)| **nodes > 0);
        self.fewest[i] = self.constraints[i].fewest(there.map(|(count, _)| *count));
    }
}

impl Hard {
    /// Why a node will not do: the first constraint's reason.
    fn check(&self, cluster: &Cluster, node: NodeId) -> Result<(), Obstacle> {
        for (i, constraint) in self.constraints.iter().enumerate() {
            let column = cluster.label_columns().get(&constraint.topology_key);
            let domain = column.map(|column| column.of(node)).filter(|domain| *domain != ABSENT);
            let here = domain.map(|domain| self.counts[i].get(domain as usize).copied().unwrap_or(0));
            constraint.check(here, self.itself[i], self.fewest[i])?;
        }
        Ok(())
    }
}

impl NodeFilter for Hard {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        self.count_all(cluster);
        for node in cluster.columns().live.iter() {
            if open[node.index()] == OPEN && !self.passes(cluster, node) {
                open[node.index()] = CLOSED;
            }
        }
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        self.check(cluster, node).is_ok()
    }

    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        self.check(cluster, node).err().map(Status::from)
    }
}

impl DomainFilter for Hard {
    fn note(&mut self, cluster: &Cluster, change: &PodChange) -> bool {
        let mut counted = false;
        for i in 0..self.constraints.len() {
            if self.constraints[i].counts(&change.pod, &self.pod.namespace)
                && let Some(domain) = self.domain(i, cluster, change.node)
            {
                self.counts[i][domain] += change.sign();
                self.find_fewest(i);
                counted = true;
            }
        }
        counted
    }
}

/// No node has the labels of all constraints. Nobody counts then, so that nothing is too skewed.
struct Nowhere;

impl NodeFilter for Nowhere {
    fn close(&mut self, _: &Cluster, open: &mut [f64]) {
        open.fill(CLOSED);
    }

    fn passes(&self, _: &Cluster, _: NodeId) -> bool {
        false
    }

    fn refusal(&self, _: &Cluster, _: NodeId) -> Option<Status> {
        Some(Obstacle::NoLabel.into())
    }
}

impl FastFilter for PodTopologySpread {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let constraints = self.constraints(cluster, pod, WhenUnsatisfiable::DoNotSchedule);
        if constraints.is_empty() {
            return Compiled::Idle;
        }
        // A maxSkew below 1, which no API server lets in, is exceeded by the pod itself.
        if any_key_is_absent(cluster, &constraints) && constraints.iter().all(|c| c.max_skew >= 1) {
            return Compiled::Part(FilterPart::Fixed(Box::new(Nowhere)));
        }
        let itself = constraints.iter().map(|c| i64::from(c.selector.matches(&pod.spec.labels))).collect();
        let count = constraints.len();
        Compiled::Part(FilterPart::ByDomain(Box::new(Hard {
            pod: pod.clone(),
            required: RequiredNodes::new(cluster, &pod.spec),
            complete: NodeSet::default(),
            constraints,
            counts: vec![Vec::new(); count],
            nodes: vec![Vec::new(); count],
            fewest: vec![0; count],
            itself,
        })))
    }
}
