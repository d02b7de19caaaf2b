//! What the scheduler measures, under kube-scheduler's names, labels and buckets, so that its dashboards and alerts go on
//! working.
//!
//! ```
//! use std::time::Duration;
//! use supercargo_server::{Clock, metrics::{Attempt, BuildInfo, Metrics, Queue}};
//!
//! let metrics = Metrics::new(&BuildInfo::new("0.1.0", "40bc0e9"), Clock::system());
//! let profile = metrics.profile("default-scheduler", &["NodeResourcesFit"]);
//! profile.attempted(Attempt::Scheduled, Duration::from_micros(12));
//! metrics.queues.pending(Queue::Active, 3);
//! assert!(metrics.text().contains("scheduler_pending_pods{queue=\"active\"} 3"));
//! ```

mod api;
mod define;
mod extenders;
mod figures;
mod labels;
mod pod_resources;
mod process;
mod profile;
mod scheduling;
mod summary;
mod supercargo;

use std::collections::BTreeSet;

pub use api::{ApiClient, ApiMetrics};
pub use extenders::ExtenderMetrics;
pub use figures::DecisionTimes;
pub use labels::*;
pub use pod_resources::{PodResources, pod_resources_text};
pub use profile::{PluginMetrics, ProfileMetrics};
pub use scheduling::{Queues, Scheduling, TaskInFlight};
pub use supercargo::Own;

use define::Define;
use process::Process;
use profile::ProfileFamilies;
use prometheus::{IntCounterVec, IntGaugeVec, Registry, TextEncoder, proto::MetricFamily};

use crate::clock::Clock;

/// The classic text format, as kube-scheduler names it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// The kube-scheduler that this one behaves as.
const KUBERNETES: (&str, &str, &str) = ("1", "36", "v1.36.4");

/// What was built.
#[derive(Clone, Debug)]
pub struct BuildInfo {
    /// Supercargo's version.
    pub version: String,
    /// The commit it was built from; empty when unknown.
    pub commit: String,
}

impl BuildInfo {
    /// A version and a commit.
    pub fn new(version: &str, commit: &str) -> Self {
        Self { version: version.to_owned(), commit: commit.to_owned() }
    }
}

/// Everything that is measured. Made once and shared; nothing about it is global.
pub struct Metrics {
    /// Scheduling as a whole.
    pub scheduling: Scheduling,
    /// The queues and what moves pods between them.
    pub queues: Queues,
    /// Traffic with the API server.
    pub api: ApiMetrics,
    /// Traffic with extenders.
    pub extenders: ExtenderMetrics,
    /// What only Supercargo has.
    pub own: Own,
    /// Results of health checks, served apart at `/metrics/slis`.
    pub checks: HealthResults,
    profiles: ProfileFamilies,
    features: IntGaugeVec,
    registry: Registry,
    disabled: BTreeSet<String>,
}

impl Metrics {
    /// Nothing measured yet.
    pub fn new(build: &BuildInfo, clock: Clock) -> Self {
        let registry = Registry::new();
        let own = Own::new(&registry, build);
        kubernetes_build_info(&registry, build);
        Define(&registry).known(Process::new());
        Self {
            scheduling: Scheduling::new(&registry, clock, &own),
            queues: Queues::new(&registry),
            api: ApiMetrics::new(&registry),
            extenders: ExtenderMetrics::new(&registry),
            own,
            checks: HealthResults::new(),
            profiles: ProfileFamilies::new(&registry),
            features: Define(&registry).gauges(
                "kubernetes_feature_enabled",
                "Whether a feature gate is on.",
                &["name", "stage"],
            ),
            registry,
            disabled: BTreeSet::new(),
        }
    }

    /// The same, and those of these names are not served.
    #[must_use]
    pub fn without(mut self, names: &[String]) -> Self {
        self.disabled.extend(names.iter().cloned());
        self
    }

    /// What is measured in one profile's cycles, with the plugins that it runs.
    pub fn profile(&self, name: &str, plugins: &[&str]) -> ProfileMetrics {
        ProfileMetrics::new(&self.profiles, name, plugins)
    }

    /// Takes away the series of a profile that is no more.
    pub fn forget_profile(&self, profile: &ProfileMetrics) {
        profile.forget();
        self.scheduling.forget_profile(profile.name());
    }

    /// Whether a feature gate is on. The stage is `ALPHA`, `BETA`, or empty when the feature is there to stay.
    pub fn feature(&self, name: &str, stage: &str, enabled: bool) {
        self.features.with_label_values(&[name, stage]).set(i64::from(enabled));
    }

    /// Everything as text.
    pub fn text(&self) -> String {
        let mut families = self.registry.gather();
        families.retain(|family| !self.disabled.contains(family.name()));
        text(&families)
    }

    /// Where it is all registered, for metrics of others (a plugin's, say).
    pub fn registry(&self) -> &Registry {
        &self.registry
    }
}

/// `kubernetes_build_info`, with Supercargo's own version as build metadata: nobody should take one for the other.
fn kubernetes_build_info(registry: &Registry, build: &BuildInfo) {
    let (major, minor, version) = KUBERNETES;
    let labels = [
        "major",
        "minor",
        "git_version",
        "git_commit",
        "git_tree_state",
        "build_date",
        "go_version",
        "compiler",
        "platform",
    ];
    let git_version = format!("{version}+supercargo.{}", build.version);
    let platform = format!("{}/{}", std::env::consts::OS, architecture());
    Define(registry)
        .gauges(
            "kubernetes_build_info",
            "Always 1; the labels say which kube-scheduler this one stands in for.",
            &labels,
        )
        .with_label_values(&[major, minor, &git_version, &build.commit, "", "", "", "rustc", &platform])
        .set(1);
}

/// The machine in Kubernetes' words.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Results of health checks.
pub struct HealthResults {
    latest: IntGaugeVec,
    total: IntCounterVec,
    registry: Registry,
}

impl HealthResults {
    fn new() -> Self {
        let registry = Registry::new();
        let define = Define(&registry);
        Self {
            latest: define.gauges(
                "kubernetes_healthcheck",
                "1 if the check passed when it was last asked, else 0.",
                &["name", "type"],
            ),
            total: define.counters(
                "kubernetes_healthchecks_total",
                "Health checks by result.",
                &["name", "type", "status"],
            ),
            registry,
        }
    }

    /// A check was asked for one of `healthz`, `livez` or `readyz`.
    pub(crate) fn checked(&self, check: &str, endpoint: &str, result: Success) {
        self.latest.with_label_values(&[check, endpoint]).set(i64::from(result == Success::Success));
        self.total.with_label_values(&[check, endpoint, result.as_str()]).inc();
    }

    /// All results as text.
    pub fn text(&self) -> String {
        text(&self.registry.gather())
    }
}

fn text(families: &[MetricFamily]) -> String {
    TextEncoder::new().encode_to_string(families).expect("registered metrics have names and samples")
}
