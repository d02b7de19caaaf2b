//! The feed against a small server that is cut, expires, restarts and lies.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};
use supercargo_model::Kind;
use tokio::sync::mpsc;

use super::{InformerHealth, Resource, WatchEvent};
use crate::{
    testing::{Answer, FakeWorld, Then},
    world::{Request, SharedWorld, Unanswered},
};

static NODES: LazyLock<Resource> = LazyLock::new(|| Resource::of(Kind::Node).unwrap());
static PODS: LazyLock<Resource> = LazyLock::new(|| Resource::of(Kind::Pod).unwrap());
static SERVICES: LazyLock<Resource> = LazyLock::new(|| Resource::of(Kind::Service).unwrap());
static BUDGETS: LazyLock<Resource> = LazyLock::new(|| Resource::of(Kind::PodDisruptionBudget).unwrap());

/// A server with one resource: its objects, and every change since the start.
#[derive(Default)]
struct Server {
    version: u64,
    objects: BTreeMap<String, Value>,
    log: Vec<(u64, String, Value)>,
    /// Versions before this one are forgotten.
    oldest: u64,
    watchers: Vec<tokio::sync::mpsc::UnboundedSender<Bytes>>,
    streams_lists: bool,
    /// The next watches break after so many lines.
    cuts: Vec<usize>,
    page_size: usize,
}

type Shared = Arc<Mutex<Server>>;

impl Server {
    fn new() -> Shared {
        Arc::new(Mutex::new(Self { streams_lists: true, page_size: usize::MAX, ..Self::default() }))
    }

    fn put(&mut self, name: &str, uid: &str) {
        self.put_with(name, uid, json!({}));
    }

    fn put_with(&mut self, name: &str, uid: &str, spec: Value) {
        self.version += 1;
        let change = if self.objects.contains_key(name) { "MODIFIED" } else { "ADDED" };
        let object = json!({"kind": "Node", "apiVersion": "v1", "spec": spec,
            "metadata": {"name": name, "uid": uid, "resourceVersion": self.version.to_string()}});
        self.objects.insert(name.to_owned(), object.clone());
        self.happen(change, object);
    }

    fn delete(&mut self, name: &str) {
        self.version += 1;
        let mut object = self.objects.remove(name).unwrap();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.happen("DELETED", object);
    }

    fn happen(&mut self, change: &str, object: Value) {
        let line = Bytes::from(line(change, &object));
        self.log.push((self.version, change.to_owned(), object));
        self.watchers.retain(|watcher| watcher.send(line.clone()).is_ok());
    }

    fn cut_watches(&mut self) {
        self.watchers.clear();
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let query = |name: &str| {
            let (_, query) = request.path.split_once('?')?;
            query.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        if query("watch").is_none() {
            return self.list(query("continue"));
        }
        let mut lines = Vec::new();
        if query("sendInitialEvents").is_some() {
            if !self.streams_lists {
                return Answer::json(422, json!({"code": 422, "message": "sendInitialEvents is forbidden"}));
            }
            lines.extend(self.objects.values().map(|object| line("ADDED", object)));
            lines.push(bookmark(self.version, true));
        } else {
            let since: u64 = query("resourceVersion").unwrap().parse().unwrap();
            if since < self.oldest {
                return Answer::Lines(
                    vec![line("ERROR", &json!({"kind": "Status", "code": 410}))],
                    Then::End,
                );
            }
            lines.extend(
                self.log
                    .iter()
                    .filter(|(at, ..)| *at > since)
                    .map(|(_, change, object)| line(change, object)),
            );
        }
        if !self.cuts.is_empty() {
            lines.truncate(self.cuts.remove(0));
            return Answer::Lines(lines, Then::Cut);
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        self.watchers.push(sender);
        let live = futures_util::stream::unfold(receiver, |mut receiver| async {
            Some((Ok(receiver.recv().await?), receiver))
        });
        Answer::Lines(lines, Then::Live(live.boxed()))
    }

    fn list(&mut self, from: Option<&str>) -> Answer {
        let names = self.objects.iter().filter(|(name, _)| from.is_none_or(|from| name.as_str() > from));
        let mut page: Vec<(&String, &Value)> = names.collect();
        let more = page.len() > self.page_size;
        page.truncate(self.page_size);
        let mark = if more { page.last().unwrap().0.as_str() } else { "" };
        let items: Vec<&Value> = page.iter().map(|(_, object)| *object).collect();
        let metadata = json!({"resourceVersion": self.version.to_string(), "continue": mark});
        Answer::json(200, json!({"kind": "NodeList", "metadata": metadata, "items": items}))
    }
}

fn line(change: &str, object: &Value) -> String {
    json!({"type": change, "object": object}).to_string()
}

fn bookmark(version: u64, ends_list: bool) -> String {
    let annotations =
        if ends_list { json!({"k8s.io/initial-events-end": "true"}) } else { json!({"other": "x"}) };
    line(
        "BOOKMARK",
        &json!({"metadata": {"resourceVersion": version.to_string(), "annotations": annotations}}),
    )
}

fn world_of(server: &Shared) -> Arc<FakeWorld> {
    let server = server.clone();
    FakeWorld::new(move |request, _| server.lock().unwrap().answer(request))
}

fn open(world: &Arc<FakeWorld>, resource: &Resource) -> mpsc::Receiver<WatchEvent> {
    open_with_health(world, resource).0
}

fn open_with_health(
    world: &Arc<FakeWorld>,
    resource: &Resource,
) -> (mpsc::Receiver<WatchEvent>, InformerHealth) {
    let shared: SharedWorld = world.clone();
    let health = InformerHealth::default();
    (super::open(&shared, vec![resource.clone()], &health), health)
}

/// The watch events so far, in short: `+name/uid@version`, `-name/uid`, `!name`, `synced`.
fn told(watch_events: &mut mpsc::Receiver<WatchEvent>) -> Vec<String> {
    let mut told = Vec::new();
    while let Ok(event) = watch_events.try_recv() {
        told.push(match event {
            WatchEvent::Put { object, uid, version, .. } => format!("+{}/{uid}@{version}", object.key()),
            WatchEvent::Gone { key, uid, .. } => format!("-{key}/{uid}"),
            WatchEvent::Unreadable { key, reason, .. } => format!("!{key} {reason}"),
            WatchEvent::Synced(_) => "synced".to_owned(),
            WatchEvent::UpTo(..) => continue,
        });
    }
    told
}

const A_WHILE: Duration = Duration::from_secs(20);

#[test]
fn a_streaming_list_becomes_a_watch() {
    let server = Server::new();
    server.lock().unwrap().put("a", "u1");
    let world = world_of(&server);
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["+a/u1@1", "synced"]);
    server.lock().unwrap().put("b", "u2");
    server.lock().unwrap().put("a", "u1");
    server.lock().unwrap().delete("b");
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["+b/u2@2", "+a/u1@3", "-b/u2"]);
    assert_eq!(world.requests().len(), 1, "one request for all of it");
}

#[test]
fn what_is_no_list_is_not_taken_for_an_empty_one() {
    let server = Server::new();
    server.lock().unwrap().streams_lists = false;
    server.lock().unwrap().put("a", "u1");
    let (shared, lies) = (server.clone(), Arc::new(Mutex::new(0)));
    let left = lies.clone();
    let world = FakeWorld::new(move |request, _| {
        let is_list = !request.path.contains("watch=true");
        let mut left = left.lock().unwrap();
        if is_list && *left > 0 {
            *left -= 1;
            return Answer::json(200, json!({"kind": "Status", "metadata": {}, "status": "Success"}));
        }
        shared.lock().unwrap().answer(request)
    });
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["+a/u1@1", "synced"]);
    *lies.lock().unwrap() = 2;
    server.lock().unwrap().version += 1;
    let version = server.lock().unwrap().version;
    server.lock().unwrap().oldest = version;
    server.lock().unwrap().cut_watches();
    world.run_for(A_WHILE);
    assert_eq!(*lies.lock().unwrap(), 0, "it was asked until it gave a list");
    assert_eq!(told(&mut watch_events), Vec::<String>::new());
}

#[test]
fn without_streaming_lists_there_are_pages() {
    let server = Server::new();
    for (name, uid) in [("a", "u1"), ("b", "u2"), ("c", "u3")] {
        server.lock().unwrap().put(name, uid);
    }
    server.lock().unwrap().streams_lists = false;
    server.lock().unwrap().page_size = 2;
    let world = world_of(&server);
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["+a/u1@1", "+b/u2@2", "+c/u3@3", "synced"]);
    server.lock().unwrap().delete("b");
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["-b/u2"]);
}

/// Whatever the watches' lengths: the watch events end in the server's state, and no version is told twice.
#[test]
fn cuts_at_every_point_lose_and_double_nothing() {
    for first in 0..8 {
        for second in 0..8 {
            for streams_lists in [true, false] {
                check_cuts(&[first, second], streams_lists);
            }
        }
    }
}

fn check_cuts(cuts: &[usize], streams_lists: bool) {
    let server = Server::new();
    let change = |what: fn(&mut Server)| what(&mut server.lock().unwrap());
    change(|s| s.put("a", "u1"));
    change(|s| s.put("b", "u2"));
    server.lock().unwrap().cuts = cuts.to_vec();
    server.lock().unwrap().streams_lists = streams_lists;
    let world = world_of(&server);
    let mut watch_events = open(&world, &NODES);
    let changes: [fn(&mut Server); 6] = [
        |s| s.put("c", "u3"),
        |s| s.delete("a"),
        |s| s.put("a", "u4"),
        |s| s.put("b", "u2"),
        |s| s.delete("c"),
        |s| s.put("d", "u5"),
    ];
    for what in changes {
        world.run_for(Duration::from_secs(1));
        what(&mut server.lock().unwrap());
    }
    world.run_for(Duration::from_secs(60));
    let mut state = BTreeMap::new();
    for event in told(&mut watch_events) {
        if let Some((name, version)) = event.strip_prefix('+').and_then(|put| put.split_once('@')) {
            let (name, uid) = name.split_once('/').unwrap();
            let before = state.insert(name.to_owned(), (uid.to_owned(), version.to_owned()));
            if let Some((uid_before, version_before)) = before {
                assert_eq!(uid_before, uid, "{cuts:?}: recreated without a deletion");
                assert_ne!(version_before, version, "{cuts:?}: told twice");
            }
        } else if let Some((name, uid)) = event.strip_prefix('-').and_then(|gone| gone.split_once('/')) {
            assert_eq!(state.remove(name).unwrap().0, uid, "{cuts:?}");
        }
    }
    let expected = [("a", "u4", "5"), ("b", "u2", "6"), ("d", "u5", "8")];
    let state: Vec<_> = state.iter().map(|(n, (u, v))| (n.as_str(), u.as_str(), v.as_str())).collect();
    assert_eq!(state, expected, "{cuts:?}, streaming: {streams_lists}");
}

#[test]
fn what_changed_across_an_expiry_is_told_as_a_difference() {
    let server = Server::new();
    for (name, uid) in [("a", "u1"), ("b", "u2"), ("c", "u3")] {
        server.lock().unwrap().put(name, uid);
    }
    let world = world_of(&server);
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    told(&mut watch_events);
    {
        let mut server = server.lock().unwrap();
        server.cut_watches();
        server.delete("a");
        server.delete("b");
        server.put("b", "u9");
        server.oldest = server.version;
    }
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["-b/u2", "+b/u9@6", "-a/u1"]);
}

#[test]
fn a_server_that_restarts_with_an_older_state_is_read_anew() {
    let server = Server::new();
    for (name, uid) in [("a", "u1"), ("b", "u2"), ("c", "u3")] {
        server.lock().unwrap().put(name, uid);
    }
    let world = world_of(&server);
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    told(&mut watch_events);
    {
        let mut old = server.lock().unwrap();
        *old = Server { streams_lists: true, page_size: usize::MAX, cuts: vec![], ..Server::default() };
        old.put("a", "u1");
    }
    world.run_for(Duration::from_secs(700));
    // Version 1 may be another text than before: it is told once more, and only once.
    assert_eq!(told(&mut watch_events), ["+a/u1@1", "-b/u2", "-c/u3"]);
}

#[test]
fn an_object_that_makes_no_sense_costs_only_itself() {
    let server = Server::new();
    server.lock().unwrap().put("a", "u1");
    let world = world_of(&server);
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    told(&mut watch_events);
    server.lock().unwrap().put_with("a", "u1", json!({"unschedulable": [1]}));
    server.lock().unwrap().put("b", "u2");
    server.lock().unwrap().put("a", "u1");
    world.run_for(A_WHILE);
    let told = told(&mut watch_events);
    assert_eq!(told[0], "-a/u1", "a node that cannot be read is not there");
    assert!(told[1].starts_with("!a spec.unschedulable: "), "{told:?}");
    assert_eq!(told[2..], ["+b/u2@3", "+a/u1@4"]);
}

/// Servers do not send such objects; but what is told gone is what was told.
#[test]
fn an_object_without_its_namespace_goes_by_the_name_it_came_by() {
    let object = |namespace: Option<&str>, version: &str| json!({"metadata": {"name": "x", "namespace": namespace, "uid": "u", "resourceVersion": version}});
    let without = |version: &str| json!({"metadata": {"name": "x", "uid": "u", "resourceVersion": version}});
    let lines = |object: &dyn Fn(&str) -> Value| {
        vec![bookmark(1, true), line("ADDED", &object("2")), line("DELETED", &object("3"))]
    };
    let check = |resource: &Resource, lines: Vec<String>, expected: [&str; 3]| {
        let world = FakeWorld::new(move |_, _| Answer::Lines(lines.clone(), Then::Silence));
        let mut watch_events = open(&world, resource);
        world.run_for(A_WHILE);
        assert_eq!(told(&mut watch_events), expected);
    };
    check(&SERVICES, lines(&without), ["synced", "+default/x/u@2", "-default/x/u"]);
    check(
        &SERVICES,
        lines(&|version| object(Some(""), version)),
        ["synced", "+default/x/u@2", "-default/x/u"],
    );
    check(&NODES, lines(&|version| object(Some("ns"), version)), ["synced", "+x/u@2", "-x/u"]);
    let both = vec![
        bookmark(1, true),
        line("ADDED", &without("2")),
        line("MODIFIED", &object(Some("default"), "3")),
        line("DELETED", &without("4")),
    ];
    let world = FakeWorld::new(move |_, _| Answer::Lines(both.clone(), Then::Silence));
    let mut watch_events = open(&world, &SERVICES);
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["synced", "+default/x/u@2", "+default/x/u@3", "-default/x/u"]);
}

#[test]
fn a_pod_that_makes_no_sense_keeps_its_room_until_it_is_deleted() {
    let pod = |version: &str, spec: Value| json!({"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": version}, "spec": spec});
    let lines = vec![
        line("ADDED", &pod("1", json!({}))),
        bookmark(1, true),
        line("MODIFIED", &pod("2", json!({"priority": "high"}))),
        line("DELETED", &pod("3", json!({"priority": "high"}))),
    ];
    let world = FakeWorld::new(move |_, _| Answer::Lines(lines.clone(), Then::Silence));
    let mut watch_events = open(&world, &PODS);
    world.run_for(A_WHILE);
    let told = told(&mut watch_events);
    assert_eq!(told[..2], ["+n/p/u@1", "synced"]);
    assert!(told[2].starts_with("!n/p spec.priority: "), "{told:?}");
    assert_eq!(told[3..], ["-n/p/u"]);
}

#[test]
fn of_a_pod_on_a_node_that_makes_no_sense_what_can_be_read_is_told() {
    let container = json!({"resources": {"requests": {"cpu": "2", "memory": {"not": "an amount"}}}});
    let pod = |name: &str, node: Value| {
        line(
            "ADDED",
            &json!({"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "1"},
                    "spec": {"nodeName": node, "priority": "high", "containers": [container]}}),
        )
    };
    let lines = vec![pod("runs", "a".into()), pod("waits", Value::Null), pod("odd", 7.into())];
    let world = FakeWorld::new(move |_, _| Answer::Lines(lines.clone(), Then::Silence));
    let mut watch_events = open(&world, &PODS);
    world.run_for(A_WHILE);
    let mut remains = Vec::new();
    while let Ok(event) = watch_events.try_recv() {
        let WatchEvent::Unreadable { key, remains: pod, .. } = event else { panic!("{event:?}") };
        remains
            .push((key.name.to_string(), pod.map(|pod| (pod.node.clone(), pod.spec.requests.fit.milli_cpu))));
    }
    let expected = [("runs", Some((Some("a".into()), 2000))), ("waits", None), ("odd", None)];
    assert_eq!(remains, expected.map(|(name, pod)| (name.to_owned(), pod)));
}

/// A server that keeps a resource from us until some moment, and then has no object of it.
fn forbids_until(moment: Duration) -> Arc<FakeWorld> {
    FakeWorld::new(move |_, now| match now < moment {
        true => Answer::json(403, json!({"message": "User \"s\" cannot list resource"})),
        false => Answer::Lines(vec![bookmark(1, true)], Then::Silence),
    })
}

#[test]
fn a_forbidden_kind_is_not_taken_for_read_and_tried_again_within_seconds() {
    for resource in [&*NODES, &*SERVICES, &*BUDGETS] {
        let world = forbids_until(Duration::from_secs(300));
        let mut watch_events = open(&world, resource);
        world.run_for(Duration::from_secs(299));
        assert!(told(&mut watch_events).is_empty(), "nothing may be decided before {}", resource.kind.name());
        assert!((30..=80).contains(&world.requests().len()), "{}", world.requests().len());
        world.run_for(Duration::from_secs(11));
        assert_eq!(told(&mut watch_events), ["synced"], "the role has come");
    }
}

/// A server that has no list of a resource, and discovery as given: by path, a status and what it says.
fn unlisted(discovery: fn(&str) -> (u16, Value)) -> Arc<FakeWorld> {
    FakeWorld::new(move |request, _| {
        let path = &*request.path;
        let is_list = path.contains("watch=") || path.contains("limit=");
        let (status, body) = if is_list { (404, json!({"message": "no"})) } else { discovery(path) };
        Answer::json(status, body)
    })
}

#[test]
fn a_kind_that_is_known_not_to_be_served_is_taken_for_none_and_asked_for_now_and_then() {
    let resources: fn(&str) -> (u16, Value) = |_| (200, json!({"resources": [{"name": "evictions"}]}));
    let groups: fn(&str) -> (u16, Value) = |path| match path {
        "/apis" => (200, json!({"groups": [{"versions": [{"groupVersion": "policy/v2"}]}]})),
        _ => (404, json!({})),
    };
    for discovery in [resources, groups] {
        let world = unlisted(discovery);
        let mut watch_events = open(&world, &BUDGETS);
        world.run_for(Duration::from_secs(600));
        assert_eq!(told(&mut watch_events), ["synced"]);
        let lists = world.requests().iter().filter(|(_, request)| request.path.contains("watch=")).count();
        assert!((5..=11).contains(&lists), "{lists}");
    }
}

#[test]
fn a_404_that_discovery_does_not_bear_out_is_passing() {
    type Discovery = fn(&str) -> (u16, Value);
    let served: Discovery = |_| (200, json!({"resources": [{"name": "poddisruptionbudgets"}]}));
    let group_served: Discovery = |path| match path {
        "/apis" => (200, json!({"groups": [{"versions": [{"groupVersion": "policy/v1"}]}]})),
        _ => (404, json!({})),
    };
    let nothing_there: Discovery = |_| (404, json!({}));
    let nonsense: Discovery = |_| (200, json!({"hello": "world"}));
    let forbidden: Discovery = |_| (403, json!({}));
    for discovery in [served, group_served, nothing_there, nonsense, forbidden] {
        let world = unlisted(discovery);
        let mut watch_events = open(&world, &BUDGETS);
        world.run_for(Duration::from_secs(60));
        assert!(told(&mut watch_events).is_empty());
    }
    let world = unlisted(|_| (200, json!({"resources": []})));
    let mut nodes = open(&world, &NODES);
    world.run_for(Duration::from_secs(60));
    assert!(told(&mut nodes).is_empty(), "nothing can be scheduled without nodes");
}

#[test]
fn a_kind_that_comes_to_be_served_is_read() {
    let world = FakeWorld::new(|request, now| match now < Duration::from_secs(30) {
        true if request.path.contains("watch=") => Answer::json(404, json!({})),
        true => Answer::json(200, json!({"resources": []})),
        false => Answer::Lines(
            vec![
                line(
                    "ADDED",
                    &json!({"metadata": {"name": "b", "namespace": "n", "uid": "u", "resourceVersion": "1"}}),
                ),
                bookmark(1, true),
            ],
            Then::Silence,
        ),
    });
    let mut watch_events = open(&world, &BUDGETS);
    world.run_for(Duration::from_secs(150));
    assert_eq!(told(&mut watch_events), ["synced", "+n/b/u@1"]);
}

#[test]
fn a_server_that_is_not_there_is_asked_ever_more_rarely() {
    let world = FakeWorld::new(|_, _| Answer::Unanswered(Unanswered::NotSent("connection refused".into())));
    let _facts = open(&world, &NODES);
    world.run_for(Duration::from_secs(600));
    // 0.8, 1.6, 3.2, 6.4, 12.8, 25.6 and then 30 s, each up to doubled.
    assert!((12..=27).contains(&world.requests().len()), "{}", world.requests().len());
}

#[test]
fn a_watch_that_has_gone_silent_is_opened_anew() {
    let mut asked = 0;
    let world = FakeWorld::new(move |_, _| {
        asked += 1;
        match asked {
            1 => Answer::Lines(vec![bookmark(7, true)], Then::Silence),
            2 => Answer::json(200, json!({"metadata": {"resourceVersion": "7"}, "items": null})),
            _ => Answer::Lines(vec![bookmark(8, false)], Then::Silence),
        }
    });
    let _facts = open(&world, &NODES);
    world.run_for(Duration::from_secs(160));
    let paths: Vec<String> = world.requests().into_iter().map(|(_, request)| request.path).collect();
    assert_eq!(paths.len(), 3, "{paths:?}");
    assert!(paths[2].contains("resourceVersion=7"), "{}", paths[2]);
}

/// A server whose streaming lists fail in some way, and whose pages are as they should be.
fn fails_to_stream(fail: fn() -> Answer) -> Arc<FakeWorld> {
    let item = json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"}});
    FakeWorld::new(move |request, _| {
        if request.path.contains("sendInitialEvents") {
            fail()
        } else if request.path.contains("watch=true") {
            Answer::Lines(vec![], Then::Silence)
        } else {
            Answer::json(200, json!({"metadata": {"resourceVersion": "7"}, "items": [item]}))
        }
    })
}

#[test]
fn whatever_goes_wrong_with_a_streaming_list_pages_are_asked_for() {
    fn object() -> String {
        line("ADDED", &json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"}}))
    }
    fn error(code: u16) -> String {
        line("ERROR", &json!({"kind": "Status", "code": code, "message": "etcd: progress notifications"}))
    }
    let failures: [fn() -> Answer; 8] = [
        || Answer::Lines(vec![], Then::Silence),
        || Answer::Lines(vec![object()], Then::Silence),
        || Answer::Lines(vec![object()], Then::Cut),
        || Answer::Lines(vec![object()], Then::End),
        || Answer::Lines(vec![object(), error(500)], Then::End),
        || Answer::Lines(vec![object(), error(410)], Then::End),
        || Answer::Lines(vec![object(), "<html>".to_owned()], Then::Silence),
        || Answer::json(500, json!({"message": "etcd: progress notifications"})),
    ];
    for (case, fail) in failures.into_iter().enumerate() {
        let world = fails_to_stream(fail);
        let mut watch_events = open(&world, &NODES);
        world.run_for(Duration::from_secs(40));
        assert_eq!(told(&mut watch_events), ["+a/u@3", "synced"], "case {case}");
        world.run_for(Duration::from_secs(60));
        let asked = |what: &str| world.requests().iter().filter(|(_, r)| r.path.contains(what)).count();
        assert_eq!((asked("sendInitialEvents"), asked("limit=500")), (1, 1), "case {case}");
    }
}

#[test]
fn a_server_that_has_streamed_a_list_is_asked_for_another_after_one_that_failed() {
    let server = Server::new();
    server.lock().unwrap().put("a", "u1");
    let world = world_of(&server);
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["+a/u1@1", "synced"]);
    let expire = |cuts: Vec<usize>| {
        let mut server = server.lock().unwrap();
        server.put("a", "u1");
        server.cut_watches();
        server.oldest = server.version + 1;
        server.version += 1;
        server.cuts = cuts;
    };
    // The next watch finds its version forgotten, and the streaming list is cut after an object.
    expire(vec![1]);
    world.run_for(A_WHILE);
    expire(vec![]);
    world.run_for(A_WHILE);
    let lists = |what: &str| world.requests().iter().filter(|(_, r)| r.path.contains(what)).count();
    assert_eq!((lists("sendInitialEvents"), lists("limit=500")), (3, 1));
    assert_eq!(told(&mut watch_events), ["+a/u1@2", "+a/u1@4"]);
}

#[test]
fn an_expired_page_starts_the_list_over() {
    let mut expired = false;
    let item = |name: &str| json!({"metadata": {"name": name, "uid": name, "resourceVersion": "1"}});
    let (a, b) = (item("a"), item("b"));
    let world = FakeWorld::new(move |request, _| {
        let path = &request.path;
        if path.contains("sendInitialEvents") {
            Answer::json(400, json!({}))
        } else if path.contains("watch=true") {
            Answer::Lines(vec![], Then::Silence)
        } else if path.contains("continue=") {
            expired = true;
            Answer::json(410, json!({"message": "too old"}))
        } else {
            let mark = if expired { "" } else { "more" };
            Answer::json(
                200,
                json!({"metadata": {"resourceVersion": "1", "continue": mark}, "items": [a, b]}),
            )
        }
    });
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["+a/a@1", "+b/b@1", "synced"]);
}

#[test]
fn a_wish_to_wait_for_an_hour_is_heeded_for_half_a_minute() {
    let server = Server::new();
    server.lock().unwrap().put("a", "u1");
    let busy = Arc::new(Mutex::new(false));
    let world = {
        let (server, busy) = (server.clone(), busy.clone());
        FakeWorld::new(move |request, _| match *busy.lock().unwrap() {
            true => {
                let retry_after = Some(Duration::from_secs(3600));
                Answer::Reply(crate::world::Reply { retry_after, ..crate::world::Reply::new(429, "{}") })
            }
            false => server.lock().unwrap().answer(request),
        })
    };
    let mut watch_events = open(&world, &NODES);
    world.run_for(A_WHILE);
    assert_eq!(told(&mut watch_events), ["+a/u1@1", "synced"]);
    *busy.lock().unwrap() = true;
    server.lock().unwrap().cut_watches();
    world.run_for(Duration::from_secs(1));
    *busy.lock().unwrap() = false;
    server.lock().unwrap().put("b", "u2");
    world.run_for(Duration::from_secs(35));
    assert_eq!(told(&mut watch_events), ["+b/u2@2"]);
}

#[test]
fn a_kind_that_is_out_of_sight_is_known_to_be() {
    const LIMIT: Duration = Duration::from_secs(60);
    let node = || line("ADDED", &json!({"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"}}));
    let failures: [fn() -> Answer; 4] = [
        || Answer::json(403, json!({})),
        || Answer::json(500, json!({})),
        || Answer::Unanswered(Unanswered::NotSent("connection refused".into())),
        // It can be opened, again and again, and ends at once.
        || Answer::Lines(vec![line("ERROR", &json!({"code": 500}))], Then::End),
    ];
    for (case, fail) in failures.into_iter().enumerate() {
        let failing = Arc::new(Mutex::new(false));
        let (live, watched) = mpsc::unbounded_channel::<Bytes>();
        let mut watched = Some(watched);
        let world = {
            let failing = failing.clone();
            FakeWorld::new(move |request, _| match *failing.lock().unwrap() {
                true => fail(),
                false if !request.path.contains("watch=") => {
                    Answer::json(200, json!({"metadata": {"resourceVersion": "3"}, "items": []}))
                }
                false => match watched.take() {
                    Some(watched) => {
                        let live = futures_util::stream::unfold(watched, |mut watched| async {
                            Some((Ok(watched.recv().await?), watched))
                        });
                        Answer::Lines(vec![node(), bookmark(3, true)], Then::Live(live.boxed()))
                    }
                    None => Answer::Lines(vec![bookmark(4, true)], Then::Silence),
                },
            })
        };
        let (_facts, health) = open_with_health(&world, &NODES);
        let blind = || health.blind_to(crate::world::World::uptime(&*world), LIMIT);
        world.run_for(Duration::from_secs(100));
        assert!(blind().is_empty(), "case {case}: a quiet watch is well");
        *failing.lock().unwrap() = true;
        live.send(Bytes::from(line("ERROR", &json!({"code": 500})))).unwrap();
        world.run_for(Duration::from_secs(55));
        assert!(blind().is_empty(), "case {case}: it may be passing");
        world.run_for(Duration::from_secs(10));
        assert_eq!(blind(), [NODES.kind], "case {case}");
        *failing.lock().unwrap() = false;
        world.run_for(Duration::from_secs(70));
        assert!(blind().is_empty(), "case {case}: it is back");
    }
}

#[test]
fn texts_are_told_where_extenders_want_them() {
    use supercargo_extender::WantedOriginals;
    let filters = |node_cache_capable| supercargo_config::Extender {
        filter_verb: "filter".to_owned(),
        node_cache_capable,
        ..Default::default()
    };
    for (knows_nodes, streams_lists) in [(false, true), (false, false), (true, true)] {
        let server = Server::new();
        server.lock().unwrap().streams_lists = streams_lists;
        server.lock().unwrap().put_with("a", "u1", json!({"providerID": "only extenders read this"}));
        let world = world_of(&server);
        let wanted = Arc::new(WantedOriginals::by(&[filters(knows_nodes)]));
        let mut watch_events = open(&world, &NODES.clone().with_texts(&wanted));
        world.run_for(A_WHILE);
        let Ok(WatchEvent::Put { text, .. }) = watch_events.try_recv() else { panic!("a node is told") };
        let expected = r#",{"metadata":{"name":"a","resourceVersion":"1","uid":"u1"},"spec":{"providerID":"only extenders read this"}}"#;
        assert_eq!(text.as_deref(), (!knows_nodes).then_some(expected.as_bytes()));
    }
}
