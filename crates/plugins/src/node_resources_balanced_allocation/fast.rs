//! The fast form, for the default formula over two resources; other choices are worked out node by node.

use std::sync::Arc;

use supercargo_framework::{
    fast::{Compiled, FastScore, LoadScore, NodeScore, RawScores, ScorePart},
    vector::vectorized,
};
use supercargo_model::{
    Cluster, NodeId, Pod,
    columns::{Columns, LoadColumns, ResourceColumn, capped_share, deviation_of_shares},
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

/// How unbalanced a node is without the pod and with it.
#[derive(Clone, Copy)]
struct Deviations {
    without: f64,
    with: f64,
}

impl Deviations {
    /// `lacks`: the node has no cpu, or no memory. With one resource, or none, there is nothing to balance.
    #[inline(always)]
    fn score(self, lacks: bool) -> f64 {
        let score = improvement(balance(self.with), balance(self.without));
        if lacks { improvement(FULL, FULL) } else { score }
    }
}

/// The standard deviation of two shares between bounds: the least and the most that it can be.
#[inline(always)]
fn deviation_between(cpu: [f64; 2], memory: [f64; 2]) -> [f64; 2] {
    let ([cpu_from, cpu_to], [memory_from, memory_to]) = (cpu.map(capped_share), memory.map(capped_share));
    let (more_cpu, more_memory) = ((cpu_from - memory_to) / 2.0, (memory_from - cpu_to) / 2.0);
    // One of them is above nothing where the bounds do not meet; the other end is as far apart as they can be.
    [more_cpu.max(more_memory).max(0.0), (-more_cpu).max(-more_memory)]
}

impl LoadScore for CpuAndMemory {
    fn fill(&self, LoadColumns { cpu, memory, deviation, .. }: &LoadColumns, column: &mut [f64]) {
        vectorized(
            #[inline(always)]
            || {
                let cpus = cpu.used.iter().zip(&cpu.allocatable);
                let memories = memory.used.iter().zip(&memory.allocatable);
                let nodes = cpus.zip(memories).zip(deviation);
                for (score, ((cpu, memory), without)) in column.iter_mut().zip(nodes) {
                    let with =
                        deviation_of_shares((cpu.0 + self.cpu) / cpu.1, (memory.0 + self.memory) / memory.1);
                    let lacks = *cpu.1 == 0.0 || *memory.1 == 0.0;
                    *score = Deviations { without: *without, with }.score(lacks);
                }
            },
        );
    }

    fn bounds(&self, least: &LoadColumns, most: &LoadColumns, lowest: &mut [f64], highest: &mut [f64]) {
        vectorized(
            #[inline(always)]
            || {
                let cpus = least.cpu.used.iter().zip(&most.cpu.used).zip(&least.cpu.allocatable);
                let memories = least.memory.used.iter().zip(&most.memory.used).zip(&least.memory.allocatable);
                let without = least.deviation.iter().zip(&most.deviation);
                let scores = lowest.iter_mut().zip(highest);
                for (((scores, cpu), memory), without) in scores.zip(cpus).zip(memories).zip(without) {
                    let ((cpu_from, cpu_to), all_cpu) = cpu;
                    let ((memory_from, memory_to), all_memory) = memory;
                    let with = deviation_between(
                        [(cpu_from + self.cpu) / all_cpu, (cpu_to + self.cpu) / all_cpu],
                        [(memory_from + self.memory) / all_memory, (memory_to + self.memory) / all_memory],
                    );
                    let lacks = *all_cpu == 0.0 || *all_memory == 0.0;
                    *scores.0 = Deviations { without: *without.0, with: with[1] }.score(lacks);
                    *scores.1 = Deviations { without: *without.1, with: with[0] }.score(lacks);
                }
            },
        );
    }
}

impl NodeScore for CpuAndMemory {
    fn fill(&mut self, cluster: &Cluster, column: &mut [f64]) {
        let Columns { loads, inexact, .. } = cluster.columns();
        LoadScore::fill(self, loads, column);
        for node in inexact.iter() {
            column[node.index()] = self.exact.score(cluster, node);
        }
    }

    fn score(&self, cluster: &Cluster, node: NodeId) -> f64 {
        let (Columns { loads, inexact, .. }, i) = (cluster.columns(), node.index());
        if inexact.contains(node) {
            return self.exact.score(cluster, node);
        }
        let share = |column: &ResourceColumn, wanted: f64| (column.used[i] + wanted) / column.allocatable[i];
        let with = deviation_of_shares(share(&loads.cpu, self.cpu), share(&loads.memory, self.memory));
        let lacks = loads.cpu.allocatable[i] == 0.0 || loads.memory.allocatable[i] == 0.0;
        Deviations { without: loads.deviation[i], with }.score(lacks)
    }

    fn by_load(&self) -> Option<&dyn LoadScore> {
        Some(self)
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
