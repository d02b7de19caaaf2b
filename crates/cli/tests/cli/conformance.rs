//! `supercargo conformance`.

use std::{fs, io::Read, path::Path};

use crate::invocation::{data, project, run, supercargo};

#[test]
fn all_of_the_data_holds() {
    let ran = supercargo("conformance tests/conformance");
    assert_eq!(ran.last_line(), "559 passed, 0 failed", "{ran}");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ran.stdout);
}

/// A scenario of the data, unpacked.
fn scenario(name: &str) -> String {
    let path = project().join("tests/conformance/scenarios").join(name);
    let mut text = String::new();
    let file = fs::File::open(path).expect("the scenario is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it can be unpacked");
    text
}

fn write(folder: &Path, name: &str, value: &serde_json::Value) {
    fs::write(folder.join(name), value.to_string()).expect("it can be written");
}

#[test]
fn a_difference_is_told_readably() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scenario: serde_json::Value =
        serde_json::from_str(&scenario("resources-11-000.json.gz")).expect("JSON");
    let first = &mut scenario["expect"][0];
    first["total"][0] = 7.into();
    first["plugins"]["NodeResourcesFit"]["scores"][0] = 101.into();
    let node = first["feasible"][1].as_str().expect("a name").to_owned();
    first["rejected"][node] =
        serde_json::json!({"plugin": "NodePorts", "code": "Unschedulable", "reasons": ["because"]});
    write(folder.path(), "tampered.json", &scenario);
    let ran = run(folder.path(), "conformance tampered.json", "");
    assert_eq!((ran.code, ran.last_line()), (Some(1), "0 passed, 1 failed"));
    insta::assert_snapshot!(ran);
}

#[test]
fn many_differences_are_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut scenario: serde_json::Value =
        serde_json::from_str(&scenario("resources-11-000.json.gz")).expect("JSON");
    for expect in scenario["expect"].as_array_mut().expect("a list") {
        for total in expect["total"].as_array_mut().into_iter().flatten() {
            *total = 0.into();
        }
    }
    write(folder.path(), "tampered.json", &scenario);
    let ran = run(folder.path(), "conformance .", "");
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.stdout.matches("  expected  ").count(), 20);
    assert!(ran.stdout.contains("\n… and "), "{ran}");
}

#[test]
fn another_file_that_does_not_hold_counts_as_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = serde_json::json!({"rows": [[0, 1000, 420], [50, 1000, 501]]});
    write(folder.path(), "nodes-to-find.json", &rows);
    let effective = serde_json::json!([{
        "input": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 8\n",
        "effective": {"parallelism": 9}
    }]);
    write(folder.path(), "configurations.json", &effective);
    let ran = run(folder.path(), "conformance .", "");
    assert_eq!((ran.code, ran.last_line()), (Some(1), "0 passed, 2 failed"));
    assert!(ran.stdout.contains("nodes-to-find · 50 % of 1000 nodes · feasible nodes to find"), "{ran}");
    assert!(
        ran.stdout.contains("configurations · case 1 · parallelism\n  expected  9\n  got       8\n"),
        "{ran}"
    );
}

#[test]
fn what_cannot_be_read_is_told_and_counts_as_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.json"), scenario("taints-11-000.json.gz")).expect("written");
    fs::write(folder.path().join("b.json"), "{\"name\": \"b\"").expect("written");
    let ran = run(folder.path(), "conformance .", "");
    assert_eq!((ran.code, ran.last_line()), (Some(2), "1 passed, 1 failed"));
    assert!(ran.stderr.contains("b.json:1:"), "{ran}");
    assert_eq!(run(folder.path(), "conformance nowhere", "").code, Some(2));
    let empty = tempfile::tempdir().expect("a folder");
    assert_eq!(run(empty.path(), "conformance .", "").code, Some(2));
}

#[test]
fn a_trace_is_replayed() {
    let ran = run(&data(), "conformance --trace trace.jsonl --expect trace.expect.jsonl", "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "4 passed, 0 failed\n"), "{ran}");
    assert!(ran.stderr.starts_with("note: 8 events, 4 pods in "), "{ran}");
}

#[test]
fn a_trace_with_another_configuration_differs() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- plugins:\n    score:\n      disabled:\n      - name: TaintToleration\n";
    let path = folder.path().join("config.yaml");
    fs::write(&path, config).expect("written");
    let arguments =
        format!("conformance --trace trace.jsonl --expect trace.expect.jsonl -q --config {}", path.display());
    let ran = run(&data(), &arguments, "");
    assert_eq!((ran.code, ran.last_line()), (Some(1), "1 passed, 3 failed"));
    insta::assert_snapshot!(ran);
}
