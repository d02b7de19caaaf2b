//! Runs a plan: one cluster's life from its beginning to its end.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::FutureExt;
use serde_json::Value;
use supercargo_config::Configuration;
use supercargo_extender::Transport;
use supercargo_framework::{
    registry::Registry,
    virtual_time::{Executor, ProcessId},
};
use supercargo_live::scheduler::inspector::Inspector;
use supercargo_manifest::Source;
use supercargo_scheduler::ExtenderTransport;
use supercargo_testcluster::{
    ApiServer, ClusterBackup, DeviceDriver, FaultPlan, FaultRule, Kubelets, SeenChange, TestClusterOptions,
    Violation,
};

use super::{
    acts::{Later, ORPHANS_END_AFTER},
    devices,
    extender::SimulatedExtender,
    guest,
    history::{History, HistoryLine, fingerprint},
    log::LogCounter,
    objects::{self, EXTENDED, SECOND_SCHEDULER},
    plan::{Act, GuestMode, Plan, PlannedSetup},
    rules::{BrokenRule, Rules, SimulationRule, Tap},
};
use crate::{
    clock::api_server,
    scheduler::{ProcessPlace, SchedulerProcess},
    world::Link,
};

/// How soon a scheduler that has ended by itself is started again.
const RESTARTED_AFTER: Duration = Duration::from_secs(2);
const SECONDS_IN_AN_HOUR: u64 = 3600;
/// How often somebody looks whether that is so.
const LOOKED_AFTER_EVERY: Duration = Duration::from_secs(5);

/// How many times tasks are polled within an hour, at most. Leases, bookmarks and timers are some ten thousand, a plan whose
/// steps all come within an hour a few hundred thousand; more is work that feeds itself.
const POLLS_AN_HOUR: u64 = 20_000_000;

/// Ends a run in which there was more to do than that.
struct WorkWithoutEnd;

/// What came of a run.
pub struct LifeOutcome {
    /// What happened, in order; nothing if that was not to be kept.
    pub lines: Vec<HistoryLine>,
    /// The rules that were broken, in order.
    pub violations: Vec<BrokenRule>,
    /// How much cluster time passed.
    pub cluster_time: Duration,
    /// How many pods were bound.
    pub bindings: usize,
    /// How many pods schedulers evicted.
    pub evictions: usize,
    /// How often a scheduler's process was started.
    pub starts: u64,
    /// How many bindings came to a node that had no room for them by then, whether or not that could be known when they
    /// were decided.
    pub overfilled: usize,
}

impl LifeOutcome {
    /// A number that two runs share only if the same happened in them, as far as that was kept.
    pub fn fingerprint(&self) -> u64 {
        fingerprint(&self.lines)
    }
}

/// Runs a plan. Whatever ends the run before its time is a broken rule, too.
pub fn run(plan: &Plan, registry: &Registry) -> LifeOutcome {
    live(Simulation::new(plan, registry, true))
}

/// Runs a plan of which nobody is going to read the history.
pub fn run_untold(plan: &Plan, registry: &Registry) -> LifeOutcome {
    live(Simulation::new(plan, registry, false))
}

fn live(mut simulation: Simulation<'_>) -> LifeOutcome {
    let log = simulation.log.clone();
    let life = || tracing::subscriber::with_default(log, || simulation.live());
    let ended = catch_unwind(AssertUnwindSafe(life));
    if let Err(panic) = ended
        && !panic.is::<WorkWithoutEnd>()
    {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        simulation.rules.broken(SimulationRule::NeverEnds, format!("a panic: {}", said.unwrap_or_default()));
    }
    simulation.outcome()
}

fn is_overfilled(violation: &Violation) -> bool {
    matches!(violation, Violation::OverAllocatable { .. })
}

/// One of the schedulers: its process comes and goes, its name stays.
pub(super) struct Replica {
    pub(super) name: &'static str,
    pub(super) configuration: Configuration,
    pub(super) elects: bool,
    pub(super) link: Arc<Link>,
    pub(super) process: Option<SchedulerProcess>,
    /// How often it was started.
    pub(super) starts: u64,
    /// It is away on purpose, until somebody starts it.
    pub(super) away: bool,
}

impl Replica {
    /// The name of its process, which no other process has.
    pub(super) fn process_name(&self) -> String {
        format!("{}#{}", self.name, self.starts)
    }
}

/// A cluster, and those who live in it.
pub(super) struct Simulation<'a> {
    pub(super) plan: &'a Plan,
    pub(super) registry: &'a Registry,
    pub(super) executor: Arc<Executor>,
    pub(super) server: ApiServer,
    pub(super) history: Arc<History>,
    pub(super) rules: Arc<Rules>,
    pub(super) replicas: Vec<Replica>,
    pub(super) extender: SimulatedExtender,
    /// What is to happen because of something that was done before.
    pub(super) later: BTreeMap<(Duration, u64), Later>,
    pub(super) planned: u64,
    /// What goes wrong with requests at the moment.
    pub(super) faults: BTreeMap<u64, FaultRule>,
    pub(super) backup: Option<ClusterBackup>,
    /// Counts names.
    pub(super) named: u64,
    /// The namespace and name of the pod that was made last.
    pub(super) newest_pod: Option<(String, String)>,
    /// What all schedulers log.
    pub(super) log: LogCounter,
    observer: ProcessId,
    /// The hour whose work is bounded now.
    hour: Option<u64>,
}

impl<'a> Simulation<'a> {
    fn new(plan: &'a Plan, registry: &'a Registry, is_told: bool) -> Self {
        guest::set(GuestMode::Fine);
        let (executor, setup) = (Arc::new(Executor::default()), &plan.setup);
        let clock = executor.clock().clone();
        let history = Arc::new(History::new(clock.clone(), is_told));
        let lease = Duration::from_secs(setup.lease_seconds);
        let rules = Arc::new(Rules::new(clock.clone(), history.clone(), lease));
        let server = api_server(&executor, &server_options(plan));
        let observer = executor.process();
        let simulation = Self {
            plan,
            registry,
            server,
            rules,
            history,
            replicas: replicas(setup, registry),
            extender: SimulatedExtender::new(clock),
            later: BTreeMap::new(),
            planned: 0,
            faults: BTreeMap::new(),
            backup: None,
            named: 0,
            newest_pod: None,
            log: LogCounter::default(),
            observer,
            hour: None,
            executor,
        };
        simulation.observe();
        simulation
    }

    fn live(&mut self) {
        for object in objects::beginnings() {
            self.create(object);
        }
        if self.plan.setup.devices {
            devices::beginnings().into_iter().for_each(|object| drop(self.create(object)));
        }
        for number in 0..self.plan.setup.nodes {
            self.act(&Act::AddNode { shape: self.plan.seed.rotate_left(number as u32), zone: number });
        }
        let PlannedSetup { forbidden_seconds: seconds, forbidden_kind: kind, .. } = self.plan.setup;
        if seconds > 0 {
            self.act(&Act::Forbidden { kind, seconds });
        }
        for index in 0..self.replicas.len() {
            self.start(index);
        }
        let last_look = self.plan.steps.iter().rposition(|step| step.act == Act::Look);
        let mut spent_looking = Duration::ZERO;
        for (index, step) in self.plan.steps.iter().enumerate() {
            self.run_until(step.at() + spent_looking);
            match step.act {
                Act::Look => {
                    let began = self.now();
                    self.look(Some(index) == last_look);
                    spent_looking += self.now() - began;
                }
                ref act => self.act(act),
            }
        }
        self.empty_and_look();
    }

    fn outcome(self) -> LifeOutcome {
        LifeOutcome {
            lines: self.history.take_lines(),
            violations: self.rules.violations(),
            cluster_time: self.executor.clock().uptime(),
            bindings: self.server.bindings().len(),
            evictions: self.rules.eviction_count(),
            starts: self.replicas.iter().map(|replica| replica.starts).sum(),
            overfilled: self.server.violations().iter().filter(|violation| is_overfilled(violation)).count(),
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.executor.clock().uptime()
    }

    /// Lets time pass up to a moment, with what is due until then.
    pub(super) fn run_until(&mut self, moment: Duration) {
        loop {
            let due = self.later.first_key_value().map(|((at, _), _)| *at).filter(|at| *at <= moment);
            let stop = due.unwrap_or(moment).min(self.now() + LOOKED_AFTER_EVERY);
            let now = self.now();
            self.bound_work();
            if stop > now {
                self.executor.run_for(stop - now);
            }
            self.bound_work();
            self.look_after_schedulers();
            if self.rules.take_stranded() {
                self.after(ORPHANS_END_AFTER, Later::OrphansEnd);
            }
            if due.is_some_and(|due| due <= self.now())
                && let Some((_, later)) = self.later.pop_first()
            {
                self.happens(later);
            } else if self.now() >= moment {
                return;
            }
        }
    }

    /// A life in which there is always something to do, and no time passes, ends all the same.
    fn bound_work(&mut self) {
        if self.executor.is_exhausted() {
            let what = format!("more than {POLLS_AN_HOUR} polls of tasks within an hour");
            self.rules.broken(SimulationRule::WorkBounded, what);
            resume_unwind(Box::new(WorkWithoutEnd));
        }
        let hour = Some(self.now().as_secs() / SECONDS_IN_AN_HOUR);
        if self.hour != hour {
            self.hour = hour;
            self.executor.allow_polls(POLLS_AN_HOUR);
        }
    }

    /// Something happens after a while.
    pub(super) fn after(&mut self, span: Duration, later: Later) {
        self.planned += 1;
        self.later.insert((self.now() + span, self.planned), later);
    }

    /// Starts a scheduler.
    pub(super) fn start(&mut self, index: usize) {
        let replica = &mut self.replicas[index];
        (replica.away, replica.starts) = (false, replica.starts + 1);
        let name = replica.process_name();
        self.rules.started(&name, replica.elects);
        self.history.say(&name, "starts");
        let tap = Arc::new(Tap { rules: self.rules.clone(), process: name.clone() });
        replica.link = Arc::new(Link::tapped(tap));
        let extender = self.extender.clone();
        let transport: ExtenderTransport =
            Arc::new(move |_| Ok(Arc::new(extender.clone()) as Arc<dyn Transport>));
        let place = ProcessPlace {
            link: replica.link.clone(),
            name: name.clone(),
            seed: self.plan.seed ^ (index as u64) << 32 ^ replica.starts,
            extender_transport: transport,
        };
        let started = SchedulerProcess::start_at(
            &self.executor,
            &self.server,
            &replica.configuration,
            self.registry,
            place,
        );
        match started {
            Ok(process) => {
                self.follow(&process, name);
                self.replicas[index].process = Some(process);
            }
            Err(problems) => self.rules.broken(SimulationRule::NeverEnds, problems.to_string()),
        }
    }

    /// Hears what a scheduler decides.
    fn follow(&self, process: &SchedulerProcess, name: String) {
        let (mut news, rules) = (process.records().follow(), self.rules.clone());
        rules.follow(&name, process.records().follow());
        let following = async move {
            while news.next().await.is_some() {
                rules.hear(&name);
            }
        };
        self.executor.spawn(self.observer, Box::pin(following));
    }

    /// Who has ended by itself is started again, as a kubelet does.
    fn look_after_schedulers(&mut self) {
        for index in 0..self.replicas.len() {
            let replica = &mut self.replicas[index];
            if replica.away || replica.process.as_ref().is_some_and(SchedulerProcess::is_running) {
                continue;
            }
            (replica.process, replica.away) = (None, true);
            self.history.say(replica.name, "has ended");
            self.after(RESTARTED_AFTER, Later::Start(index));
        }
    }

    /// Sets what goes wrong with requests to what is known to.
    pub(super) fn apply_faults(&self) {
        let rules = self.faults.values().cloned().collect();
        self.server.faults().set(FaultPlan {
            seed: self.plan.seed ^ self.planned,
            rules,
            ..FaultPlan::default()
        });
    }

    /// Sees what the server stores.
    fn observe(&self) {
        type Take = fn(&Rules, &SeenChange);
        type Resync = fn(&Rules, &[Value], u64);
        let resources: [(&str, Take, Resync); 5] = [
            ("pods", Rules::pod_changed, |rules, pods, _| rules.pods_are(pods)),
            ("nodes", Rules::node_changed, Rules::nodes_are),
            ("persistentvolumes", Rules::volume_changed, |_, _, _| {}),
            ("resourceclaims", Rules::claim_changed, |rules, claims, _| rules.claims_are(claims)),
            ("resourceslices", Rules::slice_changed, |rules, slices, _| rules.slices_are(slices)),
        ];
        for (resource, take, resync) in resources {
            let (server, rules) = (self.server.clone(), self.rules.clone());
            let Ok(mut news) = server.subscribe(resource) else { continue };
            let observing = async move {
                let mut seen = 0;
                loop {
                    news.changed().await;
                    match server.changes(resource, seen) {
                        Ok(Some((changes, newest))) => {
                            seen = newest;
                            changes.iter().for_each(|change| take(&rules, change));
                        }
                        _ => {
                            // The history was forgotten meanwhile: what is there now has to do.
                            seen = server.resource_version();
                            let objects = server.list(resource, "").unwrap_or_default();
                            resync(&rules, &objects, seen);
                        }
                    }
                }
            };
            self.executor.spawn(self.observer, Box::pin(observing));
        }
    }

    /// Asks a scheduler something, without time passing; `None` if it does not answer.
    pub(super) fn ask<T: Send + 'static, F: Future<Output = Option<T>> + Send + 'static>(
        &self,
        process: &SchedulerProcess,
        question: impl FnOnce(Inspector) -> F,
    ) -> Option<T> {
        let (slot, asked) = (Arc::<Mutex<Option<T>>>::default(), question(process.inspector().clone()));
        let filled = slot.clone();
        let asking = asked.map(move |answer| *filled.lock().unwrap_or_else(PoisonError::into_inner) = answer);
        self.executor.spawn(self.observer, Box::pin(asking));
        self.executor.run_ready();
        slot.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn server_options(plan: &Plan) -> TestClusterOptions {
    let setup = &plan.setup;
    let never = Duration::from_secs(30 * 24 * 3600);
    TestClusterOptions {
        seed: plan.seed,
        history_limit: setup.history,
        bookmark_interval: match setup.bookmark_seconds {
            0 => never,
            seconds => Duration::from_secs(seconds),
        },
        kubelets: Some(Kubelets {
            start_delay: Duration::from_millis(300),
            stop_delay: None,
            heartbeat: Some(setup.heartbeat_seconds).filter(|every| *every > 0).map(Duration::from_secs),
        }),
        volumes: Some(Duration::from_millis(setup.provision_millis)),
        workloads: true,
        budgets: true,
        claims: setup.devices,
        driver: setup.devices.then(DeviceDriver::default),
        ..TestClusterOptions::default()
    }
}

fn replicas(setup: &PlannedSetup, registry: &Registry) -> Vec<Replica> {
    const NAMES: [&str; 3] = ["one", "two", "three"];
    let elects = setup.replicas > 1;
    let replica = |name, configuration, elects| Replica {
        name,
        configuration,
        elects,
        link: Arc::default(),
        process: None,
        starts: 0,
        away: false,
    };
    let shared = configuration(setup, "default-scheduler", elects, registry);
    let names = NAMES.into_iter().take(setup.replicas.max(1));
    let mut all: Vec<Replica> = names.map(|name| replica(name, shared.clone(), elects)).collect();
    if setup.beside {
        all.push(replica("second", configuration(setup, SECOND_SCHEDULER, false, registry), false));
    }
    all
}

fn configuration(setup: &PlannedSetup, scheduler: &str, elects: bool, registry: &Registry) -> Configuration {
    let lease = setup.lease_seconds;
    let (deadline, retry) = setup.renewal_seconds();
    let extenders = match setup.extender {
        true => format!(
            "extenders:\n- urlPrefix: http://extender.example\n  filterVerb: filter\n  prioritizeVerb: prioritize\n  weight: 1\n  \
             nodeCacheCapable: true\n  httpTimeout: 5s\n  managedResources: [{{name: {EXTENDED}}}]\n"
        ),
        false => String::new(),
    };
    let guest = match setup.guest {
        true => format!("  plugins: {{multiPoint: {{enabled: [{{name: {}}}]}}}}\n", guest::NAME),
        false => String::new(),
    };
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
         leaderElection: {{leaderElect: {elects}, leaseDuration: {lease}s, renewDeadline: {deadline}s, retryPeriod: {retry}s}}\n\
         percentageOfNodesToScore: {}\nprofiles:\n- schedulerName: {scheduler}\n{guest}{extenders}",
        setup.percentage
    );
    let loaded = supercargo_config::load(&Source::new("simulated.yaml", text), registry);
    match loaded {
        Ok(loaded) => loaded.configuration,
        Err(problems) => panic!("the simulation's own configuration: {problems}"),
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    #[test]
    fn work_without_end_is_a_broken_rule() {
        let plan = Plan { seed: 1, setup: PlannedSetup::default(), seconds: 1, steps: Vec::new() };
        let registry = guest::soak_registry();
        let mut simulation = Simulation::new(&plan, &registry, true);
        let spinning = std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        simulation.executor.spawn(simulation.observer, Box::pin(spinning));
        let ended = catch_unwind(AssertUnwindSafe(|| simulation.run_until(Duration::from_secs(10))));
        assert!(ended.is_err_and(|payload| payload.is::<WorkWithoutEnd>()));
        let rules: Vec<SimulationRule> =
            simulation.rules.violations().iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, [SimulationRule::WorkBounded]);
    }
}
