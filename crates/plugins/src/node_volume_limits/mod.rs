//! Keeps pods off nodes that cannot attach their volumes besides those they have: CSI drivers say how many they can.

use std::sync::Arc;

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    points::{Filter, PreFilter, PreFilterOutcome, Requeue},
};
use supercargo_model::{
    Cluster, Name, NodeInfo, Pod,
    object::Object,
    storage::{CsiNode, PersistentVolumeClaim, Volume, VolumeAttachment, VolumeSource},
};

mod attachable;
mod fast;

use attachable::{Attachable, HashMap, HashSet, MissingClaim, attachable_volumes, attached_by_node};
use fast::KeptAttached;

/// The plugin's name.
pub const NAME: &str = "NodeVolumeLimits";

const LIMIT_EXCEEDED: &str = "node(s) exceed max volume count";

/// The plugin.
#[derive(Default)]
pub struct NodeVolumeLimits {
    attached: KeptAttached,
}

/// What the pod would attach to a node, and what is attached already.
#[derive(Clone)]
struct Attachments {
    /// The pod's volumes on a node with a CSINode, where disks of the way of old belong to CSI drivers.
    wanted: Result<Arc<HashSet<Attachable>>, Status>,
    /// How many they are, by driver.
    by_driver: Arc<HashMap<Name, i64>>,
    /// Whether the pod may go to a node without one, which has no limits.
    elsewhere: Verdict,
    /// By node: what VolumeAttachments say.
    attached: Arc<HashMap<Name, HashSet<Attachable>>>,
}

impl Attachments {
    fn of(cluster: &Cluster, pod: &Pod) -> Self {
        let wanted = |on_csi_node| attachable_volumes(cluster, pod, on_csi_node, MissingClaim::Refuses);
        let on_csi_node = wanted(true);
        let mut by_driver: HashMap<Name, i64> = HashMap::default();
        for volume in on_csi_node.iter().flatten() {
            *by_driver.entry(volume.driver.clone()).or_default() += 1;
        }
        Self {
            wanted: on_csi_node.map(Arc::new),
            by_driver: Arc::new(by_driver),
            elsewhere: wanted(false).map(drop),
            attached: Arc::new(attached_by_node(cluster)),
        }
    }

    fn check(&self, cluster: &Cluster, node: &NodeInfo) -> Verdict {
        if self.excesses(cluster, node)?.is_empty() {
            Ok(())
        } else {
            Err(Status::unschedulable(LIMIT_EXCEEDED))
        }
    }

    /// The drivers that would have to attach more than they can.
    fn excesses(&self, cluster: &Cluster, node: &NodeInfo) -> Result<Vec<Excess>, Status> {
        let Some(csi_node) = cluster.csi_node(node.name()) else {
            return self.elsewhere.clone().map(|()| Vec::new());
        };
        let wanted = self.wanted.clone()?;
        let limits = limits(csi_node);
        if wanted.is_empty() || limits.is_empty() {
            return Ok(Vec::new());
        }
        let mut used = HashSet::default();
        for pod in &node.pods {
            used.extend(attachable_volumes(cluster, pod, true, MissingClaim::IsIgnored)?);
        }
        // The pod may want thousands of volumes; the node's pods use few of them.
        let shared = count_by_driver(used.iter().filter(|volume| wanted.contains(*volume)));
        // kube-scheduler counts a wanted volume twice that is attached already but that no pod uses yet.
        let unused = self.attached.get(node.name()).into_iter().flatten().filter(|v| !used.contains(*v));
        let present = count_by_driver(used.iter().chain(unused));
        let of = |counts: &HashMap<&Name, i64>, driver: &Name| counts.get(driver).copied().unwrap_or(0);
        let excess = |(driver, wanted): (&Name, &i64)| {
            let (new, attached) = (wanted - of(&shared, driver), of(&present, driver));
            let limit = *limits.get(driver)?;
            let exceeds = new > 0 && attached + new > limit;
            exceeds.then(|| Excess { driver: driver.clone(), new, attached, limit })
        };
        Ok(self.by_driver.iter().filter_map(excess).collect())
    }
}

/// A driver that would have to attach more volumes to a node than it can.
struct Excess {
    driver: Name,
    new: i64,
    attached: i64,
    limit: i64,
}

impl Excess {
    fn detail(&self) -> Detail {
        let Self { driver, new, attached, limit } = self;
        Detail::new(format!(
            "{driver} attaches {attached} volumes of {limit} at most, and the pod brings {new} more"
        ))
        .fact("driver", &**driver)
        .fact("new", *new)
        .fact("attached", *attached)
        .fact("limit", *limit)
    }
}

fn limits(csi_node: &CsiNode) -> HashMap<&Name, i64> {
    let drivers = csi_node.drivers.iter();
    drivers.filter_map(|driver| Some((&driver.name, i64::from(driver.volume_limit?)))).collect()
}

fn count_by_driver<'a>(volumes: impl Iterator<Item = &'a Attachable>) -> HashMap<&'a Name, i64> {
    let mut counts = HashMap::default();
    for volume in volumes {
        *counts.entry(&volume.driver).or_default() += 1;
    }
    counts
}

impl PreFilter for NodeVolumeLimits {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        if !pod.spec.volumes.iter().any(may_be_attached) {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(Attachments::of(cluster, pod)))
    }
}

impl Filter for NodeVolumeLimits {
    fn filter(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        match prepared.get::<Attachments>() {
            Ok(attachments) => attachments.check(cluster, node),
            // kube-scheduler's Filter works without its PreFilter, too.
            Err(_) => Attachments::of(cluster, pod).check(cluster, node),
        }
    }

    fn details(&self, _: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let excesses = Attachments::of(cluster, pod).excesses(cluster, node).unwrap_or_default();
        let mut details: Vec<Detail> = excesses.iter().map(Excess::detail).collect();
        details.sort_by(|one, other| one.text.cmp(&other.text));
        details
    }
}

/// Whether a volume may take up a driver's limit.
fn may_be_attached(volume: &Volume) -> bool {
    match &volume.source {
        VolumeSource::Claim { .. } | VolumeSource::Ephemeral => true,
        VolumeSource::Disk(disk) => disk.csi_driver().is_some(),
        VolumeSource::Csi { .. } | VolumeSource::Image { .. } | VolumeSource::Other => false,
    }
}

impl Requeue for NodeVolumeLimits {
    fn events(&self) -> Vec<EventInterest> {
        use ActionType::{Add, Delete, Update};
        vec![
            EventInterest::new(EventResource::CsiNode, [Add]),
            EventInterest::new(EventResource::CsiNode, [Update]).if_object(|_, before, after| {
                match (before, after) {
                    (Some(Object::CsiNode(before)), Some(Object::CsiNode(after))) => {
                        raises_a_limit(before, after)
                    }
                    _ => true,
                }
            }),
            EventInterest::new(EventResource::Pod, [Delete])
                .if_pod(|_, deleted, _| deleted.is_none_or(held_attachable_volumes)),
            EventInterest::new(EventResource::PersistentVolumeClaim, [Add]).if_object(|pod, _, added| {
                match added {
                    Some(Object::PersistentVolumeClaim(claim)) => uses(pod, claim),
                    _ => true,
                }
            }),
            EventInterest::new(EventResource::VolumeAttachment, [Delete]).if_object(|pod, deleted, _| {
                match deleted {
                    Some(Object::VolumeAttachment(deleted)) => may_use_driver(pod, deleted),
                    _ => true,
                }
            }),
        ]
    }
}

fn raises_a_limit(before: &CsiNode, after: &CsiNode) -> bool {
    let before = limits(before);
    limits(after).iter().any(|(driver, limit)| *limit > before.get(driver).copied().unwrap_or(0))
}

fn held_attachable_volumes(pod: &Pod) -> bool {
    let had_a_node = pod.node.is_some() || pod.nominated_node.is_some();
    had_a_node && pod.spec.volumes.iter().any(may_be_attached)
}

fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let names = |volume: &Volume| volume.claim_name(&pod.name).is_some_and(|name| name == claim.name);
    pod.namespace == claim.namespace && pod.spec.volumes.iter().any(names)
}

/// A claim's driver is looked up when the pod is tried again.
fn may_use_driver(pod: &Pod, deleted: &VolumeAttachment) -> bool {
    pod.spec.volumes.iter().any(|volume| match &volume.source {
        VolumeSource::Claim { .. } => true,
        VolumeSource::Disk(disk) => {
            disk.csi_volume().is_err() || disk.csi_driver().is_some_and(|driver| *driver == *deleted.attacher)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests;
