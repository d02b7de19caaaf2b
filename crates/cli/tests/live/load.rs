//! A cluster under load: exactly as many pods as there is room for, so that room that is lost or given twice shows.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use serde_json::json;
use supercargo_testcluster::{Fault, FaultRule, TestCluster};

use crate::{
    draft::{node, pod},
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

const NODES: usize = 60;
const PODS_ON_A_NODE: usize = 10;
/// How many pods there are at first.
pub(crate) const PODS: usize = NODES * PODS_ON_A_NODE;
/// From the end of a fault on.
const TIME_TO_EMPTY: Duration = Duration::from_secs(30);

/// A stage with nodes, and pods that fill them to the last.
pub(crate) fn loaded_stage() -> Stage {
    let stage = empty_stage();
    make_pods(&stage, "p", PODS);
    stage
}

/// A stage with nodes that are exactly full with as many pods as there are to be at first.
pub(crate) fn empty_stage() -> Stage {
    let stage = Stage::in_memory();
    let nodes = (0..NODES).map(|i| stage.placed(node(&format!("{i:03}"))).1);
    stage.cluster().create_many(nodes).expect("nodes");
    stage
}

/// Makes pods of a tenth of a node each, of a few shapes.
pub(crate) fn make_pods(stage: &Stage, prefix: &str, count: usize) {
    let pods = (0..count).map(|i| {
        let app = format!("app-{}", i % 4);
        let spread = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": app}}}]);
        let draft = pod(&format!("{prefix}-{i:04}")).cpu("400m").label("app", &app);
        stage.placed(if i % 4 == 0 { draft.with("/spec/topologySpreadConstraints", spread) } else { draft }).1
    });
    stage.cluster().create_many(pods).expect("pods");
}

/// Bindings take their time, so that there is a middle of the work for something to happen in.
pub(crate) fn slow_bindings(cluster: &TestCluster) {
    cluster.faults().add(FaultRule::new(Fault::Delay { millis: 40 }).verb("create").resource("pods/binding"));
}

pub(crate) fn wait_for_bindings(stage: &Stage, count: usize) {
    wait_until(&format!("{count} pods are bound"), || stage.cluster().bindings().len() >= count);
}

/// Every pod is bound, exactly once, with room for all, and nobody waits: all of it soon after the fault's end.
#[track_caller]
pub(crate) fn all_is_well(stage: &Stage, scheduler: &SchedulerProcess, pods: usize) {
    let cluster = stage.cluster();
    let since = Instant::now();
    wait_until("every pod is bound", || {
        assert!(since.elapsed() < TIME_TO_EMPTY, "{} of {pods} bound in time", cluster.pods_bound());
        cluster.pods_bound() == pods
    });
    let waiting = |queue: &str| scheduler.metric("scheduler_pending_pods", &format!("queue=\"{queue}\""));
    wait_until("the queue is empty", || {
        assert!(since.elapsed() < TIME_TO_EMPTY, "the queue did not empty in time");
        ["active", "backoff", "unschedulable"].into_iter().map(waiting).sum::<f64>() == 0.0
    });
    let bindings = cluster.bindings();
    let identities: HashSet<&str> = bindings.iter().map(|binding| binding.uid.as_str()).collect();
    assert_eq!(cluster.violations(), []);
    assert_eq!((bindings.len(), identities.len()), (pods, pods));
    assert_eq!(scheduler.metric("scheduler_pod_scheduled_after_flush_total", ""), 0.0);
}
