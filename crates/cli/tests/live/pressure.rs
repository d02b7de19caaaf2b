//! Much that is in vain, and much that is wanted at once: whoever can run is served all the same.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_testcluster::{Fault, FaultRule, PatchKind};

use crate::{
    draft::{node, pod},
    process::wait_until,
    stage::Stage,
};

const NODES: usize = 20;
const PODS_ON_A_NODE: usize = 4;
const IMPORTANT: usize = 40;

#[test]
fn many_important_pods_and_evictions_that_fail_then_each_evicts_no_more_than_it_needs() {
    let stage = Stage::in_memory();
    stage.make_priority_classes();
    let cluster = stage.cluster();
    let nodes = (0..NODES).map(|i| stage.placed(node(&format!("{i}"))).1);
    cluster.create_many(nodes).expect("nodes");
    let pods = |prefix: &'static str, class: &'static str, count: usize| {
        (0..count).map(move |i| pod(&format!("{prefix}-{i}")).cpu("1").class(class))
    };
    let scheduler = stage.scheduler();
    let all = NODES * PODS_ON_A_NODE;
    cluster.create_many(pods("low", "low", all).map(|draft| stage.placed(draft).1)).expect("pods");
    wait_until("the nodes are full", || cluster.pods_bound() == all);
    for fault in [Fault::Answer { code: 500, retry_after_seconds: 0 }, Fault::CommitThenHangUp, Fault::HangUp]
    {
        cluster.faults().add(FaultRule::new(fault).verb("delete").resource("pods").every(5));
    }
    let high = pods("high", "high", IMPORTANT).map(|draft| stage.placed(draft).1);
    cluster.create_many(high).expect("pods");
    let bound = |prefix: &str| {
        let pods = cluster.list("pods", &stage.name).expect("pods");
        let is = |pod: &&Value| {
            pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix))
                && !pod["spec"]["nodeName"].is_null()
        };
        pods.iter().filter(is).count()
    };
    wait_until("all important pods are bound", || bound("high") == IMPORTANT);
    assert_eq!(bound("low"), all - IMPORTANT, "as many had to go as came");
    assert_eq!(cluster.violations(), []);
    assert!(scheduler.metric("scheduler_preemption_attempts_total", "") >= IMPORTANT as f64);
}

#[test]
fn a_storm_of_heartbeats_and_hopeless_important_pods_then_the_others_are_served() {
    let stage = Stage::in_memory();
    stage.make_priority_classes();
    let cluster = stage.cluster();
    let nodes = (0..NODES).map(|i| stage.placed(node(&format!("{i}"))).1);
    cluster.create_many(nodes).expect("nodes");
    let _scheduler = stage.scheduler();
    let hopeless = (0..200).map(|i| pod(&format!("hopeless-{i}")).cpu("64").class("high"));
    cluster.create_many(hopeless.map(|draft| stage.placed(draft).1)).expect("pods");
    stage.wait_until_rejected("hopeless-199");
    let over = AtomicBool::new(false);
    let names: Vec<String> = (0..NODES).map(|i| stage.node_name(&i.to_string())).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut beat = 0;
            while !over.load(Ordering::Relaxed) {
                beat += 1;
                let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True",
                    "lastHeartbeatTime": format!("2026-01-01T00:00:{:02}Z", beat % 60)}]}});
                let name = &names[beat % NODES];
                cluster
                    .patch("nodes/status", "", name, PatchKind::StrategicMerge, status)
                    .expect("a heartbeat");
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        stage.make_all((0..20).map(|i| pod(&format!("low-{i}")).cpu("1").class("low")));
        (0..20).for_each(|i| drop(stage.wait_until_bound(&format!("low-{i}"))));
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn thousands_of_failing_pods_and_a_slow_events_api_then_memory_is_bounded_and_others_are_bound() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let scheduler = stage.scheduler();
    let slow = FaultRule::new(Fault::Delay { millis: 2000 }).resource("events");
    stage.cluster().faults().add(slow);
    let before_kib = scheduler.resident_kib();
    let failing = (0..3000).map(|i| pod(&format!("failing-{i}")).cpu("64"));
    stage.cluster().create_many(failing.map(|draft| stage.placed(draft).1)).expect("pods");
    stage.make(pod("p"));
    assert_eq!(stage.wait_until_bound("p"), "a");
    wait_until("all have been tried", || {
        scheduler.metric("scheduler_pending_pods", "queue=\"unschedulable\"") == 3000.0
    });
    let grown_kib = scheduler.resident_kib().saturating_sub(before_kib);
    assert!(grown_kib < 64 << 10, "{grown_kib} KiB more");
    for i in 0..3000 {
        let gone = stage.cluster().delete_now("pods", &stage.name, &format!("failing-{i}"));
        gone.expect("it was there");
    }
    wait_until("nobody waits", || scheduler.metric("scheduler_pending_pods", "") == 0.0);
}

#[test]
fn a_pending_pod_that_is_being_deleted_then_it_is_not_scheduled() {
    let stage = Stage::new();
    let _scheduler = stage.scheduler();
    stage.make(node("closed").tainted("e2e/closed"));
    stage.make(pod("leaving").with("/metadata/finalizers", json!(["e2e.example/wait"])));
    stage.wait_until_rejected("leaving");
    stage.client.delete(&stage.pod_path("leaving"));
    stage.make(node("a"));
    stage.make(pod("control"));
    assert_eq!(stage.wait_until_bound("control"), "a");
    assert_eq!(stage.node_of("leaving"), None);
    stage.client.patch(&stage.pod_path("leaving"), &json!({"metadata": {"finalizers": null}}));
    wait_until("it is gone", || stage.pod("leaving").is_none());
}
