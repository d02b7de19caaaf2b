//! `supercargo config …`.

use std::fs;

use crate::invocation::{data, run, supercargo};

const HEADER: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

#[test]
fn check_tells_by_its_exit_code() {
    let ran = supercargo("config check examples/scheduler-config.yaml --strict");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran}");
    let warned = format!("{HEADER}percentageOfNodesToScore: 3\n");
    assert_eq!(run(&data(), "config check -", &warned).code, Some(0));
    assert_eq!(run(&data(), "config check --strict -", &warned).code, Some(1));
    assert_eq!(run(&data(), "config check --strict -q -", &warned).stderr, "");
}

#[test]
fn check_tells_all_that_is_wrong() {
    let wrong = format!(
        "{HEADER}paralelism: 4\nprofiles:\n- plugins:\n    score:\n      enabled:\n      - name: NodeAfinity\n"
    );
    let ran = run(&data(), "config check -", &wrong);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn effective_as_a_table() {
    insta::assert_snapshot!(supercargo("config effective examples/scheduler-config.yaml"));
}

#[test]
fn effective_as_json_and_yaml() {
    let json = supercargo("config effective examples/scheduler-config.yaml -o json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let score = &json["profiles"]["default-scheduler"]["score"];
    assert_eq!(score[0], serde_json::json!({"name": "NodeResourcesFit", "weight": 5}));
    // What is written as YAML means the same when it is read again.
    let folder = tempfile::tempdir().expect("a folder");
    let yaml = supercargo("config effective examples/scheduler-config.yaml -o yaml").stdout;
    fs::write(folder.path().join("again.yaml"), yaml).expect("written");
    let again = run(folder.path(), "config effective again.yaml -o json -q", "").stdout;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&again).expect("JSON"), json);
}

#[test]
fn defaults_mean_nothing_but_the_defaults() {
    let defaults = supercargo("config defaults -o json").stdout;
    let empty = run(&data(), "config effective - -o json", HEADER).stdout;
    assert_eq!(defaults, empty);
    assert!(supercargo("config defaults -o yaml").stdout.starts_with("apiVersion: "));
}

#[test]
fn diff_shows_what_changes_in_meaning() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, rest: &str| {
        fs::write(folder.path().join(name), format!("{HEADER}{rest}")).expect("written")
    };
    file("a.yaml", "parallelism: 16\n");
    file("b.yaml", "");
    file(
        "c.yaml",
        "parallelism: 8\nprofiles:\n- plugins:\n    score:\n      disabled:\n      - name: ImageLocality\n",
    );
    let same = run(folder.path(), "config diff a.yaml b.yaml --exit-code", "");
    assert_eq!((same.code, same.stdout.as_str()), (Some(0), ""));
    let changed = run(folder.path(), "config diff a.yaml c.yaml --exit-code", "");
    assert_eq!(changed.code, Some(1));
    insta::assert_snapshot!(changed.stdout);
    assert_eq!(run(folder.path(), "config diff a.yaml c.yaml", "").code, Some(0));
    assert_eq!(run(folder.path(), "config diff a.yaml nowhere.yaml", "").code, Some(2));
}

#[test]
fn a_policy_is_translated() {
    let policy = r#"{"kind": "Policy", "apiVersion": "v1",
        "predicates": [{"name": "PodFitsResources"}], "priorities": [{"name": "LeastRequestedPriority", "weight": 3}]}"#;
    let ran = run(&data(), "config migrate -", policy);
    assert_eq!(ran.code, Some(0), "{ran}");
    let checked = run(&data(), "config check -", &ran.stdout);
    assert_eq!(checked.code, Some(0), "{checked}");
    assert!(ran.stdout.contains("weight: 3"), "{ran}");
}

#[test]
fn the_schema_is_json() {
    let ran = supercargo("config schema");
    let schema: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(schema["properties"]["profiles"].is_object());
}
