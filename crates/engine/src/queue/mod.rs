//! The pods that wait to be scheduled: whose turn it is, who is kept back, and who waits for which event.
//!
//! [`Queue`] is the order of turns alone. [`SchedulingQueue`] is the whole of it: a pod that was tried in vain is unschedulable
//! until something happens that can help it, and nothing that happens while it is being tried is lost. There is no clock
//! in it: the time is handed in, as the time since some start.

mod backoff;
mod entry;
mod in_flight;
mod moves;
mod order;
mod overdue;
mod report;
mod unschedulable;

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

use supercargo_framework::{
    bugs::{self, Bug},
    changes::{Happened, pod_events},
    event::{ActionType, Change, ClusterEvent, EventResource, EventSet},
    handle::PendingPods,
    preemption::{Claim, Nominations},
    queueing::QueueRules,
    stopwatch::Stopwatch,
};
use supercargo_model::{Cluster, Key, Name, Pod};

pub use backoff::Backoff;
pub use entry::Refusal;
pub use order::{Admission, Queue};
pub use report::{
    Incoming, PendingPod, Popped, QueueCounts, QueueName, QueueObserver, QueuePlace, QueueingCause,
};

use backoff::KeptBack;
use entry::{Entries, Entry, Spot};
use in_flight::{InFlight, Seen};
use moves::QueueingStrategy;
use overdue::Overdue;
use unschedulable::{Reasons, UnschedulablePods};

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

const DEFAULT_MAX_UNSCHEDULABLE: Duration = Duration::from_secs(5 * 60);

/// How the queue behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSettings {
    /// How long pods are kept back that were tried in vain.
    pub backoff: Backoff,
    /// How long a pod waits for events before it is tried anyway.
    pub max_unschedulable: Duration,
    /// There are extenders: any event can help pods that they refuse.
    pub extenders: bool,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self { backoff: Backoff::default(), max_unschedulable: DEFAULT_MAX_UNSCHEDULABLE, extenders: false }
    }
}

/// How an attempt to schedule a pod failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptFailure {
    /// Plugins refused it: it waits for what can help with these.
    Refused(Refusal),
    /// Something broke, or there is no node at all: it is tried again after a while.
    Error,
}

/// Why a pod leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// It is bound to a node, by whomever.
    Bound,
    /// It is gone.
    Deleted,
    /// It is not to be tried as it is now; its next version comes as a new one.
    Skipped,
}

/// A moment: the time, and the cluster as it is then, for PreEnqueue plugins and hints. A time alone stands for an empty
/// cluster, where no plugin looks at it.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The time since some start.
    pub now: Duration,
    /// The cluster.
    pub cluster: &'a Cluster,
}

impl From<Duration> for At<'_> {
    fn from(now: Duration) -> Self {
        static EMPTY: LazyLock<Cluster> = LazyLock::new(Cluster::default);
        Self { now, cluster: &EMPTY }
    }
}

/// All pods that wait to be scheduled, and those that are being scheduled.
pub struct SchedulingQueue {
    rules: HashMap<Name, Arc<QueueRules>>,
    settings: QueueSettings,
    /// The events that any plugin of any profile asks for.
    of_interest: EventSet,
    /// What happens to pods before they are bound, as far as any plugin asks for it on behalf of others.
    of_others: EventSet,
    entries: Entries,
    active: Queue,
    overdue: Overdue,
    backoff: KeptBack,
    error_backoff: KeptBack,
    unschedulable: UnschedulablePods,
    in_flight: InFlight,
    arrivals: u64,
    reasons: Reasons,
    incoming: Incoming,
    bound_after_flush: u64,
    stopwatch: Option<Arc<dyn Stopwatch>>,
    observer: Option<Arc<dyn QueueObserver>>,
}

impl SchedulingQueue {
    /// An empty queue for the pods of these profiles.
    pub fn new<'a>(rules: impl IntoIterator<Item = &'a Arc<QueueRules>>, settings: QueueSettings) -> Self {
        let rules: HashMap<_, _> =
            rules.into_iter().map(|rules| (rules.scheduler_name().clone(), rules.clone())).collect();
        let every = if settings.extenders { ClusterEvent::all().collect() } else { EventSet::default() };
        let of_interest = rules.values().fold(every, |all, rules| all.union(&rules.events()));
        let of_others =
            rules.values().fold(EventSet::default(), |all, rules| all.union(&rules.events_of_others()));
        Self {
            rules,
            settings,
            of_interest,
            of_others,
            entries: Entries::default(),
            active: Queue::default(),
            overdue: Overdue::default(),
            backoff: KeptBack::default(),
            error_backoff: KeptBack::default(),
            unschedulable: UnschedulablePods::default(),
            in_flight: InFlight::default(),
            arrivals: 0,
            reasons: Reasons::default(),
            incoming: Incoming::default(),
            bound_after_flush: 0,
            stopwatch: None,
            observer: None,
        }
    }

    /// Takes the times of hints from here on.
    pub fn time_with(&mut self, stopwatch: Arc<dyn Stopwatch>) {
        self.stopwatch = Some(stopwatch);
    }

    /// Shows how it changes from here on.
    pub fn observe_with(&mut self, observer: Arc<dyn QueueObserver>) {
        self.observer = Some(observer);
    }

    /// Pods wait for events no longer than this from here on.
    pub fn set_max_unschedulable(&mut self, span: Duration) {
        self.settings.max_unschedulable = span;
    }

    /// Takes in a pod that has no node yet. Where it is then; `None` if it asks for another scheduler.
    pub fn add<'c>(
        &mut self,
        pod: Arc<Pod>,
        nominations: &mut Nominations,
        at: impl Into<At<'c>>,
    ) -> Option<QueuePlace> {
        let at = at.into();
        if pod.node.is_some() || self.entries.find(&pod.uid).is_some() {
            return self.update(pod, nominations, at);
        }
        self.admit(pod, ActionType::Add, nominations, at)
    }

    fn admit(
        &mut self,
        pod: Arc<Pod>,
        action: ActionType,
        nominations: &mut Nominations,
        at: At<'_>,
    ) -> Option<QueuePlace> {
        let rules = self.rules.get(&pod.spec.scheduler_name)?.clone();
        let pod = match bugs::is_on(Bug::ClaimsForgottenAtStart) {
            true => Arc::new(Pod { nominated_node: None, ..Pod::clone(&pod) }),
            false => pod,
        };
        if let Some(earlier) = self.entries.named(&pod.key()) {
            let uid = self.entries.at(earlier).pod.uid.clone();
            self.remove(&uid, Removal::Deleted, nominations, at);
        }
        let arrival = self.next_arrival();
        let slot = self.entries.insert(Entry::new(pod.clone(), rules, arrival, at.now));
        if self.in_flight.contains(&pod.uid) {
            // It was taken out and put in again while it was being scheduled.
            self.entries.at_mut(slot).spot = Spot::InFlight;
        } else {
            let cause = QueueingCause::Event(ClusterEvent::new(EventResource::UnscheduledPod, action));
            self.requeue(slot, QueueingStrategy::Immediately, cause, at);
        }
        self.tell_others(
            &[ClusterEvent::new(EventResource::UnscheduledPod, action)],
            &Change::Pod(None, Some(&pod)),
            at,
        );
        let place = self.entries.at(slot).place();
        if place == QueuePlace::Active {
            nominations.honour(pod);
        }
        Some(place)
    }

    /// Takes in a new version of a pod, wherever it is. One that names a node leaves.
    pub fn update<'c>(
        &mut self,
        pod: Arc<Pod>,
        nominations: &mut Nominations,
        at: impl Into<At<'c>>,
    ) -> Option<QueuePlace> {
        let at = at.into();
        if pod.node.is_some() {
            return self.remove(&pod.uid, Removal::Bound, nominations, at);
        }
        let Some(slot) = self.entries.find(&pod.uid) else {
            return self.admit(pod, ActionType::Update, nominations, at);
        };
        let before = self.entries.at(slot).pod.clone();
        if !has_same_name(&before, &pod) {
            self.remove(&pod.uid, Removal::Deleted, nominations, at);
            return self.admit(pod, ActionType::Update, nominations, at);
        }
        if before == pod {
            self.take_version(slot, pod);
        } else {
            self.replace(slot, &before, pod.clone(), at);
            if self.entries.at(slot).is_queued() {
                nominations.update(&before, pod.clone());
            }
            if before.nominated_node.is_some() && before.nominated_node != pod.nominated_node {
                self.claim_dropped(&before, at);
            }
        }
        Some(self.entries.at(slot).place())
    }

    fn replace(&mut self, slot: usize, before: &Pod, pod: Arc<Pod>, at: At<'_>) {
        let events = pod_events(before, &pod);
        let change = Change::Pod(Some(before), Some(&pod));
        self.take_version(slot, pod.clone());
        match self.entries.at(slot).spot {
            Spot::UnschedulablePods(..) => self.helped_itself(slot, &events, &change, at),
            Spot::InFlight => {
                let kept = Arc::new(change.kept());
                events.into_iter().for_each(|event| self.in_flight.record(Seen::Event(event, kept.clone())));
            }
            Spot::Active | Spot::Backoff(_) | Spot::ErrorBackoff(_) | Spot::Leaving => {}
        }
        self.tell_others(&pod_events(before, &pod), &Change::Pod(Some(before), Some(&pod)), at);
    }

    /// Keeps a new version of a pod, whatever it says. Its turn may be another then.
    fn take_version(&mut self, slot: usize, pod: Arc<Pod>) {
        let entry = self.entries.at_mut(slot);
        match entry.spot {
            Spot::Active => {
                self.active.remove(&entry.turn());
                entry.pod = pod;
                self.active.insert(entry.turn());
            }
            Spot::Backoff(until) => {
                self.backoff.remove(until, entry.turn());
                entry.pod = pod;
                self.backoff.insert(until, entry.turn());
            }
            Spot::ErrorBackoff(until) => {
                self.error_backoff.remove(until, entry.turn());
                entry.pod = pod;
                self.error_backoff.insert(until, entry.turn());
            }
            Spot::InFlight | Spot::Leaving if bugs::is_on(Bug::UpdateWhileSchedulingLost) => {}
            Spot::UnschedulablePods(..) | Spot::InFlight | Spot::Leaving => entry.pod = pod,
        }
    }

    /// Keeps a new version of a pod that is being bound: only if that fails does what it says count.
    pub fn renew(&mut self, pod: Arc<Pod>) {
        let slot = self.entries.find(&pod.uid);
        if let Some(slot) = slot.filter(|slot| has_same_name(&self.entries.at(*slot).pod, &pod)) {
            self.take_version(slot, pod);
        }
    }

    /// Takes a pod out, wherever it is; it may still be in flight. Where it was.
    pub fn remove<'c>(
        &mut self,
        uid: &str,
        why: Removal,
        nominations: &mut Nominations,
        at: impl Into<At<'c>>,
    ) -> Option<QueuePlace> {
        let at = at.into();
        // What its status does not say yet holds already.
        let nominated = nominations.node_of(uid).cloned();
        if !(bugs::is_on(Bug::DeletedPodKeepsNomination) && why == Removal::Deleted) {
            nominations.forget(uid);
        }
        let slot = self.entries.find(uid)?;
        let place = self.entries.at(slot).place();
        if self.entries.at(slot).is_queued() {
            self.reasons.subtract(self.entries.at(slot));
        }
        self.detach(slot);
        let entry = self.entries.remove(slot)?;
        if let Some(observer) = &self.observer {
            observer.left(&entry.pod, why);
        }
        let gone = [ClusterEvent::new(EventResource::UnscheduledPod, ActionType::Delete)];
        self.tell_others(&gone, &Change::Pod(Some(&entry.pod), None), at);
        if why == Removal::Deleted
            && let Some(node) = nominated.or_else(|| entry.pod.nominated_node.clone())
        {
            self.claim_dropped(&Pod { nominated_node: Some(node), ..Pod::clone(&entry.pod) }, at);
        }
        Some(place)
    }

    /// Wakes the pods that a change can help, and remembers it for those that are being scheduled.
    pub fn happened<'c>(&mut self, happened: &Happened<'_>, at: impl Into<At<'c>>) {
        self.happened_to_all_but("", happened, at);
    }

    /// The same for all pods but one: what a pod that was refused has given back is of no use to itself.
    pub fn happened_to_all_but<'c>(&mut self, uid: &str, happened: &Happened<'_>, at: impl Into<At<'c>>) {
        let at = at.into();
        for event in &happened.events {
            self.wake(*event, &happened.change, |pod| &*pod.uid != uid, at);
        }
        self.record(&happened.events, &happened.change);
    }

    /// Gives pods their turn now. One that is being scheduled gets it when it comes back.
    pub fn activate<'a, 'c>(&mut self, uids: impl IntoIterator<Item = &'a str>, at: impl Into<At<'c>>) {
        let at = at.into();
        for uid in uids {
            let Some(slot) = self.entries.find(uid) else {
                continue;
            };
            match self.entries.at(slot).spot {
                Spot::UnschedulablePods(..) => {
                    self.requeue(slot, QueueingStrategy::Immediately, QueueingCause::ForceActivate, at);
                }
                Spot::Backoff(_) | Spot::ErrorBackoff(_) => {
                    self.detach(slot);
                    self.put_active(slot, QueueingCause::ForceActivate, at.now);
                }
                Spot::InFlight => {
                    let uid = self.entries.at(slot).pod.uid.clone();
                    self.in_flight.record(Seen::Activated(uid));
                }
                Spot::Active | Spot::Leaving => {}
            }
        }
    }

    /// A plugin judges otherwise from now on: gives the pods that it refused their turn.
    pub fn plugin_changed<'c>(&mut self, plugin: &str, at: impl Into<At<'c>>) {
        let at = at.into();
        let refused = |pending: &PendingPod<'_>| pending.refused_by.all().any(|by| **by == *plugin);
        let pods: Vec<Name> = self.pending().filter(refused).map(|pending| pending.pod.uid.clone()).collect();
        self.activate(pods.iter().map(|uid| &**uid), at);
    }

    /// The pod whose turn it is. If nobody waits for a turn, one that is kept back after a refusal. It is in flight from
    /// here on: every way out leads to [`Self::park`], [`Self::bound`] or [`Self::done`].
    pub fn pop<'c>(&mut self, at: impl Into<At<'c>>) -> Option<Popped> {
        let at = at.into();
        self.advance(at);
        self.overdue.begin_turn(at.now);
        let slot = match self.next_active() {
            Some(slot) => self.instead_of(slot),
            None => self.next_kept_back()?,
        };
        self.reasons.subtract(self.entries.at(slot));
        let entry = self.entries.at_mut(slot);
        self.in_flight.start(entry.pod.uid.clone());
        entry.spot = Spot::InFlight;
        entry.attempts = entry.attempts.saturating_add(1);
        Some(Popped {
            pod: entry.pod.clone(),
            attempts: entry.attempts,
            first_queued: entry.first_queued.unwrap_or(at.now),
            since: entry.since,
            after_flush: entry.after_flush,
        })
    }

    /// Takes a pod back that was tried in vain, in its newest version, with what becomes of its claim to a node. Where it
    /// is then; `None` if it has left in the meantime.
    pub fn park<'c>(
        &mut self,
        uid: &str,
        failure: AttemptFailure,
        claim: Claim,
        nominations: &mut Nominations,
        at: impl Into<At<'c>>,
    ) -> Option<QueuePlace> {
        let at = at.into();
        let slot = self.entries.find(uid);
        let Some(slot) = slot.filter(|slot| !self.entries.at(*slot).is_queued()) else {
            self.in_flight.end(uid);
            return slot.map(|slot| self.entries.at(slot).place());
        };
        let arrival = self.next_arrival();
        let entry = self.entries.at_mut(slot);
        entry.failed(failure, arrival, at.now);
        self.reasons.add(entry);
        let strategy = self.missed(slot, at);
        self.in_flight.end(uid);
        self.requeue(slot, strategy, QueueingCause::ScheduleAttemptFailure, at);
        nominations.settle(self.entries.at(slot).pod.clone(), claim);
        Some(self.entries.at(slot).place())
    }

    /// Nothing that happens from now on can make a difference to a pod in flight. May be said more than once.
    pub fn done(&mut self, uid: &str) {
        self.in_flight.end(uid);
        if let Some(slot) = self.entries.find(uid) {
            let entry = self.entries.at_mut(slot);
            if entry.spot == Spot::InFlight {
                entry.spot = Spot::Leaving;
            }
        }
    }

    /// Lets a pod wait that was popped and cannot be tried yet. Until it is [taken up](Self::take_up), nothing that happens
    /// needs to be remembered for it.
    pub fn set_aside(&mut self, uid: &str) {
        self.done(uid);
    }

    /// Takes up a pod that was set aside, in its newest version: it is in flight again. `None` if it has left.
    pub fn take_up(&mut self, uid: &str) -> Option<Arc<Pod>> {
        let slot = self.entries.find(uid)?;
        let entry = self.entries.at_mut(slot);
        if entry.is_queued() {
            return None;
        }
        entry.spot = Spot::InFlight;
        let pod = entry.pod.clone();
        self.in_flight.start(pod.uid.clone());
        Some(pod)
    }

    /// A pod was bound. It leaves when the cluster says so, see [`Self::remove`].
    pub fn bound(&mut self, popped: &Popped) {
        self.done(&popped.pod.uid);
        self.bound_after_flush += u64::from(popped.after_flush);
    }

    /// When [`Self::pop`] may have a pod if nothing else happens; zero if it has one now.
    pub fn next_due(&self) -> Option<Duration> {
        if !self.active.is_empty() || self.backoff.len() > 0 {
            return Some(Duration::ZERO);
        }
        let flush = self.unschedulable.longest().map(|(since, _)| self.flush_at(since));
        let kept_back = self.error_backoff.first_window().map(backoff::end);
        flush.into_iter().chain(kept_back).min()
    }

    /// How many pods are where.
    pub fn counts(&self) -> QueueCounts {
        let (unschedulable, gated) = self.unschedulable.counts();
        QueueCounts {
            active: self.active.len(),
            backoff: self.backoff.len() + self.error_backoff.len(),
            unschedulable: unschedulable - gated,
            gated,
            in_flight: self.in_flight.len(),
            in_flight_events: self.in_flight.events(),
        }
    }

    /// What is remembered for the pods in flight, and how many of each.
    pub fn in_flight_events(&self) -> BTreeMap<QueueingCause, usize> {
        let mut events = BTreeMap::new();
        for cause in self.in_flight.causes() {
            *events.entry(cause).or_default() += 1;
        }
        events
    }

    /// How many pods came into which queue, and why.
    pub fn incoming(&self) -> &Incoming {
        &self.incoming
    }

    /// How many waiting pods each plugin has refused: scheduler name, plugin, pods.
    pub fn refused_by_plugin(&self) -> impl Iterator<Item = (&Name, &Name, usize)> {
        self.reasons.iter()
    }

    /// How many pods were bound although no event had woken them: as many events were missed.
    pub fn bound_after_flush(&self) -> u64 {
        self.bound_after_flush
    }

    /// All pods, where they are and why.
    pub fn pending(&self) -> impl Iterator<Item = PendingPod<'_>> {
        self.entries.iter().map(Entry::pending)
    }

    /// The pod of a name, where it is and why.
    pub fn named(&self, key: &Key) -> Option<PendingPod<'_>> {
        self.entries.named(key).map(|slot| self.entries.at(slot).pending())
    }

    /// A pod, where it is and why.
    pub fn find(&self, uid: &str) -> Option<PendingPod<'_>> {
        self.entries.find(uid).map(|slot| self.entries.at(slot).pending())
    }
}

impl PendingPods for SchedulingQueue {
    fn find(&self, uid: &str) -> Option<&Arc<Pod>> {
        self.entries.find(uid).map(|slot| &self.entries.at(slot).pod)
    }

    fn all(&self) -> Box<dyn Iterator<Item = &Arc<Pod>> + '_> {
        Box::new(self.entries.iter().map(|entry| &entry.pod))
    }
}

/// No API server gives a uid to two names, but what is written in a file may: then they are two pods.
fn has_same_name(one: &Pod, other: &Pod) -> bool {
    one.name == other.name && one.namespace == other.namespace
}
