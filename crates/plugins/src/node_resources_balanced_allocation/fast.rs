//! The fast form, for the default formula over two resources; other choices are worked out node by node.

use std::sync::Arc;

use supercargo_framework::{
    MAX_SCORE,
    fast::{Compiled, FastScore, ScorePart},
    vector::vectorized,
};
use supercargo_model::{
    Cluster, NodeId, Pod,
    columns::{Columns, ResourceColumn},
    resources,
};

use super::{Formula, NodeResourcesBalancedAllocation};
use crate::fast_parts::NodeByNode;

const FULL: f64 = MAX_SCORE as f64;
const HALF: f64 = FULL / 2.0;

/// cpu and memory, for pods of one shape.
struct CpuAndMemory {
    exact: NodeByNode<NodeResourcesBalancedAllocation>,
    cpu: f64,
    memory: f64,
}

/// How balanced two shares are, where the node has both resources.
#[inline(always)]
fn balance(cpu: f64, memory: f64) -> f64 {
    let whole = |share: f64| if share > 1.0 { 1.0 } else { share };
    let deviation = ((whole(cpu) - whole(memory)) / 2.0).abs();
    ((1.0 - deviation) * FULL).trunc()
}

/// A resource of one node.
#[derive(Clone, Copy)]
struct Load {
    used: f64,
    all: f64,
    share: f64,
}

impl CpuAndMemory {
    #[inline(always)]
    fn of(&self, cpu: Load, memory: Load) -> f64 {
        let with = balance((cpu.used + self.cpu) / cpu.all, (memory.used + self.memory) / memory.all);
        let without = balance(cpu.share, memory.share);
        let improvement = HALF + ((HALF + with - without) / 2.0).trunc();
        // With one resource, or none, there is nothing to balance: (50 + 100 − 100) / 2 + 50.
        if cpu.all == 0.0 || memory.all == 0.0 { HALF + HALF / 2.0 } else { improvement }
    }
}

impl ScorePart for CpuAndMemory {
    fn fill(&mut self, cluster: &Cluster, _: &[f64], column: &mut [f64]) {
        let Columns { cpu, memory, inexact, .. } = cluster.columns();
        let this = &*self;
        vectorized(
            #[inline(always)]
            || {
                let cpus = cpu.used.iter().zip(&cpu.allocatable).zip(&cpu.share);
                let memories = memory.used.iter().zip(&memory.allocatable).zip(&memory.share);
                for ((score, cpu), memory) in column.iter_mut().zip(cpus).zip(memories) {
                    let ((used, all), share) = cpu;
                    let cpu = Load { used: *used, all: *all, share: *share };
                    let ((used, all), share) = memory;
                    let memory = Load { used: *used, all: *all, share: *share };
                    *score = this.of(cpu, memory);
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
        let load = |column: &ResourceColumn| Load {
            used: column.used[i],
            all: column.allocatable[i],
            share: column.share[i],
        };
        self.of(load(&columns.cpu), load(&columns.memory))
    }

    fn reads_load(&self) -> bool {
        true
    }
}

impl FastScore for NodeResourcesBalancedAllocation {
    fn compile_score(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        let held = &pod.spec.requests.held;
        if self.resources.iter().all(|r| held.get(&r.name) == 0) {
            return Compiled::Idle;
        }
        let names: Vec<&str> = self.resources.iter().map(|r| &*r.name).collect();
        let default =
            self.formula == Formula::BalanceImprovement && names == [resources::CPU, resources::MEMORY];
        let exact = NodeByNode { plugin: self, pod: pod.clone() };
        if default {
            let (cpu, memory) = (held.milli_cpu as f64, held.memory as f64);
            Compiled::Part(Box::new(CpuAndMemory { exact, cpu, memory }))
        } else {
            Compiled::Part(Box::new(exact))
        }
    }
}
