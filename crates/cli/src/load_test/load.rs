//! The load itself: pods that come and end, nodes that change, and what is measured meanwhile.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::json;
use supercargo_manifest::Problem;
use supercargo_testcluster::{PatchKind, StatusError, TestCluster, Violation};

use super::{
    client::{Client, Job, Told},
    objects::{node, node_name, pod_name, running_pod},
    process::SchedulerProcess,
    watcher::{HealthWatcher, LeaseWatcher},
};
use crate::output::Console;

/// How often it is looked what has happened.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// A part that takes longer has failed.
const LONGEST_PART: Duration = Duration::from_secs(300);
/// How many pods wait when a scheduler is started.
const WAITING_AT_START: usize = 1_000;
/// Requests that may be under way although all that was wanted is done: the pods that end and come meanwhile.
const AT_REST: usize = 20;
const RELABELLED_PER_SECOND: f64 = 20.0;

/// How large the load is.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Size {
    pub(super) nodes: usize,
    pub(super) bound: usize,
    pub(super) pods: usize,
    pub(super) room: usize,
    pub(super) overload: usize,
    pub(super) churn_per_second: u32,
    #[serde(skip)]
    pub(super) hold: Duration,
}

impl Size {
    /// How many pods fit.
    pub(super) fn places(self) -> usize {
        self.bound + self.pods + self.room
    }
}

/// How things stood in one second.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample {
    pub(super) at_seconds: f64,
    pub(super) bound: usize,
    pub(super) pending: usize,
    /// Of the pods that were bound in this second; `None` if there were none.
    pub(super) latency_ms: Option<Latency>,
    pub(super) resident_mib: u64,
    pub(super) slowest_livez_ms: f64,
    pub(super) longest_without_renewal_ms: f64,
}

/// How long pods waited from their creation until they were bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Latency {
    fn of(millis: &mut [f64]) -> Option<Self> {
        millis.sort_by(f64::total_cmp);
        let at =
            |share: f64| millis.get(((millis.len() as f64 * share) as usize).min(millis.len() - 1)).copied();
        if millis.is_empty() { None } else { Some(Self { p50: at(0.5)?, p99: at(0.99)? }) }
    }
}

/// A part of the test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) begin_seconds: f64,
    pub(super) end_seconds: f64,
    pub(super) bound: usize,
    pub(super) latency_ms: Option<Latency>,
    /// From the start of the scheduler, if it was started in this part.
    pub(super) first_binding_seconds: Option<f64>,
    /// Which of the samples are its own.
    #[serde(skip)]
    pub(super) samples: std::ops::Range<usize>,
}

/// All that was measured.
pub(super) struct Measured {
    pub(super) samples: Vec<Sample>,
    pub(super) parts: Vec<Part>,
    pub(super) violations: Vec<Violation>,
}

/// What is measured of a second, or of a part.
#[derive(Default)]
struct Tally {
    bound: usize,
    waited_millis: Vec<f64>,
}

pub(super) struct Load<'c> {
    cluster: &'c TestCluster,
    size: Size,
    config: Option<PathBuf>,
    began: Instant,
    /// How many pods there have ever been: the next one's number.
    pods: usize,
    client: Client,
    /// When those were made that are not bound yet, by name.
    pending: HashMap<String, Instant>,
    /// The pods that run, the oldest first.
    running: VecDeque<String>,
    bindings_seen: usize,
    churn: Due,
    relabelling: Due,
    relabelled: usize,
    scheduler: Option<SchedulerProcess>,
    health: Option<HealthWatcher>,
    lease: LeaseWatcher,
    second: Tally,
    part: Tally,
    sampled: Instant,
    samples: Vec<Sample>,
    parts: Vec<Part>,
}

/// Something that is done so many times a second.
struct Due {
    per_second: f64,
    since: Option<Instant>,
    owed: f64,
}

impl Due {
    fn new(per_second: f64) -> Self {
        Self { per_second, since: None, owed: 0.0 }
    }

    /// How many are due now.
    fn take(&mut self, now: Instant) -> usize {
        // What could not be done while nobody asked is not made up for at once.
        let passed = self.since.map_or(0.0, |since| (now - since).as_secs_f64()).min(1.0);
        self.since = Some(now);
        self.owed += passed * self.per_second;
        let whole = self.owed.floor();
        self.owed -= whole;
        whole as usize
    }
}

impl<'c> Load<'c> {
    pub(super) fn new(
        cluster: &'c TestCluster,
        size: Size,
        config: Option<PathBuf>,
    ) -> Result<Self, Problem> {
        let now = Instant::now();
        Ok(Self {
            cluster,
            size,
            config,
            began: now,
            pods: 0,
            client: Client::start(cluster.url())?,
            pending: HashMap::new(),
            running: VecDeque::new(),
            bindings_seen: 0,
            churn: Due::new(size.churn_per_second.into()),
            relabelling: Due::new(RELABELLED_PER_SECOND),
            relabelled: 0,
            scheduler: None,
            health: None,
            lease: LeaseWatcher::new(),
            second: Tally::default(),
            part: Tally::default(),
            sampled: now,
            samples: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// Nodes, and the pods that run already.
    pub(super) fn fill(&mut self) -> Result<(), Problem> {
        let size = self.size;
        self.cluster.create_many((0..size.nodes).map(|number| node(number, size))).map_err(refused)?;
        let running = (0..size.bound).map(|number| running_pod(number, size));
        self.cluster.create_many(running).map_err(refused)?;
        self.running = (0..size.bound).map(pod_name).collect();
        self.pods = size.bound;
        Ok(())
    }

    /// All parts, one after another.
    pub(super) fn run(mut self, console: &mut Console) -> Result<Measured, Problem> {
        let Size { pods, room, overload, hold, .. } = self.size;
        self.part("start", console, |load| load.start_with(WAITING_AT_START.min(pods)), Self::has_bound)?;
        let rest = pods.saturating_sub(WAITING_AT_START);
        self.part("load", console, |load| load.make_pods(rest), Self::is_calm)?;
        self.part("churn", console, |_| Ok(()), |_, since| since >= hold)?;
        self.part("overload", console, Self::overload, Self::is_overloaded)?;
        self.part("relief", console, Self::relieve, Self::has_rested)?;
        self.part("overload again", console, Self::overload, Self::is_overloaded)?;
        self.part("relief again", console, Self::relieve, Self::has_rested)?;
        self.part(
            "restart",
            console,
            |load| load.restart_with(WAITING_AT_START.min(room)),
            |load, since| load.has_bound(since) && load.is_calm(since),
        )?;
        let crowd = room * overload;
        self.part("restart, overloaded", console, |load| load.restart_with(crowd), Self::is_overloaded)?;
        Ok(Measured { samples: self.samples, parts: self.parts, violations: self.cluster.violations() })
    }

    /// Does something, and goes on until something holds.
    fn part(
        &mut self,
        name: &'static str,
        console: &mut Console,
        begin: impl FnOnce(&mut Self) -> Result<(), Problem>,
        is_over: impl Fn(&Self, Duration) -> bool,
    ) -> Result<(), Problem> {
        let (since, first_sample) = (Instant::now(), self.samples.len());
        self.part = Tally::default();
        let begin_seconds = self.began.elapsed().as_secs_f64();
        begin(self)?;
        let mut first_binding_seconds = None;
        while !is_over(self, since.elapsed()) {
            if since.elapsed() > LONGEST_PART {
                let left = self.pending.len();
                let message = format!("{name}: not over after {LONGEST_PART:?}; {left} pods wait");
                return Err(Problem::error(message));
            }
            self.tick()?;
            let process = self.scheduler.as_ref().filter(|process| process.started >= since);
            if self.part.bound > 0 && first_binding_seconds.is_none() {
                first_binding_seconds = process.map(|process| process.started.elapsed().as_secs_f64());
            }
        }
        self.sample();
        let part = Part {
            name,
            begin_seconds,
            end_seconds: self.began.elapsed().as_secs_f64(),
            bound: self.part.bound,
            latency_ms: Latency::of(&mut self.part.waited_millis),
            first_binding_seconds,
            samples: first_sample..self.samples.len(),
        };
        console.note(format!(
            "{name}: {} pods bound in {:.1} s, {} wait",
            part.bound,
            part.end_seconds - part.begin_seconds,
            self.pending.len()
        ));
        self.parts.push(part);
        Ok(())
    }

    fn has_bound(&self, _since: Duration) -> bool {
        self.part.bound > 0
    }

    /// All are made, and nobody waits but those who just came.
    fn is_calm(&self, _since: Duration) -> bool {
        let just_came = self.size.churn_per_second as usize / 2;
        self.client.left() < AT_REST && self.pending.len() <= just_came
    }

    fn has_rested(&self, since: Duration) -> bool {
        self.is_calm(since) && since >= self.size.hold
    }

    /// The room that there was is taken, and the others have waited for a while.
    fn is_overloaded(&self, since: Duration) -> bool {
        self.client.left() < AT_REST && self.part.bound >= self.size.room && since >= self.size.hold * 2
    }

    fn overload(&mut self) -> Result<(), Problem> {
        self.make_pods(self.size.room * self.size.overload)
    }

    /// Those who wait go, and then as many as there is to be room for.
    fn relieve(&mut self) -> Result<(), Problem> {
        for (name, _) in self.pending.drain() {
            self.client.order(Job::Delete(name));
        }
        let too_many = (self.running.len() + self.size.room).saturating_sub(self.size.places());
        for name in self.running.drain(..too_many) {
            self.client.order(Job::Delete(name));
        }
        Ok(())
    }

    /// Starts a scheduler on a cluster in which so many pods wait.
    fn start_with(&mut self, waiting: usize) -> Result<(), Problem> {
        self.make_pods(waiting)?;
        while self.client.left() > 0 {
            std::thread::sleep(LOOK_EVERY);
        }
        let process = SchedulerProcess::start(&self.cluster.url(), self.config.as_deref())?;
        self.health = Some(HealthWatcher::start(process.address.clone()));
        self.scheduler = Some(process);
        Ok(())
    }

    /// Kills the scheduler, and starts another.
    fn restart_with(&mut self, waiting: usize) -> Result<(), Problem> {
        self.health = None;
        self.scheduler = None;
        self.lease.forget(self.cluster);
        self.look(Instant::now())?;
        self.part = Tally::default();
        self.start_with(waiting)
    }

    fn tick(&mut self) -> Result<(), Problem> {
        std::thread::sleep(LOOK_EVERY);
        let now = Instant::now();
        let due = self.churn.take(now).min(self.running.len());
        for name in self.running.drain(..due) {
            self.client.order(Job::Delete(name));
        }
        self.make_pods(due)?;
        for _ in 0..self.relabelling.take(now) {
            self.relabel_a_node()?;
        }
        self.look(now)?;
        self.lease.look(self.cluster, now);
        if now - self.sampled >= SAMPLE_EVERY {
            self.sample();
            self.scheduler.as_mut().map_or(Ok(()), SchedulerProcess::check)?;
        }
        Ok(())
    }

    fn make_pods(&mut self, count: usize) -> Result<(), Problem> {
        for number in self.pods..self.pods + count {
            self.client.order(Job::Make(number));
        }
        self.pods += count;
        Ok(())
    }

    fn relabel_a_node(&mut self) -> Result<(), Problem> {
        self.relabelled += 1;
        let labels = json!({"metadata": {"labels": {"example.com/turn": self.relabelled.to_string()}}});
        let name = node_name(self.relabelled * 7 % self.size.nodes);
        self.cluster.patch("nodes", "", &name, PatchKind::Merge, labels).map(drop).map_err(refused)
    }

    /// Sees which pods have come, and which have been bound.
    fn look(&mut self, now: Instant) -> Result<(), Problem> {
        // Whoever is bound by now has come before.
        let bindings = self.cluster.bindings_from(self.bindings_seen);
        for told in self.client.told() {
            match told {
                Told::Makes(name, at) => drop(self.pending.insert(name, at)),
                Told::Failed(problem) => return Err(problem),
            }
        }
        for binding in bindings {
            self.bindings_seen += 1;
            let Some(made) = self.pending.remove(&binding.name) else { continue };
            self.running.push_back(binding.name);
            for tally in [&mut self.second, &mut self.part] {
                tally.bound += 1;
                tally.waited_millis.push((now - made).as_secs_f64() * 1000.0);
            }
        }
        Ok(())
    }

    fn sample(&mut self) {
        let seconds = self.sampled.elapsed().as_secs_f64();
        if seconds < SAMPLE_EVERY.as_secs_f64() / 2.0 {
            // What is left of a part counts for the next second.
            return;
        }
        self.sampled = Instant::now();
        let mut second = std::mem::take(&mut self.second);
        let slowest = self.health.as_ref().map_or(Duration::ZERO, HealthWatcher::take_slowest);
        self.samples.push(Sample {
            at_seconds: self.began.elapsed().as_secs_f64(),
            bound: (second.bound as f64 / seconds) as usize,
            pending: self.pending.len(),
            latency_ms: Latency::of(&mut second.waited_millis),
            resident_mib: self.scheduler.as_ref().map_or(0, SchedulerProcess::resident_mib),
            slowest_livez_ms: slowest.as_secs_f64() * 1000.0,
            longest_without_renewal_ms: self.lease.take_longest().as_secs_f64() * 1000.0,
        });
    }
}

pub(super) fn refused(refusal: StatusError) -> Problem {
    Problem::error(format!("the test cluster refuses: {}", refusal.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_evenly() {
        let (mut due, begin) = (Due::new(10.0), Instant::now());
        let at = |millis| begin + Duration::from_millis(millis);
        let taken = [0, 50, 100, 350, 1000].map(|millis| due.take(at(millis)));
        assert_eq!(taken, [0, 0, 1, 2, 7]);
    }

    #[test]
    fn latencies_are_those_of_the_middle_and_of_the_slowest() {
        let mut millis: Vec<f64> = (0..200).rev().map(f64::from).collect();
        assert_eq!(Latency::of(&mut millis), Some(Latency { p50: 100.0, p99: 198.0 }));
        assert_eq!(Latency::of(&mut []), None);
    }
}
