//! Bad input: what is wrong, where, how to mend it; exit code 2, and nothing on stdout.

use crate::invocation::{Ran, data, run};

fn simulate(file: &str) -> Ran {
    let ran = run(&data(), &format!("simulate --cluster {file}"), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran}");
    ran
}

#[test]
fn broken_yaml() {
    insta::assert_snapshot!(simulate("bad/broken.yaml").stderr);
}

#[test]
fn a_quantity_that_is_none() {
    insta::assert_snapshot!(simulate("bad/quantity.yaml").stderr);
}

#[test]
fn a_bad_operator() {
    insta::assert_snapshot!(simulate("bad/operator.yaml").stderr);
}

#[test]
fn a_pod_without_a_name() {
    insta::assert_snapshot!(simulate("bad/noname.yaml").stderr);
}

#[test]
fn a_device_is_no_file() {
    for command in ["config check", "simulate --cluster", "dynamic-scoring check", "config migrate"] {
        let ran = run(&data(), &format!("{command} /dev/zero"), "");
        assert_eq!(ran.code, Some(2), "{command}: {ran}");
        assert!(ran.stderr.contains("it is a device"), "{command}: {ran}");
    }
    let piped = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";
    assert_eq!(run(&data(), "config check /dev/stdin", piped).code, Some(0));
}

#[test]
fn an_object_twice() {
    insta::assert_snapshot!(simulate("bad/twice.yaml").stderr);
}

#[test]
fn the_same_file_twice() {
    let folder = data().join("../../../..");
    let ran = run(&folder, "simulate --cluster examples/pods.yaml --pods examples/pods.yaml", "");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("note: 11 objects are in several files; the last one counts"), "{ran}");
}

#[test]
fn an_error_page_for_a_cluster() {
    let page = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "nodes is forbidden: User \"nobody\" cannot list resource \"nodes\"", "code": 403}"#;
    let ran = run(&data(), "simulate --cluster -", page);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("nodes is forbidden: User \"nobody\""), "{ran}");
}

#[test]
fn a_misspelt_field_of_a_pod() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  nodeSelectr: {disk: ssd}\n";
    insta::assert_snapshot!(run(&data(), "simulate --cluster -", pod).stderr);
}

#[test]
fn all_problems_of_a_list_at_once() {
    insta::assert_snapshot!(simulate("bad/group.yaml").stderr);
}

#[test]
fn a_missing_file() {
    insta::assert_snapshot!(simulate("bad/quantty.yaml").stderr);
}

#[test]
fn nothing_on_stdin() {
    insta::assert_snapshot!(simulate("-").stderr);
}

#[test]
fn stdin_twice() {
    insta::assert_snapshot!(simulate("- --cluster -").stderr);
}

#[test]
fn bytes_that_are_no_text() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("bytes.yaml"), b"kind: Pod\nmetadata: \xff\n").expect("written");
    std::fs::write(folder.path().join("packed.json.gz"), b"\x1f\x8b\x08 and no more").expect("written");
    let ran = run(folder.path(), "simulate --cluster bytes.yaml,packed.json.gz", "");
    assert_eq!(ran.code, Some(2));
    insta::assert_snapshot!(ran.stderr);
}

#[test]
fn a_bad_configuration_and_bad_objects_are_told_together() {
    let ran = run(&data(), "simulate --cluster bad/quantity.yaml --config bad/noname.yaml", "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("bad/quantity.yaml:7:10"), "{ran}");
    assert!(ran.stderr.contains("bad/noname.yaml:"), "{ran}");
}

#[test]
fn no_arguments_at_all() {
    assert_eq!(run(&data(), "", "").code, Some(2));
    assert_eq!(run(&data(), "simulate", "").code, Some(2));
    assert_eq!(run(&data(), "conformance", "").code, Some(2));
    assert_eq!(run(&data(), "conformance --trace trace.jsonl", "").code, Some(2));
}
