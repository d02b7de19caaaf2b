//! What only Supercargo has: metrics that kube-scheduler does not know, all named `supercargo_…`.

use std::time::Duration;

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, Registry};

use super::{
    BuildInfo,
    define::Define,
    labels::{Path, Reload},
};

/// What only Supercargo has.
pub struct Own {
    decisions: IntCounterVec,
    watch_restarts: IntCounterVec,
    events_dropped: IntCounter,
    longest_gap: Gauge,
    dynamic_scoring_errors: IntCounter,
    dynamic_scoring_missing: IntGauge,
    wasm_errors: IntCounterVec,
    wasm_reloads: IntCounterVec,
    trace_spans_exported: IntCounter,
    trace_spans_dropped: IntCounter,
}

impl Own {
    pub(super) fn new(registry: &Registry, build: &BuildInfo) -> Self {
        let define = Define(registry);
        define
            .gauges("supercargo_build_info", "Always 1; the labels say what runs.", &["version", "commit"])
            .with_label_values(&[&build.version, &build.commit])
            .set(1);
        Self {
            decisions: define.counters(
                "supercargo_decisions_total",
                "Cycles by how the engine decided: fast from what is kept about the pod's shape, or slow with every plugin.",
                &["path"],
            ),
            watch_restarts: define.counters(
                "supercargo_watch_restarts_total",
                "Watches that ended and were begun again.",
                &["resource"],
            ),
            events_dropped: define.counter(
                "supercargo_events_dropped_total",
                "Events about pods that were not written because too many waited.",
            ),
            longest_gap: define.float_gauge(
                "supercargo_longest_gap_seconds",
                "The longest time since the start that deciding went on without a look at the watches.",
            ),
            dynamic_scoring_errors: define.counter(
                "supercargo_dynamic_scoring_errors_total",
                "Texts of DynamicScoring's ConfigMaps that could not be read, so that what held before still holds.",
            ),
            dynamic_scoring_missing: define.gauge(
                "supercargo_dynamic_scoring_missing",
                "Profiles whose DynamicScoring has no text, because its ConfigMap or the key in it is missing.",
            ),
            wasm_errors: define.counters(
                "supercargo_wasm_errors_total",
                "Calls of WebAssembly plugins that failed, each with the cycle of a pod.",
                &["plugin"],
            ),
            wasm_reloads: define.counters(
                "supercargo_wasm_reloads_total",
                "Changed files of WebAssembly plugins: loaded, or refused so that the old one stays.",
                &["plugin", "result"],
            ),
            trace_spans_exported: define
                .counter("supercargo_trace_spans_exported_total", "Spans that the collector of --tracing-endpoint has taken."),
            trace_spans_dropped: define.counter(
                "supercargo_trace_spans_dropped_total",
                "Spans that were not exported: too many waited, or the collector did not take them.",
            ),
        }
    }

    pub(super) fn decisions(&self) -> Vec<IntCounter> {
        Path::ALL.iter().map(|path| self.decisions.with_label_values(&[path.as_str()])).collect()
    }

    /// The collector has taken so many spans.
    pub fn spans_exported(&self, count: usize) {
        self.trace_spans_exported.inc_by(count as u64);
    }

    /// So many spans are lost.
    pub fn spans_dropped(&self, count: usize) {
        self.trace_spans_dropped.inc_by(count as u64);
    }

    /// The watch on this resource ended and is begun again.
    pub fn watch_restarted(&self, resource: &str) {
        self.watch_restarts.with_label_values(&[resource]).inc();
    }

    /// Deciding went on for so long without a look at the watches.
    pub fn looked_again(&self, after: Duration) {
        // Only one thread decides, so that nothing comes between the two.
        if after.as_secs_f64() > self.longest_gap.get() {
            self.longest_gap.set(after.as_secs_f64());
        }
    }

    /// A text of DynamicScoring could not be read.
    pub fn input_is_unreadable(&self) {
        self.dynamic_scoring_errors.inc();
    }

    /// The text of a profile's DynamicScoring is missing, or is there again.
    pub fn input_is_missing(&self, is_missing: bool) {
        self.dynamic_scoring_missing.add(if is_missing { 1 } else { -1 });
    }

    /// A call of a WebAssembly plugin failed.
    pub fn guest_failed(&self, plugin: &str) {
        self.wasm_errors.with_label_values(&[plugin]).inc();
    }

    /// The file of a WebAssembly plugin has changed.
    pub fn guest_reloaded(&self, plugin: &str, result: Reload) {
        self.wasm_reloads.with_label_values(&[plugin, result.as_str()]).inc();
    }

    /// Events about pods were dropped because too many waited.
    pub fn events_dropped(&self, count: u64) {
        self.events_dropped.inc_by(count);
    }
}
