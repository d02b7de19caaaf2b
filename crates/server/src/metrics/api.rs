//! What is measured about the API server: requests, writes that nobody waits for, and the leader's lease.

use std::time::Duration;

use prometheus::{HistogramVec, IntCounterVec, IntGaugeVec, Registry};

use super::{
    define::{Define, exponential},
    labels::{Call, Method, Success},
};

const REQUEST_SECONDS: [f64; 12] = [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0];
const SIZE_BYTES: [f64; 11] =
    [64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0];

#[derive(Clone)]
struct ClientFamilies {
    requests: IntCounterVec,
    retries: IntCounterVec,
    duration: HistogramVec,
    request_size: HistogramVec,
    response_size: HistogramVec,
    rate_limiter: HistogramVec,
}

/// What is measured about traffic with the API server.
pub struct ApiMetrics {
    client: ClientFamilies,
    calls: IntCounterVec,
    call_duration: HistogramVec,
    pending_calls: IntGaugeVec,
    leader: IntGaugeVec,
    slow_renewals: IntCounterVec,
}

impl ApiMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let define = Define(registry);
        Self {
            client: ClientFamilies::new(&define),
            calls: define.counters(
                "scheduler_async_api_call_execution_total",
                "Writes to the API server beside the cycle, by how they ended.",
                &["call_type", "result"],
            ),
            call_duration: define.histograms(
                "scheduler_async_api_call_execution_duration_seconds",
                "How long a write beside the cycle took.",
                exponential(0.001, 2.0, 15),
                &["call_type", "result"],
            ),
            pending_calls: define.gauges(
                "scheduler_pending_async_api_calls",
                "Writes that wait to be sent.",
                &["call_type"],
            ),
            leader: define.gauges(
                "leader_election_master_status",
                "1 while this process holds the lease, 0 while it stands by.",
                &["name"],
            ),
            slow_renewals: define.counters(
                "leader_election_slowpath_total",
                "Renewals of the lease that had to read it first.",
                &["name"],
            ),
        }
    }

    /// What is measured about requests to one API server.
    pub fn client(&self, host: &str) -> ApiClient {
        ApiClient { host: host.to_owned(), families: self.client.clone() }
    }

    /// A write beside the cycle has ended.
    pub fn called(&self, call: Call, result: Success, took: Duration) {
        let labels = [call.as_str(), result.as_str()];
        self.calls.with_label_values(&labels).inc();
        self.call_duration.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// So many writes wait now.
    pub fn pending_calls(&self, call: Call, count: usize) {
        self.pending_calls.with_label_values(&[call.as_str()]).set(count as i64);
    }

    /// Whether this process holds the lease of that name.
    pub fn leading(&self, lease: &str, leading: bool) {
        self.leader.with_label_values(&[lease]).set(i64::from(leading));
    }

    /// The lease had to be read before it was renewed.
    pub fn slow_renewal(&self, lease: &str) {
        self.slow_renewals.with_label_values(&[lease]).inc();
    }
}

impl ClientFamilies {
    fn new(define: &Define<'_>) -> Self {
        Self {
            requests: define.counters(
                "rest_client_requests_total",
                "Requests to the API server, by status code.",
                &["code", "method", "host"],
            ),
            retries: define.counters(
                "rest_client_request_retries_total",
                "Requests that were sent again, by the status code that made it so.",
                &["code", "verb", "host"],
            ),
            duration: define.histograms(
                "rest_client_request_duration_seconds",
                "How long the API server took to answer.",
                REQUEST_SECONDS.to_vec(),
                &["verb", "host"],
            ),
            request_size: define.histograms(
                "rest_client_request_size_bytes",
                "What was sent.",
                SIZE_BYTES.to_vec(),
                &["verb", "host"],
            ),
            response_size: define.histograms(
                "rest_client_response_size_bytes",
                "What came back.",
                SIZE_BYTES.to_vec(),
                &["verb", "host"],
            ),
            rate_limiter: define.histograms(
                "rest_client_rate_limiter_duration_seconds",
                "How long requests were delayed by client-side throttling.",
                REQUEST_SECONDS.to_vec(),
                &["verb", "host"],
            ),
        }
    }
}

/// What is measured about requests to one API server.
#[derive(Clone)]
pub struct ApiClient {
    host: String,
    families: ClientFamilies,
}

impl ApiClient {
    /// A request was answered, with this status code; or with none, when the connection failed.
    pub fn requested(&self, method: Method, code: Option<u16>, took: Duration) {
        let labels = [&*code_label(code), method.as_str(), &self.host];
        self.families.requests.with_label_values(&labels).inc();
        let labels = [method.as_str(), &self.host];
        self.families.duration.with_label_values(&labels).observe(took.as_secs_f64());
    }

    /// A request is sent again because of that answer.
    pub fn retried(&self, method: Method, code: Option<u16>) {
        let labels = [&*code_label(code), method.as_str(), &self.host];
        self.families.retries.with_label_values(&labels).inc();
    }

    /// How large a request and its answer were.
    pub fn transferred(&self, method: Method, request_bytes: usize, response_bytes: usize) {
        let labels = [method.as_str(), &self.host];
        self.families.request_size.with_label_values(&labels).observe(request_bytes as f64);
        self.families.response_size.with_label_values(&labels).observe(response_bytes as f64);
    }

    /// A request was held back by our own rate limit.
    pub fn held_back(&self, method: Method, took: Duration) {
        let labels = [method.as_str(), &self.host];
        self.families.rate_limiter.with_label_values(&labels).observe(took.as_secs_f64());
    }
}

fn code_label(code: Option<u16>) -> String {
    match code {
        Some(code @ 100..=599) => code.to_string(),
        _ => "<error>".to_owned(),
    }
}
