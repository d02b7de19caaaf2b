//! The objects, their versions, and the history that watches read.
//!
//! Watches pull: each remembers the version it has seen and reads what came after it, so that a slow
//! one costs no memory. When the history no longer reaches back to it, it is told that it is too late.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use crate::referee::Referee;
use crate::resource::{
    CUSTOM_RESOURCE_DEFINITIONS, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource, Served,
};
use crate::signal::{Signal, SignalReceiver};
use crate::{
    definition::{self, Defined},
    object,
};

/// One version of an object, without `apiVersion` and `kind`: the resource knows them.
#[derive(Debug)]
pub(crate) struct StoredObject {
    pub(crate) value: Value,
    pub(crate) version: u64,
    json: OnceLock<Bytes>,
}

impl StoredObject {
    fn new(mut value: Value, version: u64) -> Arc<Self> {
        object::set_meta(&mut value, "resourceVersion", version.to_string());
        Arc::new(Self { value, version, json: OnceLock::new() })
    }

    /// The same object under another version.
    pub(crate) fn at_version(&self, version: u64) -> Arc<Self> {
        Self::new(self.value.clone(), version)
    }

    /// As an item of a list: written once, however often it is read.
    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| self.value.to_string().into())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
}

impl EventType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// Something that happened to an object.
#[derive(Debug)]
pub(crate) struct StoreEvent {
    pub(crate) kind: EventType,
    pub(crate) object: Arc<StoredObject>,
    pub(crate) previous: Option<Arc<StoredObject>>,
    line: OnceLock<Bytes>,
}

impl StoreEvent {
    /// The line of a watch that sees the change as it happened: written once for all watches.
    pub(crate) fn line(&self, write: impl FnOnce() -> Bytes) -> Bytes {
        self.line.get_or_init(write).clone()
    }
}

/// All objects as they were at a version.
#[derive(Clone)]
pub(crate) struct StoreSnapshot {
    tables: Vec<BTreeMap<String, Arc<StoredObject>>>,
    version: u64,
}

#[derive(Default)]
struct Table {
    objects: BTreeMap<String, Arc<StoredObject>>,
    history: VecDeque<Arc<StoreEvent>>,
    /// Changes up to this version are no longer known.
    forgotten: u64,
    news: Signal,
}

/// What a watch finds when it looks.
pub(crate) enum News {
    /// The changes after the version that it has seen, and the version that it has seen now.
    Changes(Vec<Arc<StoreEvent>>, u64),
    /// The history begins only after this version.
    TooLate(u64),
}

/// How many changes a watch takes at once, so that it does not hold the store for long.
const CHANGES_AT_ONCE: usize = 512;

pub(crate) struct Store {
    served: Served,
    tables: Vec<Table>,
    version: u64,
    history_limit: usize,
    pub(crate) referee: Referee,
}

/// Where an object is in its table: namespaces come one after another, as in etcd.
pub(crate) fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Store {
    pub(crate) fn new(history_limit: usize) -> Self {
        let served = Served::default();
        let tables = served.iter().map(|_| Table::default()).collect();
        // Versions start above 0 and 1, which mean something else to clients.
        Self { served, tables, version: 1, history_limit: history_limit.max(1), referee: Referee::default() }
    }

    /// The version of the newest change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The resources that are served.
    pub(crate) fn served(&self) -> &Served {
        &self.served
    }

    /// Serves the custom resources of a definition, each of its versions.
    fn serve(&mut self, definition: &Value) {
        for defined in definition::versions(definition) {
            if self.served.find(defined.group, defined.version, defined.plural).is_none() {
                self.served.add(defined.resource(self.tables.len()));
                self.tables.push(Table::default());
            }
        }
    }

    /// Serves the custom resources of a definition no more; their objects are gone.
    fn withdraw(&mut self, definition: &Value) {
        for Defined { group, version, plural, .. } in definition::versions(definition) {
            let served = self.served.find(group, version, plural);
            let Some(resource) = served.filter(|served| served.custom_slot.is_some()) else { continue };
            let keys: Vec<(String, String)> = self
                .objects(resource, "", None)
                .map(|(_, found)| (object::namespace(&found.value).into(), object::name(&found.value).into()))
                .collect();
            for (namespace, name) in keys {
                self.remove(resource, &namespace, &name);
            }
            self.served.remove(resource);
        }
    }

    pub(crate) fn get(
        &self,
        resource: &'static Resource,
        namespace: &str,
        name: &str,
    ) -> Option<&Arc<StoredObject>> {
        self.tables[resource.slot()].objects.get(&key(namespace, name))
    }

    /// All objects, or those of a namespace, in order, from a key on.
    pub(crate) fn objects<'a>(
        &'a self,
        resource: &'static Resource,
        namespace: &str,
        after: Option<&str>,
    ) -> impl Iterator<Item = (&'a String, &'a Arc<StoredObject>)> + use<'a> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let start = match after {
            Some(last) if last >= prefix.as_str() => std::ops::Bound::Excluded(last.to_owned()),
            _ => std::ops::Bound::Included(prefix.clone()),
        };
        self.tables[resource.slot()]
            .objects
            .range((start, std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(&prefix))
    }

    pub(crate) fn count(&self, resource: &'static Resource) -> usize {
        self.tables[resource.slot()].objects.len()
    }

    /// The object as it would be stored next.
    pub(crate) fn rehearse(&self, value: Value) -> Arc<StoredObject> {
        StoredObject::new(value, self.version + 1)
    }

    /// Stores a new object, or a new version of one.
    pub(crate) fn put(&mut self, resource: &'static Resource, value: Value) -> Arc<StoredObject> {
        self.version += 1;
        let object = StoredObject::new(value, self.version);
        let key = key(object::namespace(&object.value), object::name(&object.value));
        let table = &mut self.tables[resource.slot()];
        let previous = table.objects.insert(key, object.clone());
        let kind = if previous.is_some() { EventType::Modified } else { EventType::Added };
        if resource.is(&PODS) {
            self.referee.pod_stored(&object.value);
        }
        if resource.is(&RESOURCE_CLAIMS) {
            self.referee.claim_stored(&object.value);
        }
        if resource.is(&RESOURCE_SLICES) {
            self.referee.slice_stored(&object.value);
        }
        if resource.is(&CUSTOM_RESOURCE_DEFINITIONS) {
            self.serve(&object.value);
        }
        self.record(resource, StoreEvent { kind, object: object.clone(), previous, line: OnceLock::new() });
        object
    }

    /// Removes an object; its last version carries the version of the removal.
    pub(crate) fn remove(
        &mut self,
        resource: &'static Resource,
        namespace: &str,
        name: &str,
    ) -> Option<Arc<StoredObject>> {
        let previous = self.tables[resource.slot()].objects.remove(&key(namespace, name))?;
        self.version += 1;
        let object = StoredObject::new(previous.value.clone(), self.version);
        if resource.is(&PODS) {
            self.referee.pod_removed(&object.value);
        }
        if resource.is(&RESOURCE_CLAIMS) {
            self.referee.claim_removed(&object.value);
        }
        if resource.is(&RESOURCE_SLICES) {
            self.referee.slice_removed(&object.value);
        }
        if resource.is(&CUSTOM_RESOURCE_DEFINITIONS) {
            self.withdraw(&object.value);
        }
        let change = StoreEvent {
            kind: EventType::Deleted,
            object: object.clone(),
            previous: Some(previous),
            line: OnceLock::new(),
        };
        self.record(resource, change);
        Some(object)
    }

    fn record(&mut self, resource: &'static Resource, change: StoreEvent) {
        let table = &mut self.tables[resource.slot()];
        table.history.push_back(Arc::new(change));
        while table.history.len() > self.history_limit {
            if let Some(oldest) = table.history.pop_front() {
                table.forgotten = oldest.object.version;
            }
        }
        table.news.give();
    }

    /// Forgets all history: watches from an older version are told that they are too late.
    pub(crate) fn compact(&mut self) {
        for table in &mut self.tables {
            table.history.clear();
            table.forgotten = self.version;
        }
    }

    /// All objects as they are now.
    pub(crate) fn snapshot(&self) -> StoreSnapshot {
        let tables = self.tables.iter().map(|table| table.objects.clone()).collect();
        StoreSnapshot { tables, version: self.version }
    }

    /// Everything is as it was, and nothing is known of what happened since. Versions go on from the newest if they are
    /// `bumped`, as whoever restores a cluster is advised to do; otherwise from where they were.
    pub(crate) fn restore(&mut self, snapshot: &StoreSnapshot, bumped: bool) {
        self.version = if bumped { self.version + 1 } else { snapshot.version };
        self.referee.restored();
        for (slot, table) in self.tables.iter_mut().enumerate() {
            table.objects = snapshot.tables.get(slot).cloned().unwrap_or_default();
            table.history.clear();
            table.forgotten = self.version;
            table.news.give();
        }
        let all = |store: &Self, resource| -> Vec<Arc<StoredObject>> {
            store.objects(resource, "", None).map(|(_, object)| object.clone()).collect()
        };
        all(self, &PODS).iter().for_each(|pod| self.referee.pod_restored(&pod.value));
        all(self, &RESOURCE_SLICES).iter().for_each(|slice| self.referee.slice_stored(&slice.value));
        all(self, &RESOURCE_CLAIMS).iter().for_each(|claim| self.referee.claim_restored(&claim.value));
    }

    /// The version up to which changes of a resource are forgotten.
    pub(crate) fn forgotten(&self, resource: &'static Resource) -> u64 {
        self.tables[resource.slot()].forgotten
    }

    /// Wakes when something happens to the resource's objects.
    pub(crate) fn subscribe(&self, resource: &'static Resource) -> SignalReceiver {
        self.tables[resource.slot()].news.subscribe()
    }

    /// What happened to the resource's objects after a version.
    pub(crate) fn news(&self, resource: &'static Resource, seen: u64) -> News {
        let table = &self.tables[resource.slot()];
        if seen < table.forgotten {
            return News::TooLate(table.forgotten);
        }
        let first = table.history.partition_point(|change| change.object.version <= seen);
        let changes: Vec<_> = table.history.range(first..).take(CHANGES_AT_ONCE).cloned().collect();
        let complete = first + changes.len() == table.history.len();
        let seen = match changes.last() {
            Some(last) if !complete => last.object.version,
            // Nothing of this resource is missing up to the newest version of any.
            _ => self.version.max(seen),
        };
        News::Changes(changes, seen)
    }

    /// Writes down a binding, and what it breaks.
    pub(crate) fn note_binding(&mut self, pod: &Value, node: &str, by: &str) {
        let node_object = self.get(&NODES, "", node).cloned();
        let node_object = node_object.as_ref().map(|object| &object.value);
        self.referee.pod_bound(pod, node, node_object, by);
        let claims: Vec<(String, Option<Value>)> = claims_of(pod)
            .map(|claim| {
                let stored = self.get(&RESOURCE_CLAIMS, object::namespace(pod), claim);
                (claim.to_owned(), stored.map(|stored| stored.value.clone()))
            })
            .collect();
        self.referee.claims_of_bound(pod, node_object, &claims);
    }
}

/// The names of a pod's claims; of one that was not made yet, nothing. Where the status says that none is needed, there is none.
fn claims_of(pod: &Value) -> impl Iterator<Item = &str> {
    let statuses = object::items(pod, &["status", "resourceClaimStatuses"]);
    let own = object::items(pod, &["spec", "resourceClaims"]).iter().filter_map(|claim| {
        let named = object::text(claim, &["resourceClaimName"]);
        if !named.is_empty() {
            return Some(named);
        }
        match statuses.iter().find(|status| status.get("name") == claim.get("name")) {
            Some(status) => status.get("resourceClaimName").and_then(Value::as_str),
            None => Some(""),
        }
    });
    let extended = object::text(pod, &["status", "extendedResourceClaimStatus", "resourceClaimName"]);
    own.chain(Some(extended).filter(|extended| !extended.is_empty()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resource::CONFIG_MAPS;

    fn config_map(namespace: &str, name: &str) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name}})
    }

    fn kinds(news: News) -> Vec<&'static str> {
        match news {
            News::Changes(changes, _) => changes.iter().map(|change| change.kind.as_str()).collect(),
            News::TooLate(_) => vec!["too late"],
        }
    }

    #[test]
    fn history_tells_what_happened_after_a_version() {
        let mut store = Store::new(3);
        let start = store.version();
        let first = store.put(&CONFIG_MAPS, config_map("a", "x")).version;
        store.put(&CONFIG_MAPS, config_map("a", "x"));
        store.remove(&CONFIG_MAPS, "a", "x");
        assert_eq!(kinds(store.news(&CONFIG_MAPS, start)), ["ADDED", "MODIFIED", "DELETED"]);
        assert_eq!(kinds(store.news(&CONFIG_MAPS, first)), ["MODIFIED", "DELETED"]);
        assert!(kinds(store.news(&CONFIG_MAPS, store.version())).is_empty());

        store.put(&CONFIG_MAPS, config_map("a", "x"));
        assert_eq!(kinds(store.news(&CONFIG_MAPS, start)), ["too late"], "only three changes are kept");
        assert_eq!(kinds(store.news(&CONFIG_MAPS, first)), ["MODIFIED", "DELETED", "ADDED"]);
        store.compact();
        assert_eq!(kinds(store.news(&CONFIG_MAPS, first)), ["too late"]);
    }

    #[test]
    fn a_namespace_is_a_range() {
        let mut store = Store::new(10);
        for (namespace, name) in [("a", "x"), ("a", "y"), ("a-b", "z"), ("b", "w")] {
            store.put(&CONFIG_MAPS, config_map(namespace, name));
        }
        let names = |namespace: &str, after: Option<&str>| -> Vec<String> {
            store.objects(&CONFIG_MAPS, namespace, after).map(|(key, _)| key.clone()).collect()
        };
        assert_eq!(names("a", None), ["a/x", "a/y"]);
        assert_eq!(names("a", Some("a/x")), ["a/y"]);
        assert_eq!(names("", None).len(), 4);
        assert!(names("c", None).is_empty());
    }
}
