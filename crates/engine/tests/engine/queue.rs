//! Who comes first.

use serde_json::json;
use supercargo_engine::{Admission, Queue};
use supercargo_framework::profile::Profile;
use supercargo_model::{
    Cluster,
    testing::{Builder, pod},
};

use crate::support::default_profile;

fn push(queue: &mut Queue, profile: &Profile, pod: Builder) -> bool {
    matches!(queue.push(&Cluster::default(), profile, pod.pod()), Admission::Queued)
}

fn drain(queue: &mut Queue) -> String {
    let names: Vec<String> = std::iter::from_fn(|| queue.pop()).map(|pod| pod.name.to_string()).collect();
    names.join(" ")
}

#[test]
fn the_more_important_first_then_who_came_first() {
    let profile = default_profile();
    let mut queue = Queue::default();
    assert!(queue.is_empty());
    for (name, priority) in
        [("a", 0), ("b", 10), ("c", 0), ("d", -5), ("e", 10), ("f", i32::MAX), ("g", i32::MIN)]
    {
        assert!(push(&mut queue, &profile, pod(name).priority(priority)));
    }
    assert_eq!(queue.len(), 7);
    assert_eq!(drain(&mut queue), "f b e a c d g");
    assert!(queue.is_empty());
}

#[test]
fn pods_that_come_while_others_go() {
    let profile = default_profile();
    let mut queue = Queue::default();
    push(&mut queue, &profile, pod("a"));
    push(&mut queue, &profile, pod("b"));
    assert_eq!(&*queue.pop().unwrap().name, "a");
    push(&mut queue, &profile, pod("a"));
    push(&mut queue, &profile, pod("urgent").priority(1));
    assert_eq!(drain(&mut queue), "urgent b a");
    assert!(queue.pop().is_none());
}

#[test]
fn gated_pods_stay_out() {
    let profile = default_profile();
    let mut queue = Queue::default();
    let gated = pod("p").set("/spec/schedulingGates/-", json!({"name": "wait"}));
    let Admission::Held(rejection) = queue.push(&Cluster::default(), &profile, gated.pod()) else {
        panic!("held");
    };
    assert_eq!((&*rejection.plugin, queue.len()), ("SchedulingGates", 0));
}
