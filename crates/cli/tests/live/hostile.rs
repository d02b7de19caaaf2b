//! Whoever has a namespace of their own tries to stop the scheduler: it keeps its lease, tells its health, and binds the
//! pods of others.

use serde_json::{Value, json};
use supercargo_testcluster::{Fault, FaultRule, Rule, User};

use crate::{
    draft::{Draft, node, pod},
    process::{Resource, SchedulerProcess, wait_until},
    stage::Stage,
};

const PREFERRED: &str = "/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution";

fn create_all(stage: &Stage, drafts: impl IntoIterator<Item = Draft>) {
    let objects = drafts.into_iter().map(|draft| stage.placed(draft).1);
    stage.cluster().create_many(objects).expect("objects");
}

/// A scheduler that loses its lease if it cannot renew it for two seconds.
fn leader(stage: &Stage, configuration: &str) -> SchedulerProcess {
    let namespace = format!("--leader-elect-resource-namespace={}", stage.name);
    let terms = [
        "--leader-elect=true",
        "--leader-elect-lease-duration=3s",
        "--leader-elect-renew-deadline=2s",
        "--leader-elect-retry-period=500ms",
        &namespace,
    ];
    let scheduler = stage.scheduler_with(configuration, &terms);
    wait_until("it leads", || scheduler.log().contains("became leader"));
    scheduler
}

/// Waits until something holds; health is told all the time, and the lease kept.
#[track_caller]
fn keeps_well_until(scheduler: &SchedulerProcess, what: &str, mut holds: impl FnMut() -> bool) {
    wait_until(what, || {
        assert_eq!(scheduler.get("/livez"), Some((200, "ok".to_owned())), "until {what}");
        holds()
    });
    assert!(!scheduler.log().contains("the lease is lost"), "until {what}");
}

#[test]
fn over_a_thousand_claims_that_nobody_provisions_then_others_are_bound() {
    const WAITING: usize = 1_100;
    let stage = Stage::in_memory();
    let cluster = stage.cluster();
    let roomy = |i: usize| node(&i.to_string()).with("/status/allocatable/pods", "100".into());
    create_all(&stage, (0..20).map(roomy));
    cluster
        .create(
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "nobody"},
            "provisioner": "nobody.example", "volumeBindingMode": "WaitForFirstConsumer"}),
        )
        .expect("a class");
    let scheduler = leader(&stage, "");
    let claim = |i: usize| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": format!("claim-{i}"), "namespace": stage.name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "nobody",
                     "resources": {"requests": {"storage": "1Gi"}}}})
    };
    cluster.create_many((0..WAITING).map(claim)).expect("claims");
    let waits = |i: usize| {
        let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": format!("claim-{i}")}}]);
        pod(&format!("waits-{i}")).with("/spec/volumes", volume)
    };
    create_all(&stage, (0..WAITING).map(waits));
    // Each has a node, and waits for a volume there.
    keeps_well_until(&scheduler, "all of them wait", || {
        scheduler.metric("scheduler_goroutines", "operation=\"binding\"") >= WAITING as f64
    });
    stage.make(pod("other"));
    keeps_well_until(&scheduler, "the other is bound", || stage.node_of("other").is_some());
    assert_eq!(cluster.pods_bound(), 1);
}

/// A term about all pods but those with a label that nobody has: there is nothing to look it up by.
fn term(i: usize) -> Value {
    let absent = json!({"key": format!("x{i}"), "operator": "DoesNotExist"});
    let key = if i.is_multiple_of(2) { "kubernetes.io/hostname" } else { "e2e" };
    json!({"weight": 1 + i % 100, "podAffinityTerm": {"topologyKey": key, "namespaceSelector": {},
           "labelSelector": {"matchExpressions": [absent]}}})
}

#[test]
fn a_pod_as_large_as_can_be_full_of_preferred_terms_then_the_lease_is_kept_and_others_are_bound() {
    let stage = Stage::in_memory();
    create_all(&stage, (0..5_000).map(|i| node(&i.to_string())));
    let scheduler = leader(&stage, "");
    // Each of a template of its own.
    create_all(&stage, (0..500).map(|i| pod(&format!("runs-{i}")).cpu("100m")));
    keeps_well_until(&scheduler, "others run", || stage.cluster().pods_bound() == 500);
    let terms: Value = (0..8_000).map(term).collect();
    let hostile = pod("hostile").with(PREFERRED, terms);
    assert!(hostile.0.to_string().len() > 1_300_000, "an API server takes 1.5 MB");
    create_all(&stage, [hostile]);
    keeps_well_until(&scheduler, "it is bound", || stage.node_of("hostile").is_some());
    // Its terms are about all others from now on.
    create_all(&stage, (0..100).map(|i| pod(&format!("later-{i}")).cpu("100m")));
    keeps_well_until(&scheduler, "the others are bound", || stage.cluster().pods_bound() == 601);
}

#[test]
fn pods_that_ask_for_made_up_resources_then_little_memory_is_taken_and_given_back() {
    const NAMES: usize = 2_000;
    let stage = Stage::in_memory();
    create_all(&stage, (0..1_000).map(|i| node(&i.to_string())));
    let scheduler = leader(&stage, "");
    let before_kib = scheduler.resident_kib();
    let asks = |i: usize, amount: &str| {
        let request = |k: usize| (format!("example.com/made-up-{i}-{k}"), Value::from(amount));
        let requests: Value = (0..NAMES).map(request).collect::<serde_json::Map<_, _>>().into();
        pod(&format!("asks-{i}-{amount}")).with("/spec/containers/0/resources/requests", requests)
    };
    for round in 0..6 {
        create_all(&stage, [asks(round, "0"), asks(round, "1")]);
        // One asks for nothing of anything, and runs; the other never does.
        keeps_well_until(&scheduler, "one of them is bound", || stage.cluster().pods_bound() == 1);
        stage.wait_until_rejected(&format!("asks-{round}-1"));
        for amount in ["0", "1"] {
            let gone = stage.cluster().delete_now("pods", &stage.name, &format!("asks-{round}-{amount}"));
            gone.expect("it was there");
        }
        wait_until("they are gone", || stage.cluster().pods_bound() == 0);
    }
    // A column for each name would take 2,000 × 1,000 × 16 bytes for each pod: 32 MB, of which there are twelve.
    let grown_kib = scheduler.resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < 64 << 10, "{grown_kib} KiB more");
    // Why they do not fit is some 90 KB each, and is told as often as they are tried.
    let longest = scheduler.log().lines().map(str::len).max();
    assert!(longest < Some(2 << 10), "a line of {longest:?} bytes");
}

#[test]
fn hundreds_of_preemptors_where_few_requests_are_allowed_then_the_lease_is_kept() {
    const NODES: usize = 100;
    let stage = Stage::in_memory();
    stage.make_priority_classes();
    create_all(&stage, (0..NODES).map(|i| node(&i.to_string())));
    let fills = |i: usize| {
        let on = stage.node_name(&(i / 4).to_string());
        pod(&format!("low-{i}")).cpu("1").class("low").with("/spec/nodeName", on.into())
    };
    create_all(&stage, (0..NODES * 4).map(fills));
    let scheduler = leader(&stage, "clientConnection: {qps: 50, burst: 100}");
    let before = stage.cluster().bindings().len();
    // Four requests for each: 400 of them take 32 s, and the lease is lost after two.
    create_all(&stage, (0..NODES * 4).map(|i| pod(&format!("high-{i}")).cpu("1").class("high")));
    let bound = || stage.cluster().bindings().len() - before;
    keeps_well_until(&scheduler, "an eighth of them is bound", || bound() >= NODES / 2);
    assert_eq!(stage.cluster().violations(), []);
}

/// A connection for each of the pods that are to be bound would take all descriptors; the lease needs a new one now and then,
/// and so does whoever asks for health.
#[test]
fn slow_writes_and_a_thousand_descriptors_then_the_lease_is_kept() {
    let stage = Stage::in_memory();
    let cluster = stage.cluster();
    let roomy = |i: usize| node(&i.to_string()).with("/status/allocatable/pods", "100".into());
    create_all(&stage, (0..30).map(roomy));
    let scheduler = leader(&stage, "clientConnection: {qps: 10000, burst: 10000}");
    scheduler.limit(Resource::FileDescriptors, Some(1_024));
    for (verb, resource) in [("create", "pods/binding"), ("patch", "pods/status"), ("create", "events")] {
        let slow = FaultRule::new(Fault::Delay { millis: 4_000 });
        cluster.faults().add(slow.verb(verb).resource(resource));
    }
    cluster.faults().add(FaultRule::new(Fault::HangUp).verb("update").resource("leases").every(3));
    create_all(&stage, (0..1_500).map(|i| pod(&format!("waits-{i}")).cpu("1m")));
    // Twice as many as are bound at once.
    keeps_well_until(&scheduler, "the second ones are bound", || cluster.bindings().len() > 32);
    assert!(scheduler.open_files() < 512, "{} descriptors", scheduler.open_files());
}

#[test]
fn thousands_of_paths_without_credentials_then_few_reviews_are_asked_for_and_others_are_served() {
    let stage = Stage::in_memory();
    let cluster = stage.cluster();
    cluster.access().add_token("anns-token", User::named("ann"));
    let metrics =
        Rule { verbs: vec!["get".into()], non_resource_urls: vec!["/metrics".into()], ..Rule::default() };
    cluster.access().grant("ann", metrics);
    let port = crate::serving::free_port();
    let flags = ["--bind-address=127.0.0.1", &format!("--secure-port={port}")];
    let scheduler = stage.start_secure("", &flags);
    let asked = |path: &str, token: &str| crate::serving::status_with_token(port, path, token);
    wait_until("it serves", || asked("/livez", "") == Some(200));
    let refused = (0..300).filter(|i| asked(&format!("/metrics/{i}"), "") == Some(429)).count();
    assert!(refused > 100, "{refused} were told to wait; {}", scheduler.log());
    assert_eq!(asked("/metrics", "anns-token"), Some(200), "who is known has questions of their own");
    assert_eq!(asked("/livez", ""), Some(200));
}
