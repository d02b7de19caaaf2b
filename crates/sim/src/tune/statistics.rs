//! How sure a gain is.

/// Gains on parts that were held back, one for each: as shares of what the base came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gains(pub Vec<f64>);

/// Student's t for 95 % on one side, by degrees of freedom from 1 on.
const T_95: [f64; 10] = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];

impl Gains {
    /// The mean.
    pub fn mean(&self) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    /// The standard deviation of the sample.
    pub fn deviation(&self) -> f64 {
        if self.0.len() < 2 {
            return 0.0;
        }
        let mean = self.mean();
        let squares: f64 = self.0.iter().map(|gain| (gain - mean).powi(2)).sum();
        (squares / (self.0.len() - 1) as f64).sqrt()
    }

    /// In how many parts there was a gain.
    pub fn wins(&self) -> usize {
        self.0.iter().filter(|gain| **gain > 0.0).count()
    }

    /// The mean is at least this, with 95 % confidence (Student's t, the parts taken as independent).
    pub fn at_least(&self) -> f64 {
        let Some(&t) = self.0.len().checked_sub(2).and_then(|i| T_95.get(i).or(T_95.last())) else {
            return f64::NEG_INFINITY;
        };
        self.mean() - t * self.deviation() / (self.0.len() as f64).sqrt()
    }

    /// Whether the gain is real: nearly every part shows it, and chance does not explain it.
    pub fn are_real(&self) -> bool {
        self.0.len() >= 3 && self.wins() + 1 >= self.0.len() && self.at_least() > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_is_real_if_chance_does_not_explain_it() {
        let even = Gains(vec![0.10, 0.12, 0.08, 0.11, 0.09]);
        // Mean 0.10, deviation √(0.001 / 4) ≈ 0.0158; 0.10 − 2.132 × 0.0158 / √5 ≈ 0.0849.
        assert!((even.at_least() - 0.0849).abs() < 0.0001, "{}", even.at_least());
        assert!(even.are_real());
        // The same mean, and it could be chance.
        assert!(!Gains(vec![0.60, -0.20, 0.30, -0.30, 0.10]).are_real());
        // Two parts show nothing.
        assert!(!Gains(vec![0.10, 0.0, 0.10, 0.0, 0.10]).are_real());
        assert!(!Gains(vec![0.5, 0.5]).are_real());
    }
}
