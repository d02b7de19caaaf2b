//! The fast form: what is known of the nodes is kept from pod to pod, and a node is asked about again when its devices change.

use std::sync::Arc;

use supercargo_framework::fast::{
    CLOSED, Compiled, FastFilter, FastScore, FilterPart, Normalization, OPEN, OpaqueFilter, OpaqueScore,
    PluginFailed, RawScores, ScorePart,
};
use supercargo_model::{Cluster, NodeId, Pod};

use super::{DynamicResources, claims::may_need_devices, cycle::PodClaims};

struct ClaimsFilter(Arc<DynamicResources>);

impl OpaqueFilter for ClaimsFilter {
    fn close(&mut self, cluster: &Cluster, pod: &Arc<Pod>, open: &mut [f64]) -> Result<(), PluginFailed> {
        let plugin = &self.0;
        let claims = match PodClaims::of(cluster, pod) {
            Ok(claims) if claims.is_empty() => return Ok(()),
            Ok(claims) => claims,
            Err(status) if status.is_rejection() => {
                open.fill(CLOSED);
                return Ok(());
            }
            Err(_) => return Err(PluginFailed),
        };
        let question = plugin.question(cluster, pod, &claims);
        plugin.answers().of(question).close(question, open)?;
        if claims.has_allocated() {
            self.close_unusable(cluster, &claims, open);
        }
        Ok(())
    }
}

impl ClaimsFilter {
    /// Closes the nodes where claims that have devices cannot use them.
    fn close_unusable(&self, cluster: &Cluster, claims: &PodClaims, open: &mut [f64]) {
        let timeout = self.0.binding_timeout;
        let is_usable =
            |node: NodeId| claims.check_allocated(cluster, cluster.node_at(node), timeout).is_ok();
        let is_open = |open: &[f64], node: NodeId| open[node.index()] == OPEN;
        let candidates: Vec<NodeId> = match claims.named_nodes() {
            Some(names) => names.iter().filter_map(|name| Some(cluster.node(name)?.id)).collect(),
            None => cluster.columns().live.iter().collect(),
        };
        let usable: Vec<NodeId> =
            candidates.into_iter().filter(|node| is_open(open, *node) && is_usable(*node)).collect();
        open.fill(CLOSED);
        usable.into_iter().for_each(|node| open[node.index()] = OPEN);
    }
}

struct ClaimsScore(Arc<DynamicResources>);

impl OpaqueScore for ClaimsScore {
    fn fill(
        &mut self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        _: &[f64],
        column: &mut [f64],
    ) -> Result<(), PluginFailed> {
        let claims = PodClaims::of(cluster, pod)?;
        if !claims.has_alternatives() {
            column.fill(0.0);
            return Ok(());
        }
        let question = self.0.question(cluster, pod, &claims);
        column.copy_from_slice(self.0.answers().of(question).points());
        Ok(())
    }
}

impl FastFilter for DynamicResources {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if !may_need_devices(cluster.devices(), pod) {
            return Compiled::Idle;
        }
        Compiled::Part(FilterPart::Opaque(Box::new(ClaimsFilter(self))))
    }
}

impl FastScore for DynamicResources {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        if !may_need_devices(cluster.devices(), pod) {
            return Compiled::Idle;
        }
        let scores = RawScores::Opaque(Box::new(ClaimsScore(self)));
        Compiled::Part(scores.normalized(Normalization::Proportional))
    }
}
