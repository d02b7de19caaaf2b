//! Permit, on virtual time: a pod that waits keeps its room until somebody lets it through or refuses it.

use std::{sync::Arc, time::Duration};

use supercargo_framework::{
    Status,
    points::{Permit, PermitHandle, PermitOutcome},
    registry::define,
};
use supercargo_model::{Cluster, Name, Pod};

use super::Scene;

/// Makes the pod `held` wait, and nobody else.
struct Gate(PermitHandle);

impl Permit for Gate {
    fn permit(&self, _: &Cluster, pod: &Arc<Pod>, _: &Name) -> Result<PermitOutcome, Status> {
        Ok(match &*pod.name {
            "held" => PermitOutcome::Wait { timeout: Duration::from_secs(20), handle: self.0.clone() },
            _ => PermitOutcome::Granted,
        })
    }
}

/// A pod that waits for its permission, and another that has no room meanwhile.
fn waiting() -> (Scene, PermitHandle) {
    let handle = PermitHandle::default();
    let heard = handle.clone();
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Gate", move |_| Ok(Gate(heard.clone()))).permit());
    let scene = Scene::of(&registry, "profiles: [{plugins: {permit: {enabled: [{name: Gate}]}}}]");
    scene.node("a", "1");
    scene.pod("held");
    scene.run(1);
    scene.pod("next");
    scene.run(5);
    assert_eq!(scene.sent(), Vec::<String>::new());
    assert_eq!((scene.told("held", "FailedScheduling"), scene.told("next", "FailedScheduling")), (0, 1));
    (scene, handle)
}

#[test]
fn the_word_lets_the_pod_through() {
    let (scene, handle) = waiting();
    handle.allow();
    scene.run(60);
    assert_eq!(scene.sent(), ["held to a"]);
    assert_eq!(scene.told("held", "Scheduled"), 1);
}

#[test]
fn a_refusal_gives_the_room_back() {
    let (scene, handle) = waiting();
    handle.refuse(Status::unschedulable("not today"));
    scene.run(20);
    assert!(scene.told("held", "FailedScheduling") > 0);
    assert_eq!(scene.sent(), ["next to a"]);
}

#[test]
fn without_a_word_the_room_is_given_back_in_time() {
    let (scene, _word) = waiting();
    scene.run(13);
    assert_eq!(scene.sent(), Vec::<String>::new());
    scene.run(20);
    assert!(scene.told("held", "FailedScheduling") > 0);
    assert_eq!(scene.sent(), ["next to a"]);
}

#[test]
fn a_refusal_is_told_as_kube_scheduler_tells_it_and_the_pod_does_not_wake_itself() {
    let (scene, handle) = waiting();
    handle.refuse(Status::unschedulable("not today"));
    scene.run(200);
    // Tried once: what it gave back is of no use to itself.
    assert_eq!(scene.told("held", "FailedScheduling"), 1);
    assert_eq!(scene.why_not("held"), ["0/1 nodes are available: 1 not today."]);
}

/// Says no to everybody.
struct Refuses;

impl Permit for Refuses {
    fn permit(&self, _: &Cluster, _: &Arc<Pod>, _: &Name) -> Result<PermitOutcome, Status> {
        Err(Status::unschedulable("never"))
    }
}

#[test]
fn a_refusal_in_the_cycle_itself_wakes_nobody() {
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Refuses", |_| Ok(Refuses)).permit());
    let scene = Scene::of(&registry, "profiles: [{plugins: {permit: {enabled: [{name: Refuses}]}}}]");
    scene.node("a", "1");
    scene.pod("p");
    scene.run(200);
    assert_eq!(scene.told("p", "FailedScheduling"), 1);
    assert_eq!(scene.why_not("p"), ["0/1 nodes are available: 1 never."]);
    assert_eq!(scene.sent(), Vec::<String>::new());
}

/// Makes all pods wait for hours whose name begins so.
struct Waits;

impl Permit for Waits {
    fn permit(&self, _: &Cluster, pod: &Arc<Pod>, _: &Name) -> Result<PermitOutcome, Status> {
        let timeout = Duration::from_secs(3600);
        let waits = pod.name.starts_with("waits");
        Ok(if waits {
            PermitOutcome::Wait { timeout, handle: PermitHandle::default() }
        } else {
            PermitOutcome::Granted
        })
    }
}

#[test]
fn two_thousand_pods_that_wait_stop_nobody_and_are_nominated() {
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Waits", |_| Ok(Waits)).permit());
    let scene = Scene::of(&registry, "profiles: [{plugins: {permit: {enabled: [{name: Waits}]}}}]");
    scene.node_with("a", "3000", "5000");
    for i in 0..2000 {
        scene.pod(&format!("waits-{i}"));
        scene.run(0);
    }
    scene.pod("passes");
    scene.run(5);
    assert_eq!(scene.sent(), ["passes to a"]);
    assert_eq!(scene.told("passes", "Scheduled"), 1);
    assert_eq!(scene.patched("waits-1999")["status"]["nominatedNodeName"], "a");
    // No plugin makes a pod wait for longer than a quarter of an hour.
    scene.run(14 * 60);
    assert_eq!(scene.told("waits-0", "FailedScheduling"), 0);
    scene.run(2 * 60);
    let why = "0/1 nodes are available: 1 rejected due to timeout after waiting 15m0s at plugin Waits.";
    assert_eq!(scene.why_not("waits-0")[0], why);
}
