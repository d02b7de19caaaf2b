use serde_json::{Value, json};
use supercargo_framework::{
    Prepared,
    fast::{CLOSED, Compiled, FastScore, RawScores, ScorePart},
};
use supercargo_model::{
    Timestamp,
    testing::{Builder, cluster, node, object, pod},
};

use super::*;
use supercargo_framework::testing::by_name;

const NOW: &str = "2020-12-10T12:00:00Z";

/// A text with these entries.
fn text(entries: &Value) -> String {
    let text = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "DynamicScoring", "dynamicScores": entries,
    });
    text.to_string()
}

fn config_map(text: &str) -> Builder {
    object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "scores"}, "data": {"now.yaml": text}}))
}

fn plugin() -> Arc<DynamicScoring> {
    let args = "{configMap: {namespace: kube-system, name: scores}, key: now.yaml}";
    let source = Source::new("args", args);
    let documents = supercargo_manifest::read(&source).unwrap();
    Arc::new(DynamicScoring::new(&Args::new(&source, &documents[0], "")).unwrap())
}

/// The cluster with a text and the time.
fn told(nodes: &[Builder], text: &str) -> Cluster {
    let mut cluster = cluster(nodes.iter().cloned().chain([config_map(text)]));
    cluster.set_now(NOW.parse().unwrap());
    cluster
}

/// The scores before and after normalizing, of all nodes by name.
fn scores(cluster: &Cluster) -> Result<(Vec<i64>, Vec<i64>), Status> {
    let nodes = by_name(cluster);
    let (plugin, pod) = (plugin(), pod("p").pod());
    let input = ScoreInput { prepared: &Prepared::nothing(), cluster, pod: &pod, nodes: &nodes };
    let mut raw = vec![7; nodes.len()];
    plugin.score(input, &mut raw)?;
    let mut normalized = raw.clone();
    plugin.normalize(input, &mut normalized)?;
    Ok((raw, normalized))
}

/// The names of the nodes that a selector selects.
fn selected(nodes: &[Builder], selector: Value) -> String {
    let cluster = told(nodes, &text(&json!([{"score": 1, "selector": selector}])));
    let (raw, _) = scores(&cluster).unwrap();
    let names = by_name(&cluster).into_iter().zip(raw).filter(|(_, raw)| *raw == 1);
    names.map(|(node, _)| node.name().to_string()).collect::<Vec<_>>().join(" ")
}

fn label(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"matchLabelExpressions": [{"key": key, "operator": operator, "values": values}]})
}

#[test]
fn scores_add_up_and_are_mapped_with_zero() {
    let nodes = [
        node("a").label("disk", "ssd").label("zone", "x"),
        node("b").label("disk", "ssd"),
        node("c").label("zone", "x"),
        node("d"),
    ];
    let entries = |ssd: i32, x: i32| {
        json!([{"score": ssd, "selector": label("disk", "In", &["ssd"])},
               {"score": x, "selector": label("zone", "In", &["x"])}])
    };
    let cases = [
        // a: 20 + 10. Lowest 0, highest 30: 100 × 20 / 30 = 66, 100 × 10 / 30 = 33
        (20, 10, [30, 20, 10, 0], [100, 66, 33, 0]),
        // a: 20 − 30. Lowest −30, highest 20: a 100 × 20 / 50, b 100 × 50 / 50, c 0, d 100 × 30 / 50
        (20, -30, [-10, 20, -30, 0], [40, 100, 0, 60]),
        // Lowest −15, highest 0: b 100 × 5 / 15 = 33, c 100 × 10 / 15 = 66, d 100
        (-10, -5, [-15, -10, -5, 0], [0, 33, 66, 100]),
        // a: 2147483647 × 2 = 4294967294, the highest: 100 × 2147483647 / 4294967294 = 50
        (i32::MAX, i32::MAX, [4_294_967_294, 2_147_483_647, 2_147_483_647, 0], [100, 50, 50, 0]),
        (5, -5, [0, 5, -5, 0], [50, 100, 0, 50]),
        (0, 0, [0; 4], [0; 4]),
    ];
    for (ssd, x, raw, normalized) in cases {
        let found = scores(&told(&nodes, &text(&entries(ssd, x)))).unwrap();
        assert_eq!(found, (raw.to_vec(), normalized.to_vec()), "{ssd} {x}");
    }
}

#[test]
fn zero_counts_even_if_no_feasible_node_has_it() {
    // Every node has 8: lowest 0 and highest 8, so each gets 100. Every node has −8: each gets 0.
    for (score, expected) in [(8, 100), (-8, 0)] {
        let cluster = told(&[node("a"), node("b")], &text(&json!([{"score": score, "selector": {}}])));
        assert_eq!(scores(&cluster).unwrap(), (vec![score; 2], vec![expected; 2]));
    }
}

#[test]
fn an_empty_selector_selects_every_node() {
    let nodes = [node("a"), node("b")];
    let empty = [json!({}), json!([]), json!([{}]), Value::Null, json!({"matchLabelExpressions": []})];
    for selector in empty {
        assert_eq!(selected(&nodes, selector.clone()), "a b", "{selector}");
    }
}

#[test]
fn any_of_a_list_and_all_of_an_object() {
    let nodes = [
        node("a").label("disk", "ssd"),
        node("b").label("zone", "x"),
        node("c").label("disk", "ssd").label("zone", "x"),
        node("d"),
    ];
    let (ssd, x) = (label("disk", "In", &["ssd"]), label("zone", "Exists", &[]));
    assert_eq!(selected(&nodes, json!([ssd, x])), "a b c");
    let both = json!({"matchLabelExpressions": [
        {"key": "disk", "operator": "In", "values": ["ssd"]}, {"key": "zone", "operator": "Exists"}]});
    assert_eq!(selected(&nodes, both), "c");
    // Of two kinds in an object, both must hold.
    let mut two_kinds = ssd.clone();
    two_kinds["conditionExpressions"] = json!([{"key": "Ready", "operator": "Exists"}]);
    assert_eq!(selected(&nodes, two_kinds), "");
}

#[test]
fn all_operators_and_all_that_they_read() {
    let nodes = [
        node("a")
            .label("cores", "8")
            .set("/metadata/annotations/note", "two words, one comma")
            .set("/status/conditions/-", json!({"type": "Ready", "status": "True"}))
            .set(
                "/status/nodeInfo",
                json!({"kernelVersion": "5.4.0-34.generic.x86_64", "osImage": "Linux 22 LTS"}),
            ),
        node("b")
            .label("cores", "16")
            .set("/status/conditions/-", json!({"type": "Ready", "status": "Unknown"}))
            .set("/status/nodeInfo/kernelVersion", "4.19"),
        node("c").label("cores", "many"),
    ];
    let one = |kind: &str, key: &str, operator: &str, values: &[&str]| json!({kind: [{"key": key, "operator": operator, "values": values}]});
    let cases = [
        (one("matchLabelExpressions", "cores", "In", &["8", "many"]), "a c"),
        (one("matchLabelExpressions", "cores", "NotIn", &["8"]), "b c"),
        (one("matchLabelExpressions", "cores", "Gt", &["8"]), "b"),
        (one("matchLabelExpressions", "cores", "Lt", &["16"]), "a"),
        (one("matchAnnotationExpressions", "note", "In", &["two words, one comma"]), "a"),
        (one("matchAnnotationExpressions", "note", "DoesNotExist", &[]), "b c"),
        (one("conditionExpressions", "Ready", "In", &["True"]), "a"),
        (one("conditionExpressions", "Ready", "NotIn", &["True"]), "b c"),
        (one("conditionExpressions", "Ready", "Exists", &[]), "a b"),
        (one("nodeInfoExpressions", "kernelVersion", "In", &["5.4.0-34.generic.x86_64"]), "a"),
        (one("nodeInfoExpressions", "osImage", "In", &["Linux 22 LTS"]), "a"),
        (one("nodeInfoExpressions", "kernelVersion", "DoesNotExist", &[]), "c"),
    ];
    for (selector, names) in cases {
        assert_eq!(selected(&nodes, selector.clone()), names, "{selector}");
    }
}

/// Nodes that were made at noon of these days of December 2020, and one that does not say when. It is noon of the 10th.
fn made(days: &[u8]) -> Vec<Builder> {
    let made = |day: &u8| {
        let at = format!("2020-12-{day:02}T12:00:00Z");
        node(&format!("d{day:02}")).set("/metadata/creationTimestamp", at)
    };
    days.iter().map(made).chain([node("x")]).collect()
}

#[test]
fn bounds_of_creation() {
    let nodes = made(&[4, 5, 6, 8, 9, 10]);
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("After", "2020-12-08T12:00:00Z")], "d09 d10"),
        (&[("Before", "2020-12-06T12:00:00Z")], "d04 d05"),
        // Another offset: 13:00+01:00 is noon.
        (&[("Before", "2020-12-06T13:00:00+01:00")], "d04 d05"),
        // 36 hours before noon of the 10th: the 9th at midnight.
        (&[("Since", "36h")], "d09 d10"),
        (&[("Ago", "36h")], "d04 d05 d06 d08"),
        // Exactly 48 hours old is neither newer nor older.
        (&[("Since", "48h")], "d09 d10"),
        (&[("Ago", "48h")], "d04 d05 d06"),
        // The upper bound above the lower: between them.
        (&[("After", "2020-12-05T12:00:00Z"), ("Before", "2020-12-09T12:00:00Z")], "d06 d08"),
        // The upper bound below the lower: all but the window from the 5th to the 9th.
        (&[("Before", "2020-12-05T13:00:00Z"), ("After", "2020-12-09T11:00:00Z")], "d04 d05 d09 d10"),
        // The edges belong to the window.
        (&[("Before", "2020-12-05T12:00:00Z"), ("After", "2020-12-09T12:00:00Z")], "d04 d10"),
        // Equal bounds: all but that moment.
        (&[("Before", "2020-12-06T12:00:00Z"), ("After", "2020-12-06T12:00:00Z")], "d04 d05 d08 d09 d10"),
        // The tightest counts: after the 6th, not the 4th; before the 9th, not the 10th.
        (
            &[
                ("After", "2020-12-04T12:00:00Z"),
                ("After", "2020-12-06T12:00:00Z"),
                ("Before", "2020-12-10T12:00:00Z"),
                ("Before", "2020-12-09T12:00:00Z"),
            ],
            "d08",
        ),
        // Relative and absolute ones together: newer than 72 h (the 7th), so after the 7th rather than the 5th.
        (&[("After", "2020-12-05T12:00:00Z"), ("Since", "72h"), ("Ago", "12h")], "d08 d09"),
        // Older than 72 h (the 7th), newer than 24 h (the 9th): all but that window.
        (&[("Ago", "72h"), ("Since", "24h")], "d04 d05 d06 d10"),
        // Longer than time itself.
        (&[("Since", "2000000h")], "d04 d05 d06 d08 d09 d10"),
        (&[], "d04 d05 d06 d08 d09 d10 x"),
    ];
    for (bounds, names) in cases {
        let write = |how: fn(&str, &str) -> Value| -> Vec<Value> {
            bounds.iter().map(|(operator, value)| how(operator, value)).collect()
        };
        let one = write(|operator, value| json!({"operator": operator, "value": value}));
        let listed = write(|operator, value| json!({"operator": operator, "values": [value]}));
        for spelling in ["creationExpressions", "creationExpression"] {
            assert_eq!(selected(&nodes, json!({spelling: one})), *names, "{bounds:?}");
            assert_eq!(selected(&nodes, json!({spelling: listed})), *names, "{bounds:?}");
        }
    }
}

#[test]
fn relative_times_move_with_the_clock() {
    let warm =
        json!([{"score": 10, "selector": {"creationExpressions": [{"operator": "Ago", "value": "15m"}]}}]);
    let mut cluster = told(&made(&[10]), &text(&warm));
    // Made at noon; it is noon.
    assert_eq!(scores(&cluster).unwrap().0, [0, 0]);
    cluster.set_now("2020-12-10T12:15:01Z".parse::<Timestamp>().unwrap());
    assert_eq!(scores(&cluster).unwrap().0, [10, 0]);
}

#[test]
fn the_text_of_now_counts() {
    let nodes = [node("a").label("disk", "ssd"), node("b")];
    let plugin = plugin();
    let mut cluster = cluster(nodes);
    let raw = |cluster: &Cluster| {
        let (nodes, pod) = (by_name(cluster), pod("p").pod());
        let mut column = vec![7; nodes.len()];
        let input = ScoreInput { prepared: &Prepared::nothing(), cluster, pod: &pod, nodes: &nodes };
        plugin.score(input, &mut column).map(|()| column)
    };
    // No ConfigMap, or one without the key: neutral.
    assert_eq!(raw(&cluster).unwrap(), [0, 0]);
    for (score, expected) in [(3, [3, 0]), (-4, [-4, 0])] {
        let entries = json!([{"score": score, "selector": label("disk", "Exists", &[])}]);
        cluster.put(config_map(&text(&entries)).object());
        assert_eq!(raw(&cluster).unwrap(), expected);
    }
    cluster.put(config_map("dynamicScores: 5").object());
    let problem = "configmap/kube-system/scores/now.yaml cannot be read: line 1: ";
    assert!(raw(&cluster).unwrap_err().message().starts_with(problem), "{:?}", raw(&cluster));
    cluster.put(config_map("").set("/data", json!({"other": "x"})).object());
    assert_eq!(raw(&cluster).unwrap(), [0, 0]);
}

#[test]
fn the_fast_form_maps_over_open_nodes_and_leaves_the_clock_to_the_plugin() {
    let nodes = [node("a").label("n", "1"), node("b").label("n", "2"), node("c")];
    let entries = json!([{"score": 10, "selector": label("n", "In", &["1"])},
                         {"score": 40, "selector": label("n", "In", &["2"])}]);
    let cluster = told(&nodes, &text(&entries));
    let Compiled::Part(ScorePart { scores: RawScores::AmongOpen(mut part), .. }) =
        plugin().compile_score(&cluster, &pod("p").pod())
    else {
        panic!("a fast form");
    };
    let place = |name: &str| cluster.node(name).unwrap().id.index();
    let mut open = cluster.columns().there.clone();
    let mut column = vec![9.0; open.len()];
    part.fill(&cluster, &open, &mut column);
    // 100 × 10 / 40, 100 × 40 / 40, 0
    assert_eq!(["a", "b", "c"].map(|name| column[place(name)]), [25.0, 100.0, 0.0]);
    open[place("b")] = CLOSED;
    part.fill(&cluster, &open, &mut column);
    // Without b: 100 × 10 / 10
    assert_eq!(["a", "c"].map(|name| column[place(name)]), [100.0, 0.0]);

    let compiled = |entries: Value| plugin().compile_score(&told(&nodes, &text(&entries)), &pod("p").pod());
    let since = json!({"creationExpressions": [{"operator": "Since", "value": "5m"}]});
    assert!(matches!(compiled(json!([{"score": 1, "selector": since}])), Compiled::NoFastForm));
    assert!(matches!(compiled(json!([])), Compiled::Idle));
}

#[test]
fn a_short_text_that_says_too_much_by_aliases_is_refused() {
    // 100 requirements of three values and a list each, in each of so many entries.
    let text = |entries: usize| {
        let requirement = |i: usize| format!("{{key: k{i}, operator: In, values: [a]}}");
        let requirements: Vec<String> = (0..100).map(requirement).collect();
        let first =
            format!("- {{score: 1, selector: &s {{matchLabelExpressions: [{}]}}}}", requirements.join(", "));
        let others = "- {score: 1, selector: *s}\n".repeat(entries - 1);
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: DynamicScoring\ndynamicScores:\n{first}\n{others}"
        )
    };
    // An entry, its score, its selector and its list, and 100 × (itself, two texts, a list of one): 504.
    assert_eq!(read(&Source::new("scores.yaml", text(39))).expect("19,656 values").entries().len(), 39);
    let problems = read(&Source::new("scores.yaml", text(40))).expect_err("20,160 values");
    let told = problems.to_string();
    assert!(told.contains("dynamicScores: the entries hold more than 20000 values"), "{told}");
    assert!(read(&Source::new("scores.yaml", text(100_000))).is_err());
}

#[test]
fn problems_are_located_and_told_at_once() {
    let source = Source::new(
        "scores.yaml",
        "apiVersion: kubescheduler.config.k8s.io/v2
kind: DynamicScorings
dynamicScores:
- score: 3000000000
  selector:
    matchLabelExpression: []
- score: 5
  selector:
  - creationExpressions:
    - operator: Before
      value: yesterday
    - operator: Since
      value: -5m
  - nodeInfoExpressions:
    - key: kernelversion
      operator: In
      values: [x]
    conditionExpressions:
    - key: Ready
      operator: In
- selector: ready
- score: 1
  selector:
    matchLabelExpressions:
    - key: cores
      operator: Gt
      values: [many]
",
    );
    let told: Vec<String> = read(&source).unwrap_err().iter().map(in_a_line).collect();
    let expected = [
        "line 1: apiVersion: ",
        "line 2: kind: ",
        "line 4: dynamicScores[0].score: ",
        "line 6: dynamicScores[0].selector.matchLabelExpression: ",
        "line 11: dynamicScores[1].selector[0].creationExpressions[0].value: \"yesterday\" is not a time",
        "line 13: dynamicScores[1].selector[0].creationExpressions[1].value: ",
        "line 15: dynamicScores[1].selector[1].nodeInfoExpressions[0].key: \"kernelversion\" is not a field",
        "line 19: dynamicScores[1].selector[1].conditionExpressions[0].values: In and NotIn need",
        "line 21: dynamicScores[2]",
        "line 21: dynamicScores[2].selector: ",
        "line 27: dynamicScores[3].selector.matchLabelExpressions[0].values[0]: Gt and Lt compare",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told} should be {expected}");
    }
    for (text, problem) in [
        ("", "line 1: the file is empty"),
        ("a: 1\n---\nb: 2\n", "line 3: expected one document, found several"),
        ("dynamicScores: [", "line 1: "),
    ] {
        let problems = read(&Source::new("t", text)).unwrap_err();
        assert!(in_a_line(&problems.0[0]).starts_with(problem), "{text:?}: {problems}");
    }
}

#[test]
fn arguments_name_the_place() {
    let cases = [
        ("{}", "configMap.namespace configMap.name key"),
        ("{configMap: {name: a}, key: b}", "configMap.namespace"),
        ("{configMap: {namespace: a, name: b}, key: c, keys: d}", "keys"),
    ];
    for (args, fields) in cases {
        let source = Source::new("args", args);
        let documents = supercargo_manifest::read(&source).unwrap();
        let problems = PreferencesReference::of(&Args::new(&source, &documents[0], "")).unwrap_err();
        let paths: Vec<&str> = problems.iter().map(|problem| &*problem.path).collect();
        assert_eq!(paths.join(" "), fields);
    }
}

#[test]
fn what_a_text_makes_long_is_cut() {
    let key = "k".repeat(1 << 20);
    let long = text(
        &json!([{"score": 1, "selector": {"nodeInfoExpressions": [{"key": key, "operator": "Exists"}]}}]),
    );
    let status = scores(&told(&[node("a")], &long)).unwrap_err();
    let message = status.message();
    assert!(message.contains("nodeInfoExpressions[0].key") && message.len() < 1200, "{}", message.len());
}
