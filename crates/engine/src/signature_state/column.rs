//! A score of a signature: what each node has by it, and between which bounds.

use std::sync::Arc;

use supercargo_framework::{
    fast::{Cells, LoadScore, Normalization, PluginFailed, RawScores, ScorePart, Scored, SharedScores},
    vector::{Bounds, WeightedColumn, normalized},
};
use supercargo_model::{Cluster, Name, NodeId, Pod, changes::PodChange};

use super::MAX_VALUES;
use crate::search_classes::Weighed;

/// A score and its column.
pub(super) struct Column {
    pub(super) plugin: Name,
    pub(super) weight: f64,
    pub(super) scores: RawScores,
    /// The raw score of each node, by place; empty where all have the same.
    pub(super) raw: Vec<f64>,
    pub(super) bounds: Bounds,
    pub(super) normalization: Normalization,
    /// The raw scores change with which nodes are open.
    pub(super) reads_open: bool,
    /// The raw scores that nodes have had, where they are told apart by them: see [`Column::key`].
    pub(super) values: Vec<f64>,
    /// Its raw scores have changed since its bounds were found.
    pub(super) stale: bool,
    /// In a search by load: it is worth the same to all nodes.
    pub(super) is_flat: bool,
    /// In a search by load: what nodes share of it, instead of `raw`.
    pub(super) shared: Option<SharedPoints>,
}

/// What nodes share of a score: its points by the value of a label. Nodes with scores of their own are told apart elsewhere.
pub(super) struct SharedPoints {
    pub(super) key: Name,
    /// By the number of the value; the last is that of nodes without the label.
    pub(super) points: Vec<f64>,
    /// The most that it is worth to a node.
    pub(super) most: f64,
}

impl Column {
    pub(super) fn new(plugin: Name, weight: i32, part: ScorePart, spare: &mut Vec<Vec<f64>>) -> Self {
        let ScorePart { mut scores, normalization } = part;
        let raw = match &mut scores {
            // They are the column, until the signature is compiled anew.
            RawScores::Fixed(raw) => std::mem::take(raw),
            RawScores::Constant(_) => Vec::new(),
            _ => spare.pop().unwrap_or_default(),
        };
        let reads_open = match &scores {
            RawScores::Constant(_) | RawScores::Fixed(_) | RawScores::Shared(_) | RawScores::ByNode(_) => {
                false
            }
            RawScores::ByDomain(part) => part.reads_open(),
            RawScores::AmongOpen(_) | RawScores::Opaque(_) => true,
        };
        let bounds = Bounds { lowest: 0.0, highest: 0.0 };
        Self {
            plugin,
            weight: f64::from(weight),
            scores,
            raw,
            bounds,
            normalization,
            reads_open,
            values: Vec::new(),
            stale: true,
            is_flat: false,
            shared: None,
        }
    }

    /// Works out the raw scores from nothing.
    pub(super) fn fill(
        &mut self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        open: &[f64],
    ) -> Result<(), PluginFailed> {
        let raw = &mut self.raw;
        match &mut self.scores {
            RawScores::Constant(_) | RawScores::Fixed(_) => {}
            RawScores::Shared(scores) => scores.fill(cluster, raw),
            RawScores::ByNode(part) => part.fill(cluster, raw),
            RawScores::ByDomain(part) => part.fill(cluster, open, raw),
            RawScores::AmongOpen(part) => part.fill(cluster, open, raw),
            RawScores::Opaque(part) => return part.fill(cluster, pod, open, raw),
        }
        Ok(())
    }

    /// Takes note of a pod that came or left. Whether raw scores have changed with it, other than that of its node.
    pub(super) fn note(&mut self, cluster: &Cluster, change: &PodChange) -> bool {
        let RawScores::ByDomain(part) = &mut self.scores else {
            return false;
        };
        let changed = part.note(cluster, change, &mut self.raw);
        self.stale |= changed;
        changed
    }

    /// Updates the raw scores after all changes were noted.
    pub(super) fn settle(&mut self, cluster: &Cluster) {
        if let RawScores::ByDomain(part) = &mut self.scores
            && self.stale
        {
            part.settle(cluster, &mut self.raw);
        }
    }

    /// Updates the raw score of a node whose pods have changed.
    pub(super) fn update(&mut self, cluster: &Cluster, node: NodeId) {
        if let RawScores::ByNode(part) = &self.scores {
            self.raw[node.index()] = part.score(cluster, node);
        }
    }

    pub(super) fn use_cells(&mut self, cluster: &Cluster) -> bool {
        match &mut self.scores {
            RawScores::ByDomain(part) => part.use_cells(cluster),
            _ => false,
        }
    }

    pub(super) fn cells(&self) -> Option<&Cells> {
        match &self.scores {
            RawScores::ByDomain(part) => part.cells(),
            _ => None,
        }
    }

    /// All raw scores are 0 for now.
    pub(super) fn is_silent(&self) -> bool {
        matches!(&self.scores, RawScores::ByDomain(part) if part.is_silent())
    }

    /// What nodes share of it where these are scored; `None` if it has to be worked out for each. Where that is all there is to the
    /// score, it has to be put back.
    pub(super) fn take_shared(&mut self, cluster: &Cluster, scored: Scored<'_>) -> Option<SharedScores> {
        match &mut self.scores {
            RawScores::Shared(shared) => Some(std::mem::take(shared)),
            RawScores::ByDomain(part) => part.shared(cluster, scored),
            _ => None,
        }
    }

    /// Puts back what was taken.
    pub(super) fn put_back(&mut self, taken: SharedScores) {
        if let RawScores::Shared(shared) = &mut self.scores {
            *shared = taken;
        }
    }

    /// The score, where it follows from nothing but what is taken of nodes, and needs no normalization.
    pub(super) fn by_load(&self) -> Option<&dyn LoadScore> {
        match &self.scores {
            RawScores::ByNode(part) if self.normalization == Normalization::None => part.by_load(),
            _ => None,
        }
    }

    pub(super) fn is_by_load(&self) -> bool {
        self.by_load().is_some()
    }

    /// Its bounds move with almost every pod, so that it is added last, on top of what stays.
    pub(super) fn is_restless(&self) -> bool {
        matches!(self.normalization, Normalization::MinMax | Normalization::Inverted)
    }

    /// All nodes score the same, and normalized that is nothing.
    pub(super) fn gives_all_nothing(&self) -> bool {
        self.normalization == Normalization::MinMax && self.bounds.highest <= self.bounds.lowest
    }

    pub(super) fn find_bounds(&mut self, open: &[f64]) {
        self.bounds = match self.scores {
            RawScores::Constant(score) => Bounds { lowest: score, highest: score },
            _ if self.is_silent() => Bounds { lowest: 0.0, highest: 0.0 },
            _ => Bounds::of(self.normalization, &self.raw, open),
        };
        self.stale = false;
    }

    /// Whether its scores lie between the same bounds as before, now that other nodes are open.
    pub(super) fn has_same_bounds(&mut self, open: &[f64]) -> bool {
        let before = self.bounds;
        self.find_bounds(open);
        self.bounds == before
    }

    /// The column as it counts; not where it is constant.
    pub(super) fn weighted(&self) -> WeightedColumn<'_> {
        let Self { raw, weight, normalization, bounds, .. } = self;
        WeightedColumn { column: raw, weight: *weight, normalization: *normalization, bounds: *bounds }
    }

    /// Its points do not depend on which nodes are found.
    pub(super) fn is_settled(&self) -> bool {
        let is_constant = matches!(self.scores, RawScores::Constant(_));
        is_constant || (self.normalization == Normalization::None && !self.reads_open)
    }

    /// Goes over to cells, for classes in the order of the search; `false` if it has none.
    pub(super) fn use_keys(&mut self, cluster: &Cluster, open: &[f64]) -> bool {
        self.values.clear();
        match &mut self.scores {
            RawScores::ByDomain(part) => {
                if self.reads_open {
                    part.fill(cluster, open, &mut self.raw);
                }
                part.use_cells(cluster)
            }
            _ => !self.reads_open,
        }
    }

    /// The cell of a node; `None` if there are too many.
    pub(super) fn key(&mut self, node: usize) -> Option<u32> {
        if let RawScores::ByDomain(part) = &self.scores {
            return part.cells().map(|cells| cells.of[node]);
        }
        let (raw, values) = (self.raw[node], &mut self.values);
        let known = values.iter().position(|value| *value == raw);
        let place = known.or_else(|| {
            values.push(raw);
            (values.len() <= MAX_VALUES).then(|| values.len() - 1)
        });
        place.map(|place| place as u32)
    }

    /// With the raw scores of its cells.
    pub(super) fn weighed(&self) -> Option<Weighed<'_>> {
        let raw = match &self.scores {
            RawScores::ByDomain(part) => &part.cells()?.raw,
            _ => &self.values,
        };
        Some(Weighed { raw, weight: self.weight, normalization: self.normalization })
    }

    pub(super) fn raw(&self, node: usize) -> f64 {
        match (&self.scores, self.cells()) {
            (RawScores::Constant(score), _) => *score,
            (_, Some(cells)) => cells.raw[cells.of[node] as usize],
            (_, None) => self.raw[node],
        }
    }

    pub(super) fn points(&self, node: usize) -> f64 {
        self.weight * normalized(self.normalization, self.bounds, self.raw(node))
    }
}
