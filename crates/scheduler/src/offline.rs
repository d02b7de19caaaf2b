//! The scheduler over objects that were read from files, on virtual time: the queue and the engine of the live scheduler
//! without an API server between them.
//!
//! What others do in a cluster happens by itself: a pod that is placed is bound at once, and a pod that is evicted, or whose
//! deletion was asked for, is gone after its grace period. What Reserve plugins promise a pod (volumes) is kept for it. Time
//! passes only when no pod can be tried. Nobody makes new pods, nobody runs or resizes those that there are, and nothing is
//! asked of Permit, PreBind and Bind plugins.

mod outside;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use supercargo_engine::{
    At, Decision, Engine, Failure, Outcome, Place, Placement, Popped, QueueSettings, Refusal, Removal,
    SchedulingQueue,
};
use supercargo_framework::{
    assumed::{AssumedObjects, ReserveCycle},
    event::Change,
    preemption::{Claim, Rejection},
};
use supercargo_model::{Key, Name, Pod, Timestamp, changes::Moment};

use crate::setup;

pub use outside::Step;

/// How long a pod takes to leave: what Kubernetes gives pods that do not say it.
pub const GRACE_PERIOD: Duration = Duration::from_secs(30);
/// After so many attempts a pod is left alone: plugins that contradict each other must not keep it busy for ever.
const MAX_ATTEMPTS: u32 = 1000;
/// Who keeps a pod from being tried until its victims leave.
const PREEMPTION: &str = "DefaultPreemption";

/// One attempt to schedule a pod, or the reason why none is made.
#[derive(Debug)]
pub struct Attempt {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The first, the second, …; 0 if the pod is gated and was never tried.
    pub number: u32,
    /// The virtual time, from the start on.
    pub at: Duration,
    /// What came of it. It has been carried out.
    pub placement: Placement,
}

/// All that an attempt depends on besides the pod: if it is the same, so is the answer.
type State = (Moment, u64);

/// Schedules pods until nothing more can happen.
pub struct OfflineScheduler {
    engine: Engine,
    queue: SchedulingQueue,
    began: Timestamp,
    now: Duration,
    gated: VecDeque<(Arc<Pod>, Decision)>,
    /// Pods that are about to be gone, by when and in the order in which they were asked to leave.
    departures: BTreeMap<(Duration, u64), Key>,
    departed: u64,
    /// What pods were promised, such as volumes.
    assumed: AssumedObjects,
    tried: HashMap<Name, State>,
    other_schedulers: usize,
    max_attempts: u32,
}

impl OfflineScheduler {
    /// Queues the pods that wait for a node of an engine's cluster, in this order of arrival. Those that ask for other
    /// schedulers are left alone.
    pub fn new(engine: Engine, settings: QueueSettings, pending: impl IntoIterator<Item = Arc<Pod>>) -> Self {
        let mut scheduler = Self {
            queue: setup::queue(&engine, settings),
            began: engine.cluster().now(),
            now: Duration::ZERO,
            gated: VecDeque::new(),
            departures: BTreeMap::new(),
            departed: 0,
            assumed: AssumedObjects::default(),
            tried: HashMap::new(),
            other_schedulers: 0,
            max_attempts: MAX_ATTEMPTS,
            engine,
        };
        let pods = scheduler.engine.cluster().pods();
        let mut leaving: Vec<Key> = pods.filter(|pod| pod.terminating).map(|pod| pod.key()).collect();
        leaving.sort();
        leaving.into_iter().for_each(|pod| scheduler.departs(pod));
        for pod in pending {
            scheduler.enqueue(pod);
        }
        scheduler
    }

    fn enqueue(&mut self, pod: Arc<Pod>) {
        // Files that people have copied may name a uid twice.
        let pod = match self.queue.find(&pod.uid) {
            Some(_) => Arc::new(Pod { uid: format!("{}/{}", pod.uid, pod.key()).into(), ..(*pod).clone() }),
            None => pod,
        };
        let pod = self.engine.admit(pod);
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        match self.queue.add(pod.clone(), nominations, At { now: self.now, cluster }) {
            None => self.other_schedulers += 1,
            Some(Place::Gated) => {
                self.gated.extend(self.engine.held(&pod).map(|decision| (pod, decision)));
            }
            Some(_) => {}
        }
    }

    /// How many pods ask for other schedulers.
    pub fn other_schedulers(&self) -> usize {
        self.other_schedulers
    }

    /// The engine, with the cluster as it is now.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The queue as it is now.
    pub fn queue(&self) -> &SchedulingQueue {
        &self.queue
    }

    /// The virtual time, from the start on.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// The next attempt; `None` when nothing more can happen. Gated pods come first. `decide` is asked about the pod, with
    /// the number of the attempt: by [`Engine::place`] or [`Engine::decide`], which come to the same.
    pub fn next_attempt(
        &mut self,
        mut decide: impl FnMut(&mut Engine, &Arc<Pod>, u32) -> Option<Placement>,
    ) -> Option<Attempt> {
        if let Some((pod, decision)) = self.gated.pop_front() {
            let placement = Placement::Decided(Box::new(decision));
            return Some(Attempt { pod, number: 0, at: self.now, placement });
        }
        loop {
            match self.queue.pop(At { now: self.now, cluster: self.engine.cluster() }) {
                Some(popped) => {
                    let attempt = self.attempt(&popped, &mut decide);
                    if attempt.is_some() {
                        return attempt;
                    }
                }
                None => self.wait()?,
            }
        }
    }

    fn attempt(
        &mut self,
        popped: &Popped,
        decide: &mut impl FnMut(&mut Engine, &Arc<Pod>, u32) -> Option<Placement>,
    ) -> Option<Attempt> {
        let pod = self.engine.nominations().named_in(&popped.pod);
        if popped.attempts > self.max_attempts {
            self.queue.done(&pod.uid);
            return None;
        }
        if self.tried.get(&pod.uid) == Some(&self.state()) {
            self.park_again(&pod);
            return None;
        }
        let Some(placement) = decide(&mut self.engine, &pod, popped.attempts) else {
            self.queue.done(&pod.uid);
            return None;
        };
        let placement = match (placement.node().cloned(), placement) {
            (Some(node), placement) => match self.reserve(&pod, &node) {
                Ok(()) => {
                    self.bind(popped, &pod);
                    placement
                }
                Err(rejection) => self.not_reserved(&pod, rejection)?,
            },
            (None, placement) => {
                if let Placement::Decided(decision) = &placement {
                    self.no_node(&pod, decision);
                }
                placement
            }
        };
        Some(Attempt { pod, number: popped.attempts, at: self.now, placement })
    }

    /// Puts a pod on its node, with what Reserve plugins promise it there.
    fn reserve(&mut self, pod: &Arc<Pod>, node: &Name) -> Result<(), Rejection> {
        self.engine.assume(pod, node.clone());
        let Some(profile) = self.engine.profiles().shared(&pod.spec.scheduler_name) else { return Ok(()) };
        let mut cycle = ReserveCycle::new(self.engine.cluster_mut(), &mut self.assumed, pod.uid.clone());
        let reserved = profile.profile.reserve(&mut cycle, pod, node);
        if reserved.is_err() {
            profile.profile.unreserve(pod, node);
            self.assumed.restore(self.engine.cluster_mut(), &pod.uid);
            self.engine.cluster_mut().remove_pod(&pod.key());
        }
        reserved
    }

    /// A Reserve plugin refused the node after it was chosen, or failed.
    fn not_reserved(&mut self, pod: &Arc<Pod>, rejection: Rejection) -> Option<Placement> {
        let Rejection { plugin, status } = rejection;
        let message = format!("running Reserve plugin \"{plugin}\": {}", status.message());
        let failure = match status.is_rejection() {
            true => Failure::Refused(Refusal { plugins: [plugin].into(), ..Refusal::default() }),
            false => Failure::Error,
        };
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        let at = At { now: self.now, cluster };
        self.queue.park(&pod.uid, failure, Claim::Dropped, nominations, at);
        self.tried.insert(pod.uid.clone(), self.state());
        let decided = self.engine.what_if(pod)?;
        Some(Placement::Decided(Box::new(Decision { outcome: Outcome::Error { message }, ..decided })))
    }

    /// A pod is on its node, and everybody sees it there at once.
    fn bind(&mut self, popped: &Popped, pod: &Pod) {
        self.queue.bound(popped);
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.remove(&pod.uid, Removal::Bound, nominations, At { now: self.now, cluster });
        self.tried.remove(&pod.uid);
        if let Some(bound) = self.engine.cluster().pod(&pod.key()).cloned() {
            self.happened(Change::Pod(None, Some(&bound)));
        }
    }

    /// A pod waits for what can help it. If room is made for it, its victims are told to leave.
    fn no_node(&mut self, pod: &Arc<Pod>, decision: &Decision) {
        let failure = decision.failure().unwrap_or(Failure::Error);
        let (claim, victims) = match &decision.preemption {
            Some(Ok(nomination)) => (Claim::On(nomination.node.clone()), &nomination.victims[..]),
            _ if decision.clears_nomination => (Claim::Dropped, &[][..]),
            _ => (Claim::Kept, &[][..]),
        };
        let victims: Vec<&Arc<Pod>> = victims.iter().filter(|victim| !victim.terminating).collect();
        if let (Claim::On(node), false) = (&claim, victims.is_empty()) {
            self.take_nominations_back(pod, node);
            self.queue.hold(pod.uid.clone(), PREEMPTION.into());
        }
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.park(&pod.uid, failure, claim.clone(), nominations, At { now: self.now, cluster });
        self.name_in_status(&pod.uid, claim);
        self.tried.insert(pod.uid.clone(), self.state());
        for victim in victims {
            self.evict(victim);
        }
        self.queue.release(&pod.uid);
    }

    /// A pod whose attempt would come to what it came to before.
    fn park_again(&mut self, pod: &Pod) {
        let refused_by = self.queue.find(&pod.uid).map(|pending| pending.refused_by.clone());
        let failure = match refused_by.filter(|refusal| !refusal.is_empty()) {
            Some(refusal) => Failure::Refused(refusal),
            None => Failure::Error,
        };
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.park(&pod.uid, failure, Claim::Kept, nominations, At { now: self.now, cluster });
        self.tried.insert(pod.uid.clone(), self.state());
    }

    /// Less important pods that are nominated to the node may not fit there any more.
    fn take_nominations_back(&mut self, pod: &Pod, node: &Name) {
        let others = self.engine.nominations().less_important(pod, node);
        let others: Vec<Name> = others.map(|other| other.uid.clone()).collect();
        others.iter().for_each(|uid| self.name_in_status(uid, Claim::Dropped));
    }

    /// A pod's status names the node that it has a claim to, or no longer does.
    fn name_in_status(&mut self, uid: &Name, claim: Claim) {
        let nominated_node = match claim {
            Claim::On(node) => Some(node),
            Claim::Dropped => None,
            Claim::Kept => return,
        };
        let newest = self.queue.find(uid).map(|pending| pending.pod.clone());
        if let Some(newest) = newest.filter(|newest| newest.nominated_node != nominated_node) {
            let renamed = Arc::new(Pod { nominated_node, ..(*newest).clone() });
            let (cluster, nominations) = self.engine.cluster_and_nominations();
            self.queue.update(renamed, nominations, At { now: self.now, cluster });
        }
    }

    fn evict(&mut self, victim: &Pod) {
        let key = victim.key();
        let running = self.engine.cluster().pod(&key).cloned();
        let Some(before) = running.filter(|running| running.uid == victim.uid) else { return };
        let leaving = Arc::new(Pod { terminating: true, preempted: true, ..(*before).clone() });
        self.engine.cluster_mut().put_pod(leaving.clone());
        self.happened(Change::Pod(Some(&before), Some(&leaving)));
        self.departs(key);
    }

    fn departs(&mut self, pod: Key) {
        self.departed += 1;
        self.departures.insert((self.now + GRACE_PERIOD, self.departed), pod);
    }

    /// Lets time pass until something happens; `None` if nothing will.
    fn wait(&mut self) -> Option<()> {
        let until = self.next_change()?;
        self.pass_to(until);
        Some(())
    }

    /// When a pod leaves or comes back, whichever is first.
    fn next_change(&self) -> Option<Duration> {
        let departure = self.departures.keys().next().map(|(at, _)| *at);
        departure.into_iter().chain(self.next_retry()).min()
    }

    fn pass_to(&mut self, until: Duration) {
        self.now = self.now.max(until);
        let began = self.began;
        self.engine.cluster_mut().set_now(began.checked_add(self.now).unwrap_or(began));
        while let Some(entry) = self.departures.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let key = entry.remove();
            if let Some(gone) = self.engine.cluster_mut().remove_pod(&key) {
                self.happened(Change::Pod(Some(&gone), None));
            }
        }
    }

    /// When the first of the pods comes back that failed for another reason than being refused, and for which anything
    /// has changed since.
    fn next_retry(&self) -> Option<Duration> {
        let state = self.state();
        let waiting = self.queue.pending().filter(|pending| pending.place == Place::Backoff);
        let changed = waiting.filter(|pending| self.tried.get(&pending.pod.uid) != Some(&state));
        changed.filter_map(|pending| pending.until).min()
    }

    fn state(&self) -> State {
        (self.engine.cluster().changes().now(), self.engine.nominations().revision())
    }

    fn happened(&mut self, change: Change<'_>) {
        let happened = change.happened();
        if !happened.events.is_empty() {
            self.queue.happened(&happened, At { now: self.now, cluster: self.engine.cluster() });
        }
    }
}
