//! Plugins without a fast form, among others that have one: asked about every open node for every pod. They cost only
//! themselves.

use std::sync::Arc;

use supercargo_model::{Cluster, NodeInfo, Pod};

use crate::{
    Code, Prepared, ScoreInput, Status,
    fast::{CLOSED, Compiled, FastFilter, FilterPart, OPEN, OpaqueFilter, OpaqueScore, PluginFailed},
    points::{
        Filter, MAX_SCORE, MIN_SCORE, NormalizeScore, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome,
        Score,
    },
};

/// The open nodes.
fn open_nodes<'a>(cluster: &'a Cluster, open: &[f64]) -> Vec<&'a NodeInfo> {
    let nodes = cluster.columns().live.iter().filter(|node| open[node.index()] == OPEN);
    nodes.map(|node| cluster.node_at(node)).collect()
}

/// What is wrong is the full path's to tell.
impl From<Status> for PluginFailed {
    fn from(_: Status) -> Self {
        Self
    }
}

/// A plugin's own Filter.
pub(crate) struct PluginFilter {
    pub(crate) prepare: Option<Arc<dyn PreFilter>>,
    pub(crate) filter: Arc<dyn Filter>,
}

impl PluginFilter {
    /// `None` if the plugin skips the pod.
    fn prepared(&self, cluster: &Cluster, pod: &Pod) -> Result<Option<Prepared>, Status> {
        let Some(prepare) = &self.prepare else {
            return Ok(Some(Prepared::nothing()));
        };
        match prepare.pre_filter(cluster, pod)? {
            PreFilterOutcome::Skip => Ok(None),
            PreFilterOutcome::Go { nodes: None, prepared } => Ok(Some(prepared)),
            // A narrowed search is the full path's to run.
            PreFilterOutcome::Go { nodes: Some(_), .. } => Err(Status::error("narrowed")),
        }
    }
}

impl OpaqueFilter for PluginFilter {
    fn close(&mut self, cluster: &Cluster, pod: &Arc<Pod>, open: &mut [f64]) -> Result<(), PluginFailed> {
        let prepared = match self.prepared(cluster, pod) {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return Ok(()),
            Err(status) if status.is_rejection() => {
                open.fill(CLOSED);
                return Ok(());
            }
            Err(_) => return Err(PluginFailed),
        };
        for node in open_nodes(cluster, open) {
            match self.filter.filter(&prepared, cluster, pod, node) {
                Ok(()) => {}
                Err(status) if status.code == Code::Error => return Err(PluginFailed),
                Err(_) => open[node.id.index()] = CLOSED,
            }
        }
        Ok(())
    }
}

/// A plugin that has a fast form, compiled for every pod: what it looks at differs from pod to pod.
pub(crate) struct CompiledForEach {
    pub(crate) fast: Arc<dyn FastFilter>,
    /// For pods that it has no fast form for.
    pub(crate) otherwise: PluginFilter,
}

impl OpaqueFilter for CompiledForEach {
    fn close(&mut self, cluster: &Cluster, pod: &Arc<Pod>, open: &mut [f64]) -> Result<(), PluginFailed> {
        match self.fast.clone().compile_filter(cluster, pod) {
            Compiled::Idle => {}
            Compiled::Part(FilterPart::Fixed(mut filter) | FilterPart::ByNode(mut filter)) => {
                filter.close(cluster, open);
            }
            Compiled::Part(FilterPart::ByDomain(mut filter)) => filter.close(cluster, open),
            Compiled::Part(FilterPart::Opaque(mut filter)) => return filter.close(cluster, pod, open),
            Compiled::NoFastForm => return self.otherwise.close(cluster, pod, open),
        }
        Ok(())
    }
}

/// A plugin's own Score.
pub(crate) struct PluginScore {
    pub(crate) prepare: Option<Arc<dyn PreScore>>,
    pub(crate) score: Arc<dyn Score>,
    pub(crate) normalize: Option<Arc<dyn NormalizeScore>>,
}

impl PluginScore {
    fn scores(&self, cluster: &Cluster, pod: &Pod, nodes: &[&NodeInfo]) -> Result<Vec<i64>, Status> {
        let prepared = match &self.prepare {
            None => Prepared::nothing(),
            Some(prepare) => match prepare.pre_score(cluster, pod, nodes)? {
                PreScoreOutcome::Skip => return Ok(vec![0; nodes.len()]),
                PreScoreOutcome::Go(prepared) => prepared,
            },
        };
        let input = ScoreInput { prepared: &prepared, cluster, pod, nodes };
        let mut column = vec![0; nodes.len()];
        self.score.score(input, &mut column)?;
        if let Some(normalize) = &self.normalize {
            normalize.normalize(input, &mut column)?;
        }
        if column.iter().all(|score| (MIN_SCORE..=MAX_SCORE).contains(score)) {
            Ok(column)
        } else {
            Err(Status::error("a score out of range"))
        }
    }
}

impl OpaqueScore for PluginScore {
    fn fill(
        &mut self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        open: &[f64],
        column: &mut [f64],
    ) -> Result<(), PluginFailed> {
        let nodes = open_nodes(cluster, open);
        column.fill(0.0);
        for (node, score) in nodes.iter().zip(self.scores(cluster, pod, &nodes)?) {
            column[node.id.index()] = score as f64;
        }
        Ok(())
    }
}
