//! The fast form of preferences: what each pod that comes or leaves adds to the nodes of its domain.

use std::sync::Arc;

use supercargo_framework::fast::{Cells, Compiled, FastScore, Normalization, Redo, ScorePart};
use supercargo_model::{
    Cluster, Labels, Name, NodeId, Pod,
    changes::PodChange,
    label_columns::ABSENT,
    pod::AffinityTerm,
    pod_groups::{PodGroup, TermList},
};

use crate::domain_sums::{DomainSums, Remembered};

use super::{InterPodAffinity, preferred::Preferences};

/// Preferences, for pods of one shape.
struct Preferred {
    plugin: Arc<InterPodAffinity>,
    pod: Arc<Pod>,
    preferences: Preferences,
    /// No term has selected anybody so far.
    silent: bool,
    /// The sums by domain, instead of a column.
    sums: Option<DomainSums>,
    /// The topology key and worth of each term that is met by the pod that came or left last, or meets ours.
    met: Remembered<Vec<(Name, f64)>>,
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

impl Preferred {
    /// Every term that selects bound pods, or us: with the pods that it is about, and what each is worth.
    fn met_by_groups<'a>(
        &'a self,
        cluster: &'a Cluster,
    ) -> impl Iterator<Item = (&'a AffinityTerm, &'a PodGroup, f64)> {
        let ours = self.own().flat_map(move |(term, worth)| {
            let selected = cluster.groups().selected(&term.selector);
            let met = selected.filter(|group| term.matches(&group.sample, &Labels::default()));
            met.map(move |group| (term, group, worth))
        });
        let theirs = (cluster.groups().terms_about(&self.pod.spec))
            .map(|(group, list, weight, term)| (term, group, self.worth(list, weight)))
            .filter(|(term, _, worth)| *worth != 0.0 && self.selects_us(term));
        ours.chain(theirs)
    }

    fn met_by_pod(&self, pod: &Pod) -> Vec<(Name, f64)> {
        let ours = self.own().filter(|(term, _)| term.matches(pod, &Labels::default()));
        ours.chain(self.theirs(pod)).map(|(term, worth)| (term.topology_key.clone(), worth)).collect()
    }

    fn sums(&self, cluster: &Cluster) -> Option<DomainSums> {
        let mut keys: Vec<&Name> = self.own().map(|(term, _)| &term.topology_key).collect();
        keys.extend(self.met_by_groups(cluster).map(|(term, ..)| &term.topology_key));
        keys.sort_unstable();
        keys.dedup();
        let mut sums = DomainSums::new(cluster, keys.into_iter());
        for (term, group, worth) in self.met_by_groups(cluster) {
            let topology = sums.topology(&term.topology_key)?;
            for (node, count) in group.nodes() {
                sums.add(topology, node, worth * f64::from(count));
            }
        }
        sums.group(cluster)?;
        Some(sums)
    }
}

/// Changes the sums by what a pod is worth; `None` if they do not know a topology, or too many nodes differ.
fn change(sums: &mut DomainSums, node: NodeId, met: &[(Name, f64)], sign: f64) -> Option<()> {
    for (key, worth) in met {
        let topology = sums.topology(key)?;
        sums.change(topology, node, sign * worth)?;
    }
    Some(())
}

fn settle(sums: &mut DomainSums) {
    sums.settle(|sums| sums.iter().sum());
}

impl ScorePart for Preferred {
    fn fill(&mut self, cluster: &Cluster, _: &[f64], column: &mut [f64]) {
        self.sums = None;
        column.fill(0.0);
        let mut silent = true;
        for (term, group, worth) in self.met_by_groups(cluster) {
            add_all(cluster, &term.topology_key, group.nodes(), worth, column);
            silent = false;
        }
        self.silent = silent;
    }

    fn score(&self, _: &Cluster, _: NodeId) -> f64 {
        0.0
    }

    fn note(&mut self, cluster: &Cluster, change: &PodChange, column: &mut [f64]) -> Redo {
        if self.met.get(&change.pod).is_none() {
            let met = self.met_by_pod(&change.pod);
            self.met.set(&change.pod, met);
        }
        let met = self.met.get(&change.pod).map_or(&[][..], |met| met);
        if met.is_empty() {
            return Redo::Nothing;
        }
        let sign = change.sign() as f64;
        match &mut self.sums {
            Some(sums) => {
                if self::change(sums, change.node, met, sign).is_none() {
                    self.sums = None;
                }
            }
            None => {
                for (key, worth) in met {
                    add(cluster, key, change.node, sign * worth, column);
                }
            }
        }
        self.silent = false;
        Redo::All
    }

    fn settle(&mut self, _: &Cluster, _: &mut [f64]) {
        if let Some(sums) = &mut self.sums {
            settle(sums);
        }
    }

    fn use_cells(&mut self, cluster: &Cluster) -> bool {
        self.sums = self.sums(cluster);
        if let Some(sums) = &mut self.sums {
            settle(sums);
        }
        self.sums.is_some()
    }

    fn cells(&self) -> Option<&Cells> {
        self.sums.as_ref().map(DomainSums::cells)
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
        Compiled::Part(Box::new(Preferred {
            plugin: self,
            pod: pod.clone(),
            preferences,
            silent: true,
            sums: None,
            met: Remembered::default(),
        }))
    }
}
