//! What happened, in order: who did what, for people who read how a rule was broken.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use supercargo_framework::virtual_time::VirtualClock;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryLine {
    /// When.
    pub at: Duration,
    /// Who did it: `users`, `server`, a scheduler's name, or `rules`.
    pub who: String,
    /// What.
    pub what: String,
}

impl fmt::Display for HistoryLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.as_secs();
        let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let Self { who, what, .. } = self;
        write!(f, "{hours:02}:{minutes:02}:{rest:02}.{:03}  {who:<12} {what}", self.at.subsec_millis())
    }
}

/// Everything that happened in a run.
pub(super) struct History {
    clock: VirtualClock,
    /// None if nobody is going to read it: that of a quiet month has gigabytes.
    lines: Option<Mutex<Vec<HistoryLine>>>,
}

impl History {
    pub(super) fn new(clock: VirtualClock, is_kept: bool) -> Self {
        Self { clock, lines: is_kept.then(Mutex::default) }
    }

    fn all(&self) -> Option<MutexGuard<'_, Vec<HistoryLine>>> {
        Some(self.lines.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Writes something down.
    pub(super) fn say(&self, who: &str, what: impl Into<String>) {
        let Some(mut lines) = self.all() else { return };
        lines.push(HistoryLine { at: self.clock.uptime(), who: who.to_owned(), what: what.into() });
    }

    /// All lines so far, which it does not keep any longer.
    pub(super) fn take_lines(&self) -> Vec<HistoryLine> {
        self.all().map_or_else(Vec::new, |mut lines| std::mem::take(&mut *lines))
    }
}

/// A number that two histories share only if they are the same, for all that can be told.
pub(super) fn fingerprint(lines: &[HistoryLine]) -> u64 {
    // FNV-1a.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for line in lines {
        for byte in line.to_string().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
