//! Deciding gives way: however long decisions take and however many pods fit nowhere, the watches get their turn.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use serde_json::json;
use supercargo_framework::{
    Prepared, Status, Verdict,
    points::{Filter, PreFilter, PreFilterOutcome},
    registry::{Registry, define},
};
use supercargo_model::{Cluster, NodeInfo, Pod, object::Kind};

use super::{extenders, pod_json, put, scheduler_on, synced};
use crate::{
    scheduler::{
        SLICE,
        meter::{DecidedBy, Meter},
    },
    testing::{Answer, FakeWorld},
    world::World,
};

const NODES: usize = 5_000;
const PODS: usize = 64;
/// How long it takes to ask the plugin once; a decision asks it on both paths.
const TOOK: Duration = Duration::from_millis(2);
const DECISION: Duration = Duration::from_millis(4);

/// Lets time pass whenever a pod is decided.
#[derive(Clone, Default)]
struct Slow(Arc<OnceLock<Arc<FakeWorld>>>);

impl PreFilter for Slow {
    fn pre_filter(&self, _: &Cluster, _: &Pod) -> Result<PreFilterOutcome, Status> {
        self.0.get().unwrap().freeze_for(TOOK);
        Ok(PreFilterOutcome::Skip)
    }
}

impl Filter for Slow {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, _: &NodeInfo) -> Verdict {
        Ok(())
    }
}

#[derive(Default)]
struct Gaps {
    gaps: Mutex<Vec<Duration>>,
    decided: AtomicUsize,
}

impl Meter for Gaps {
    fn decided(&self, _: &str, _: DecidedBy, _: Duration) {
        self.decided.fetch_add(1, Ordering::Relaxed);
    }

    fn gave_way(&self, after: Duration) {
        self.gaps.lock().unwrap().push(after);
    }
}

fn full_cluster() -> Cluster {
    let mut cluster = Cluster::default();
    for i in 0..NODES {
        let name = format!("n{i}");
        let amounts = json!({"cpu": "1", "memory": "1Gi", "pods": "10"});
        let node = json!({"metadata": {"name": name}, "status": {"allocatable": amounts}});
        cluster.put_node(serde_json::from_value(node).unwrap());
        let running = pod_json(&format!("runs-on-{name}"), "1", Some(&name));
        cluster.put_pod(Arc::new(serde_json::from_value(running).unwrap()));
    }
    cluster
}

#[test]
fn hopeless_pods_on_a_full_cluster_hold_up_nobody() {
    let slow = Slow::default();
    let made = slow.clone();
    let mut registry: Registry = supercargo_plugins::registry();
    registry.add(define("Slow", move |_| Ok(made.clone())).pre_filter().filter());
    let enabled =
        "profiles: [{plugins: {preFilter: {enabled: [{name: Slow}]}, filter: {enabled: [{name: Slow}]}}}]";
    let world = FakeWorld::new(|_, _| Answer::json(200, json!({})));
    assert!(slow.0.set(world.clone()).is_ok());
    let meter = Arc::new(Gaps::default());
    let nobody = |_: &str, _: &serde_json::Value| -> extenders::Says { panic!("there are no extenders") };
    let (scheduler, events, _) =
        scheduler_on(full_cluster(), &registry, enabled, world.clone(), meter.clone(), nobody);
    world.spawn(Box::pin(scheduler.run(std::future::pending()).map(|_| ())));
    synced().for_each(|event| events.try_send(event).unwrap());
    for i in 0..PODS {
        events.try_send(put(Kind::Pod, &pod_json(&format!("p{i}"), "1", None))).unwrap();
    }
    // Whoever shares the thread sees how far the decisions have come at each of its turns.
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (turns, decided, beside) = (seen.clone(), meter.clone(), world.clone());
    world.spawn(Box::pin(async move {
        while decided.decided.load(Ordering::Relaxed) < PODS {
            turns.lock().unwrap().push(decided.decided.load(Ordering::Relaxed));
            beside.yield_now().await;
        }
    }));
    world.run_for(Duration::from_millis(1));
    assert!(meter.decided.load(Ordering::Relaxed) >= PODS);
    let gaps = meter.gaps.lock().unwrap();
    let longest = gaps.iter().max().unwrap();
    // A slice ends with the decision within which its time is over: 10 ms are over within the third of 4 ms.
    assert_eq!(*longest, DECISION * 3);
    assert!(*longest < SLICE + DECISION);
    let seen = seen.lock().unwrap();
    let most = seen.windows(2).map(|turn| turn[1] - turn[0]).max().unwrap();
    assert!(most <= 3, "{most} decisions between two turns of another task");
}
