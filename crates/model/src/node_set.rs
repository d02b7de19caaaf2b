//! A set of nodes, as bits.

use crate::{NodeId, bits::Bits};

/// A set of nodes by their places in the cluster's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet(Bits);

impl NodeSet {
    /// Whether a node is in.
    #[inline]
    pub fn contains(&self, node: NodeId) -> bool {
        self.0.contains(node.index())
    }

    /// Whether the node at a place is in.
    #[inline]
    pub fn contains_index(&self, index: usize) -> bool {
        self.0.contains(index)
    }

    /// Puts a node in.
    pub fn insert(&mut self, node: NodeId) {
        self.0.insert(node.index());
    }

    /// Takes a node out.
    pub fn remove(&mut self, node: NodeId) {
        self.0.remove(node.index());
    }

    /// How many are in.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The places of the nodes.
    pub fn places(&self) -> &Bits {
        &self.0
    }

    /// The nodes, by place.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.0.iter().map(NodeId::from_index)
    }
}

impl From<Bits> for NodeSet {
    fn from(places: Bits) -> Self {
        Self(places)
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        Self(nodes.into_iter().map(NodeId::index).collect())
    }
}
