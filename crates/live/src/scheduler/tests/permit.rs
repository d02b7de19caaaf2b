//! Permit, on virtual time: a pod that waits for somebody's word keeps its room until it is said.

use std::time::Duration;

use supercargo_framework::{
    Status,
    points::{Permission, Permit, Word},
    registry::define,
};
use supercargo_model::Pod;

use super::Scene;

/// Makes the pod `held` wait for a word, and nobody else.
struct Gate(Word);

impl Permit for Gate {
    fn permit(&self, pod: &Pod, _: &str) -> Result<Permission, Status> {
        Ok(match &*pod.name {
            "held" => Permission::Wait { timeout: Duration::from_secs(20), word: self.0.clone() },
            _ => Permission::Granted,
        })
    }
}

/// A pod that waits for the word, and another that has no room meanwhile.
fn waiting() -> (Scene, Word) {
    let word = Word::default();
    let heard = word.clone();
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
    (scene, word)
}

#[test]
fn the_word_lets_the_pod_through() {
    let (scene, word) = waiting();
    word.allow();
    scene.run(60);
    assert_eq!(scene.sent(), ["held to a"]);
    assert_eq!(scene.told("held", "Scheduled"), 1);
}

#[test]
fn a_refusal_gives_the_room_back() {
    let (scene, word) = waiting();
    word.refuse(Status::unschedulable("not today"));
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
