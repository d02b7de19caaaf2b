//! Logs: to stderr, as text or JSON, as much as `--v` and `--vmodule` say.

mod json;

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use supercargo_live::scheduler::PODS_TARGET;
use supercargo_manifest::Problem;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    Layer,
    filter::{FilterExt, LevelFilter, Targets, filter_fn},
    fmt::writer::{BoxMakeWriter, MakeWriterExt},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::{
    flags::{LoggingFormat, Options, values::ModuleVerbosity},
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
    let ours = level(options.verbosity);
    // What libraries say is of interest to those who look very closely.
    let theirs = if options.verbosity > SCORES { LevelFilter::DEBUG } else { LevelFilter::WARN };
    let pods = if options.verbosity >= PODS { ours } else { LevelFilter::WARN };
    let everywhere =
        Targets::new().with_default(theirs).with_target("supercargo", ours).with_target(PODS_TARGET, pods);
    let modules = options.vmodule.clone();
    let most = modules.iter().map(|module| level(module.level)).max().unwrap_or(LevelFilter::OFF);
    let here = filter_fn(move |metadata| is_enabled(metadata, &modules)).with_max_level_hint(most);

    let is_json = options.logging_format == LoggingFormat::Json;
    let splits = if is_json { options.log_json_split_stream } else { options.log_text_split_stream };
    let writer = match splits {
        true => BoxMakeWriter::new(io::stderr.with_max_level(Level::ERROR).or_else(io::stdout)),
        false => BoxMakeWriter::new(io::stderr),
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let layer = match is_json {
        false => lines.with_ansi(io::stderr().is_terminal() && !splits).boxed(),
        true => lines.event_format(json::JsonLines).boxed(),
    };
    let pod_lines = PodLines::new(options.verbosity);
    let filter = everywhere.or(here).and(pod_lines.clone());
    let started = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
    started.map(|()| pod_lines).map_err(|error| Problem::error(format!("cannot log: {error}")))
}

fn level(verbosity: u8) -> LevelFilter {
    match verbosity {
        SCORES.. => LevelFilter::TRACE,
        DECISIONS.. => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    }
}

/// Whether `--vmodule` asks for it.
fn is_enabled(metadata: &Metadata<'_>, modules: &[ModuleVerbosity]) -> bool {
    let Some(file) = metadata.file() else { return false };
    let module = modules.iter().find(|module| names(&module.pattern, Path::new(file)));
    module.is_some_and(|module| *metadata.level() <= level(module.level))
}

/// Whether a pattern names a source file: by its own name, or by its folder's if it is the folder's main file.
fn names(pattern: &str, file: &Path) -> bool {
    let stem =
        |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = match &*stem(file) {
        "mod" | "lib" => file.parent().map(stem).unwrap_or_default(),
        name => name.to_owned(),
    };
    matches(pattern.as_bytes(), name.as_bytes())
}

fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => {
            matches(rest, name) || matches!(name, [_, shorter @ ..] if matches(pattern, shorter))
        }
        ([b'?', rest @ ..], [_, others @ ..]) => matches(rest, others),
        ([letter, rest @ ..], [other, others @ ..]) => letter == other && matches(rest, others),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_a_pattern() {
        for (pattern, file, expected) in [
            ("attempt", "crates/live/src/scheduler/attempt.rs", true),
            ("scheduler", "crates/live/src/scheduler/mod.rs", true),
            ("lea*", "crates/live/src/lease.rs", true),
            ("l?ase", "crates/live/src/lease.rs", true),
            ("*", "crates/live/src/lease.rs", true),
            ("lea", "crates/live/src/lease.rs", false),
            ("", "crates/live/src/lease.rs", false),
        ] {
            assert_eq!(names(pattern, Path::new(file)), expected, "{pattern} and {file}");
        }
    }
}
