//! The numbers of all nodes side by side, for loops that look at every node.
//!
//! Amounts are kept as `f64` because that is what vector units divide. Every amount up to 2⁵³ is exact there; a node with
//! a larger one is listed in [`Columns::inexact`], and must be looked at on its own.

use crate::{HashMap, Name, Node, NodeId, NodeInfo, node_set::NodeSet, taint::Taint};

/// Whole numbers up to this are exact as `f64`.
const EXACT: i64 = 1 << 53;

/// What there is of a resource, and what is taken.
#[derive(Clone, Debug, Default)]
pub struct ResourceColumn {
    /// What pods may use.
    pub allocatable: Vec<f64>,
    /// What pods hold.
    pub used: Vec<f64>,
}

impl ResourceColumn {
    fn grow(&mut self, len: usize) {
        self.allocatable.resize(len, 0.0);
        self.used.resize(len, 0.0);
    }
}

/// Nodes that are alike in who may enter: the same taints, and cordoned or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaintClass {
    /// Cordoned.
    pub unschedulable: bool,
    /// The taints.
    pub taints: Vec<Taint>,
}

/// The columns. Places without a node hold zeros.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// The places that hold a node.
    pub live: NodeSet,
    /// Thousandths of a core.
    pub cpu: ResourceColumn,
    /// Bytes.
    pub memory: ResourceColumn,
    /// Bytes.
    pub ephemeral_storage: ResourceColumn,
    /// Numbers of pods.
    pub pods: ResourceColumn,
    /// cpu that pods hold, with a default for containers that ask for none.
    pub cpu_or_default: Vec<f64>,
    /// Memory that pods hold, with a default for containers that ask for none.
    pub memory_or_default: Vec<f64>,
    /// Which of the taint classes a node is of.
    pub taint_class: Vec<u32>,
    /// The taint classes; some may have no nodes any more.
    pub taint_classes: Vec<TaintClass>,
    /// Nodes with an amount that `f64` cannot hold exactly.
    pub inexact: NodeSet,
    scalars: HashMap<Name, ResourceColumn>,
}

impl Columns {
    /// The column of a resource that is counted besides the others; `None` if no node has it and no pod holds it.
    pub fn scalar(&self, resource: &str) -> Option<&ResourceColumn> {
        self.scalars.get(resource)
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.taint_class.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.taint_class.is_empty()
    }

    pub(crate) fn grow(&mut self, len: usize) {
        for column in [&mut self.cpu, &mut self.memory, &mut self.ephemeral_storage, &mut self.pods] {
            column.grow(len);
        }
        for column in self.scalars.values_mut() {
            column.grow(len);
        }
        self.cpu_or_default.resize(len, 0.0);
        self.memory_or_default.resize(len, 0.0);
        self.taint_class.resize(len, 0);
    }

    /// Takes over what a node is.
    pub(crate) fn set_node(&mut self, id: NodeId, node: &Node) {
        let (i, all) = (id.index(), &node.allocatable);
        self.live.insert(id);
        self.cpu.allocatable[i] = all.milli_cpu as f64;
        self.memory.allocatable[i] = all.memory as f64;
        self.ephemeral_storage.allocatable[i] = all.ephemeral_storage as f64;
        self.pods.allocatable[i] = all.pods as f64;
        for column in self.scalars.values_mut() {
            column.allocatable[i] = 0.0;
        }
        for (name, amount) in &all.scalars {
            self.scalar_mut(name).allocatable[i] = *amount as f64;
        }
        let class = TaintClass { unschedulable: node.unschedulable, taints: node.taints.clone() };
        let known = self.taint_classes.iter().position(|other| *other == class);
        self.taint_class[i] = known.unwrap_or_else(|| {
            self.taint_classes.push(class);
            self.taint_classes.len() - 1
        }) as u32;
    }

    /// Takes over what the pods on a node hold.
    pub(crate) fn set_load(&mut self, node: &NodeInfo) {
        let (i, held) = (node.id.index(), &node.requested);
        self.cpu.used[i] = held.milli_cpu as f64;
        self.memory.used[i] = held.memory as f64;
        self.ephemeral_storage.used[i] = held.ephemeral_storage as f64;
        self.pods.used[i] = node.pods.len() as f64;
        self.cpu_or_default[i] = node.requested_or_default_milli_cpu as f64;
        self.memory_or_default[i] = node.requested_or_default_memory as f64;
        for (name, amount) in &held.scalars {
            self.scalar_mut(name).used[i] = *amount as f64;
        }
        if is_exact(node) {
            self.inexact.remove(node.id);
        } else {
            self.inexact.insert(node.id);
        }
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        let i = id.index();
        self.live.remove(id);
        self.inexact.remove(id);
        let all = [&mut self.cpu, &mut self.memory, &mut self.ephemeral_storage, &mut self.pods];
        for column in all.into_iter().chain(self.scalars.values_mut()) {
            column.allocatable[i] = 0.0;
            column.used[i] = 0.0;
        }
        self.cpu_or_default[i] = 0.0;
        self.memory_or_default[i] = 0.0;
        self.scalars.retain(|_, c| c.allocatable.iter().chain(&c.used).any(|amount| *amount != 0.0));
    }

    fn scalar_mut(&mut self, name: &Name) -> &mut ResourceColumn {
        let len = self.len();
        let column = self.scalars.entry(name.clone()).or_default();
        if column.used.len() < len {
            column.grow(len);
        }
        column
    }
}

fn is_exact(node: &NodeInfo) -> bool {
    let fits = |amount: i64| amount.unsigned_abs() < EXACT as u64 / 128;
    let all = |r: &crate::Resources| {
        fits(r.milli_cpu)
            && fits(r.memory)
            && fits(r.ephemeral_storage)
            && fits(r.pods)
            && r.scalars.iter().all(|(_, amount)| fits(*amount))
    };
    all(&node.node.allocatable)
        && all(&node.requested)
        && fits(node.requested_or_default_milli_cpu)
        && fits(node.requested_or_default_memory)
}
