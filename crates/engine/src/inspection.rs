//! What an engine knows inside, for whoever compares the two paths: tests, conformance and replay. Nothing here decides.

use std::sync::Arc;

use supercargo_framework::preemption::NodeVerdicts;
use supercargo_model::{Name, NodeId, Pod};

use crate::{cycle::PathCounts, decision::Decision, engine::Engine};

/// A look inside an engine. What is known about signatures is brought up to date for it, as a cycle does.
pub struct Inspection<'a>(pub(crate) &'a mut Engine);

/// A pod's chances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// How many nodes are feasible.
    pub feasible: usize,
    /// The highest total.
    pub best: i64,
    /// How many nodes share it.
    pub ties: usize,
    /// The sum of all totals.
    pub sum: i64,
    /// The first of the best, by name.
    pub first: Name,
}

impl Inspection<'_> {
    /// Where the search of the next cycle starts in the order of nodes.
    pub fn next_start(&self) -> usize {
        self.0.progress.next_start
    }

    /// How often decisions were made on each path.
    pub fn paths(&self) -> PathCounts {
        self.0.progress.paths
    }

    /// Why each node refuses a pod that no node is open to, as [`Engine::decide`] would tell it, where that is known without
    /// asking every plugin; `None` otherwise.
    pub fn verdicts(&mut self, pod: &Arc<Pod>) -> Option<NodeVerdicts> {
        let (fast, cycle) = self.0.fast_cycle(pod)?;
        fast.verdicts(&cycle)
    }

    /// What the fast path knows about a pod's chances when all nodes are looked at, without choosing; `None` where it
    /// does not apply, or no node is left.
    pub fn survey(&mut self, pod: &Arc<Pod>) -> Option<Survey> {
        let (fast, cycle) = self.0.fast_cycle(pod)?;
        let (signature, cluster) = (fast.whole(&cycle)?, &cycle.input.state.cluster);
        let (best, ties) = signature.best()?;
        let total = |id: &&NodeId| signature.total(id.index());
        let open = cluster.order().iter().filter(|id| total(id).is_finite());
        let tied = cluster.order().iter().filter(|id| total(id) == best);
        let names = tied.map(|id| cluster.node_at(*id).name());
        Some(Survey {
            feasible: signature.open_count(),
            best: best as i64,
            ties,
            sum: open.map(|id| total(&id) as i64).sum(),
            first: names.min()?.clone(),
        })
    }

    /// The feasible nodes and all scores as the fast path knows them, in the form of a decision without a choice; `None`
    /// where the fast path does not apply.
    pub fn recall(&mut self, pod: &Arc<Pod>) -> Option<Decision> {
        let (fast, cycle) = self.0.fast_cycle(pod)?;
        let (signature, cluster) = (fast.whole(&cycle)?, &cycle.input.state.cluster);
        let name = cycle.input.profile().scheduler_name().clone();
        let mut decision = Decision::new(pod, name, 0, cluster.node_count());
        (decision.feasible, decision.scores) = signature.record(cluster);
        Some(decision)
    }
}
