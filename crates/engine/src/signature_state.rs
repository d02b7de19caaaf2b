//! What is known about pods of one signature: which nodes are open to them, and what each node scores, kept from pod to pod.

mod by_load;
mod column;
mod making_room;
mod opening;
mod searching;

use std::sync::Arc;

use supercargo_framework::{
    fast::{CLOSED, Cells, Claims, FilterPart, Normalization, OPEN, RawScores, ScorePart},
    preemption::Rejection,
    profile::{CompiledProfile, Profile, ScoreColumn, Scores},
    vector::{
        Bounds, Tops, add_weighted, normalized, open_with_tops, set_weighted, sum_with_tops, vectorized,
    },
};
use supercargo_model::{
    Cluster, Name, NodeId, Pod,
    changes::{Moment, PodChange},
    storage::Volume,
};

pub(crate) use self::by_load::{FoundByLoad, LoadSearch, Sample};
use self::{column::Column, opening::Moved};
use crate::{
    laps::{Lap, Laps},
    node_classes::{ByCell, MAX_COLUMNS, NodeClasses},
    refusals::Refusals,
    room::Room,
    search_classes::SearchClasses,
};

/// Beyond this share of the nodes, starting anew is cheaper than updating.
const UPDATE_AT_MOST: usize = 16;
/// How many columns are kept for their memory when pods of another signature need fewer.
const SPARE_COLUMNS: usize = 4;
/// When more nodes than this are opened or closed at once, all nodes are summed up anew.
const FEW_MOVED: usize = 64;
/// With more than one of so many nodes, all are weighed.
const FEW_OF_ALL: usize = 8;
/// With more raw scores than this, nodes are not told apart by them.
const MAX_VALUES: usize = 256;
/// Nodes are put into classes after so many pods for which the same nodes were open: before, it would not pay.
const CALM_PODS: u32 = 4;

/// Which nodes totals are wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All open nodes.
    Whole,
    /// Some of the open nodes, other ones for each pod: see [`SignatureState::weigh_among`].
    Sampled,
}

/// What is known about pods of one signature.
pub(crate) struct SignatureState {
    pod: Arc<Pod>,
    profile: usize,
    claims: Claims,
    /// How claims and volumes stood when the signature was compiled, if they matter to its pods.
    storage: Option<u64>,
    scope: Scope,
    filters: Vec<(Name, FilterPart)>,
    columns: Vec<Column>,
    /// Some filter must be asked for every pod; some score.
    has_opaque_filters: bool,
    has_opaque_scores: bool,
    /// A plugin failed, so that nothing here can be relied on.
    failed: bool,
    /// The nodes that pass the filters which look only at what nodes are; empty where there are no such filters.
    fixed: Vec<f64>,
    /// Of those, the nodes that pass the filters which look at one node.
    by_node: Vec<f64>,
    /// The nodes that pass all filters.
    open: Vec<f64>,
    open_count: usize,
    /// The sum of the columns that are not restless, whether a node is open or not. Where totals are wanted for some nodes only,
    /// and these are in no classes: memory that is used again.
    base: Vec<f64>,
    /// The sum of all columns; closed nodes are below all others.
    totals: Vec<f64>,
    tops: Tops,
    /// The nodes that score alike, instead of `totals` and `tops`: where every restless column is given by cell.
    node_classes: Option<NodeClasses>,
    /// The nodes that score alike in the order of the search, where totals are wanted for some nodes only.
    search_classes: Option<SearchClasses>,
    /// For how many pods the same nodes have been open; `None` if the nodes differ too much for node_classes.
    calm: Option<u32>,
    /// The highest total, and how many nodes have it; `None` if no node is open.
    best: Option<(f64, usize)>,
    /// When this was known; `None` if it was only compiled so far.
    known_at: Option<Moment>,
    /// What was known at that moment is lost, but what was compiled holds.
    starts_anew: bool,
    /// The nodes that pods came to or left.
    touched: Vec<NodeId>,
    /// Others that were opened or closed with that, if they are few.
    moved: Vec<NodeId>,
    /// Why each node is closed, once that was asked for.
    refusals: Option<Refusals>,
    /// The nodes that have been touched since.
    unsure: Vec<NodeId>,
    /// What is known about making room, once that was asked for.
    room: Option<Room>,
    /// The nodes that were open before, or those that are looked at.
    spare: Vec<f64>,
    /// Columns that are not needed now: kept for their memory.
    spare_columns: Vec<Vec<f64>>,
}

impl SignatureState {
    /// Nothing is known yet; `None` if a plugin has no fast form for such pods.
    pub(crate) fn new(
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        claims: Claims,
    ) -> Option<Self> {
        let CompiledProfile { filters, scores } = compile(profile, cluster, pod, claims)?;
        let mut signature = Self {
            pod: pod.clone(),
            profile: index,
            claims,
            storage: storage(cluster, pod, claims),
            scope: Scope::Whole,
            filters,
            columns: Vec::new(),
            has_opaque_filters: false,
            has_opaque_scores: false,
            failed: false,
            fixed: Vec::new(),
            by_node: Vec::new(),
            open: Vec::new(),
            open_count: 0,
            base: Vec::new(),
            totals: Vec::new(),
            tops: Tops::default(),
            node_classes: None,
            search_classes: None,
            calm: Some(0),
            best: None,
            known_at: None,
            starts_anew: false,
            touched: Vec::new(),
            moved: Vec::new(),
            refusals: None,
            unsure: Vec::new(),
            room: None,
            spare: Vec::new(),
            spare_columns: Vec::new(),
        };
        signature.set_columns(scores);
        signature.find_opaque();
        Some(signature)
    }

    /// Becomes the signature of another pod, and keeps the memory.
    pub(crate) fn reuse(
        &mut self,
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        claims: Claims,
    ) -> Option<()> {
        let CompiledProfile { filters, scores } = compile(profile, cluster, pod, claims)?;
        self.pod = pod.clone();
        self.profile = index;
        self.claims = claims;
        self.storage = storage(cluster, pod, claims);
        self.filters = filters;
        self.refusals = None;
        self.calm = Some(0);
        self.known_at = None;
        self.set_columns(scores);
        self.find_opaque();
        Some(())
    }

    fn set_columns(&mut self, scores: Vec<(Name, i32, ScorePart)>) {
        self.spare_columns.extend(self.columns.drain(..).map(|column| column.raw));
        for (plugin, weight, part) in scores {
            self.columns.push(Column::new(plugin, weight, part, &mut self.spare_columns));
        }
        // Fixed scores bring a column of their own each time.
        self.spare_columns.truncate(SPARE_COLUMNS);
    }

    fn find_opaque(&mut self) {
        let is_opaque = |(_, filter): &(Name, FilterPart)| matches!(filter, FilterPart::Opaque(_));
        self.has_opaque_filters = self.filters.iter().any(is_opaque);
        self.has_opaque_scores = self.columns.iter().any(|c| matches!(c.scores, RawScores::Opaque(_)));
    }

    /// Whether some plugin must be asked for every pod.
    fn has_opaque(&self) -> bool {
        self.has_opaque_filters || self.has_opaque_scores
    }

    /// Whether a pod is of this signature. Specs are shared, so that equal ones are the same.
    pub(crate) fn is_of(&self, profile: usize, pod: &Pod) -> bool {
        self.profile == profile
            && Arc::ptr_eq(&self.pod.spec, &pod.spec)
            && self.pod.namespace == pod.namespace
    }

    /// Whether its pods name the same claims.
    pub(crate) fn claims(&self) -> Claims {
        self.claims
    }

    /// The pod that the signature was made for.
    pub(crate) fn pod(&self) -> &Pod {
        &self.pod
    }

    /// Whether nodes that score alike are counted once.
    pub(crate) fn has_node_classes(&self) -> bool {
        self.node_classes.is_some()
    }

    /// How many nodes are open.
    pub(crate) fn open_count(&self) -> usize {
        self.open_count
    }

    /// The highest total, and how many nodes have it; `None` if no node is open.
    pub(crate) fn best(&self) -> Option<(f64, usize)> {
        self.best
    }

    /// The place of the n-th of the best nodes.
    pub(crate) fn nth_best(&self, n: usize) -> Option<usize> {
        match &self.node_classes {
            Some(alike) => alike.nth_best(n),
            None => self.tops.nth(&self.totals, self.best?.0, n),
        }
    }

    /// A node's total; a closed one's is below all others.
    pub(crate) fn total(&self, node: usize) -> f64 {
        match &self.node_classes {
            Some(alike) => alike.total(node),
            None => self.totals[node],
        }
    }

    /// Brings everything up to date with the cluster, for this pod of the signature. `None` if the signature must be compiled anew,
    /// because something other than pods has changed; until then it stays so.
    pub(crate) fn catch_up(
        &mut self,
        cluster: &Cluster,
        scope: Scope,
        pod: &Arc<Pod>,
        laps: &mut Laps<'_>,
    ) -> Option<()> {
        if self.storage.is_some_and(|known| known != cluster.storage_revision()) {
            return None;
        }
        if self.scope != scope {
            if let Some(moment) = self.known_at {
                cluster.changes().since(moment).map(drop)?;
            }
            self.scope = scope;
            self.known_at = None;
        }
        let current = self.known_at == Some(cluster.changes().now());
        if self.has_opaque() {
            // What is asked anew may read more of a pod than its signature.
            self.pod.clone_from(pod);
            self.failed = false;
        } else if current && !self.starts_anew {
            return Some(());
        }
        match self.known_at {
            None => self.start(cluster, laps),
            Some(moment) if self.starts_anew => {
                cluster.changes().since(moment).map(drop)?;
                self.start(cluster, laps);
            }
            Some(moment) => self.follow(cluster, moment, laps)?,
        }
        self.best = match &mut self.node_classes {
            Some(alike) => alike.best(),
            None if self.scope == Scope::Sampled => None,
            None => self.tops.best(&self.totals),
        };
        Some(())
    }

    /// Follows the cluster back to a moment: it is as it was then, and its log still tells of what came and left since.
    pub(crate) fn go_back(&mut self, cluster: &Cluster, to: Moment) {
        if !self.known_at.is_some_and(|known_at| known_at.is_after(to)) {
            return;
        }
        let pod = self.pod.clone();
        // What is asked anew for every pod is not asked for this.
        let follows =
            !self.has_opaque() && self.catch_up(cluster, self.scope, &pod, &mut Laps::none()).is_some();
        self.known_at = Some(to);
        self.starts_anew = !follows;
    }

    /// Whether a node is open.
    pub(crate) fn is_open(&self, node: NodeId) -> bool {
        self.open[node.index()] == OPEN
    }

    /// The totals of some open nodes, as if there were no others, in their order.
    pub(crate) fn weigh_among(&mut self, cluster: &Cluster, nodes: &[NodeId], totals: &mut Vec<f64>) {
        let are_many = nodes.len() * FEW_OF_ALL > self.open.len();
        if are_many || self.columns.iter().any(|column| column.reads_open) {
            self.spare.clear();
            self.spare.resize(self.open.len(), CLOSED);
            for node in nodes {
                self.spare[node.index()] = OPEN;
            }
        }
        totals.clear();
        if are_many {
            return self.weigh_side_by_side(cluster, nodes, totals);
        }
        totals.resize(nodes.len(), 0.0);
        for column in &mut self.columns {
            if column.reads_open {
                self.failed |= column.fill(cluster, &self.pod, &self.spare).is_err();
            }
            column.bounds = Bounds::NONE;
            if let RawScores::Constant(score) = column.scores {
                column.bounds.include(column.normalization, score);
                let points = column.weight * normalized(column.normalization, column.bounds, score);
                totals.iter_mut().for_each(|total| *total += points);
                continue;
            }
            // Between bounds that are the same, all scores are nothing.
            if column.is_silent() && column.normalization == Normalization::MinMax {
                continue;
            }
            let Column { raw, bounds, normalization, weight, .. } = column;
            for node in nodes {
                bounds.include(*normalization, raw[node.index()]);
            }
            vectorized(
                #[inline(always)]
                || {
                    for (total, node) in totals.iter_mut().zip(nodes) {
                        *total += *weight * normalized(*normalization, *bounds, raw[node.index()]);
                    }
                },
            );
        }
    }

    /// The same for many nodes, which `spare` shows as open: all nodes are weighed in the order of their places, whichever are
    /// meant, since that is done for several at once.
    fn weigh_side_by_side(&mut self, cluster: &Cluster, nodes: &[NodeId], totals: &mut Vec<f64>) {
        let Self { columns, spare, base, failed, pod, .. } = self;
        base.clear();
        base.resize(spare.len(), 0.0);
        let mut of_all = 0.0;
        for column in columns {
            if column.reads_open {
                *failed |= column.fill(cluster, pod, spare).is_err();
            }
            if let RawScores::Constant(score) = column.scores {
                column.bounds = Bounds { lowest: score, highest: score };
                of_all += column.weight * normalized(column.normalization, column.bounds, score);
                continue;
            }
            if column.is_silent() && column.normalization == Normalization::MinMax {
                continue;
            }
            column.bounds = Bounds::of(column.normalization, &column.raw, spare);
            add_weighted(base, column.weighted());
        }
        totals.extend(nodes.iter().map(|node| base[node.index()] + of_all));
    }

    /// Whether a plugin failed, so that nothing here can be relied on.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Works out some columns from nothing.
    fn fill(&mut self, cluster: &Cluster, which: impl Fn(&Column) -> bool) {
        for column in self.columns.iter_mut().filter(|column| which(column)) {
            self.failed |= column.fill(cluster, &self.pod, &self.open).is_err();
        }
    }

    /// Tells the filters of a pod that came or left. Whether other nodes than its own have been opened or closed.
    fn note_filters(&mut self, cluster: &Cluster, change: &PodChange) -> bool {
        let mut elsewhere = false;
        for (_, filter) in &mut self.filters {
            if let FilterPart::ByDomain(filter) = filter {
                elsewhere |= filter.note(cluster, change);
            }
        }
        elsewhere
    }

    /// Brings up to date what the changes since a moment have touched, and asks opaque plugins anew.
    fn follow(&mut self, cluster: &Cluster, known_at: Moment, laps: &mut Laps<'_>) -> Option<()> {
        let changes = cluster.changes().since(known_at)?;
        if changes.len() * UPDATE_AT_MOST > cluster.node_count() {
            self.start(cluster, laps);
            return Some(());
        }
        self.touched.clear();
        self.touched.extend(changes.clone().map(|change| change.node));
        if self.touched.len() > 1 {
            self.touched.sort_unstable();
            self.touched.dedup();
        }
        let mut elsewhere = self.has_opaque_filters;
        let mut restless = false;
        for change in changes.clone() {
            elsewhere |= self.note_filters(cluster, change);
        }
        let moved = self.update_open(cluster, elsewhere);
        laps.lap(Lap::Filter);
        for change in changes {
            for column in columns_to_update(&mut self.columns, self.scope) {
                restless |= column.note(cluster, change);
            }
        }
        columns_to_update(&mut self.columns, self.scope).for_each(|column| column.settle(cluster));
        self.known_at = Some(cluster.changes().now());
        self.update(cluster, moved, restless);
        match self.scope {
            Scope::Whole if self.node_classes.is_none() && !self.has_opaque_scores => {
                self.look_for_classes(cluster, laps);
            }
            Scope::Sampled if self.search_classes.is_none() => self.look_for_search_classes(cluster),
            _ => {}
        }
        Some(())
    }

    /// Puts the nodes into classes, once the same nodes have been open for a while.
    fn look_for_classes(&mut self, cluster: &Cluster, laps: &mut Laps<'_>) {
        let Some(calm) = &mut self.calm else {
            return;
        };
        *calm += 1;
        if *calm <= CALM_PODS {
            return;
        }
        let restless = || self.columns.iter().filter(|column| column.is_restless());
        let loud = restless().any(|column| !column.is_silent());
        if !loud || restless().count() > MAX_COLUMNS {
            return;
        }
        let mut restless = self.columns.iter_mut().filter(|column| column.is_restless());
        let by_cell = restless.all(|column| column.use_cells(cluster));
        let base = || self.base.iter().zip(&self.open).map(|(base, open)| base + open);
        self.node_classes = by_cell.then(|| NodeClasses::new(base(), &cells(&self.columns)?)).flatten();
        match &self.node_classes {
            Some(_) => self.sum_classes(),
            None => {
                self.calm = None;
                self.start(cluster, laps);
            }
        }
    }

    /// Goes back from classes to columns.
    fn leave_classes(&mut self, cluster: &Cluster) {
        self.node_classes = None;
        // Restless columns were kept by cell; and other nodes may be open now.
        self.fill(cluster, |column| column.is_restless() || column.reads_open);
        self.sum_all();
    }

    fn sum_classes(&mut self) {
        let Some(alike) = &mut self.node_classes else {
            return;
        };
        let mut restless = self.columns.iter().filter(|column| column.is_restless());
        let by_cell = std::array::from_fn(|_| {
            let column = restless.next()?;
            Some(ByCell {
                cells: column.cells()?,
                weight: column.weight,
                normalization: column.normalization,
            })
        });
        let bounds = alike.sum(&by_cell);
        let restless = self.columns.iter_mut().filter(|column| column.is_restless());
        for (column, bounds) in restless.zip(bounds) {
            column.bounds = bounds;
            column.stale = false;
        }
    }

    /// Moves the touched nodes to their classes; `None` if the nodes have become too different.
    fn update_classes(&mut self) -> Option<()> {
        let cells = cells(&self.columns)?;
        let alike = self.node_classes.as_mut()?;
        for node in &self.touched {
            let i = node.index();
            alike.update(i, self.base[i] + self.open[i], &cells)?;
        }
        self.sum_classes();
        Some(())
    }

    /// Works everything out from nothing.
    fn start(&mut self, cluster: &Cluster, laps: &mut Laps<'_>) {
        self.known_at = Some(cluster.changes().now());
        self.starts_anew = false;
        self.node_classes = None;
        self.search_classes = None;
        self.find_fixed(cluster);
        self.refilter(cluster);
        laps.lap(Lap::Filter);
        for column in &mut self.columns {
            if !matches!(column.scores, RawScores::Constant(_)) {
                column.raw.resize(cluster.columns().len(), 0.0);
            }
        }
        let scope = self.scope;
        self.fill(cluster, |column| scope == Scope::Whole || !column.reads_open);
        if self.scope == Scope::Whole {
            self.sum_all();
        }
    }

    /// Updates the scores that the touched nodes changed, and the totals of whoever was opened or closed.
    fn update(&mut self, cluster: &Cluster, moved: Moved, mut restless: bool) {
        for column in &mut self.columns {
            self.touched.iter().for_each(|node| column.update(cluster, *node));
        }
        if self.scope == Scope::Sampled {
            return self.update_search_classes(cluster, moved);
        }
        if moved != Moved::Nobody {
            self.calm = self.calm.map(|_| 0);
            if self.node_classes.is_some() {
                return self.leave_classes(cluster);
            }
        }
        if moved != Moved::Nobody || self.has_opaque_scores {
            self.fill(cluster, |column| column.reads_open);
            let is_read = |column: &Column| column.reads_open && !column.is_restless();
            if self.columns.iter().any(is_read) || !self.still_bounds_hold() {
                return self.sum_all();
            }
            restless |= !self.restless_bounds_hold();
        }
        for node in &self.touched {
            let i = node.index();
            let still = self.columns.iter().filter(|column| !column.is_restless());
            self.base[i] = still.map(|column| column.points(i)).sum::<f64>();
        }
        if self.node_classes.is_some() {
            if self.update_classes().is_none() {
                self.calm = None;
                self.leave_classes(cluster);
            }
        } else if restless || moved == Moved::Many {
            self.sum_restless();
        } else {
            for node in self.touched.iter().chain(&self.moved) {
                let i = node.index();
                let on_top = self.columns.iter().filter(|column| column.is_restless());
                self.totals[i] =
                    self.base[i] + self.open[i] + on_top.map(|column| column.points(i)).sum::<f64>();
                self.tops.update(&self.totals, i);
            }
        }
    }

    /// Whether the scores of the columns that are not restless lie between the same bounds as before, now that other nodes are
    /// open. Then no node's points change but by its own.
    fn still_bounds_hold(&mut self) -> bool {
        let depends =
            |column: &&mut Column| !column.is_restless() && column.normalization != Normalization::None;
        let open = &self.open;
        self.columns.iter_mut().filter(depends).all(|column| column.has_same_bounds(open))
    }

    /// The same for restless columns; those that are stale are looked at when all are summed up.
    fn restless_bounds_hold(&mut self) -> bool {
        let mut hold = true;
        for column in self.columns.iter_mut().filter(|column| column.is_restless()) {
            column.stale |= column.reads_open;
            hold &= !column.stale && column.has_same_bounds(&self.open);
        }
        hold
    }

    fn sum_all(&mut self) {
        let mut same_for_all = 0.0;
        for column in &mut self.columns {
            if let RawScores::Constant(score) = column.scores
                && !column.is_restless()
            {
                column.find_bounds(&self.open);
                same_for_all += column.weight * normalized(column.normalization, column.bounds, score);
            }
        }
        self.base.resize(self.open.len(), 0.0);
        let mut same_for_all = Some(same_for_all);
        for column in &mut self.columns {
            column.stale = true;
            if column.is_restless() {
                continue;
            }
            if column.normalization == Normalization::None {
                column.stale = false;
            } else {
                column.find_bounds(&self.open);
            }
            if matches!(column.scores, RawScores::Constant(_)) {
                continue;
            }
            match same_for_all.take() {
                Some(same) => set_weighted(&mut self.base, same, column.weighted()),
                None => add_weighted(&mut self.base, column.weighted()),
            }
        }
        if let Some(same) = same_for_all {
            self.base.fill(same);
        }
        self.sum_restless();
    }

    fn sum_restless(&mut self) {
        let Self { columns, open, base, totals, tops, .. } = self;
        for column in columns.iter_mut().filter(|column| column.is_restless() && column.stale) {
            column.find_bounds(open);
        }
        let moves = |column: &&Column| column.is_restless() && !column.gives_all_nothing();
        let mut moving = columns.iter().filter(moves);
        match (moving.next(), moving.next()) {
            (None, _) => open_with_tops(totals, tops, base, open),
            (Some(only), None) => sum_with_tops(totals, tops, base, open, only.weighted()),
            _ => {
                totals.clear();
                totals.extend(base.iter().zip(open.iter()).map(|(base, open)| base + open));
                columns.iter().filter(moves).for_each(|column| add_weighted(totals, column.weighted()));
                tops.rebuild(totals);
            }
        }
    }

    /// Why each node is closed, where all are: kept, and asked again only about nodes that were touched since. `None` if some
    /// node is open, or a plugin can only tell by its Filter.
    pub(crate) fn refusals(&mut self, cluster: &Cluster) -> Option<&Refusals> {
        if self.has_opaque() || self.open_count > self.kept_free().count() {
            return None;
        }
        if self.unsure.len() > cluster.node_count() {
            self.refusals = None;
        }
        let (mut refusals, unsure) = match self.refusals.take() {
            Some(refusals) => (refusals, std::mem::take(&mut self.unsure)),
            None => (Refusals::new(self.open.len()), cluster.columns().live.iter().collect()),
        };
        for node in &unsure {
            let kept = self.room.as_ref().and_then(|room| room.refusal(*node)).cloned();
            refusals.set(*node, kept.or_else(|| self.refusal(cluster, *node))?);
        }
        self.unsure = unsure;
        self.unsure.clear();
        self.refusals = Some(refusals);
        self.refusals.as_ref()
    }

    /// Why a node is closed: what the first of the plugins that close it says.
    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Rejection> {
        let mut by_node =
            self.filters.iter().filter_map(|(plugin, filter)| Some((plugin, filter.by_node()?)));
        let (plugin, filter) = by_node.find(|(_, filter)| !filter.passes(cluster, node))?;
        Some(Rejection { plugin: plugin.clone(), status: filter.refusal(cluster, node)? })
    }

    /// The open nodes and their scores, as a record of a decision has them.
    pub(crate) fn record(&self, cluster: &Cluster) -> (Vec<Name>, Scores) {
        let nodes: Vec<NodeId> =
            cluster.columns().live.iter().filter(|n| self.open[n.index()] == OPEN).collect();
        let columns = (self.columns.iter())
            .map(|column| ScoreColumn {
                plugin: column.plugin.clone(),
                weight: column.weight as i32,
                raw: nodes.iter().map(|n| column.raw(n.index()) as i64).collect(),
                normalized: (nodes.iter())
                    .map(|n| normalized(column.normalization, column.bounds, column.raw(n.index())) as i64)
                    .collect(),
            })
            .collect();
        let totals = nodes.iter().map(|n| self.total(n.index()) as i64).collect();
        (nodes.iter().map(|n| cluster.node_at(*n).name().clone()).collect(), Scores { columns, totals })
    }
}

/// Where pods have claims of their own, those who do not look at claims get to see none.
fn compile(profile: &Profile, cluster: &Cluster, pod: &Arc<Pod>, claims: Claims) -> Option<CompiledProfile> {
    if pod.spec.has_ephemeral_claims() {
        return profile.compile(cluster, pod, Claims::Differ);
    }
    match pod.spec.without_claim_names() {
        Some(spec) if claims == Claims::Differ => {
            let pod = Arc::new(Pod { spec: Arc::new(spec), ..(**pod).clone() });
            profile.compile(cluster, &pod, claims)
        }
        _ => profile.compile(cluster, pod, Claims::Same),
    }
}

/// How claims and volumes stand, if they matter to a pod.
fn storage(cluster: &Cluster, pod: &Pod, claims: Claims) -> Option<u64> {
    // Who looks at claims of a pod's own is asked for every pod.
    let matters = claims == Claims::Same
        && !pod.spec.has_ephemeral_claims()
        && pod.spec.volumes.iter().any(Volume::is_bound_to_nodes);
    matters.then(|| cluster.storage_revision())
}

/// The columns that are kept up to date. Where only some nodes are looked at, those that depend on which nodes are open
/// are made anew for each pod, unless they are kept by cell.
fn columns_to_update(columns: &mut [Column], scope: Scope) -> impl Iterator<Item = &mut Column> {
    let is_kept =
        move |column: &&mut Column| scope == Scope::Whole || !column.reads_open || column.cells().is_some();
    columns.iter_mut().filter(is_kept)
}

/// The cells of all restless columns; `None` if one has none, or gave them up.
fn cells(columns: &[Column]) -> Option<[Option<&Cells>; MAX_COLUMNS]> {
    let mut found = [None; MAX_COLUMNS];
    let restless = columns.iter().filter(|column| column.is_restless());
    for (cells, column) in found.iter_mut().zip(restless) {
        *cells = Some(column.cells()?);
    }
    Some(found)
}
