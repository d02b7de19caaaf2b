//! The flags of `supercargo run`: kube-scheduler's, every one of them.

mod decisions;
mod reference;
mod tracing;
pub(crate) mod values;

use std::{net::IpAddr, net::SocketAddr, path::PathBuf};

use clap::{ArgAction, Args, ValueEnum};
use supercargo_config::{Configuration, Duration};
use supercargo_engine::QueueSettings;
use supercargo_extender::Strictness;
use supercargo_manifest::{Problem, Problems};
use supercargo_server::{CipherSuites, KeyExchanges, NamedCertificate};

use super::feature_gates::FeatureGates;
pub(crate) use decisions::DecisionOptions;
use reference::GivenFlags;
pub(crate) use reference::explain_unknown;
pub(crate) use tracing::TracingOptions;
use values::{MinTlsVersion, ModuleVerbosity, boolean, module_verbosity, named_certificate, tls_version};

/// The minor version of Kubernetes that is stood in for, and the one before.
const VERSION: &str = "1.36";
const PREVIOUS_VERSION: &str = "1.35";
/// Flags that have nothing to do here.
const ACCEPTED: &str = "Accepted, and nothing has to be done";

/// What can be said to `supercargo run`.
#[derive(Args, Clone, Debug)]
#[command(next_line_help = false, args_override_self = true)]
pub(crate) struct Options {
    // The first, because the others take their values away.
    #[command(flatten)]
    pub(crate) given: GivenFlags,

    /// The KubeSchedulerConfiguration; without it, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Write the effective configuration to a file and exit
    #[arg(long, value_name = "FILE")]
    pub(crate) write_config_to: Option<PathBuf>,

    /// How to reach the API server; overrides the configuration's clientConnection
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The API server's address; overrides the kubeconfig's, and is enough by itself
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,

    /// Take part in an election before scheduling
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean)]
    pub(crate) leader_elect: Option<bool>,

    /// How long others wait for a silent leader
    #[arg(long, value_name = "DURATION")]
    pub(crate) leader_elect_lease_duration: Option<Duration>,

    /// How long the leader tries to stay the leader
    #[arg(long, value_name = "DURATION")]
    pub(crate) leader_elect_renew_deadline: Option<Duration>,

    /// How long to wait between attempts to become the leader
    #[arg(long, value_name = "DURATION")]
    pub(crate) leader_elect_retry_period: Option<Duration>,

    /// The Lease's name
    #[arg(long, value_name = "NAME")]
    pub(crate) leader_elect_resource_name: Option<String>,

    /// The Lease's namespace
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: Option<String>,

    /// What the leader holds: leases, nothing else
    #[arg(long, value_name = "KIND")]
    pub(crate) leader_elect_resource_lock: Option<String>,

    /// Requests a second to the API server; without it (and without clientConnection.qps) there is no limit
    #[arg(long, value_name = "N")]
    pub(crate) kube_api_qps: Option<f32>,

    /// Requests at once beyond that
    #[arg(long, value_name = "N")]
    pub(crate) kube_api_burst: Option<u32>,

    /// How objects are written; it is JSON in any case
    #[arg(long, value_name = "TYPE", help_heading = ACCEPTED)]
    pub(crate) kube_api_content_type: Option<String>,

    /// How long an unschedulable pod waits for an event before it is tried again
    #[arg(long, value_name = "DURATION")]
    pub(crate) pod_max_in_unschedulable_pods_duration: Option<Duration>,

    /// The address to serve health, metrics and the configuration on
    #[arg(long, value_name = "IP", default_value = "0.0.0.0")]
    pub(crate) bind_address: IpAddr,

    /// The port to serve on with TLS; 0 serves nothing
    #[arg(long, value_name = "PORT", default_value_t = 10259)]
    pub(crate) secure_port: u16,

    /// Serve in the clear and to everybody instead, for development: a loopback address only
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["tls_cert_file", "cert_dir"])]
    pub(crate) insecure_address: Option<SocketAddr>,

    /// The certificate to serve with
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,

    /// Its key
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,

    /// Where a self-signed certificate is kept, if none is given
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cert_dir: Option<PathBuf>,

    /// A certificate for callers who ask for certain names: foo.crt,foo.key:*.foo.com,foo.com
    #[arg(long, value_name = "FILES", value_parser = named_certificate, action = ArgAction::Append)]
    pub(crate) tls_sni_cert_key: Vec<NamedCertificate>,

    /// The oldest TLS that is spoken: VersionTLS12 or VersionTLS13
    #[arg(long, value_name = "VERSION", value_parser = tls_version)]
    pub(crate) tls_min_version: Option<MinTlsVersion>,

    /// The cipher suites that are offered, by Go's names; those of TLS 1.3 always are
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) tls_cipher_suites: Vec<String>,

    /// The key exchanges that are offered, by Go's numbers
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    pub(crate) tls_curve_preferences: Vec<i32>,

    /// Serve HTTP/1.1 only
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, default_value = "false")]
    pub(crate) disable_http2_serving: bool,

    /// Requests at once on a connection of HTTP/2; 0 means 250
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) http2_max_streams_per_connection: u32,

    /// Let other processes listen on the same port
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, default_value = "false")]
    pub(crate) permit_port_sharing: bool,

    /// Listen where old connections are still dying away; that is so in any case
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, default_value = "false", help_heading = ACCEPTED)]
    pub(crate) permit_address_sharing: bool,

    /// Callers with a certificate signed by one of these are who it says they are
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// The API server that is asked who a caller is (TokenReview); without it, the scheduler's own
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_kubeconfig: Option<PathBuf>,

    /// How long an answer about a token is kept
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) authentication_token_webhook_cache_ttl: Duration,

    /// Do not look up the CA in the cluster; it is never looked up
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, help_heading = ACCEPTED)]
    pub(crate) authentication_skip_lookup: Option<bool>,

    /// Go on if the CA cannot be looked up
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, help_heading = ACCEPTED)]
    pub(crate) authentication_tolerate_lookup_failure: Option<bool>,

    /// The API server that is asked what a caller may do (SubjectAccessReview)
    #[arg(long, value_name = "FILE")]
    pub(crate) authorization_kubeconfig: Option<PathBuf>,

    /// How long a permission is kept
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) authorization_webhook_cache_authorized_ttl: Duration,

    /// How long a refusal is kept
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub(crate) authorization_webhook_cache_unauthorized_ttl: Duration,

    /// Names of front proxies, which are not trusted
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = ACCEPTED)]
    pub(crate) requestheader_allowed_names: Vec<String>,

    /// Headers of front proxies, which are not trusted
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = ACCEPTED)]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,

    /// Headers of front proxies, which are not trusted
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = ACCEPTED)]
    pub(crate) requestheader_group_headers: Vec<String>,

    /// Headers of front proxies, which are not trusted
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = ACCEPTED)]
    pub(crate) requestheader_uid_headers: Vec<String>,

    /// Headers of front proxies, which are not trusted
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = ACCEPTED)]
    pub(crate) requestheader_username_headers: Vec<String>,

    /// The CA of front proxies, which are not trusted
    #[arg(long, value_name = "FILE", help_heading = ACCEPTED)]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,

    /// Paths that anybody may ask for
    #[arg(long, value_delimiter = ',', value_name = "PATHS", default_value = "/healthz,/readyz,/livez")]
    pub(crate) authorization_always_allow_paths: Vec<String>,

    /// Serve /debug/pprof, which says where to look for profiles
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean)]
    pub(crate) profiling: Option<bool>,

    /// Profile locks; there are no Go profiles
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, help_heading = ACCEPTED)]
    pub(crate) contention_profiling: Option<bool>,

    /// Feature gates of Kubernetes 1.36: Name=true,Other=false
    #[arg(long, value_name = "GATES", value_delimiter = ',')]
    pub(crate) feature_gates: Vec<String>,

    /// The version to behave as: 1.36, nothing else
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    pub(crate) emulated_version: Vec<String>,

    /// The oldest version of other components
    #[arg(long, value_name = "VERSION", value_delimiter = ',', help_heading = ACCEPTED)]
    pub(crate) min_compatibility_version: Vec<String>,

    /// Metrics that are not served
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) disabled_metrics: Vec<String>,

    /// Show metrics that were hidden since; none are
    #[arg(long, value_name = "VERSION", help_heading = ACCEPTED)]
    pub(crate) show_hidden_metrics_for_version: Option<String>,

    /// Values that labels may have; labels are from closed sets here
    #[arg(long, value_name = "LABELS", action = ArgAction::Append, help_heading = ACCEPTED)]
    pub(crate) allow_metric_labels: Vec<String>,

    /// The same in a file
    #[arg(long, value_name = "FILE", help_heading = ACCEPTED)]
    pub(crate) allow_metric_labels_manifest: Option<PathBuf>,

    /// Refuse extenders' scores outside 0 to 10, and scores and reasons for nodes that they were not asked about;
    /// kube-scheduler takes them
    #[arg(long)]
    pub(crate) strict_extenders: bool,

    #[command(flatten)]
    pub(crate) decisions: DecisionOptions,

    #[command(flatten)]
    pub(crate) tracing: TracingOptions,

    /// How much is logged: 4 writes every line about a pod where there are many, 5 shows each decision with its time and that of each extension point, 10 each plugin's score for each node and who refused which
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    pub(crate) verbosity: u8,

    /// How logs are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) logging_format: LoggingFormat,

    /// How much single source files log, text only: attempt=5,lease=4
    #[arg(long, value_name = "LEVELS", value_delimiter = ',', value_parser = module_verbosity)]
    pub(crate) vmodule: Vec<ModuleVerbosity>,

    /// As text: errors to stderr, the rest to stdout (LoggingAlphaOptions)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, default_value = "false")]
    pub(crate) log_text_split_stream: bool,

    /// As JSON: errors to stderr, the rest to stdout (LoggingAlphaOptions)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    #[arg(value_parser = boolean, default_value = "false")]
    pub(crate) log_json_split_stream: bool,

    /// How much is buffered; nothing is
    #[arg(long, value_name = "SIZE", help_heading = ACCEPTED)]
    pub(crate) log_text_info_buffer_size: Option<String>,

    /// How much is buffered; nothing is
    #[arg(long, value_name = "SIZE", help_heading = ACCEPTED)]
    pub(crate) log_json_info_buffer_size: Option<String>,

    /// How often logs are written; at once
    #[arg(long, value_name = "DURATION", help_heading = ACCEPTED)]
    pub(crate) log_flush_frequency: Option<Duration>,

    /// Print the version, and end
    #[arg(long = "version", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(value_name = "true|false|raw")]
    pub(crate) show_version: Option<String>,
}

/// How logs are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoggingFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

impl Options {
    /// How closely extenders' answers are looked at.
    pub(super) fn strictness(&self) -> Strictness {
        if self.strict_extenders { Strictness::Strict } else { Strictness::Lenient }
    }

    /// What flags say counts for more than what the configuration says.
    pub(super) fn apply(&self, configuration: &mut Configuration) {
        fn set<T: Clone>(field: &mut T, given: &Option<T>) {
            if let Some(given) = given {
                *field = given.clone();
            }
        }
        let election = &mut configuration.leader_election;
        set(&mut election.leader_elect, &self.leader_elect);
        set(&mut election.lease_duration, &self.leader_elect_lease_duration);
        set(&mut election.renew_deadline, &self.leader_elect_renew_deadline);
        set(&mut election.retry_period, &self.leader_elect_retry_period);
        set(&mut election.resource_name, &self.leader_elect_resource_name);
        set(&mut election.resource_namespace, &self.leader_elect_resource_namespace);
        set(&mut configuration.enable_profiling, &self.profiling);
        set(&mut configuration.enable_contention_profiling, &self.contention_profiling);
        let connection = &mut configuration.client_connection;
        self.kube_api_qps.into_iter().for_each(|qps| connection.limit(qps));
        set(&mut connection.burst, &self.kube_api_burst);
    }

    /// How long an unschedulable pod waits for events.
    pub(super) fn max_unschedulable(&self) -> std::time::Duration {
        let given = self.pod_max_in_unschedulable_pods_duration.and_then(Duration::to_std);
        given.unwrap_or(QueueSettings::default().max_unschedulable)
    }

    /// What follows from the flags together; or why kube-scheduler would not start with them either, or we cannot.
    pub(super) fn check(&self) -> Result<Checked, Problems> {
        let mut problems = Problems::default();
        let gates = take(FeatureGates::parse(&self.feature_gates), &mut problems);
        let mut warnings = self.given.warnings();
        warnings.extend(gates.warnings());
        let (cipher_suites, not_spoken) =
            CipherSuites::named(&self.tls_cipher_suites).unwrap_or_else(|why| {
                let hint = "kube-scheduler's documentation lists the names";
                problems.push(Problem::error(format!("--tls-cipher-suites: {why}")).hint(hint));
                Default::default()
            });
        if !not_spoken.is_empty() {
            let names = not_spoken.join(", ");
            warnings.push(format!("--tls-cipher-suites: {names}: not offered, because they are not safe"));
        }
        let (key_exchanges, not_spoken) =
            KeyExchanges::numbered(&self.tls_curve_preferences).unwrap_or_else(|why| {
                let hint = "23 is P-256, 24 is P-384, 29 is X25519";
                problems.push(Problem::error(format!("--tls-curve-preferences: {why}")).hint(hint));
                Default::default()
            });
        if !not_spoken.is_empty() {
            warnings.push(format!("--tls-curve-preferences: {not_spoken:?}: not offered"));
        }
        if self.tls_min_version.is_some_and(|min| min.raised) {
            warnings.push("--tls-min-version: TLS 1.2 is the oldest that is spoken".to_owned());
        }
        problems.extend(self.refused_versions());
        problems.extend(self.refused_logging(&gates));
        if problems.is_empty() {
            Ok(Checked { gates, cipher_suites, key_exchanges, warnings })
        } else {
            Err(problems)
        }
    }

    fn refused_versions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for version in &self.emulated_version {
            if version.strip_prefix("kube=").unwrap_or(version) != VERSION {
                let problem =
                    Problem::error(format!("--emulated-version={version}: this is a scheduler of {VERSION}"));
                problems.push(problem.hint("leave the flag out, or run a kube-scheduler of that version"));
            }
        }
        match &self.show_hidden_metrics_for_version {
            Some(version) if !version.is_empty() && version != PREVIOUS_VERSION => {
                let problem =
                    Problem::error(format!("--show-hidden-metrics-for-version={version}: not allowed"));
                problems.push(problem.hint(format!("leave it out, or say {PREVIOUS_VERSION}")));
            }
            _ => {}
        }
        match &self.leader_elect_resource_lock {
            Some(lock) if lock != "leases" => {
                let problem =
                    Problem::error(format!("--leader-elect-resource-lock={lock}: the lock is a Lease"));
                problems.push(
                    problem.hint("other kinds were removed from Kubernetes; say leases, or leave it out"),
                );
            }
            _ => {}
        }
        problems
    }

    fn refused_logging(&self, gates: &FeatureGates) -> Vec<Problem> {
        let mut problems = Vec::new();
        let alpha = self.log_text_split_stream || self.log_json_split_stream;
        if alpha && !gates.enabled("LoggingAlphaOptions") {
            let problem = Problem::error("splitting the log's stream is an alpha feature, which is disabled");
            problems.push(problem.hint("add --feature-gates=LoggingAlphaOptions=true"));
        }
        if !self.vmodule.is_empty() && self.logging_format != LoggingFormat::Text {
            let problem = Problem::error("--vmodule is only supported for the text log format");
            problems.push(problem.hint("leave out --vmodule, or --logging-format"));
        }
        problems
    }
}

/// What follows from the flags together.
pub(crate) struct Checked {
    pub(crate) gates: FeatureGates,
    pub(crate) cipher_suites: CipherSuites,
    pub(crate) key_exchanges: KeyExchanges,
    /// What is accepted and not done.
    pub(crate) warnings: Vec<String>,
}

fn take<T: Default>(result: Result<T, Problem>, problems: &mut Problems) -> T {
    result.unwrap_or_else(|problem| {
        problems.push(problem);
        T::default()
    })
}

/// kube-scheduler's flags may be written with underscores, too.
pub(crate) fn with_dashes(argument: std::ffi::OsString) -> std::ffi::OsString {
    let Some(text) = argument.to_str().filter(|text| text.starts_with("--")) else { return argument };
    let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    let name = name.replace('_', "-");
    value.map_or_else(|| name.clone(), |value| format!("{name}={value}")).into()
}
