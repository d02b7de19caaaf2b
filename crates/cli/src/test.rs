//! `supercargo test`: placement tests, for a team's pipeline.

mod junit;

use std::path::{Path, PathBuf};

use serde::Serialize;
use supercargo_framework::registry::Registry;
use supercargo_manifest::{self as manifest, Problem, Problems, Source, Value, ValueKind};
use supercargo_model::{Timestamp, object::Reader};
use supercargo_sim::{
    placement_tests::{self, PlacementTest, Placements, Suite},
    simulate::Input,
};

use crate::{
    arguments::Format,
    failure::{Ending, Failure},
    input,
    objects::{ClusterEdits, Making, WORKLOADS, offline, read_configuration, reader, tell_extenders},
    output::Console,
    style::paint,
};

/// How many seeds a test may ask for.
const MAX_SEEDS: u32 = 1000;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Files with placement tests, or folders of them; `-` for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Write the results as JUnit XML, too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// How results are printed
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// What came of a test.
#[derive(Serialize)]
pub(crate) struct Tested {
    file: String,
    line: u32,
    name: String,
    passed: bool,
    failures: Vec<NotAsExpected>,
}

/// An expectation that does not hold.
#[derive(Serialize)]
pub(crate) struct NotAsExpected {
    line: u32,
    /// With which seed.
    seed: u64,
    /// What is not as expected, and why.
    details: Vec<String>,
}

pub(crate) fn run(options: &Options, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let mut problems = Problems::default();
    let mut tested = Vec::new();
    for source in input::manifests(&options.files)? {
        match test_file(&source, console, registry) {
            Ok(more) => tested.extend(more),
            Err(more) => problems.extend(more),
        }
    }
    if !problems.is_empty() {
        return Err(problems.into());
    }
    match options.output {
        Format::Table => print(&tested, console)?,
        Format::Json => {
            for test in &tested {
                console.line(serde_json::to_string(test).map_err(std::io::Error::from)?)?;
            }
        }
    }
    if let Some(path) = &options.junit {
        let written = std::fs::write(path, junit::report(&tested));
        written.map_err(|error| Problem::error(format!("cannot write {}: {error}", path.display())))?;
    }
    Ok(if tested.iter().all(|test| test.passed) { Ending::Well } else { Ending::Found })
}

/// A file whose tests are run.
struct File<'a> {
    source: &'a Source,
    folder: PathBuf,
}

fn test_file(source: &Source, console: &mut Console, registry: &Registry) -> Result<Vec<Tested>, Problems> {
    let folder = Path::new(&*source.name).parent().unwrap_or(Path::new("")).to_owned();
    let file = File { source, folder };
    let mut tested = Vec::new();
    for document in &manifest::read(source)? {
        let suite = placement_tests::read(source, document)?;
        for (index, test) in suite.tests.iter().enumerate() {
            tested.push(file.run_test(document, &suite, (index, test), console, registry)?);
        }
    }
    Ok(tested)
}

impl File<'_> {
    fn run_test(
        &self,
        document: &Value,
        suite: &Suite,
        (index, test): (usize, &PlacementTest),
        console: &mut Console,
        registry: &Registry,
    ) -> Result<Tested, Problems> {
        let config = suite.config.as_ref().map(|config| self.folder.join(config));
        let configuration = read_configuration(config.as_ref(), console, registry)?;
        if index == 0 {
            tell_extenders(&configuration, console);
        }
        let declared = configuration.declared(registry);
        let mut reader = reader(&declared);
        self.read_objects(document.get("cluster"), "cluster", &mut reader)?;
        reader.expect_new(WORKLOADS, None);
        self.read_objects(document.get("pods"), "pods", &mut reader)?;
        let of_test = &document.get("tests").map(Value::items).unwrap_or_default()[index];
        self.read_objects(of_test.get("pods"), &format!("tests[{index}].pods"), &mut reader)?;
        let mut objects = reader.finish()?;
        let what_if = ClusterEdits::of_test(test, &self.folder);
        what_if.add_nodes(&mut objects.objects)?;
        let making = Making { replicas: test.replicas, namespace: None, declared: &declared };
        making.complete(&mut objects, &[], console)?;
        console.warnings(&objects.warnings);
        what_if.unbind(&mut objects.objects, &configuration, console)?;
        let lines: Vec<u32> =
            of_test.get("expect").map(Value::items).unwrap_or_default().iter().map(|e| e.at.line).collect();
        let mut failures = Vec::new();
        for seed in 0..u64::from(test.seeds.unwrap_or(1).clamp(1, MAX_SEEDS)) {
            let input = Input::new(objects.objects.iter().cloned());
            let now = Timestamp::now();
            let scheduler = offline(input, &configuration, registry, (seed, now), None)?;
            let mut placements = Placements::new(scheduler);
            for (expectation, line) in test.expect.iter().zip(&lines) {
                let details = placement_tests::check(expectation, &mut placements);
                if !details.is_empty() {
                    failures.push(NotAsExpected { line: *line, seed, details });
                }
            }
            // The first seed that shows it is enough.
            if !failures.is_empty() {
                break;
            }
        }
        Ok(Tested {
            file: self.source.name.to_string(),
            line: of_test.at.line,
            name: test.name.clone(),
            passed: failures.is_empty(),
            failures,
        })
    }

    /// Reads what a list names: files, relative to this one, or objects as they are written. One need not be a list.
    fn read_objects(&self, given: Option<&Value>, path: &str, reader: &mut Reader) -> Result<(), Problems> {
        let Some(given) = given else { return Ok(()) };
        let items = match &given.kind {
            ValueKind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(given),
        };
        for (i, item) in items.iter().enumerate() {
            match &item.kind {
                ValueKind::String(file) => {
                    let file = self.folder.join(&**file);
                    for source in input::manifests([&file])? {
                        reader.read(&source);
                    }
                }
                ValueKind::Map(_) => reader.read_part(self.source, item, &format!("{path}[{i}]")),
                _ => {
                    let message = format!("expected a file or an object, found {}", item.kind_name());
                    let problem = Problem::error(message).at(self.source, item.at);
                    return Err(problem.path(format!("{path}[{i}]")).into());
                }
            }
        }
        Ok(())
    }
}

fn print(tested: &[Tested], console: &mut Console) -> Result<(), Failure> {
    let palette = console.palette;
    let mut file = None;
    for test in tested {
        if file.replace(&test.file) != Some(&test.file) {
            console.line(paint(palette.heading, crate::style::harmless(&test.file)))?;
        }
        let verdict = if test.passed { paint(palette.good, "ok  ") } else { paint(palette.bad, "FAIL") };
        console.line(format!("  {verdict}  {}", crate::style::harmless(&test.name)))?;
        for failure in &test.failures {
            let place = format!("line {}, seed {}", failure.line, failure.seed);
            for detail in &failure.details {
                console.hanging("        ", "          ", &format!("{place}: {detail}"))?;
            }
        }
    }
    let failed = tested.iter().filter(|test| !test.passed).count();
    let passed = paint(palette.good, format!("{} passed", tested.len() - failed));
    let failed = if failed > 0 { paint(palette.bad, format!(", {failed} failed")) } else { String::new() };
    console.line(format!("\n{passed}{failed}"))?;
    Ok(())
}
