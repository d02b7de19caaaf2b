//! The fast form: raw scores that are worked out once, as long as no time passes in them.

use std::sync::Arc;

use supercargo_framework::{
    fast::{Compiled, FastScore, OPEN, OpenScore, RawScores, ScorePart},
    normalize::RangeWithZero,
};
use supercargo_model::{Cluster, Pod};

use super::DynamicScoring;

/// The raw score of each node, by place, mapped over the nodes that are open.
struct Mapped {
    raw: Vec<i64>,
}

impl FastScore for DynamicScoring {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, _: &Arc<Pod>) -> Compiled<ScorePart> {
        let preferences = match self.preferences(cluster) {
            Ok(None) => return Compiled::Idle,
            Ok(Some(preferences)) if !preferences.reads_the_clock() => preferences,
            // The clock goes on without a change of the cluster; and what is wrong is the full path's to tell.
            _ => return Compiled::NoFastForm,
        };
        let columns = cluster.columns();
        let mut raw = vec![0; columns.len()];
        for node in columns.live.iter() {
            raw[node.index()] = preferences.raw_score(&cluster.node_at(node).node, cluster.now());
        }
        if raw.iter().all(|score| *score == 0) {
            return Compiled::Idle;
        }
        Compiled::Part(RawScores::AmongOpen(Box::new(Mapped { raw })).in_range())
    }
}

impl OpenScore for Mapped {
    fn fill(&mut self, _: &Cluster, open: &[f64], column: &mut [f64]) {
        let counts = self.raw.iter().zip(open).filter(|(_, open)| **open == OPEN);
        let range = RangeWithZero::of(counts.map(|(raw, _)| *raw));
        for ((points, raw), open) in column.iter_mut().zip(&self.raw).zip(open) {
            *points = if *open == OPEN { range.map(*raw) as f64 } else { 0.0 };
        }
    }
}
