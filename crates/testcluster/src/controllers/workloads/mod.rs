//! Workload controllers, pretended: deployments get replica sets, those get pods, and what has lost its owner goes.

mod deployments;
mod garbage;
mod replica_sets;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::follow::ChangeFollower;
use crate::StatusError;
use crate::api::{Api, Caller, ObjectAddress};
use crate::object::{at, items, map_at, name, namespace, text, uid};
use crate::resource::{DEPLOYMENTS, PODS, REPLICA_SETS, Resource};
use crate::store::{StoreEvent, StoredObject};

/// Changes that come together are looked at together.
pub(super) const PAUSE: Duration = Duration::from_millis(10);
/// What looks at all objects takes its time where there are many: it may take so much of a core, and no more.
pub(super) const PAUSE_FOR_WORK: u32 = 10;
const CONTROLLER: &str = "workload-controller";

pub(super) async fn run(api: Arc<Api>) {
    let mut deployments = ChangeFollower::new(&api, &DEPLOYMENTS);
    let mut replica_sets = ChangeFollower::new(&api, &REPLICA_SETS);
    let mut pods = ChangeFollower::new(&api, &PODS);
    let mut pause = PAUSE;
    let mut is_unfinished = false;
    loop {
        tokio::select! {
            biased;
            () = deployments.changed() => {}
            () = replica_sets.changed() => {}
            () = pods.changed() => {}
        }
        api.time.sleep(pause).await;
        // Pods that nobody controls come and go without all others being looked at.
        let is_controlled = |pod: &StoredObject| controller(&pod.value).is_some();
        let concerns = |pod: &StoreEvent| {
            is_controlled(&pod.object) || pod.previous.as_deref().is_some_and(is_controlled)
        };
        let is_due = deployments.follow(&api).concerns(|_| true)
            | replica_sets.follow(&api).concerns(|_| true)
            | pods.follow(&api).concerns(concerns);
        if !is_due && !is_unfinished {
            continue;
        }
        let began = api.time.uptime();
        is_unfinished = false;
        for (what, done) in [
            ("deployments", deployments::reconcile(&api)),
            ("replica sets", replica_sets::reconcile(&api)),
            ("garbage", garbage::collect(&api)),
        ] {
            if let Err(failure) = done {
                // Somebody else has changed the object: that wakes this loop again.
                tracing::debug!(%failure, what, "not everything could be reconciled");
                is_unfinished = true;
            }
        }
        pause = PAUSE.max((api.time.uptime() - began) * PAUSE_FOR_WORK);
    }
}

pub(super) fn all(api: &Api, resource: &'static Resource) -> Vec<Arc<StoredObject>> {
    api.store().objects(resource, "", None).map(|(_, object)| object.clone()).collect()
}

/// The uid of the object that controls this one.
fn controller(object: &Value) -> Option<&str> {
    let owners = items(object, &["metadata", "ownerReferences"]);
    owners.iter().find(|owner| owner["controller"] == true).map(|owner| text(owner, &["uid"]))
}

/// Objects by the uid of what controls them.
fn by_controller(objects: &[Arc<StoredObject>]) -> HashMap<&str, Vec<&Arc<StoredObject>>> {
    let mut owned: HashMap<&str, Vec<&Arc<StoredObject>>> = HashMap::new();
    for object in objects {
        if let Some(owner) = controller(&object.value) {
            owned.entry(owner).or_default().push(object);
        }
    }
    owned
}

fn owner_reference(resource: &Resource, owner: &Value) -> Value {
    json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "name": name(owner),
        "uid": uid(owner),
        "controller": true,
        "blockOwnerDeletion": true,
    })
}

fn replicas(object: &Value, half: &str, key: &str) -> u64 {
    at(object, &[half, key]).and_then(Value::as_u64).unwrap_or(0)
}

pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = items(pod, &["status", "conditions"]);
    conditions.iter().any(|one| text(one, &["type"]) == "Ready" && text(one, &["status"]) == "True")
}

/// Writes numbers into an object's status, together with the generation they are about.
pub(super) fn write_status(
    api: &Api,
    resource: &'static Resource,
    object: &Value,
    numbers: &[(&str, u64)],
) -> Result<(), StatusError> {
    let mut value = object.clone();
    let generation = at(object, &["metadata", "generation"]).cloned();
    let status = map_at(&mut value, "status");
    for (key, number) in numbers {
        status.insert((*key).to_owned(), (*number).into());
    }
    if let Some(generation) = generation {
        status.insert("observedGeneration".to_owned(), generation);
    }
    let place = ObjectAddress::new(resource, namespace(object), name(object));
    api.update(place, "status", value, &Caller::controller(CONTROLLER)).map(drop)
}
