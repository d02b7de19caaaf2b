//! Replays the history of a cluster through the queue and the engine, on a virtual clock.
//!
//! Pods come when they came, and wait in the queue until events help them or they go. Deciding takes no time. Where pods were
//! put when the history was recorded is not repeated, unless that is asked for: it is what the replay is compared with.

use std::{collections::HashMap, sync::Arc, time::Duration};

use supercargo_config::Configuration;
use supercargo_engine::Placement;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problems;
use supercargo_model::{
    Cluster, Key, Name, Pod,
    object::{Kind, Object},
};
use supercargo_scheduler::{
    offline::{Attempt, OfflineScheduler, OfflineStep},
    setup::{self, Overrides},
};

use crate::{
    measures::{ClusterMeter, Measures, PendingTimes, PodMix, Sample, SpreadWatch},
    trace::{TimedEvent, Trace, TraceEvent},
};

/// How a trace is replayed.
#[derive(Clone, Copy, Debug)]
pub struct ReplayOptions {
    /// What ties are broken by.
    pub seed: u64,
    /// Pods go where the recording says, at the time at which it says so; nobody else decides.
    pub follow_recording: bool,
    /// How many samples are taken, about.
    pub samples: u32,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { seed: 0, follow_recording: false, samples: 200 }
    }
}

/// How a pod left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It was deleted, as in the trace.
    Deleted,
    /// It ended by itself, as in the trace.
    Finished,
    /// It was evicted to make room.
    Evicted,
}

/// What became of a pod. Times are since the first event.
#[derive(Clone, Debug, PartialEq)]
pub struct PodHistory {
    /// The pod.
    pub pod: Key,
    /// Distinguishes it from an earlier pod of the same name.
    pub uid: Name,
    /// When it came.
    pub arrived: Duration,
    /// When its last gate was taken away; its arrival, if it had none.
    pub ready: Duration,
    /// Where it went, and when.
    pub placed: Option<(Name, Duration)>,
    /// Where it went when the trace was recorded.
    pub recorded: Option<Name>,
    /// How often it was tried.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub message: Option<String>,
    /// How it left, and when.
    pub left: Option<(Left, Duration)>,
}

impl PodHistory {
    fn new(pod: &Pod, at: Duration) -> Self {
        Self {
            pod: pod.key(),
            uid: pod.uid.clone(),
            arrived: at,
            ready: at,
            placed: None,
            recorded: None,
            attempts: 0,
            message: None,
            left: None,
        }
    }

    /// How long it had no node, up to its end or to the end of the trace.
    pub fn pending(&self, end: Duration) -> Duration {
        let until = self.placed.as_ref().map(|(_, at)| *at).or(self.left.map(|(_, at)| at)).unwrap_or(end);
        until.saturating_sub(self.ready)
    }

    /// Whether it waits at the end.
    pub fn is_pending(&self) -> bool {
        self.placed.is_none() && self.left.is_none()
    }
}

/// What a replay came to.
pub struct Replay {
    /// The pods that came, in their order.
    pub pods: Vec<PodHistory>,
    /// The measures.
    pub measures: Measures,
    /// The cluster over time.
    pub samples: Vec<Sample>,
    /// How many pods asked for schedulers that the configuration has no profile for. They went where the trace says.
    pub other_schedulers: usize,
    /// How long the trace is.
    pub length: Duration,
}

/// Replays a trace under a configuration. `passed` is told of every event.
pub fn replay(
    trace: &Trace,
    mix: &PodMix,
    (configuration, registry): (&Configuration, &Registry),
    options: ReplayOptions,
    mut passed: impl FnMut(),
) -> Result<Replay, Problems> {
    let overrides = Overrides { seed: options.seed, ..Overrides::default() };
    let engine = setup::engine(Cluster::default(), configuration, registry, overrides)?;
    let scheduler = OfflineScheduler::new(engine, setup::queue_settings(configuration), []);
    let mut run = Run {
        scheduler,
        meter: ClusterMeter::new(mix, trace.length(), options.samples),
        spread: SpreadWatch::default(),
        histories: Vec::new(),
        there: HashMap::new(),
        waiting: 0,
        follow_recording: options.follow_recording,
        other_schedulers: 0,
        preemptions: 0,
        evictions: 0,
        spread_violations: 0,
    };
    // What happens at the same time is known in full before anybody is scheduled.
    for instant in trace.events.chunk_by(|one, next| one.at == next.at) {
        run.schedule_until(Some(instant[0].at));
        for TimedEvent { event, .. } in instant {
            run.take_in(event);
            passed();
        }
    }
    // A cluster without history is scheduled until nothing more can happen.
    run.schedule_until(Some(trace.length()).filter(|length| !length.is_zero()));
    Ok(run.finish(trace.length()))
}

/// Who decides about a pod that is there.
#[derive(Clone, Copy)]
enum Who {
    /// We do; this is the place of its history.
    Us(usize),
    /// It goes where the trace says: it was bound from the beginning, or no profile is for it.
    Others,
}

struct Run<'m> {
    scheduler: OfflineScheduler,
    meter: ClusterMeter<'m>,
    spread: SpreadWatch,
    histories: Vec<PodHistory>,
    there: HashMap<Key, Who>,
    /// How many pods have no node yet.
    waiting: usize,
    follow_recording: bool,
    other_schedulers: usize,
    preemptions: usize,
    evictions: usize,
    spread_violations: usize,
}

impl Run<'_> {
    /// Everything that happens by itself until a time, or ever.
    fn schedule_until(&mut self, until: Option<Duration>) {
        loop {
            self.meter.look(self.scheduler.engine().cluster(), self.waiting);
            let follow = self.follow_recording;
            let step =
                self.scheduler.step_until(until, |engine, pod| if follow { None } else { engine.place(pod) });
            self.meter.pass_to(self.scheduler.now());
            match step {
                Some(OfflineStep::Attempt(attempt)) => self.attempted(&attempt),
                Some(OfflineStep::Passed) => {}
                None => return,
            }
        }
    }

    fn attempted(&mut self, attempt: &Attempt) {
        let Some(&Who::Us(history)) = self.there.get(&attempt.pod.key()) else { return };
        if attempt.number == 0 {
            // A gate holds it back.
            return;
        }
        self.histories[history].attempts = attempt.number;
        match (attempt.placement.node(), &attempt.placement) {
            (Some(node), _) => {
                self.place(history, node.clone());
                let cluster = self.scheduler.engine().cluster();
                self.spread_violations += self.spread.broken_by(cluster, &attempt.pod, node);
            }
            (None, Placement::Decided(decision)) => {
                // It was placed, and could not be bound.
                self.waiting += usize::from(self.histories[history].placed.take().is_some());
                self.histories[history].message = decision.message();
                self.evicted(decision.victims());
            }
            (None, Placement::On { .. }) => {}
        }
    }

    fn place(&mut self, history: usize, node: Name) {
        let now = self.scheduler.now();
        let history = &mut self.histories[history];
        history.placed = Some((node, now));
        history.message = None;
        self.waiting -= 1;
    }

    fn evicted(&mut self, victims: &[Arc<Pod>]) {
        let victims: Vec<&Arc<Pod>> = victims.iter().filter(|victim| !victim.terminating).collect();
        self.preemptions += usize::from(!victims.is_empty());
        self.evictions += victims.len();
        for victim in victims {
            if let Some(&Who::Us(history)) = self.there.get(&victim.key()) {
                self.leaves(history, Left::Evicted);
            }
        }
    }

    /// The first way in which a pod leaves is the one that counts.
    fn leaves(&mut self, history: usize, how: Left) {
        let now = self.scheduler.now();
        let history = &mut self.histories[history];
        self.waiting -= usize::from(history.is_pending());
        history.left.get_or_insert((how, now));
    }

    fn take_in(&mut self, event: &TraceEvent) {
        match event {
            TraceEvent::Arrival(pod) => self.pod_arrives(pod),
            TraceEvent::Put(object) => match &**object {
                Object::Pod(pod) => self.pod_changes(pod),
                other => self.scheduler.put(other.clone()),
            },
            TraceEvent::Remove(Kind::Pod, key) => self.pod_goes(key),
            TraceEvent::Remove(kind, key) => self.scheduler.remove(*kind, key),
        }
    }

    fn pod_arrives(&mut self, pod: &Arc<Pod>) {
        let key = pod.key();
        if let Some(Who::Us(history)) = self.there.get(&key)
            && self.histories[*history].uid == pod.uid
        {
            // A recording that goes on in another file names again who is there.
            return self.our_pod_changes(*history, pod);
        }
        // Its end may have been missed.
        self.pod_goes(&key);
        if self.scheduler.engine().profile(&pod.spec.scheduler_name).is_none() {
            self.other_schedulers += 1;
            self.there.insert(key, Who::Others);
            return;
        }
        self.there.insert(key, Who::Us(self.histories.len()));
        self.histories.push(PodHistory::new(pod, self.scheduler.now()));
        self.waiting += 1;
        if pod.terminating {
            self.leaves(self.histories.len() - 1, Left::Deleted);
        } else {
            self.scheduler.pod_waits(without_verdict(pod, None));
        }
    }

    fn pod_goes(&mut self, key: &Key) {
        match self.there.remove(key) {
            Some(Who::Us(history)) => self.leaves(history, Left::Deleted),
            Some(Who::Others) => {}
            None => return,
        }
        self.scheduler.pod_goes(key);
    }

    fn pod_changes(&mut self, pod: &Pod) {
        let key = pod.key();
        match self.there.get(&key) {
            Some(Who::Us(history)) => self.our_pod_changes(*history, pod),
            Some(Who::Others) if pod.finished => self.scheduler.pod_goes(&key),
            Some(Who::Others) if pod.node.is_some() => self.scheduler.pod_runs(Arc::new(pod.clone())),
            Some(Who::Others) => {}
            None if pod.finished => {}
            None if pod.node.is_some() => {
                self.there.insert(key, Who::Others);
                self.scheduler.pod_runs(Arc::new(pod.clone()));
            }
            None => self.pod_arrives(&Arc::new(pod.clone())),
        }
    }

    fn our_pod_changes(&mut self, history: usize, pod: &Pod) {
        if pod.node.is_some() {
            self.histories[history].recorded.clone_from(&pod.node);
        }
        let known = &self.histories[history];
        if known.left.is_some() {
            return;
        }
        if pod.finished || (known.placed.is_none() && pod.terminating) {
            let how = if pod.finished { Left::Finished } else { Left::Deleted };
            self.leaves(history, how);
            self.scheduler.pod_goes(&pod.key());
        } else if let Some((node, _)) = &known.placed {
            let node = Some(node.clone());
            self.scheduler.pod_runs(Arc::new(Pod { node, nominated_node: None, ..pod.clone() }));
        } else if let (Some(node), true) = (&pod.node, self.follow_recording) {
            self.scheduler.pod_runs(Arc::new(pod.clone()));
            self.place(history, node.clone());
        } else {
            self.pending_pod_changes(history, pod);
        }
    }

    fn pending_pod_changes(&mut self, history: usize, pod: &Pod) {
        let pending = self.scheduler.queue().named(&pod.key());
        let was_gated = pending.as_ref().is_some_and(|before| !before.pod.spec.scheduling_gates.is_empty());
        let nominated = pending.and_then(|before| before.pod.nominated_node.clone());
        if was_gated && pod.spec.scheduling_gates.is_empty() {
            self.histories[history].ready = self.scheduler.now();
        }
        self.scheduler.pod_waits(without_verdict(pod, nominated));
    }

    fn finish(self, end: Duration) -> Replay {
        let pending = self.histories.iter().map(|history| history.pending(end).as_secs_f64());
        let count = |is: fn(&PodHistory) -> bool| self.histories.iter().filter(|history| is(history)).count();
        let (nodes_in_use, resources, samples) = self.meter.finish();
        let measures = Measures {
            pods: self.histories.len(),
            placed: count(|history| history.placed.is_some()),
            never_placed: count(|history| history.placed.is_none()),
            pending_at_end: count(PodHistory::is_pending),
            pending_seconds: PendingTimes::of(pending.collect()),
            preemptions: self.preemptions,
            evictions: self.evictions,
            spread_violations: self.spread_violations,
            nodes_in_use,
            resources,
        };
        let (pods, other_schedulers) = (self.histories, self.other_schedulers);
        Replay { pods, measures, samples, other_schedulers, length: end }
    }
}

/// A pod as it was before the scheduler of the recording had dealt with it, with a nomination of our own.
fn without_verdict(pod: &Pod, nominated_node: Option<Name>) -> Arc<Pod> {
    Arc::new(Pod { node: None, nominated_node, not_scheduled: None, started: None, ..pod.clone() })
}
