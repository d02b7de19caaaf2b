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

/// Weights by domain, before they are given out to the nodes.
struct ByDomain<'a> {
    cluster: &'a Cluster,
    scores: Vec<f64>,
}

impl ByDomain<'_> {
    fn add_all(&mut self, key: &str, nodes: impl Iterator<Item = (NodeId, u32)>, weight: f64) {
        let Some(column) = self.cluster.label_columns().get(key) else {
            return;
        };
        let mut by_domain: Vec<f64> = vec![0.0; column.range()];
        for (node, count) in nodes {
            let domain = column.of(node);
            if domain != ABSENT {
                by_domain[domain as usize] += weight * f64::from(count);
            }
        }
        for (domain, weight) in by_domain.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            for node in column.nodes(domain as u32) {
                self.scores[node.index()] += weight;
            }
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
        let mut all = ByDomain { cluster, scores: vec![0.0; column.len()] };
        let anywhere = Labels::default();
        for (term, worth) in self.own() {
            for group in cluster.groups().selected(&term.selector) {
                if term.matches(&group.sample, &anywhere) {
                    all.add_all(&term.topology_key, group.nodes(), worth);
                }
            }
        }
        for (group, list, weight, term) in cluster.groups().terms_about(&self.pod.spec) {
            let worth = self.worth(list, weight);
            if worth != 0.0 && self.selects_us(term) {
                all.add_all(&term.topology_key, group.nodes(), worth);
            }
        }
        column.copy_from_slice(&all.scores);
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
        redo
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
        Compiled::Part(Box::new(Preferred { plugin: self, pod: pod.clone(), preferences }))
    }
}
