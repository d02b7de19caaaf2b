//! `supercargo bench`: how fast is it, on the workloads that every scheduler is measured on?

use std::{fs, path::PathBuf};

use clap::ValueEnum;
use serde::Serialize;
use supercargo_config::Configuration;
use supercargo_framework::registry::Registry;
use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};
use supercargo_sim::bench::{self, BenchResult, BenchWorkload, Demand, Size};

use crate::{
    failure::{Ending, Failure},
    objects::read_configuration,
    output::{Console, Grid, Progress},
};

/// How many pods the from-scratch path is measured on: it takes milliseconds for each.
const FROM_SCRATCH_PODS: usize = 50;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which workload
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    kind: WorkloadChoice,

    /// How many nodes the cluster has
    #[arg(long, default_value_t = 5_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,

    /// How many pods are bound before
    #[arg(long, default_value_t = 10_000, value_name = "B", value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    bound: u32,

    /// How many pods are scheduled
    #[arg(long, default_value_t = 20_000, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pods: u32,

    /// How many percent of the nodes are scored; 0 adapts to the size of the cluster
    #[arg(long, default_value_t = ALL_NODES, value_name = "PERCENT", value_parser = clap::value_parser!(i32).range(0..=100))]
    percentage: i32,

    /// A KubeSchedulerConfiguration, to see what its plugins cost; without one, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print one JSON object for each kind
    #[arg(long)]
    json: bool,
}

/// Which workload; the kinds are those of kube-scheduler's own measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum WorkloadChoice {
    /// cpu and memory, nothing else
    Basic,
    /// A preferred node affinity
    Nodeaffinity,
    /// Two soft spread constraints
    Spread,
    /// A preferred affinity and anti-affinity between pods
    Interpod,
    /// Every pod has a shape of its own
    Unique,
    /// A claim for a device, of 8 on each node
    Devices,
    /// A claim for two devices that are attached to the same root
    DevicesConstraints,
    /// A claim for a device of one model, or else of another
    DevicesAlternatives,
    /// All without devices, one after another
    #[default]
    All,
}

impl WorkloadChoice {
    fn workloads(self) -> Vec<BenchWorkload> {
        match self {
            Self::Basic => vec![BenchWorkload::Basic],
            Self::Nodeaffinity => vec![BenchWorkload::NodeAffinity],
            Self::Spread => vec![BenchWorkload::Spread],
            Self::Interpod => vec![BenchWorkload::InterPod],
            Self::Unique => vec![BenchWorkload::Unique],
            Self::Devices => vec![BenchWorkload::Devices(Demand::Plain)],
            Self::DevicesConstraints => vec![BenchWorkload::Devices(Demand::Constraints)],
            Self::DevicesAlternatives => vec![BenchWorkload::Devices(Demand::Alternatives)],
            Self::All => BenchWorkload::ALL.to_vec(),
        }
    }
}

#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    measured: BenchResult,
    /// The most memory that the process held while it ran; 0 where the system does not tell.
    peak_rss_mb: u64,
    /// The same work, every plugin asked about every node.
    from_scratch_pods_per_second: f64,
    /// How many times faster that is.
    ratio: f64,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let size =
        Size { nodes: options.nodes as usize, bound: options.bound as usize, pods: options.pods as usize };
    let configuration = read_configuration(options.config.as_ref(), console, registry)?;
    let mut rows = Vec::new();
    for workload in options.kind.workloads() {
        let row = measure(workload, size, options.percentage, &configuration, console, registry)?;
        if options.json {
            console.line(serde_json::to_string(&row).unwrap_or_default())?;
            console.flush()?;
        }
        rows.push(row);
    }
    if !options.json {
        print(&rows, console)?;
    }
    Ok(Ending::Well)
}

fn measure(
    workload: BenchWorkload,
    size: Size,
    percentage: i32,
    configuration: &Configuration,
    console: &Console,
    registry: &Registry,
) -> Result<Row, Failure> {
    let overrides = Overrides { percentage: Some(percentage), ..Overrides::default() };
    let once = |size: Size, fast: bool, progress: &Progress| -> Result<BenchResult, Failure> {
        let cluster = bench::cluster(workload, size);
        let mut engine = setup::engine(cluster, configuration, registry, overrides)?;
        let pods = bench::pending(workload, size);
        Ok(bench::run(workload, size, &mut engine, pods, fast, |done| progress.at(done)))
    };
    let few = Size { pods: size.pods.min(FROM_SCRATCH_PODS), ..size };
    let progress = Progress::new(size.pods, workload.name(), console);
    let from_scratch = once(few, false, &progress)?;
    forget_peak();
    let measured = once(size, true, &progress)?;
    progress.finish();
    Ok(Row {
        peak_rss_mb: peak_rss_mb(),
        from_scratch_pods_per_second: from_scratch.pods_per_second,
        ratio: measured.pods_per_second / from_scratch.pods_per_second.max(f64::MIN_POSITIVE),
        measured,
    })
}

fn print(rows: &[Row], console: &mut Console) -> Result<(), Failure> {
    let mut grid = Grid::new([
        "KIND",
        ">NODES",
        ">BOUND",
        ">PODS",
        ">PODS/S",
        ">P50 µs",
        ">P99 µs",
        ">P99.9 µs",
        ">PEAK MB",
        ">FROM SCRATCH/S",
        ">RATIO",
    ]);
    for Row { measured, peak_rss_mb, from_scratch_pods_per_second, ratio } in rows {
        grid.row([
            measured.kind.to_owned(),
            measured.nodes.to_string(),
            measured.bound.to_string(),
            measured.pods.to_string(),
            format!("{:.0}", measured.pods_per_second),
            format!("{:.1}", measured.p50_us),
            format!("{:.1}", measured.p99_us),
            format!("{:.1}", measured.p999_us),
            peak_rss_mb.to_string(),
            format!("{from_scratch_pods_per_second:.0}"),
            format!("{ratio:.0}×"),
        ]);
    }
    console.grid(grid)?;
    if let Some(row) = rows.iter().find(|row| row.measured.placed < row.measured.pods) {
        let BenchResult { kind, placed, pods, .. } = &row.measured;
        console.note(format!("{kind}: only {placed} of {pods} pods found a node; give it more nodes"));
    }
    Ok(())
}

/// Lets the peak of memory start anew, where the system can.
fn forget_peak() {
    // Without it the peak includes what ran before; nothing else depends on it.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn peak_rss_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
