//! The fast form of a guest: its answers go from its memory straight into the engine's columns.

use std::sync::Arc;

use supercargo_framework::{
    fast::{
        CLOSED, Compiled, FastFilter, FastScore, FilterPart, OPEN, OpaqueFilter, OpaqueScore, PluginFailed,
        RawScores, ScorePart,
    },
    points::{MAX_SCORE, MIN_SCORE},
    vector::vectorized,
};
use supercargo_model::{Cluster, Pod};

use crate::{guest::Guest, instance::Instance};

/// A guest. It is asked for every pod: its module can change, and pods of one signature differ in their names.
struct Part {
    guest: Arc<Guest>,
    /// The rows of open nodes: kept for its memory.
    rows: Vec<u32>,
}

impl Part {
    fn new(guest: Arc<Guest>) -> Self {
        Self { guest, rows: Vec::new() }
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
}

struct FilterByGuest(Part);
struct ScoreByGuest(Part);

impl OpaqueFilter for FilterByGuest {
    fn close(&mut self, cluster: &Cluster, pod: &Arc<Pod>, open: &mut [f64]) -> Result<(), PluginFailed> {
        let part = &mut self.0;
        part.note_open(open);
        let close = |row: u32, _| open[row as usize] = CLOSED;
        part.guest.filter_rows(cluster, pod, &part.rows, None, close).map_err(|_| PluginFailed)?;
        Ok(())
    }
}

impl OpaqueScore for ScoreByGuest {
    fn fill(
        &mut self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        open: &[f64],
        column: &mut [f64],
    ) -> Result<(), PluginFailed> {
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
        let gave = part.guest.score_rows(cluster, pod, &part.rows, true, |_| {}, take);
        if gave != Ok(true) {
            column.fill(0.0);
        }
        gave.map(drop).map_err(|_| PluginFailed)
    }
}

impl FastFilter for Guest {
    fn compile_filter(self: Arc<Self>, _: &Cluster, _: &Arc<Pod>) -> Compiled<FilterPart> {
        Compiled::Part(FilterPart::Opaque(Box::new(FilterByGuest(Part::new(self)))))
    }
}

impl FastScore for Guest {
    fn compile_score(self: Arc<Self>, _: &Cluster, _: &Arc<Pod>) -> Compiled<ScorePart> {
        Compiled::Part(RawScores::Opaque(Box::new(ScoreByGuest(Part::new(self)))).in_range())
    }
}
