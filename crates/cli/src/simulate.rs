//! `supercargo simulate`: where would the pending pods go?

mod rows;
mod totals;

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use serde::Serialize;
use supercargo_engine::{Outcome, Placement};
use supercargo_framework::{preemption::Nomination, registry::Registry};
use supercargo_model::{Key, Name, Pod};
use supercargo_scheduler::offline::{Attempt, OfflineScheduler};
use supercargo_sim::{
    report::PodReport, resource_claims::devices_of, simulate::Input, utilisation::Utilisation,
};

use crate::{
    extender_calls::{ExtenderCaller, decide},
    failure::{Ending, Failure},
    objects::{Inputs, offline},
    output::{Console, Progress, Structured},
    utilisation::UtilisationChange,
};
use rows::Rows;
use totals::Totals;

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    inputs: Inputs,

    /// How results are printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    /// Print JSON over several lines, with indents
    #[arg(long)]
    pretty: bool,

    /// Print totals only: how many pods were placed, and how much of the cluster is used before and after
    #[arg(long)]
    summary: bool,

    /// End with exit code 1 if a pod stays pending, gated pods aside
    #[arg(long)]
    fail_on_unschedulable: bool,

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
    /// For programs: a document for each pod
    Yaml,
    /// For scripts: namespace/name of each pod, and its node, or `-`
    Name,
}

impl Format {
    fn structured(self, pretty: bool) -> Option<Structured> {
        match self {
            Self::Json if pretty => Some(Structured::PrettyJson),
            Self::Json => Some(Structured::Json),
            Self::Yaml => Some(Structured::Yaml),
            Self::Table | Self::Wide | Self::Name => None,
        }
    }
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let mut given = options.inputs.read(console, registry)?;
    let mut extender_caller = given.extender_caller.take();
    let seed_and_time = (options.inputs.seed, given.now);
    let configuration = &given.configuration;
    let begin = |input: Input, extender_caller: Option<&ExtenderCaller>| {
        offline(input, configuration, registry, seed_and_time, extender_caller)
    };
    let input = Input::new(given.objects);
    if input.pending.is_empty() {
        console.note("no pending pods; use --pods to say what is to be scheduled");
    }
    let pending = input.pending.len();
    let structured = options.output.structured(options.pretty);
    let (scheduler, mut totals) = if let Some(structured) = structured.filter(|_| !options.summary) {
        let outline = Outline::of(
            begin(input.clone(), extender_caller.as_ref())?,
            extender_caller.as_mut(),
            &Progress::new(2 * pending, "pods", console),
        );
        if let Some(extender_caller) = &mut extender_caller {
            extender_caller.play_again();
        }
        let mut scheduler = begin(input, extender_caller.as_ref())?;
        let printing = Printing { structured, timed: options.time, was_on: &given.was_on };
        print_each(&mut scheduler, &outline, &printing, extender_caller.as_mut(), console)?;
        (scheduler, outline.totals())
    } else {
        let mut scheduler = begin(input, extender_caller.as_ref())?;
        let nodes = scheduler.engine().cluster().node_count();
        let mut rows = Rows::new(nodes, options, &given.was_on);
        let in_full = options.output == Format::Wide && !options.summary;
        let progress = Progress::new(pending, "pods", console);
        while let Some((attempt, took)) =
            next(&mut scheduler, extender_caller.as_mut(), options.time, |_, _| in_full)
        {
            let devices = devices_of(scheduler.engine().cluster(), &attempt.pod);
            rows.add(attempt, devices, took);
            progress.at(rows.len());
        }
        progress.finish();
        if !options.summary {
            rows.print(console)?;
        }
        (scheduler, rows.totals())
    };
    totals.moved_from(&given.was_on, scheduler.engine().cluster());
    let change = UtilisationChange::new(&given.before, &Utilisation::of(scheduler.engine().cluster()));
    tell_totals(options, &totals, &change, console)?;
    tell_left_alone(scheduler.other_schedulers(), console);
    if let Some(extender_caller) = extender_caller {
        extender_caller.tell_failures(console);
    }
    let pending = options.fail_on_unschedulable && totals.unschedulable > 0;
    Ok(if pending || totals.failed > 0 { Ending::Found } else { Ending::Well })
}

/// Says what all of it came to: as data where people or `--summary` ask for it, as talk beside other data.
fn tell_totals(
    options: &Options,
    totals: &Totals,
    change: &UtilisationChange,
    console: &mut Console,
) -> Result<(), Failure> {
    let line = totals.line(options.inputs.seed, &console.palette);
    match (options.output, options.output.structured(options.pretty)) {
        (_, Some(structured)) if options.summary => {
            console.structured(structured, &totals::Summary::new(totals, change))?;
        }
        (Format::Table | Format::Wide, _) => {
            change.print(console)?;
            let gap = if totals.is_empty() && change.is_empty() { "" } else { "\n" };
            console.line(format!("{gap}{line}"))?;
        }
        (Format::Name, _) if options.summary => console.line(line)?,
        _ => console.note(totals.line(options.inputs.seed, &Default::default())),
    }
    if totals.failed > 0 {
        console.warnings(&totals.failures().into());
    }
    Ok(())
}

/// The next attempt, and how long it took to decide if that was asked for; with a full record where one is wanted.
fn next(
    scheduler: &mut OfflineScheduler,
    mut extender_caller: Option<&mut ExtenderCaller>,
    timed: bool,
    in_full: impl Fn(&str, u32) -> bool,
) -> Option<(Attempt, Option<Duration>)> {
    let mut took = None;
    let attempt = scheduler.next_attempt(|engine, pod, number| {
        let start = timed.then(Instant::now);
        let placement = decide(engine, pod, in_full(&pod.uid, number), extender_caller.as_deref_mut());
        took = start.map(|start| start.elapsed());
        placement
    })?;
    Some((attempt, took.or(timed.then_some(Duration::ZERO))))
}

/// What a whole run came to, so that a second one can tell of each pod once and at its last attempt, and need not keep the
/// records of the others.
#[derive(Default)]
struct Outline {
    /// The number of the last attempt and how it ended, by the pod's uid.
    last: HashMap<Name, (u32, Outcome)>,
    evicted: HashSet<Name>,
    evictions: usize,
}

impl Outline {
    fn of(
        mut scheduler: OfflineScheduler,
        mut extender_caller: Option<&mut ExtenderCaller>,
        progress: &Progress,
    ) -> Self {
        let mut outline = Self::default();
        while let Some((attempt, _)) =
            next(&mut scheduler, extender_caller.as_deref_mut(), false, |_, _| false)
        {
            outline.evictions += victims(&attempt.placement).filter(|victim| !victim.terminating).count();
            outline.evicted.extend(victims(&attempt.placement).map(|victim| victim.uid.clone()));
            outline.last.insert(attempt.pod.uid.clone(), (attempt.number, outcome(&attempt.placement)));
            progress.at(outline.last.len());
        }
        progress.finish();
        outline
    }

    /// Whether nothing is decided about a pod after this attempt.
    fn is_decided(&self, uid: &str, number: u32) -> bool {
        self.last.get(uid).is_some_and(|(last, _)| *last == number)
    }

    /// Whether this is what came of a pod. An attempt whose binding fails is told twice.
    fn is_last(&self, attempt: &Attempt) -> bool {
        let last = self.last.get(&attempt.pod.uid);
        last.is_some_and(|(last, end)| *last == attempt.number && *end == outcome(&attempt.placement))
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals { evicted: self.evictions, ..Totals::default() };
        self.last.values().for_each(|(_, outcome)| totals.count(outcome));
        totals
    }
}

fn outcome(placement: &Placement) -> Outcome {
    match placement {
        Placement::On { node, .. } => Outcome::Scheduled { node: node.clone() },
        Placement::Decided(decision) => decision.outcome.clone(),
    }
}

fn victims(placement: &Placement) -> impl Iterator<Item = &Pod> {
    nomination(placement).into_iter().flat_map(|nomination| &nomination.victims).map(|victim| &**victim)
}

/// The room that an attempt makes.
pub(crate) fn nomination(placement: &Placement) -> Option<&Nomination> {
    match placement {
        Placement::Decided(decision) => decision.preemption.as_ref().and_then(|made| made.as_ref().ok()),
        Placement::On { .. } => None,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    #[serde(flatten)]
    report: PodReport,
    /// The node that it was on before it was drained, lost, or to be decided anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    was_on: Option<&'a Name>,
    /// The devices that it has got, as `driver/pool/device`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_microseconds: Option<u128>,
}

/// How each pod is printed.
struct Printing<'a> {
    structured: Structured,
    timed: bool,
    was_on: &'a HashMap<Key, Name>,
}

/// Prints each pod's last attempt as it is made; nothing is kept.
fn print_each(
    scheduler: &mut OfflineScheduler,
    outline: &Outline,
    printing: &Printing<'_>,
    mut extender_caller: Option<&mut ExtenderCaller>,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut made_room: HashMap<Name, Nomination> = HashMap::new();
    let in_full = |uid: &str, number| outline.is_decided(uid, number);
    while let Some((attempt, took)) = next(scheduler, extender_caller.as_deref_mut(), printing.timed, in_full)
    {
        let uid = &attempt.pod.uid;
        if let (Placement::Decided(decision), true) = (&attempt.placement, outline.is_last(&attempt)) {
            let report = PodReport::new(decision).after(attempt.number, made_room.remove(uid).as_ref());
            let report = PodReport { evicted: outline.evicted.contains(uid), ..report };
            let was_on = printing.was_on.get(&attempt.pod.key());
            let devices = devices_of(scheduler.engine().cluster(), &attempt.pod);
            let line = Line { report, was_on, devices, took_microseconds: took.map(|took| took.as_micros()) };
            console.structured(printing.structured, &line)?;
        } else if let Some(nomination) = nomination(&attempt.placement) {
            made_room.insert(uid.clone(), nomination.clone());
        }
    }
    Ok(())
}

fn tell_left_alone(other_schedulers: usize, console: &mut Console) {
    match other_schedulers {
        0 => {}
        1 => console.note("skipped 1 pod of another scheduler"),
        n => console.note(format!("skipped {n} pods of other schedulers")),
    }
}
