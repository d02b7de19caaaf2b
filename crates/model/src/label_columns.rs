//! The labels of all nodes side by side: which value each node has, and which nodes have a value.

use crate::{HashMap, Labels, Name, NodeId, work};

/// Stands for "the node does not have the label".
pub const ABSENT: u32 = u32::MAX;

/// One label of all nodes. Its values are numbered: they are the domains of a topology.
#[derive(Clone, Debug, Default)]
pub struct LabelColumn {
    numbers: HashMap<Name, u32>,
    values: Vec<Name>,
    nodes: Vec<Vec<NodeId>>,
    free: Vec<u32>,
    of: Vec<u32>,
    /// How many nodes have the label.
    labelled: usize,
    /// Which nodes have which value has changed since another of these was told.
    revision: u64,
}

impl LabelColumn {
    /// The number of a node's value, or [`ABSENT`].
    #[inline]
    pub fn of(&self, node: NodeId) -> u32 {
        self.of.get(node.index()).copied().unwrap_or(ABSENT)
    }

    /// The numbers of all nodes' values, by place. Places past its end are [`ABSENT`].
    #[inline]
    pub fn numbers(&self) -> &[u32] {
        &self.of
    }

    /// The number of a value.
    pub fn number(&self, value: &str) -> Option<u32> {
        self.numbers.get(value).copied()
    }

    /// The value of a number.
    pub fn value(&self, number: u32) -> Option<&Name> {
        self.values.get(number as usize)
    }

    /// The nodes that have a value, by its number.
    #[inline]
    pub fn nodes(&self, number: u32) -> &[NodeId] {
        let nodes: &[NodeId] = self.nodes.get(number as usize).map_or(&[], |nodes| nodes);
        work::done(nodes.len());
        nodes
    }

    /// Another number whenever which nodes have which value becomes another; no other label has it.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether all of so many nodes have the label.
    #[inline]
    pub fn all_have(&self, nodes: usize) -> bool {
        self.labelled == nodes
    }

    /// One past the highest number of a value.
    pub fn range(&self) -> usize {
        self.values.len()
    }

    fn set(&mut self, node: NodeId, value: &Name) {
        let number = match self.numbers.get(value) {
            Some(number) => *number,
            None => self.add(value),
        };
        if self.of.len() <= node.index() {
            self.of.resize(node.index() + 1, ABSENT);
        }
        self.of[node.index()] = number;
        self.labelled += 1;
        self.nodes[number as usize].push(node);
    }

    fn add(&mut self, value: &Name) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.values.push(value.clone());
            self.nodes.push(Vec::new());
            (self.values.len() - 1) as u32
        });
        self.values[number as usize] = value.clone();
        self.numbers.insert(value.clone(), number);
        number
    }

    fn unset(&mut self, node: NodeId) {
        let number = self.of(node);
        if number == ABSENT {
            return;
        }
        self.of[node.index()] = ABSENT;
        self.labelled -= 1;
        let nodes = &mut self.nodes[number as usize];
        if let Some(i) = nodes.iter().position(|other| *other == node) {
            nodes.swap_remove(i);
        }
        if nodes.is_empty() {
            self.numbers.remove(&self.values[number as usize]);
            self.free.push(number);
        }
    }
}

/// The labels of all nodes, by key.
#[derive(Clone, Debug, Default)]
pub struct LabelColumns {
    by_key: HashMap<Name, LabelColumn>,
    /// The last revision of any of them.
    revision: u64,
}

impl LabelColumns {
    /// A label; `None` if no node has it.
    pub fn get(&self, key: &str) -> Option<&LabelColumn> {
        self.by_key.get(key)
    }

    /// How many keys there are, and how many values of all of them together.
    pub(crate) fn kept(&self) -> (usize, usize) {
        (self.by_key.len(), self.by_key.values().map(|column| column.values.len()).sum())
    }

    /// A node's labels have become others; one that comes had none, and one that goes has none any more.
    pub(crate) fn replace(&mut self, node: NodeId, old: &Labels, new: &Labels) {
        for (key, _) in old.iter().filter(|(key, value)| new.get(key) != Some(value)) {
            let Some(column) = self.by_key.get_mut(key) else {
                continue;
            };
            column.unset(node);
            self.revision += 1;
            column.revision = self.revision;
            if column.numbers.is_empty() {
                self.by_key.remove(key);
            }
        }
        for (key, value) in new.iter().filter(|(key, value)| old.get(key) != Some(value)) {
            let column = self.by_key.entry(key.clone()).or_default();
            column.set(node, value);
            self.revision += 1;
            column.revision = self.revision;
        }
    }
}
