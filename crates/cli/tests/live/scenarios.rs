//! Some of the scenarios of tests/live, played with the real binary over TCP in real time. All of them are played on
//! virtual time by the crate `simulation`.

use std::{
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use supercargo_simulation::scenario::{
    Expectation, Level, MetricReadings, ProcessCommand, Scenario, Stage, ask, differences, play, read_folder,
};
use supercargo_testcluster::{TestCluster, TestClusterOptions};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::process::SchedulerProcess;

/// At least one of each theme, and all that a player can do.
const PLAYED: [&str; 22] = [
    "affinity-target-scheduled-by-ourselves",
    "antiaffinity-target-deleted",
    "features-node-status-updated",
    "fit-own-scaled-down-not-enough",
    "gates-one-of-two-removed",
    "life-bound-by-another-while-queued",
    "life-event-while-down",
    "life-recreated-same-name-bound",
    "nodeaffinity-added-affinity",
    "nomination-preset-low-yields-to-high",
    "ports-freed",
    "preemption-graceful-lower-tries-to-steal",
    "preemption-pdb-status-updated",
    "restart-nominated-keeps-room",
    "restart-victim-ends-while-away",
    "shape-second-profile",
    "spread-matching-assigned-by-others",
    "taint-one-of-two-removed",
    "text-several-nodes-several-lacking",
    "unschedulable-uncordon",
    "volume-late-dynamic-binds",
    "volume-zone-volume-relabelled",
];

/// How many are played at once: they mostly wait.
const AT_ONCE: usize = 8;
/// How long a scheduler is left alone after its start, so that it has read everything.
const READS_WITHIN: Duration = Duration::from_millis(500);

#[test]
fn the_real_binary_does_what_kube_scheduler_does() {
    let folder = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/live").join(name);
    let scenarios = read_folder(&folder("scenarios")).expect("scenarios");
    let chosen: Vec<&Scenario> =
        scenarios.iter().filter(|scenario| PLAYED.contains(&scenario.name.as_str())).collect();
    assert_eq!(chosen.len(), PLAYED.len(), "every scenario is there");
    let (waiting, found) = (Mutex::new(chosen), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(scenario) = next(&waiting) {
                    let differing = differing(scenario, &folder("expect"));
                    found.lock().expect("nobody has panicked").extend(differing);
                }
            });
        }
    });
    let found = found.into_inner().expect("nobody has panicked");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn next<'s>(waiting: &Mutex<Vec<&'s Scenario>>) -> Option<&'s Scenario> {
    waiting.lock().expect("nobody has panicked").pop()
}

/// What is not as expected.
fn differing(scenario: &Scenario, expectations: &Path) -> Vec<String> {
    let expectation = Expectation::read(expectations, &scenario.name).expect("an expectation");
    let seen = match play(scenario, &mut RealStage::new(scenario)) {
        Ok(seen) => seen,
        Err(why) => return vec![format!("{}: {why}", scenario.name)],
    };
    let found = differences(&expectation, &seen).into_iter().filter(|one| one.level() <= Level::Events);
    found.map(|one| format!("{}: {one}", scenario.name)).collect()
}

/// A test cluster and a scheduler's process of their own.
struct RealStage {
    cluster: TestCluster,
    runtime: Runtime,
    folder: TempDir,
    started: Instant,
    schedulers: usize,
    scheduler: Option<SchedulerProcess>,
}

impl RealStage {
    fn new(scenario: &Scenario) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(configuration(&folder), scenario.configuration()).expect("a file");
        Self {
            cluster: TestCluster::start(TestClusterOptions::default()).expect("a free port"),
            runtime: Builder::new_current_thread().enable_all().build().expect("a thread"),
            folder,
            started: Instant::now(),
            schedulers: 0,
            scheduler: None,
        }
    }

    fn start(&mut self) -> SchedulerProcess {
        self.schedulers += 1;
        let arguments = [
            "--config".to_owned(),
            configuration(&self.folder).display().to_string(),
            "--master".to_owned(),
            self.cluster.url(),
        ];
        let log = self.folder.path().join(format!("scheduler-{}.log", self.schedulers));
        let scheduler = SchedulerProcess::start(&arguments, &log);
        scheduler.wait_until_ready();
        thread::sleep(READS_WITHIN);
        scheduler
    }
}

fn configuration(folder: &TempDir) -> PathBuf {
    folder.path().join("configuration.yaml")
}

impl Stage for RealStage {
    fn request(&mut self, method: &str, path: &str, content_type: &str, body: Value) -> (u16, Value) {
        self.runtime.block_on(ask(&self.cluster, method, path, content_type, body))
    }

    fn order(&mut self, order: ProcessCommand) -> Result<(), String> {
        match (order, self.scheduler.as_mut()) {
            (ProcessCommand::Start, _) => self.scheduler = Some(self.start()),
            (ProcessCommand::Stop, Some(scheduler)) => {
                scheduler.signal("TERM");
                scheduler.wait_for_end();
                self.scheduler = None;
            }
            (ProcessCommand::Pause, Some(scheduler)) => scheduler.signal("STOP"),
            (ProcessCommand::Resume, Some(scheduler)) => scheduler.signal("CONT"),
            (_, None) => return Err("no scheduler runs".to_owned()),
        }
        Ok(())
    }

    /// Counts are compared on virtual time.
    fn metrics(&mut self) -> Option<MetricReadings> {
        None
    }

    fn wait(&mut self, span: Duration) {
        thread::sleep(span);
    }

    fn uptime(&mut self) -> Duration {
        self.started.elapsed()
    }
}
