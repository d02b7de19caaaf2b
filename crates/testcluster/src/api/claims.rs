//! What a change of a ResourceClaim may be.

use serde_json::Value;

use super::Caller;
use crate::failure::{StatusCause, StatusError};
use crate::object::{self, as_map, at, items};
use crate::resource::RESOURCE_CLAIMS;

/// So many can use one claim.
const CONSUMERS_LIMIT: usize = 256;

/// Drivers tell nothing about devices that a claim no longer has.
pub(super) fn forget_devices_if_deallocated(old: &Value, new: &mut Value) {
    if allocation(old).is_some()
        && allocation(new).is_none()
        && let Some(status) = new.get_mut("status")
    {
        as_map(status).remove("devices");
    }
}

/// What is asked for never changes, what was allocated is only taken back as a whole, and who uses a claim has something to
/// use.
pub(super) fn update_is_valid(old: &Value, new: &Value, caller: &Caller) -> Result<(), StatusError> {
    let refuse = |cause| Err(StatusError::invalid(&RESOURCE_CLAIMS, object::name(old), cause));
    if old.get("spec") != new.get("spec") {
        return refuse(StatusCause::bad_value("spec", "…", "field is immutable"));
    }
    if caller.denied_claim_bindings && is_binding_changed(old, new) {
        let why = "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
                   verb=\"update\" permission: access denied";
        return refuse(StatusCause::forbidden("status.allocation", why));
    }
    if allocation(old).is_some() && allocation(new).is_some_and(|now| allocation(old) != Some(now)) {
        return refuse(StatusCause::bad_value("status.allocation", "…", "field is immutable"));
    }
    let (before, now) = (consumers(old), consumers(new));
    if now.len() > CONSUMERS_LIMIT {
        let why = format!("must have at most {CONSUMERS_LIMIT} items");
        return refuse(StatusCause::bad_value("status.reservedFor", now.len(), &why));
    }
    if !now.is_empty() && allocation(new).is_none() {
        let why = "may not be specified when `allocated` is not set";
        return refuse(StatusCause::forbidden("status.reservedFor", why));
    }
    if object::is_terminating(new) && now.iter().any(|consumer| !before.contains(consumer)) {
        let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        return refuse(StatusCause::forbidden("status.reservedFor", why));
    }
    Ok(())
}

fn is_binding_changed(old: &Value, new: &Value) -> bool {
    allocation(old) != allocation(new) || consumers(old) != consumers(new)
}

fn allocation(claim: &Value) -> Option<&Value> {
    at(claim, &["status", "allocation"]).filter(|allocation| !allocation.is_null())
}

fn consumers(claim: &Value) -> &[Value] {
    items(claim, &["status", "reservedFor"])
}
