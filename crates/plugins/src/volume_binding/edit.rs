//! What changes in the server's own JSON when a claim gets its volume; every other field stays, known or not.

use serde_json::{Value, json};

use super::{
    annotations::{BOUND_BY_CONTROLLER, SELECTED_NODE},
    plan::ClaimId,
};

/// Points a volume at a claim. Whether that changed anything, or why it cannot be.
pub(super) fn give_away(volume: &mut Value, claim: &Value) -> Result<bool, String> {
    let name = check_form(volume, "PersistentVolume")?;
    if is_terminating(volume) {
        return Err(format!("persistentvolume {name:?} is being deleted"));
    }
    let meta = &claim["metadata"];
    let taken_by = &volume["spec"]["claimRef"];
    let same = |field: &str| taken_by[field] == meta[field];
    let has_uid = taken_by["uid"].as_str().is_some_and(|uid| !uid.is_empty());
    let is_meant = same("namespace") && same("name") && (!has_uid || same("uid"));
    if !taken_by.is_null() && !is_meant {
        return Err(format!("persistentvolume {name:?} is bound to another claim already"));
    }
    if is_meant && has_uid {
        return Ok(false);
    }
    if taken_by.is_null() && volume["metadata"]["annotations"][BOUND_BY_CONTROLLER].is_null() {
        volume["metadata"]["annotations"][BOUND_BY_CONTROLLER] = "yes".into();
    }
    volume["spec"]["claimRef"] = json!({
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    });
    Ok(true)
}

/// Sends a claim to a node, where a volume is to be made for it. Whether that changed anything, or why it cannot be.
pub(super) fn select_node(claim: &mut Value, id: &ClaimId, node: &str) -> Result<bool, String> {
    check_claim(claim, id)?;
    let name = &id.key.name;
    match claim["metadata"]["annotations"][SELECTED_NODE].as_str() {
        Some(selected) if selected == node => return Ok(false),
        Some(other) => {
            return Err(format!("persistentvolumeclaim {name:?} has been given to node {other:?}"));
        }
        None => {}
    }
    if let Some(volume) = volume_of(claim) {
        return Err(format!("persistentvolumeclaim {name:?} has been bound to persistentvolume {volume:?}"));
    }
    claim["metadata"]["annotations"][SELECTED_NODE] = node.into();
    Ok(true)
}

/// Whether a claim is still the one that was planned for, and can get this volume.
pub(super) fn check_free(claim: &Value, id: &ClaimId, volume: &str) -> Result<(), String> {
    check_claim(claim, id)?;
    match volume_of(claim) {
        Some(other) if other != volume => {
            let name = &id.key.name;
            Err(format!("persistentvolumeclaim {name:?} has been bound to persistentvolume {other:?}"))
        }
        _ => Ok(()),
    }
}

fn check_claim(claim: &Value, id: &ClaimId) -> Result<(), String> {
    let name = check_form(claim, "PersistentVolumeClaim")?;
    if claim["metadata"]["uid"] != *id.uid {
        return Err(format!("persistentvolumeclaim {name:?} has been made anew"));
    }
    if is_terminating(claim) {
        return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    Ok(())
}

/// The object's name. Fields can be set only in what has the form of an object.
fn check_form(object: &Value, kind: &str) -> Result<String, String> {
    let (meta, annotations) = (&object["metadata"], &object["metadata"]["annotations"]);
    let well_formed = object["spec"].is_object() && (annotations.is_null() || annotations.is_object());
    let name = meta["name"].as_str().filter(|_| well_formed);
    name.map(str::to_owned).ok_or_else(|| format!("what the server sent is no {kind}"))
}

fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn volume_of(claim: &Value) -> Option<&str> {
    claim["spec"]["volumeName"].as_str().filter(|volume| !volume.is_empty())
}
