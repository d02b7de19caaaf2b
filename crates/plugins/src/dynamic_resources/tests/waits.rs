//! How long a pod waits for its claims, and what is taken back if that was in vain.

use supercargo_framework::{
    handle::{AwaitOutcome, Measurement},
    offline::Note,
};
use supercargo_model::{
    pod::ExtendedRequest,
    testing::{Builder, cluster, node},
};

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(600);

/// The wall clock so many seconds after the start of virtual time; before it, if negative.
fn clock(seconds: i64) -> Timestamp {
    let start = OfflineHandle::<ApiObjects>::default().now().as_second();
    Timestamp::from_second(start + seconds).unwrap()
}

/// A device that must become ready, and was allocated at some second, if that is known; with a condition that holds.
fn pending(allocated: Option<i64>, holds: &str) -> Value {
    let device = json!({"request": "r", "driver": "d", "pool": "p", "device": "gpu-0",
        "bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]});
    let mut status = json!({
        "allocation": {"devices": {"results": [device]}},
        "reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}],
        "devices": [{"driver": "d", "pool": "p", "device": "gpu-0", "conditions":
            [{"type": holds, "status": "True", "reason": "Why", "message": "so it is"}]}],
    });
    if let Some(allocated) = allocated {
        status["allocation"]["allocationTimestamp"] = clock(allocated).to_string().into();
    }
    status
}

fn cluster_with(claim: Value) -> Cluster {
    let mut cluster = Cluster::default();
    cluster.put(object(claim).object());
    cluster
}

/// What the watch shows at which second.
type Shown = Vec<(u64, Cluster)>;

/// Carries out a plan for a claim as it was known, on a server that has it as it is stored. What comes of it, after how many
/// seconds; and on what.
fn carried_out(
    known: Value,
    stored: Value,
    shown: Shown,
    (timeout, again): (Duration, bool),
) -> (Result<(), String>, u64, OfflineHandle) {
    let api = OfflineHandle::default();
    api.put(PATH, stored);
    shown.into_iter().for_each(|(at, cluster)| match at {
        0 => api.show(cluster),
        _ => api.show_later(Duration::from_secs(at), cluster),
    });
    let known = claim(known);
    let allocation = match &known.allocation {
        None => Some(Arc::new(serde_json::from_value(allocation()).unwrap())),
        Some(_) => None,
    };
    let plan = ClaimPlan {
        claims: vec![PlannedClaim { claim: Arc::new(known), allocation, is_extended: false }],
        extended: None,
    };
    let (handle, pod, node) = (api.connected(), pod("p").pod(), Name::from("n"));
    let binding = ClaimBinding { handle: &handle, pod: &pod, node: &node, timeout, again, written: &|_| {} };
    let verdict = api.run(bind::bind(&binding, plan)).expect("it ends");
    (verdict.map_err(|status| status.message()), api.uptime().as_secs(), api)
}

#[test]
fn a_pod_waits_until_its_devices_are_ready_or_it_is_too_late() {
    use AwaitOutcome::{Failed, Ready, TimedOut, Unknown};
    let late = "device binding timeout: context deadline exceeded";
    let claim_is_late = "device binding timeout: claim=gpu";
    let becomes = |holds: &str| cluster_with(written(pending(None, holds)));
    let never = || (10_000, Cluster::default());
    // (when the devices were allocated, what is shown then, how it ends, after how long, as what it is counted)
    let cases = [
        (None, (0, becomes("Ready")), Ok(()), 0, Ready),
        (None, (10, becomes("Ready")), Ok(()), 10, Ready),
        (
            None,
            (10, becomes("Broken")),
            Err(r#"device binding failed: claim=gpu, reason=Why, message="so it is""#),
            10,
            Failed,
        ),
        (None, (10, Cluster::default()), Err(r#"could not find ResourceClaim "default/gpu""#), 10, Unknown),
        // 600 s from now on, or from when they were allocated, if that is told apart: by more than 5 s.
        (None, never(), Err(late), 600, TimedOut),
        (Some(0), never(), Err(late), 600, TimedOut),
        (Some(-5), never(), Err(late), 600, TimedOut),
        (Some(-6), never(), Err(claim_is_late), 594, TimedOut),
        (Some(-100), never(), Err(claim_is_late), 500, TimedOut),
        (Some(-601), never(), Err(claim_is_late), 0, TimedOut),
        // Ready in the last second.
        (Some(-100), (499, becomes("Ready")), Ok(()), 499, Ready),
    ];
    for (i, (allocated, then, expected, seconds, outcome)) in cases.into_iter().enumerate() {
        let status = pending(allocated, "Other");
        let stored = written(status.clone());
        let shown = vec![(0, cluster_with(stored.clone())), then];
        let (verdict, took, api) = carried_out(status, stored.clone(), shown, (TIMEOUT, false));
        assert_eq!((verdict, took), (expected.map_err(str::to_owned), seconds), "case {i}");
        assert_eq!(api.told(), ["waiting for binding conditions for device on node n"], "case {i}");
        let awaited = Measurement::DeviceAwaited {
            profile: "default-scheduler".into(),
            driver: "d".into(),
            has_conditions: true,
            outcome,
            took: Duration::from_secs(seconds),
        };
        let at = Duration::from_secs(seconds);
        assert_eq!(api.notes(), [(at, Note::Measured(awaited))], "case {i}");
        assert_eq!(api.object(PATH), Some(stored), "the pod had it before: nothing is written");
    }
}

#[test]
fn what_is_over_already_is_not_waited_for_however_short_the_time() {
    let (late, claim_is_late) =
        ("device binding timeout: context deadline exceeded", "device binding timeout: claim=gpu");
    // In less than 5 s, claims are not told apart, but for those that are too late already. (when the devices were
    // allocated, how it ends, after how long)
    let cases = [(-4, claim_is_late, 0), (-3, late, 3), (-2, late, 3)];
    for (allocated, expected, seconds) in cases {
        let status = pending(Some(allocated), "Other");
        let stored = written(status.clone());
        let shown = vec![(0, cluster_with(stored.clone())), (10_000, Cluster::default())];
        let (verdict, took, _) = carried_out(status, stored, shown, (3 * SECOND, false));
        assert_eq!((verdict, took), (Err(expected.to_owned()), seconds), "{allocated}");
    }
}

#[test]
fn devices_that_need_not_become_ready_are_not_waited_for() {
    let reserved = json!([{"resource": "pods", "name": "p", "uid": "p"}]);
    let status = json!({"allocation": allocation(), "reservedFor": reserved});
    let (verdict, took, api) = carried_out(status.clone(), written(status), vec![], (TIMEOUT, false));
    assert_eq!((verdict, took, api.told().len(), api.notes().len()), (Ok(()), 0, 0, 0));
}

#[test]
fn what_the_cache_says_of_a_claim_is_not_relied_on_the_second_time() {
    let reserved = json!([{"resource": "pods", "name": "p", "uid": "p"}]);
    let status = json!({"allocation": allocation(), "reservedFor": reserved});
    let gone = "claim default/gpu got deallocated elsewhere in the meantime".to_owned();
    for (again, expected) in [(false, Ok(())), (true, Err(gone))] {
        let (verdict, _, _) = carried_out(status.clone(), written(json!({})), vec![], (TIMEOUT, again));
        assert_eq!(verdict, expected);
    }
}

#[test]
fn a_claim_that_was_given_devices_is_waited_for_until_the_watch_shows_it() {
    let late = "the watch has not shown the allocation of claim default/gpu within 120 s";
    let shown = |uid: &str, version: &str, status: Value| {
        let mut claim = written(status);
        claim["metadata"]["uid"] = uid.into();
        claim["metadata"]["resourceVersion"] = version.into();
        cluster_with(claim)
    };
    let allocated = || json!({"allocation": allocation()});
    // Two writes: the claim is in version 2 then. (what the watch shows, when, how it ends, after how long)
    let cases = [
        (Cluster::default(), 0, Err(late), 120),
        (shown("claim", "0", allocated()), 0, Ok(()), 0),
        (shown("claim", "0", allocated()), 30, Ok(()), 30),
        (shown("claim", "0", allocated()), 121, Err(late), 120),
        // Its devices may have been taken away again since.
        (shown("claim", "1", json!({})), 0, Err(late), 120),
        (shown("claim", "2", json!({})), 0, Ok(()), 0),
        (shown("claim", "10", json!({})), 0, Ok(()), 0),
        (shown("claim", "none", json!({})), 0, Err(late), 120),
        // Another one of its name.
        (shown("another", "10", allocated()), 0, Err(late), 120),
    ];
    for (i, (cluster, at, expected, seconds)) in cases.into_iter().enumerate() {
        let shown = vec![(at, cluster), (10_000, Cluster::default())];
        let (verdict, took, _) = carried_out(json!({}), written(json!({})), shown, (TIMEOUT, false));
        assert_eq!((verdict, took), (expected.map_err(str::to_owned), seconds), "case {i}");
    }
}

/// Takes note of what is asked for, and refuses to write if told so. What it makes is called `made`.
#[derive(Default)]
struct Asked {
    objects: ApiObjects,
    asked: Vec<String>,
    refuses: bool,
}

fn made() -> String {
    PATH.replace("/gpu", "/made")
}

impl OfflineApi for Asked {
    fn answer(
        &mut self,
        _: &mut Arc<Cluster>,
        request: &ApiRequest,
        _: Timestamp,
    ) -> Result<Value, ApiError> {
        self.asked.push(format!("{:?} {}", request.verb, request.key.name));
        if self.refuses && request.verb != Verb::Get {
            return Err(ApiError::new(ApiFailure::Refused, "so it is"));
        }
        if request.verb == Verb::Create {
            let mut object = request.body.clone();
            (object["metadata"]["name"], object["metadata"]["uid"]) = ("made".into(), "made".into());
            self.objects.put(made(), object.clone());
            return Ok(object);
        }
        self.objects.answer(request)
    }
}

#[test]
fn what_was_written_for_a_pod_is_taken_back_and_nothing_else() {
    let reserved = |uid: &str| json!([{"resource": "pods", "name": uid, "uid": uid}]);
    let named = |name: &str, status: Value| ResourceClaim { name: name.into(), ..claim(status) };
    let (allocation, ours) = (allocation(), reserved("p"));
    let patched: &[&str] = &["StrategicMergePatch gpu"];
    // Without the finalizer, then away.
    let deleted: &[&str] = &["Get gpu", "Update gpu", "Delete gpu"];
    let in_memory = supercargo_model::devices::UNWRITTEN_CLAIM;
    // (the claim, whether it is the one for extended resources, what is asked for)
    let cases: [(ResourceClaim, bool, &[&str]); 7] = [
        (claim(json!({})), false, &[]),
        (claim(json!({"allocation": allocation})), false, &[]),
        (claim(json!({"reservedFor": ours})), false, &[]),
        (claim(json!({"allocation": allocation, "reservedFor": reserved("q")})), false, &[]),
        (claim(json!({"allocation": allocation, "reservedFor": ours})), false, patched),
        (named(in_memory, json!({"allocation": allocation, "reservedFor": ours})), true, &[]),
        (claim(json!({})), true, deleted),
    ];
    for (i, (claim, is_extended, asked)) in cases.into_iter().enumerate() {
        let planned = PlannedClaim { claim: Arc::new(claim), allocation: None, is_extended };
        let plan = ClaimPlan { claims: vec![planned], extended: None };
        let pod = pod("p").pod();
        assert_eq!(plan.is_written(&pod), !asked.is_empty(), "case {i}");
        for refuses in [false, true] {
            let api = OfflineHandle::<Asked>::default();
            api.with(|api, _| {
                api.objects.put(PATH, written(json!({})));
                api.refuses = refuses;
            });
            let (handle, shared): (_, Arc<dyn Handle>) = (HandleRef::default(), Arc::new(api.clone()));
            handle.connect(&shared);
            let (task, plan) = ((handle, pod.clone()), plan.clone());
            api.spawn(Work::Other, Box::pin(async move { bind::undo(&task.0, &task.1, &plan).await }));
            api.tasks().run_for(SECOND);
            let done = api.with(|api, _| std::mem::take(&mut api.asked));
            let ends = asked.iter().position(|one| refuses && !one.starts_with("Get"));
            assert_eq!(done, &asked[..ends.map_or(asked.len(), |last| last + 1)], "case {i}");
            let lines =
                api.notes().into_iter().filter(|(_, note)| matches!(note, Note::Logged(LogLevel::Warn, _)));
            assert_eq!(lines.count(), usize::from(ends.is_some()), "case {i}: it is told what is left");
        }
    }
}

#[test]
fn the_claim_for_extended_resources_is_made_once_where_it_is_needed() {
    let extended = ExtendedRequests {
        requests: claim(json!({})).requests,
        mappings: vec![ExtendedRequest {
            container_name: "c".into(),
            resource_name: "example.com/gpu".into(),
            request_name: "r".into(),
        }],
    };
    let of_pod = |name: &str, status: Value| {
        let mut claim = written(status);
        (claim["metadata"]["name"], claim["metadata"]["uid"]) = (name.into(), name.into());
        claim
    };
    let in_memory = ResourceClaim {
        name: supercargo_model::devices::UNWRITTEN_CLAIM.into(),
        requests: Vec::new(),
        ..claim(json!({}))
    };
    let Object::ResourceClaim(earlier) = object(of_pod("made", json!({"allocation": allocation()}))).object()
    else {
        panic!("no claim");
    };
    let chosen = || Some(Arc::new(serde_json::from_value(allocation()).unwrap()));
    // (the claim, what was chosen for it, what is asked for, what is taken note of: whether a claim was written)
    let cases: [(ResourceClaim, _, &[&str], &[bool]); 3] = [
        // Made, its finalizer, its devices and its pod; and the pod is told.
        (
            in_memory.clone(),
            chosen(),
            &["Create ", "Get made", "Update made", "Update made", "StrategicMergePatch p"],
            &[true, true],
        ),
        // Device plugins offer everything on this node.
        (in_memory, None, &[], &[]),
        // An earlier attempt made it.
        (earlier, None, &["Get made", "Update made", "StrategicMergePatch p"], &[true]),
    ];
    for (i, (claim, allocation, asked, noted)) in cases.into_iter().enumerate() {
        let api = OfflineHandle::<Asked>::default();
        let there = of_pod("made", json!({"allocation": self::allocation()}));
        api.with(|api, cluster| {
            api.objects.put(made(), there.clone());
            api.objects
                .put("/api/v1/namespaces/default/pods/p", json!({"metadata": {"name": "p", "uid": "p"}}));
            *cluster = Arc::new(cluster_with(there));
        });
        let (handle, shared): (_, Arc<dyn Handle>) = (HandleRef::default(), Arc::new(api.clone()));
        handle.connect(&shared);
        let planned = PlannedClaim { claim: Arc::new(claim), allocation, is_extended: true };
        let plan = ClaimPlan { claims: vec![planned], extended: Some(extended.clone()) };
        let ended = Arc::new(Mutex::new((None, Vec::new())));
        let told = ended.clone();
        let task = async move {
            let (pod, node) = (pod("p").pod(), Name::from("n"));
            let note = |plan: &ClaimPlan| told.lock().unwrap().1.push(plan.is_written(&pod));
            let binding = ClaimBinding {
                handle: &handle,
                pod: &pod,
                node: &node,
                timeout: TIMEOUT,
                again: false,
                written: &note,
            };
            let verdict = bind::bind(&binding, plan).await;
            told.lock().unwrap().0 = Some(verdict);
        };
        api.spawn(Work::Other, Box::pin(task));
        api.tasks().run_for(SECOND);
        let done = api.with(|api, _| std::mem::take(&mut api.asked));
        assert_eq!(done, asked, "case {i}");
        assert_eq!(*ended.lock().unwrap(), (Some(Ok(())), noted.to_vec()), "case {i}");
        if let Some("StrategicMergePatch p") = asked.last().copied() {
            let (claim, pod) = api.with(|api, _| {
                let get = |path: &str| api.objects.get(path).cloned().unwrap();
                (get(&made()), get("/api/v1/namespaces/default/pods/p"))
            });
            assert_eq!(claim["status"]["reservedFor"][0]["uid"], "p");
            assert_eq!(claim["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"], "gpu");
            let status = &pod["status"]["extendedResourceClaimStatus"];
            assert_eq!(status["resourceClaimName"], "made");
            assert_eq!(status["requestMappings"][0]["requestName"], "r");
        }
    }
}

#[test]
fn devices_that_cannot_be_used_on_a_node_or_are_not_ready_in_time() {
    let on = |node: &str| {
        let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        let mut allocation = allocation();
        allocation["nodeSelector"] = json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
        json!({"allocation": allocation})
    };
    // (the claim, at which second, whether it is in the way)
    let cases = [
        (json!({}), 0, false),
        (json!({"allocation": allocation()}), 0, false),
        (on("n"), 0, false),
        (on("other"), 0, true),
        (pending(None, "Other"), 1_000_000, false),
        // From the end of the 600 s on.
        (pending(Some(0), "Other"), 599, false),
        (pending(Some(0), "Other"), 600, false),
        (pending(Some(0), "Other"), 601, true),
        (pending(Some(0), "Ready"), 601, false),
        (pending(Some(0), "Broken"), 0, true),
    ];
    for (i, (status, seconds, expected)) in cases.into_iter().enumerate() {
        let mut cluster = cluster([node("n")]);
        cluster.set_now(clock(seconds));
        let node = cluster.node("n").unwrap();
        assert_eq!(cycle::is_unavailable(&cluster, &claim(status), node, TIMEOUT), expected, "case {i}");
    }
}

#[test]
fn a_pod_is_woken_when_its_own_claims_are_made() {
    let waiting =
        pod("p").set("/spec/resourceClaims", json!([{"name": "x", "resourceClaimTemplateName": "t"}]));
    let made = |name: &str| json!([{"name": "x", "resourceClaimName": name}]);
    let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": true});
    let mut there = written(json!({}));
    there["metadata"]["ownerReferences"] = json!([owner]);
    let cluster = cluster_with(there);
    let told = |pod: &Builder, name: &str| pod.clone().set("/status/resourceClaimStatuses", made(name)).pod();
    let (us, plain) = (waiting.clone().pod(), pod("other").pod());
    // (the pod that has changed, whether it helps)
    let cases = [
        (told(&waiting, "gpu"), true),
        // The claim is made, and has not been seen.
        (told(&waiting, "late"), false),
        (us.clone(), false),
        (plain, false),
    ];
    let interests = events::interests();
    for (i, (after, expected)) in cases.into_iter().enumerate() {
        let change = Change::Pod(Some(&us), Some(&after));
        let action = ActionType::UpdatePodGeneratedResourceClaim;
        let helps = |one: &EventInterest| one.helps(&cluster, EventResource::Pod, action, &us, &change);
        assert_eq!(interests.iter().any(helps), expected, "case {i}");
    }
}
