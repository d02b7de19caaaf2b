//! What can make a pod schedulable that was refused for its claims.

use supercargo_framework::event::{
    ActionType::{Add, Update, UpdateNodeAllocatable, UpdateNodeLabel, UpdatePodGeneratedResourceClaim},
    Change, EventInterest, EventResource,
};
use supercargo_model::{Cluster, Pod, devices::ResourceClaim, object::Object};

use super::claims::claims_of;

pub(super) fn interests() -> Vec<EventInterest> {
    vec![
        EventInterest::new(EventResource::Node, [Add, UpdateNodeLabel, UpdateNodeAllocatable]),
        EventInterest::new(EventResource::ResourceClaim, [Add, Update]).if_in(after_claim),
        EventInterest::new(EventResource::Pod, [UpdatePodGeneratedResourceClaim]).if_in(after_pod),
        EventInterest::new(EventResource::DeviceClass, [Add, Update]),
        EventInterest::new(EventResource::ResourceSlice, [Add, Update]),
    ]
}

/// A claim was made or has changed. One that gave its devices back helps anybody; others help their own pods.
fn after_claim(cluster: &Cluster, pod: &Pod, change: &Change<'_>) -> bool {
    let Change::Other(before, Some(Object::ResourceClaim(after))) = change else { return true };
    let before = match before {
        Some(Object::ResourceClaim(before)) => Some(before),
        _ => None,
    };
    let Ok(claims) = claims_of(cluster.devices(), pod) else { return false };
    if before.is_some_and(|before| before.allocation.is_some()) && after.allocation.is_none() {
        return true;
    }
    let uses = claims.iter().any(|claim| claim.uid == after.uid);
    uses && before.is_none_or(|before| !has_same_status(before, after))
}

fn has_same_status(one: &ResourceClaim, other: &ResourceClaim) -> bool {
    one.allocation == other.allocation
        && one.reserved_for == other.reserved_for
        && one.devices == other.devices
}

/// The pod's claims were made.
fn after_pod(cluster: &Cluster, pod: &Pod, change: &Change<'_>) -> bool {
    let Change::Pod(_, Some(after)) = change else { return true };
    after.uid == pod.uid && claims_of(cluster.devices(), after).is_ok()
}
