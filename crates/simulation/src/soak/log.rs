//! Counts what schedulers log, so that a log which grows while nothing happens is noticed.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    level_filters::LevelFilter,
    span::{Attributes, Id, Record},
};

/// Counts the lines of a log at the level that is on by default. Clones count together.
#[derive(Clone, Default)]
pub(super) struct LogCounter(Arc<Logged>);

#[derive(Default)]
struct Logged {
    lines: AtomicU64,
    /// Where the last line comes from.
    last: Mutex<String>,
}

impl LogCounter {
    /// How many lines there were.
    pub(super) fn lines(&self) -> u64 {
        self.0.lines.load(Ordering::Relaxed)
    }

    /// Where the last line comes from.
    pub(super) fn last(&self) -> String {
        self.0.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Subscriber for LogCounter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        self.0.lines.fetch_add(1, Ordering::Relaxed);
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.clear();
        last.push_str(event.metadata().name());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
