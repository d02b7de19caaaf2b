//! The scheduling queue with 100,000 pods: a pod's way through it, and events that concern nobody who waits.

use std::{sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use supercargo_engine::{AttemptFailure, Engine, QueueSettings, Refusal, Removal, SchedulingQueue};
use supercargo_framework::{
    event::Change,
    preemption::{Claim, Nominations},
};
use supercargo_model::{
    Cluster, Pod,
    testing::{node, pod},
};
use supercargo_scheduler::setup::{self, Overrides};

const PODS: usize = 100_000;
const NOW: Duration = Duration::ZERO;

/// The default profile's engine, for its rules.
fn engine() -> Engine {
    let registry = supercargo_plugins::registry();
    let configuration = supercargo_config::default_configuration(&registry).expect("the default");
    setup::engine(Cluster::default(), &configuration, &registry, Overrides::default())
        .expect("the default profile")
}

/// A queue full of pods that are alike.
fn full() -> (SchedulingQueue, Nominations) {
    let engine = engine();
    let profile = engine.profile("default-scheduler").expect("the default profile");
    let mut queue = SchedulingQueue::new([profile.queue_rules()], QueueSettings::default());
    let mut nominations = Nominations::default();
    let template = pod("p").container(&[("cpu", "1")]).pod();
    for i in 0..PODS {
        let name = format!("p{i}");
        let pod = Pod { name: (*name).into(), uid: (*name).into(), ..(*template).clone() };
        queue.add(Arc::new(pod), &mut nominations, NOW);
    }
    (queue, nominations)
}

fn queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    let (mut queue, mut nominations) = full();
    group.bench_function("pop, bound, remove and add", |bencher| {
        bencher.iter(|| {
            let popped = queue.pop(NOW).expect("a full queue");
            queue.bound(&popped);
            queue.remove(&popped.pod.uid, Removal::Bound, &mut nominations, NOW);
            queue.add(popped.pod, &mut nominations, NOW)
        });
    });

    let refusal = Refusal { plugins: ["NodeResourcesFit".into()].into(), ..Refusal::default() };
    while let Some(popped) = queue.pop(NOW) {
        let failure = AttemptFailure::Refused(refusal.clone());
        queue.park(&popped.pod.uid, failure, Claim::Kept, &mut nominations, NOW);
    }
    let (plain, labelled) = (node("n").node(), node("n").label("a", "b").node());
    group.bench_function("heartbeat of a node", |bencher| {
        bencher.iter(|| queue.happened(&Change::Node(Some(&plain), Some(&plain)).happened(), NOW));
    });
    group.bench_function("label of a node", |bencher| {
        bencher.iter(|| queue.happened(&Change::Node(Some(&plain), Some(&labelled)).happened(), NOW));
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = queue
}
criterion_main!(benches);
