//! What evictions do when the API server has no time or somebody else was quicker, and who is tried again when.

use std::{collections::VecDeque, time::Duration};

use serde_json::{Value, json};
use supercargo_framework::{
    handle::{ApiError, ApiFailure, ApiRequest, Handle, Measurement, Work},
    offline::{ApiObjects, Note, OfflineApi, OfflineHandle},
    turns::Turns,
};
use supercargo_model::{
    Cluster, Timestamp,
    testing::{cluster, node},
};

use super::*;
use crate::default_preemption::{
    eviction::{EVICTIONS_AT_ONCE, Eviction},
    under_way::UnderWay,
};

use ApiFailure::{Busy, Conflict, NotFound, NotLeading, NotSent, OutcomeUnknown, Refused, ServerError};

/// Fails as told, one request after another, and answers from then on.
#[derive(Default)]
struct Flaky {
    objects: ApiObjects,
    failures: VecDeque<Option<ApiFailure>>,
    asked: Vec<(i64, String)>,
}

impl OfflineApi for Flaky {
    fn answer(
        &mut self,
        _: &mut Arc<Cluster>,
        request: &ApiRequest,
        now: Timestamp,
    ) -> Result<Value, ApiError> {
        self.asked.push((now.as_millisecond(), format!("{:?} {}", request.verb, request.key.name)));
        match self.failures.pop_front().flatten() {
            None => self.objects.answer(request),
            Some(failure) => Err(ApiError::new(failure, "so it is")),
        }
    }
}

/// The pods on the server, by name and uid.
type Stored<'a> = &'a [(&'a str, &'a str)];

/// The evictions for a pod `p` on node `n`, one line after another, each with the milliseconds that have passed; and what
/// people are told.
fn course(
    shown: Cluster,
    stored: Stored<'_>,
    failures: &[Option<ApiFailure>],
    victims: &[&str],
    under_way: Arc<UnderWay>,
) -> (Vec<String>, Vec<String>) {
    let api = OfflineHandle::<Flaky>::default();
    // What counts is when the evictions begin.
    api.tasks().run_for(Duration::from_secs(7));
    let (began, up) = (api.now().as_millisecond(), api.uptime());
    api.with(|api, cluster| {
        for (name, uid) in stored {
            let path = format!("/api/v1/namespaces/default/pods/{name}");
            api.objects.put(path, json!({"metadata": {"name": name, "uid": uid}}));
        }
        api.failures = failures.iter().copied().collect();
        *cluster = Arc::new(shown);
    });
    let eviction = Eviction {
        handle: Arc::new(api.clone()),
        turns: Turns::new(EVICTIONS_AT_ONCE),
        under_way,
        preemptor: pod("p").priority(1000).pod(),
        node: "n".into(),
    };
    let victims: Vec<Arc<Pod>> = victims.iter().map(|name| pod(name).on("n").pod()).collect();
    api.spawn(Work::Preemption, Box::pin(eviction.evict_all(victims)));
    api.tasks().run_for(Duration::from_secs(120));
    let asked = api.with(|api, _| std::mem::take(&mut api.asked));
    let asked = asked.into_iter().map(|(at, what)| ((at - began) as u128, what));
    let noted = api.notes().into_iter().map(|(at, note)| {
        let what = match note {
            Note::Logged(..) => "it is logged".to_owned(),
            Note::Measured(Measurement::Evicted { success, took }) => {
                format!("{} within {}", if success { "done" } else { "failed" }, took.as_millis())
            }
            Note::Activated(uid) => format!("{uid} is tried"),
            Note::LookedAgain(uid) => format!("{uid} may be tried"),
            other @ Note::Measured(_) => format!("{other:?}"),
        };
        ((at - up).as_millis(), what)
    });
    let mut lines: Vec<(u128, String)> = asked.chain(noted).collect();
    lines.sort_by_key(|(at, _)| *at);
    (lines.into_iter().map(|(at, what)| format!("{at} {what}")).collect(), api.told())
}

/// Who is about to leave: each name is a pod's on the node.
fn on_node(names: &[&str]) -> Cluster {
    cluster(std::iter::once(node("n")).chain(names.iter().map(|name| pod(name).on("n"))))
}

#[test]
fn a_victim_is_marked_and_deleted_however_often_that_takes() {
    let there: Stored<'_> = &[("v", "v")];
    let (mark, delete, read) = ("StrategicMergePatch v", "Delete v", "Get v");
    // After an eviction, the pod is tried as soon as the watch has shown it, which is not waited for longer than 30 s.
    let failed =
        |at: u32| format!("{at} failed within {at}, {at} it is logged, {at} p may be tried, {at} p is tried");
    // (failures, what the server has, what happens, whether people are told)
    let cases: Vec<(Vec<Option<ApiFailure>>, Stored<'_>, String, bool)> = vec![
        (vec![], there, format!("0 {mark}, 0 {delete}, 0 done within 0, 30000 p may be tried"), true),
        // 250 × 1, then 250 × 2.
        (
            vec![Some(ServerError(None)), Some(OutcomeUnknown)],
            there,
            format!(
                "0 {mark}, 250 {mark}, 750 {mark}, 750 {delete}, 750 done within 750, 30750 p may be tried"
            ),
            true,
        ),
        (
            vec![None, Some(NotSent)],
            there,
            format!("0 {mark}, 0 {delete}, 250 {delete}, 250 done within 250, 30250 p may be tried"),
            true,
        ),
        // 250 × (1 + … + 7) = 7,000; the last time, 250 × 8 more, and 1,000 before the next attempt.
        (
            vec![Some(Busy(None)); 7],
            there,
            format!(
                "0 {mark}, 250 {mark}, 750 {mark}, 1500 {mark}, 2500 {mark}, 3750 {mark}, 5250 {mark}, 7000 {mark}, \
                 7000 {delete}, 7000 done within 7000, 37000 p may be tried"
            ),
            true,
        ),
        (
            vec![Some(Busy(None)); 8],
            there,
            format!(
                "0 {mark}, 250 {mark}, 750 {mark}, 1500 {mark}, 2500 {mark}, 3750 {mark}, 5250 {mark}, 7000 {mark}, {}",
                failed(10_000)
            ),
            false,
        ),
        (vec![Some(Refused)], there, format!("0 {mark}, {}", failed(1000)), false),
        (vec![None, Some(NotLeading)], there, format!("0 {mark}, 0 {delete}, {}", failed(1000)), false),
        // Somebody else has deleted it.
        (vec![], &[], format!("0 {mark}, 0 done within 0, 30000 p may be tried"), false),
        (
            vec![None, Some(NotFound)],
            there,
            format!("0 {mark}, 0 {delete}, 0 done within 0, 30000 p may be tried"),
            false,
        ),
        (
            vec![Some(Conflict)],
            &[],
            format!("0 {mark}, 0 {read}, 0 done within 0, 30000 p may be tried"),
            false,
        ),
        // Another pod has its name.
        (
            vec![Some(Conflict)],
            &[("v", "another")],
            format!("0 {mark}, 0 {read}, 0 done within 0, 30000 p may be tried"),
            false,
        ),
        // It is still there: somebody wrote at the same time. Or nobody can tell.
        (
            vec![Some(Conflict), None, Some(Conflict), Some(Refused)],
            there,
            format!(
                "0 {mark}, 0 {read}, 250 {mark}, 250 {read}, 750 {mark}, 750 {delete}, 750 done within 750, 30750 p \
                 may be tried"
            ),
            true,
        ),
    ];
    for (failures, stored, expected, is_told) in cases {
        let (lines, told) = course(on_node(&["v"]), stored, &failures, &["v"], Arc::default());
        assert_eq!(lines.join(", "), expected, "{failures:?}");
        let expected: &[&str] = if is_told { &["Preempted by pod p on node n"] } else { &[] };
        assert_eq!(told, expected, "{failures:?}");
    }
}

#[test]
fn a_victim_that_is_not_in_the_way_any_more_is_left_alone() {
    let elsewhere = [
        on_node(&[]),
        cluster([node("n"), node("m"), pod("v").on("m")]),
        cluster([node("n"), pod("v")]),
        cluster([node("n"), pod("v").set("/metadata/uid", "another").on("n")]),
    ];
    for (i, shown) in elsewhere.into_iter().enumerate() {
        let (lines, told) = course(shown, &[("v", "v")], &[], &["v"], Arc::default());
        assert_eq!(lines.join(", "), "0 p may be tried, 0 done within 0, 30000 p may be tried", "case {i}");
        assert!(told.is_empty());
    }
}

#[test]
fn the_last_victim_goes_after_all_others() {
    let stored = [("a", "a"), ("b", "b"), ("c", "c")];
    // (failures, what happens)
    let cases = [
        (
            vec![Some(Busy(None))],
            "0 StrategicMergePatch a, 0 StrategicMergePatch b, 0 Delete b, 250 StrategicMergePatch a, 250 Delete a, \
             250 StrategicMergePatch c, 250 Delete c, 250 done within 250, 30250 p may be tried",
        ),
        // For nothing, the last one would go as well.
        (
            vec![None, Some(Refused)],
            "0 StrategicMergePatch a, 0 Delete a, 1000 failed within 1000, 1000 it is logged, 1000 p may be tried, \
             1000 p is tried",
        ),
    ];
    for (failures, expected) in cases {
        let (lines, _) =
            course(on_node(&["a", "b", "c"]), &stored, &failures, &["a", "b", "c"], Arc::default());
        assert_eq!(lines.join(", "), expected, "{failures:?}");
    }
}

#[test]
fn whoever_waits_for_the_same_room_is_told_when_a_preemption_ends() {
    // Another pod waits on the same node, whose own victim has left, and a third one has looked on.
    let under_way = || {
        let (under_way, node) = (Arc::new(UnderWay::default()), "n".into());
        let victims = |name: &str| [pod(name).on("n").pod()];
        under_way.begin(&"p".into(), &node, &victims("v"));
        under_way.begin(&"q".into(), &node, &victims("w"));
        under_way.leaves(&victims("w")[0].key());
        assert!(under_way.expects_on("n", &"bystander".into()));
        under_way
    };
    // (failures, what happens)
    let cases = [
        (
            vec![],
            "0 StrategicMergePatch v, 0 Delete v, 0 done within 0, 30000 q may be tried, 30000 bystander is tried, \
             30000 p may be tried",
        ),
        (
            vec![Some(Refused)],
            "0 StrategicMergePatch v, 1000 failed within 1000, 1000 it is logged, 1000 q may be tried, 1000 bystander \
             is tried, 1000 p may be tried, 1000 p is tried",
        ),
    ];
    for (failures, expected) in cases {
        let under_way = under_way();
        let (lines, _) = course(on_node(&["v"]), &[("v", "v")], &failures, &["v"], under_way.clone());
        assert_eq!(lines.join(", "), expected, "{failures:?}");
        assert_eq!(under_way.len(), 0, "nothing is kept");
    }
    let (lines, _) = course(on_node(&[]), &[], &[], &["v"], under_way());
    let expected =
        "0 p may be tried, 0 q may be tried, 0 p may be tried, 0 done within 0, 30000 p may be tried";
    assert_eq!(lines.join(", "), expected);
}
