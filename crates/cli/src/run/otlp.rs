//! Sends spans to a collector: OTLP over HTTP, as JSON.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use supercargo_config::Extender;
use supercargo_extender::{Http, Transport, TransportError};
use supercargo_manifest::Problem;
use supercargo_server::metrics::Metrics;
use tokio_util::sync::CancellationToken;

use super::spans::{Span, Spans};
use crate::version::VERSION;

/// How often spans are sent.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// How many at once.
const MAX_BATCH: usize = 512;
/// How long a collector may take. What waits meanwhile is bounded.
const PATIENCE: Duration = Duration::from_secs(5);
/// How much of an answer is read: it says little.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Of a collector that fails it is told once in so many times.
const TOLD_EVERY: u32 = 60;
/// The path that collectors serve, if the endpoint names none.
const TRACES_PATH: &str = "/v1/traces";
/// Within the process, as OTLP numbers the kinds of spans.
const INTERNAL: u8 = 1;
/// As OTLP numbers statuses.
const STATUS_ERROR: u8 = 2;

/// Sends spans off until it is told to stop.
pub(super) struct Exporter {
    spans: Spans,
    metrics: Arc<Metrics>,
    url: String,
    http: Http,
    /// How often in a row it has failed.
    failures: u32,
}

impl Exporter {
    /// To a collector at an address, such as `http://localhost:4318`.
    pub(super) fn new(endpoint: &str, spans: Spans, metrics: Arc<Metrics>) -> Result<Self, Problem> {
        let url = url(endpoint);
        let http = Http::new(&Extender { url_prefix: url.clone(), ..Extender::default() });
        let http = http.map_err(|_| {
            Problem::error(format!("--tracing-endpoint: {endpoint:?} is not an address"))
                .hint("write it like http://localhost:4318")
        })?;
        Ok(Self { spans, metrics, url, http, failures: 0 })
    }

    /// Sends what there is, once a second, and what is left in the end.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(SEND_EVERY)).await.is_some() {
            self.send_all().await;
        }
        self.send_all().await;
    }

    async fn send_all(&mut self) {
        loop {
            let batch = self.spans.take(MAX_BATCH);
            if batch.is_empty() {
                return;
            }
            let count = batch.len();
            match self.send(&batch).await {
                Ok(()) => {
                    self.failures = 0;
                    self.metrics.own.spans_exported(count);
                }
                Err(why) => {
                    self.metrics.own.spans_dropped(count);
                    if self.failures.is_multiple_of(TOLD_EVERY) {
                        tracing::warn!(endpoint = self.url, reason = why, "spans cannot be exported");
                    }
                    self.failures = self.failures.saturating_add(1);
                    // A collector that fails is not asked again at once.
                    return;
                }
            }
        }
    }

    async fn send(&self, batch: &[Span]) -> Result<(), String> {
        let body = document(batch).to_string();
        let answer = self.http.post(&self.url, vec![body.into()], MAX_ANSWER_BYTES);
        match tokio::time::timeout(PATIENCE, answer).await {
            Err(_) => Err(format!("no answer within {PATIENCE:?}")),
            Ok(Ok(reply)) if (200..300).contains(&reply.status) => Ok(()),
            Ok(Ok(reply)) => Err(format!("status {}", reply.status)),
            Ok(Err(TransportError::TooLong)) => Err("the answer is too long".to_owned()),
            Ok(Err(TransportError::Broken(why))) => Err(why),
        }
    }
}

/// The address to post to.
fn url(endpoint: &str) -> String {
    let host_and_path = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    match host_and_path.trim_end_matches('/').contains('/') {
        true => endpoint.to_owned(),
        false => format!("{}{TRACES_PATH}", endpoint.trim_end_matches('/')),
    }
}

/// An ExportTraceServiceRequest.
fn document(batch: &[Span]) -> Value {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let resource = [("service.name", "supercargo"), ("service.version", VERSION), ("host.name", &host)];
    let spans: Vec<Value> = batch.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource.map(|(key, value)| attribute(key, value))},
        "scopeSpans": [{"scope": {"name": "supercargo", "version": VERSION}, "spans": spans}],
    }]})
}

fn span(span: &Span) -> Value {
    let attributes: Vec<Value> = span.attributes.iter().map(|(key, value)| attribute(key, value)).collect();
    json!({
        "traceId": format!("{:032x}", span.trace_id),
        "spanId": format!("{:016x}", span.id),
        "parentSpanId": span.parent.map(|parent| format!("{parent:016x}")).unwrap_or_default(),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanoseconds(span.began),
        "endTimeUnixNano": nanoseconds(span.ended),
        "attributes": attributes,
        "status": if span.is_error { json!({"code": STATUS_ERROR}) } else { json!({}) },
    })
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// As JSON has them in OTLP: in decimal, as a text.
fn nanoseconds(at: SystemTime) -> String {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_go_where_collectors_expect_them() {
        for (endpoint, expected) in [
            ("http://localhost:4318", "http://localhost:4318/v1/traces"),
            ("http://localhost:4318/", "http://localhost:4318/v1/traces"),
            ("https://collector/otlp/v1/traces", "https://collector/otlp/v1/traces"),
        ] {
            assert_eq!(url(endpoint), expected);
        }
    }

    #[test]
    fn a_span_is_written_as_otlp_has_it() {
        let at = |nanoseconds| SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
        let one = Span {
            trace_id: 0xab,
            id: 0xc,
            parent: None,
            name: "filter",
            began: at(1_700_000_000_000_000_001),
            ended: at(1_700_000_000_000_000_002),
            attributes: vec![("k8s.pod.name", "p".to_owned())],
            is_error: true,
        };
        let written = document(&[one])["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
        let expected = json!({
            "traceId": "000000000000000000000000000000ab", "spanId": "000000000000000c", "parentSpanId": "",
            "name": "filter", "kind": 1, "startTimeUnixNano": "1700000000000000001",
            "endTimeUnixNano": "1700000000000000002", "status": {"code": 2},
            "attributes": [{"key": "k8s.pod.name", "value": {"stringValue": "p"}}],
        });
        assert_eq!(written, expected);
    }
}
