//! Claims to devices offline: what a plugin is shown of one, what is kept of what it writes, and the claim controller.

use serde_json::{Value, json};
use supercargo_model::{
    Key, Name, Pod,
    devices::{AllocatedDeviceStatus, ResourceClaim},
    object::{Kind, Object},
};

use super::OfflineScheduler;

/// The claim controller.
impl OfflineScheduler {
    /// A pod is gone. Claims that were made for it go with it; of others, the last pod gives the devices back.
    pub(super) fn claims_are_given_back(&mut self, pod: &Pod) {
        for key in claims_of(pod) {
            let Some(Object::ResourceClaim(mut claim)) = self.stored(Kind::ResourceClaim, &key) else {
                continue;
            };
            if claim.owners.iter().any(|owner| owner.controller == Some(true) && owner.uid == pod.uid) {
                self.object_is_gone(Kind::ResourceClaim, &key);
                continue;
            }
            let before = claim.reserved_for.len();
            claim.reserved_for.retain(|consumer| consumer.uid != pod.uid);
            if claim.reserved_for.len() == before {
                continue;
            }
            if claim.reserved_for.is_empty() {
                claim.allocation = None;
                claim.devices = Vec::new();
            }
            claim.version = self.new_version();
            self.object_is(Object::ResourceClaim(claim));
        }
    }
}

fn claims_of(pod: &Pod) -> Vec<Key> {
    let named = pod.spec.resource_claims.iter().filter_map(|claim| claim.resource_claim_name.clone());
    let made = pod.claims.iter().flat_map(|made| {
        let generated = made.generated.iter().filter_map(|claim| claim.resource_claim_name.clone());
        generated.chain(made.extended.iter().map(|claim| claim.resource_claim_name.clone()))
    });
    named.chain(made).map(|name| Key::new(pod.namespace.clone(), name)).collect()
}

/// What a plugin is shown of a claim: all but what it asks for, which nobody changes.
pub(super) fn as_json(claim: &ResourceClaim) -> Value {
    let owners: Vec<Value> = claim
        .owners
        .iter()
        .map(|owner| {
            let controller = owner.controller == Some(true);
            json!({"kind": &*owner.kind, "name": &*owner.name, "uid": &*owner.uid, "controller": controller})
        })
        .collect();
    let mut json = json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {
            "name": &*claim.name, "namespace": &*claim.namespace, "uid": &*claim.uid,
            "resourceVersion": &*claim.version.0, "ownerReferences": owners,
        },
        "status": {},
    });
    if claim.terminating {
        json["metadata"]["deletionTimestamp"] = "1970-01-01T00:00:00Z".into();
    }
    if let Some(allocation) = &claim.allocation {
        json["status"]["allocation"] = json!(allocation);
    }
    if !claim.reserved_for.is_empty() {
        json["status"]["reservedFor"] = json!(claim.reserved_for);
    }
    if !claim.devices.is_empty() {
        json["status"]["devices"] = claim.devices.iter().map(device_as_json).collect();
    }
    json
}

fn device_as_json(device: &AllocatedDeviceStatus) -> Value {
    let text = |name: &Name| Value::from(&**name);
    let conditions = device.conditions.iter().map(|condition| {
        json!({
            "type": text(&condition.kind), "status": text(&condition.status),
            "reason": text(&condition.reason), "message": text(&condition.message),
        })
    });
    let mut json = json!({
        "driver": text(&device.driver), "pool": text(&device.pool), "device": text(&device.device),
        "conditions": conditions.collect::<Value>(),
    });
    if let Some(share) = &device.share_id {
        json["shareID"] = text(share);
    }
    json
}

/// A claim with what was written into it: what it asks for, and whose it is, stays.
pub(super) fn edited(before: ResourceClaim, now: ResourceClaim) -> ResourceClaim {
    let ResourceClaim { version, allocation, reserved_for, devices, .. } = now;
    let devices = if allocation.is_some() { devices } else { Vec::new() };
    ResourceClaim { version, allocation, reserved_for, devices, ..before }
}
