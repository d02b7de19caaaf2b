//! What kube-scheduler demands of the fields outside of plugins, with the paths that it blames.

use std::collections::{HashMap, HashSet};

use supercargo_manifest::Problems;

use crate::{
    Extender,
    configuration::{ClientConnection, LeaderElection},
    defaults,
    document::Document,
    names,
    place::Text,
};

/// Reports every field that no scheduler could work with.
pub(crate) fn validate(document: &Document, text: Text<'_>, problems: &mut Problems) {
    numbers(document, text, problems);
    scheduler_names(document, text, problems);
    queue_sorts(document, text, problems);
    extenders(&document.extenders, text, problems);
}

fn numbers(document: &Document, text: Text<'_>, problems: &mut Problems) {
    if document.parallelism.is_some_and(|parallelism| parallelism <= 0) {
        problems.push(
            text.error("parallelism", "at least one thing must be done at a time")
                .hint(format!("leave the field out for the default, {}", defaults::PARALLELISM)),
        );
    }
    percentage("percentageOfNodesToScore", document.percentage_of_nodes_to_score, text, problems);
    for (index, profile) in document.profiles.iter().enumerate() {
        let path = format!("profiles[{index}].percentageOfNodesToScore");
        percentage(&path, profile.percentage_of_nodes_to_score, text, problems);
    }
    if document.min_feasible_nodes_to_find.is_some_and(|nodes| nodes <= 0) {
        problems.push(text.error("minFeasibleNodesToFind", "at least one feasible node must be looked for"));
    }
    let initial = document.pod_initial_backoff_seconds.unwrap_or(defaults::POD_INITIAL_BACKOFF_SECONDS);
    let most = document.pod_max_backoff_seconds.unwrap_or(defaults::POD_MAX_BACKOFF_SECONDS);
    if initial <= 0 {
        problems.push(text.error("podInitialBackoffSeconds", "a pod must wait at least one second"));
    }
    if most < initial {
        problems.push(
            text.error(
                "podMaxBackoffSeconds",
                format!("the longest wait, {most} s, is shorter than the first, {initial} s"),
            )
            .hint(format!("make it at least podInitialBackoffSeconds ({initial})")),
        );
    }
}

fn percentage(path: &str, percentage: Option<i32>, text: Text<'_>, problems: &mut Problems) {
    match percentage {
        Some(..0) => problems.push(
            text.error(path, "a percentage cannot be negative")
                .hint("write 1 to 100, or 0 to let the size of the cluster decide"),
        ),
        Some(101..) => problems.push(
            text.warning(path, "a percentage above 100 acts as 100")
                .hint("write 100; kube-scheduler refuses more"),
        ),
        _ => {}
    }
}

fn scheduler_names(document: &Document, text: Text<'_>, problems: &mut Problems) {
    let mut seen = HashMap::new();
    for (index, profile) in document.profiles.iter().enumerate() {
        let path = format!("profiles[{index}].schedulerName");
        let name = profile.scheduler_name.as_deref();
        if name.is_none() && document.profiles.len() == 1 {
            continue;
        }
        let name = name.unwrap_or_default();
        if name.is_empty() {
            let message = "a profile needs a scheduler name";
            problems
                .push(text.error(path, message).hint("pods choose the profile by it, in spec.schedulerName"));
        } else if let Some(first) = seen.insert(name, index) {
            let message = format!("the scheduler name {name:?} is already taken by profiles[{first}]");
            problems.push(text.error(path, message).hint("give each profile a name of its own"));
        }
    }
}

/// All profiles share one queue, so it must be sorted in one way.
fn queue_sorts(document: &Document, text: Text<'_>, problems: &mut Problems) {
    let Some(first) = document.profiles.first() else {
        return;
    };
    let sort = &first.plugins.queue_sort;
    if sort.enabled.len() > 1 {
        problems.push(
            text.error("profiles[0].plugins.queueSort.enabled", "only one plugin can sort the queue")
                .hint("keep one of them"),
        );
    }
    for (index, profile) in document.profiles.iter().enumerate().skip(1) {
        if profile.plugins.queue_sort != *sort {
            let path = format!("profiles[{index}].plugins.queueSort");
            problems.push(
                text.error(
                    path,
                    "all profiles share one queue, and this profile sorts it otherwise than profiles[0]",
                )
                .hint("write the same queueSort in every profile"),
            );
        }
    }
}

fn extenders(extenders: &[Extender], text: Text<'_>, problems: &mut Problems) {
    let mut resources = HashSet::new();
    for (index, extender) in extenders.iter().enumerate() {
        if !extender.prioritize_verb.is_empty() && extender.weight <= 0 {
            problems.push(
                text.error(
                    format!("extenders[{index}].weight"),
                    "an extender that scores needs a positive weight",
                )
                .hint("write 1, or remove prioritizeVerb"),
            );
        }
        for (place, resource) in extender.managed_resources.iter().enumerate() {
            let path = format!("extenders[{index}].managedResources[{place}].name");
            if let Err(message) = names::check_extended_resource(&resource.name) {
                problems.push(
                    text.error(&*path, message).hint("an extended resource is named like example.com/gpu"),
                );
            }
            if !resources.insert(&*resource.name) {
                let message = format!("an extender looks after {} already", resource.name);
                problems.push(text.error(path, message).hint("name each resource once, in one extender"));
            }
        }
    }
    let binders = extenders.iter().filter(|extender| !extender.bind_verb.is_empty()).count();
    if binders > 1 {
        problems.push(
            text.error("extenders", format!("{binders} extenders want to bind pods, and only one can"))
                .hint("keep bindVerb in one of them"),
        );
    }
}

/// Checks the connection, after its defaults.
pub(crate) fn client_connection(burst: i32, text: Text<'_>, problems: &mut Problems) {
    if burst < 0 {
        problems.push(
            text.error("clientConnection.burst", "this cannot be negative")
                .hint(format!("leave the field out for the default, {}", defaults::BURST)),
        );
    }
}

/// Checks leader election, after its defaults.
pub(crate) fn leader_election(election: &LeaderElection, text: Text<'_>, problems: &mut Problems) {
    if !election.leader_elect {
        return;
    }
    let spans = [
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ];
    for (field, span) in spans {
        if span.as_nanos() <= 0 {
            problems.push(text.error(format!("leaderElection.{field}"), "this must be longer than no time"));
        }
    }
    if election.lease_duration <= election.renew_deadline {
        problems.push(
            text.error(
                "leaderElection.leaseDuration",
                format!(
                    "a lease of {} would end before the leader gives up renewing it, after {}",
                    election.lease_duration, election.renew_deadline
                ),
            )
            .hint("make leaseDuration longer than renewDeadline"),
        );
    }
    if election.resource_lock != defaults::RESOURCE_LOCK {
        let message = format!("{:?} is not a kind of lock", election.resource_lock);
        let hint = "write leases, or leave the field out";
        problems.push(text.error("leaderElection.resourceLock", message).hint(hint));
    }
}

/// The connection to the API server, with its defaults.
pub(crate) fn connection_of(document: &Document) -> ClientConnection {
    let fields = &document.client_connection;
    let filled = |text: &str, default: &str| (if text.is_empty() { default } else { text }).to_owned();
    let mut connection = ClientConnection {
        kubeconfig: fields.kubeconfig.clone(),
        accept_content_types: fields.accept_content_types.clone(),
        content_type: filled(&fields.content_type, defaults::CONTENT_TYPE),
        qps: ClientConnection::NO_LIMIT,
        burst: u32::try_from(if fields.burst == 0 { defaults::BURST } else { fields.burst })
            .unwrap_or_default(),
    };
    connection.limit(fields.qps);
    connection
}
