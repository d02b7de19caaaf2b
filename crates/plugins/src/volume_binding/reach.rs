//! Whether a node can reach a volume.

use supercargo_model::{
    Cluster, Labels, NodeId, NodeSet,
    selector::{NodeSelector, NodeSelectorTerm, Operator},
};

use crate::{fast_parts::LabelValue, required_nodes::with_value};

/// Goes by labels alone: kube-scheduler passes over conditions on a node's name here.
pub(super) fn reaches(affinity: Option<&NodeSelector>, node: &Labels) -> bool {
    affinity.is_none_or(|affinity| {
        affinity.node_selector_terms.iter().any(|term| counts(term) && term_matches(term, node))
    })
}

fn counts(term: &NodeSelectorTerm) -> bool {
    !term.is_empty() && term.defect().is_none()
}

fn term_matches(term: &NodeSelectorTerm, node: &Labels) -> bool {
    term.match_expressions.iter().all(|expression| expression.matches(node))
}

/// The value of a label that tells the nodes which can reach a volume, if that is all it says.
pub(super) fn reached_by_value(cluster: &Cluster, affinity: &NodeSelector) -> Option<LabelValue> {
    let [term] = &affinity.node_selector_terms[..] else {
        return None;
    };
    match &term.match_expressions[..] {
        [only] if only.operator == Operator::In && only.values.len() == 1 && counts(term) => {
            LabelValue::of(cluster, &only.key, only.values.first()?)
        }
        _ => None,
    }
}

/// The nodes that can reach a volume: found by their labels, where its terms name values.
pub(super) fn reached_by(cluster: &Cluster, affinity: &NodeSelector) -> NodeSet {
    let mut nodes = NodeSet::default();
    for term in affinity.node_selector_terms.iter().filter(|term| counts(term)) {
        let matches = |node: &NodeId| term_matches(term, &cluster.node_at(*node).node.labels);
        match term.match_expressions.iter().find(|expression| expression.operator == Operator::In) {
            Some(only) if term.match_expressions.len() == 1 => {
                with_value(cluster, only).for_each(|node| nodes.insert(node));
            }
            Some(one) => with_value(cluster, one).filter(matches).for_each(|node| nodes.insert(node)),
            None => cluster.columns().live.iter().filter(matches).for_each(|node| nodes.insert(node)),
        }
    }
    nodes
}
