use serde_json::{Value, json};
use supercargo_model::testing::{Builder, cluster, node, pod};

use super::*;
use supercargo_framework::testing::{score, taint_change_helps};

fn passes(node: Builder, tolerations: &[Value]) -> bool {
    let cluster = cluster([node]);
    let pod = (tolerations.iter().cloned()).fold(pod("p"), Builder::toleration).pod();
    TaintToleration.filter(&Prepared::nothing(), &cluster, &pod, cluster.nodes().next().unwrap()).is_ok()
}

#[test]
fn filter() {
    let gpu = || node("n").taint("dedicated", "gpu", "NoSchedule");
    let evicting = || node("n").taint("dedicated", "gpu", "NoExecute");
    let soft = || node("n").taint("dedicated", "gpu", "PreferNoSchedule");
    // (name, node, tolerations, passes)
    let cases: &[(&str, Builder, &[Value], bool)] = &[
        ("no taints", node("n"), &[], true),
        ("not tolerated", gpu(), &[], false),
        ("a soft taint does not repel", soft(), &[], true),
        ("equal value", gpu(), &[json!({"key": "dedicated", "value": "gpu"})], true),
        ("another value", gpu(), &[json!({"key": "dedicated", "value": "db"})], false),
        ("exists", gpu(), &[json!({"key": "dedicated", "operator": "Exists"})], true),
        ("everything", gpu(), &[json!({"operator": "Exists"})], true),
        (
            "another effect",
            gpu(),
            &[json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"})],
            false,
        ),
        (
            "the right effect",
            evicting(),
            &[json!({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"})],
            true,
        ),
        (
            "an empty effect is any effect",
            evicting(),
            &[json!({"key": "dedicated", "operator": "Exists", "effect": ""})],
            true,
        ),
        (
            "an empty operator is Equal",
            gpu(),
            &[json!({"key": "dedicated", "operator": "", "value": "gpu"})],
            true,
        ),
        (
            "one of two taints is left",
            gpu().taint("spot", "", "NoSchedule"),
            &[json!({"key": "dedicated", "operator": "Exists"})],
            false,
        ),
        (
            "comparing tolerations are off in 1.36",
            node("n").taint("level", "5", "NoSchedule"),
            &[json!({"key": "level", "operator": "Gt", "value": "1"})],
            false,
        ),
    ];
    for (name, node, tolerations, expected) in cases {
        assert_eq!(passes(node.clone(), tolerations), *expected, "{name}");
    }
}

#[test]
fn fewer_unwelcome_taints_score_more() {
    let cluster = cluster([
        node("none"),
        node("one").taint("a", "", "PreferNoSchedule"),
        node("three").taint("a", "", "PreferNoSchedule").taint("b", "", "PreferNoSchedule").taint(
            "c",
            "",
            "PreferNoSchedule",
        ),
    ]);
    let (raw, normalized) = score(&TaintToleration, &cluster, &pod("p").pod()).unwrap();
    assert_eq!(raw, [0, 1, 3]);
    // 100 − 100 × 0 / 3, 100 − 100 × 1 / 3 = 100 − 33, 100 − 100 × 3 / 3
    assert_eq!(normalized, [100, 67, 0]);
}

#[test]
fn tolerated_taints_are_not_unwelcome() {
    let cluster =
        cluster([node("a").taint("a", "", "PreferNoSchedule"), node("b").taint("b", "", "PreferNoSchedule")]);
    let tolerant = pod("p")
        .toleration(json!({"key": "a", "operator": "Exists"}))
        // Only for NoSchedule, so it does not count here.
        .toleration(json!({"key": "b", "operator": "Exists", "effect": "NoSchedule"}))
        .pod();
    let (raw, normalized) = score(&TaintToleration, &cluster, &tolerant).unwrap();
    assert_eq!((raw, normalized), (vec![0, 1], vec![100, 0]));
}

#[test]
fn without_taints_all_nodes_are_best() {
    let cluster = cluster([node("a"), node("b")]);
    let (_, normalized) = score(&TaintToleration, &cluster, &pod("p").pod()).unwrap();
    assert_eq!(normalized, [100, 100]);
}

#[test]
fn only_a_taint_that_goes_away_helps() {
    let tainted = node("n").taint("a", "", "NoSchedule").node();
    let clean = node("n").node();
    let interest = &TaintToleration.events()[0];
    let waiting = pod("p").pod();
    let helps = |before, after| taint_change_helps(interest, &waiting, before, after);
    assert!(helps(Some(&tainted), &clean));
    assert!(helps(None, &clean));
    assert!(!helps(Some(&clean), &clean));
    assert!(!helps(None, &tainted));
}
