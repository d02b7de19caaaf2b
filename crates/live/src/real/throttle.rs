//! No more requests than an operator allows: a bucket that fills at a steady rate.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Lets `burst` requests pass at once, and `rate` a second from then on, in the order in which they came.
pub(super) struct Throttle {
    between: Duration,
    burst: u32,
    /// When the bucket will be empty of requests again, if none come.
    drained_at: Mutex<Instant>,
}

impl Throttle {
    pub(super) fn new(rate: f32, burst: u32) -> Self {
        let between = Duration::try_from_secs_f32(1.0 / rate).unwrap_or(Duration::ZERO);
        Self { between, burst: burst.max(1), drained_at: Mutex::new(Instant::now()) }
    }

    /// Waits until a request may be sent.
    pub(super) async fn pass(&self) {
        let wait = self.reserve(Instant::now());
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    fn reserve(&self, now: Instant) -> Duration {
        let mut drained_at = self.drained_at.lock().unwrap_or_else(PoisonError::into_inner);
        *drained_at = (*drained_at).max(now) + self.between;
        drained_at.saturating_duration_since(now).saturating_sub(self.between * self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate_holds() {
        let throttle = Throttle::new(50.0, 100);
        let now = Instant::now();
        for _ in 0..100 {
            assert_eq!(throttle.reserve(now), Duration::ZERO);
        }
        assert_eq!(throttle.reserve(now), Duration::from_millis(20));
        assert_eq!(throttle.reserve(now), Duration::from_millis(40));
        let later = now + Duration::from_secs(60);
        assert_eq!(throttle.reserve(later), Duration::ZERO);
    }
}
