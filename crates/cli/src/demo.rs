//! `supercargo demo`: the scheduler at work on a cluster in memory, for people who want to see it first.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::{Value, json};
use supercargo_framework::registry::Registry;
use supercargo_live::{
    real::{RealWorld, RestConfig},
    world::SharedWorld,
};
use supercargo_manifest::{Problem, Problems};
use supercargo_scheduler::{Election, SchedulerOptions, start};
use supercargo_testcluster::{Kubelets, NOTICE, TestCluster, TestClusterOptions};
use tokio_util::sync::CancellationToken;

use crate::{
    failure::{Ending, Failure},
    output::Console,
    run::{runtime, stop_on_signal},
};

/// How long a pod lives before it is deleted again.
const LIFETIME: Duration = Duration::from_secs(45);
const TICK: Duration = Duration::from_millis(100);
const REPORT_EVERY: Duration = Duration::from_secs(1);

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

    /// End after this long, such as 30s; without it, after Ctrl-C
    #[arg(long = "for", value_name = "DURATION")]
    time: Option<supercargo_config::Duration>,

    /// The KubeSchedulerConfiguration
    #[arg(long, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
}

/// Runs the demo.
pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let configuration = crate::objects::read_configuration(options.config.as_ref(), console, registry)?;
    let cluster = start_cluster(with_controllers(options.port))?;
    fill(&cluster, options.nodes)?;
    console.note(NOTICE);
    console.note(format!("look at it with: kubectl --server {} get pods -o wide", cluster.url()));
    let runtime = runtime()?;
    let stop = CancellationToken::new();
    let outcome = runtime.block_on(async {
        tokio::spawn(stop_on_signal(stop.clone()));
        let access = RestConfig { master: Some(cluster.url()), ..RestConfig::default() };
        let world = RealWorld::open(&access).await.map_err(Problems::from)?;
        let world: SharedWorld = Arc::new(world);
        let setup = SchedulerOptions { election: Election::Never, ..Default::default() };
        let running = start(&world, &configuration, registry, setup)?;
        let made = stream(options, &cluster, &stop, console).await;
        stop.cancel();
        running.stop().await;
        made
    });
    runtime.shutdown_timeout(Duration::from_secs(1));
    let made = outcome?;
    let bindings = cluster.bindings().len();
    let violations = cluster.violations();
    console
        .line(format!("{made} pods created, {bindings} bound, {} invariant violations", violations.len()))?;
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

/// Fills a cluster with nodes of three zones, a tenth of them with a GPU.
pub(crate) fn fill(cluster: &TestCluster, nodes: usize) -> Result<(), Problem> {
    let made = cluster.create_many((0..nodes).map(node));
    made.map_err(|refusal| Problem::error(format!("cannot make nodes: {}", refusal.message())))
}

fn node(i: usize) -> Value {
    let name = format!("node-{i:04}");
    let gpu = i.is_multiple_of(10);
    let mut amounts = json!({"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"});
    if gpu {
        amounts["example.com/gpu"] = "4".into();
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{}", ["a", "b", "c"][i % 3]),
            "node.kubernetes.io/instance-type": if gpu { "gpu" } else { "general" },
        }},
        "status": {
            "capacity": amounts, "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Demo", "message": "pretends to be ready"}],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "osImage": "none", "kernelVersion": "none",
                         "containerRuntimeVersion": "none"},
        },
    })
}

/// Pods of some everyday kinds, in turn.
fn pod(i: usize) -> Value {
    let (app, cpu, memory) = [
        ("web", "250m", "256Mi"),
        ("web", "250m", "256Mi"),
        ("api", "500m", "512Mi"),
        ("cache", "200m", "2Gi"),
        ("batch", "1", "1Gi"),
        ("train", "2", "4Gi"),
    ][i % 6];
    let selector = json!({"matchLabels": {"app": app}});
    let mut requests = json!({"cpu": cpu, "memory": memory});
    let mut spec = json!({});
    match app {
        "web" | "api" => {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector}]);
        }
        "cache" => {
            spec["affinity"] = json!({"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}}]}});
        }
        "train" => requests["example.com/gpu"] = "1".into(),
        _ => {}
    }
    spec["containers"] = json!([{"name": "main", "image": format!("registry.example/{app}:1"),
                                "resources": {"requests": requests}}]);
    json!({"apiVersion": "v1", "kind": "Pod",
           "metadata": {"name": format!("{app}-{i:06}"), "namespace": "default", "labels": {"app": app}},
           "spec": spec})
}

/// Makes pods, lets them go again, and tells how it goes. How many were made.
async fn stream(
    options: &Options,
    cluster: &TestCluster,
    stop: &CancellationToken,
    console: &mut Console,
) -> Result<usize, Failure> {
    let started = Instant::now();
    let until = options.time.and_then(|time| Some(started + time.to_std()?));
    let (mut made, mut gone) = (0_usize, 0_usize);
    let mut reported = started;
    let mut bound_before = 0;
    while !stop.is_cancelled() && until.is_none_or(|until| Instant::now() < until) {
        let due = (started.elapsed().as_secs_f64() * options.rate as f64) as usize;
        while made < due {
            let created = cluster.create(pod(made));
            created.map_err(|refusal| Problem::error(format!("cannot make a pod: {}", refusal.message())))?;
            made += 1;
        }
        let old = started.elapsed().saturating_sub(LIFETIME).as_secs_f64() * options.rate as f64;
        while gone < old as usize {
            let name = pod(gone)["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            // Somebody may have deleted it with kubectl.
            let _ = cluster.delete("pods", "default", &name);
            gone += 1;
        }
        if reported.elapsed() >= REPORT_EVERY {
            let bound = cluster.bindings().len();
            let rate = (bound - bound_before) as f64 / reported.elapsed().as_secs_f64();
            console.note(format!(
                "{:>4} s: {made} pods created, {bound} bound ({rate:.0} a second), {gone} deleted",
                started.elapsed().as_secs()
            ));
            (reported, bound_before) = (Instant::now(), bound);
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(TICK) => {}
        }
    }
    Ok(made)
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
            ..all
        }
    }
}

/// Runs a cluster in memory until it is told to stop.
pub(crate) fn run_cluster(options: &ClusterCommand, console: &mut Console) -> Result<Ending, Failure> {
    let cluster = start_cluster(options.cluster_options())?;
    console.note(NOTICE);
    fill(&cluster, options.nodes)?;
    console.line(cluster.url())?;
    console.flush()?;
    let stop = CancellationToken::new();
    runtime()?.block_on(async {
        tokio::spawn(stop_on_signal(stop.clone()));
        stop.cancelled().await;
    });
    Ok(Ending::Well)
}
