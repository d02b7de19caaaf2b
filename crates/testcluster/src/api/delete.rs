//! Deletion: preconditions, grace and finalizers.

use std::sync::Arc;

use serde_json::Value;

use super::{Api, Caller, ListOptions, ObjectAddress};
use crate::failure::StatusError;
use crate::object::{self, at, set_meta, text};
use crate::resource::{NAMESPACES, PODS, Resource};
use crate::store::{Store, StoredObject};

/// What a deletion insists on.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl DeleteOptions {
    /// From the body of a request; what is not said is not insisted on.
    pub(crate) fn read(body: &Value) -> Self {
        let precondition = |key: &str| {
            Some(text(body, &["preconditions", key]).to_owned()).filter(|given| !given.is_empty())
        };
        Self {
            grace_period_seconds: body.get("gracePeriodSeconds").and_then(Value::as_i64),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
        }
    }

    pub(super) fn check(&self, place: ObjectAddress<'_>, object: &StoredObject) -> Result<(), StatusError> {
        let known = object::uid(&object.value);
        if let Some(uid) = self.uid.as_deref().filter(|uid| *uid != known) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({known}). \
                 The object might have been deleted and then recreated"
            );
            return Err(StatusError::conflict(place.resource, place.name, why));
        }
        let known = object.version.to_string();
        if let Some(version) = self.resource_version.as_deref().filter(|version| *version != known) {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                 ({known}). The object might have been modified"
            );
            return Err(StatusError::conflict(place.resource, place.name, why));
        }
        Ok(())
    }
}

/// How a deletion went.
pub(crate) struct Deleted {
    pub(crate) object: Arc<StoredObject>,
    /// It is gone; otherwise it waits for its grace or its finalizers.
    pub(crate) gone: bool,
}

impl Api {
    pub(crate) fn delete(
        &self,
        place: ObjectAddress<'_>,
        options: &DeleteOptions,
        caller: &Caller,
    ) -> Result<Deleted, StatusError> {
        self.delete_in(&mut self.store(), place, options, caller)
    }

    pub(super) fn delete_in(
        &self,
        store: &mut Store,
        place: ObjectAddress<'_>,
        options: &DeleteOptions,
        caller: &Caller,
    ) -> Result<Deleted, StatusError> {
        let object = place.find(store)?;
        options.check(place, &object)?;
        if caller.dry_run {
            return Ok(Deleted { object, gone: true });
        }
        let grace = grace_seconds(place.resource, &object.value, options);
        if grace == 0 && !object::has_finalizers(&object.value) {
            if place.resource.is(&PODS) {
                // What is deleted without grace is seen to end before it is gone.
                self.mark(store, place, &object, grace);
            }
            let object = store.remove(place.resource, place.namespace, place.name).unwrap_or(object);
            if place.resource.is(&NAMESPACES) {
                empty_namespace(store, place.name);
            }
            return Ok(Deleted { object, gone: true });
        }
        Ok(Deleted { object: self.mark(store, place, &object, grace), gone: false })
    }

    /// Deletes everything that a list would show; what was deleted.
    pub(crate) fn delete_collection(
        &self,
        resource: &'static Resource,
        namespace: &str,
        list: &ListOptions,
        options: &DeleteOptions,
        caller: &Caller,
    ) -> Result<Vec<Arc<StoredObject>>, StatusError> {
        let listing = self.list(resource, namespace, list)?;
        let mut deleted = Vec::with_capacity(listing.objects.len());
        for object in &listing.objects {
            let place =
                ObjectAddress::new(resource, object::namespace(&object.value), object::name(&object.value));
            match self.delete(place, options, caller) {
                Ok(done) => deleted.push(done.object),
                // Somebody else was faster.
                Err(failure) if failure.reason() == "NotFound" => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(deleted)
    }

    /// Marks an object as being deleted. Who deletes again can only shorten the time that is left.
    fn mark(
        &self,
        store: &mut Store,
        place: ObjectAddress<'_>,
        object: &Arc<StoredObject>,
        grace_seconds: i64,
    ) -> Arc<StoredObject> {
        let number = |key| at(&object.value, &["metadata", key]).and_then(Value::as_i64).unwrap_or(0);
        let is_terminating = object::is_terminating(&object.value);
        if is_terminating && number("deletionGracePeriodSeconds") <= grace_seconds {
            return object.clone();
        }
        let mut value = object.value.clone();
        set_meta(&mut value, "deletionTimestamp", self.time.in_seconds(grace_seconds));
        set_meta(&mut value, "deletionGracePeriodSeconds", grace_seconds);
        // That it ends is a change of what is wanted, where that is counted.
        if !is_terminating && number("generation") > 0 {
            set_meta(&mut value, "generation", number("generation").saturating_add(1));
        }
        store.put(place.resource, value)
    }
}

/// Only pods are given time, and only those that may be running somewhere.
fn grace_seconds(resource: &Resource, value: &Value, options: &DeleteOptions) -> i64 {
    let may_run = !text(value, &["spec", "nodeName"]).is_empty()
        && !matches!(text(value, &["status", "phase"]), "Succeeded" | "Failed");
    if !resource.is(&PODS) || !may_run {
        return 0;
    }
    let own = || at(value, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    options.grace_period_seconds.or_else(own).unwrap_or(30).max(0)
}

/// A namespace takes along what is in it.
fn empty_namespace(store: &mut Store, namespace: &str) {
    for resource in store.served().clone().iter().filter(|resource| resource.namespaced) {
        let inside = store.objects(resource, namespace, None);
        let names: Vec<String> = inside.map(|(_, object)| object::name(&object.value).to_owned()).collect();
        for name in names {
            store.remove(resource, namespace, &name);
        }
    }
}
