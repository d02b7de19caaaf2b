//! Log lines that would be many: one in a while, with the number of those that were left out.

use std::time::Duration;

/// At most one line in this time.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Repeats {
    last: Option<Duration>,
    suppressed: u64,
}

impl Repeats {
    /// How many lines have been left out, if it is time for the next; otherwise this one is left out, too.
    pub(crate) fn next(&mut self, now: Duration) -> Option<u64> {
        if self.last.is_some_and(|last| now.saturating_sub(last) < PAUSE) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let mut repeats = Repeats::default();
        let told: Vec<_> = [0, 1, 9, 10, 30].map(|at| repeats.next(Duration::from_secs(at))).into();
        assert_eq!(told, [Some(0), None, None, Some(2), Some(0)]);
    }
}
