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
pub(crate) enum Turn {
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

    pub(crate) fn succeeded(&mut self) -> Turn {
        self.failures = 0;
        if self.rests_until.take().is_some() { Turn::IsBack } else { Turn::Same }
    }

    pub(crate) fn failed(&mut self, now: Duration) -> Turn {
        self.failures = self.failures.saturating_add(1);
        if self.failures < FAILURES_IN_A_ROW {
            return Turn::Same;
        }
        let rested = self.rests_until.replace(now + REST).is_some();
        if rested { Turn::Same } else { Turn::Rests }
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
        assert_eq!(breaker.failed(at(0)), Turn::Same);
        assert_eq!(breaker.failed(at(1)), Turn::Same);
        assert_eq!(breaker.succeeded(), Turn::Same);
        assert_eq!(breaker.failed(at(2)), Turn::Same);
        assert_eq!(breaker.failed(at(3)), Turn::Same);
        assert!(breaker.may_call(at(3)));
        assert_eq!(breaker.failed(at(4)), Turn::Rests);
        assert!(!breaker.may_call(at(13)));
        assert!(breaker.may_call(at(14)), "one question tells whether it is back");
        assert_eq!(breaker.failed(at(15)), Turn::Same, "it is not");
        assert!(!breaker.may_call(at(24)));
        assert!(breaker.may_call(at(25)));
        assert_eq!(breaker.succeeded(), Turn::IsBack);
        assert!(breaker.may_call(at(25)));
        assert_eq!(breaker.failed(at(26)), Turn::Same);
    }
}
