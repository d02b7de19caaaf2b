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
