//! The usual ways to bring scores into 0..=100.

use crate::points::MAX_SCORE;

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
            *score = scale(*score, highest);
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
    if column.iter().all(|score| *score <= 0) {
        return column.fill(MAX_SCORE);
    }
    proportional(column);
    for score in column {
        *score = MAX_SCORE - *score;
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
            // In floating point, as kube-scheduler does it: 100 × (part / range), cut off.
            let part = (i128::from(*score) - i128::from(lowest)) as f64;
            (MAX_SCORE as f64 * (part / range as f64)) as i64
        } else {
            0
        };
    }
}

/// 100 × score / highest without overflow, cut off towards zero.
fn scale(score: i64, highest: i64) -> i64 {
    let scaled = i128::from(MAX_SCORE) * i128::from(score) / i128::from(highest);
    i64::try_from(scaled).unwrap_or(if scaled < 0 { i64::MIN } else { i64::MAX })
}
