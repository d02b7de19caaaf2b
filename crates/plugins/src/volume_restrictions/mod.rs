//! Keeps pods apart that must not use a volume at once: some disks on one node, and claims for a single pod anywhere.

mod details;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    fast::{Compiled, FastFilter, FilterPart},
    points::{Filter, PreFilter, PreFilterOutcome, Requeue},
};
use supercargo_model::{
    Cluster, Key, Name, NodeInfo, Pod,
    object::Object,
    storage::{AccessMode, Disk, VolumeSource},
};

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
    disks: Arc<Disks>,
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
        Ok(PreFilterOutcome::go(SinglePodClaims { names, uses, disks: Arc::new(Disks::of(pod)) }))
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
        let prepared = prepared.get::<SinglePodClaims>();
        let disks =
            prepared.as_ref().map_or_else(|_| Arc::new(Disks::of(pod)), |claims| claims.disks.clone());
        if node.pods.iter().any(|other| disks.conflict(other)) {
            return Err(Status::unschedulable(DISK_IN_USE));
        }
        match prepared?.uses {
            ..=0 => Ok(()),
            _ => Err(Status::unschedulable(CLAIM_IN_USE)),
        }
    }

    fn details(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        details::details(prepared.get().ok(), cluster, pod, node)
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

/// What makes two disks the same.
#[derive(Clone, PartialEq, Eq, Hash)]
enum DiskKey {
    Gce(Name),
    Aws(Name),
    Iscsi(Name),
    /// Any monitor in common will do: pool, image, monitor.
    Rbd(Name, Name, Name),
}

/// The keys of a disk, and whether it is used in a way that others may share.
fn keys(disk: &Disk) -> (Vec<DiskKey>, bool) {
    match disk {
        Disk::GcePersistentDisk(disk) => (vec![DiskKey::Gce(disk.pd_name.clone())], disk.read_only),
        // Reading the same disk together is fine, except for Amazon's.
        Disk::AwsElasticBlockStore(disk) => (vec![DiskKey::Aws(disk.volume_id.clone())], false),
        Disk::Iscsi(disk) => (vec![DiskKey::Iscsi(disk.iqn.clone())], disk.read_only),
        Disk::Rbd(disk) => {
            let key = |monitor: &Name| DiskKey::Rbd(disk.pool.clone(), disk.image.clone(), monitor.clone());
            (disk.monitors.iter().map(key).collect(), disk.read_only)
        }
        _ => (Vec::new(), true),
    }
}

/// The disks of a pod, to be found by those of another: whether all uses of a disk are ones that others may share.
#[derive(Clone, Default)]
struct Disks(HashMap<DiskKey, bool>);

impl Disks {
    fn of(pod: &Pod) -> Self {
        let mut all: HashMap<DiskKey, bool> = HashMap::new();
        for disk in disks(pod) {
            let (keys, shareable) = keys(disk);
            for key in keys {
                all.entry(key).and_modify(|all| *all &= shareable).or_insert(shareable);
            }
        }
        Self(all)
    }

    /// Whether another pod uses one of the disks in a way that rules the two out.
    fn conflict(&self, other: &Pod) -> bool {
        !self.0.is_empty()
            && disks(other).any(|disk| {
                let (keys, shareable) = keys(disk);
                keys.iter().any(|key| self.0.get(key).is_some_and(|ours| !(*ours && shareable)))
            })
    }
}

impl Requeue for VolumeRestrictions {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(EventResource::Pod, [ActionType::Delete])
                .if_pod(|pod, deleted, _| deleted.is_none_or(|deleted| stood_in_the_way(pod, deleted))),
            EventInterest::new(EventResource::Node, [ActionType::Add]),
            EventInterest::new(EventResource::PersistentVolumeClaim, [ActionType::Add]).if_object(
                |pod, _, added| match added {
                    Some(Object::PersistentVolumeClaim(claim)) => {
                        claim.namespace == pod.namespace && claim_names(pod).any(|name| *name == claim.name)
                    }
                    _ => true,
                },
            ),
        ]
    }
}

/// Any shared claim counts: whether it is for a single pod is seen when the pod is tried again.
fn stood_in_the_way(pod: &Pod, deleted: &Pod) -> bool {
    let share_a_claim = || {
        let names: HashSet<&Name> = claim_names(pod).collect();
        claim_names(deleted).any(|name| names.contains(name))
    };
    pod.namespace == deleted.namespace && (Disks::of(pod).conflict(deleted) || share_a_claim())
}

impl FastFilter for VolumeRestrictions {
    /// Disks and claims for a single pod are looked at anew for every pod.
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let is_free = |claims: BTreeSet<Name>| claims.is_empty() && disks(pod).next().is_none();
        if single_pod_claims(cluster, pod).is_ok_and(is_free) { Compiled::Idle } else { Compiled::NoFastForm }
    }

    fn reads_claims(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
