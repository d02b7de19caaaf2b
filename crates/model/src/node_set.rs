//! A set of nodes, as bits.

use crate::NodeId;

const BITS: usize = u64::BITS as usize;

/// A set of nodes by their places in the cluster's tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSet {
    words: Vec<u64>,
}

impl NodeSet {
    /// Whether a node is in.
    #[inline]
    pub fn contains(&self, node: NodeId) -> bool {
        self.contains_index(node.index())
    }

    /// Whether the node at a place is in.
    #[inline]
    pub fn contains_index(&self, index: usize) -> bool {
        self.words.get(index / BITS).is_some_and(|word| word >> (index % BITS) & 1 == 1)
    }

    /// Puts a node in.
    pub fn insert(&mut self, node: NodeId) {
        let word = node.index() / BITS;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (node.index() % BITS);
    }

    /// Takes a node out.
    pub fn remove(&mut self, node: NodeId) {
        if let Some(word) = self.words.get_mut(node.index() / BITS) {
            *word &= !(1 << (node.index() % BITS));
        }
    }

    /// How many are in.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether none is in.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The nodes, by place.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = NodeId> {
        self.words.iter().enumerate().flat_map(|(i, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                (left != 0).then(|| {
                    let bit = left.trailing_zeros() as usize;
                    left &= left - 1;
                    NodeId::from_index(i * BITS + bit)
                })
            })
        })
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Self::default();
        for node in nodes {
            set.insert(node);
        }
        set
    }
}
