//! Fast forms that several plugins share.

use std::sync::Arc;

use supercargo_framework::{
    Prepared, ScoreInput, Status,
    fast::{CLOSED, Compiled, FilterPart, NodeFilter, NodeScore, OPEN},
    points::ScoreNode,
    vector::vectorized,
};
use supercargo_model::{Cluster, Name, NodeId, Pod, columns::TaintClass, label_columns::LabelColumn};

/// A filter that lets some nodes pass, whatever runs on them. A signature that has volumes is compiled anew whenever claims or
/// volumes change.
pub(crate) struct OnlyNodes<T> {
    closed: Vec<f64>,
    /// What tells why a node will not do.
    why: T,
}

/// Tells why a node will not do.
pub(crate) trait WhyNot: Send + Sync {
    fn why_not(&self, cluster: &Cluster, node: NodeId) -> Option<Status>;
}

impl<T: WhyNot + 'static> OnlyNodes<T> {
    /// Lets these nodes pass.
    pub(crate) fn compile(
        cluster: &Cluster,
        nodes: impl Iterator<Item = NodeId>,
        why: T,
    ) -> Compiled<FilterPart> {
        let mut closed = vec![CLOSED; cluster.columns().len()];
        nodes.for_each(|node| closed[node.index()] = OPEN);
        Compiled::Part(FilterPart::Fixed(Box::new(Self { closed, why })))
    }
}

impl<T: WhyNot> NodeFilter for OnlyNodes<T> {
    fn close(&mut self, _: &Cluster, open: &mut [f64]) {
        let closed = &self.closed;
        vectorized(
            #[inline(always)]
            || open.iter_mut().zip(closed).for_each(|(open, closed)| *open += closed),
        );
    }

    fn passes(&self, _: &Cluster, node: NodeId) -> bool {
        self.closed[node.index()] == OPEN
    }

    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        self.why.why_not(cluster, node)
    }
}

/// A filter that lets the nodes with one value of a label pass: what most volumes of a zone come to.
pub(crate) struct OnlyValue<T> {
    value: LabelValue,
    /// What tells why a node will not do.
    why: T,
}

/// A value of a label that some node has.
pub(crate) struct LabelValue {
    key: Name,
    number: u32,
}

impl LabelValue {
    /// `None` if no node has it.
    pub(crate) fn of(cluster: &Cluster, key: &Name, value: &str) -> Option<Self> {
        let number = cluster.label_columns().get(key)?.number(value)?;
        Some(Self { key: key.clone(), number })
    }
}

impl<T: WhyNot + 'static> OnlyValue<T> {
    /// Lets the nodes with this value pass.
    pub(crate) fn compile(value: LabelValue, why: T) -> Compiled<FilterPart> {
        Compiled::Part(FilterPart::Fixed(Box::new(Self { value, why })))
    }
}

impl<T: WhyNot> NodeFilter for OnlyValue<T> {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        let LabelValue { key, number } = &self.value;
        let numbers = cluster.label_columns().get(key).map_or(&[][..], LabelColumn::numbers);
        let (labelled, others) = open.split_at_mut(numbers.len());
        vectorized(
            #[inline(always)]
            || {
                for (open, other) in labelled.iter_mut().zip(numbers) {
                    *open = if other == number { *open } else { CLOSED };
                }
            },
        );
        others.fill(CLOSED);
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        let LabelValue { key, number } = &self.value;
        cluster.label_columns().get(key).is_some_and(|column| column.of(node) == *number)
    }

    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        self.why.why_not(cluster, node)
    }
}

/// A filter that depends on a node's taint class alone, and has one reason to refuse it.
pub(crate) struct ByTaintClass {
    passes: Vec<bool>,
    reason: &'static str,
}

impl ByTaintClass {
    /// A filter that lets these classes pass.
    pub(crate) fn compile(
        cluster: &Cluster,
        reason: &'static str,
        passes: impl Fn(&TaintClass) -> bool,
    ) -> Compiled<FilterPart> {
        let passes: Vec<bool> = cluster.columns().taint_classes.iter().map(passes).collect();
        if passes.contains(&false) {
            Compiled::Part(FilterPart::Fixed(Box::new(Self { passes, reason })))
        } else {
            Compiled::Idle
        }
    }
}

impl NodeFilter for ByTaintClass {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        for (open, class) in open.iter_mut().zip(&cluster.columns().taint_class) {
            if !self.passes[*class as usize] {
                *open = CLOSED;
            }
        }
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        self.passes[cluster.columns().taint_class[node.index()] as usize]
    }

    fn refusal(&self, _: &Cluster, _: NodeId) -> Option<Status> {
        Some(Status::unresolvable(self.reason))
    }
}

/// A score that a plugin gives node by node, from what the node is and holds.
pub(crate) struct NodeByNode<P> {
    pub(crate) plugin: Arc<P>,
    pub(crate) pod: Arc<Pod>,
}

impl<P: ScoreNode> NodeScore for NodeByNode<P> {
    fn fill(&mut self, cluster: &Cluster, column: &mut [f64]) {
        column.fill(0.0);
        for node in cluster.columns().live.iter() {
            column[node.index()] = self.score(cluster, node);
        }
    }

    fn score(&self, cluster: &Cluster, node: NodeId) -> f64 {
        let prepared = Prepared::nothing();
        let input = ScoreInput { prepared: &prepared, cluster, pod: &self.pod, nodes: &[] };
        // The plugins that are used in this way do not fail.
        self.plugin.score_node(input, cluster.node_at(node)).unwrap_or(0) as f64
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use supercargo_framework::fast::{Compiled, FastScore, RawScores};
    use supercargo_model::{
        columns::{LoadColumns, deviation_of_shares},
        random::Random,
        testing::pod,
    };

    use super::*;

    const CPU: f64 = 32_000.0;
    const MEMORY: f64 = 128.0 * 1024.0 * 1024.0 * 1024.0;

    /// Loads of nodes that have the same: shares of cpu and memory that are taken, and some more that counts by default.
    fn loads(taken: &[[f64; 4]]) -> LoadColumns {
        let mut loads = LoadColumns::default();
        for [cpu, memory, more_cpu, more_memory] in taken {
            for (column, all, used) in [
                (&mut loads.cpu, CPU, (cpu * CPU).trunc()),
                (&mut loads.memory, MEMORY, (memory * MEMORY).trunc()),
                (&mut loads.pods, 110.0, 0.0),
            ] {
                column.allocatable.push(all);
                column.inverse.push(1.0 / all);
                column.used.push(used);
            }
            loads.cpu_or_default.push(((cpu + more_cpu) * CPU).trunc());
            loads.memory_or_default.push(((memory + more_memory) * MEMORY).trunc());
            let share = |column: &[f64], all: f64| column[column.len() - 1] / all;
            let (cpu, memory) = (share(&loads.cpu.used, CPU), share(&loads.memory.used, MEMORY));
            loads.deviation.push(deviation_of_shares(cpu, memory));
        }
        loads
    }

    /// Whatever is taken of a node between two bounds, its score lies between those that the plugin tells.
    pub(crate) fn check_bounds<P: FastScore>(plugin: Arc<P>) {
        let mut random = Random(7);
        let mut share = |below: f64| random.below(1 << 20) as f64 / f64::from(1 << 20) * below;
        for _ in 0..200 {
            let requests =
                [format!("{}m", (share(8.0) * 1000.0) as u32), format!("{}Mi", (share(8.0) * 1024.0) as u32)];
            let pod = pod("p").container(&[("cpu", &requests[0]), ("memory", &requests[1])]).pod();
            let Compiled::Part(part) = plugin.clone().compile_score(&Cluster::default(), &pod) else {
                panic!("a fast form");
            };
            let RawScores::ByNode(part) = part.scores else {
                panic!("a score by node");
            };
            let part = part.by_load().expect("a score by load");
            // Up to more than there is, within steps of 3 %, and some that are no step at all.
            let from = [share(1.1), share(1.1), share(0.1), share(0.1)];
            let widest = if share(1.0) < 0.1 { 0.0 } else { 0.03 };
            let taken: Vec<[f64; 4]> = (0..50).map(|_| from.map(|from| from + share(widest))).collect();
            let nodes = loads(&taken);
            let (mut least, mut most) = (loads(&taken[..1]), loads(&taken[..1]));
            for node in 0..nodes.len() {
                least.merge(0, &nodes, node, f64::min);
                most.merge(0, &nodes, node, f64::max);
            }
            let (mut lowest, mut highest, mut scores) = ([0.0], [0.0], vec![0.0; nodes.len()]);
            part.bounds(&least, &most, &mut lowest, &mut highest);
            part.fill(&nodes, &mut scores);
            for (score, taken) in scores.iter().zip(&taken) {
                let is_between = lowest[0] <= *score && *score <= highest[0];
                assert!(
                    is_between,
                    "{score} in {lowest:?} to {highest:?}, {taken:?} taken, {requests:?} wanted"
                );
            }
            if widest == 0.0 {
                assert_eq!(
                    (lowest, highest),
                    ([scores[0]], [scores[0]]),
                    "{from:?} taken, {requests:?} wanted"
                );
            }
        }
    }
}
