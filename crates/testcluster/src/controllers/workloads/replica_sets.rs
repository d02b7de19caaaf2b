//! A replica set has as many pods as it wants.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{CONTROLLER, all, by_controller, is_ready, owner_reference, replicas, write_status};
use crate::StatusError;
use crate::api::{Api, Caller, DeleteOptions, ObjectAddress};
use crate::object::{self, at, name, namespace, text, uid};
use crate::resource::{PODS, REPLICA_SETS};
use crate::store::StoredObject;

/// No set gets more pods than this: a mistyped number should not fill the memory.
const PODS_LIMIT: u64 = 50_000;

pub(super) fn reconcile(api: &Api) -> Result<(), StatusError> {
    let (sets, pods) = (all(api, &REPLICA_SETS), all(api, &PODS));
    let owned = by_controller(&pods);
    for set in sets.iter().filter(|set| !object::is_terminating(&set.value)) {
        let pods = owned.get(uid(&set.value)).map_or(&[][..], Vec::as_slice);
        reconcile_one(api, &set.value, pods)?;
    }
    Ok(())
}

fn reconcile_one(api: &Api, set: &Value, pods: &[&Arc<StoredObject>]) -> Result<(), StatusError> {
    let caller = Caller::controller(CONTROLLER);
    let mut active: Vec<&Value> = pods.iter().map(|pod| &pod.value).filter(|pod| is_active(pod)).collect();
    let wanted = replicas(set, "spec", "replicas").min(PODS_LIMIT) as usize;
    for _ in active.len()..wanted {
        api.create(&PODS, namespace(set), pod_of(set), &caller)?;
    }
    // Those that do nobody any good go first.
    active.sort_by_key(|pod| (is_ready(pod), !text(pod, &["spec", "nodeName"]).is_empty()));
    let surplus = active.len().saturating_sub(wanted);
    for pod in &active[..surplus] {
        let options = DeleteOptions { uid: Some(uid(pod).to_owned()), ..DeleteOptions::default() };
        api.delete(ObjectAddress::new(&PODS, namespace(pod), name(pod)), &options, &caller)?;
    }
    let ready = active[surplus..].iter().filter(|pod| is_ready(pod)).count() as u64;
    let numbers = [
        ("replicas", wanted as u64),
        ("fullyLabeledReplicas", wanted as u64),
        ("readyReplicas", ready),
        ("availableReplicas", ready),
    ];
    write_status(api, &REPLICA_SETS, set, &numbers)
}

fn is_active(pod: &Value) -> bool {
    !object::is_terminating(pod) && !matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed")
}

fn pod_of(set: &Value) -> Value {
    json!({
        "metadata": {
            "generateName": format!("{}-", name(set)),
            "labels": at(set, &["spec", "template", "metadata", "labels"]),
            "annotations": at(set, &["spec", "template", "metadata", "annotations"]),
            "ownerReferences": [owner_reference(&REPLICA_SETS, set)],
        },
        "spec": at(set, &["spec", "template", "spec"]),
    })
}
