//! Extenders, on virtual time: who waits for whom, and what becomes of pods while an extender thinks.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{self, BoxFuture};
use serde_json::{Value, json};
use supercargo_config::Configuration;
use supercargo_extender::{Extenders, NoWatcher, Reply, Transport, TransportError};
use supercargo_model::object::Kind;

use super::{Bindings, Scene, pod_json};
use crate::world::{SharedWorld, WorldClock};

/// What an extender does with a question.
pub(super) enum Says {
    Json(Value),
    Status(u16),
    /// A status, and its body as it is.
    Words(u16, String),
    /// Answers after a while.
    Later(Duration, Value),
    Hangs,
    Dies,
    /// Never comes to an end.
    TooMuch,
}

/// What was sent: when, where to, and the body.
pub(super) type Calls = Arc<Mutex<Vec<(Duration, String, Value)>>>;

type Answers = Arc<Mutex<dyn FnMut(&str, &Value) -> Says + Send>>;

struct Fake {
    world: SharedWorld,
    calls: Calls,
    answers: Answers,
}

impl Transport for Fake {
    fn post(
        &self,
        url: &str,
        body: Vec<Bytes>,
        _: usize,
    ) -> BoxFuture<'static, Result<Reply, TransportError>> {
        let body: Value = serde_json::from_slice(&body.concat()).unwrap();
        let says = (self.answers.lock().unwrap())(url, &body);
        self.calls.lock().unwrap().push((self.world.uptime(), url.to_owned(), body));
        let reply = |status: u16, body: &Value| Reply { status, body: body.to_string().into() };
        match says {
            Says::Json(body) => Box::pin(future::ready(Ok(reply(200, &body)))),
            Says::Status(status) => Box::pin(future::ready(Ok(reply(status, &json!("out of order"))))),
            Says::Words(status, text) => Box::pin(future::ready(Ok(Reply { status, body: text.into() }))),
            Says::Later(span, body) => {
                let sleep = self.world.sleep(span);
                Box::pin(async move {
                    sleep.await;
                    Ok(reply(200, &body))
                })
            }
            Says::Hangs => Box::pin(future::pending()),
            Says::Dies => Box::pin(future::ready(Err(TransportError::Broken("connection reset".to_owned())))),
            Says::TooMuch => Box::pin(future::ready(Err(TransportError::TooLong))),
        }
    }
}

/// The configured extenders, which all answer by one function.
pub(super) fn extenders(
    configuration: &Configuration,
    world: &SharedWorld,
    answers: impl FnMut(&str, &Value) -> Says + Send + 'static,
) -> (Arc<Extenders>, Calls) {
    let calls = Calls::default();
    let answers: Answers = Arc::new(Mutex::new(answers));
    let way = |_: &supercargo_config::Extender| {
        let fake = Fake { world: world.clone(), calls: calls.clone(), answers: answers.clone() };
        Ok::<Arc<dyn Transport>, ()>(Arc::new(fake))
    };
    let clock = Arc::new(WorldClock(world.clone()));
    let extenders = Extenders::new(&configuration.extenders, way, clock, Arc::new(NoWatcher)).unwrap();
    (Arc::new(extenders), calls)
}

const ALL: &str = "extenders: [{urlPrefix: 'http://all/', filterVerb: filter}]\n";
const GPU: &str = "extenders: [{urlPrefix: 'http://gpu', filterVerb: filter, nodeCacheCapable: true, \
                   managedResources: [{name: e.com/gpu, ignoredByScheduler: true}]}]\n";

/// Every node passes.
fn all_pass(body: &Value) -> Value {
    json!({"NodeNames": body["NodeNames"], "Nodes": body["Nodes"]})
}

fn gpu_pod(name: &str) -> Value {
    let mut pod = pod_json(name, "1", None);
    pod["spec"]["containers"][0]["resources"]["limits"] = json!({"e.com/gpu": "1"});
    pod["spec"]["containers"][0]["resources"]["requests"]["e.com/gpu"] = "1".into();
    pod
}

impl Scene {
    /// What was sent, as `second url pod`.
    fn asked(&self) -> Vec<String> {
        let line = |(at, url, body): &(Duration, String, Value)| {
            let pod = body["Pod"]["metadata"]["name"].as_str().or(body["PodName"].as_str());
            format!("{} {url} {}", at.as_secs(), pod.unwrap_or_default())
        };
        self.calls.lock().unwrap().iter().map(line).collect()
    }
}

#[test]
fn a_pod_goes_where_its_extender_lets_it() {
    let scene = Scene::with(ALL, Bindings::Done, |_, body| {
        let items: Vec<&Value> = (body["Nodes"]["items"].as_array().unwrap().iter())
            .filter(|node| node["metadata"]["name"] == "b")
            .collect();
        Says::Json(json!({"nodes": {"items": items}}))
    });
    scene.node("a", "4");
    scene.node("b", "1");
    scene.pod("first");
    scene.run(1);
    assert_eq!(scene.sent(), ["first to b"]);
    assert_eq!(scene.asked(), ["0 http://all/filter first"]);
    let (_, _, body) = &scene.calls.lock().unwrap()[0];
    assert_eq!(body["NodeNames"], Value::Null);
    assert_eq!(body["Nodes"]["items"][0]["status"]["allocatable"]["memory"], "1Gi");
}

#[test]
fn a_hung_extender_does_not_stall_pods_that_are_none_of_its_business() {
    let scene = Scene::with(GPU, Bindings::Done, |_, _| Says::Hangs);
    scene.node("a", "4");
    scene.put(Kind::Pod, &gpu_pod("g-1"));
    scene.put(Kind::Pod, &gpu_pod("g-2"));
    scene.pod("plain");
    scene.run(1);
    assert_eq!(scene.sent(), ["plain to a"]);
    // The second waits until the first has run into the time that a call may take.
    scene.run(7);
    assert_eq!(scene.asked()[..2], ["0 http://gpu/filter g-1", "5 http://gpu/filter g-2"]);
    assert_eq!(
        scene.why_not("g-1"),
        ["extender \"http://gpu\", filter: http://gpu/filter has not answered for 5 s"]
    );
}

#[test]
fn a_hung_extender_does_not_stall_the_pods_of_another() {
    let both = "extenders:\n\
        - {urlPrefix: 'http://one', filterVerb: f, prioritizeVerb: p, weight: 1, nodeCacheCapable: true, managedResources: [{name: e.com/one}]}\n\
        - {urlPrefix: 'http://two', prioritizeVerb: p, weight: 1, nodeCacheCapable: true, managedResources: [{name: e.com/two}]}\n";
    let scene = Scene::with(both, Bindings::Done, |url, body| match url {
        "http://one/p" => Says::Hangs,
        "http://one/f" => Says::Json(all_pass(body)),
        _ => Says::Json(json!([])),
    });
    let with_limits = |name: &str, resources: &[&str]| {
        let mut pod = pod_json(name, "100m", None);
        for resource in resources {
            pod["spec"]["containers"][0]["resources"]["limits"][*resource] = "0".into();
        }
        scene.put(Kind::Pod, &pod);
    };
    scene.node("a", "4");
    scene.node("b", "4");
    with_limits("both", &["e.com/one", "e.com/two"]);
    with_limits("two", &["e.com/two"]);
    scene.run(1);
    // It is asked about both pods, although the first still waits for the other extender.
    assert_eq!(scene.asked().len(), 4, "{:?}", scene.asked());
    assert_eq!(scene.sent().len(), 1);
    assert!(scene.sent()[0].starts_with("two to "));
    // A prioritizer that does not answer is left out.
    scene.run(5);
    assert_eq!(scene.sent().len(), 2);
}

#[test]
fn an_extender_has_one_pod_at_a_time_the_most_important_first() {
    let scene =
        Scene::with(ALL, Bindings::Done, |_, body| Says::Later(Duration::from_secs(1), all_pass(body)));
    scene.node("a", "9");
    scene.pod("first");
    scene.run(0);
    scene.pod("second");
    let mut important = pod_json("important", "1", None);
    important["spec"]["priority"] = 10.into();
    scene.put(Kind::Pod, &important);
    scene.run(5);
    let asked = ["0 http://all/filter first", "1 http://all/filter important", "2 http://all/filter second"];
    assert_eq!(scene.asked(), asked);
    assert_eq!(scene.sent(), ["first to a", "important to a", "second to a"]);
}

#[test]
fn the_next_pod_sees_the_one_before_it_placed() {
    let scene =
        Scene::with(ALL, Bindings::Hang, |_, body| Says::Later(Duration::from_secs(1), all_pass(body)));
    scene.node("a", "1");
    scene.node("b", "1");
    scene.pod("first");
    scene.pod("second");
    scene.run(4);
    let nodes = |i: usize| scene.calls.lock().unwrap()[i].2["Nodes"]["items"].as_array().unwrap().len();
    assert_eq!((nodes(0), nodes(1)), (2, 1));
    let sent = scene.sent();
    assert_eq!(sent.len(), 2);
    assert_ne!(sent[0].rsplit(' ').next(), sent[1].rsplit(' ').next());
}

#[test]
fn a_pod_that_is_gone_while_an_extender_thinks_is_not_placed() {
    let scene =
        Scene::with(ALL, Bindings::Done, |_, body| Says::Later(Duration::from_secs(2), all_pass(body)));
    scene.node("a", "1");
    scene.pod("first");
    scene.run(1);
    scene.pod_is_gone("first");
    scene.run(5);
    assert_eq!(scene.sent(), [] as [&str; 0]);
    scene.pod("second");
    scene.run(5);
    assert_eq!(scene.sent(), ["second to a"]);
}

#[test]
fn a_pod_that_changes_while_an_extender_thinks_is_asked_about_anew() {
    let scene =
        Scene::with(ALL, Bindings::Done, |_, body| Says::Later(Duration::from_secs(2), all_pass(body)));
    scene.node("a", "1");
    scene.pod("first");
    scene.run(1);
    let mut changed = pod_json("first", "1", None);
    changed["metadata"]["annotations"] = json!({"only-the-extender": "reads this"});
    scene.put(Kind::Pod, &changed);
    scene.run(5);
    assert_eq!(scene.asked(), ["0 http://all/filter first", "2 http://all/filter first"]);
    let annotation = &scene.calls.lock().unwrap()[1].2["Pod"]["metadata"]["annotations"];
    assert_eq!(annotation["only-the-extender"], "reads this");
    assert_eq!(scene.sent(), ["first to a"]);
}

#[test]
fn a_node_that_goes_while_an_extender_thinks_is_not_taken() {
    let scene =
        Scene::with(ALL, Bindings::Done, |_, body| Says::Later(Duration::from_secs(2), all_pass(body)));
    scene.node("a", "1");
    scene.node("b", "1");
    scene.pod("first");
    scene.run(1);
    scene.pod_is_on("other", "a");
    scene.run(5);
    assert_eq!(scene.sent(), ["first to b"]);
}

#[test]
fn a_lie_is_told_with_its_extender_and_the_pod_is_tried_again() {
    let lies = [
        (
            "names",
            json!({"NodeNames": ["a", "nowhere"]}),
            "it names the node \"nowhere\", which it was not asked about",
        ),
        ("words", json!("lies"), "the answer cannot be read: invalid type: string \"lies\""),
    ];
    for (name, lie, told) in lies {
        let mut first = true;
        let scene = Scene::with(GPU, Bindings::Done, move |_, body| {
            let said = if std::mem::take(&mut first) { lie.clone() } else { all_pass(body) };
            Says::Json(said)
        });
        scene.node("a", "4");
        scene.put(Kind::Pod, &gpu_pod("g"));
        scene.pod("plain");
        scene.run(20);
        let why = scene.why_not("g");
        assert!(why[0].starts_with(&format!("extender \"http://gpu\", filter: {told}")), "{name}: {why:?}");
        let mut sent = scene.sent();
        sent.sort();
        assert_eq!(sent, ["g to a", "plain to a"], "{name}");
    }
}

/// As kube-scheduler: a prioritizer never fails a pod. (b is the better one without it: less is asked for there.)
#[test]
fn prioritizers_that_fail_are_left_out_and_odd_scores_count_as_they_are() {
    let scores =
        "extenders: [{urlPrefix: 'http://s', prioritizeVerb: p, weight: 1, nodeCacheCapable: true}]\n";
    // (what it says, where the pod goes)
    type Answer = fn() -> Says;
    let cases: [(Answer, &str); 9] = [
        (|| Says::Dies, "b"),
        (|| Says::Status(500), "b"),
        (|| Says::TooMuch, "b"),
        (|| Says::Json(json!("words")), "b"),
        (|| Says::Json(json!([{"Host": "a", "Score": 9.5}])), "b"),
        (|| Says::Json(json!([{"Host": "z", "Score": 1}])), "b"),
        (|| Says::Json(json!([{"Host": "z", "Score": 1}, {"Host": "a", "Score": 10}])), "a"),
        // 10 × 10 for b, and 30 × 10 for a: more than anybody else can give.
        (|| Says::Json(json!([{"Host": "a", "Score": 30}, {"Host": "b", "Score": 10}])), "a"),
        (|| Says::Json(json!([{"Host": "b", "Score": -1000}])), "a"),
    ];
    for (i, (says, node)) in cases.into_iter().enumerate() {
        let scene = Scene::with(scores, Bindings::Done, move |_, _| says());
        scene.node("a", "4");
        scene.node("b", "8");
        scene.pod("first");
        scene.run(1);
        assert_eq!(scene.sent(), [format!("first to {node}")], "case {i}");
    }
}

/// Looked at in the condition: it is written as it is kept, while events are cut once more by whoever writes them.
#[test]
fn what_an_extender_says_is_cut() {
    let texts: [fn(String) -> Says; 4] = [
        |text| Says::Json(json!({"Error": text})),
        |text| Says::Json(json!({"FailedNodes": {"a": text}})),
        |text| Says::Json(json!({"NodeNames": [text]})),
        |text| Says::Words(500, text),
    ];
    for (case, text) in texts.into_iter().enumerate() {
        let scene = Scene::with(GPU, Bindings::Done, move |_, _| text("no ".repeat(5_000_000)));
        scene.node("a", "4");
        scene.put(Kind::Pod, &gpu_pod("g"));
        scene.run(3);
        let patch = scene.patched("g");
        let why = patch["status"]["conditions"][0]["message"].as_str().unwrap_or_default();
        assert!(why.contains("no no no") && why.len() < 1500, "case {case}: {} bytes", why.len());
    }
}

#[test]
fn an_ignorable_extender_is_left_alone_after_three_failures_and_tried_again() {
    let ignorable =
        "extenders: [{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true, ignorable: true}]\n";
    let mut calls = 0;
    let scene = Scene::with(ignorable, Bindings::Done, move |_, body| {
        calls += 1;
        if calls <= 4 { Says::Dies } else { Says::Json(all_pass(body)) }
    });
    scene.node("a", "20");
    scene.node("b", "20");
    for i in 0..8 {
        scene.pod(&format!("p-{i}"));
        scene.run(1);
    }
    assert_eq!(scene.sent().len(), 8, "all are bound without it");
    assert_eq!(scene.asked().len(), 3);
    // After its rest one question tells that it is not back, and ten seconds later that it is.
    for i in 8..20 {
        scene.run(3);
        scene.pod(&format!("p-{i}"));
        scene.run(0);
    }
    assert_eq!(scene.sent().len(), 20);
    let at: Vec<u64> =
        scene.asked().iter().map(|asked| asked.split(' ').next().unwrap().parse().unwrap()).collect();
    assert!(at[3] >= 12 && at[4] >= at[3] + 10 && at.len() > 6, "{at:?}");
}

#[test]
fn an_extender_binds_in_the_place_of_the_plugins() {
    let binder = "extenders: [{urlPrefix: 'http://b', bindVerb: bind}]\n";
    let scene = Scene::with(binder, Bindings::Done, |_, _| Says::Json(json!({})));
    scene.node("a", "4");
    scene.pod("first");
    scene.run(1);
    assert_eq!(scene.sent(), [] as [&str; 0]);
    assert_eq!(scene.told("first", "Scheduled"), 1);
    let (_, url, body) = scene.calls.lock().unwrap()[0].clone();
    assert_eq!(url, "http://b/bind");
    assert_eq!(body, json!({"PodName": "first", "PodNamespace": "ns", "PodUID": "uid-first", "Node": "a"}));
}

#[test]
fn a_binding_that_an_extender_made_up_is_found_out_and_its_room_given_back() {
    let binder =
        "extenders: [{urlPrefix: 'http://b', bindVerb: bind, managedResources: [{name: example.com/x}]}]\n";
    let scene = Scene::with(binder, Bindings::Done, |_, _| Says::Json(json!({})));
    scene.node("a", "1");
    let mut lied_about = pod_json("first", "1", None);
    lied_about["spec"]["containers"][0]["resources"]["requests"]["example.com/x"] = "0".into();
    scene.put(Kind::Pod, &lied_about);
    scene.run(1);
    assert_eq!(scene.asked().len(), 1);
    scene.pod("second");
    scene.run(28);
    assert_eq!(scene.sent(), [] as [&str; 0], "the first one may yet be shown on its node");
    scene.run(15);
    let why = "extender http://b said that the pod was bound to a, and the API server has it on no node";
    assert_eq!(scene.why_not("first"), [why]);
    assert_eq!(scene.sent(), ["second to a"]);
}

#[test]
fn a_binding_that_an_extender_refuses_is_tried_again() {
    let binder = "extenders: [{urlPrefix: 'http://b', bindVerb: bind}]\n";
    let mut first = true;
    let scene = Scene::with(binder, Bindings::Done, move |_, _| {
        let error = if std::mem::take(&mut first) { "taken" } else { "" };
        Says::Json(json!({"Error": error}))
    });
    scene.node("a", "1");
    scene.pod("first");
    scene.run(30);
    assert_eq!(scene.why_not("first"), ["taken"]);
    assert_eq!(scene.told("first", "Scheduled"), 1);
}

#[test]
fn a_binding_by_an_extender_without_answer_is_looked_up() {
    let binder = |ignorable| {
        format!("extenders: [{{urlPrefix: 'http://b', bindVerb: bind, ignorable: {ignorable}}}]\n")
    };
    // It was done all the same.
    let scene = Scene::with(&binder(false), Bindings::Done, |_, _| Says::Hangs);
    scene.server.lock().unwrap().bound.push(("first".to_owned(), "a".to_owned()));
    scene.node("a", "1");
    scene.pod("first");
    scene.run(10);
    assert_eq!(scene.told("first", "Scheduled"), 1);
    assert_eq!(scene.asked().len(), 1);
    // It was not done: an ignorable extender's place is taken by the plugins, any other is asked again.
    for (ignorable, sent) in [(true, 1), (false, 0)] {
        let scene = Scene::with(&binder(ignorable), Bindings::Done, |_, _| Says::Hangs);
        scene.node("a", "1");
        scene.pod("first");
        scene.run(30);
        assert_eq!(scene.sent().len(), sent);
        assert_eq!(scene.asked().len() > 1, !ignorable);
    }
}

#[test]
fn room_is_made_where_the_extender_says() {
    let preempts = "extenders: [{urlPrefix: 'http://p', preemptVerb: pre}]\n";
    let scene = Scene::with(preempts, Bindings::Done, |_, body| {
        let victims = &body["NodeNameToVictims"]["b"]["Pods"][0]["metadata"]["uid"];
        Says::Json(
            json!({"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": victims}], "NumPDBViolations": 0}}}),
        )
    });
    scene.node("a", "1");
    scene.node("b", "1");
    scene.pod_is_on("one", "a");
    scene.pod_is_on("two", "b");
    let mut important = pod_json("important", "1", None);
    important["spec"]["priority"] = 10.into();
    scene.put(Kind::Pod, &important);
    scene.run(1);
    assert_eq!(scene.evicted(), ["two"]);
    assert_eq!(scene.asked(), ["0 http://p/pre important"]);
}
