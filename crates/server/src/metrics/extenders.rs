//! What is measured about extenders, all named `supercargo_extender_…`.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec, Registry};

use super::{
    define::{Define, exponential},
    labels::{ExtenderResult, ExtenderVerb, ScoreAnomaly},
};

/// What is measured about extenders. Each goes by its `urlPrefix`.
pub struct ExtenderMetrics {
    calls: IntCounterVec,
    duration: HistogramVec,
    skipped: IntCounterVec,
    left_out: IntCounterVec,
    anomalies: IntCounterVec,
    circuit_open: IntGaugeVec,
}

impl ExtenderMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let define = Define(registry);
        Self {
            calls: define.counters(
                "supercargo_extender_calls_total",
                "Calls to extenders by what came of them.",
                &["extender", "verb", "result"],
            ),
            duration: define.histograms(
                "supercargo_extender_call_duration_seconds",
                "How long a call to an extender took.",
                exponential(0.001, 2.0, 15),
                &["extender", "verb"],
            ),
            skipped: define.counters(
                "supercargo_extender_skipped_total",
                "Calls that were not made because an ignorable extender had failed repeatedly.",
                &["extender", "verb"],
            ),
            left_out: define.counters(
                "supercargo_extender_scores_left_out_total",
                "Pods that were scored without an extender, because it failed.",
                &["extender"],
            ),
            anomalies: define.counters(
                "supercargo_extender_score_anomalies_total",
                "Scores of extenders that are passed over or out of range, as kube-scheduler takes them.",
                &["extender", "anomaly"],
            ),
            circuit_open: define.gauges(
                "supercargo_extender_circuit_open",
                "1 while the circuit of an ignorable extender is open after repeated failures.",
                &["extender"],
            ),
        }
    }

    /// A call has ended.
    pub fn called(&self, extender: &str, verb: ExtenderVerb, result: ExtenderResult, took: Duration) {
        self.calls.with_label_values(&[extender, verb.as_str(), result.as_str()]).inc();
        self.duration.with_label_values(&[extender, verb.as_str()]).observe(took.as_secs_f64());
    }

    /// A call was not made.
    pub fn skipped(&self, extender: &str, verb: ExtenderVerb) {
        self.skipped.with_label_values(&[extender, verb.as_str()]).inc();
    }

    /// A pod was scored without an extender.
    pub fn left_out(&self, extender: &str) {
        self.left_out.with_label_values(&[extender]).inc();
    }

    /// An extender's scores are odd, and taken all the same.
    pub fn anomalous(&self, extender: &str, anomaly: ScoreAnomaly, count: u64) {
        self.anomalies.with_label_values(&[extender, anomaly.as_str()]).inc_by(count);
    }

    /// Whether an extender's circuit is open.
    pub fn circuit_open(&self, extender: &str, circuit_open: bool) {
        self.circuit_open.with_label_values(&[extender]).set(i64::from(circuit_open));
    }
}
