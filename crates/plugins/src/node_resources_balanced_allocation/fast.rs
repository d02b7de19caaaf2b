//! The fast form, for the default formula over two resources; other choices are worked out node by node.

use std::sync::Arc;

use supercargo_framework::{
    fast::{Compiled, FastScore, NodeScore, RawScores, ScorePart},
    vector::vectorized,
};
use supercargo_model::{
    Cluster, NodeId, Pod,
    columns::{Columns, ResourceColumn, deviation_of_shares},
    resources,
};

use super::{FULL, Formula, NodeResourcesBalancedAllocation, balance, improvement};
use crate::{device_resources::stands_for_devices, fast_parts::NodeByNode};

/// cpu and memory, for pods of one signature.
struct CpuAndMemory {
    exact: NodeByNode<NodeResourcesBalancedAllocation>,
    cpu: f64,
    memory: f64,
}

/// A resource of one node.
#[derive(Clone, Copy)]
struct Load {
    used: f64,
    all: f64,
}

impl CpuAndMemory {
    /// `deviation` is that without the pod.
    #[inline(always)]
    fn of(&self, cpu: Load, memory: Load, deviation: f64) -> f64 {
        let with =
            deviation_of_shares((cpu.used + self.cpu) / cpu.all, (memory.used + self.memory) / memory.all);
        let score = improvement(balance(with), balance(deviation));
        // With one resource, or none, there is nothing to balance.
        if cpu.all == 0.0 || memory.all == 0.0 { improvement(FULL, FULL) } else { score }
    }
}

impl NodeScore for CpuAndMemory {
    fn fill(&mut self, cluster: &Cluster, column: &mut [f64]) {
        let Columns { cpu, memory, deviation, inexact, .. } = cluster.columns();
        let this = &*self;
        vectorized(
            #[inline(always)]
            || {
                let cpus = cpu.used.iter().zip(&cpu.allocatable);
                let memories = memory.used.iter().zip(&memory.allocatable);
                let nodes = cpus.zip(memories).zip(deviation);
                for (score, ((cpu, memory), deviation)) in column.iter_mut().zip(nodes) {
                    let cpu = Load { used: *cpu.0, all: *cpu.1 };
                    let memory = Load { used: *memory.0, all: *memory.1 };
                    *score = this.of(cpu, memory, *deviation);
                }
            },
        );
        for node in inexact.iter() {
            column[node.index()] = self.exact.score(cluster, node);
        }
    }

    fn score(&self, cluster: &Cluster, node: NodeId) -> f64 {
        let (columns, i) = (cluster.columns(), node.index());
        if columns.inexact.contains(node) {
            return self.exact.score(cluster, node);
        }
        let load = |column: &ResourceColumn| Load { used: column.used[i], all: column.allocatable[i] };
        self.of(load(&columns.cpu), load(&columns.memory), columns.deviation[i])
    }
}

impl FastScore for NodeResourcesBalancedAllocation {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        let held = &pod.spec.requests.held;
        let mut scalars = self.resources.iter().filter(|r| resources::is_scalar(&r.name));
        if scalars.any(|r| held.get(&r.name) != 0 && stands_for_devices(cluster, &r.name)) {
            return Compiled::NoFastForm;
        }
        if self.resources.iter().all(|r| held.get(&r.name) == 0) {
            return Compiled::Idle;
        }
        let names: Vec<&str> = self.resources.iter().map(|r| &*r.name).collect();
        let default =
            self.formula == Formula::BalanceImprovement && names == [resources::CPU, resources::MEMORY];
        let exact = NodeByNode { plugin: self, pod: pod.clone() };
        let part: Box<dyn NodeScore> = if default {
            let (cpu, memory) = (held.milli_cpu as f64, held.memory as f64);
            Box::new(CpuAndMemory { exact, cpu, memory })
        } else {
            Box::new(exact)
        };
        Compiled::Part(RawScores::ByNode(part).in_range())
    }
}
