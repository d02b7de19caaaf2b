//! Terms that should hold: the pod's preferences, those of the pods that run already, and the pull of their requirements.

use std::{collections::HashMap, sync::Arc};

use supercargo_framework::{
    ScoreInput, Status, Verdict, normalize,
    points::{NormalizeScore, PreScore, PreScoreOutcome, ScoreNode},
};
use supercargo_model::{Cluster, Labels, Name, Node, NodeInfo, Pod, PodSpec, pod_classes::TermList};

use super::{
    InterPodAffinity,
    terms::{ByKey, WeightedTerms},
};

/// Up to so many terms of a bound pod are asked pod by pod; of more, what they come to is remembered for its spec.
const FEW_TERMS: usize = 8;

/// The sum of the weights in each domain: by a node label's key, then by its value.
#[derive(Clone, Default)]
struct DomainScores(HashMap<Name, HashMap<Name, i64>>);

impl DomainScores {
    fn add(&mut self, key: &Name, worth: i64, node: &Node) {
        let Some(value) = node.labels.get(key) else {
            return;
        };
        if let Some(sum) = self.0.get_mut(key).and_then(|by_value| by_value.get_mut(value)) {
            *sum += worth;
            return;
        }
        self.0.entry(key.clone()).or_default().insert(value.clone(), worth);
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
    pub(super) terms: WeightedTerms,
    pub(super) namespace_labels: Labels,
}

impl Preferences {
    pub(super) fn new(cluster: &Cluster, pod: &Pod) -> Self {
        let (near, far) = (&pod.spec.pod_affinity.preferred, &pod.spec.pod_anti_affinity.preferred);
        let near = near.iter().map(|w| (&w.term, preferred_near(w.weight.into())));
        let far = far.iter().map(|w| (&w.term, preferred_far(w.weight.into())));
        Self {
            terms: WeightedTerms::new(cluster, near.chain(far)),
            namespace_labels: cluster.namespace_labels(&pod.namespace),
        }
    }
}

/// What a preferred term of affinity is worth.
fn preferred_near(weight: i64) -> i64 {
    weight
}

/// What a preferred term of anti-affinity is worth.
fn preferred_far(weight: i64) -> i64 {
    -weight
}

/// Whether a pod prefers nothing.
pub(super) fn prefers_nothing(pod: &Pod) -> bool {
    pod.spec.pod_affinity.preferred.is_empty() && pod.spec.pod_anti_affinity.preferred.is_empty()
}

impl InterPodAffinity {
    /// What a term of a bound pod is worth to a pod that it selects; a required one has a weight of 1.
    pub(super) fn worth(&self, list: TermList, weight: i64) -> i64 {
        match list {
            TermList::RequiredNear => i64::from(self.hard_weight) * weight,
            TermList::PreferredNear => preferred_near(weight),
            TermList::PreferredFar => preferred_far(weight),
            TermList::RequiredFar => 0,
        }
    }

    /// The terms of a bound pod that select ours, with what they are worth.
    pub(super) fn terms_about<'a>(
        &self,
        existing: &'a PodSpec,
        pod: &'a Pod,
        namespace_labels: &'a Labels,
    ) -> impl Iterator<Item = (&'a Name, i64)> + 'a {
        let (near, far) = (&existing.pod_affinity, &existing.pod_anti_affinity);
        let pull = self.worth(TermList::RequiredNear, 1);
        let required = near.required.iter().map(move |term| (term, pull));
        let preferred = near.preferred.iter().map(|w| (&w.term, preferred_near(w.weight.into())));
        let unwanted = far.preferred.iter().map(|w| (&w.term, preferred_far(w.weight.into())));
        (required.chain(preferred).chain(unwanted))
            .filter(move |(term, worth)| *worth != 0 && term.matches(pod, namespace_labels))
            .map(|(term, worth)| (&term.topology_key, worth))
    }

    /// Adds what pods with many terms of their own mean to a pod: it is asked once for all of a spec.
    fn add_terms_about(
        &self,
        scores: &mut DomainScores,
        known: &mut HashMap<*const PodSpec, ByKey>,
        cluster: &Cluster,
        (pod, namespace_labels): (&Pod, &Labels),
        (existing, node): (&Arc<PodSpec>, &Node),
    ) {
        let (near, far) = (&existing.pod_affinity, &existing.pod_anti_affinity);
        if near.required.len() + near.preferred.len() + far.preferred.len() <= FEW_TERMS {
            for (key, worth) in self.terms_about(existing, pod, namespace_labels) {
                scores.add(key, worth, node);
            }
            return;
        }
        let by_key = known.entry(Arc::as_ptr(existing)).or_insert_with(|| {
            let mut by_key = ByKey::default();
            for (key, worth) in self.terms_about(existing, pod, namespace_labels) {
                by_key.add(cluster, key, worth);
            }
            by_key
        });
        for (key, worth) in &by_key.0 {
            scores.add(key, *worth, node);
        }
    }

    fn domain_scores(&self, cluster: &Cluster, pod: &Pod) -> DomainScores {
        let Preferences { terms, namespace_labels } = Preferences::new(cluster, pod);
        let mut scores = DomainScores::default();
        if terms.are_many() {
            for (key, group, worth) in terms.met_by_classes(cluster) {
                for (node, count) in group.nodes() {
                    scores.add(&key, worth * i64::from(count), &cluster.node_at(node).node);
                }
            }
        }
        let mut known = HashMap::new();
        for node in cluster.nodes() {
            for existing in &node.pods {
                if !terms.are_many() {
                    for (key, worth) in terms.met_by(existing) {
                        scores.add(key, worth, &node.node);
                    }
                }
                // Only pods with terms can mean something to the pod.
                if existing.spec.has_pod_affinity() {
                    let about = (&existing.spec, &*node.node);
                    self.add_terms_about(&mut scores, &mut known, cluster, (pod, &namespace_labels), about);
                }
            }
        }
        scores
    }
}

impl PreScore for InterPodAffinity {
    fn pre_score(&self, cluster: &Cluster, pod: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        if self.ignore_existing_preferences && prefers_nothing(pod) {
            return Ok(PreScoreOutcome::Skip);
        }
        let scores = self.domain_scores(cluster, pod);
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
