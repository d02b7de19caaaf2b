//! Logs: to stderr, as text or JSON, as much as `--v` says.

use std::io::{self, IsTerminal};

use supercargo_live::scheduler::PODS_TARGET;
use supercargo_manifest::Problem;
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, LevelFilter, Targets},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::{
    flags::{LoggingFormat, Options},
    pod_lines::PodLines,
};

/// From here on it is logged what became of each pod; within bounds, [`PodLines`].
const PODS: u8 = 2;
/// From here on decisions are logged one by one, with their times.
const DECISIONS: u8 = 5;
/// From here on scores are logged node by node.
const SCORES: u8 = 10;

/// Starts to log, and gives what counts the lines that are left out.
pub(super) fn start(options: &Options) -> Result<PodLines, Problem> {
    let ours = match options.verbosity {
        SCORES.. => LevelFilter::TRACE,
        DECISIONS.. => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    // What libraries say is of interest to those who look very closely.
    let theirs = if options.verbosity > SCORES { LevelFilter::DEBUG } else { LevelFilter::WARN };
    let pods = if options.verbosity >= PODS { ours } else { LevelFilter::WARN };
    let filter =
        Targets::new().with_default(theirs).with_target("supercargo", ours).with_target(PODS_TARGET, pods);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let layer = match options.logging_format {
        LoggingFormat::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        LoggingFormat::Json => lines.json().boxed(),
    };
    let pod_lines = PodLines::new(options.verbosity);
    let filter = filter.and(pod_lines.clone());
    let started = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    started.map(|()| pod_lines).map_err(|error| Problem::error(format!("cannot log: {error}")))
}
