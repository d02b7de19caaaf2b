//! A scheduler as a simulated process: started, asked to stop, stopped in its tracks.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use supercargo_config::Configuration;
use supercargo_extender::NoWatcher;
use supercargo_framework::registry::Registry;
use supercargo_live::{
    scheduler::meter::{Attempted, Meter, QueueStats},
    world::SharedWorld,
};
use supercargo_manifest::Problems;
use supercargo_scheduler::{Outside, assemble, campaign};
use supercargo_testcluster::ApiServer;
use tokio::sync::oneshot;

use crate::{
    executor::{Executor, ProcessId},
    scenario::Metrics,
    world::SimulatedWorld,
};

/// How long a process that was asked to stop may take.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// A scheduler's process.
pub struct SchedulerProcess {
    executor: Arc<Executor>,
    id: ProcessId,
    meter: Arc<Counters>,
    stop: Option<oneshot::Sender<()>>,
    ended: Arc<Mutex<bool>>,
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
        let lease = campaign(&world, configuration);
        let watchers = (meter.clone() as _, Arc::new(NoWatcher) as _);
        let scheduler =
            assemble(&world, configuration, registry, lease.clone(), watchers, &Outside::default())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let ended = Arc::new(Mutex::new(false));
        let end = ended.clone();
        executor.spawn(
            id,
            Box::pin(async move {
                // Who holds the other end never lets it go without meaning it.
                scheduler.run(async { drop(stopped.await) }).await;
                if let Some(lease) = &lease {
                    lease.release().await;
                }
                *locked(&end) = true;
            }),
        );
        Ok(Self { executor: executor.clone(), id, meter, stop: Some(stop), ended })
    }

    /// Asks it to stop, and waits until it has; what it leaves behind ends with it.
    pub fn stop(mut self) {
        self.resume();
        drop(self.stop.take());
        self.executor.run_until(|| *locked(&self.ended), STOPS_WITHIN);
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
