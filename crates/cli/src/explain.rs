//! `supercargo explain`: why does a pod go where it goes, or nowhere?

mod find;
mod rejections;
mod scores;

use std::collections::BTreeMap;

use serde::Serialize;
use supercargo_config::Configuration;
use supercargo_engine::{Decision, Outcome, Placement};
use supercargo_framework::{preemption::Nomination, registry::Registry};
use supercargo_manifest::Problem;
use supercargo_model::Pod;
use supercargo_scheduler::offline::OfflineScheduler;
use supercargo_sim::{report::Report, simulate::Input};

use crate::{
    arguments::Format,
    extender_calls::{self, ExtenderCaller},
    failure::{Ending, Failure},
    objects::{Inputs, offline},
    output::Console,
    simulate::nomination,
    style::paint,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The pod: its name, or namespace/name
    #[arg(value_name = "POD")]
    pod: String,

    #[command(flatten)]
    inputs: Inputs,

    /// How the result is printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    /// Show what plugins gave before it was normalized, too
    #[arg(long)]
    raw: bool,

    /// Show all nodes, however many there are
    #[arg(long)]
    all_nodes: bool,
}

/// What there is to explain.
struct Explanation {
    /// The last attempt.
    decision: Decision,
    /// How many there were.
    attempts: u32,
    /// The attempt before it that room was made for.
    made_room: Option<Decision>,
    /// It had to leave later for a more important one.
    evicted: bool,
    /// The node that the pod runs on in fact.
    bound_to: Option<String>,
    /// How many pods were scheduled before it.
    pods_before: usize,
    configuration: Configuration,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let mut given = options.inputs.read(console, registry)?;
    let pod = find::find(&given.objects, &options.inputs.qualified(&options.pod))?;
    let bound_to = pod.node.as_ref().map(ToString::to_string);
    let (pod, alone) = if bound_to.is_some() { find::unbind(&mut given.objects, &pod) } else { (pod, false) };
    let mut extender_caller = given.extender_caller.take();
    if let Some(extender_caller) = extender_caller.as_mut().filter(|_| alone) {
        extender_caller.unbind(&pod);
    }
    let mut input = Input::new(given.objects);
    if alone {
        input.pending = vec![pod.clone()];
    }
    let seed_and_time = (options.inputs.seed, given.now);
    let scheduler = offline(input, &given.configuration, registry, seed_and_time, extender_caller.as_ref())?;
    if scheduler.engine().profile(&pod.spec.scheduler_name).is_none() {
        let names = given.configuration.profiles.iter().map(|profile| &*profile.scheduler_name);
        return Err(other_scheduler(&pod, &names.collect::<Vec<_>>()).into());
    }
    let mut explanation = decide(scheduler, &pod, given.configuration, extender_caller.as_mut())?;
    explanation.bound_to = bound_to;
    match options.output {
        Format::Table => print(&explanation, options, console)?,
        Format::Json => print_json(&explanation, console)?,
    }
    if let Some(extender_caller) = extender_caller {
        extender_caller.tell_failures(console);
    }
    Ok(Ending::Well)
}

fn other_scheduler(pod: &Pod, profiles: &[&str]) -> Problem {
    let name = &pod.spec.scheduler_name;
    let message =
        format!("pod {} asks for the scheduler {name}, and the configuration has no such profile", pod.key());
    Problem::error(message).hint(format!("it has: {}", profiles.join(", ")))
}

/// Schedules all pods until nothing more can happen, and keeps what came of one. Its name tells it: copied files may name a
/// uid twice.
fn decide(
    mut scheduler: OfflineScheduler,
    pod: &Pod,
    configuration: Configuration,
    mut extender_caller: Option<&mut ExtenderCaller>,
) -> Result<Explanation, Failure> {
    let is_meant = |other: &Pod| other.name == pod.name && other.namespace == pod.namespace;
    let mut placed = 0;
    let mut explanation: Option<Explanation> = None;
    let mut made_room = None;
    let mut evicted = false;
    while let Some(attempt) = scheduler.next_attempt(|engine, pod, _| {
        extender_calls::decide(engine, pod, is_meant(pod), extender_caller.as_deref_mut())
    }) {
        let placement = attempt.placement;
        evicted |= nomination(&placement).is_some_and(|made| made.victims.iter().any(|pod| is_meant(pod)));
        placed += usize::from(placement.node().is_some());
        let Placement::Decided(decision) = placement else { continue };
        if is_meant(&attempt.pod) {
            let earlier = explanation.take().map(|explanation| explanation.decision);
            made_room = earlier.filter(|earlier| matches!(earlier.preemption, Some(Ok(_)))).or(made_room);
            let pods_before = placed - usize::from(decision.node().is_some());
            explanation = Some(Explanation {
                decision: *decision,
                attempts: attempt.number,
                made_room: None,
                evicted: false,
                bound_to: None,
                pods_before,
                configuration: configuration.clone(),
            });
        }
    }
    let explanation = explanation.map(|explanation| Explanation { made_room, evicted, ..explanation });
    explanation.ok_or_else(|| Problem::error(format!("pod {} is not in the queue", pod.key())).into())
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained<'d> {
    #[serde(flatten)]
    report: Report,
    /// What plugins gave before normalizing, in the order of the feasible nodes.
    raw: BTreeMap<&'d str, Vec<i64>>,
    nodes: usize,
    evaluated: usize,
    pods_before: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound_to: Option<&'d str>,
}

impl Explanation {
    fn report(&self) -> Report {
        let made_room = self.made_room.as_ref().and_then(|earlier| earlier.preemption.as_ref());
        let made_room = made_room.and_then(|made| made.as_ref().ok());
        Report::new(&self.decision).after(self.attempts, made_room)
    }
}

fn print_json(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    let decision = &explanation.decision;
    let mut by_name: Vec<usize> = (0..decision.feasible.len()).collect();
    by_name.sort_by_key(|i| &decision.feasible[*i]);
    let explained = Explained {
        report: Report { evicted: explanation.evicted, ..explanation.report() },
        raw: (decision.scores.columns.iter())
            .map(|column| (&*column.plugin, by_name.iter().map(|i| column.raw[*i]).collect()))
            .collect(),
        nodes: decision.node_count,
        evaluated: decision.evaluated(),
        pods_before: explanation.pods_before,
        bound_to: explanation.bound_to.as_deref(),
    };
    console.line(serde_json::to_string(&explained).map_err(std::io::Error::from)?)?;
    Ok(())
}

fn print(explanation: &Explanation, options: &Options, console: &mut Console) -> Result<(), Failure> {
    print_header(explanation, options, console)?;
    let decision = &explanation.decision;
    if !decision.scores.totals.is_empty() {
        scores::print(decision, options.raw, options.all_nodes, console)?;
        scores::print_tie(decision, explanation.configuration.tie_break, console)?;
        let mut profiles = explanation.configuration.profiles.iter();
        let profile = profiles.find(|profile| profile.scheduler_name == decision.scheduler_name);
        scores::print_silent(decision, profile, console)?;
    }
    rejections::print(decision, options.all_nodes, console)?;
    print_preemption(decision, console)?;
    if let Some(earlier) = &explanation.made_room {
        print_earlier(earlier, options, console)?;
    }
    Ok(())
}

/// The attempt that room was made for, so that a later one could end well.
fn print_earlier(earlier: &Decision, options: &Options, console: &mut Console) -> Result<(), Failure> {
    console.heading("An earlier attempt")?;
    console.paragraph("  ", &earlier.message().unwrap_or_default())?;
    rejections::print(earlier, options.all_nodes, console)?;
    print_preemption(earlier, console)
}

fn print_header(explanation: &Explanation, options: &Options, console: &mut Console) -> Result<(), Failure> {
    let decision = &explanation.decision;
    let palette = console.palette;
    let (style, verdict) = match &decision.outcome {
        Outcome::Scheduled { node } => (palette.good, format!("goes to {node}")),
        Outcome::Unschedulable => (palette.bad, "is unschedulable".to_owned()),
        Outcome::Gated => (palette.caution, "is gated".to_owned()),
        Outcome::Error { .. } => (palette.bad, "cannot be decided".to_owned()),
    };
    let pod = paint(palette.heading, crate::style::harmless(&decision.pod.to_string()));
    console.line(format!("{pod} {}", paint(style, crate::style::harmless(&verdict))))?;
    if let Some(message) = decision.message() {
        console.paragraph("  ", &message)?;
    }
    let mut facts =
        vec![format!("profile {}", decision.scheduler_name), format!("seed {}", options.inputs.seed)];
    if let Some(total) = decision.best_total() {
        facts.insert(0, format!("total {total}"));
    }
    if decision.outcome != Outcome::Gated {
        facts.insert(
            facts.len() - 2,
            format!("{} of {} nodes feasible", decision.feasible.len(), decision.node_count),
        );
    }
    console.paragraph("  ", &facts.join(", "))?;
    if explanation.evicted {
        console.paragraph("  ", "It has to leave again, for a more important pod.")?;
    }
    match (&explanation.bound_to, explanation.pods_before) {
        (Some(node), _) => {
            let text = format!(
                "It runs on {node}. This is what would be decided if it were pending, on the cluster without it."
            );
            console.paragraph("  ", &text)?;
        }
        (None, 0) => {}
        (None, 1) => console.paragraph("  ", "1 pod before it in the queue was placed first.")?,
        (None, n) => {
            console.paragraph("  ", &format!("{n} pods before it in the queue were placed first."))?
        }
    }
    Ok(())
}

/// Where room could be made. Why it could not is part of the message.
fn print_preemption(decision: &Decision, console: &mut Console) -> Result<(), Failure> {
    if let Some(Ok(nomination)) = &decision.preemption {
        console.heading("Preemption")?;
        print_nomination("  ", nomination, console)?;
    }
    Ok(())
}

/// Where room is made, and who has to go.
pub(crate) fn print_nomination(
    indent: &str,
    nomination: &Nomination,
    console: &mut Console,
) -> Result<(), Failure> {
    console.paragraph(indent, &format!("room is made on {} by evicting", nomination.node))?;
    for victim in &nomination.victims {
        let text = format!("{} (priority {})", victim.key(), victim.spec.priority);
        console.paragraph(&format!("{indent}  "), &text)?;
    }
    Ok(())
}
