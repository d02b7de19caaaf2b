//! What users, controllers and others do, and how things go wrong.

use std::{collections::BTreeSet, time::Duration};

use jiff::SignedDuration;
use serde_json::{Value, json};
use supercargo_testcluster::{Fault, FaultRule, PatchKind};

use super::{
    guest,
    objects::{self, FINALIZER, FOREIGN_SCHEDULER, KINDS, NAMESPACES, SECOND_SCHEDULER, Wanted},
    plan::{Act, ExtenderMode, FaultyVerb, GuestMode, RequestFault},
    rules::{name_of, text},
    run::{Replica, Simulation},
};

/// How long pods outlive their node's object.
pub(super) const ORPHANS_END_AFTER: Duration = Duration::from_secs(40);
/// How long news are on their way.
const HEARD_AFTER: Duration = Duration::from_millis(2);
/// How long watches are late when a leader goes.
const LATE_FOR: Duration = Duration::from_secs(40);
/// How many times less late the watch of the leader that goes is.
const LEADER_IS_LESS_LATE: u32 = 10;

/// Something that follows from what was done before.
pub(super) enum Later {
    /// A pod's work is done.
    PodEnds {
        namespace: String,
        name: String,
        uid: String,
    },
    FaultOver(u64),
    /// Nothing is wrong with a connection any more.
    LinkMended(usize),
    Resume(usize),
    Start(usize),
    ExtenderMended,
    GuestMended,
    ServerIsBack,
    /// The pods of nodes that are gone go, too.
    OrphansEnd,
}

impl Simulation<'_> {
    /// Does something.
    pub(super) fn act(&mut self, act: &Act) {
        let who = if act.is_fault() { "faults" } else { "users" };
        self.history.say(who, serde_json::to_string(act).unwrap_or_default());
        if act.is_fault()
            || !matches!(act, Act::CreatePods { .. } | Act::CreateGated { .. } | Act::OpenGate { .. })
        {
            self.rules.disturbed();
        }
        if matches!(act, Act::RelabelNode { .. } | Act::RecreateNode { .. }) {
            self.rules.relabelled();
        }
        if matches!(act, Act::RemoveNode { .. }) {
            self.rules.node_removed();
        }
        match act.is_fault() {
            true => self.goes_wrong(act),
            false => self.does(act),
        }
    }

    fn does(&mut self, act: &Act) {
        match *act {
            Act::AddNode { shape, zone } => {
                let name = self.name("node");
                self.create(objects::node(&name, shape, zone));
            }
            Act::CreatePods { template, count, life_seconds } => {
                (0..count).for_each(|_| self.create_pod(template, false, life_seconds));
            }
            Act::CreateGated { template, count } => {
                (0..count).for_each(|_| self.create_pod(template, true, 0))
            }
            Act::Deploy { template, replicas } => {
                let (namespace, name) = (self.namespace(), self.name("deployment"));
                self.create(objects::deployment(namespace, &name, template, replicas));
            }
            Act::AddBudget { app, min_available } => {
                let (namespace, name) = (self.namespace(), self.name("budget"));
                self.create(objects::budget(namespace, &name, app, min_available));
            }
            Act::AddVolume { zone } => {
                let name = self.name("volume");
                self.create(objects::volume(&name, zone));
            }
            Act::ForeignPod { template, node } => self.foreign_pod(template, node),
            Act::UnreadablePod { node } => {
                let (namespace, name) = (self.namespace(), self.name("unreadable"));
                if let Some(node) = self.pick("nodes", node, |_| true) {
                    self.create(objects::unreadable_pod(
                        namespace,
                        &name,
                        text(&node, &["metadata", "name"]),
                    ));
                }
            }
            Act::HeldPod { template } => {
                let (namespace, name) = (self.namespace(), self.name("pod"));
                let wanted = Wanted { namespace, name: &name, template, scheduler: "", gated: false };
                let (mut pod, _) = objects::pod(&wanted);
                pod["metadata"]["finalizers"] = json!([FINALIZER]);
                self.create(pod);
            }
            Act::OddNode { pick } => {
                let name = self.name("odd");
                self.create(objects::odd_node(&name, pick));
            }
            Act::RaceNewest { sort, pick } => self.race_newest(sort, pick),
            Act::Devices { sort, pick } => self.act_on_devices(sort, pick),
            Act::RelabelNamespace { pick } => {
                let tier = if pick.is_multiple_of(2) { json!("gold") } else { Value::Null };
                let name = NAMESPACES[(pick / 2 % 3) as usize];
                self.patch("namespaces", "", name, json!({"metadata": {"labels": {"tier": tier}}}));
            }
            Act::DeleteNamespace { pick } => self.delete_namespace(NAMESPACES[1 + (pick % 2) as usize]),
            Act::RemoveNode { pick }
            | Act::NodeDies { pick }
            | Act::RecreateNode { pick, .. }
            | Act::Cordon { pick, .. }
            | Act::Taint { pick, .. }
            | Act::RelabelNode { pick, .. }
            | Act::ResizeNode { pick, .. }
            | Act::Drain { pick } => self.happens_to_node(act, pick),
            Act::DeletePod { pick }
            | Act::RecreatePod { pick, .. }
            | Act::RelabelPod { pick }
            | Act::TolerateMore { pick }
            | Act::OpenGate { pick }
            | Act::ForeignBinds { pick, .. } => self.happens_to_pod(act, pick),
            Act::Scale { pick, .. } | Act::Roll { pick, .. } | Act::DeleteDeployment { pick } => {
                self.happens_to_deployment(act, pick);
            }
            Act::RemoveBudget { pick } => {
                if let Some(budget) = self.pick("poddisruptionbudgets", pick, |_| true) {
                    self.delete("poddisruptionbudgets", &budget);
                }
            }
            _ => {}
        }
    }

    fn happens_to_node(&mut self, act: &Act, pick: u64) {
        let Some(node) = self.pick("nodes", pick, |_| true) else { return };
        let name = text(&node, &["metadata", "name"]).to_owned();
        match *act {
            Act::RemoveNode { .. } => {
                self.delete("nodes", &node);
                self.after(ORPHANS_END_AFTER, Later::OrphansEnd);
            }
            Act::NodeDies { .. } => {
                self.delete("nodes", &node);
                self.end_pods_of(&name);
            }
            Act::RecreateNode { shape, .. } => {
                self.delete("nodes", &node);
                self.create(objects::node(&name, shape, shape / 7));
            }
            Act::Cordon { on, .. } => self.patch("nodes", "", &name, json!({"spec": {"unschedulable": on}})),
            Act::Taint { on, .. } => {
                let taints =
                    if on { json!([{"key": "example.com/busy", "effect": "NoSchedule"}]) } else { json!([]) };
                self.patch("nodes", "", &name, json!({"spec": {"taints": taints}}));
            }
            Act::RelabelNode { zone, .. } => {
                let labels = json!({"topology.kubernetes.io/zone": objects::zone(zone)});
                self.patch("nodes", "", &name, json!({"metadata": {"labels": labels}}));
            }
            Act::ResizeNode { shape, .. } => {
                let mut resized = node.clone();
                resized["status"]["capacity"] = objects::capacity(shape);
                resized["status"]["allocatable"] = objects::capacity(shape);
                self.update(resized);
            }
            Act::Drain { .. } => {
                self.patch("nodes", "", &name, json!({"spec": {"unschedulable": true}}));
                for pod in self.all("pods").iter().filter(|pod| text(pod, &["spec", "nodeName"]) == name) {
                    self.delete("pods", pod);
                }
            }
            _ => {}
        }
    }

    fn race_newest(&mut self, sort: u64, pick: u64) {
        let Some((namespace, name)) = self.newest_pod.clone() else { return };
        let Ok(pod) = self.server.get("pods", &namespace, &name) else { return };
        let act = match sort % 6 {
            0 => Act::DeletePod { pick },
            1 => Act::RecreatePod { pick, template: pick / 3 },
            2 => Act::RelabelPod { pick },
            3 => Act::TolerateMore { pick },
            _ => Act::ForeignBinds { pick, node: pick },
        };
        self.happens_to_one(&act, pick, &pod);
    }

    fn happens_to_pod(&mut self, act: &Act, pick: u64) {
        let waits = |pod: &Value| text(pod, &["spec", "nodeName"]).is_empty();
        let gated =
            |pod: &Value| pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
        let is_meant = |pod: &Value| match act {
            Act::TolerateMore { .. } => waits(pod),
            Act::OpenGate { .. } => gated(pod),
            Act::ForeignBinds { .. } => waits(pod) && !gated(pod),
            Act::RecreatePod { .. } => pod["metadata"]["ownerReferences"].is_null(),
            _ => true,
        };
        let Some(pod) = self.pick("pods", pick, is_meant) else { return };
        self.happens_to_one(act, pick, &pod);
    }

    fn happens_to_one(&mut self, act: &Act, pick: u64, pod: &Value) {
        let (namespace, name) =
            (text(pod, &["metadata", "namespace"]).to_owned(), text(pod, &["metadata", "name"]).to_owned());
        match *act {
            Act::DeletePod { .. } => self.delete("pods", pod),
            Act::RecreatePod { template, .. } => {
                self.tried(self.server.delete_now("pods", &namespace, &name).map(drop));
                let scheduler = text(pod, &["spec", "schedulerName"]).to_owned();
                let wanted = Wanted {
                    namespace: &namespace,
                    name: &name,
                    template,
                    scheduler: &scheduler,
                    gated: false,
                };
                self.create_wanted(&wanted);
            }
            Act::RelabelPod { .. } => {
                let app = format!("app-{}", pick / 11 % 16);
                self.patch("pods", &namespace, &name, json!({"metadata": {"labels": {"app": app}}}));
            }
            Act::TolerateMore { .. } => {
                let mut tolerations = pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
                tolerations
                    .push(json!({"key": "example.com/busy", "operator": "Exists", "effect": "NoSchedule"}));
                self.patch("pods", &namespace, &name, json!({"spec": {"tolerations": tolerations}}));
            }
            Act::OpenGate { .. } => {
                self.patch("pods", &namespace, &name, json!({"spec": {"schedulingGates": []}}));
            }
            Act::ForeignBinds { node, .. } => {
                let Some(node) = self.pick("nodes", node, |_| true) else { return };
                let node = text(&node, &["metadata", "name"]).to_owned();
                self.tried(self.server.bind(&namespace, &name, &node));
            }
            _ => {}
        }
    }

    fn happens_to_deployment(&mut self, act: &Act, pick: u64) {
        let Some(deployment) = self.pick("deployments", pick, |_| true) else { return };
        let namespace = text(&deployment, &["metadata", "namespace"]).to_owned();
        let name = text(&deployment, &["metadata", "name"]).to_owned();
        match *act {
            Act::Scale { replicas, .. } => {
                self.patch("deployments", &namespace, &name, json!({"spec": {"replicas": replicas}}));
            }
            Act::Roll { template, .. } => {
                let mut rolled = deployment.clone();
                rolled["spec"]["template"] = objects::deployment_template(&name, template);
                self.update(rolled);
            }
            _ => self.delete("deployments", &deployment),
        }
    }

    fn goes_wrong(&mut self, act: &Act) {
        // What is stored is seen before the history of it can be forgotten.
        self.executor.run_ready();
        let span = |seconds: u64| Duration::from_secs(seconds);
        match *act {
            Act::Requests { fault, verb, per_mille, seconds } => {
                self.fault_for(span(seconds), request_fault(fault, verb, per_mille));
            }
            Act::Forbidden { kind, seconds } => {
                let forbidden = FaultRule::new(Fault::Answer { code: 403, retry_after_seconds: 0 });
                let kind = KINDS[(kind % KINDS.len() as u64) as usize];
                self.fault_for(span(seconds), forbidden.verb("list").verb("watch").resource(kind));
            }
            Act::CutWatches => self.server.faults().cut_watches(),
            Act::Compact => self.server.faults().compact(),
            Act::RestartServer { down_millis, forget_history } => {
                self.replicas.iter().for_each(|replica| replica.link.set_down(true));
                self.server.faults().cut_watches();
                if forget_history {
                    self.server.faults().compact();
                }
                self.after(Duration::from_millis(down_millis), Later::ServerIsBack);
            }
            Act::Backup => self.backup = Some(self.server.snapshot()),
            Act::Restore { bumped } => {
                if let Some(backup) = self.backup.clone() {
                    self.rules.restored();
                    self.server.restore(&backup, bumped);
                    self.after(ORPHANS_END_AFTER, Later::OrphansEnd);
                    if !bumped {
                        // Versions repeat, and no watch can tell: whoever restores like this restarts everything.
                        self.replicas.iter_mut().for_each(|replica| replica.process = None);
                        (0..self.replicas.len()).for_each(|index| self.start(index));
                    }
                }
            }
            Act::LeaderGoes { .. } => self.leader_goes(act),
            Act::Extender { mode, seconds } => {
                self.extender.set(mode);
                self.rules.extender_changed();
                self.after(span(seconds), Later::ExtenderMended);
            }
            Act::Guest { mode, seconds } => {
                guest::set(mode);
                self.after(span(seconds), Later::GuestMended);
            }
            Act::LateWatch { process, .. }
            | Act::SlowLink { process, .. }
            | Act::LinkDown { process, .. }
            | Act::Kill { process, .. }
            | Act::Restart { process }
            | Act::Pause { process, .. }
            | Act::ClockStep { process, .. } => {
                self.happens_to_scheduler(act, (process % self.replicas.len() as u64) as usize)
            }
            _ => {}
        }
    }

    fn happens_to_scheduler(&mut self, act: &Act, index: usize) {
        let replica = &mut self.replicas[index];
        let link = replica.link.clone();
        match *act {
            Act::LateWatch { kind, millis, seconds, .. } => {
                let kind = KINDS[(kind % KINDS.len() as u64) as usize];
                link.set_watch_slower(kind, Duration::from_millis(millis));
                self.after(Duration::from_secs(seconds), Later::LinkMended(index));
            }
            Act::SlowLink { millis, seconds, .. } => {
                link.set_slower(Duration::from_millis(millis));
                self.after(Duration::from_secs(seconds), Later::LinkMended(index));
            }
            Act::LinkDown { seconds, .. } => {
                link.set_down(true);
                self.after(Duration::from_secs(seconds), Later::LinkMended(index));
            }
            Act::Kill { polls, down_seconds, .. } => {
                let Some(process) = &replica.process else { return };
                process.resume();
                process.kill_after_polls(polls);
                // It ends when it ends; whoever looks after it starts it again. Some stay away for longer.
                if down_seconds > 0 && polls < 50 {
                    replica.away = true;
                    self.after(Duration::from_secs(down_seconds), Later::Start(index));
                }
            }
            Act::Restart { .. } => {
                if let Some(process) = replica.process.take() {
                    process.stop();
                    self.start(index);
                }
            }
            Act::Pause { seconds, .. } => {
                let Some(process) = &replica.process else { return };
                process.pause();
                self.after(Duration::from_secs(seconds), Later::Resume(index));
            }
            Act::ClockStep { seconds, .. } => link.set_clock_off(SignedDuration::from_secs(seconds)),
            _ => {}
        }
    }

    fn leader_goes(&mut self, act: &Act) {
        let Act::LeaderGoes { template, count, after_millis, late_millis, frozen_seconds } = *act else {
            return;
        };
        let leads = |replica: &Replica| !replica.elects || self.rules.leads(&replica.process_name());
        let Some(leader) = self.replicas.iter().position(leads) else { return };
        let late = Duration::from_millis(late_millis);
        self.replicas[leader].link.set_watch_slower("pods", late / LEADER_IS_LESS_LATE);
        (0..count).for_each(|_| self.create_pod(template, false, 0));
        // The others know that the pods wait, and not what becomes of them.
        self.executor.run_for(HEARD_AFTER);
        for index in (0..self.replicas.len()).filter(|index| *index != leader) {
            self.replicas[index].link.set_watch_slower("pods", late);
            self.after(LATE_FOR, Later::LinkMended(index));
        }
        self.executor.run_for(late / LEADER_IS_LESS_LATE + Duration::from_millis(after_millis));
        match frozen_seconds {
            0 => self.stays_away(leader),
            seconds => self.happens_to_scheduler(&Act::Pause { process: 0, seconds }, leader),
        }
        (0..count).for_each(|_| self.create_pod(template, false, 0));
    }

    /// A scheduler is asked to stop, and does not come back before another could lead.
    fn stays_away(&mut self, index: usize) {
        if let Some(process) = self.replicas[index].process.take() {
            process.stop();
            self.replicas[index].away = true;
            self.after(LATE_FOR, Later::Start(index));
        }
    }

    /// Something that was done before has its consequence.
    pub(super) fn happens(&mut self, later: Later) {
        match later {
            Later::PodEnds { namespace, name, uid } => {
                let is_same = |pod: &Value| text(pod, &["metadata", "uid"]) == uid;
                let Some(mut pod) = self.server.get("pods", &namespace, &name).ok().filter(is_same) else {
                    return;
                };
                if text(&pod, &["spec", "nodeName"]).is_empty() {
                    return;
                }
                pod["status"]["phase"] = "Succeeded".into();
                self.update(pod);
            }
            Later::FaultOver(id) => {
                self.faults.remove(&id);
                self.apply_faults();
                self.rules.disturbed();
            }
            Later::LinkMended(index) => {
                self.replicas[index].link.mend();
                self.rules.disturbed();
            }
            Later::ServerIsBack => {
                self.replicas.iter().for_each(|replica| replica.link.set_down(false));
                self.rules.disturbed();
            }
            Later::Resume(index) => {
                if let Some(process) = &self.replicas[index].process {
                    process.resume();
                }
                self.rules.disturbed();
            }
            Later::Start(index) => {
                if self.replicas[index].away {
                    self.replicas[index].process = None;
                    self.start(index);
                }
            }
            Later::OrphansEnd => self.end_orphans(),
            Later::ExtenderMended => {
                self.extender.set(ExtenderMode::Fine);
                self.rules.extender_changed();
            }
            Later::GuestMended => guest::set(GuestMode::Fine),
        }
    }

    fn fault_for(&mut self, span: Duration, rule: FaultRule) {
        self.planned += 1;
        let id = self.planned;
        self.faults.insert(id, rule);
        self.apply_faults();
        self.after(span, Later::FaultOver(id));
    }

    /// All objects of a resource.
    pub(super) fn all(&self, resource: &str) -> Vec<Value> {
        self.server.list(resource, "").unwrap_or_default()
    }

    /// One of those that are meant, if there are any.
    pub(super) fn pick(&self, resource: &str, pick: u64, is_meant: impl Fn(&Value) -> bool) -> Option<Value> {
        let mut meant: Vec<Value> = self.all(resource).into_iter().filter(is_meant).collect();
        let index = pick.checked_rem(meant.len() as u64)?;
        Some(meant.swap_remove(index as usize))
    }

    fn create_pod(&mut self, template: u64, gated: bool, life_seconds: u64) {
        let (namespace, name) = (self.namespace(), self.name("pod"));
        let scheduler = if self.plan.setup.beside && self.named % 4 == 3 { SECOND_SCHEDULER } else { "" };
        let wanted = Wanted { namespace, name: &name, template, scheduler, gated };
        let Some(created) = self.create_wanted(&wanted) else { return };
        self.newest_pod = Some((namespace.to_owned(), name.clone()));
        if life_seconds > 0 {
            let uid = text(&created, &["metadata", "uid"]).to_owned();
            self.after(
                Duration::from_secs(life_seconds),
                Later::PodEnds { namespace: namespace.to_owned(), name, uid },
            );
        }
    }

    fn create_wanted(&mut self, wanted: &Wanted<'_>) -> Option<Value> {
        let (pod, claim) = objects::pod(wanted);
        if let Some(claim) = claim
            && self
                .server
                .get("persistentvolumeclaims", wanted.namespace, text(&claim, &["metadata", "name"]))
                .is_err()
        {
            self.create(claim);
        }
        self.create(pod)
    }

    fn foreign_pod(&mut self, template: u64, node: u64) {
        let (namespace, name) = (self.namespace(), self.name("foreign"));
        // Claims would be for our own volume binding.
        let wanted = Wanted {
            namespace,
            name: &name,
            template: template % 3,
            scheduler: FOREIGN_SCHEDULER,
            gated: false,
        };
        self.create_wanted(&wanted);
        if let Some(node) = self.pick("nodes", node, |_| true) {
            self.tried(self.server.bind(namespace, &name, text(&node, &["metadata", "name"])));
        }
    }

    fn end_pods_of(&self, node: &str) {
        for pod in self.all("pods").iter().filter(|pod| text(pod, &["spec", "nodeName"]) == node) {
            let deleted = self.server.delete_now(
                "pods",
                text(pod, &["metadata", "namespace"]),
                text(pod, &["metadata", "name"]),
            );
            self.tried(deleted);
        }
    }

    /// As the pod garbage collector does.
    fn end_orphans(&mut self) {
        let nodes: BTreeSet<String> =
            self.all("nodes").iter().map(|node| text(node, &["metadata", "name"]).to_owned()).collect();
        let on = |pod: &Value| text(pod, &["spec", "nodeName"]).to_owned();
        let homes: BTreeSet<String> =
            self.all("pods").iter().map(on).filter(|node| !node.is_empty()).collect();
        homes.difference(&nodes).for_each(|gone| self.end_pods_of(gone));
    }

    fn delete_namespace(&mut self, name: &str) {
        self.tried(self.server.delete("namespaces", "", name));
        self.create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }

    /// A name that nothing else has.
    pub(super) fn name(&mut self, of: &str) -> String {
        self.named += 1;
        format!("{of}-{}", self.named)
    }

    fn namespace(&self) -> &'static str {
        NAMESPACES[(self.named % 7 % 3) as usize]
    }

    pub(super) fn create(&self, object: Value) -> Option<Value> {
        let created = self.server.create(object);
        if let Err(refusal) = &created {
            self.history.say("server", format!("refused: {refusal}"));
        }
        created.ok()
    }

    pub(super) fn update(&self, object: Value) {
        self.tried(self.server.update(object).map(drop));
    }

    pub(super) fn patch(&self, resource: &str, namespace: &str, name: &str, patch: Value) {
        self.tried(self.server.patch(resource, namespace, name, PatchKind::Merge, patch).map(drop));
    }

    pub(super) fn delete(&self, resource: &str, object: &Value) {
        let (namespace, name) =
            (text(object, &["metadata", "namespace"]), text(object, &["metadata", "name"]));
        self.tried(self.server.delete(resource, namespace, name));
        self.history.say("users", format!("deleted {resource} {}", name_of(object)));
    }

    /// Somebody else may have been faster: that is told, and nothing else.
    fn tried(&self, result: Result<(), supercargo_testcluster::StatusError>) {
        if let Err(refusal) = result {
            self.history.say("server", format!("refused: {refusal}"));
        }
    }
}

fn request_fault(fault: RequestFault, verb: FaultyVerb, per_mille: u64) -> FaultRule {
    let answer = |code| Fault::Answer { code, retry_after_seconds: 0 };
    let rule = FaultRule::new(match fault {
        RequestFault::Lost => Fault::HangUp,
        RequestFault::LostAfterwards => Fault::CommitThenHangUp,
        RequestFault::Conflict => answer(409),
        RequestFault::TooMany => answer(429),
        RequestFault::TooManyForLong => Fault::Answer { code: 429, retry_after_seconds: 5 },
        RequestFault::TooManyForAnHour => Fault::Answer { code: 429, retry_after_seconds: 3_600 },
        RequestFault::Internal => answer(500),
        RequestFault::InternalAfterwards => Fault::CommitThenAnswer { code: 500 },
        RequestFault::Unavailable => answer(503),
        RequestFault::Slow => Fault::Delay { millis: 2_000 },
        RequestFault::SlowAfterwards => Fault::CommitThenDelay { millis: 5_000 },
        RequestFault::VerySlow => Fault::Delay { millis: 45_000 },
    });
    let rule = match verb {
        FaultyVerb::Any => rule,
        FaultyVerb::Bind => rule.verb("create").resource("pods/binding"),
        FaultyVerb::Evict => rule.verb("delete").resource("pods"),
        FaultyVerb::Status => rule.verb("patch").resource("pods/status"),
        FaultyVerb::Lease => rule.resource("leases"),
        FaultyVerb::Read => rule.verb("get").verb("list").verb("watch"),
        FaultyVerb::Volume => rule.verb("update").verb("patch"),
    };
    rule.share(per_mille as f64 / 1000.0)
}
