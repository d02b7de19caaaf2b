//! The claims that a pod names, and whether it may use them.

use std::sync::Arc;

use supercargo_framework::Status;
use supercargo_model::{
    Key, Pod,
    devices::{Devices, ResourceClaim},
    pod::PodResourceClaim,
};

/// The claims of a pod, in its order; or why it cannot be scheduled yet.
pub(super) fn claims_of(devices: &Devices, pod: &Pod) -> Result<Vec<Arc<ResourceClaim>>, Status> {
    let named = pod.spec.resource_claims.iter();
    let found = named.filter_map(|named| claim_of(devices, pod, named).transpose());
    found.collect::<Result<_, String>>().map_err(Status::unresolvable)
}

/// `None` if the claim is not needed.
fn claim_of(
    devices: &Devices,
    pod: &Pod,
    named: &PodResourceClaim,
) -> Result<Option<Arc<ResourceClaim>>, String> {
    let (name, is_generated) = match (&named.resource_claim_name, &named.resource_claim_template_name) {
        (Some(name), _) => (name, false),
        (None, Some(_)) => {
            let statuses = pod.claims.iter().flat_map(|claims| &claims.generated);
            match statuses.into_iter().find(|status| status.name == named.name) {
                Some(status) => match &status.resource_claim_name {
                    Some(name) => (name, true),
                    None => return Ok(None),
                },
                None => return Err(format!("pod \"{}\": ResourceClaim not created yet", pod.key())),
            }
        }
        (None, None) => {
            return Err(format!(
                "pod \"{}\", spec.resourceClaim {:?}: none of the supported fields are set",
                pod.key(),
                named.name
            ));
        }
    };
    let key = Key::new(pod.namespace.clone(), name.clone());
    let Some(claim) = devices.claim(&key) else {
        return Err(format!("could not find ResourceClaim \"{key}\""));
    };
    if claim.terminating {
        return Err(format!("resourceclaim {name:?} is being deleted"));
    }
    if is_generated && !claim.is_controlled_by(&pod.uid) {
        let pod = pod.key();
        return Err(format!("ResourceClaim {key} was not created for Pod {pod} (Pod is not owner)"));
    }
    Ok(Some(claim.clone()))
}

/// Whether the pod has claims, or may get one for its extended resources.
pub(super) fn may_need_devices(devices: &Devices, pod: &Pod) -> bool {
    !pod.spec.resource_claims.is_empty() || asks_for_devices(devices, pod)
}

/// Whether a class of devices stands for an extended resource that the pod asks for.
pub(super) fn asks_for_devices(devices: &Devices, pod: &Pod) -> bool {
    let scalars = &pod.spec.requests.fit.scalars;
    scalars.iter().any(|(name, amount)| *amount != 0 && devices.class_of_resource(name).is_some())
}
