//! The inputs that simulate and explain share: a cluster, pods, a configuration, a seed and the time.

use std::path::PathBuf;

use supercargo_config::{self as configuration, Configuration};
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problems;
use supercargo_model::{
    Declared, Timestamp,
    object::{Kind, Object, Objects, Reader},
};
use supercargo_scheduler::{
    offline::OfflineScheduler,
    setup::{self, Overrides},
};
use supercargo_sim::simulate::Input;

use crate::{dynamic_scoring::Preferred, extender_calls::ExtenderCaller, input, output::Console};

/// What is scheduled, and by what rules.
#[derive(clap::Args)]
pub(crate) struct Inputs {
    /// The cluster: files or folders with what `kubectl get … -o yaml|json` prints, `-` for stdin
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILE")]
    cluster: Vec<PathBuf>,

    /// More objects, such as the pods to schedule; pending pods of the cluster are scheduled, too
    #[arg(long, value_delimiter = ',', value_name = "FILE")]
    pods: Vec<PathBuf>,

    /// A KubeSchedulerConfiguration; without one, kube-scheduler's defaults hold
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// What ties are broken by: the same seed gives the same placements
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Do not call the configuration's extenders: results are then without their scores
    #[arg(long)]
    no_extenders: bool,

    #[command(flatten)]
    preferred: Preferred,
}

/// What was read.
pub(crate) struct Given {
    pub(crate) objects: Vec<Object>,
    pub(crate) configuration: Configuration,
    pub(crate) now: Timestamp,
    /// Calls the extenders, if there are any.
    pub(crate) extender_caller: Option<ExtenderCaller>,
}

impl Inputs {
    /// Reads everything; or tells everything that is wrong. What is only worth a look is told at once.
    pub(crate) fn read(&self, console: &mut Console, registry: &Registry) -> Result<Given, Problems> {
        let configuration = read_configuration(self.config.as_ref(), console, registry);
        let asks = configuration.as_ref().is_ok_and(|read| !read.extenders.is_empty()) && !self.no_extenders;
        let declared = configuration.as_ref().map(|read| read.declared(registry)).unwrap_or_default();
        let reader = Reader::new(declared).keeping([Kind::Node, Kind::Pod].into_iter().filter(|_| asks));
        match (read_with(reader, self.cluster.iter().chain(&self.pods)), configuration) {
            (Ok(mut objects), Ok(configuration)) => {
                self.preferred.put(&mut objects, &configuration)?;
                tell_skipped(&objects, console);
                let extender_caller =
                    asks.then(|| ExtenderCaller::new(&configuration, &objects)).transpose()?;
                if extender_caller.is_none() {
                    tell_extenders(&configuration, console);
                }
                let (objects, now) = (objects.objects, self.preferred.now());
                Ok(Given { objects, configuration, now, extender_caller })
            }
            (objects, configuration) => {
                let problems = [objects.err(), configuration.err()];
                Err(problems.into_iter().flatten().flatten().collect())
            }
        }
    }
}

/// A scheduler over what was read, on virtual time.
pub(crate) fn offline(
    mut input: Input,
    configuration: &Configuration,
    registry: &Registry,
    (seed, now): (u64, Timestamp),
    extender_caller: Option<&ExtenderCaller>,
) -> Result<OfflineScheduler, Problems> {
    input.cluster.set_now(now);
    let overrides = Overrides { seed, ..Overrides::default() };
    let mut engine = setup::engine(input.cluster, configuration, registry, overrides)?;
    engine.set_extenders(extender_caller.map(ExtenderCaller::roles).unwrap_or_default());
    Ok(OfflineScheduler::new(engine, setup::queue_settings(configuration), input.pending))
}

/// The objects of files and folders.
pub(crate) fn read_objects<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<Objects, Problems> {
    read_with(Reader::default(), paths)
}

/// The objects of files and folders, with what plugins have declared to read.
pub(crate) fn read_declared<'p>(
    declared: Declared,
    paths: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<Objects, Problems> {
    read_with(Reader::new(declared), paths)
}

fn read_with<'p>(
    mut reader: Reader,
    paths: impl IntoIterator<Item = &'p PathBuf>,
) -> Result<Objects, Problems> {
    for source in input::manifests(paths)? {
        reader.read(&source);
    }
    reader.finish()
}

/// The configuration of a file, or the default one. Warnings are told.
pub(crate) fn read_configuration(
    path: Option<&PathBuf>,
    console: &mut Console,
    registry: &Registry,
) -> Result<Configuration, Problems> {
    let Some(path) = path else {
        return configuration::default_configuration(registry);
    };
    let loaded = configuration::load(&input::text(path)?, registry)?;
    console.warnings(&loaded.warnings);
    Ok(loaded.configuration)
}

/// Says what was left out.
pub(crate) fn tell_skipped(objects: &Objects, console: &mut Console) {
    let count: usize = objects.skipped.values().sum();
    if count > 0 {
        let kinds: Vec<String> = objects.skipped.iter().map(|(kind, n)| format!("{kind} × {n}")).collect();
        let noun = if count == 1 { "object" } else { "objects" };
        console.note(format!("skipped {count} {noun} that a scheduler does not read: {}", kinds.join(", ")));
    }
}

/// Says whose say is missing.
pub(crate) fn tell_extenders(configuration: &Configuration, console: &mut Console) {
    let urls: Vec<&str> =
        configuration.extenders.iter().map(|extender| extender.url_prefix.as_str()).collect();
    if !urls.is_empty() {
        console.note(format!(
            "extenders are not called, so results are without their scores: {}",
            urls.join(", ")
        ));
    }
}
