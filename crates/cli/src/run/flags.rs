//! The flags of `supercargo run`: kube-scheduler's, where the thing exists.

use std::{net::IpAddr, net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use supercargo_config::{Configuration, Duration};
use supercargo_extender::Strictness;

/// What can be said to `supercargo run`.
#[derive(Args, Clone, Debug)]
#[command(next_line_help = false)]
pub(crate) struct Options {
    /// The KubeSchedulerConfiguration; without it, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Write the configuration as it holds to a file, and end
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

    /// Requests a second to the API server; without it (and without clientConnection.qps) there is no limit
    #[arg(long, value_name = "N")]
    pub(crate) kube_api_qps: Option<f32>,

    /// Requests at once beyond that
    #[arg(long, value_name = "N")]
    pub(crate) kube_api_burst: Option<u32>,

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

    /// Callers with a certificate signed by one of these are who it says they are
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,

    /// Paths that anybody may ask for
    #[arg(long, value_delimiter = ',', value_name = "PATHS", default_value = "/healthz,/readyz,/livez")]
    pub(crate) authorization_always_allow_paths: Vec<String>,

    /// Refuse extenders' scores outside 0 to 10, and scores and reasons for nodes that they were not asked about;
    /// kube-scheduler takes them
    #[arg(long)]
    pub(crate) strict_extenders: bool,

    /// How much is logged: 4 writes every line about a pod where there are many, 5 shows each decision and its time, 10 each plugin's score for each node
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    pub(crate) verbosity: u8,

    /// How logs are written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) logging_format: LoggingFormat,
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
        let connection = &mut configuration.client_connection;
        set(&mut connection.qps, &self.kube_api_qps);
        set(&mut connection.burst, &self.kube_api_burst);
        connection.is_limited |= self.kube_api_qps.is_some();
    }
}

/// kube-scheduler's flags that have no meaning here, and why.
const ABSENT: &[(&str, &str)] = &[
    ("allow-metric-labels", "labels are from closed sets here"),
    ("allow-metric-labels-manifest", "labels are from closed sets here"),
    ("authentication-kubeconfig", "reviews are asked of the same API server"),
    ("authentication-skip-lookup", "nothing is looked up"),
    ("authentication-token-webhook-cache-ttl", "answers are kept for 10 s"),
    ("authentication-tolerate-lookup-failure", "a failed look-up is a refusal"),
    ("authorization-kubeconfig", "reviews are asked of the same API server"),
    ("authorization-webhook-cache-authorized-ttl", "answers are kept for 10 s"),
    ("authorization-webhook-cache-unauthorized-ttl", "answers are kept for 10 s"),
    ("contention-profiling", "there are no Go profiles"),
    ("disable-http2-serving", "HTTP/2 is offered, and nobody has to take it"),
    ("disabled-metrics", "all metrics are served"),
    ("emulated-version", "it is 1.36 that is stood in for"),
    ("emulation-forward-compatible", "it is 1.36 that is stood in for"),
    ("feature-gates", "the features that 1.36 has on by default are on, and no others"),
    ("http2-max-streams-per-connection", "the limit is fixed"),
    ("kube-api-content-type", "JSON is spoken"),
    ("leader-elect-resource-lock", "the lock is a Lease"),
    ("log-flush-frequency", "logs are written at once"),
    ("log-json-info-buffer-size", "logs are written at once"),
    ("log-json-split-stream", "logs go to stderr"),
    ("log-text-info-buffer-size", "logs are written at once"),
    ("log-text-split-stream", "logs go to stderr"),
    ("min-compatibility-version", "it is 1.36 that is stood in for"),
    ("permit-address-sharing", "addresses are not shared"),
    ("permit-port-sharing", "ports are not shared"),
    ("pod-max-in-unschedulable-pods-duration", "pods are tried again after 5 minutes at the latest"),
    ("profiling", "there are no Go profiles"),
    ("requestheader-allowed-names", "front proxies are not believed"),
    ("requestheader-client-ca-file", "front proxies are not believed"),
    ("requestheader-extra-headers-prefix", "front proxies are not believed"),
    ("requestheader-group-headers", "front proxies are not believed"),
    ("requestheader-uid-headers", "front proxies are not believed"),
    ("requestheader-username-headers", "front proxies are not believed"),
    ("show-hidden-metrics-for-version", "all metrics are served"),
    ("tls-cipher-suites", "rustls' safe suites are used"),
    ("tls-min-version", "it is TLS 1.2"),
    ("tls-sni-cert-key", "one certificate is served"),
    ("vmodule", "--v sets one level for all"),
];

/// Why a flag of kube-scheduler is not there.
pub(crate) fn explain_unknown(flag: &str) -> Option<&'static str> {
    let name = flag.trim_start_matches('-').split('=').next()?;
    ABSENT.iter().find(|(absent, _)| *absent == name).map(|(_, why)| *why)
}
