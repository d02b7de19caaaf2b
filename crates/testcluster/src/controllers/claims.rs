//! The ResourceClaim controller, pretended: pods get claims from templates, and claims that nobody uses any more are freed.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::follow::ChangeFollower;
use super::workloads::{PAUSE, PAUSE_FOR_WORK, all};
use crate::StatusError;
use crate::api::{Api, Caller, DeleteOptions, ObjectAddress};
use crate::object::{self, as_map, at, items, list_at, map_at, name, namespace, text, uid};
use crate::resource::{PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS};
use crate::store::{EventType, StoreEvent, StoredObject};

const CONTROLLER: &str = "resourceclaim-controller";
/// Keeps a claim for as long as it is allocated.
const DELETE_PROTECTION: &str = "resource.kubernetes.io/delete-protection";
/// Which of its pod's claims this one is.
const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// So that five letters can follow in a name of 63.
const NAME_PREFIX_LIMIT: usize = 57;

pub(super) async fn run(api: Arc<Api>) {
    let mut pods = ChangeFollower::new(&api, &PODS);
    let mut claims = ChangeFollower::new(&api, &RESOURCE_CLAIMS);
    let mut templates = ChangeFollower::new(&api, &RESOURCE_CLAIM_TEMPLATES);
    // Pods whose template is not there yet, or that somebody else has changed meanwhile.
    let mut waiting: BTreeSet<(String, String)> = BTreeSet::new();
    let (mut pause, mut is_unfinished) = (PAUSE, false);
    loop {
        tokio::select! {
            biased;
            () = pods.changed() => {}
            () = claims.changed() => {}
            () = templates.changed() => {}
        }
        api.time.sleep(pause).await;
        let began = api.time.uptime();
        let changed = pods.follow(&api);
        let wants = |pod: &StoredObject| !items(&pod.value, &["spec", "resourceClaims"]).is_empty();
        let wanting = changed.present().filter(|pod| wants(pod));
        waiting.extend(wanting.map(|pod| (namespace(&pod.value).to_owned(), name(&pod.value).to_owned())));
        waiting.retain(|(namespace, name)| {
            let made = make_claims(&api, ObjectAddress::new(&PODS, namespace, name));
            made.inspect_err(|failure| tracing::debug!(%failure, name, "a pod's claims could not be made"))
                .is_err()
        });
        // A claim may be reserved for a pod that does not name it: any that is done, or gone, may free one.
        let frees = |pod: &StoreEvent| {
            pod.kind == EventType::Deleted || is_done(&pod.object.value) || wants(&pod.object)
        };
        let is_due = claims.follow(&api).concerns(|_| true)
            | templates.follow(&api).concerns(|_| true)
            | changed.concerns(frees);
        if !is_due && !is_unfinished {
            continue;
        }
        is_unfinished = false;
        for claim in all(&api, &RESOURCE_CLAIMS) {
            if let Err(failure) = reconcile(&api, &claim) {
                // Somebody else has changed the claim: that wakes this loop again.
                tracing::debug!(%failure, claim = name(&claim.value), "a claim could not be reconciled");
                is_unfinished = true;
            }
        }
        pause = PAUSE.max((api.time.uptime() - began) * PAUSE_FOR_WORK);
    }
}

/// It will not run, or not any more.
fn is_done(pod: &Value) -> bool {
    matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed")
        || object::is_terminating(pod) && text(pod, &["spec", "nodeName"]).is_empty()
}

/// Makes the claims that a pod wants from templates, and writes their names into its status.
fn make_claims(api: &Api, place: ObjectAddress<'_>) -> Result<(), StatusError> {
    let Ok(pod) = api.get(place) else { return Ok(()) };
    if is_done(&pod.value) || object::is_terminating(&pod.value) {
        return Ok(());
    }
    let mut statuses = items(&pod.value, &["status", "resourceClaimStatuses"]).to_vec();
    let known = statuses.clone();
    for wanted in items(&pod.value, &["spec", "resourceClaims"]) {
        let template = text(wanted, &["resourceClaimTemplateName"]);
        if template.is_empty() || is_made(api, &pod.value, wanted, &known) {
            continue;
        }
        let claim = match made_before(api, &pod.value, text(wanted, &["name"])) {
            Some(claim) => claim,
            None => make_claim(api, &pod.value, text(wanted, &["name"]), template)?,
        };
        statuses.retain(|status| status.get("name") != wanted.get("name"));
        statuses.push(json!({"name": wanted["name"], "resourceClaimName": name(&claim.value)}));
    }
    if statuses == known {
        return Ok(());
    }
    let mut pod = pod.value.clone();
    map_at(&mut pod, "status").insert("resourceClaimStatuses".to_owned(), statuses.into());
    api.update(place, "status", pod, &Caller::controller(CONTROLLER)).map(drop)
}

/// The pod's status names the claim, and it is there; or the status says that none is needed.
fn is_made(api: &Api, pod: &Value, wanted: &Value, statuses: &[Value]) -> bool {
    let Some(status) = statuses.iter().find(|status| status.get("name") == wanted.get("name")) else {
        return false;
    };
    let claim = text(status, &["resourceClaimName"]);
    let found = || api.get(ObjectAddress::new(&RESOURCE_CLAIMS, namespace(pod), claim));
    claim.is_empty()
        || found().is_ok_and(|claim| owner(&claim.value).is_some_and(|(_, owner)| owner == uid(pod)))
}

/// A claim that was made for the pod, before its name could be written down.
fn made_before(api: &Api, pod: &Value, claim_name: &str) -> Option<Arc<StoredObject>> {
    let store = api.store();
    let mut claims = store.objects(&RESOURCE_CLAIMS, namespace(pod), None).map(|(_, claim)| claim);
    claims
        .find(|claim| {
            let is_own = owner(&claim.value).is_some_and(|(_, owner)| owner == uid(pod));
            is_own && text(&claim.value, &["metadata", "annotations", POD_CLAIM_NAME]) == claim_name
        })
        .cloned()
}

fn make_claim(
    api: &Api,
    pod: &Value,
    claim_name: &str,
    template: &str,
) -> Result<Arc<StoredObject>, StatusError> {
    let template = api.get(ObjectAddress::new(&RESOURCE_CLAIM_TEMPLATES, namespace(pod), template))?;
    let template = &template.value;
    let mut claim = json!({
        "metadata": {
            "generateName": name_prefix(name(pod), claim_name),
            "labels": at(template, &["spec", "metadata", "labels"]),
            "annotations": at(template, &["spec", "metadata", "annotations"]),
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": name(pod), "uid": uid(pod), "controller": true},
            ],
        },
        "spec": at(template, &["spec", "spec"]),
    });
    let annotations = map_at(&mut claim, "metadata").entry("annotations").or_insert(Value::Null);
    as_map(annotations).insert(POD_CLAIM_NAME.to_owned(), claim_name.into());
    api.create(&RESOURCE_CLAIMS, namespace(pod), claim, &Caller::controller(CONTROLLER))
}

/// `pod-claim-`; of long names a part, so that both can still be told.
fn name_prefix(pod: &str, claim: &str) -> String {
    let whole = format!("{pod}-{claim}-");
    if whole.len() <= NAME_PREFIX_LIMIT {
        return whole;
    }
    let part = |text: &str| text[..text.len() * NAME_PREFIX_LIMIT / whole.len()].to_owned();
    format!("{}-{}-", part(pod), part(claim).trim_end_matches(['-', '.']))
}

/// Name and uid of the pod that a claim was made for.
fn owner(claim: &Value) -> Option<(&str, &str)> {
    let owners = items(claim, &["metadata", "ownerReferences"]);
    let pod = owners.iter().find(|owner| owner["controller"] == true && text(owner, &["kind"]) == "Pod")?;
    Some((text(pod, &["name"]), text(pod, &["uid"])))
}

/// Whether a pod may still use its claims.
fn is_in_need(api: &Api, namespace: &str, pod_name: &str, pod_uid: &str) -> bool {
    let pod = api.get(ObjectAddress::new(&PODS, namespace, pod_name));
    pod.is_ok_and(|pod| uid(&pod.value) == pod_uid && !is_done(&pod.value))
}

/// Takes pods that are done off a claim. The last one gives its devices back, and a claim that was made for a pod goes with it.
fn reconcile(api: &Api, claim: &StoredObject) -> Result<(), StatusError> {
    let value = &claim.value;
    let reserved = items(value, &["status", "reservedFor"]);
    let stays = |consumer: &&Value| {
        text(consumer, &["resource"]) != "pods"
            || is_in_need(api, namespace(value), text(consumer, &["name"]), text(consumer, &["uid"]))
    };
    let remaining: Vec<Value> = reserved.iter().filter(stays).cloned().collect();
    let is_unused = remaining.is_empty();
    let is_protected = items(value, &["metadata", "finalizers"]).iter().any(|one| one == DELETE_PROTECTION);
    let may_go = is_protected && object::is_terminating(value) && is_unused;
    if remaining.len() < reserved.len() || may_go {
        release(api, value, remaining, is_protected)?;
    }
    let place = ObjectAddress::new(&RESOURCE_CLAIMS, namespace(value), name(value));
    match owner(value) {
        Some((pod, pod_uid)) if is_unused && !is_in_need(api, namespace(value), pod, pod_uid) => {
            let options = DeleteOptions { uid: Some(uid(value).to_owned()), ..DeleteOptions::default() };
            match api.delete(place, &options, &Caller::controller(CONTROLLER)) {
                Err(failure) if failure.reason() != "NotFound" => Err(failure),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Writes who still uses a claim. If nobody does, it has no devices any more, and nothing keeps it from being deleted.
fn release(api: &Api, claim: &Value, remaining: Vec<Value>, is_protected: bool) -> Result<(), StatusError> {
    let caller = Caller::controller(CONTROLLER);
    let place = ObjectAddress::new(&RESOURCE_CLAIMS, namespace(claim), name(claim));
    let mut claim = claim.clone();
    let status = map_at(&mut claim, "status");
    if remaining.is_empty() {
        status.remove("reservedFor");
        if is_protected {
            status.remove("allocation");
        }
    } else {
        status.insert("reservedFor".to_owned(), remaining.into());
    }
    let mut claim = api.update(place, "status", claim, &caller)?.value.clone();
    if !is_protected || at(&claim, &["status", "allocation"]).is_some() {
        return Ok(());
    }
    list_at(map_at(&mut claim, "metadata"), "finalizers").retain(|one| one != DELETE_PROTECTION);
    api.update(place, "", claim, &caller).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_in_proportion() {
        assert_eq!(name_prefix("trainer", "gpu"), "trainer-gpu-");
        let (pod, claim) = ("p".repeat(60), "c".repeat(20));
        // 60 + 20 + 2 = 82 letters for 57: 60 × 57 / 82 = 41, 20 × 57 / 82 = 13
        assert_eq!(name_prefix(&pod, &claim), format!("{}-{}-", "p".repeat(41), "c".repeat(13)));
    }
}
