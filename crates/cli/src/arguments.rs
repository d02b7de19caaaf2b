//! What can be written on the command line.

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{
    bench, capacity, compare, config, conformance, demo, docs, dynamic_scoring, explain, load_test,
    output::Structured, rbac, record, replay, run, simulate, snapshot, style::Color, test, tune, ui, version,
};

/// Decides where pods go in a Kubernetes cluster, exactly as kube-scheduler 1.36 would, and explains itself.
#[derive(Parser)]
#[command(name = "supercargo", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 success, 1 problems found, 2 the command could not run.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colour; NO_COLOR is respected
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: Color,

    /// Print only errors on stderr
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Schedule the pods of a cluster, in kube-scheduler's place or beside it
    Run(Box<run::Options>),
    /// Print the permissions that a configuration needs, as manifests
    Rbac(rbac::Options),
    /// See the scheduler at work on a cluster in memory
    Demo(demo::Options),
    /// Run an API server in memory, for tests; it is not a cluster
    Testcluster(demo::ClusterCommand),
    /// Schedule the pending pods of a cluster offline (a dry run)
    Simulate(simulate::Options),
    /// Count how many more pods like one fit, and show where, and what runs out first
    Capacity(capacity::Options),
    /// Check where pods go against what a team expects, for its pipeline
    Test(test::Options),
    /// Show why a pod goes where it goes, or nowhere
    Explain(explain::Options),
    /// Show a cluster and its scheduling as a page for browsers, on this machine
    Ui(ui::Options),
    /// Replay the history of a cluster at full speed, and measure it
    Replay(replay::Options),
    /// Say what another configuration changes, on a trace or on a cluster with pending pods
    Compare(compare::Options),
    /// Search a configuration that is better by an objective, and confirm it on held-back parts of a trace
    Tune(tune::Options),
    /// Write what happens in a cluster to a file that can be replayed
    Record(record::Options),
    /// Write what is in a cluster to a file, for `--cluster`
    Snapshot(snapshot::Options),
    /// Compare with what a real kube-scheduler answered
    Conformance(conformance::Options),
    /// Measure the speed of scheduling on made-up clusters
    Bench(bench::Options),
    /// Put the running scheduler under load on a cluster in memory, and measure it
    LoadTest(load_test::Options),
    /// Check, show, compare and translate scheduler configurations
    #[command(subcommand)]
    Config(config::Command),
    /// Check the ConfigMap of the DynamicScoring plugin
    #[command(subcommand)]
    DynamicScoring(dynamic_scoring::Command),
    /// List the documents of this version, or print one
    Docs(docs::Options),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page (roff)
    Man,
    /// Print what this command is, and which kube-scheduler it matches
    Version(version::Options),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// How a document is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
    /// For programs
    Yaml,
}

impl DocumentFormat {
    /// How it is written for programs; `None` for people.
    pub(crate) fn structured(self, pretty: bool) -> Option<Structured> {
        match self {
            Self::Table => None,
            Self::Json if pretty => Some(Structured::PrettyJson),
            Self::Json => Some(Structured::Json),
            Self::Yaml => Some(Structured::Yaml),
        }
    }
}
