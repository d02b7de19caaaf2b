//! What a pod requires of nodes: its node selector and its required node affinity.

use std::{collections::BTreeSet, sync::Arc};

use supercargo_model::{
    Cluster, Node, NodeId, NodeInfo, NodeSet, PodSpec,
    bits::Bits,
    selection::{FEW_COMPARISONS, NodeSelection, comparisons},
    selector::{NodeSelector, NodeSelectorTerm, Requirement},
};

/// Whether a node meets what a pod requires of nodes.
pub(crate) fn required_node_affinity(pod: &PodSpec, node: &Node) -> bool {
    has_selected_labels(pod, node)
        && (pod.node_affinity.required.as_ref())
            .is_none_or(|required| required.matches(&node.name, &node.labels))
}

/// A node has few labels, so that it fails the longest selector soon.
fn has_selected_labels(pod: &PodSpec, node: &Node) -> bool {
    (pod.node_selector.iter()).all(|(key, value)| node.labels.get(key) == Some(value))
}

/// The nodes that have one of a requirement's values.
pub(crate) fn with_value<'a>(
    cluster: &'a Cluster,
    requirement: &'a Requirement,
) -> impl Iterator<Item = NodeId> + 'a {
    let column = cluster.label_columns().get(&requirement.key);
    let numbers: BTreeSet<u32> =
        requirement.values.iter().filter_map(|value| column?.number(value)).collect();
    numbers.into_iter().flat_map(move |number| column.map_or(&[][..], |c| c.nodes(number))).copied()
}

/// Whether terms are worth answering by label rather than node by node.
pub(crate) fn are_many<'a>(terms: impl Iterator<Item = &'a NodeSelectorTerm>) -> bool {
    let of_term =
        |term: &NodeSelectorTerm| 1 + comparisons(&term.match_expressions) + term.match_fields.len();
    terms.map(of_term).sum::<usize>() > FEW_COMPARISONS
}

/// The nodes that meet what a pod requires of nodes. Where it requires much, they are worked out for all nodes at once:
/// requirements × (nodes / 64) bit operations rather than requirements × nodes comparisons.
#[derive(Clone)]
pub(crate) struct RequiredNodes(Option<Arc<NodeSet>>);

impl RequiredNodes {
    pub(crate) fn new(cluster: &Cluster, pod: &PodSpec) -> Self {
        let required = pod.node_affinity.required.as_ref();
        let many = required.filter(|required| are_many(required.node_selector_terms.iter()));
        Self(many.map(|required| Arc::new(selected(cluster, pod, required))))
    }

    pub(crate) fn contain(&self, pod: &PodSpec, node: &NodeInfo) -> bool {
        match &self.0 {
            Some(nodes) => nodes.contains(node.id),
            None => required_node_affinity(pod, &node.node),
        }
    }

    /// The nodes, if they were worked out.
    pub(crate) fn known(&self) -> Option<&NodeSet> {
        self.0.as_deref()
    }
}

fn selected(cluster: &Cluster, pod: &PodSpec, required: &NodeSelector) -> NodeSet {
    let mut selection = NodeSelection::new(cluster);
    let (mut all, mut by_term) = (Bits::default(), Bits::default());
    for term in &required.node_selector_terms {
        selection.select(term, &mut by_term);
        all.add_all(&by_term);
    }
    let nodes = NodeSet::from(all);
    nodes.iter().filter(|node| has_selected_labels(pod, &cluster.node_at(*node).node)).collect()
}
