//! `supercargo dynamic-scoring check`, and DynamicScoring in simulate, explain and rbac.

use std::{fs, path::Path};

use crate::invocation::{Ran, run};

const NODES: &str = "
apiVersion: v1
kind: NodeList
items:
- metadata: {name: old, creationTimestamp: 2020-12-01T00:00:00Z, labels: {disk: ssd}}
  status: {allocatable: {pods: 10, cpu: 4, memory: 8Gi}, nodeInfo: {kernelVersion: '5.4'}}
- metadata: {name: new, creationTimestamp: 2020-12-10T11:50:00Z}
  status: {allocatable: {pods: 10, cpu: 4, memory: 8Gi}, nodeInfo: {kernelVersion: '5.4'}}
";

const SCORES: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: DynamicScoring
dynamicScores:
- score: 10
  selector:
  - matchLabelExpressions: [{key: disk, operator: In, values: [ssd]}]
- score: -20
  selector:
    creationExpressions: [{operator: Since, value: 15m}]
- score: 1
  selector: {}
";

const CONFIG: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {score: {enabled: [{name: DynamicScoring, weight: 50}]}}
  pluginConfig:
  - name: DynamicScoring
    args: {configMap: {namespace: ops, name: scores}, key: now.yaml}
";

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}";

const NAMESPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: ops}}";

/// The command in a folder with these files and more.
fn supercargo(arguments: &str, more: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [("nodes.yaml", NODES), ("scores.yaml", SCORES), ("config.yaml", CONFIG), ("pod.yaml", POD)];
    for (name, text) in files.iter().chain(more) {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    run(Path::new(folder.path()), arguments, "")
}

fn config_map(text: &str) -> String {
    let data = serde_json::json!({"now.yaml": text});
    format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{namespace: ops, name: scores}}, data: {data}}}")
}

#[test]
fn check_shows_which_nodes_each_entry_selects_now() {
    let check = "dynamic-scoring check scores.yaml --cluster nodes.yaml";
    let ran = supercargo(&format!("{check} --now 2020-12-10T12:00:00Z"), &[]);
    insta::assert_snapshot!(ran);
    // Five minutes later nothing is newer than 15 minutes.
    let later = supercargo(&format!("{check} --now 2020-12-10T12:05:00Z -o json"), &[]);
    let lines: Vec<&str> = later.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            r#"{"line":4,"score":10,"nodes":["old"]}"#,
            r#"{"line":7,"score":-20,"nodes":[]}"#,
            r#"{"line":10,"score":1,"nodes":["new","old"]}"#,
        ]
    );
    assert_eq!(supercargo("dynamic-scoring check scores.yaml -q", &[]).stdout, "scores.yaml: valid\n");
}

#[test]
fn check_tells_what_is_wrong_and_where() {
    let broken = SCORES.replace("15m", "a while").replace("score: 10", "score: ten");
    let ran = supercargo("dynamic-scoring check broken.yaml", &[("broken.yaml", &broken)]);
    insta::assert_snapshot!(ran);
}

#[test]
fn the_manifest_of_a_config_map_does_as_well() {
    let map = config_map(SCORES);
    let ran = supercargo("dynamic-scoring check map.yaml -q", &[("map.yaml", &map)]);
    assert_eq!(ran.stdout, "map.yaml/now.yaml: valid\n", "{ran}");
    let explain = "--dynamic-scoring map.yaml --now 2020-12-10T12:00:00Z";
    assert_eq!(explained(explain, &[("map.yaml", &map)]).0, serde_json::json!([-19, 11]));
    let two = map.replace("data: {", "data: {other: x, ");
    let ran = supercargo("dynamic-scoring check map.yaml", &[("map.yaml", &two)]);
    assert!(ran.stderr.contains("hint: choose one with --key: other, now.yaml"), "{ran}");
    let chosen = supercargo("dynamic-scoring check map.yaml --key now.yaml -q", &[("map.yaml", &two)]);
    assert_eq!(chosen.code, Some(0), "{chosen}");
    let none = supercargo("dynamic-scoring check map.yaml --key missing", &[("map.yaml", &two)]);
    assert!(none.code == Some(2) && none.stderr.contains("carries no such text"), "{none}");
}

/// The scores before normalizing and after, of `new` and `old`.
fn explained(arguments: &str, more: &[(&str, &str)]) -> (serde_json::Value, serde_json::Value) {
    let all =
        format!("explain p --cluster nodes.yaml --cluster pod.yaml --config config.yaml -o json {arguments}");
    let ran = supercargo(&all, more);
    assert_eq!(ran.code, Some(0), "{ran}");
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let raw = |name: &str| {
        let mut nodes = report["nodes"].as_array().into_iter().flatten();
        let node = nodes.find(|node| node["name"] == name).expect("a feasible node");
        node["plugins"]["DynamicScoring"]["raw"].clone()
    };
    (serde_json::json!([raw("new"), raw("old")]), report["placed"].clone())
}

#[test]
fn preferences_come_from_a_file_or_from_the_objects_and_the_time_is_told() {
    let noon = "--now 2020-12-10T12:00:00Z";
    // new: 1 − 20; old: 1 + 10
    let by_file = explained(&format!("--dynamic-scoring scores.yaml {noon}"), &[]);
    assert_eq!(by_file, (serde_json::json!([-19, 11]), "old".into()));
    let reversed = config_map(&SCORES.replace("score: 10", "score: -10"));
    let objects = [("map.yaml", &*reversed)];
    // An hour later new is no longer new. new: 1; old: 1 − 10
    let by_objects = explained("--pods map.yaml --now 2020-12-10T13:00:00Z", &objects);
    assert_eq!(by_objects, (serde_json::json!([1, -9]), "new".into()));
    // The file counts for more.
    let both = explained(&format!("--pods map.yaml --dynamic-scoring scores.yaml {noon}"), &objects);
    assert_eq!(both, by_file);
    // Nothing is said: neutral.
    assert_eq!(explained("", &[]).0, serde_json::json!([0, 0]));
}

#[test]
fn simulate_tells_what_is_wrong_with_the_preferences() {
    let simulate = "simulate --cluster nodes.yaml --cluster pod.yaml";
    let broken = config_map(&SCORES.replace("kind: DynamicScoring", "kind: Scores"));
    let ran =
        supercargo(&format!("{simulate} --cluster map.yaml --config config.yaml"), &[("map.yaml", &broken)]);
    assert_eq!(ran.code, Some(2), "{ran}");
    assert!(ran.stderr.contains("\nerror: configmap/ops/scores/now.yaml:2:7: kind: "), "{ran}");
    let unused = supercargo(&format!("{simulate} --dynamic-scoring scores.yaml"), &[]);
    assert_eq!(unused.code, Some(2), "{unused}");
    assert!(unused.stderr.contains("no profile has DynamicScoring on"), "{unused}");
    let good = supercargo(&format!("{simulate} --config config.yaml --dynamic-scoring scores.yaml -q"), &[]);
    assert!(good.code == Some(0) && good.stdout.contains("default/p  old"), "{good}");
}

#[test]
fn texts_as_the_proposal_has_them_are_read_with_a_warning() {
    // By annotation, by creation, by the node's system; none says what it is.
    let by = |field: &str, expression: &str| {
        format!("dynamicScores:\n- score: 100\n  selector:\n  - {field}:\n    {expression}\n")
    };
    let texts = [
        by("matchAnnotationExpressions", "- {key: example.com/attached, operator: In, values: [\"true\"]}"),
        by(
            "creationExpressions",
            "- {operator: Before, value: \"2020-12-05T06:27:42Z\"}\n    - {operator: After, value: \"2020-12-09T06:27:42Z\"}",
        ),
        by("nodeInfoExpressions", "- {key: kernelVersion, operator: In, values: [\"5.4\"]}"),
    ];
    let selected = [vec![], vec!["new", "old"], vec!["new", "old"]];
    for (text, nodes) in texts.iter().zip(selected) {
        let check = "dynamic-scoring check text.yaml --cluster nodes.yaml -o json";
        let ran = supercargo(check, &[("text.yaml", text)]);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert!(
            ran.stderr.contains(
                "warning: text.yaml:1:1: the text does not say what it is: apiVersion and kind missing"
            ),
            "{ran}"
        );
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert_eq!(told["nodes"], serde_json::json!(nodes), "{text}");
        let map = config_map(text);
        let simulate =
            "simulate --cluster nodes.yaml --cluster pod.yaml --cluster map.yaml --config config.yaml";
        let ran = supercargo(simulate, &[("map.yaml", &map)]);
        assert_eq!(ran.code, Some(0), "{ran}");
        assert_eq!(ran.stderr.matches("warning: configmap/ops/scores/now.yaml").count(), 1, "{ran}");
    }
    let wrong = by("nodeInfoExpressions", "[]").replace("dynamicScores", "dynamicScore");
    assert_eq!(supercargo("dynamic-scoring check text.yaml", &[("text.yaml", &wrong)]).code, Some(2));
}

#[test]
fn a_config_map_that_is_missing_or_misnamed_is_told_once() {
    let misnamed = config_map(SCORES).replace("name: scores", "name: score");
    let other_key = config_map(SCORES).replace("now.yaml", "now.yml");
    for (objects, told, hint) in [
        (NAMESPACE, "there is no ConfigMap ops/scores among the objects", "--dynamic-scoring FILE"),
        (&*misnamed, "there is no ConfigMap ops/scores among the objects", "did you mean ops/score?"),
        (&*other_key, "the ConfigMap ops/scores has no key now.yaml", "did you mean now.yml?"),
    ] {
        for command in ["simulate", "explain p"] {
            let all = format!(
                "{command} --cluster nodes.yaml --cluster pod.yaml --pods map.yaml --config config.yaml"
            );
            let ran = supercargo(&all, &[("map.yaml", objects)]);
            assert_eq!(ran.code, Some(0), "{ran}");
            let line = format!("warning: DynamicScoring of default-scheduler prefers no node: {told}");
            assert_eq!(ran.stderr.matches(&line).count(), 1, "{ran}");
            assert!(ran.stderr.contains(hint), "{ran}");
        }
    }
    let there = supercargo(
        "simulate --cluster nodes.yaml --cluster pod.yaml --cluster map.yaml --config config.yaml",
        &[("map.yaml", &config_map(SCORES))],
    );
    assert_eq!(there.stderr.matches("prefers no node").count(), 0, "{there}");
}

#[test]
fn the_config_map_may_be_read_and_no_other() {
    let printed = supercargo("rbac --config config.yaml", &[]).stdout;
    let role = "kind: Role
metadata:
  name: supercargo-dynamic-scoring
  namespace: ops
rules:
# read what is preferred: DynamicScoring is on
- apiGroups: [\"\"]
  resources: [configmaps]
  resourceNames: [scores]
  verbs: [get, list, watch]
";
    assert!(printed.contains(role), "{printed}");
    assert!(!supercargo("rbac", &[]).stdout.contains("configmaps"));
}
