//! `supercargo explain`: why does a pod go where it goes, or nowhere?

mod find;
mod header;
mod influence;
mod rejections;
mod scores;
mod server;
mod why_not;

use std::sync::Arc;

use supercargo_config::{Configuration, TieBreak};
use supercargo_engine::{Engine, Explained, Placement};
use supercargo_framework::{
    preemption::Nomination,
    registry::{Point, Registry},
};
use supercargo_manifest::{Problem, Problems};
use supercargo_model::{Name, Pod, Timestamp, object::Object};
use supercargo_scheduler::offline::OfflineScheduler;
use supercargo_sim::{explanation::Explanation, simulate::Input};

pub(crate) use server::{AskedScheduler, said};

use crate::{
    arguments::DocumentFormat,
    extender_calls::{self, ExtenderCaller},
    failure::{Ending, Failure},
    objects::{Inputs, offline},
    output::Console,
    simulate::nomination,
    style::harmless,
};

/// How many nodes are shown, unless more or fewer are asked for.
const DEFAULT_TOP: usize = 30;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The pod: its name, pod/NAME, or NAMESPACE/NAME
    #[arg(value_name = "POD")]
    pod: String,

    /// A node that it does not go to, or goes to: who refuses it, and why; or how far it is behind. May be repeated
    #[arg(long = "node", value_delimiter = ',', value_name = "NAME")]
    nodes: Vec<Name>,

    #[command(flatten)]
    inputs: Inputs,

    #[command(flatten)]
    server: AskedScheduler,

    /// How the result is printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: DocumentFormat,

    /// JSON over many lines
    #[arg(long)]
    pretty: bool,

    /// Show what plugins gave before it was normalized, too
    #[arg(long)]
    raw: bool,

    /// Show so many of the best nodes, in place of 30
    #[arg(long, value_name = "N", conflicts_with = "all")]
    top: Option<usize>,

    /// Show all nodes, however many there are
    #[arg(long, visible_alias = "all-nodes")]
    all: bool,
}

/// How much is shown.
#[derive(Clone, Copy)]
struct Shown {
    nodes: usize,
    /// All names of nodes that share a reason, too.
    all: bool,
    raw: bool,
}

impl Options {
    /// The pod's name, with its namespace if that was given.
    fn pod_name(&self) -> String {
        self.inputs.qualified(find::without_kind(&self.pod))
    }

    fn shown(&self) -> Shown {
        let nodes = if self.all { usize::MAX } else { self.top.unwrap_or(DEFAULT_TOP) };
        Shown { nodes, all: self.all, raw: self.raw }
    }
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let mut explanation = if options.server.is_given() {
        options.server.ask(&options.pod_name(), &options.nodes)?
    } else {
        explain(options, console, registry)?
    };
    match options.output.structured(options.pretty) {
        None => print(&explanation, options.shown(), console)?,
        Some(structured) => {
            if let Some(top) = options.top {
                explanation.nodes.truncate(top);
            }
            console.structured(structured, &explanation)?;
        }
    }
    Ok(Ending::Well)
}

/// Decides what was read, and explains the pod.
fn explain(options: &Options, console: &mut Console, registry: &Registry) -> Result<Explanation, Failure> {
    let given = options.inputs.read(console, registry)?;
    let mut extender_caller = given.extender_caller;
    let cluster = ReadCluster {
        objects: given.objects,
        configuration: &given.configuration,
        registry,
        seed_and_time: (options.inputs.seed, given.now),
    };
    let explanation = cluster.explain(&options.pod_name(), &options.nodes, extender_caller.as_mut())?;
    if let Some(extender_caller) = extender_caller {
        extender_caller.tell_failures(console);
    }
    Ok(explanation)
}

/// A cluster that was read, and by what rules its pods are scheduled.
pub(crate) struct ReadCluster<'a> {
    pub(crate) objects: Vec<Object>,
    pub(crate) configuration: &'a Configuration,
    pub(crate) registry: &'a Registry,
    /// What ties are broken by, and when it is.
    pub(crate) seed_and_time: (u64, Timestamp),
}

impl ReadCluster<'_> {
    /// Schedules its pods, and explains one of them, also with regard to some nodes.
    pub(crate) fn explain(
        mut self,
        name: &str,
        nodes: &[Name],
        mut extender_caller: Option<&mut ExtenderCaller>,
    ) -> Result<Explanation, Problems> {
        let pod = find::find(&self.objects, name)?;
        let bound_to = pod.node.as_ref().map(ToString::to_string);
        let (pod, alone) =
            if bound_to.is_some() { find::unbind(&mut self.objects, &pod) } else { (pod, false) };
        if let Some(extender_caller) = extender_caller.as_mut().filter(|_| alone) {
            extender_caller.unbind(&pod);
        }
        let mut input = Input::new(self.objects);
        if alone {
            input.pending = vec![pod.clone()];
        }
        let Self { configuration, registry, seed_and_time, .. } = self;
        let scheduler = offline(input, configuration, registry, seed_and_time, extender_caller.as_deref())?;
        check_nodes(scheduler.engine(), nodes)?;
        if scheduler.engine().profile(&pod.spec.scheduler_name).is_none() {
            let names = configuration.profiles.iter().map(|profile| &*profile.scheduler_name);
            return Err(other_scheduler(&pod, &names.collect::<Vec<_>>()).into());
        }
        let attempts = Asked { pod: &pod, nodes }.decide(scheduler, extender_caller)?;
        Ok(Explanation { bound_to, ..attempts.document(configuration) })
    }
}

fn other_scheduler(pod: &Pod, profiles: &[&str]) -> Problem {
    let name = &pod.spec.scheduler_name;
    let message =
        format!("pod {} asks for the scheduler {name}, and the configuration has no such profile", pod.key());
    Problem::error(message).hint(format!("it has: {}", profiles.join(", ")))
}

/// A node that is asked about has to exist: a slip would be answered with nothing.
fn check_nodes(engine: &Engine, nodes: &[Name]) -> Result<(), Problem> {
    let unknown = nodes.iter().find(|name| engine.cluster().node(name).is_none());
    let Some(unknown) = unknown else { return Ok(()) };
    let problem = Problem::error(format!("there is no node {unknown}"));
    let names = engine.cluster().nodes().map(|node| &**node.name());
    Err(match supercargo_manifest::nearest(unknown, names) {
        Some(near) => problem.hint(format!("did you mean {near}?")),
        None => problem.hint(format!("{} nodes were read", engine.cluster().node_count())),
    })
}

/// What is to be explained.
struct Asked<'a> {
    pod: &'a Pod,
    nodes: &'a [Name],
}

/// What came of the pod.
struct Attempts {
    /// The last attempt.
    last: Explained,
    /// How many there were.
    count: u32,
    /// The attempt before it that room was made for.
    made_room: Option<Explained>,
    /// It had to leave later for a more important one.
    evicted: bool,
    /// How many pods were scheduled before it.
    pods_before: usize,
}

impl Asked<'_> {
    /// Its name tells it: copied files may name a uid twice.
    fn is_meant(&self, pod: &Pod) -> bool {
        pod.name == self.pod.name && pod.namespace == self.pod.namespace
    }

    /// Schedules all pods until nothing more can happen, and keeps what came of one.
    fn decide(
        &self,
        mut scheduler: OfflineScheduler,
        mut extender_caller: Option<&mut ExtenderCaller>,
    ) -> Result<Attempts, Problem> {
        let mut placed = 0;
        let mut attempts: Option<Attempts> = None;
        let (mut made_room, mut evicted) = (None, false);
        loop {
            // Explained before anything comes of it, in the state that it was decided in.
            let mut explained = None;
            let attempt = scheduler.next_attempt(|engine, pod, _| {
                let is_meant = self.is_meant(pod);
                let placement = extender_calls::decide(engine, pod, is_meant, extender_caller.as_deref_mut());
                if let (true, Some(Placement::Decided(decision))) = (is_meant, &placement) {
                    explained = Some(engine.explain(pod, (**decision).clone(), self.nodes));
                }
                placement
            });
            let Some(attempt) = attempt else { break };
            let placement = attempt.placement;
            evicted |=
                nomination(&placement).is_some_and(|made| made.victims.iter().any(|pod| self.is_meant(pod)));
            placed += usize::from(placement.node().is_some());
            let Placement::Decided(decision) = placement else { continue };
            if self.is_meant(&attempt.pod) {
                let pods_before = placed - usize::from(decision.node().is_some());
                // A gated pod is told of before anything is decided.
                let last = explained
                    .unwrap_or_else(|| scheduler.engine().explain(&attempt.pod, *decision, self.nodes));
                let earlier = attempts.take().map(|attempts| attempts.last);
                made_room = earlier
                    .filter(|earlier| matches!(earlier.decision.preemption, Some(Ok(_))))
                    .or(made_room);
                let count = attempt.number;
                attempts = Some(Attempts { last, count, made_room: None, evicted: false, pods_before });
            }
        }
        let attempts = attempts.map(|attempts| Attempts { made_room, evicted, ..attempts });
        attempts.ok_or_else(|| Problem::error(format!("pod {} is not in the queue", self.pod.key())))
    }
}

impl Attempts {
    fn document(&self, configuration: &Configuration) -> Explanation {
        let document = |explained: &Explained| document(explained, configuration);
        let mut explanation = document(&self.last);
        let made = self.made_room.as_ref().and_then(|earlier| earlier.decision.preemption.as_ref());
        let made_room: Option<&Nomination> = made.and_then(|made| made.as_ref().ok());
        explanation.report = explanation.report.after(self.count, made_room);
        explanation.report.evicted = self.evicted;
        explanation.pods_before = self.pods_before;
        explanation.earlier_attempt = self.made_room.as_ref().map(|earlier| Box::new(document(earlier)));
        explanation
    }
}

/// The document of a decision that was made under a configuration.
pub(crate) fn document(explained: &Explained, configuration: &Configuration) -> Explanation {
    let name = &explained.decision.scheduler_name;
    let profile = configuration.profiles.iter().find(|profile| profile.scheduler_name == *name);
    let scoring = profile.map_or(&[][..], |profile| profile.at(Point::Score));
    let tie_break = match configuration.tie_break {
        TieBreak::Random => supercargo_engine::TieBreak::Random,
        TieBreak::First => supercargo_engine::TieBreak::First,
    };
    Explanation::new(explained, tie_break, scoring.iter().map(|choice| &*choice.plugin))
}

fn print(explanation: &Explanation, shown: Shown, console: &mut Console) -> Result<(), Failure> {
    header::print(explanation, console)?;
    print_allotments(explanation, console)?;
    if !explanation.nodes.is_empty() {
        scores::print(explanation, shown, console)?;
        scores::print_tie(explanation, console)?;
        scores::print_silent(explanation, console)?;
        influence::print(explanation, console)?;
    }
    rejections::print(explanation, shown.all, console)?;
    print_preemption(explanation, console)?;
    if let Some(earlier) = &explanation.earlier_attempt {
        print_earlier(earlier, shown.all, console)?;
    }
    why_not::print(explanation, console)
}

/// What the pod is allotted on its node, and what is left there.
fn print_allotments(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    for allotment in &explanation.allotments {
        console.heading(format!("Allotted on {} by {}", harmless(&allotment.node), allotment.plugin))?;
        for detail in &allotment.details {
            console.hanging("  - ", "    ", &detail.text)?;
        }
    }
    Ok(())
}

/// The attempt that room was made for, so that a later one could end well.
fn print_earlier(earlier: &Explanation, all: bool, console: &mut Console) -> Result<(), Failure> {
    console.heading("An earlier attempt")?;
    console.paragraph("  ", earlier.report.message.as_deref().unwrap_or_default())?;
    rejections::print(earlier, all, console)?;
    print_preemption(earlier, console)
}

/// Where room could be made, and whom that hurts. Why it could not is part of the message.
fn print_preemption(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    let Some(preemption) = &explanation.report.preemption else { return Ok(()) };
    if explanation.victims.is_empty() {
        return Ok(());
    }
    console.heading("Preemption")?;
    console.paragraph("  ", &format!("room is made on {} by evicting", preemption.nominated_node))?;
    for victim in &explanation.victims {
        let owner = victim.owner.as_ref().map_or_else(String::new, |owner| format!(", of {owner}"));
        let budgets = victim.budgets.iter().map(|budget| match budget.violated {
            true => format!(
                "; violates the disruption budget {} ({} evicted, {} allowed)",
                budget.name, budget.victims, budget.disruptions_allowed
            ),
            false => format!("; within the disruption budget {}", budget.name),
        });
        let budgets: String = budgets.collect();
        let text = format!("{} (priority {}{owner}){budgets}", victim.pod, victim.priority);
        console.paragraph("    ", &text)?;
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

/// A pod as a scheduler sees it that has no node yet.
pub(crate) fn unbound(pod: &Pod) -> Arc<Pod> {
    Arc::new(Pod { node: None, nominated_node: None, ..pod.clone() })
}
