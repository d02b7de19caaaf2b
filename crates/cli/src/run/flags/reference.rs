//! kube-scheduler 1.36's flags: what becomes of each, and what `/flagz` shows of them.

use std::collections::BTreeMap;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use supercargo_config::Duration;
use supercargo_server::Flags;

/// What becomes of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// It does what it does in kube-scheduler.
    Honoured,
    /// It is accepted and needs nothing to be done.
    Accepted(&'static str),
    /// It is accepted, and those who set it are told what it does not do.
    WithoutEffect(&'static str),
}
use Treatment::{Accepted, Honoured, WithoutEffect};

/// A flag of kube-scheduler.
pub(super) struct Flag {
    pub(super) name: &'static str,
    /// The value if it is not set, as Go writes it.
    default: &'static str,
    pub(super) treatment: Treatment,
}

const fn flag(name: &'static str, default: &'static str, treatment: Treatment) -> Flag {
    Flag { name, default, treatment }
}

const FRONT_PROXIES: Treatment =
    WithoutEffect("front proxies are not trusted; callers are known by their certificate or token");
const AT_ONCE: Treatment = Accepted("logs are written at once");
const LABELS: Treatment =
    WithoutEffect("labels are from closed sets here, so that no series have to be merged");

/// Every flag of kube-scheduler 1.36.
pub(super) const FLAGS: &[Flag] = &[
    flag("allow-metric-labels", "[]", LABELS),
    flag("allow-metric-labels-manifest", "", LABELS),
    flag("authentication-kubeconfig", "", Honoured),
    flag(
        "authentication-skip-lookup",
        "false",
        Accepted("the CA comes from --client-ca-file, never from the cluster"),
    ),
    flag("authentication-token-webhook-cache-ttl", "10s", Honoured),
    flag("authentication-tolerate-lookup-failure", "true", Accepted("nothing is looked up")),
    flag("authorization-always-allow-paths", "[/healthz,/readyz,/livez]", Honoured),
    flag("authorization-kubeconfig", "", Honoured),
    flag("authorization-webhook-cache-authorized-ttl", "10s", Honoured),
    flag("authorization-webhook-cache-unauthorized-ttl", "10s", Honoured),
    flag("bind-address", "0.0.0.0", Honoured),
    flag("cert-dir", "", Honoured),
    flag("client-ca-file", "", Honoured),
    flag("config", "", Honoured),
    flag("contention-profiling", "true", Accepted("there are no Go profiles")),
    flag("disable-http2-serving", "false", Honoured),
    flag("disabled-metrics", "[]", Honoured),
    flag("emulated-version", "[]", Honoured),
    flag("feature-gates", "", Honoured),
    flag("help", "false", Honoured),
    flag("http2-max-streams-per-connection", "0", Honoured),
    flag("kube-api-burst", "100", Honoured),
    flag("kube-api-content-type", "application/vnd.kubernetes.protobuf", Accepted("JSON is spoken")),
    flag("kube-api-qps", "50", Honoured),
    flag("kubeconfig", "", Honoured),
    flag("leader-elect", "true", Honoured),
    flag("leader-elect-lease-duration", "15s", Honoured),
    flag("leader-elect-renew-deadline", "10s", Honoured),
    flag("leader-elect-resource-lock", "leases", Honoured),
    flag("leader-elect-resource-name", "kube-scheduler", Honoured),
    flag("leader-elect-resource-namespace", "kube-system", Honoured),
    flag("leader-elect-retry-period", "2s", Honoured),
    flag("log-flush-frequency", "5s", AT_ONCE),
    flag("log-json-info-buffer-size", "0", AT_ONCE),
    flag("log-json-split-stream", "false", Honoured),
    flag("log-text-info-buffer-size", "0", AT_ONCE),
    flag("log-text-split-stream", "false", Honoured),
    flag("logging-format", "text", Honoured),
    flag("master", "", Honoured),
    flag("min-compatibility-version", "[]", Accepted("nothing here depends on it")),
    flag("permit-address-sharing", "false", Accepted("a port is taken again at once in any case")),
    flag("permit-port-sharing", "false", Honoured),
    flag("pod-max-in-unschedulable-pods-duration", "5m0s", Honoured),
    flag("profiling", "true", Honoured),
    flag("requestheader-allowed-names", "[]", FRONT_PROXIES),
    flag("requestheader-client-ca-file", "", FRONT_PROXIES),
    flag("requestheader-extra-headers-prefix", "[x-remote-extra-]", FRONT_PROXIES),
    flag("requestheader-group-headers", "[x-remote-group]", FRONT_PROXIES),
    flag("requestheader-uid-headers", "[]", FRONT_PROXIES),
    flag("requestheader-username-headers", "[x-remote-user]", FRONT_PROXIES),
    flag("secure-port", "10259", Honoured),
    flag("show-hidden-metrics-for-version", "", Accepted("no metrics are hidden")),
    flag("tls-cert-file", "", Honoured),
    flag("tls-cipher-suites", "[]", Honoured),
    flag("tls-curve-preferences", "[]", Honoured),
    flag("tls-min-version", "", Honoured),
    flag("tls-private-key-file", "", Honoured),
    flag("tls-sni-cert-key", "[]", Honoured),
    flag("v", "0", Honoured),
    flag("version", "false", Honoured),
    flag("vmodule", "", Honoured),
    flag("write-config-to", "", Honoured),
];

/// Flags that look like kube-scheduler's and are not, or not any more.
const ELSEWHERE: &[(&str, &str)] = &[
    ("address", "kube-scheduler has had no insecure port since 1.24: use --bind-address and --secure-port"),
    ("algorithm-provider", "it was removed in 1.23: name plugins in a profile of --config"),
    ("alsologtostderr", "it was removed in 1.26: logs go to stderr"),
    ("emulation-forward-compatible", "it is kube-apiserver's"),
    ("experimental-logging-sanitization", "it was removed in 1.26"),
    ("lock-object-name", "it was removed: use --leader-elect-resource-name"),
    ("lock-object-namespace", "it was removed: use --leader-elect-resource-namespace"),
    ("log-dir", "it was removed in 1.26: logs go to stderr"),
    ("log-file", "it was removed in 1.26: logs go to stderr"),
    ("logtostderr", "it was removed in 1.26: logs go to stderr"),
    (
        "policy-config-file",
        "it was removed in 1.23: `supercargo config migrate` turns a policy into a configuration",
    ),
    (
        "policy-configmap",
        "it was removed in 1.23: `supercargo config migrate` turns a policy into a configuration",
    ),
    ("port", "kube-scheduler has had no insecure port since 1.24: use --secure-port"),
    ("scheduler-name", "it was removed in 1.23: set profiles[].schedulerName in --config"),
    ("stderrthreshold", "it was removed in 1.26: logs go to stderr"),
    ("use-legacy-policy-config", "it was removed in 1.23"),
];

/// Why a flag is not there, if it is one that somebody may expect.
pub(crate) fn explain_unknown(flag: &str) -> Option<&'static str> {
    let name = flag.trim_start_matches('-').split('=').next()?;
    if name.starts_with("audit-") {
        return Some("audit flags are kube-apiserver's: kube-scheduler has none");
    }
    ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, why)| *why)
}

/// The flags that were written on the command line, as they were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenFlags(BTreeMap<&'static str, String>);

impl GivenFlags {
    /// All flags of kube-scheduler with their values.
    pub(crate) fn flagz(&self) -> Flags {
        let shown = |flag: &Flag| match self.0.get(flag.name) {
            Some(given) => as_go_writes(given, flag.default),
            None => flag.default.to_owned(),
        };
        FLAGS.iter().map(|flag| (flag.name.to_owned(), shown(flag))).collect()
    }

    /// What those should know who set flags that do nothing here.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let given = FLAGS.iter().filter(|flag| self.0.contains_key(flag.name));
        let told = given.filter_map(|flag| match flag.treatment {
            WithoutEffect(why) => Some(format!("--{} has no effect: {why}", flag.name)),
            Honoured | Accepted(_) => None,
        });
        told.collect()
    }
}

fn as_go_writes(given: &str, default: &str) -> String {
    if default.starts_with('[') {
        return format!("[{given}]");
    }
    match (Duration::parse(default), Duration::parse(given)) {
        (Some(_), Some(duration)) if default.ends_with('s') => duration.to_string(),
        _ => given.to_owned(),
    }
}

// It takes no arguments of its own, and looks at all those that others take.
impl Args for GivenFlags {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for GivenFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        given.update_from_arg_matches(matches)?;
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        use clap::parser::ValueSource::CommandLine;
        for flag in FLAGS {
            let id = argument_id(flag.name);
            let known = matches.try_contains_id(&id).unwrap_or(false);
            if known && matches.value_source(&id) == Some(CommandLine) {
                let values = matches.get_raw(&id).into_iter().flatten();
                let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
                self.0.insert(flag.name, values.join(","));
            }
        }
        Ok(())
    }
}

/// What a flag's argument is called in the code.
fn argument_id(flag: &str) -> String {
    match flag {
        "v" => "verbosity".to_owned(),
        "version" => "show_version".to_owned(),
        flag => flag.replace('-', "_"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::arguments::Arguments;

    /// The flags that `kube-scheduler --help` of 1.36 lists, by section.
    const OF_1_36: &str = "
        config master write-config-to
        bind-address cert-dir disable-http2-serving http2-max-streams-per-connection permit-address-sharing
        permit-port-sharing secure-port tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version
        tls-private-key-file tls-sni-cert-key
        authentication-kubeconfig authentication-skip-lookup authentication-token-webhook-cache-ttl
        authentication-tolerate-lookup-failure client-ca-file requestheader-allowed-names requestheader-client-ca-file
        requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
        requestheader-username-headers
        authorization-always-allow-paths authorization-kubeconfig authorization-webhook-cache-authorized-ttl
        authorization-webhook-cache-unauthorized-ttl
        contention-profiling kube-api-burst kube-api-content-type kube-api-qps kubeconfig
        pod-max-in-unschedulable-pods-duration profiling
        leader-elect leader-elect-lease-duration leader-elect-renew-deadline leader-elect-resource-lock
        leader-elect-resource-name leader-elect-resource-namespace leader-elect-retry-period
        emulated-version feature-gates min-compatibility-version
        allow-metric-labels allow-metric-labels-manifest disabled-metrics show-hidden-metrics-for-version
        log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size
        log-text-split-stream logging-format v vmodule
        help version";

    #[test]
    fn no_flag_of_1_36_is_missing() {
        let mut expected: Vec<&str> = OF_1_36.split_whitespace().collect();
        expected.sort_unstable();
        assert_eq!(FLAGS.iter().map(|flag| flag.name).collect::<Vec<_>>(), expected);
        let mut command = Arguments::command();
        command.build();
        let run = command.find_subcommand("run").expect("run");
        for flag in FLAGS {
            let argument = run.get_arguments().find(|argument| argument.get_long() == Some(flag.name));
            let argument = argument.unwrap_or_else(|| panic!("--{} is not accepted", flag.name));
            assert!(argument.get_help().is_some_and(|help| !help.to_string().is_empty()), "--{}", flag.name);
            if flag.name != "help" {
                assert_eq!(argument.get_id().as_str(), argument_id(flag.name));
            }
        }
    }

    #[test]
    fn values_are_shown_as_go_writes_them() {
        assert_eq!(as_go_writes("/healthz,/x", "[/healthz]"), "[/healthz,/x]");
        assert_eq!(as_go_writes("90s", "5m0s"), "1m30s");
        assert_eq!(as_go_writes("7", "100"), "7");
    }
}
