//! Keeps pods apart that must not use a volume at once: some disks on one node, and claims for a single pod anywhere.

use std::collections::BTreeSet;

use std::sync::Arc;

use supercargo_framework::{
    Prepared, Status, Verdict,
    event::{Action, EventInterest, Resource},
    fast::{Compiled, FastFilter, FilterPart},
    points::{Filter, PreFilter, PreFilterOutcome, Requeue},
};
use supercargo_model::{
    Cluster, Key, Name, NodeInfo, Pod,
    object::Object,
    storage::{AccessMode, Disk, VolumeSource},
};

use crate::fast_parts::only_without_volumes;

/// The plugin's name.
pub const NAME: &str = "VolumeRestrictions";

const DISK_IN_USE: &str = "node(s) had no available disk";
const CLAIM_IN_USE: &str = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod";

/// The plugin.
pub struct VolumeRestrictions;

/// The pod's claims that only one pod may use.
#[derive(Clone)]
struct SinglePodClaims {
    names: BTreeSet<Name>,
    /// How often bound pods name them.
    uses: i64,
}

impl SinglePodClaims {
    /// Counts by name alone, whatever the other pod's namespace: kube-scheduler does so while it tries "what if".
    fn uses_by(&self, other: &Pod) -> i64 {
        claim_names(other).filter(|name| self.names.contains(*name)).count() as i64
    }
}

impl PreFilter for VolumeRestrictions {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        let names = single_pod_claims(cluster, pod)?;
        let used = |name: &&Name| cluster.is_claim_used(&Key::new(pod.namespace.clone(), (*name).clone()));
        let uses = names.iter().filter(used).count() as i64;
        if uses == 0 && disks(pod).next().is_none() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(SinglePodClaims { names, uses }))
    }

    fn add_pod(&self, prepared: &mut Prepared, _: &Pod, added: &Pod, _: &NodeInfo) -> Verdict {
        let claims = prepared.get_mut::<SinglePodClaims>()?;
        claims.uses += claims.uses_by(added);
        Ok(())
    }

    fn remove_pod(&self, prepared: &mut Prepared, _: &Pod, removed: &Pod, _: &NodeInfo) -> Verdict {
        let claims = prepared.get_mut::<SinglePodClaims>()?;
        claims.uses -= claims.uses_by(removed);
        Ok(())
    }
}

impl Filter for VolumeRestrictions {
    fn filter(&self, prepared: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        if node.pods.iter().any(|other| share_a_disk(pod, other)) {
            return Err(Status::unschedulable(DISK_IN_USE));
        }
        match prepared.get::<SinglePodClaims>()?.uses {
            ..=0 => Ok(()),
            _ => Err(Status::unschedulable(CLAIM_IN_USE)),
        }
    }
}

fn claim_names(pod: &Pod) -> impl Iterator<Item = &Name> {
    pod.spec.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Claim { name } => Some(name),
        _ => None,
    })
}

fn single_pod_claims(cluster: &Cluster, pod: &Pod) -> Result<BTreeSet<Name>, Status> {
    let mut names = BTreeSet::new();
    for name in claim_names(pod) {
        let claim = cluster.claim(&Key::new(pod.namespace.clone(), name.clone()));
        let claim =
            claim.ok_or_else(|| Status::unresolvable(format!("persistentvolumeclaim {name:?} not found")))?;
        if claim.access_modes.contains(&AccessMode::ReadWriteOncePod) {
            names.insert(name.clone());
        }
    }
    Ok(names)
}

/// The disks that two pods on a node may not be able to share.
fn disks(pod: &Pod) -> impl Iterator<Item = &Disk> {
    pod.spec.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Disk(
            disk @ (Disk::GcePersistentDisk(_)
            | Disk::AwsElasticBlockStore(_)
            | Disk::Rbd(_)
            | Disk::Iscsi(_)),
        ) => Some(disk),
        _ => None,
    })
}

/// Whether two pods use a disk in a way that rules each other out.
fn share_a_disk(pod: &Pod, other: &Pod) -> bool {
    disks(pod).any(|disk| disks(other).any(|others| conflict(disk, others)))
}

/// Reading the same disk together is fine, except for Amazon's.
fn conflict(one: &Disk, other: &Disk) -> bool {
    match (one, other) {
        (Disk::GcePersistentDisk(one), Disk::GcePersistentDisk(other)) => {
            one.pd_name == other.pd_name && !(one.read_only && other.read_only)
        }
        (Disk::AwsElasticBlockStore(one), Disk::AwsElasticBlockStore(other)) => {
            one.volume_id == other.volume_id
        }
        (Disk::Iscsi(one), Disk::Iscsi(other)) => one.iqn == other.iqn && !(one.read_only && other.read_only),
        (Disk::Rbd(one), Disk::Rbd(other)) => {
            one.monitors.iter().any(|monitor| other.monitors.contains(monitor))
                && (&one.pool, &one.image) == (&other.pool, &other.image)
                && !(one.read_only && other.read_only)
        }
        _ => false,
    }
}

impl Requeue for VolumeRestrictions {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(Resource::Pod, [Action::Delete])
                .if_pod(|pod, deleted, _| deleted.is_none_or(|deleted| stood_in_the_way(pod, deleted))),
            EventInterest::new(Resource::Node, [Action::Add]),
            EventInterest::new(Resource::PersistentVolumeClaim, [Action::Add]).if_object(|pod, _, added| {
                match added {
                    Some(Object::PersistentVolumeClaim(claim)) => {
                        claim.namespace == pod.namespace && claim_names(pod).any(|name| *name == claim.name)
                    }
                    _ => true,
                }
            }),
        ]
    }
}

/// Any shared claim counts: whether it is for a single pod is seen when the pod is tried again.
fn stood_in_the_way(pod: &Pod, deleted: &Pod) -> bool {
    let share_a_claim = || claim_names(pod).any(|name| claim_names(deleted).any(|other| name == other));
    pod.namespace == deleted.namespace && (share_a_disk(pod, deleted) || share_a_claim())
}

impl FastFilter for VolumeRestrictions {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn FilterPart> {
        only_without_volumes(pod)
    }
}

#[cfg(test)]
mod tests;
