//! The stage in the simulation: a scheduler and the test cluster's API server on virtual time.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use supercargo_config::Configuration;
use supercargo_framework::{
    registry::Registry,
    virtual_time::{Executor, ProcessId},
};
use supercargo_manifest::{Problems, Source};
use supercargo_testcluster::{ApiServer, TestClusterOptions};

use super::{
    ask::{NO_ANSWER, ask},
    observe::MetricReadings,
    play::{ProcessCommand, Stage},
    step::Scenario,
};
use crate::{clock::api_server, scheduler::SchedulerProcess};

/// How long a scheduler has from its start until something is done to the cluster: at least so long, and up to a second
/// more. Schedulers count in whole seconds here and there, and when those begin is chance.
const STARTS_WITHIN: Duration = Duration::from_millis(1200);
const SECOND_IN_MILLIS: u64 = 1000;
/// How much later that is for the next seed.
const LATER_BY_SEED_MILLIS: u64 = 137;
/// How long a change takes until its maker hears that it was made.
const CHANGE_TAKES: Duration = Duration::from_millis(4);
/// How long an API server may take to answer; without faults it takes no time at all.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);

/// A stage of its own for one scenario.
pub struct SimulatedStage<'r> {
    executor: Arc<Executor>,
    server: ApiServer,
    /// Who plays.
    player: ProcessId,
    configuration: Configuration,
    registry: &'r Registry,
    seed: u64,
    schedulers_started: u64,
    scheduler: Option<SchedulerProcess>,
}

impl<'r> SimulatedStage<'r> {
    /// An empty cluster, and a scheduler that is not started yet.
    pub fn new(scenario: &Scenario, registry: &'r Registry, seed: u64) -> Result<Self, Problems> {
        let source = Source::new(format!("{}.json", scenario.name), scenario.configuration());
        let configuration = supercargo_config::load(&source, registry)?.configuration;
        let executor = Arc::new(Executor::default());
        let server = api_server(&executor, &TestClusterOptions { seed, ..TestClusterOptions::default() });
        let player = executor.process();
        Ok(Self {
            executor,
            server,
            player,
            configuration,
            registry,
            seed,
            schedulers_started: 0,
            scheduler: None,
        })
    }

    fn start(&mut self) -> Result<(), String> {
        self.schedulers_started += 1;
        let seed = self.seed.wrapping_add(self.schedulers_started);
        let (executor, server) = (&self.executor, &self.server);
        let started = SchedulerProcess::start(executor, server, &self.configuration, self.registry, seed);
        self.scheduler = Some(started.map_err(|problems| problems.to_string())?);
        let later = self.seed.wrapping_mul(LATER_BY_SEED_MILLIS) % SECOND_IN_MILLIS;
        self.executor.run_for(STARTS_WITHIN + Duration::from_millis(later));
        Ok(())
    }
}

impl Stage for SimulatedStage<'_> {
    fn request(&mut self, method: &str, path: &str, content_type: &str, body: Value) -> (u16, Value) {
        let asking = ask(&self.server, method, path, content_type, body);
        let answered = Arc::<Mutex<Option<(u16, Value)>>>::default();
        let slot = answered.clone();
        let asking = async move {
            let answer = asking.await;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        };
        self.executor.spawn(self.player, Box::pin(asking));
        let is_answered = || answered.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        self.executor.run_until(is_answered, ANSWERS_WITHIN);
        if method != "GET" {
            self.executor.run_for(CHANGE_TAKES);
        }
        let answer = answered.lock().unwrap_or_else(PoisonError::into_inner).take();
        answer.unwrap_or((NO_ANSWER, Value::Null))
    }

    fn order(&mut self, order: ProcessCommand) -> Result<(), String> {
        match (order, self.scheduler.take()) {
            (ProcessCommand::Start, _) => return self.start(),
            (ProcessCommand::Stop, Some(scheduler)) => scheduler.stop(),
            (ProcessCommand::Stop, None) => {}
            (ProcessCommand::Pause | ProcessCommand::Resume, None) => {
                return Err("no scheduler runs".to_owned());
            }
            (order, Some(scheduler)) => {
                if order == ProcessCommand::Pause {
                    scheduler.pause();
                } else {
                    scheduler.resume();
                }
                self.scheduler = Some(scheduler);
            }
        }
        Ok(())
    }

    fn metrics(&mut self) -> Option<MetricReadings> {
        self.scheduler.as_ref().map(SchedulerProcess::metrics)
    }

    fn wait(&mut self, span: Duration) {
        self.executor.run_for(span);
    }

    fn uptime(&mut self) -> Duration {
        self.executor.clock().uptime()
    }
}
