use serde_json::{Value, json};
use supercargo_framework::event::Change;
use supercargo_manifest::Source;
use supercargo_model::testing::{cluster, node, pod};

use super::*;
use supercargo_framework::testing::{filter, score};

fn required(terms: Value) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}})
}

fn expression(key: &str, operator: &str, values: &[&str]) -> Value {
    json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])
}

#[test]
fn operators() {
    let cluster = cluster([
        node("a").label("disk", "ssd").label("gen", "9"),
        node("b").label("disk", "hdd").label("gen", "10"),
        node("c").label("gen", "x9"),
    ]);
    // (terms, which of a, b and c match)
    let cases = [
        (expression("disk", "In", &["ssd"]), "a"),
        (expression("disk", "In", &["ssd", "hdd"]), "ab"),
        (expression("disk", "NotIn", &["ssd"]), "bc"),
        (expression("disk", "Exists", &[]), "ab"),
        (expression("disk", "DoesNotExist", &[]), "c"),
        // As numbers: 10 > 9. A label that is no number matches neither.
        (expression("gen", "Gt", &["9"]), "b"),
        (expression("gen", "Lt", &["10"]), "a"),
        // A term that cannot be read matches nothing.
        (expression("gen", "Gt", &["nine"]), ""),
        (expression("disk", "In", &[]), ""),
        (json!([{}]), ""),
        (json!([]), ""),
        // Any term may match.
        (
            json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]},
                   {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]),
            "ac",
        ),
        (json!([{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["c"]}]}]), "ab"),
    ];
    for (terms, expected) in cases {
        let pod = pod("p").set("/spec/affinity/nodeAffinity", required(terms.clone())).pod();
        let matching: String = (filter(&NodeAffinity::default(), &cluster, &pod).iter())
            .zip("abc".chars())
            .filter(|(verdict, _)| *verdict == "ok")
            .map(|(_, name)| name)
            .collect();
        assert_eq!(matching, expected, "{terms}");
    }
}

#[test]
fn node_selector_and_affinity_must_both_hold() {
    let cluster =
        cluster([node("a").label("disk", "ssd").label("zone", "z1"), node("b").label("disk", "ssd")]);
    let pod = pod("p")
        .set("/spec/nodeSelector", json!({"zone": "z1"}))
        .set("/spec/affinity/nodeAffinity", required(expression("disk", "In", &["ssd"])))
        .pod();
    assert_eq!(filter(&NodeAffinity::default(), &cluster, &pod), ["ok", NOT_MATCHED]);
}

#[test]
fn pods_without_wishes_are_skipped() {
    let outcome = NodeAffinity::default().pre_filter(&Cluster::default(), &pod("p").pod());
    assert!(matches!(outcome, Ok(PreFilterOutcome::Skip)));
}

#[test]
fn named_nodes_narrow_the_search() {
    let by_name = |names: &[&str]| json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]});
    let two = |a: &str, b: &str| {
        json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [a]},
                               {"key": "metadata.name", "operator": "In", "values": [b]}]})
    };
    // (terms, nodes or refusal)
    let cases = [
        (json!([by_name(&["a"])]), Ok(Some("a"))),
        (json!([by_name(&["a"]), by_name(&["b"])]), Ok(Some("ab"))),
        (json!([two("a", "a")]), Ok(Some("a"))),
        (json!([two("a", "b")]), Err(CONFLICT)),
        (json!([two("a", "b"), by_name(&["c"])]), Ok(Some("c"))),
        (json!([by_name(&["a"]), {"matchExpressions": [{"key": "x", "operator": "Exists"}]}]), Ok(None)),
    ];
    for (terms, expected) in cases {
        let pod = pod("p").set("/spec/affinity/nodeAffinity", required(terms.clone())).pod();
        let found = match NodeAffinity::default().pre_filter(&Cluster::default(), &pod) {
            Ok(PreFilterOutcome::Go { nodes, .. }) => {
                Ok(nodes.map(|nodes| nodes.iter().map(|n| &**n).collect::<String>()))
            }
            Ok(PreFilterOutcome::Skip) => panic!("skipped"),
            Err(status) => Err(status.message()),
        };
        assert_eq!(found, expected.map(|n| n.map(str::to_owned)).map_err(str::to_owned), "{terms}");
    }
}

#[test]
fn preferred_terms_add_up() {
    let cluster = cluster([
        node("a").label("disk", "ssd").label("zone", "z1"),
        node("b").label("disk", "ssd"),
        node("c"),
    ]);
    let prefers = |key: &str, value: &str, weight: i32| json!({"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}});
    let pod = pod("p")
        .set(
            "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
            json!([prefers("disk", "ssd", 10), prefers("zone", "z1", 30), {"weight": 99, "preference": {}}]),
        )
        .pod();
    let (raw, normalized) = score(&NodeAffinity::default(), &cluster, &pod).unwrap();
    // a: 10 + 30, b: 10; an empty preference matches nothing
    assert_eq!(raw, [40, 10, 0]);
    // 100 × 40 / 40, 100 × 10 / 40, 0
    assert_eq!(normalized, [100, 25, 0]);
}

#[test]
fn an_unreadable_preference_ends_the_cycle() {
    let pod = pod("p")
        .set(
            "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
            json!([{"weight": 1, "preference": {"matchExpressions": [{"key": "gen", "operator": "Gt", "values": ["x"]}]}}]),
        )
        .pod();
    let Err(status) = NodeAffinity::default().pre_score(&Cluster::default(), &pod, &[]) else {
        panic!("an error");
    };
    assert_eq!(status.code, supercargo_framework::Code::Error);
}

fn with_args(text: &str) -> Result<NodeAffinity, Problems> {
    let source = Source::new("config.yaml", text);
    let documents = supercargo_manifest::read(&source).unwrap();
    NodeAffinity::new(&Args::new(&source, &documents[0], "args"))
}

#[test]
fn added_affinity_counts_for_every_pod() {
    let plugin = with_args(
        "addedAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchExpressions: [{key: disk, operator: In, values: [ssd]}]
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 30
    preference:
      matchExpressions: [{key: zone, operator: In, values: [z1]}]
",
    )
    .unwrap();
    let cluster = cluster([
        node("a").label("disk", "ssd").label("zone", "z1"),
        node("b").label("disk", "ssd"),
        node("c"),
    ]);
    let pod = pod("p").pod();
    assert_eq!(filter(&plugin, &cluster, &pod), ["ok", "ok", NOT_ENFORCED]);
    let (raw, _) = score(&plugin, &cluster, &pod).unwrap();
    assert_eq!(raw, [30, 0, 0]);
}

#[test]
fn bad_added_affinity_is_told_with_its_place() {
    let Err(problems) = with_args(
        "addedAffinity:
  preferredDuringSchedulingIgnoredDuringExecution:
  - weight: 1
    preference:
      matchExpressions: [{key: gen, operator: Gt, values: [x]}]
",
    ) else {
        panic!("a problem");
    };
    let paths: Vec<&str> = problems.0.iter().map(|p| p.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "args.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchExpressions[0].values[0]",
        ]
    );
}

#[test]
fn only_a_node_that_comes_to_match_helps() {
    let pod = pod("p").set("/spec/nodeSelector", json!({"disk": "ssd"})).pod();
    let (plain, ssd) = (node("n").node(), node("n").label("disk", "ssd").node());
    let interest = &NodeAffinity::default().events()[0];
    let helps = |before, after| {
        let change = Change::Node(before, Some(after));
        interest.helps(
            &supercargo_model::Cluster::default(),
            EventResource::Node,
            ActionType::UpdateNodeLabel,
            &pod,
            &change,
        )
    };
    assert!(helps(Some(&plain), &ssd));
    assert!(helps(None, &ssd));
    assert!(!helps(Some(&ssd), &ssd));
    assert!(!helps(None, &plain));
}
