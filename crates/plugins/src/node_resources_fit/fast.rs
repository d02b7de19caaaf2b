//! The fast form: one loop over the columns for each resource.

use std::sync::Arc;

use supercargo_framework::{
    MAX_SCORE,
    fast::{CLOSED, Compiled, FastFilter, FastScore, FilterPart, OPEN, ScorePart},
    vector::vectorized,
};
use supercargo_model::{
    Cluster, Name, NodeId, NodeInfo, Pod,
    columns::{Columns, ResourceColumn},
    resources,
};

use super::{
    NodeResourcesFit, Shortage, SingleStrategy,
    strategy::{Scorer, Strategy},
};

const FULL: f64 = MAX_SCORE as f64;

/// What pods of one shape want.
struct Wanted {
    plugin: Arc<NodeResourcesFit>,
    pod: Arc<Pod>,
    scalars: Vec<(Name, f64)>,
}

impl Wanted {
    /// In whole numbers, for nodes that the columns cannot hold.
    fn passes_exactly(&self, node: &NodeInfo) -> bool {
        let mut shortage = Shortage::default();
        shortage.check_all(&self.pod.spec.requests.fit, node, |resource| self.plugin.ignores(resource));
        node.pods.len() as i64 + 1 <= node.node.allocatable.pods && shortage.verdict().is_ok()
    }
}

/// Closes the nodes that have less than this left.
fn close_without(column: &ResourceColumn, wanted: f64, open: &mut [f64]) {
    vectorized(|| {
        for ((open, all), used) in open.iter_mut().zip(&column.allocatable).zip(&column.used) {
            *open = if wanted <= all - used { *open } else { CLOSED };
        }
    });
}

fn has(column: &ResourceColumn, wanted: f64, i: usize) -> bool {
    wanted <= column.allocatable[i] - column.used[i]
}

impl FilterPart for Wanted {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        let (columns, fit) = (cluster.columns(), &self.pod.spec.requests.fit);
        let inexact: Vec<NodeId> = columns.inexact.iter().filter(|node| open[node.index()] == OPEN).collect();
        close_without(&columns.pods, 1.0, open);
        let amounts = [
            (&columns.cpu, fit.milli_cpu),
            (&columns.memory, fit.memory),
            (&columns.ephemeral_storage, fit.ephemeral_storage),
        ];
        for (column, wanted) in amounts {
            if wanted > 0 {
                close_without(column, wanted as f64, open);
            }
        }
        for (name, wanted) in &self.scalars {
            match columns.scalar(name) {
                Some(column) => close_without(column, *wanted, open),
                None => open.fill(CLOSED),
            }
        }
        for node in inexact {
            let passes = self.passes_exactly(cluster.node_at(node));
            open[node.index()] = if passes { OPEN } else { CLOSED };
        }
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        let (columns, fit, i) = (cluster.columns(), &self.pod.spec.requests.fit, node.index());
        if columns.inexact.contains(node) {
            return self.passes_exactly(cluster.node_at(node));
        }
        has(&columns.pods, 1.0, i)
            && (fit.milli_cpu == 0 || has(&columns.cpu, fit.milli_cpu as f64, i))
            && (fit.memory == 0 || has(&columns.memory, fit.memory as f64, i))
            && (fit.ephemeral_storage == 0 || has(&columns.ephemeral_storage, fit.ephemeral_storage as f64, i))
            && (self.scalars.iter()).all(|(name, wanted)| columns.scalar(name).is_some_and(|c| has(c, *wanted, i)))
    }
}

impl FastFilter for NodeResourcesFit {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn FilterPart> {
        let scalars = (pod.spec.requests.fit.scalars.iter())
            .filter(|(name, amount)| *amount != 0 && !self.ignores(name))
            .map(|(name, amount)| (name.clone(), *amount as f64))
            .collect();
        Compiled::Part(Box::new(Wanted { plugin: self, pod: pod.clone(), scalars }))
    }
}

/// A resource that counts in a score: its name, what the pod adds, and its weight.
struct Counted {
    name: Name,
    wanted: f64,
    weight: f64,
}

/// The score of a strategy, for pods of one shape.
struct StrategyScore<P> {
    plugin: Arc<P>,
    pod: Arc<Pod>,
    most: bool,
    counted: Vec<Counted>,
    weights: Vec<f64>,
}

/// A plugin that scores by a strategy.
trait HasScorer: Send + Sync {
    fn scorer(&self) -> &Scorer;
}

impl HasScorer for NodeResourcesFit {
    fn scorer(&self) -> &Scorer {
        &self.scorer
    }
}

impl HasScorer for SingleStrategy {
    fn scorer(&self) -> &Scorer {
        &self.0
    }
}

/// What there is, and what is taken; `None` if the cluster has none of it.
fn column<'a>(columns: &'a Columns, resource: &str) -> Option<(&'a [f64], &'a [f64])> {
    Some(match resource {
        resources::CPU => (&columns.cpu.allocatable, &columns.cpu_or_default),
        resources::MEMORY => (&columns.memory.allocatable, &columns.memory_or_default),
        resources::EPHEMERAL_STORAGE => {
            (&columns.ephemeral_storage.allocatable, &columns.ephemeral_storage.used)
        }
        other => {
            let column = columns.scalar(other)?;
            (&column.allocatable, &column.used)
        }
    })
}

/// The score of one resource of one node, and the weight it counts with: none where the node has nothing of it.
#[inline(always)]
fn resource_score(most: bool, all: f64, requested: f64) -> f64 {
    let amount = if most {
        if requested > all { all } else { requested }
    } else if requested > all {
        0.0
    } else {
        all - requested
    };
    if all == 0.0 { 0.0 } else { (amount * FULL / all).trunc() }
}

impl<P: HasScorer> StrategyScore<P> {
    fn exact(&self, node: &NodeInfo) -> f64 {
        self.plugin.scorer().score(&self.pod, node) as f64
    }
}

impl<P: HasScorer> ScorePart for StrategyScore<P> {
    fn fill(&mut self, cluster: &Cluster, _: &[f64], scores: &mut [f64]) {
        let columns = cluster.columns();
        scores.fill(0.0);
        self.weights.clear();
        self.weights.resize(scores.len(), 0.0);
        let (most, weights) = (self.most, &mut self.weights);
        for Counted { name, wanted, weight } in &self.counted {
            let Some((all, used)) = column(columns, name) else {
                continue;
            };
            vectorized(|| {
                let nodes = all.iter().zip(used).zip(scores.iter_mut()).zip(weights.iter_mut());
                for (((all, used), score), weights) in nodes {
                    *score += weight * resource_score(most, *all, used + wanted);
                    *weights += if *all == 0.0 { 0.0 } else { *weight };
                }
            });
        }
        vectorized(|| {
            for (score, weights) in scores.iter_mut().zip(weights.iter()) {
                *score = if *weights == 0.0 { 0.0 } else { (*score / *weights).trunc() };
            }
        });
        for node in columns.inexact.iter() {
            scores[node.index()] = self.exact(cluster.node_at(node));
        }
    }

    fn score(&self, cluster: &Cluster, node: NodeId) -> f64 {
        let (columns, i) = (cluster.columns(), node.index());
        if columns.inexact.contains(node) {
            return self.exact(cluster.node_at(node));
        }
        let (mut sum, mut weights) = (0.0, 0.0);
        for Counted { name, wanted, weight } in &self.counted {
            if let Some((all, used)) = column(columns, name) {
                sum += weight * resource_score(self.most, all[i], used[i] + wanted);
                weights += if all[i] == 0.0 { 0.0 } else { *weight };
            }
        }
        if weights == 0.0 { 0.0 } else { (sum / weights).trunc() }
    }

    fn reads_load(&self) -> bool {
        true
    }
}

/// A score that is worked out node by node, for shapes of any form.
struct ScorerByNode<P> {
    plugin: Arc<P>,
    pod: Arc<Pod>,
}

impl<P: HasScorer> ScorePart for ScorerByNode<P> {
    fn fill(&mut self, cluster: &Cluster, _: &[f64], column: &mut [f64]) {
        column.fill(0.0);
        for node in cluster.columns().live.iter() {
            column[node.index()] = self.score(cluster, node);
        }
    }

    fn score(&self, cluster: &Cluster, node: NodeId) -> f64 {
        self.plugin.scorer().score(&self.pod, cluster.node_at(node)) as f64
    }

    fn reads_load(&self) -> bool {
        true
    }
}

fn compile<P: HasScorer + 'static>(plugin: Arc<P>, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
    let Scorer { strategy, resources: all } = plugin.scorer();
    let wanted = &pod.spec.requests.score;
    let counted = (all.iter())
        .filter(|r| &*r.name != resources::PODS)
        .filter(|r| !(wanted.get(&r.name) == 0 && resources::is_scalar(&r.name)))
        .map(|r| Counted {
            name: r.name.clone(),
            wanted: wanted.get(&r.name) as f64,
            weight: r.weight as f64,
        })
        .collect();
    let most = match strategy {
        Strategy::LeastAllocated => false,
        Strategy::MostAllocated => true,
        Strategy::RequestedToCapacityRatio(_) => {
            return Compiled::Part(Box::new(ScorerByNode { plugin, pod: pod.clone() }));
        }
    };
    Compiled::Part(Box::new(StrategyScore { plugin, pod: pod.clone(), most, counted, weights: Vec::new() }))
}

impl FastScore for NodeResourcesFit {
    fn compile_score(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        compile(self, pod)
    }
}

impl FastScore for SingleStrategy {
    fn compile_score(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        compile(self, pod)
    }
}
