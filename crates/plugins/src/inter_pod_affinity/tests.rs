use serde_json::{Value, json};
use supercargo_framework::{
    Code,
    event::Change,
    points::{Filter, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome},
};
use supercargo_manifest::Source;
use supercargo_model::{
    Cluster,
    testing::{Builder, cluster, node, object, pod},
};

use super::*;
use supercargo_framework::testing::{filter, score, verdict};

const REQUIRED_NEAR: &str = "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/-";
const REQUIRED_FAR: &str = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/-";
const PREFERRED_NEAR: &str = "/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/-";
const PREFERRED_FAR: &str =
    "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/-";

fn with_args(text: &str) -> Result<InterPodAffinity, Problems> {
    let source = Source::new("config.yaml", text);
    let documents = supercargo_manifest::read(&source).unwrap();
    InterPodAffinity::new(&Args::new(&source, &documents[0], "args"))
}

fn default_plugin() -> InterPodAffinity {
    InterPodAffinity::new(&Args::none()).unwrap()
}

/// Pods with this `app`, by zone.
fn app(name: &str) -> Value {
    term("zone", json!({"matchLabels": {"app": name}}))
}

fn term(key: &str, selector: Value) -> Value {
    json!({"topologyKey": key, "labelSelector": selector})
}

fn weighted(weight: i32, term: Value) -> Value {
    json!({"weight": weight, "podAffinityTerm": term})
}

/// A pod with its name as its `app`.
fn named(name: &str) -> Builder {
    pod(name).label("app", name)
}

fn namespace(name: &str, labels: Value) -> Builder {
    object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}))
}

/// Nodes a and b in zone z1, node c in z2, node d in no zone.
fn zones(more: impl IntoIterator<Item = Builder>) -> Cluster {
    let in_zone = |name: &str, zone: &str| node(name).label("zone", zone);
    let nodes = [in_zone("a", "z1"), in_zone("b", "z1"), in_zone("c", "z2"), node("d")];
    cluster(nodes.into_iter().chain(more))
}

/// For each node by name: `+` fits, `n` its affinity does not hold, `f` its anti-affinity, `e` that of a pod there.
fn marks(cluster: &Cluster, pod: Builder) -> String {
    let marks = filter(&default_plugin(), cluster, &pod.pod()).into_iter().map(|verdict| match &*verdict {
        "ok" => '+',
        "node(s) didn't match pod affinity rules" => 'n',
        "node(s) didn't match pod anti-affinity rules" => 'f',
        "node(s) didn't satisfy existing pods anti-affinity rules" => 'e',
        other => panic!("{other}"),
    });
    marks.collect()
}

#[test]
fn required_terms() {
    let web = || vec![named("web").on("a")];
    let near = |terms: &[Value]| terms.iter().fold(named("p"), |p, term| p.set(REQUIRED_NEAR, term.clone()));
    let far = |terms: &[Value]| terms.iter().fold(named("p"), |p, term| p.set(REQUIRED_FAR, term.clone()));
    let host = |name: &str| term("kubernetes.io/hostname", json!({"matchLabels": {"app": name}}));
    let everything = || term("zone", json!({}));
    let nothing = || json!({"topologyKey": "zone"});
    // (name, pods there, the pod, verdicts)
    let cases = [
        ("near, by zone", web(), near(&[app("web")]), "++nn"),
        ("near, by host", web(), near(&[host("web")]), "+nnn"),
        ("near what is nowhere", web(), near(&[app("db")]), "nnnn"),
        ("an empty selector selects all", web(), near(&[everything()]), "++nn"),
        ("an absent one selects none", web(), near(&[nothing()]), "nnnn"),
        ("all terms must hold", web(), near(&[app("web"), host("web")]), "+nnn"),
        (
            "by one and the same pod",
            vec![named("web").on("a"), named("db").on("a")],
            near(&[app("web"), app("db")]),
            "nnnn",
        ),
        ("far, by zone", web(), far(&[app("web")]), "ff++"),
        ("far, by host", web(), far(&[host("web")]), "f+++"),
        ("far from any of two", web(), far(&[app("db"), app("web")]), "ff++"),
        (
            "near and far",
            vec![named("web").on("a"), named("db").on("b")],
            near(&[app("web")]).set(REQUIRED_FAR, host("db")),
            "+fnn",
        ),
        (
            "a pod there does not want it near",
            vec![named("web").on("a").set(REQUIRED_FAR, app("p"))],
            named("p"),
            "ee++",
        ),
        (
            "a pod there does not want others near",
            vec![named("web").on("a").set(REQUIRED_FAR, app("q"))],
            named("p"),
            "++++",
        ),
        (
            "its own wishes are told first",
            vec![named("web").on("a").set(REQUIRED_FAR, app("p"))],
            far(&[app("web")]),
            "ff++",
        ),
    ];
    for (name, there, pod, expected) in cases {
        assert_eq!(marks(&zones(there), pod), expected, "{name}");
    }
}

#[test]
fn the_first_of_a_group_may_go_anywhere() {
    let together = |name: &str| pod(name).label("app", "group").set(REQUIRED_NEAR, app("group"));
    // Anywhere that has the label.
    assert_eq!(marks(&zones([]), together("p")), "+++n");
    assert_eq!(marks(&zones([together("first").on("c")]), together("p")), "nn+n");
    // In another namespace there is no first one yet.
    let elsewhere = together("first").namespace("elsewhere").on("c");
    assert_eq!(marks(&zones([elsewhere]), together("p")), "+++n");
    // It must belong to the group by all its terms.
    let stranger = together("p").set(REQUIRED_NEAR, app("others"));
    assert_eq!(marks(&zones([]), stranger), "nnnn");
}

#[test]
fn only_missing_affinity_cannot_be_helped_by_evicting_pods() {
    let code = |there: Builder, pod: Builder| {
        let (cluster, pod) = (zones([there]), pod.pod());
        let plugin = default_plugin();
        let Ok(PreFilterOutcome::Go { prepared, .. }) = plugin.pre_filter(&cluster, &pod) else {
            panic!("goes on");
        };
        let refused = plugin.filter(&prepared, &cluster, &pod, cluster.node("a").unwrap());
        refused.unwrap_err().code
    };
    let near = named("p").set(REQUIRED_NEAR, app("web"));
    assert_eq!(code(named("web").on("c"), near), Code::UnschedulableAndUnresolvable);
    let far = named("p").set(REQUIRED_FAR, app("web"));
    assert_eq!(code(named("web").on("a"), far), Code::Unschedulable);
    let hostile = named("web").set(REQUIRED_FAR, app("p")).on("a");
    assert_eq!(code(hostile, named("p")), Code::Unschedulable);
}

#[test]
fn pods_that_nobody_minds_are_skipped() {
    let skips = |there: Builder, pod: Builder| {
        let outcome = default_plugin().pre_filter(&zones([there]), &pod.pod());
        matches!(outcome, Ok(PreFilterOutcome::Skip))
    };
    assert!(skips(named("web").on("a"), named("p")));
    assert!(skips(named("web").set(REQUIRED_FAR, app("q")).on("a"), named("p")));
    // The label is missing, so there is no domain to keep away from.
    assert!(skips(named("web").set(REQUIRED_FAR, app("p")).on("d"), named("p")));
    assert!(!skips(named("web").set(REQUIRED_FAR, app("p")).on("a"), named("p")));
    assert!(!skips(named("web").on("a"), named("p").set(REQUIRED_FAR, app("q"))));
}

/// A term about pods with the `app` web in some namespaces.
fn web_in(namespaces: Value, selector: Option<Value>) -> Value {
    let mut term = app("web");
    term["namespaces"] = namespaces;
    if let Some(selector) = selector {
        term["namespaceSelector"] = selector;
    }
    term
}

#[test]
fn namespaces_by_name_and_by_label() {
    let labelled = |team: &str| Some(json!({"matchLabels": {"team": team}}));
    let absent = || Some(json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}));
    // (term of the pod in `default`, does it reach the pod in `blue`)
    let cases = [
        (web_in(json!([]), None), false),
        (web_in(json!(["blue"]), None), true),
        (web_in(json!(["default", "red"]), None), false),
        (web_in(json!([]), labelled("blue")), true),
        (web_in(json!([]), labelled("red")), false),
        (web_in(json!(["blue"]), labelled("red")), true),
        // An empty selector selects all namespaces.
        (web_in(json!([]), Some(json!({}))), true),
        (web_in(json!(["red"]), Some(json!({}))), true),
        // As in kube-scheduler a pod's own selector is asked again about a namespace without labels, so that this one
        // selects also the namespaces that have the label.
        (web_in(json!([]), absent()), true),
    ];
    for (term, reaches) in cases {
        let cluster =
            zones([namespace("blue", json!({"team": "blue"})), named("web").namespace("blue").on("a")]);
        let expected = if reaches { "ff++" } else { "++++" };
        assert_eq!(marks(&cluster, named("p").set(REQUIRED_FAR, term.clone())), expected, "{term}");
    }
}

#[test]
fn namespaces_of_pods_that_are_there() {
    let labelled = |team: &str| Some(json!({"matchLabels": {"team": team}}));
    let absent = || Some(json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}));
    // (term of a pod there in `default`, does it reach the pod in `blue`)
    let cases = [
        (web_in(json!([]), None), false),
        (web_in(json!(["blue"]), None), true),
        (web_in(json!([]), labelled("blue")), true),
        (web_in(json!([]), labelled("red")), false),
        (web_in(json!([]), Some(json!({}))), true),
        // Here the labels of the namespace are at hand.
        (web_in(json!([]), absent()), false),
    ];
    for (term, reaches) in cases {
        let cluster = zones([
            namespace("blue", json!({"team": "blue"})),
            named("there").set(REQUIRED_FAR, term.clone()).on("a"),
        ]);
        let expected = if reaches { "ee++" } else { "++++" };
        assert_eq!(marks(&cluster, named("web").namespace("blue")), expected, "{term}");
    }
}

#[test]
fn match_and_mismatch_label_keys() {
    let with_keys = |field: &str, keys: Value| {
        let mut term = app("web");
        term[field] = keys;
        term
    };
    let cluster = zones([
        named("web").label("version", "1").on("a"),
        named("web")
            .set("/metadata/name", "other")
            .set("/metadata/uid", "other")
            .label("version", "2")
            .on("c"),
    ]);
    // (term, verdicts for a pod of version 2 that keeps away from what the term selects)
    let cases = [
        (app("web"), "fff+"),
        (with_keys("matchLabelKeys", json!(["version"])), "++f+"),
        (with_keys("mismatchLabelKeys", json!(["version"])), "ff++"),
        // A key that the pod does not have is passed over.
        (with_keys("matchLabelKeys", json!(["tier"])), "fff+"),
        (with_keys("mismatchLabelKeys", json!(["tier"])), "fff+"),
    ];
    for (term, expected) in cases {
        let pod = pod("p").label("version", "2").set(REQUIRED_FAR, term.clone());
        assert_eq!(marks(&cluster, pod), expected, "{term}");
    }
}

#[test]
fn what_if_pods_came_or_went() {
    let cluster = zones([named("web").on("a"), named("hostile").set(REQUIRED_FAR, app("p")).on("c")]);
    let pod = named("p").set(REQUIRED_NEAR, app("web")).set(REQUIRED_FAR, app("db")).pod();
    let plugin = default_plugin();
    let Ok(PreFilterOutcome::Go { mut prepared, .. }) = plugin.pre_filter(&cluster, &pod) else {
        panic!("goes on");
    };
    let (a, c) = (cluster.node("a").unwrap(), cluster.node("c").unwrap());
    let fits = |prepared: &_| [a, c].map(|node| verdict(&plugin, prepared, &cluster, &pod, node) == "ok");
    assert_eq!(fits(&prepared), [true, false]);
    // Something to keep away from comes, and goes again.
    plugin.add_pod(&mut prepared, &pod, &named("db").pod(), a).unwrap();
    assert_eq!(fits(&prepared), [false, false]);
    plugin.remove_pod(&mut prepared, &pod, &named("db").pod(), a).unwrap();
    assert_eq!(fits(&prepared), [true, false]);
    // What it wants near comes to c, and who minds it goes from there.
    plugin.add_pod(&mut prepared, &pod, &named("web").pod(), c).unwrap();
    assert_eq!(fits(&prepared), [true, false]);
    let hostile = named("hostile").set(REQUIRED_FAR, app("p")).pod();
    plugin.remove_pod(&mut prepared, &pod, &hostile, c).unwrap();
    assert_eq!(fits(&prepared), [true, true]);
    plugin.remove_pod(&mut prepared, &pod, &named("web").pod(), a).unwrap();
    assert_eq!(fits(&prepared), [false, true]);
}

fn scores(args: &str, cluster: &Cluster, pod: Builder) -> (Vec<i64>, Vec<i64>) {
    score(&with_args(args).unwrap(), cluster, &pod.pod()).unwrap()
}

#[test]
fn preferences_of_the_pod_add_up() {
    let cluster = zones([named("web").on("a"), named("db").on("b"), named("batch").on("c")]);
    let host = |name: &str| term("kubernetes.io/hostname", json!({"matchLabels": {"app": name}}));
    let pod = named("p")
        .set(PREFERRED_NEAR, weighted(10, app("web")))
        .set(PREFERRED_NEAR, weighted(20, host("db")))
        .set(PREFERRED_FAR, weighted(5, app("batch")))
        .set(PREFERRED_FAR, weighted(99, app("nobody")));
    // a: 10, b: 10 + 20, c: −5, d: 0
    // 100 × (score + 5) / 35: a: 42.9, b: 100, c: 0, d: 14.3
    let expected = (vec![10, 30, -5, 0], vec![42, 100, 0, 14]);
    assert_eq!(scores("{}", &cluster, pod), expected);
}

#[test]
fn every_pod_that_a_term_selects_counts() {
    let cluster = zones([
        named("web").on("a"),
        named("web").set("/metadata/name", "w2").set("/metadata/uid", "w2").on("b"),
    ]);
    let pod = named("p").set(PREFERRED_FAR, weighted(7, app("web")));
    // Both are in z1: −7 × 2. 100 × (score + 14) / 14
    assert_eq!(scores("{}", &cluster, pod), (vec![-14, -14, 0, 0], vec![0, 0, 100, 100]));
}

#[test]
fn preferences_and_requirements_of_pods_that_are_there_pull_and_push() {
    let there = || {
        zones([
            named("likes").set(PREFERRED_NEAR, weighted(8, app("p"))).on("a"),
            named("dislikes").set(PREFERRED_FAR, weighted(3, app("p"))).on("c"),
            named("needs").set(REQUIRED_NEAR, app("p")).on("c"),
            named("others").set(PREFERRED_NEAR, weighted(50, app("q"))).on("d"),
        ])
    };
    // (arguments, scores)
    let cases = [
        // z1: 8, z2: −3 + 1. 100 × (score + 2) / 10: d: 20
        ("{}", (vec![8, 8, -2, 0], vec![100, 100, 0, 20])),
        // z2: −3 + 10. 100 × score / 8: c: 87.5
        ("{hardPodAffinityWeight: 10}", (vec![8, 8, 7, 0], vec![100, 100, 87, 0])),
        // z2: −3. 100 × (score + 3) / 11: d: 27.3
        ("{hardPodAffinityWeight: 0}", (vec![8, 8, -3, 0], vec![100, 100, 0, 27])),
        // Without preferences of its own, the pod is not scored at all.
        ("{ignorePreferredTermsOfExistingPods: true}", (vec![], vec![])),
    ];
    for (args, expected) in cases {
        assert_eq!(scores(args, &there(), named("p")), expected, "{args}");
    }
}

#[test]
fn existing_preferences_are_only_ignored_for_pods_that_have_none() {
    // As in kube-scheduler: once the pod has a preference, those of the others count as well.
    let cluster =
        zones([named("likes").set(PREFERRED_NEAR, weighted(8, app("p"))).on("a"), named("web").on("c")]);
    let pod = named("p").set(PREFERRED_NEAR, weighted(4, app("web")));
    let expected = (vec![8, 8, 4, 0], vec![100, 100, 50, 0]);
    assert_eq!(scores("{ignorePreferredTermsOfExistingPods: true}", &cluster, pod), expected);
}

#[test]
fn equal_scores_normalize_to_nothing_and_no_scores_skip() {
    let everywhere = term("everywhere", json!({"matchLabels": {"app": "web"}}));
    let cluster = cluster([
        node("a").label("everywhere", "x"),
        node("b").label("everywhere", "x"),
        named("web").on("a"),
    ]);
    let pod = named("p").set(PREFERRED_NEAR, weighted(9, everywhere));
    assert_eq!(scores("{}", &cluster, pod), (vec![9, 9], vec![0, 0]));
    let lonely = named("p").set(PREFERRED_NEAR, weighted(9, app("nobody"))).pod();
    let outcome = default_plugin().pre_score(&cluster, &lonely, &[]);
    assert!(matches!(outcome, Ok(PreScoreOutcome::Skip)));
}

#[test]
fn preferred_terms_reach_the_namespaces_that_they_select() {
    let cluster = zones([
        namespace("blue", json!({"team": "blue"})),
        named("web").namespace("blue").on("a"),
        named("web").namespace("red").on("c"),
    ]);
    let pod = |term: Value| named("p").set(PREFERRED_NEAR, weighted(10, term));
    let blue = web_in(json!([]), Some(json!({"matchLabels": {"team": "blue"}})));
    assert_eq!(scores("{}", &cluster, pod(blue)).0, [10, 10, 0, 0]);
    let all = web_in(json!([]), Some(json!({})));
    assert_eq!(scores("{}", &cluster, pod(all)).0, [10, 10, 10, 0]);
}

#[test]
fn bad_arguments_are_told_with_their_place() {
    for weight in [-1, 101] {
        let Err(problems) = with_args(&format!("{{hardPodAffinityWeight: {weight}}}")) else {
            panic!("a problem");
        };
        let told: Vec<(&str, &str)> =
            problems.0.iter().map(|p| (p.path.as_str(), p.message.as_str())).collect();
        let message = format!("must be in 0..=100, and is {weight}");
        assert_eq!(told, [("args.hardPodAffinityWeight", &*message)]);
    }
    assert!(with_args("{hardPodAffinityWeight: 0}").is_ok());
    assert!(with_args("{hardPodAffinityWeight: 100}").is_ok());
}

#[test]
fn pods_that_come_to_match_or_cease_to_be_in_the_way_help() {
    let interest = &default_plugin().events()[0];
    let helps = |waiting: &Builder, before: Option<Builder>, after: Option<Builder>| {
        let (before, after) = (before.map(Builder::pod), after.map(Builder::pod));
        let action = match (&before, &after) {
            (None, _) => ActionType::Add,
            (_, None) => ActionType::Delete,
            _ => ActionType::UpdatePodLabel,
        };
        let change = Change::Pod(before.as_deref(), after.as_deref());
        interest.helps(
            &supercargo_model::Cluster::default(),
            EventResource::Pod,
            action,
            &waiting.clone().pod(),
            &change,
        )
    };
    let near = named("p").set(REQUIRED_NEAR, app("web"));
    let far = named("p").set(REQUIRED_FAR, app("web"));
    let plain = named("p");
    let (web, db) = (|| named("web").on("a"), || named("db").on("a"));
    let hostile = || named("hostile").set(REQUIRED_FAR, app("p")).on("a");
    // (name, the waiting pod, before, after, helps)
    let cases = [
        ("comes to be near", &near, None, Some(web()), true),
        ("comes, but is another", &near, None, Some(db()), false),
        ("is not placed", &near, None, Some(named("web")), false),
        ("to keep away from comes", &far, None, Some(web()), false),
        ("is relabelled to match", &near, Some(db()), Some(web()), true),
        ("is relabelled away", &near, Some(web()), Some(db()), false),
        ("matched all along", &near, Some(web()), Some(web()), false),
        ("is relabelled, and still another", &near, Some(db()), Some(named("cache").on("a")), false),
        ("was not placed before", &near, Some(named("db")), Some(web()), false),
        ("ceases to be in the way", &far, Some(web()), Some(db()), true),
        ("stays in the way", &far, Some(web()), Some(web()), false),
        ("never was in the way", &far, Some(db()), Some(named("cache").on("a")), false),
        ("to keep away from goes", &far, Some(web()), None, true),
        ("another goes", &far, Some(db()), None, false),
        ("who minds it goes", &plain, Some(hostile()), None, true),
        ("who does not mind it goes", &plain, Some(web()), None, false),
        ("the waiting pod itself is relabelled", &plain, Some(named("p")), Some(named("p")), true),
    ];
    for (name, waiting, before, after, expected) in cases {
        assert_eq!(helps(waiting, before, after), expected, "{name}");
    }
}

#[test]
fn nodes_that_come_into_a_domain_or_leave_one_help() {
    let interest = &default_plugin().events()[1];
    let helps = |waiting: &Builder, before: Option<Builder>, after: Builder| {
        let (before, after) = (before.map(Builder::node), after.node());
        let change = Change::Node(before.as_ref(), Some(&after));
        let action = if before.is_some() { ActionType::UpdateNodeLabel } else { ActionType::Add };
        interest.helps(
            &supercargo_model::Cluster::default(),
            EventResource::Node,
            action,
            &waiting.clone().pod(),
            &change,
        )
    };
    let near = named("p").set(REQUIRED_NEAR, app("web"));
    let far = named("p").set(REQUIRED_FAR, app("web"));
    let (z1, z2, none) = (|| node("n").label("zone", "z1"), || node("n").label("zone", "z2"), || node("n"));
    // (before, after, helps near, helps far)
    let cases = [
        (None, z1(), true, true),
        (None, none(), false, true),
        (Some(none()), z1(), true, false),
        (Some(z1()), none(), false, true),
        (Some(z1()), z2(), true, true),
        (Some(z1()), z1().label("other", "x"), false, false),
    ];
    for (i, (before, after, helps_near, helps_far)) in cases.into_iter().enumerate() {
        assert_eq!(helps(&near, before.clone(), after.clone()), helps_near, "near, case {i}");
        assert_eq!(helps(&far, before, after), helps_far, "far, case {i}");
    }
}
