//! The numbers of all nodes side by side, for loops that look at every node.
//!
//! Amounts are kept as `f64` because that is what vector units compute with. Amounts below 2⁴³ (8 TiB of memory) stay exact
//! in all that is done with them; a node with a larger one is listed in [`Columns::inexact`], and is looked at on its own.

use std::collections::VecDeque;

use crate::{HashMap, Name, Node, NodeId, NodeInfo, node_set::NodeSet, taint::Taint};

/// Amounts below this, times 100 and divided by each other, are exact as `f64`, also by way of an inverse.
const EXACT: u64 = 1 << 43;

/// What there is of a resource, and what is taken.
#[derive(Clone, Debug, Default)]
pub struct ResourceColumn {
    /// What pods may use.
    pub allocatable: Vec<f64>,
    /// What pods hold.
    pub used: Vec<f64>,
    /// 1 / allocatable; 0 where there is none.
    pub inverse: Vec<f64>,
}

impl ResourceColumn {
    fn grow(&mut self, len: usize) {
        self.allocatable.resize(len, 0.0);
        self.used.resize(len, 0.0);
        self.inverse.resize(len, 0.0);
    }

    /// The share that is taken; not a finite number where there is none.
    fn share(&self, i: usize) -> f64 {
        self.used[i] / self.allocatable[i]
    }

    fn set_allocatable(&mut self, i: usize, amount: i64) {
        self.allocatable[i] = amount as f64;
        self.inverse[i] = if amount == 0 { 0.0 } else { 1.0 / amount as f64 };
    }

    fn clear(&mut self) {
        [&mut self.allocatable, &mut self.used, &mut self.inverse].into_iter().for_each(Vec::clear);
    }

    /// Becomes like another column at a place.
    fn copy(&mut self, i: usize, from: &Self, at: usize) {
        self.allocatable[i] = from.allocatable[at];
        self.used[i] = from.used[at];
        self.inverse[i] = from.inverse[at];
    }

    /// Adds what another column has at some places.
    fn gather(&mut self, from: &Self, places: &[u32]) {
        gather(&mut self.allocatable, &from.allocatable, places);
        gather(&mut self.inverse, &from.inverse, places);
        gather(&mut self.used, &from.used, places);
    }

    /// The same where there is as much at all of them.
    fn gather_alike(&mut self, from: &Self, places: &[u32]) {
        let Some(first) = places.first().map(|place| *place as usize) else {
            return;
        };
        let len = self.allocatable.len() + places.len();
        self.allocatable.resize(len, from.allocatable[first]);
        self.inverse.resize(len, from.inverse[first]);
        gather(&mut self.used, &from.used, places);
    }
}

fn gather(column: &mut Vec<f64>, from: &[f64], places: &[u32]) {
    column.extend(places.iter().map(|place| from[*place as usize]));
}

/// What nodes have, and what is taken of it: all that most scores read.
#[derive(Clone, Debug, Default)]
pub struct LoadColumns {
    /// Thousandths of a core.
    pub cpu: ResourceColumn,
    /// Bytes.
    pub memory: ResourceColumn,
    /// Numbers of pods.
    pub pods: ResourceColumn,
    /// cpu that pods hold, with a default for containers that ask for none.
    pub cpu_or_default: Vec<f64>,
    /// Memory that pods hold, with a default for containers that ask for none.
    pub memory_or_default: Vec<f64>,
    /// How far apart the shares of cpu and memory are that are taken: see [`deviation_of_shares`].
    pub deviation: Vec<f64>,
}

impl LoadColumns {
    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.deviation.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.deviation.is_empty()
    }

    /// Makes it this long.
    pub fn resize(&mut self, len: usize) {
        self.resources().into_iter().for_each(|resource| resource.grow(len));
        self.levels().into_iter().for_each(|level| level.resize(len, 0.0));
    }

    /// Forgets all nodes, and keeps the memory.
    pub fn clear(&mut self) {
        self.resources().into_iter().for_each(ResourceColumn::clear);
        self.levels().into_iter().for_each(Vec::clear);
    }

    fn resources(&mut self) -> [&mut ResourceColumn; 3] {
        [&mut self.cpu, &mut self.memory, &mut self.pods]
    }

    fn levels(&mut self) -> [&mut Vec<f64>; 3] {
        [&mut self.cpu_or_default, &mut self.memory_or_default, &mut self.deviation]
    }

    /// Becomes like other columns at a place.
    pub fn copy(&mut self, i: usize, from: &Self, at: usize) {
        self.cpu.copy(i, &from.cpu, at);
        self.memory.copy(i, &from.memory, at);
        self.pods.copy(i, &from.pods, at);
        self.cpu_or_default[i] = from.cpu_or_default[at];
        self.memory_or_default[i] = from.memory_or_default[at];
        self.deviation[i] = from.deviation[at];
    }

    /// Adds what other columns have at some places; not how many pods there are.
    pub fn gather(&mut self, from: &Self, places: &[u32]) {
        self.cpu.gather(&from.cpu, places);
        self.memory.gather(&from.memory, places);
        self.gather_levels(from, places);
    }

    /// The same where there is as much of everything at all of them.
    pub fn gather_alike(&mut self, from: &Self, places: &[u32]) {
        self.cpu.gather_alike(&from.cpu, places);
        self.memory.gather_alike(&from.memory, places);
        self.gather_levels(from, places);
    }

    fn gather_levels(&mut self, from: &Self, places: &[u32]) {
        gather(&mut self.cpu_or_default, &from.cpu_or_default, places);
        gather(&mut self.memory_or_default, &from.memory_or_default, places);
        gather(&mut self.deviation, &from.deviation, places);
    }

    /// Takes, of all that is taken at a place, the less or the more of what is there and what other columns have.
    pub fn merge(&mut self, i: usize, from: &Self, at: usize, choose: impl Fn(f64, f64) -> f64) {
        let merge = |to: &mut [f64], from: &[f64]| to[i] = choose(to[i], from[at]);
        merge(&mut self.cpu.used, &from.cpu.used);
        merge(&mut self.memory.used, &from.memory.used);
        merge(&mut self.pods.used, &from.pods.used);
        merge(&mut self.cpu_or_default, &from.cpu_or_default);
        merge(&mut self.memory_or_default, &from.memory_or_default);
        merge(&mut self.deviation, &from.deviation);
    }
}

/// Whoever is further behind than this starts anew.
const KEPT_TOUCHES: usize = 4096;

/// The nodes whose loads have changed lately.
#[derive(Clone, Debug, Default)]
struct Touched {
    latest: VecDeque<NodeId>,
    /// How many there have been.
    count: u64,
}

impl Touched {
    fn note(&mut self, node: NodeId) {
        if self.latest.len() == KEPT_TOUCHES {
            self.latest.pop_front();
        }
        self.latest.push_back(node);
        self.count += 1;
    }
}

/// A resource that nodes offer besides the others.
#[derive(Clone, Debug, Default)]
struct Offered {
    column: ResourceColumn,
    /// How many nodes offer some of it.
    nodes: usize,
}

/// Nodes that are alike in who may enter: the same taints, and cordoned or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TaintClass {
    /// Cordoned.
    pub unschedulable: bool,
    /// The taints.
    pub taints: Vec<Taint>,
}

impl TaintClass {
    /// How many of the taints only ask pods to stay away.
    fn soft_taints(&self) -> usize {
        self.taints.iter().filter(|taint| !taint.effect.repels()).count()
    }
}

/// How many nodes keep pods away, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaintedNodes {
    /// They are cordoned.
    pub cordoned: usize,
    /// They have a taint that keeps pods off.
    pub repelling: usize,
}

impl TaintedNodes {
    fn count(&mut self, class: &TaintClass, change: impl Fn(usize, bool) -> usize) {
        self.cordoned = change(self.cordoned, class.unschedulable);
        self.repelling = change(self.repelling, class.soft_taints() < class.taints.len());
    }
}

/// The columns. Places without a node hold zeros.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// The places that hold a node.
    pub live: NodeSet,
    /// The same as a column: 0 for a node, −∞ for none.
    pub there: Vec<f64>,
    /// What nodes have of cpu, memory and room for pods, and what is taken of it.
    pub loads: LoadColumns,
    /// Bytes.
    pub ephemeral_storage: ResourceColumn,
    /// Which of the taint classes a node is of.
    pub taint_class: Vec<u32>,
    /// The taint classes. One that has no nodes any more is empty, and its place is given to the next that comes.
    pub taint_classes: Vec<TaintClass>,
    /// How many taints of a node only ask pods to stay away.
    pub soft_taints: Vec<f64>,
    /// The nodes that have one such taint.
    pub soft_tainted_once: NodeSet,
    /// Those that have more.
    pub soft_tainted_more: NodeSet,
    /// How many nodes have taints, of which kind.
    pub tainted: TaintedNodes,
    /// Nodes with an amount that `f64` cannot hold exactly.
    pub inexact: NodeSet,
    class_numbers: HashMap<TaintClass, u32>,
    class_nodes: Vec<u32>,
    free_classes: Vec<u32>,
    scalars: HashMap<Name, Offered>,
    touched: Touched,
}

impl Columns {
    /// How often loads have changed so far.
    #[inline]
    pub fn load_changes(&self) -> u64 {
        self.touched.count
    }

    /// The nodes whose loads have changed since there had been so many changes, those that came and went among them; `None` if
    /// that is too long ago.
    pub fn loads_changed_since(&self, changes: u64) -> Option<impl ExactSizeIterator<Item = NodeId>> {
        let missed = usize::try_from(self.touched.count.checked_sub(changes)?).ok()?;
        let first = self.touched.latest.len().checked_sub(missed)?;
        Some(self.touched.latest.range(first..).copied())
    }

    /// The column of a resource that is counted besides the others; `None` if no node offers it, whatever pods ask for.
    pub fn scalar(&self, resource: &str) -> Option<&ResourceColumn> {
        self.scalars.get(resource).map(|offered| &offered.column)
    }

    /// How many resources are offered besides the others: each takes a column.
    pub fn scalar_count(&self) -> usize {
        self.scalars.len()
    }

    /// How many taint classes have a node.
    pub(crate) fn taint_class_count(&self) -> usize {
        self.class_numbers.len()
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
        self.loads.resize(len);
        self.ephemeral_storage.grow(len);
        for offered in self.scalars.values_mut() {
            offered.column.grow(len);
        }
        self.there.resize(len, f64::NEG_INFINITY);
        self.taint_class.resize(len, 0);
        self.soft_taints.resize(len, 0.0);
    }

    /// Takes over what a node is. Returns the resources that no node has offered before.
    pub(crate) fn set_node(&mut self, id: NodeId, node: &Node) -> Vec<Name> {
        let (i, all) = (id.index(), &node.allocatable);
        if self.live.contains(id) {
            self.leave_class(i);
        }
        self.live.insert(id);
        self.there[i] = 0.0;
        self.loads.cpu.set_allocatable(i, all.milli_cpu);
        self.loads.memory.set_allocatable(i, all.memory);
        self.loads.pods.set_allocatable(i, all.pods);
        self.ephemeral_storage.set_allocatable(i, all.ephemeral_storage);
        let new = self.set_offers(i, &all.scalars);
        self.enter_class(i, TaintClass { unschedulable: node.unschedulable, taints: node.taints.clone() });
        new
    }

    /// Sets what a node offers of all resources besides the others.
    fn set_offers(&mut self, i: usize, offers: &[(Name, i64)]) -> Vec<Name> {
        let len = self.len();
        for offered in self.scalars.values_mut().filter(|offered| offered.column.allocatable[i] != 0.0) {
            offered.column.set_allocatable(i, 0);
            offered.nodes -= 1;
        }
        let mut new = Vec::new();
        for (name, amount) in offers.iter().filter(|(_, amount)| *amount != 0) {
            let offered = self.scalars.entry(name.clone()).or_insert_with(|| {
                new.push(name.clone());
                let mut offered = Offered::default();
                offered.column.grow(len);
                offered
            });
            offered.column.set_allocatable(i, *amount);
            offered.nodes += 1;
        }
        self.scalars.retain(|_, offered| offered.nodes > 0);
        new
    }

    fn enter_class(&mut self, i: usize, class: TaintClass) {
        let soft_taints = class.soft_taints();
        self.soft_taints[i] = soft_taints as f64;
        match soft_taints {
            0 => {}
            1 => self.soft_tainted_once.insert(NodeId::from_index(i)),
            _ => self.soft_tainted_more.insert(NodeId::from_index(i)),
        }
        self.tainted.count(&class, |nodes, is_so| nodes + usize::from(is_so));
        let number = match self.class_numbers.get(&class) {
            Some(number) => *number,
            None => {
                let number = self.free_classes.pop().unwrap_or_else(|| {
                    self.taint_classes.push(TaintClass::default());
                    self.class_nodes.push(0);
                    (self.taint_classes.len() - 1) as u32
                });
                self.taint_classes[number as usize] = class.clone();
                self.class_numbers.insert(class, number);
                number
            }
        };
        self.class_nodes[number as usize] += 1;
        self.taint_class[i] = number;
    }

    fn leave_class(&mut self, i: usize) {
        let number = self.taint_class[i] as usize;
        self.soft_taints[i] = 0.0;
        self.soft_tainted_once.remove(NodeId::from_index(i));
        self.soft_tainted_more.remove(NodeId::from_index(i));
        self.tainted.count(&self.taint_classes[number], |nodes, is_so| nodes - usize::from(is_so));
        self.class_nodes[number] -= 1;
        if self.class_nodes[number] == 0 {
            let class = std::mem::take(&mut self.taint_classes[number]);
            self.class_numbers.remove(&class);
            self.free_classes.push(number as u32);
        }
    }

    /// Takes over what the pods on all nodes hold of a resource.
    pub(crate) fn set_used<'a>(&mut self, resource: &str, nodes: impl Iterator<Item = &'a NodeInfo>) {
        if let Some(offered) = self.scalars.get_mut(resource) {
            for node in nodes {
                offered.column.used[node.id.index()] = node.requested.get(resource) as f64;
            }
        }
    }

    /// Takes over what the pods on a node hold.
    pub(crate) fn set_load(&mut self, node: &NodeInfo) {
        let (i, held) = (node.id.index(), &node.requested);
        self.touched.note(node.id);
        let loads = &mut self.loads;
        loads.cpu.used[i] = held.milli_cpu as f64;
        loads.memory.used[i] = held.memory as f64;
        loads.pods.used[i] = node.pods.len() as f64;
        loads.cpu_or_default[i] = node.requested_or_default_milli_cpu as f64;
        loads.memory_or_default[i] = node.requested_or_default_memory as f64;
        loads.deviation[i] = deviation_of_shares(loads.cpu.share(i), loads.memory.share(i));
        self.ephemeral_storage.used[i] = held.ephemeral_storage as f64;
        for (name, offered) in &mut self.scalars {
            offered.column.used[i] = held.get(name) as f64;
        }
        if is_exact(node) {
            self.inexact.remove(node.id);
        } else {
            self.inexact.insert(node.id);
        }
    }

    pub(crate) fn remove(&mut self, id: NodeId) {
        let i = id.index();
        self.touched.note(id);
        self.live.remove(id);
        self.leave_class(i);
        self.there[i] = f64::NEG_INFINITY;
        self.inexact.remove(id);
        let loads = &mut self.loads;
        for column in [&mut loads.cpu, &mut loads.memory, &mut loads.pods, &mut self.ephemeral_storage] {
            column.set_allocatable(i, 0);
            column.used[i] = 0.0;
        }
        loads.cpu_or_default[i] = 0.0;
        loads.memory_or_default[i] = 0.0;
        self.set_offers(i, &[]);
        for offered in self.scalars.values_mut() {
            offered.column.used[i] = 0.0;
        }
    }
}

/// A share; more than all counts as all.
#[inline(always)]
pub fn capped_share(share: f64) -> f64 {
    if share > 1.0 { 1.0 } else { share }
}

/// The standard deviation of two shares, capped.
#[inline(always)]
pub fn deviation_of_shares(one: f64, other: f64) -> f64 {
    ((capped_share(one) - capped_share(other)) / 2.0).abs()
}

fn is_exact(node: &NodeInfo) -> bool {
    let fits = |amount: i64| amount.unsigned_abs() < EXACT;
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
