//! Plugins in WebAssembly, offline: config check, effective and schema; simulate and explain.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::invocation::{Ran, project, run};

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

/// The guest in AssemblyScript, from the text that is checked in.
fn assemblyscript(config_args: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        fs::read_to_string(project().join("examples/guest-assemblyscript/coolest.wat")).expect("the text");
    let nodes = "
apiVersion: v1
kind: NodeList
items:
- metadata: {name: empty}
  status: {allocatable: {pods: 10, cpu: 4, memory: 8Gi}}
- metadata: {name: small}
  status: {allocatable: {pods: 10, cpu: 2, memory: 8Gi}}
- metadata: {name: hot, annotations: {example.com/temperature: '71.5'}}
  status: {allocatable: {pods: 10, cpu: 64, memory: 512Gi}}
";
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: \
               {requests: {cpu: 1, memory: 1Gi}}}]}}";
    let config = format!(
        "{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{{plugins: \
         {{multiPoint: {{enabled: [{{name: Coolest, weight: 10}}]}}}}, pluginConfig: [{{name: Coolest, \
         args: {{path: coolest.wasm, args: {config_args}}}}}]}}]}}"
    );
    let module = wat::parse_str(text).expect("a module");
    let files: [(&str, &[u8]); 4] = [
        ("nodes.yaml", nodes.as_bytes()),
        ("pod.yaml", pod.as_bytes()),
        ("config.yaml", config.as_bytes()),
        ("coolest.wasm", &module),
    ];
    for (name, content) in files {
        fs::write(folder.path().join(name), content).expect("a file");
    }
    folder
}

#[test]
fn the_guest_in_assemblyscript_filters_and_scores() {
    let folder = assemblyscript("{limit: 70}");
    let ran =
        run(folder.path(), "explain p --cluster nodes.yaml --pods pod.yaml --config config.yaml -o json", "");
    assert_eq!(ran.code, Some(0), "{ran}");
    let explained: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(explained["rejected"]["hot"]["plugin"], "Coolest", "{ran}");
    assert!(ran.stdout.contains("node(s) were too hot"), "{ran}");
    assert_eq!(explained["placed"], "empty");
    // empty: 3 of 4 cpu and 7 of 8 Gi are left, 75 and 87; small: 1 of 2 and 7 of 8, 50 and 87
    assert_eq!(explained["plugins"]["Coolest"]["scores"], serde_json::json!([75, 50]), "{ran}");
    let wrong = assemblyscript("{limit: warm}");
    let ran = run(wrong.path(), "config check config.yaml", "");
    assert!(ran.code == Some(2) && ran.stderr.contains("limit must be a whole number of degrees"), "{ran}");
}

#[test]
fn the_guest_in_assemblyscript_is_made_from_its_sources() {
    let read =
        |name: &str| fs::read(project().join("examples/guest-assemblyscript").join(name)).expect("a source");
    let bytes = ["index.ts", "supercargo.ts"].map(read).concat();
    // FNV-1a, as stamp.mjs has it.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let text = String::from_utf8(read("coolest.wat")).expect("text");
    let stamp = format!("from sources with the hash {hash:016x}.");
    let hint = "coolest.wat is stale: (cd examples/guest-assemblyscript && npm install && npm run build)";
    assert!(text.lines().next().is_some_and(|line| line.ends_with(&stamp)), "{hint}");
}
