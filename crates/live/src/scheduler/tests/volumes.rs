//! Bindings on virtual time: a server with versions, and a volume controller that does its part some time later.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};
use supercargo_framework::{
    Verdict,
    handle::{
        ApiError, ApiFailure, ApiRequest, Check, Effect, Handle, HandleRef, LogLevel, Look, Measurement,
        Occurrence, PendingPods, Verb, View, Work,
    },
    points,
    preemption::Nominations,
    waiting::WaitingPods,
};
use supercargo_manifest::Source;
use supercargo_model::{
    Cluster, Key, Name, Pod,
    object::{Kind, Object},
};
use supercargo_plugins::volume_binding::{
    ClaimId, VolumePlan,
    annotations::{BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE},
    bind::{VolumeBindingRequest, VolumeFailure, bind},
};

use super::super::handle::send;
use crate::{
    testing::{Answer, FakeWorld},
    world::{Method, Request, SharedWorld, Unanswered, World},
};

mod failures;
mod retries;

const NODE: &str = "/api/v1/nodes/n";
const VOLUME: &str = "/api/v1/persistentvolumes/v";
const CLAIM: &str = "/api/v1/namespaces/ns/persistentvolumeclaims/c";
const OTHER: &str = "/api/v1/namespaces/ns/persistentvolumeclaims/d";

/// When a binding has ended, and how.
type End = (Duration, Result<(), VolumeFailure>);
type SharedServer = Arc<Mutex<Server>>;
/// What others do at the server, a moment after the start.
type Deed = Box<dyn FnOnce(&mut Server) + Send>;
/// Answers in the server's stead, if it does.
type Fault = Box<dyn FnMut(&Request, &mut Server) -> Option<Answer> + Send>;

/// A server with optimistic concurrency.
#[derive(Default)]
struct Server {
    objects: BTreeMap<String, Value>,
    version: u64,
    deeds: Vec<(Duration, Deed)>,
    fault: Option<Fault>,
}

impl Server {
    /// A node, a volume that only this node can reach, and two claims that wait: c for that volume, d for one to be made.
    fn start() -> SharedServer {
        let mut server = Self::default();
        let on_node = json!({"key": "host", "operator": "In", "values": ["n"]});
        server
            .put(NODE, json!({"metadata": {"name": "n", "labels": {"host": "n"}}, "spec": {}, "status": {}}));
        server.put(
            VOLUME,
            json!({
                "metadata": {"name": "v", "unknown": {"kept": true}},
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "storageClassName": "c",
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [on_node]}]}},
                },
                "status": {"phase": "Available"},
            }),
        );
        for (path, name) in [(CLAIM, "c"), (OTHER, "d")] {
            let meta = json!({"name": name, "namespace": "ns", "uid": name, "annotations": {"mine": "1"}});
            let wanted = json!({"requests": {"storage": "1Gi"}});
            let spec = json!({"storageClassName": name, "resources": wanted, "unknown": 1});
            server.put(path, json!({"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}));
        }
        Arc::new(Mutex::new(server))
    }

    fn put(&mut self, path: &str, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(path.to_owned(), object.clone());
        object
    }

    fn change(&mut self, path: &str, pointer: &[&str], value: Value) {
        let mut object = self.objects[path].clone();
        *pointer.iter().fold(&mut object, |at, step| &mut at[*step]) = value;
        self.put(path, object);
    }

    /// What the volume controller does at last.
    fn complete(&mut self, claim: &str, volume: &str) {
        self.change(claim, &["spec", "volumeName"], volume.into());
        self.change(claim, &["metadata", "annotations", BIND_COMPLETED], "yes".into());
    }

    /// The cluster as a watch shows it.
    fn shown(&mut self, now: Duration) -> Cluster {
        self.catch_up(now);
        let mut cluster = Cluster::default();
        for (path, object) in &self.objects {
            let kind = match path.split('/').rev().nth(1) {
                Some("nodes") => Kind::Node,
                Some("persistentvolumes") => Kind::PersistentVolume,
                _ => Kind::PersistentVolumeClaim,
            };
            let text = Source::new("watch", object.to_string());
            cluster.put(Object::from_text(kind, &[], &text).unwrap());
        }
        cluster
    }

    /// Lets others do what they do until a moment.
    fn catch_up(&mut self, now: Duration) {
        while let Some(due) = self.deeds.iter().position(|(at, _)| *at <= now) {
            let (_, deed) = self.deeds.remove(due);
            deed(self);
        }
    }

    fn answer(&mut self, request: &Request, now: Duration) -> Answer {
        self.catch_up(now);
        let mut fault = self.fault.take();
        let answer = fault.as_mut().and_then(|fault| fault(request, self));
        self.fault = fault;
        answer.unwrap_or_else(|| self.do_as_asked(request))
    }

    fn do_as_asked(&mut self, request: &Request) -> Answer {
        let path = &request.path;
        let Some(stored) = self.objects.get(path) else {
            return Answer::json(404, json!({"message": format!("{path} not found")}));
        };
        if request.method == Method::Get {
            return Answer::json(200, stored);
        }
        assert_eq!(request.method, Method::Put, "{request}");
        let object: Value = serde_json::from_slice(&request.body).unwrap();
        if object["metadata"]["resourceVersion"] != stored["metadata"]["resourceVersion"] {
            return Answer::json(409, json!({"message": "the object has been modified"}));
        }
        Answer::json(200, self.put(path, object))
    }
}

fn later(server: &SharedServer, seconds: u64, deed: impl FnOnce(&mut Server) + Send + 'static) {
    server.lock().unwrap().deeds.push((Duration::from_secs(seconds), Box::new(deed)));
}

fn faulty(
    server: &SharedServer,
    fault: impl FnMut(&Request, &mut Server) -> Option<Answer> + Send + 'static,
) {
    server.lock().unwrap().fault = Some(Box::new(fault));
}

fn id(name: &str) -> ClaimId {
    ClaimId { key: Key::new("ns", name), uid: name.into() }
}

/// The volume for claim c, and one to be made for claim d.
fn order(bind: bool, provision: bool) -> VolumeBindingRequest {
    let plan = VolumePlan {
        bind: bind.then(|| ("v".into(), id("c"))).into_iter().collect(),
        provision: provision.then(|| id("d")).into_iter().collect(),
    };
    let pod = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "p"}, "spec": {"containers": []}});
    let Ok(Object::Pod(pod)) = Object::deserialize(Kind::Pod, &[], &pod) else { panic!("a pod") };
    VolumeBindingRequest {
        pod: Arc::new(pod),
        node: "n".into(),
        plan,
        bind_timeout: Duration::from_secs(600),
    }
}

/// A binding under way.
struct Binding {
    world: Arc<FakeWorld>,
    outcome: Arc<Mutex<Option<End>>>,
}

impl Binding {
    fn start(server: &SharedServer, order: VolumeBindingRequest) -> Self {
        Self::start_if(server, order, true)
    }

    fn start_if(server: &SharedServer, order: VolumeBindingRequest, leads: bool) -> Self {
        let asked = server.clone();
        let world = FakeWorld::new(move |request, now| asked.lock().unwrap().answer(request, now));
        let outcome = Arc::new(Mutex::new(None));
        let (server, result, inside) = (server.clone(), outcome.clone(), world.clone());
        world.spawn(Box::pin(async move {
            let handle: Arc<dyn Handle> = Arc::new(ShowsServer { world: inside.clone(), server, leads });
            let way = HandleRef::default();
            way.connect(&handle);
            let ended = bind(&way, order).await;
            *result.lock().unwrap() = Some((inside.uptime(), ended));
        }));
        Self { world, outcome }
    }

    /// How it ends, and after how many seconds.
    fn end(&self) -> (u64, Result<(), String>) {
        self.world.run_for(Duration::from_secs(700));
        let (at, outcome) = self.outcome.lock().unwrap().clone().expect("an end");
        (at.as_secs(), outcome.map_err(|failure| failure.to_string()))
    }

    fn writes(&self) -> Vec<String> {
        let requests = self.world.requests().into_iter();
        let writes = requests.filter(|(_, request)| request.method != Method::Get);
        writes.map(|(_, request)| request.path.rsplit('/').next().unwrap().to_owned()).collect()
    }
}

/// Sends as the scheduler does, and looks every second at what the server has, as a watch would show it.
struct ShowsServer {
    world: Arc<FakeWorld>,
    server: SharedServer,
    leads: bool,
}

/// Every pod is there.
struct Everyone(Arc<Pod>);

impl PendingPods for Everyone {
    fn find(&self, _: &str) -> Option<&Arc<Pod>> {
        Some(&self.0)
    }

    fn all(&self) -> Box<dyn Iterator<Item = &Arc<Pod>> + '_> {
        Box::new([&self.0].into_iter())
    }
}

impl Handle for ShowsServer {
    fn look(&self, _: Look) -> Effect<'static, Verdict> {
        panic!("nobody looks once")
    }

    fn until(&self, mut check: Check) -> Effect<'static, Verdict> {
        let (world, server) = (self.world.clone(), self.server.clone());
        Box::pin(async move {
            loop {
                let cluster = server.lock().unwrap().shown(world.uptime());
                let pending = &Everyone(order(false, false).pod);
                let nominations = &Nominations::default();
                if check(&View { cluster: &cluster, nominations, pending }).is_none() {
                    return Ok(());
                }
                world.sleep(Duration::from_secs(1)).await;
            }
        })
    }

    fn send(&self, request: ApiRequest) -> Effect<'static, Result<Value, ApiError>> {
        if !self.leads && request.verb != Verb::Get {
            return Box::pin(std::future::ready(Err(ApiError::new(ApiFailure::NotLeading, ""))));
        }
        let world: SharedWorld = self.world.clone();
        Box::pin(send(world, request))
    }

    fn bind(&self, _: points::Binding) -> Effect<'static, Verdict> {
        panic!("no pod is bound")
    }

    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn uptime(&self) -> Duration {
        self.world.uptime()
    }

    fn sleep(&self, span: Duration) -> Effect<'static, ()> {
        self.world.sleep(span)
    }

    fn spawn(&self, _: Work, effect: Effect<'static, ()>) {
        self.world.spawn(effect);
    }

    fn record(&self, _: Occurrence) {}

    fn log(&self, _: LogLevel, _: &str) {}

    fn measure(&self, _: Measurement) {}

    fn waiting_pods(&self) -> &WaitingPods {
        panic!("nobody waits")
    }

    fn activate(&self, _: Name) {}

    fn look_again(&self, _: Name, _: Name) {}
}

fn object(server: &SharedServer, path: &str) -> Value {
    server.lock().unwrap().objects[path].clone()
}

#[test]
fn a_volume_that_is_there() {
    let server = Server::start();
    later(&server, 2, |server| server.complete(CLAIM, "v"));
    let claim_version = object(&server, CLAIM)["metadata"]["resourceVersion"].clone();
    let binding = Binding::start(&server, order(true, false));
    assert_eq!(binding.end(), (2, Ok(())));
    assert_eq!(binding.writes(), ["v"]);
    let volume = object(&server, VOLUME);
    let claim_ref = json!({
        "kind": "PersistentVolumeClaim", "apiVersion": "v1",
        "namespace": "ns", "name": "c", "uid": "c", "resourceVersion": claim_version,
    });
    assert_eq!(volume["spec"]["claimRef"], claim_ref);
    assert_eq!(volume["metadata"]["annotations"][BOUND_BY_CONTROLLER], "yes");
    // What is not known here stays.
    assert_eq!(volume["metadata"]["unknown"], json!({"kept": true}));
}

#[test]
fn a_volume_that_a_person_has_meant_for_the_claim() {
    let server = Server::start();
    let meant = json!({"namespace": "ns", "name": "c"});
    server.lock().unwrap().change(VOLUME, &["spec", "claimRef"], meant);
    later(&server, 1, |server| server.complete(CLAIM, "v"));
    assert_eq!(Binding::start(&server, order(true, false)).end(), (1, Ok(())));
    let volume = object(&server, VOLUME);
    assert_eq!(volume["spec"]["claimRef"]["uid"], "c");
    assert!(volume["metadata"]["annotations"][BOUND_BY_CONTROLLER].is_null());
}

#[test]
fn a_volume_that_is_made() {
    let server = Server::start();
    later(&server, 3, |server| {
        let claim = json!({"namespace": "ns", "name": "d", "uid": "d"});
        server.change(OTHER, &["spec", "volumeName"], "made".into());
        let made = json!({"metadata": {"name": "made"}, "spec": {"claimRef": claim}});
        server.put("/api/v1/persistentvolumes/made", made);
    });
    later(&server, 5, |server| server.complete(OTHER, "made"));
    let binding = Binding::start(&server, order(false, true));
    assert_eq!(binding.end(), (5, Ok(())));
    assert_eq!(binding.writes(), ["d"]);
    let claim = object(&server, OTHER);
    assert_eq!(claim["metadata"]["annotations"][SELECTED_NODE], "n");
    assert_eq!(claim["metadata"]["annotations"]["mine"], "1");
    assert_eq!(claim["spec"]["unknown"], 1);
}

#[test]
fn volumes_are_written_before_claims() {
    let server = Server::start();
    later(&server, 1, |server| {
        server.complete(CLAIM, "v");
        server.complete(OTHER, "v");
    });
    let binding = Binding::start(&server, order(true, true));
    assert_eq!(binding.end(), (1, Ok(())));
    assert_eq!(binding.writes(), ["v", "d"]);
}
