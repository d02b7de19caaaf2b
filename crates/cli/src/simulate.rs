//! `supercargo simulate`: where would the pending pods go?

mod rows;

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use serde::Serialize;
use supercargo_engine::Placement;
use supercargo_framework::{preemption::Nomination, registry::Registry};
use supercargo_model::{Name, Pod};
use supercargo_scheduler::offline::{Attempt, OfflineScheduler};
use supercargo_sim::{report::Report, simulate::Input};

use crate::{
    extender_calls::{ExtenderCaller, decide},
    failure::{Ending, Failure},
    objects::{Inputs, offline},
    output::Console,
};
use rows::Rows;

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

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let given = options.inputs.read(console, registry)?;
    let (configuration, mut extender_caller) = (given.configuration, given.extender_caller);
    let seed_and_time = (options.inputs.seed, given.now);
    let begin = |input: Input, extender_caller: Option<&ExtenderCaller>| {
        offline(input, &configuration, registry, seed_and_time, extender_caller)
    };
    let input = Input::new(given.objects);
    let other_schedulers = if options.output == Format::Json {
        let outline = Outline::of(begin(input.clone(), extender_caller.as_ref())?, extender_caller.as_mut());
        if let Some(extender_caller) = &mut extender_caller {
            extender_caller.play_again();
        }
        let mut scheduler = begin(input, extender_caller.as_ref())?;
        print_json(&mut scheduler, &outline, options.time, extender_caller.as_mut(), console)?;
        scheduler.other_schedulers()
    } else {
        let mut scheduler = begin(input, extender_caller.as_ref())?;
        let nodes = scheduler.engine().cluster().node_count();
        let mut rows = Rows::new(nodes, options);
        let in_full = options.output == Format::Wide;
        while let Some((attempt, took)) =
            next(&mut scheduler, extender_caller.as_mut(), options.time, |_, _| in_full)
        {
            rows.add(attempt, took);
        }
        rows.print(console)?;
        scheduler.other_schedulers()
    };
    tell_left_alone(other_schedulers, console);
    if let Some(extender_caller) = extender_caller {
        extender_caller.tell_failures(console);
    }
    Ok(Ending::Well)
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
    /// The number of the last attempt, and whether what it came to could not be bound, by the pod's uid.
    last: HashMap<Name, (u32, bool)>,
    evicted: HashSet<Name>,
}

impl Outline {
    fn of(mut scheduler: OfflineScheduler, mut extender_caller: Option<&mut ExtenderCaller>) -> Self {
        let mut outline = Self::default();
        while let Some((attempt, _)) =
            next(&mut scheduler, extender_caller.as_deref_mut(), false, |_, _| false)
        {
            outline.evicted.extend(victims(&attempt.placement).map(|victim| victim.uid.clone()));
            outline.last.insert(attempt.pod.uid.clone(), (attempt.number, attempt.binding_failed));
        }
        outline
    }

    fn is_last(&self, attempt: &Attempt) -> bool {
        self.last.get(&attempt.pod.uid) == Some(&(attempt.number, attempt.binding_failed))
    }

    /// Whether nothing is decided about a pod after this attempt.
    fn is_decided(&self, uid: &str, number: u32) -> bool {
        self.last.get(uid).is_some_and(|(last, _)| *last == number)
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
struct Line {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_microseconds: Option<u128>,
}

/// Prints each pod's last attempt as it is made; nothing is kept.
fn print_json(
    scheduler: &mut OfflineScheduler,
    outline: &Outline,
    timed: bool,
    mut extender_caller: Option<&mut ExtenderCaller>,
    console: &mut Console,
) -> Result<(), Failure> {
    let mut made_room: HashMap<Name, Nomination> = HashMap::new();
    let in_full = |uid: &str, number| outline.is_decided(uid, number);
    while let Some((attempt, took)) = next(scheduler, extender_caller.as_deref_mut(), timed, in_full) {
        let uid = &attempt.pod.uid;
        if let (Placement::Decided(decision), true) = (&attempt.placement, outline.is_last(&attempt)) {
            let report = Report::new(decision).after(attempt.number, made_room.remove(uid).as_ref());
            let report = Report { evicted: outline.evicted.contains(uid), ..report };
            let line = Line { report, took_microseconds: took.map(|took| took.as_micros()) };
            console.line(serde_json::to_string(&line).map_err(std::io::Error::from)?)?;
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
