//! Loops over columns, compiled for the vector instructions that the machine turns out to have.

use pulp::{Arch, Simd, WithSimd};

use crate::{
    fast::Normalization,
    formula::{self, Inverse, Number},
};

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

impl Bounds {
    /// The bounds of no score at all.
    pub const NONE: Self = Self { lowest: f64::INFINITY, highest: f64::NEG_INFINITY };

    /// With the score of one more open node.
    #[inline]
    pub fn include(&mut self, normalization: Normalization, score: f64) {
        let is_mark = normalization == Normalization::Inverted && score < 0.0;
        if !is_mark {
            self.lowest = self.lowest.min(score);
        }
        self.highest = self.highest.max(score);
    }
}

/// The place of the n-th number that is one of a few.
pub fn nth_of(numbers: &[u16], few: &[u16], mut n: usize) -> Option<usize> {
    vectorized(
        #[inline(always)]
        || {
            for (block, numbers) in numbers.chunks(BLOCK).enumerate() {
                let count = count_in_block(numbers, few);
                if n < count {
                    return nth_in_block(numbers, few, n).map(|place| block * BLOCK + place);
                }
                n -= count;
            }
            None
        },
    )
}

/// How many of at most [`BLOCK`] numbers are one of a few: for loops that are [`vectorized`].
#[inline(always)]
pub fn count_in_block(numbers: &[u16], few: &[u16]) -> usize {
    // In sums that fit the numbers' own width.
    let of = |one: &u16| numbers.iter().map(|number| u16::from(number == one)).sum::<u16>();
    few.iter().map(of).sum::<u16>().into()
}

/// The place of the n-th of them.
#[inline(always)]
pub fn nth_in_block(numbers: &[u16], few: &[u16], mut n: usize) -> Option<usize> {
    for (part, numbers) in numbers.chunks(PART_OF_BLOCK).enumerate() {
        let count = count_in_block(numbers, few);
        if n < count {
            let is_one = |number: &u16| few.iter().any(|one| one == number);
            let mut places = numbers.iter().enumerate().filter(|(_, number)| is_one(number));
            return places.nth(n).map(|(place, _)| part * PART_OF_BLOCK + place);
        }
        n -= count;
    }
    None
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

/// A loop over scores that a formula is handed to.
trait EachScore {
    type Output;

    /// Runs with the points that a score is worth.
    fn run(self, points: impl Fn(f64) -> f64) -> Self::Output;
}

/// Runs a loop with the formula of a normalization: the choice is made once, and not for each score.
#[inline(always)]
fn with_formula<L: EachScore>(normalization: Normalization, bounds: Bounds, each: L) -> L::Output {
    let Bounds { lowest, highest } = bounds;
    // Open nodes have scores between these, and what closed ones get does not matter.
    let (has_inverse, inverse) =
        (lowest >= 0.0 && highest > 0.0 && highest < Inverse::EXACT, Inverse::of(highest));
    match normalization {
        Normalization::Proportional if has_inverse => each.run(
            #[inline(always)]
            |score| formula::proportional(score, inverse),
        ),
        Normalization::Proportional if highest > 0.0 => each.run(
            #[inline(always)]
            |score| formula::proportional(score, highest),
        ),
        Normalization::None | Normalization::Proportional => each.run(
            #[inline(always)]
            |score| score,
        ),
        Normalization::Reversed if has_inverse => each.run(
            #[inline(always)]
            |score| formula::reversed(score, inverse),
        ),
        Normalization::Reversed if highest > 0.0 => each.run(
            #[inline(always)]
            |score| formula::reversed(score, highest),
        ),
        Normalization::Reversed => each.run(
            #[inline(always)]
            |_| f64::FULL,
        ),
        Normalization::MinMax if highest > lowest => {
            let range = highest - lowest;
            each.run(
                #[inline(always)]
                |score| formula::min_max(score - lowest, range),
            )
        }
        Normalization::MinMax => each.run(
            #[inline(always)]
            |_| f64::ZERO,
        ),
        Normalization::Inverted if highest > 0.0 => {
            let (sum, highest) = (highest + lowest, Inverse::of(highest));
            each.run(
                #[inline(always)]
                |score| {
                    let points = formula::inverted(score, sum, highest);
                    if score < 0.0 { f64::ZERO } else { points }
                },
            )
        }
        Normalization::Inverted => each.run(
            #[inline(always)]
            |score| if score < 0.0 { f64::ZERO } else { f64::FULL },
        ),
    }
}

/// One score.
struct One(f64);

impl EachScore for One {
    type Output = f64;

    #[inline(always)]
    fn run(self, points: impl Fn(f64) -> f64) -> f64 {
        points(self.0)
    }
}

/// One score, normalized.
#[inline(always)]
pub fn normalized(normalization: Normalization, bounds: Bounds, score: f64) -> f64 {
    with_formula(normalization, bounds, One(score))
}

/// Adds weight × points to totals, which are all the same before if that is given.
struct AddWeighted<'a> {
    totals: &'a mut [f64],
    same: Option<f64>,
    column: &'a [f64],
    weight: f64,
}

impl EachScore for AddWeighted<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, points: impl Fn(f64) -> f64) {
        let Self { totals, same, column, weight } = self;
        vectorized(
            #[inline(always)]
            || match same {
                Some(same) => {
                    for (total, score) in totals.iter_mut().zip(column) {
                        *total = same + weight * points(*score);
                    }
                }
                None => {
                    for (total, score) in totals.iter_mut().zip(column) {
                        *total += weight * points(*score);
                    }
                }
            },
        );
    }
}

/// A column of scores, and what they count.
#[derive(Clone, Copy, Debug)]
pub struct WeightedColumn<'a> {
    /// The raw scores.
    pub column: &'a [f64],
    /// What a normalized score is multiplied with.
    pub weight: f64,
    /// How raw scores become scores of 0 to 100.
    pub normalization: Normalization,
    /// The lowest and the highest raw score of the open nodes.
    pub bounds: Bounds,
}

/// Adds weight × normalized score to totals.
pub fn add_weighted(
    totals: &mut [f64],
    WeightedColumn { column, weight, normalization, bounds }: WeightedColumn<'_>,
) {
    with_formula(normalization, bounds, AddWeighted { totals, same: None, column, weight });
}

/// Totals are what is the same for all plus weight × normalized score.
pub fn set_weighted(
    totals: &mut [f64],
    same: f64,
    WeightedColumn { column, weight, normalization, bounds }: WeightedColumn<'_>,
) {
    with_formula(normalization, bounds, AddWeighted { totals, same: Some(same), column, weight });
}

/// Adds weight × points to the totals of some nodes.
struct AddWeightedAt<'a> {
    totals: &'a mut [f64],
    nodes: &'a [u32],
    column: &'a [f64],
    weight: f64,
}

impl EachScore for AddWeightedAt<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, points: impl Fn(f64) -> f64) {
        let Self { totals, nodes, column, weight } = self;
        vectorized(
            #[inline(always)]
            || {
                for (total, node) in totals.iter_mut().zip(nodes) {
                    *total += weight * points(column[*node as usize]);
                }
            },
        );
    }
}

/// Adds weight × normalized score to the totals of some nodes, which are given by their places.
pub fn add_weighted_at(
    totals: &mut [f64],
    nodes: &[u32],
    WeightedColumn { column, weight, normalization, bounds }: WeightedColumn<'_>,
) {
    with_formula(normalization, bounds, AddWeightedAt { totals, nodes, column, weight });
}

/// How many nodes share an entry of [`Tops`].
pub const BLOCK: usize = 64;
/// So many of them are looked at one by one.
const PART_OF_BLOCK: usize = 16;

/// The highest total of each block of nodes, and how many nodes have it.
#[derive(Clone, Debug, Default)]
pub struct Tops {
    highest: Vec<f64>,
    /// Counted when they are asked for: few blocks have the highest total of all.
    ties: Vec<Option<u32>>,
}

impl Tops {
    /// From scratch.
    pub fn rebuild(&mut self, totals: &[f64]) {
        self.resize(totals.len());
        Arch::new().dispatch(FindTops { totals, highest: &mut self.highest });
    }

    /// After the total of one node has changed.
    pub fn update(&mut self, totals: &[f64], node: usize) {
        let block = node / BLOCK;
        self.highest[block] = Arch::new().dispatch(Highest(nodes(totals, block)));
        self.ties[block] = None;
    }

    /// The highest total of all, and how many nodes have it; `None` if all are closed.
    pub fn best(&mut self, totals: &[f64]) -> Option<(f64, usize)> {
        let highest = self.highest.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if highest == f64::NEG_INFINITY {
            return None;
        }
        let mut count = 0;
        for block in 0..self.highest.len() {
            if self.highest[block] == highest {
                let ties = self.ties[block].unwrap_or_else(|| count_ties(nodes(totals, block), highest));
                self.ties[block] = Some(ties);
                count += ties as usize;
            }
        }
        Some((highest, count))
    }

    /// The place of the n-th node that has the highest total, after [`Self::best`].
    pub fn nth(&self, totals: &[f64], highest: f64, mut n: usize) -> Option<usize> {
        for (block, _) in self.highest.iter().enumerate().filter(|(_, top)| **top == highest) {
            let ties = self.ties[block]? as usize;
            if n < ties {
                let mut places = nodes(totals, block).iter().enumerate().filter(|(_, t)| **t == highest);
                return places.nth(n).map(|(i, _)| block * BLOCK + i);
            }
            n -= ties;
        }
        None
    }

    fn resize(&mut self, places: usize) {
        let blocks = places.div_ceil(BLOCK);
        self.highest.resize(blocks, f64::NEG_INFINITY);
        self.ties.clear();
        self.ties.resize(blocks, None);
    }
}

/// The totals of a block.
fn nodes(totals: &[f64], block: usize) -> &[f64] {
    &totals[block * BLOCK..totals.len().min((block + 1) * BLOCK)]
}

fn count_ties(block: &[f64], highest: f64) -> u32 {
    vectorized(
        #[inline(always)]
        || block.iter().map(|total| u32::from(*total == highest)).sum(),
    )
}

struct FindTops<'a> {
    totals: &'a [f64],
    highest: &'a mut [f64],
}

impl WithSimd for FindTops<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        for (block, top) in self.totals.chunks(BLOCK).zip(self.highest) {
            *top = highest_of(simd, block);
        }
    }
}

/// One block.
struct Highest<'a>(&'a [f64]);

impl WithSimd for Highest<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        highest_of(simd, self.0)
    }
}

#[inline(always)]
fn highest_of<S: Simd>(simd: S, block: &[f64]) -> f64 {
    let (vectors, rest) = S::as_simd_f64s(block);
    let mut top = simd.splat_f64s(f64::NEG_INFINITY);
    for totals in vectors {
        top = simd.max_f64s(top, *totals);
    }
    rest.iter().copied().fold(simd.reduce_max_f64s(top), f64::max)
}

/// Totals are base plus weight × normalized score, where nodes are open, and the tops of it: in one pass, block by block.
pub fn sum_with_tops(
    totals: &mut Vec<f64>,
    tops: &mut Tops,
    base: &[f64],
    open: &[f64],
    WeightedColumn { column, weight, normalization, bounds }: WeightedColumn<'_>,
) {
    totals.resize(base.len(), 0.0);
    tops.resize(base.len());
    with_formula(normalization, bounds, SumWithTops { totals, tops, base, open, column, weight });
}

/// Totals are base, where nodes are open, and the tops of it: in one pass, block by block.
pub fn open_with_tops(totals: &mut Vec<f64>, tops: &mut Tops, base: &[f64], open: &[f64]) {
    totals.resize(base.len(), 0.0);
    tops.resize(base.len());
    Arch::new().dispatch(OpenWithTops { totals, tops, base, open });
}

struct OpenWithTops<'a> {
    totals: &'a mut [f64],
    tops: &'a mut Tops,
    base: &'a [f64],
    open: &'a [f64],
}

impl WithSimd for OpenWithTops<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let blocks = self.totals.chunks_mut(BLOCK).zip(self.base.chunks(BLOCK)).zip(self.open.chunks(BLOCK));
        for (((totals, base), open), top) in blocks.zip(&mut self.tops.highest) {
            for ((total, base), open) in totals.iter_mut().zip(base).zip(open) {
                *total = base + open;
            }
            *top = highest_of(simd, totals);
        }
    }
}

struct SumWithTops<'a> {
    totals: &'a mut [f64],
    tops: &'a mut Tops,
    base: &'a [f64],
    open: &'a [f64],
    column: &'a [f64],
    weight: f64,
}

impl EachScore for SumWithTops<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, points: impl Fn(f64) -> f64) {
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
        let SumWithTops { totals, tops, base, open, column, weight } = self.columns;
        let blocks = totals.chunks_mut(BLOCK).zip(base.chunks(BLOCK)).zip(open.chunks(BLOCK));
        let blocks = blocks.zip(column.chunks(BLOCK)).zip(&mut tops.highest);
        for ((((totals, base), open), column), top) in blocks {
            for (((total, base), open), score) in totals.iter_mut().zip(base).zip(open).zip(column) {
                *total = base + open + weight * (self.points)(*score);
            }
            *top = highest_of(simd, totals);
        }
    }
}
