//! `scheduler_scheduling_duration_seconds`: quantiles of the last five hours, as kube-scheduler served them before it had
//! histograms. Dashboards still ask for them.
//!
//! Observations are counted in buckets that are 1/64 of a power of two wide, so that a quantile is off by less than one
//! percent and an observation costs a few nanoseconds.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use prometheus::{
    core::{Collector, Desc},
    proto::{LabelPair, Metric, MetricFamily, MetricType, Quantile},
};

use super::labels::Operation;
use crate::clock::Clock;

const NAME: &str = "scheduler_scheduling_duration_seconds";
const HELP: &str =
    "How long the steps of scheduling took in the last five hours (older name; the histograms say more).";
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

const SLICES: usize = 5;
const SLICE: Duration = Duration::from_secs(3600);

/// The sign of a non-negative float is 0, so that its upper bits are its exponent and then its mantissa: a logarithm.
const KEPT_MANTISSA_BITS: u32 = 6;
const DROPPED_BITS: u32 = 52 - KEPT_MANTISSA_BITS;
const SHORTEST_SECONDS: f64 = 1.0 / (1u64 << 30) as f64;
const LONGEST_SECONDS: f64 = 4096.0;
const FIRST_BUCKET: u64 = SHORTEST_SECONDS.to_bits() >> DROPPED_BITS;
const BUCKETS: usize = ((LONGEST_SECONDS.to_bits() >> DROPPED_BITS) - FIRST_BUCKET) as usize + 1;

/// The summary, by step of scheduling.
#[derive(Clone)]
pub(super) struct Summary {
    desc: Desc,
    clock: Clock,
    steps: Arc<[Mutex<Window>]>,
}

impl Summary {
    pub(super) fn new(clock: Clock) -> Self {
        let labels = vec!["operation".to_owned()];
        let start = clock.now();
        Self {
            desc: Desc::new(NAME.into(), HELP.into(), labels, Default::default()).expect("a valid name"),
            clock,
            steps: Operation::ALL.iter().map(|_| Mutex::new(Window::new(start))).collect(),
        }
    }

    pub(super) fn observe(&self, operation: Operation, took: Duration) {
        let now = self.clock.now();
        self.steps[operation as usize]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .observe(now, took.as_secs_f64());
    }
}

impl Collector for Summary {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let now = self.clock.now();
        let series = Operation::ALL.iter().zip(&*self.steps).filter_map(|(operation, step)| {
            let mut step = step.lock().unwrap_or_else(PoisonError::into_inner);
            (step.count > 0).then(|| series(*operation, &mut step, now))
        });
        let mut family = MetricFamily::default();
        family.set_name(NAME.into());
        family.set_help(HELP.into());
        family.set_field_type(MetricType::SUMMARY);
        family.set_metric(series.collect());
        vec![family]
    }
}

fn series(operation: Operation, step: &mut Window, now: Instant) -> Metric {
    let mut label = LabelPair::default();
    label.set_name("operation".into());
    label.set_value(operation.as_str().into());

    let quantiles = step.quantiles(now).into_iter().map(|(share, value)| {
        let mut quantile = Quantile::default();
        quantile.set_quantile(share);
        quantile.set_value(value);
        quantile
    });
    let mut summary = prometheus::proto::Summary::default();
    summary.set_sample_count(step.count);
    summary.set_sample_sum(step.sum);
    summary.set_quantile(quantiles.collect());

    let mut metric = Metric::default();
    metric.set_label(vec![label]);
    metric.set_summary(summary);
    metric
}

/// The last hours of one step. Count and sum go back to the start, as in any summary.
struct Window {
    slices: Vec<Vec<u32>>,
    current: usize,
    began: Instant,
    count: u64,
    sum: f64,
}

impl Window {
    fn new(start: Instant) -> Self {
        Self { slices: vec![vec![0; BUCKETS]; SLICES], current: 0, began: start, count: 0, sum: 0.0 }
    }

    fn observe(&mut self, now: Instant, seconds: f64) {
        self.turn(now);
        let bucket = &mut self.slices[self.current][bucket(seconds)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.sum += seconds;
    }

    /// Empties the slices that have become too old.
    fn turn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began).as_secs() / SLICE.as_secs();
        for _ in 0..passed.min(SLICES as u64) {
            self.current = (self.current + 1) % SLICES;
            self.slices[self.current].fill(0);
        }
        self.began += Duration::from_secs(passed * SLICE.as_secs());
    }

    fn quantiles(&mut self, now: Instant) -> Vec<(f64, f64)> {
        self.turn(now);
        let counts: Vec<u64> =
            (0..BUCKETS).map(|b| self.slices.iter().map(|s| u64::from(s[b])).sum()).collect();
        let total: u64 = counts.iter().sum();
        QUANTILES.iter().map(|&share| (share, quantile(&counts, total, share))).collect()
    }
}

fn quantile(counts: &[u64], total: u64, share: f64) -> f64 {
    let rank = ((share * total as f64).ceil() as u64).max(1);
    let mut seen = 0;
    for (bucket, count) in counts.iter().enumerate() {
        seen += count;
        if seen >= rank {
            return middle(bucket);
        }
    }
    // Nothing in five hours: no answer, rather than a wrong one.
    f64::NAN
}

fn bucket(seconds: f64) -> usize {
    let seconds = seconds.clamp(SHORTEST_SECONDS, LONGEST_SECONDS);
    ((seconds.to_bits() >> DROPPED_BITS) - FIRST_BUCKET) as usize
}

fn middle(bucket: usize) -> f64 {
    let low = f64::from_bits((bucket as u64 + FIRST_BUCKET) << DROPPED_BITS);
    let high = f64::from_bits((bucket as u64 + 1 + FIRST_BUCKET) << DROPPED_BITS);
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: f64, expected: f64) {
        assert!((value / expected - 1.0).abs() < 0.01, "{value} is not within 1% of {expected}");
    }

    #[test]
    fn quantiles_are_within_a_percent() {
        let start = Instant::now();
        let mut window = Window::new(start);
        for micros in 1..=1000 {
            window.observe(start, f64::from(micros) / 1e6);
        }
        let [(_, half), (_, ninth), (_, last)] = window.quantiles(start)[..] else {
            panic!("three quantiles")
        };
        close(half, 500e-6);
        close(ninth, 900e-6);
        close(last, 990e-6);
    }

    #[test]
    fn old_observations_leave_the_quantiles_but_not_the_count() {
        let start = Instant::now();
        let mut window = Window::new(start);
        window.observe(start, 1.0);
        close(window.quantiles(start + SLICE * 4)[0].1, 1.0);
        assert!(window.quantiles(start + SLICE * 5)[0].1.is_nan());
        assert_eq!((window.count, window.sum), (1, 1.0));
    }

    #[test]
    fn extremes_are_counted_at_the_edges() {
        assert_eq!(bucket(0.0), 0);
        assert_eq!(bucket(1e9), BUCKETS - 1);
    }
}
