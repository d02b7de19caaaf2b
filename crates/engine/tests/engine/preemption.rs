//! DefaultPreemption in a whole profile: who has to go, from where, and when nobody has to.

use serde_json::{Value, json};
use supercargo_engine::{Decision, Outcome};
use supercargo_model::testing::{Builder, node, object, pod};

use crate::support::{decide, engine};

fn sized(name: &str, cpu: &str) -> Builder {
    node(name).allocatable("cpu", cpu)
}

/// A pod that runs on a node with a cpu and a priority.
fn runs(name: &str, node: &str, cpu: &str, priority: i32) -> Builder {
    pod(name).on(node).priority(priority).container(&[("cpu", cpu)])
}

/// A pod of priority 100 that wants so much cpu.
fn urgent(cpu: &str) -> Builder {
    pod("urgent").priority(100).container(&[("cpu", cpu)])
}

/// Where room can be made, and who has to go, the most important first; or why not.
fn made_room(decision: &Decision) -> Result<(String, String), String> {
    assert_eq!(decision.outcome, Outcome::Unschedulable, "{:?}", decision.outcome);
    match decision.preemption.as_ref().expect("it was tried") {
        Ok(nomination) => {
            let victims: Vec<&str> = nomination.victims.iter().map(|pod| &*pod.name).collect();
            Ok((nomination.node.to_string(), victims.join(" ")))
        }
        Err(status) => {
            // DynamicResources is asked first, and says this of pods without resource claims.
            let message = status.message();
            Err(message.strip_prefix("no new claims to deallocate, ").unwrap_or(&message).to_owned())
        }
    }
}

fn preempt(objects: Vec<Builder>, pod: Builder) -> Result<(String, String), String> {
    made_room(&decide(&mut engine(objects), pod))
}

fn found(node: &str, victims: &str) -> Result<(String, String), String> {
    Ok((node.to_owned(), victims.to_owned()))
}

fn budget(name: &str, app: &str, allowed: i32) -> Builder {
    object(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}}, "status": {"disruptionsAllowed": allowed},
    }))
}

#[test]
fn as_few_and_as_unimportant_as_possible_have_to_go() {
    // (pods on the node of 4 cpu, wanted, victims)
    let cases = [
        // Both must go for 4; for less, the more important may stay if there is room for it.
        (vec![runs("low", "a", "2", 1), runs("high", "a", "2", 9)], "4", "high low"),
        (vec![runs("low", "a", "2", 1), runs("high", "a", "2", 9)], "2", "low"),
        // The important one stays, and the two others must go.
        (
            vec![runs("one", "a", "1", 1), runs("two", "a", "1", 2), runs("three", "a", "2", 3)],
            "2",
            "two one",
        ),
        // The important one is too large to stay; the small ones may.
        (
            vec![runs("small", "a", "1", 1), runs("tiny", "a", "500m", 1), runs("large", "a", "2500m", 9)],
            "2",
            "large",
        ),
        // Who is as important as the pod, or more, does not go.
        (vec![runs("peer", "a", "2", 100), runs("low", "a", "2", 99)], "2", "low"),
        // Among equals, the one that has run longer stays.
        (
            vec![
                runs("young", "a", "2", 1).started("2026-01-02T00:00:00Z"),
                runs("old", "a", "2", 1).started("2026-01-01T00:00:00Z"),
            ],
            "2",
            "young",
        ),
    ];
    for (pods, wanted, victims) in cases {
        let objects = std::iter::once(sized("a", "4")).chain(pods).collect();
        assert_eq!(preempt(objects, urgent(wanted)), found("a", victims), "{victims}");
    }
}

#[test]
fn the_node_that_loses_least() {
    let at = |pod: Builder, second: u32| pod.started(&format!("2026-01-01T00:00:{second:02}Z"));
    let labelled = |pod: Builder| pod.label("app", "db");
    // (step, pods on nodes a and b of 4 cpu each, node, victims)
    let cases = [
        (
            "fewest violated budgets",
            vec![labelled(runs("db", "a", "4", 1)), runs("web", "b", "4", 50), budget("db", "db", 0)],
            ("b", "web"),
        ),
        (
            "lowest of the highest priorities",
            vec![runs("web", "a", "4", 5), runs("b1", "b", "2", 4), runs("b2", "b", "2", 4)],
            ("b", "b1 b2"),
        ),
        (
            "lowest sum of priorities",
            vec![
                runs("a1", "a", "2", 5),
                runs("a2", "a", "2", 3),
                runs("b1", "b", "2", 5),
                runs("b2", "b", "2", 2),
            ],
            ("b", "b1 b2"),
        ),
        (
            "fewest victims",
            vec![runs("a1", "a", "2", 5), runs("a2", "a", "2", i32::MIN), runs("b1", "b", "4", 5)],
            ("b", "b1"),
        ),
        (
            "the shortest run",
            vec![at(runs("old", "a", "4", 5), 1), at(runs("young", "b", "4", 5), 2)],
            ("b", "young"),
        ),
    ];
    for (step, pods, (node, victims)) in cases {
        let nodes = [sized("a", "4"), sized("b", "4")];
        let objects = nodes.into_iter().chain(pods).collect();
        assert_eq!(preempt(objects, urgent("4")), found(node, victims), "{step}");
    }
}

#[test]
fn budgets_decide_who_may_stay() {
    let protected = |name: &str, priority| runs(name, "a", "2", priority).label("app", "db");
    let objects = |allowed: i32, pods: Vec<Builder>| {
        let always = [sized("a", "4"), budget("db", "db", allowed)];
        always.into_iter().chain(pods).collect::<Vec<_>>()
    };
    // Who is protected may stay first, though the other is more important.
    let mixed = || vec![protected("db", 1), runs("web", "a", "2", 9)];
    assert_eq!(preempt(objects(0, mixed()), urgent("2")), found("a", "web"));
    // A budget with room protects nobody.
    assert_eq!(preempt(objects(1, mixed()), urgent("2")), found("a", "db"));
    // Two, of which one may go: the budget is used up by the more important one, so that the other is protected.
    let two = || vec![protected("db1", 9), protected("db2", 1)];
    assert_eq!(preempt(objects(1, two()), urgent("2")), found("a", "db1"));
    assert_eq!(preempt(objects(2, two()), urgent("2")), found("a", "db2"));
    // If all else fails, a budget is violated.
    assert_eq!(preempt(objects(0, two()), urgent("4")), found("a", "db1 db2"));
    // A pod whose disruption is counted already needs no budget.
    let counted = budget("db", "db", 0).set("/status/disruptedPods", json!({"db": "2026-01-01T00:00:00Z"}));
    let pods = [sized("a", "4"), counted].into_iter().chain(mixed()).collect();
    assert_eq!(preempt(pods, urgent("2")), found("a", "db"));
}

#[test]
fn budgets_of_other_namespaces_and_without_a_selector_protect_nobody() {
    let pods = || vec![sized("a", "4"), runs("db", "a", "2", 1).label("app", "db"), runs("web", "a", "2", 9)];
    let with = |budget: Builder| pods().into_iter().chain([budget]).collect();
    let elsewhere = budget("db", "db", 0).namespace("elsewhere");
    assert_eq!(preempt(with(elsewhere), urgent("2")), found("a", "db"));
    let empty = budget("db", "db", 0).set("/spec/selector", json!({}));
    assert_eq!(preempt(with(empty), urgent("2")), found("a", "db"));
}

#[test]
fn when_nobody_has_to_go() {
    let low = || runs("low", "a", "4", 1);
    let none = |reason: &str| Err(format!("preemption: 0/1 nodes are available: 1 {reason}."));
    let never = urgent("2").set("/spec/preemptionPolicy", "Never");
    // (pods, the pod, the message)
    let cases = [
        (
            vec![sized("a", "4"), low()],
            never,
            Err("preemption: not eligible due to preemptionPolicy=Never.".to_owned()),
        ),
        (vec![sized("a", "4"), low()], urgent("8"), none("Preemption is not helpful for scheduling")),
        (
            vec![sized("a", "4").taint("x", "", "NoSchedule"), low()],
            urgent("2"),
            none("Preemption is not helpful for scheduling"),
        ),
        (
            vec![sized("a", "4"), runs("peer", "a", "4", 100)],
            urgent("2"),
            none("No preemption victims found for incoming pod"),
        ),
        // Even without the less important one there is no room.
        (
            vec![sized("a", "4"), runs("peer", "a", "3", 100), runs("low", "a", "1", 1)],
            urgent("2"),
            none("Insufficient cpu"),
        ),
    ];
    for (objects, pod, expected) in cases {
        assert_eq!(preempt(objects, pod), expected);
    }
}

#[test]
fn while_a_victim_is_leaving_nobody_else_has_to_go() {
    let nominated = urgent("2").set("/status/nominatedNodeName", "a");
    let leaving = |reason: &str| {
        runs("leaving", "a", "4", 1).set("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z").set(
            "/status/conditions/-",
            json!({"type": "DisruptionTarget", "status": "True", "reason": reason}),
        )
    };
    let others = || vec![sized("a", "4"), sized("b", "4"), runs("other", "b", "4", 1)];
    let with = |pod: Builder| others().into_iter().chain([pod]).collect::<Vec<_>>();
    assert_eq!(
        preempt(with(leaving("PreemptionByScheduler")), nominated.clone()),
        Err("preemption: not eligible due to a terminating pod on the nominated node.".to_owned())
    );
    // It leaves for another reason, or it is not less important: look on.
    assert!(preempt(with(leaving("DeletionByTaintManager")), nominated.clone()).is_ok());
    let peer = leaving("PreemptionByScheduler").priority(100);
    assert_eq!(preempt(with(peer), nominated), found("b", "other"));
}

#[test]
fn who_keeps_the_pod_away_has_to_go() {
    let term = |app: &str| json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}});
    const FAR: &str = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/-";
    let hostile = || pod("hostile").on("a").label("app", "db").set(FAR, term("urgent"));
    let bystander = || pod("bystander").on("a");
    let shy = pod("urgent").priority(100).set(FAR, term("db"));
    let plain = pod("urgent").priority(100).label("app", "urgent");
    // Both paths: the pod does not want it near, or it does not want the pod near.
    for pod in [shy, plain] {
        let objects = vec![sized("a", "4"), hostile(), bystander()];
        assert_eq!(preempt(objects, pod), found("a", "hostile"));
    }
}

#[test]
fn pods_that_make_a_domain_too_full_have_to_go() {
    let constraint = |skew: i32| -> Value {
        json!({"topologyKey": "zone", "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule",
               "labelSelector": {"matchLabels": {"app": "web"}}})
    };
    let web = |name: &str, on: &str| pod(name).on(on).label("app", "web").priority(1);
    let objects = || {
        vec![
            sized("a", "4").label("zone", "z1"),
            // The emptier zone is closed.
            sized("b", "4").label("zone", "z2").set("/spec/unschedulable", true),
            web("w1", "a").priority(5),
            web("w2", "a").priority(2),
            pod("other").on("a"),
        ]
    };
    let pod = |skew| {
        let pod = pod("urgent").priority(100).label("app", "web");
        pod.set("/spec/topologySpreadConstraints/-", constraint(skew))
    };
    // 2 + 1 − 0 > 2: one must go, the less important one. With maxSkew 1, both.
    assert_eq!(preempt(objects(), pod(2)), found("a", "w2"));
    assert_eq!(preempt(objects(), pod(1)), found("a", "w1 w2"));
}

#[test]
fn room_is_left_for_nominated_pods_of_higher_priority() {
    let objects = || [sized("a", "4"), runs("low", "a", "4", 1)];
    let claimed_by = |priority: i32| {
        let mut engine = engine(objects());
        let claims = pod("claims").priority(priority).container(&[("cpu", "3")]);
        engine.nominations_mut().nominate(claims.pod(), "a".into());
        made_room(&decide(&mut engine, urgent("2")))
    };
    // 3 of 4 cpu are spoken for.
    let refused = "preemption: 0/1 nodes are available: 1 Insufficient cpu.".to_owned();
    assert_eq!(claimed_by(101), Err(refused.clone()));
    assert_eq!(claimed_by(100), Err(refused));
    assert_eq!(claimed_by(99), found("a", "low"));
}

#[test]
fn a_pod_that_got_its_place_claims_no_other() {
    let mut engine = engine([sized("a", "4"), sized("b", "4")]);
    let claims = pod("claims").priority(200).container(&[("cpu", "4")]).pod();
    engine.nominations_mut().nominate(claims.clone(), "a".into());
    let node_of = |decision: Decision| decision.node().map(ToString::to_string);
    assert_eq!(node_of(decide(&mut engine, urgent("4"))), Some("b".to_owned()));
    engine.assume(&claims, "b".into());
    assert_eq!(node_of(decide(&mut engine, urgent("4"))), Some("a".to_owned()));
}
