//! How a metric is made and made known to the registry.
//!
//! Names, labels and buckets are written in the code, so that a wrong one is a mistake in the code: it ends the start of
//! the process, and every test.

use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, core::Collector,
};

const VALID: &str = "the name is valid and registered once";

/// Makes metrics in a registry.
pub(super) struct Define<'a>(pub(super) &'a Registry);

impl Define<'_> {
    pub(super) fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.known(IntCounter::new(name, help).expect(VALID))
    }

    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.known(IntCounterVec::new(Opts::new(name, help), labels).expect(VALID))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.known(IntGauge::new(name, help).expect(VALID))
    }

    pub(super) fn float_gauge(&self, name: &str, help: &str) -> Gauge {
        self.known(Gauge::new(name, help).expect(VALID))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.known(IntGaugeVec::new(Opts::new(name, help), labels).expect(VALID))
    }

    pub(super) fn histogram(&self, name: &str, help: &str, buckets: Vec<f64>) -> Histogram {
        self.known(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets)).expect(VALID))
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        buckets: Vec<f64>,
        labels: &[&str],
    ) -> HistogramVec {
        self.known(HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), labels).expect(VALID))
    }

    pub(super) fn known<C: Collector + Clone + 'static>(&self, metric: C) -> C {
        self.0.register(Box::new(metric.clone())).expect(VALID);
        metric
    }
}

/// `count` bucket bounds, each `factor` times the one before.
pub(super) fn exponential(start: f64, factor: f64, count: usize) -> Vec<f64> {
    prometheus::exponential_buckets(start, factor, count).expect("a positive start and a factor over one")
}
