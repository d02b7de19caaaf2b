//! The scheduler in somebody else's program, against the test cluster: what it does can be followed, and it can be asked.

#[path = "../examples/embed.rs"]
#[allow(dead_code, reason = "its `main` is not run here")]
mod embed;

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_engine::{Outcome, QueuePlace};
use supercargo_live::{
    real::{RealWorld, RestConfig},
    scheduler::{
        inspector::{PodState, WhatIf},
        records::{Follower, RecordKind},
    },
    world::SharedWorld,
};
use supercargo_model::{Key, testing};
use supercargo_scheduler::{Election, Ended, RunningScheduler, SchedulerOptions, start};
use supercargo_testcluster::{TestCluster, TestClusterOptions as ClusterOptions};

fn cluster(objects: impl IntoIterator<Item = Value>) -> TestCluster {
    let cluster =
        TestCluster::start(ClusterOptions { port: 0, ..ClusterOptions::default() }).expect("a cluster");
    objects.into_iter().for_each(|object| drop(cluster.create(object).expect("an object")));
    cluster
}

fn node(name: &str, cpu: &str) -> Value {
    let amounts = json!({"cpu": cpu, "memory": "8Gi", "pods": "110"});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
           "status": {"capacity": amounts, "allocatable": amounts}})
}

fn pod(name: &str, cpu: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
           "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}})
}

fn access(cluster: &TestCluster) -> RestConfig {
    RestConfig { master: Some(cluster.url()), ..RestConfig::default() }
}

async fn started(cluster: &TestCluster) -> RunningScheduler {
    let registry = supercargo_plugins::registry();
    let configuration = supercargo_config::default_configuration(&registry).expect("the default");
    let world: SharedWorld = Arc::new(RealWorld::open(&access(cluster)).await.expect("a server"));
    let options = SchedulerOptions { election: Election::Never, ..SchedulerOptions::default() };
    start(&world, &configuration, &registry, options).expect("a scheduler")
}

/// Waits until something of this kind was recorded about a pod.
async fn until(records: &mut Follower, pod: &str, wanted: impl Fn(&RecordKind) -> bool) {
    while let Some(delivery) = records.next().await {
        if &*delivery.record.pod.name == pod && wanted(&delivery.record.what) {
            return;
        }
    }
    panic!("it has stopped");
}

#[tokio::test]
async fn the_example_schedules_a_pod() {
    let cluster = cluster([node("n", "4"), pod("p", "1")]);
    let mut lines = Vec::new();
    embed::schedule(access(&cluster), |line| lines.push(line)).await.expect("it runs");
    assert!(
        lines.iter().any(|line| line.contains("default/p Decided { attempt: 1, node: \"n\"")),
        "{lines:#?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("0 pods wait"), "{lines:#?}");
    assert_eq!(cluster.bindings().len(), 1);
}

#[tokio::test]
async fn it_can_be_asked_while_it_runs() {
    let cluster = cluster([node("n", "4")]);
    let running = started(&cluster).await;
    let (mut records, inspector) = (running.records().follow(), running.inspector().clone());
    for (name, cpu) in [("fits", "1"), ("big", "8")] {
        cluster.create(pod(name, cpu)).expect("a pod");
    }
    until(&mut records, "fits", |what| matches!(what, RecordKind::Left { .. })).await;
    let key = |name: &str| Key::new("default", name);
    let fits = inspector.pod(key("fits")).await.expect("it runs");
    assert_eq!((fits.state, fits.waiting), (PodState::Bound("n".into()), None));

    let queue = loop {
        let queue = inspector.queue().await.expect("it runs");
        if queue.iter().any(|waiting| waiting.place == QueuePlace::Unschedulable) {
            break queue;
        }
        tokio::task::yield_now().await;
    };
    let waiting: Vec<(&str, QueuePlace, u32)> =
        queue.iter().map(|waiting| (&*waiting.pod.name, waiting.place, waiting.attempts)).collect();
    assert_eq!(waiting, [("big", QueuePlace::Unschedulable, 1)]);
    assert!(queue[0].refused_by.plugins.contains("NodeResourcesFit"), "{queue:?}");
    let big = inspector.pod(key("big")).await.expect("it runs");
    assert_eq!((big.state, big.waiting.as_ref()), (PodState::Waiting, Some(&queue[0])));
    let failure = big.last_failure.expect("it was tried");
    assert!(failure.message.contains("Insufficient cpu"), "{failure:?}");
    assert_eq!(inspector.pod(key("nobody")).await.expect("it runs").state, PodState::Unknown);

    let what_if = |cpu: &str| {
        let pod = testing::pod("new").container(&[("cpu", cpu)]).pod();
        inspector.what_if((*pod).clone())
    };
    let Some(WhatIf::Decided(decision)) = what_if("3").await else { panic!("it runs") };
    assert_eq!(decision.outcome, Outcome::Scheduled { node: "n".into() });
    assert!(!decision.scores.columns.is_empty(), "the record is complete");
    let Some(WhatIf::Decided(decision)) = what_if("4").await else { panic!("it runs") };
    assert_eq!(decision.outcome, Outcome::Unschedulable);
    let other = testing::pod("other").set("/spec/schedulerName", "other").pod();
    assert_eq!(inspector.what_if((*other).clone()).await, Some(WhatIf::OtherScheduler));
    assert_eq!(cluster.bindings().len(), 1, "nothing was placed by asking");

    assert_eq!(running.stop().await, Ended::Stopped);
    assert_eq!(inspector.queue().await, None);
    while records.next().await.is_some() {}
}
