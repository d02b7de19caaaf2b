//! What happens to the scheduler's own process, where nothing is wrong with the API server: also on a real cluster.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    draft::{node, pod},
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

const NODES: usize = 10;
const PODS_ON_A_NODE: usize = 10;
const PODS: usize = NODES * PODS_ON_A_NODE;

/// A stage with exactly as much room as its pods need.
fn filled_stage() -> Stage {
    let stage = Stage::new();
    stage.make_all((0..NODES).map(|i| node(&format!("{i}"))));
    stage.make_all((0..PODS).map(|i| pod(&format!("p-{i}")).cpu("400m")));
    stage
}

/// How many pods each node has.
fn pods_by_node(stage: &Stage) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for pod in stage.client.list(&format!("/api/v1/namespaces/{}/pods", stage.name)) {
        if let Some(node) = pod["spec"]["nodeName"].as_str() {
            *counts.entry(node.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn bound(stage: &Stage) -> usize {
    pods_by_node(stage).values().sum()
}

#[track_caller]
fn all_nodes_are_full(stage: &Stage) {
    wait_until("every pod is bound", || bound(stage) == PODS);
    assert!(pods_by_node(stage).values().all(|count| *count == PODS_ON_A_NODE));
}

#[test]
fn killed_in_the_middle_and_started_again_then_every_node_is_full() {
    let stage = filled_stage();
    let mut scheduler = stage.scheduler();
    wait_until("some are bound", || bound(&stage) > 0);
    scheduler.kill();
    let _scheduler = stage.scheduler();
    all_nodes_are_full(&stage);
}

fn candidate(stage: &Stage) -> SchedulerProcess {
    let process = stage.start(
        "",
        &[
            "--leader-elect=true",
            "--leader-elect-lease-duration=3s",
            "--leader-elect-renew-deadline=2s",
            "--leader-elect-retry-period=500ms",
            &format!("--leader-elect-resource-namespace={}", stage.name),
        ],
    );
    wait_until("it serves", || process.answers("/healthz", 200));
    process
}

fn holder(stage: &Stage) -> Value {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/kube-scheduler", stage.name);
    stage.client.get(&path).expect("the lease")["spec"]["holderIdentity"].clone()
}

#[test]
fn the_leader_is_killed_then_another_takes_over_and_gives_the_lease_back_in_the_end() {
    let stage = filled_stage();
    let mut first = candidate(&stage);
    wait_until("it leads", || first.log().contains("became leader"));
    let first_holder = holder(&stage);
    let mut second = candidate(&stage);
    first.kill();
    wait_until("the other leads", || second.log().contains("became leader"));
    all_nodes_are_full(&stage);
    assert_ne!(holder(&stage), first_holder);
    second.signal("TERM");
    assert_eq!(second.wait_for_end().code(), Some(0));
    assert_eq!(holder(&stage).as_str().unwrap_or_default(), "");
}
