//! Races, on virtual time: what happens while a binding is on its way.

mod effects;
mod extenders;
mod gaps;
mod permit;
mod preemption;
mod status;
mod volumes;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_engine::QueueSettings;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Source;
use supercargo_model::{
    Cluster, Key,
    object::{Kind, Object},
};
use supercargo_scheduler::setup::{self, Overrides};
use tokio::sync::mpsc;

use super::{
    Parts, Scheduler,
    meter::{Meter, NoMeter},
};
use crate::{
    informer::{WatchEvent, resources},
    testing::{Answer, FakeWorld},
    world::{Method, Reply, Request, SharedWorld},
};

/// What the server does with a binding.
#[derive(Clone, Copy, PartialEq)]
enum Bindings {
    Done,
    /// Nothing is done, and nothing is answered.
    Hang,
    /// It is done, and not answered.
    DoneSilently,
    Refused,
}

/// Answers in the server's stead, if it does.
type Fault = Box<dyn FnMut(&Request) -> Option<Answer> + Send>;
/// How long an answer takes, if not no time.
type Delay = Box<dyn FnMut(&Request) -> Option<Duration> + Send>;

/// A server that knows what was bound where, and an order of what to do with bindings.
struct Server {
    bindings: Bindings,
    bound: Vec<(String, String)>,
    told: Vec<Value>,
    fault: Fault,
    delay: Delay,
}

impl Server {
    fn answer(&mut self, request: &Request) -> Answer {
        if let Some(answer) = (self.fault)(request) {
            return answer;
        }
        if let Some(delay) = (self.delay)(request) {
            return Answer::Late(delay, Reply::new(200, "{}"));
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if request.path.ends_with("/binding") {
            return self.bind(&body);
        }
        if request.path.contains("/events") {
            self.told.push(body);
            return Answer::json(201, json!({}));
        }
        match request.method {
            Method::Get => self.pod(request.path.rsplit('/').next().unwrap_or_default()),
            _ => Answer::json(200, json!({})),
        }
    }

    fn bind(&mut self, binding: &Value) -> Answer {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if matches!(self.bindings, Bindings::Done | Bindings::DoneSilently) {
            self.bound.push((text(&binding["metadata"]["name"]), text(&binding["target"]["name"])));
        }
        match self.bindings {
            Bindings::Done => Answer::json(201, json!({})),
            Bindings::Refused => Answer::json(500, json!({"message": "etcd is away"})),
            Bindings::Hang | Bindings::DoneSilently => Answer::Hang,
        }
    }

    fn pod(&self, name: &str) -> Answer {
        let node = self.bound.iter().find(|(pod, _)| pod == name).map(|(_, node)| node.as_str());
        Answer::json(200, pod_json(name, "1", node))
    }
}

fn pod_json(name: &str, cpu: &str, node: Option<&str>) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "uid": format!("uid-{name}")},
        "spec": {"nodeName": node, "schedulerName": "default-scheduler",
                 "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
    })
}

/// A scheduler with its configuration, the way to tell it things, and what its extenders are sent.
fn scheduler(
    registry: &Registry,
    configuration: &str,
    world: SharedWorld,
    extender: impl FnMut(&str, &Value) -> extenders::Says + Send + 'static,
) -> (Scheduler, mpsc::Sender<WatchEvent>, extenders::Calls) {
    scheduler_on(Cluster::default(), registry, configuration, world, Arc::new(NoMeter), extender)
}

/// The same, on a cluster that it knows already, and measured.
fn scheduler_on(
    cluster: Cluster,
    registry: &Registry,
    configuration: &str,
    world: SharedWorld,
    meter: Arc<dyn Meter>,
    extender: impl FnMut(&str, &Value) -> extenders::Says + Send + 'static,
) -> (Scheduler, mpsc::Sender<WatchEvent>, extenders::Calls) {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{configuration}"
    );
    let loaded = supercargo_config::load(&Source::new("config", text), registry).unwrap();
    let configuration = loaded.configuration;
    let mut engine = setup::engine(cluster, &configuration, registry, Overrides::default()).unwrap();
    let (extenders, calls) = extenders::extenders(&configuration, &world, extender);
    engine.set_extenders(extenders.all().iter().map(|extender| extender.role().clone()).collect());
    let (sender, watch_events) = mpsc::channel(1024);
    let scheduler = Scheduler::new(Parts {
        world,
        engine,
        queue: QueueSettings { extenders: !configuration.extenders.is_empty(), ..QueueSettings::default() },
        watch_events,
        declared: Default::default(),
        lease: None,
        extenders,
        meter,
        host: "here".to_owned(),
    });
    (scheduler, sender, calls)
}

/// Everything has been read.
fn synced() -> impl Iterator<Item = WatchEvent> {
    resources(&Default::default(), []).into_iter().map(|resource| WatchEvent::Synced(resource.kind))
}

/// An object is there.
fn put(kind: Kind, object: &Value) -> WatchEvent {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default().into();
    let text = supercargo_extender::prepared(&object.to_string());
    let object = Object::deserialize(kind, &[], object).unwrap();
    WatchEvent::Put { object, uid, version: "1".into(), text }
}

/// A scheduler that has read everything, and nothing of it is there yet.
struct Scene {
    world: Arc<FakeWorld>,
    server: Arc<Mutex<Server>>,
    watch_events: mpsc::Sender<WatchEvent>,
    /// What extenders were sent.
    calls: extenders::Calls,
}

impl Scene {
    fn new(bindings: Bindings) -> Self {
        Self::with("", bindings, |_, _| panic!("there are no extenders"))
    }

    /// A scheduler with other plugins, and more in its configuration.
    fn of(registry: &Registry, configuration: &str) -> Self {
        Self::assemble(registry, configuration, Bindings::Done, |_, _| panic!("there are no extenders"))
    }

    /// A scheduler with more in its configuration, and extenders that answer so.
    fn with(
        configuration: &str,
        bindings: Bindings,
        extender: impl FnMut(&str, &Value) -> extenders::Says + Send + 'static,
    ) -> Self {
        Self::assemble(&supercargo_plugins::registry(), configuration, bindings, extender)
    }

    fn assemble(
        registry: &Registry,
        configuration: &str,
        bindings: Bindings,
        extender: impl FnMut(&str, &Value) -> extenders::Says + Send + 'static,
    ) -> Self {
        let server = Arc::new(Mutex::new(Server {
            bindings,
            bound: Vec::new(),
            told: Vec::new(),
            fault: Box::new(|_| None),
            delay: Box::new(|_| None),
        }));
        let asked = server.clone();
        let world = FakeWorld::new(move |request, _| asked.lock().unwrap().answer(request));
        let shared: SharedWorld = world.clone();
        let (scheduler, sender, calls) = scheduler(registry, configuration, shared, extender);
        crate::world::World::spawn(
            &*world,
            Box::pin(async move { drop(scheduler.run(std::future::pending()).await) }),
        );
        let scene = Self { world, server, watch_events: sender, calls };
        synced().for_each(|event| scene.tell(event));
        scene
    }

    fn tell(&self, event: WatchEvent) {
        self.watch_events.try_send(event).unwrap();
    }

    fn put(&self, kind: Kind, object: &Value) {
        self.tell(put(kind, object));
    }

    fn node(&self, name: &str, cpu: &str) {
        self.node_with(name, cpu, "10");
    }

    fn node_with(&self, name: &str, cpu: &str, pods: &str) {
        let amounts = json!({"cpu": cpu, "memory": "1Gi", "pods": pods});
        self.put(Kind::Node, &json!({"metadata": {"name": name}, "status": {"allocatable": amounts}}));
    }

    fn pod(&self, name: &str) {
        self.put(Kind::Pod, &pod_json(name, "1", None));
    }

    fn pod_is_on(&self, name: &str, node: &str) {
        self.put(Kind::Pod, &pod_json(name, "1", Some(node)));
    }

    fn pod_is_gone(&self, name: &str) {
        let uid = format!("uid-{name}").into();
        self.tell(WatchEvent::Gone { kind: Kind::Pod, key: Key::new("ns", name), uid });
    }

    /// Answers in the server's stead from now on.
    fn fail(&self, fault: impl FnMut(&Request) -> Option<Answer> + Send + 'static) {
        self.server.lock().unwrap().fault = Box::new(fault);
    }

    /// Lets the server take its time from now on.
    fn delay(&self, delay: impl FnMut(&Request) -> Option<Duration> + Send + 'static) {
        self.server.lock().unwrap().delay = Box::new(delay);
    }

    fn bind_from_now_on(&self, bindings: Bindings) {
        self.server.lock().unwrap().bindings = bindings;
    }

    fn run(&self, seconds: u64) {
        self.world.run_for(Duration::from_secs(seconds));
    }

    /// Every binding that was sent, as `pod to node`.
    fn sent(&self) -> Vec<String> {
        let requests = self.world.requests();
        let bindings = requests.iter().filter(|(_, request)| request.path.ends_with("/binding"));
        bindings
            .map(|(_, request)| {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                format!(
                    "{} to {}",
                    body["metadata"]["name"].as_str().unwrap(),
                    body["target"]["name"].as_str().unwrap()
                )
            })
            .collect()
    }

    /// The pods that were deleted.
    fn evicted(&self) -> Vec<String> {
        let requests = self.world.requests();
        let deletions = requests.iter().filter(|(_, request)| request.method == Method::Delete);
        deletions.map(|(_, request)| request.path.rsplit('/').next().unwrap_or_default().to_owned()).collect()
    }

    /// The patches of a pod's status.
    fn patches(&self, pod: &str) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/ns/pods/{pod}/status");
        let requests = self.world.requests().into_iter();
        let patches = requests.filter(|(_, request)| request.method == Method::Patch && request.path == path);
        patches.map(|(_, request)| serde_json::from_slice(&request.body).unwrap()).collect()
    }

    /// The last of them.
    fn patched(&self, pod: &str) -> Value {
        self.patches(pod).pop().unwrap_or_default()
    }

    fn why_not(&self, pod: &str) -> Vec<String> {
        let server = self.server.lock().unwrap();
        let about =
            |event: &&Value| event["regarding"]["name"] == pod && event["reason"] == "FailedScheduling";
        let note = |event: &Value| event["note"].as_str().unwrap_or_default().to_owned();
        server.told.iter().filter(about).map(note).collect()
    }

    /// How often events with this reason were told of a pod.
    fn told(&self, pod: &str, reason: &str) -> usize {
        let server = self.server.lock().unwrap();
        let about = |event: &&Value| event["regarding"]["name"] == pod && event["reason"] == reason;
        server.told.iter().filter(about).count()
    }
}

#[test]
fn a_binding_that_takes_longer_than_the_next_cycle_keeps_its_room() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.pod("first");
    scene.run(1);
    scene.pod("second");
    scene.run(20);
    assert_eq!(scene.sent(), ["first to a"]);
    assert_eq!(scene.told("second", "FailedScheduling"), 1);
}

/// A pod that cannot be read as a whole, and what can be.
fn unreadable(name: &str, remains: Option<Value>) -> WatchEvent {
    let (key, uid) = (Key::new("ns", name), format!("uid-{name}").into());
    let remains = remains.map(|pod| Arc::new(serde_json::from_value(pod).unwrap()));
    WatchEvent::Unreadable { kind: Kind::Pod, key, uid, reason: "spec.priority: no".to_owned(), remains }
}

#[test]
fn a_pod_on_a_node_that_cannot_be_read_keeps_others_out() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "2");
    scene.tell(unreadable("odd", Some(pod_json("odd", "2", Some("a")))));
    scene.pod("first");
    scene.run(20);
    assert_eq!(scene.sent(), [""; 0]);
    scene.pod_is_gone("odd");
    scene.run(20);
    assert_eq!(scene.sent(), ["first to a"]);
}

#[test]
fn a_pod_that_cannot_be_read_any_more_holds_what_it_held_before() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.pod_is_on("odd", "a");
    // What it asks for is among what cannot be read now.
    scene.tell(unreadable("odd", Some(pod_json("odd", "0", Some("a")))));
    scene.pod("first");
    scene.run(20);
    assert_eq!(scene.sent(), [""; 0]);
}

#[test]
fn a_binding_that_is_done_and_not_answered_is_done() {
    let scene = Scene::new(Bindings::DoneSilently);
    scene.node("a", "1");
    scene.pod("first");
    scene.run(60);
    scene.pod("second");
    scene.run(60);
    assert_eq!(scene.sent(), ["first to a"]);
    assert_eq!(scene.told("first", "FailedScheduling"), 0);
    assert_eq!(scene.told("first", "Scheduled"), 1);
}

#[test]
fn a_binding_that_is_neither_done_nor_answered_is_tried_again() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.pod("first");
    scene.run(10);
    scene.bind_from_now_on(Bindings::Done);
    scene.run(60);
    assert_eq!(scene.sent(), ["first to a", "first to a"]);
    assert_eq!(scene.told("first", "Scheduled"), 1);
}

#[test]
fn a_pod_that_another_scheduler_binds_elsewhere_gives_its_room_back() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.pod("first");
    scene.run(1);
    scene.node("b", "1");
    scene.pod_is_on("first", "b");
    scene.bind_from_now_on(Bindings::Done);
    scene.pod("second");
    scene.run(1);
    assert_eq!(scene.sent(), ["first to a", "second to a"]);
    scene.run(120);
    assert_eq!(scene.sent().len(), 2);
}

#[test]
fn a_pod_whose_binding_a_restored_server_has_forgotten_is_off_its_node() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "1");
    scene.pod_is_on("first", "a");
    scene.run(1);
    scene.pod("first");
    scene.run(1);
    assert_eq!(scene.sent(), ["first to a"], "it does not stand in its own way");
}

#[test]
fn a_pod_that_is_gone_before_it_is_bound_gives_its_room_back() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.pod("first");
    scene.run(1);
    scene.pod_is_gone("first");
    scene.bind_from_now_on(Bindings::Done);
    scene.pod("second");
    scene.run(120);
    assert_eq!(scene.sent(), ["first to a", "second to a"]);
}

#[test]
fn a_node_that_comes_while_a_binding_fails_helps_the_pod_that_waits() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.pod("first");
    scene.run(1);
    scene.pod("second");
    scene.run(1);
    scene.bind_from_now_on(Bindings::Refused);
    scene.node("b", "1");
    scene.run(1);
    assert_eq!(scene.sent(), ["first to a", "second to b"]);
    scene.bind_from_now_on(Bindings::Done);
    scene.run(120);
    let bound = scene.server.lock().unwrap().bound.clone();
    assert_eq!(bound.len(), 2, "{bound:?}");
    assert_ne!(bound[0].1, bound[1].1);
}

#[test]
fn a_pod_that_is_changed_while_its_binding_fails_is_tried_as_it_is_now() {
    let scene = Scene::new(Bindings::Hang);
    scene.node("a", "1");
    scene.node("b", "1");
    scene.pod("first");
    scene.run(1);
    let mut changed = pod_json("first", "1", None);
    let taken = scene.sent()[0].replace("first to ", "");
    changed["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchFields": [
            {"key": "metadata.name", "operator": "NotIn", "values": [taken]}]}]}}});
    scene.put(Kind::Pod, &changed);
    scene.bind_from_now_on(Bindings::Done);
    scene.run(120);
    let sent = scene.sent();
    assert_eq!(sent.len(), 2);
    assert_ne!(sent[0], sent[1]);
}

#[test]
fn a_pod_whose_room_is_being_made_evicts_nobody_else() {
    let scene = Scene::new(Bindings::Done);
    scene.node("a", "1");
    scene.node("b", "1");
    scene.pod_is_on("one", "a");
    scene.pod_is_on("two", "b");
    let mut important = pod_json("important", "1", None);
    important["spec"]["priority"] = 10.into();
    scene.put(Kind::Pod, &important);
    scene.run(1);
    assert_eq!(scene.evicted().len(), 1);
    // More room, though not enough: its turn comes again while its victim still seems to be there.
    scene.node("a", "1500m");
    scene.node("b", "1500m");
    scene.run(5);
    assert_eq!(scene.evicted().len(), 1);
    let victim = scene.evicted().remove(0);
    scene.pod_is_gone(&victim);
    scene.run(1);
    let node = if victim == "one" { "a" } else { "b" };
    assert_eq!(scene.sent(), [format!("important to {node}")]);
}
