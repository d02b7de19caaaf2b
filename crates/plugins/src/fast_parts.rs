//! Fast forms that several plugins share.

use std::sync::Arc;

use supercargo_framework::{
    Prepared, ScoreInput, Status,
    fast::{CLOSED, Compiled, FilterPart, NodeFilter, NodeScore},
    points::ScoreNode,
};
use supercargo_model::{Cluster, NodeId, Pod, columns::TaintClass, storage::Volume};

/// The fast form of a filter about volumes: pods without any are none of its business. For others the claims and the
/// volumes are looked at anew each time.
pub(crate) fn only_without_volumes(pod: &Pod) -> Compiled<FilterPart> {
    if pod.spec.volumes.iter().any(Volume::is_bound_to_nodes) { Compiled::NoFastForm } else { Compiled::Idle }
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
