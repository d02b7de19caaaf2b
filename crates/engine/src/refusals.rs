//! Why no node is open to pods of one signature: who refused each node and why, kept from pod to pod and counted, so that the
//! next pod is told without asking anybody again.

use std::collections::BTreeMap;

use supercargo_framework::{
    Code,
    preemption::{NodeVerdicts, Rejection, summary},
};
use supercargo_model::NodeId;

use crate::queue::Refusal;

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// Stands for a place that was not refused: it holds no node.
const NOBODY: u32 = u32::MAX;

/// What some nodes were refused for.
struct Shared {
    rejection: Rejection,
    nodes: usize,
}

/// The refusals of all nodes. Nodes are refused for few different reasons, so each is kept once.
#[derive(Default)]
pub(crate) struct Refusals {
    /// Which of the list holds for a node, by place.
    of: Vec<u32>,
    list: Vec<Shared>,
    numbers: HashMap<Rejection, u32>,
    free: Vec<u32>,
}

impl Refusals {
    /// None so far, with room for so many places.
    pub(crate) fn new(places: usize) -> Self {
        Self { of: vec![NOBODY; places], ..Self::default() }
    }

    /// Keeps why a node was refused, instead of what was kept before.
    pub(crate) fn set(&mut self, node: NodeId, rejection: Rejection) {
        let place = node.index();
        if place >= self.of.len() {
            self.of.resize(place + 1, NOBODY);
        }
        let before = self.of[place];
        if before != NOBODY {
            if self.list[before as usize].rejection == rejection {
                return;
            }
            self.drop_one(before);
        }
        self.of[place] = self.number(rejection);
        self.list[self.of[place] as usize].nodes += 1;
    }

    fn number(&mut self, rejection: Rejection) -> u32 {
        if let Some(number) = self.numbers.get(&rejection) {
            return *number;
        }
        let shared = Shared { rejection: rejection.clone(), nodes: 0 };
        let number = match self.free.pop() {
            Some(number) => {
                self.list[number as usize] = shared;
                number
            }
            None => {
                self.list.push(shared);
                (self.list.len() - 1) as u32
            }
        };
        self.numbers.insert(rejection, number);
        number
    }

    fn drop_one(&mut self, number: u32) {
        let shared = &mut self.list[number as usize];
        shared.nodes -= 1;
        if shared.nodes == 0 {
            self.numbers.remove(&shared.rejection);
            self.free.push(number);
        }
    }

    fn used(&self) -> impl Iterator<Item = &Shared> {
        self.list.iter().filter(|shared| shared.nodes > 0)
    }

    /// How many nodes were refused for each reason, in kube-scheduler's order and words.
    pub(crate) fn summary(&self) -> String {
        summary(self.used().map(|shared| (&shared.rejection.status, shared.nodes)))
    }

    /// By whom, as the queue wants to know it.
    pub(crate) fn refusal(&self) -> Refusal {
        let mut refusal = Refusal::default();
        for Shared { rejection, .. } in self.used() {
            let pending = rejection.status.code == Code::Pending;
            let plugins = if pending { &mut refusal.pending } else { &mut refusal.plugins };
            plugins.insert(rejection.plugin.clone());
        }
        refusal
    }

    /// On how many nodes evicting pods could help.
    pub(crate) fn resolvable_count(&self) -> usize {
        self.used().filter(|shared| is_resolvable(shared)).map(|shared| shared.nodes).sum()
    }

    /// The nodes on which evicting pods could help.
    pub(crate) fn resolvable(&self) -> impl Iterator<Item = NodeId> {
        self.entries().filter(|(_, shared)| is_resolvable(shared)).map(|(node, _)| node)
    }

    /// The same as a record of a cycle has it.
    pub(crate) fn verdicts(&self) -> NodeVerdicts {
        let rejected: BTreeMap<NodeId, Rejection> =
            self.entries().map(|(node, shared)| (node, shared.rejection.clone())).collect();
        NodeVerdicts { rejected, ..NodeVerdicts::default() }
    }

    /// Those of some nodes on which evicting pods could help.
    pub(crate) fn resolvable_among(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let by_number: Vec<bool> = self.list.iter().map(is_resolvable).collect();
        let is_resolvable = |node: &&NodeId| {
            let number = self.of.get(node.index()).copied().unwrap_or(NOBODY);
            by_number.get(number as usize).copied().unwrap_or(false)
        };
        nodes.iter().filter(is_resolvable).copied().collect()
    }

    fn entries(&self) -> impl Iterator<Item = (NodeId, &Shared)> {
        let refused = self.of.iter().enumerate().filter(|(_, number)| **number != NOBODY);
        refused.map(|(place, number)| (NodeId::from_index(place), &self.list[*number as usize]))
    }
}

fn is_resolvable(shared: &Shared) -> bool {
    shared.rejection.status.code == Code::Unschedulable
}
