//! Log lines about single pods, bounded: however many pods there are, they do not fill a disk.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use supercargo_live::scheduler::PODS_TARGET;
use tracing::{Metadata, Subscriber, callsite::Identifier, subscriber::Interest};
use tracing_subscriber::{
    filter::LevelFilter,
    layer::{Context, Filter},
};

/// From here on every line is written.
const ALL_LINES: u8 = 4;
/// Of each sort, in the long run.
const LINES_PER_SECOND: f64 = 10.0;
/// Of each sort, at once.
const BURST: f64 = 200.0;
/// How often it is told how many were left out.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Lets a bounded number of lines about pods pass, and counts the others. Clones count together.
#[derive(Clone, Default)]
pub(super) struct PodLines {
    /// `None` if all may pass.
    counts: Option<Arc<Mutex<Counts>>>,
}

#[derive(Default)]
struct Counts {
    sorts: HashMap<Identifier, Sort>,
    left_out: u64,
}

/// The lines from one place in the code.
struct Sort {
    /// How many may pass just now.
    allowed: f64,
    at: Instant,
}

impl PodLines {
    /// For what `--v` says.
    pub(super) fn new(verbosity: u8) -> Self {
        Self { counts: (verbosity < ALL_LINES).then(Arc::default) }
    }

    /// Whether a line from some place may pass now.
    fn may_pass(&self, from: Identifier, now: Instant) -> bool {
        let Some(counts) = &self.counts else { return true };
        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let sort = counts.sorts.entry(from).or_insert(Sort { allowed: BURST, at: now });
        let since = now.saturating_duration_since(sort.at).as_secs_f64();
        (sort.allowed, sort.at) = ((sort.allowed + since * LINES_PER_SECOND).min(BURST), now);
        let passes = sort.allowed >= 1.0;
        if passes {
            sort.allowed -= 1.0;
        } else {
            counts.left_out += 1;
        }
        passes
    }

    /// How many were left out since the last time.
    fn take_left_out(&self) -> u64 {
        let Some(counts) = &self.counts else { return 0 };
        std::mem::take(&mut counts.lock().unwrap_or_else(PoisonError::into_inner).left_out)
    }

    /// Tells now and then how many lines were left out, for ever.
    pub(super) async fn tell_left_out(self) {
        loop {
            tokio::time::sleep(TOLD_EVERY).await;
            let suppressed = self.take_left_out();
            if suppressed > 0 {
                tracing::info!(
                    suppressed,
                    "log lines about single pods were left out; --v={ALL_LINES} writes all"
                );
            }
        }
    }
}

impl<S: Subscriber> Filter<S> for PodLines {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        metadata.target() != PODS_TARGET || self.may_pass(metadata.callsite(), Instant::now())
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Those about pods are asked about one by one.
        if metadata.target() == PODS_TARGET { Interest::sometimes() } else { Interest::always() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::TRACE)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use tracing_subscriber::{Layer, filter::FilterExt, layer::SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// How many lines are written of 10,000 that 10,000 pods cause at once, and how many are counted.
    fn lines_of_a_crowd(verbosity: u8) -> (usize, u64) {
        let (written, pods) = (Written::default(), PodLines::new(verbosity));
        let writer = written.clone();
        let layer = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let layer = layer.with_filter(LevelFilter::INFO.and(pods.clone()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            for pod in 0..10_000 {
                tracing::info!(target: PODS_TARGET, pod, "not scheduled");
            }
            tracing::info!("something else");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("something else"));
        (text.lines().count() - 1, pods.take_left_out())
    }

    #[test]
    fn a_crowd_of_pods_writes_a_bounded_number_of_lines() {
        let (lines, left_out) = lines_of_a_crowd(2);
        // The burst, and what comes in the time that it takes.
        assert!((200..1000).contains(&lines), "{lines}");
        assert_eq!(lines as u64 + left_out, 10_000);
    }

    #[test]
    fn who_asks_for_more_gets_every_line() {
        assert_eq!(lines_of_a_crowd(4), (10_000, 0));
    }

    #[test]
    fn lines_come_back_with_time() {
        let pods = PodLines::new(2);
        let callsite = tracing::callsite::Identifier(&NOWHERE);
        let start = Instant::now();
        let passed = |at: f64| {
            let now = start + Duration::from_secs_f64(at);
            (0..1000).filter(|_| pods.may_pass(callsite.clone(), now)).count()
        };
        assert_eq!([passed(0.0), passed(0.0), passed(1.0), passed(100.0)], [200, 0, 10, 200]);
    }

    struct Nowhere;
    static NOWHERE: Nowhere = Nowhere;

    impl tracing::callsite::Callsite for Nowhere {
        fn set_interest(&self, _: Interest) {}

        fn metadata(&self) -> &Metadata<'_> {
            unreachable!("nobody asks")
        }
    }
}
