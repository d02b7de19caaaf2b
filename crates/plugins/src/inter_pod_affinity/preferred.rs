//! Terms that should hold: the pod's preferences, those of the pods that run already, and the pull of their requirements.

use std::collections::HashMap;

use supercargo_framework::{
    ScoreInput, Status, Verdict, normalize,
    points::{NormalizeScore, PreScore, PreScoreOutcome, ScoreNode},
};
use supercargo_model::{
    Cluster, Labels, Name, Node, NodeInfo, Pod,
    pod::{AffinityTerm, WeightedAffinityTerm},
};

use super::{InterPodAffinity, resolved};

/// The sum of the weights in each domain: by a node label's key, then by its value.
#[derive(Clone, Default)]
struct DomainScores(HashMap<Name, HashMap<Name, i64>>);

impl DomainScores {
    fn add(
        &mut self,
        term: &AffinityTerm,
        weight: i64,
        selected: &Pod,
        namespace_labels: &Labels,
        node: &Node,
    ) {
        if !term.matches(selected, namespace_labels) {
            return;
        }
        if let Some(value) = node.labels.get(&term.topology_key) {
            let by_value = self.0.entry(term.topology_key.clone()).or_default();
            *by_value.entry(value.clone()).or_default() += weight;
        }
    }

    fn of(&self, node: &Node) -> i64 {
        let score = |(key, by_value): (&Name, &HashMap<Name, i64>)| {
            node.labels.get(key).and_then(|value| by_value.get(value)).copied()
        };
        self.0.iter().filter_map(score).sum()
    }
}

/// What a pod prefers, with namespaces resolved.
pub(super) struct Preferences {
    pub(super) near: Vec<WeightedAffinityTerm>,
    pub(super) far: Vec<WeightedAffinityTerm>,
    pub(super) namespace_labels: Labels,
}

impl Preferences {
    pub(super) fn new(cluster: &Cluster, pod: &Pod) -> Self {
        let resolve = |terms: &[WeightedAffinityTerm]| {
            let one = |weighted: &WeightedAffinityTerm| WeightedAffinityTerm {
                weight: weighted.weight,
                term: resolved(&weighted.term, cluster),
            };
            terms.iter().map(one).collect()
        };
        Self {
            near: resolve(&pod.spec.pod_affinity.preferred),
            far: resolve(&pod.spec.pod_anti_affinity.preferred),
            namespace_labels: cluster.namespace_labels(&pod.namespace),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.near.is_empty() && self.far.is_empty()
    }
}

impl InterPodAffinity {
    /// What an existing pod means for a new one, in both directions.
    fn weigh(
        &self,
        scores: &mut DomainScores,
        preferences: &Preferences,
        pod: &Pod,
        existing: &Pod,
        node: &Node,
    ) {
        let anywhere = Labels::default();
        for near in &preferences.near {
            scores.add(&near.term, i64::from(near.weight), existing, &anywhere, node);
        }
        for far in &preferences.far {
            scores.add(&far.term, -i64::from(far.weight), existing, &anywhere, node);
        }
        let ours = &preferences.namespace_labels;
        if self.hard_weight > 0 {
            for term in &existing.spec.pod_affinity.required {
                scores.add(term, i64::from(self.hard_weight), pod, ours, node);
            }
        }
        for near in &existing.spec.pod_affinity.preferred {
            scores.add(&near.term, i64::from(near.weight), pod, ours, node);
        }
        for far in &existing.spec.pod_anti_affinity.preferred {
            scores.add(&far.term, -i64::from(far.weight), pod, ours, node);
        }
    }
}

impl PreScore for InterPodAffinity {
    fn pre_score(&self, cluster: &Cluster, pod: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        let preferences = Preferences::new(cluster, pod);
        if self.ignore_existing_preferences && preferences.is_empty() {
            return Ok(PreScoreOutcome::Skip);
        }
        let mut scores = DomainScores::default();
        for node in cluster.nodes() {
            // Without preferences of its own, only pods with terms can mean something to the pod.
            for existing in &node.pods {
                if !preferences.is_empty() || existing.spec.has_pod_affinity() {
                    self.weigh(&mut scores, &preferences, pod, existing, &node.node);
                }
            }
        }
        Ok(if scores.0.is_empty() { PreScoreOutcome::Skip } else { PreScoreOutcome::go(scores) })
    }
}

impl ScoreNode for InterPodAffinity {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        Ok(input.prepared.get::<DomainScores>()?.of(&node.node))
    }
}

impl NormalizeScore for InterPodAffinity {
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::min_max(column);
        Ok(())
    }
}
