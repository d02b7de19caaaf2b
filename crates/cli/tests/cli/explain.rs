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
fn names_are_taken_as_kubectl_takes_them() {
    let plain = explain("batch/thumbnails").stdout;
    for name in [
        "pod/thumbnails",
        "pods/thumbnails -n batch",
        "thumbnails -n batch",
        "pod/thumbnails --namespace=batch",
    ] {
        assert_eq!(explain(name).stdout, plain, "{name}");
    }
    assert_eq!(explain("thumbnails -n shop").code, Some(2));
}

#[test]
fn a_link_makes_it_a_plugin_of_kubectl() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("kubectl-supercargo");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_supercargo"), &link).expect("a link");
    let run = |arguments: &str| {
        let mut command = std::process::Command::new(&link);
        let output = command.args(arguments.split(' ')).current_dir(project()).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let given = "explain pod/thumbnails -n batch --cluster examples/cluster,examples/pods.yaml -q";
    assert_eq!(run(given), explain("thumbnails").stdout);
    assert!(run("explain -h").contains("Usage: kubectl supercargo explain"), "{}", run("explain -h"));
}

#[test]
fn tells_why_not_a_node_with_numbers_and_names() {
    insta::assert_snapshot!(explain(
        "cart-84c7d5f6b-lw8pd --top 1 --node general-c1 --node gpu-a1,infra-c1,general-b1,general-a2"
    ));
    let unknown = explain("cart-84c7d5f6b-lw8pd --node general-x1");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(
        unknown.stderr.contains("there is no node general-x1\nhint: did you mean general-a1?"),
        "{unknown}"
    );
}

fn explain_devices(arguments: &str) -> crate::invocation::Ran {
    let files = "--cluster examples/devices/cluster.yaml --pods examples/devices/pods.yaml";
    supercargo(&format!("explain {arguments} {files} -q"))
}

#[test]
fn tells_which_devices_are_allotted_and_what_is_left() {
    insta::assert_snapshot!(explain_devices("inference --top 1 --node mig-a1,acc-b1"));
}

#[test]
fn tells_what_keeps_each_device_from_a_claim() {
    insta::assert_snapshot!(explain_devices("paired --node acc-a1,acc-b1,mig-a1,plain-a1"));
    insta::assert_snapshot!(explain_devices("observer --node acc-b1"));
    let ran = explain_devices("paired --node acc-a1 -o json");
    let explained: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let details = &explained["whyNot"][0]["objections"][0]["details"];
    assert_eq!(details[0]["claim"], "default/paired-gpus", "{details}");
}

#[test]
fn json_has_objects_by_node_and_no_nulls() {
    let ran = explain("cart-84c7d5f6b-lw8pd -o json --node general-c1 --node spot-a1");
    assert_eq!(ran.stdout.lines().count(), 1, "compact unless asked otherwise");
    let explained: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let best = &explained["nodes"][0];
    assert_eq!(
        (&best["name"], &best["rank"], &best["total"]),
        (&"general-a2".into(), &1.into(), &766.into())
    );
    // 80 × 2
    let spread = serde_json::json!({"raw": 8, "normalized": 80, "weight": 2, "points": 160});
    assert_eq!(best["plugins"]["PodTopologySpread"], spread);
    assert!(explained["seed"].is_string(), "a number would lose digits");
    let [refused, behind] = [&explained["whyNot"][0], &explained["whyNot"][1]];
    assert_eq!((&refused["feasible"], &refused["objections"][0]["reported"]), (&false.into(), &true.into()));
    // 766 − 483
    assert_eq!((&behind["feasible"], &behind["behind"]), (&true.into(), &283.into()));
    assert!(!ran.stdout.contains("null"), "{}", ran.stdout);
    let pretty = explain("cart-84c7d5f6b-lw8pd -o json --pretty");
    assert!(pretty.stdout.lines().count() > 100);
}

#[test]
fn says_when_the_search_stopped_early() {
    let nodes: String = (0..300)
        .map(|i| format!("- {{apiVersion: v1, kind: Node, metadata: {{name: n{i}}}, status: {{allocatable: {{cpu: '4', memory: 8Gi, pods: '10'}}}}}}\n"))
        .collect();
    let pod = "- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: [{name: c}]}}\n";
    let all = format!("apiVersion: v1\nkind: List\nitems:\n{nodes}{pod}");
    // 300 nodes: 50 − 300 / 125 = 48 percent, 144 nodes are enough.
    let ran = run(&project(), "explain p --cluster - --top 1 -q", &all);
    assert!(
        ran.stdout.contains("144 feasible among the first 144 of 300 nodes (the search stopped early)"),
        "{ran}"
    );
    assert!(ran.stdout.contains("Not looked at: 156 of 300 nodes"), "{ran}");
    let simulated = run(&project(), "simulate --cluster - -q", &all);
    assert!(simulated.stdout.contains("144 of 144 seen"), "{simulated}");
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
