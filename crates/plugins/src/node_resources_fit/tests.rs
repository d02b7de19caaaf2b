use std::sync::Arc;

use serde_json::json;
use supercargo_framework::{event::Change, points::Score};
use supercargo_manifest::Source;
use supercargo_model::testing::{Builder, cluster, node, object, pod};

use super::*;
use crate::fast_parts::testing::check_bounds;
use supercargo_framework::testing::{by_name, plain_score};

fn with_args<T>(text: &str, new: impl Fn(&Args<'_>) -> Result<T, Problems>) -> Result<T, Problems> {
    let source = Source::new("config.yaml", text);
    let documents = supercargo_manifest::read(&source).unwrap();
    new(&Args::new(&source, &documents[0], "args"))
}

fn default_plugin() -> NodeResourcesFit {
    NodeResourcesFit::new(&Args::none()).unwrap()
}

/// `ok`, or the code and the reasons.
fn verdict(plugin: &NodeResourcesFit, node: Builder, existing: Vec<Builder>, pod: Builder) -> String {
    let placed = existing.into_iter().map(|pod| pod.on("n"));
    let cluster = cluster(std::iter::once(node).chain(placed));
    let info = cluster.node("n").unwrap();
    said(plugin.filter(&Prepared::nothing(), &cluster, &pod.pod(), info))
}

fn said(verdict: Verdict) -> String {
    match verdict {
        Ok(()) => "ok".to_owned(),
        Err(status) => {
            let code = match status.code {
                Code::Unschedulable => "full",
                Code::UnschedulableAndUnresolvable => "too small",
                other => other.name(),
            };
            format!("{code}: {}", status.message())
        }
    }
}

#[test]
fn every_resource_must_suffice() {
    let small = || {
        node("n")
            .allocatable("cpu", "1")
            .allocatable("memory", "1000")
            .allocatable("ephemeral-storage", "1000")
            .allocatable("example.com/gpu", "4")
            .allocatable("hugepages-2Mi", "4Mi")
    };
    let used = || {
        vec![pod("used").container(&[
            ("cpu", "600m"),
            ("memory", "600"),
            ("ephemeral-storage", "600"),
            ("example.com/gpu", "3"),
            ("hugepages-2Mi", "2Mi"),
        ])]
    };
    let wants = |requests: &[(&str, &str)]| pod("p").container(requests);
    // (the pod, the verdict)
    let cases = [
        (wants(&[]), "ok"),
        (wants(&[("cpu", "400m"), ("memory", "400")]), "ok"),
        (wants(&[("cpu", "401m")]), "full: Insufficient cpu"),
        (wants(&[("cpu", "1")]), "full: Insufficient cpu"),
        // More than the whole node: evicting pods would not help.
        (wants(&[("cpu", "1001m")]), "too small: Insufficient cpu"),
        (wants(&[("memory", "401")]), "full: Insufficient memory"),
        (wants(&[("memory", "1001")]), "too small: Insufficient memory"),
        (wants(&[("ephemeral-storage", "401")]), "full: Insufficient ephemeral-storage"),
        (wants(&[("example.com/gpu", "1")]), "ok"),
        (wants(&[("example.com/gpu", "2")]), "full: Insufficient example.com/gpu"),
        (wants(&[("example.com/gpu", "5")]), "too small: Insufficient example.com/gpu"),
        (wants(&[("example.com/fpga", "1")]), "too small: Insufficient example.com/fpga"),
        (wants(&[("example.com/fpga", "0")]), "ok"),
        (wants(&[("hugepages-2Mi", "4Mi")]), "full: Insufficient hugepages-2Mi"),
        (wants(&[("hugepages-1Gi", "1Gi")]), "too small: Insufficient hugepages-1Gi"),
        // A name without a domain that is none of the known ones is not counted anywhere.
        (wants(&[("bananas", "7")]), "ok"),
        (
            wants(&[("cpu", "1"), ("memory", "1000"), ("example.com/gpu", "2")]),
            "full: Insufficient cpu, Insufficient memory, Insufficient example.com/gpu",
        ),
        // One that no eviction can help is enough to give the node up.
        (wants(&[("cpu", "1"), ("memory", "1001")]), "too small: Insufficient cpu, Insufficient memory"),
    ];
    for (pod, expected) in cases {
        let shown = format!("{pod:?}");
        assert_eq!(verdict(&default_plugin(), small(), used(), pod), expected, "{shown}");
    }
}

#[test]
fn many_resources_are_refused_as_few_are() {
    let class = |name: &str, resource: &str| {
        object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
            "spec": {"extendedResourceName": resource}}))
    };
    let resource = |i: usize| format!("example.com/r{i}");
    let offers_most = |name: &str| {
        let node = node(name).allocatable("cpu", "4").allocatable("pods", "10");
        [0, 1, 2, 3, 4, 5, 6, 8].into_iter().fold(node, |node, i| node.allocatable(&resource(i), "2"))
    };
    // Classes stand for 1, which device plugins offer on most nodes, and for 7, which they offer nowhere.
    let cluster = cluster([
        class("one", &resource(1)),
        class("seven", &resource(7)),
        offers_most("a"),
        offers_most("b").allocatable(&resource(1), "0").allocatable(&resource(2), "0"),
        offers_most("c").allocatable("pods", "0").allocatable("cpu", "1"),
        offers_most("d"),
        pod("used").on("d").container(&[("cpu", "3"), (&resource(3), "2"), (&resource(4), "1")]),
    ]);
    // Nine of them, and one more that nobody offers, and whose name comes first.
    let nine: Vec<String> = (0..9).map(resource).collect();
    let others = [("cpu", "2"), ("none.com/r", "0")];
    let nine: Vec<(&str, &str)> = nine.iter().map(|name| (&**name, "1")).chain(others).collect();
    let ten: Vec<(&str, &str)> = nine.iter().copied().chain([("alone.com/r", "1")]).collect();
    // (node, said to the pod that wants nine, and to the one that wants ten)
    let (alone, two, three) =
        ("Insufficient alone.com/r", "Insufficient example.com/r2", "Insufficient example.com/r3");
    let cases = [
        ("a", "ok".to_owned(), format!("too small: {alone}")),
        ("b", format!("too small: {two}"), format!("too small: {alone}, {two}")),
        (
            "c",
            "too small: Too many pods, Insufficient cpu".to_owned(),
            format!("too small: Too many pods, Insufficient cpu, {alone}"),
        ),
        (
            "d",
            format!("full: Insufficient cpu, {three}"),
            format!("too small: Insufficient cpu, {alone}, {three}"),
        ),
    ];
    for (wants, ignored) in [(&nine, "{}"), (&ten, "{}"), (&ten, "{ignoredResourceGroups: [alone.com]}")] {
        let (plugin, pod) =
            (with_args(ignored, NodeResourcesFit::new).unwrap(), pod("p").container(wants).pod());
        let prepared = plugin.prepare(&cluster, &pod);
        assert!(prepared.get::<Arc<ManyResources>>().is_ok(), "there are many");
        for (name, without, with) in &cases {
            let expected = if wants.len() == ten.len() && ignored == "{}" { with } else { without };
            let node = cluster.node(name).unwrap();
            for prepared in [&prepared, &Prepared::nothing()] {
                assert_eq!(
                    said(plugin.filter(prepared, &cluster, &pod, node)),
                    *expected,
                    "{name} {ignored}"
                );
            }
        }
    }
}

#[test]
fn no_request_needs_no_room() {
    let tiny = || node("n").allocatable("cpu", "100m").allocatable("memory", "100");
    let hog = || vec![pod("hog").container(&[("cpu", "5"), ("memory", "5000")])];
    let plugin = default_plugin();
    assert_eq!(verdict(&plugin, tiny(), hog(), pod("p").container(&[])), "ok");
    let zero = pod("p").container(&[("cpu", "0"), ("memory", "0")]);
    assert_eq!(verdict(&plugin, tiny(), hog(), zero), "ok");
    let bit = pod("p").container(&[("cpu", "1m")]);
    assert_eq!(verdict(&plugin, tiny(), hog(), bit), "full: Insufficient cpu");
}

#[test]
fn a_node_takes_so_many_pods_and_no_more() {
    let limited = |pods: &str| node("n").allocatable("pods", pods).allocatable("cpu", "1");
    let plugin = default_plugin();
    let one = || vec![pod("one")];
    assert_eq!(verdict(&plugin, limited("2"), one(), pod("p")), "ok");
    assert_eq!(verdict(&plugin, limited("1"), one(), pod("p")), "full: Too many pods");
    assert_eq!(verdict(&plugin, limited("0"), vec![], pod("p")), "full: Too many pods");
    let large = pod("p").container(&[("cpu", "2")]);
    assert_eq!(verdict(&plugin, limited("1"), one(), large), "too small: Too many pods, Insufficient cpu");
}

#[test]
fn init_containers_sidecars_overhead_and_pod_level_resources_count() {
    let cpu = |amount: &'static str| [("cpu", amount)];
    // Each of these pods needs exactly 3 cpu.
    let pods = [
        // Containers run together: 1 + 2.
        pod("p").container(&cpu("1")).container(&cpu("2")),
        // Init containers run before them, one at a time: max(1 + 1, 3, 2).
        pod("p")
            .container(&cpu("1"))
            .container(&cpu("1"))
            .init_container(&cpu("3"))
            .init_container(&cpu("2")),
        // A sidecar runs beside what comes after it: max(1 + 1, 1 + 2).
        pod("p").container(&cpu("1")).sidecar(&cpu("1")).init_container(&cpu("2")),
        // What comes before it runs without it: max(1 + 2, 3).
        pod("p").container(&cpu("1")).init_container(&cpu("3")).sidecar(&cpu("2")),
        // 2 + 1
        pod("p").container(&cpu("2")).set("/spec/overhead", json!({"cpu": "1"})),
        // What the pod as a whole asks for stands in for its containers.
        pod("p").container(&cpu("1")).set("/spec/resources/requests", json!({"cpu": "3"})),
    ];
    for pod in pods {
        let has = |amount: &str| node("n").allocatable("cpu", amount);
        let plugin = default_plugin();
        assert_eq!(verdict(&plugin, has("3"), vec![], pod.clone()), "ok", "{pod:?}");
        assert_eq!(
            verdict(&plugin, has("2999m"), vec![], pod.clone()),
            "too small: Insufficient cpu",
            "{pod:?}"
        );
    }
}

#[test]
fn ignored_resources_are_not_asked_about() {
    let all = pod("p").container(&[
        ("cpu", "2"),
        ("example.com/a", "1"),
        ("example.com/b", "1"),
        ("other.org/a", "1"),
    ]);
    // (arguments, what is still missing on an empty node)
    let cases = [
        ("{}", "cpu example.com/a example.com/b other.org/a"),
        ("{ignoredResources: [example.com/a]}", "cpu example.com/b other.org/a"),
        ("{ignoredResourceGroups: [example.com]}", "cpu other.org/a"),
        ("{ignoredResources: [other.org/a], ignoredResourceGroups: [example.com]}", "cpu"),
        // Only what device plugins and administrators add can be ignored.
        ("{ignoredResources: [cpu]}", "cpu example.com/a example.com/b other.org/a"),
    ];
    for (args, missing) in cases {
        let plugin = with_args(args, NodeResourcesFit::new).unwrap();
        let reasons: Vec<String> = missing.split(' ').map(|name| format!("Insufficient {name}")).collect();
        let expected = format!("too small: {}", reasons.join(", "));
        assert_eq!(verdict(&plugin, node("n"), vec![], all.clone()), expected, "{args}");
    }
}

/// Two nodes, and a pod that wants 3 cpu and 5000 bytes.
fn two_nodes() -> Cluster {
    cluster([
        node("a").allocatable("cpu", "4").allocatable("memory", "10000"),
        node("b").allocatable("cpu", "6").allocatable("memory", "10000"),
    ])
}

fn scores(strategy: &str, cluster: &Cluster, pod: Builder) -> Vec<i64> {
    let text = format!("scoringStrategy: {strategy}");
    let plugin = with_args(&text, NodeResourcesFit::new).unwrap();
    plain_score(&plugin, cluster, &pod.pod())
}

#[test]
fn strategies() {
    let large = || pod("p").container(&[("cpu", "3"), ("memory", "5000")]);
    // a: cpu 3/4, memory 1/2 taken. b: cpu 1/2, memory 1/2.
    let cases = [
        // a: (25 + 50) / 2 = 37.5, cut off
        ("{type: LeastAllocated}", [37, 50]),
        // a: (75 + 50) / 2 = 62.5, cut off
        ("{type: MostAllocated}", [62, 50]),
        // a: (25 × 1 + 50 × 2) / 3 = 41.7
        ("{type: LeastAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 2}]}", [41, 50]),
        // a: (75 × 3 + 50 × 1) / 4 = 68.75
        ("{type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: memory}]}", [68, 50]),
        ("{type: MostAllocated, resources: [{name: cpu, weight: 0}]}", [75, 50]),
        // Rising from 0 to 10 over the whole range. a: (75 + 50) / 2 = 62.5, rounded up
        (
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [
               {utilization: 0, score: 0}, {utilization: 100, score: 10}]}}",
            [63, 50],
        ),
        // Falling. a: (25 + 50) / 2 = 37.5, rounded up
        (
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [
               {utilization: 0, score: 10}, {utilization: 100, score: 0}]}}",
            [38, 50],
        ),
        // cpu of a: 10 × 10 at 75% and beyond; all else at 50%: 20 + (100 − 20) × 50 / 75 = 73.3, cut off.
        // a: (100 + 73) / 2 = 86.5, rounded up
        (
            "{type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [
               {utilization: 0, score: 2}, {utilization: 75, score: 10}]}}",
            [87, 73],
        ),
    ];
    for (strategy, expected) in cases {
        assert_eq!(scores(strategy, &two_nodes(), large()), expected, "{strategy}");
    }
}

#[test]
fn without_a_word_the_emptier_the_better() {
    let pod = pod("p").container(&[("cpu", "3"), ("memory", "5000")]).pod();
    assert_eq!(plain_score(&default_plugin(), &two_nodes(), &pod), [37, 50]);
}

#[test]
fn shapes_are_straight_between_points_and_flat_outside() {
    let strategy = |points: &str| {
        format!(
            "{{type: RequestedToCapacityRatio, resources: [{{name: cpu}}], requestedToCapacityRatio: {{shape: {points}}}}}"
        )
    };
    let hill = "[{utilization: 20, score: 3}, {utilization: 50, score: 9}, {utilization: 80, score: 6}]";
    let falling = "[{utilization: 0, score: 10}, {utilization: 70, score: 0}]";
    let one_point = "[{utilization: 40, score: 7}]";
    // (shape, millicpu of 1000 taken, score)
    let cases = [
        (hill, 0, 30),
        (hill, 200, 30),
        // 30 + (90 − 30) × (35 − 20) / (50 − 20) = 60
        (hill, 350, 60),
        // The utilization itself is cut off: 35.9% is 35%.
        (hill, 359, 60),
        (hill, 500, 90),
        // 90 + (60 − 90) × (60 − 50) / (80 − 50) = 80
        (hill, 600, 80),
        (hill, 800, 60),
        (hill, 1000, 60),
        // Fuller than full is full.
        (hill, 5000, 60),
        // 100 + (0 − 100) × 1 / 70 = 100 − 1.4; cut off towards zero: 100 − 1
        (falling, 10, 99),
        // 100 − 100 × 50 / 70 = 100 − 71.4
        (falling, 500, 29),
        (falling, 990, 0),
        (one_point, 0, 70),
        (one_point, 990, 70),
    ];
    for (points, taken, expected) in cases {
        let cluster = cluster([node("a").allocatable("cpu", "1")]);
        let pod = pod("p").container(&[("cpu", &format!("{taken}m"))]);
        assert_eq!(scores(&strategy(points), &cluster, pod), [expected], "{points} {taken}");
    }
}

#[test]
fn a_ratio_of_zero_counts_as_if_the_resource_were_not_there() {
    let shape =
        "requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}";
    let strategy = format!(
        "{{type: RequestedToCapacityRatio, {shape}, resources: [{{name: cpu, weight: 3}}, {{name: memory, weight: 1}}]}}"
    );
    let cluster = cluster([node("a").allocatable("cpu", "1000").allocatable("memory", "1000Mi")]);
    // cpu: 0%, left out. memory: 40%, 40 × 1 / 1; with cpu it would be 40 / 4.
    let pod = pod("p").container(&[("cpu", "1"), ("memory", "400Mi")]);
    assert_eq!(scores(&strategy, &cluster, pod), [40]);
}

#[test]
fn fuller_than_full() {
    let cluster = cluster([
        node("a").allocatable("cpu", "2").allocatable("memory", "1000Mi"),
        pod("hog").on("a").container(&[("cpu", "5"), ("memory", "100Mi")]),
    ]);
    let pod = || pod("p").container(&[("cpu", "1"), ("memory", "100Mi")]);
    // (0 + 100 × 800 / 1000) / 2, (100 + 100 × 200 / 1000) / 2
    assert_eq!(scores("{type: LeastAllocated}", &cluster, pod()), [40]);
    assert_eq!(scores("{type: MostAllocated}", &cluster, pod()), [60]);
}

#[test]
fn containers_that_ask_for_nothing_count_with_defaults() {
    let empty = || node("a").allocatable("cpu", "1").allocatable("memory", "1000Mi");
    let least = "{type: LeastAllocated}";
    // 100m of 1000m and 200Mi of 1000Mi for each container: (90 + 80) / 2
    let one = pod("p").container(&[]);
    assert_eq!(scores(least, &cluster([empty()]), one.clone()), [85]);
    // (80 + 60) / 2
    let two = pod("p").container(&[]).container(&[]);
    assert_eq!(scores(least, &cluster([empty()]), two), [70]);
    // The same for a pod that is there already.
    let beside = cluster([empty(), pod("q").on("a").container(&[])]);
    assert_eq!(scores(least, &beside, one), [70]);
    // One default: (50 + 80) / 2
    let half = pod("p").container(&[("cpu", "500m")]);
    assert_eq!(scores(least, &cluster([empty()]), half), [65]);
    // Nothing, said expressly, is nothing: (100 + 100) / 2
    let nothing = pod("p").container(&[("cpu", "0"), ("memory", "0")]);
    assert_eq!(scores(least, &cluster([empty()]), nothing), [100]);
    assert_eq!(scores(least, &cluster([empty()]), pod("p")), [100]);
}

#[test]
fn what_a_pod_as_a_whole_asks_for_counts_once_it_is_there() {
    let empty = || node("a").allocatable("cpu", "1").allocatable("memory", "1000Mi");
    let whole = |name: &str| {
        pod(name).container(&[]).set("/spec/resources/requests", json!({"cpu": "500m", "memory": "500Mi"}))
    };
    let least = "{type: LeastAllocated}";
    // As it comes it is scored by its container's defaults: (90 + 80) / 2
    assert_eq!(scores(least, &cluster([empty()]), whole("p")), [85]);
    // There, it holds 500m and 500Mi: (100 × 400 / 1000 + 100 × 300 / 1000) / 2
    let beside = cluster([empty(), whole("q").on("a")]);
    assert_eq!(scores(least, &beside, whole("p")), [35]);
}

#[test]
fn extended_resources_count_where_they_are_asked_for_and_there() {
    let strategy =
        "{type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: example.com/gpu, weight: 3}]}";
    let cluster = cluster([
        node("a").allocatable("cpu", "4").allocatable("example.com/gpu", "4"),
        node("b").allocatable("cpu", "4"),
        pod("q").on("a").container(&[("example.com/gpu", "1")]),
    ]);
    // a: cpu (1 + 0.1 by default) / 4 = 27, gpu (1 + 1) / 4 = 50: (27 × 1 + 50 × 3) / 4 = 44.25. b: 25
    let wants = pod("p").container(&[("cpu", "1"), ("example.com/gpu", "1")]);
    assert_eq!(scores(strategy, &cluster, wants), [44, 25]);
    // Without the wish for it, only cpu counts.
    let plain = pod("p").container(&[("cpu", "1")]);
    assert_eq!(scores(strategy, &cluster, plain), [27, 25]);
    // Nothing that counts at all.
    let only_pods = "{type: MostAllocated, resources: [{name: pods}, {name: example.com/none}]}";
    let asks = pod("p").container(&[("example.com/none", "1")]);
    assert_eq!(scores(only_pods, &cluster, asks), [0, 0]);
}

#[test]
fn amounts_near_the_end_of_64_bits() {
    let most = i64::MAX.to_string();
    let cluster = cluster([
        node("a").allocatable("cpu", &most).allocatable("memory", &most),
        pod("q").on("a").container(&[("cpu", &most), ("memory", &most)]),
    ]);
    let pod = || pod("p").container(&[("cpu", &most), ("memory", &most)]);
    assert_eq!(scores("{type: LeastAllocated}", &cluster, pod()), [0]);
    assert_eq!(scores("{type: MostAllocated}", &cluster, pod()), [100]);
    let verdict =
        default_plugin().filter(&Prepared::nothing(), &cluster, &pod().pod(), cluster.node("a").unwrap());
    assert_eq!(verdict.unwrap_err().message(), "Insufficient cpu, Insufficient memory");
}

fn paths<T>(result: Result<T, Problems>) -> Vec<String> {
    match result {
        Ok(_) => vec![],
        Err(problems) => problems.0.into_iter().map(|p| p.path).collect(),
    }
}

#[test]
fn bad_arguments_are_told_with_their_place() {
    const SHAPE: &str = "args.scoringStrategy.requestedToCapacityRatio.shape";
    let ratio = |shape: &str| {
        format!(
            "{{scoringStrategy: {{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: {shape}}}}}}}"
        )
    };
    // (arguments, the fields that are wrong)
    let cases = [
        ("{ignoredResources: [a/b/c]}".to_owned(), vec!["args.ignoredResources[0]".to_owned()]),
        (
            "{ignoredResourceGroups: [example.com, example.com/gpu]}".to_owned(),
            vec!["args.ignoredResourceGroups[1]".to_owned()],
        ),
        (
            "{scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 101}, {name: memory, weight: -1}]}}"
                .to_owned(),
            vec![
                "args.scoringStrategy.resources[0].weight".to_owned(),
                "args.scoringStrategy.resources[1].weight".to_owned(),
            ],
        ),
        ("{scoringStrategy: {}}".to_owned(), vec!["args.scoringStrategy.type".to_owned()]),
        (
            "{scoringStrategy: {type: RequestedToCapacityRatio}}".to_owned(),
            vec!["args.scoringStrategy.requestedToCapacityRatio".to_owned()],
        ),
        (
            "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {shape: [{score: 1}]}}}"
                .to_owned(),
            vec!["args.scoringStrategy.requestedToCapacityRatio".to_owned()],
        ),
        ("{scoringStrategy: {type: BestAllocated}}".to_owned(), vec!["args.scoringStrategy.type".to_owned()]),
        ("{scoringStrategy: {kind: MostAllocated}}".to_owned(), vec!["args.scoringStrategy.kind".to_owned()]),
        (ratio("[]"), vec![SHAPE.to_owned()]),
        (ratio("[{utilization: 10}, {utilization: 10}]"), vec![format!("{SHAPE}[1].utilization")]),
        (
            ratio("[{utilization: 0}, {utilization: 9}, {utilization: 5}]"),
            vec![format!("{SHAPE}[2].utilization")],
        ),
        (
            ratio("[{utilization: -1, score: 11}, {utilization: 101, score: -1}]"),
            vec![
                format!("{SHAPE}[0].utilization"),
                format!("{SHAPE}[0].score"),
                format!("{SHAPE}[1].utilization"),
                format!("{SHAPE}[1].score"),
            ],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(paths(with_args(&text, NodeResourcesFit::new)), expected, "{text}");
    }
}

#[test]
fn older_names_score_by_their_one_strategy() {
    let cluster = two_nodes();
    let pod = pod("p").container(&[("cpu", "3"), ("memory", "5000")]).pod();
    let scores = |plugin: SingleStrategy| {
        let nodes = by_name(&cluster);
        let prepared = Prepared::nothing();
        let input = ScoreInput { prepared: &prepared, cluster: &cluster, pod: &pod, nodes: &nodes };
        let mut column = [0; 2];
        plugin.score(input, &mut column).unwrap();
        column
    };
    // As in the table of strategies.
    let by_cpu = "{resources: [{name: cpu, weight: 5}]}";
    let shape = "{shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}";
    assert_eq!(scores(with_args("{}", SingleStrategy::least_allocated).unwrap()), [37, 50]);
    assert_eq!(scores(with_args(by_cpu, SingleStrategy::least_allocated).unwrap()), [25, 50]);
    assert_eq!(scores(with_args("{}", SingleStrategy::most_allocated).unwrap()), [62, 50]);
    assert_eq!(scores(with_args(shape, SingleStrategy::requested_to_capacity_ratio).unwrap()), [63, 50]);
}

#[test]
fn bad_arguments_of_the_older_names() {
    let heavy = "{resources: [{name: cpu, weight: 101}]}";
    assert_eq!(paths(with_args(heavy, SingleStrategy::least_allocated)), ["args.resources[0].weight"]);
    assert_eq!(paths(with_args(heavy, SingleStrategy::most_allocated)), ["args.resources[0].weight"]);
    assert_eq!(
        paths(with_args(heavy, SingleStrategy::requested_to_capacity_ratio)),
        ["args.shape", "args.resources[0].weight"]
    );
}

#[test]
fn pods_that_free_something_wanted_help() {
    let waiting = pod("p").container(&[("cpu", "1")]).pod();
    let interest = &default_plugin().events()[0];
    let helps = |action, before: &Pod, after: Option<&Pod>| {
        let change = Change::Pod(Some(before), after);
        interest.helps(&supercargo_model::Cluster::default(), EventResource::Pod, action, &waiting, &change)
    };
    let bound = pod("q").on("n").pod();
    let nominated = pod("q").set("/status/nominatedNodeName", "n").pod();
    assert!(helps(ActionType::Delete, &bound, None));
    assert!(helps(ActionType::Delete, &nominated, None));
    assert!(!helps(ActionType::Delete, &pod("q").pod(), None));

    let with = |cpu: &str, memory: &str| pod("q").container(&[("cpu", cpu), ("memory", memory)]);
    let shrinks = |before: Builder, after: Builder| {
        helps(ActionType::UpdatePodScaleDown, &before.pod(), Some(&after.pod()))
    };
    assert!(shrinks(with("2", "2").on("n"), with("1", "2").on("n")));
    assert!(!shrinks(with("1", "2").on("n"), with("2", "2").on("n")), "it grows");
    assert!(!shrinks(with("2", "2").on("n"), with("2", "1").on("n")), "nobody wants memory");
    assert!(!shrinks(with("2", "2"), with("1", "2")), "it holds nothing yet");
    let itself = pod("p").container(&[("cpu", "2")]);
    assert!(shrinks(itself, pod("p").container(&[("cpu", "1")])), "the waiting pod itself");
}

/// Whatever the resource: only who wants it is helped, and only by more of it.
#[test]
fn each_resource_counts_for_those_who_want_it() {
    let resources = ["cpu", "memory", "ephemeral-storage", "example.com/gpu"];
    let events = default_plugin().events();
    let nothing = supercargo_model::Cluster::default();
    for wanted in resources {
        let waiting = pod("p").container(&[(wanted, "1")]).pod();
        let shrinks = |resource: &str, from: &str, to: &str| {
            let [before, after] = [from, to].map(|amount| pod("q").on("n").container(&[(resource, amount)]));
            let (before, after) = (before.pod(), after.pod());
            let change = Change::Pod(Some(&before), Some(&after));
            events[0].helps(&nothing, EventResource::Pod, ActionType::UpdatePodScaleDown, &waiting, &change)
        };
        let grows = |resource: &str, from: &str, to: &str| {
            let large = || resources.into_iter().fold(node("n"), |node, name| node.allocatable(name, "9"));
            let [before, after] = [from, to].map(|amount| large().allocatable(resource, amount).node());
            let change = Change::Node(Some(&before), Some(&after));
            let action = ActionType::UpdateNodeAllocatable;
            events[1].helps(&nothing, EventResource::Node, action, &waiting, &change)
        };
        for resource in resources {
            let is_wanted = resource == wanted;
            assert_eq!(shrinks(resource, "3", "2"), is_wanted, "{wanted} wanted, less {resource} held");
            assert_eq!(grows(resource, "2", "3"), is_wanted, "{wanted} wanted, more {resource} offered");
            for [from, to] in [["2", "2"], ["2", "3"]] {
                assert!(!shrinks(resource, from, to), "{wanted} wanted, {from} {resource} held, then {to}");
                assert!(!grows(resource, to, from), "{wanted} wanted, {to} {resource} offered, then {from}");
            }
        }
    }
}

#[test]
fn classes_that_come_to_stand_for_what_is_wanted_help() {
    let class = |resource: Option<&str>| {
        let spec = json!({"extendedResourceName": resource});
        object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
            "metadata": {"name": "gpu"}, "spec": spec}))
        .object()
    };
    let interest = &default_plugin().events()[2];
    let helps = |wanted: &str, before: Option<&Object>, after: &Object| {
        let waiting = pod("p").container(&[("cpu", "1"), (wanted, "1")]).pod();
        let action = if before.is_some() { ActionType::Update } else { ActionType::Add };
        let change = Change::Other(before, Some(after));
        let cluster = supercargo_model::Cluster::default();
        interest.helps(&cluster, EventResource::DeviceClass, action, &waiting, &change)
    };
    let (by_name, none, gpu) =
        ("deviceclass.resource.kubernetes.io/gpu", &class(None), &class(Some("e.io/gpu")));
    let tpu = &class(Some("e.io/tpu"));
    // (what is wanted, before, after, helps)
    let cases = [
        ("e.io/gpu", None, gpu, true),
        ("e.io/gpu", None, tpu, false),
        ("e.io/gpu", None, none, false),
        ("e.io/gpu", Some(tpu), gpu, true),
        ("e.io/gpu", Some(none), gpu, true),
        ("e.io/gpu", Some(gpu), gpu, false),
        ("e.io/gpu", Some(gpu), tpu, false),
        // Under its own name a class can be asked for from the beginning.
        (by_name, None, none, true),
        (by_name, None, gpu, true),
        (by_name, Some(none), gpu, false),
        ("deviceclass.resource.kubernetes.io/tpu", None, gpu, false),
    ];
    for (i, (wanted, before, after, expected)) in cases.into_iter().enumerate() {
        assert_eq!(helps(wanted, before, after), expected, "case {i}: {wanted}");
    }
}

#[test]
fn nodes_that_could_hold_the_pod_and_grew_help() {
    let waiting = pod("p").container(&[("cpu", "2"), ("example.com/gpu", "1")]).pod();
    let interest = &default_plugin().events()[1];
    let helps = |before: Option<Builder>, after: Builder| {
        let before = before.map(Builder::node);
        let after = after.node();
        let change = Change::Node(before.as_ref(), Some(&after));
        let action = if before.is_some() { ActionType::UpdateNodeAllocatable } else { ActionType::Add };
        interest.helps(&supercargo_model::Cluster::default(), EventResource::Node, action, &waiting, &change)
    };
    let has = |cpu: &str, gpu: &str| node("n").allocatable("cpu", cpu).allocatable("example.com/gpu", gpu);
    assert!(helps(None, has("2", "1")));
    assert!(!helps(None, has("1", "1")));
    assert!(!helps(None, has("2", "0")));
    assert!(!helps(None, has("2", "1").allocatable("pods", "0")));
    assert!(helps(Some(has("2", "1")), has("3", "1")));
    assert!(helps(Some(has("2", "1")), has("2", "2")));
    assert!(helps(Some(has("2", "1")), has("2", "1").allocatable("pods", "111")));
    assert!(!helps(Some(has("2", "1")), has("2", "1")));
    assert!(!helps(Some(has("3", "2")), has("2", "1")), "it shrank");
    assert!(!helps(Some(has("2", "1")), has("2", "1").allocatable("memory", "9Gi")), "unwanted");
    assert!(!helps(Some(has("1", "0")), has("1", "1")), "still too small");
}

#[test]
fn nodes_of_which_about_as_much_is_taken_score_between_bounds() {
    for strategy in ["LeastAllocated", "MostAllocated"] {
        let resources = "[{name: cpu, weight: 3}, {name: memory, weight: 1}]";
        let text = format!("{{scoringStrategy: {{type: {strategy}, resources: {resources}}}}}");
        check_bounds(Arc::new(with_args(&text, NodeResourcesFit::new).unwrap()));
    }
}
