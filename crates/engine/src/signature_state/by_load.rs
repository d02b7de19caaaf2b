//! The best nodes for a pod of a signature that is not kept, found by what is taken of nodes: most of them are never looked at.
//!
//! Nodes are in buckets of which about as much is taken, so that what a pod scores in a bucket lies between two bounds. From the
//! highest bound down, the nodes of buckets are scored until none of the others can be as good as the best so far.

use supercargo_framework::{
    fast::{CLOSED, FilterPart, LoadScore, OPEN, RawScores, Scored, SharedScores},
    vector::{Bounds, add_weighted_at, normalized, vectorized},
};
use supercargo_model::{
    Cluster, NodeId, NodeSet,
    bits::Bits,
    columns::LoadColumns,
    label_columns::{ABSENT, LabelColumn},
};

use super::{
    SignatureState,
    column::{Column, SharedPoints},
};
use crate::{label_sets::LabelSets, load_buckets::LoadBuckets, stretches::Stretches};

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
    /// The buckets whose bounds meet, their nodes, and some of those.
    met: Vec<u32>,
    together: Bits,
    some: Bits,
    best: Best,
    ties: Bits,
    /// The nodes of a sample, where all are open.
    stretch: Bits,
    stretches: Stretches,
    label_sets: LabelSets,
    /// What nodes with scores of their own have more than those that share theirs, by place; nothing between two searches.
    own: Vec<f64>,
    owners: Vec<u32>,
    /// What nodes of a group have more than others, on top of that.
    group: Group,
    in_group: Bits,
    /// The most that this is, of scores that all other nodes share.
    most_of_own: f64,
}

/// Nodes that share a score which the others do not have.
#[derive(Default)]
struct Group {
    nodes: Bits,
    more: f64,
}

impl Group {
    #[inline]
    fn of(&self, node: u32) -> f64 {
        if self.nodes.contains(node as usize) { self.more } else { 0.0 }
    }
}

/// The best nodes so far.
#[derive(Default)]
struct Best {
    total: f64,
    /// Their places: the first so many.
    nodes: Vec<u32>,
    count: usize,
    /// More of them, if this is still the highest total.
    together: (f64, Bits),
}

impl Best {
    /// There are so many places.
    fn clear(&mut self, places: usize) {
        self.total = f64::NEG_INFINITY;
        self.nodes.resize(places, 0);
        self.count = 0;
        self.together.0 = f64::NEG_INFINITY;
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

    /// Some more nodes that have the same total, if there are any.
    fn note_all(&mut self, nodes: &Bits, total: f64) {
        if total < self.total || nodes.is_empty() {
            return;
        }
        if total > self.total {
            self.total = total;
            self.count = 0;
        }
        let (highest, together) = &mut self.together;
        if *highest == total {
            together.add_all(nodes);
        } else {
            together.set_to(nodes);
            *highest = total;
        }
    }

    /// All of them, of whom none was noted twice; how many there are.
    fn ties(&self, ties: &mut Bits) -> usize {
        ties.clear();
        let (highest, together) = &self.together;
        if *highest == self.total {
            ties.set_to(together);
        }
        let count = self.count + ties.len();
        for node in &self.nodes[..self.count] {
            ties.insert(*node as usize);
        }
        count
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
#[derive(Clone, Copy, Debug)]
enum Among<'a> {
    /// These: every one is open.
    These(Scored<'a>),
    /// Those that [`SignatureState::open`] tells.
    Open,
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

    /// Nothing has been added for any node.
    fn begin_rest(&mut self, places: usize) {
        (self.same, self.most_of_own) = (0.0, 0.0);
        self.owners.drain(..).for_each(|node| self.own[node as usize] = 0.0);
        self.own.resize(places, 0.0);
        self.group.nodes.clear();
    }

    /// Takes over what nodes share of a score, and what some have of their own.
    fn share(&mut self, cluster: &Cluster, column: &mut Column, shared: &SharedScores, scored: Scored<'_>) {
        let SharedScores { by_value, otherwise, own, group } = shared;
        // There is one group: those of another are taken one by one.
        let taken: Vec<(NodeId, f64)>;
        let (own, group) = match group {
            Some((nodes, score)) if by_value.is_some() || !self.group.nodes.is_empty() => {
                let grouped = nodes.iter().map(|node| (node, *score));
                taken = own.iter().copied().chain(grouped).collect();
                (&taken, None)
            }
            _ => (own, group.as_ref()),
        };
        let label = by_value.as_ref().and_then(|(key, _)| cluster.label_columns().get(key));
        let values: &[f64] = by_value.as_ref().filter(|_| label.is_some()).map_or(&[], |(_, values)| values);
        let number = |node: NodeId| {
            let number = label.map_or(ABSENT, |label| label.of(node));
            values.len().min(number as usize)
        };
        let nodes_with = |value: usize| label.map_or(&[][..], |label| label.nodes(value as u32));
        let Self { some: owning, .. } = self;
        owning.clear();
        own.iter().for_each(|(node, _)| owning.insert(node.index()));
        if let Some((nodes, _)) = group {
            owning.add_all(nodes.places());
        }
        let shares = |node: NodeId| !owning.contains(node.index());
        // Whether a scored node of each value shares its score; the last are those without the label.
        let there = || (0..values.len()).map(|value| nodes_with(value).len());
        let others = cluster.node_count() - there().sum::<usize>();
        let sharing: Vec<bool> = match scored.places {
            Some(places) => {
                let there = there().chain([others]).filter(|nodes| *nodes > 0).count();
                let number = |node| shares(node).then(|| number(node));
                Scored::numbers_of(places, there, number, values.len() + 1)
            }
            None => {
                let is_other = |(node, _): &&(NodeId, f64)| number(*node) == values.len();
                let of_group = group.map_or(0, |(nodes, _)| nodes.len());
                let some_share = others > 0 && own.iter().filter(is_other).count() + of_group < others;
                let with = |value| nodes_with(value).iter().any(|node| shares(*node));
                (0..values.len()).map(with).chain([some_share]).collect()
            }
        };

        let scores = || values.iter().chain([otherwise]).copied();
        let in_use = || scores().zip(&sharing).filter(|(_, shares)| **shares).map(|(score, _)| score);
        let own = || own.iter().filter(|(node, _)| scored.includes(*node));
        column.bounds = Bounds::NONE;
        let is_met = |nodes: &NodeSet| match scored.places {
            Some(places) => nodes.places().meets(places),
            None => !nodes.is_empty(),
        };
        let of_group = group.filter(|(nodes, _)| is_met(nodes)).map(|(_, score)| *score);
        let all = in_use().chain(own().map(|(_, score)| *score)).chain(of_group);
        all.for_each(|score| column.bounds.include(column.normalization, score));
        let Column { weight, normalization, bounds, .. } = *column;
        let points = |score: f64| weight * normalized(normalization, bounds, score);
        let shared: Vec<f64> = scores().map(points).collect();
        let mut most = in_use().chain(of_group).map(points).fold(f64::NEG_INFINITY, f64::max);
        // Many have the same as the one before.
        let mut last = (f64::NAN, 0.0);
        for (node, score) in own() {
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
                if let (Some((nodes, _)), Some(score)) = (group, of_group) {
                    self.group.nodes.set_to(nodes.places());
                    self.group.more = points(score) - shared[0];
                }
            }
        }
    }

    /// Takes note of all nodes of buckets whose bounds meet: what is taken of them is worth the same.
    fn note_met(
        &mut self,
        cluster: &Cluster,
        buckets: &LoadBuckets,
        total: f64,
        rest: RestByValue<'_>,
        scored: Scored<'_>,
    ) {
        let Self { met, together, best, own, owners, group, in_group, most_of_own, .. } = self;
        if met.is_empty() || total + rest.most() + *most_of_own < best.total {
            return met.clear();
        }
        together.clear();
        buckets.collect(met, together);
        met.clear();
        if let Some(places) = scored.places {
            together.keep_only(places);
        }
        let points = rest.points(cluster);
        for node in owners.iter().filter(|node| together.remove(**node as usize)) {
            best.note(*node, total + points.of(*node) + own[*node as usize] + group.of(*node));
        }
        if group.nodes.is_empty() {
            return self.note_together(cluster, total, rest);
        }
        in_group.set_to(together);
        in_group.keep_only(&group.nodes);
        together.take_out(&group.nodes);
        let in_group_total = total + group.more;
        self.note_together(cluster, total, rest);
        if in_group_total + rest.most() >= self.best.total {
            std::mem::swap(&mut self.together, &mut self.in_group);
            self.note_together(cluster, in_group_total, rest);
        }
    }

    /// Takes note of all nodes of a set that have a total without the rest.
    fn note_together(&mut self, cluster: &Cluster, total: f64, rest: RestByValue<'_>) {
        let Self { together, some, best, label_sets, .. } = self;
        let Some(SharedPoints { key, points, .. }) = rest.shared else {
            return best.note_all(together, total);
        };
        let sets = label_sets.of(cluster, key);
        let mut values: Vec<usize> = (0..points.len()).collect();
        values.sort_unstable_by(|one, other| points[*other].total_cmp(&points[*one]));
        for value in values {
            let total = total + points[value];
            if total < best.total {
                return;
            }
            some.set_to(together);
            match sets.get(value) {
                Some(nodes) if value + 1 < points.len() => some.keep_only(nodes),
                _ => sets.iter().take(points.len() - 1).for_each(|nodes| some.take_out(nodes)),
            }
            best.note_all(some, total);
        }
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
        let mut stretch = std::mem::take(&mut search.stretch);
        let found = self.find_by_load(cluster, buckets, search, sample, &mut stretch);
        search.stretch = stretch;
        found
    }

    fn find_by_load(
        &mut self,
        cluster: &Cluster,
        buckets: &LoadBuckets,
        search: &mut LoadSearch,
        sample: Option<Sample>,
        stretch: &mut Bits,
    ) -> Option<FoundByLoad> {
        let nodes = cluster.node_count();
        let all_open = self.filter_by_load(cluster, buckets, search);
        let (mut feasible, mut looked_at) = (if all_open { nodes } else { self.open_count }, nodes);
        let sample = sample.filter(|sample| sample.enough < feasible);
        let mut among = Among::Open;
        if let Some(Sample { start, enough }) = sample {
            (feasible, looked_at) = (enough, enough);
            if all_open {
                search.stretches.find(cluster, start, enough, stretch);
                among = Among::These(Scored { count: enough, places: Some(stretch) });
            } else {
                looked_at = self.take_sample(cluster, search, start, enough);
            }
        } else if all_open {
            among = Among::These(Scored { count: nodes, places: None });
        }
        if feasible == 0 {
            return None;
        }
        self.find_flat(cluster, matches!(among, Among::These(_)));
        self.score_the_rest(cluster, search, among)?;
        search.best.clear(cluster.columns().len() + 1);
        if sample.is_some_and(|sample| sample.enough * FEW_OF_ALL <= nodes) {
            self.score_sample(cluster, search, among);
        } else {
            self.bound(buckets, search);
            self.search_buckets(cluster, buckets, search, among)?;
        }
        let LoadSearch { best, ties, .. } = search;
        Some(FoundByLoad { total: best.total, ties: best.ties(ties), feasible, looked_at })
    }

    /// Closes all nodes but the first open ones from a position in the order on, and lists those. How many were looked at: it only
    /// stops at one open node more than it needs.
    fn take_sample(
        &mut self,
        cluster: &Cluster,
        search: &mut LoadSearch,
        start: usize,
        enough: usize,
    ) -> usize {
        let (before, from) = cluster.order().split_at(start);
        let is_open = |(_, node): &(usize, &NodeId)| self.open[node.index()] == OPEN;
        let mut open = from.iter().chain(before).enumerate().filter(is_open);
        search.nodes.clear();
        search.nodes.extend(open.by_ref().take(enough).map(|(_, node)| node.index() as u32));
        let looked_at = open.next().map_or(cluster.order().len(), |(position, _)| position);
        self.open.clear();
        self.open.resize(cluster.columns().len(), CLOSED);
        search.nodes.iter().for_each(|node| self.open[*node as usize] = OPEN);
        looked_at
    }

    /// Scores each node of the sample.
    fn score_sample(&self, cluster: &Cluster, search: &mut LoadSearch, among: Among<'_>) {
        if let Among::These(Scored { places: Some(places), .. }) = among {
            search.nodes.clear();
            search.nodes.extend(places.iter().map(|place| place as u32));
        }
        search.loads.clear();
        search.loads.gather(&cluster.columns().loads, &search.nodes);
        self.score_loads(search);
        // None but these.
        self.finish(cluster, search, Among::These(Scored { count: search.nodes.len(), places: None }));
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

    /// Finds out which scores are worth the same to all nodes, whichever are scored; of those by domain only where what nodes share
    /// does not tell.
    fn find_flat(&mut self, cluster: &Cluster, are_shared: bool) {
        for column in &mut self.columns {
            column.is_flat = match &column.scores {
                RawScores::Constant(score) => {
                    column.bounds = Bounds { lowest: *score, highest: *score };
                    true
                }
                RawScores::ByDomain(part)
                    if !are_shared && column.is_restless() && part.is_uniform(cluster) =>
                {
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
    fn score_the_rest(&mut self, cluster: &Cluster, search: &mut LoadSearch, among: Among<'_>) -> Option<()> {
        search.begin_rest(cluster.columns().len());
        let mut opened = matches!(among, Among::Open);
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
            if let Among::These(scored) = among
                && let Some(shared) = column.take_shared(cluster, scored)
            {
                search.share(cluster, column, &shared, scored);
                column.put_back(shared);
                continue;
            }
            if let Among::These(scored) = among
                && !opened
            {
                opened = true;
                self.open.clear();
                match scored.places {
                    None => self.open.extend_from_slice(&cluster.columns().there),
                    Some(places) => {
                        self.open.resize(cluster.columns().len(), CLOSED);
                        places.iter().for_each(|place| self.open[place] = OPEN);
                    }
                }
            }
            column.raw.resize(self.open.len(), 0.0);
            column.fill(cluster, &self.pod, &self.open).ok()?;
            column.bounds = Bounds::of(column.normalization, &column.raw, &self.open);
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
        among: Among<'_>,
    ) -> Option<()> {
        // Nodes of buckets whose bounds meet need not be looked at one by one, unless that is so for the rest.
        let rest = match among {
            Among::These(scored) => self.rest_by_value().map(|rest| (rest, scored)),
            Among::Open => None,
        };
        // Where nothing else counts, no bucket whose highest is below the lowest of another has one of the best, if all nodes are
        // scored; and hardly one of them else.
        let is_all = rest.is_some_and(|(rest, _)| rest.shared.is_none()) && search.owners.is_empty();
        let mut floor = if is_all { highest_of(&search.lowest) } else { f64::INFINITY };
        let at_most = search.most_of_own + self.the_rest().map(most_points).sum::<f64>();
        for _ in 0..MAX_BOUNDS {
            let bound = highest_of(&search.highest);
            if bound == f64::NEG_INFINITY || bound + at_most < search.best.total {
                return Some(());
            }
            let floor = std::mem::replace(&mut floor, f64::INFINITY).min(bound);
            self.look_at(cluster, buckets, search, floor, rest.is_none());
            self.finish(cluster, search, among);
            if let Some((rest, scored)) = rest {
                search.note_met(cluster, buckets, floor, rest, scored);
            }
        }
        None
    }

    /// Adds the rest to the totals of nodes, puts those that are not to be scored below all others, and takes note of the best.
    fn finish(&self, cluster: &Cluster, search: &mut LoadSearch, among: Among<'_>) {
        let LoadSearch { nodes, totals, best, own, owners, group, .. } = search;
        if let Among::These(Scored { places: None, .. }) = among
            && let Some(rest) = self.rest_by_value()
        {
            let rest = rest.points(cluster);
            let scored = nodes.iter().zip(totals);
            if group.nodes.is_empty() {
                scored.for_each(|(node, total)| {
                    best.note(*node, *total + rest.of(*node) + own[*node as usize]);
                });
            } else {
                scored.for_each(|(node, total)| {
                    best.note(*node, *total + rest.of(*node) + own[*node as usize] + group.of(*node));
                });
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
        if !group.nodes.is_empty() {
            totals.iter_mut().zip(&*nodes).for_each(|(total, node)| *total += group.of(*node));
        }
        let scored = nodes.iter().zip(totals);
        match among {
            Among::These(Scored { places: None, .. }) => {
                scored.for_each(|(node, total)| best.note(*node, *total));
            }
            Among::These(Scored { places: Some(places), .. }) => {
                for (node, total) in scored {
                    let is_in = places.contains(*node as usize);
                    best.note(*node, if is_in { *total } else { f64::NEG_INFINITY });
                }
            }
            Among::Open => {
                scored.for_each(|(node, total)| best.note(*node, *total + self.open[*node as usize]));
            }
        }
    }

    /// The rest, if nodes share all of it by one label at most.
    fn rest_by_value(&self) -> Option<RestByValue<'_>> {
        let mut rest = self.the_rest();
        match (rest.next(), rest.next()) {
            (None, _) => Some(RestByValue { shared: None }),
            (Some(only), None) => only.shared.as_ref().map(|shared| RestByValue { shared: Some(shared) }),
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

    /// Takes the buckets whose bound is not below the floor, and works out the totals of their nodes without the rest. Buckets
    /// whose bounds meet have that floor; unless their nodes have to be looked at one by one, they are only listed.
    fn look_at(
        &self,
        cluster: &Cluster,
        buckets: &LoadBuckets,
        search: &mut LoadSearch,
        floor: f64,
        one_by_one: bool,
    ) {
        let LoadSearch { lowest, highest, nodes, loads, met, .. } = search;
        nodes.clear();
        loads.clear();
        for (bucket, highest) in highest.iter_mut().enumerate().filter(|(_, highest)| **highest >= floor) {
            if *highest == lowest[bucket] {
                met.push(bucket as u32);
            } else {
                let doubtful = buckets.nodes_of(bucket);
                nodes.extend_from_slice(doubtful);
                loads.gather_alike(&cluster.columns().loads, doubtful);
            }
            *highest = f64::NEG_INFINITY;
        }
        self.score_loads(search);
        if one_by_one {
            let LoadSearch { nodes, totals, met, .. } = search;
            met.drain(..).for_each(|bucket| nodes.extend_from_slice(buckets.nodes_of(bucket as usize)));
            totals.resize(nodes.len(), floor);
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

/// What does not follow from what is taken of nodes, where they share it by one label, or nothing is left.
#[derive(Clone, Copy)]
struct RestByValue<'a> {
    shared: Option<&'a SharedPoints>,
}

impl<'a> RestByValue<'a> {
    /// The most that it is worth to a node.
    fn most(self) -> f64 {
        self.shared.map_or(0.0, |shared| shared.most)
    }

    fn points(self, cluster: &'a Cluster) -> PointsByValue<'a> {
        match self.shared {
            Some(shared) => PointsByValue::new(cluster, shared),
            None => PointsByValue { numbers: &[], points: &[0.0] },
        }
    }
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
