use std::sync::Arc;

use supercargo_manifest::Source;
use supercargo_model::testing::{cluster, node, pod};

use super::*;
use crate::fast_parts::testing::check_bounds;
use supercargo_framework::testing::plain_score;

fn with_args(text: &str) -> Result<NodeResourcesBalancedAllocation, Problems> {
    let source = Source::new("config.yaml", text);
    let documents = supercargo_manifest::read(&source).unwrap();
    NodeResourcesBalancedAllocation::new(&Args::new(&source, &documents[0], "args"))
}

fn scores(args: &str, cluster: &Cluster, pod: &Pod) -> Vec<i64> {
    plain_score(&with_args(args).unwrap(), cluster, pod)
}

/// `a` is empty; `b` has half of its cpu taken; `c` half of its memory.
fn three_nodes() -> Cluster {
    let eight = |name: &str| node(name).allocatable("cpu", "8").allocatable("memory", "800");
    cluster([
        eight("a"),
        eight("b"),
        pod("q").on("b").container(&[("cpu", "4"), ("memory", "0")]),
        eight("c"),
        pod("r").on("c").container(&[("cpu", "0"), ("memory", "400")]),
    ])
}

#[test]
fn two_resources() {
    // Takes 1/4 of the cpu and 1/8 of the memory.
    let pod = pod("p").container(&[("cpu", "2"), ("memory", "100")]).pod();
    // Shares (cpu, memory) without and with the pod, and the balance 100 × (1 − |cpu − memory| / 2), cut off:
    //   a: (0, 0) 100  → (0.25, 0.125) 93.75
    //   b: (0.5, 0) 75 → (0.75, 0.125) 68.75
    //   c: (0, 0.5) 75 → (0.25, 0.625) 81.25
    let cases = [
        // 50 + (50 + with − without) / 2
        // a: 50 + (50 + 93 − 100) / 2, b: 50 + (50 + 68 − 75) / 2, c: 50 + (50 + 81 − 75) / 2
        ("{}", [71, 71, 78]),
        ("{formula: BalanceImprovement}", [71, 71, 78]),
        ("{formula: StandardDeviation}", [93, 68, 81]),
        // 100 × (1 − |cpu − memory|): a: 1 − 0.125, b: 1 − 0.625, c: 1 − 0.375
        ("{formula: AbsoluteDifference}", [87, 37, 62]),
    ];
    for (args, expected) in cases {
        assert_eq!(scores(args, &three_nodes(), &pod), expected, "{args}");
    }
}

#[test]
fn floating_point_errors_are_those_of_kube_scheduler() {
    let cluster = cluster([node("a").allocatable("cpu", "10").allocatable("memory", "1000")]);
    let pod = pod("p").container(&[("cpu", "8"), ("memory", "100")]).pod();
    // (0.8 − 0.1) / 2 is a little more than 0.35 in binary: 64.99…, cut off
    assert_eq!(scores("{formula: StandardDeviation}", &cluster, &pod), [64]);
}

#[test]
fn improvement_is_cut_off_towards_zero() {
    let cluster = cluster([node("a").allocatable("cpu", "10").allocatable("memory", "1000")]);
    // (0.1, 0): 100 × (1 − 0.05) = 95; 50 + (50 + 95 − 100) / 2 = 50 + 22.5
    let pod = pod("p").container(&[("cpu", "1")]).pod();
    assert_eq!(scores("{}", &cluster, &pod), [72]);
}

#[test]
fn three_resources() {
    let args = |formula: &str| {
        format!(
            "{{formula: {formula}, resources: [{{name: cpu}}, {{name: memory}}, {{name: example.com/gpu}}]}}"
        )
    };
    let cluster = cluster([node("a")
        .allocatable("cpu", "10")
        .allocatable("memory", "1000")
        .allocatable("example.com/gpu", "4")]);
    let pod = pod("p").container(&[("cpu", "1"), ("memory", "300"), ("example.com/gpu", "2")]).pod();
    // Shares 0.1, 0.3, 0.5: mean 0.3, variance (0.04 + 0 + 0.04) / 3 = 0.02667, std 0.1633
    // 100 × (1 − 0.1633) = 83.7
    assert_eq!(scores(&args("StandardDeviation"), &cluster, &pod), [83]);
    // 50 + (50 + 83 − 100) / 2 = 50 + 16.5
    assert_eq!(scores(&args("BalanceImprovement"), &cluster, &pod), [66]);
    // Only cpu and memory: 100 × (1 − 0.2)
    assert_eq!(scores(&args("AbsoluteDifference"), &cluster, &pod), [80]);
}

#[test]
fn resources_that_are_not_there_do_not_count() {
    let args =
        "{formula: StandardDeviation, resources: [{name: cpu}, {name: memory}, {name: example.com/gpu}]}";
    let cluster = cluster([
        // Neither has memory, and only b has what nobody wants.
        node("a").allocatable("cpu", "10"),
        node("b").allocatable("cpu", "10").allocatable("example.com/gpu", "4"),
    ]);
    let pod = pod("p").container(&[("cpu", "7"), ("memory", "5")]).pod();
    // One resource alone is always in balance.
    assert_eq!(scores(args, &cluster, &pod), [100, 100]);
}

#[test]
fn no_share_is_more_than_all() {
    let cluster = cluster([
        node("a").allocatable("cpu", "1").allocatable("memory", "100"),
        pod("q").on("a").container(&[("cpu", "9"), ("memory", "0")]),
    ]);
    let pod = pod("p").container(&[("cpu", "1"), ("memory", "100")]).pod();
    // Without (1, 0): 50; with (1, 1): 100; 50 + (50 + 50) / 2
    assert_eq!(scores("{}", &cluster, &pod), [100]);
}

#[test]
fn containers_that_ask_for_nothing_count_as_nothing_here() {
    let cluster = cluster([
        node("a").allocatable("cpu", "1").allocatable("memory", "1000Mi"),
        pod("q").on("a").container(&[]),
    ]);
    // (0, 0) → (0.5, 0): 50 + (50 + 75 − 100) / 2 = 62.5
    let pod = pod("p").container(&[("cpu", "500m")]).pod();
    assert_eq!(scores("{}", &cluster, &pod), [62]);
}

#[test]
fn pods_that_ask_for_none_of_the_resources_are_skipped() {
    let cluster = three_nodes();
    let skips = |args: &str, requests: &[(&str, &str)]| {
        let pod = pod("p").container(requests).pod();
        let outcome = with_args(args).unwrap().pre_score(&cluster, &pod, &[]);
        matches!(outcome, Ok(PreScoreOutcome::Skip))
    };
    assert!(skips("{}", &[]));
    assert!(skips("{}", &[("cpu", "0")]));
    assert!(skips("{}", &[("example.com/gpu", "1")]));
    assert!(!skips("{}", &[("memory", "1")]));
    assert!(!skips("{resources: [{name: example.com/gpu}]}", &[("example.com/gpu", "1")]));
}

#[test]
fn bad_arguments_are_told_with_their_place() {
    // (arguments, the fields that are wrong)
    let cases: &[(&str, &[&str])] = &[
        ("{resources: [{name: cpu, weight: 1}, {name: memory, weight: 0}]}", &[]),
        ("{resources: [{name: cpu, weight: 2}]}", &["args.resources[0].weight"]),
        ("{resources: [{name: cpu}, {name: memory}, {name: cpu}]}", &["args.resources[2].name"]),
        (
            "{resources: [{name: cpu}, {name: cpu, weight: 101}]}",
            &["args.resources[1].name", "args.resources[1].weight"],
        ),
        ("{formula: Variance}", &["args.formula"]),
        ("{weights: []}", &["args.weights"]),
    ];
    for (text, expected) in cases {
        let paths: Vec<String> = match with_args(text) {
            Ok(_) => vec![],
            Err(problems) => problems.0.into_iter().map(|p| p.path).collect(),
        };
        assert_eq!(paths, *expected, "{text}");
    }
}

#[test]
fn nodes_of_which_about_as_much_is_taken_score_between_bounds() {
    check_bounds(Arc::new(with_args("{}").unwrap()));
}
