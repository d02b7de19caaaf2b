//! The `supercargo` command, for any set of plugins.
//!
//! Data goes to stdout, talk to stderr. The exit code is 0 on success, 1 if something was found that should not be
//! (a difference, a warning under `--strict`), and 2 if a command could not do its work.
//!
//! A team that has plugins of its own builds the same command with them. `examples/plugins` does, and its TUTORIAL.md
//! shows how:
//!
//! ```no_run
//! use supercargo::framework::{points::PreEnqueue, queueing::QueueView, registry::define, status::Verdict};
//!
//! struct Patience;
//! impl PreEnqueue for Patience {
//!     fn pre_enqueue(&self, _: &QueueView<'_>, _: &supercargo::model::Pod) -> Verdict { Ok(()) }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     supercargo::main(|plugins| plugins.add(define("Patience", |_| Ok(Patience)).pre_enqueue()))
//! }
//! ```

mod arguments;
mod bench;
mod capacity;
mod chart;
mod compare;
mod config;
mod conformance;
mod demo;
mod docs;
mod dynamic_scoring;
mod explain;
mod extender_calls;
mod failure;
mod file_flags;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod input;
mod load_test;
mod objects;
mod output;
mod page;
mod rbac;
mod record;
mod replay;
mod run;
mod shell;
mod simulate;
mod snapshot;
mod style;
mod test;
mod traces;
mod tune;
mod ui;
mod utilisation;
mod version;

use std::{
    ffi::OsString,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use clap::{CommandFactory, FromArgMatches};
use supercargo_framework::registry::Registry;
use supercargo_wasm::Host;

use crate::{
    arguments::{Arguments, Command},
    failure::{Ending, Failure},
    output::Console,
};

// What a plugin is written with, so that a team depends on one crate.
pub use supercargo_framework as framework;
pub use supercargo_manifest as manifest;
pub use supercargo_model as model;

/// The whole command with kube-scheduler's plugins and those that `register` adds, for a `main` of one's own.
pub fn main(register: impl FnOnce(&mut Registry)) -> ExitCode {
    let mut registry = supercargo_plugins::registry();
    register(&mut registry);
    run(std::env::args_os(), &registry)
}

/// Runs the command with the given arguments, the first of which is the name of the program.
pub fn run(arguments: impl IntoIterator<Item = OsString>, registry: &Registry) -> ExitCode {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments
        .iter()
        .skip(1)
        .find(|word| !word.to_string_lossy().starts_with('-'))
        .is_some_and(|word| word == "run")
    {
        arguments = arguments.into_iter().map(run::with_dashes).collect();
    }
    let repeated = file_flags::repeated(&arguments, Path::exists);
    // A pod may be called like a file: then it was not meant for the flag.
    let arguments = match parse(&repeated).or_else(|error| parse(&arguments).map_err(|_| error)) {
        Ok(arguments) => arguments,
        Err(error) => return usage(&error),
    };
    let mut console = Console::new(arguments.color, arguments.quiet);
    // Plugins that no registry knows can be loaded from files, whatever the set of those that are built in.
    let guests = Host::default();
    registry.load_others_with(guests.clone());
    let result = dispatch(arguments.command, &mut console, registry, &guests).and_then(|ending| {
        console.flush()?;
        Ok(ending)
    });
    match result {
        Ok(ending) => ending.into(),
        Err(failure) => failure.tell(&mut console),
    }
}

fn parse(arguments: &[OsString]) -> Result<Arguments, clap::Error> {
    let matches = command_as(arguments.first()).try_get_matches_from(arguments)?;
    Arguments::from_arg_matches(&matches)
}

/// The name by which kubectl finds the command, as one of its own: a link to it will do.
const KUBECTL_PLUGIN: &str = "kubectl-supercargo";

/// The command under the name that it was called by.
fn command_as(program: Option<&OsString>) -> clap::Command {
    let command = Arguments::command();
    let is_plugin = |program: &OsString| {
        std::path::Path::new(program).file_stem().is_some_and(|name| name == KUBECTL_PLUGIN)
    };
    if program.is_some_and(is_plugin) { command.bin_name("kubectl supercargo") } else { command }
}

fn dispatch(
    command: Command,
    console: &mut Console,
    registry: &Registry,
    guests: &Host,
) -> Result<Ending, Failure> {
    match command {
        Command::Simulate(options) => simulate::run(&options, console, registry),
        Command::Capacity(options) => capacity::run(&options, console, registry),
        Command::Test(options) => test::run(&options, console, registry),
        Command::Explain(options) => explain::run(&options, console, registry),
        Command::Ui(options) => ui::run(&options, console, registry),
        Command::Replay(options) => replay::run(&options, console, registry),
        Command::Compare(options) => compare::run(&options, console, registry),
        Command::Tune(options) => tune::run(&options, console, registry),
        Command::Record(options) => record::run(&options, console),
        Command::Snapshot(options) => snapshot::run(&options, console),
        Command::Conformance(options) => conformance::run(&options, console, registry),
        Command::Run(options) => run::run(&options, console, registry, guests),
        Command::Rbac(options) => rbac::run(&options, console, registry),
        Command::Demo(options) => demo::run(&options, console, registry),
        Command::Testcluster(options) => demo::run_cluster(&options, console),
        Command::Bench(options) => bench::run(&options, console, registry),
        Command::LoadTest(options) => load_test::run(&options, console),
        Command::DynamicScoring(command) => dynamic_scoring::run(&command, console),
        Command::Config(command) => config::run(&command, console, registry),
        Command::Docs(options) => docs::run(&options, console),
        Command::Completions { shell } => shell::completions(shell, Arguments::command(), console),
        Command::Man => shell::man(Arguments::command(), console),
        Command::Version(options) => version::run(&options, console),
    }
}

/// Help and the version are data and end well; anything else is a mistake in the arguments.
fn usage(error: &clap::Error) -> ExitCode {
    // A reader that went away does not change what was asked for.
    let _ = error.print();
    if let Some(clap::error::ContextValue::String(flag)) = error.get(clap::error::ContextKind::InvalidArg)
        && let Some(why) = run::explain_unknown(flag)
    {
        let _ = writeln!(io::stderr(), "\nhint: {why}");
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(failure::CANNOT))
}
