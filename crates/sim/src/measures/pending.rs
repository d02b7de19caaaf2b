//! How long pods were without a node.

use serde::Serialize;

/// Percentiles of the time that pods were without a node, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PendingTimes {
    /// The mean.
    pub mean: f64,
    /// Half of the pods waited no longer.
    pub p50: f64,
    /// Nine of ten pods waited no longer.
    pub p90: f64,
    /// Ninety-nine of a hundred pods waited no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl PendingTimes {
    /// Of all these times: the percentile is the smallest time that as many pods did not exceed.
    pub fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let Some(&max) = seconds.last() else { return Self::default() };
        let percentile = |percent: usize| seconds[(seconds.len() * percent).div_ceil(100).max(1) - 1];
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        Self { mean, p50: percentile(50), p90: percentile(90), p99: percentile(99), max }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_smallest_time_that_as_many_did_not_exceed() {
        // Ten pods: half of them is five, nine of ten is the ninth, and of 99 % there is only the last.
        let times = PendingTimes::of((1..=10).map(f64::from).rev().collect());
        assert_eq!(times, PendingTimes { mean: 5.5, p50: 5.0, p90: 9.0, p99: 10.0, max: 10.0 });
        assert_eq!(PendingTimes::of(vec![7.0]).p50, 7.0);
        assert_eq!(PendingTimes::of(Vec::new()), PendingTimes::default());
    }
}
