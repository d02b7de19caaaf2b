//! The binding of a pod to a node, with an API server's refusals.

use serde_json::{Value, json};

use super::{Api, Caller, ObjectAddress};
use crate::failure::{StatusCause, StatusError};
use crate::object::{self, as_map, at, items, map_at, set_condition, text};
use crate::resource::PODS;
use crate::store::StoredObject;

impl Api {
    /// Binds a pod as the `Binding` says.
    pub(crate) fn bind(
        &self,
        place: ObjectAddress<'_>,
        binding: &Value,
        caller: &Caller,
    ) -> Result<(), StatusError> {
        let own = object::name(binding);
        if !own.is_empty() && own != place.name {
            return Err(StatusError::bad_request("name in URL does not match name in Binding object"));
        }
        let node = text(binding, &["target", "name"]);
        if node.is_empty() {
            return Err(StatusError::invalid(&PODS, place.name, StatusCause::required("target.name", "")));
        }
        let target_kind = text(binding, &["target", "kind"]);
        if !matches!(target_kind, "" | "Node") {
            let cause =
                StatusCause::bad_value("target.kind", target_kind, "supported values: \"Node\", \"<empty>\"");
            return Err(StatusError::invalid(&PODS, place.name, cause));
        }
        let mut store = self.store();
        let pod = place.find(&store)?;
        check_preconditions(place, &pod, binding)?;
        check_bindable(place.name, &pod.value)?;
        if caller.dry_run {
            return Ok(());
        }
        let bound = bound(&pod.value, node, binding, &self.time.now());
        let stored = store.put(&PODS, bound);
        store.note_binding(&stored.value, node, &caller.who);
        Ok(())
    }
}

fn check_preconditions(
    place: ObjectAddress<'_>,
    pod: &StoredObject,
    binding: &Value,
) -> Result<(), StatusError> {
    let version = pod.version.to_string();
    for (what, given, known) in [
        ("UID", object::uid(binding), object::uid(&pod.value)),
        ("ResourceVersion", object::resource_version(binding), version.as_str()),
    ] {
        if !given.is_empty() && given != known {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: /registry/pods/{}/{}, ResourceVersion: 0, \
                 AdditionalErrorMsg: Precondition failed: {what} in precondition: {given}, {what} in object meta: {known}",
                place.namespace, place.name
            );
            return Err(StatusError::conflict(&PODS, place.name, why));
        }
    }
    Ok(())
}

fn check_bindable(name: &str, pod: &Value) -> Result<(), StatusError> {
    let node = text(pod, &["spec", "nodeName"]);
    let why = if object::is_terminating(pod) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if !items(pod, &["spec", "schedulingGates"]).is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(StatusError::binding_conflict(name, why))
}

fn bound(pod: &Value, node: &str, binding: &Value, now: &str) -> Value {
    let mut pod = pod.clone();
    map_at(&mut pod, "spec").insert("nodeName".to_owned(), node.into());
    map_at(&mut pod, "status").remove("nominatedNodeName");
    for key in ["annotations", "labels"] {
        let Some(given) = at(binding, &["metadata", key]).and_then(Value::as_object) else { continue };
        let known = map_at(&mut pod, "metadata").entry(key).or_insert(Value::Null);
        as_map(known).extend(given.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    let condition = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null});
    set_condition(&mut pod, condition, now);
    pod
}
