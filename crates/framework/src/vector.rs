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
        let all = vectorized(
            #[inline(always)]
            || bounds(false, column, open),
        );
        // Marks are rare: only where one is seen is it worth a slower loop.
        if normalization == Normalization::Inverted && all.lowest < 0.0 {
            return vectorized(
                #[inline(always)]
                || bounds(true, column, open),
            );
        }
        all
    }
}

#[inline(always)]
fn bounds(marks: bool, column: &[f64], open: &[f64]) -> Bounds {
    const LANES: usize = 16;
    let (mut low, mut high) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    // A closed node counts as the lowest for the highest, and as the highest for the lowest.
    let take = |low: &mut f64, high: &mut f64, score: f64, open: f64| {
        let down = if marks && score < 0.0 { f64::INFINITY } else { score - open };
        *low = if down < *low { down } else { *low };
        let up = score + open;
        *high = if up > *high { up } else { *high };
    };
    let (scores, more_scores) = column.as_chunks::<LANES>();
    let (opens, more_opens) = open.as_chunks::<LANES>();
    for (scores, opens) in scores.iter().zip(opens) {
        for lane in 0..LANES {
            take(&mut low[lane], &mut high[lane], scores[lane], opens[lane]);
        }
    }
    for (score, open) in more_scores.iter().zip(more_opens) {
        take(&mut low[0], &mut high[0], *score, *open);
    }
    Bounds {
        lowest: low.into_iter().fold(f64::INFINITY, |a, b| if b < a { b } else { a }),
        highest: high.into_iter().fold(f64::NEG_INFINITY, |a, b| if b > a { b } else { a }),
    }
}

/// A whole number divided by another, cut off, without a division: the divisor is given as its inverse.
///
/// The half keeps the product away from whole numbers by 0.5 / divisor at least, and it is off by less than
/// quotient × 2⁻⁵². So it is exact for quotients up to 200 and divisors up to 2⁴³.
#[inline(always)]
pub fn quotient(number: f64, inverse: f64) -> f64 {
    ((number + 0.5) * inverse).trunc()
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
            vectorized(
                #[inline(always)]
                || {
                    for (total, score) in totals.iter_mut().zip(column) {
                        let $score = *score;
                        *total += weight * $points;
                    }
                },
            )
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
            let (sum, inverse) = (highest + lowest, 1.0 / highest);
            add_each!(score => {
                let points = quotient(FULL * (sum - score), inverse);
                if score < 0.0 { 0.0 } else { points }
            });
        }
        Normalization::Inverted => add_each!(score => if score < 0.0 { 0.0 } else { FULL }),
        Normalization::Reversed => add_each!(_score => FULL),
        Normalization::MinMax => {}
        Normalization::None | Normalization::Proportional => add_each!(score => score),
    }
}

/// How many nodes share an entry of [`Tops`].
pub const BLOCK: usize = 64;

/// The highest total of each block of nodes, and how many nodes have it.
#[derive(Clone, Debug, Default)]
pub struct Tops {
    /// By block.
    pub highest: Vec<f64>,
    /// By block.
    pub ties: Vec<u32>,
}

impl Tops {
    /// From scratch.
    pub fn rebuild(&mut self, totals: &[f64]) {
        self.resize(totals.len());
        let (highest, ties) = (&mut self.highest, &mut self.ties);
        vectorized(
            #[inline(always)]
            || {
                for ((block, highest), ties) in totals.chunks(BLOCK).zip(highest).zip(ties) {
                    (*highest, *ties) = summarize(block);
                }
            },
        );
    }

    /// After the total of one node has changed.
    pub fn update(&mut self, totals: &[f64], node: usize) {
        let block = node / BLOCK;
        let nodes = &totals[block * BLOCK..totals.len().min((block + 1) * BLOCK)];
        (self.highest[block], self.ties[block]) = vectorized(
            #[inline(always)]
            || summarize(nodes),
        );
    }

    fn resize(&mut self, places: usize) {
        let blocks = places.div_ceil(BLOCK);
        self.highest.resize(blocks, f64::NEG_INFINITY);
        self.ties.resize(blocks, 0);
    }
}

/// The highest total of a block, and how many nodes have it.
#[inline(always)]
fn summarize(block: &[f64]) -> (f64, u32) {
    const LANES: usize = 16;
    let (chunks, rest) = block.as_chunks::<LANES>();
    let mut tops = [f64::NEG_INFINITY; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            tops[lane] = if chunk[lane] > tops[lane] { chunk[lane] } else { tops[lane] };
        }
    }
    let higher = |a: f64, b: f64| if b > a { b } else { a };
    let highest = tops.into_iter().chain(rest.iter().copied()).fold(f64::NEG_INFINITY, higher);
    let mut ties = [0.0; LANES];
    for chunk in chunks {
        for lane in 0..LANES {
            ties[lane] += if chunk[lane] == highest { 1.0 } else { 0.0 };
        }
    }
    let counted: f64 = ties.into_iter().sum();
    (highest, counted as u32 + rest.iter().filter(|total| **total == highest).count() as u32)
}

/// Totals are base plus weight × normalized score, and the tops of it: in one pass, block by block.
pub fn sum_with_tops(
    totals: &mut Vec<f64>,
    tops: &mut Tops,
    base: &[f64],
    column: &[f64],
    weight: f64,
    normalization: Normalization,
    bounds: Bounds,
) {
    totals.resize(base.len(), 0.0);
    tops.resize(base.len());
    let Bounds { lowest, highest } = bounds;
    let blocks = totals.chunks_mut(BLOCK).zip(base.chunks(BLOCK)).zip(column.chunks(BLOCK));
    let blocks = blocks.zip(tops.highest.iter_mut().zip(&mut tops.ties));
    macro_rules! sum_each {
        ($score:ident => $points:expr) => {
            vectorized(
                #[inline(always)]
                || {
                    for (((totals, base), column), (top, ties)) in blocks {
                        for ((total, base), score) in totals.iter_mut().zip(base).zip(column) {
                            let $score = *score;
                            *total = base + weight * $points;
                        }
                        (*top, *ties) = summarize(totals);
                    }
                },
            )
        };
    }
    match normalization {
        Normalization::MinMax if highest > lowest => {
            let range = highest - lowest;
            sum_each!(score => (FULL * ((score - lowest) / range)).trunc());
        }
        Normalization::Inverted if highest > 0.0 => {
            let (sum, inverse) = (highest + lowest, 1.0 / highest);
            sum_each!(score => {
                let points = quotient(FULL * (sum - score), inverse);
                if score < 0.0 { 0.0 } else { points }
            });
        }
        _ => sum_each!(score => normalized(normalization, bounds, score)),
    }
}
