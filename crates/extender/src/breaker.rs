//! Leaves an extender alone that has failed again and again, and tries it again after a while.

use std::time::Duration;

/// So many failures in a row, and an ignorable extender is left alone.
pub const FAILURES_IN_A_ROW: u32 = 3;

/// For so long; then one question tells whether it is back.
pub const REST: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Breaker {
    failures: u32,
    rests_until: Option<Duration>,
}

/// What has changed with an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CircuitChange {
    Same,
    Rests,
    IsBack,
}

impl Breaker {
    /// Whether it may be called. Questions come one at a time, so that the first after a rest is the only one until its
    /// outcome is known.
    pub(crate) fn may_call(&self, now: Duration) -> bool {
        self.rests_until.is_none_or(|until| now >= until)
    }

    pub(crate) fn succeeded(&mut self) -> CircuitChange {
        self.failures = 0;
        if self.rests_until.take().is_some() { CircuitChange::IsBack } else { CircuitChange::Same }
    }

    pub(crate) fn failed(&mut self, now: Duration) -> CircuitChange {
        self.failures = self.failures.saturating_add(1);
        if self.failures < FAILURES_IN_A_ROW {
            return CircuitChange::Same;
        }
        let rested = self.rests_until.replace(now + REST).is_some();
        if rested { CircuitChange::Same } else { CircuitChange::Rests }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn three_failures_in_a_row_make_it_rest_and_a_success_brings_it_back() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.failed(at(0)), CircuitChange::Same);
        assert_eq!(breaker.failed(at(1)), CircuitChange::Same);
        assert_eq!(breaker.succeeded(), CircuitChange::Same);
        assert_eq!(breaker.failed(at(2)), CircuitChange::Same);
        assert_eq!(breaker.failed(at(3)), CircuitChange::Same);
        assert!(breaker.may_call(at(3)));
        assert_eq!(breaker.failed(at(4)), CircuitChange::Rests);
        assert!(!breaker.may_call(at(13)));
        assert!(breaker.may_call(at(14)), "one question tells whether it is back");
        assert_eq!(breaker.failed(at(15)), CircuitChange::Same, "it is not");
        assert!(!breaker.may_call(at(24)));
        assert!(breaker.may_call(at(25)));
        assert_eq!(breaker.succeeded(), CircuitChange::IsBack);
        assert!(breaker.may_call(at(25)));
        assert_eq!(breaker.failed(at(26)), CircuitChange::Same);
    }
}
