//! Trying several pods, then committing or undoing it. That an undone trial leaves no trace, whatever happens before and after
//! it, is also tried at random: see `fast_equals_slow`.

use supercargo_engine::Engine;
use supercargo_model::{
    AlreadyBound,
    testing::{Builder, node, pod},
};

use crate::support::engine;

fn sized(name: &str, cpu: &str) -> Builder {
    node(name).allocatable("cpu", cpu).allocatable("memory", "8Gi").allocatable("pods", "5000")
}

fn wants(name: &str, cpu: &str) -> Builder {
    pod(name).container(&[("cpu", cpu)])
}

/// The names of the pods on a node, in the order of their arrival.
fn pods_on(engine: &Engine, node: &str) -> Vec<String> {
    let node = engine.cluster().node(node).expect("a known node");
    node.pods.iter().map(|pod| pod.name.to_string()).collect()
}

/// Places pods of a group on trial; whether all found a node.
fn fits(engine: &mut Engine, names: &[&str], cpu: &str, commit: bool) -> bool {
    let pods: Vec<_> = names.iter().map(|name| engine.admit(wants(name, cpu).pod())).collect();
    let mut trial = engine.trial();
    for pod in &pods {
        let Some(node) = trial.place(pod).and_then(|placement| placement.node().cloned()) else {
            return false;
        };
        trial.assume(pod, node).expect("a pod that is not bound");
    }
    if commit {
        trial.commit();
    } else {
        trial.undo();
    }
    true
}

#[test]
fn a_group_is_placed_as_a_whole_or_not_at_all() {
    let mut engine = engine([sized("a", "2"), sized("b", "2")]);
    // Each node has room for one of them.
    assert!(!fits(&mut engine, &["x1", "x2", "x3"], "2", true));
    assert_eq!((pods_on(&engine, "a").len(), pods_on(&engine, "b").len()), (0, 0));
    assert!(fits(&mut engine, &["y1", "y2"], "2", false));
    assert_eq!((pods_on(&engine, "a").len(), pods_on(&engine, "b").len()), (0, 0));
    assert!(fits(&mut engine, &["z1", "z2"], "2", true));
    assert_eq!((pods_on(&engine, "a").len(), pods_on(&engine, "b").len()), (1, 1));
    assert!(!fits(&mut engine, &["late"], "1", true));
}

#[test]
fn a_pod_that_is_bound_is_not_tried() {
    let mut engine = engine([sized("a", "2"), pod("p").on("a")]);
    let mut trial = engine.trial();
    assert_eq!(trial.assume(&pod("p").pod(), "a".into()), Err(AlreadyBound));
    assert_eq!(trial.assume(&pod("q").pod(), "a".into()), Ok(()));
    assert_eq!(trial.assume(&pod("q").pod(), "a".into()), Err(AlreadyBound));
    trial.undo();
    assert_eq!(pods_on(&engine, "a"), ["p"]);
}

#[test]
fn a_nomination_comes_back_with_its_pod() {
    let mut engine = engine([sized("a", "2"), sized("b", "2")]);
    let nominated = wants("nominated", "1").pod();
    engine.nominations_mut().nominate(nominated.clone(), "a".into());
    let revision = engine.nominations().revision();
    let mut trial = engine.trial();
    trial.assume(&nominated, "b".into()).unwrap();
    drop(trial);
    let nominations = engine.nominations();
    assert_eq!(nominations.node_of(&nominated.uid).map(|node| &**node), Some("a"));
    assert_eq!(nominations.revision(), revision);
}

/// Amounts beyond what sums can hold: subtracting would not lead back.
#[test]
fn sums_that_saturate_are_restored() {
    let mut engine = engine([sized("a", "2"), wants("large", "9223372036854775").on("a")]);
    let before = format!("{:?}", engine.cluster().columns().loads.cpu);
    let mut trial = engine.trial();
    for name in ["p", "q"] {
        trial.assume(&wants(name, "9223372036854775").pod(), "a".into()).unwrap();
    }
    trial.undo();
    assert_eq!(format!("{:?}", engine.cluster().columns().loads.cpu), before);
}

#[test]
fn the_change_log_does_not_grow_by_trials() {
    let mut engine = engine([sized("a", "100")]);
    // Far more than the log keeps.
    for i in 0..5000 {
        engine.cluster_mut().put_pod(pod(&format!("p{i}")).on("a").pod());
    }
    let oldest = engine.cluster().changes().now();
    for i in 0..4000 {
        engine.cluster_mut().put_pod(pod(&format!("q{i}")).on("a").pod());
    }
    let (now, known) = (engine.cluster().changes().now(), 4000);
    for undone in 0..3 {
        let mut trial = engine.trial();
        for i in 0..200 {
            trial.assume(&pod(&format!("t{undone}-{i}")).pod(), "a".into()).unwrap();
        }
        let during = trial.cluster().changes().now();
        assert!(during.is_after(now));
        trial.undo();
        let changes = engine.cluster().changes();
        assert_eq!(changes.now(), now);
        assert_eq!(changes.since(oldest).map(|changes| changes.len()), Some(known));
        assert!(changes.since(during).is_none(), "a moment that never was");
    }
    let mut trial = engine.trial();
    for i in 0..200 {
        trial.assume(&pod(&format!("t{i}")).pod(), "a".into()).unwrap();
    }
    let during = trial.cluster().changes().now();
    trial.commit();
    let changes = engine.cluster().changes();
    assert_eq!(changes.now(), during);
    assert_eq!(changes.since(now).map(|changes| changes.len()), Some(200));
    assert!(changes.since(oldest).is_none(), "too long ago");
}

/// A moment within a trial that was undone is told from one with as many changes.
#[test]
fn moments_that_never_were_are_not_mistaken_for_later_ones() {
    let mut engine = engine([sized("a", "100")]);
    let mut trial = engine.trial();
    trial.assume(&pod("tried").pod(), "a".into()).unwrap();
    let during = trial.cluster().changes().now();
    trial.undo();
    engine.cluster_mut().put_pod(pod("real").on("a").pod());
    let changes = engine.cluster().changes();
    assert_ne!(changes.now(), during);
    assert!(changes.since(during).is_none());
}
