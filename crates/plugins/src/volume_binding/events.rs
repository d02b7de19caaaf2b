//! What can make a pod schedulable that was refused for its volumes.

use supercargo_framework::event::{
    ActionType::{Add, Update, UpdateNodeLabel},
    EventInterest, EventResource,
};
use supercargo_model::{
    Pod,
    object::Object,
    storage::{CsiDriver, CsiStorageCapacity, PersistentVolumeClaim, Volume, VolumeSource},
};

pub(super) fn interests() -> Vec<EventInterest> {
    vec![
        EventInterest::new(EventResource::StorageClass, [Add, Update]).if_object(|_, before, after| {
            match (before, after) {
                (Some(Object::StorageClass(before)), Some(Object::StorageClass(after))) => {
                    before.allowed_topologies != after.allowed_topologies
                }
                _ => true,
            }
        }),
        EventInterest::new(EventResource::PersistentVolumeClaim, [Add, Update]).if_object(|pod, _, after| {
            match after {
                Some(Object::PersistentVolumeClaim(claim)) => uses(pod, claim),
                _ => true,
            }
        }),
        EventInterest::new(EventResource::PersistentVolume, [Add, Update]),
        EventInterest::new(EventResource::Node, [Add, UpdateNodeLabel]),
        EventInterest::new(EventResource::CsiNode, [Add, Update]).if_object(|_, before, after| {
            match (before, after) {
                (Some(Object::CsiNode(before)), Some(Object::CsiNode(after))) => {
                    before.migrated_plugins != after.migrated_plugins
                }
                _ => true,
            }
        }),
        EventInterest::new(EventResource::CsiDriver, [Update]).if_object(|pod, before, after| {
            match (before, after) {
                (Some(Object::CsiDriver(before)), Some(Object::CsiDriver(after))) => {
                    stops_counting(pod, before, after)
                }
                _ => true,
            }
        }),
        EventInterest::new(EventResource::CsiStorageCapacity, [Add, Update]).if_object(|_, before, after| {
            match (before, after) {
                (Some(Object::CsiStorageCapacity(before)), Some(Object::CsiStorageCapacity(after))) => {
                    has_more_room(before, after)
                }
                _ => true,
            }
        }),
    ]
}

fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let names = |volume: &Volume| volume.claim_name(&pod.name).is_some_and(|name| name == claim.name);
    pod.namespace == claim.namespace && pod.spec.volumes.iter().any(names)
}

/// The driver no longer says how much room it has, so that room is no longer asked for.
fn stops_counting(pod: &Pod, before: &CsiDriver, after: &CsiDriver) -> bool {
    let is_used =
        |volume: &Volume| matches!(&volume.source, VolumeSource::Csi { driver } if *driver == after.name);
    before.storage_capacity && !after.storage_capacity && pod.spec.volumes.iter().any(is_used)
}

fn has_more_room(before: &CsiStorageCapacity, after: &CsiStorageCapacity) -> bool {
    let limit = |capacity: &CsiStorageCapacity| capacity.volume_limit().map(|limit| limit.value());
    // Nothing known is less than anything known.
    limit(after) > limit(before)
}
