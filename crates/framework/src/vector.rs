//! Loops over columns, compiled for the vector instructions that the machine turns out to have.

use crate::{fast::Normalization, points::MAX_SCORE};

const FULL: f64 = MAX_SCORE as f64;

/// Runs a loop with the best instructions of this machine. The loop must be inlined into the closure.
#[inline]
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// The lowest and the highest score of the open nodes. Scores below zero count only where they are not a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}

impl Bounds {
    /// Of the open nodes of a column.
    pub fn of(normalization: Normalization, column: &[f64], open: &[f64]) -> Self {
        let marks = normalization == Normalization::Inverted;
        vectorized(|| bounds(marks, column, open))
    }
}

#[inline(always)]
fn bounds(marks: bool, column: &[f64], open: &[f64]) -> Bounds {
    const LANES: usize = 8;
    let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    let take = |low: &mut f64, high: &mut f64, score: f64, open: f64| {
        let counts = open == 0.0 && !(marks && score < 0.0);
        let (l, h) = if counts { (score, score) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        *low = if l < *low { l } else { *low };
        *high = if h > *high { h } else { *high };
    };
    let whole = column.len() / LANES * LANES;
    for (scores, opens) in column[..whole].chunks_exact(LANES).zip(open[..whole].chunks_exact(LANES)) {
        for lane in 0..LANES {
            take(&mut low[lane], &mut high[lane], scores[lane], opens[lane]);
        }
    }
    for i in whole..column.len() {
        take(&mut low[0], &mut high[0], column[i], open[i]);
    }
    Bounds {
        lowest: low.into_iter().fold(f64::INFINITY, f64::min),
        highest: high.into_iter().fold(f64::NEG_INFINITY, f64::max),
    }
}

/// One score, normalized.
#[inline(always)]
pub fn normalized(normalization: Normalization, bounds: Bounds, score: f64) -> f64 {
    let Bounds { lowest, highest } = bounds;
    match normalization {
        Normalization::None => score,
        Normalization::Proportional if highest > 0.0 => (FULL * score / highest).trunc(),
        Normalization::Proportional => score,
        Normalization::Reversed if highest > 0.0 => FULL - (FULL * score / highest).trunc(),
        Normalization::Reversed => FULL,
        Normalization::MinMax if highest > lowest => (FULL * ((score - lowest) / (highest - lowest))).trunc(),
        Normalization::MinMax => 0.0,
        Normalization::Inverted if score < 0.0 => 0.0,
        Normalization::Inverted if highest > 0.0 => (FULL * (highest + lowest - score) / highest).trunc(),
        Normalization::Inverted => FULL,
    }
}

/// Adds weight × normalized score to totals.
pub fn add_weighted(
    totals: &mut [f64],
    column: &[f64],
    weight: f64,
    normalization: Normalization,
    bounds: Bounds,
) {
    let Bounds { lowest, highest } = bounds;
    // One loop for each kind, so that the choice is made once and not for each node.
    macro_rules! add_each {
        ($score:ident => $points:expr) => {
            vectorized(|| {
                for (total, score) in totals.iter_mut().zip(column) {
                    let $score = *score;
                    *total += weight * $points;
                }
            })
        };
    }
    match normalization {
        Normalization::Proportional if highest > 0.0 => {
            add_each!(score => (FULL * score / highest).trunc());
        }
        Normalization::Reversed if highest > 0.0 => {
            add_each!(score => FULL - (FULL * score / highest).trunc());
        }
        Normalization::MinMax if highest > lowest => {
            let range = highest - lowest;
            add_each!(score => (FULL * ((score - lowest) / range)).trunc());
        }
        Normalization::Inverted if highest > 0.0 => {
            let sum = highest + lowest;
            add_each!(score => {
                let points = (FULL * (sum - score) / highest).trunc();
                if score < 0.0 { 0.0 } else { points }
            });
        }
        Normalization::Inverted => add_each!(score => if score < 0.0 { 0.0 } else { FULL }),
        Normalization::Reversed => add_each!(_score => FULL),
        Normalization::MinMax => {}
        Normalization::None | Normalization::Proportional => add_each!(score => score),
    }
}
