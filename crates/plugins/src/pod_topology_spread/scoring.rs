//! Constraints that should hold: the fuller a node's domains, the less it scores.

use std::collections::HashMap;

use supercargo_framework::{
    MAX_SCORE, ScoreInput, Status, Verdict, formula,
    points::{NormalizeScore, PreScore, PreScoreOutcome, Score},
};
use supercargo_model::{Cluster, Name, NodeInfo, Pod, node::HOSTNAME_LABEL, pod::WhenUnsatisfiable};

use super::{Constraint, Formula, PodTopologySpread, count_matching, has_all_keys};
use crate::required_nodes::RequiredNodes;

/// What the nodes' domains hold.
#[derive(Clone)]
struct Domains {
    constraints: Vec<Constraint>,
    /// For each constraint, how many matching pods each domain has. Hosts are not in here: each is its own domain.
    counts: Vec<HashMap<Name, i64>>,
    terms: Vec<Term>,
    /// For each feasible node: it lacks a label, and is left out.
    left_out: Vec<bool>,
}

/// What the pods in a domain add to a node's raw score, by one constraint.
#[derive(Clone, Copy)]
pub(super) struct Term {
    /// What the weight follows from.
    pub(super) domains: usize,
    /// ln(domains + 2): with more domains, a single pod weighs more.
    weight: f64,
    /// maxSkew − 1.
    tolerance: f64,
}

impl Term {
    pub(super) fn new(constraint: &Constraint, domains: usize) -> Self {
        let weight = ((domains + 2) as f64).ln();
        Self { domains, weight, tolerance: f64::from(constraint.max_skew) - 1.0 }
    }

    /// With so many matching pods in the domain. The larger, the fuller.
    #[inline(always)]
    pub(super) fn of(self, count: f64) -> f64 {
        count * self.weight + self.tolerance
    }
}

/// The raw score that the terms of all constraints add up to.
#[inline(always)]
pub(super) fn raw_score(sum: f64) -> f64 {
    sum.round()
}

pub(super) fn is_host(constraint: &Constraint) -> bool {
    &*constraint.topology_key == HOSTNAME_LABEL
}

/// The value of a node's label; nodes without it form a domain of their own where they are let in at all.
fn domain(node: &NodeInfo, constraint: &Constraint) -> Name {
    (node.node.labels.get(&constraint.topology_key).cloned()).unwrap_or_default()
}

impl Domains {
    fn new(
        mut constraints: Vec<Constraint>,
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
        all_keys: bool,
    ) -> Self {
        constraints.iter_mut().for_each(|constraint| constraint.learn(cluster));
        let required = RequiredNodes::new(cluster, &pod.spec);
        let lacks = |node: &NodeInfo| all_keys && !has_all_keys(&node.node.labels, &constraints);
        let left_out: Vec<bool> = nodes.iter().map(|node| lacks(node)).collect();
        let mut counts = vec![HashMap::new(); constraints.len()];
        for (node, _) in nodes.iter().zip(&left_out).filter(|(_, out)| !**out) {
            for (constraint, counts) in constraints.iter().zip(&mut counts) {
                if !is_host(constraint) {
                    counts.entry(domain(node, constraint)).or_insert(0);
                }
            }
        }
        let hosts = left_out.iter().filter(|out| !**out).count();
        let terms = (constraints.iter().zip(&counts))
            .map(|(c, counts)| Term::new(c, if is_host(c) { hosts } else { counts.len() }))
            .collect();
        // Pods on nodes that are not feasible count as well, if their domain is one of those.
        for node in cluster.nodes().filter(|node| !lacks(node)) {
            for (constraint, counts) in constraints.iter().zip(&mut counts) {
                if is_host(constraint) || !constraint.includes(&required, &pod.spec, node) {
                    continue;
                }
                if let Some(count) = counts.get_mut(&domain(node, constraint)) {
                    *count += count_matching(node, constraint, &pod.namespace);
                }
            }
        }
        Self { constraints, counts, terms, left_out }
    }

    /// How many matching pods are in a node's domain; `None` if the node lacks the label.
    fn count(&self, i: usize, node: &NodeInfo, namespace: &str) -> Option<i64> {
        let constraint = &self.constraints[i];
        let value = node.node.labels.get(&constraint.topology_key)?;
        Some(if is_host(constraint) {
            count_matching(node, constraint, namespace)
        } else {
            self.counts[i].get(value).copied().unwrap_or(0)
        })
    }

    /// The larger, the fuller.
    fn log_weighted(&self, node: &NodeInfo, namespace: &str) -> i64 {
        let count = |i| self.count(i, node, namespace);
        let terms = self.terms.iter().enumerate().filter_map(|(i, term)| Some(term.of(count(i)? as f64)));
        raw_score(terms.sum()) as i64
    }

    /// The mean over the constraints of how close to the emptiest domain a node's is.
    fn linear_skew(&self, nodes: &[&NodeInfo], namespace: &str, column: &mut [i64]) {
        let counts = |i: usize| -> Vec<Option<i64>> {
            (nodes.iter().zip(&self.left_out))
                .map(|(node, out)| (!out).then(|| self.count(i, node, namespace)).flatten())
                .collect()
        };
        let mut sums = vec![0; nodes.len()];
        for (i, constraint) in self.constraints.iter().enumerate() {
            let counts = counts(i);
            let fewest = counts.iter().flatten().copied().min().unwrap_or(0);
            for (sum, count) in sums.iter_mut().zip(counts) {
                if let Some(count) = count {
                    let skew = (count - fewest) * MAX_SCORE / i64::from(constraint.max_skew.max(1));
                    *sum += (MAX_SCORE - skew).max(0);
                }
            }
        }
        for (score, sum) in column.iter_mut().zip(sums) {
            *score = sum / self.constraints.len().max(1) as i64;
        }
    }
}

impl PreScore for PodTopologySpread {
    fn pre_score(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> Result<PreScoreOutcome, Status> {
        let constraints = self.constraints(cluster, pod, WhenUnsatisfiable::ScheduleAnyway);
        if constraints.is_empty() {
            return Ok(PreScoreOutcome::Skip);
        }
        let all_keys = !pod.spec.spread_constraints.is_empty() || !self.system_defaults;
        Ok(PreScoreOutcome::go(Domains::new(constraints, cluster, pod, nodes, all_keys)))
    }
}

impl Score for PodTopologySpread {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        let domains: &Domains = input.prepared.get()?;
        let namespace = &input.pod.namespace;
        match self.formula {
            Formula::LinearSkew => domains.linear_skew(input.nodes, namespace, column),
            Formula::LogWeighted => {
                for (i, score) in column.iter_mut().enumerate() {
                    *score =
                        if domains.left_out[i] { 0 } else { domains.log_weighted(input.nodes[i], namespace) };
                }
            }
        }
        Ok(())
    }
}

impl NormalizeScore for PodTopologySpread {
    /// The emptiest gets 100; a node that was left out gets 0.
    fn normalize(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        let domains: &Domains = input.prepared.get()?;
        if self.formula == Formula::LinearSkew {
            return Ok(());
        }
        let counted = || (column.iter().zip(&domains.left_out)).filter(|(_, out)| !**out);
        let lowest = counted().map(|(s, _)| *s).min().unwrap_or(0);
        let highest = counted().map(|(s, _)| *s).max().unwrap_or(0).max(0);
        for (score, out) in column.iter_mut().zip(&domains.left_out) {
            *score = match (*out, highest) {
                (true, _) => 0,
                (false, 0) => MAX_SCORE,
                (false, highest) => formula::inverted(*score, highest + lowest, highest),
            };
        }
        Ok(())
    }
}
