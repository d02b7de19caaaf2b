//! Pods that were tried in vain and are kept from coming back at once.

use std::{collections::BTreeSet, time::Duration};

use super::order::QueueTurn;

/// How long pods are kept back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first failure; each further one doubles it.
    pub initial: Duration,
    /// At most; zero for not at all.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { initial: Duration::from_secs(1), max: Duration::from_secs(10) }
    }
}

impl Backoff {
    /// How long a pod is kept back after so many failures.
    pub fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1);
        let doubled = 2u32.checked_pow(doublings).and_then(|times| self.initial.checked_mul(times));
        match doubled {
            _ if failures == 0 => Duration::ZERO,
            Some(doubled) if doubled <= self.max => doubled,
            _ => self.max,
        }
    }

    /// The window in which a pod may come back that failed so many times, the last time at this moment; `None` if it is
    /// not kept back.
    pub(super) fn window(&self, failed: Duration, failures: u32) -> Option<Duration> {
        let kept_back = failures > 0 && !self.max.is_zero();
        kept_back.then(|| window(failed.saturating_add(self.after(failures))))
    }
}

/// Pods come back in windows of a second, so that within one the more important goes first.
const WINDOW: Duration = Duration::from_secs(1);

/// The start of the window that a moment lies in.
fn window(moment: Duration) -> Duration {
    Duration::from_secs(moment.as_secs())
}

/// Whether a pod of this window is still kept back: until the window is over.
pub(super) fn is_kept_back(until: Option<Duration>, now: Duration) -> bool {
    until.is_some_and(|until| until >= window(now))
}

/// When the pods of a window come back.
pub(super) fn end(until: Duration) -> Duration {
    until.saturating_add(WINDOW)
}

/// Pods that are kept back, by window and then in the profile's order.
#[derive(Default)]
pub(super) struct KeptBack(BTreeSet<(Duration, QueueTurn)>);

impl KeptBack {
    pub(super) fn insert(&mut self, until: Duration, turn: QueueTurn) {
        self.0.insert((until, turn));
    }

    pub(super) fn remove(&mut self, until: Duration, turn: QueueTurn) {
        self.0.remove(&(until, turn));
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The window of the first one.
    pub(super) fn first_window(&self) -> Option<Duration> {
        self.0.first().map(|(until, _)| *until)
    }

    /// The first one, whether or not its window is over.
    pub(super) fn pop(&mut self) -> Option<QueueTurn> {
        self.0.pop_first().map(|(_, turn)| turn)
    }

    /// The first one, if its window is over.
    pub(super) fn pop_over(&mut self, now: Duration) -> Option<QueueTurn> {
        if is_kept_back(self.first_window(), now) { None } else { self.pop() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_doubles_the_time() {
        let seconds = Duration::from_secs;
        // (initial, max, times after 0, 1, 2, … failures)
        let cases = [
            (1, 10, [0, 1, 2, 4, 8, 10, 10]),
            (1, 1, [0, 1, 1, 1, 1, 1, 1]),
            (3, 100, [0, 3, 6, 12, 24, 48, 96]),
            (10, 5, [0, 5, 5, 5, 5, 5, 5]),
            (1, 0, [0, 0, 0, 0, 0, 0, 0]),
        ];
        for (initial, max, expected) in cases {
            let backoff = Backoff { initial: seconds(initial), max: seconds(max) };
            for (failures, expected) in (0..).zip(expected) {
                assert_eq!(backoff.after(failures), seconds(expected), "{backoff:?} after {failures}");
            }
        }
        for failures in [31, 32, 33, 64, 65, u32::MAX] {
            assert_eq!(Backoff::default().after(failures), seconds(10));
        }
    }

    #[test]
    fn pods_come_back_when_their_window_is_over() {
        let backoff = Backoff::default();
        let millis = Duration::from_millis;
        // (failed at, failures, the last moment it is kept back, the first one it is not)
        let cases = [
            (0, 1, 1_999, 2_000),
            (300, 1, 1_999, 2_000),
            (999, 1, 1_999, 2_000),
            (1_000, 1, 2_999, 3_000),
            (500, 2, 2_999, 3_000),
            (500, 7, 10_999, 11_000),
        ];
        for (failed, failures, last, first) in cases {
            let until = backoff.window(millis(failed), failures);
            assert!(is_kept_back(until, millis(last)), "{failed} {failures}");
            assert!(!is_kept_back(until, millis(first)), "{failed} {failures}");
            assert_eq!(until.map(end), Some(millis(first)));
        }
        assert_eq!(backoff.window(millis(5), 0), None);
        assert!(!is_kept_back(None, Duration::ZERO));
        let none = Backoff { max: Duration::ZERO, ..backoff };
        assert_eq!(none.window(millis(5), 3), None);
    }
}
