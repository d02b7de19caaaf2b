//! The scheduler over objects that were read from files, on virtual time: the queue, the engine and the plugins' effects of
//! the live scheduler without an API server around them.
//!
//! Plugins have the same handle as live: they see the cluster, read and write API objects, wait, let others wait. What they
//! write changes the cluster in memory, and wakes pods by the same events. A wait costs no real time (a plugin that blocks
//! its thread does), and time passes only when nobody has anything to do.
//!
//! What others do in a cluster happens by itself, as far as it follows from what plugins write (`others`): a pod that is
//! deleted is gone after its grace period, a claim that was given a volume or sent to a node is bound at once. Nobody makes
//! new pods, runs or resizes those that there are, or answers in the name of other controllers: who waits for such a one
//! is told so in the end. Extenders do not bind.

mod binding;
mod handle;
mod objects;
mod others;
mod outside;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use supercargo_engine::{
    At, AttemptFailure, Decision, Engine, Placement, Popped, QueuePlace, QueueSettings, SchedulingQueue,
};
use supercargo_framework::{
    assumed::AssumedObjects,
    binding_signal::CalledOff,
    checks::Checks,
    handle::{Handle, View},
    offline::ApiObjects,
    preemption::{Claim, Nomination, PreemptionCycle},
    virtual_time::{Executor, VirtualClock},
};
use supercargo_model::{Key, Name, Pod, changes::Moment};

use crate::setup;
use binding::Assumed;
use handle::{Report, SchedulerHandle};

pub use outside::OfflineStep;

/// After so many attempts a pod is left alone: plugins that contradict each other must not keep it busy for ever.
const MAX_ATTEMPTS: u32 = 1000;
/// If nobody is tried for so long, nobody will be: a plugin that looks after something now and then must not keep time
/// passing for ever.
const MAX_QUIET: Duration = Duration::from_secs(24 * 3600);

/// One attempt to schedule a pod, or the reason why none is made.
#[derive(Debug)]
pub struct Attempt {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The first, the second, …; 0 if the pod is gated and was never tried.
    pub number: u32,
    /// The virtual time, from the start on.
    pub at: Duration,
    /// What came of it. If a pod that was placed cannot be bound, its attempt is told once more, with what failed.
    pub placement: Placement,
}

/// All that an attempt depends on besides the pod: if it is the same, so is the answer.
type State = (Moment, u64, u64);

/// Schedules pods until nothing more can happen.
pub struct OfflineScheduler {
    engine: Engine,
    queue: SchedulingQueue,
    tasks: Arc<Executor>,
    handle: Arc<SchedulerHandle>,
    /// Attempts that are to be told next.
    told: VecDeque<Attempt>,
    /// Pods that are about to be gone, by when and in the order in which they were asked to leave.
    departures: BTreeMap<(Duration, u64), Key>,
    departed: u64,
    /// Pods whose bindings take their time, by uid.
    assumed: HashMap<Name, Assumed>,
    /// What pods were promised, such as volumes.
    assumed_objects: AssumedObjects,
    /// What plugins have made, and versions.
    objects: ApiObjects,
    checks: Checks,
    tried: HashMap<Name, State>,
    failed_bindings: HashMap<Name, u32>,
    decided: u64,
    last_decided: Duration,
    other_schedulers: usize,
    max_attempts: u32,
}

impl OfflineScheduler {
    /// Queues the pods that wait for a node of an engine's cluster, in this order of arrival. Those that ask for other
    /// schedulers are left alone.
    pub fn new(engine: Engine, settings: QueueSettings, pending: impl IntoIterator<Item = Arc<Pod>>) -> Self {
        let tasks = Arc::new(Executor::on(VirtualClock::starting_at(engine.cluster().now())));
        let handle = Arc::new(SchedulerHandle::new(&tasks));
        let shared: Arc<dyn Handle> = handle.clone();
        engine.profiles().iter().for_each(|profile| profile.connect(&shared));
        let mut scheduler = Self {
            queue: setup::queue(&engine, settings),
            tasks,
            handle,
            told: VecDeque::new(),
            departures: BTreeMap::new(),
            departed: 0,
            assumed: HashMap::new(),
            assumed_objects: AssumedObjects::default(),
            objects: ApiObjects::default(),
            checks: Checks::default(),
            tried: HashMap::new(),
            failed_bindings: HashMap::new(),
            decided: 0,
            last_decided: Duration::ZERO,
            other_schedulers: 0,
            max_attempts: MAX_ATTEMPTS,
            engine,
        };
        scheduler.expect_departures();
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
        let now = self.now();
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        match self.queue.add(pod.clone(), nominations, At { now, cluster }) {
            None => self.other_schedulers += 1,
            Some(QueuePlace::Gated) => {
                let decision = self.engine.held(&pod);
                let told = decision.map(|decision| {
                    let placement = Placement::Decided(Box::new(decision));
                    Attempt { pod, number: 0, at: now, placement }
                });
                self.told.extend(told);
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

    /// The engine alone, for whoever goes on from the cluster as it is now.
    pub fn into_engine(self) -> Engine {
        self.engine
    }

    /// The queue as it is now.
    pub fn queue(&self) -> &SchedulingQueue {
        &self.queue
    }

    /// The virtual time, from the start on.
    pub fn now(&self) -> Duration {
        self.tasks.clock().uptime()
    }

    /// The next attempt; `None` when nothing more can happen. Gated pods come first. `decide` is asked about the pod, with
    /// the number of the attempt: by [`Engine::place`] or [`Engine::decide`], which come to the same.
    pub fn next_attempt(
        &mut self,
        mut decide: impl FnMut(&mut Engine, &Arc<Pod>, u32) -> Option<Placement>,
    ) -> Option<Attempt> {
        loop {
            self.run_effects();
            if let Some(attempt) = self.told.pop_front() {
                return Some(attempt);
            }
            let at = At { now: self.now(), cluster: self.engine.cluster() };
            match self.queue.pop(at) {
                Some(popped) => {
                    let attempt = self.attempt(popped, &mut decide);
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
        popped: Popped,
        decide: &mut impl FnMut(&mut Engine, &Arc<Pod>, u32) -> Option<Placement>,
    ) -> Option<Attempt> {
        let pod = self.engine.nominations().named_in(&popped.pod);
        if popped.attempts > self.max_attempts || self.fails_for_good(&pod.uid) {
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
        self.decided += 1;
        self.last_decided = self.now();
        if let Some(node) = placement.node().cloned() {
            return self.place(popped, pod, node, placement);
        }
        if let Placement::Decided(decision) = &placement {
            self.no_node(&pod, decision);
        }
        Some(Attempt { pod, number: popped.attempts, at: self.now(), placement })
    }

    /// A pod waits for what can help it. If room can be made for it, the plugin that found it begins with that.
    fn no_node(&mut self, pod: &Arc<Pod>, decision: &Decision) {
        let failure = decision.failure().unwrap_or(AttemptFailure::Error);
        if let Some(Ok(nomination)) = &decision.preemption {
            self.preempt(pod, nomination);
        }
        let profile = self.engine.profile(&pod.spec.scheduler_name);
        if let (Some(profile), Some(follow_up)) = (profile, &decision.follow_up) {
            profile.follow_up(pod, follow_up);
        }
        self.park(&pod.uid, failure, decision.claim());
    }

    fn preempt(&mut self, pod: &Arc<Pod>, nomination: &Nomination) {
        if let Some(profile) = self.engine.profiles().shared(&pod.spec.scheduler_name) {
            profile.profile.preempt(self, pod, nomination);
        }
    }

    /// A pod waits after an attempt that came to nothing.
    fn park(&mut self, uid: &Name, failure: AttemptFailure, claim: Claim) {
        let now = self.now();
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.park(uid, failure, claim.clone(), nominations, At { now, cluster });
        self.name_in_status(uid, claim);
        self.tried.insert(uid.clone(), self.state());
    }

    /// A pod whose attempt would come to what it came to before.
    fn park_again(&mut self, pod: &Pod) {
        let refused_by = self.queue.find(&pod.uid).map(|pending| pending.refused_by.clone());
        let failure = match refused_by.filter(|refusal| !refusal.is_empty()) {
            Some(refusal) => AttemptFailure::Refused(refusal),
            None => AttemptFailure::Error,
        };
        self.park(&pod.uid, failure, Claim::Kept);
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
            self.pod_is(Arc::new(Pod { nominated_node, ..(*newest).clone() }));
        }
    }

    /// Runs effects as far as they get without time passing.
    fn run_effects(&mut self) {
        loop {
            self.tasks.run_ready();
            match self.handle.reports.pop() {
                Some(report) => self.take_report(report),
                None if self.tasks.is_idle() => return,
                None => {}
            }
        }
    }

    fn take_report(&mut self, report: Report) {
        match report {
            Report::Look(look) => look(&self.view()),
            Report::Check(id, check) => self.with_checks(|checks, view| checks.run(id, check, view)),
            Report::CheckOver(id) => drop(self.checks.take(id)),
            Report::Send(request, answer) => answer.give(self.answer(&request)),
            Report::Activate(uid) => self.activate(&uid),
            Report::LookAgain(uid, plugin) => {
                if self.queue.find(&uid).is_some_and(|pending| pending.held_by == Some(&plugin)) {
                    self.activate(&uid);
                }
            }
            Report::Permitted(uid) => self.queue.done(&uid),
            Report::Bound(uid, result) => self.binding_ended(&uid, result),
        }
    }

    /// A plugin gives a pod its turn: what it knows may have changed, if the cluster has not.
    fn activate(&mut self, uid: &Name) {
        self.tried.remove(uid);
        let at = At { now: self.now(), cluster: self.engine.cluster() };
        self.queue.activate([&**uid], at);
    }

    /// Runs checks on the cluster as it is now.
    fn with_checks(&mut self, run: impl FnOnce(&mut Checks, &View<'_>)) {
        let Self { checks, engine, queue, .. } = self;
        let view = View { cluster: engine.cluster(), nominations: engine.nominations(), pending: queue };
        run(checks, &view);
    }

    /// Lets time pass until something happens; `None` if nothing will.
    fn wait(&mut self) -> Option<()> {
        let Some(until) = self.next_moment().filter(|until| *until <= self.last_decided + MAX_QUIET) else {
            return self.end_waiting_bindings().then_some(());
        };
        self.pass_to(until);
        Some(())
    }

    /// When a pod leaves, a pod comes back, or a plugin has waited for long enough, whichever is first.
    fn next_moment(&self) -> Option<Duration> {
        let moments = [self.next_departure(), self.next_retry(), self.tasks.clock().next_timer()];
        moments.into_iter().flatten().min()
    }

    fn pass_to(&mut self, until: Duration) {
        let clock = self.tasks.clock().clone();
        while clock.advance_to_next_timer(until) {}
        clock.advance_to(until);
        self.engine.cluster_mut().set_now(clock.now());
        self.depart(until);
    }

    /// When the first of the pods comes back that failed for another reason than being refused, and for which anything
    /// has changed since.
    fn next_retry(&self) -> Option<Duration> {
        let state = self.state();
        let waiting = self.queue.pending().filter(|pending| pending.place == QueuePlace::Backoff);
        let changed = waiting.filter(|pending| self.tried.get(&pending.pod.uid) != Some(&state));
        changed.filter_map(|pending| pending.until).min()
    }

    fn state(&self) -> State {
        let cluster = self.engine.cluster();
        (cluster.changes().now(), self.engine.nominations().revision(), cluster.devices().revision())
    }
}

impl PreemptionCycle for OfflineScheduler {
    fn view(&self) -> View<'_> {
        View { cluster: self.engine.cluster(), nominations: self.engine.nominations(), pending: &self.queue }
    }

    fn call_off(&mut self, uid: &str, plugin: &str) -> bool {
        let signal = self.assumed.get(uid).and_then(|assumed| assumed.signal.as_ref());
        signal.is_some_and(|signal| signal.call_off(CalledOff::Preempted(plugin.into())))
    }

    fn clear_nomination(&mut self, pod: &Arc<Pod>) {
        self.name_in_status(&pod.uid, Claim::Dropped);
    }
}
