//! The fast form of preferences: what each pod that comes or leaves adds to the nodes of its domain.

use std::sync::Arc;

use supercargo_framework::fast::{
    Cells, Compiled, DomainScore, FastScore, Normalization, RawScores, ScorePart, Scored, SharedScores,
};
use supercargo_model::{
    Cluster, Name, NodeId, Pod,
    changes::PodChange,
    label_columns::ABSENT,
    pod_classes::{PodClass, TermAbout},
};

use crate::domain_sums::{DomainSums, Remembered, sum_by_node};

use super::{
    InterPodAffinity,
    scoring::{Preferences, prefers_nothing},
    terms::{ByKey, met_by_terms_about},
};

/// If more than one of so many nodes has a score of its own, a column is as good.
const FEW_OF_ALL: usize = 4;
/// How many classes are compared with each other.
const FEW_CLASSES: usize = 8;

/// Preferences, for pods of one signature.
struct Preferred {
    plugin: Arc<InterPodAffinity>,
    pod: Arc<Pod>,
    preferences: Preferences,
    /// No term has selected anybody so far.
    silent: bool,
    /// The sums by domain, instead of a column.
    sums: Option<DomainSums>,
    /// What the terms that the pod which came or left last meets, and its terms that ours meets, are worth by topology key.
    met: Remembered<ByKey>,
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

/// Adds what terms are worth to all nodes that share a domain with the pods that they are about: by domain first, as a
/// domain may have thousands of nodes, and there may be thousands of terms.
fn add_all(cluster: &Cluster, met: &[(Name, &PodClass, i64)], scores: &mut [f64]) {
    let mut keys: Vec<&Name> = met.iter().map(|(key, ..)| key).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut by_domain: Vec<f64> = Vec::new();
    for key in keys {
        let Some(column) = cluster.label_columns().get(key) else {
            continue;
        };
        by_domain.clear();
        by_domain.resize(column.range(), 0.0);
        for (_, group, worth) in met.iter().filter(|(other, ..)| other == key) {
            for (node, count) in group.nodes() {
                let domain = column.of(node);
                if domain != ABSENT {
                    by_domain[domain as usize] += *worth as f64 * f64::from(count);
                }
            }
        }
        for (domain, sum) in by_domain.iter().enumerate().filter(|(_, sum)| **sum != 0.0) {
            for node in column.nodes(domain as u32) {
                scores[node.index()] += sum;
            }
        }
    }
}

impl Preferred {
    /// What our terms are worth to bound pods, and theirs to us, by topology key and class.
    fn met_by_classes<'a>(&self, cluster: &'a Cluster) -> Vec<(Name, &'a PodClass, i64)> {
        let mut met = self.preferences.terms.met_by_classes(cluster);
        let labels = &self.preferences.namespace_labels;
        let worth = |about: &TermAbout<'_>| self.plugin.worth(about.list, about.weight);
        met.extend(met_by_terms_about(cluster, &self.pod, labels, worth));
        met
    }

    fn met_by_pod(&self, cluster: &Cluster, pod: &Pod) -> ByKey {
        let mut met = ByKey::default();
        let theirs = self.plugin.terms_about(&pod.spec, &self.pod, &self.preferences.namespace_labels);
        for (key, worth) in self.preferences.terms.met_by(pod).chain(theirs) {
            met.add(cluster, key, worth);
        }
        met
    }

    fn sums(&self, cluster: &Cluster) -> Option<DomainSums> {
        let met = self.met_by_classes(cluster);
        let mut keys: Vec<&Name> = self.preferences.terms.keys().collect();
        keys.extend(met.iter().map(|(key, ..)| key));
        keys.sort_unstable();
        keys.dedup();
        let mut sums = DomainSums::new(cluster, keys.into_iter());
        for (key, group, worth) in &met {
            let topology = sums.topology(key)?;
            for (node, count) in group.nodes() {
                sums.add(topology, node, *worth as f64 * f64::from(count));
            }
        }
        sums.group(cluster)?;
        Some(sums)
    }
}

/// What pods of a class are worth by one topology key, once each: their terms and ours are often about each other.
fn sum_by_class(met: Vec<(Name, &PodClass, i64)>) -> Vec<(Name, &PodClass, i64)> {
    let mut sums: Vec<(Name, &PodClass, i64)> = Vec::with_capacity(met.len());
    for (key, class, worth) in met {
        // Few have many: then they stay apart.
        let mut lately = sums.iter_mut().rev().take(FEW_CLASSES);
        match lately.find(|(other, of, _)| std::ptr::eq(*of, class) && *other == key) {
            Some((.., sum)) => *sum += worth,
            None => sums.push((key, class, worth)),
        }
    }
    sums
}

/// Changes the sums by what a pod is worth; `None` if they do not know a topology, or too many nodes differ.
fn change(sums: &mut DomainSums, node: NodeId, met: &ByKey, sign: i64) -> Option<()> {
    for (key, worth) in &met.0 {
        let topology = sums.topology(key)?;
        sums.change(topology, node, (sign * worth) as f64)?;
    }
    Some(())
}

fn settle(sums: &mut DomainSums) {
    sums.settle(|sums| sums.iter().sum());
}

impl DomainScore for Preferred {
    fn fill(&mut self, cluster: &Cluster, _: &[f64], column: &mut [f64]) {
        self.sums = None;
        column.fill(0.0);
        let met = self.met_by_classes(cluster);
        add_all(cluster, &met, column);
        self.silent = met.is_empty();
    }

    fn note(&mut self, cluster: &Cluster, change: &PodChange, column: &mut [f64]) -> bool {
        if self.met.get(&change.pod).is_none() {
            let met = self.met_by_pod(cluster, &change.pod);
            self.met.set(&change.pod, met);
        }
        let Some(met) = self.met.get(&change.pod).filter(|met| !met.0.is_empty()) else {
            return false;
        };
        match &mut self.sums {
            Some(sums) => {
                if self::change(sums, change.node, met, change.sign()).is_none() {
                    self.sums = None;
                }
            }
            None => {
                for (key, worth) in &met.0 {
                    add(cluster, key, change.node, (change.sign() * worth) as f64, column);
                }
            }
        }
        self.silent = false;
        true
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

    fn is_uniform(&self, cluster: &Cluster) -> bool {
        self.met_by_classes(cluster).is_empty()
    }

    fn shared(&self, cluster: &Cluster, _: Scored<'_>) -> Option<SharedScores> {
        let mut by_value: Option<(Name, Vec<f64>)> = None;
        let mut own: Vec<(NodeId, f64)> = Vec::new();
        for (key, class, worth) in sum_by_class(self.met_by_classes(cluster)) {
            let Some(label) = cluster.label_columns().get(&key) else {
                continue;
            };
            let counted = class.nodes().map(|(node, count)| (node, worth as f64 * f64::from(count)));
            let counted = counted.filter(|(node, _)| label.of(*node) != ABSENT);
            if label.range() <= SharedScores::MAX_VALUES {
                let (of, sums) = by_value.get_or_insert_with(|| (key.clone(), vec![0.0; label.range()]));
                if *of != key {
                    return None;
                }
                counted.for_each(|(node, worth)| sums[label.of(node) as usize] += worth);
                continue;
            }
            for (node, worth) in counted {
                own.extend(label.nodes(label.of(node)).iter().map(|other| (*other, worth)));
                if own.len() * FEW_OF_ALL > cluster.node_count() {
                    return None;
                }
            }
        }
        let label = by_value.as_ref().and_then(|(key, _)| cluster.label_columns().get(key));
        let shared = |node: NodeId| {
            let (number, (_, sums)) = (label?.of(node), by_value.as_ref()?);
            sums.get(number as usize).copied()
        };
        let own = sum_by_node(own.into_iter()).into_iter();
        let own = own.map(|(node, sum)| (node, sum + shared(node).unwrap_or(0.0))).collect();
        Some(SharedScores { by_value, otherwise: 0.0, own, group: None })
    }

    fn reads_open(&self) -> bool {
        false
    }

    fn settle_among(&mut self, _: usize, _: &mut dyn Iterator<Item = u32>) {}
}

impl FastScore for InterPodAffinity {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        if self.ignore_existing_preferences && prefers_nothing(pod) {
            return Compiled::Idle;
        }
        let scores = RawScores::ByDomain(Box::new(Preferred {
            plugin: self,
            pod: pod.clone(),
            preferences: Preferences::new(cluster, pod),
            silent: true,
            sums: None,
            met: Remembered::default(),
        }));
        Compiled::Part(scores.normalized(Normalization::MinMax))
    }
}
