//! The arithmetic of scores, stated once for both paths: in whole numbers of any size on the full path, and in `f64`, where
//! columns hold whole numbers exactly (see [`supercargo_model::columns`]), on the fast path.

use crate::points::MAX_SCORE;

/// What scores are worked out in.
pub trait Number: Copy + PartialOrd {
    /// Nothing.
    const ZERO: Self;
    /// The highest score.
    const FULL: Self;

    /// The difference.
    fn minus(self, other: Self) -> Self;
}

impl Number for i64 {
    const ZERO: Self = 0;
    const FULL: Self = MAX_SCORE;

    fn minus(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

impl Number for f64 {
    const ZERO: Self = 0.0;
    const FULL: Self = MAX_SCORE as f64;

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        self - other
    }
}

/// What numbers are divided by. What is left over is cut off.
pub trait Divisor<N>: Copy {
    /// number / this.
    fn divide(self, number: N) -> N;

    /// 100 × part / this.
    fn percent(self, part: N) -> N;
}

impl Divisor<Self> for i64 {
    fn divide(self, number: Self) -> Self {
        number / self
    }

    fn percent(self, part: Self) -> Self {
        let scaled = i128::from(Self::FULL) * i128::from(part) / i128::from(self);
        Self::try_from(scaled).unwrap_or(if scaled < 0 { Self::MIN } else { Self::MAX })
    }
}

impl Divisor<Self> for f64 {
    #[inline(always)]
    fn divide(self, number: Self) -> Self {
        (number / self).trunc()
    }

    #[inline(always)]
    fn percent(self, part: Self) -> Self {
        self.divide(Self::FULL * part)
    }
}

/// A divisor by its inverse, for numbers that are not negative: a product is cheaper than a quotient.
#[derive(Clone, Copy, Debug)]
pub struct Inverse(pub f64);

impl Inverse {
    /// Divisors below this are exact, for quotients up to 200.
    pub const EXACT: f64 = (1_u64 << 43) as f64;

    /// Of a divisor.
    #[inline(always)]
    pub fn of(divisor: f64) -> Self {
        Self(1.0 / divisor)
    }
}

impl Divisor<f64> for Inverse {
    /// The half keeps the product away from whole numbers by 0.5 / divisor at least, and it is off by less than
    /// quotient × 2⁻⁵². So it is exact for quotients up to 200 and divisors up to 2⁴³.
    #[inline(always)]
    fn divide(self, number: f64) -> f64 {
        ((number + 0.5) * self.0).trunc()
    }

    #[inline(always)]
    fn percent(self, part: f64) -> f64 {
        self.divide(part * f64::FULL)
    }
}

/// The highest becomes 100.
#[inline(always)]
pub fn proportional<N: Number>(score: N, highest: impl Divisor<N>) -> N {
    highest.percent(score)
}

/// The highest becomes 0, and 0 becomes 100.
#[inline(always)]
pub fn reversed<N: Number>(score: N, highest: impl Divisor<N>) -> N {
    N::FULL.minus(highest.percent(score))
}

/// 100 × (highest + lowest − score) / highest, from the sum of both.
#[inline(always)]
pub fn inverted<N: Number>(score: N, highest_and_lowest: N, highest: impl Divisor<N>) -> N {
    highest.percent(highest_and_lowest.minus(score))
}

/// The lowest becomes 0, the highest 100, in floating point as kube-scheduler does it: 100 × (part / range), cut off.
#[inline(always)]
pub fn min_max(above_lowest: f64, range: f64) -> f64 {
    (f64::FULL * (above_lowest / range)).trunc()
}
