//! Clusters that are full, and important pods one after another: what is kept about making room on nodes, from pod to pod and
//! from change to change, is what trying every node finds.

use std::sync::Arc;

use serde_json::json;
use supercargo_engine::{Engine, PathCounts, Placement, Settings};
use supercargo_framework::preemption::Claim;
use supercargo_model::{
    Cluster, Key, Name, Pod,
    object::Kind,
    testing::{Random, node, object, pod},
};

use crate::{Scene, profiles::profile};

/// Enough that a few changes between two looks are followed.
const NODES: usize = 96;
const STEPS: usize = 120;
const RUNS: u64 = 12;
const SIZES: [&str; 4] = ["500m", "1", "1500m", "2"];

/// Pods of some priorities and sizes, on nodes of 4 cpus; some budgets protect some of them.
fn full(random: &mut Random) -> Cluster {
    let mut cluster = Cluster::default();
    for i in 0..NODES {
        let name = format!("n{i}");
        let node = node(&name).label("topology.kubernetes.io/zone", &format!("z{}", i % 3));
        cluster.put_node(node.allocatable("cpu", "4").allocatable("pods", "20").node());
        for _ in 0..3 + random.below(4) {
            let number = cluster.node_count() * 100 + random.below(100);
            cluster.put_pod(running(random, &format!("p{number}"), &name));
        }
    }
    for app in 0..2 {
        cluster.put(budget(random, app));
    }
    cluster
}

fn running(random: &mut Random, name: &str, node: &str) -> Arc<Pod> {
    let started = format!("2026-01-01T00:00:{:02}Z", random.below(60));
    pod(name)
        .label("app", &format!("a{}", random.below(3)))
        .container(&[("cpu", SIZES[random.below(SIZES.len())])])
        .priority(random.below(4) as i32)
        .started(&started)
        .on(node)
        .pod()
}

fn budget(random: &mut Random, app: usize) -> supercargo_model::object::Object {
    object(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": format!("b{app}"), "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": format!("a{app}")}}},
        "status": {"disruptionsAllowed": random.below(3)},
    }))
    .object()
}

/// Something changes: pods end or come, budgets change, pods that wait for room give up or get it.
fn change(random: &mut Random, engine: &mut Engine, step: usize) {
    let some_node = random.below(NODES);
    match random.below(6) {
        0 => engine.cluster_mut().put(budget(random, step % 2)),
        1 => engine.cluster_mut().remove(Kind::PodDisruptionBudget, &Key::new("default", "b0")),
        2 => {
            let name: Name = format!("n{some_node}").into();
            let gone = engine.cluster().node(&name).and_then(|node| Some(node.pods.first()?.key()));
            gone.map(|key| engine.cluster_mut().remove_pod(&key));
        }
        3 => {
            let new = running(random, &format!("new-{step}"), &format!("n{some_node}"));
            engine.cluster_mut().put_pod(new);
        }
        4 => engine.nominations_mut().forget(&format!("wants-{}", step.saturating_sub(1 + random.below(9)))),
        _ => {}
    }
}

fn run(seed: u64) -> PathCounts {
    let scene = Scene { odd: false, arguments: seed % 2 == 1, preempts: true, ..Scene::of(0) };
    let engine = || {
        let mut random = Random(seed);
        let cluster = full(&mut random);
        let percentage = if seed.is_multiple_of(3) { 30 } else { 100 };
        let settings = Settings {
            percentage_of_nodes_to_score: percentage,
            min_feasible_nodes_to_find: 3,
            seed,
            ..Settings::default()
        };
        Engine::new(cluster, [profile(&mut random, &scene)], settings)
    };
    let (mut fast, mut slow) = (engine(), engine());
    let mut random = Random(!seed);
    // Two templates that differ in importance and size.
    let templates = [(9, "3"), (3, "2500m")]
        .map(|(priority, cpu)| fast.admit(pod("wants").container(&[("cpu", cpu)]).priority(priority).pod()));
    for step in 0..STEPS {
        let at = format!("seed {seed}, step {step}");
        let mut same = Random(random.0);
        change(&mut random, &mut fast, step);
        change(&mut same, &mut slow, step);
        let name: Name = format!("wants-{step}").into();
        let template = &templates[random.below(4) / 3];
        let wants = Arc::new(Pod { name: name.clone(), uid: name, ..(**template).clone() });
        let expected = slow.decide(&wants).unwrap();
        let node = match fast.place(&wants).unwrap() {
            Placement::On { node, .. } => Some(node),
            Placement::Decided(decided) => {
                assert_eq!(decided.message(), expected.message(), "{at}");
                assert_eq!(decided.preemption, expected.preemption, "{at}");
                assert_eq!(decided.failure(), expected.failure(), "{at}");
                assert_eq!(decided.claim(), expected.claim(), "{at}");
                decided.node().cloned()
            }
        };
        assert_eq!(node.as_ref(), expected.node(), "{at}");
        assert_eq!(fast.inspect().next_start(), slow.inspect().next_start(), "{at}");
        for engine in [&mut fast, &mut slow] {
            match (&node, expected.claim()) {
                (Some(node), _) => engine.assume(&wants, node.clone()),
                (None, Claim::On(node)) => {
                    // Now and then the victims take their time.
                    for victim in expected.victims().iter().filter(|_| step % 4 != 0) {
                        engine.cluster_mut().remove_pod(&victim.key());
                    }
                    engine.nominations_mut().nominate(wants.clone(), node);
                }
                (None, _) => {}
            }
        }
    }
    fast.inspect().paths()
}

#[test]
fn room_that_is_kept_is_the_room_that_is_there() {
    let (mut nominated, mut full) = (0, 0);
    for seed in 0..RUNS {
        let paths = run(seed);
        nominated += paths.nominated;
        full += paths.full;
    }
    assert!(
        nominated > 300 && full < nominated,
        "{nominated} of {} found room from what is kept",
        RUNS * STEPS as u64
    );
}
