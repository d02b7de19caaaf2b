//! Log lines about a resource, few enough to be read.

use std::time::Duration;

use supercargo_model::object::Kind;

use crate::world::World;

/// At most one line of a sort in this time.
const PAUSE: Duration = Duration::from_secs(10);

/// What is wrong with a resource, told rarely.
pub(super) struct Complaints {
    kind: Kind,
    last: Option<Duration>,
    suppressed: u64,
}

impl Complaints {
    pub(super) fn new(kind: Kind) -> Self {
        Self { kind, last: None, suppressed: 0 }
    }

    /// Says it, or counts it among those that the next line mentions.
    pub(super) fn say(&mut self, world: &dyn World, what: &str) {
        let now = world.uptime();
        if self.last.is_some_and(|then| now.saturating_sub(then) < PAUSE) {
            self.suppressed += 1;
            return;
        }
        let suppressed = std::mem::take(&mut self.suppressed);
        self.last = Some(now);
        tracing::warn!(kind = self.kind.name(), suppressed, "{what}");
    }
}
