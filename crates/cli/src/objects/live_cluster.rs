//! A live cluster, read once and read-only.

use std::path::PathBuf;

use supercargo_live::{
    informer::{
        Resource,
        snapshot::{self, NotListed},
    },
    real::{RealWorld, RestConfig},
};
use supercargo_manifest::{Problem, Problems};
use supercargo_model::object::{Kind, Reader};

use crate::{
    output::{Console, Spinner},
    run::runtime,
};

/// How many objects are told that make no sense.
const MAX_TOLD_UNREADABLE: usize = 10;

/// Which cluster is read, as kubectl finds it.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LiveCluster {
    /// The kubeconfig of the live cluster to read (GET requests only); without it KUBECONFIG, the pod's own account, or
    /// ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context, in place of its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The address of the API server, in place of the kubeconfig's
    #[arg(long, value_name = "URL")]
    master: Option<String>,
}

impl LiveCluster {
    /// Whether a live cluster was asked for in so many words.
    pub(crate) fn is_named(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.master.is_some()
    }

    /// How it is reached.
    pub(crate) fn rest_config(&self) -> RestConfig {
        RestConfig {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            master: self.master.clone(),
            ..RestConfig::default()
        }
    }

    /// Reads the objects of all these resources.
    pub(super) fn read(
        &self,
        resources: &[Resource],
        reader: &mut Reader,
        console: &mut Console,
    ) -> Result<(), Problems> {
        let runtime = runtime()?;
        let world = runtime.block_on(RealWorld::open(&self.rest_config())).map_err(unreachable)?;
        let spinner = Spinner::new(console);
        let mut warnings = Problems::default();
        for resource in resources {
            let read = |text: &str| match snapshot::object(text, resource) {
                Ok(object) => Ok((object, reader.keeps(resource.kind).then(|| text.to_owned()))),
                Err(unreadable) => Err(unreadable),
            };
            let progress = |count| {
                spinner.say(format!("{}: {count} {}", world.server(), resource.kind.api().plural));
            };
            match runtime.block_on(snapshot::list(&world, resource, read, progress)) {
                Ok(listed) => {
                    for item in listed.items {
                        match item {
                            Ok((object, text)) => reader.take(object, text),
                            Err(unreadable) => warnings.push(Problem::warning(format!(
                                "{} {} is left out: {}",
                                resource.kind.name(),
                                unreadable.key,
                                unreadable.reason
                            ))),
                        }
                    }
                }
                Err(why) => warnings.push(not_listed(resource.kind, world.server(), why)?),
            }
        }
        spinner.finish();
        tell(warnings, console);
        Ok(())
    }
}

fn unreachable(error: supercargo_live::real::Unreachable) -> Problems {
    let with_files = |problem: Problem| match (&problem.source, problem.hint.clone()) {
        // Nothing is wrong in a file; then others will do.
        (None, Some(hint)) => problem.hint(format!("{hint}, or files with --cluster")),
        _ => problem,
    };
    Problems::from(error).into_iter().map(with_files).collect()
}

/// What is missing without a kind, as a warning; an error where nothing can be said without it.
fn not_listed(kind: Kind, server: &str, why: NotListed) -> Result<Problem, Problem> {
    let plural = kind.api().plural;
    match why {
        NotListed::NotServed => Ok(Problem::warning(format!(
            "{server} does not serve {plural}: {}",
            missing(kind)
        ))),
        NotListed::Forbidden(said) if matches!(kind, Kind::Node | Kind::Pod) => {
            Err(Problem::error(format!("{plural} may not be listed: {said}")).hint(format!(
                "grant get and list on {plural} in all namespaces (`supercargo rbac` prints roles), or read files with --cluster"
            )))
        }
        NotListed::Forbidden(said) => {
            Ok(Problem::warning(format!("{plural} may not be listed: {said}; {}", missing(kind))))
        }
        NotListed::Failed(why) => {
            Err(Problem::error(format!("cannot list {plural} of {server}: {why}")))
        }
    }
}

/// What is then not known.
fn missing(kind: Kind) -> &'static str {
    match kind {
        Kind::Node | Kind::Pod => "nothing can be decided",
        Kind::Namespace => "selectors of namespaces match none",
        Kind::Service | Kind::ReplicationController | Kind::ReplicaSet | Kind::StatefulSet => {
            "pods are not spread by these by default"
        }
        Kind::PersistentVolume
        | Kind::PersistentVolumeClaim
        | Kind::StorageClass
        | Kind::CsiNode
        | Kind::CsiDriver
        | Kind::CsiStorageCapacity
        | Kind::VolumeAttachment => "pods with volumes may be decided differently",
        Kind::ResourceClaim | Kind::ResourceSlice | Kind::DeviceClass => {
            "pods with claims to devices may be decided differently"
        }
        Kind::PodDisruptionBudget => "preemption goes by no budget",
        Kind::ConfigMap => "preferences in it do not count",
        Kind::Custom(_) => "whoever reads them sees none",
    }
}

/// Tells what was left out; of many unreadable objects, the first.
fn tell(mut warnings: Problems, console: &mut Console) {
    let more = warnings.len().saturating_sub(MAX_TOLD_UNREADABLE + Kind::ALL.len());
    warnings.0.truncate(warnings.len() - more);
    console.warnings(&warnings);
    if more > 0 {
        console.note(format!("… and {more} more"));
    }
}
