//! `supercargo config …`: what a scheduler configuration means, and what is wrong with it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use supercargo_config::{self as configuration, ConfigDifference, Configuration, EffectivePlugin, Loaded};
use supercargo_framework::registry::Registry;

use crate::{
    failure::{Ending, Failure},
    input,
    output::{Console, Grid},
    style::{harmless, paint},
};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Report all errors and warnings of a configuration
    Check {
        /// The configuration, `-` for stdin
        file: PathBuf,
        /// Exit with 1 if there are warnings
        #[arg(long)]
        strict: bool,
    },
    /// Print the configuration that holds when nothing is configured
    Defaults {
        /// How it is printed
        #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
        output: Format,
    },
    /// Print what a configuration amounts to, with all defaults filled in
    Effective {
        /// The configuration, `-` for stdin
        file: PathBuf,
        /// How it is printed
        #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
        output: Format,
    },
    /// Show what changes in meaning from one configuration to another
    Diff {
        /// The configuration as it was
        before: PathBuf,
        /// The configuration as it is now
        after: PathBuf,
        /// Exit with 1 if anything changes
        #[arg(long)]
        exit_code: bool,
    },
    /// Write an older configuration or a Policy as kubescheduler.config.k8s.io/v1
    Migrate {
        /// The configuration or Policy, `-` for stdin
        file: PathBuf,
    },
    /// Print a JSON Schema of configurations, for editors
    Schema,
}

/// How a configuration is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The plugins by extension point, with their weights
    #[default]
    Table,
    /// The same for programs
    Json,
    /// A complete configuration
    Yaml,
}

pub(crate) fn run(command: &Command, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    match command {
        Command::Check { file, strict } => check(file, *strict, console, registry),
        Command::Defaults { output } => {
            let defaults = configuration::default_configuration(registry)?;
            print(&defaults, *output, console, registry)
        }
        Command::Effective { file, output } => {
            let loaded = load(file, console, registry)?;
            print(&loaded.configuration, *output, console, registry)
        }
        Command::Diff { before, after, exit_code } => {
            let before = load(before, console, registry)?.configuration;
            let after = load(after, console, registry)?.configuration;
            let changes = configuration::diff(&before, &after, registry);
            print_diff(&changes, console)?;
            Ok(if *exit_code && !changes.is_empty() { Ending::Found } else { Ending::Well })
        }
        Command::Migrate { file } => {
            let migrated = configuration::migrate(&input::text(file)?, registry)?;
            console.warnings(&migrated.warnings);
            console.bytes(migrated.yaml.as_bytes())?;
            Ok(Ending::Well)
        }
        Command::Schema => {
            console.line(configuration::schema(registry).trim_end())?;
            Ok(Ending::Well)
        }
    }
}

fn load(file: &Path, console: &mut Console, registry: &Registry) -> Result<Loaded, Failure> {
    let loaded = configuration::load(&input::text(file)?, registry)?;
    console.warnings(&loaded.warnings);
    Ok(loaded)
}

fn check(file: &Path, strict: bool, console: &mut Console, registry: &Registry) -> Result<Ending, Failure> {
    let loaded = load(file, console, registry)?;
    let warnings = loaded.warnings.len();
    let name = input::name(file);
    let verdict = match warnings {
        0 => format!("{name}: valid"),
        1 => format!("{name}: 1 warning"),
        n => format!("{name}: {n} warnings"),
    };
    console.line(verdict)?;
    Ok(if strict && warnings > 0 { Ending::Found } else { Ending::Well })
}

fn print(
    configuration: &Configuration,
    format: Format,
    console: &mut Console,
    registry: &Registry,
) -> Result<Ending, Failure> {
    match format {
        Format::Json => console.line(configuration.effective().to_json())?,
        Format::Yaml => console.bytes(configuration.to_yaml(registry).as_bytes())?,
        Format::Table => print_table(configuration, console)?,
    }
    Ok(Ending::Well)
}

/// A plugin a line: that is how people compare.
fn print_table(configuration: &Configuration, console: &mut Console) -> Result<(), Failure> {
    let rows = configuration.table();
    for (number, part) in rows.chunk_by(|one, other| one.profile == other.profile).enumerate() {
        let space = if number > 0 { "\n" } else { "" };
        let title = title(configuration, &part[0].profile);
        console.line(format!("{space}{}", paint(console.palette.heading, title)))?;
        let mut grid = Grid::new(["POINT", "PLUGIN", ">WEIGHT"]).indented("  ");
        for row in part {
            for (i, EffectivePlugin { name, weight }) in row.plugins.iter().enumerate() {
                let point = if i == 0 { row.point.to_owned() } else { String::new() };
                grid.row([point, name.clone(), weight.map_or_else(String::new, |weight| weight.to_string())]);
            }
        }
        console.grid(grid)?;
    }
    print_settings(configuration, console)
}

fn title(configuration: &Configuration, scheduler_name: &str) -> String {
    let mut profiles = configuration.profiles.iter();
    let profile = profiles.find(|profile| &*profile.scheduler_name == scheduler_name);
    match profile.and_then(|profile| profile.percentage_of_nodes_to_score) {
        Some(percentage) => {
            format!("profile {}, percentageOfNodesToScore {percentage}", harmless(scheduler_name))
        }
        None => format!("profile {}", harmless(scheduler_name)),
    }
}

fn print_settings(configuration: &Configuration, console: &mut Console) -> Result<(), Failure> {
    let effective = configuration.effective();
    let percentage = match effective.percentage_of_nodes_to_score {
        0 => "0 (by the size of the cluster)".to_owned(),
        percentage => percentage.to_string(),
    };
    let limit = configuration.client_connection.queries_per_second();
    console.heading("settings")?;
    let mut grid = Grid::new(["SETTING", "VALUE"]).indented("  ");
    for (name, value) in [
        ("parallelism", effective.parallelism.to_string()),
        ("percentageOfNodesToScore", percentage),
        ("podInitialBackoffSeconds", effective.pod_initial_backoff_seconds.to_string()),
        ("podMaxBackoffSeconds", effective.pod_max_backoff_seconds.to_string()),
        ("clientConnection.qps", limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string())),
        ("extenders", configuration.extenders.len().to_string()),
    ] {
        grid.row([name.to_owned(), value]);
    }
    console.grid(grid)?;
    Ok(())
}

fn print_diff(changes: &[ConfigDifference], console: &mut Console) -> Result<(), Failure> {
    if changes.is_empty() {
        console.note("both mean the same");
    }
    let palette = console.palette;
    for change in changes {
        let style = match (&change.before, &change.after) {
            (None, _) => palette.good,
            (_, None) => palette.bad,
            _ => palette.caution,
        };
        console.line(paint(style, harmless(&change.to_string())))?;
    }
    Ok(())
}
