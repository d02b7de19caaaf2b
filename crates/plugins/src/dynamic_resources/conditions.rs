//! What must become true of devices before a pod that uses them is bound.

use std::time::Duration;

use supercargo_model::{
    Timestamp,
    devices::{AllocatedDevice, AllocatedDeviceStatus, ResourceClaim},
};

/// How far the devices of a claim are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Everything that has to be true is.
    Ready,
    /// Something is not true yet.
    NotYet,
    /// Something has gone wrong.
    Failed(String),
}

/// How far the devices of a claim are. One without an allocation is not ready.
pub(super) fn readiness(claim: &ResourceClaim) -> Readiness {
    let Some(allocation) = &claim.allocation else { return Readiness::NotYet };
    for device in allocation.devices.results.iter().filter(|device| !device.binding_conditions.is_empty()) {
        let Some(status) = status_of(claim, device) else { return Readiness::NotYet };
        let holds = |kind: &str| status.conditions.iter().find(|condition| *condition.kind == *kind);
        let is_true = |kind: &str| holds(kind).filter(|condition| &*condition.status == "True");
        if let Some(failed) = device.binding_failure_conditions.iter().find_map(|kind| is_true(kind)) {
            return Readiness::Failed(format!(
                "device binding failed: claim={}, reason={}, message={:?}",
                claim.name, failed.reason, failed.message
            ));
        }
        if device.binding_conditions.iter().any(|kind| is_true(kind).is_none()) {
            return Readiness::NotYet;
        }
    }
    Readiness::Ready
}

fn status_of<'c>(claim: &'c ResourceClaim, device: &AllocatedDevice) -> Option<&'c AllocatedDeviceStatus> {
    let same = |status: &&AllocatedDeviceStatus| {
        status.device == device.device && status.driver == device.driver && status.pool == device.pool
    };
    claim.devices.iter().find(same)
}

/// Whether a claim has devices that must get ready.
pub(super) fn has_conditions(claim: &ResourceClaim) -> bool {
    let devices = claim.allocation.iter().flat_map(|allocation| &allocation.devices.results);
    devices.into_iter().any(|device| !device.binding_conditions.is_empty())
}

/// When the devices of a claim should have been ready; `None` if nobody said when it was allocated, or none must get ready.
pub(super) fn due(claim: &ResourceClaim, timeout: Duration) -> Option<Timestamp> {
    let allocated = claim.allocation.as_ref()?.allocation_timestamp?;
    if has_conditions(claim) { allocated.checked_add(timeout).ok() } else { None }
}
