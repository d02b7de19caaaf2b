//! The fast form: nodes are found by their labels rather than asked one by one.

use std::{collections::BTreeSet, sync::Arc};

use supercargo_framework::{
    Status,
    fast::{
        CLOSED, Compiled, FastFilter, FastScore, FilterPart, NodeFilter, Normalization, OPEN, RawScores,
        ScorePart, SharedScores,
    },
};
use supercargo_model::{
    Cluster, NodeId, NodeSet, Pod,
    bits::Bits,
    selection::NodeSelection,
    selector::{NodeSelectorTerm, Operator, Requirement},
};

use super::{NOT_ENFORCED, NOT_MATCHED, NodeAffinity, counts, named_nodes};
use crate::required_nodes::{RequiredNodes, are_many, with_value};

/// The nodes that a term selects.
fn selected(cluster: &Cluster, term: &NodeSelectorTerm) -> Vec<NodeId> {
    if term.is_empty() || term.defect().is_some() {
        return Vec::new();
    }
    let matches = |node: &NodeId| {
        let node = &cluster.node_at(*node).node;
        term.matches(&node.name, &node.labels)
    };
    match term.match_expressions.iter().find(|r| r.operator == Operator::In) {
        Some(only) if term.match_expressions.len() == 1 && term.match_fields.is_empty() => {
            with_value(cluster, only).collect()
        }
        Some(pivot) => with_value(cluster, pivot).filter(matches).collect(),
        None => cluster.columns().live.iter().filter(matches).collect(),
    }
}

/// The nodes that a pod's required affinity allows.
struct Allowed {
    plugin: Arc<NodeAffinity>,
    nodes: NodeSet,
}

impl NodeFilter for Allowed {
    fn close(&mut self, _: &Cluster, open: &mut [f64]) {
        for (i, word) in open.chunks_mut(64).enumerate() {
            for (bit, open) in word.iter_mut().enumerate() {
                if *open == OPEN && !self.nodes.contains_index(i * 64 + bit) {
                    *open = CLOSED;
                }
            }
        }
    }

    fn passes(&self, _: &Cluster, node: NodeId) -> bool {
        self.nodes.contains(node)
    }

    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        let enforced = self.plugin.enforces(&cluster.node_at(node).node);
        Some(Status::unresolvable(if enforced { NOT_MATCHED } else { NOT_ENFORCED }))
    }
}

impl FastFilter for NodeAffinity {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let spec = &pod.spec;
        let required = spec.node_affinity.required.as_ref();
        if required.is_none() && spec.node_selector.is_empty() && self.added.required.is_none() {
            return Compiled::Idle;
        }
        // Named nodes narrow the search, which moves where the next one starts.
        if named_nodes(&spec.node_affinity).is_some() {
            return Compiled::NoFastForm;
        }
        let required_nodes = RequiredNodes::new(cluster, spec);
        let candidates: Vec<NodeId> = match (spec.node_selector.iter().next(), required) {
            _ if required_nodes.known().is_some() => {
                required_nodes.known().into_iter().flat_map(NodeSet::iter).collect()
            }
            (Some((key, value)), _) => {
                with_value(cluster, &Requirement::is_in(key.clone(), [value.clone()])).collect()
            }
            (None, Some(required)) => {
                required.node_selector_terms.iter().flat_map(|term| selected(cluster, term)).collect()
            }
            (None, None) => cluster.columns().live.iter().collect(),
        };
        let allowed = candidates.into_iter().filter(|id| {
            let node = cluster.node_at(*id);
            self.enforces(&node.node) && required_nodes.contain(spec, node)
        });
        let nodes = allowed.collect();
        Compiled::Part(FilterPart::Fixed(Box::new(Allowed { plugin: self, nodes })))
    }
}

impl FastScore for NodeAffinity {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        let preferred = &pod.spec.node_affinity.preferred;
        if preferred.iter().any(|term| counts(term) && term.preference.defect().is_some()) {
            return Compiled::NoFastForm;
        }
        if preferred.is_empty() && self.added.preferred.is_empty() {
            return Compiled::Idle;
        }
        let scores = match self.shared_scores(cluster, pod) {
            Some(shared) => RawScores::Shared(shared),
            None => RawScores::Fixed(self.scores(cluster, pod)),
        };
        Compiled::Part(scores.normalized(Normalization::Proportional))
    }
}

impl NodeAffinity {
    /// The same where all preferences are about values of one label; `None` if they are not.
    fn shared_scores(&self, cluster: &Cluster, pod: &Pod) -> Option<SharedScores> {
        let preferred = &pod.spec.node_affinity.preferred;
        let mut terms = self.added.preferred.iter().chain(preferred).filter(|term| counts(term)).peekable();
        let key = terms.peek()?.preference.match_expressions.first()?.key.clone();
        let label = cluster.label_columns().get(&key)?;
        if label.range() > SharedScores::MAX_VALUES {
            return None;
        }
        let mut by_value = vec![0.0; label.range()];
        for term in terms {
            match (&term.preference.match_expressions[..], &term.preference.match_fields[..]) {
                ([only], []) if only.operator == Operator::In && only.key == key => {
                    let numbers: BTreeSet<u32> =
                        only.values.iter().filter_map(|value| label.number(value)).collect();
                    numbers.iter().for_each(|number| by_value[*number as usize] += f64::from(term.weight));
                }
                _ => return None,
            }
        }
        Some(SharedScores { by_value: Some((key, by_value)), ..SharedScores::default() })
    }

    /// What the preferences that each node meets are worth together, by place.
    pub(super) fn scores(&self, cluster: &Cluster, pod: &Pod) -> Vec<f64> {
        let mut scores = vec![0.0; cluster.columns().len()];
        let terms = || {
            let preferred = &pod.spec.node_affinity.preferred;
            self.added.preferred.iter().chain(preferred).filter(|term| counts(term))
        };
        if are_many(terms().map(|term| &term.preference)) {
            let (mut selection, mut nodes) = (NodeSelection::new(cluster), Bits::default());
            for term in terms() {
                selection.select(&term.preference, &mut nodes);
                nodes.add_to(&mut scores, f64::from(term.weight));
            }
            return scores;
        }
        for term in terms() {
            for node in selected(cluster, &term.preference) {
                scores[node.index()] += f64::from(term.weight);
            }
        }
        scores
    }
}
