//! The fast form: one loop over the columns for each resource.

use std::sync::Arc;

use supercargo_framework::{
    Prepared, Status,
    bugs::{self, Bug},
    fast::{
        CLOSED, Compiled, FastFilter, FastScore, FilterPart, LoadFilter, LoadScore, NodeFilter, NodeScore,
        OPEN, RawScores, ScorePart,
    },
    formula::Inverse,
    points::Filter,
    vector::vectorized,
};
use supercargo_model::{
    Cluster, Name, NodeId, NodeInfo, Pod,
    columns::{Columns, LoadColumns, ResourceColumn},
    resources,
};

use crate::device_resources::{are_devices, stands_for_devices};

use super::{
    NodeResourcesFit, Shortage, SingleStrategy,
    strategy::{Scorer, Strategy, least_allocated, mean, most_allocated},
};

/// What pods of one signature want.
struct Wanted {
    plugin: Arc<NodeResourcesFit>,
    pod: Arc<Pod>,
    scalars: Vec<WantedScalar>,
    /// What the plugin's Filter needs, to tell why a node is refused.
    prepared: Prepared,
}

/// A resource besides cpu, memory and the like.
struct WantedScalar {
    name: Name,
    amount: f64,
    /// Nodes that have none may have devices for it, which are others' to look at.
    or_devices: bool,
}

impl WantedScalar {
    fn passes(&self, columns: &Columns, i: usize) -> bool {
        match columns.scalar(&self.name) {
            Some(column) => has(column, self.amount, i) || self.or_devices && column.allocatable[i] <= 0.0,
            None => self.or_devices,
        }
    }
}

impl Wanted {
    /// In whole numbers, for nodes that the columns cannot hold.
    fn passes_exactly(&self, cluster: &Cluster, node: &NodeInfo) -> bool {
        let mut shortage = Shortage::default();
        let ignores =
            |resource: &str| self.plugin.ignores(resource) || are_devices(cluster, &node.node, resource);
        shortage.check_all(&self.pod.spec.requests.fit, node, ignores);
        (node.pods.len() as i64) < node.node.allocatable.pods && shortage.verdict().is_ok()
    }
}

/// Closes the nodes that have no room for a pod, or less cpu or memory left than this; nothing wanted is always there.
fn close_full(loads: &LoadColumns, cpu: f64, memory: f64, open: &mut [f64]) {
    vectorized(
        #[inline(always)]
        || {
            let pods = loads.pods.allocatable.iter().zip(&loads.pods.used);
            let cpus = loads.cpu.allocatable.iter().zip(&loads.cpu.used);
            let memories = loads.memory.allocatable.iter().zip(&loads.memory.used);
            for (((open, pods), cpus), memories) in open.iter_mut().zip(pods).zip(cpus).zip(memories) {
                let room = pods.0 - pods.1 >= 1.0;
                let enough_cpu = cpu == 0.0 || cpu <= cpus.0 - cpus.1;
                let enough_memory = memory == 0.0 || memory <= memories.0 - memories.1;
                *open = if room & enough_cpu & enough_memory { *open } else { CLOSED };
            }
        },
    );
}

/// Closes the nodes that have less than this left.
fn close_without(column: &ResourceColumn, wanted: f64, open: &mut [f64]) {
    vectorized(
        #[inline(always)]
        || {
            for ((open, all), used) in open.iter_mut().zip(&column.allocatable).zip(&column.used) {
                *open = if wanted <= all - used { *open } else { CLOSED };
            }
        },
    );
}

fn has(column: &ResourceColumn, wanted: f64, i: usize) -> bool {
    wanted <= column.allocatable[i] - column.used[i]
}

impl NodeFilter for Wanted {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        let (columns, fit) = (cluster.columns(), &self.pod.spec.requests.fit);
        let inexact: Vec<NodeId> = columns.inexact.iter().filter(|node| open[node.index()] == OPEN).collect();
        LoadFilter::close(self, &columns.loads, open);
        if fit.ephemeral_storage > 0 {
            close_without(&columns.ephemeral_storage, fit.ephemeral_storage as f64, open);
        }
        for wanted in &self.scalars {
            match columns.scalar(&wanted.name) {
                Some(_) if wanted.or_devices => {
                    let passes = |i: usize| wanted.passes(columns, i);
                    open.iter_mut().enumerate().filter(|(i, _)| !passes(*i)).for_each(|(_, o)| *o = CLOSED);
                }
                Some(column) => close_without(column, wanted.amount, open),
                None if wanted.or_devices => {}
                None => open.fill(CLOSED),
            }
        }
        for node in inexact {
            let passes = self.passes_exactly(cluster, cluster.node_at(node));
            open[node.index()] = if passes { OPEN } else { CLOSED };
        }
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        let (columns, fit, i) = (cluster.columns(), &self.pod.spec.requests.fit, node.index());
        if columns.inexact.contains(node) {
            return self.passes_exactly(cluster, cluster.node_at(node));
        }
        let loads = &columns.loads;
        has(&loads.pods, 1.0, i)
            && (fit.milli_cpu == 0 || has(&loads.cpu, fit.milli_cpu as f64, i))
            && (fit.memory == 0 || has(&loads.memory, fit.memory as f64, i))
            && (fit.ephemeral_storage == 0
                || has(&columns.ephemeral_storage, fit.ephemeral_storage as f64, i))
            && self.scalars.iter().all(|wanted| wanted.passes(columns, i))
    }

    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        self.plugin.filter(&self.prepared, cluster, &self.pod, cluster.node_at(node)).err()
    }

    fn by_load(&self) -> Option<&dyn LoadFilter> {
        let wants_more = self.pod.spec.requests.fit.ephemeral_storage > 0 || !self.scalars.is_empty();
        (!wants_more).then_some(self)
    }
}

impl LoadFilter for Wanted {
    fn close(&self, loads: &LoadColumns, open: &mut [f64]) {
        let fit = &self.pod.spec.requests.fit;
        close_full(loads, fit.milli_cpu as f64, fit.memory as f64, open);
    }
}

impl FastFilter for NodeResourcesFit {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if bugs::is_on(Bug::FreeRoomWraps) {
            return Compiled::NoFastForm;
        }
        let mut scalars: Vec<WantedScalar> = (pod.spec.requests.fit.scalars.iter())
            .filter(|(name, amount)| *amount != 0 && !self.ignores(name))
            .map(|(name, amount)| WantedScalar {
                name: name.clone(),
                amount: *amount as f64,
                or_devices: stands_for_devices(cluster, name),
            })
            .collect();
        // One that no node offers says enough.
        let absent =
            |wanted: &WantedScalar| !wanted.or_devices && cluster.columns().scalar(&wanted.name).is_none();
        if let Some(absent) = scalars.iter().position(absent) {
            scalars = vec![scalars.swap_remove(absent)];
        }
        let prepared = self.prepare(cluster, pod);
        let wanted = Wanted { plugin: self, pod: pod.clone(), scalars, prepared };
        Compiled::Part(FilterPart::ByNode(Box::new(wanted)))
    }
}

/// A resource that counts in a score: its name, what the pod adds, and its weight.
struct Counted {
    name: Name,
    wanted: f64,
    weight: f64,
}

/// The score of a strategy, for pods of one signature.
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

/// A resource of all nodes: what there is, its inverse, and what is taken.
#[derive(Clone, Copy)]
struct Amounts<'a> {
    all: &'a [f64],
    inverse: &'a [f64],
    used: &'a [f64],
}

/// `None` if the cluster has none of it.
fn amounts<'a>(columns: &'a Columns, resource: &str) -> Option<Amounts<'a>> {
    let (column, used) = match resource {
        resources::CPU | resources::MEMORY => return amounts_of_load(&columns.loads, resource),
        resources::EPHEMERAL_STORAGE => (&columns.ephemeral_storage, &columns.ephemeral_storage.used),
        other => columns.scalar(other).map(|column| (column, &column.used))?,
    };
    Some(Amounts { all: &column.allocatable, inverse: &column.inverse, used })
}

/// `None` for what is not cpu or memory.
fn amounts_of_load<'a>(loads: &'a LoadColumns, resource: &str) -> Option<Amounts<'a>> {
    let (column, used) = match resource {
        resources::CPU => (&loads.cpu, &loads.cpu_or_default),
        resources::MEMORY => (&loads.memory, &loads.memory_or_default),
        _ => return None,
    };
    Some(Amounts { all: &column.allocatable, inverse: &column.inverse, used })
}

/// The score of one resource of one node; 0 where the node has nothing of it.
#[inline(always)]
fn resource_score<const MOST: bool>(all: f64, inverse: f64, requested: f64) -> f64 {
    let divisor = Inverse(inverse);
    if MOST { most_allocated(requested, all, divisor) } else { least_allocated(requested, all, divisor) }
}

/// Two resources in one pass: what most configurations score by.
#[inline(always)]
fn fill_two<const MOST: bool>(
    scores: &mut [f64],
    one: (Amounts<'_>, &Counted),
    other: (Amounts<'_>, &Counted),
) {
    let ((a, r1), (b, r2)) = (one, other);
    let weights = Inverse::of(r1.weight + r2.weight);
    let first = a.all.iter().zip(a.inverse).zip(a.used);
    let second = b.all.iter().zip(b.inverse).zip(b.used);
    for ((score, ((all1, inverse1), used1)), ((all2, inverse2), used2)) in
        scores.iter_mut().zip(first).zip(second)
    {
        let score1 = resource_score::<MOST>(*all1, *inverse1, used1 + r1.wanted);
        let score2 = resource_score::<MOST>(*all2, *inverse2, used2 + r2.wanted);
        let both = mean(r1.weight * score1 + r2.weight * score2, weights);
        // Where a node lacks one of them, the other counts alone; the score of what it lacks is 0.
        let lacks = *all1 == 0.0 || *all2 == 0.0;
        *score = if lacks { score1 + score2 } else { both };
    }
}

/// One of several resources: adds its points, and its weight.
#[inline(always)]
fn add_one<const MOST: bool>(
    scores: &mut [f64],
    weights: &mut [f64],
    amounts: Amounts<'_>,
    counted: &Counted,
) {
    let nodes = amounts.all.iter().zip(amounts.inverse).zip(amounts.used);
    for ((score, weights), ((all, inverse), used)) in scores.iter_mut().zip(weights).zip(nodes) {
        let points = counted.weight * resource_score::<MOST>(*all, *inverse, used + counted.wanted);
        *score += if *all == 0.0 { 0.0 } else { points };
        *weights += if *all == 0.0 { 0.0 } else { counted.weight };
    }
}

impl<P: HasScorer> StrategyScore<P> {
    /// Fills a column where two resources count; `None` if that is not so.
    fn fill_pair<'a>(&self, amounts: impl Fn(&str) -> Option<Amounts<'a>>, scores: &mut [f64]) -> Option<()> {
        let [one, other] = &self.counted[..] else {
            return None;
        };
        let (first, second) = ((amounts(&one.name)?, one), (amounts(&other.name)?, other));
        if self.most {
            vectorized(
                #[inline(always)]
                || fill_two::<true>(scores, first, second),
            );
        } else {
            vectorized(
                #[inline(always)]
                || fill_two::<false>(scores, first, second),
            );
        }
        Some(())
    }

    fn fill_any(&mut self, columns: &Columns, scores: &mut [f64]) {
        scores.fill(0.0);
        self.weights.clear();
        self.weights.resize(scores.len(), 0.0);
        let weights = &mut self.weights;
        for counted in &self.counted {
            let Some(amounts) = amounts(columns, &counted.name) else {
                continue;
            };
            if self.most {
                vectorized(
                    #[inline(always)]
                    || add_one::<true>(scores, weights, amounts, counted),
                );
            } else {
                vectorized(
                    #[inline(always)]
                    || add_one::<false>(scores, weights, amounts, counted),
                );
            }
        }
        vectorized(
            #[inline(always)]
            || {
                for (score, weights) in scores.iter_mut().zip(weights.iter()) {
                    let mean = mean(*score, *weights);
                    *score = if *weights == 0.0 { 0.0 } else { mean };
                }
            },
        );
    }

    fn exact(&self, cluster: &Cluster, node: &NodeInfo) -> f64 {
        self.plugin.scorer().score(cluster, &self.pod, node) as f64
    }
}

impl<P: HasScorer> NodeScore for StrategyScore<P> {
    fn fill(&mut self, cluster: &Cluster, scores: &mut [f64]) {
        let columns = cluster.columns();
        if self.fill_pair(|name| amounts(columns, name), scores).is_none() {
            self.fill_any(columns, scores);
        }
        for node in columns.inexact.iter() {
            scores[node.index()] = self.exact(cluster, cluster.node_at(node));
        }
    }

    fn score(&self, cluster: &Cluster, node: NodeId) -> f64 {
        let (columns, i) = (cluster.columns(), node.index());
        if columns.inexact.contains(node) {
            return self.exact(cluster, cluster.node_at(node));
        }
        let (mut sum, mut weights) = (0.0, 0.0);
        for Counted { name, wanted, weight } in &self.counted {
            if let Some(Amounts { all, inverse, used }) = amounts(columns, name)
                && all[i] != 0.0
            {
                let requested = used[i] + wanted;
                let score = if self.most {
                    resource_score::<true>(all[i], inverse[i], requested)
                } else {
                    resource_score::<false>(all[i], inverse[i], requested)
                };
                sum += weight * score;
                weights += weight;
            }
        }
        if weights == 0.0 { 0.0 } else { mean(sum, weights) }
    }

    fn by_load(&self) -> Option<&dyn LoadScore> {
        let is_load = |counted: &Counted| matches!(&*counted.name, resources::CPU | resources::MEMORY);
        (self.counted.len() == 2 && self.counted.iter().all(is_load)).then_some(self)
    }
}

impl<P: HasScorer> LoadScore for StrategyScore<P> {
    fn fill(&self, loads: &LoadColumns, column: &mut [f64]) {
        let filled = self.fill_pair(|name| amounts_of_load(loads, name), column);
        debug_assert!(filled.is_some(), "two resources, as was asked before");
    }

    fn bounds(&self, least: &LoadColumns, most: &LoadColumns, lowest: &mut [f64], highest: &mut [f64]) {
        // The more is taken, the fewer points, or the more.
        let (lowest_at, highest_at) = if self.most { (least, most) } else { (most, least) };
        LoadScore::fill(self, lowest_at, lowest);
        LoadScore::fill(self, highest_at, highest);
    }
}

/// A score that is worked out node by node, for any shape of points.
struct ScorerByNode<P> {
    plugin: Arc<P>,
    pod: Arc<Pod>,
}

impl<P: HasScorer> NodeScore for ScorerByNode<P> {
    fn fill(&mut self, cluster: &Cluster, column: &mut [f64]) {
        column.fill(0.0);
        for node in cluster.columns().live.iter() {
            column[node.index()] = self.score(cluster, node);
        }
    }

    fn score(&self, cluster: &Cluster, node: NodeId) -> f64 {
        self.plugin.scorer().score(cluster, &self.pod, cluster.node_at(node)) as f64
    }
}

fn compile<P: HasScorer + 'static>(plugin: Arc<P>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
    if plugin.scorer().counts_devices(cluster, pod) {
        return Compiled::NoFastForm;
    }
    let Scorer { strategy, resources: all, .. } = plugin.scorer();
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
        Strategy::LeastAllocated => Some(false),
        Strategy::MostAllocated => Some(true),
        Strategy::RequestedToCapacityRatio(_) => None,
    };
    let pod = pod.clone();
    let part: Box<dyn NodeScore> = match most {
        Some(most) => Box::new(StrategyScore { plugin, pod, most, counted, weights: Vec::new() }),
        None => Box::new(ScorerByNode { plugin, pod }),
    };
    Compiled::Part(RawScores::ByNode(part).in_range())
}

impl FastScore for NodeResourcesFit {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        compile(self, cluster, pod)
    }
}

impl FastScore for SingleStrategy {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        compile(self, cluster, pod)
    }
}
