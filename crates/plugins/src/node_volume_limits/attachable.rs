//! Which volumes CSI drivers attach to nodes, by driver and identity.

use supercargo_framework::Status;
use supercargo_model::{
    Cluster, Key, Name, Pod,
    storage::{Disk, PersistentVolumeClaim, VolumeAttachment, VolumeSource, migrated_driver},
};

pub(super) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
pub(super) type HashSet<T> = std::collections::HashSet<T, foldhash::fast::RandomState>;

/// A volume that a CSI driver attaches to a node. Several pods on a node share one attachment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Attachable {
    pub(super) driver: Name,
    identity: Identity,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    /// The driver's name for it.
    Handle(Name),
    /// It is yet to be made for a claim.
    Claim(Key),
}

/// What to do about a claim that does not exist.
#[derive(Clone, Copy)]
pub(super) enum MissingClaim {
    /// A pod cannot be placed without it.
    Refuses,
    /// Whatever a pod on a node uses in its place, it is not known to be attached.
    IsIgnored,
}

/// The volumes of a pod that CSI drivers attach to its node.
pub(super) fn attachable_volumes(
    cluster: &Cluster,
    pod: &Pod,
    on_csi_node: bool,
    missing: MissingClaim,
) -> Result<HashSet<Attachable>, Status> {
    let mut volumes = HashSet::default();
    for volume in &pod.spec.volumes {
        let attachable = match &volume.source {
            VolumeSource::Disk(disk) if on_csi_node => inline(disk, &volume.name)?,
            _ => match volume.claim_name(&pod.name) {
                Some(claim) => {
                    let must_own = volume.source == VolumeSource::Ephemeral;
                    let claim = find_claim(cluster, pod, claim, must_own, missing)?;
                    claim.and_then(|claim| claimed(cluster, claim, on_csi_node))
                }
                None => None,
            },
        };
        volumes.extend(attachable);
    }
    Ok(volumes)
}

/// A disk that the pod itself names.
fn inline(disk: &Disk, volume: &str) -> Result<Option<Attachable>, Status> {
    let csi = disk
        .csi_volume()
        .map_err(|error| Status::error(format!("converting volume({volume}) from inline to csi: {error}")))?;
    Ok(csi.map(|csi| Attachable {
        driver: csi.driver,
        identity: Identity::Handle(csi.volume_handle.unwrap_or_default()),
    }))
}

fn find_claim<'a>(
    cluster: &'a Cluster,
    pod: &Pod,
    name: Name,
    must_own: bool,
    missing: MissingClaim,
) -> Result<Option<&'a PersistentVolumeClaim>, Status> {
    if name.is_empty() {
        return Err(Status::error("PersistentVolumeClaim had no name"));
    }
    let key = Key::new(pod.namespace.clone(), name);
    let Some(claim) = cluster.claim(&key) else {
        return match missing {
            MissingClaim::IsIgnored => Ok(None),
            MissingClaim::Refuses => Err(Status::unresolvable(format!(
                "looking up PVC {key}: persistentvolumeclaim {:?} not found",
                key.name
            ))),
        };
    };
    if must_own && claim.controller_uid.as_ref() != Some(&pod.uid) {
        return Err(Status::error(format!(
            "PVC {key} was not created for pod {} (pod is not owner)",
            pod.key()
        )));
    }
    Ok(Some(claim))
}

/// The volume behind a claim, or the one that its class would make. What is not a CSI driver's does not count.
fn claimed(cluster: &Cluster, claim: &PersistentVolumeClaim, on_csi_node: bool) -> Option<Attachable> {
    let Some(volume) = cluster.volume(&claim.volume) else {
        return to_be_made(cluster, claim, on_csi_node);
    };
    if volume.csi.is_none() && !on_csi_node {
        return None;
    }
    let csi = volume.csi_volume().ok()??;
    let handle = csi.volume_handle.filter(|handle| !handle.is_empty())?;
    (!csi.driver.is_empty()).then_some(Attachable { driver: csi.driver, identity: Identity::Handle(handle) })
}

fn to_be_made(cluster: &Cluster, claim: &PersistentVolumeClaim, on_csi_node: bool) -> Option<Attachable> {
    let class = cluster.storage_class(claim.class_name())?;
    let driver = match migrated_driver(&class.provisioner) {
        Some(migrated) => migrated.filter(|_| on_csi_node)?.into(),
        None => class.provisioner.clone(),
    };
    (!driver.is_empty()).then_some(Attachable { driver, identity: Identity::Claim(claim.key()) })
}

/// What VolumeAttachments say is attached, by node.
pub(super) fn attached_by_node(cluster: &Cluster) -> HashMap<Name, HashSet<Attachable>> {
    let mut nodes: HashMap<Name, HashSet<Attachable>> = HashMap::default();
    for attachment in cluster.attachments() {
        if let Some(volume) = attached(cluster, attachment) {
            nodes.entry(attachment.node.clone()).or_default().insert(volume);
        }
    }
    nodes
}

fn attached(cluster: &Cluster, attachment: &VolumeAttachment) -> Option<Attachable> {
    let volume = cluster.volume(attachment.volume.as_ref()?)?;
    let handle = volume.csi.as_ref()?.volume_handle.clone().unwrap_or_default();
    (!attachment.attacher.is_empty())
        .then_some(Attachable { driver: attachment.attacher.clone(), identity: Identity::Handle(handle) })
}
