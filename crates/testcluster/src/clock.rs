//! The time: where it comes from, and how Kubernetes writes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};

/// Where a cluster takes its time from: the machine, or a simulation.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since some moment in the past.
    fn uptime(&self) -> Duration;

    /// Ends after a span of [`uptime`](Self::uptime).
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()>;
}

/// The machine's clock, on a tokio runtime.
pub(crate) struct SystemClock(Instant);

impl SystemClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn uptime(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span))
    }
}

/// A clock, and the time as objects carry it.
#[derive(Clone)]
pub(crate) struct Time(Arc<dyn Clock>);

impl Time {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self(clock)
    }

    /// Now, to the second: `2026-11-15T22:58:22Z`.
    pub(crate) fn now(&self) -> String {
        to_the_second(self.0.now())
    }

    /// Now, to the microsecond, as leases and events have it.
    pub(crate) fn now_micros(&self) -> String {
        format!("{:.6}", self.0.now())
    }

    /// So many seconds from now.
    pub(crate) fn in_seconds(&self, count: i64) -> String {
        let later = self.0.now().checked_add(SignedDuration::from_secs(count));
        to_the_second(later.unwrap_or(Timestamp::MAX))
    }

    pub(crate) fn uptime(&self) -> Duration {
        self.0.uptime()
    }

    pub(crate) async fn sleep(&self, span: Duration) {
        self.0.sleep(span).await;
    }

    /// Ends at a moment of [`uptime`](Self::uptime).
    pub(crate) async fn sleep_until(&self, moment: Duration) {
        self.sleep(moment.saturating_sub(self.uptime())).await;
    }
}

fn to_the_second(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// How many seconds have passed since a time, if it is one. By the machine's clock: it is for tables, which people read.
pub(crate) fn seconds_since(time: &str) -> Option<i64> {
    let time: Timestamp = time.parse().ok()?;
    Some(Timestamp::now().as_second() - time.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_to_the_second_or_the_microsecond() {
        let time = Time::new(Arc::new(SystemClock::start()));
        assert_eq!(time.now().len(), "2026-11-15T22:58:22Z".len());
        assert_eq!(time.now_micros().len(), "2026-11-15T22:58:22.000000Z".len());
        assert_eq!(seconds_since(&time.in_seconds(-5)), Some(5));
        assert_eq!(seconds_since("yesterday"), None);
        assert!(time.in_seconds(i64::MAX).starts_with("9999"), "no overflow");
    }
}
