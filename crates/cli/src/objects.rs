//! The inputs that simulate and explain share: a cluster, pods, a configuration, a seed and the time.

mod live_cluster;
mod what_if;
mod workloads;

use std::{collections::HashMap, path::PathBuf};

use supercargo_config::{self as configuration, Configuration, Loaded};
use supercargo_framework::registry::Registry;
use supercargo_live::informer;
use supercargo_manifest::Problems;
use supercargo_model::{
    Declared, Key, Name, Pod, Timestamp,
    object::{Kind, Object, Objects, Reader},
};
use supercargo_scheduler::{
    offline::OfflineScheduler,
    setup::{self, Overrides},
};
use supercargo_sim::{resource_claims, simulate::Input, utilisation::Utilisation};

use crate::{dynamic_scoring::Preferred, extender_calls::ExtenderCaller, input, output::Console};
pub(crate) use live_cluster::LiveCluster;
pub(crate) use what_if::ClusterEdits;
pub(crate) use workloads::{COMPLETING, KINDS as WORKLOADS, Making, reader};

/// What is scheduled, and by what rules.
#[derive(clap::Args)]
pub(crate) struct Inputs {
    /// The cluster: files or folders with what `kubectl get … -o yaml|json` prints, `-` for stdin; without this, the
    /// live cluster that kubectl would talk to
    #[arg(long, value_delimiter = ',', value_name = "FILE")]
    cluster: Vec<PathBuf>,

    #[command(flatten)]
    live: LiveCluster,

    /// The namespace of a pod that is named without one, and of objects of --pods that name none
    #[arg(long, short, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,

    /// More objects, such as the pods to schedule, or Deployments, StatefulSets, ReplicaSets, DaemonSets, Jobs and
    /// CronJobs, whose pods are then made; pending pods of the cluster are scheduled, too
    #[arg(long, value_delimiter = ',', value_name = "FILE")]
    pods: Vec<PathBuf>,

    /// How many pods each workload of --pods makes, in place of what it says
    #[arg(long, value_name = "N", requires = "pods")]
    replicas: Option<u32>,

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
    what_if: ClusterEdits,

    #[command(flatten)]
    preferred: Preferred,
}

/// What was read.
pub(crate) struct Given {
    pub(crate) objects: Vec<Object>,
    pub(crate) configuration: Configuration,
    /// What is worth a look in the configuration; it was told already.
    pub(crate) configuration_warnings: Problems,
    pub(crate) now: Timestamp,
    /// How much of the cluster was used as it was read.
    pub(crate) before: Utilisation,
    /// Pods that were taken off their nodes, and where they were.
    pub(crate) was_on: HashMap<Key, Name>,
    /// What pods are completed from, for pods that are read later.
    pub(crate) completing: Vec<Object>,
    /// Calls the extenders, if there are any.
    pub(crate) extender_caller: Option<ExtenderCaller>,
}

impl Inputs {
    /// Reads everything; or tells everything that is wrong. What is only worth a look is told at once.
    pub(crate) fn read(&self, console: &mut Console, registry: &Registry) -> Result<Given, Problems> {
        let (configuration, configuration_warnings) =
            match load_configuration(self.config.as_ref(), console, registry) {
                Ok(loaded) => (Ok(loaded.configuration), loaded.warnings),
                Err(problems) => (Err(problems), Problems::default()),
            };
        let asks = configuration.as_ref().is_ok_and(|read| !read.extenders.is_empty()) && !self.no_extenders;
        let declared = configuration.as_ref().map(|read| read.declared(registry)).unwrap_or_default();
        let reader = reader(&declared).keeping([Kind::Node, Kind::Pod].into_iter().filter(|_| asks));
        match (self.read_objects(reader, configuration.as_ref().ok(), registry, console), configuration) {
            (Ok(mut objects), Ok(configuration)) => {
                let making = Making {
                    replicas: self.replicas,
                    namespace: self.namespace.as_deref(),
                    declared: &declared,
                };
                let before = Utilisation::of_objects(&objects.objects);
                let is_completing = |object: &&Object| matches!(object, Object::Custom(custom) if COMPLETING.contains(&custom.api));
                let completing = objects.objects.iter().filter(is_completing).cloned().collect();
                self.what_if.add_nodes(&mut objects.objects)?;
                making.complete(&mut objects, &[], console)?;
                console.warnings(&self.preferred.put(&mut objects, &configuration)?);
                tell_skipped(&objects, console);
                let mut extender_caller =
                    asks.then(|| ExtenderCaller::new(&configuration, &objects)).transpose()?;
                if extender_caller.is_none() {
                    tell_extenders(&configuration, console);
                }
                let (mut objects, now) = (objects.objects, self.preferred.now());
                let was_on = self.what_if.unbind(&mut objects, &configuration, console)?;
                resource_claims::give_back(&mut objects, &was_on.keys().cloned().collect());
                if let Some(extender_caller) = &mut extender_caller {
                    let unbound = pods(&objects).filter(|pod| was_on.contains_key(&pod.key()));
                    unbound.for_each(|pod| extender_caller.unbind(pod));
                }
                Ok(Given {
                    objects,
                    configuration,
                    configuration_warnings,
                    now,
                    before,
                    was_on,
                    completing,
                    extender_caller,
                })
            }
            (objects, configuration) => {
                let problems = [objects.err(), configuration.err()];
                Err(problems.into_iter().flatten().flatten().collect())
            }
        }
    }

    /// The objects of the live cluster, if it is to be read, and then those of the files. What is live is read only once the
    /// configuration makes sense: it says which objects are needed.
    fn read_objects(
        &self,
        mut reader: Reader,
        configuration: Option<&Configuration>,
        registry: &Registry,
        console: &mut Console,
    ) -> Result<Objects, Problems> {
        if let Some(configuration) = configuration.filter(|_| self.live.is_named() || self.cluster.is_empty())
        {
            let profiles = configuration.profiles(registry)?;
            let profiles = profiles.iter().map(|ready| &ready.profile);
            let mut resources = informer::resources(&configuration.declared(registry), profiles);
            for kind in COMPLETING.map(Kind::Custom) {
                if !resources.iter().any(|resource| resource.kind == kind) {
                    resources.extend(informer::Resource::of(kind));
                }
            }
            self.live.read(&resources, &mut reader, console)?;
        }
        // All that cannot be read is told at once.
        let lists = [self.cluster.iter().collect(), self.pods.iter().collect()];
        let [of_cluster, of_pods] = input::manifests_of(lists)?;
        of_cluster.iter().for_each(|source| reader.read(source));
        reader.expect_new(WORKLOADS, self.namespace.as_deref());
        of_pods.iter().for_each(|source| reader.read(source));
        reader.finish()
    }

    /// What the cluster is called.
    pub(crate) fn name(&self) -> String {
        let files = self.cluster.iter().chain(&self.pods).map(PathBuf::as_path);
        if self.cluster.is_empty() {
            "live cluster, as it was read".to_owned()
        } else {
            crate::ui::title_of(files)
        }
    }

    /// A pod's name with its namespace, where that was given apart.
    pub(crate) fn qualified(&self, pod: &str) -> String {
        match &self.namespace {
            Some(namespace) if !pod.contains('/') => format!("{namespace}/{pod}"),
            _ => pod.to_owned(),
        }
    }
}

fn pods(objects: &[Object]) -> impl Iterator<Item = &Pod> {
    objects.iter().filter_map(|object| match object {
        Object::Pod(pod) => Some(pod),
        _ => None,
    })
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
    load_configuration(path, console, registry).map(|loaded| loaded.configuration)
}

/// The same, with the warnings that were told.
pub(crate) fn load_configuration(
    path: Option<&PathBuf>,
    console: &mut Console,
    registry: &Registry,
) -> Result<Loaded, Problems> {
    let Some(path) = path else {
        let configuration = configuration::default_configuration(registry)?;
        return Ok(Loaded { configuration, warnings: Problems::default() });
    };
    let loaded = configuration::load(&input::text(path)?, registry)?;
    console.warnings(&loaded.warnings);
    Ok(loaded)
}

/// Says what was left out, what took the place of something else, and what an API server would not have let pass.
pub(crate) fn tell_skipped(objects: &Objects, console: &mut Console) {
    console.warnings(&objects.warnings);
    match objects.replaced {
        0 => {}
        1 => console.note("1 object is in several files; the last one counts"),
        n => console.note(format!("{n} objects are in several files; the last one counts")),
    }
    let count: usize = objects.skipped.values().sum();
    if count > 0 {
        let kinds: Vec<String> = objects.skipped.iter().map(|(kind, n)| format!("{kind} × {n}")).collect();
        let noun = if count == 1 { "object" } else { "objects" };
        console.note(format!("skipped {count} {noun} that a scheduler does not read: {}", kinds.join(", ")));
    }
}

/// Says whose say is missing.
pub(crate) fn tell_extenders(configuration: &Configuration, console: &mut Console) {
    let names: Vec<_> = configuration.extenders.iter().map(|extender| extender.name()).collect();
    if !names.is_empty() {
        console.note(format!(
            "extenders are not called, so results are without their scores: {}",
            names.join(", ")
        ));
    }
}
