//! A look at rest: everything is mended, things settle, and what should hold then is checked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use supercargo_engine::Engine;
use supercargo_framework::bugs;
use supercargo_live::scheduler::inspector::{PodState, WhatIf};
use supercargo_manifest::Source;
use supercargo_model::{
    Cluster, Key, Name, Pod,
    object::{Kind, Object},
};
use supercargo_scheduler::setup::{self, Overrides};

use super::{
    guest,
    plan::{Act, ExtenderMode, GuestMode},
    rules::{SimulationRule, name_of, text},
    run::{Replica, Simulation},
};
use crate::scheduler::SchedulerProcess;

/// How long things may take to settle after the last fault, besides the lease and the volumes: backoffs, the longest wait
/// that a server may ask for, requests that time out, grace periods. Well below the five minutes of the flush.
const SETTLES_WITHIN: Duration = Duration::from_secs(100);
/// How long nothing may be written at rest.
const RESTS_FOR: Duration = Duration::from_secs(20);
/// How long a fresh start may take to find something to do.
const FRESH_FOR: Duration = Duration::from_secs(15);
/// How often, and after how long, a look is repeated that found something which may have happened just now.
const SECOND_LOOKS: usize = 3;
/// Volumes that come later than this count as never coming.
const LATEST_VOLUME: Duration = Duration::from_secs(20);
/// Tasks that a scheduler has when there is nothing to do: one for each kind that it reads, and its writers.
const TASKS_AT_REST: usize = 60;
/// What all extenders are called where a plugin is named.
const EXTENDERS: &str = "Extender";
const LOOKS_AGAIN_AFTER: Duration = Duration::from_secs(12);

impl Simulation<'_> {
    /// Mends everything, waits, and checks.
    pub(super) fn look(&mut self, last: bool) {
        self.history.say("rules", "a look at rest");
        self.mend();
        let setup = &self.plan.setup;
        let lease = Duration::from_secs(if setup.replicas > 1 { 2 * setup.lease_seconds } else { 0 });
        let provisioned = Duration::from_millis(setup.provision_millis).min(LATEST_VOLUME);
        let settled = SETTLES_WITHIN + lease + 2 * provisioned;
        let waits_for_extender = |pod: &Value| {
            text(pod, &["spec", "nodeName"]).is_empty()
                && self.rules.waits_for_extender(text(pod, &["metadata", "uid"]))
        };
        if setup.extender && self.all("pods").iter().any(waits_for_extender) {
            // Nothing tells that an extender has changed its mind. That something happens gives it another chance.
            self.run_until(self.now() + settled);
            self.something_happens();
        }
        self.run_until(self.now() + settled);
        self.check_again_and_again();
        self.check_rest();
        let waiting = self.all("pods").into_iter().filter(|pod| text(pod, &["spec", "nodeName"]).is_empty());
        let waiting = waiting
            .map(|pod| {
                (text(&pod, &["metadata", "uid"]).to_owned(), pod["spec"]["priority"].as_i64().unwrap_or(0))
            })
            .collect();
        self.rules.check_evictions(&waiting);
        self.rules.check_second_evictions();
        self.rules.check_needs();
        if last || self.now().as_millis().is_multiple_of(2) {
            self.check_fresh_start();
        }
    }

    /// Whatever it is, it wakes those whom an extender has refused, and as far as possible nobody else.
    fn something_happens(&mut self) {
        let Some(node) = self.pick("nodes", 0, |_| true) else {
            return self.act(&Act::AddNode { shape: 1, zone: 0 });
        };
        self.rules.disturbed();
        let annotations = json!({"metadata": {"annotations": {"example.com/seen": self.name("look")}}});
        self.patch("nodes", "", text(&node, &["metadata", "name"]), annotations);
    }

    /// Nothing is wrong any more, and everybody is there.
    fn mend(&mut self) {
        self.faults.clear();
        self.apply_faults();
        self.extender.set(ExtenderMode::Fine);
        self.rules.extender_changed();
        guest::set(GuestMode::Fine);
        for index in 0..self.replicas.len() {
            self.replicas[index].link.mend();
            if let Some(process) = &self.replicas[index].process {
                process.resume();
                // One that does little would come to its end in the middle of the rest.
                process.spare();
            }
            let runs = self.replicas[index].process.as_ref().is_some_and(SchedulerProcess::is_running);
            if !runs {
                self.replicas[index].process = None;
                self.start(index);
            }
        }
    }

    /// What is found may have happened just now: it has to last.
    fn check_again_and_again(&mut self) {
        let mut found = self.differences();
        for _ in 0..SECOND_LOOKS {
            if found.is_empty() {
                return;
            }
            self.run_until(self.now() + LOOKS_AGAIN_AFTER);
            let again = self.differences();
            found.retain(|difference| again.contains(difference));
        }
        found.into_iter().for_each(|(rule, what)| self.rules.broken(rule, what));
    }

    /// What is not as it should be at rest.
    fn differences(&self) -> Vec<(SimulationRule, String)> {
        let objects = self.objects();
        let assumed = self.assumed(&objects);
        let uids: BTreeSet<Name> = assumed.keys().cloned().collect();
        let mut found = Vec::new();
        for replica in &self.replicas {
            let Some(process) = replica.process.as_ref().filter(|process| process.is_running()) else {
                continue;
            };
            found.extend(self.stale_cache(replica.name, process, &objects, &uids));
            found.extend(self.left_behind(replica.name, process, &objects));
        }
        found.extend(self.forgotten(&objects, &assumed));
        found.extend(self.never_bound(&objects, &assumed));
        found
    }

    /// All objects that the server has, by kind and name. Pods that have ended are nobody's business any more.
    fn objects(&self) -> BTreeMap<(Kind, Key), Object> {
        let mut all = BTreeMap::new();
        for kind in Kind::ALL.iter().filter(|kind| !matches!(kind, Kind::ConfigMap | Kind::Custom(_))) {
            for value in self.all(kind.api().plural) {
                if matches!(text(&value, &["status", "phase"]), "Succeeded" | "Failed") {
                    continue;
                }
                let source = Source::new("server", value.to_string());
                let read = Object::from_text(*kind, &[], &source).or_else(|problems| {
                    // What runs holds room, as far as it can be read.
                    let part = Object::pod_in_part(&[], &source).filter(|_| *kind == Kind::Pod);
                    part.filter(|pod| pod.node.is_some()).map(Object::Pod).ok_or(problems)
                });
                match read {
                    Ok(object) => drop(all.insert((*kind, object.key()), object)),
                    Err(problems) => self.history.say("rules", format!("unreadable: {problems}")),
                }
            }
        }
        all
    }

    /// Where a scheduler's cache is not what the server has.
    fn stale_cache(
        &self,
        name: &str,
        process: &SchedulerProcess,
        objects: &BTreeMap<(Kind, Key), Object>,
        assumed: &BTreeSet<Name>,
    ) -> Vec<(SimulationRule, String)> {
        let (expected, assumed) = (objects.clone(), assumed.clone());
        let compared = self.ask(process, |inspector| async move {
            inspector
                .ask(move |engine, queue| {
                    let mut stale = Vec::new();
                    for ((kind, key), object) in &expected {
                        let known = match object {
                            Object::Pod(pod) if pod.node.is_none() => {
                                let ours = engine.profile(&pod.spec.scheduler_name).is_some();
                                let waits = queue.named(key).is_some_and(|pending| **pending.pod == *pod);
                                let on_node = engine.cluster().pod(key).is_some();
                                let assumed = assumed.contains(&pod.uid);
                                assumed || (!on_node && (waits || !ours || pod.terminating))
                            }
                            Object::Pod(pod) => engine
                                .cluster()
                                .pod(key)
                                .is_some_and(|known| known.uid == pod.uid && known.node == pod.node),
                            Object::Node(node) => {
                                engine.cluster().node(&node.name).is_some_and(|known| *known.node == *node)
                            }
                            other => engine.cluster().object(*kind, key).as_ref() == Some(other),
                        };
                        if !known {
                            stale.push(format!("{} {key} is missing or old", kind.name()));
                        }
                    }
                    let gone_nodes = engine.cluster().nodes().filter(|info| {
                        !expected.contains_key(&(Kind::Node, Key::new("", info.node.name.clone())))
                    });
                    stale.extend(
                        gone_nodes.map(|info| format!("node {} is gone from the server", info.node.name)),
                    );
                    let pods =
                        engine.cluster().pods().filter(|pod| !expected.contains_key(&(Kind::Pod, pod.key())));
                    stale.extend(pods.map(|pod| format!("pod {} is gone from the server", pod.key())));
                    let waiting = queue
                        .pending()
                        .filter(|pending| !expected.contains_key(&(Kind::Pod, pending.pod.key())));
                    stale.extend(waiting.map(|pending| {
                        format!("pod {} waits and is gone from the server", pending.pod.key())
                    }));
                    stale
                })
                .await
        });
        match compared {
            Some(stale) => stale
                .into_iter()
                .map(|what| (SimulationRule::CacheEqualsServer, format!("{name}: {what}")))
                .collect(),
            None => vec![(SimulationRule::NeverEnds, format!("{name} does not answer"))],
        }
    }

    /// What a scheduler keeps, and tasks that it has, beyond what there is.
    fn left_behind(
        &self,
        name: &str,
        process: &SchedulerProcess,
        objects: &BTreeMap<(Kind, Key), Object>,
    ) -> Vec<(SimulationRule, String)> {
        let pods = self.all("pods").len();
        let kept = self.ask(process, |inspector| async move { inspector.kept().await }).unwrap_or_default();
        let about_pods = ["failures", "nominations", "statuses", "assumed pods"];
        let too_many =
            about_pods.iter().filter_map(|what| Some((what, kept.get(what).filter(|count| **count > pods)?)));
        let told = |(what, count)| format!("{name} keeps {count} {what}, and there are {pods} pods");
        let mut found: Vec<(SimulationRule, String)> =
            too_many.map(|one| (SimulationRule::NothingLeftBehind, told(one))).collect();
        let tasks = process.task_count();
        if tasks > TASKS_AT_REST + objects.len() {
            found.push((
                SimulationRule::NothingLeftBehind,
                format!("{name} has {tasks} tasks, and there are {} objects", objects.len()),
            ));
        }
        found
    }

    /// Pods that could be scheduled, by a full evaluation of what the server has, and are not.
    fn forgotten(
        &self,
        objects: &BTreeMap<(Kind, Key), Object>,
        assumed: &BTreeMap<Name, Name>,
    ) -> Vec<(SimulationRule, String)> {
        let mut found = Vec::new();
        for replica in &self.replicas {
            let Some(mut engine) = self.reference(replica, objects, assumed) else { continue };
            for object in objects.values() {
                let Object::Pod(pod) = object else { continue };
                let is_ours = engine.profile(&pod.spec.scheduler_name).is_some();
                if pod.node.is_some() || pod.terminating || !is_ours || assumed.contains_key(&pod.uid) {
                    continue;
                }
                if engine.held(pod).is_some() || self.rules.is_excused(&pod.uid) {
                    continue;
                }
                // Whatever is wrong with the schedulers, the reference is right.
                let decision = bugs::with(None, || engine.what_if(pod));
                let Some(decision) = decision else { continue };
                if self.rules.waits_for_newcomers(&pod.uid, &decision.feasible) {
                    continue;
                }
                if let Some(node) = decision.node() {
                    self.tell_opinions(pod);
                    let what = format!("pod {} waits, and {node} would take it", pod.key());
                    found.push((SimulationRule::NobodyForgotten, what));
                }
            }
            // Replicas share their configuration.
            if replica.elects {
                break;
            }
        }
        found
    }

    /// Pods that are about to be bound, and wait for nobody.
    fn never_bound(
        &self,
        objects: &BTreeMap<(Kind, Key), Object>,
        assumed: &BTreeMap<Name, Name>,
    ) -> Vec<(SimulationRule, String)> {
        let volumes_come = Duration::from_millis(self.plan.setup.provision_millis) <= LATEST_VOLUME;
        let told = |object: &Object| {
            let Object::Pod(pod) = object else { return None };
            let node = assumed.get(&pod.uid).filter(|_| !pod.terminating)?;
            let waits_for_nobody = volumes_come || pod.spec.volumes.is_empty();
            waits_for_nobody.then(|| format!("pod {} is still about to be bound to {node}", pod.key()))
        };
        objects.values().filter_map(told).map(|what| (SimulationRule::NobodyForgotten, what)).collect()
    }

    /// What schedulers would decide about a pod now, for whoever reads why it waits.
    fn tell_opinions(&self, pod: &Pod) {
        for replica in &self.replicas {
            let Some(process) = &replica.process else { continue };
            let asked = pod.clone();
            let opinion = self.ask(process, |inspector| async move { inspector.what_if(asked).await });
            let opinion = match opinion {
                Some(WhatIf::Decided(decision)) => match decision.node() {
                    Some(node) => format!("would place it on {node}"),
                    None => decision.message().unwrap_or_default(),
                },
                Some(WhatIf::OtherScheduler) | None => continue,
            };
            self.history.say(replica.name, format!("asked about {}: {opinion}", pod.key()));
        }
    }

    /// The pods that are being bound, and their nodes, by uid.
    fn assumed(&self, objects: &BTreeMap<(Kind, Key), Object>) -> BTreeMap<Name, Name> {
        let mut assumed = BTreeMap::new();
        for process in self.replicas.iter().filter_map(|replica| replica.process.as_ref()) {
            for object in objects.values() {
                let Object::Pod(pod) = object else { continue };
                let key = pod.key();
                if pod.node.is_some() {
                    continue;
                }
                let record = self.ask(process, |inspector| async move { inspector.pod(key).await });
                if let Some(PodState::Binding(node)) = record.map(|record| record.state) {
                    assumed.insert(pod.uid.clone(), node);
                }
            }
        }
        assumed
    }

    /// A scheduler's engine that knows what the server has, and nothing of the past.
    fn reference(
        &self,
        replica: &Replica,
        objects: &BTreeMap<(Kind, Key), Object>,
        assumed: &BTreeMap<Name, Name>,
    ) -> Option<Engine> {
        let mut cluster = Cluster::default();
        cluster.set_now(self.executor.clock().now());
        let mut nominated = Vec::new();
        for object in objects.values() {
            match object {
                Object::Pod(pod) => match (&pod.node, assumed.get(&pod.uid)) {
                    (Some(_), _) => cluster.put(object.clone()),
                    (None, Some(node)) => cluster.put_pod(Arc::new(pod.bound_to(node.clone()))),
                    (None, None) => {
                        nominated.extend(pod.nominated_node.clone().map(|node| (pod.clone(), node)))
                    }
                },
                other => cluster.put(other.clone()),
            }
        }
        // One that is well refuses nothing.
        let mut configuration = replica.configuration.clone();
        configuration.extenders.clear();
        let overrides = Overrides { percentage: Some(setup::ALL_NODES), ..Overrides::default() };
        let mut engine = setup::engine(cluster, &configuration, self.registry, overrides).ok()?;
        for (pod, node) in nominated {
            engine.nominations_mut().nominate(Arc::new(pod), node);
        }
        Some(engine)
    }

    /// Nothing happens, and nothing is written.
    fn check_rest(&mut self) {
        let (state, timeouts, writes) = (self.state(), self.rules.timeouts(), self.rules.writes());
        let (lines, attempts) = (self.log.lines(), self.rules.attempts());
        self.run_until(self.now() + RESTS_FOR);
        let (written, expected) = self.rules.writes();
        let (written, expected) = (written - writes.0, expected - writes.1);
        let logged = self.log.lines() - lines;
        if state != self.state() || timeouts != self.rules.timeouts() {
            return;
        }
        // An attempt is a line, and each process may tell that an old trouble is over.
        if logged > self.rules.attempts() - attempts + self.replicas.len() as u64 {
            let last = self.log.last();
            let what = format!("{logged} lines in {RESTS_FOR:?} in which nothing happened, the last: {last}");
            self.rules.broken(SimulationRule::QuietAtRest, what);
        }
        if written > expected {
            self.rules.broken(
                SimulationRule::QuietAtRest,
                format!("{written} writes in {RESTS_FOR:?} in which nothing happened"),
            );
        }
    }

    /// All pods, nodes and claims, and which of them have ended: whether anything happened.
    fn state(&self) -> Vec<String> {
        let resources = [
            "pods",
            "nodes",
            "persistentvolumeclaims",
            "persistentvolumes",
            "resourceclaims",
            "resourceslices",
        ];
        let objects = resources.into_iter().flat_map(|resource| self.all(resource));
        let ended = |phase: &str| matches!(phase, "Succeeded" | "Failed");
        let told = |object: &Value| {
            let (uid, ends) =
                (text(object, &["metadata", "uid"]), text(object, &["metadata", "deletionTimestamp"]));
            format!("{} {uid} {ends} {}", name_of(object), ended(text(object, &["status", "phase"])))
        };
        objects.map(|object| told(&object)).collect()
    }

    /// All schedulers are killed and started anew: they find nothing to do that the ones before should have done.
    fn check_fresh_start(&mut self) {
        let (bindings, pods) = (self.server.bindings().len(), self.state());
        let uids = self.all("pods").into_iter().map(|pod| text(&pod, &["metadata", "uid"]).to_owned());
        let excused: BTreeSet<String> = uids.filter(|uid| self.rules.is_excused(uid)).collect();
        // Who waited for its volumes when its scheduler was killed had its place: there it may come to be bound.
        let assumed = self.assumed(&self.objects());
        for index in 0..self.replicas.len() {
            self.replicas[index].process = None;
            self.start(index);
        }
        let lease = Duration::from_secs(if self.plan.setup.replicas > 1 {
            2 * self.plan.setup.lease_seconds
        } else {
            0
        });
        self.run_until(self.now() + FRESH_FOR + lease);
        let new = self.server.bindings().split_off(bindings);
        let unexpected = new.iter().find(|binding| {
            let is_newcomer = self.rules.waits_for_newcomers(&binding.uid, [&Name::from(&*binding.node)]);
            let is_where_it_was = assumed.get(&*binding.uid).is_some_and(|node| **node == *binding.node);
            !is_newcomer && !is_where_it_was && !excused.contains(&binding.uid)
        });
        // Who came, or found room that was made, meanwhile is another matter.
        if pods == self.state()
            && let Some(binding) = unexpected
        {
            let what = format!(
                "{}/{} was bound to {} by a fresh start, and not before",
                binding.namespace, binding.name, binding.node
            );
            self.rules.broken(SimulationRule::AsAfterFreshStart, what);
        }
    }

    /// Everything is deleted, and nothing of it is kept.
    pub(super) fn empty_and_look(&mut self) {
        self.history.say("users", "delete everything");
        self.mend();
        for held in self.all("pods").iter().filter(|pod| !pod["metadata"]["finalizers"].is_null()) {
            let (namespace, name) =
                (text(held, &["metadata", "namespace"]), text(held, &["metadata", "name"]));
            self.patch("pods", namespace, name, json!({"metadata": {"finalizers": null}}));
        }
        for resource in [
            "deployments",
            "poddisruptionbudgets",
            "pods",
            "persistentvolumeclaims",
            "persistentvolumes",
            "resourceslices",
            "resourceclaims",
            "nodes",
        ] {
            for object in self.all(resource) {
                let (namespace, name) =
                    (text(&object, &["metadata", "namespace"]), text(&object, &["metadata", "name"]));
                // Controllers may be faster.
                let _ = self.server.delete_now(resource, namespace, name);
            }
        }
        self.run_until(self.now() + SETTLES_WITHIN);
        for object in self.all("pods") {
            let (namespace, name) =
                (text(&object, &["metadata", "namespace"]), text(&object, &["metadata", "name"]));
            let _ = self.server.delete_now("pods", namespace, name);
        }
        self.run_until(self.now() + SETTLES_WITHIN + Duration::from_secs(2 * self.plan.setup.lease_seconds));
        self.act(&Act::CutWatches);
        self.run_until(self.now() + RESTS_FOR);
        for replica in &self.replicas {
            let Some(process) = &replica.process else { continue };
            let kept =
                self.ask(process, |inspector| async move { inspector.kept().await }).unwrap_or_default();
            let tasks = process.task_count();
            if tasks > TASKS_AT_REST {
                let what = format!("{} has {tasks} tasks when nothing is left", replica.name);
                self.rules.broken(SimulationRule::NothingLeftBehind, what);
            }
            let is_configured = |name: &String| {
                self.registry.get(name).is_some()
                    || replica.configuration.profiles.iter().any(|profile| *profile.scheduler_name == **name)
                    || *name == EXTENDERS
            };
            for name in process.names_in_metrics().iter().filter(|name| !is_configured(name)) {
                let what = format!("{} has metric series about {name}", replica.name);
                self.rules.broken(SimulationRule::NothingLeftBehind, what);
            }
            for (what, count) in kept.iter().filter(|(_, count)| **count > 0) {
                let what = format!("{} keeps {count} {what} when nothing is left", replica.name);
                self.rules.broken(SimulationRule::NothingLeftBehind, what);
            }
        }
    }
}
