//! Pods' statuses, on virtual time: writes about one pod never overtake each other.

use std::time::Duration;

use serde_json::json;

use super::{Bindings, Kind, Method, Scene, pod_json};

#[test]
fn a_status_under_way_is_waited_for_before_the_pod_is_bound() {
    let scene = Scene::new(Bindings::Done);
    scene.put(Kind::Pod, &pod_json("p", "1", None));
    // The server takes ten seconds for the pod's condition.
    scene.delay(|request| {
        (request.method == Method::Patch && request.path.contains("/p/")).then_some(Duration::from_secs(10))
    });
    scene.run(1);
    scene.node("a", "1");
    scene.run(8);
    assert_eq!(scene.sent(), Vec::<String>::new());
    scene.run(5);
    assert_eq!(scene.sent(), ["p to a"]);
}

#[test]
fn a_pod_whose_deletion_is_asked_for_is_told_so_once_it_would_be_tried() {
    let scene = Scene::new(Bindings::Done);
    let mut pod = pod_json("p", "1", None);
    pod["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
    scene.put(Kind::Pod, &pod);
    scene.run(1);
    assert_eq!(scene.why_not("p"), ["skip schedule deleting pod: ns/p"]);
    assert!(scene.patches("p").is_empty());
}

#[test]
fn a_pod_whose_claim_is_not_there_is_held_back() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "1");
    let mut pod = pod_json("p", "1", None);
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
    scene.put(Kind::Pod, &pod);
    scene.run(1);
    assert_eq!(scene.sent(), Vec::<String>::new());
    assert_eq!(scene.told("p", "FailedScheduling"), 0);
}

#[test]
fn an_assumed_pod_that_is_being_deleted_gives_its_room_back_at_once() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.pod("first");
    scene.run(1);
    scene.pod("second");
    scene.run(1);
    assert_eq!(scene.sent(), ["first to a"]);
    let mut going = pod_json("first", "1", None);
    going["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
    scene.put(Kind::Pod, &going);
    scene.bind_from_now_on(Bindings::Done);
    scene.run(1);
    assert_eq!(scene.sent(), ["first to a", "second to a"]);
}
