//! Which labels are valid, and what selectors select.

use serde_json::{Value, json};
use supercargo_model::{
    Labels,
    bits::Bits,
    labels::{is_valid_key, is_valid_value},
    selection::NodeSelection,
    selector::{NodeSelectorTerm, Selector},
    testing::{self, cluster},
};

#[test]
fn label_keys() {
    let long = "a".repeat(63);
    let longer = "a".repeat(64);
    let domain = ["b"; 127].join("."); // 253 characters
    let valid = [
        "a".to_owned(),
        "A-b_c.9".to_owned(),
        "9".to_owned(),
        "kubernetes.io/hostname".to_owned(),
        "a-b.c9/X_y".to_owned(),
        long.clone(),
        format!("example.com/{long}"),
        format!("{domain}/a"),
    ];
    for key in valid {
        assert!(is_valid_key(&key), "{key}");
    }
    let invalid = [
        String::new(),
        "-a".to_owned(),
        "a-".to_owned(),
        ".a".to_owned(),
        "a b".to_owned(),
        "ä".to_owned(),
        "/a".to_owned(),
        "a/".to_owned(),
        "a/b/c".to_owned(),
        "Example.com/a".to_owned(),
        "example..com/a".to_owned(),
        "-example.com/a".to_owned(),
        "exa_mple.com/a".to_owned(),
        longer.clone(),
        format!("example.com/{longer}"),
        format!("{domain}b/a"),
    ];
    for key in invalid {
        assert!(!is_valid_key(&key), "{key}");
    }
}

#[test]
fn label_values() {
    for value in ["", "a", "A-b_c.9", "007", &"a".repeat(63)] {
        assert!(is_valid_value(value), "{value}");
    }
    for value in ["-a", "a-", "_", "a b", "a/b", "ä", &"a".repeat(64)] {
        assert!(!is_valid_value(value), "{value}");
    }
}

fn labels(value: Value) -> Labels {
    serde_json::from_value(value).unwrap()
}

#[test]
fn labels_are_found_by_key() {
    let labels = labels(json!({"b": "2", "a": "1", "c": ""}));
    assert_eq!(labels.get("a").map(|v| &**v), Some("1"));
    assert_eq!(labels.get("c").map(|v| &**v), Some(""));
    assert_eq!(labels.get("d"), None);
    assert_eq!((labels.len(), labels.has("b"), labels.has("B")), (3, true, false));
    let keys: Vec<&str> = labels.iter().map(|(k, _)| &**k).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    let last_wins: Labels = [("a", "1"), ("a", "2")].into_iter().collect();
    assert_eq!(last_wins.get("a").map(|v| &**v), Some("2"));
}

#[test]
fn label_selectors() {
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let web = || labels(json!({"app": "web", "tier": ""}));
    // (selector, selects app=web,tier=)
    let cases = [
        (json!({}), true),
        (json!({"matchLabels": {}, "matchExpressions": []}), true),
        (json!({"matchLabels": {"app": "web"}}), true),
        (json!({"matchLabels": {"app": "db"}}), false),
        (json!({"matchLabels": {"app": "web", "zone": "z1"}}), false),
        (json!({"matchLabels": {"tier": ""}}), true),
        (json!({"matchLabels": {"zone": ""}}), false),
        (expression("app", "In", &["db", "web"]), true),
        (expression("app", "In", &["db"]), false),
        (expression("zone", "In", &["z1"]), false),
        (expression("app", "NotIn", &["db"]), true),
        (expression("app", "NotIn", &["db", "web"]), false),
        (expression("zone", "NotIn", &["z1"]), true),
        (expression("tier", "Exists", &[]), true),
        (expression("zone", "Exists", &[]), false),
        (expression("zone", "DoesNotExist", &[]), true),
        (expression("tier", "DoesNotExist", &[]), false),
    ];
    for (written, expected) in cases {
        let selector: Selector = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(selector.matches(&web()), expected, "{written}");
    }
}

#[test]
fn an_absent_selector_selects_nothing_and_an_empty_one_everything() {
    let absent = Selector::default();
    let empty: Selector = serde_json::from_value(json!({})).unwrap();
    for labels in [Labels::default(), labels(json!({"a": "1"}))] {
        assert!(!absent.matches(&labels));
        assert!(empty.matches(&labels));
    }
    assert!(empty.is_empty());
    assert!(!absent.is_empty());
}

#[test]
fn label_selectors_that_cannot_be_read() {
    let cases = [
        json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "in", "values": ["1"]}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": []}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["1"]}]}),
        json!({"matchExpressions": [{"key": "-a", "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b c"]}]}),
        json!({"matchExpressions": [{"operator": "Exists"}]}),
    ];
    for written in cases {
        assert!(serde_json::from_value::<Selector>(written.clone()).is_err(), "{written}");
    }
}

#[test]
fn node_selector_terms() {
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let field = |key: &str, operator: &str, values: &[&str]| json!({"matchFields": [{"key": key, "operator": operator, "values": values}]});
    const MOST: &str = "9223372036854775807";
    // (term, matches the node `n` with cores=8, big=2⁶³−1, word=eight; readable)
    let cases = [
        (json!({}), false, true),
        (expression("cores", "Gt", &["7"]), true, true),
        (expression("cores", "Gt", &["8"]), false, true),
        // A number with a sign is no label value.
        (expression("cores", "Gt", &["-1"]), false, false),
        (expression("cores", "Lt", &["+9"]), false, false),
        (expression("cores", "Lt", &["9"]), true, true),
        (expression("cores", "Lt", &["8"]), false, true),
        (expression("big", "Gt", &["9223372036854775806"]), true, true),
        (expression("big", "Gt", &[MOST]), false, true),
        (expression("big", "Lt", &["9223372036854775808"]), false, false),
        (expression("word", "Gt", &["1"]), false, true),
        (expression("absent", "Lt", &["1"]), false, true),
        (expression("cores", "Gt", &["seven"]), false, false),
        (expression("cores", "Gt", &[]), false, false),
        (expression("cores", "Gt", &["1", "2"]), false, false),
        (expression("cores", "In", &[]), false, false),
        (expression("cores", "Exists", &["8"]), false, false),
        (expression("no key", "DoesNotExist", &[]), false, false),
        (field("metadata.name", "In", &["n"]), true, true),
        (field("metadata.name", "In", &["m"]), false, true),
        (field("metadata.name", "NotIn", &["m"]), true, true),
        (field("metadata.name", "In", &["n", "m"]), false, false),
        (field("metadata.name", "Exists", &[]), false, false),
        // A field that nodes do not have reads as empty.
        (field("metadata.namespace", "NotIn", &["n"]), true, true),
        (field("metadata.namespace", "In", &["n"]), false, true),
    ];
    let written = json!({"cores": "8", "big": MOST, "word": "eight"});
    let node = labels(written.clone());
    // The same by way of the index, among others.
    let cluster = cluster(["l", "n", "o"].map(|name| {
        let written = if name == "n" { written.clone() } else { json!({"cores": "1"}) };
        testing::node(name).set("/metadata/labels", written)
    }));
    let place = |name: &str| cluster.node(name).unwrap().id.index();
    let mut selection = NodeSelection::new(&cluster);
    for (written, matches, readable) in cases {
        let term: NodeSelectorTerm = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(term.defect().is_none(), readable, "{written}");
        assert_eq!(term.matches("n", &node), matches, "{written}");
        let mut selected = Bits::default();
        selection.select(&term, &mut selected);
        assert_eq!(selected.contains(place("n")), matches, "{written}");
        let other = &cluster.node("o").unwrap().node;
        assert_eq!(selected.contains(place("o")), term.matches("o", &other.labels), "{written}");
    }
}
