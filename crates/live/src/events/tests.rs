//! Events on virtual time: series, bounds, and standing back.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_model::{
    Pod, ResourceVersion,
    object::{Kind, Object},
};

use super::*;
use crate::testing::{Answer, FakeWorld};

fn pod(name: &str) -> Pod {
    let text = format!(r#"{{"metadata":{{"name":"{name}","namespace":"ns","uid":"u-{name}"}}}}"#);
    let mut from = serde_json::Deserializer::from_str(&text);
    let Ok(Object::Pod(pod)) = Object::deserialize(Kind::Pod, &[], &mut from) else { panic!("no pod") };
    pod
}

fn recorder(world: &Arc<FakeWorld>) -> EventRecorder {
    let shared: SharedWorld = world.clone();
    open(&shared, "host")
}

fn accepting() -> Arc<FakeWorld> {
    FakeWorld::new(|_, _| Answer::json(201, "{}"))
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn an_event_has_kube_schedulers_shape() {
    let world = accepting();
    let recorder = recorder(&world);
    recorder.record(Event::scheduled(&pod("a"), "n1"));
    world.run_for(seconds(1));
    let (_, request) = &world.requests()[0];
    assert_eq!(request.to_string(), "POST /apis/events.k8s.io/v1/namespaces/ns/events");
    let event = body(request);
    assert_eq!(event["note"], "Successfully assigned ns/a to n1");
    assert_eq!((&event["reason"], &event["action"]), (&"Scheduled".into(), &"Binding".into()));
    assert_eq!(event["type"], "Normal");
    assert_eq!(event["reportingController"], "default-scheduler");
    assert_eq!(event["reportingInstance"], "default-scheduler-host");
    assert_eq!(event["regarding"]["uid"], "u-a");
    assert_eq!(event["eventTime"], "2027-01-15T08:00:00.000000Z");
    assert!(event.get("series").is_none());
}

#[test]
fn repeated_events_become_one_series() {
    let world = accepting();
    let recorder = recorder(&world);
    for _ in 0..50 {
        recorder.record(Event::failed_scheduling(&pod("a"), "0/1 nodes are available"));
        world.run_for(seconds(10));
    }
    let requests = world.requests();
    assert_eq!(requests.len(), 2, "the first, and the second that makes it a series");
    assert_eq!(requests[1].1.method, Method::Patch);
    assert_eq!(body(&requests[1].1)["series"]["count"], 2);
    world.run_for(seconds(13 * 60));
    let requests = world.requests();
    assert_eq!(requests.len(), 3, "and the end");
    assert_eq!(body(&requests[2].1)["series"]["count"], 50);
    recorder.record(Event::failed_scheduling(&pod("a"), "0/1 nodes are available"));
    world.run_for(seconds(13 * 60));
    assert_eq!(world.requests()[3].1.method, Method::Post, "a new one after the end");
}

#[test]
fn another_message_about_the_same_version_counts_in_its_series_and_another_version_is_another_event() {
    let world = accepting();
    let recorder = recorder(&world);
    let version = |version: &str| Pod { version: ResourceVersion(version.into()), ..pod("a") };
    recorder.record(Event::failed_scheduling(&version("7"), "0/1 nodes are available"));
    recorder.record(Event::failed_scheduling(&version("7"), "0/2 nodes are available"));
    recorder.record(Event::failed_scheduling(&version("8"), "0/3 nodes are available"));
    world.run_for(seconds(1));
    let requests = world.requests();
    let written = |method: Method| -> Vec<Value> {
        requests.iter().filter(|(_, request)| request.method == method).map(|(_, r)| body(r)).collect()
    };
    let posted = written(Method::Post);
    let told: Vec<_> = posted
        .iter()
        .map(|e| (&e["regarding"]["resourceVersion"], &e["note"], &e["series"]["count"]))
        .collect();
    let (first, second) = ("0/1 nodes are available", "0/3 nodes are available");
    // The second came before the first was written, so that one request tells both.
    assert_eq!(told, [(&json!("7"), &json!(first), &json!(2)), (&json!("8"), &json!(second), &Value::Null)]);
}

#[test]
fn a_server_that_hangs_costs_events_not_memory() {
    let world = FakeWorld::new(|_, _| Answer::Hang);
    let recorder = recorder(&world);
    for i in 0..20_000 {
        recorder.record(Event::failed_scheduling(&pod(&format!("p{i}")), "no"));
        recorder.record(Event::scheduled(&pod(&format!("p{i}")), "n"));
    }
    assert_eq!(recorder.dropped(), 19_000 + 10_000);
    world.run_for(seconds(60));
    assert!(world.requests().len() <= 4 * 3, "{} at once", world.requests().len());
}

#[test]
fn thousands_of_failing_pods_are_told_at_a_bounded_rate() {
    let world = accepting();
    let recorder = recorder(&world);
    for i in 0..1000 {
        recorder.record(Event::failed_scheduling(&pod(&format!("p{i}")), "no"));
    }
    world.run_for(seconds(1));
    let first = world.requests().len();
    assert!((500..=620).contains(&first), "{first}");
    world.run_for(seconds(10));
    assert_eq!(world.requests().len(), 1000);
}

#[test]
fn scheduled_events_stand_back_for_bindings() {
    let world = accepting();
    let recorder = recorder(&world);
    let busy = recorder.busy();
    recorder.record(Event::scheduled(&pod("a"), "n"));
    recorder.record(Event::failed_scheduling(&pod("b"), "no"));
    world.run_for(seconds(60));
    assert_eq!(world.requests().len(), 1, "only the failure");
    drop(busy);
    world.run_for(seconds(1));
    assert_eq!(world.requests().len(), 2);
}

#[test]
fn a_server_in_trouble_is_tried_again_and_then_left_alone() {
    let answers = Arc::new(Mutex::new(0));
    let count = answers.clone();
    let world = FakeWorld::new(move |_, _| {
        *count.lock().unwrap() += 1;
        Answer::json(500, "{}")
    });
    let recorder = recorder(&world);
    recorder.record(Event::scheduled(&pod("a"), "n"));
    world.run_for(seconds(600));
    assert_eq!(*answers.lock().unwrap(), 12);
    assert_eq!(recorder.dropped(), 1);
}

#[test]
fn a_series_whose_event_is_gone_begins_anew() {
    let world = FakeWorld::new(|request, _| {
        if request.method == Method::Patch { Answer::json(404, "{}") } else { Answer::json(201, "{}") }
    });
    let recorder = recorder(&world);
    for _ in 0..2 {
        recorder.record(Event::failed_scheduling(&pod("a"), "no"));
        world.run_for(seconds(1));
    }
    let requests = world.requests();
    let methods: Vec<Method> = requests.iter().map(|(_, request)| request.method).collect();
    assert_eq!(methods, [Method::Post, Method::Patch, Method::Post]);
    assert_eq!(body(&requests[2].1)["series"]["count"], 2);
}

#[test]
fn writers_end_with_the_last_recorder() {
    let world = accepting();
    let recorder = recorder(&world);
    let weak = Arc::downgrade(&recorder.shared);
    drop(recorder);
    world.run_for(seconds(400));
    assert!(weak.upgrade().is_none());
}
