//! Effects that take their time, or block their thread: they hold up their own pod and nobody else.

use std::{
    collections::BTreeSet,
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;
use supercargo_framework::{
    Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    handle::{Effect, HandleRef},
    points::{Permit, PermitHandle, PermitOutcome, PreBind, PreEnqueue, Requeue},
    queueing::QueueView,
    registry::{Registry, define},
};
use supercargo_model::{Cluster, Name, Pod};

use super::{Kind, Scene, pod_json};
use crate::{
    real::threads::Threads,
    world::{Lines, Refused, Reply, Request, Unanswered, World},
};

const MANY: usize = 2_000;

fn with(plugin: impl Into<supercargo_framework::registry::Registration>) -> Registry {
    let mut registry = supercargo_plugins::registry();
    registry.add(plugin);
    registry
}

fn is_slow(pod: &Pod) -> bool {
    pod.name.starts_with("slow")
}

/// Waits for an hour before the slow pods are bound.
struct Waits(HandleRef);

impl PreBind for Waits {
    fn is_needed(&self, pod: &Pod, _: &str) -> bool {
        is_slow(pod)
    }

    fn pre_bind<'a>(&'a self, _: &'a Arc<Pod>, _: &'a Name) -> Effect<'a, Verdict> {
        Box::pin(async {
            self.0.sleep(Duration::from_secs(3600)).await;
            Ok(())
        })
    }
}

fn pod(name: &str) -> serde_json::Value {
    pod_json(name, "1m", None)
}

#[test]
fn thousands_of_pods_that_wait_for_an_hour_are_passed_by() {
    let registry = with(define("Waits", |args| Ok(Waits(args.handle()))).pre_bind());
    let enabled = "profiles: [{plugins: {preBind: {enabled: [{name: Waits}]}}}]";
    let scene = Scene::of(&registry, enabled);
    scene.node_with("a", "100", "5000");
    for i in 0..MANY {
        scene.put(Kind::Pod, &pod(&format!("slow-{i}")));
        if i % 500 == 499 {
            scene.run(1);
        }
    }
    assert!(scene.sent().is_empty());
    (0..100).for_each(|i| scene.put(Kind::Pod, &pod(&format!("quick-{i}"))));
    scene.run(2);
    assert_eq!(scene.sent().len(), 100);
    assert!(scene.sent().iter().all(|sent| sent.starts_with("quick")));
    // Nor do their events wait.
    assert_eq!(scene.told("quick-99", "Scheduled"), 1);
    scene.run(3600);
    assert_eq!(scene.sent().len(), 100 + MANY);
}

/// Lets the pods of a group into the queue once there are three of them.
struct Group;

impl PreEnqueue for Group {
    fn pre_enqueue(&self, view: &QueueView<'_>, pod: &Pod) -> Verdict {
        let group = |pod: &Pod| pod.name.split('-').next().unwrap_or_default().to_owned();
        let members = view.pending.all().filter(|other| group(other) == group(pod)).count();
        if members < 3 { Err(Status::unresolvable("members are missing")) } else { Ok(()) }
    }
}

impl Requeue for Group {
    fn events(&self) -> Vec<EventInterest> {
        vec![EventInterest::new(EventResource::UnscheduledPod, [ActionType::Add]).of_others()]
    }
}

#[test]
fn a_group_waits_for_its_members() {
    let registry = with(define("Group", |_| Ok(Group)).pre_enqueue().requeue());
    let scene = Scene::of(&registry, "profiles: [{plugins: {preEnqueue: {enabled: [{name: Group}]}}}]");
    scene.node("a", "10");
    ["x-1", "x-2", "y-1"].into_iter().for_each(|name| scene.pod(name));
    scene.run(1);
    assert!(scene.sent().is_empty());
    scene.pod("x-3");
    scene.run(1);
    let mut sent = scene.sent();
    sent.sort();
    assert_eq!(sent, ["x-1 to a", "x-2 to a", "x-3 to a"]);
}

/// Lets nobody through until somebody says so through the handle.
struct Gang(HandleRef);

impl Permit for Gang {
    /// The last member of three lets all of them through.
    fn permit(&self, _: &Cluster, _: &Arc<Pod>, _: &Name) -> Result<PermitOutcome, Status> {
        let waiting = self.0.connected()?.waiting_pods().list();
        if waiting.len() < 2 {
            return Ok(PermitOutcome::Wait {
                timeout: Duration::from_secs(60),
                handle: PermitHandle::default(),
            });
        }
        waiting.iter().for_each(|member| member.allow("Gang"));
        Ok(PermitOutcome::Granted)
    }
}

#[test]
fn the_last_member_lets_the_others_through() {
    let registry = with(define("Gang", |args| Ok(Gang(args.handle()))).permit());
    let scene = Scene::of(&registry, "profiles: [{plugins: {permit: {enabled: [{name: Gang}]}}}]");
    scene.node("a", "10");
    ["one", "two"].into_iter().for_each(|name| scene.pod(name));
    scene.run(5);
    assert!(scene.sent().is_empty());
    scene.pod("three");
    scene.run(1);
    assert_eq!(scene.sent().len(), 3);
}

/// Blocks its thread until it is released.
#[derive(Clone, Default)]
struct Blocks(Arc<(Mutex<BlockState>, Condvar)>);

#[derive(Default)]
struct BlockState {
    released: bool,
    blocked: usize,
}

impl PreBind for Blocks {
    fn is_needed(&self, pod: &Pod, _: &str) -> bool {
        is_slow(pod)
    }

    fn pre_bind<'a>(&'a self, _: &'a Arc<Pod>, _: &'a Name) -> Effect<'a, Verdict> {
        Box::pin(async {
            let (state, change) = &*self.0;
            let mut state = state.lock().unwrap();
            state.blocked += 1;
            drop(change.wait_while(state, |state| !state.released).unwrap());
            Ok(())
        })
    }
}

/// The machine's clock and threads, and a server that does whatever it is asked.
struct Agreeable {
    started: Instant,
    threads: Threads,
    bound: Mutex<BTreeSet<String>>,
}

impl World for Agreeable {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span))
    }

    fn random(&self) -> u64 {
        4
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(tokio::spawn(task));
    }

    fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
        self.threads.spawn(task);
    }

    fn yield_now(&self) -> BoxFuture<'static, ()> {
        Box::pin(tokio::task::yield_now())
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        if let Some(path) = request.path.strip_suffix("/binding") {
            let pod = path.rsplit('/').next().unwrap_or_default();
            self.bound.lock().unwrap().insert(pod.to_owned());
        }
        Box::pin(std::future::ready(Ok(Reply::new(200, "{}"))))
    }

    fn watch(&self, _: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        panic!("what becomes known is told by the test")
    }
}

#[test]
fn thousands_of_pods_that_block_their_threads_are_passed_by() {
    let plugin = Blocks::default();
    let made = plugin.clone();
    let registry = with(define("Blocks", move |_| Ok(made.clone())).pre_bind());
    let enabled = "profiles: [{plugins: {preBind: {enabled: [{name: Blocks}]}}}]";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = Arc::new(Agreeable {
            started: Instant::now(),
            threads: Threads::default(),
            bound: Mutex::default(),
        });
        let nobody = |_: &str, _: &serde_json::Value| panic!("there are no extenders");
        let (scheduler, events, _) = super::scheduler(&registry, enabled, world.clone(), nobody);
        tokio::spawn(scheduler.run(std::future::pending()));
        super::synced().for_each(|event| events.try_send(event).unwrap());
        let amounts = json!({"cpu": "100", "memory": "1Gi", "pods": "5000"});
        let node = json!({"metadata": {"name": "a"}, "status": {"allocatable": amounts}});
        events.send(super::put(Kind::Node, &node)).await.unwrap();
        for i in 0..MANY {
            events.send(super::put(Kind::Pod, &pod(&format!("slow-{i}")))).await.unwrap();
        }
        until(|| plugin.0.0.lock().unwrap().blocked == MANY, "all are blocked").await;
        for i in 0..100 {
            events.send(super::put(Kind::Pod, &pod(&format!("quick-{i}")))).await.unwrap();
        }
        let bound = || world.bound.lock().unwrap().len();
        until(|| bound() == 100, "the others pass by").await;
        assert!(world.bound.lock().unwrap().iter().all(|pod| pod.starts_with("quick")));
        plugin.0.0.lock().unwrap().released = true;
        plugin.0.1.notify_all();
        until(|| bound() == 100 + MANY, "all are bound").await;
    });
}

async fn until(holds: impl Fn() -> bool, what: &str) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
