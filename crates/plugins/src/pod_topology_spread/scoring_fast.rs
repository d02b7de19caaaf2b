//! The fast form of soft constraints: how many pods each node's domain has, in a column for each constraint.

use std::sync::Arc;

use supercargo_framework::{
    fast::{Cells, Compiled, FastScore, Normalization, OPEN, Redo, ScorePart},
    vector::vectorized,
};
use supercargo_model::{
    Cluster, NodeId, Pod,
    changes::PodChange,
    label_columns::{ABSENT, LabelColumn},
    pod::WhenUnsatisfiable,
};

use crate::domain_sums::{DomainSums, Remembered};

use super::{Constraint, Formula, PodTopologySpread, any_key_is_absent, has_all_keys, scoring::is_host};
use crate::required_nodes::RequiredNodes;

/// A node that lacks a label and is left out.
const LEFT_OUT: f64 = -1.0;

/// Soft constraints, for pods of one shape.
struct Soft {
    pod: Arc<Pod>,
    constraints: Vec<Constraint>,
    required: RequiredNodes,
    /// Nodes must have the labels of all constraints.
    all_keys: bool,
    /// All nodes have the labels of all constraints.
    everywhere: bool,
    /// For each constraint and node: how many matching pods its domain has.
    counts: Vec<Vec<f64>>,
    /// For each constraint: ln(domains + 2).
    weights: Vec<f64>,
    /// The same counts by domain, instead of `counts`.
    sums: Option<DomainSums>,
    /// For each constraint: whether it counts the pod that came or left last.
    counted: Remembered<Vec<bool>>,
}

/// Nodes without the label are a domain of their own where they are let in, but no score comes from it.
fn column<'a>(cluster: &'a Cluster, constraint: &Constraint) -> Option<&'a LabelColumn> {
    cluster.label_columns().get(&constraint.topology_key)
}

impl Soft {
    fn counts_here(&self, cluster: &Cluster, node: NodeId) -> bool {
        !self.all_keys
            || self.everywhere
            || has_all_keys(&cluster.node_at(node).node.labels, &self.constraints)
    }

    fn is_counted(&self, constraint: &Constraint, pod: &Pod) -> bool {
        self.is_sibling(constraint, pod) && constraint.selector.matches(&pod.spec.labels)
    }

    /// Whether a pod counts if the constraint selects it.
    fn is_sibling(&self, constraint: &Constraint, pod: &Pod) -> bool {
        !pod.terminating && pod.namespace == self.pod.namespace && !constraint.selector.is_empty()
    }

    /// Whether pods on a node count for its domain.
    fn includes(&self, i: usize, cluster: &Cluster, node: NodeId) -> bool {
        // A host counts its own pods, whatever the policies say.
        is_host(&self.constraints[i])
            || (self.counts_here(cluster, node)
                && self.constraints[i].includes(&self.required, &self.pod.spec, cluster.node_at(node)))
    }

    /// Adds pods on a node to the counts of all nodes of its domain.
    fn add(&mut self, i: usize, cluster: &Cluster, node: NodeId, by: f64) {
        if !self.includes(i, cluster, node) {
            return;
        }
        if let Some(sums) = &mut self.sums {
            if sums.change(i, node, by).is_none() {
                self.sums = None;
            }
        } else if is_host(&self.constraints[i]) {
            self.counts[i][node.index()] += by;
        } else if let Some(column) = column(cluster, &self.constraints[i]) {
            for other in column.nodes(column.of(node)) {
                self.counts[i][other.index()] += by;
            }
        }
    }

    /// The counts by domain, taken from those by node.
    fn sums(&self, cluster: &Cluster) -> Option<DomainSums> {
        let mut sums = DomainSums::new(cluster, self.constraints.iter().map(|c| &c.topology_key));
        for (i, counts) in self.counts.iter().enumerate() {
            if is_host(&self.constraints[i]) && !sums.is_own(i) {
                return None;
            }
            for node in cluster.columns().live.iter() {
                sums.set(i, node, counts[node.index()]);
            }
        }
        sums.group(cluster)?;
        Some(sums)
    }

    fn count_all(&mut self, cluster: &Cluster) {
        let places = cluster.columns().len();
        self.counts.resize(self.constraints.len(), Vec::new());
        for counts in &mut self.counts {
            counts.clear();
            counts.resize(places, 0.0);
        }
        for i in 0..self.constraints.len() {
            // Summed by domain first: a domain may have thousands of nodes.
            let selector = self.constraints[i].selector.clone();
            let groups = cluster.groups();
            let mut by_node: Vec<(NodeId, f64)> = Vec::new();
            for group in groups.selected(&selector) {
                if self.is_sibling(&self.constraints[i], &group.sample) {
                    by_node.extend(group.nodes().map(|(node, count)| (node, f64::from(count))));
                }
            }
            self.spread_out(i, cluster, &by_node);
        }
    }

    fn spread_out(&mut self, i: usize, cluster: &Cluster, by_node: &[(NodeId, f64)]) {
        if is_host(&self.constraints[i]) {
            for (node, count) in by_node {
                self.counts[i][node.index()] += count;
            }
            return;
        }
        let Some(column) = column(cluster, &self.constraints[i]) else {
            return;
        };
        let mut by_domain = vec![0.0; column.range()];
        for (node, count) in by_node {
            let domain = column.of(*node);
            if domain != ABSENT
                && self.counts_here(cluster, *node)
                && self.constraints[i].includes(&self.required, &self.pod.spec, cluster.node_at(*node))
            {
                by_domain[domain as usize] += count;
            }
        }
        for (count, domain) in self.counts[i].iter_mut().zip(column.numbers()) {
            if *domain != ABSENT {
                *count = by_domain[*domain as usize];
            }
        }
    }

    /// The number of domains among the open nodes that are not left out.
    fn weigh(&mut self, cluster: &Cluster, open: &[f64]) {
        let domains = |constraint: &Constraint| {
            let inside = |node: &NodeId| open[node.index()] == OPEN && self.counts_here(cluster, *node);
            if is_host(constraint) {
                return if self.everywhere || !self.all_keys {
                    vectorized(
                        #[inline(always)]
                        || open.iter().filter(|open| **open == OPEN).count(),
                    )
                } else {
                    cluster.columns().live.iter().filter(inside).count()
                };
            }
            let Some(column) = column(cluster, constraint) else {
                return usize::from(cluster.columns().live.iter().any(|node| inside(&node)));
            };
            let labelled =
                (0..column.range() as u32).filter(|domain| column.nodes(*domain).iter().any(inside));
            let unlabelled = || {
                let mut without = cluster.columns().live.iter().filter(|node| column.of(*node) == ABSENT);
                without.any(|node| inside(&node))
            };
            let all_have = column.all_have(cluster.node_count());
            labelled.count() + usize::from(!all_have && unlabelled())
        };
        let weights = self.constraints.iter().map(|constraint| ((domains(constraint) + 2) as f64).ln());
        self.weights = weights.collect();
    }

    fn write(&self, cluster: &Cluster, scores: &mut [f64]) {
        let factor = |i: usize| (self.weights[i], f64::from(self.constraints[i].max_skew) - 1.0);
        match &self.counts[..] {
            // The common cases in one pass.
            [only] if self.everywhere => {
                let (weight, skew) = factor(0);
                vectorized(
                    #[inline(always)]
                    || {
                        for (score, count) in scores.iter_mut().zip(only) {
                            *score = (count * weight + skew).round();
                        }
                    },
                );
            }
            [one, other] if self.everywhere => {
                let ((weight1, skew1), (weight2, skew2)) = (factor(0), factor(1));
                vectorized(
                    #[inline(always)]
                    || {
                        for ((score, one), other) in scores.iter_mut().zip(one).zip(other) {
                            *score = ((one * weight1 + skew1) + (other * weight2 + skew2)).round();
                        }
                    },
                );
            }
            _ => self.write_any(cluster, scores),
        }
    }

    /// Any number of constraints, whose labels some nodes may lack.
    fn write_any(&self, cluster: &Cluster, scores: &mut [f64]) {
        scores.fill(0.0);
        for (i, constraint) in self.constraints.iter().enumerate() {
            let Some(column) = column(cluster, constraint) else {
                continue;
            };
            let (weight, skew) = (self.weights[i], f64::from(constraint.max_skew) - 1.0);
            let nodes = scores.iter_mut().zip(&self.counts[i]).zip(column.numbers());
            for ((score, count), _) in nodes.filter(|(_, domain)| **domain != ABSENT) {
                *score += count * weight + skew;
            }
        }
        for score in scores.iter_mut() {
            *score = score.round();
        }
        if self.all_keys {
            self.mark_left_out(cluster, scores);
        }
    }

    fn mark_left_out(&self, cluster: &Cluster, scores: &mut [f64]) {
        for constraint in &self.constraints {
            match column(cluster, constraint) {
                Some(column) if column.all_have(cluster.node_count()) => {}
                Some(column) => {
                    for node in cluster.columns().live.iter() {
                        if column.of(node) == ABSENT {
                            scores[node.index()] = LEFT_OUT;
                        }
                    }
                }
                None => scores.fill(LEFT_OUT),
            }
        }
    }
}

impl ScorePart for Soft {
    fn fill(&mut self, cluster: &Cluster, open: &[f64], scores: &mut [f64]) {
        let nodes = cluster.node_count();
        self.sums = None;
        self.everywhere =
            self.constraints.iter().all(|c| column(cluster, c).is_some_and(|column| column.all_have(nodes)));
        self.count_all(cluster);
        self.weigh(cluster, open);
        self.write(cluster, scores);
    }

    fn score(&self, _: &Cluster, _: NodeId) -> f64 {
        0.0
    }

    fn note(&mut self, cluster: &Cluster, change: &PodChange, _: &mut [f64]) -> Redo {
        if self.counted.get(&change.pod).is_none() {
            let counted = self.constraints.iter().map(|constraint| self.is_counted(constraint, &change.pod));
            self.counted.set(&change.pod, counted.collect());
        }
        let mut redo = Redo::Nothing;
        for i in 0..self.constraints.len() {
            if self.counted.get(&change.pod).is_some_and(|counted| counted[i]) {
                self.add(i, cluster, change.node, change.sign() as f64);
                redo = Redo::All;
            }
        }
        redo
    }

    fn settle(&mut self, cluster: &Cluster, scores: &mut [f64]) {
        match &mut self.sums {
            Some(sums) => settle(sums, &self.constraints, &self.weights),
            None => self.write(cluster, scores),
        }
    }

    fn use_cells(&mut self, cluster: &Cluster) -> bool {
        self.sums = if self.everywhere { self.sums(cluster) } else { None };
        if let Some(sums) = &mut self.sums {
            settle(sums, &self.constraints, &self.weights);
        }
        self.sums.is_some()
    }

    fn cells(&self) -> Option<&Cells> {
        self.sums.as_ref().map(DomainSums::cells)
    }

    fn normalization(&self) -> Normalization {
        Normalization::Inverted
    }

    fn reads_open(&self) -> bool {
        true
    }
}

/// Works out the score of each cell.
fn settle(sums: &mut DomainSums, constraints: &[Constraint], weights: &[f64]) {
    sums.settle(|counts| {
        let terms = counts.iter().zip(weights).zip(constraints);
        let scores = terms.map(|((count, weight), c)| count * weight + (f64::from(c.max_skew) - 1.0));
        scores.sum::<f64>().round()
    });
}

impl FastScore for PodTopologySpread {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        let constraints = self.constraints(cluster, pod, WhenUnsatisfiable::ScheduleAnyway);
        if constraints.is_empty() {
            return Compiled::Idle;
        }
        // A maxSkew below 1, which no API server lets in, makes scores that look like a node left out.
        if self.formula != Formula::LogWeighted || constraints.iter().any(|c| c.max_skew < 1) {
            return Compiled::Slow;
        }
        let all_keys = !pod.spec.spread_constraints.is_empty() || !self.system_defaults;
        if all_keys && any_key_is_absent(cluster, &constraints) {
            // Every node is left out.
            return Compiled::Idle;
        }
        Compiled::Part(Box::new(Soft {
            pod: pod.clone(),
            required: RequiredNodes::new(cluster, &pod.spec),
            all_keys,
            everywhere: false,
            constraints,
            counts: Vec::new(),
            weights: Vec::new(),
            sums: None,
            counted: Remembered::default(),
        }))
    }
}
