//! What replay, compare and tune share: traces, configurations by name, and how measures are shown.

use std::path::{Path, PathBuf};

use supercargo_config::{self as configuration, Configuration};
use supercargo_framework::registry::Registry;
use supercargo_manifest::{Problem, Problems};
use supercargo_model::Declared;
use supercargo_sim::trace::Trace;

use crate::{
    input,
    objects::{read_configuration, tell_extenders},
    output::Console,
};

/// Stands for kube-scheduler's default configuration where a file is expected.
const DEFAULT: &str = "default";

/// A configuration and what it is called.
pub(crate) struct NamedConfiguration {
    pub(crate) name: String,
    pub(crate) configuration: Configuration,
}

/// Reads configurations: files, or `default`. Those with the same name are told apart.
pub(crate) fn configurations(
    paths: &[PathBuf],
    console: &mut Console,
    registry: &Registry,
) -> Result<Vec<NamedConfiguration>, Problems> {
    let mut all: Vec<NamedConfiguration> = Vec::new();
    for path in paths {
        let is_default = path.as_os_str() == DEFAULT && !path.exists();
        let configuration = match is_default {
            true => configuration::default_configuration(registry)?,
            false => read_configuration(Some(path), console, registry)?,
        };
        tell_extenders(&configuration, console);
        let short = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let taken = |name: &str| all.iter().any(|other| other.name == name);
        let name = if taken(&short) { path.display().to_string() } else { short };
        let number = (2..).map(|n| format!("{name} ({n})"));
        let name = std::iter::once(name.clone()).chain(number).find(|name| !taken(name)).unwrap_or(name);
        all.push(NamedConfiguration { name, configuration });
    }
    Ok(all)
}

/// What the plugins of all configurations read together.
pub(crate) fn declared<'c>(
    configurations: impl IntoIterator<Item = &'c Configuration>,
    registry: &Registry,
) -> Declared {
    let mut all = Declared::default();
    let mut annotations = Vec::new();
    for read in configurations.into_iter().map(|configuration| configuration.declared(registry)) {
        all.kinds.extend(read.kinds);
        annotations.extend(read.annotations.iter().cloned());
    }
    all.kinds.sort();
    all.kinds.dedup();
    annotations.sort();
    annotations.dedup();
    Declared { annotations: annotations.into(), ..all }
}

/// Reads a trace that may be in several files, one after another. Of a file that was cut off, what is whole is read.
pub(crate) fn trace(
    paths: &[PathBuf],
    declared: &Declared,
    console: &mut Console,
) -> Result<Trace, Problems> {
    let mut whole: Option<Trace> = None;
    for path in paths {
        let next = one(path, declared, console)?;
        whole = Some(match whole {
            None => next,
            Some(before) => before.and(next).ok_or_else(|| {
                let hint = "give the files of a recording in the order in which they were written";
                input::about(path, "this begins before the file before it ends").hint(hint)
            })?,
        });
    }
    whole.ok_or_else(|| Problem::error("there is no trace").into())
}

fn one(path: &Path, declared: &Declared, console: &mut Console) -> Result<Trace, Problems> {
    let (source, is_cut) = input::whole_lines(path)?;
    if is_cut {
        let warning = Problem::warning("the file was cut off while it was written; what is whole is read");
        let mut warning = warning;
        warning.source = Some(supercargo_manifest::Source::new(source.name.clone(), ""));
        console.warnings(&warning.into());
    }
    Trace::read(&source, declared)
}

/// A span of time as people read it.
pub(crate) fn span(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let parts = [(whole / 86400, "d"), (whole / 3600 % 24, "h"), (whole / 60 % 60, "min"), (whole % 60, "s")];
    let shown: Vec<String> =
        parts.iter().skip_while(|(n, _)| *n == 0).take(2).map(|(n, unit)| format!("{n} {unit}")).collect();
    if seconds < 60.0 { format!("{} s", (seconds * 1000.0).round() / 1000.0) } else { shown.join(" ") }
}

/// A line of bars, each as high as a value between 0 and the highest.
pub(crate) fn sparkline(values: &[f64], width: usize, highest: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let width = width.min(values.len()).max(1);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let bar = |i: usize| {
        let part =
            &values[i * values.len() / width..((i + 1) * values.len() / width).max(1).min(values.len())];
        let share = if highest > 0.0 { mean(part) / highest } else { 0.0 };
        BARS[((share * 8.0) as usize).min(7)]
    };
    if values.is_empty() { String::new() } else { (0..width).map(bar).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_readable() {
        for (seconds, shown) in [(0.0, "0 s"), (1.5, "1.5 s"), (90.0, "1 min 30 s"), (93_600.0, "1 d 2 h")] {
            assert_eq!(span(seconds), shown);
        }
    }

    #[test]
    fn bars_follow_values() {
        assert_eq!(sparkline(&[0.0, 0.5, 1.0], 10, 1.0), "▁▅█");
        assert_eq!(sparkline(&[0.0, 0.0, 1.0, 1.0], 2, 1.0), "▁█");
        assert_eq!(sparkline(&[], 10, 1.0), "");
    }
}
