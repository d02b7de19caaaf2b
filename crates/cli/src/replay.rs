//! `supercargo replay`: the history of a cluster at full speed, measured.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::PathBuf,
    time::{Duration, Instant},
};

use serde::Serialize;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problem;
use supercargo_sim::{
    compare::shown,
    measures::{Measures, PodMix, Sample, Unit},
    replay::{Left, PodHistory, Replay, ReplayOptions, replay},
};

use crate::{
    arguments::Format,
    failure::{Ending, Failure},
    input,
    objects::{read_configuration, tell_extenders},
    output::{Console, Grid, Progress},
    traces::{self, span, sparkline},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The trace: what `supercargo record` writes, packed or not; several files of one recording in their order
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILE")]
    trace: Vec<PathBuf>,

    /// A KubeSchedulerConfiguration; without one, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// What ties are broken by: the same seed gives the same placements
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Put pods where the recording says, to measure what was recorded
    #[arg(long)]
    follow_recording: bool,

    /// Write what became of each pod to a file, as JSON lines
    #[arg(long, value_name = "FILE")]
    placements: Option<PathBuf>,

    /// How many samples are taken over time, about
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    samples: u32,

    /// How results are printed: for people, or JSON lines: one for each pod, and a last one with the measures
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let configuration = read_configuration(options.config.as_ref(), console, registry)?;
    tell_extenders(&configuration, console);
    let began = Instant::now();
    let declared = configuration.declared(registry);
    let trace = traces::trace(&options.trace, &declared, console)?;
    let mix = PodMix::of(&trace);
    let how = ReplayOptions {
        seed: options.seed,
        follow_recording: options.follow_recording,
        samples: options.samples,
    };
    let progress = Progress::new(trace.events.len(), "events", console);
    let replayed = replay(&trace, &mix, (&configuration, registry), how, || progress.step());
    progress.finish();
    let replayed = replayed?;
    let took = began.elapsed();
    console.note(format!("{} events, {} pods in {took:.1?}", trace.events.len(), replayed.pods.len()));
    if replayed.other_schedulers > 0 {
        let count = replayed.other_schedulers;
        console.note(format!("{count} pods of other schedulers went where the trace says"));
    }
    if let Some(path) = &options.placements {
        write_placements(path, &replayed)?;
    }
    match options.output {
        Format::Json => print_json(&replayed, options.seed, console)?,
        Format::Table => print_tables(&replayed, console)?,
    }
    Ok(Ending::Well)
}

/// What became of a pod, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PodLine<'p> {
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'p str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_node: Option<&'p str>,
    arrived_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    placed_seconds: Option<f64>,
    pending_seconds: f64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    left: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'p str>,
}

impl<'p> PodLine<'p> {
    fn new(pod: &'p PodHistory, end: Duration) -> Self {
        let left = |left: Left| match left {
            Left::Deleted => "Deleted",
            Left::Finished => "Finished",
            Left::Evicted => "Evicted",
        };
        Self {
            pod: pod.pod.to_string(),
            node: pod.placed.as_ref().map(|(node, _)| &**node),
            recorded_node: pod.recorded.as_deref(),
            arrived_seconds: pod.arrived.as_secs_f64(),
            placed_seconds: pod.placed.as_ref().map(|(_, at)| at.as_secs_f64()),
            pending_seconds: pod.pending(end).as_secs_f64(),
            attempts: pod.attempts,
            left: pod.left.map(|(how, _)| left(how)),
            left_seconds: pod.left.map(|(_, at)| at.as_secs_f64()),
            message: pod.message.as_deref(),
        }
    }
}

fn write_placements(path: &PathBuf, replayed: &Replay) -> Result<(), Failure> {
    let refused =
        |error: std::io::Error| -> Problem { input::about(path, format!("cannot write this: {error}")) };
    let mut file = BufWriter::new(File::create(path).map_err(refused)?);
    for pod in &replayed.pods {
        let line =
            serde_json::to_string(&PodLine::new(pod, replayed.length)).map_err(std::io::Error::from)?;
        writeln!(file, "{line}").map_err(refused)?;
    }
    Ok(file.flush().map_err(refused)?)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'r> {
    /// A number in JSON may lose digits.
    seed: String,
    length_seconds: f64,
    measures: &'r Measures,
    recorded: Recorded,
    over_time: &'r [Sample],
}

#[derive(Serialize)]
struct SummaryLine<'r> {
    summary: Summary<'r>,
}

fn print_json(replayed: &Replay, seed: u64, console: &mut Console) -> Result<(), Failure> {
    let write = |text: serde_json::Result<String>| text.map_err(std::io::Error::from);
    for pod in &replayed.pods {
        console.line(write(serde_json::to_string(&PodLine::new(pod, replayed.length)))?)?;
    }
    let summary = Summary {
        seed: seed.to_string(),
        length_seconds: replayed.length.as_secs_f64(),
        measures: &replayed.measures,
        recorded: Recorded::of(replayed),
        over_time: &replayed.samples,
    };
    console.line(write(serde_json::to_string(&SummaryLine { summary }))?)?;
    Ok(())
}

/// How the replay compares with where pods went when the trace was recorded.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recorded {
    same_node: usize,
    other_node: usize,
    only_recorded: usize,
}

impl Recorded {
    fn of(replayed: &Replay) -> Self {
        let mut counts = Self { same_node: 0, other_node: 0, only_recorded: 0 };
        for pod in &replayed.pods {
            match (&pod.recorded, &pod.placed) {
                (Some(recorded), Some((node, _))) if recorded == node => counts.same_node += 1,
                (Some(_), Some(_)) => counts.other_node += 1,
                (Some(_), None) => counts.only_recorded += 1,
                (None, _) => {}
            }
        }
        counts
    }

    fn all(&self) -> usize {
        self.same_node + self.other_node + self.only_recorded
    }
}

fn print_tables(replayed: &Replay, console: &mut Console) -> Result<(), Failure> {
    let measures = &replayed.measures;
    let number = |value: usize| shown(Unit::Count, value as f64);
    console.line(format!(
        "{} pods in {}: {} placed, {} never, {} of these pending at the end",
        number(measures.pods),
        span(replayed.length.as_secs_f64()),
        number(measures.placed),
        number(measures.never_placed),
        number(measures.pending_at_end)
    ))?;
    let pending = &measures.pending_seconds;
    console.line(format!(
        "pending for: p50 {}, p90 {}, p99 {}, at most {}",
        span(pending.p50),
        span(pending.p90),
        span(pending.p99),
        span(pending.max)
    ))?;
    console.line(format!(
        "{} preemptions, {} evictions, {} spread violations; {} nodes in use on average",
        number(measures.preemptions),
        number(measures.evictions),
        number(measures.spread_violations),
        shown(Unit::Count, measures.nodes_in_use)
    ))?;
    print_resources(replayed, console)?;
    print_recorded(replayed, console)?;
    print_pending(replayed, console)
}

fn print_resources(replayed: &Replay, console: &mut Console) -> Result<(), Failure> {
    console.heading("RESOURCES")?;
    let mut grid = Grid::new([
        "RESOURCE",
        ">UTILISATION",
        ">PEAK",
        ">IMBALANCE",
        ">EMPTIEST",
        ">FULLEST",
        ">FRAGMENTATION",
        ">UNUSABLE",
    ]);
    for of in &replayed.measures.resources {
        let shares = [
            of.utilisation,
            of.utilisation_peak,
            of.imbalance,
            of.imbalance_min,
            of.imbalance_max,
            of.fragmentation,
            of.unusable,
        ];
        let shares = shares.map(|value| shown(Unit::Share, value));
        grid.row(std::iter::once(of.resource.to_string()).chain(shares));
    }
    console.grid(grid)?;
    if replayed.samples.len() < 2 {
        return Ok(());
    }
    console.heading("UTILISATION OVER TIME")?;
    let mut grid = Grid::new(["RESOURCE", "0 … PEAK"]);
    for (i, of) in replayed.measures.resources.iter().enumerate() {
        let values: Vec<f64> =
            replayed.samples.iter().map(|sample| sample.resources[i].utilisation).collect();
        grid.row([of.resource.to_string(), sparkline(&values, 60, of.utilisation_peak)]);
    }
    Ok(console.grid(grid)?)
}

fn print_recorded(replayed: &Replay, console: &mut Console) -> Result<(), Failure> {
    const MOST: usize = 10;
    let recorded = Recorded::of(replayed);
    if recorded.all() == 0 {
        return Ok(());
    }
    console.heading("RECORDED PLACEMENTS")?;
    console.line(format!(
        "{} of {} pods went to the node that was recorded; {} to another, {} to none",
        recorded.same_node,
        recorded.all(),
        recorded.other_node,
        recorded.only_recorded
    ))?;
    let differs = |pod: &&PodHistory| {
        pod.recorded.is_some() && pod.recorded.as_ref() != pod.placed.as_ref().map(|(node, _)| node)
    };
    for pod in replayed.pods.iter().filter(differs).take(MOST) {
        let placed = pod.placed.as_ref().map_or("on no node", |(node, _)| node);
        console.line(format!(
            "  {}: recorded on {}, replayed on {placed}",
            pod.pod,
            pod.recorded.as_deref().unwrap_or_default()
        ))?;
    }
    Ok(())
}

fn print_pending(replayed: &Replay, console: &mut Console) -> Result<(), Failure> {
    const MOST: usize = 10;
    let pending: Vec<&PodHistory> = replayed.pods.iter().filter(|pod| pod.placed.is_none()).collect();
    if pending.is_empty() {
        return Ok(());
    }
    console.heading("NEVER PLACED")?;
    for pod in pending.iter().take(MOST) {
        let why = pod.message.as_deref().unwrap_or("was not tried");
        let text = format!("{} ({}): {why}", pod.pod, span(pod.pending(replayed.length).as_secs_f64()));
        console.hanging("", "  ", &text)?;
    }
    if pending.len() > MOST {
        console.line(format!("… and {} more", pending.len() - MOST))?;
    }
    Ok(())
}
