//! What an API server does with objects, without the wire: read, write, delete, bind, evict, review.

mod admission;
mod binding;
mod claims;
mod create;
mod defaults;
mod delete;
mod eviction;
mod list;
mod review;
mod update;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::access::AccessRules;
use crate::clock::{Clock, Time};
use crate::failure::StatusError;
use crate::object;
use crate::random::ServerRandom;
use crate::resource::{Resource, Served};
use crate::store::{Store, StoredObject};

pub(crate) use delete::DeleteOptions;
pub(crate) use list::{ListOptions, Listing};
pub(crate) use update::{Patch, scale_of};

/// One object's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectAddress<'a> {
    pub(crate) resource: &'static Resource,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl<'a> ObjectAddress<'a> {
    pub(crate) fn new(resource: &'static Resource, namespace: &'a str, name: &'a str) -> Self {
        let namespace = if resource.namespaced { namespace } else { "" };
        Self { resource, namespace, name }
    }

    fn find(self, store: &Store) -> Result<Arc<StoredObject>, StatusError> {
        let found = store.get(self.resource, self.namespace, self.name).cloned();
        found.ok_or_else(|| StatusError::not_found(self.resource, self.name))
    }
}

/// Who writes, and how.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The user, and the user agent behind a slash.
    pub(crate) who: String,
    /// The test itself: may store what no API server would, such as a pod together with its status.
    pub(crate) trusted: bool,
    /// Only say what would happen.
    pub(crate) dry_run: bool,
    /// The name under which an apply is remembered.
    pub(crate) field_manager: String,
    /// May not say what a claim has got, and who uses it.
    pub(crate) denied_claim_bindings: bool,
    /// Unknown fields and values of a wrong type are refused.
    pub(crate) strict: bool,
}

impl Caller {
    /// The test that runs in this process.
    pub(crate) fn test() -> Self {
        Self { who: "test".to_owned(), trusted: true, ..Self::default() }
    }

    /// One of the cluster's own controllers.
    pub(crate) fn controller(name: &str) -> Self {
        Self { who: name.to_owned(), trusted: true, ..Self::default() }
    }
}

/// The API server's heart.
pub(crate) struct Api {
    pub(crate) time: Time,
    store: Mutex<Store>,
    random: Mutex<ServerRandom>,
    access: Mutex<AccessRules>,
}

/// A panic elsewhere leaves the data as they are: every write is one insertion.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Api {
    pub(crate) fn new(history_limit: usize, seed: u64, clock: Arc<dyn Clock>) -> Self {
        let api = Self {
            time: Time::new(clock),
            store: Mutex::new(Store::new(history_limit)),
            random: Mutex::new(ServerRandom::new(seed)),
            access: Mutex::new(AccessRules::default()),
        };
        api.create_what_every_cluster_has();
        api
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        locked(&self.store)
    }

    /// The resources that are served at the moment.
    pub(crate) fn served(&self) -> Served {
        self.store().served().clone()
    }

    pub(crate) fn access(&self) -> MutexGuard<'_, AccessRules> {
        locked(&self.access)
    }

    pub(crate) fn get(&self, place: ObjectAddress<'_>) -> Result<Arc<StoredObject>, StatusError> {
        place.find(&self.store())
    }

    /// Stores the object, unless this is only a rehearsal or nothing has changed.
    fn commit(
        &self,
        store: &mut Store,
        resource: &'static Resource,
        caller: &Caller,
        value: Value,
    ) -> Arc<StoredObject> {
        let value = object::tidied(value);
        let known = store.get(resource, object::namespace(&value), object::name(&value));
        match known {
            Some(known) if known.value == value => known.clone(),
            _ if caller.dry_run => store.rehearse(value),
            _ => store.put(resource, value),
        }
    }
}
