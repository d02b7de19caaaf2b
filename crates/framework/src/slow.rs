//! Plugins without a fast form, among others that have one: asked about every open node for every pod. They cost only
//! themselves.

use std::sync::Arc;

use supercargo_model::{Cluster, NodeId, NodeInfo, Pod};

use crate::{
    Code, Prepared, ScoreInput, Status,
    fast::{Asked, CLOSED, FilterPart, OPEN, ScorePart},
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

/// A filter that is asked node by node.
pub(crate) struct SlowFilter {
    pub(crate) prepare: Option<Arc<dyn PreFilter>>,
    pub(crate) filter: Arc<dyn Filter>,
    pub(crate) pod: Arc<Pod>,
    pub(crate) failed: bool,
}

impl SlowFilter {
    /// `None` if the plugin skips the pod.
    fn prepared(&self, cluster: &Cluster) -> Result<Option<Prepared>, Status> {
        let Some(prepare) = &self.prepare else {
            return Ok(Some(Prepared::nothing()));
        };
        match prepare.pre_filter(cluster, &self.pod)? {
            PreFilterOutcome::Skip => Ok(None),
            PreFilterOutcome::Go { nodes: None, prepared } => Ok(Some(prepared)),
            // A narrowed search is the slow way's to run.
            PreFilterOutcome::Go { nodes: Some(_), .. } => Err(Status::error("narrowed")),
        }
    }

    fn close_refused(&self, cluster: &Cluster, open: &mut [f64]) -> Result<(), Status> {
        let prepared = match self.prepared(cluster) {
            Ok(Some(prepared)) => prepared,
            Ok(None) => return Ok(()),
            Err(status) if status.is_rejection() => {
                open.fill(CLOSED);
                return Ok(());
            }
            Err(fault) => return Err(fault),
        };
        for node in open_nodes(cluster, open) {
            match self.filter.filter(&prepared, cluster, &self.pod, node) {
                Ok(()) => {}
                Err(status) if status.code == Code::Error => return Err(status),
                Err(_) => open[node.id.index()] = CLOSED,
            }
        }
        Ok(())
    }
}

impl FilterPart for SlowFilter {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        self.failed = self.close_refused(cluster, open).is_err();
    }

    fn passes(&self, _: &Cluster, _: NodeId) -> bool {
        true
    }

    fn asked(&self) -> Asked {
        if self.failed { Asked::Failed } else { Asked::Always }
    }

    fn meet(&mut self, pod: &Arc<Pod>) {
        self.pod.clone_from(pod);
    }
}

/// A score that is given column by column.
pub(crate) struct SlowScore {
    pub(crate) prepare: Option<Arc<dyn PreScore>>,
    pub(crate) score: Arc<dyn Score>,
    pub(crate) normalize: Option<Arc<dyn NormalizeScore>>,
    pub(crate) pod: Arc<Pod>,
    pub(crate) failed: bool,
}

impl SlowScore {
    fn scores(&self, cluster: &Cluster, nodes: &[&NodeInfo]) -> Result<Vec<i64>, Status> {
        let prepared = match &self.prepare {
            None => Prepared::nothing(),
            Some(prepare) => match prepare.pre_score(cluster, &self.pod, nodes)? {
                PreScoreOutcome::Skip => return Ok(vec![0; nodes.len()]),
                PreScoreOutcome::Go(prepared) => prepared,
            },
        };
        let input = ScoreInput { prepared: &prepared, cluster, pod: &self.pod, nodes };
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

impl ScorePart for SlowScore {
    fn fill(&mut self, cluster: &Cluster, open: &[f64], column: &mut [f64]) {
        let nodes = open_nodes(cluster, open);
        column.fill(0.0);
        match self.scores(cluster, &nodes) {
            Ok(scores) => {
                self.failed = false;
                for (node, score) in nodes.iter().zip(scores) {
                    column[node.id.index()] = score as f64;
                }
            }
            Err(_) => self.failed = true,
        }
    }

    fn score(&self, _: &Cluster, _: NodeId) -> f64 {
        0.0
    }

    fn reads_open(&self) -> bool {
        true
    }

    fn asked(&self) -> Asked {
        if self.failed { Asked::Failed } else { Asked::Always }
    }

    fn meet(&mut self, pod: &Arc<Pod>) {
        self.pod.clone_from(pod);
    }
}
