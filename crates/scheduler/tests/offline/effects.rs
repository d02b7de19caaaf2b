//! Plugins' effects offline: the same points as live, on virtual time.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use supercargo_framework::{
    Status, Verdict,
    event::EventInterest,
    handle::{ApiResource, Dependency, Effect, HandleRef},
    points::{Bind, BindOutcome, Permit, PermitHandle, PermitOutcome, PostBind, PreBind, Requeue},
    registry::define,
};
use supercargo_model::{Cluster, Key, Name, Pod, object::Kind};

use super::{asks, course_of, course_with, scheduler, sized};

/// Lets pods whose names begin with `gang` through once three of them wait.
struct Gang(HandleRef);

impl Permit for Gang {
    fn permit(&self, _: &Cluster, pod: &Arc<Pod>, _: &Name) -> Result<PermitOutcome, Status> {
        if !pod.name.starts_with("gang") {
            return Ok(PermitOutcome::Granted);
        }
        let waiting = self.0.connected()?.waiting_pods().list();
        if waiting.len() == 2 {
            waiting.iter().for_each(|member| member.allow("Gang"));
            return Ok(PermitOutcome::Granted);
        }
        Ok(PermitOutcome::Wait { timeout: Duration::from_secs(60), handle: PermitHandle::default() })
    }
}

impl Requeue for Gang {
    fn events(&self) -> Vec<EventInterest> {
        Vec::new()
    }
}

#[test]
fn a_group_waits_for_its_members_and_keeps_its_room_meanwhile() {
    let gang = || define("Gang", |args| Ok(Gang(args.handle()))).permit().requeue();
    let enabled = "permit: {enabled: [{name: Gang}]}";
    let members = |count: usize| (0..count).map(|i| asks(&format!("gang-{i}"), "1").priority(9));
    let pods: Vec<_> = members(3).chain([asks("other", "2")]).collect();
    assert_eq!(
        course_with(gang(), enabled, &[sized("n", "3")], &pods),
        ["0s gang-0#1: n", "0s gang-1#1: n", "0s gang-2#1: n", "0s other#1: unschedulable"],
    );
    let pods: Vec<_> = members(2).chain([asks("other", "2")]).collect();
    assert_eq!(
        course_with(gang(), enabled, &[sized("n", "3")], &pods),
        [
            "0s gang-0#1: n",
            "0s gang-1#1: n",
            "0s other#1: unschedulable",
            // One is missing: their time is up, and the room is free.
            "60s gang-0#1: unschedulable",
            "60s gang-1#1: unschedulable",
            "60s other#2: n",
        ],
    );
}

/// Runs something before pods whose names begin with `slow` are bound.
struct Before<F>(HandleRef, F);

impl<F, E> PreBind for Before<F>
where
    F: Fn(HandleRef, Arc<Pod>) -> E + Send + Sync,
    E: Future<Output = Verdict> + Send + 'static,
{
    fn is_needed(&self, pod: &Pod, _: &str) -> bool {
        pod.name.starts_with("slow")
    }

    fn pre_bind<'a>(&'a self, pod: &'a Arc<Pod>, _: &'a Name) -> Effect<'a, Verdict> {
        Box::pin((self.1)(self.0.clone(), pod.clone()))
    }
}

/// A scheduler with such a plugin, and what happens.
fn with_pre_bind<F, E>(effect: F, pods: &[super::Builder]) -> (super::OfflineScheduler, Vec<String>)
where
    F: Fn(HandleRef, Arc<Pod>) -> E + Clone + Send + Sync + 'static,
    E: Future<Output = Verdict> + Send + 'static,
{
    let mut registry = supercargo_plugins::registry();
    let effect =
        move |args: &supercargo_framework::registry::Args<'_>| Ok(Before(args.handle(), effect.clone()));
    registry.add(define("Before", effect).pre_bind().reads(&TICKETS));
    let enabled = "preBind: {enabled: [{name: Before}]}";
    let mut scheduler = scheduler(&registry, enabled, &[sized("n", "2"), asks("old", "1").on("n")], pods);
    let course = course_of(&mut scheduler, |engine, pod| engine.place(pod));
    (scheduler, course)
}

static TICKETS: ApiResource =
    ApiResource { group: "example.com", version: "v1", plural: "tickets", kind: "Ticket", namespaced: true };

fn node_of(scheduler: &super::OfflineScheduler, pod: &str) -> Option<String> {
    let pod = scheduler.engine().cluster().pod(&Key::new("default", pod))?;
    pod.node.as_ref().map(ToString::to_string)
}

#[test]
fn a_wait_of_an_hour_costs_no_time_and_others_pass_by() {
    let hour = |handle: HandleRef, _| async move {
        handle.sleep(Duration::from_secs(3600)).await;
        Ok(())
    };
    let (scheduler, course) = with_pre_bind(hour, &[asks("slow", "500m").priority(9), asks("quick", "500m")]);
    assert_eq!(course, ["0s slow#1: n", "0s quick#1: n"]);
    assert_eq!((scheduler.now().as_secs(), node_of(&scheduler, "slow")), (3600, Some("n".to_owned())));
}

#[test]
fn what_fails_is_tried_again_a_few_times() {
    let fails = |_, _| async { Err(Status::error("broken")) };
    let (_, course) = with_pre_bind(fails, &[asks("slow", "500m").priority(9), asks("other", "500m")]);
    let why = "running PreBind plugin \"Before\": broken";
    let mut expected = vec![format!("0s slow#1: {why}"), "0s other#1: n".to_owned()];
    // Backoff: 1, 2, 4 and 8 seconds, to the end of a second.
    let retries = [(2, 2), (5, 3), (10, 4), (19, 5)];
    expected.extend(retries.map(|(second, number)| format!("{second}s slow#{number}: {why}")));
    assert_eq!(course, expected);
}

#[test]
fn who_waits_for_others_in_vain_is_told_so() {
    let waits = |handle: HandleRef, pod: Arc<Pod>| async move {
        let ticket = Dependency::Object(Kind::Custom(&TICKETS), pod.key());
        handle.until(move |_| Err::<(), _>(vec![ticket.clone()])).await
    };
    let (_, course) = with_pre_bind(waits, &[asks("slow", "1")]);
    assert_eq!(course, ["0s slow#1: n", "0s slow#1: plugin \"Before\" waits for what nobody does offline"]);
}

#[test]
fn what_effects_write_is_there_and_wakes_others() {
    let writes = |handle: HandleRef, pod: Arc<Pod>| async move {
        let old = Key::new("default", "old");
        let read = handle.get_object(&ApiResource::PODS, &old).await?;
        assert_eq!((&read["spec"]["nodeName"], &read["metadata"]["uid"]), (&json!("n"), &json!("old")));
        handle.create(&TICKETS, &pod.key(), json!({"spec": {"for": "slow"}})).await?;
        handle.merge_patch(&TICKETS, &pod.key(), "status", json!({"status": {"ok": true}})).await?;
        let key = pod.key();
        let ok =
            handle.with_cluster(move |view| view.cluster.custom(&TICKETS, &key)?.read("/status/ok").ok());
        assert_eq!(ok.await?, Some(true));
        handle.delete(&ApiResource::PODS, &old, "another").await.expect_err("it is another pod");
        handle.delete(&ApiResource::PODS, &old, "old").await?;
        let namespace = Kind::Namespace.api();
        handle.get_object(namespace, &Key::new("", "default")).await.expect_err("there is none");
        Ok(())
    };
    let (scheduler, course) = with_pre_bind(writes, &[asks("slow", "1").priority(9), asks("other", "1")]);
    // The old pod leaves for nobody in particular, and takes its time.
    assert_eq!(course, ["0s slow#1: n", "0s other#1: unschedulable", "30s other#2: n"]);
    assert_eq!(node_of(&scheduler, "old"), None);
}

/// Binds pods whose names begin with `far` elsewhere, and leaves the others to the next plugin.
struct Elsewhere(HandleRef, Arc<std::sync::Mutex<Vec<String>>>);

impl Bind for Elsewhere {
    fn bind<'a>(&'a self, pod: &'a Arc<Pod>, _: &'a Name) -> Effect<'a, Result<BindOutcome, Status>> {
        Box::pin(async move {
            if !pod.name.starts_with("far") {
                return Ok(BindOutcome::Skip);
            }
            let handle = self.0.connected()?;
            handle.bind(supercargo_framework::points::Binding::new(pod, &"b".into())).await?;
            Ok(BindOutcome::Done)
        })
    }
}

impl PostBind for Elsewhere {
    fn post_bind<'a>(&'a self, pod: &'a Arc<Pod>, _: &'a Name) -> Effect<'a, ()> {
        Box::pin(async { self.1.lock().unwrap().push(pod.name.to_string()) })
    }
}

#[test]
fn bind_plugins_bind_and_are_told_after() {
    let told = Arc::<std::sync::Mutex<Vec<String>>>::default();
    let mut registry = supercargo_plugins::registry();
    let heard = told.clone();
    registry
        .add(define("Elsewhere", move |args| Ok(Elsewhere(args.handle(), heard.clone()))).bind().post_bind());
    let enabled = "bind: {enabled: [{name: Elsewhere}, {name: DefaultBinder}], disabled: [{name: '*'}]}, \
                   postBind: {enabled: [{name: Elsewhere}]}";
    let on_a = |name: &str| asks(name, "1").set("/spec/nodeSelector/name", "a");
    let nodes = ["a", "b"].map(|name| sized(name, "4").label("name", name));
    let mut scheduler = scheduler(&registry, enabled, &nodes, &[on_a("far"), on_a("near")]);
    course_of(&mut scheduler, |engine, pod| engine.place(pod));
    assert_eq!(node_of(&scheduler, "far").as_deref(), Some("b"));
    assert_eq!(node_of(&scheduler, "near").as_deref(), Some("a"));
    assert_eq!(*told.lock().unwrap(), ["far", "near"]);
}
