//! What is known about pods of one signature: which nodes are open to them, and what each node scores, kept from pod to pod.

use std::sync::Arc;

use supercargo_framework::{
    fast::{Asked, CLOSED, Cells, FilterPart, Normalization, OPEN, Redo, ScorePart},
    preemption::Rejection,
    profile::{CompiledProfile, Profile, ScoreColumn, Scores},
    vector::{Bounds, Tops, add_weighted, normalized, sum_with_tops, vectorized},
};
use supercargo_model::{Cluster, Name, NodeId, Pod, changes::Moment};

use crate::{
    laps::{Lap, Laps},
    node_classes::{ByCell, MAX_COLUMNS, NodeClasses},
    refusals::Refusals,
};

/// Beyond this share of the nodes, starting anew is cheaper than mending.
const MEND_AT_MOST: usize = 16;
/// Nodes are put into node_classes after so many pods for which the same nodes were open: before, it would not pay.
const CALM_PODS: u32 = 4;

/// A score and its column.
struct Column {
    plugin: Name,
    weight: f64,
    part: Box<dyn ScorePart>,
    raw: Vec<f64>,
    bounds: Bounds,
    normalization: Normalization,
    reads_load: bool,
    reads_open: bool,
    /// Its raw scores have changed since its bounds were found.
    stale: bool,
    /// The raw score of every node; the column is then empty.
    constant: Option<f64>,
}

impl Column {
    /// Its bounds move with almost every pod, so that it is added last, on top of what stays.
    fn is_restless(&self) -> bool {
        matches!(self.normalization, Normalization::MinMax | Normalization::Inverted)
    }

    /// All nodes score the same, and normalized that is nothing.
    fn gives_all_nothing(&self) -> bool {
        self.normalization == Normalization::MinMax && self.bounds.highest <= self.bounds.lowest
    }

    fn find_bounds(&mut self, open: &[f64]) {
        self.bounds = match self.constant {
            Some(score) => Bounds { lowest: score, highest: score },
            None if self.part.is_silent() => Bounds { lowest: 0.0, highest: 0.0 },
            None => Bounds::of(self.normalization, &self.raw, open),
        };
        self.stale = false;
    }

    fn raw(&self, node: usize) -> f64 {
        match self.part.cells() {
            Some(cells) => cells.raw[cells.of[node] as usize],
            None => self.constant.unwrap_or_else(|| self.raw[node]),
        }
    }

    fn points(&self, node: usize) -> f64 {
        self.weight * normalized(self.normalization, self.bounds, self.raw(node))
    }
}

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
    scope: Scope,
    filters: Vec<(Name, Box<dyn FilterPart>)>,
    columns: Vec<Column>,
    /// The nodes that pass the filters which look only at what nodes are.
    fixed: Vec<f64>,
    /// The nodes that pass all filters.
    open: Vec<f64>,
    open_count: usize,
    /// The sum of the columns that are not restless; closed nodes are below all others.
    base: Vec<f64>,
    /// The sum of all columns; the same as `base` where no column is restless.
    totals: Vec<f64>,
    tops: Tops,
    /// The nodes that score alike, instead of `totals` and `tops`: where every restless column is given by cell.
    node_classes: Option<NodeClasses>,
    /// For how many pods the same nodes have been open; `None` if the nodes differ too much for node_classes.
    calm: Option<u32>,
    /// The highest total, and how many nodes have it; `None` if no node is open.
    best: Option<(f64, usize)>,
    known_at: Option<Moment>,
    touched: Vec<NodeId>,
    /// Why each node is closed, once that was asked for.
    refusals: Option<Refusals>,
    /// The nodes that have been touched since.
    unsure: Vec<NodeId>,
    /// The nodes that were open before, or those that are looked at.
    spare: Vec<f64>,
}

impl SignatureState {
    /// Nothing is known yet; `None` if a plugin has no fast form for such pods.
    pub(crate) fn new(profile: &Profile, index: usize, cluster: &Cluster, pod: &Arc<Pod>) -> Option<Self> {
        let CompiledProfile { filters, scores } = profile.compile(cluster, pod)?;
        let mut signature = Self {
            pod: pod.clone(),
            profile: index,
            scope: Scope::Whole,
            filters,
            columns: Vec::new(),
            fixed: Vec::new(),
            open: Vec::new(),
            open_count: 0,
            base: Vec::new(),
            totals: Vec::new(),
            tops: Tops::default(),
            node_classes: None,
            calm: Some(0),
            best: None,
            known_at: None,
            touched: Vec::new(),
            refusals: None,
            unsure: Vec::new(),
            spare: Vec::new(),
        };
        signature.set_columns(scores);
        Some(signature)
    }

    /// Becomes the signature of another pod, and keeps the memory.
    pub(crate) fn reuse(
        &mut self,
        profile: &Profile,
        index: usize,
        cluster: &Cluster,
        pod: &Arc<Pod>,
    ) -> Option<()> {
        let CompiledProfile { filters, scores } = profile.compile(cluster, pod)?;
        self.pod = pod.clone();
        self.profile = index;
        self.filters = filters;
        self.refusals = None;
        self.calm = Some(0);
        self.known_at = None;
        self.set_columns(scores);
        Some(())
    }

    fn set_columns(&mut self, scores: Vec<(Name, i32, Box<dyn ScorePart>)>) {
        let mut spare: Vec<Vec<f64>> = self.columns.drain(..).map(|column| column.raw).collect();
        self.columns.extend(scores.into_iter().map(|(plugin, weight, part)| Column {
            plugin,
            weight: f64::from(weight),
            raw: spare.pop().unwrap_or_default(),
            bounds: Bounds { lowest: 0.0, highest: 0.0 },
            normalization: part.normalization(),
            reads_load: part.reads_load(),
            reads_open: part.reads_open(),
            stale: true,
            constant: part.constant(),
            part,
        }));
    }

    /// Whether a pod is of this signature. Specs are shared, so that equal ones are the same.
    pub(crate) fn is_of(&self, profile: usize, pod: &Pod) -> bool {
        self.profile == profile
            && Arc::ptr_eq(&self.pod.spec, &pod.spec)
            && self.pod.namespace == pod.namespace
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
    /// because something other than pods has changed.
    pub(crate) fn catch_up(
        &mut self,
        cluster: &Cluster,
        scope: Scope,
        pod: &Arc<Pod>,
        laps: &mut Laps<'_>,
    ) -> Option<()> {
        if self.scope != scope {
            self.scope = scope;
            if let Some(moment) = self.known_at.take() {
                cluster.changes().since(moment).map(drop)?;
            }
        }
        let current = self.known_at == Some(cluster.changes().now());
        if current && !self.asks_anew() {
            return Some(());
        }
        match self.known_at {
            None => {
                self.meet(pod);
                self.start(cluster, laps);
            }
            Some(_) if self.asks_anew() => {
                self.meet(pod);
                self.ask_anew(cluster, laps)?;
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

    /// Whether a node is open.
    pub(crate) fn is_open(&self, node: NodeId) -> bool {
        self.open[node.index()] == OPEN
    }

    /// The totals of some open nodes, as if there were no others, in their order.
    pub(crate) fn weigh_among(&mut self, cluster: &Cluster, nodes: &[NodeId], totals: &mut Vec<f64>) {
        self.spare.clear();
        self.spare.resize(self.open.len(), CLOSED);
        for node in nodes {
            self.spare[node.index()] = OPEN;
        }
        totals.clear();
        totals.resize(nodes.len(), 0.0);
        for column in &mut self.columns {
            if column.reads_open {
                column.part.fill(cluster, &self.spare, &mut column.raw);
            }
            column.bounds = Bounds::NONE;
            if let Some(score) = column.constant {
                column.bounds.include(column.normalization, score);
                let points = column.weight * normalized(column.normalization, column.bounds, score);
                totals.iter_mut().for_each(|total| *total += points);
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

    /// How the parts want to be asked.
    fn asked(&self) -> impl Iterator<Item = Asked> {
        let filters = self.filters.iter().map(|(_, filter)| filter.asked());
        filters.chain(self.columns.iter().map(|column| column.part.asked()))
    }

    /// Tells the parts which pod is asked for: what is asked anew may read more of it than its signature.
    fn meet(&mut self, pod: &Arc<Pod>) {
        self.filters.iter_mut().for_each(|(_, filter)| filter.meet(pod));
        self.columns.iter_mut().for_each(|column| column.part.meet(pod));
    }

    fn asks_anew(&self) -> bool {
        self.asked().any(|asked| asked != Asked::WhenChanged)
    }

    /// Whether a plugin failed, so that nothing here can be relied on.
    pub(crate) fn has_failed(&self) -> bool {
        self.asked().any(|asked| asked == Asked::Failed)
    }

    /// Some plugin must be asked about all nodes again, whatever has changed. The others are only mended.
    fn ask_anew(&mut self, cluster: &Cluster, laps: &mut Laps<'_>) -> Option<()> {
        let moment = self.known_at?;
        let changes = cluster.changes().since(moment)?;
        for change in changes.clone() {
            for (_, filter) in &mut self.filters {
                filter.note(cluster, change);
            }
        }
        self.refilter(cluster);
        laps.lap(Lap::Filter);
        for change in changes {
            for column in columns_to_mend(&mut self.columns, self.scope) {
                if column.part.note(cluster, change, &mut column.raw) != Redo::Nothing {
                    column.stale = true;
                }
                if column.reads_load {
                    column.raw[change.node.index()] = column.part.score(cluster, change.node);
                }
            }
        }
        for column in columns_to_mend(&mut self.columns, self.scope).filter(|column| column.stale) {
            column.part.settle(cluster, &mut column.raw);
        }
        self.known_at = Some(cluster.changes().now());
        if self.scope == Scope::Whole {
            for column in self.columns.iter_mut().filter(|column| column.reads_open) {
                column.part.fill(cluster, &self.open, &mut column.raw);
            }
            self.sum_all();
        }
        Some(())
    }

    fn follow(&mut self, cluster: &Cluster, known_at: Moment, laps: &mut Laps<'_>) -> Option<()> {
        let changes = cluster.changes().since(known_at)?;
        if changes.len() * MEND_AT_MOST > cluster.node_count() {
            self.start(cluster, laps);
            return Some(());
        }
        self.touched.clear();
        let mut refilter = false;
        let mut restless = false;
        for change in changes.clone() {
            if !self.touched.contains(&change.node) {
                self.touched.push(change.node);
            }
            for (_, filter) in &mut self.filters {
                refilter |= filter.note(cluster, change) == Redo::All;
            }
        }
        let moved = self.mend_open(cluster, refilter);
        laps.lap(Lap::Filter);
        for change in changes {
            for column in columns_to_mend(&mut self.columns, self.scope) {
                if column.part.note(cluster, change, &mut column.raw) != Redo::Nothing {
                    column.stale = true;
                    restless = true;
                }
            }
        }
        for column in columns_to_mend(&mut self.columns, self.scope).filter(|column| column.stale) {
            column.part.settle(cluster, &mut column.raw);
        }
        self.known_at = Some(cluster.changes().now());
        self.mend(cluster, moved, restless);
        if self.node_classes.is_none() && self.scope == Scope::Whole {
            self.look_for_kinds(cluster, laps);
        }
        Some(())
    }

    /// Puts the nodes into node_classes, once the same nodes have been open for a while.
    fn look_for_kinds(&mut self, cluster: &Cluster, laps: &mut Laps<'_>) {
        let Some(calm) = &mut self.calm else {
            return;
        };
        *calm += 1;
        if *calm <= CALM_PODS {
            return;
        }
        let restless = || self.columns.iter().filter(|column| column.is_restless());
        let loud = restless().any(|column| !column.part.is_silent());
        if !loud || restless().count() > MAX_COLUMNS {
            return;
        }
        let mut restless = self.columns.iter_mut().filter(|column| column.is_restless());
        let by_cell = restless.all(|column| column.part.use_cells(cluster));
        self.node_classes = by_cell.then(|| NodeClasses::new(&self.base, &cells(&self.columns)?)).flatten();
        match &self.node_classes {
            Some(_) => self.sum_kinds(),
            None => {
                self.calm = None;
                self.start(cluster, laps);
            }
        }
    }

    /// Goes back from node_classes to columns.
    fn leave_kinds(&mut self, cluster: &Cluster) {
        self.node_classes = None;
        // Restless columns were kept by cell; and other nodes may be open now.
        for column in self.columns.iter_mut().filter(|column| column.is_restless() || column.reads_open) {
            column.part.fill(cluster, &self.open, &mut column.raw);
        }
        self.sum_all();
    }

    fn sum_kinds(&mut self) {
        let Some(alike) = &mut self.node_classes else {
            return;
        };
        let mut restless = self.columns.iter().filter(|column| column.is_restless());
        let by_cell = std::array::from_fn(|_| {
            let Column { part, weight, normalization, .. } = restless.next()?;
            Some(ByCell { cells: part.cells()?, weight: *weight, normalization: *normalization })
        });
        let bounds = alike.sum(&by_cell);
        let restless = self.columns.iter_mut().filter(|column| column.is_restless());
        for (column, bounds) in restless.zip(bounds) {
            column.bounds = bounds;
            column.stale = false;
        }
    }

    /// Moves the touched nodes to their node_classes; `None` if the nodes have become too different.
    fn mend_kinds(&mut self) -> Option<()> {
        let cells = cells(&self.columns)?;
        let alike = self.node_classes.as_mut()?;
        for node in &self.touched {
            alike.update(node.index(), self.base[node.index()], &cells)?;
        }
        self.sum_kinds();
        Some(())
    }

    /// Works everything out from nothing.
    fn start(&mut self, cluster: &Cluster, laps: &mut Laps<'_>) {
        self.known_at = Some(cluster.changes().now());
        self.node_classes = None;
        let columns = cluster.columns();
        let places = columns.len();
        self.fixed.clear();
        self.fixed.extend_from_slice(&columns.there);
        for (_, filter) in self.filters.iter_mut().filter(|(_, filter)| !filter.reads_load()) {
            filter.close(cluster, &mut self.fixed);
        }
        self.refilter(cluster);
        laps.lap(Lap::Filter);
        for column in self.columns.iter_mut().filter(|column| column.constant.is_none()) {
            column.raw.resize(places, 0.0);
            if self.scope == Scope::Whole || !column.reads_open {
                column.part.fill(cluster, &self.open, &mut column.raw);
            }
        }
        if self.scope == Scope::Whole {
            self.sum_all();
        }
    }

    fn refilter(&mut self, cluster: &Cluster) {
        self.refusals = None;
        self.open.clear();
        self.open.extend_from_slice(&self.fixed);
        for (_, filter) in self.filters.iter_mut().filter(|(_, filter)| filter.reads_load()) {
            filter.close(cluster, &mut self.open);
        }
        self.open_count = vectorized(
            #[inline(always)]
            || self.open.iter().filter(|open| **open == OPEN).count(),
        );
    }

    /// Finds out which of the touched nodes are open. Whether that has changed for any.
    fn mend_open(&mut self, cluster: &Cluster, refilter: bool) -> bool {
        if refilter {
            self.spare.clone_from(&self.open);
            self.refilter(cluster);
            return self.spare != self.open;
        }
        if self.refusals.is_some() {
            self.unsure.extend_from_slice(&self.touched);
        }
        let mut moved = false;
        for node in &self.touched {
            let i = node.index();
            let passes = self.fixed[i] == OPEN
                && (self.filters.iter()).all(|(_, f)| !f.reads_load() || f.passes(cluster, *node));
            let open = if passes { OPEN } else { CLOSED };
            if open != self.open[i] {
                moved = true;
                self.open[i] = open;
                self.open_count = if passes { self.open_count + 1 } else { self.open_count - 1 };
            }
        }
        moved
    }

    /// Mends the scores that the touched nodes changed.
    fn mend(&mut self, cluster: &Cluster, moved: bool, restless: bool) {
        for column in self.columns.iter_mut().filter(|column| column.reads_load) {
            for node in &self.touched {
                column.raw[node.index()] = column.part.score(cluster, *node);
            }
        }
        if self.scope == Scope::Sampled {
            return;
        }
        if moved {
            self.calm = self.calm.map(|_| 0);
            if self.node_classes.is_some() {
                return self.leave_kinds(cluster);
            }
            for column in self.columns.iter_mut().filter(|column| column.reads_open) {
                column.part.fill(cluster, &self.open, &mut column.raw);
            }
            return self.sum_all();
        }
        for node in &self.touched {
            let i = node.index();
            let still = self.columns.iter().filter(|column| !column.is_restless());
            self.base[i] = self.open[i] + still.map(|column| column.points(i)).sum::<f64>();
        }
        if self.node_classes.is_some() {
            if self.mend_kinds().is_none() {
                self.calm = None;
                self.leave_kinds(cluster);
            }
        } else if restless {
            self.sum_restless();
        } else {
            for node in &self.touched {
                let i = node.index();
                let on_top = self.columns.iter().filter(|column| column.is_restless());
                self.totals[i] = self.base[i] + on_top.map(|column| column.points(i)).sum::<f64>();
                self.tops.update(&self.totals, i);
            }
        }
    }

    fn sum_all(&mut self) {
        self.base.clear();
        self.base.extend_from_slice(&self.open);
        let mut same_for_all = 0.0;
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
            let Column { raw, weight, normalization, bounds, .. } = column;
            match column.constant {
                Some(score) => same_for_all += *weight * normalized(*normalization, *bounds, score),
                None => add_weighted(&mut self.base, raw, *weight, *normalization, *bounds),
            }
        }
        if same_for_all != 0.0 {
            vectorized(
                #[inline(always)]
                || self.base.iter_mut().for_each(|base| *base += same_for_all),
            );
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
            (Some(only), None) => {
                let Column { raw, weight, normalization, bounds, .. } = only;
                sum_with_tops(totals, tops, base, raw, *weight, *normalization, *bounds);
            }
            _ => {
                totals.clear();
                totals.extend_from_slice(base);
                for column in columns.iter().filter(moves) {
                    add_weighted(totals, &column.raw, column.weight, column.normalization, column.bounds);
                }
                tops.rebuild(totals);
            }
        }
    }

    /// Why each node is closed, where all are: kept, and asked again only about nodes that were touched since. `None` if some
    /// node is open, or a plugin can only tell by its Filter.
    pub(crate) fn refusals(&mut self, cluster: &Cluster) -> Option<&Refusals> {
        if self.open_count > 0 || self.asks_anew() {
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
            refusals.set(*node, self.refusal(cluster, *node)?);
        }
        self.unsure = unsure;
        self.unsure.clear();
        self.refusals = Some(refusals);
        self.refusals.as_ref()
    }

    /// Why a node is closed: what the first of the plugins that close it says.
    fn refusal(&self, cluster: &Cluster, node: NodeId) -> Option<Rejection> {
        let (plugin, filter) = self.filters.iter().find(|(_, filter)| !filter.passes(cluster, node))?;
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

/// The columns that are kept up to date. Where only some nodes are looked at, those that depend on which nodes are open
/// are made anew for each pod.
fn columns_to_mend(columns: &mut [Column], scope: Scope) -> impl Iterator<Item = &mut Column> {
    columns.iter_mut().filter(move |column| scope == Scope::Whole || !column.reads_open)
}

/// The cells of all restless columns; `None` if one has none, or gave them up.
fn cells(columns: &[Column]) -> Option<[Option<&Cells>; MAX_COLUMNS]> {
    let mut found = [None; MAX_COLUMNS];
    let restless = columns.iter().filter(|column| column.is_restless());
    for (cells, column) in found.iter_mut().zip(restless) {
        *cells = Some(column.part.cells()?);
    }
    Some(found)
}
