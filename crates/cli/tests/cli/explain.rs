//! `supercargo explain`.

use crate::invocation::{project, run, supercargo};

fn explain(arguments: &str) -> crate::invocation::Ran {
    supercargo(&format!("explain {arguments} --cluster examples/cluster --pods examples/pods.yaml -q"))
}

#[test]
fn shows_who_gave_what() {
    insta::assert_snapshot!(explain("shop/cart-84c7d5f6b-lw8pd --raw"));
}

#[test]
fn the_pod_and_the_flags_may_stand_in_any_order() {
    let one = supercargo("explain thumbnails --cluster examples/cluster --pods examples/pods.yaml -q");
    assert_eq!(one.code, Some(0));
    for other in [
        "explain --cluster examples/cluster --pods examples/pods.yaml thumbnails -q",
        "explain -q --cluster examples/cluster thumbnails --pods examples/pods.yaml",
        "explain -q --cluster examples/cluster --cluster examples/pods.yaml thumbnails",
        "explain -q --cluster examples/cluster,examples/pods.yaml thumbnails",
    ] {
        assert_eq!(supercargo(other).stdout, one.stdout, "{other}");
    }
}

#[test]
fn tells_how_a_tie_was_broken() {
    insta::assert_snapshot!(explain("thumbnails"));
}

#[test]
fn shows_what_is_wrong_with_every_node() {
    insta::assert_snapshot!(explain("train-llm --all-nodes"));
}

#[test]
fn tells_who_would_have_to_go() {
    insta::assert_snapshot!(explain("settlement"));
}

#[test]
fn a_running_pod_is_explained_as_if_it_were_pending() {
    insta::assert_snapshot!(explain("postgres-0"));
}

#[test]
fn tells_what_holds_a_pod_back() {
    insta::assert_snapshot!(explain("backfill"));
}

#[test]
fn tables_are_split_where_they_do_not_fit() {
    let ran = {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_supercargo"));
        let arguments =
            "explain cart-84c7d5f6b-lw8pd --cluster examples/cluster --pods examples/pods.yaml -q";
        command.args(arguments.split(' ')).current_dir(project()).env("COLUMNS", "72");
        String::from_utf8(command.output().expect("the binary runs").stdout).expect("text")
    };
    assert!(ran.lines().all(|line| line.chars().count() <= 72), "{ran}");
    insta::assert_snapshot!(ran);
}

#[test]
fn says_the_same_as_simulate() {
    let simulated =
        supercargo("simulate --cluster examples/cluster --pods examples/pods.yaml -q -o json --seed 3");
    for line in simulated.stdout.lines() {
        let simulated: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let pod = simulated["pod"].as_str().expect("a name");
        let explained = explain(&format!("{pod} -o json --seed 3"));
        let explained: serde_json::Value = serde_json::from_str(&explained.stdout).expect("JSON");
        for (field, value) in simulated.as_object().expect("an object") {
            assert_eq!(explained.get(field), Some(value), "{pod}: {field}");
        }
    }
}

#[test]
fn an_unknown_pod_is_answered_with_near_ones() {
    insta::assert_snapshot!(explain("postgrs-2"));
}

#[test]
fn a_name_that_several_pods_have_needs_a_namespace() {
    let pods = "apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: p, namespace: a}\n- metadata: {name: p, namespace: b}\n";
    insta::assert_snapshot!(run(&project(), "explain p --cluster -", pods));
}

#[test]
fn a_pod_of_another_scheduler_is_not_ours_to_explain() {
    let pods = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {schedulerName: volcano}\n";
    insta::assert_snapshot!(run(&project(), "explain p --cluster -", pods));
}
