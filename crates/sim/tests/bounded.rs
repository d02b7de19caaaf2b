//! Whatever nodes and pods name is kept for as long as they name it: names that change without end cost what the first ones cost,
//! and nothing is left of an empty cluster.

use std::{
    alloc::System,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use supercargo_engine::Engine;
use supercargo_model::{
    Key,
    object::Kind,
    testing::{node, pod},
};
use supercargo_scheduler::setup::{self, Overrides};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One test at a time: memory is counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

const NODES: usize = 10;
const UPDATES: usize = 100_000;
const WARM_UP: usize = 50_000;
/// How much more memory may be held at one moment than at another: specs that nobody uses are kept until there are 1,024 of
/// them. Of what each update names, that is 42 bytes: less than any of it takes.
const SLACK_BYTES: usize = 2 * 1024 * 1024;

fn engine() -> Engine {
    let registry = supercargo_plugins::registry();
    let configuration = supercargo_config::default_configuration(&registry).expect("the default");
    setup::engine(supercargo_model::Cluster::default(), &configuration, &registry, Overrides::default())
        .expect("the default profile")
}

/// A node gets a taint, a label, an image, a resource and a zone that nobody has ever heard of.
fn update(engine: &mut Engine, i: usize) {
    let taint = json!({"key": "DeletionCandidateOfClusterAutoscaler", "value": i.to_string(), "effect": "PreferNoSchedule"});
    let image = json!({"names": [format!("registry.local/web:{i}")], "sizeBytes": 1});
    let changed = node(&format!("n{}", i % NODES))
        .label("seen-at", &i.to_string())
        .label(&format!("key-{i}"), "")
        .label("topology.kubernetes.io/zone", &i.to_string())
        .set("/spec/taints", json!([taint]))
        .set("/status/images", json!([image]))
        .set(&format!("/status/allocatable/example.com~1{i}"), "1");
    engine.cluster_mut().put_node(changed.node());
}

/// A pod comes whose spec, ports, claim and terms are its own, and another leaves.
fn replace_pod(engine: &mut Engine, i: usize) {
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": i.to_string()}}});
    let comes = pod(&format!("p{i}"))
        .label("app", &i.to_string())
        .claim(&format!("claim-{i}"))
        .set("/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution", json!([term]))
        .set("/spec/containers", json!([{"name": "c", "ports": [{"hostPort": 1 + i % 60_000}]}]))
        .on(&format!("n{}", i % NODES));
    engine.cluster_mut().put(comes.object());
    if let Some(old) = i.checked_sub(NODES) {
        engine.cluster_mut().remove_pod(&Key::new("default", format!("p{old}")));
    }
}

fn churn(engine: &mut Engine, updates: std::ops::Range<usize>) {
    let waiting = engine.admit(pod("waiting").container(&[("cpu", "1")]).pod());
    for i in updates {
        update(engine, i);
        if i % 10 == 0 {
            replace_pod(engine, i / 10);
        }
        if i % 100 == 0 {
            let _ = engine.place(&Arc::clone(&waiting));
        }
    }
}

/// How often memory was asked for, and how much more is held than before.
fn cost(engine: &mut Engine, updates: std::ops::Range<usize>) -> (usize, isize) {
    let region = Region::new(MEMORY);
    churn(engine, updates);
    let change = region.change();
    let held = change.bytes_allocated as isize - change.bytes_deallocated as isize;
    (change.allocations + change.reallocations, held)
}

#[test]
fn names_without_end_cost_what_the_first_ones_cost() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut engine = engine();
    // Until what is remembered of changes and specs has come to its bounds: 4,096 changes, of which each pod makes two.
    churn(&mut engine, 0..WARM_UP);
    let (first, _) = cost(&mut engine, WARM_UP..WARM_UP + 1_000);
    let kept = engine.cluster().kept();
    let (_, held) = cost(&mut engine, WARM_UP + 1_000..UPDATES - 1_000);
    let (last, _) = cost(&mut engine, UPDATES - 1_000..UPDATES);
    assert_eq!(engine.cluster().kept(), kept);
    assert!(held < SLACK_BYTES as isize, "{held} bytes more are held");
    // Names become one digit longer, no more than that.
    assert!(last <= first + first / 10, "{last} allocations for a thousand updates, and {first} before");
}

#[test]
fn nothing_is_left_of_an_empty_cluster() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut engine = engine();
    churn(&mut engine, 0..3_000);
    let all: Vec<Key> = engine.cluster().pods().map(|pod| pod.key()).collect();
    for key in all {
        engine.cluster_mut().remove_pod(&key);
    }
    for i in 0..NODES {
        engine.cluster_mut().remove(Kind::Node, &Key::new("", format!("n{i}")));
    }
    let left: Vec<_> = engine.cluster().kept().into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(left, []);
}
