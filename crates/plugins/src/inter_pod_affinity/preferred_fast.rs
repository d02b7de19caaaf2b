//! The fast form of preferences: what each pod that comes or leaves adds to the nodes of its domain.

use std::sync::Arc;

use supercargo_framework::fast::{Compiled, FastScore, Normalization, Redo, ScorePart};
use supercargo_model::{
    Cluster, Labels, NodeId, Pod, changes::PodChange, label_columns::ABSENT, pod::AffinityTerm,
    pod_groups::TermList,
};

use super::{InterPodAffinity, preferred::Preferences};

/// Preferences, for pods of one shape.
struct Preferred {
    plugin: Arc<InterPodAffinity>,
    pod: Arc<Pod>,
    preferences: Preferences,
    /// No term has selected anybody so far.
    silent: bool,
}

/// Adds a weight to all nodes that share a domain with a node.
fn add(cluster: &Cluster, key: &str, node: NodeId, weight: f64, scores: &mut [f64]) {
    let Some(column) = cluster.label_columns().get(key) else {
        return;
    };
    let domain = column.of(node);
    if domain != ABSENT {
        for other in column.nodes(domain) {
            scores[other.index()] += weight;
        }
    }
}

/// Adds a weight for each of many pods to all nodes that share a domain with it.
fn add_all(
    cluster: &Cluster,
    key: &str,
    pods: impl Iterator<Item = (NodeId, u32)>,
    weight: f64,
    scores: &mut [f64],
) {
    let Some(column) = cluster.label_columns().get(key) else {
        return;
    };
    // By domain first: a domain may have thousands of nodes.
    let mut by_domain: Vec<f64> = vec![0.0; column.range()];
    for (node, count) in pods {
        let domain = column.of(node);
        if domain != ABSENT {
            by_domain[domain as usize] += weight * f64::from(count);
        }
    }
    for (domain, weight) in by_domain.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
        for node in column.nodes(domain as u32) {
            scores[node.index()] += weight;
        }
    }
}

impl Preferred {
    /// What a term of a bound pod is worth to a pod that it selects.
    fn worth(&self, list: TermList, weight: i32) -> f64 {
        match list {
            TermList::RequiredNear => f64::from(self.plugin.hard_weight),
            TermList::PreferredNear => f64::from(weight),
            TermList::PreferredFar => -f64::from(weight),
            TermList::RequiredFar => 0.0,
        }
    }

    /// Our own terms, with what they are worth.
    fn own(&self) -> impl Iterator<Item = (&AffinityTerm, f64)> {
        let near = self.preferences.near.iter().map(|w| (&w.term, f64::from(w.weight)));
        near.chain(self.preferences.far.iter().map(|w| (&w.term, -f64::from(w.weight))))
    }

    /// The terms of a bound pod that select ours, with what they are worth.
    fn theirs<'a>(&'a self, other: &'a Pod) -> impl Iterator<Item = (&'a AffinityTerm, f64)> {
        let (near, far) = (&other.spec.pod_affinity, &other.spec.pod_anti_affinity);
        let required = near.required.iter().map(|t| (t, self.worth(TermList::RequiredNear, 0)));
        let preferred = near.preferred.iter().map(|w| (&w.term, f64::from(w.weight)));
        let unwanted = far.preferred.iter().map(|w| (&w.term, -f64::from(w.weight)));
        (required.chain(preferred).chain(unwanted))
            .filter(|(term, worth)| *worth != 0.0 && self.selects_us(term))
    }

    fn selects_us(&self, term: &AffinityTerm) -> bool {
        term.matches(&self.pod, &self.preferences.namespace_labels)
    }
}

impl ScorePart for Preferred {
    fn fill(&mut self, cluster: &Cluster, _: &[f64], column: &mut [f64]) {
        column.fill(0.0);
        let anywhere = Labels::default();
        let mut silent = true;
        for (term, worth) in self.own() {
            for group in cluster.groups().selected(&term.selector) {
                if term.matches(&group.sample, &anywhere) {
                    add_all(cluster, &term.topology_key, group.nodes(), worth, column);
                    silent = false;
                }
            }
        }
        for (group, list, weight, term) in cluster.groups().terms_about(&self.pod.spec) {
            let worth = self.worth(list, weight);
            if worth != 0.0 && self.selects_us(term) {
                add_all(cluster, &term.topology_key, group.nodes(), worth, column);
                silent = false;
            }
        }
        self.silent = silent;
    }

    fn score(&self, _: &Cluster, _: NodeId) -> f64 {
        0.0
    }

    fn note(&mut self, cluster: &Cluster, change: &PodChange, column: &mut [f64]) -> Redo {
        let sign = change.sign() as f64;
        let anywhere = Labels::default();
        let mut redo = Redo::Nothing;
        let ours = self.own().filter(|(term, _)| term.matches(&change.pod, &anywhere));
        for (term, worth) in ours.chain(self.theirs(&change.pod)) {
            add(cluster, &term.topology_key, change.node, sign * worth, column);
            redo = Redo::All;
        }
        self.silent &= redo == Redo::Nothing;
        redo
    }

    fn is_silent(&self) -> bool {
        self.silent
    }

    fn normalization(&self) -> Normalization {
        Normalization::MinMax
    }
}

impl FastScore for InterPodAffinity {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        let preferences = Preferences::new(cluster, pod);
        if self.ignore_existing_preferences && preferences.is_empty() {
            return Compiled::Idle;
        }
        Compiled::Part(Box::new(Preferred { plugin: self, pod: pod.clone(), preferences, silent: true }))
    }
}
