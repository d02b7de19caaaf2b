//! Terms that must hold: the pod's own, and the anti-affinity of pods that run already.

use std::collections::HashMap;

use supercargo_framework::{
    Prepared, Status, Verdict,
    points::{Filter, PreFilter, PreFilterOutcome},
};
use supercargo_model::{Cluster, Labels, Name, Node, NodeInfo, Pod, pod::AffinityTerm};

use super::{InterPodAffinity, all_match, resolved};

const EXISTING_ANTI_AFFINITY: &str = "node(s) didn't satisfy existing pods anti-affinity rules";
const AFFINITY: &str = "node(s) didn't match pod affinity rules";
const ANTI_AFFINITY: &str = "node(s) didn't match pod anti-affinity rules";

/// How many terms match in each domain: a node label's key and value.
#[derive(Clone, Default)]
pub(super) struct DomainCounts(HashMap<(Name, Name), i64>);

impl DomainCounts {
    pub(super) fn add(&mut self, node: &Node, key: &Name, by: i64) {
        let Some(value) = node.labels.get(key) else {
            return;
        };
        let domain = (key.clone(), value.clone());
        let count = self.0.entry(domain.clone()).or_insert(0);
        *count += by;
        if *count == 0 {
            self.0.remove(&domain);
        }
    }

    fn get(&self, key: &Name, value: &Name) -> i64 {
        self.0.get(&(key.clone(), value.clone())).copied().unwrap_or(0)
    }
}

/// What is in each domain that matters to a pod.
#[derive(Clone)]
pub(super) struct Counts {
    pub(super) affinity_terms: Vec<AffinityTerm>,
    pub(super) anti_affinity_terms: Vec<AffinityTerm>,
    pub(super) namespace_labels: Labels,
    /// Running pods that do not want this one near.
    pub(super) existing_anti_affinity: DomainCounts,
    /// Running pods that this one wants near: those that all its terms select.
    pub(super) affinity: DomainCounts,
    /// Running pods that this one does not want near.
    pub(super) anti_affinity: DomainCounts,
}

impl Counts {
    /// Nobody counted yet.
    pub(super) fn empty(cluster: &Cluster, pod: &Pod) -> Self {
        let resolve = |terms: &[AffinityTerm]| terms.iter().map(|t| resolved(t, cluster)).collect();
        Self {
            affinity_terms: resolve(&pod.spec.pod_affinity.required),
            anti_affinity_terms: resolve(&pod.spec.pod_anti_affinity.required),
            namespace_labels: cluster.namespace_labels(&pod.namespace),
            existing_anti_affinity: DomainCounts::default(),
            affinity: DomainCounts::default(),
            anti_affinity: DomainCounts::default(),
        }
    }

    fn new(cluster: &Cluster, pod: &Pod) -> Self {
        let mut counts = Self::empty(cluster, pod);
        for node in cluster.nodes() {
            for existing in &node.pods {
                counts.update(pod, existing, &node.node, 1);
            }
        }
        counts
    }

    pub(super) fn update(&mut self, pod: &Pod, existing: &Pod, node: &Node, by: i64) {
        for term in &existing.spec.pod_anti_affinity.required {
            if term.matches(pod, &self.namespace_labels) {
                self.existing_anti_affinity.add(node, &term.topology_key, by);
            }
        }
        if all_match(&self.affinity_terms, existing) {
            for term in &self.affinity_terms {
                self.affinity.add(node, &term.topology_key, by);
            }
        }
        for term in &self.anti_affinity_terms {
            if term.matches(existing, &Labels::default()) {
                self.anti_affinity.add(node, &term.topology_key, by);
            }
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.existing_anti_affinity.0.is_empty()
            && self.affinity_terms.is_empty()
            && self.anti_affinity_terms.is_empty()
    }

    pub(super) fn satisfies_affinity(&self, pod: &Pod, node: &Node) -> bool {
        let mut pods_exist = true;
        for term in &self.affinity_terms {
            match node.labels.get(&term.topology_key) {
                None => return false,
                Some(value) => pods_exist &= self.affinity.get(&term.topology_key, value) > 0,
            }
        }
        // The first of a group that wants to be together may go anywhere.
        pods_exist || (self.affinity.0.is_empty() && all_match(&self.affinity_terms, pod))
    }

    pub(super) fn satisfies_anti_affinity(&self, node: &Node) -> bool {
        self.anti_affinity_terms.iter().all(|term| {
            (node.labels.get(&term.topology_key))
                .is_none_or(|value| self.anti_affinity.get(&term.topology_key, value) <= 0)
        })
    }

    pub(super) fn satisfies_existing(&self, node: &Node) -> bool {
        self.existing_anti_affinity.0.is_empty()
            || (node.labels.iter()).all(|(key, value)| self.existing_anti_affinity.get(key, value) <= 0)
    }
}

impl PreFilter for InterPodAffinity {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        let counts = Counts::new(cluster, pod);
        if counts.is_idle() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(counts))
    }

    fn add_pod(&self, prepared: &mut Prepared, pod: &Pod, added: &Pod, node: &NodeInfo) -> Verdict {
        prepared.get_mut::<Counts>()?.update(pod, added, &node.node, 1);
        Ok(())
    }

    fn remove_pod(&self, prepared: &mut Prepared, pod: &Pod, removed: &Pod, node: &NodeInfo) -> Verdict {
        prepared.get_mut::<Counts>()?.update(pod, removed, &node.node, -1);
        Ok(())
    }
}

impl Filter for InterPodAffinity {
    fn filter(&self, prepared: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        let counts: &Counts = prepared.get()?;
        if !counts.satisfies_affinity(pod, &node.node) {
            Err(Status::unresolvable(AFFINITY))
        } else if !counts.satisfies_anti_affinity(&node.node) {
            Err(Status::unschedulable(ANTI_AFFINITY))
        } else if !counts.satisfies_existing(&node.node) {
            Err(Status::unschedulable(EXISTING_ANTI_AFFINITY))
        } else {
            Ok(())
        }
    }
}
