//! Some figures of what is measured, for the page: totals, from which whoever looks repeatedly makes rates and quantiles.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use prometheus::proto::{Metric, MetricFamily};
use serde_json::{Value, json};

use super::Metrics;

/// How many buckets a doubling of the time has: a quantile is told to within a fifth.
const BUCKETS_PER_DOUBLING: u32 = 4;
/// The first bucket ends here.
const SHORTEST_NANOSECONDS: u64 = 500;
/// Up to 500 ns × 2²⁵: 17 s.
const BUCKETS: usize = 25 * BUCKETS_PER_DOUBLING as usize + 1;

/// How long decisions took, in finer steps than the metric has: a decision takes microseconds, and the metric's first
/// bucket, which is kube-scheduler's, is a millisecond.
pub struct DecisionTimes {
    counts: [AtomicU64; BUCKETS],
}

impl Default for DecisionTimes {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS] }
    }
}

impl DecisionTimes {
    /// A decision took this long.
    pub fn add(&self, took: Duration) {
        let times = took.as_nanos() as f64 / SHORTEST_NANOSECONDS as f64;
        let bucket = (times.log2() * f64::from(BUCKETS_PER_DOUBLING)).ceil().max(0.0) as usize;
        self.counts[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    /// How many fell into each bucket.
    pub fn counts(&self) -> Vec<u64> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    /// Where each bucket ends, in microseconds.
    pub fn ends_microseconds() -> Vec<f64> {
        let end = |bucket: usize| {
            let doublings = bucket as f64 / f64::from(BUCKETS_PER_DOUBLING);
            SHORTEST_NANOSECONDS as f64 / 1000.0 * doublings.exp2()
        };
        (0..BUCKETS).map(end).collect()
    }

    /// The time, in microseconds, that this part of the decisions did not exceed; nothing if there are none.
    pub fn quantile_microseconds(counts: &[u64], part: f64) -> Option<f64> {
        let all: u64 = counts.iter().sum();
        let wanted = (part * all as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let ends = Self::ends_microseconds();
        let found = counts.iter().zip(ends).find(|(count, _)| {
            seen += **count;
            seen >= wanted
        });
        found.map(|(_, end)| end)
    }
}

impl Metrics {
    /// Totals and present values, as JSON. Nobody who decides is asked: it is all counted already.
    pub fn figures(&self) -> Value {
        let families = self.registry.gather();
        let of = |name: &str| families.iter().find(|family| family.name() == name);
        json!({
            "attempts": by_label(of("scheduler_schedule_attempts_total"), "result"),
            "decisions": by_label(of("supercargo_decisions_total"), "path"),
            "decisionTimes": {
                "counts": self.scheduling.decision_times.counts(),
                "endsMicroseconds": DecisionTimes::ends_microseconds(),
            },
            "queues": by_label(of("scheduler_pending_pods"), "queue"),
            "cache": by_label(of("scheduler_cache_size"), "type"),
            "preemption": {
                "attempts": sum(of("scheduler_preemption_attempts_total")),
                "made": observations(of("scheduler_preemption_victims")),
                "victims": sum(of("scheduler_preemption_victims")),
            },
            "extenders": extenders(&families),
            "guests": guests(&families),
        })
    }
}

/// What a counter, a gauge or a histogram has come to.
fn amount(metric: &Metric) -> f64 {
    // What a metric is not, it has as 0.
    metric.get_counter().get_value()
        + metric.get_gauge().get_value()
        + metric.get_histogram().get_sample_sum()
}

fn label<'m>(metric: &'m Metric, name: &str) -> &'m str {
    metric.get_label().iter().find(|label| label.name() == name).map_or("", |label| label.value())
}

fn sum(family: Option<&MetricFamily>) -> f64 {
    family.into_iter().flat_map(|family| family.get_metric()).map(amount).sum()
}

/// How often a histogram was told something.
fn observations(family: Option<&MetricFamily>) -> u64 {
    let metrics = family.into_iter().flat_map(|family| family.get_metric());
    metrics.map(|metric| metric.get_histogram().get_sample_count()).sum()
}

fn by_label(family: Option<&MetricFamily>, name: &str) -> BTreeMap<String, f64> {
    let mut amounts = BTreeMap::new();
    for metric in family.into_iter().flat_map(|family| family.get_metric()) {
        *amounts.entry(label(metric, name).to_owned()).or_insert(0.0) += amount(metric);
    }
    amounts
}

/// Each extender's calls by result, and whether it is left alone for now.
fn extenders(families: &[MetricFamily]) -> Value {
    let mut extenders: BTreeMap<&str, BTreeMap<String, f64>> = BTreeMap::new();
    for family in families {
        for metric in family.get_metric() {
            let field = match family.name() {
                "supercargo_extender_calls_total" => label(metric, "result").to_owned(),
                "supercargo_extender_circuit_open" => "circuitOpen".to_owned(),
                "supercargo_extender_skipped_total" => "skipped".to_owned(),
                _ => continue,
            };
            let extender = extenders.entry(label(metric, "extender")).or_default();
            *extender.entry(field).or_insert(0.0) += amount(metric);
        }
    }
    json!(extenders)
}

/// Each guest's failures and reloads.
fn guests(families: &[MetricFamily]) -> Value {
    let mut guests: BTreeMap<&str, BTreeMap<String, f64>> = BTreeMap::new();
    for family in families {
        for metric in family.get_metric() {
            let field = match family.name() {
                "supercargo_wasm_errors_total" => "failures".to_owned(),
                "supercargo_wasm_reloads_total" => format!("reload {}", label(metric, "result")),
                _ => continue,
            };
            let guest = guests.entry(label(metric, "plugin")).or_default();
            *guest.entry(field).or_insert(0.0) += amount(metric);
        }
    }
    json!(guests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_ends_of_buckets() {
        let times = DecisionTimes::default();
        // 98 × 8 µs = 0.5 µs × 2⁴ and 2 × 1,024 µs = 0.5 µs × 2¹¹: both end a bucket.
        (0..98).for_each(|_| times.add(Duration::from_micros(8)));
        (0..2).for_each(|_| times.add(Duration::from_micros(1024)));
        let counts = times.counts();
        assert_eq!(DecisionTimes::quantile_microseconds(&counts, 0.5), Some(8.0));
        assert_eq!(DecisionTimes::quantile_microseconds(&counts, 0.98), Some(8.0));
        assert_eq!(DecisionTimes::quantile_microseconds(&counts, 0.99), Some(1024.0));
        assert_eq!(DecisionTimes::quantile_microseconds(&[0; 3], 0.5), None);
        // What is shorter or longer than all buckets falls into the first and the last one.
        times.add(Duration::ZERO);
        times.add(Duration::from_secs(3600));
        assert_eq!((times.counts()[0], times.counts()[BUCKETS - 1]), (1, 1));
    }

    #[test]
    fn figures_are_totals_by_label() {
        use crate::{Clock, metrics::*};
        let metrics = Metrics::new(&BuildInfo::new("1", ""), Clock::system());
        let profile = metrics.profile("default-scheduler", &[]);
        profile.attempted(Attempt::Scheduled, Duration::from_millis(1));
        profile.attempted(Attempt::Scheduled, Duration::from_millis(1));
        metrics.scheduling.decided(Path::Fast, Duration::from_micros(8));
        metrics.queues.pending(Queue::Active, 7);
        // Two looked for room, and one found some.
        metrics.scheduling.preemption_attempted();
        metrics.scheduling.preemption_attempted();
        metrics.scheduling.preemption_chose(3);
        metrics.extenders.called("a", ExtenderVerb::Filter, ExtenderResult::Failed, Duration::ZERO);
        metrics.own.guest_failed("g");
        let figures = metrics.figures();
        assert_eq!(figures["attempts"]["scheduled"], 2.0, "{figures}");
        assert_eq!(figures["decisions"]["fast"], 1.0, "{figures}");
        assert_eq!(figures["queues"]["active"], 7.0, "{figures}");
        assert_eq!(figures["preemption"], json!({"attempts": 2.0, "made": 1, "victims": 3.0}));
        assert_eq!(figures["extenders"]["a"], json!({"failed": 1.0}));
        assert_eq!(figures["guests"]["g"], json!({"failures": 1.0}));
    }
}
