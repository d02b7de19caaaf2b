//! `supercargo simulate`: where would the pending pods go?

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use serde::Serialize;
use supercargo_engine::{Decision, Outcome};
use supercargo_framework::registry::Registry;
use supercargo_model::Pod;
use supercargo_sim::{
    report::Report,
    setup::{self, Overrides},
    simulate::{Input, Schedule, Summary},
};

use crate::{
    consult::{Consultant, decide_next},
    explain::print_nomination,
    failure::{Ending, Failure},
    objects::Inputs,
    output::{Console, Grid, listed},
    style::paint,
};

/// How many pods are listed above a message that they share.
const MAX_PODS_OF_A_MESSAGE: usize = 20;
/// How many nodes are listed that have the same total.
const MAX_TIED_NODES: usize = 3;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    inputs: Inputs,

    /// How results are printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    /// Show how long each decision took; the output is then no longer reproducible
    #[arg(long)]
    time: bool,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// For people with wide terminals: also the priority, the profile and the other nodes with the same total
    Wide,
    /// For programs: an object for each pod, one a line
    Json,
}

/// A pod and what came of it.
struct Decided {
    pod: Arc<Pod>,
    decision: Decision,
    /// Where times were asked for.
    took: Option<Duration>,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let given = options.inputs.read(console, registry)?;
    let mut input = Input::new(given.objects);
    input.cluster.set_now(given.now);
    let overrides = Overrides { seed: options.inputs.seed, ..Overrides::default() };
    let mut engine = setup::engine(input.cluster, &given.configuration, registry, overrides)?;
    let mut consultant = given.consultant;
    engine.set_extenders(consultant.as_ref().map(Consultant::roles).unwrap_or_default());
    let mut schedule = Schedule::new(&mut engine, input.pending);
    let mut summary = Summary { other_schedulers: schedule.other_schedulers(), ..Summary::default() };
    let mut all = Vec::new();
    while let Some(decided) = next(&mut schedule, consultant.as_mut(), options.time) {
        schedule.place(&decided.pod, &decided.decision);
        summary.count(&decided.decision.outcome);
        match options.output {
            Format::Json => print_json(&decided, console)?,
            Format::Table | Format::Wide => all.push(decided),
        }
    }
    if options.output != Format::Json {
        print_tables(&all, options, console)?;
        print_summary(summary, &all, options, console)?;
    }
    tell_left_alone(summary, console);
    if let Some(consultant) = consultant {
        consultant.tell_failures(console);
    }
    Ok(Ending::Well)
}

fn next(schedule: &mut Schedule<'_>, consultant: Option<&mut Consultant>, timed: bool) -> Option<Decided> {
    let start = timed.then(Instant::now);
    let (pod, decision) = decide_next(schedule, consultant)?;
    let took = start.map(|start| start.elapsed());
    Some(Decided { pod, decision, took })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_microseconds: Option<u128>,
}

fn print_json(decided: &Decided, console: &mut Console) -> Result<(), Failure> {
    let line = Line {
        report: Report::new(&decided.decision),
        took_microseconds: decided.took.map(|took| took.as_micros()),
    };
    let json = serde_json::to_string(&line).map_err(std::io::Error::from)?;
    console.line(json)?;
    Ok(())
}

fn print_tables(all: &[Decided], options: &Options, console: &mut Console) -> Result<(), Failure> {
    if all.is_empty() {
        return Ok(());
    }
    let grid = placements(all, options, console);
    console.grid(grid)?;
    let of = |wanted: fn(&Decided) -> bool| all.iter().filter(move |decided| wanted(decided));
    let with_room = |decided: &Decided| matches!(decided.decision.preemption, Some(Ok(_)));
    let without_room = |decided: &Decided| {
        decided.decision.outcome == Outcome::Unschedulable
            && !matches!(decided.decision.preemption, Some(Ok(_)))
    };
    print_messages("Unschedulable", of(without_room), console)?;
    print_room(of(with_room), console)?;
    print_messages("Held back", of(|decided| decided.decision.outcome == Outcome::Gated), console)?;
    let failed = |decided: &Decided| matches!(decided.decision.outcome, Outcome::Error { .. });
    print_messages("Failed", of(failed), console)
}

fn placements(all: &[Decided], options: &Options, console: &Console) -> Grid {
    let mut header = vec!["POD", "NODE", ">TOTAL", ">TIES", ">FEASIBLE"];
    if options.time {
        header.push(">TIME");
    }
    if options.output == Format::Wide {
        header.extend([">PRIORITY", "SCHEDULER", "TIED WITH"]);
    }
    let mut grid = Grid::new(header);
    for decided in all {
        let decision = &decided.decision;
        let dash = || "-".to_owned();
        let mut cells = vec![
            decision.pod.to_string(),
            place(decision),
            decision.best_total().map_or_else(dash, |total| total.to_string()),
            if decision.best.is_empty() { dash() } else { decision.best.len().to_string() },
            feasible(decision),
        ];
        cells.extend(decided.took.map(|took| format!("{took:.1?}")));
        if options.output == Format::Wide {
            let others = decision.best.iter().filter(|name| Some(*name) != decision.node());
            let others: Vec<String> = others.map(ToString::to_string).collect();
            cells.push(decided.pod.spec.priority.to_string());
            cells.push(decision.scheduler_name.to_string());
            cells.push(if others.is_empty() { dash() } else { listed(&others, MAX_TIED_NODES) });
        }
        let palette = &console.palette;
        let style = match &decision.outcome {
            Outcome::Scheduled { .. } => anstyle::Style::new(),
            Outcome::Unschedulable if decision.victims().is_empty() => palette.bad,
            Outcome::Unschedulable => palette.caution,
            Outcome::Gated => palette.faint,
            Outcome::Error { .. } => palette.bad,
        };
        grid.styled_row(style, cells);
    }
    grid
}

/// The node, or why there is none.
fn place(decision: &Decision) -> String {
    match (&decision.outcome, &decision.preemption) {
        (Outcome::Scheduled { node }, _) => node.to_string(),
        (Outcome::Unschedulable, Some(Ok(nomination))) => format!("<nominated: {}>", nomination.node),
        (Outcome::Unschedulable, _) => "<unschedulable>".to_owned(),
        (Outcome::Gated, _) => "<gated>".to_owned(),
        (Outcome::Error { .. }, _) => "<error>".to_owned(),
    }
}

/// How many nodes are feasible, of how many; a pod that is held back is not compared with nodes.
fn feasible(decision: &Decision) -> String {
    match decision.outcome {
        Outcome::Gated => "-".to_owned(),
        _ => format!("{}/{}", decision.feasible.len(), decision.node_count),
    }
}

/// Pods that are told the same are told it together.
fn print_messages<'d>(
    title: &str,
    decided: impl Iterator<Item = &'d Decided>,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for Decided { decision, .. } in decided {
        let message = decision.message().unwrap_or_default();
        let pod = decision.pod.to_string();
        match groups.iter_mut().find(|(other, _)| *other == message) {
            Some((_, pods)) => pods.push(pod),
            None => groups.push((message, vec![pod])),
        }
    }
    if !groups.is_empty() {
        console.heading(title)?;
    }
    for (message, pods) in groups {
        console.paragraph("  ", &listed(&pods, MAX_PODS_OF_A_MESSAGE))?;
        console.paragraph("    ", &message)?;
    }
    Ok(())
}

fn print_room<'d>(decided: impl Iterator<Item = &'d Decided>, console: &mut Console) -> Result<(), Failure> {
    let mut decided = decided.peekable();
    if decided.peek().is_some() {
        console.heading("Waiting for preemption")?;
    }
    for Decided { decision, .. } in decided {
        let Some(Ok(nomination)) = &decision.preemption else { continue };
        console.paragraph("  ", &decision.pod.to_string())?;
        console.paragraph("    ", &decision.message().unwrap_or_default())?;
        print_nomination("    ", nomination, console)?;
    }
    Ok(())
}

fn print_summary(
    summary: Summary,
    all: &[Decided],
    options: &Options,
    console: &mut Console,
) -> Result<(), Failure> {
    let palette = console.palette;
    let counts = [
        (summary.scheduled, "scheduled", palette.good),
        (summary.unschedulable, "unschedulable", palette.bad),
        (summary.gated, "gated", palette.caution),
        (summary.errors, "failed", palette.bad),
    ];
    let counts = counts.into_iter().filter(|(count, name, _)| *count > 0 || *name == "scheduled");
    let counts: Vec<String> = counts
        .map(|(count, name, style)| {
            paint(if count > 0 { style } else { palette.faint }, format!("{count} {name}"))
        })
        .collect();
    let noun = if all.len() == 1 { "pod" } else { "pods" };
    let space = if all.is_empty() { "" } else { "\n" };
    let seed = options.inputs.seed;
    console.line(format!("{space}{} {noun}: {} (seed {seed})", all.len(), counts.join(", ")))?;
    Ok(())
}

fn tell_left_alone(summary: Summary, console: &mut Console) {
    match summary.other_schedulers {
        0 => {}
        1 => console.note("skipped 1 pod of another scheduler"),
        n => console.note(format!("skipped {n} pods of other schedulers")),
    }
}
