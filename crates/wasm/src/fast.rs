//! The fast form of a guest: its answers go from its memory straight into the engine's columns.

use std::sync::Arc;

use supercargo_framework::{
    fast::{Asked, CLOSED, Compiled, FastFilter, FastScore, FilterPart, OPEN, ScorePart},
    points::{MAX_SCORE, MIN_SCORE},
    vector::vectorized,
};
use supercargo_model::{Cluster, NodeId, Pod};

use crate::{guest::Guest, instance::Instance};

/// A guest and the pod that it is asked about. It is asked for every pod: its module can change, and pods of one shape
/// differ in their names.
struct Part {
    guest: Arc<Guest>,
    pod: Arc<Pod>,
    failed: bool,
    /// The rows of open nodes: kept for its memory.
    rows: Vec<u32>,
}

impl Part {
    fn new(guest: Arc<Guest>, pod: &Arc<Pod>) -> Self {
        Self { guest, pod: pod.clone(), failed: false, rows: Vec::new() }
    }

    fn note_open(&mut self, open: &[f64]) {
        // Without a branch: every row is written, and the next one over it if it is not open.
        self.rows.resize(open.len(), 0);
        let mut count = 0;
        for (row, open) in open.iter().enumerate() {
            self.rows[count] = row as u32;
            count += usize::from(*open == OPEN);
        }
        self.rows.truncate(count);
    }

    fn how_asked(&self) -> Asked {
        if self.failed { Asked::Failed } else { Asked::Always }
    }
}

struct FilterByGuest(Part);
struct ScoreByGuest(Part);

impl FilterPart for FilterByGuest {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        let part = &mut self.0;
        part.note_open(open);
        let close = |row: u32, _| open[row as usize] = CLOSED;
        part.failed = part.guest.filter_rows(cluster, &part.pod, &part.rows, None, close).is_err();
    }

    /// Never asked for: all nodes are asked about anew.
    fn passes(&self, _: &Cluster, _: NodeId) -> bool {
        true
    }

    fn asked(&self) -> Asked {
        self.0.how_asked()
    }

    fn meet(&mut self, pod: &Arc<Pod>) {
        self.0.pod.clone_from(pod);
    }
}

impl ScorePart for ScoreByGuest {
    fn fill(&mut self, cluster: &Cluster, open: &[f64], column: &mut [f64]) {
        let part = &mut self.0;
        part.note_open(open);
        let take = |instance: &Instance| {
            let scores = instance.scores();
            vectorized(
                #[inline(always)]
                || {
                    for (points, score) in column.iter_mut().zip(scores) {
                        // Closed nodes may have got anything.
                        let score = i64::from_le_bytes(*score).clamp(MIN_SCORE, MAX_SCORE);
                        *points = f64::from(score as i32);
                    }
                },
            );
        };
        let gave = part.guest.score_rows(cluster, &part.pod, &part.rows, true, |_| {}, take);
        part.failed = gave.is_err();
        if gave != Ok(true) {
            column.fill(0.0);
        }
    }

    /// Never asked for: all nodes are asked about anew.
    fn score(&self, _: &Cluster, _: NodeId) -> f64 {
        0.0
    }

    fn asked(&self) -> Asked {
        self.0.how_asked()
    }

    fn reads_open(&self) -> bool {
        true
    }

    fn meet(&mut self, pod: &Arc<Pod>) {
        self.0.pod.clone_from(pod);
    }
}

impl FastFilter for Guest {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn FilterPart> {
        Compiled::Part(Box::new(FilterByGuest(Part::new(self, pod))))
    }
}

impl FastScore for Guest {
    fn compile_score(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        Compiled::Part(Box::new(ScoreByGuest(Part::new(self, pod))))
    }
}
