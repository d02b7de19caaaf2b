//! Updates and patches: optimistic concurrency, and what each of the two halves of an object may change.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Api, Caller, ObjectAddress, admission, claims, defaults};
use crate::events;
use crate::failure::{StatusCause, StatusError};
use crate::object::{self, as_map, at, items, map_at, set_meta, text};
use crate::patch::{self, PatchKind};
use crate::resource::{LEASES, NODES, PODS, RESOURCE_CLAIMS, Resource};
use crate::store::{Store, StoredObject};

/// What nobody changes by writing it.
const IMMUTABLE_METADATA: [&str; 6] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "generateName",
];

/// A patch as it was sent.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    pub(crate) kind: PatchKind,
    pub(crate) value: Value,
}

impl Api {
    /// Replaces an object, or only its status.
    pub(crate) fn update(
        &self,
        place: ObjectAddress<'_>,
        subresource: &str,
        mut value: Value,
        caller: &Caller,
    ) -> Result<Arc<StoredObject>, StatusError> {
        if subresource == "scale" {
            let mut store = self.store();
            let old = place.find(&store)?;
            return self.set_scale(&mut store, place, &old, &value, caller);
        }
        admission::is_of_kind(place.resource, &value)?;
        let map = as_map(&mut value);
        map.remove("apiVersion");
        map.remove("kind");
        let own = object::name(&value);
        if own != place.name {
            let why =
                format!("the name of the object ({own}) does not match the name on the URL ({})", place.name);
            return Err(StatusError::bad_request(why));
        }
        events::store_form(place.resource, &mut value);
        let mut store = self.store();
        let old = place.find(&store)?;
        self.replace(&mut store, place, subresource, &old, value, caller)
    }

    /// Changes an object; an apply creates what is not there.
    pub(crate) fn patch(
        &self,
        place: ObjectAddress<'_>,
        subresource: &str,
        patch: &Patch,
        caller: &Caller,
    ) -> Result<Arc<StoredObject>, StatusError> {
        let is_apply = patch.kind == PatchKind::Apply;
        if is_apply {
            admission::is_of_kind(place.resource, &patch.value)?;
        }
        let mut store = self.store();
        let old = match place.find(&store) {
            Err(failure) if is_apply && subresource.is_empty() && failure.reason() == "NotFound" => {
                drop(store);
                return self.apply_new(place, patch, caller);
            }
            found => found?,
        };
        if subresource == "scale" {
            let scale = patch::patched(patch.kind, &scale_of(&old.value), &patch.value)?;
            return self.set_scale(&mut store, place, &old, &scale, caller);
        }
        let shown = events::shown(place.resource, &old.value);
        let mut value = if is_apply {
            let manager = &caller.field_manager;
            patch::apply(
                Some(&shown),
                &patch.value,
                manager,
                &place.resource.api_version(),
                &self.time.now(),
            )?
        } else {
            patch::patched(patch.kind, &shown, &patch.value)?
        };
        let map = as_map(&mut value);
        map.remove("apiVersion");
        map.remove("kind");
        if object::name(&value) != place.name {
            let cause = StatusCause::bad_value("metadata.name", object::name(&value), "field is immutable");
            return Err(StatusError::invalid(place.resource, place.name, cause));
        }
        events::store_form(place.resource, &mut value);
        self.replace(&mut store, place, subresource, &old, value, caller)
    }

    fn apply_new(
        &self,
        place: ObjectAddress<'_>,
        patch: &Patch,
        caller: &Caller,
    ) -> Result<Arc<StoredObject>, StatusError> {
        let api_version = place.resource.api_version();
        let mut value =
            patch::apply(None, &patch.value, &caller.field_manager, &api_version, &self.time.now())?;
        set_meta(&mut value, "name", place.name);
        self.create(place.resource, place.namespace, value, caller)
    }

    fn replace(
        &self,
        store: &mut Store,
        place: ObjectAddress<'_>,
        subresource: &str,
        old: &StoredObject,
        mut new: Value,
        caller: &Caller,
    ) -> Result<Arc<StoredObject>, StatusError> {
        check_preconditions(place, old, &new, caller)?;
        admission::fields_are_known(place.resource.stored_as(), Some(&old.value), &new, caller)?;
        keep_identity(&old.value, &mut new);
        let mut new = if caller.trusted && subresource.is_empty() {
            new
        } else {
            keep_other_half(place.resource, subresource, &old.value, new)
        };
        set_meta(&mut new, "resourceVersion", old.version.to_string());
        if subresource.is_empty() {
            defaults::fill(place.resource, &mut new);
        }
        if subresource == "resize" {
            admission::resize_is_valid(&old.value, &new)?;
        } else if place.resource.is(&PODS) && !caller.trusted {
            admission::pod_update_is_valid(&old.value, &new)?;
        } else if place.resource.is(&RESOURCE_CLAIMS) {
            claims::forget_devices_if_deallocated(&old.value, &mut new);
            if !caller.trusted {
                claims::update_is_valid(&old.value, &new, caller)?;
            }
        }
        if admission::has_generation(place.resource) && old.value.get("spec") != new.get("spec") {
            let generation = at(&old.value, &["metadata", "generation"]).and_then(Value::as_i64).unwrap_or(0);
            set_meta(&mut new, "generation", generation.saturating_add(1));
        }
        if is_finished(place.resource, &new) && !caller.dry_run {
            // The last finalizer is gone: the update is the last thing that happens to the object.
            let stored = store.put(place.resource, new);
            return Ok(store.remove(place.resource, place.namespace, place.name).unwrap_or(stored));
        }
        Ok(self.commit(store, place.resource, caller, new))
    }

    fn set_scale(
        &self,
        store: &mut Store,
        place: ObjectAddress<'_>,
        old: &StoredObject,
        scale: &Value,
        caller: &Caller,
    ) -> Result<Arc<StoredObject>, StatusError> {
        let Some(replicas) = at(scale, &["spec", "replicas"]).and_then(Value::as_u64) else {
            let cause = StatusCause::bad_value(
                "spec.replicas",
                at(scale, &["spec", "replicas"]),
                "must be 0 or more",
            );
            return Err(StatusError::invalid(place.resource, place.name, cause));
        };
        let mut new = old.value.clone();
        map_at(&mut new, "spec").insert("replicas".to_owned(), replicas.into());
        set_meta(&mut new, "resourceVersion", object::resource_version(scale));
        self.replace(store, place, "", old, new, caller)
    }
}

fn check_preconditions(
    place: ObjectAddress<'_>,
    old: &StoredObject,
    new: &Value,
    caller: &Caller,
) -> Result<(), StatusError> {
    let version = object::resource_version(new);
    if version.is_empty() && place.resource.is(&LEASES) && !caller.trusted {
        let cause = StatusCause::bad_value("metadata.resourceVersion", 0, "must be specified for an update");
        return Err(StatusError::invalid(place.resource, place.name, cause));
    }
    if !version.is_empty() && version != "0" && version != old.version.to_string() {
        return Err(StatusError::modified_meanwhile(place.resource, place.name));
    }
    let (given, known) = (object::uid(new), object::uid(&old.value));
    if !given.is_empty() && given != known {
        let why = format!("Precondition failed: UID in precondition: {given}, UID in object meta: {known}");
        return Err(StatusError::conflict(place.resource, place.name, why));
    }
    Ok(())
}

fn keep_identity(old: &Value, new: &mut Value) {
    let metadata = map_at(new, "metadata");
    for key in IMMUTABLE_METADATA {
        match at(old, &["metadata", key]) {
            Some(known) => metadata.insert(key.to_owned(), known.clone()),
            None => metadata.remove(key),
        };
    }
    if let Some(namespace) = at(old, &["metadata", "namespace"]) {
        metadata.insert("namespace".to_owned(), namespace.clone());
    }
}

/// An update of an object leaves its status alone, and an update of its status leaves the rest alone.
fn keep_other_half(resource: &Resource, subresource: &str, old: &Value, mut new: Value) -> Value {
    if subresource == "status" {
        let mut kept = old.clone();
        if (resource.is(&PODS) || resource.is(&NODES))
            && let Some(metadata) = new.get("metadata")
        {
            as_map(&mut kept).insert("metadata".to_owned(), metadata.clone());
        }
        match new.get("status") {
            Some(status) => as_map(&mut kept).insert("status".to_owned(), status.clone()),
            None => as_map(&mut kept).remove("status"),
        };
        if resource.is(&PODS) {
            keep_observed_generations(old, &mut kept);
        }
        kept
    } else if subresource == "resize" {
        let mut kept = old.clone();
        let spec = new.get("spec").cloned().unwrap_or_default();
        as_map(&mut kept).insert("spec".to_owned(), spec);
        kept
    } else if resource.has("status") {
        match old.get("status") {
            Some(status) => as_map(&mut new).insert("status".to_owned(), status.clone()),
            None => as_map(&mut new).remove("status"),
        };
        new
    } else {
        new
    }
}

/// A condition that is written without the generation it is about keeps the one that it had.
fn keep_observed_generations(old: &Value, new: &mut Value) {
    const KEY: &str = "observedGeneration";
    let conditions = map_at(new, "status").get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let known = items(old, &["status", "conditions"]).iter();
        let known =
            known.filter(|known| known.get("type") == condition.get("type")).find_map(|one| one.get(KEY));
        let is_unsaid = condition.get(KEY).is_none_or(|given| given.is_null() || given == 0);
        if let (true, Some(known)) = (is_unsaid, known) {
            as_map(condition).insert(KEY.to_owned(), known.clone());
        }
    }
}

/// Deleted before, and nothing holds it any more.
fn is_finished(resource: &Resource, value: &Value) -> bool {
    let grace = at(value, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    object::is_terminating(value) && !object::has_finalizers(value) && (!resource.is(&PODS) || grace == 0)
}

/// The `Scale` of a workload.
pub(crate) fn scale_of(value: &Value) -> Value {
    let number = |path: &[&str]| at(value, path).and_then(Value::as_u64).unwrap_or(0);
    let metadata = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"]
        .map(|key| (key.to_owned(), text(value, &["metadata", key]).into()));
    let labels = at(value, &["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    let selector: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or("")))
        .collect();
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": Value::Object(metadata.into_iter().collect()),
        "spec": {"replicas": number(&["spec", "replicas"])},
        "status": {"replicas": number(&["status", "replicas"]), "selector": selector.join(",")},
    })
}
