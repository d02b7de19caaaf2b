//! Constraints that must hold: nodes that would make the skew too large are out.

use std::{collections::HashMap, sync::Arc};

use supercargo_framework::{
    Prepared, Status, Verdict,
    points::{Filter, PreFilter, PreFilterOutcome},
};
use supercargo_model::{Cluster, Name, NodeInfo, Pod, pod::WhenUnsatisfiable};

use super::{Constraint, PodTopologySpread, count_matching, has_all_keys};
use crate::required_nodes::RequiredNodes;

pub(super) const TOO_SKEWED: &str = "node(s) didn't match pod topology spread constraints";
pub(super) const NO_LABEL: &str =
    "node(s) didn't match pod topology spread constraints (missing required label)";

/// How many matching pods each domain has, for each constraint.
#[derive(Clone)]
struct Counts {
    constraints: Arc<[Constraint]>,
    required: RequiredNodes,
    /// For each constraint: whether the pod itself counts.
    itself: Arc<[i64]>,
    by_domain: Vec<HashMap<Name, i64>>,
    /// The lowest of the counts; with fewer domains than asked for, 0.
    fewest: Vec<i64>,
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

    fn find_fewest(&mut self) {
        for ((constraint, counts), fewest) in
            (self.constraints.iter().zip(&self.by_domain)).zip(&mut self.fewest)
        {
            let enough_domains = counts.len() as i64 >= i64::from(constraint.min_domains);
            // No domain at all: nothing can be too far from the emptiest.
            let lowest = counts.values().copied().min().unwrap_or(i64::from(i32::MAX));
            *fewest = if enough_domains { lowest } else { 0 };
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
            let Some(domain) = node.node.labels.get(&constraint.topology_key) else {
                return Err(Status::unresolvable(NO_LABEL));
            };
            let here = counts.by_domain[i].get(domain).copied().unwrap_or(0);
            if here + counts.itself[i] - counts.fewest[i] > i64::from(constraint.max_skew) {
                return Err(Status::unschedulable(TOO_SKEWED));
            }
        }
        Ok(())
    }
}
