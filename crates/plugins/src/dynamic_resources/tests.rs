//! What becomes of claims that somebody else touches between the decision and the binding, and which events help.

mod waits;

use std::collections::VecDeque;

use serde_json::{Value, json};
use supercargo_framework::{
    event::{ActionType, Change, EventResource},
    handle::{ApiError, ApiFailure, ApiRequest, Handle, HandleRef, Verb},
    offline::{ApiObjects, OfflineApi, OfflineHandle},
};
use supercargo_model::{
    Key, Timestamp,
    devices::ResourceClaim,
    testing::{object, pod},
};

use super::{write::ClaimWriter, *};

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

/// Fails as told, one update after another. What it leaves open it has done.
#[derive(Default)]
struct Flaky {
    objects: ApiObjects,
    failures: VecDeque<ApiFailure>,
    updates: usize,
}

impl OfflineApi for Flaky {
    fn answer(
        &mut self,
        _: &mut Arc<Cluster>,
        request: &ApiRequest,
        _: Timestamp,
    ) -> Result<Value, ApiError> {
        if request.verb != Verb::Update {
            return self.objects.answer(request);
        }
        self.updates += 1;
        match self.failures.pop_front() {
            None => self.objects.answer(request),
            Some(failure) => {
                if failure == ApiFailure::OutcomeUnknown {
                    self.objects.answer(request)?;
                }
                Err(ApiError::new(failure, "so it is"))
            }
        }
    }
}

/// What comes of a write about the claim, how many updates that takes, and the claim then.
fn course<T: Send + 'static>(
    stored: Value,
    failures: &[ApiFailure],
    write: impl AsyncFnOnce(ClaimWriter<'_>) -> T,
) -> (T, usize, Option<Value>) {
    let api = OfflineHandle::<Flaky>::default();
    api.with(|api, _| {
        api.objects.put(PATH, stored);
        api.failures = failures.iter().copied().collect();
    });
    let (handle, shared): (_, Arc<dyn Handle>) = (HandleRef::default(), Arc::new(api.clone()));
    handle.connect(&shared);
    let pod = pod("p").pod();
    let mut effect = std::pin::pin!(write(ClaimWriter { handle: &handle, pod: &pod }));
    let outcome = loop {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match effect.as_mut().poll(&mut context) {
            std::task::Poll::Ready(outcome) => break outcome,
            std::task::Poll::Pending => api.tasks().run_for(std::time::Duration::from_millis(10)),
        }
    };
    api.with(|api, _| (outcome, api.updates, api.objects.get(PATH).cloned()))
}

#[test]
fn a_reservation_is_tried_again_while_others_are_quicker_or_nobody_knows() {
    use ApiFailure::{Conflict, OutcomeUnknown, Refused};
    // Its finalizer is there: one update tells the devices and the pod.
    let mut stored = written(json!({}));
    stored["metadata"]["finalizers"] = json!(["resource.kubernetes.io/delete-protection"]);
    let refused = "add allocation and reservation to claim default/gpu: so it is";
    // (failures, how it ends, after how many updates)
    let cases = [
        (vec![], Ok(()), 1),
        (vec![Conflict], Ok(()), 2),
        (vec![Conflict; 4], Ok(()), 5),
        (vec![Conflict; 5], Err(refused.to_owned()), 5),
        (vec![Refused], Err(refused.to_owned()), 1),
        // It was written: that is seen, and not written twice.
        (vec![OutcomeUnknown], Ok(()), 1),
    ];
    for (failures, ends, updates) in cases {
        let (outcome, updated, claim) = course(stored.clone(), &failures, async |writer| {
            let allocation = serde_json::from_value(allocation()).unwrap();
            writer.reserve(&self::claim(json!({})), Some(&allocation), false).await.map(drop)
        });
        assert_eq!((&outcome, updated), (&ends, updates), "{failures:?}");
        if ends.is_ok() {
            let status = &claim.unwrap()["status"];
            let reserved: Vec<&Value> = status["reservedFor"].as_array().unwrap().iter().collect();
            assert_eq!(reserved.len(), 1, "{failures:?}");
            assert_eq!(status["allocation"]["devices"], allocation()["devices"], "{failures:?}");
        }
    }
}

#[test]
fn what_another_attempt_wrote_counts_only_if_it_is_the_same() {
    let other =
        json!({"devices": {"results": [{"request": "r", "driver": "d", "pool": "p", "device": "gpu-1"}]}});
    let [us, them] = ["p", "q"].map(|uid| json!([{"resource": "pods", "name": uid, "uid": uid}]));
    let elsewhere = || Err("claim default/gpu got allocated elsewhere in the meantime".to_owned());
    // (the devices in the claim, who has it, how it ends)
    let cases = [(allocation(), &us, Ok(())), (allocation(), &them, elsewhere()), (other, &us, elsewhere())];
    for (there, reserved, ends) in cases {
        let stored = written(json!({"allocation": there, "reservedFor": reserved}));
        let (outcome, updates, _) = course(stored, &[], async |writer| {
            let allocation = serde_json::from_value(allocation()).unwrap();
            writer.reserve(&claim(json!({})), Some(&allocation), true).await.map(drop)
        });
        assert_eq!((outcome, updates), (ends, 0), "{there} {reserved}");
    }
}

#[test]
fn a_claim_that_we_made_is_deleted_without_our_finalizer() {
    use ApiFailure::{Conflict, Refused};
    let mut stored = written(json!({}));
    stored["metadata"]["finalizers"] = json!(["others", "resource.kubernetes.io/delete-protection"]);
    let failed = || Err("update resourceclaim default/gpu: so it is".to_owned());
    // (failures, how it ends, after how many updates)
    let cases = [
        (vec![], Ok(()), 1),
        (vec![Conflict; 4], Ok(()), 5),
        (vec![Conflict; 5], failed(), 5),
        (vec![Refused], failed(), 1),
    ];
    for (failures, ends, updates) in cases {
        let (outcome, updated, claim) = course(stored.clone(), &failures, async |writer| {
            writer.delete(&Key::new("default", "gpu"), "claim").await
        });
        assert_eq!((&outcome, updated), (&ends, updates), "{failures:?}");
        assert_eq!(claim.is_none(), ends.is_ok(), "{failures:?}");
    }
    let (outcome, _, claim) =
        course(stored, &[], async |writer| writer.delete(&Key::new("default", "gpu"), "other").await);
    assert_eq!(outcome, Err("resourceclaim default/gpu is another by now".to_owned()));
    assert!(claim.is_some());
}
