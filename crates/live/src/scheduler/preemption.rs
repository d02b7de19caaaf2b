//! Makes room for a pod, as kube-scheduler does asynchronously: evicts the victims that were chosen, and keeps the pod from
//! being tried until the watch shows that they leave. From then on its nomination keeps the room for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use supercargo_engine::Pending;
use supercargo_framework::preemption::Nomination;
use supercargo_model::{Key, Name, Pod};
use tokio::sync::{Semaphore, mpsc};

use super::{
    HashMap, Report, Scheduler,
    meter::{Counted, Task},
    signal::CalledOff,
};
use crate::{
    events::{Event, EventRecorder, Preempted},
    lease::Lease,
    requests, status,
    world::{Reply, Request, SharedWorld, Unanswered},
};

/// The plugin that keeps pods from being tried while their victims are being evicted.
pub(super) const DEFAULT_PREEMPTION: &str = "DefaultPreemption";
/// Victims of one pod that are evicted at a time; kube-scheduler's figure.
const VICTIMS_AT_ONCE: usize = 16;
/// Evictions under way at a time, for all pods together: bindings and the lease are not to wait behind a thousand of them.
pub(super) const EVICTIONS_AT_ONCE: usize = 32;
/// How far the watch may be behind the evictions before a pod is tried without knowing what became of its victims.
const WATCH_DELAY: Duration = Duration::from_secs(30);
/// How long a pod is kept from being tried again whose victims could not be evicted.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How often a request is tried that the server had no time for. To give up means to evict somebody else as well.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(250);

/// How the evictions for a pod went.
pub(super) struct Evicted {
    preemptor: Arc<Pod>,
    node: Name,
    failed: Option<String>,
    took: Duration,
}

impl Scheduler {
    /// Starts to make room on a node. Victims that are being deleted already need nothing more; if all are, nothing is done.
    pub(super) fn preempt(&mut self, pod: &Arc<Pod>, nomination: &Nomination) {
        let Nomination { node, victims } = nomination;
        let to_go: Vec<&Arc<Pod>> = victims.iter().filter(|victim| !victim.terminating).collect();
        if to_go.is_empty() {
            return;
        }
        self.meter.preempts(victims.len());
        tracing::info!(pod = %pod.key(), %node, victims = victims.len(), "preempting");
        self.take_nominations_back(pod, node);
        let mut to_evict = Vec::new();
        for victim in to_go {
            let binding = self.assumed.get(&victim.uid).map(|assumed| assumed.signal.clone());
            if binding.is_some_and(|signal| signal.call_off(CalledOff::Preempted)) {
                self.reporter.preempted(victim, pod, node);
            } else {
                to_evict.push(victim.clone());
            }
        }
        if to_evict.is_empty() {
            return;
        }
        self.queue.hold(pod.uid.clone(), DEFAULT_PREEMPTION.into());
        self.victims.expect(&pod.uid, node, &to_evict);
        let eviction = Eviction {
            world: self.world.clone(),
            lease: self.lease.clone(),
            turns: self.evictions.clone(),
            recorder: self.reporter.recorder().clone(),
            preemptor: pod.clone(),
            node: node.clone(),
            _counted: self.meter.task(Task::Preemption),
        };
        self.world.spawn(Box::pin(eviction.evict_all(to_evict, self.report_to.clone())));
    }

    /// Less important pods that are nominated to the node may not fit there any more. That their statuses change gives them
    /// their turn.
    fn take_nominations_back(&self, pod: &Pod, node: &Name) {
        for other in self.engine.nominations().less_important(pod, node) {
            let newest = self.queue.find(&other.uid).map(|pending| pending.pod.clone());
            if let Some(newest) = newest.filter(|newest| newest.nominated_node.is_some()) {
                self.reporter.nominates(&newest, status::Nomination::Clear);
            }
        }
    }

    /// A pod is gone, or its deletion has begun: if no other victim is expected to leave its node, those that wait for the
    /// room may be tried again.
    pub(super) fn victim_goes(&mut self, victim: &Key) {
        for preemptor in self.victims.leaves(victim) {
            self.queue.release(&preemptor);
        }
    }

    pub(super) fn eviction_ended(&mut self, evicted: Evicted) {
        let Evicted { preemptor, node, failed, took } = evicted;
        self.meter.evicted(failed.is_none(), took);
        if let Some(why) = failed {
            tracing::warn!(pod = %preemptor.key(), %node, why, "not all victims could be evicted");
            self.preemption_over(&preemptor.uid);
            self.queue.activate([&*preemptor.uid], self.world.uptime());
            return;
        }
        // Tried before the watch shows that its victims leave, it would look for others. A watch that is too far behind
        // does not hold it for ever.
        let (late, report_to) = (self.world.sleep(WATCH_DELAY), self.report_to.clone());
        self.world.spawn(Box::pin(async move {
            late.await;
            let _ = report_to.send(Report::PreemptionOver(preemptor.uid.clone()));
        }));
    }

    /// Whatever the watch shows, a pod may be tried again; and is, if something would have given it its turn meanwhile.
    pub(super) fn preemption_over(&mut self, preemptor: &Name) {
        for other in self.victims.forget(preemptor) {
            self.queue.release(&other);
        }
        self.queue.release(preemptor);
        let was_held_up =
            |pending: Pending<'_>| pending.held_by.is_some_and(|by| **by == *DEFAULT_PREEMPTION);
        if self.queue.find(preemptor).is_some_and(was_held_up) {
            self.queue.activate([&**preemptor], self.world.uptime());
        }
    }
}

/// The victims whose deletion the watch has not shown yet: by the node that they are on, and the pod that they go for.
///
/// A node's preemptors wait for all of its victims, whomever those go for: pods of the same priority count each other as
/// there already, so that one that is tried too early finds its room taken and evicts somebody else.
#[derive(Default)]
pub(super) struct ExpectedVictims {
    by_node: HashMap<Name, BTreeMap<Name, BTreeSet<Key>>>,
    node_of: HashMap<Key, Name>,
}

impl ExpectedVictims {
    fn expect(&mut self, preemptor: &Name, node: &Name, victims: &[Arc<Pod>]) {
        self.forget(preemptor);
        let keys: BTreeSet<Key> = victims.iter().map(|victim| victim.key()).collect();
        self.node_of.extend(keys.iter().map(|victim| (victim.clone(), node.clone())));
        self.by_node.entry(node.clone()).or_default().insert(preemptor.clone(), keys);
    }

    /// A pod leaves. The pods that wait for nobody on its node any more.
    fn leaves(&mut self, victim: &Key) -> Vec<Name> {
        let Some(node) = self.node_of.remove(victim) else { return Vec::new() };
        for victims in self.by_node.get_mut(&node).into_iter().flat_map(BTreeMap::values_mut) {
            victims.remove(victim);
        }
        self.finished(&node)
    }

    /// A pod waits no longer. The others that wait for nobody on its node any more.
    fn forget(&mut self, preemptor: &Name) -> Vec<Name> {
        let Some(node) = self.by_node.iter().find(|(_, group)| group.contains_key(preemptor)) else {
            return Vec::new();
        };
        let node = node.0.clone();
        let group = self.by_node.entry(node.clone()).or_default();
        let victims = group.remove(preemptor).unwrap_or_default();
        for victim in victims.iter().filter(|victim| !group.values().any(|others| others.contains(victim))) {
            self.node_of.remove(victim);
        }
        self.finished(&node)
    }

    fn finished(&mut self, node: &Name) -> Vec<Name> {
        let is_finished = |group: &mut BTreeMap<Name, BTreeSet<Key>>| group.values().all(BTreeSet::is_empty);
        match self.by_node.get_mut(node).is_some_and(is_finished) {
            true => self.by_node.remove(node).unwrap_or_default().into_keys().collect(),
            false => Vec::new(),
        }
    }
}

/// The evictions for one pod.
struct Eviction {
    world: SharedWorld,
    lease: Option<Lease>,
    turns: Arc<Semaphore>,
    recorder: EventRecorder,
    preemptor: Arc<Pod>,
    node: Name,
    _counted: Counted,
}

impl Eviction {
    /// Evicts all but the last victim side by side, until one cannot be; then the last one.
    async fn evict_all(self, victims: Vec<Arc<Pod>>, report_to: mpsc::UnboundedSender<Report>) {
        let started = self.world.uptime();
        // Nobody listens any more when the scheduler has stopped.
        let report = |report| drop(report_to.send(report));
        let failed = match victims.split_last() {
            Some((last, others)) => match self.evict_side_by_side(others).await {
                Ok(()) => self.evict(last).await.err(),
                Err(why) => Some(why),
            },
            None => None,
        };
        if failed.is_some() {
            // The pod is tried again at once, and may well choose the same victims.
            self.world.sleep(AFTER_FAILURE).await;
        }
        let took = self.world.uptime() - started;
        report(Report::Evicted(Evicted { preemptor: self.preemptor, node: self.node, failed, took }));
    }

    async fn evict_side_by_side(&self, victims: &[Arc<Pod>]) -> Result<(), String> {
        let evictions: Vec<_> = victims.iter().map(|victim| self.evict(victim).boxed()).collect();
        let mut evictions = stream::iter(evictions).buffer_unordered(VICTIMS_AT_ONCE);
        while let Some(evicted) = evictions.next().await {
            evicted?;
        }
        Ok(())
    }

    /// Tells a pod why it has to go, deletes it, and tells people.
    async fn evict(&self, victim: &Arc<Pod>) -> Result<(), String> {
        let Ok(_turn) = self.turns.acquire().await else {
            return Err("the scheduler stops".to_owned());
        };
        let scheduler_name = &self.preemptor.spec.scheduler_name;
        let mark = || requests::mark_preempted(victim, scheduler_name, self.world.now());
        let delete = || requests::delete_pod(&victim.key(), &victim.uid);
        if self.until_done(victim, mark).await? && self.until_done(victim, delete).await? {
            self.recorder.record(Event::preempted(victim, &self.preemptor, &self.node, Preempted::Evicted));
        }
        Ok(())
    }

    /// Sends a request until it has been done. Sending it twice does no harm. False if the victim is gone.
    async fn until_done(&self, victim: &Pod, request: impl Fn() -> Request) -> Result<bool, String> {
        let mut why = String::new();
        for attempt in 1..=TRIES {
            if self.lease.as_ref().is_some_and(|lease| !lease.is_held()) {
                return Err("the lease is not held any more".to_owned());
            }
            match self.world.send(request()).await {
                Ok(reply) if reply.is_success() => return Ok(true),
                Ok(Reply { status: 404, .. }) => return Ok(false),
                // Another pod may have the name by now; or the two of us wrote at once.
                Ok(reply @ Reply { status: 409, .. }) => {
                    if self.is_gone(victim).await {
                        return Ok(false);
                    }
                    why = reply.message();
                }
                Ok(reply) if reply.status == 429 || reply.status >= 500 => why = reply.message(),
                Ok(reply) => return Err(reply.message()),
                Err(Unanswered::NotSent(reason) | Unanswered::OutcomeUnknown(reason)) => why = reason,
            }
            self.world.sleep(PAUSE * attempt).await;
        }
        Err(why)
    }

    /// Whether the server has no such pod any more, or another one of its name.
    async fn is_gone(&self, victim: &Pod) -> bool {
        match self.world.send(requests::get_pod(&victim.key())).await {
            Ok(Reply { status: 404, .. }) => true,
            Ok(reply) if reply.is_success() => {
                serde_json::from_slice::<Pod>(&reply.body).is_ok_and(|pod| pod.uid != victim.uid)
            }
            _ => false,
        }
    }
}
