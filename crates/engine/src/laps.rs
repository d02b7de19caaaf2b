//! How long the parts of the fast path take, for whoever wants to know.

use std::time::Duration;

use supercargo_framework::{Code, profile::Profile, registry::Point, stopwatch::Stopwatch};

/// A part of the fast path.
#[derive(Clone, Copy)]
pub(crate) enum Lap {
    /// Plugins compile themselves for a signature: what they prepare for each pod on the full path.
    Prepare,
    /// It is found out which nodes are open.
    Filter,
    /// They are scored, and the best is picked.
    Score,
}

/// The time that each part has taken so far. Without a stopwatch, nothing is taken.
pub(crate) struct Laps<'a> {
    stopwatch: Option<&'a dyn Stopwatch>,
    since: Duration,
    taken: [Duration; 3],
}

impl<'a> Laps<'a> {
    /// Begins to take times, if the profile's are wanted.
    pub(crate) fn begin(profile: &'a Profile) -> Self {
        let stopwatch = profile.stopwatch();
        let since = stopwatch.map_or(Duration::ZERO, Stopwatch::now);
        Self { stopwatch, since, taken: [Duration::ZERO; 3] }
    }

    /// Takes no times.
    pub(crate) fn none() -> Self {
        Self { stopwatch: None, since: Duration::ZERO, taken: [Duration::ZERO; 3] }
    }

    /// What was done since the last lap was this part.
    #[inline]
    pub(crate) fn lap(&mut self, lap: Lap) {
        if let Some(stopwatch) = self.stopwatch {
            let now = stopwatch.now();
            self.taken[lap as usize] += now.saturating_sub(self.since);
            self.since = now;
        }
    }

    /// A node was found: tells the times under the points that these parts stand for.
    pub(crate) fn end(mut self, profile: &Profile) {
        self.lap(Lap::Score);
        self.tell(profile, None);
        if let Some(stopwatch) = self.stopwatch {
            stopwatch.point(profile.scheduler_name(), Point::Score, None, self.taken[Lap::Score as usize]);
        }
    }

    /// No node is open: everything since was about that.
    pub(crate) fn end_in_vain(mut self, profile: &Profile) {
        self.lap(Lap::Filter);
        self.tell(profile, Some(Code::Unschedulable));
    }

    fn tell(&self, profile: &Profile, code: Option<Code>) {
        let Some(stopwatch) = self.stopwatch else { return };
        let [prepare, filter, _] = self.taken;
        let profile = profile.scheduler_name();
        if !prepare.is_zero() {
            stopwatch.point(profile, Point::PreFilter, None, prepare);
        }
        stopwatch.point(profile, Point::Filter, code, filter);
    }
}
