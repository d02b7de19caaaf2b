//! How long to wait before the next try.

use std::time::Duration;

use crate::world::{World, jittered};

/// client-go's figures for lists and watches.
const FIRST: Duration = Duration::from_millis(800);
const LONGEST: Duration = Duration::from_secs(30);
/// For what an administrator is about to mend: up to twice this at random, so ten seconds at most.
const LONGEST_SHORT: Duration = Duration::from_secs(5);
/// After this time without trouble the next trouble is the first again.
const FORGIVEN_AFTER: Duration = Duration::from_secs(120);

pub(super) struct WatchBackoff {
    next: Duration,
    longest: Duration,
    last_trouble: Option<Duration>,
}

impl WatchBackoff {
    pub(super) fn new() -> Self {
        Self { next: FIRST, longest: LONGEST, last_trouble: None }
    }

    /// One that stays within seconds.
    pub(super) fn short() -> Self {
        Self { longest: LONGEST_SHORT, ..Self::new() }
    }

    /// Whether there has been no trouble for a while; from now on there has.
    pub(super) fn is_first(&mut self, world: &dyn World) -> bool {
        let now = world.uptime();
        let last = self.last_trouble.replace(now);
        last.is_none_or(|then| now.saturating_sub(then) > LONGEST)
    }

    /// The wait for this time, up to twice as long at random.
    pub(super) fn next(&mut self, world: &dyn World) -> Duration {
        let now = world.uptime();
        if self.last_trouble.is_some_and(|then| now.saturating_sub(then) > FORGIVEN_AFTER) {
            self.next = FIRST;
        }
        let span = self.next;
        self.next = (span * 2).min(self.longest);
        self.last_trouble = Some(now);
        jittered(world, span, 1.0)
    }
}
