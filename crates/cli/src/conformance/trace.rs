//! Replays the history of a cluster and compares every pod.

use std::{
    path::{Path, PathBuf},
    time::Instant,
};

use supercargo_framework::registry::Registry;
use supercargo_manifest::Problems;
use supercargo_model::Cluster;
use supercargo_scheduler::setup::{self, ALL_NODES, Overrides};
use supercargo_sim::trace::{self, ExpectedAnswer, Trace};

use super::{differences::Differences, print_verdict};
use crate::{
    failure::{Ending, Failure},
    input,
    objects::{read_configuration, tell_extenders},
    output::{Console, Progress},
};

pub(super) fn run(
    trace: &Path,
    expect: &Path,
    config: Option<&PathBuf>,
    console: &mut Console,
    registry: &Registry,
) -> Result<Ending, Failure> {
    let expected =
        input::text(expect).map_err(Problems::from).and_then(|source| ExpectedAnswer::read(&source))?;
    let configuration = read_configuration(config, console, registry)?;
    tell_extenders(&configuration, console);
    let declared = configuration.declared(registry);
    let trace =
        input::text(trace).map_err(Problems::from).and_then(|source| Trace::read(&source, &declared))?;
    let overrides = Overrides { percentage: Some(ALL_NODES), ..Overrides::default() };
    let mut engine = setup::engine(Cluster::default(), &configuration, registry, overrides)?;

    let progress = Progress::new(trace.pods(), "pods", console);
    let start = Instant::now();
    let checked = trace::check(&trace, &expected, &mut engine, || progress.step());
    let took = start.elapsed();
    progress.finish();

    console.note(format!("{} events, {} pods in {took:.1?}", trace.events.len(), trace.pods()));
    let mut differences = Differences::default();
    differences.extend("", &checked.differences);
    differences.print(console)?;
    print_verdict(checked.passed, checked.failed, console)?;
    Ok(if checked.failed == 0 { Ending::Well } else { Ending::Found })
}
