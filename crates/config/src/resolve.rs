//! From a document to what it means: defaults, merging, and the checks that need the registry.

use supercargo_framework::{
    profile::Choice,
    registry::{Point, Registry},
};
use supercargo_manifest::Problems;
use supercargo_model::Name;

use crate::{
    Duration, Extender,
    configuration::{Configuration, LeaderElection, PluginArguments, ProfileConfiguration},
    defaults,
    document::{Document, LeaderElectionFields, ProfileFields},
    merge::{self, Merged},
    place::Text,
    plugin_args, plugin_sets,
    profile_plugins::ProfilePlugins,
    validate,
};

/// A configuration, how its profiles were merged, and which plugins each can name.
pub(crate) struct Resolved<'r> {
    pub(crate) configuration: Configuration,
    pub(crate) merged: Vec<(Merged, ProfilePlugins<'r>)>,
}

/// Fills in what is absent, merges the plugins and reports everything that is wrong.
pub(crate) fn resolve<'r>(
    document: &Document,
    text: Text<'_>,
    registry: &'r Registry,
    problems: &mut Problems,
) -> Resolved<'r> {
    validate::validate(document, text, problems);
    let leader_election = leader_election(&document.leader_election);
    validate::leader_election(&leader_election, text, problems);
    validate::client_connection(document.client_connection.burst, text, problems);
    let profiling = document.enable_profiling.unwrap_or(true);
    let (merged, profiles) = profiles(document, text, registry, problems).into_iter().unzip();
    let initial = document.pod_initial_backoff_seconds.unwrap_or(defaults::POD_INITIAL_BACKOFF_SECONDS);
    let most = document.pod_max_backoff_seconds.unwrap_or(defaults::POD_MAX_BACKOFF_SECONDS);
    let configuration = Configuration {
        parallelism: natural(document.parallelism.unwrap_or(defaults::PARALLELISM)),
        percentage_of_nodes_to_score: percentage(
            document.percentage_of_nodes_to_score.unwrap_or(defaults::PERCENTAGE_OF_NODES_TO_SCORE),
        ),
        min_feasible_nodes_to_find: natural(
            document.min_feasible_nodes_to_find.unwrap_or(defaults::MIN_FEASIBLE_NODES_TO_FIND),
        ),
        tie_break: document.tie_break.unwrap_or_default(),
        pod_initial_backoff_seconds: initial.try_into().unwrap_or_default(),
        pod_max_backoff_seconds: most.try_into().unwrap_or_default(),
        leader_election,
        client_connection: validate::connection_of(document),
        enable_profiling: profiling,
        enable_contention_profiling: document.enable_contention_profiling.unwrap_or(profiling),
        healthz_bind_address: document.healthz_bind_address.clone(),
        metrics_bind_address: document.metrics_bind_address.clone(),
        delay_cache_until_active: document.delay_cache_until_active,
        profiles,
        extenders: document.extenders.iter().map(with_timeout).collect(),
    };
    Resolved { configuration, merged }
}

fn natural(number: i32) -> u32 {
    number.try_into().unwrap_or_default()
}

fn percentage(number: i32) -> u32 {
    natural(number.min(100))
}

fn with_timeout(extender: &Extender) -> Extender {
    let mut extender = extender.clone();
    if extender.http_timeout == Duration::ZERO {
        extender.http_timeout = Extender::DEFAULT_TIMEOUT;
    }
    extender
}

fn leader_election(fields: &LeaderElectionFields) -> LeaderElection {
    let span =
        |given: Duration, seconds| if given == Duration::ZERO { Duration::from_secs(seconds) } else { given };
    let text = |given: &str, default: &str| (if given.is_empty() { default } else { given }).to_owned();
    LeaderElection {
        leader_elect: fields.leader_elect.unwrap_or(true),
        lease_duration: span(fields.lease_duration, defaults::LEASE_SECONDS),
        renew_deadline: span(fields.renew_deadline, defaults::RENEW_DEADLINE_SECONDS),
        retry_period: span(fields.retry_period, defaults::RETRY_PERIOD_SECONDS),
        resource_lock: text(&fields.resource_lock, defaults::RESOURCE_LOCK),
        resource_name: text(&fields.resource_name, defaults::RESOURCE_NAME),
        resource_namespace: text(&fields.resource_namespace, defaults::RESOURCE_NAMESPACE),
    }
}

fn profiles<'r>(
    document: &Document,
    text: Text<'_>,
    registry: &'r Registry,
    problems: &mut Problems,
) -> Vec<((Merged, ProfilePlugins<'r>), ProfileConfiguration)> {
    let default = [ProfileFields::default()];
    let profiles = if document.profiles.is_empty() { &default } else { &*document.profiles };
    let resolve = |(index, fields)| profile(&format!("profiles[{index}]"), fields, text, registry, problems);
    profiles.iter().enumerate().map(resolve).collect()
}

fn profile<'r>(
    at: &str,
    fields: &ProfileFields,
    text: Text<'_>,
    registry: &'r Registry,
    problems: &mut Problems,
) -> ((Merged, ProfilePlugins<'r>), ProfileConfiguration) {
    let arguments = arguments(at, fields, text);
    let known = ProfilePlugins::load(registry, &arguments, problems);
    plugin_sets::check_written(at, &fields.plugins, &known, text, problems);
    let serves = |name: &str, point| known.get(name).is_some_and(|plugin| plugin.points().contains(&point));
    let merged = merge::merge(&fields.plugins, &serves);
    for entry in merged.multi_point.iter().filter(|entry| entry.written.is_none()) {
        if known.get(&entry.name).is_none() {
            let message = format!("the plugin {} is on by default, and is not in this build", entry.name);
            problems.push(text.error(at, message).hint("disable it in plugins.multiPoint.disabled"));
        }
    }
    plugin_sets::check_merged(at, &merged, fields, text, problems);
    let name = fields.scheduler_name.as_deref().unwrap_or(defaults::SCHEDULER_NAME);
    let profile = ProfileConfiguration {
        scheduler_name: name.into(),
        percentage_of_nodes_to_score: fields.percentage_of_nodes_to_score.map(percentage),
        points: (merged.points.iter()).map(|(point, entries)| (*point, choices(*point, entries))).collect(),
        arguments,
        loaded: known.loaded.clone(),
    };
    plugin_args::check(at, fields, &profile, registry, text, problems);
    plugin_args::check_absent(at, &merged, &profile, registry, text, problems);
    ((merged, known), profile)
}

/// A weight means something at Score only.
fn choices(point: Point, entries: &[merge::Entry]) -> Vec<Choice> {
    let weight = |entry: &merge::Entry| if point == Point::Score { entry.weight } else { None };
    entries
        .iter()
        .map(|entry| Choice { plugin: entry.name.clone(), weight: weight(entry).unwrap_or(defaults::WEIGHT) })
        .collect()
}

fn arguments(at: &str, fields: &ProfileFields, text: Text<'_>) -> Vec<PluginArguments> {
    let given = fields.plugin_config.iter().enumerate();
    given
        .filter_map(|(index, config)| {
            let path = format!("{at}.pluginConfig[{index}].args");
            let value = text.find(&path).filter(|value| !value.is_null())?.clone();
            Some(PluginArguments {
                plugin: Name::from(&*config.name),
                source: text.source.clone(),
                value,
                path,
            })
        })
        .collect()
}
