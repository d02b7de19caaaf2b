//! A scheduler as a simulated process: started, asked to stop, stopped in its tracks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use supercargo_config::Configuration;
use supercargo_framework::{
    registry::Registry,
    virtual_time::{Executor, ProcessId},
};
use supercargo_live::{
    scheduler::meter::{Attempted, Meter, QueueStats},
    world::SharedWorld,
};
use supercargo_manifest::Problems;
use supercargo_scheduler::{Options, Running, start};
use supercargo_testcluster::ApiServer;

use crate::{scenario::Metrics, world::SimulatedWorld};

/// How long a process that was asked to stop may take.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// A scheduler's process.
pub struct SchedulerProcess {
    executor: Arc<Executor>,
    id: ProcessId,
    meter: Arc<Counters>,
    running: Option<Running>,
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
        let world: SharedWorld = Arc::new(SimulatedWorld::new(executor, id, server, seed));
        let meter = Arc::new(Counters::default());
        let options = Options { meter: meter.clone(), ..Options::default() };
        let running = start(&world, configuration, registry, options)?;
        Ok(Self { executor: executor.clone(), id, meter, running: Some(running) })
    }

    /// Asks it to stop, and waits until it has; what it leaves behind ends with it.
    pub fn stop(mut self) {
        self.resume();
        let Some(running) = self.running.take() else { return };
        let mut stopped = Box::pin(running.stop());
        let executor = self.executor.clone();
        executor.run_until(|| (&mut stopped).now_or_never().is_some(), STOPS_WITHIN);
    }

    /// Stands still, as by SIGSTOP.
    pub fn pause(&self) {
        self.executor.pause(self.id);
    }

    /// Goes on.
    pub fn resume(&self) {
        self.executor.resume(self.id);
    }

    /// What it has counted.
    pub fn metrics(&self) -> Metrics {
        locked(&self.meter.0).clone()
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
struct Counters(Mutex<Metrics>);

impl Meter for Counters {
    fn attempted(&self, _profile: &str, how: Attempted, _took: Duration) {
        let result = match how {
            Attempted::Scheduled => "scheduled",
            Attempted::Unschedulable => "unschedulable",
            Attempted::Error => "error",
        };
        *locked(&self.0).attempts.entry(result.to_owned()).or_default() += 1;
    }

    fn preemption_attempted(&self) {
        locked(&self.0).preemptions += 1;
    }

    fn preempts(&self, victims: usize) {
        locked(&self.0).victims += victims as i64;
    }

    fn queue_stats(&self, stats: &QueueStats) {
        let waiting = &stats.waiting;
        let queues = [
            ("active", waiting.active),
            ("backoff", waiting.backoff),
            ("unschedulable", waiting.unschedulable),
            ("gated", waiting.gated),
        ];
        let mut incoming = BTreeMap::new();
        for ((queue, cause), count) in &stats.incoming {
            *incoming.entry(format!("{}>{}", cause.label(), queue.name())).or_default() += *count as i64;
        }
        let mut metrics = locked(&self.0);
        metrics.pending = queues.into_iter().map(|(queue, pods)| (queue.to_owned(), pods as i64)).collect();
        metrics.incoming = incoming;
    }
}
