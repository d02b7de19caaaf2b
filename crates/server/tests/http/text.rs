//! What `/metrics` says: in form, and in kube-scheduler's names.

use std::{collections::BTreeSet, time::Duration};

use supercargo_server::{
    Clock,
    metrics::{
        Attempt, AwaitedStatus, BuildInfo, CONTENT_TYPE, Cached, Call, ExtenderResult, ExtenderVerb,
        ExtensionPoint, Hint, Method, Metrics, Operation, Path, Queue, Reload, ScoreAnomaly, Status, Success,
        Task, VolumeStage,
    },
};

use crate::{client::get, setup::Setup};

const ANN: &str = "Authorization: Bearer ann";
const TOOK: Duration = Duration::from_micros(700);

/// Writes to everything that can be written to.
fn measure_everything(metrics: &Metrics) {
    let event = "NodeUpdateNodeTaint";
    let profile = metrics.profile("default-scheduler", &["NodeResourcesFit"]);
    Attempt::ALL.iter().for_each(|&result| profile.attempted(result, TOOK));
    let plugin = &profile.plugins()[0];
    for &point in ExtensionPoint::ALL {
        plugin.evaluated(point);
        for &status in Status::ALL {
            profile.ran(point, status, TOOK);
            plugin.ran(point, status, TOOK);
        }
    }
    plugin.unschedulable_pods(1);

    let scheduling = &metrics.scheduling;
    Path::ALL.iter().for_each(|&path| scheduling.decided(path, TOOK));
    (1..20).for_each(|attempts| scheduling.pod_scheduled(attempts, TOOK));
    scheduling.scheduled_after_flush();
    scheduling.preemption_attempted();
    scheduling.preemption_chose(2);
    Success::ALL.iter().for_each(|&result| scheduling.preemption_ended(result, TOOK));
    Status::ALL.iter().for_each(|&result| scheduling.waited_on_permit(result, TOOK));
    VolumeStage::ALL.iter().for_each(|&stage| scheduling.volume_error(stage));
    for status in AwaitedStatus::ALL.iter().copied() {
        scheduling.claim_created(status);
        scheduling.device_awaited("default-scheduler", "gpu.example.com", true, status, TOOK);
    }
    Cached::ALL.iter().for_each(|&kind| scheduling.cached(kind, 5));
    Task::ALL.iter().for_each(|&task| drop(scheduling.task(task)));
    Operation::ALL.iter().for_each(|&operation| scheduling.step(operation, TOOK));

    let queues = &metrics.queues;
    Queue::ALL.iter().for_each(|&queue| queues.pending(queue, 4));
    ["active", "backoff", "unschedulable"].iter().for_each(|queue| queues.incoming(queue, event, 1));
    queues.in_flight("PodPopped", 1);
    queues.handled(event, TOOK);
    Hint::ALL.iter().for_each(|&hint| queues.hinted("NodeResourcesFit", event, hint, TOOK));

    let client = metrics.api.client("10.0.0.1:6443");
    for &method in Method::ALL {
        client.requested(method, Some(200), TOOK);
        client.retried(method, None);
        client.transferred(method, 100, 1000);
        client.held_back(method, TOOK);
    }
    for &call in Call::ALL {
        Success::ALL.iter().for_each(|&result| metrics.api.called(call, result, TOOK));
        metrics.api.pending_calls(call, 1);
    }
    metrics.api.leading("kube-scheduler", true);
    metrics.api.slow_renewal("kube-scheduler");
    metrics.feature("SchedulerQueueingHints", "", true);
    for &verb in ExtenderVerb::ALL {
        let called = |result| metrics.extenders.called("http://x", verb, result, TOOK);
        ExtenderResult::ALL.iter().copied().for_each(called);
        metrics.extenders.skipped("http://x", verb);
    }
    metrics.extenders.left_out("http://x");
    for &anomaly in ScoreAnomaly::ALL {
        metrics.extenders.anomalous("http://x", anomaly, 1);
    }
    metrics.extenders.circuit_open("http://x", true);
    metrics.own.watch_restarted("nodes");
    metrics.own.events_dropped(1);
    metrics.own.looked_again(TOOK);
    metrics.own.input_is_unreadable();
    metrics.own.guest_failed("ZonePacker");
    Reload::ALL.iter().for_each(|&result| metrics.own.guest_reloaded("ZonePacker", result));
}

fn metrics() -> Metrics {
    Metrics::new(&BuildInfo::new("0.1.0", "abc"), Clock::system())
}

/// A sample: its name, its labels in order, its value.
type Sample = (String, Vec<(String, String)>, f64);

/// A family: its name, its type, its samples.
struct Family {
    name: String,
    help: String,
    kind: String,
    samples: Vec<Sample>,
}

/// Reads the classic text format, and nothing that is not in it.
fn parse(text: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    let mut lines = text.lines().peekable();
    assert!(text.ends_with('\n'), "the last line ends too");
    while let Some(line) = lines.next() {
        let (name, help) = line.strip_prefix("# HELP ").expect(line).split_once(' ').expect("help");
        assert!(!help.is_empty() && families.iter().all(|family| family.name != name), "{line}");
        let line = lines.next().expect("a type");
        let kind = line.strip_prefix(&format!("# TYPE {name} ")).expect(line).to_owned();
        assert!(["counter", "gauge", "histogram", "summary"].contains(&&*kind), "{line}");
        let mut samples = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            samples.push(sample(line));
        }
        families.push(Family { name: name.to_owned(), help: help.to_owned(), kind, samples });
    }
    families.iter().for_each(check);
    families
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').expect(line);
    let value = value.parse().expect(line);
    let Some((name, labels)) = series.split_once('{') else { return (word(series), Vec::new(), value) };
    let mut rest = labels.strip_suffix('}').expect(line);
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect(line);
        let end = closing_quote(after);
        labels.push((word(label), after[..end].to_owned()));
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    (word(name), labels, value)
}

fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().find(|(_, letter)| {
        let closes = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        closes
    });
    end.expect("a closing quote").0
}

fn word(text: &str) -> String {
    assert!(text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'), "{text}");
    assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':'), "{text}");
    text.to_owned()
}

/// Samples belong to their family, no series comes twice, and a histogram's buckets rise to its count.
fn check(family: &Family) {
    let Family { name, kind, samples, .. } = family;
    let mut seen = BTreeSet::new();
    for (sample, labels, _) in samples {
        let suffix = sample.strip_prefix(&**name).expect(sample);
        let allowed: &[&str] = match &**kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            "summary" => &["", "_sum", "_count"],
            _ => &[""],
        };
        assert!(allowed.contains(&suffix), "{sample} in {name}");
        assert!(seen.insert((sample, labels)), "{sample} {labels:?} twice");
    }
    let mut highest = 0.0;
    for (sample, labels, value) in
        samples.iter().filter(|(sample, ..)| kind == "histogram" && sample.contains("_"))
    {
        if sample.ends_with("_bucket") {
            assert!(*value >= highest, "{sample} {labels:?}");
            highest = *value;
        } else if sample.ends_with("_count") {
            assert_eq!(*value, highest, "{sample} {labels:?}");
            highest = 0.0;
        }
    }
}

/// `name type labels buckets`, as in the golden list.
fn describe(Family { name, kind, samples, .. }: &Family) -> String {
    let special =
        |label: &str| label == "le" && kind == "histogram" || label == "quantile" && kind == "summary";
    let labels: BTreeSet<&str> =
        samples.iter().flat_map(|(_, labels, _)| labels).map(|(l, _)| &**l).filter(|l| !special(l)).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    let mut bounds: Vec<f64> = samples
        .iter()
        .flat_map(|(_, labels, _)| labels)
        .filter(|(label, _)| special(label))
        .map(|(_, bound)| bound.parse().expect("a bound"))
        .filter(|bound: &f64| bound.is_finite())
        .collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let bounds: Vec<String> = bounds.into_iter().map(bound).collect();
    let list = |items: &[String]| if items.is_empty() { "-".to_owned() } else { items.join(",") };
    let labels: Vec<String> = labels.into_iter().map(str::to_owned).collect();
    format!("{name} {kind} {} {}", list(&labels), list(&bounds))
}

/// With six digits: 0.00001 × 1.5 × 1.5 … is not the same everywhere.
fn bound(bound: f64) -> String {
    let bound = if bound < 1.0 { format!("{bound:.5e}").parse().expect("a number") } else { bound };
    bound.to_string()
}

#[tokio::test]
async fn names_types_labels_and_buckets_are_those_of_the_list() {
    let server = Setup::default().start().await;
    measure_everything(&server.metrics);
    get(server.address, "/readyz", &[]).await;
    let mut found = Vec::new();
    for path in ["/metrics", "/metrics/resources", "/metrics/slis"] {
        let families = parse(&get(server.address, path, &[ANN]).await.body);
        found.extend(families.iter().map(describe));
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/metrics.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, found.join("\n") + "\n").expect("the list can be written");
    }
    let golden = std::fs::read_to_string(golden).expect("the list is there");
    // What the process takes up is known on Linux only.
    let here = |line: &&str| cfg!(target_os = "linux") || !line.starts_with("process_");
    let expected: Vec<&str> = golden.lines().filter(here).collect();
    assert_eq!(found, expected, "if this is meant: UPDATE_GOLDEN=1 cargo test -p supercargo-server");
}

/// The metrics' reference, as docs/metrics.md has it.
fn reference(families: &[Family]) -> String {
    let row = |family: &Family| {
        let description = describe(family);
        let labels = description.split(' ').nth(2).unwrap_or("-").replace('-', "").replace(',', ", ");
        let help = family.help.replace('|', "\\|");
        format!("| `{}` | {} | {labels} | {help} |\n", family.name, family.kind)
    };
    let table = |title: &str, belongs: &dyn Fn(&str) -> bool| {
        let rows: String = families.iter().filter(|family| belongs(&family.name)).map(row).collect();
        format!("\n## {title}\n\n| name | type | labels | what it measures |\n|---|---|---|---|\n{rows}")
    };
    [
        table("Scheduling, by kube-scheduler's names", &|name| name.starts_with("scheduler_")),
        table("What only Supercargo has", &|name| name.starts_with("supercargo_")),
        table("Requests to the API server, leader election", &|name| {
            name.starts_with("rest_client_") || name.starts_with("leader_election_")
        }),
        table("The process, its version and its health", &|name| {
            name.starts_with("process_") || name.starts_with("kubernetes_")
        }),
        table("Pods' requests and limits, at /metrics/resources", &|name| name.starts_with("kube_pod_")),
    ]
    .concat()
}

#[tokio::test]
async fn the_reference_in_the_documents_is_that_of_the_code() {
    let server = Setup::default().start().await;
    measure_everything(&server.metrics);
    get(server.address, "/readyz", &[]).await;
    let mut families = Vec::new();
    for path in ["/metrics", "/metrics/resources", "/metrics/slis"] {
        families.extend(parse(&get(server.address, path, &[ANN]).await.body));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let text = std::fs::read_to_string(path).expect("the page");
    const BEGIN: &str = "<!-- metrics -->\n";
    let (before, rest) = text.split_once(BEGIN).expect("where the tables begin");
    let (_, after) = rest.split_once("<!-- /metrics -->").expect("where they end");
    let expected = format!("{before}{BEGIN}{}\n<!-- /metrics -->{after}", reference(&families));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &expected).expect("the page can be written");
        return;
    }
    assert!(
        text == expected,
        "docs/metrics.md is stale: UPDATE_DOCS=1 cargo test -p supercargo-server --test http"
    );
}

#[tokio::test]
async fn what_is_served_is_the_classic_text_format() {
    let server = Setup::default().start().await;
    measure_everything(&server.metrics);
    get(server.address, "/readyz", &[]).await;
    for path in ["/metrics", "/metrics/slis", "/metrics/resources"] {
        let answer = get(server.address, path, &[ANN]).await;
        assert_eq!(answer.header("content-type"), CONTENT_TYPE);
        assert!(!parse(&answer.body).is_empty(), "{path}");
    }
    assert_eq!(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
}

#[tokio::test]
async fn configurations_are_shown_by_name() {
    let server = Setup::default().start().await;
    let answer = get(server.address, "/configz", &[ANN]).await;
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.body, r#"{"kubescheduler.config.k8s.io":{"kind":"KubeSchedulerConfiguration"}}"#);
}

fn value(metrics: &Metrics, name: &str, label: &str) -> Option<f64> {
    let families = parse(&metrics.text());
    let samples = families.into_iter().flat_map(|family| family.samples);
    let mut found =
        samples.filter(|(n, labels, _)| n == name && labels.iter().any(|(_, value)| value == label));
    found.next().map(|(_, _, value)| value)
}

#[test]
fn series_are_there_only_once_something_was_measured() {
    let metrics = metrics();
    let profile = metrics.profile("batch", &["NodeName"]);
    let name = "scheduler_framework_extension_point_duration_seconds_count";
    assert_eq!(value(&metrics, name, "batch"), None);
    profile.ran(ExtensionPoint::Filter, Status::Success, TOOK);
    assert_eq!(value(&metrics, name, "batch"), Some(1.0));
}

#[test]
fn a_profile_that_is_no_more_leaves_nothing_behind() {
    let metrics = metrics();
    measure_everything(&metrics);
    let profile = metrics.profile("default-scheduler", &["NodeResourcesFit"]);
    assert!(metrics.text().contains("default-scheduler"));
    metrics.forget_profile(&profile);
    assert!(!metrics.text().contains("default-scheduler"));
}

#[test]
fn a_task_counts_while_it_runs() {
    let metrics = metrics();
    let task = metrics.scheduling.task(Task::Binding);
    assert_eq!(value(&metrics, "scheduler_goroutines", "binding"), Some(1.0));
    drop(task);
    assert_eq!(value(&metrics, "scheduler_goroutines", "binding"), Some(0.0));
}

#[test]
fn pods_that_come_are_added_up() {
    let metrics = metrics();
    metrics.queues.incoming("active", "UnschedulablePodAdd", 2);
    metrics.queues.incoming("active", "UnschedulablePodAdd", 3);
    assert_eq!(value(&metrics, "scheduler_queue_incoming_pods_total", "UnschedulablePodAdd"), Some(5.0));
}

#[test]
fn many_attempts_are_counted_together() {
    let metrics = metrics();
    for attempts in [14, 15, 100] {
        metrics.scheduling.pod_scheduled(attempts, TOOK);
    }
    let name = "scheduler_pod_scheduling_sli_duration_seconds_count";
    assert_eq!((value(&metrics, name, "14"), value(&metrics, name, "15+")), (Some(1.0), Some(2.0)));
}

#[test]
fn the_older_summary_has_its_quantiles() {
    let metrics = metrics();
    metrics.scheduling.step(Operation::Binding, Duration::from_millis(8));
    let text = metrics.text();
    let summary =
        parse(&text).into_iter().find(|f| f.name == "scheduler_scheduling_duration_seconds").unwrap();
    let shape: Vec<_> = summary.samples.iter().map(|(name, labels, _)| (&**name, labels.len())).collect();
    let name = "scheduler_scheduling_duration_seconds";
    let (sum, count) = (format!("{name}_sum"), format!("{name}_count"));
    assert_eq!(shape, [(name, 2), (name, 2), (name, 2), (&*sum, 1), (&*count, 1)]);
}
