//! `supercargo conformance`: do we answer as kube-scheduler did?

mod differences;
mod files;
mod trace;

use std::{collections::BTreeMap, path::PathBuf};

use supercargo_framework::registry::Registry;
use supercargo_manifest::{Problem, Problems};
use supercargo_sim::{
    configurations,
    conformance::{CheckedCases, ConformanceCase, Mismatch},
    sampling, selectors,
};

use crate::{
    failure::{Ending, Failure},
    input,
    output::{Console, Grid, Progress},
    style::paint,
};
use differences::Differences;
use files::{CheckFile, FileKind};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Scenario files (.json, .json.gz), or folders of them
    #[arg(value_name = "PATH", required_unless_present = "trace", conflicts_with = "trace")]
    paths: Vec<PathBuf>,

    /// The history of a cluster, one JSON object a line (.jsonl, .jsonl.gz)
    #[arg(long, value_name = "FILE", requires = "expect")]
    trace: Option<PathBuf>,

    /// What kube-scheduler made of each pod of the trace, one JSON object a line
    #[arg(long, value_name = "FILE", requires = "trace")]
    expect: Option<PathBuf>,

    /// The configuration of the trace; without one, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE", requires = "trace")]
    config: Option<PathBuf>,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    match (&options.trace, &options.expect) {
        (Some(trace), Some(expect)) => trace::run(trace, expect, options.config.as_ref(), console, registry),
        _ => check_files(&options.paths, console, registry),
    }
}

/// What came of all files.
#[derive(Default)]
struct Tally {
    /// Scenarios, by theme.
    themes: BTreeMap<String, Counts>,
    /// Other files, by name.
    others: BTreeMap<String, CheckedCases>,
    passed: usize,
    failed: usize,
    differences: Differences,
    /// Files that could not be read; they count as failed.
    unreadable: Problems,
}

#[derive(Default)]
struct Counts {
    scenarios: usize,
    pods: usize,
    passed: usize,
    failed: usize,
}

fn check_files(paths: &[PathBuf], console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let files = files::at(paths)?;
    let progress = Progress::new(files.len(), "scenarios", console);
    let mut tally = Tally::default();
    for file in &files {
        if let Err(problems) = tally.check(file, registry) {
            tally.unreadable.extend(problems);
            tally.failed += 1;
        }
        progress.step();
    }
    progress.finish();
    tally.print(console)
}

impl Tally {
    fn check(&mut self, file: &CheckFile, registry: &Registry) -> Result<(), Problems> {
        let source = input::text(&file.path)?;
        let cases = match file.kind {
            FileKind::Scenario => {
                let scenario = ConformanceCase::read(&source, registry)?;
                let differences = scenario.check(registry)?;
                self.count(&scenario, differences);
                return Ok(());
            }
            FileKind::NodesToFind => sampling::check_nodes_to_find(&source)?,
            FileKind::NodeOrder => sampling::check_node_order(&source, registry)?,
            FileKind::Configurations => configurations::check_configurations(&source, registry)?,
            FileKind::Selectors => selectors::check_selectors(&source)?,
        };
        self.failed += usize::from(cases.failed > 0);
        self.differences.extend(file.kind.name(), &cases.differences);
        self.others.insert(input::name(&file.path), cases);
        Ok(())
    }

    fn count(&mut self, scenario: &ConformanceCase, differences: Vec<Mismatch>) {
        let counts = self.themes.entry(scenario.theme.clone()).or_default();
        counts.scenarios += 1;
        counts.pods += scenario.pods();
        if differences.is_empty() {
            counts.passed += 1;
            self.passed += 1;
        } else {
            counts.failed += 1;
            self.failed += 1;
        }
        self.differences.extend(&scenario.name, &differences);
    }

    fn print(&self, console: &mut Console) -> Result<Ending, Failure> {
        self.print_themes(console)?;
        self.print_others(console)?;
        self.differences.print(console)?;
        if !self.unreadable.is_empty() {
            console.problems(&self.unreadable);
        }
        print_verdict(self.passed, self.failed, console)?;
        Ok(match (self.unreadable.is_empty(), self.failed) {
            (false, _) => Ending::Incomplete,
            (true, 0) => Ending::Well,
            (true, _) => Ending::Found,
        })
    }

    fn print_themes(&self, console: &mut Console) -> Result<(), Failure> {
        if self.themes.is_empty() {
            return Ok(());
        }
        let mut grid = Grid::new(["THEME", ">SCENARIOS", ">PODS", ">PASSED", ">FAILED"]);
        for (theme, counts) in &self.themes {
            let numbers = [counts.scenarios, counts.pods, counts.passed, counts.failed];
            let style = if counts.failed > 0 { console.palette.bad } else { anstyle::Style::new() };
            grid.styled_row(style, [theme.clone()].into_iter().chain(numbers.map(|n| n.to_string())));
        }
        console.grid(grid)?;
        console.line("")?;
        Ok(())
    }

    fn print_others(&self, console: &mut Console) -> Result<(), Failure> {
        if self.others.is_empty() {
            return Ok(());
        }
        let mut grid = Grid::new(["FILE", ">CASES", ">PASSED", ">FAILED"]);
        for (file, cases) in &self.others {
            let numbers = [cases.passed + cases.failed, cases.passed, cases.failed];
            let style = if cases.failed > 0 { console.palette.bad } else { anstyle::Style::new() };
            grid.styled_row(style, [file.clone()].into_iter().chain(numbers.map(|n| n.to_string())));
        }
        console.grid(grid)?;
        console.line("")?;
        Ok(())
    }
}

/// The last line, for people and programs.
fn print_verdict(passed: usize, failed: usize, console: &mut Console) -> Result<(), Failure> {
    let style = if failed == 0 { console.palette.good } else { console.palette.bad };
    console.line(paint(style, format!("{passed} passed, {failed} failed")))?;
    Ok(())
}

fn nothing_to_check(paths: &[PathBuf]) -> Problem {
    let names: Vec<String> = paths.iter().map(|path| input::name(path)).collect();
    Problem::error(format!("there is no scenario (.json, .json.gz) in {}", names.join(", ")))
}
