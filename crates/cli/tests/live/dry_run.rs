//! Commands that only look: they read the cluster that an operator has, and write nothing.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::{
    draft::{node, pod},
    filters::bind,
    stage::Stage,
};

/// What a command printed, and how it ended.
struct Ran {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn supercargo(stage: &Stage, arguments: &[&str]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(arguments)
        .args(stage.access())
        .env("COLUMNS", "200")
        .stdin(Stdio::null())
        .output()
        .expect("the binary ends");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    Ran { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

#[test]
fn a_live_cluster_when_it_is_simulated_then_its_pending_pods_get_the_nodes_that_they_will_have() {
    let stage = Stage::in_memory();
    stage.make_all([node("full").cpu("1"), node("free").cpu("2")]);
    stage.make(pod("runs").cpu("1"));
    bind(&stage, "runs", "full");
    stage.make_all([pod("waits").cpu("2"), pod("too-large").cpu("3")]);
    let config = stage.config_file("");
    let ran = supercargo(&stage, &["simulate", "--config", &config, "-o", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |name: &str| {
        let key = format!("{}/{name}", stage.name);
        lines.iter().find(|line| line["pod"] == key.as_str()).expect("the pod is there")
    };
    assert_eq!(of("waits")["placed"], stage.node_name("free").as_str());
    assert_eq!(of("too-large")["result"], "Unschedulable");
    assert_eq!(lines.len(), 2, "a pod that runs is not decided");
    assert_eq!(stage.node_of("waits"), None, "nothing was written");
}

#[test]
fn a_pod_of_a_live_cluster_when_it_is_explained_then_its_namespace_may_be_given_apart() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    stage.make(pod("waits"));
    let config = stage.config_file("");
    let ran = supercargo(&stage, &["explain", "waits", "-n", &stage.name, "--config", &config]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("goes to {}", stage.node_name("a"))), "{}", ran.stdout);
    let ran = supercargo(&stage, &["explain", "waits", "-n", "elsewhere", "--config", &config]);
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
}

#[test]
fn more_pods_than_a_page_holds_when_the_cluster_is_read_then_all_are_there() {
    let stage = Stage::in_memory();
    stage.make(node("a").cpu("1000").with("/status/allocatable/pods", json!("2000")));
    for i in 0..501 {
        stage.make(pod(&format!("p-{i:03}")));
    }
    let config = stage.config_file("");
    let ran = supercargo(&stage, &["simulate", "--config", &config]);
    assert!(ran.stdout.contains("501 pods: 501 scheduled"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn files_besides_a_live_cluster_when_they_hold_more_pods_then_both_count() {
    let stage = Stage::in_memory();
    stage.make(node("a"));
    let more = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "more"},
                      "spec": {"containers": []}});
    let file = stage.file("more.json", &more);
    let ran = supercargo(&stage, &["simulate", "--pods", &file]);
    assert!(ran.stdout.contains("1 pod: 1 scheduled"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn nobody_there_when_the_cluster_is_read_then_the_error_says_who_and_what_else_to_do() {
    let output = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .args(["simulate", "--master", "http://127.0.0.1:1"])
        .output()
        .expect("the binary ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot list nodes of http://127.0.0.1:1"), "{stderr}");
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_supercargo"))
        .arg("simulate")
        .env("HOME", folder.path())
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .output()
        .expect("the binary ends");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("--kubeconfig") && stderr.contains("--cluster"), "{stderr}");
}
