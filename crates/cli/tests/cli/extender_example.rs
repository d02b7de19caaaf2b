//! The extender of examples/extender, asked over HTTP by the real command.

use std::{fs, net::TcpListener, thread};

use serde_json::Value;

use crate::invocation::{Ran, project, run};

/// The example, as it is run by itself.
#[path = "../../../../examples/extender/extender.rs"]
#[allow(dead_code, reason = "its main is for those who run it")]
mod extender;

/// Runs the command with the example's configuration, the example on a port of its own, and pods on stdin.
fn with_extender(arguments: &str, pods: &str) -> Ran {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    // It ends with the process.
    thread::spawn(move || extender::listen(&listener));
    let config = fs::read_to_string(project().join("examples/extender/config.yaml")).expect("the example");
    let config = config.replace("http://127.0.0.1:8888", &address);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config.yaml");
    fs::write(&file, config).expect("a file");
    let given = format!("--cluster examples/cluster --pods - --config {}", file.display());
    run(&project(), &format!("{arguments} {given}"), pods)
}

#[test]
fn it_refuses_what_is_too_dear_and_prefers_what_is_cheap() {
    let pods = fs::read_to_string(project().join("examples/pods.yaml")).expect("the example");
    let ran = with_extender("-q explain cart-84c7d5f6b-lw8pd -o json", &pods);
    assert_eq!(ran.code, Some(0), "{ran}");
    let explained: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let plugins = explained["plugins"].as_object().expect("plugins");
    let (_, scores) = plugins.iter().find(|(name, _)| name.starts_with("http://")).expect("the extender");
    assert_eq!(scores["weight"], 2);
    // general nodes cost 40, spot nodes 12: 10 − 10 × 40 ÷ 40 = 0, and 10 − 10 × 12 ÷ 40 = 7, each × 10
    let scores: Vec<i64> = scores["scores"].as_array().unwrap().iter().filter_map(Value::as_i64).collect();
    assert!(scores.contains(&0) && scores.contains(&70), "{scores:?}");
    assert!(scores.iter().all(|score| [0, 70].contains(score)), "{scores:?}");
}

#[test]
fn its_reasons_are_told() {
    // A gpu node costs 310 cents, and payments may spend 40.
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: dear, namespace: payments}\nspec:\n  \
               nodeSelector: {example.com/pool: gpu}\n  tolerations: [{operator: Exists}]\n  \
               containers: [{name: c, image: i}]\n";
    let ran = with_extender("-q explain payments/dear", pod);
    assert_eq!(ran.code, Some(0), "{ran}");
    let told = "2 node(s) cost more than 40 cents an hour";
    let text = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("is unschedulable") && text.contains(told), "{ran}");
}
