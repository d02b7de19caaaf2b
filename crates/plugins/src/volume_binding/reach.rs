//! Whether a node can reach a volume.

use supercargo_model::{Labels, selector::NodeSelector};

/// Goes by labels alone: kube-scheduler passes over conditions on a node's name here.
pub(super) fn reaches(affinity: Option<&NodeSelector>, node: &Labels) -> bool {
    affinity.is_none_or(|affinity| {
        affinity.node_selector_terms.iter().any(|term| {
            !term.is_empty()
                && term.defect().is_none()
                && term.match_expressions.iter().all(|expression| expression.matches(node))
        })
    })
}
