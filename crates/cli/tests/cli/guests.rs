//! Plugins in WebAssembly, offline: config check, effective and schema; simulate and explain.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::invocation::{Ran, run};

const PAGE: &str = include_str!("../../../wasm/ABI.md");

const NODES: &str = "
apiVersion: v1
kind: NodeList
items:
- metadata: {name: plain, labels: {points: '10'}}
  status: {allocatable: {pods: 10, cpu: 4, memory: 8Gi}}
- metadata: {name: good, labels: {points: '40', gpu: a100}}
  status: {allocatable: {pods: 10, cpu: 4, memory: 8Gi}}
- metadata: {name: better, labels: {points: '80'}}
  status: {allocatable: {pods: 10, cpu: 4, memory: 8Gi}}
";

const CONFIG: &str = "apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint: {enabled: [{name: Points, weight: 10}]}
  pluginConfig:
  - name: Points
    args: {path: guests/points.wasm}
";

const PODS: &str = "
apiVersion: v1
kind: PodList
items:
- {metadata: {name: any}, spec: {containers: [{name: c}]}}
- {metadata: {name: picky, labels: {needs-gpu: 'yes'}}, spec: {containers: [{name: c}]}}
";

/// A folder with the guest that the page on the ABI shows, beside the configuration.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, rest) = PAGE.split_once("```wat\n").expect("the guest");
    let module = wat::parse_str(rest.split_once("\n```").expect("its end").0).expect("a module");
    fs::create_dir_all(folder.path().join("etc/guests")).expect("a folder");
    let files: [(&str, &[u8]); 4] = [
        ("nodes.yaml", NODES.as_bytes()),
        ("etc/config.yaml", CONFIG.as_bytes()),
        ("pods.yaml", PODS.as_bytes()),
        ("etc/guests/points.wasm", &module),
    ];
    for (name, content) in files {
        fs::write(folder.path().join(name), content).expect("a file");
    }
    folder
}

fn supercargo(arguments: &str) -> Ran {
    run(Path::new(folder().path()), arguments, "")
}

#[test]
fn config_check_loads_the_guest() {
    insta::assert_snapshot!(supercargo("config check etc/config.yaml"));
}

#[test]
fn config_check_tells_what_is_wrong_with_the_guest() {
    let folder = folder();
    fs::write(folder.path().join("etc/guests/points.wasm"), "not yet").expect("a file");
    insta::assert_snapshot!(run(folder.path(), "config check etc/config.yaml", ""));
}

#[test]
fn config_effective_shows_the_guest_at_its_points() {
    let ran = supercargo("config effective etc/config.yaml -o yaml").to_string();
    assert!(ran.contains("name: Points"), "{ran}");
    assert!(ran.contains("path: guests/points.wasm"), "{ran}");
}

#[test]
fn config_schema_allows_other_names() {
    let ran = supercargo("config schema").to_string();
    assert!(ran.contains("anyOf"), "{ran}");
}

#[test]
fn simulate_places_as_the_guest_wants() {
    insta::assert_snapshot!(supercargo(
        "simulate --cluster nodes.yaml --pods pods.yaml --config etc/config.yaml"
    ));
}

#[test]
fn explain_shows_the_guests_scores_and_reasons() {
    insta::assert_snapshot!(supercargo(
        "explain picky --cluster nodes.yaml --pods pods.yaml --config etc/config.yaml"
    ));
}
