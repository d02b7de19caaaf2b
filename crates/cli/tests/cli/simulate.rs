//! `supercargo simulate`.

use crate::invocation::{data, project, run, supercargo};

const EXAMPLE: &str = "simulate --cluster examples/cluster --pods examples/pods.yaml";

#[test]
fn shows_placements_messages_and_a_summary() {
    insta::assert_snapshot!(supercargo(EXAMPLE));
}

#[test]
fn obeys_a_configuration() {
    insta::assert_snapshot!(supercargo(&format!(
        "{EXAMPLE} --config examples/scheduler-config.yaml -o wide -q"
    )));
}

#[test]
fn json_is_an_object_for_each_pod_and_nothing_else() {
    let ran = supercargo(&format!("{EXAMPLE} -o json -q"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let reports: Vec<serde_json::Value> =
        (ran.stdout.lines()).map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
    assert_eq!(reports.len(), 11);
    let of = |pod: &str| reports.iter().find(|report| report["pod"] == pod).expect("the pod is there");
    let checkout = of("shop/checkout-5b9c8d7f4-w3x6g");
    assert_eq!(checkout["result"], "Scheduled");
    assert_eq!(checkout["placed"], "general-a1");
    assert_eq!(checkout["rejected"]["general-b1"]["plugin"], "PodTopologySpread");
    assert_eq!(checkout["feasible"].as_array().map(Vec::len), checkout["total"].as_array().map(Vec::len));
    assert_eq!(of("payments/settlement")["preemption"]["nominatedNode"], "general-c2");
    assert_eq!(of("batch/backfill")["result"], "Gated");
    let message = of("ml/train-llm")["message"].as_str().expect("there is a message");
    assert!(message.starts_with("0/12 nodes are available: "), "{message}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for format in ["table", "wide", "json"] {
        let arguments = format!("{EXAMPLE} --seed 7 -o {format}");
        let (one, other) = (supercargo(&arguments), supercargo(&arguments));
        assert_eq!(one.stdout, other.stdout);
        assert_eq!(one.stderr, other.stderr);
    }
}

#[test]
fn another_seed_may_break_a_tie_otherwise() {
    let node_of = |seed: u32| {
        let ran = supercargo(&format!("{EXAMPLE} --seed {seed} -q"));
        let row =
            ran.stdout.lines().find(|line| line.starts_with("batch/thumbnails")).expect("the pod is there");
        row.split_whitespace().nth(1).expect("a node").to_owned()
    };
    let nodes: std::collections::BTreeSet<String> = (0..20).map(node_of).collect();
    assert_eq!(nodes.into_iter().collect::<Vec<_>>(), ["spot-a1", "spot-b1", "spot-c1"]);
}

#[test]
fn times_are_shown_on_request_only() {
    assert!(!supercargo(EXAMPLE).stdout.contains("TIME"));
    assert!(supercargo(&format!("{EXAMPLE} --time")).stdout.contains("TIME"));
    let json = supercargo(&format!("{EXAMPLE} --time -o json -q")).stdout;
    assert!(json.lines().all(|line| line.contains("\"tookMicroseconds\":")));
}

#[test]
fn reads_stdin_streams_lists_and_what_it_does_not_know() {
    let stdin = r#"
        {"apiVersion": "v1", "kind": "NodeList", "items": [
            {"metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}]}
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}}
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "q"}, "spec": {"schedulerName": "other", "containers": []}}
    "#;
    insta::assert_snapshot!(run(&data(), "simulate --cluster -", stdin));
}

#[test]
fn a_reference_to_nothing_makes_a_pod_unschedulable_and_is_no_broken_input() {
    let stdin = r#"
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
         "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [],
         "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nowhere"}}]}}
    "#;
    insta::assert_snapshot!(run(&data(), "simulate --cluster -", stdin));
}

#[test]
fn a_cluster_without_nodes_or_pods_is_none_the_worse() {
    let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}"#;
    let ran = run(&data(), "simulate --cluster -", pod);
    assert!(ran.stdout.contains("no nodes available to schedule pods"), "{ran}");
    let ran = run(&data(), "simulate --cluster -", r#"{"apiVersion": "v1", "kind": "List", "items": []}"#);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "0 pods: 0 scheduled (seed 0)\n"));
}

#[test]
fn colour_is_for_terminals_and_for_those_who_ask() {
    assert!(!supercargo(EXAMPLE).stdout.contains('\u{1b}'));
    assert!(supercargo(&format!("{EXAMPLE} --color always")).stdout.contains('\u{1b}'));
}

#[test]
fn names_cannot_steer_the_terminal() {
    let stdin = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: \"\\e[31mred\"\nspec:\n  containers: []\n";
    let ran = run(&project(), "simulate --cluster -", stdin);
    assert!(ran.stdout.contains("red") && !ran.stdout.contains('\u{1b}'), "{ran}");
}
