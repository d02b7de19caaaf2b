//! A configuration written out in full, so that reading it again gives the same.

use supercargo_framework::registry::{Point, Registry};
use supercargo_manifest::Value;

use crate::{
    ClientConnection, Configuration, Extender, ExtenderTls, LeaderElection, ProfileConfiguration, TieBreak,
    header::{API_VERSION, KIND},
    merge::ALL,
    tree::{self, At},
    yaml,
};

const HERE: At = At::NOWHERE;

impl Configuration {
    /// All of it as YAML: defaults, plugins at each point, and the arguments of every plugin that tells its
    /// own.
    pub fn to_yaml(&self, registry: &Registry) -> String {
        yaml::write(&self.to_value(registry))
    }

    /// All of it as JSON.
    pub fn to_json(&self, registry: &Registry) -> String {
        self.to_value(registry).to_json()
    }

    /// All of it as a value.
    pub(crate) fn to_value(&self, registry: &Registry) -> Value {
        let mut fields = vec![
            ("apiVersion", HERE.text(API_VERSION)),
            ("kind", HERE.text(KIND)),
            ("parallelism", HERE.number(self.parallelism)),
            ("percentageOfNodesToScore", HERE.number(self.percentage_of_nodes_to_score)),
        ];
        // Ours are written only if they differ, so that kube-scheduler can read what it could read before.
        if self.min_feasible_nodes_to_find != DEFAULT_MIN_FEASIBLE {
            fields.push(("minFeasibleNodesToFind", HERE.number(self.min_feasible_nodes_to_find)));
        }
        if self.tie_break == TieBreak::First {
            fields.push(("tieBreak", HERE.text("first")));
        }
        fields.extend([
            ("podInitialBackoffSeconds", HERE.number(self.pod_initial_backoff_seconds)),
            ("podMaxBackoffSeconds", HERE.number(self.pod_max_backoff_seconds)),
            ("leaderElection", leader_election(&self.leader_election)),
            ("clientConnection", client_connection(&self.client_connection)),
            ("enableProfiling", HERE.boolean(self.enable_profiling)),
            ("enableContentionProfiling", HERE.boolean(self.enable_contention_profiling)),
            ("delayCacheUntilActive", HERE.boolean(self.delay_cache_until_active)),
        ]);
        let addresses = [
            ("healthzBindAddress", &self.healthz_bind_address),
            ("metricsBindAddress", &self.metrics_bind_address),
        ];
        fields.extend(
            addresses.into_iter().filter_map(|(name, address)| Some((name, HERE.text(address.as_ref()?)))),
        );
        fields.push((
            "profiles",
            HERE.list(self.profiles.iter().map(|profile| profile_value(profile, registry))),
        ));
        if !self.extenders.is_empty() {
            fields.push(("extenders", HERE.list(self.extenders.iter().map(extender))));
        }
        HERE.map(fields)
    }
}

const DEFAULT_MIN_FEASIBLE: u32 = crate::defaults::MIN_FEASIBLE_NODES_TO_FIND as u32;

fn leader_election(election: &LeaderElection) -> Value {
    HERE.map([
        ("leaderElect", HERE.boolean(election.leader_elect)),
        ("leaseDuration", HERE.text(election.lease_duration.to_string())),
        ("renewDeadline", HERE.text(election.renew_deadline.to_string())),
        ("retryPeriod", HERE.text(election.retry_period.to_string())),
        ("resourceLock", HERE.text(&election.resource_lock)),
        ("resourceName", HERE.text(&election.resource_name)),
        ("resourceNamespace", HERE.text(&election.resource_namespace)),
    ])
}

fn client_connection(connection: &ClientConnection) -> Value {
    HERE.map([
        ("kubeconfig", HERE.text(&connection.kubeconfig)),
        ("acceptContentTypes", HERE.text(&connection.accept_content_types)),
        ("contentType", HERE.text(&connection.content_type)),
        ("qps", HERE.number(connection.qps)),
        ("burst", HERE.number(connection.burst)),
    ])
}

fn profile_value(profile: &ProfileConfiguration, registry: &Registry) -> Value {
    let mut fields = vec![("schedulerName", HERE.text(&profile.scheduler_name))];
    if let Some(percentage) = profile.percentage_of_nodes_to_score {
        fields.push(("percentageOfNodesToScore", HERE.number(percentage)));
    }
    fields.push(("plugins", plugins(profile)));
    let arguments = arguments(profile, registry);
    if !arguments.is_empty() {
        let config = |(name, args): (&str, Value)| HERE.map([("name", HERE.text(name)), ("args", args)]);
        fields.push(("pluginConfig", HERE.list(arguments.into_iter().map(config))));
    }
    HERE.map(fields)
}

/// Nothing is left to the defaults: they are disabled, and each point names its plugins.
fn plugins(profile: &ProfileConfiguration) -> Value {
    let everything = || HERE.list([HERE.map([("name", HERE.text(ALL))])]);
    let mut points = vec![("multiPoint", HERE.map([("disabled", everything())]))];
    for point in Point::ALL {
        let entries = profile.at(point).iter().map(|choice| {
            let weight = (point == Point::Score).then(|| ("weight", HERE.number(choice.weight)));
            HERE.map([("name", HERE.text(&choice.plugin))].into_iter().chain(weight))
        });
        let entries: Vec<Value> = entries.collect();
        if !entries.is_empty() {
            points.push((point.name(), HERE.map([("enabled", HERE.list(entries))])));
        }
    }
    HERE.map(points)
}

/// The arguments of the plugins, as given and filled up with their defaults, by name.
pub(crate) fn arguments<'p>(profile: &'p ProfileConfiguration, registry: &Registry) -> Vec<(&'p str, Value)> {
    let running = profile.points.values().flatten().map(|choice| &*choice.plugin);
    let given = profile.arguments.iter().map(|arguments| &*arguments.plugin);
    let mut names: Vec<&str> = running.chain(given).collect();
    names.sort_unstable();
    names.dedup();
    let arguments = names.into_iter().filter_map(|name| {
        let given = profile.arguments.iter().find(|arguments| &*arguments.plugin == name);
        let given = given.map(|arguments| tree::without(&arguments.value, &["apiVersion", "kind"]));
        let default = registry.get(name).and_then(|plugin| plugin.default_args()?.parse::<Value>().ok());
        let value = match (given, default) {
            (Some(given), Some(default)) => tree::over(&given, &default),
            (Some(given), None) => given,
            (None, default) => default?,
        };
        Some((name, value))
    });
    arguments.collect()
}

fn extender(extender: &Extender) -> Value {
    let mut fields = vec![("urlPrefix", HERE.text(&extender.url_prefix))];
    let texts = [
        ("filterVerb", &extender.filter_verb),
        ("preemptVerb", &extender.preempt_verb),
        ("prioritizeVerb", &extender.prioritize_verb),
        ("bindVerb", &extender.bind_verb),
    ];
    fields.extend(
        texts.into_iter().filter(|(_, verb)| !verb.is_empty()).map(|(name, verb)| (name, HERE.text(verb))),
    );
    if extender.weight != 0 {
        fields.push(("weight", HERE.number(extender.weight)));
    }
    fields.push(("enableHTTPS", HERE.boolean(extender.enable_https)));
    fields.extend(extender.tls_config.as_ref().map(|config| ("tlsConfig", tls(config))));
    fields.push(("httpTimeout", HERE.text(extender.http_timeout.to_string())));
    fields.push(("nodeCacheCapable", HERE.boolean(extender.node_cache_capable)));
    if !extender.managed_resources.is_empty() {
        let resources = extender.managed_resources.iter().map(|resource| {
            let ignored = HERE.boolean(resource.ignored_by_scheduler);
            HERE.map([("name", HERE.text(&resource.name)), ("ignoredByScheduler", ignored)])
        });
        fields.push(("managedResources", HERE.list(resources)));
    }
    fields.push(("ignorable", HERE.boolean(extender.ignorable)));
    HERE.map(fields)
}

fn tls(config: &ExtenderTls) -> Value {
    let texts = [
        ("serverName", &*config.server_name),
        ("certFile", &*config.cert_file),
        ("keyFile", &*config.key_file),
        ("caFile", &*config.ca_file),
        ("certData", config.cert_data.as_str()),
        ("keyData", config.key_data.as_str()),
        ("caData", config.ca_data.as_str()),
    ];
    let texts =
        texts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, HERE.text(text)));
    HERE.map(std::iter::once(("insecure", HERE.boolean(config.insecure))).chain(texts))
}
