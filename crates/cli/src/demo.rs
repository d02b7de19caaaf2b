//! `supercargo demo`: the scheduler at work on a cluster in memory, for people who want to see it first. It tells a story:
//! the cluster fills, a rollout, a node that fails, preemption; on the terminal and on the page.

mod objects;
mod screen;
mod story;
mod stream;
mod world;

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use supercargo_framework::registry::Registry;
use supercargo_live::{
    real::{RealWorld, RestConfig},
    scheduler::{inspector::Inspector, records::Follower},
    world::SharedWorld,
};
use supercargo_manifest::{Problem, Problems};
use supercargo_model::Cluster;
use supercargo_server::metrics::{DecisionTimes, Metrics};
use supercargo_testcluster::{DeviceDriver, Kubelets, NOTICE, TestCluster, TestClusterOptions};
use tokio_util::sync::CancellationToken;

use crate::{
    failure::{Ending, Failure},
    objects::load_configuration,
    output::Console,
    run::{WatchedScheduler, runtime, start_watched, stop_on_signal},
    style::harmless,
};
use objects::{ACCELERATORS, ZONE_LABEL, cores, node};
use screen::{DemoFigures, DemoScreen, ZoneLoad, microseconds};
use story::Story;
use stream::{LIFETIME, PodStream};
use world::DemoWorld;

const TICK: Duration = Duration::from_millis(50);
/// How long a round of the story takes, at most.
const ROUND: Duration = Duration::from_secs(45);
/// How many cores the nodes of a test cluster have.
const NODE_CORES: usize = 16;
/// How many of the pods that wait are shown.
const SHOWN_WAITING: usize = 3;
/// Where more wait than this, those who are shown are looked up less often.
const MANY_WAITING: usize = 500;
const LIST_INTERVAL: Duration = Duration::from_secs(3);
/// Below this part of the rate that was asked for, the machine is too slow for it.
const SLOW: f64 = 0.8;

/// What can be said to `supercargo demo`.
#[derive(Args)]
pub(crate) struct Options {
    /// How many nodes there are
    #[arg(long, value_name = "N", default_value_t = 300)]
    nodes: usize,

    /// How many pods are made in a second
    #[arg(long, value_name = "N", default_value_t = 50)]
    rate: usize,

    /// The port on loopback that kubectl can be pointed at; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8001)]
    port: u16,

    /// The port on loopback of the page; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8002)]
    page_port: u16,

    /// End after this long, such as 30s; without it, after Ctrl-C
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<supercargo_config::Duration>,

    /// The KubeSchedulerConfiguration
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
}

/// Runs the demo.
pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let loaded = load_configuration(options.config.as_ref(), console, registry)?;
    let cluster = start_cluster(with_controllers(options.port))?;
    let at_a_time = options.rate as f64 * LIFETIME.as_secs_f64();
    fill(&cluster, options.nodes, cores(options.nodes, at_a_time))?;
    console.note(NOTICE);
    let runtime = runtime()?;
    let stop = CancellationToken::new();
    let outcome = runtime.block_on(async {
        tokio::spawn(stop_on_signal(stop.clone()));
        let access = RestConfig { master: Some(cluster.url()), ..RestConfig::default() };
        let machine = RealWorld::open(&access).await.map_err(Problems::from)?;
        let url = machine.server().to_owned();
        let world: SharedWorld = Arc::new(DemoWorld::new(machine, cluster.in_process()));
        let title = format!("demo, {} nodes", options.nodes);
        let page = (options.page_port, title);
        let watched = start_watched((world, &url), &loaded, registry, page, stop.clone()).await?;
        console.line(format!("the page:  {}", watched.address))?;
        console.line(format!("kubectl:   kubectl --server {} get pods -o wide", cluster.url()))?;
        console.line("")?;
        console.flush()?;
        // Pods come once all nodes are known.
        let mut synced = watched.running.synced();
        tokio::select! {
            () = stop.cancelled() => {}
            _ = synced.wait_for(|synced| *synced) => {}
        }
        let told = Demo::new(options, &cluster, &watched).tell(&stop, console).await;
        stop.cancel();
        watched.running.stop().await;
        told
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let ended = outcome?;
    let violations = cluster.violations();
    ended.print(cluster.bindings().len(), violations.len(), console)?;
    Ok(if violations.is_empty() { Ending::Well } else { Ending::Found })
}

/// A cluster in which everything happens that happens in a cluster by itself.
fn with_controllers(port: u16) -> TestClusterOptions {
    TestClusterOptions {
        port,
        kubelets: Some(Kubelets::default()),
        volumes: Some(Duration::from_millis(200)),
        workloads: true,
        budgets: true,
        claims: true,
        driver: Some(DeviceDriver { name: ACCELERATORS.to_owned(), ..DeviceDriver::default() }),
        ..TestClusterOptions::default()
    }
}

/// Starts a cluster in memory.
fn start_cluster(options: TestClusterOptions) -> Result<TestCluster, Problem> {
    let port = options.port;
    TestCluster::start(options).map_err(|error| {
        Problem::error(format!("cannot listen on port {port} of this machine: {error}"))
            .hint("choose another one with --port, or 0 for any that is free")
    })
}

/// Fills a cluster with nodes of three zones, a tenth of them with GPUs.
fn fill(cluster: &TestCluster, nodes: usize, cores: usize) -> Result<(), Problem> {
    let made = cluster.create_many((0..nodes).map(|i| node(i, cores)));
    made.map_err(|refusal| Problem::error(format!("cannot make nodes: {}", refusal.message())))
}

/// The demo as it goes on.
struct Demo<'d> {
    options: &'d Options,
    cluster: &'d TestCluster,
    inspector: Inspector,
    metrics: &'d Arc<Metrics>,
    follower: Follower,
    story: Story<'d>,
    bound: usize,
    /// Some of those who wait and why, and when they were listed.
    waits: Vec<(String, String)>,
    listed: Duration,
    /// What was counted when it was last shown, and when that was.
    times: Vec<u64>,
    shown: Duration,
}

/// What it came to.
struct DemoEnding {
    asked_rate: usize,
    took: Duration,
    created: usize,
    seen: Vec<String>,
    /// What had begun when it ended.
    unseen: Vec<&'static str>,
    preemptions: usize,
    p50: Option<f64>,
    p99: Option<f64>,
}

impl<'d> Demo<'d> {
    fn new(options: &'d Options, cluster: &'d TestCluster, watched: &'d WatchedScheduler) -> Self {
        let inspector = watched.running.inspector().clone();
        let round = options.time.and_then(|time| time.to_std()).map_or(ROUND, |time| time.min(ROUND));
        Self {
            options,
            cluster,
            metrics: &watched.metrics,
            follower: watched.running.records().follow_decisions(),
            story: Story::new(cluster, inspector.clone(), options.nodes, round),
            inspector,
            bound: 0,
            waits: Vec::new(),
            listed: Duration::ZERO,
            times: Vec::new(),
            shown: Duration::ZERO,
        }
    }

    /// Lets everything happen, and tells it.
    async fn tell(mut self, stop: &CancellationToken, console: &mut Console) -> Result<DemoEnding, Failure> {
        let on_terminal = std::io::stdout().is_terminal();
        let title = format!("Supercargo · {} nodes, {} pods a second", self.options.nodes, self.options.rate);
        let mut screen = DemoScreen::new(title, on_terminal);
        let stream = PodStream::start((**self.cluster).clone(), self.options.rate)?;
        let started = Instant::now();
        let until = self.options.time.and_then(|time| time.to_std());
        let goes_on = |now: Duration| until.is_none_or(|until| now < until);
        while !stop.is_cancelled() && !stream.has_failed() && goes_on(started.elapsed()) {
            self.story.go_on(started.elapsed()).await?;
            while let Some(delivery) = self.follower.try_next() {
                self.story.hear(&delivery.record, started.elapsed());
            }
            if started.elapsed() >= self.shown + screen.interval() {
                let figures = self.figures(started.elapsed(), stream.created()).await;
                self.story.look(&figures);
                screen.show(&figures, &self.story.lines, self.story.told, console)?;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }
        let counts = self.metrics.scheduling.decision_times.counts();
        Ok(DemoEnding {
            asked_rate: self.options.rate,
            took: started.elapsed(),
            created: stream.end()?,
            seen: self.story.seen(),
            unseen: self.story.unseen(),
            preemptions: self.story.preemptions,
            p50: DecisionTimes::quantile_microseconds(&counts, 0.5),
            p99: DecisionTimes::quantile_microseconds(&counts, 0.99),
        })
    }

    async fn figures(&mut self, now: Duration, created: usize) -> DemoFigures {
        self.bound += self.cluster.bindings_from(self.bound).len();
        let counts = self.metrics.scheduling.decision_times.counts();
        let before = |i: usize| self.times.get(i).copied().unwrap_or(0);
        let new: Vec<u64> = counts.iter().enumerate().map(|(i, count)| count - before(i)).collect();
        let rate = new.iter().sum::<u64>() as f64 / (now - self.shown).as_secs_f64();
        (self.times, self.shown) = (counts, now);
        let seen =
            self.inspector.ask(|engine, queue| (zone_loads(engine.cluster()), queue.pending().count()));
        let (zones, waiting) = seen.await.unwrap_or_default();
        // To list many who wait takes its time, which is the scheduler's.
        let is_due = waiting <= MANY_WAITING || now >= self.listed + LIST_INTERVAL;
        if is_due {
            self.listed = now;
            self.waits = self.list_waits().await;
        }
        DemoFigures {
            at: now,
            created,
            bound: self.bound,
            rate,
            p50_microseconds: DecisionTimes::quantile_microseconds(&new, 0.5),
            p99_microseconds: DecisionTimes::quantile_microseconds(&new, 0.99),
            zones,
            waiting,
            waits: self.waits.clone(),
        }
    }

    /// Some of those who wait, and why.
    async fn list_waits(&self) -> Vec<(String, String)> {
        let queue = self.inspector.queue().await.unwrap_or_default();
        let refused = queue.iter().filter_map(|pod| Some((&pod.pod.name, pod.last_failure.as_ref()?)));
        // The first sentence says why; what follows is about preemption.
        let why = |message: &str| message.split(". ").next().unwrap_or(message).to_owned();
        let told = refused.map(|(pod, failure)| (pod.to_string(), why(&failure.message)));
        told.take(SHOWN_WAITING).collect()
    }
}

/// How full the nodes of each zone are.
fn zone_loads(cluster: &Cluster) -> Vec<ZoneLoad> {
    let mut zones: BTreeMap<&str, ZoneLoad> = BTreeMap::new();
    for info in cluster.nodes() {
        let zone = info.node.labels.get(ZONE_LABEL).map_or("no zone", |name| &**name);
        let load = zones.entry(zone).or_default();
        load.loads.push(info.requested.milli_cpu as f64 / info.node.allocatable.milli_cpu.max(1) as f64);
        load.pods += info.pods.len();
    }
    zones.into_iter().map(|(name, load)| ZoneLoad { name: name.to_owned(), ..load }).collect()
}

impl DemoEnding {
    fn print(&self, bound: usize, violations: usize, console: &mut Console) -> Result<(), Failure> {
        console.heading("What was shown")?;
        for seen in &self.seen {
            console.line(format!("  {}", harmless(seen)))?;
        }
        if !self.unseen.is_empty() {
            console.line(format!("  it ended before the end of: {}", self.unseen.join(", ")))?;
        }
        console.line(format!(
            "  {} pods created, {bound} bound (those that controllers made among them), {} preemptions, {violations} \
             invariant violations; half of the decisions took up to {}, 99 of 100 up to {}",
            self.created,
            self.preemptions,
            microseconds(self.p50),
            microseconds(self.p99)
        ))?;
        let rate = self.created as f64 / self.took.as_secs_f64();
        if rate < SLOW * self.asked_rate as f64 {
            console.line(format!(
                "  {} pods a second were asked for, and {rate:.0} is what this machine did, API server and scheduler together; \
                 what is released (cargo build --profile dist) does more",
                self.asked_rate
            ))?;
        }
        console.heading("Next, on your own cluster; none of it changes anything")?;
        for (command, what) in [
            ("supercargo simulate", "where the pending pods would go"),
            ("supercargo explain NAMESPACE/POD", "why a pod goes where it goes, or nowhere"),
            ("supercargo ui", "all of it as a page, with weights to play with"),
            ("supercargo capacity --pod FILE", "how many more of a pod fit"),
        ] {
            console.line(format!("  {command:<34} {what}"))?;
        }
        Ok(())
    }
}

/// What can be said to `supercargo testcluster`.
#[derive(Args)]
pub(crate) struct ClusterCommand {
    /// The port on loopback; 0 for any that is free
    #[arg(long, value_name = "PORT", default_value_t = 8001)]
    port: u16,

    /// How many nodes are made
    #[arg(long, value_name = "N", default_value_t = 0)]
    nodes: usize,

    /// Without kubelets: pods are bound, and never run
    #[arg(long)]
    no_kubelets: bool,

    /// Without volume controllers: claims are not bound, and no volumes are made for them
    #[arg(long)]
    no_volumes: bool,

    /// Without controllers for deployments and replica sets
    #[arg(long)]
    no_workloads: bool,

    /// Without a controller for disruption budgets: their status is what is written into it
    #[arg(long)]
    no_budgets: bool,

    /// Without a controller for resource claims, and without the driver that publishes devices for nodes with the label
    /// `testcluster/devices`
    #[arg(long)]
    no_devices: bool,

    /// Without any of them: nothing happens by itself
    #[arg(long)]
    no_controllers: bool,
}

impl ClusterCommand {
    fn cluster_options(&self) -> TestClusterOptions {
        let all = with_controllers(self.port);
        let runs = |left_out: bool| !left_out && !self.no_controllers;
        TestClusterOptions {
            kubelets: all.kubelets.filter(|_| runs(self.no_kubelets)),
            volumes: all.volumes.filter(|_| runs(self.no_volumes)),
            workloads: runs(self.no_workloads),
            budgets: runs(self.no_budgets),
            claims: runs(self.no_devices),
            driver: all.driver.filter(|_| runs(self.no_devices)),
            ..all
        }
    }
}

/// Runs a cluster in memory until it is told to stop.
pub(crate) fn run_cluster(options: &ClusterCommand, console: &mut Console) -> Result<Ending, Failure> {
    let cluster = start_cluster(options.cluster_options())?;
    console.note(NOTICE);
    fill(&cluster, options.nodes, NODE_CORES)?;
    console.line(cluster.url())?;
    console.flush()?;
    let stop = CancellationToken::new();
    runtime()?.block_on(async {
        tokio::spawn(stop_on_signal(stop.clone()));
        stop.cancelled().await;
    });
    Ok(Ending::Well)
}
