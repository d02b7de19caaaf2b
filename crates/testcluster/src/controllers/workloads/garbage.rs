//! What has lost the object that controls it is deleted.

use std::collections::HashSet;
use std::sync::Arc;

use super::{CONTROLLER, all, controller};
use crate::StatusError;
use crate::api::{Api, Caller, DeleteOptions, ObjectAddress};
use crate::object::{self, items, name, namespace, text, uid};
use crate::resource::{DEPLOYMENTS, PODS, REPLICA_SETS, Resource};
use crate::store::StoredObject;

pub(super) fn collect(api: &Api) -> Result<(), StatusError> {
    let (deployments, sets, pods) = (all(api, &DEPLOYMENTS), all(api, &REPLICA_SETS), all(api, &PODS));
    collect_from(api, &REPLICA_SETS, &sets, &DEPLOYMENTS, &deployments)?;
    collect_from(api, &PODS, &pods, &REPLICA_SETS, &sets)
}

fn collect_from(
    api: &Api,
    resource: &'static Resource,
    objects: &[Arc<StoredObject>],
    owner_resource: &Resource,
    owners: &[Arc<StoredObject>],
) -> Result<(), StatusError> {
    let alive: HashSet<&str> = owners.iter().map(|owner| uid(&owner.value)).collect();
    for object in objects.iter().map(|object| &object.value).filter(|object| !object::is_terminating(object))
    {
        let owned_by_kind = items(object, &["metadata", "ownerReferences"])
            .iter()
            .any(|owner| owner["controller"] == true && text(owner, &["kind"]) == owner_resource.kind);
        if owned_by_kind && controller(object).is_some_and(|owner| !alive.contains(owner)) {
            let place = ObjectAddress::new(resource, namespace(object), name(object));
            let options = DeleteOptions { uid: Some(uid(object).to_owned()), ..DeleteOptions::default() };
            api.delete(place, &options, &Caller::controller(CONTROLLER))?;
        }
    }
    Ok(())
}
