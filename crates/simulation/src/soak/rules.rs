//! The rules, checked by what goes over the wire and by what the server stores: nothing here shares code with a scheduler.
//!
//! A scheduler is judged by what it could know. Its watches tell up to which version it has heard of pods and nodes; what
//! others did after that, and it decided before it heard of it, is nobody's fault.

mod devices;
mod evictions;
mod reading;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use supercargo_framework::virtual_time::VirtualClock;
use supercargo_live::scheduler::records::{Follower, Record, RecordKind};
use supercargo_model::Name;
use supercargo_testcluster::SeenChange;

use super::{acts::ORPHANS_END_AFTER, conduct::Conduct, extender::NOT_NOW, history::History, objects::KINDS};

pub(super) use reading::{Amounts, demand, is_plain, name_of, text};
use reading::{amounts, exclusive_claim, host_ports, version_of};
pub(super) use wire::Tap;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenRule {
    /// When.
    pub at: Duration,
    /// Which rule.
    pub rule: SimulationRule,
    /// How.
    pub what: String,
}

impl fmt::Display for BrokenRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {}: {}", self.rule, self.what)
    }
}

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimulationRule {
    /// At rest, a scheduler's cache is what the server has.
    CacheEqualsServer,
    /// Nothing is given twice, as far as whoever decided could know.
    NothingGivenTwice,
    /// No write without a lease, and none about another pod of the same name.
    LeaseAndIdentity,
    /// Whoever can be scheduled is, without waiting for a timer.
    NobodyForgotten,
    /// A fresh start on the same state finds nothing to do.
    AsAfterFreshStart,
    /// Evictions have a use.
    EvictionsUseful,
    /// What is kept is bounded by what exists.
    NothingLeftBehind,
    /// No input ends the process.
    NeverEnds,
    /// What is written about a pod is what was decided.
    WrittenAsDecided,
    /// At rest nothing is written.
    QuietAtRest,
    /// An hour is so much work at most.
    WorkBounded,
}

impl fmt::Display for SimulationRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CacheEqualsServer => "a (at rest, the cache equals the server's state)",
            Self::NothingGivenTwice => "b (no node holds more than its allocatable, nothing is given twice)",
            Self::LeaseAndIdentity => {
                "c (no write without a valid lease, none for a pod whose uid has changed)"
            }
            Self::NobodyForgotten => "d (every pod that could run is tried in time, without the flush)",
            Self::AsAfterFreshStart => "e (a fresh start on the same state comes to the same)",
            Self::EvictionsUseful => "f (evictions are bounded and useful)",
            Self::NothingLeftBehind => "g (memory and tasks are bounded by what exists now)",
            Self::NeverEnds => "h (no input ends the process)",
            Self::WrittenAsDecided => "statuses and events agree with what was decided",
            Self::QuietAtRest => "at rest nothing is written",
            Self::WorkBounded => "an hour is a bounded amount of work",
        })
    }
}

/// What is told of a pod whose volumes, or devices, did not come within the ten minutes that it waits for them.
const OUT_OF_PATIENCE: [&str; 2] = ["context deadline exceeded", "device binding timeout"];

/// What is told of a pod that waits for its victims to leave.
const KEEPS_ITS_CLAIM: &str = "not eligible due to a terminating pod on the nominated node";

/// What is told of nodes that the anti-affinity of other pods closes.
const CLOSED_BY_OTHERS: &str = "node(s) didn't satisfy existing pods anti-affinity rules";

/// How long a new leader waits, at most, until its watch shows what the last one left.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(30);

#[derive(Default)]
struct State {
    violations: Vec<BrokenRule>,
    processes: BTreeMap<String, ProcessView>,
    lease: LeaseView,
    /// What each node had to give, by version; nothing while it is gone.
    nodes: BTreeMap<String, Vec<(u64, Option<Amounts>)>>,
    /// The pods that are on nodes, by uid.
    bound: BTreeMap<String, BoundPod>,
    /// The pods that are there, and on no node, by uid.
    pending: BTreeSet<String>,
    /// Who bound a pod, by uid.
    bound_by: BTreeMap<String, String>,
    /// The pods that were deleted, by uid. If they are there again, the server was set back, and whoever bound them may have
    /// forgotten them.
    gone: BTreeSet<String>,
    /// Which claim a volume is for, by uid.
    volumes: BTreeMap<String, String>,
    devices: devices::DeviceBook,
    evictions: Vec<Eviction>,
    /// The node that a pod's status names as its own to come, by uid: since which version, and when it was stored.
    claims: BTreeMap<String, StoredClaim>,
    /// Since which version nodes are as they are, heartbeats aside.
    node_changes: BTreeMap<String, u64>,
    /// The evictions that are not needed, because room is being made already: why, by who decided them.
    needless: BTreeMap<PlanKey, String>,
    /// What was there when room was to be made on a node, by who decided it, for whom, and when.
    plans: BTreeMap<PlanKey, PreemptionPlan>,
    /// When the last pod left a node, as a version.
    left: BTreeMap<String, u64>,
    conduct: Conduct,
    /// When anything happened that can spoil what was planned: nodes, faults, others' bindings.
    last_disturbance: Duration,
    writes: u64,
    /// How often a pod was tried.
    attempts: u64,
    /// How often a pod has waited for its volumes or devices for too long.
    timeouts: u64,
    /// Writes that follow from pods being tried again after a while.
    expected_writes: u64,
    last_relabelled: Duration,
    last_node_removed: Duration,
    /// A pod was bound to a node that was gone by then, and nobody has seen to it.
    stranded: bool,
    /// When the extender changed its mind.
    last_extender: Duration,
    /// Why a pod was not scheduled the last time, whoever tried it, by uid.
    last_failures: BTreeMap<String, LastFailure>,
    /// The pods that were tried again only because they had waited for too long, by uid.
    flushed: BTreeSet<String>,
}

/// An attempt that came to nothing.
struct LastFailure {
    at: Duration,
    why: String,
    /// Up to which version whoever tried had heard of nodes.
    nodes_heard: u64,
}

impl LastFailure {
    /// Whether nothing but the anti-affinity of other pods closed all nodes.
    fn is_about_others_alone(&self) -> bool {
        let told = self.why.split_once(" nodes are available: ").map_or("", |(_, told)| told);
        let reasons = told.split_once(". ").map_or(told, |(reasons, _)| reasons).trim_end_matches('.');
        reasons.split(", ").all(|reason| reason.ends_with(CLOSED_BY_OTHERS))
    }
}

/// What is known of a scheduler's process.
#[derive(Default)]
struct ProcessView {
    /// Up to which version it has heard, by resource and time.
    delivered: BTreeMap<String, Vec<(Duration, u64)>>,
    /// What it decided, by uid.
    decided: BTreeMap<String, Vec<OwnDecision>>,
    /// How often it has decided something.
    decisions: u64,
    /// Why a pod was not scheduled, each reason once, by uid: quiet weeks have thousands of attempts for the same.
    failures: BTreeMap<String, BTreeSet<String>>,
    /// The node that room was being made on, by uid, and when.
    nominated: BTreeMap<String, Vec<(Duration, String)>>,
    /// When it may have given up a pod's claim to a node, last, by uid.
    gave_up: BTreeMap<String, Duration>,
    elects: bool,
    /// What it took over, if it leads because another gave the lease back.
    takes_over: Option<HandOver>,
}

/// What a process decided about a pod.
#[derive(Clone)]
struct OwnDecision {
    at: Duration,
    /// How many it had taken before: no time passes between those of one moment.
    number: u64,
    /// None is that it came to nothing.
    node: Option<String>,
}

/// What a leader leaves to the next one.
#[derive(Clone)]
struct HandOver {
    from: String,
    /// The newest version of a pod that it had bound.
    version: u64,
    /// When another led.
    at: Duration,
}

#[derive(Default)]
struct LeaseView {
    duration: Duration,
    holder: Option<String>,
    /// Until when a process may think that it leads.
    until: BTreeMap<String, Duration>,
    /// The server was set back: what it says about the lease is old.
    unsure_until: Duration,
    /// The lease was given back, and nobody has taken it.
    given_back: Option<HandOver>,
}

impl LeaseView {
    /// Whose lease somebody takes who writes at a moment, if it still holds.
    fn stolen_by(&self, process: &str, at: Duration) -> Option<String> {
        let holder = self.holder.as_deref().filter(|holder| *holder != process && at >= self.unsure_until)?;
        self.until.get(holder).is_some_and(|until| at < *until).then(|| holder.to_owned())
    }
}

struct BoundPod {
    pod: String,
    node: String,
    version: u64,
    at: Duration,
    priority: i64,
    amounts: Amounts,
    ports: BTreeSet<i64>,
    /// A claim that nobody else may use at the same time.
    exclusive: Option<String>,
    is_plain: bool,
}

impl BoundPod {
    fn new(pod: &Value, version: u64, at: Duration) -> Self {
        Self {
            pod: name_of(pod),
            node: text(pod, &["spec", "nodeName"]).to_owned(),
            version,
            at,
            priority: pod["spec"]["priority"].as_i64().unwrap_or(0),
            amounts: demand(pod),
            ports: host_ports(pod),
            exclusive: exclusive_claim(pod),
            is_plain: is_plain(pod),
        }
    }
}

struct Eviction {
    at: Duration,
    by: String,
    victim: String,
    uid: String,
    node: String,
}

/// What a pod's status tells of its claim to a node.
struct StoredClaim {
    version: u64,
    at: Duration,
    node: Option<String>,
}

/// A process, the uid of the pod that it makes room for, and when it decided that.
type PlanKey = (String, String, Duration);

/// A node as it was when room was to be made there, where amounts alone tell what fits.
struct PreemptionPlan {
    asked: Amounts,
    /// What the node has, at least.
    given: Amounts,
    /// What was there, as far as whoever decided knew, by uid.
    there: BTreeMap<String, Amounts>,
    /// Those that were evicted.
    victims: BTreeSet<String>,
}

/// Looks on, and writes down which rules were broken.
pub(super) struct Rules {
    clock: VirtualClock,
    history: Arc<History>,
    state: Mutex<State>,
    /// Who hears what each process decides.
    followers: Mutex<BTreeMap<String, Follower>>,
}

impl Rules {
    pub(super) fn new(clock: VirtualClock, history: Arc<History>, lease_duration: Duration) -> Self {
        let lease = LeaseView { duration: lease_duration, ..LeaseView::default() };
        let state = Mutex::new(State { lease, ..State::default() });
        Self { clock, history, state, followers: Mutex::default() }
    }

    /// Hears what a process decides from now on.
    pub(super) fn follow(&self, process: &str, follower: Follower) {
        self.followers().insert(process.to_owned(), follower);
    }

    /// Takes in what a process has decided. Writes are judged by it, and which task runs first is not for them to say.
    pub(super) fn hear(&self, process: &str) {
        let next = || self.followers().get_mut(process)?.try_next();
        while let Some(delivery) = next() {
            self.recorded(process, &delivery.record);
        }
    }

    fn followers(&self) -> MutexGuard<'_, BTreeMap<String, Follower>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was broken so far.
    pub(super) fn violations(&self) -> Vec<BrokenRule> {
        self.state().violations.clone()
    }

    /// How many pods schedulers have evicted.
    pub(super) fn eviction_count(&self) -> usize {
        self.state().evictions.len()
    }

    /// A rule is broken.
    pub(super) fn broken(&self, rule: SimulationRule, what: impl Into<String>) {
        let violation = BrokenRule { at: self.clock.uptime(), rule, what: what.into() };
        self.history.say("rules", violation.to_string());
        self.state().violations.push(violation);
    }

    /// A process starts, under a name that no other had.
    pub(super) fn started(&self, process: &str, elects: bool) {
        let view = ProcessView { elects, ..ProcessView::default() };
        self.state().processes.insert(process.to_owned(), view);
        self.disturbed();
    }

    /// Something happened that can spoil what was planned.
    pub(super) fn disturbed(&self) {
        self.state().last_disturbance = self.clock.uptime();
    }

    /// The server was set back. What it says of bindings is what it said then.
    pub(super) fn restored(&self) {
        let mut state = self.state();
        state.lease.unsure_until = self.clock.uptime() + 3 * state.lease.duration;
        state.bound.clear();
        state.pending.clear();
        state.nodes.clear();
        state.volumes.clear();
        state.devices.restored();
        state.plans.clear();
        state.claims.clear();
        state.node_changes.clear();
        state.conduct.restored();
        state.lease.given_back = None;
        let now = self.clock.uptime();
        for view in state.processes.values_mut() {
            // What they heard was about another course of things.
            view.takes_over = None;
            view.delivered.values_mut().for_each(|heard| heard.push((now, 0)));
        }
    }

    /// How many requests that change something schedulers have sent, but for leases and events; and how many of them may
    /// follow from pods that were tried again because of a timer.
    pub(super) fn writes(&self) -> (u64, u64) {
        let state = self.state();
        (state.writes, state.expected_writes)
    }

    /// How often schedulers have tried a pod.
    pub(super) fn attempts(&self) -> u64 {
        self.state().attempts
    }

    /// How often a pod has waited for its volumes or devices for too long: it gives its room back and begins anew, which is
    /// something that happens.
    pub(super) fn timeouts(&self) -> u64 {
        self.state().timeouts
    }

    /// Whether a process holds the lease.
    pub(super) fn leads(&self, process: &str) -> bool {
        self.state().lease.holder.as_deref() == Some(process)
    }

    /// Somebody relabels a node. kube-scheduler wakes nobody by it whom only the affinity of others keeps away, and so do
    /// we: such a pod waits for the flush.
    pub(super) fn relabelled(&self) {
        self.state().last_relabelled = self.clock.uptime();
    }

    /// Somebody removes a node. The claims of its pods are free at once, as in kube-scheduler, and whoever waits for one of them
    /// is woken only when the pods go, too.
    pub(super) fn node_removed(&self) {
        self.state().last_node_removed = self.clock.uptime();
    }

    /// Whether a pod was bound to a node that is gone, since somebody asked last. It stays until somebody ends it, as those do
    /// that were there before.
    pub(super) fn take_stranded(&self) -> bool {
        std::mem::take(&mut self.state().stranded)
    }

    /// The extender changes its mind, and nothing tells anybody.
    pub(super) fn extender_changed(&self) {
        self.state().last_extender = self.clock.uptime();
    }

    /// Whether a pod that was tried again after the flush alone could not have been tried before.
    fn had_to_wait(&self, uid: &str) -> bool {
        self.waits_for_extender(uid) || self.is_excused(uid)
    }

    /// Whether a pod waits for an extender that has changed its mind since it refused nodes.
    pub(super) fn waits_for_extender(&self, uid: &str) -> bool {
        let state = self.state();
        let failure = state.last_failures.get(uid);
        failure.is_some_and(|failure| failure.why.contains(NOT_NOW) && state.last_extender >= failure.at)
    }

    /// Whether a pod waits for a change that kube-scheduler wakes nobody by.
    pub(super) fn is_excused(&self, uid: &str) -> bool {
        let state = self.state();
        let failure = state.last_failures.get(uid);
        failure.is_some_and(|LastFailure { at, why, .. }| {
            let waits_for_labels = why.contains("affinity rules") && state.last_relabelled >= *at;
            // Later, those pods have gone, which does wake whoever waits.
            let pods_remain = self.clock.uptime() <= state.last_node_removed + ORPHANS_END_AFTER;
            let waits_for_claim = why.contains("ReadWriteOncePod") && state.last_node_removed >= *at;
            waits_for_labels || waits_for_claim && pods_remain
        })
    }

    /// Whether a pod that nothing but the anti-affinity of others kept away could go, of all nodes, only to some that have
    /// joined since. kube-scheduler asks a pod's own terms whether a node that joins can help it, and so do we: such a pod
    /// waits for the flush.
    pub(super) fn waits_for_newcomers<'n>(
        &self,
        uid: &str,
        open: impl IntoIterator<Item = &'n Name>,
    ) -> bool {
        let state = self.state();
        let failure = state.last_failures.get(uid).filter(|failure| failure.is_about_others_alone());
        failure
            .is_some_and(|failure| open.into_iter().all(|node| state.joined_after(node, failure.nodes_heard)))
    }

    /// A scheduler tells what it did.
    fn recorded(&self, process: &str, record: &Record) {
        let (uid, at) = (record.uid.to_string(), record.at);
        let mut state = self.state();
        let path = format!("/api/v1/namespaces/{}/pods/{}", record.pod.namespace, record.pod.name);
        let mut broken = match &record.what {
            RecordKind::Decided { .. } | RecordKind::Failed { .. } => {
                state.attempts += 1;
                state.conduct.decided(process, path, &uid)
            }
            RecordKind::Queued { .. } | RecordKind::Left { .. } => None,
        };
        let mut by_timer = false;
        let mut after_flush = false;
        let mut only_node = None;
        let said = match &record.what {
            RecordKind::Decided { node, feasible, .. } => {
                after_flush = state.flushed.remove(&uid);
                let view = state.processes.entry(process.to_owned()).or_default();
                view.gave_up.insert(uid.clone(), at);
                only_node = Some(node).filter(|_| *feasible == 1);
                let view = state.processes.entry(process.to_owned()).or_default();
                view.decides(&uid, at, Some(node.to_string()));
                if let Some(kind) = KINDS.iter().find(|kind| !view.delivered.contains_key(**kind)) {
                    let what = format!("{process} decides about {} and has not read {kind}", record.pod);
                    broken = Some((SimulationRule::CacheEqualsServer, what));
                }
                if let Some(from) = view.is_behind_at(at) {
                    let what = format!(
                        "{process} decides about {} and has not heard of all that {from} bound",
                        record.pod
                    );
                    broken = Some((SimulationRule::NothingGivenTwice, what));
                }
                format!("decided {} for {node} ({feasible} feasible)", record.pod)
            }
            RecordKind::Failed { message, nominated_node } => {
                state.flushed.remove(&uid);
                state.timeouts += u64::from(OUT_OF_PATIENCE.iter().any(|told| message.contains(told)));
                let view = state.processes.entry(process.to_owned()).or_default();
                let nodes_heard = view.heard("nodes", at);
                view.decides(&uid, at, None);
                view.failures.entry(uid.clone()).or_default().insert(message.clone());
                let failure = LastFailure { at, why: message.clone(), nodes_heard };
                state.last_failures.insert(uid.clone(), failure);
                let view = state.processes.entry(process.to_owned()).or_default();
                if let Some(node) = nominated_node {
                    view.nominated.entry(uid.clone()).or_default().push((at, node.to_string()));
                    state.room_is_made(process, &uid, node, at);
                } else if !message.contains(KEEPS_ITS_CLAIM) {
                    view.gave_up.insert(uid.clone(), at);
                }
                let nominated = nominated_node.as_ref().map(|node| format!(", nominated {node}"));
                format!("did not schedule {}: {message}{}", record.pod, nominated.unwrap_or_default())
            }
            RecordKind::Queued { queue, cause } => {
                // What comes back by itself may be told about again.
                if &*cause.label() == "UnschedulableTimeout" && queue.name() == "active" {
                    state.flushed.insert(uid);
                }
                by_timer = matches!(&*cause.label(), "UnschedulableTimeout" | "BackoffComplete");
                format!("queued {} in {} after {}", record.pod, queue.name(), cause.label())
            }
            RecordKind::Left { why } => format!("{} left the queue: {why:?}", record.pod),
        };
        state.expected_writes += u64::from(by_timer);
        drop(state);
        self.history.say(process, said);
        broken.into_iter().for_each(|(rule, what)| self.broken(rule, what));
        let is_newcomers = only_node.is_some_and(|node| self.waits_for_newcomers(&record.uid, [node]));
        if after_flush && !is_newcomers && !self.had_to_wait(&record.uid) {
            let what = format!("{process} scheduled {} only after the five-minute flush", record.pod);
            self.broken(SimulationRule::NobodyForgotten, what);
        }
    }

    /// The server has stored a change of a pod.
    pub(super) fn pod_changed(&self, change: &SeenChange) {
        let pod = change.object();
        let (uid, node) = (text(pod, &["metadata", "uid"]), text(pod, &["spec", "nodeName"]));
        let name = name_of(pod);
        let is_over = matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed");
        let before = change.previous();
        let was_on = before.map_or("", |before| text(before, &["spec", "nodeName"]));
        self.tell_pod(change, &name, node, was_on);
        self.state().conduct.stored(pod, change.version());
        self.state().claim_is(pod, change.version(), self.clock.uptime());
        match node.is_empty() && !change.is_deletion() {
            true => drop(self.state().pending.insert(uid.to_owned())),
            false => drop(self.state().pending.remove(uid)),
        }
        if change.is_deletion() || is_over {
            let mut state = self.state();
            state.bound.remove(uid);
            if change.is_deletion() {
                state.gone.insert(uid.to_owned());
            }
            state.left.insert(was_on.to_owned(), change.version());
            return;
        }
        if node.is_empty() || !was_on.is_empty() {
            return;
        }
        let bound = BoundPod::new(pod, change.version(), self.clock.uptime());
        let mut state = self.state();
        state.bound.insert(uid.to_owned(), bound);
        if !state.is_node(node) {
            (state.stranded, state.last_node_removed) = (true, self.clock.uptime());
        }
        drop(state);
        self.check_node(node);
    }

    /// All pods as they are, if it is not known what happened to them.
    pub(super) fn pods_are(&self, pods: &[Value]) {
        let is_over = |pod: &&Value| matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed");
        let on_nodes =
            pods.iter().filter(|pod| !text(pod, &["spec", "nodeName"]).is_empty() && !is_over(pod));
        let now = self.clock.uptime();
        let mut state = self.state();
        let mut before = std::mem::take(&mut state.bound);
        state.pending.clear();
        // Who bound a pod before the server was set back has not bound what it is now.
        for pod in pods.iter().filter(|pod| text(pod, &["spec", "nodeName"]).is_empty()) {
            state.bound_by.remove(text(pod, &["metadata", "uid"]));
        }
        for pod in on_nodes {
            let uid = text(pod, &["metadata", "uid"]);
            state.claims.remove(uid);
            let known = before.remove(uid).filter(|known| known.node == text(pod, &["spec", "nodeName"]));
            state
                .bound
                .insert(uid.to_owned(), known.unwrap_or_else(|| BoundPod::new(pod, version_of(pod), now)));
        }
        state.gone.extend(before.into_keys());
    }

    /// All nodes as they are at a version, if it is not known what happened to them.
    pub(super) fn nodes_are(&self, nodes: &[Value], version: u64) {
        let mut state = self.state();
        let there: BTreeSet<&str> = nodes.iter().map(|node| text(node, &["metadata", "name"])).collect();
        let was_there = |name: &&String| !there.contains(&***name) && state.is_node(name);
        let gone: Vec<String> = state.nodes.keys().filter(was_there).cloned().collect();
        for gone in gone {
            state.node_changes.insert(gone.clone(), version);
            state.nodes.entry(gone).or_default().push((version, None));
        }
        for node in nodes {
            state.node_changes.insert(text(node, &["metadata", "name"]).to_owned(), version_of(node));
            let versions = state.nodes.entry(text(node, &["metadata", "name"]).to_owned()).or_default();
            versions.push((version_of(node), Some(amounts(&node["status"]["allocatable"]))));
        }
    }

    fn tell_pod(&self, change: &SeenChange, name: &str, node: &str, was_on: &str) {
        let phase = |pod: &Value| text(pod, &["status", "phase"]).to_owned();
        let ends = |pod: &Value| !text(pod, &["metadata", "deletionTimestamp"]).is_empty();
        let (pod, before) = (change.object(), change.previous());
        let what = if change.is_deletion() {
            format!(
                "pod {name} is gone{}",
                if node.is_empty() { String::new() } else { format!(" from {node}") }
            )
        } else if before.is_none() {
            format!(
                "pod {name} is created{}",
                if node.is_empty() { String::new() } else { format!(" on {node}") }
            )
        } else if was_on != node {
            format!("pod {name} is bound to {node}")
        } else if before.is_some_and(|before| !ends(before) && ends(pod)) {
            format!("pod {name} is terminating on {node:?}")
        } else if before.is_some_and(|before| phase(before) != phase(pod)) {
            format!("pod {name} is {}", phase(pod))
        } else {
            return;
        };
        self.history.say("server", what);
    }

    /// The server has stored a change of a node.
    pub(super) fn node_changed(&self, change: &SeenChange) {
        let node = change.object();
        let name = text(node, &["metadata", "name"]);
        let amounts = (!change.is_deletion()).then(|| amounts(&node["status"]["allocatable"]));
        let mut state = self.state();
        let what_counts = |node: &Value| {
            let parts = [&node["spec"], &node["metadata"]["labels"], &node["status"]["allocatable"]];
            parts.map(Value::clone)
        };
        let is_same = |before: &Value| !change.is_deletion() && what_counts(before) == what_counts(node);
        if !change.previous().is_some_and(is_same) {
            state.node_changes.insert(name.to_owned(), change.version());
        }
        let versions = state.nodes.entry(name.to_owned()).or_default();
        if versions.last().is_none_or(|(_, last)| *last != amounts) {
            versions.push((change.version(), amounts));
        }
    }

    /// The server has stored a change of a volume.
    pub(super) fn volume_changed(&self, change: &SeenChange) {
        let volume = change.object();
        let (name, claim) = (
            text(volume, &["metadata", "name"]).to_owned(),
            text(volume, &["spec", "claimRef", "uid"]).to_owned(),
        );
        if change.is_deletion() || claim.is_empty() {
            self.state().volumes.remove(&name);
            return;
        }
        let before = self.state().volumes.insert(name.clone(), claim.clone());
        if before.is_some_and(|before| before != claim) {
            self.broken(
                SimulationRule::NothingGivenTwice,
                format!("volume {name} was given to a second claim"),
            );
        }
    }

    /// Whether whoever bound the pods on a node could know that they do not fit.
    fn check_node(&self, node: &str) {
        let state = self.state();
        let on_node: Vec<(&String, &BoundPod)> =
            state.bound.iter().filter(|(_, pod)| pod.node == node).collect();
        let mut broken = Vec::new();
        for (uid, pod) in &on_node {
            let Some(process) = state.bound_by.get(*uid) else { continue };
            let Some(view) = state.processes.get(process) else { continue };
            let Some(decision) = view.decision(uid, node) else {
                broken.push((
                    SimulationRule::WrittenAsDecided,
                    format!("{process} bound {} to {node} without having decided it", pod.pod),
                ));
                continue;
            };
            let known = on_node.iter().filter(|(other, there)| {
                other != uid && view.knows(other, there, state.is_own(process, other), decision)
            });
            let known: Vec<&BoundPod> = known.map(|(_, there)| *there).collect();
            let shares = |(other, there): &(&String, &BoundPod)| {
                other != uid
                    && pod.exclusive.is_some()
                    && there.exclusive == pod.exclusive
                    // As in kube-scheduler, pods count as long as their node is there.
                    && state.is_node(&there.node)
                    && view.knows(other, there, state.is_own(process, other), decision)
            };
            if let Some((_, there)) = state.bound.iter().find(shares) {
                let what = format!("{process} bound {}, whose claim {} has", pod.pod, there.pod);
                broken.push((SimulationRule::NothingGivenTwice, what));
            }
            if let Some(what) = view.over_committed(state.nodes.get(node), pod, &known, decision.at) {
                broken.push((
                    SimulationRule::NothingGivenTwice,
                    format!("{process} bound {} to {node}: {what}", pod.pod),
                ));
            }
        }
        drop(state);
        broken.into_iter().for_each(|(rule, what)| self.broken(rule, what));
    }
}

impl State {
    /// Whether a process has bound a pod, and had no reason to forget it.
    fn is_own(&self, process: &str, uid: &str) -> bool {
        self.bound_by.get(uid).is_some_and(|by| by == process) && !self.gone.contains(uid)
    }

    /// Whether a node that is there has joined after a version.
    fn joined_after(&self, name: &str, version: u64) -> bool {
        let versions = self.nodes.get(name).map_or(&[][..], Vec::as_slice);
        let joined = versions.iter().rev().take_while(|(_, amounts)| amounts.is_some()).last();
        joined.is_some_and(|(joined, _)| *joined > version)
    }

    fn is_node(&self, name: &str) -> bool {
        let versions = self.nodes.get(name);
        versions.and_then(|versions| versions.last()).is_some_and(|(_, amounts)| amounts.is_some())
    }
}

impl ProcessView {
    /// The leader that it took over from, if it had not heard of all that this one bound at a moment, and should have.
    fn is_behind_at(&self, at: Duration) -> Option<&str> {
        let HandOver { from, version, at: since } = self.takes_over.as_ref()?;
        let is_behind = self.heard("pods", at + Duration::from_nanos(1)) < *version;
        (is_behind && at < *since + CATCHES_UP_WITHIN).then_some(from)
    }

    /// Up to which version it had heard of a resource before a moment.
    fn heard(&self, resource: &str, before: Duration) -> u64 {
        let heard = self.delivered.get(resource).map_or(&[][..], Vec::as_slice);
        let end = heard.partition_point(|(at, _)| *at < before);
        heard[..end].last().map_or(0, |(_, version)| *version)
    }

    /// Up to which version it must have heard of a resource when it decided something: of all that there was to begin with,
    /// also if that came at the very moment.
    fn must_have_heard(&self, resource: &str, at: Duration) -> u64 {
        match self.heard(resource, at) {
            0 => self.heard(resource, at + Duration::from_nanos(1)),
            heard => heard,
        }
    }

    fn decides(&mut self, uid: &str, at: Duration, node: Option<String>) {
        let decision = OwnDecision { at, number: self.decisions, node };
        self.decisions += 1;
        self.decided.entry(uid.to_owned()).or_default().push(decision);
    }

    /// Its last decision that a pod goes to a node.
    fn decision(&self, uid: &str, node: &str) -> Option<&OwnDecision> {
        let decided = self.decided.get(uid)?;
        decided.iter().rev().find(|decision| decision.node.as_deref() == Some(node))
    }

    /// Its last decision about a pod before another one.
    fn last_before(&self, uid: &str, decision: &OwnDecision) -> Option<&OwnDecision> {
        let decided = self.decided.get(uid)?;
        decided.iter().rev().find(|earlier| earlier.number < decision.number)
    }

    /// Whether it knew of a pod on a node when it decided something.
    fn knows(&self, uid: &str, pod: &BoundPod, is_own: bool, decision: &OwnDecision) -> bool {
        if pod.version <= self.heard("pods", decision.at) {
            return true;
        }
        // Its own decisions count as soon as it has taken them, also within a moment, until it thinks that they came to nothing.
        let last = self.last_before(uid, decision);
        is_own && last.is_some_and(|last| last.node.as_deref() == Some(&pod.node))
    }

    /// What it may have thought at a moment that a node has to give.
    fn known_sizes<'n>(
        &self,
        node: Option<&'n Vec<(u64, Option<Amounts>)>>,
        at: Duration,
    ) -> Vec<&'n Amounts> {
        // What it heard at the very moment of its decision, it may have heard before or after.
        let (least, most) = (self.heard("nodes", at), self.heard("nodes", at + Duration::from_nanos(1)));
        let versions = node.map_or(&[][..], Vec::as_slice);
        let first = versions.partition_point(|(version, _)| *version <= least).saturating_sub(1);
        let end = versions.partition_point(|(version, _)| *version <= most);
        let known = versions.get(first..end).unwrap_or_default();
        known.iter().filter_map(|(_, amounts)| amounts.as_ref()).collect()
    }

    /// What it could have known to be too much.
    fn over_committed(
        &self,
        node: Option<&Vec<(u64, Option<Amounts>)>>,
        pod: &BoundPod,
        known: &[&BoundPod],
        at: Duration,
    ) -> Option<String> {
        if let Some(port) = pod.ports.iter().find(|port| known.iter().any(|other| other.ports.contains(port)))
        {
            return Some(format!("host port {port} was taken"));
        }
        let known_sizes = self.known_sizes(node, at);
        if known_sizes.is_empty() {
            return None;
        }
        for (resource, asked) in pod.amounts.iter().filter(|(_, asked)| **asked > 0) {
            let taken: i128 =
                known.iter().filter_map(|other| other.amounts.get(resource)).copied().map(i128::from).sum();
            let asked = i128::from(*asked);
            let sizes = known_sizes.iter().map(|amounts| amounts.get(resource).copied().unwrap_or(0));
            let given = i128::from(sizes.max()?);
            if taken + asked > given {
                return Some(format!("{resource}: {taken} were taken, {asked} more is more than {given}"));
            }
        }
        None
    }
}
