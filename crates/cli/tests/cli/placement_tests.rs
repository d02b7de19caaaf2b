//! `supercargo test`.

use crate::invocation::{data, project, run, supercargo};

#[test]
fn the_examples_hold() {
    insta::assert_snapshot!(supercargo("test examples/tests -q"));
}

/// A cluster of two nodes in two zones, one of them full but for a core.
const CLUSTER: &str = r#"
cluster:
- {apiVersion: v1, kind: Node, metadata: {name: a, labels: {topology.kubernetes.io/zone: east}},
   status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
- {apiVersion: v1, kind: Node, metadata: {name: b, labels: {topology.kubernetes.io/zone: west}},
   status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}}
- {apiVersion: v1, kind: Pod, metadata: {name: runs}, spec: {nodeName: b, priority: 0, containers:
   [{name: c, resources: {requests: {cpu: 3}}}]}}
pods:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    replicas: 3
    selector: {matchLabels: {app: web}}
    template:
      metadata: {labels: {app: web}}
      spec: {containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}
"#;

fn test(expectations: &[&str], flags: &str) -> crate::invocation::Ran {
    let tests: String = (expectations.iter().enumerate())
        .map(|(i, expected)| format!("- name: number {i}\n  expect: [{{pods: web, {expected}}}]\n"))
        .collect();
    run(&data(), &format!("test - {flags}"), &format!("{CLUSTER}tests:\n{tests}"))
}

#[test]
fn every_expectation_can_hold_and_can_fail() {
    let holds = [
        "goesTo: {nodes: [a, b]}",
        "goesTo: {zones: [east, west]}",
        "staysAwayFrom: {nodes: [c*]}",
        "spreadsWithin: {topologyKey: topology.kubernetes.io/zone, maxSkew: 2}",
        "preemptsNobody: true",
        "preempts: []",
        // Of 8 cores, 3 are taken by what runs and 3 by these.
        "wouldFit: 2",
    ];
    let ran = test(&holds, "");
    assert_eq!((ran.code, ran.last_line()), (Some(0), "7 passed"), "{ran}");
    let fails = [
        "goesTo: {nodes: [b]}",
        "goesTo: {zones: [north]}",
        "staysAwayFrom: {zones: [east]}",
        "spreadsWithin: {topologyKey: topology.kubernetes.io/zone, maxSkew: 0}",
        "spreadsWithin: {topologyKey: rack}",
        "pendingBecause: {message: Insufficient cpu}",
        "preempts: [runs]",
        "wouldFit: 3",
    ];
    insta::assert_snapshot!(test(&fails, ""));
    let ran = test(&["preemptsNobody: true", "pods: other"], "");
    assert_eq!(ran.code, Some(2), "a key that is written twice is an error: {ran}");
}

#[test]
fn results_are_written_for_pipelines() {
    let folder = tempfile::tempdir().expect("a folder");
    let junit = folder.path().join("junit.xml");
    let ran = test(&["preemptsNobody: true", "wouldFit: 3"], &format!("--junit {} -o json", junit.display()));
    assert_eq!(ran.code, Some(1), "{ran}");
    let lines: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&lines[0]["passed"], &lines[1]["passed"]), (&true.into(), &false.into()));
    insta::assert_snapshot!(std::fs::read_to_string(junit).expect("it was written"));
}

#[test]
fn what_makes_no_sense_is_told_with_its_place() {
    let misspelt = format!("{CLUSTER}tests:\n- name: x\n  expect:\n  - goesTO: {{nodes: [a]}}\n");
    let ran = run(&data(), "test -", &misspelt);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(
        ran.stderr.contains("tests[0].expect[0].goesTO") && ran.stderr.contains("did you mean goesTo?"),
        "{ran}"
    );
    for (text, told) in [
        ("tests: []\n", "there are no tests"),
        ("tests: [{name: x}]\n", "a test needs an expectation"),
        ("tests: [{expect: [{wouldFit: 1}]}]\n", "a test needs a name"),
        ("tests: [{name: x, expect: [{pods: web}]}]\n", "nothing is expected of these pods"),
        ("cluster: [7]\ntests: [{name: x, expect: [{wouldFit: 1}]}]\n", "expected a file or an object"),
        ("cluster: nowhere.yaml\ntests: [{name: x, expect: [{wouldFit: 1}]}]\n", "there is no such file"),
    ] {
        let ran = run(&project(), "test -", text);
        assert!(ran.code == Some(2) && ran.stderr.contains(told), "{text}: {ran}");
    }
}
