//! The fast form, for the default formula over two resources; other choices are worked out node by node.

use std::sync::Arc;

use supercargo_framework::{
    MAX_SCORE,
    fast::{Compiled, FastScore, ScorePart},
    vector::vectorized,
};
use supercargo_model::{Cluster, NodeId, Pod, columns::Columns, resources};

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

/// How balanced two shares are. A resource that the node does not have counts for nothing.
#[inline(always)]
fn balance(cpu: f64, all_cpu: f64, memory: f64, all_memory: f64) -> f64 {
    let share = |amount: f64, all: f64| {
        let share = amount / all;
        if share > 1.0 { 1.0 } else { share }
    };
    let deviation = ((share(cpu, all_cpu) - share(memory, all_memory)) / 2.0).abs();
    let deviation = if all_cpu == 0.0 || all_memory == 0.0 { 0.0 } else { deviation };
    ((1.0 - deviation) * FULL).trunc()
}

impl CpuAndMemory {
    #[inline(always)]
    fn of(&self, cpu: f64, all_cpu: f64, memory: f64, all_memory: f64) -> f64 {
        let with = balance(cpu + self.cpu, all_cpu, memory + self.memory, all_memory);
        let without = balance(cpu, all_cpu, memory, all_memory);
        HALF + ((HALF + with - without) / 2.0).trunc()
    }
}

impl ScorePart for CpuAndMemory {
    fn fill(&mut self, cluster: &Cluster, _: &[f64], column: &mut [f64]) {
        let Columns { cpu, memory, inexact, .. } = cluster.columns();
        let this = &*self;
        vectorized(
            #[inline(always)]
            || {
                let cpu = cpu.used.iter().zip(&cpu.allocatable);
                let memory = memory.used.iter().zip(&memory.allocatable);
                for ((score, (cpu, all_cpu)), (memory, all_memory)) in column.iter_mut().zip(cpu).zip(memory)
                {
                    *score = this.of(*cpu, *all_cpu, *memory, *all_memory);
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
        let (cpu, memory) = (&columns.cpu, &columns.memory);
        self.of(cpu.used[i], cpu.allocatable[i], memory.used[i], memory.allocatable[i])
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
