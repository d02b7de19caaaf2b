//! Preemption, on virtual time: who is evicted, in which order, and what becomes of failures.

use std::time::Duration;

use serde_json::json;

use super::{Answer, Bindings, Kind, Method, Scene, pod_json};

/// A pod that is more important than others.
fn important(name: &str, cpu: &str) -> serde_json::Value {
    let mut pod = pod_json(name, cpu, None);
    pod["spec"]["priority"] = 10.into();
    pod
}

fn terminating(name: &str, node: &str, preempted: bool) -> serde_json::Value {
    let mut pod = pod_json(name, "1", Some(node));
    pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
    if preempted {
        let condition =
            json!({"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"});
        pod["status"] = json!({"conditions": [condition]});
    }
    pod
}

#[test]
fn a_nomination_stays_while_victims_terminate_and_nobody_else_is_evicted() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "1");
    scene.node("b", "1");
    scene.pod_is_on("one", "a");
    scene.pod_is_on("two", "b");
    scene.put(Kind::Pod, &important("important", "1"));
    scene.run(1);
    let victim = scene.evicted().remove(0);
    let node = if victim == "one" { "a" } else { "b" };
    scene.put(Kind::Pod, &terminating(&victim, node, true));
    let mut nominated = important("important", "1");
    nominated["status"] = json!({"nominatedNodeName": node});
    scene.put(Kind::Pod, &nominated);
    // More room, though not enough, on both nodes: its turn comes again.
    scene.node("a", "1500m");
    scene.node("b", "1500m");
    // Less important pods do not get the room, neither now nor when it is free.
    scene.put(Kind::Pod, &pod_json("thief", "1", None));
    scene.run(30);
    assert_eq!(scene.evicted(), std::slice::from_ref(&victim));
    let not_eligible = "not eligible due to a terminating pod on the nominated node.";
    let said = &scene.patched("important")["status"];
    assert!(said["conditions"][0]["message"].as_str().unwrap().ends_with(not_eligible), "{said}");
    assert_eq!(said.get("nominatedNodeName"), None, "it is not taken back");
    scene.pod_is_gone(&victim);
    scene.run(5);
    assert_eq!(scene.sent(), [format!("important to {node}")]);
}

#[test]
fn victims_that_terminate_already_are_left_alone() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "2");
    scene.put(Kind::Pod, &terminating("going", "a", false));
    scene.pod_is_on("stays", "a");
    scene.put(Kind::Pod, &important("important", "2"));
    scene.run(1);
    assert_eq!(scene.evicted(), ["stays"]);
    assert_eq!((scene.told("going", "Preempted"), scene.told("stays", "Preempted")), (0, 1));
}

#[test]
fn evicting_stops_at_the_first_failure_and_the_pod_is_tried_again() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "3");
    ["one", "two", "three"].into_iter().for_each(|name| scene.pod_is_on(name, "a"));
    scene.fail(|request| {
        let refused = Answer::json(403, json!({"message": "you may not"}));
        (request.method == Method::Delete && !request.path.ends_with("/three")).then_some(refused)
    });
    scene.put(Kind::Pod, &important("important", "3"));
    scene.run(0);
    assert_eq!(scene.evicted(), ["one"], "the others are spared");
    assert_eq!(scene.patched("important")["status"]["nominatedNodeName"], "a");
    scene.run(30);
    let tries = scene.evicted().len();
    assert!((10..40).contains(&tries), "tried again, and not in a hot loop: {tries}");
}

#[test]
fn a_conflict_is_not_taken_for_a_victim_that_is_gone() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "1");
    scene.pod_is_on("one", "a");
    let mut conflicts = 2;
    scene.fail(move |request| {
        let is_mark = request.method == Method::Patch && request.path.contains("/one/");
        conflicts -= usize::from(is_mark && conflicts > 0);
        (is_mark && conflicts > 0)
            .then(|| Answer::json(409, json!({"message": "the object has been modified"})))
    });
    scene.put(Kind::Pod, &important("important", "1"));
    scene.run(5);
    assert_eq!(scene.evicted(), ["one"]);
    assert_eq!(scene.told("one", "Preempted"), 1);
}

#[test]
fn a_victim_that_is_gone_or_another_is_not_told_about() {
    for other in [None, Some("another")] {
        let scene = Scene::new(Bindings::Done);
        scene.node("a", "1");
        scene.pod_is_on("one", "a");
        scene.fail(move |request| match (request.method, other) {
            (Method::Delete, None) => Some(Answer::json(404, json!({"message": "not found"}))),
            (Method::Delete, Some(_)) => Some(Answer::json(409, json!({"message": "uid"}))),
            (Method::Get, Some(uid)) => {
                let mut anew = pod_json("one", "1", Some("a"));
                anew["metadata"]["uid"] = uid.into();
                Some(Answer::json(200, anew))
            }
            _ => None,
        });
        scene.put(Kind::Pod, &important("important", "1"));
        scene.run(5);
        assert_eq!(scene.evicted(), ["one"]);
        assert_eq!(scene.told("one", "Preempted"), 0);
    }
}

#[test]
fn less_important_nominations_are_taken_back_only_if_somebody_is_evicted() {
    for somebody in [true, false] {
        let scene = Scene::new(Bindings::Done);
        scene.node("a", "1");
        let mut nominated = pod_json("nominated", "1", None);
        nominated["spec"]["priority"] = 5.into();
        nominated["status"] = json!({"nominatedNodeName": "a"});
        if somebody {
            scene.pod_is_on("victim", "a");
        } else {
            scene.put(Kind::Pod, &terminating("victim", "a", true));
        }
        scene.put(Kind::Pod, &nominated);
        scene.put(Kind::Pod, &important("important", "1"));
        scene.run(3);
        let taken_back = scene.patches("nominated").iter().any(|p| {
            p["status"]["nominatedNodeName"].is_null() && p["status"].get("nominatedNodeName").is_some()
        });
        assert_eq!(taken_back, somebody);
    }
}

#[test]
fn two_pods_that_wait_for_the_same_victim_both_get_their_turn() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "2");
    scene.pod_is_on("victim", "a");
    // The victim's eviction takes its time, so that both choose it: the second needs another one as well.
    scene.delay(|request| {
        (request.method == Method::Delete && request.path.ends_with("/victim"))
            .then_some(Duration::from_secs(2))
    });
    scene.pod_is_on("other", "a");
    scene.put(Kind::Pod, &important("first", "1"));
    scene.run(1);
    scene.put(Kind::Pod, &important("second", "1"));
    scene.run(1);
    for name in ["victim", "other"] {
        scene.pod_is_gone(name);
        scene.run(10);
    }
    let mut sent = scene.sent();
    sent.sort();
    assert_eq!(sent, ["first to a", "second to a"]);
}
