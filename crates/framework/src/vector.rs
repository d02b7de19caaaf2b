//! Loops over columns, compiled for the vector instructions that the machine turns out to have.

use pulp::{Arch, Simd, WithSimd};

use crate::{fast::Normalization, points::MAX_SCORE};

const FULL: f64 = MAX_SCORE as f64;

/// Runs a loop with the best instructions of this machine. The loop must be inlined into the closure.
#[inline]
pub fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(work)
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
        let all = Arch::new().dispatch(FindBounds { marks: false, column, open });
        // Marks are rare: only where one is seen is it worth a slower loop.
        if normalization == Normalization::Inverted && all.lowest < 0.0 {
            return Arch::new().dispatch(FindBounds { marks: true, column, open });
        }
        all
    }
}

struct FindBounds<'a> {
    /// Scores below zero are marks, and do not count for the lowest.
    marks: bool,
    column: &'a [f64],
    open: &'a [f64],
}

/// Compilers find no good form for this loop, so it is written with vectors.
impl WithSimd for FindBounds<'_> {
    type Output = Bounds;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Bounds {
        let Self { marks, column, open } = self;
        let (scores, more_scores) = S::as_simd_f64s(column);
        let (opens, more_opens) = S::as_simd_f64s(open);
        let (infinity, zero) = (simd.splat_f64s(f64::INFINITY), simd.splat_f64s(0.0));
        let (mut low, mut high) = (infinity, simd.splat_f64s(f64::NEG_INFINITY));
        for (score, open) in scores.iter().zip(opens) {
            // A closed node counts as the lowest for the highest, and as the highest for the lowest.
            let mut down = simd.sub_f64s(*score, *open);
            if marks {
                down = simd.select_f64s(simd.less_than_f64s(*score, zero), infinity, down);
            }
            low = simd.min_f64s(low, down);
            high = simd.max_f64s(high, simd.add_f64s(*score, *open));
        }
        let mut bounds = Bounds { lowest: simd.reduce_min_f64s(low), highest: simd.reduce_max_f64s(high) };
        for (score, open) in more_scores.iter().zip(more_opens) {
            let down = if marks && *score < 0.0 { f64::INFINITY } else { score - open };
            bounds.lowest = bounds.lowest.min(down);
            bounds.highest = bounds.highest.max(score + open);
        }
        bounds
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
        Arch::new().dispatch(FindTops { totals, tops: self });
    }

    /// After the total of one node has changed.
    pub fn update(&mut self, totals: &[f64], node: usize) {
        let block = node / BLOCK;
        let nodes = &totals[block * BLOCK..totals.len().min((block + 1) * BLOCK)];
        (self.highest[block], self.ties[block]) = Arch::new().dispatch(Summarize(nodes));
    }

    fn resize(&mut self, places: usize) {
        let blocks = places.div_ceil(BLOCK);
        self.highest.resize(blocks, f64::NEG_INFINITY);
        self.ties.resize(blocks, 0);
    }

    fn entries(&mut self) -> impl Iterator<Item = (&mut f64, &mut u32)> {
        self.highest.iter_mut().zip(&mut self.ties)
    }
}

struct FindTops<'a> {
    totals: &'a [f64],
    tops: &'a mut Tops,
}

impl WithSimd for FindTops<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (block, (top, ties)) in self.totals.chunks(BLOCK).zip(self.tops.entries()) {
            (*top, *ties) = summarize(simd, block);
        }
    }
}

/// One block.
struct Summarize<'a>(&'a [f64]);

impl WithSimd for Summarize<'_> {
    type Output = (f64, u32);

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> (f64, u32) {
        summarize(simd, self.0)
    }
}

/// The highest total of a block, and how many nodes have it.
#[inline(always)]
fn summarize<S: Simd>(simd: S, block: &[f64]) -> (f64, u32) {
    let (vectors, rest) = S::as_simd_f64s(block);
    let mut top = simd.splat_f64s(f64::NEG_INFINITY);
    for totals in vectors {
        top = simd.max_f64s(top, *totals);
    }
    let highest = rest.iter().copied().fold(simd.reduce_max_f64s(top), f64::max);
    let (all, one, none) = (simd.splat_f64s(highest), simd.splat_f64s(1.0), simd.splat_f64s(0.0));
    let mut ties = none;
    for totals in vectors {
        ties = simd.add_f64s(ties, simd.select_f64s(simd.equal_f64s(*totals, all), one, none));
    }
    let counted = simd.reduce_sum_f64s(ties) as u32;
    (highest, counted + rest.iter().filter(|total| **total == highest).count() as u32)
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
    let columns = SumWithTops { totals, tops, base, column, weight };
    match normalization {
        Normalization::MinMax if highest > lowest => {
            let range = highest - lowest;
            columns.sum(
                #[inline(always)]
                |score| (FULL * ((score - lowest) / range)).trunc(),
            );
        }
        Normalization::Inverted if highest > 0.0 => {
            let (sum, inverse) = (highest + lowest, 1.0 / highest);
            columns.sum(
                #[inline(always)]
                |score| {
                    let points = quotient(FULL * (sum - score), inverse);
                    if score < 0.0 { 0.0 } else { points }
                },
            );
        }
        _ => columns.sum(
            #[inline(always)]
            |score| normalized(normalization, bounds, score),
        ),
    }
}

struct SumWithTops<'a> {
    totals: &'a mut [f64],
    tops: &'a mut Tops,
    base: &'a [f64],
    column: &'a [f64],
    weight: f64,
}

impl SumWithTops<'_> {
    fn sum(self, points: impl Fn(f64) -> f64) {
        Arch::new().dispatch(Points { columns: self, points });
    }
}

struct Points<'a, F> {
    columns: SumWithTops<'a>,
    points: F,
}

impl<F: Fn(f64) -> f64> WithSimd for Points<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let SumWithTops { totals, tops, base, column, weight } = self.columns;
        let blocks = totals.chunks_mut(BLOCK).zip(base.chunks(BLOCK)).zip(column.chunks(BLOCK));
        for (((totals, base), column), (top, ties)) in blocks.zip(tops.entries()) {
            for ((total, base), score) in totals.iter_mut().zip(base).zip(column) {
                *total = base + weight * (self.points)(*score);
            }
            (*top, *ties) = summarize(simd, totals);
        }
    }
}
