//! `supercargo compare`: what another configuration changes.

mod html;
mod texts;

use std::{fs, path::PathBuf, time::Instant};

use clap::ValueEnum;
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problem;
use supercargo_model::object::Object;
use supercargo_sim::{
    compare::{Moves, replay_each, verdict},
    measures::{Measures, PodMix},
    replay::{Replay, ReplayOptions},
    simulate::Input,
    trace::Trace,
};

use crate::{
    failure::{Ending, Failure},
    input,
    objects::{read_declared, tell_skipped},
    output::{Console, Progress},
    traces::{self, NamedConfiguration},
};

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("where").required(true).args(["trace", "cluster"]))]
pub(crate) struct Options {
    /// The trace: what `supercargo record` writes, packed or not; several files of one recording in their order
    #[arg(long, value_delimiter = ',', value_name = "FILE")]
    trace: Vec<PathBuf>,

    /// Instead of a trace, a cluster with pending pods: what `kubectl get … -o yaml|json` prints
    #[arg(long, value_delimiter = ',', value_name = "FILE")]
    cluster: Vec<PathBuf>,

    /// More objects, such as the pods to schedule
    #[arg(long, value_delimiter = ',', value_name = "FILE", requires = "cluster")]
    pods: Vec<PathBuf>,

    /// A KubeSchedulerConfiguration, or `default` for kube-scheduler's defaults; the first is what the others are
    /// compared with. A single one is compared with the defaults
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILE")]
    config: Vec<PathBuf>,

    /// What ties are broken by
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// How results are printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,

    /// Write a report with charts, as one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    #[default]
    Table,
    /// For a pull request or a wiki
    Markdown,
    /// For programs
    Json,
    /// For a browser: one page with charts
    Html,
}

/// All that a report tells.
struct Compared {
    /// What was replayed.
    subject: String,
    names: Vec<String>,
    replays: Vec<Replay>,
    /// What moved against the first; nothing for the first itself.
    moves: Vec<Moves>,
    seed: u64,
}

impl Compared {
    fn new(subject: String, names: Vec<String>, replays: Vec<Replay>, seed: u64) -> Self {
        let moves = replays.iter().map(|replay| Moves::between(&replays[0], replay)).collect();
        Self { subject, names, replays, moves, seed }
    }

    fn measures(&self) -> Vec<&Measures> {
        self.replays.iter().map(|replay| &replay.measures).collect()
    }

    fn verdict(&self) -> String {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let moved: Vec<usize> = self.moves.iter().map(Moves::count).collect();
        verdict(&names, &self.measures(), &moved)
    }
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let mut paths = options.config.clone();
    if let [_] = &paths[..] {
        paths.insert(0, "default".into());
    }
    let named = traces::configurations(&paths, console, registry)?;
    let began = Instant::now();
    let trace = read(options, &named, console, registry)?;
    let compared = compare(options, &trace, named, console, registry)?;
    let (events, count) = (trace.events.len(), compared.names.len());
    console.note(format!("{events} events under {count} configurations in {:.1?}", began.elapsed()));
    if let Some(path) = &options.html {
        let written = fs::write(path, html::page(&compared));
        written.map_err(|error| input::about(path, format!("cannot write this: {error}")))?;
        console.note(format!("wrote {}", path.display()));
    }
    match options.output {
        Format::Table => texts::print_tables(&compared, console)?,
        Format::Markdown => console.bytes(texts::markdown(&compared).as_bytes())?,
        Format::Json => console.line(texts::json(&compared)?)?,
        Format::Html => console.bytes(html::page(&compared).as_bytes())?,
    }
    Ok(Ending::Well)
}

fn compare(
    options: &Options,
    trace: &Trace,
    named: Vec<NamedConfiguration>,
    console: &Console,
    registry: &Registry,
) -> Result<Compared, Failure> {
    let how = ReplayOptions { seed: options.seed, ..ReplayOptions::default() };
    let configurations: Vec<_> = named.iter().map(|named| &named.configuration).collect();
    let progress = Progress::new(trace.events.len() * named.len(), "events", console);
    let mix = PodMix::of(trace);
    let replays = replay_each(trace, &mix, &configurations, registry, how, || progress.step());
    progress.finish();
    let files = if options.trace.is_empty() { &options.cluster } else { &options.trace };
    let subject = files.iter().map(|path| input::name(path)).collect::<Vec<_>>().join(", ");
    let names = named.into_iter().map(|named| named.name).collect();
    Ok(Compared::new(subject, names, replays?, options.seed))
}

fn read(
    options: &Options,
    named: &[NamedConfiguration],
    console: &mut Console,
    registry: &Registry,
) -> Result<Trace, Failure> {
    let declared = traces::declared(named.iter().map(|named| &named.configuration), registry);
    if !options.trace.is_empty() {
        return Ok(traces::trace(&options.trace, &declared, console)?);
    }
    let objects = read_declared(declared, options.cluster.iter().chain(&options.pods))?;
    tell_skipped(&objects, console);
    let is_pending = |object: &Object| matches!(object, Object::Pod(pod) if pod.node.is_none());
    let (pods, others): (Vec<Object>, Vec<Object>) = objects.objects.into_iter().partition(is_pending);
    let pending = Input::new(pods).pending;
    if pending.is_empty() {
        let hint = "give some with --pods";
        return Err(Problem::error("there are no pending pods in this cluster").hint(hint).into());
    }
    Ok(Trace::of_cluster(others, pending))
}
