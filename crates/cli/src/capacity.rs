//! `supercargo capacity`: how many more pods like this one fit, where, and what runs out first?

use std::path::PathBuf;

use serde::Serialize;
use supercargo_config::Configuration;
use supercargo_engine::Engine;
use supercargo_framework::registry::Registry;
use supercargo_manifest::{Problem, Problems};
use supercargo_model::{Pod, Timestamp, object::Object};
use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};
use supercargo_sim::{
    capacity::{self, Capacity, Limit, Zone},
    simulate::Input,
    utilisation::Utilisation,
};

use crate::{
    arguments::DocumentFormat,
    extender_calls::{ExtenderCaller, decide},
    failure::{Ending, Failure},
    input,
    objects::{Given, Inputs, Making, WORKLOADS, reader, tell_skipped},
    output::{Console, Grid, Progress},
    style::paint,
    utilisation::{UtilisationChange, UtilisationSummary},
};

/// How many nodes are listed unless all are asked for.
const MAX_LISTED_NODES: usize = 20;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The pod, or a workload whose pods are meant; `-` for stdin
    #[arg(long, value_name = "FILE")]
    pod: PathBuf,

    /// Stop when so many fit
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max: usize,

    /// List all nodes, however many there are
    #[arg(long)]
    all_nodes: bool,

    #[command(flatten)]
    inputs: Inputs,

    /// How the result is printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: DocumentFormat,

    /// Print JSON over several lines, with indents
    #[arg(long)]
    pretty: bool,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let mut given = options.inputs.read(console, registry)?;
    let (pod, others) = read_pod(options, &given, console, registry)?;
    given.objects.extend(others);
    let mut extender_caller = given.extender_caller.take();
    let mut engine = filled_engine(
        Input::new(given.objects),
        &given.configuration,
        registry,
        (options.inputs.seed, given.now),
        extender_caller.as_mut(),
        console,
    )?;
    let before = Utilisation::of(engine.cluster());
    let progress = Progress::new(options.max, "pods at most", console);
    let filled = capacity::fill(
        &mut engine,
        &pod,
        options.max,
        |engine, pod| decide(engine, pod, false, extender_caller.as_mut()),
        |fits| {
            if fits % 1000 == 0 {
                progress.at(fits);
            }
        },
    );
    progress.finish();
    let capacity = match filled {
        None => return Err(other_scheduler(&pod, &given.configuration).into()),
        Some(Err(message)) => {
            return Err(Problem::error(format!("a plugin failed on {}: {message}", pod.key())).into());
        }
        Some(Ok((capacity, _))) => capacity,
    };
    let change = UtilisationChange::new(&before, &Utilisation::of(engine.cluster()));
    print(&capacity, &change, options, console)?;
    if let Some(extender_caller) = extender_caller {
        extender_caller.tell_failures(console);
    }
    Ok(Ending::Well)
}

/// The pod that is meant, and the objects that come with it.
fn read_pod(
    options: &Options,
    given: &Given,
    console: &mut Console,
    registry: &Registry,
) -> Result<(Pod, Vec<Object>), Problems> {
    let declared = given.configuration.declared(registry);
    let mut reader = reader(&declared);
    let namespace = options.inputs.namespace.as_deref();
    reader.expect_new(WORKLOADS, namespace);
    for source in input::manifests([&options.pod])? {
        reader.read(&source);
    }
    let mut objects = reader.finish()?;
    objects.objects.extend(given.completing.iter().cloned());
    let making = Making { replicas: Some(1), namespace, declared: &declared };
    making.complete(&mut objects, &given.objects, console)?;
    tell_skipped(&objects, console);
    let (mut pods, others): (Vec<Object>, Vec<Object>) =
        objects.objects.into_iter().partition(|object| matches!(object, Object::Pod(_)));
    let about = |message: &str, hint: &str| Problems::from(input::about(&options.pod, message).hint(hint));
    match (pods.pop(), pods.is_empty()) {
        (Some(Object::Pod(pod)), true) if !is_daemon(&pod) => Ok((pod, others)),
        (Some(Object::Pod(pod)), _) if is_daemon(&pod) => {
            Err(about("daemons run once on every node", "give the pod of another workload"))
        }
        (Some(_), _) => {
            Err(about("there is more than one pod in this file", "give one pod, or one workload"))
        }
        (None, _) => Err(about("there is no pod in this file", "give a pod, or a workload that makes pods")),
    }
}

fn is_daemon(pod: &Pod) -> bool {
    pod.spec.controller.as_ref().is_some_and(|owner| &*owner.kind == "DaemonSet")
}

/// An engine over the cluster, with the pods that wait for a node placed where there is one. It looks at all nodes, whatever
/// the configuration says: what stops pods is to be told of each.
fn filled_engine(
    mut input: Input,
    configuration: &Configuration,
    registry: &Registry,
    (seed, now): (u64, Timestamp),
    mut extender_caller: Option<&mut ExtenderCaller>,
    console: &mut Console,
) -> Result<Engine, Problems> {
    input.cluster.set_now(now);
    let overrides = Overrides { seed, percentage: Some(ALL_NODES) };
    let mut engine = setup::engine(input.cluster, configuration, registry, overrides)?;
    engine.set_extenders(extender_caller.as_deref().map(ExtenderCaller::roles).unwrap_or_default());
    let mut placed = 0;
    let waiting = input.pending.len();
    for pod in input.pending {
        let pod = engine.admit(pod);
        if engine.profile(&pod.spec.scheduler_name).is_none() || engine.held(&pod).is_some() {
            continue;
        }
        let placement = decide(&mut engine, &pod, false, extender_caller.as_deref_mut());
        if let Some(node) = placement.as_ref().and_then(|placement| placement.node()).cloned() {
            engine.assume(&pod, node);
            placed += 1;
        }
    }
    if waiting > 0 {
        console.note(format!(
            "{placed} of {waiting} pending pods are placed first; nobody is evicted for the others"
        ));
    }
    Ok(engine)
}

fn other_scheduler(pod: &Pod, configuration: &Configuration) -> Problem {
    let name = &pod.spec.scheduler_name;
    let names: Vec<&str> = configuration.profiles.iter().map(|profile| &*profile.scheduler_name).collect();
    Problem::error(format!(
        "the pod asks for the scheduler {name}, and the configuration has no such profile"
    ))
    .hint(format!("it has: {}", names.join(", ")))
}

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    capacity: &'a Capacity,
    utilisation: UtilisationSummary,
}

fn print(
    capacity: &Capacity,
    change: &UtilisationChange,
    options: &Options,
    console: &mut Console,
) -> Result<(), Failure> {
    let Some(structured) = options.output.structured(options.pretty) else {
        print_table(capacity, options, console)?;
        return Ok(change.print(console)?);
    };
    console.structured(structured, &Printed { capacity, utilisation: change.summary() })?;
    Ok(())
}

fn print_table(capacity: &Capacity, options: &Options, console: &mut Console) -> Result<(), Failure> {
    print_header(capacity, console)?;
    let several = capacity.zones.len() > 1 || capacity.zones.keys().any(|zone| zone != "-");
    if several {
        console.line("")?;
        let mut grid = Grid::new(["ZONE", ">NODES", ">USABLE", ">FITS", "STOPPED BY"]);
        for (name, Zone { nodes, usable, fits, stopped_by }) in &capacity.zones {
            let stopped_by: Vec<String> = stopped_by.iter().map(on_nodes).collect();
            let stopped_by = if stopped_by.is_empty() { "-".to_owned() } else { stopped_by.join("; ") };
            grid.row([name.clone(), nodes.to_string(), usable.to_string(), fits.to_string(), stopped_by]);
        }
        console.grid(grid)?;
    }
    let mut usable: Vec<_> = capacity.nodes.iter().filter(|node| node.usable).collect();
    usable.sort_by_key(|node| std::cmp::Reverse(node.fits));
    let most = if options.all_nodes { usable.len() } else { MAX_LISTED_NODES };
    if !usable.is_empty() {
        console.line("")?;
        let mut grid = Grid::new(["NODE", "ZONE", ">FITS", "STOPPED BY"]);
        for node in usable.iter().take(most) {
            let reason = if node.reason.is_empty() { "-" } else { &node.reason };
            grid.row([node.name.clone(), node.zone.clone(), node.fits.to_string(), reason.to_owned()]);
        }
        console.grid(grid)?;
        if usable.len() > most {
            console.line(format!("… and {} more; --all-nodes shows them", usable.len() - most))?;
        }
    }
    if !capacity.unusable.is_empty() {
        console.heading("Cannot be used from the start")?;
        for limit in &capacity.unusable {
            console.paragraph("  ", &on_nodes(limit))?;
        }
    }
    Ok(())
}

fn print_header(capacity: &Capacity, console: &mut Console) -> Result<(), Failure> {
    let palette = console.palette;
    let Capacity { fits, nodes, .. } = capacity;
    let used = nodes.iter().filter(|node| node.fits > 0).count();
    let more = if capacity.or_more { " or more" } else { "" };
    let style = if *fits > 0 { palette.good } else { palette.bad };
    let noun = if *fits == 1 { "pod" } else { "pods" };
    let pod = paint(palette.heading, crate::style::harmless(&capacity.pod));
    let count = paint(style, format!("{fits}{more}"));
    console.line(format!("{pod}: {count} more {noun} fit, on {used} of {} nodes", nodes.len()))?;
    if let Some(first) = capacity.stopped_by.first() {
        let usable = nodes.iter().filter(|node| node.usable).count();
        console.paragraph(
            "  ",
            &format!("What runs out first: {} on {} of {usable} usable nodes.", first.reason, first.nodes),
        )?;
        if capacity.fits_by_resources > 0 {
            let by_resources = capacity.fits_by_resources;
            console.paragraph("  ", &format!("By resources alone, {by_resources} more would fit there."))?;
        }
    } else if let Some(message) = &capacity.message {
        console.paragraph("  ", message)?;
    }
    Ok(())
}

fn on_nodes(limit: &Limit) -> String {
    let nodes = if limit.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", limit.nodes) };
    format!("{}: {nodes}", limit.reason)
}
