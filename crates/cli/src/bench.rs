//! `supercargo bench`: how fast is it, on the workloads that every scheduler is measured on?

mod simulate;
mod start;

use std::{fmt, fs, path::PathBuf, time::Duration};

use clap::ValueEnum;
use serde::Serialize;
use supercargo_config::Configuration;
use supercargo_framework::registry::Registry;
use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};
use supercargo_sim::bench::{self, BenchResult, BenchWorkload, Demand, Pace, Size};

use crate::{
    failure::{Ending, Failure},
    objects::read_configuration,
    output::{Console, Grid, Progress},
};
use simulate::SimulateRow;
use start::StartRow;

/// How many pods the from-scratch path is measured on at most: it takes milliseconds for each.
const FROM_SCRATCH_PODS: usize = 50;
const FROM_SCRATCH: Pace = Pace { fast: false, longest: Duration::from_secs(1) };
/// A slow workload is measured on as many pods as there is time for.
const FAST: Pace = Pace { fast: true, longest: Duration::from_secs(5) };
/// How many pods are bound for each node.
const PODS_PER_NODE: usize = 2;
const PODS_PER_NODE_AT_START: usize = 30;
const PODS_PER_NODE_TO_SIMULATE: usize = 4;

/// The shares of nodes that `sampled` scores, in percent; 0 adapts to the size of the cluster, as is the default.
const SAMPLES: [i32; 4] = [0, 5, 20, 50];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which workload
    #[arg(long, value_enum, default_value_t, value_name = "KIND")]
    kind: WorkloadChoice,

    /// How many nodes the cluster has
    #[arg(long, default_value_t = 5_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    nodes: u32,

    /// How many pods are bound before; two for each node without it, thirty for `start`, and four for `simulate`
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    bound: Option<u32>,

    /// How many pods are scheduled, if five seconds are enough for them; half as many for `simulate`
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

/// Which workload; the first five are those of kube-scheduler's own measurements.
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
    /// Pods of one template that fit nowhere
    Refused,
    /// The same, and before each of them something changes on one node
    RefusedChanged,
    /// Important pods on a full cluster, a thousand at most
    Preempt,
    /// The first five, scoring 0 (the default), 5, 20 and 50 percent of the nodes
    Sampled,
    /// 200 templates, while nodes and namespaces change
    Churn,
    /// A claim for each pod: on a zonal volume, or to be bound with the pod
    Volumes,
    /// The same, on nodes that can attach so many volumes
    Nodevolumelimits,
    /// A required anti-affinity by host and by zone
    AffinityRequired,
    /// Two hard spread constraints
    SpreadHard,
    /// An extender is asked about each pod; its own time is not counted
    Extender,
    /// A claim for a device, of 8 on each node
    Devices,
    /// A claim for two devices that are attached to the same root
    DevicesConstraints,
    /// A claim for a device of one model, or else of another
    DevicesAlternatives,
    /// The scheduler as a process: until all is listed and a first pod is bound
    Start,
    /// `simulate` as a process: from a file with the cluster to where the pending pods go, scoring every node
    Simulate,
    /// All of them, one after another
    #[default]
    All,
}

/// One line of what is measured.
#[derive(Clone, Copy)]
enum Measurement {
    Workload(BenchWorkload),
    /// With all nodes, and then with each share of them.
    Sampled(BenchWorkload),
    Start,
    Simulate,
}

impl WorkloadChoice {
    fn measurements(self) -> Vec<Measurement> {
        use Measurement::{Sampled, Simulate, Start, Workload};
        let sampled = || BenchWorkload::SAMPLED.into_iter().map(Sampled);
        match self {
            Self::Basic => vec![Workload(BenchWorkload::Basic)],
            Self::Nodeaffinity => vec![Workload(BenchWorkload::NodeAffinity)],
            Self::Spread => vec![Workload(BenchWorkload::Spread)],
            Self::Interpod => vec![Workload(BenchWorkload::InterPod)],
            Self::Unique => vec![Workload(BenchWorkload::Unique)],
            Self::Refused => vec![Workload(BenchWorkload::Refused)],
            Self::RefusedChanged => vec![Workload(BenchWorkload::RefusedChanged)],
            Self::Preempt => vec![Workload(BenchWorkload::Preempt)],
            Self::Sampled => sampled().collect(),
            Self::Churn => vec![Workload(BenchWorkload::Churn)],
            Self::Volumes => vec![Workload(BenchWorkload::Volumes)],
            Self::Nodevolumelimits => vec![Workload(BenchWorkload::NodeVolumeLimits)],
            Self::AffinityRequired => vec![Workload(BenchWorkload::AffinityRequired)],
            Self::SpreadHard => vec![Workload(BenchWorkload::SpreadHard)],
            Self::Extender => vec![Workload(BenchWorkload::Extender)],
            Self::Devices => vec![Workload(BenchWorkload::Devices(Demand::Plain))],
            Self::DevicesConstraints => vec![Workload(BenchWorkload::Devices(Demand::Constraints))],
            Self::DevicesAlternatives => vec![Workload(BenchWorkload::Devices(Demand::Alternatives))],
            Self::Start => vec![Start],
            Self::Simulate => vec![Simulate],
            Self::All => {
                let workloads = BenchWorkload::ALL.into_iter().map(Workload);
                workloads.chain(sampled()).chain([Start, Simulate]).collect()
            }
        }
    }
}

/// A line of figures.
#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Cycles(CycleRow),
    Start(StartRow),
    Simulate(SimulateRow),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycles(CycleRow { measured, percentage, .. }) => {
                let BenchResult { kind, pods_per_second, p50_us, p99_us, .. } = measured;
                write!(
                    f,
                    "{kind}, {percentage} % of nodes: {pods_per_second:.0} pods/s, p50 {p50_us:.1} µs, p99 {p99_us:.1} µs"
                )
            }
            Self::Start(row) => row.fmt(f),
            Self::Simulate(row) => row.fmt(f),
        }
    }
}

#[derive(Serialize)]
struct CycleRow {
    #[serde(flatten)]
    measured: BenchResult,
    /// How many percent of the nodes were scored; 0 adapts to the size of the cluster.
    percentage: i32,
    /// The most memory that the process held while it ran; 0 where the system does not tell.
    peak_rss_mb: u64,
    /// The same work, every plugin asked about every node; nothing, where there is no such way to do it.
    from_scratch_pods_per_second: Option<f64>,
    /// How many times faster that is.
    ratio: Option<f64>,
    /// How many times faster it is than scoring all nodes, where some are sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_all_nodes: Option<f64>,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let configuration = read_configuration(options.config.as_ref(), console, registry)?;
    let bench = Bench { options, configuration: &configuration, registry };
    let mut rows = Vec::new();
    let measurements = options.kind.measurements();
    let is_long = measurements.len() > 1;
    for measurement in measurements {
        for row in bench.measure(measurement, console)? {
            if options.json {
                console.line(serde_json::to_string(&row).unwrap_or_default())?;
                console.flush()?;
            } else if is_long {
                console.note(&row);
            }
            rows.push(row);
        }
    }
    if !options.json {
        print(&rows, console)?;
    }
    Ok(Ending::Well)
}

struct Bench<'a> {
    options: &'a Options,
    configuration: &'a Configuration,
    registry: &'a Registry,
}

impl Bench<'_> {
    fn measure(&self, measurement: Measurement, console: &Console) -> Result<Vec<Row>, Failure> {
        let nodes = self.options.nodes as usize;
        let bound = |for_each: usize| self.options.bound.map_or(nodes * for_each, |bound| bound as usize);
        let config = self.options.config.as_deref();
        let row = match measurement {
            Measurement::Workload(workload) => {
                Row::Cycles(self.cycles(workload, self.options.percentage, console)?)
            }
            Measurement::Sampled(workload) => return self.sampled(workload, console),
            Measurement::Start => Row::Start(start::measure(nodes, bound(PODS_PER_NODE_AT_START), config)?),
            Measurement::Simulate => {
                let (bound, pods) =
                    (bound(PODS_PER_NODE_TO_SIMULATE), self.options.pods.div_ceil(2) as usize);
                Row::Simulate(simulate::measure(nodes, bound, pods, config)?)
            }
        };
        Ok(vec![row])
    }

    /// A row for each share of the nodes, compared with all of them.
    fn sampled(&self, workload: BenchWorkload, console: &Console) -> Result<Vec<Row>, Failure> {
        let size = self.size(workload);
        let progress = Progress::new(size.pods, workload.name(), console);
        let all = self.once(workload, size, ALL_NODES, FAST, &progress)?.pods_per_second;
        let row = |percentage| {
            let mut row = self.cycles(workload, percentage, console)?;
            row.ratio_to_all_nodes = Some(row.measured.pods_per_second / all.max(f64::MIN_POSITIVE));
            Ok(Row::Cycles(row))
        };
        SAMPLES.into_iter().map(row).collect()
    }

    fn size(&self, workload: BenchWorkload) -> Size {
        let nodes = self.options.nodes as usize;
        let bound = self.options.bound.map_or(nodes * PODS_PER_NODE, |bound| bound as usize);
        workload.fit(Size { nodes, bound, pods: self.options.pods as usize })
    }

    fn cycles(
        &self,
        workload: BenchWorkload,
        percentage: i32,
        console: &Console,
    ) -> Result<CycleRow, Failure> {
        let size = self.size(workload);
        let progress = Progress::new(size.pods, workload.name(), console);
        let from_scratch = if workload.has_from_scratch_mode() {
            let few = Size { pods: size.pods.min(FROM_SCRATCH_PODS), ..size };
            Some(self.once(workload, few, percentage, FROM_SCRATCH, &progress)?.pods_per_second)
        } else {
            None
        };
        forget_peak();
        let measured = self.once(workload, size, percentage, FAST, &progress)?;
        progress.finish();
        Ok(CycleRow {
            percentage,
            peak_rss_mb: peak_rss_mb("self"),
            from_scratch_pods_per_second: from_scratch,
            ratio: from_scratch.map(|slow| measured.pods_per_second / slow.max(f64::MIN_POSITIVE)),
            ratio_to_all_nodes: None,
            measured,
        })
    }

    fn once(
        &self,
        workload: BenchWorkload,
        size: Size,
        percentage: i32,
        pace: Pace,
        progress: &Progress,
    ) -> Result<BenchResult, Failure> {
        let overrides = Overrides { percentage: Some(percentage), ..Overrides::default() };
        let cluster = bench::cluster(workload, size);
        let mut engine = setup::engine(cluster, self.configuration, self.registry, overrides)?;
        let pods = bench::pending(workload, size);
        Ok(bench::run(workload, size, &mut engine, pods, pace, |done| progress.at(done)))
    }
}

fn print(rows: &[Row], console: &mut Console) -> Result<(), Failure> {
    let mut grid = Grid::new([
        "KIND",
        ">% OF NODES",
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
        ">TO ALL NODES",
    ]);
    let cycles = || {
        rows.iter().filter_map(|row| match row {
            Row::Cycles(row) => Some(row),
            Row::Start(_) | Row::Simulate(_) => None,
        })
    };
    for row in cycles() {
        let measured = &row.measured;
        grid.row([
            measured.kind.to_owned(),
            row.percentage.to_string(),
            measured.nodes.to_string(),
            measured.bound.to_string(),
            measured.pods.to_string(),
            format!("{:.0}", measured.pods_per_second),
            format!("{:.1}", measured.p50_us),
            format!("{:.1}", measured.p99_us),
            format!("{:.1}", measured.p999_us),
            row.peak_rss_mb.to_string(),
            row.from_scratch_pods_per_second.map_or_else(String::new, |slow| format!("{slow:.0}")),
            row.ratio.map_or_else(String::new, |ratio| format!("{ratio:.0}×")),
            row.ratio_to_all_nodes.map_or_else(String::new, |ratio| format!("{ratio:.2}×")),
        ]);
    }
    if cycles().next().is_some() {
        console.grid(grid)?;
    }
    for row in rows {
        if !matches!(row, Row::Cycles(_)) {
            console.line(row)?;
        }
    }
    if let Some(row) = cycles().find(|row| row.measured.placed < row.measured.pods) {
        let BenchResult { kind, placed, pods, .. } = &row.measured;
        console.note(format!(
            "{kind}: only {placed} of {pods} pods came to what they were to; give it more nodes"
        ));
    }
    Ok(())
}

/// Lets the peak of memory start anew, where the system can.
fn forget_peak() {
    // Without it the peak includes what ran before; nothing else depends on it.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory that a process has held; 0 where the system does not tell.
fn peak_rss_mb(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}
