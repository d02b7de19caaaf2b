//! The scheduler on virtual time: what is tried when, and what comes of it in the end.

mod effects;

use std::sync::Arc;

use serde_json::json;
use supercargo_engine::{Engine, Outcome, Placement};
use supercargo_framework::registry::{Registration, Registry};
use supercargo_manifest::Source;
use supercargo_model::{
    Key, Pod,
    testing::{Builder, cluster, node, object, pod},
};
use supercargo_scheduler::{
    offline::{Attempt, OfflineScheduler},
    setup::{self, Overrides},
};

type Decide = fn(&mut Engine, &Arc<Pod>) -> Option<Placement>;

/// A scheduler with the plugins of a registry, some of them enabled besides the default ones.
fn scheduler(
    registry: &Registry,
    enabled: &str,
    objects: &[Builder],
    pending: &[Builder],
) -> OfflineScheduler {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{{plugins: {{{enabled}}}}}]"
    );
    let loaded = supercargo_config::load(&Source::new("config", text), registry).expect("a configuration");
    let configuration = loaded.configuration;
    let cluster = cluster(objects.iter().cloned());
    let engine = setup::engine(cluster, &configuration, registry, Overrides::default()).expect("an engine");
    let pending = pending.iter().cloned().map(Builder::pod);
    OfflineScheduler::new(engine, setup::queue_settings(&configuration), pending)
}

/// Everything that happens: second, pod, number of the attempt, and what came of it.
fn course_of(scheduler: &mut OfflineScheduler, decide: Decide) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(attempt) = scheduler.next_attempt(|engine, pod, _| decide(engine, pod)) {
        lines.push(line(&attempt));
        assert!(lines.len() < 100, "it does not end: {lines:#?}");
    }
    lines
}

fn course(objects: &[Builder], pending: &[Builder], decide: Decide) -> Vec<String> {
    course_of(&mut scheduler(&supercargo_plugins::registry(), "", objects, pending), decide)
}

/// The same with a plugin of the test's own.
fn course_with(
    plugin: impl Into<Registration>,
    enabled: &str,
    objects: &[Builder],
    pending: &[Builder],
) -> Vec<String> {
    let mut registry = supercargo_plugins::registry();
    registry.add(plugin);
    course_of(&mut scheduler(&registry, enabled, objects, pending), |engine, pod| engine.place(pod))
}

fn line(attempt: &Attempt) -> String {
    let what = match &attempt.placement {
        Placement::On { node, .. } => node.to_string(),
        Placement::Decided(decision) => match (&decision.outcome, &decision.preemption) {
            (Outcome::Scheduled { node }, _) => node.to_string(),
            (Outcome::Gated, _) => "gated".to_owned(),
            (Outcome::Error { message }, _) => message.clone(),
            (Outcome::Unschedulable, Some(Ok(nomination))) => {
                let victims: Vec<&str> = nomination.victims.iter().map(|victim| &*victim.name).collect();
                format!("preempts {} on {}", victims.join(" "), nomination.node)
            }
            (Outcome::Unschedulable, _) => "unschedulable".to_owned(),
        },
    };
    format!("{}s {}#{}: {what}", attempt.at.as_secs(), attempt.pod.name, attempt.number)
}

/// Both paths must take the same course.
fn check(what: &str, objects: &[Builder], pending: &[Builder], expected: &[&str]) {
    let fast = course(objects, pending, |engine, pod| engine.place(pod));
    assert_eq!(fast, expected, "{what}");
    let full = |engine: &mut Engine, pod: &Arc<Pod>| {
        engine.decide(pod).map(|decision| Placement::Decided(Box::new(decision)))
    };
    assert_eq!(course(objects, pending, full), expected, "{what}, in full");
}

/// Its deletion was asked for.
fn leaving(pod: Builder) -> Builder {
    pod.set("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z")
}

fn sized(name: &str, cpu: &str) -> Builder {
    node(name).allocatable("cpu", cpu)
}

fn asks(name: &str, cpu: &str) -> Builder {
    pod(name).container(&[("cpu", cpu)])
}

/// It wants to be beside a pod of this app.
fn beside(pod: Builder, app: &str) -> Builder {
    let term =
        json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"});
    pod.set("/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/-", term)
}

#[test]
fn the_important_come_first_and_the_rest_waits() {
    check(
        "one place for two",
        &[sized("n", "1")],
        &[asks("low", "1"), asks("high", "1").priority(5)],
        &["0s high#1: n", "0s low#1: unschedulable"],
    );
}

#[test]
fn gated_pods_are_told_first_and_never_tried() {
    check(
        "a gate",
        &[sized("n", "1")],
        &[asks("free", "1"), asks("gated", "1").set("/spec/schedulingGates/-", json!({"name": "wait"}))],
        &["0s gated#0: gated", "0s free#1: n"],
    );
}

#[test]
fn victims_leave_after_their_grace_period_and_the_room_is_kept_meanwhile() {
    check(
        "one victim",
        &[sized("n", "2"), asks("v", "2").on("n")],
        &[asks("low", "2"), asks("high", "2").priority(10)],
        &[
            "0s high#1: preempts v on n",
            // Not even a less important pod that would fit without the victim gets the room.
            "0s low#1: unschedulable",
            "30s high#2: n",
            "30s low#2: unschedulable",
        ],
    );
    check(
        "room beside the preemptor is free to all",
        &[sized("n", "3"), asks("v", "3").on("n")],
        &[asks("low", "1"), asks("high", "2").priority(10)],
        &["0s high#1: preempts v on n", "0s low#1: unschedulable", "30s high#2: n", "30s low#2: n"],
    );
}

#[test]
fn each_victim_takes_as_long_to_leave_as_it_says() {
    let says = |pod: Builder, seconds: i64| pod.set("/spec/terminationGracePeriodSeconds", seconds);
    let cases = [(0, "0s high#2: n"), (5, "5s high#2: n"), (300, "300s high#2: n")];
    for (seconds, expected) in cases {
        check(
            "one victim",
            &[sized("n", "2"), says(asks("v", "2").on("n"), seconds)],
            &[asks("high", "2").priority(10)],
            &["0s high#1: preempts v on n", expected],
        );
    }
    check(
        "the slower one is waited for",
        &[sized("n", "2"), says(asks("v", "1").on("n"), 5), asks("w", "1").on("n")],
        &[asks("high", "2").priority(10)],
        &["0s high#1: preempts v w on n", "5s high#2: unschedulable", "30s high#3: n"],
    );
    check(
        "one that leaves anyway",
        &[sized("n", "1"), leaving(asks("v", "1").on("n")).set("/metadata/deletionGracePeriodSeconds", 7)],
        &[asks("p", "1")],
        &["0s p#1: unschedulable", "7s p#2: n"],
    );
}

#[test]
fn what_happens_wakes_those_whom_it_helps_and_nobody_else() {
    check(
        "a pod that another waits for",
        &[sized("n", "4")],
        &[
            beside(asks("waits", "1").priority(10), "a"),
            asks("big", "8").priority(9),
            asks("a", "1").label("app", "a"),
        ],
        // Nobody else wants a turn, so that it is not kept back.
        &["0s waits#1: unschedulable", "0s big#1: unschedulable", "0s a#1: n", "0s waits#2: n"],
    );
    check(
        "a pod that leaves anyway",
        &[sized("n", "1"), leaving(asks("leaves", "1").on("n"))],
        &[asks("p", "1")],
        &["0s p#1: unschedulable", "30s p#2: n"],
    );
}

#[test]
fn a_preemption_that_was_under_way_goes_on() {
    let preempted = json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
    check(
        "the status names the node, and the victim is leaving",
        &[sized("n", "1"), leaving(asks("v", "1").on("n")).set("/status/conditions/-", preempted)],
        &[asks("p", "1").priority(10).set("/status/nominatedNodeName", "n")],
        &["0s p#1: unschedulable", "30s p#2: n"],
    );
}

fn class(provisioner: &str) -> Builder {
    object(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "late"},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}))
}

fn volume(name: &str) -> Builder {
    object(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"storageClassName": "late", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                 "volumeMode": "Filesystem", "local": {"path": "/disk"}},
        "status": {"phase": "Available"}}))
}

fn claim(name: &str) -> Builder {
    object(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"storageClassName": "late", "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem",
                 "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"}}))
}

#[test]
fn a_volume_is_promised_once() {
    check(
        "one volume for two claims",
        &[sized("n", "4"), class("kubernetes.io/no-provisioner"), volume("pv"), claim("c"), claim("d")],
        &[asks("p", "1").claim("c"), asks("q", "1").claim("d")],
        &["0s p#1: n", "0s q#1: unschedulable"],
    );
}

/// The volume of a claim in the end, and the time it took to get there.
fn volume_of(claim: &str, scheduler: &OfflineScheduler) -> (String, u64) {
    let bound = scheduler.engine().cluster().claim(&Key::new("default", claim)).expect("the claim");
    (bound.volume.to_string(), scheduler.now().as_secs())
}

#[test]
fn claims_that_wait_for_a_pod_are_bound_before_it_is() {
    let objects = [sized("n", "4"), class("kubernetes.io/no-provisioner"), volume("pv"), claim("c")];
    let pods = [asks("p", "1").claim("c"), asks("q", "1").claim("c")];
    let mut scheduler = scheduler(&supercargo_plugins::registry(), "", &objects, &pods);
    let course = course_of(&mut scheduler, |engine, pod| engine.place(pod));
    assert_eq!(course, ["0s p#1: n", "0s q#1: n"]);
    // VolumeBinding looks a second after it has written.
    assert_eq!(volume_of("c", &scheduler), ("pv".to_owned(), 1));
}

#[test]
fn a_volume_is_made_where_the_first_pod_goes_and_the_second_follows_it() {
    let zoned = |name, zone| sized(name, "2").label("zone", zone).label("name", name);
    let drivers = |node: &str| {
        object(json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
            "spec": {"drivers": [{"name": "example.com", "nodeID": node, "topologyKeys": ["zone"]}]}}))
    };
    let nodes = [zoned("a", "east"), zoned("b", "east"), zoned("c", "west")];
    let objects = [class("example.com"), claim("c"), drivers("a"), drivers("b"), drivers("c")];
    let pods = [
        asks("p", "2").claim("c").priority(9).set("/spec/nodeSelector/name", "b"),
        asks("q", "2").claim("c").priority(9),
        asks("r", "2").claim("c"),
    ];
    let objects = [&nodes[..], &objects[..]].concat();
    let mut scheduler = scheduler(&supercargo_plugins::registry(), "", &objects, &pods);
    let course = course_of(&mut scheduler, |engine, pod| engine.place(pod));
    // There is room on c, but a volume of the zone east cannot be reached from there.
    assert_eq!(course, ["0s p#1: b", "0s q#1: a", "0s r#1: unschedulable"]);
    assert_eq!(volume_of("c", &scheduler).0, "pvc-c");
}

#[test]
fn it_ends_where_nothing_can_help() {
    check("no node at all", &[], &[pod("p")], &["0s p#1: unschedulable"]);
    check("no pod at all", &[sized("n", "1")], &[], &[]);
}

#[test]
fn copied_pods_are_pods_of_their_own() {
    check(
        "the same uid twice",
        &[sized("n", "4")],
        &[asks("p", "1"), asks("q", "1").set("/metadata/uid", "p")],
        &["0s p#1: n", "0s q#1: n"],
    );
}
