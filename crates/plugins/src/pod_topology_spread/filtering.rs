//! Constraints that must hold: nodes that would make the skew too large are out.

use std::{collections::HashMap, sync::Arc};

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    points::{Filter, PreFilter, PreFilterOutcome},
};
use supercargo_model::{Cluster, Name, NodeInfo, Pod, pod::WhenUnsatisfiable};

use super::{Constraint, PodTopologySpread, count_matching, details, has_all_keys};
use crate::required_nodes::RequiredNodes;

const TOO_SKEWED: &str = "node(s) didn't match pod topology spread constraints";
const NO_LABEL: &str = "node(s) didn't match pod topology spread constraints (missing required label)";

/// Why a node will not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    NoLabel,
    TooSkewed,
}

impl From<Obstacle> for Status {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::NoLabel => Self::unresolvable(NO_LABEL),
            Obstacle::TooSkewed => Self::unschedulable(TOO_SKEWED),
        }
    }
}

impl Constraint {
    /// What keeps a pod from a node, by how many matching pods its domain has (`None` if it lacks the label), whether the pod
    /// itself counts, and how many matching pods the emptiest domain has.
    pub(super) fn check(&self, here: Option<i64>, itself: i64, fewest: i64) -> Result<(), Obstacle> {
        match here {
            None => Err(Obstacle::NoLabel),
            Some(here) if here + itself - fewest > i64::from(self.max_skew) => Err(Obstacle::TooSkewed),
            Some(_) => Ok(()),
        }
    }

    /// How many matching pods the emptiest domain has; with fewer domains than asked for, 0.
    pub(super) fn fewest(&self, counts: impl Iterator<Item = i64>) -> i64 {
        // No domain at all: nothing can be too far from the emptiest.
        let nowhere = (0, i64::from(i32::MAX));
        let (domains, lowest) = counts.fold(nowhere, |(domains, lowest), n| (domains + 1, lowest.min(n)));
        self.fewest_of(domains, lowest)
    }

    /// The same, of so many domains, the emptiest of which has so many.
    pub(super) fn fewest_of(&self, domains: i64, lowest: i64) -> i64 {
        if domains >= i64::from(self.min_domains) { lowest } else { 0 }
    }
}

/// How many matching pods each domain has, for each constraint.
#[derive(Clone)]
pub(super) struct Counts {
    pub(super) constraints: Arc<[Constraint]>,
    required: RequiredNodes,
    /// For each constraint: whether the pod itself counts.
    pub(super) itself: Arc<[i64]>,
    pub(super) by_domain: Vec<HashMap<Name, i64>>,
    /// How many the emptiest domain has.
    pub(super) fewest: Vec<i64>,
}

impl Counts {
    fn new(mut constraints: Vec<Constraint>, cluster: &Cluster, pod: &Pod) -> Self {
        constraints.iter_mut().for_each(|constraint| constraint.learn(cluster));
        let required = RequiredNodes::new(cluster, &pod.spec);
        let mut by_domain = vec![HashMap::new(); constraints.len()];
        for node in cluster.nodes() {
            let labels = &node.node.labels;
            if !has_all_keys(labels, &constraints) {
                continue;
            }
            for (constraint, counts) in constraints.iter().zip(&mut by_domain) {
                let Some(domain) = labels.get(&constraint.topology_key) else {
                    continue;
                };
                if constraint.includes(&required, &pod.spec, node) {
                    *counts.entry(domain.clone()).or_insert(0) +=
                        count_matching(node, constraint, &pod.namespace);
                }
            }
        }
        let itself = constraints.iter().map(|c| i64::from(c.selector.matches(&pod.spec.labels))).collect();
        let fewest = vec![0; constraints.len()];
        let mut all = Self { constraints: constraints.into(), required, itself, by_domain, fewest };
        all.find_fewest();
        all
    }

    /// What keeps the pod from a node by the constraint in this place.
    pub(super) fn check(&self, i: usize, constraint: &Constraint, node: &NodeInfo) -> Result<(), Obstacle> {
        let domain = node.node.labels.get(&constraint.topology_key);
        let here = domain.map(|domain| self.by_domain[i].get(domain).copied().unwrap_or(0));
        constraint.check(here, self.itself[i], self.fewest[i])
    }

    fn find_fewest(&mut self) {
        for ((constraint, counts), fewest) in
            (self.constraints.iter().zip(&self.by_domain)).zip(&mut self.fewest)
        {
            *fewest = constraint.fewest(counts.values().copied());
        }
    }

    fn update(&mut self, pod: &Pod, other: &Pod, node: &NodeInfo, by: i64) {
        let labels = &node.node.labels;
        if other.namespace != pod.namespace || !has_all_keys(labels, &self.constraints) {
            return;
        }
        for (constraint, counts) in self.constraints.iter().zip(&mut self.by_domain) {
            let counted =
                constraint.selects(&other.spec) && constraint.includes(&self.required, &pod.spec, node);
            if let (true, Some(domain)) = (counted, labels.get(&constraint.topology_key)) {
                *counts.entry(domain.clone()).or_insert(0) += by;
            }
        }
        self.find_fewest();
    }
}

impl PreFilter for PodTopologySpread {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        let constraints = self.constraints(cluster, pod, WhenUnsatisfiable::DoNotSchedule);
        if constraints.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(Counts::new(constraints, cluster, pod)))
    }

    fn add_pod(&self, prepared: &mut Prepared, pod: &Pod, added: &Pod, node: &NodeInfo) -> Verdict {
        prepared.get_mut::<Counts>()?.update(pod, added, node, 1);
        Ok(())
    }

    fn remove_pod(&self, prepared: &mut Prepared, pod: &Pod, removed: &Pod, node: &NodeInfo) -> Verdict {
        prepared.get_mut::<Counts>()?.update(pod, removed, node, -1);
        Ok(())
    }
}

impl Filter for PodTopologySpread {
    fn filter(&self, prepared: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        let counts: &Counts = prepared.get()?;
        for (i, constraint) in counts.constraints.iter().enumerate() {
            counts.check(i, constraint, node)?;
        }
        Ok(())
    }

    fn details(&self, prepared: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let counts = prepared.get::<Counts>();
        counts.map_or_else(|_| Vec::new(), |counts| details::details(counts, node))
    }
}
