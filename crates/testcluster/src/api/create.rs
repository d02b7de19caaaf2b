//! Creation: names, uids, defaults.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Api, Caller, ObjectAddress, admission, defaults, locked};
use crate::events;
use crate::failure::{StatusCause, StatusError};
use crate::object::{self, as_map, map_at, set_meta, text};
use crate::resource::{NAMESPACES, NODES, PRIORITY_CLASSES, Resource};
use crate::store::{Store, StoredObject};

/// How often a generated name that is taken is generated anew.
const GENERATED_NAME_ATTEMPTS: usize = 8;

impl Api {
    /// Stores a new object. Its name comes from itself; its namespace too, unless one is given.
    pub(crate) fn create(
        &self,
        resource: &'static Resource,
        namespace: &str,
        value: Value,
        caller: &Caller,
    ) -> Result<Arc<StoredObject>, StatusError> {
        let mut value = checked(resource, namespace, value, caller)?;
        admission::fields_are_known(resource, None, &value, caller)?;
        events::store_form(resource, &mut value);
        let mut store = self.store();
        self.name_it(resource, &mut value, &store)?;
        let name = object::name(&value).to_owned();
        let place = ObjectAddress::new(resource, object::namespace(&value), &name);
        admission::namespace_exists(&store, place)?;
        if store.get(resource, place.namespace, &name).is_some() {
            return Err(StatusError::already_exists(resource, &name));
        }
        self.begin_life(resource, &mut value);
        if !caller.trusted {
            admission::reset_status(resource, &mut value);
        }
        defaults::fill(resource, &mut value);
        if !caller.trusted {
            defaults::spell_out_rolling_update(resource, &mut value);
        }
        admission::admit(&store, resource, &mut value, caller, &self.time.now())?;
        Ok(self.commit(&mut store, resource, caller, value))
    }

    fn name_it(
        &self,
        resource: &'static Resource,
        value: &mut Value,
        store: &Store,
    ) -> Result<(), StatusError> {
        if object::name(value).is_empty() {
            let prefix = text(value, &["metadata", "generateName"]).to_owned();
            if prefix.is_empty() {
                let cause = StatusCause::required("metadata.name", "name or generateName is required");
                return Err(StatusError::invalid(resource, "", cause));
            }
            for _ in 0..GENERATED_NAME_ATTEMPTS {
                let name = format!("{prefix}{}", locked(&self.random).name_suffix());
                set_meta(value, "name", name.as_str());
                if store.get(resource, object::namespace(value), &name).is_none() {
                    break;
                }
            }
        }
        admission::name_is_valid(resource, object::name(value))
    }

    fn begin_life(&self, resource: &Resource, value: &mut Value) {
        let uid = locked(&self.random).uid();
        let metadata = map_at(value, "metadata");
        if metadata.get("uid").and_then(Value::as_str).is_none_or(str::is_empty) {
            metadata.insert("uid".to_owned(), uid.into());
        }
        if metadata.get("creationTimestamp").is_none_or(Value::is_null) {
            metadata.insert("creationTimestamp".to_owned(), self.time.now().into());
        }
        if admission::has_generation(resource) {
            metadata.insert("generation".to_owned(), 1.into());
        }
    }

    /// The namespaces and priority classes that come with every cluster.
    pub(super) fn create_what_every_cluster_has(&self) {
        let test = Caller::test();
        let create = |resource, value| {
            if let Err(failure) = self.create(resource, "", value, &test) {
                tracing::error!(%failure, "cannot create what every cluster has");
            }
        };
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            create(&NAMESPACES, json!({"metadata": {"name": name}}));
        }
        for (name, value) in
            [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)]
        {
            create(&PRIORITY_CLASSES, json!({"metadata": {"name": name}, "value": value}));
        }
    }
}

/// The object as it is stored, if it is one of this resource and namespace.
fn checked(
    resource: &'static Resource,
    namespace: &str,
    mut value: Value,
    caller: &Caller,
) -> Result<Value, StatusError> {
    admission::is_of_kind(resource, &value)?;
    let map = as_map(&mut value);
    map.remove("apiVersion");
    map.remove("kind");
    let metadata = map_at(&mut value, "metadata");
    let has_version = metadata.remove("resourceVersion").is_some_and(|version| version != "");
    if !caller.trusted {
        if has_version {
            return Err(StatusError::stored_with_version());
        }
        for key in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            metadata.remove(key);
        }
    }
    if !resource.namespaced {
        metadata.remove("namespace");
        return Ok(value);
    }
    let own = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if own.is_empty() {
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        metadata.insert("namespace".to_owned(), namespace.into());
    } else if !namespace.is_empty() && own != namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(StatusError::bad_request(why));
    }
    Ok(value)
}

/// Only nodes bring their status along; of everything else it is written afterwards.
pub(super) fn keeps_status(resource: &Resource) -> bool {
    resource.is(&NODES) || !resource.has("status")
}
