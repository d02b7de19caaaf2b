//! The scheduler itself: the one owner of the cache and of the queue, driven by watch events, by time, and by how the
//! things that it has sent turned out.
//!
//! Everything that changes the cache happens in this one task, so that nothing is locked and the order of things is
//! clear. What takes time (binding, evicting, recording events) runs in tasks of its own and reports back.

mod attempt;
mod binding;
mod extender_calls;
mod hand_over;
mod handle;
pub mod inspector;
pub mod meter;
mod preemption;
pub mod records;
mod reporter;
mod status_writer;
mod unconfirmed;
mod watch_events;

#[cfg(test)]
mod tests;

use std::{
    pin::pin,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use futures_util::future::FutureExt;
use supercargo_engine::{
    At, Engine, PendingPod, Popped, QueuePlace, QueueSettings, Removal, SchedulingQueue,
};
use supercargo_extender::{Extenders, Originals};
use supercargo_framework::{
    assumed::AssumedObjects,
    binding_signal::BindingSignal,
    bugs::{self, Bug},
    checks::{Checks, WaitingCheck},
    handle::{Dependency, Handle, Look, View},
    preemption::PreemptionCycle,
    profile::Profile,
    stopwatch::Stopwatch,
    waiting::WaitingPods,
};
use supercargo_model::{Declared, Key, Name, Pod, object::Kind};
use tokio::sync::{mpsc, watch};

use crate::{
    informer::{self, WatchEvent},
    lease::{LeadershipState, Lease, SeenVersions},
    world::SharedWorld,
};
use binding::{BindingTurns, FinishedBinding};
use extender_calls::{Answered, ExtenderCalls};
use hand_over::Seen;
use handle::LiveHandle;
use inspector::LastFailure;
use meter::{Meter, QueueStats, Timed};
use records::{DecisionObserver, Recorder, Records};
use reporter::Reporter;

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// What logs about single pods go by: there are many of them.
pub const PODS_TARGET: &str = "supercargo_live::pods";

/// How long decisions go on before other tasks get their turn.
const SLICE: Duration = Duration::from_millis(10);
/// Decisions in a row before other tasks get their turn, however short they are: bindings should get under way.
const CYCLES_IN_A_ROW: usize = 32;
/// Watch events and reports that are taken in a row before the next decision.
const EVENTS_IN_A_ROW: usize = 512;
/// Watch events and reports that are taken before it is looked how long that took.
const EVENTS_A_LOOK: usize = 32;
const STATS_EVERY: Duration = Duration::from_secs(1);
/// How long it sleeps, at most, when there is nothing to tell and nothing to do.
const RESTS_FOR: Duration = Duration::from_secs(10);
/// How long bindings that are on their way may take, and may take to be shown, when the scheduler is asked to stop.
const DRAIN_FOR: Duration = Duration::from_secs(5);

/// What a scheduler is made of.
pub struct Parts {
    /// The door to the world.
    pub world: SharedWorld,
    /// Decides; its cluster is empty, and filled by the watch events.
    pub engine: Engine,
    /// How the queue behaves.
    pub queue: QueueSettings,
    /// What becomes known about the cluster.
    pub watch_events: mpsc::Receiver<WatchEvent>,
    /// What plugins have declared to read.
    pub declared: Declared,
    /// Our part in the election, if there is one. Without it nothing is written.
    pub lease: Option<Lease>,
    /// Web services that have a say; the engine knows their roles.
    pub extenders: Arc<Extenders>,
    /// Counts what is done.
    pub meter: Arc<dyn Meter>,
    /// The name that events are reported under, as `scheduler-host`.
    pub host: String,
}

/// What came of something that was sent.
enum Report {
    /// A pod that waited has its permission.
    Permitted(Name),
    Bound(FinishedBinding),
    /// The server has a pod on no node whose binding was said to be made.
    NotBound(Name),
    Answered(Answered),
    /// An extender is done with a question that others may still have.
    Freed,
    PluginChanged(Name),
    Asked(inspector::Question),
    /// A plugin looks at the cache.
    Look(Look),
    /// A plugin waits for a check.
    Check(u64, WaitingCheck),
    /// Nobody waits for a check any more.
    CheckOver(u64),
    /// A plugin gives a pod its turn.
    Activate(Name),
    /// What a plugin held a pod back for is over.
    LookAgain(Name, Name),
}

/// An assumed pod: on its node in our cache, and not yet at the API server, as far as we know.
struct Assumed {
    pod: Arc<Pod>,
    node: Name,
    /// When the attempt started.
    started: Duration,
    signal: BindingSignal,
    /// Why this node, if the event is to say it.
    because: Option<String>,
    /// The pod is gone.
    gone: bool,
    /// When its binding came to a good end, which the watch has not shown yet.
    ended: Option<Duration>,
}

/// Schedules pods until it is told to stop.
pub struct Scheduler {
    world: SharedWorld,
    engine: Engine,
    queue: SchedulingQueue,
    watch_events: mpsc::Receiver<WatchEvent>,
    reports: mpsc::UnboundedReceiver<Report>,
    report_to: mpsc::UnboundedSender<Report>,
    /// The kinds of the resources that have not been told in full yet.
    unsynced: Vec<Kind>,
    synced: watch::Sender<bool>,
    assumed: HashMap<Name, Assumed>,
    assumed_objects: AssumedObjects,
    checks: Checks,
    waiting: WaitingPods,
    /// A plugin reads the time.
    reads_time: bool,
    extenders: Arc<Extenders>,
    originals: Originals,
    extender_calls: ExtenderCalls,
    binding_turns: Arc<BindingTurns>,
    reporter: Reporter,
    recorder: Recorder,
    /// Sees every decision in full.
    decisions: Option<Arc<dyn DecisionObserver>>,
    /// Events say why a node was chosen.
    explains_in_events: bool,
    /// Why the pods that wait were not placed the last time, by uid.
    last_failures: HashMap<Name, LastFailure>,
    lease: Option<Lease>,
    /// How far the watch has come, with each kind.
    seen: Seen,
    /// The watch has come as far as the leader before us.
    has_caught_up: bool,
    meter: Arc<dyn Meter>,
    next_report: Duration,
    /// Something has happened since it was last told how things stand.
    has_news: bool,
    next_look_up: Duration,
    /// When the watch event that is being taken in was begun with.
    handling_since: Option<Duration>,
}

impl Scheduler {
    /// A scheduler that knows nothing yet.
    pub fn new(parts: Parts) -> Self {
        let Parts { world, engine, queue, watch_events, declared, lease, extenders, meter, host } = parts;
        let (report_to, reports) = mpsc::unbounded_channel();
        let timed: Arc<dyn Stopwatch> = Arc::new(Timed { world: world.clone(), meter: meter.clone() });
        engine.profiles().time_with(&timed);
        let recorder = Recorder::new(&world);
        let (reporter, waiting) = (Reporter::new(&world, host, lease.clone()), WaitingPods::default());
        let binding_turns: Arc<BindingTurns> = Arc::default();
        let handle: Arc<dyn Handle> = Arc::new(LiveHandle {
            world: world.clone(),
            lease: lease.clone(),
            turns: binding_turns.clone(),
            recorder: reporter.recorder().clone(),
            report_to: report_to.clone(),
            meter: meter.clone(),
            waiting: waiting.clone(),
            checks: AtomicU64::new(0),
        });
        engine.profiles().iter().for_each(|profile| profile.connect(&handle));
        let reads_time = engine.profiles().iter().any(Profile::reads_time);
        let rules: Vec<_> = engine.profiles().iter().map(|profile| profile.queue_rules().clone()).collect();
        Self {
            queue: {
                let mut queue = SchedulingQueue::new(&rules, queue);
                queue.time_with(timed);
                queue.observe_with(recorder.of_queue());
                queue
            },
            recorder,
            decisions: None,
            explains_in_events: false,
            last_failures: HashMap::default(),
            reporter,
            unsynced: informer::resources(&declared, engine.profiles().iter())
                .into_iter()
                .map(|resource| resource.kind)
                .collect(),
            synced: watch::Sender::new(false),
            assumed: HashMap::default(),
            assumed_objects: AssumedObjects::default(),
            checks: Checks::default(),
            waiting,
            reads_time,
            extenders,
            originals: Originals::default(),
            extender_calls: ExtenderCalls::default(),
            binding_turns,
            next_report: Duration::ZERO,
            has_news: true,
            next_look_up: Duration::ZERO,
            handling_since: None,
            seen: Seen::default(),
            has_caught_up: false,
            world,
            engine,
            watch_events,
            reports,
            report_to,
            lease,
            meter,
        }
    }

    /// The same, and pods wait for events no longer than this before they are tried anyway.
    #[must_use]
    pub fn with_max_unschedulable(mut self, span: Duration) -> Self {
        self.queue.set_max_unschedulable(span);
        self
    }

    /// The same, and every decision is shown in full to an observer.
    #[must_use]
    pub fn with_decisions(mut self, decisions: Option<Arc<dyn DecisionObserver>>) -> Self {
        self.decisions = decisions;
        self
    }

    /// The same, and events may say why a node was chosen.
    #[must_use]
    pub fn explaining_in_events(mut self, explains: bool) -> Self {
        self.explains_in_events = explains;
        self
    }

    /// Whether everything has been read once.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// The way to follow what it decides, and how its queue changes.
    pub fn records(&self) -> Records {
        self.recorder.records()
    }

    /// The way to tell it, while it runs, that a plugin judges otherwise from now on: the pods that the plugin refused are
    /// tried again.
    pub fn plugin_changes(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let report_to = self.report_to.clone();
        // Nobody listens any more when the scheduler has stopped.
        move |plugin| drop(report_to.send(Report::PluginChanged(plugin.into())))
    }

    /// Schedules until `stop` ends, or the lease is lost. Bindings that are on their way are waited for. What it has seen then,
    /// for the next leader; `None` if some of its bindings were not seen to be made, nor to have failed.
    pub async fn run(mut self, stop: impl Future<Output = ()>) -> Option<SeenVersions> {
        let mut stop = pin!(stop.fuse());
        let (mut cycles, mut slice_began) = (0, self.world.uptime());
        loop {
            self.take_what_waits(slice_began);
            self.report_stats();
            if (&mut stop).now_or_never().is_some() || self.is_deposed() {
                break;
            }
            match self.next_pod() {
                Some(popped) => {
                    self.attempt(popped);
                    self.has_news = true;
                    cycles += 1;
                    let now = self.world.uptime();
                    self.queue.turn_ended(now);
                    if cycles == CYCLES_IN_A_ROW || now - slice_began >= SLICE {
                        self.meter.gave_way(now - slice_began);
                        self.world.yield_now().await;
                        (cycles, slice_began) = (0, self.world.uptime());
                    }
                }
                None => {
                    self.meter.gave_way(self.world.uptime() - slice_began);
                    tokio::select! {
                        biased;
                        () = &mut stop => break,
                        () = self.wait() => {}
                    }
                    (cycles, slice_began) = (0, self.world.uptime());
                }
            }
        }
        let is_settled = self.drain().await;
        is_settled.then(|| self.seen.versions())
    }

    fn is_deposed(&self) -> bool {
        use LeadershipState::{Lost, Released};
        self.lease.as_ref().is_some_and(|lease| matches!(lease.state(), Lost | Released))
    }

    /// The next pod, if we may decide at all.
    fn next_pod(&mut self) -> Option<Popped> {
        let leads = self.lease.as_ref().is_none_or(Lease::is_held) || bugs::is_on(Bug::BindsWithoutLease);
        let may = self.unsynced.is_empty() && leads && self.has_caught_up() && !self.binding_turns.are_many();
        let is_hopeless = |pending: PendingPod<'_>| {
            pending.place == QueuePlace::Unschedulable && pending.pod.spec.priority > 0
        };
        let may = may
            && !(bugs::is_on(Bug::WaitingPodsUseUpTheLimit) && self.assumed.len() >= 2)
            && !(bugs::is_on(Bug::HopelessPodHoldsUpOthers) && self.queue.pending().any(is_hopeless));
        let at = At { now: self.world.uptime(), cluster: self.engine.cluster() };
        if may { self.queue.pop(at) } else { None }
    }

    /// Takes in the watch events and reports that are there already, for as long as a slice goes on that began then.
    fn take_what_waits(&mut self, slice_began: Duration) {
        for taken in 0..EVENTS_IN_A_ROW {
            let looks = taken % EVENTS_A_LOOK == EVENTS_A_LOOK - 1;
            if looks && self.world.uptime() - slice_began >= SLICE {
                return;
            } else if let Ok(report) = self.reports.try_recv() {
                self.take_report(report);
            } else if let Ok(event) = self.watch_events.try_recv() {
                self.take_watch_event(event);
            } else {
                return;
            }
        }
    }

    fn take_report(&mut self, report: Report) {
        self.has_news = true;
        match report {
            Report::Permitted(uid) => self.queue.done(&uid),
            Report::Bound(bound) => self.binding_ended(bound),
            Report::NotBound(uid) => self.was_never_bound(&uid),
            Report::Answered(answered) => self.extender_calls_ended(answered),
            Report::Freed => self.call_for_those_who_wait(),
            Report::PluginChanged(plugin) => {
                let at = At { now: self.world.uptime(), cluster: self.engine.cluster() };
                self.queue.plugin_changed(&plugin, at);
            }
            Report::Asked(question) => question(self),
            Report::Look(look) => look(&self.view()),
            Report::Check(id, check) => self.with_checks(|checks, view| checks.run(id, check, view)),
            Report::CheckOver(id) => drop(self.checks.take(id)),
            Report::Activate(uid) => self.activate(&uid),
            Report::LookAgain(uid, plugin) => self.look_again(&uid, &plugin),
        }
    }

    /// Runs checks on the cache as it is now.
    fn with_checks(&mut self, run: impl FnOnce(&mut Checks, &View<'_>)) {
        let Self { checks, engine, queue, .. } = self;
        let view = View { cluster: engine.cluster(), nominations: engine.nominations(), pending: queue };
        run(checks, &view);
    }

    /// Runs the checks that depend on an object which has come, changed or gone.
    fn check_after_change_of(&mut self, kind: Kind, key: &Key) {
        if !self.checks.is_empty() {
            self.check_those_that_depend_on(&Dependency::Object(kind, key.clone()));
        }
    }

    fn check_those_that_depend_on(&mut self, dependency: &Dependency) {
        self.with_checks(|checks, view| checks.run_after(dependency, view));
    }

    /// Gives a pod its turn, if this plugin held it back.
    fn look_again(&mut self, uid: &Name, plugin: &Name) {
        if self.queue.find(uid).is_some_and(|pending| pending.held_by == Some(plugin)) {
            self.activate(uid);
        }
    }

    fn activate(&mut self, uid: &str) {
        let at = At { now: self.world.uptime(), cluster: self.engine.cluster() };
        self.queue.activate([uid], at);
    }

    /// Takes a pod out of the queue, wherever it is there. Where it was.
    fn leave_queue(&mut self, uid: &str, why: Removal) -> Option<QueuePlace> {
        let now = self.world.uptime();
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.remove(uid, why, nominations, At { now, cluster })
    }

    /// Waits until something is there to be taken, or a pod is due.
    async fn wait(&mut self) {
        let now = self.world.uptime();
        let idle = if self.has_news { STATS_EVERY } else { RESTS_FOR };
        let stands_by = self.lease.as_ref().is_some_and(|lease| lease.state() == LeadershipState::Waiting);
        let pause = match self.queue.next_due() {
            // Whoever does not lead is woken when it does.
            _ if stands_by => idle,
            // A pod is there, but may not be tried yet.
            Some(due) if due <= now => idle.min(Duration::from_millis(100)),
            Some(due) => idle.min(due - now),
            None => idle,
        };
        let lease = self.lease.clone();
        let sleep = self.world.sleep(pause);
        let deposed = async {
            match &lease {
                Some(lease) if stands_by => {
                    lease.acquired().await;
                }
                Some(lease) => lease.lost().await,
                None => std::future::pending().await,
            }
        };
        // In this order, not at random: the same world leads to the same course of things.
        tokio::select! {
            biased;
            Some(report) = self.reports.recv() => self.take_report(report),
            Some(event) = self.watch_events.recv() => self.take_watch_event(event),
            () = deposed => self.has_news = true,
            () = sleep => {}
        }
    }

    /// Lets bindings that are on their way come to an end, and the watch show them and what was written for them. Whether all
    /// bindings have got there.
    async fn drain(&mut self) -> bool {
        // A pod that extenders are asked about is not placed any more.
        self.extender_calls = ExtenderCalls::default();
        let until = self.world.uptime() + DRAIN_FOR;
        loop {
            let is_sent = |assumed: &&Assumed| {
                let is_shown = assumed.ended.is_some() && bugs::is_on(Bug::ReleasedBeforeShown);
                assumed.signal.is_committed() && !is_shown
            };
            let sent = self.assumed.values().filter(is_sent).count();
            if sent == 0 && !self.assumed_objects.are_awaited() {
                return true;
            }
            let left = until.saturating_sub(self.world.uptime());
            if left.is_zero() {
                if sent > 0 {
                    tracing::warn!(bindings = sent, "some bindings did not end, or were not shown, in time");
                }
                return sent == 0;
            }
            let sleep = self.world.sleep(left);
            tokio::select! {
                biased;
                Some(report) = self.reports.recv() => self.take_report(report),
                Some(event) = self.watch_events.recv() => self.take_watch_event(event),
                () = sleep => {}
            }
        }
    }

    /// Tells how things stand, about once a second, and looks up what should have been shown by then.
    fn report_stats(&mut self) {
        let now = self.world.uptime();
        if now < self.next_report {
            return;
        }
        self.next_report = now + STATS_EVERY;
        self.has_news = false;
        self.look_up_unconfirmed(now);
        self.meter.leads(self.lease.as_ref().is_none_or(Lease::is_held));
        let refused = self.queue.refused_by_plugin();
        let mut waiting = self.queue.counts();
        waiting.active += self.extender_calls.waiting();
        self.meter.queue_stats(&QueueStats {
            waiting,
            incoming: self.queue.incoming().clone(),
            in_flight: self.queue.in_flight_events(),
            refused: refused.map(|(profile, plugin, pods)| (profile.clone(), plugin.clone(), pods)).collect(),
            after_flush: self.queue.bound_after_flush(),
            events_dropped: self.reporter.dropped(),
            nodes: self.engine.cluster().node_count(),
            pods: self.engine.cluster().pods().len(),
            assumed: self.assumed.len(),
        });
    }
}
