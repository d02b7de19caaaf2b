//! The best nodes for a pod of a signature that is not kept, found by what is taken of nodes: most of them are never looked at.
//!
//! Nodes are in buckets of which about as much is taken, so that what a pod scores in a bucket lies between two bounds. From the
//! highest bound down, the nodes of buckets are scored until none of the others can be as good as the best so far.

use supercargo_framework::{
    fast::{CLOSED, FilterPart, LoadScore, OPEN, RawScores, SharedScores},
    vector::{Bounds, add_weighted_at, normalized, vectorized},
};
use supercargo_model::{
    Cluster, NodeId,
    bits::Bits,
    changes::ChangeLogId,
    columns::LoadColumns,
    label_columns::{ABSENT, LabelColumn},
};

use super::{
    SignatureState,
    column::{Column, SharedPoints},
};
use crate::load_buckets::LoadBuckets;

/// After so many bounds, a search is given up: looking at all nodes is as good.
const MAX_BOUNDS: usize = 16;
/// If no more than one of so many nodes is looked at, each of them is scored.
const FEW_OF_ALL: usize = 6;

/// Memory that is used again from search to search, and what the last one found.
#[derive(Default)]
pub(crate) struct LoadSearch {
    /// What is the same for all nodes.
    same: f64,
    /// Between which totals the nodes of each bucket lie, without the rest.
    lowest: Vec<f64>,
    highest: Vec<f64>,
    /// The bounds of one score.
    from: Vec<f64>,
    to: Vec<f64>,
    /// The nodes that are scored one by one, what is taken of them, and their totals without the rest.
    nodes: Vec<u32>,
    loads: LoadColumns,
    totals: Vec<f64>,
    /// Buckets all of whose nodes have this total; and those of which that is so without the rest.
    whole: Vec<(u32, f64)>,
    met: Vec<(u32, f64)>,
    best: Best,
    ties: Bits,
    positions: Positions,
    /// What nodes with scores of their own have more than those that share theirs, by place; nothing between two searches.
    own: Vec<f64>,
    owners: Vec<u32>,
    /// The most that this is, of scores that all other nodes share.
    most_of_own: f64,
}

/// The best nodes so far.
#[derive(Default)]
struct Best {
    total: f64,
    /// Their places: the first so many.
    nodes: Vec<u32>,
    count: usize,
}

impl Best {
    /// There are so many places.
    fn clear(&mut self, places: usize) {
        self.total = f64::NEG_INFINITY;
        self.nodes.resize(places, 0);
        self.count = 0;
    }

    /// One more node. Whether it is as good as the best is not to be foreseen, so nothing is made to depend on it but a sum.
    #[inline(always)]
    fn note(&mut self, node: u32, total: f64) {
        if total > self.total {
            self.total = total;
            self.count = 0;
        }
        self.nodes[self.count] = node;
        self.count += usize::from(total == self.total);
    }

    /// Some more nodes, each of them once: there is a place for one more than the others.
    fn add_all(&mut self, nodes: &[u32]) {
        self.nodes[self.count..self.count + nodes.len()].copy_from_slice(nodes);
        self.count += nodes.len();
    }

    fn nodes(&self) -> &[u32] {
        &self.nodes[..self.count]
    }
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FoundByLoad {
    /// The highest total.
    pub(crate) total: f64,
    /// How many nodes have it.
    pub(crate) ties: usize,
    /// How many nodes are open, of those that were looked at.
    pub(crate) feasible: usize,
    /// How many were looked at.
    pub(crate) looked_at: usize,
}

/// Not all nodes are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// Where the search starts in the order of nodes.
    pub(crate) start: usize,
    /// How many open nodes are looked for.
    pub(crate) enough: usize,
}

/// Which nodes are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Among {
    /// All: every one is open.
    All,
    /// Those that [`SignatureState::open`] tells.
    Open,
    /// Of all, a stretch of the order.
    Stretch(Sample),
}

/// Where each node is in the order, by place.
#[derive(Default)]
struct Positions {
    of: Vec<u32>,
    /// How many nodes there are.
    nodes: u32,
    /// Of which cluster, and after how many invalidations, this was so.
    known_at: Option<(ChangeLogId, u64)>,
}

impl Positions {
    fn catch_up(&mut self, cluster: &Cluster) {
        let (history, invalidations) = (cluster.changes().history(), cluster.changes().invalidations());
        if matches!(&self.known_at, Some((of, at)) if of.is(history) && *at == invalidations) {
            return;
        }
        self.of.resize(cluster.columns().len(), 0);
        self.nodes = cluster.order().len() as u32;
        for (position, node) in cluster.order().iter().enumerate() {
            self.of[node.index()] = position as u32;
        }
        self.known_at = Some((history.mark(), invalidations));
    }
}

impl LoadSearch {
    /// The n-th of the best nodes of the last search, by place.
    pub(crate) fn nth_best(&self, n: usize) -> Option<NodeId> {
        self.ties.nth(n).map(NodeId::from_index)
    }

    /// Whether a node is one of the best of the last search.
    pub(crate) fn is_best(&self, node: NodeId) -> bool {
        self.ties.contains(node.index())
    }

    /// Some nodes are scored, of all in their order: each of them, if they are few.
    fn begin_stretch(&mut self, cluster: &Cluster, Sample { start, enough }: Sample, are_few: bool) {
        if !are_few {
            return self.positions.catch_up(cluster);
        }
        let (before, from) = cluster.order().split_at(start);
        self.nodes.clear();
        self.nodes.extend(from.iter().chain(before).take(enough).map(|node| node.index() as u32));
    }

    /// Nothing has been added for any node.
    fn begin_rest(&mut self, places: usize) {
        (self.same, self.most_of_own) = (0.0, 0.0);
        self.owners.drain(..).for_each(|node| self.own[node as usize] = 0.0);
        self.own.resize(places, 0.0);
    }

    /// Takes over what nodes share of a score where all are open, and what some have of their own.
    fn share(&mut self, cluster: &Cluster, column: &mut Column, shared: &SharedScores) {
        let SharedScores { by_value, otherwise, own } = shared;
        let label = by_value.as_ref().and_then(|(key, _)| cluster.label_columns().get(key));
        let values: &[f64] = by_value.as_ref().filter(|_| label.is_some()).map_or(&[], |(_, values)| values);
        let number = |node: NodeId| {
            let number = label.map_or(ABSENT, |label| label.of(node));
            values.len().min(number as usize)
        };
        let nodes_with = |value: usize| label.map_or(0, |label| label.nodes(value as u32).len());
        // How many nodes of each value share its score; the last are those without the label.
        let mut sharing: Vec<usize> = (0..values.len()).map(nodes_with).collect();
        sharing.push(cluster.node_count() - sharing.iter().sum::<usize>());
        own.iter().for_each(|(node, _)| sharing[number(*node)] -= 1);

        let scores = || values.iter().chain([otherwise]).copied();
        let in_use = || scores().zip(&sharing).filter(|(_, nodes)| **nodes > 0).map(|(score, _)| score);
        column.bounds = Bounds::NONE;
        let all = in_use().chain(own.iter().map(|(_, score)| *score));
        all.for_each(|score| column.bounds.include(column.normalization, score));
        let Column { weight, normalization, bounds, .. } = *column;
        let points = |score: f64| weight * normalized(normalization, bounds, score);
        let shared: Vec<f64> = scores().map(points).collect();
        let mut most = in_use().map(points).fold(f64::NEG_INFINITY, f64::max);
        // Many have the same as the one before.
        let mut last = (f64::NAN, 0.0);
        for (node, score) in own {
            if *score != last.0 {
                last = (*score, points(*score));
                most = most.max(last.1);
            }
            self.own[node.index()] += last.1 - shared[number(*node)];
            self.owners.push(node.index() as u32);
        }
        match by_value {
            Some((key, _)) => {
                column.shared = Some(SharedPoints { key: key.clone(), points: shared, most });
            }
            None => {
                column.is_flat = true;
                self.same += shared[0];
                self.most_of_own += most - shared[0];
            }
        }
    }

    /// Nothing was found so far.
    fn clear_best(&mut self, cluster: &Cluster) {
        self.whole.clear();
        self.best.clear(cluster.columns().len() + 1);
    }

    /// The nodes of whole buckets with the highest total are among the best, too.
    fn tie(&mut self, buckets: &LoadBuckets) {
        let highest = self.whole.iter().fold(f64::NEG_INFINITY, |highest, (_, total)| highest.max(*total));
        if highest > self.best.total {
            self.best.total = highest;
            self.best.count = 0;
        }
        let Self { whole, best, .. } = self;
        for (bucket, total) in whole.iter() {
            if *total != best.total {
                continue;
            }
            best.add_all(buckets.nodes_of(*bucket as usize));
        }
        self.ties.clear();
        self.best.nodes().iter().for_each(|node| self.ties.insert(*node as usize));
    }
}

impl SignatureState {
    /// Finds the best nodes for the pod that this was compiled for, where nothing has been worked out yet: of all, or of a sample.
    /// `None` if columns must be filled, or no node is open.
    pub(crate) fn search_by_load(
        &mut self,
        cluster: &Cluster,
        buckets: &mut LoadBuckets,
        search: &mut LoadSearch,
        sample: Option<Sample>,
    ) -> Option<FoundByLoad> {
        if self.known_at.is_some() || self.has_opaque_filters || !self.columns.iter().any(Column::is_by_load)
        {
            return None;
        }
        let buckets = buckets.catch_up(cluster)?;
        let mut among = if self.filter_by_load(cluster, buckets, search) { Among::All } else { Among::Open };
        self.find_flat(cluster);
        let nodes = cluster.node_count();
        let (mut feasible, mut looked_at) =
            (if among == Among::All { nodes } else { self.open_count }, nodes);
        let sample = sample.filter(|sample| sample.enough < feasible);
        let are_few = sample.is_some_and(|sample| sample.enough * FEW_OF_ALL <= nodes);
        if let Some(sample) = sample {
            (looked_at, feasible) = (sample.enough, sample.enough);
            if among == Among::All && self.the_rest().next().is_none() {
                among = Among::Stretch(sample);
                search.begin_stretch(cluster, sample, are_few);
            } else {
                looked_at = self.take_sample(cluster, search, sample, among == Among::All);
                among = Among::Open;
            }
        }
        if feasible == 0 {
            return None;
        }
        self.score_the_rest(cluster, search, among)?;
        search.clear_best(cluster);
        if are_few {
            self.score_sample(cluster, search);
        } else {
            self.bound(buckets, search);
            self.search_buckets(cluster, buckets, search, among)?;
        }
        search.tie(buckets);
        let Best { total, count, .. } = search.best;
        Some(FoundByLoad { total, ties: count, feasible, looked_at })
    }

    /// Closes all nodes but the first open ones from a position in the order on. How many were looked at: it only stops at one open
    /// node more than it needs.
    fn take_sample(
        &mut self,
        cluster: &Cluster,
        search: &mut LoadSearch,
        Sample { start, enough }: Sample,
        all_open: bool,
    ) -> usize {
        let (before, from) = cluster.order().split_at(start);
        let in_order = from.iter().chain(before).map(|node| node.index());
        search.nodes.clear();
        let mut looked_at = enough;
        if all_open {
            search.nodes.extend(in_order.take(enough).map(|node| node as u32));
        } else {
            let is_open = |(_, node): &(usize, usize)| self.open[*node] == OPEN;
            let mut open = in_order.enumerate().filter(is_open);
            search.nodes.extend(open.by_ref().take(enough).map(|(_, node)| node as u32));
            looked_at = open.next().map_or(cluster.order().len(), |(position, _)| position);
        }
        self.open.clear();
        self.open.resize(cluster.columns().len(), CLOSED);
        search.nodes.iter().for_each(|node| self.open[*node as usize] = OPEN);
        looked_at
    }

    /// Scores each node of the sample.
    fn score_sample(&self, cluster: &Cluster, search: &mut LoadSearch) {
        search.loads.clear();
        search.loads.gather(&cluster.columns().loads, &search.nodes);
        self.score_loads(search);
        self.finish(cluster, search, Among::All);
    }

    /// Finds out which nodes are open; whether all are, and nothing was noted about them.
    fn filter_by_load(&mut self, cluster: &Cluster, buckets: &LoadBuckets, search: &mut LoadSearch) -> bool {
        let (_, most) = buckets.loads();
        let LoadSearch { to: open, .. } = search;
        open.clear();
        open.resize(most.len(), OPEN);
        let mut all_open = true;
        for (_, filter) in &mut self.filters {
            match filter {
                FilterPart::ByNode(filter) => match filter.by_load() {
                    Some(by_load) => by_load.close(most, open),
                    None => all_open = false,
                },
                FilterPart::ByDomain(filter) => {
                    // Counts, and nothing else.
                    filter.close(cluster, &mut []);
                    all_open &= filter.closed().is_none();
                }
                FilterPart::Fixed(_) | FilterPart::Opaque(_) => all_open = false,
            }
        }
        let closed: usize = vectorized(
            #[inline(always)]
            || open.iter().zip(buckets.filled()).filter(|(open, filled)| **open < **filled).count(),
        );
        all_open &= closed == 0;
        if !all_open {
            self.find_fixed(cluster);
            self.refilter(cluster);
        }
        all_open
    }

    /// Finds out which scores are worth the same to all nodes, whichever are scored.
    fn find_flat(&mut self, cluster: &Cluster) {
        for column in &mut self.columns {
            column.is_flat = match &column.scores {
                RawScores::Constant(score) => {
                    column.bounds = Bounds { lowest: *score, highest: *score };
                    true
                }
                RawScores::ByDomain(part) if column.is_restless() && part.is_uniform(cluster) => {
                    // Whatever the score is, it is worth the same.
                    column.bounds = Bounds { lowest: 1.0, highest: 1.0 };
                    true
                }
                _ => false,
            };
        }
    }

    /// Works out the scores that do not follow from what is taken of nodes: what is the same for all of them, and columns. `None`
    /// if a plugin fails.
    fn score_the_rest(&mut self, cluster: &Cluster, search: &mut LoadSearch, among: Among) -> Option<()> {
        let open = if among == Among::Open { &self.open } else { &cluster.columns().there };
        search.begin_rest(open.len());
        for column in &mut self.columns {
            column.shared = None;
            if column.is_flat {
                let Column { weight, normalization, bounds, .. } = column;
                search.same += *weight * normalized(*normalization, *bounds, bounds.lowest);
                continue;
            }
            if column.is_by_load() {
                continue;
            }
            let shared = if among == Among::All { column.take_shared(cluster) } else { None };
            if let Some(shared) = shared {
                search.share(cluster, column, &shared);
                column.put_back(shared);
            } else {
                column.raw.resize(open.len(), 0.0);
                column.fill(cluster, &self.pod, open).ok()?;
                column.bounds = Bounds::of(column.normalization, &column.raw, open);
            }
        }
        Some(())
    }

    /// The columns that do not follow from what is taken of nodes.
    fn the_rest(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.is_flat && !column.is_by_load())
    }

    /// Finds out between which totals the nodes of each bucket lie, by what is taken of them and by what is the same for all.
    fn bound(&self, buckets: &LoadBuckets, search: &mut LoadSearch) {
        let (least, most) = buckets.loads();
        let LoadSearch { lowest, highest, from, to, same, .. } = search;
        for bounds in [&mut *lowest, highest] {
            bounds.clear();
            bounds.extend(buckets.filled().iter().map(|filled| *same + filled));
        }
        from.resize(least.len(), 0.0);
        to.resize(least.len(), 0.0);
        for (weight, part) in load_scores(&self.columns) {
            let (from, to) = (&mut from[..least.len()], &mut to[..least.len()]);
            part.bounds(least, most, from, to);
            add(lowest, weight, from);
            add(highest, weight, to);
        }
    }

    /// Scores the nodes of buckets from the highest bound down. `None` if that takes too long.
    fn search_buckets(
        &self,
        cluster: &Cluster,
        buckets: &LoadBuckets,
        search: &mut LoadSearch,
        among: Among,
    ) -> Option<()> {
        // Where all nodes are open and nothing else counts, those of a bucket whose bounds meet have that total, and no bucket whose
        // highest is below the lowest of another has one of the best.
        let meet = among == Among::All && self.the_rest().next().is_none() && search.owners.is_empty();
        let mut floor = if meet { highest_of(&search.lowest) } else { f64::INFINITY };
        let at_most = search.most_of_own + self.the_rest().map(most_points).sum::<f64>();
        for _ in 0..MAX_BOUNDS {
            let bound = highest_of(&search.highest);
            if bound == f64::NEG_INFINITY || bound + at_most < search.best.total {
                return Some(());
            }
            self.look_at(cluster, buckets, search, floor.min(bound), meet);
            self.finish(cluster, search, among);
            floor = f64::INFINITY;
        }
        None
    }

    /// Adds the rest to the totals of nodes, puts those that are not to be scored below all others, and takes note of the best.
    fn finish(&self, cluster: &Cluster, search: &mut LoadSearch, among: Among) {
        let LoadSearch { nodes, totals, best, positions, own, owners, .. } = search;
        if among == Among::All
            && let Some(rest) = self.rest_by_value(cluster)
        {
            for (node, total) in nodes.iter().zip(totals) {
                best.note(*node, *total + rest.of(*node) + own[*node as usize]);
            }
            return;
        }
        for column in self.the_rest() {
            match &column.shared {
                Some(shared) => {
                    let points = PointsByValue::new(cluster, shared);
                    totals.iter_mut().zip(&*nodes).for_each(|(total, node)| *total += points.of(*node));
                }
                None => add_weighted_at(totals, nodes, column.weighted()),
            }
        }
        if !owners.is_empty() {
            totals.iter_mut().zip(&*nodes).for_each(|(total, node)| *total += own[*node as usize]);
        }
        let scored = nodes.iter().zip(totals);
        match among {
            Among::All => scored.for_each(|(node, total)| best.note(*node, *total)),
            Among::Open => {
                scored.for_each(|(node, total)| best.note(*node, *total + self.open[*node as usize]));
            }
            Among::Stretch(Sample { start, enough }) => {
                let (start, enough) = (start as u32, enough as u32);
                for (node, total) in scored {
                    let position = positions.of[*node as usize];
                    // The order goes on at its beginning.
                    let turn = if position < start { positions.nodes } else { 0 };
                    let is_in = position + turn - start < enough;
                    best.note(*node, if is_in { *total } else { f64::NEG_INFINITY });
                }
            }
        }
    }

    /// The rest, if nodes share all of it by one label at most.
    fn rest_by_value<'a>(&'a self, cluster: &'a Cluster) -> Option<PointsByValue<'a>> {
        let mut rest = self.the_rest();
        match (rest.next(), rest.next()) {
            (None, _) => Some(PointsByValue { numbers: &[], points: &[0.0] }),
            (Some(only), None) => only.shared.as_ref().map(|shared| PointsByValue::new(cluster, shared)),
            _ => None,
        }
    }

    /// Works out the totals of nodes by what is taken of them.
    fn score_loads(&self, LoadSearch { same, nodes, loads, totals, to, .. }: &mut LoadSearch) {
        totals.clear();
        totals.resize(nodes.len(), *same);
        if to.len() < nodes.len() {
            to.resize(nodes.len(), 0.0);
        }
        for (weight, part) in load_scores(&self.columns) {
            let column = &mut to[..nodes.len()];
            part.fill(loads, column);
            add(totals, weight, column);
        }
    }

    /// Takes the buckets whose bound is not below the floor, and works out the totals of their nodes without the rest; not of those
    /// that all have the same, if that is all there is to them.
    fn look_at(
        &self,
        cluster: &Cluster,
        buckets: &LoadBuckets,
        search: &mut LoadSearch,
        floor: f64,
        meet: bool,
    ) {
        let LoadSearch { lowest, highest, nodes, loads, whole, met, .. } = search;
        nodes.clear();
        loads.clear();
        let known = if meet { whole } else { &mut *met };
        for (bucket, highest) in highest.iter_mut().enumerate().filter(|(_, highest)| **highest >= floor) {
            if *highest == lowest[bucket] {
                known.push((bucket as u32, *highest));
            } else {
                let doubtful = buckets.nodes_of(bucket);
                nodes.extend_from_slice(doubtful);
                loads.gather_alike(&cluster.columns().loads, doubtful);
            }
            *highest = f64::NEG_INFINITY;
        }
        self.score_loads(search);
        let LoadSearch { nodes, totals, met, .. } = search;
        for (bucket, total) in met.drain(..) {
            nodes.extend_from_slice(buckets.nodes_of(bucket as usize));
            totals.resize(nodes.len(), total);
        }
    }
}

/// The scores that follow from what is taken of nodes, and their weights.
fn load_scores(columns: &[Column]) -> impl Iterator<Item = (f64, &dyn LoadScore)> {
    columns.iter().filter_map(|column| Some((column.weight, column.by_load()?)))
}

/// The most that a column is worth to an open node.
fn most_points(column: &Column) -> f64 {
    if let Some(shared) = &column.shared {
        return shared.most;
    }
    let Bounds { lowest, highest } = column.bounds;
    let points = |raw| column.weight * normalized(column.normalization, column.bounds, raw);
    points(lowest).max(points(highest))
}

/// The points that nodes share, by place.
#[derive(Clone, Copy)]
struct PointsByValue<'a> {
    /// The value that each node has of a label.
    numbers: &'a [u32],
    points: &'a [f64],
}

impl<'a> PointsByValue<'a> {
    fn new(cluster: &'a Cluster, SharedPoints { key, points, .. }: &'a SharedPoints) -> Self {
        let label = cluster.label_columns().get(key);
        Self { numbers: label.map_or(&[], LabelColumn::numbers), points }
    }
}

impl PointsByValue<'_> {
    #[inline(always)]
    fn of(&self, node: u32) -> f64 {
        let number = self.numbers.get(node as usize).copied().unwrap_or(ABSENT);
        self.points[(self.points.len() - 1).min(number as usize)]
    }
}

fn add(totals: &mut [f64], weight: f64, column: &[f64]) {
    vectorized(
        #[inline(always)]
        || totals.iter_mut().zip(column).for_each(|(total, score)| *total += weight * score),
    );
}

fn highest_of(totals: &[f64]) -> f64 {
    vectorized(
        #[inline(always)]
        || {
            totals
                .iter()
                .fold(f64::NEG_INFINITY, |highest, total| if *total > highest { *total } else { highest })
        },
    )
}
