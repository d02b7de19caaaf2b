//! `supercargo load-test`: the real scheduler, as a process of its own, on a large cluster in memory under load.
//!
//! Pods come as fast as the server takes them while others end and nodes are relabelled; then far more come than fit, twice;
//! then the scheduler is killed and started again. All along it is measured how fast pods are bound, how long they waited,
//! how much memory the scheduler holds, whether it answers, and whether it keeps its lease.

mod client;
mod load;
mod objects;
mod process;
mod report;
mod watcher;

use std::{path::PathBuf, time::Duration};

use serde_json::Value;
use supercargo_manifest::Problem;
use supercargo_testcluster::{Kubelets, NOTICE, TestCluster, TestClusterOptions};

use crate::{
    failure::{Ending, Failure},
    input,
    output::Console,
};
use load::{Load, Size};
pub(crate) use process::SchedulerProcess;
use report::Report;

/// How many changes a watch may lag behind: as many as a kube-apiserver keeps at most.
const HISTORY_LIMIT: usize = 100 * 1024;

/// What can be said to `supercargo load-test`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many nodes the cluster has
    #[arg(long, default_value_t = 5_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,

    /// How many pods run there before
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    bound: u32,

    /// How many pods come as fast as the server takes them
    #[arg(long, default_value_t = 30_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pods: u32,

    /// How many more pods there is room for then
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    room: u32,

    /// How many times more pods come than there is room for
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    overload: u32,

    /// How many pods end in a second and are replaced
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    churn: u32,

    /// How long the load stays as it is, in each part
    #[arg(long, default_value = "15s", value_name = "DURATION")]
    hold: supercargo_config::Duration,

    /// The KubeSchedulerConfiguration; without it, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print one JSON object with all measurements
    #[arg(long)]
    json: bool,

    /// Write the course of the measurements to a file, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Runs the test.
pub(crate) fn run(options: &Options, console: &mut Console) -> Result<Ending, Failure> {
    let size = Size {
        nodes: options.nodes as usize,
        bound: options.bound as usize,
        pods: options.pods as usize,
        room: options.room as usize,
        overload: options.overload as usize,
        churn_per_second: options.churn,
        hold: options.hold.to_std().unwrap_or_default(),
    };
    console.note(NOTICE);
    let cluster = start_cluster()?;
    let mut load = Load::new(&cluster, size, options.config.clone())?;
    load.fill()?;
    let measured = load.run(console)?;
    let report = Report::new(size, measured);
    if let Some(path) = &options.plot {
        let written = std::fs::write(path, report.plot());
        written.map_err(|error| input::about(path, format!("cannot write this: {error}")))?;
    }
    match options.json {
        true => console.line(serde_json::to_string(&report).unwrap_or_default())?,
        false => report.print(console)?,
    }
    Ok(if report.is_well() { Ending::Well } else { Ending::Found })
}

/// Fills a cluster with nodes and pods that run there, and one that waits.
pub(crate) fn fill_for_start(cluster: &TestCluster, nodes: usize, bound: usize) -> Result<(), Problem> {
    cluster.create_many(objects_to_simulate(nodes, bound, 1)).map_err(load::refused)
}

/// Nodes, pods that run there, and pods that wait.
pub(crate) fn objects_to_simulate(nodes: usize, bound: usize, pods: usize) -> impl Iterator<Item = Value> {
    let size =
        Size { nodes, bound, pods, room: nodes, overload: 1, churn_per_second: 0, hold: Duration::ZERO };
    let running = (0..bound).map(move |number| objects::running_pod(number, size));
    let waiting = (bound..bound + pods).map(objects::pod);
    (0..nodes).map(move |number| objects::node(number, size)).chain(running).chain(waiting)
}

fn start_cluster() -> Result<TestCluster, Problem> {
    let options = TestClusterOptions {
        history_limit: HISTORY_LIMIT,
        kubelets: Some(Kubelets { start_delay: Duration::from_millis(20), ..Kubelets::default() }),
        ..TestClusterOptions::default()
    };
    TestCluster::start(options)
        .map_err(|error| Problem::error(format!("cannot listen on a port of this machine: {error}")))
}
