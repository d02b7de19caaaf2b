//! The usual ways to bring scores into 0..=100.

use crate::{
    formula,
    points::MAX_SCORE,
    status::{Status, Verdict},
};

/// The highest score on the scale that priority functions had before there were plugins.
const MAX_OLD_SCORE: i64 = 10;

/// Brings scores from the older scale of 0 to 10 to that of 0 to 100. A score outside of it is an error.
///
/// ```
/// let mut column = [0, 7, 10];
/// supercargo_framework::normalize::from_ten(&mut column).unwrap();
/// assert_eq!(column, [0, 70, 100]);
/// assert!(supercargo_framework::normalize::from_ten(&mut [11]).is_err());
/// ```
pub fn from_ten(column: &mut [i64]) -> Verdict {
    for score in column {
        if !(0..=MAX_OLD_SCORE).contains(score) {
            return Err(Status::error(format!("score {score} is not within 0..={MAX_OLD_SCORE}")));
        }
        *score *= MAX_SCORE / MAX_OLD_SCORE;
    }
    Ok(())
}

/// The highest score becomes 100, the others keep their proportion to it. All 0 stays all 0.
///
/// ```
/// let mut column = [0, 5, 20];
/// supercargo_framework::normalize::proportional(&mut column);
/// assert_eq!(column, [0, 25, 100]); // 100 × 5 / 20 = 25
/// ```
pub fn proportional(column: &mut [i64]) {
    let highest = column.iter().copied().max().unwrap_or(0).max(0);
    if highest > 0 {
        for score in column {
            *score = formula::proportional(*score, highest);
        }
    }
}

/// As [`proportional`], turned round: the highest becomes 0, a score of 0 becomes 100.
///
/// ```
/// let mut column = [0, 1, 3];
/// supercargo_framework::normalize::reversed(&mut column);
/// assert_eq!(column, [100, 67, 0]); // 100 − 100 × 1 / 3 = 100 − 33
/// ```
pub fn reversed(column: &mut [i64]) {
    let highest = column.iter().copied().max().unwrap_or(0);
    if highest <= 0 {
        return column.fill(MAX_SCORE);
    }
    for score in column {
        *score = formula::reversed(*score, highest);
    }
}

/// The lowest becomes 0, the highest 100. All 0 if all are equal.
///
/// ```
/// let mut column = [-10, 0, 10];
/// supercargo_framework::normalize::min_max(&mut column);
/// assert_eq!(column, [0, 50, 100]);
/// ```
pub fn min_max(column: &mut [i64]) {
    let lowest = column.iter().copied().min().unwrap_or(0);
    let highest = column.iter().copied().max().unwrap_or(0);
    let range = i128::from(highest) - i128::from(lowest);
    for score in column {
        *score = if range > 0 {
            let above_lowest = i128::from(*score) - i128::from(lowest);
            formula::min_max(above_lowest as f64, range as f64) as i64
        } else {
            0
        };
    }
}

/// The lowest becomes 0, the highest 100, zero counting among them whether or not a node has it. All 0 if all are.
///
/// ```
/// let mut column = [-10, 0, 5];
/// supercargo_framework::normalize::min_max_with_zero(&mut column);
/// assert_eq!(column, [0, 66, 100]); // 100 × (0 + 10) / (5 + 10) = 66
/// let mut column = [5, 20];
/// supercargo_framework::normalize::min_max_with_zero(&mut column);
/// assert_eq!(column, [25, 100]); // zero is the lowest: 100 × 5 / 20 = 25
/// ```
pub fn min_max_with_zero(column: &mut [i64]) {
    let range = RangeWithZero::of(column.iter().copied());
    for score in column {
        *score = range.map(*score);
    }
}

/// The lowest and the highest of some scores and zero.
#[derive(Clone, Copy, Debug)]
pub struct RangeWithZero {
    lowest: i64,
    highest: i64,
}

impl RangeWithZero {
    /// The range of these scores and zero.
    pub fn of(scores: impl Iterator<Item = i64>) -> Self {
        let zero = Self { lowest: 0, highest: 0 };
        scores.fold(zero, |range, score| Self {
            lowest: range.lowest.min(score),
            highest: range.highest.max(score),
        })
    }

    /// A score of the range as one of 0 to 100, cut off; 0 if there is only zero.
    pub fn map(self, score: i64) -> i64 {
        let lowest = i128::from(self.lowest);
        let above = i128::from(MAX_SCORE) * (i128::from(score) - lowest);
        above.checked_div(i128::from(self.highest) - lowest).unwrap_or(0) as i64
    }
}
