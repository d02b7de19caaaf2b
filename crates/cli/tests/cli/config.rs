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
fn a_plugin_without_its_arguments_is_told_by_name_file_and_line_wherever_it_would_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for (plugin, field) in [("DynamicScoring", "configMap.namespace"), ("RequestedToCapacityRatio", "shape")]
    {
        let text =
            format!("{HEADER}profiles:\n- plugins:\n    score:\n      enabled:\n      - name: {plugin}\n");
        fs::write(folder.path().join("config.yaml"), text).expect("written");
        fs::write(folder.path().join("pod.yaml"), "{apiVersion: v1, kind: Pod, metadata: {name: p}}")
            .expect("written");
        for command in [
            "config check config.yaml",
            "config effective config.yaml",
            "simulate --cluster pod.yaml --config config.yaml",
            "explain p --cluster pod.yaml --config config.yaml",
            "rbac --config config.yaml",
            "run --config config.yaml --master http://127.0.0.1:1",
        ] {
            let ran = run(folder.path(), command, "");
            assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{command}: {ran}");
            let told = format!("the plugin {plugin} needs arguments, and none are given: {field}");
            assert!(
                ran.stderr.contains("error: config.yaml:7:15: ") && ran.stderr.contains(&told),
                "{command}: {ran}"
            );
        }
    }
}

#[test]
fn what_a_migration_loses_is_said_and_what_it_writes_is_accepted() {
    let old = "apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
healthzBindAddress: 0.0.0.0:10251
algorithmSource:
  provider: DefaultProvider
profiles:
- plugins:
    score:
      disabled:
      - name: NodeResourcesLeastAllocated
      enabled:
      - name: NodeResourcesMostAllocated
        weight: 5
      - name: NodePreferAvoidPods
        weight: 10000
";
    let ran = run(&data(), "config migrate -", old);
    assert_eq!(ran.code, Some(0), "{ran}");
    let checked = run(&data(), "config check --strict -", &ran.stdout);
    assert_eq!(checked.code, Some(0), "{checked}");
    insta::assert_snapshot!(ran);
}

#[test]
fn a_file_that_kube_scheduler_wrote_is_read_without_a_word() {
    let written = include_str!("../../../config/tests/data/spelled_out/scores.written.yaml");
    let checked = run(&data(), "config check --strict -", written);
    assert_eq!((checked.code, &*checked.stderr), (Some(0), ""), "{checked}");
}

#[test]
fn the_schema_is_json() {
    let ran = supercargo("config schema");
    let schema: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(schema["properties"]["profiles"].is_object());
}
