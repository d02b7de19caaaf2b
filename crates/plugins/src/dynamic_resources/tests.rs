//! What becomes of claims that somebody else touches between the decision and the binding, and which events help.

use serde_json::{Value, json};
use supercargo_framework::{
    event::{ActionType, Change, EventResource},
    offline::OfflineHandle,
};
use supercargo_model::{
    devices::ResourceClaim,
    testing::{object, pod},
};

use super::*;

const PATH: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/gpu";

fn written(status: Value) -> Value {
    json!({
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "gpu", "namespace": "default", "uid": "claim", "resourceVersion": "7"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]}},
        "status": status,
    })
}

fn claim(status: Value) -> ResourceClaim {
    match object(written(status)).object() {
        Object::ResourceClaim(claim) => claim,
        other => panic!("{other:?}"),
    }
}

fn allocation() -> Value {
    json!({"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "gpu-0"}]}})
}

/// Carries out a plan for the claim, against an API server that has it like this, or not at all.
fn bound(stored: Option<Value>) -> (Verdict, Option<Value>) {
    let api = OfflineHandle::default();
    if let Some(stored) = stored {
        api.put(PATH, stored);
    }
    let mut shown = Cluster::default();
    shown.put(object(written(json!({"allocation": allocation()}))).object());
    api.show(shown);
    let pod = pod("p").pod();
    let planned = PlannedClaim {
        claim: Arc::new(claim(json!({}))),
        allocation: Some(Arc::new(serde_json::from_value(allocation()).unwrap())),
        is_extended: false,
    };
    let plan = ClaimPlan { claims: vec![planned], extended: None };
    let (handle, node) = (api.connected(), Name::from("n"));
    let binding = ClaimBinding {
        handle: &handle,
        pod: &pod,
        node: &node,
        timeout: DEFAULT_BINDING_TIMEOUT,
        again: false,
        written: &|_| {},
    };
    let verdict = api.run(bind::bind(&binding, plan)).expect("it ends");
    (verdict, api.object(PATH))
}

#[test]
fn a_claim_gets_its_finalizer_its_devices_and_its_pod() {
    let (verdict, claim) = bound(Some(written(json!({}))));
    assert_eq!(verdict, Ok(()));
    let claim = claim.unwrap();
    assert_eq!(claim["metadata"]["finalizers"], json!(["resource.kubernetes.io/delete-protection"]));
    assert_eq!(claim["status"]["allocation"]["devices"], allocation()["devices"]);
    assert!(claim["status"]["allocation"]["allocationTimestamp"].is_string());
    assert_eq!(claim["status"]["reservedFor"][0]["name"], "p");
    assert_eq!(claim["spec"], written(json!({}))["spec"], "nothing else is touched");
}

#[test]
fn what_others_did_to_a_claim_meanwhile_costs_the_attempt() {
    let mut leaving = written(json!({}));
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let mut another = written(json!({}));
    another["metadata"]["uid"] = "another".into();
    for (stored, message) in [
        (None, format!("get claim default/gpu: {PATH} not found")),
        (Some(leaving), "claim default/gpu got deleted in the meantime".to_owned()),
        (Some(another), "claim default/gpu got deleted in the meantime".to_owned()),
        (
            Some(written(json!({"allocation": allocation()}))),
            "claim default/gpu got allocated elsewhere in the meantime".to_owned(),
        ),
    ] {
        let before = stored.clone();
        let (verdict, after) = bound(stored);
        assert_eq!(verdict.map_err(|status| status.message()), Err(message));
        assert_eq!(after, before, "nothing is written");
    }
}

#[test]
fn shares_have_identities_of_their_own() {
    let all: HashSet<Name> = (0..1000).map(|number| share_id("pod", number)).collect();
    assert_eq!(all.len(), 1000);
    assert_ne!(share_id("pod", 1), share_id("other", 1));
    assert_eq!(share_id("pod", 1), share_id("pod", 1));
    let parts: Vec<usize> = share_id("pod", 1).split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12]);
}

#[test]
fn a_claim_wakes_its_own_pods_and_free_devices_wake_all() {
    let user =
        pod("user").set("/spec/resourceClaims", json!([{"name": "x", "resourceClaimName": "gpu"}])).pod();
    let stranger = pod("stranger").pod();
    let waiting =
        pod("waiting").set("/spec/resourceClaims", json!([{"name": "x", "resourceClaimName": "late"}]));
    let waiting = waiting.pod();
    let (free, taken) = (claim(json!({})), claim(json!({"allocation": allocation()})));
    let mut cluster = Cluster::default();
    cluster.put(Object::ResourceClaim(free.clone()));
    let (free, taken) = (Object::ResourceClaim(free), Object::ResourceClaim(taken));
    let interests = events::interests();
    let helps = |pod: &Pod, before: Option<&Object>, after: &Object| {
        let action = if before.is_some() { ActionType::Update } else { ActionType::Add };
        let change = Change::Other(before, Some(after));
        interests.iter().any(|one| one.helps(&cluster, EventResource::ResourceClaim, action, pod, &change))
    };
    // Made; given devices; nothing new; devices given back.
    let cases = [(None, &free), (Some(&free), &taken), (Some(&free), &free), (Some(&taken), &free)];
    let woken = |pod: &Pod| cases.map(|(before, after)| helps(pod, before, after));
    assert_eq!(woken(&user), [true, true, false, true]);
    assert_eq!(woken(&stranger), [false, false, false, true]);
    assert_eq!(woken(&waiting), [false; 4], "its own claim is not there yet");
}
