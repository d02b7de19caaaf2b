//! A scheduler as a simulated process: started, asked to stop, stopped in its tracks.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use supercargo_config::Configuration;
use supercargo_engine::{Incoming, QueueCounts};
use supercargo_framework::{
    Code,
    event::ClusterEvent,
    registry::{Point, Registry},
    virtual_time::{Executor, ProcessId},
};
use supercargo_live::{
    scheduler::{
        inspector::Inspector,
        meter::{Attempted, DecidedBy, Meter, QueueStats},
        records::Records,
    },
    world::SharedWorld,
};
use supercargo_manifest::Problems;
use supercargo_scheduler::{Ended, ExtenderTransport, SchedulerOptions, over_http, start};
use supercargo_testcluster::ApiServer;
use tokio::sync::oneshot;

use crate::{
    scenario::MetricReadings,
    world::{Link, SimulatedWorld},
};

/// How long a process that was asked to stop may take.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// A scheduler's process.
pub struct SchedulerProcess {
    executor: Arc<Executor>,
    id: ProcessId,
    meter: Arc<Counters>,
    inspector: Inspector,
    records: Records,
    /// Dropped, it asks the scheduler to stop.
    stop: Option<oneshot::Sender<()>>,
    ended: Arc<Mutex<Option<Ended>>>,
}

/// What may differ from scheduler to scheduler besides the configuration.
pub struct ProcessPlace {
    /// Its connection to the API server, if that can be tampered with.
    pub link: Arc<Link>,
    /// The name that it writes under.
    pub name: String,
    /// Where its chance begins.
    pub seed: u64,
    /// The way to extenders.
    pub extender_transport: ExtenderTransport,
}

impl SchedulerProcess {
    /// Starts a scheduler.
    pub fn start(
        executor: &Arc<Executor>,
        server: &ApiServer,
        configuration: &Configuration,
        registry: &Registry,
        seed: u64,
    ) -> Result<Self, Problems> {
        let id = executor.process();
        let world = SimulatedWorld::new(executor, id, server, seed);
        Self::start_in(executor, id, world, configuration, registry, over_http())
    }

    /// Starts a scheduler whose connections can be tampered with.
    pub fn start_at(
        executor: &Arc<Executor>,
        server: &ApiServer,
        configuration: &Configuration,
        registry: &Registry,
        place: ProcessPlace,
    ) -> Result<Self, Problems> {
        let id = executor.process();
        let world = SimulatedWorld::new(executor, id, server, place.seed).over(&place.link, &place.name);
        Self::start_in(executor, id, world, configuration, registry, place.extender_transport)
    }

    fn start_in(
        executor: &Arc<Executor>,
        id: ProcessId,
        world: SimulatedWorld,
        configuration: &Configuration,
        registry: &Registry,
        extender_transport: ExtenderTransport,
    ) -> Result<Self, Problems> {
        let (world, meter): (SharedWorld, _) = (Arc::new(world), Arc::new(Counters::default()));
        let options =
            SchedulerOptions { meter: meter.clone(), extender_transport, ..SchedulerOptions::default() };
        let running = start(&world, configuration, registry, options)?;
        let (inspector, records) = (running.inspector().clone(), running.records().clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = Arc::<Mutex<Option<Ended>>>::default();
        let end = ended.clone();
        // Whoever started it sees it end, also if it stands still or is killed.
        executor.spawn(
            executor.process(),
            Box::pin(async move {
                let how = running.run_until(async { drop(stopped.await) }).await;
                *locked(&end) = Some(how);
            }),
        );
        let executor = executor.clone();
        Ok(Self { executor, id, meter, inspector, records, stop: Some(stop), ended })
    }

    /// Asks it to stop, and waits until it has; what it leaves behind ends with it.
    pub fn stop(mut self) {
        self.resume();
        drop(self.stop.take());
        let (executor, ended) = (self.executor.clone(), self.ended.clone());
        executor.run_until(|| locked(&ended).is_some(), STOPS_WITHIN);
    }

    /// Stands still, as by SIGSTOP.
    pub fn pause(&self) {
        self.executor.pause(self.id);
    }

    /// Goes on.
    pub fn resume(&self) {
        self.executor.resume(self.id);
    }

    /// Ends after its tasks have been polled so many times more, as by SIGKILL.
    pub fn kill_after_polls(&self, polls: u64) {
        self.executor.kill_after_polls(self.id, polls);
    }

    /// Does not end after so many polls any more, if it was to.
    pub fn spare(&self) {
        self.executor.kill_after_polls(self.id, u64::MAX);
    }

    /// Whether it runs: it may have been killed, or have lost its lease.
    pub fn is_running(&self) -> bool {
        locked(&self.ended).is_none() && self.executor.is_alive(self.id)
    }

    /// How many tasks it has.
    pub fn task_count(&self) -> usize {
        self.executor.task_count(self.id)
    }

    /// The way to ask it.
    pub fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    /// The way to follow what it does.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The names that its metrics have series for, so far.
    pub fn names_in_metrics(&self) -> BTreeSet<String> {
        locked(&self.meter.0).names.clone()
    }

    /// What it has counted.
    pub fn metrics(&self) -> MetricReadings {
        locked(&self.meter.0).metrics()
    }
}

impl Drop for SchedulerProcess {
    fn drop(&mut self) {
        self.executor.kill(self.id);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts what scenarios look at, under the names that the metrics have.
#[derive(Default)]
struct Counters(Mutex<CountedSoFar>);

#[derive(Default)]
struct CountedSoFar {
    metrics: MetricReadings,
    waiting: QueueCounts,
    incoming: Incoming,
    /// Profiles and plugins that were named: each is a series for ever.
    names: BTreeSet<String>,
}

impl CountedSoFar {
    fn name(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(name.to_owned());
        }
    }

    fn metrics(&self) -> MetricReadings {
        let queues = [
            ("active", self.waiting.active),
            ("backoff", self.waiting.backoff),
            ("unschedulable", self.waiting.unschedulable),
            ("gated", self.waiting.gated),
        ];
        let mut incoming = BTreeMap::new();
        for ((queue, cause), count) in &self.incoming {
            *incoming.entry(format!("{}>{}", cause.label(), queue.name())).or_default() += *count as i64;
        }
        let pending = queues.into_iter().map(|(queue, pods)| (queue.to_owned(), pods as i64)).collect();
        MetricReadings { pending, incoming, ..self.metrics.clone() }
    }
}

impl Meter for Counters {
    fn decided(&self, profile: &str, _by: DecidedBy, _took: Duration) {
        locked(&self.0).name(profile);
    }

    fn plugin(&self, profile: &str, plugin: &str, _point: Point, _code: Option<Code>, _took: Duration) {
        let mut counted = locked(&self.0);
        counted.name(profile);
        counted.name(plugin);
    }

    fn hinted(&self, plugin: &str, _event: ClusterEvent, _helps: bool, _took: Duration) {
        locked(&self.0).name(plugin);
    }

    fn attempted(&self, _profile: &str, how: Attempted, _took: Duration) {
        let result = match how {
            Attempted::Scheduled => "scheduled",
            Attempted::Unschedulable => "unschedulable",
            Attempted::Error => "error",
        };
        *locked(&self.0).metrics.attempts.entry(result.to_owned()).or_default() += 1;
    }

    fn preemption_attempted(&self) {
        locked(&self.0).metrics.preemptions += 1;
    }

    fn preempts(&self, victims: usize) {
        locked(&self.0).metrics.victims += victims as i64;
    }

    fn queue_stats(&self, stats: &QueueStats) {
        // Every second, and hardly anybody asks.
        let mut counted = locked(&self.0);
        counted.waiting = stats.waiting;
        stats.refused.iter().for_each(|(_, plugin, _)| counted.name(plugin));
        if counted.incoming != stats.incoming {
            counted.incoming = stats.incoming.clone();
        }
    }
}
