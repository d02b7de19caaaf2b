//! `supercargo replay`, `compare` and `tune`.

use std::{fmt::Write as _, fs, io::Write as _, path::Path};

use serde_json::{Value, json};

use crate::invocation::{data, run, supercargo};

const PACKING: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
";

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Two nodes of 4 cpu and pods of 3: `waits` has no room until `a` goes 20 s later, and `important` evicts one that needs 30 s
/// to leave. Two pods run all the time.
#[test]
fn pods_wait_in_the_queue_until_events_help_them() {
    let ran = run(&data(), "replay --trace history.jsonl -q -o json --seed 3", "");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
    let lines = lines(&ran.stdout);
    let waited: Vec<(&str, f64)> = (lines.iter().take(4))
        .map(|line| (line["pod"].as_str().unwrap(), line["pendingSeconds"].as_f64().unwrap()))
        .collect();
    let expected =
        [("default/a", 0.0), ("default/b", 0.0), ("default/waits", 20.0), ("default/important", 30.0)];
    assert_eq!(waited, expected);
    assert_eq!(lines[0]["recordedNode"], "elsewhere");
    let summary = &lines[4]["summary"];
    assert_eq!(summary["seed"], "3");
    assert_eq!(summary["recorded"], json!({"sameNode": 0, "otherNode": 1, "onlyRecorded": 0}));
    let measures = &summary["measures"];
    let pending = json!({"mean": 12.5, "p50": 0.0, "p90": 30.0, "p99": 30.0, "max": 30.0});
    assert_eq!(measures["pendingSeconds"], pending);
    assert_eq!((&measures["preemptions"], &measures["evictions"]), (&json!(1), &json!(1)));
    let cpu = &measures["resources"][0];
    // 6 of 8 cpu all the time, 3 of 4 on each node; of the 1 that is free on each no pod of 3 can make use.
    for (measure, value) in
        [("utilisation", 0.75), ("imbalance", 0.0), ("fragmentation", 1.0), ("unusable", 0.25)]
    {
        assert!((cpu[measure].as_f64().unwrap() - value).abs() < 1e-9, "{measure}: {cpu}");
    }
}

#[test]
fn a_replay_is_told_readably() {
    insta::assert_snapshot!(run(&data(), "replay --trace history.jsonl -q", ""));
}

#[test]
fn the_same_seed_gives_the_same_and_a_packed_file_is_read_by_its_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = fs::read(data().join("history.jsonl")).expect("the trace");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&text).expect("it is packed");
    let mut packed = packed.finish().expect("it is packed");
    fs::write(folder.path().join("trace"), &packed).expect("a file");
    let plain = run(&data(), "replay --trace history.jsonl -q -o json --seed 7", "").stdout;
    assert_eq!(run(folder.path(), "replay --trace trace -q -o json --seed 7", "").stdout, plain);
    // Cut off while it was written.
    packed.truncate(packed.len() * 9 / 10);
    fs::write(folder.path().join("trace"), &packed).expect("a file");
    let cut = run(folder.path(), "replay --trace trace -o json --seed 7", "");
    assert_eq!(cut.code, Some(0), "{cut}");
    assert!(cut.stderr.contains("the file was cut off"), "{cut}");
    assert_eq!(lines(&cut.stdout)[0], lines(&plain)[0]);
}

#[test]
fn what_was_recorded_can_be_followed() {
    let ran = run(&data(), "replay --trace history.jsonl -q -o json --follow-recording", "");
    let lines = lines(&ran.stdout);
    assert_eq!((&lines[0]["node"], &lines[0]["placedSeconds"]), (&json!("elsewhere"), &json!(11.0)));
    assert_eq!(lines[4]["summary"]["measures"]["placed"], 1);
}

#[test]
fn placements_go_to_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("placements.jsonl");
    let ran = run(&data(), &format!("replay --trace history.jsonl -q --placements {}", path.display()), "");
    assert_eq!(ran.code, Some(0), "{ran}");
    assert_eq!(lines(&fs::read_to_string(&path).expect("the file")).len(), 4);
}

#[test]
fn mistakes_in_a_trace_are_located() {
    let pod =
        r#"{"at": 5, "op": "add", "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}}"#;
    for (line, expected) in [
        (
            r#"{"at": 1, "op": "delete", "kind": "Pod", "name": "p"}"#,
            "<stdin>:2:8: at: time goes backwards: 1 after 5",
        ),
        (r#"{"at": 6, "op": "ad"}"#, "<stdin>:2:"),
        (r#"{"op": "delete", "kind": "Pod", "name": "p"}"#, "<stdin>:2:1"),
        (r#"{"at": 6, "op": "delete", "name": "p"}"#, "this line needs a field `kind`"),
        (r#"{"at": 6, "op": "add"}"#, "this line needs a field `object`"),
        ("nonsense", "<stdin>:2:"),
    ] {
        let ran = run(&data(), "replay --trace -", &format!("{pod}\n{line}\n"));
        assert_eq!(ran.code, Some(2), "{line}: {ran}");
        assert!(ran.stderr.contains(expected), "{line}: {ran}");
    }
    let ran = run(&data(), "replay --trace -", "");
    assert!(ran.code == Some(2) && ran.stderr.contains("there are no events in this trace"), "{ran}");
}

#[test]
fn configurations_are_compared() {
    let folder = tempfile::tempdir().expect("a folder");
    let (packing, report) = (folder.path().join("packing.yaml"), folder.path().join("report.html"));
    fs::write(&packing, PACKING).expect("a file");
    let arguments = format!(
        "compare --cluster examples/cluster --pods examples/pods.yaml --config default --config {} -q --html {}",
        packing.display(),
        report.display()
    );
    insta::assert_snapshot!(supercargo(&arguments));
    let page = fs::read_to_string(&report).expect("a report");
    assert!(page.starts_with("<!doctype html>") && page.contains("What moves under packing"));
    for forbidden in ["<script", "http://", "https://", "url("] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let json = supercargo(&format!("{arguments} -o json"));
    let json: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(json["configurations"][1]["name"], "packing");
    let moved = json["configurations"][1]["moves"]["otherNode"].as_array().expect("a list").len();
    assert!(
        json["verdict"].as_str().unwrap().contains(&format!("({moved} pods move)")),
        "{}",
        json["verdict"]
    );
    let markdown = supercargo(&format!("{arguments} -o markdown"));
    assert!(markdown.stdout.contains("| measure | default | packing |"), "{markdown}");
}

#[test]
fn the_charts_of_a_trace_are_drawn() {
    let ran = run(&data(), "compare --trace history.jsonl --config default --config default -q -o html", "");
    assert_eq!(ran.code, Some(0), "{ran}");
    // Three for each of two resources, the pending pods and the nodes in use.
    assert_eq!(ran.stdout.matches("<svg").count(), 8);
    assert!(ran.stdout.contains("default (2) is as good as default (no pod moves)."), "{ran}");
}

#[test]
fn a_comparison_without_pods_is_an_error() {
    let ran = supercargo("compare --cluster examples/cluster/nodes.yaml --config default");
    assert!(ran.code == Some(2) && ran.stderr.contains("there are no pending pods"), "{ran}");
}

/// Four nodes, and pods of 1 cpu that come every 10 s and stay for 25: spread, they take up three nodes; packed, one.
fn write_steady_trace(path: &Path) {
    let mut text = String::new();
    for node in 0..4 {
        let amounts = json!({"cpu": "8", "memory": "32Gi", "pods": "20"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{node}")}, "status": {"allocatable": amounts}});
        writeln!(text, "{}", json!({"at": 0, "op": "add", "object": node})).unwrap();
    }
    let mut events: Vec<(u32, Value)> = Vec::new();
    for i in 0..100 {
        let requests = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{i}")},
            "spec": {"containers": [{"name": "main", "resources": requests}]}});
        events.push((10 * i, json!({"at": 10 * i, "op": "add", "object": pod})));
        events.push((
            10 * i + 25,
            json!({"at": 10 * i + 25, "op": "delete", "kind": "Pod", "name": format!("p{i}")}),
        ));
    }
    events.sort_by_key(|(at, _)| *at);
    events.iter().for_each(|(_, event)| writeln!(text, "{event}").unwrap());
    fs::write(path, text).expect("a file");
}

#[test]
fn a_gain_that_held_back_parts_confirm_is_recommended() {
    let folder = tempfile::tempdir().expect("a folder");
    write_steady_trace(&folder.path().join("trace.jsonl"));
    let arguments =
        "tune --trace trace.jsonl --objective nodes_in_use --candidates 4 --time 300s --out tuned.yaml";
    let ran = run(folder.path(), arguments, "");
    assert_eq!(ran.code, Some(0), "{ran}");
    assert!(ran.stdout.contains("better than the defaults in 5 of 5"), "{ran}");
    assert!(ran.stdout.contains("confirmed: with 95 % confidence"), "{ran}");
    let checked = run(folder.path(), "config check tuned.yaml", "");
    assert_eq!(checked.code, Some(0), "{checked}");
    let compared = run(folder.path(), "compare --trace trace.jsonl --config tuned.yaml -q -o json", "");
    let compared: Value = serde_json::from_str(&compared.stdout).expect("JSON");
    let nodes =
        |i: usize| compared["configurations"][i]["measures"]["nodesInUse"].as_f64().expect("a number");
    assert!(nodes(1) < 0.6 * nodes(0), "{} and {}", nodes(0), nodes(1));
}

#[test]
fn what_is_not_confirmed_is_not_recommended() {
    let folder = tempfile::tempdir().expect("a folder");
    write_steady_trace(&folder.path().join("trace.jsonl"));
    // All pods are placed at once, whatever the configuration.
    let arguments =
        "tune --trace trace.jsonl --objective never_placed --candidates 3 --time 300s --out tuned.yaml";
    let ran = run(folder.path(), arguments, "");
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.stdout.contains("not confirmed: nothing is recommended"), "{ran}");
    assert!(!folder.path().join("tuned.yaml").exists());
}

#[test]
fn a_mistake_in_an_objective_is_located() {
    insta::assert_snapshot!(run(&data(), "tune --trace history.jsonl --objective fragmentaton[cpu]", ""));
    let ran = run(&data(), "tune --trace history.jsonl --objective fragmentation", "");
    assert!(ran.code == Some(2) && ran.stderr.contains("4 pods are too few"), "{ran}");
}
