use serde_json::{Value, json};
use supercargo_framework::{
    Code, ScoreInput,
    event::Change,
    points::{Filter, NormalizeScore, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome, Score},
};
use supercargo_manifest::Source;
use supercargo_model::testing::{Builder, cluster, node, object, pod};

use super::*;
use supercargo_framework::testing::{filter, score, verdict};

fn with_args(text: &str) -> Result<PodTopologySpread, Problems> {
    let source = Source::new("config.yaml", text);
    let documents = supercargo_manifest::read(&source).unwrap();
    PodTopologySpread::new(&Args::new(&source, &documents[0], "args"))
}

fn default_plugin() -> PodTopologySpread {
    PodTopologySpread::new(&Args::none()).unwrap()
}

fn zoned(name: &str, zone: &str) -> Builder {
    node(name).label("zone", zone)
}

fn web(name: &str) -> Builder {
    pod(name).label("app", "web")
}

fn spread(key: &str, max_skew: i32, action: &str) -> Value {
    json!({
        "topologyKey": key, "maxSkew": max_skew, "whenUnsatisfiable": action,
        "labelSelector": {"matchLabels": {"app": "web"}},
    })
}

fn hard(key: &str, max_skew: i32) -> Value {
    spread(key, max_skew, "DoNotSchedule")
}

fn soft(key: &str, max_skew: i32) -> Value {
    spread(key, max_skew, "ScheduleAnyway")
}

/// A constraint with one field set otherwise.
fn but(mut constraint: Value, field: &str, value: Value) -> Value {
    constraint[field] = value;
    constraint
}

/// A constraint that names no pods.
fn without_selector(mut constraint: Value) -> Value {
    constraint.as_object_mut().unwrap().remove("labelSelector");
    constraint
}

fn constrained(pod: Builder, constraints: Value) -> Builder {
    pod.set("/spec/topologySpreadConstraints", constraints)
}

/// For each node by name: `+` fits, `x` too skewed, `?` lacks the label.
fn marks(plugin: &PodTopologySpread, cluster: &Cluster, pod: Builder) -> String {
    let marks = filter(plugin, cluster, &pod.pod()).into_iter().map(|verdict| match &*verdict {
        "ok" => '+',
        "node(s) didn't match pod topology spread constraints" => 'x',
        "node(s) didn't match pod topology spread constraints (missing required label)" => '?',
        other => panic!("{other}"),
    });
    marks.collect()
}

/// Zone z1 has the nodes a and b with two web pods, zone z2 the node c with one, and node d is in no zone.
fn two_zones() -> Vec<Builder> {
    vec![
        zoned("a", "z1"),
        zoned("b", "z1"),
        zoned("c", "z2"),
        node("d"),
        web("w1").on("a"),
        web("w2").on("b"),
        web("w3").on("c"),
        pod("unrelated").on("c"),
    ]
}

#[test]
fn no_domain_may_be_much_fuller_than_the_emptiest() {
    // (constraints, of a pod that they count, of one that they do not)
    let cases = [
        // z1: 2 + 1 − 1 = 2, z2: 1 + 1 − 1 = 1; a pod that does not count itself adds 0
        (json!([hard("zone", 1)]), "xx+?", "+++?"),
        (json!([hard("zone", 2)]), "+++?", "+++?"),
        // Each host a, b, c has one; d has none, so that the emptiest is 0: 1 + 1 − 0 = 2
        (json!([hard("kubernetes.io/hostname", 1)]), "xxx+", "++++"),
        // Both must hold. Without a zone d does not count as a host either: 1 + 1 − 1 = 1 for the hosts.
        (json!([hard("zone", 1), hard("kubernetes.io/hostname", 1)]), "xx+?", "+++?"),
        // Soft constraints refuse nobody.
        (json!([soft("zone", 1)]), "++++", "++++"),
        // An empty selector counts no pods, and an absent one selects none: 0 + 1 − 0 and 0 + 0 − 0
        (json!([but(hard("zone", 1), "labelSelector", json!({}))]), "+++?", "+++?"),
        (json!([without_selector(hard("zone", 1))]), "+++?", "+++?"),
    ];
    for (constraints, counted, not_counted) in cases {
        let cluster = cluster(two_zones());
        let pods = [web("p"), pod("p")].map(|pod| constrained(pod, constraints.clone()));
        let found = pods.map(|pod| marks(&default_plugin(), &cluster, pod));
        assert_eq!(found, [counted, not_counted], "{constraints}");
    }
}

#[test]
fn a_missing_label_cannot_be_helped_by_evicting_pods() {
    let cluster = cluster(two_zones());
    let pod = constrained(web("p"), json!([hard("zone", 1)])).pod();
    let plugin = default_plugin();
    let Ok(PreFilterOutcome::Go { prepared, .. }) = plugin.pre_filter(&cluster, &pod) else {
        panic!("goes on");
    };
    let code = |name: &str| {
        let node = cluster.node(name).unwrap();
        plugin.filter(&prepared, &cluster, &pod, node).map_err(|status| status.code)
    };
    assert_eq!(code("a"), Err(Code::Unschedulable));
    assert_eq!(code("c"), Ok(()));
    assert_eq!(code("d"), Err(Code::UnschedulableAndUnresolvable));
}

#[test]
fn only_living_pods_of_the_same_namespace_count() {
    let cluster = cluster([
        zoned("a", "z1"),
        zoned("b", "z2"),
        web("other").namespace("elsewhere").on("a"),
        web("leaving").set("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z").on("a"),
    ]);
    let pod = |namespace: &str| constrained(web("p").namespace(namespace), json!([hard("zone", 1)]));
    assert_eq!(marks(&default_plugin(), &cluster, pod("default")), "++");
    // a: 1 + 1 − 0
    assert_eq!(marks(&default_plugin(), &cluster, pod("elsewhere")), "x+");
}

#[test]
fn with_too_few_domains_the_emptiest_counts_as_empty() {
    let cluster = cluster(two_zones());
    let at_least = |domains: i32, max_skew: i32| {
        let constraint = but(hard("zone", max_skew), "minDomains", json!(domains));
        marks(&default_plugin(), &cluster, constrained(web("p"), json!([constraint])))
    };
    assert_eq!(at_least(2, 1), "xx+?");
    // z1: 2 + 1 − 0 = 3, z2: 1 + 1 − 0 = 2
    assert_eq!(at_least(3, 1), "xxx?");
    assert_eq!(at_least(3, 2), "xx+?");
    assert_eq!(at_least(3, 3), "+++?");
}

#[test]
fn policies_say_which_nodes_count() {
    // z3 is empty: as long as it counts, z2 is too full as well.
    let with_third = |third: Builder| {
        let nodes = [zoned("a", "z1"), zoned("b", "z2"), third];
        cluster(nodes.into_iter().chain([web("w1").on("a"), web("w2").on("b")]))
    };
    let policy = |name: &str, value: &str| but(hard("zone", 1), name, json!(value));
    let plugin = default_plugin();

    // Node affinity is honored unless said otherwise.
    let cluster = with_third(zoned("c", "z3"));
    let picky = |constraint| {
        let expression = json!([{"key": "zone", "operator": "NotIn", "values": ["z3"]}]);
        constrained(web("p"), json!([constraint])).set(
            "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-",
            json!({"matchExpressions": expression}),
        )
    };
    assert_eq!(marks(&plugin, &cluster, picky(hard("zone", 1))), "+++");
    assert_eq!(marks(&plugin, &cluster, picky(policy("nodeAffinityPolicy", "Honor"))), "+++");
    assert_eq!(marks(&plugin, &cluster, picky(policy("nodeAffinityPolicy", "Ignore"))), "xx+");

    // Taints are ignored unless said otherwise.
    let cluster = with_third(zoned("c", "z3").taint("dedicated", "db", "NoSchedule"));
    let plain = |constraint| constrained(web("p"), json!([constraint]));
    assert_eq!(marks(&plugin, &cluster, plain(hard("zone", 1))), "xx+");
    assert_eq!(marks(&plugin, &cluster, plain(policy("nodeTaintsPolicy", "Ignore"))), "xx+");
    assert_eq!(marks(&plugin, &cluster, plain(policy("nodeTaintsPolicy", "Honor"))), "+++");
    let tolerant = plain(policy("nodeTaintsPolicy", "Honor")).toleration(json!({"operator": "Exists"}));
    assert_eq!(marks(&plugin, &cluster, tolerant), "xx+");
}

#[test]
fn match_label_keys_narrow_the_selector_to_the_pods_own_values() {
    let cluster = cluster([
        zoned("a", "z1"),
        zoned("b", "z2"),
        web("old").label("version", "1").on("a"),
        web("new").label("version", "2").on("b"),
    ]);
    let keys = |keys: Value| json!([but(hard("zone", 1), "matchLabelKeys", keys)]);
    let pod = |version: &str, constraints| constrained(web("p").label("version", version), constraints);
    // 1 + 1 − 1 in both
    assert_eq!(marks(&default_plugin(), &cluster, pod("2", keys(json!([])))), "++");
    // Only b has pods of version 2, only a has pods of version 1, and none has pods of version 3.
    assert_eq!(marks(&default_plugin(), &cluster, pod("2", keys(json!(["version"])))), "+x");
    assert_eq!(marks(&default_plugin(), &cluster, pod("1", keys(json!(["version"])))), "x+");
    assert_eq!(marks(&default_plugin(), &cluster, pod("3", keys(json!(["version"])))), "++");
    // A key that the pod does not have is passed over.
    assert_eq!(marks(&default_plugin(), &cluster, pod("2", keys(json!(["tier"])))), "++");
}

#[test]
fn what_if_pods_came_or_went() {
    let cluster = cluster(two_zones());
    let pod = constrained(web("p"), json!([hard("zone", 1)])).pod();
    let plugin = default_plugin();
    let Ok(PreFilterOutcome::Go { mut prepared, .. }) = plugin.pre_filter(&cluster, &pod) else {
        panic!("goes on");
    };
    let (a, c) = (cluster.node("a").unwrap(), cluster.node("c").unwrap());
    let fits = |prepared: &_, node| verdict(&plugin, prepared, &cluster, &pod, node) == "ok";
    assert_eq!((fits(&prepared, a), fits(&prepared, c)), (false, true));
    // z1: 1, z2: 1
    plugin.remove_pod(&mut prepared, &pod, &web("w1").pod(), a).unwrap();
    assert_eq!((fits(&prepared, a), fits(&prepared, c)), (true, true));
    // Pods that do not count change nothing.
    plugin.add_pod(&mut prepared, &pod, &pods_that_do_not_count()[0], c).unwrap();
    plugin.add_pod(&mut prepared, &pod, &pods_that_do_not_count()[1], c).unwrap();
    assert_eq!((fits(&prepared, a), fits(&prepared, c)), (true, true));
    // z1: 1, z2: 2
    plugin.add_pod(&mut prepared, &pod, &web("w4").pod(), c).unwrap();
    assert_eq!((fits(&prepared, a), fits(&prepared, c)), (true, false));
}

fn pods_that_do_not_count() -> [std::sync::Arc<Pod>; 2] {
    [pod("q").pod(), web("q").namespace("elsewhere").pod()]
}

/// Hosts a and b in zone z1 with two web pods and one, host c in z2 with none.
fn three_hosts() -> Vec<Builder> {
    vec![
        zoned("a", "z1"),
        zoned("b", "z1"),
        zoned("c", "z2"),
        web("w1").on("a"),
        web("w2").on("a"),
        web("w3").on("b"),
    ]
}

#[test]
fn log_weighted() {
    const HOST: &str = "kubernetes.io/hostname";
    // (constraints, raw, normalized: 100 × (highest + lowest − score) / highest)
    let cases = [
        // Two zones: 3 × ln 4 = 4.16, 0
        (json!([soft("zone", 1)]), [4, 4, 0], [0, 0, 100]),
        // Three hosts: 2 × ln 5 = 3.22, 1 × ln 5 = 1.61, 0. b: 100 × (3 + 0 − 2) / 3 = 33.3
        (json!([soft(HOST, 1)]), [3, 2, 0], [0, 33, 100]),
        // maxSkew − 1 is added: 3 × ln 4 + 4 = 8.16, 0 + 4. a: 100 × (8 + 4 − 8) / 8
        (json!([soft("zone", 5)]), [8, 8, 4], [50, 50, 100]),
        // a: 4.16 + 1 + 3.22 = 8.38, b: 4.16 + 1 + 1.61 = 6.77, c: 0 + 1 + 0
        // a: 100 × (8 + 1 − 8) / 8 = 12.5, b: 100 × (8 + 1 − 7) / 8
        (json!([soft("zone", 2), soft(HOST, 1)]), [8, 7, 1], [12, 25, 100]),
        // Nothing is counted: all are best.
        (json!([but(soft("zone", 1), "labelSelector", json!({}))]), [0, 0, 0], [100, 100, 100]),
        (json!([without_selector(soft(HOST, 3))]), [2, 2, 2], [100, 100, 100]),
    ];
    for (constraints, raw, normalized) in cases {
        let pod = constrained(web("p"), constraints.clone()).pod();
        let scores = score(&default_plugin(), &cluster(three_hosts()), &pod).unwrap();
        assert_eq!(scores, (raw.to_vec(), normalized.to_vec()), "{constraints}");
    }
}

#[test]
fn nodes_without_a_label_are_left_out_of_scoring() {
    let nodes = three_hosts().into_iter().chain([node("d"), web("w4").on("d")]);
    let pod = constrained(web("p"), json!([soft("zone", 1), soft("kubernetes.io/hostname", 1)])).pod();
    let scores = score(&default_plugin(), &cluster(nodes), &pod).unwrap();
    // d does not even count as a host: a: 3 × ln 4 + 2 × ln 5 = 7.38, b: 4.16 + 1.61 = 5.77, c: 0
    // a: 0, b: 100 × (7 + 0 − 6) / 7 = 14.3, c: 100
    assert_eq!(scores, (vec![7, 6, 0, 0], vec![0, 14, 100, 0]));
}

#[test]
fn pods_on_nodes_that_are_not_feasible_count_in_their_domain() {
    let cluster = cluster(three_hosts());
    let plugin = default_plugin();
    let pod = constrained(web("p"), json!([soft("zone", 1)])).pod();
    let nodes = ["b", "c"].map(|name| cluster.node(name).unwrap());
    let Ok(PreScoreOutcome::Go(prepared)) = plugin.pre_score(&cluster, &pod, &nodes) else {
        panic!("scores");
    };
    let input = ScoreInput { prepared: &prepared, cluster: &cluster, pod: &pod, nodes: &nodes };
    let mut column = [0; 2];
    plugin.score(input, &mut column).unwrap();
    // The two on a are in b's zone: 3 × ln 4 = 4.16
    assert_eq!(column, [4, 0]);
    plugin.normalize(input, &mut column).unwrap();
    assert_eq!(column, [0, 100]);
}

#[test]
fn linear_skew() {
    let plugin = with_args("{formula: LinearSkew}").unwrap();
    const HOST: &str = "kubernetes.io/hostname";
    // (constraints, score: 100 − (domain − fewest) × 100 / maxSkew, the mean)
    let cases = [
        // 100 − 3 × 100 / 4, 100
        (json!([soft("zone", 4)]), [25, 25, 100, 0]),
        // 100 − 3 × 100 / 2 is below 0
        (json!([soft("zone", 2)]), [0, 0, 100, 0]),
        // a: 100 − 66, b: 100 − 33
        (json!([soft(HOST, 3)]), [34, 67, 100, 100]),
        // a: (25 + 34) / 2, b: (25 + 67) / 2; d lacks a label
        (json!([soft("zone", 4), soft(HOST, 3)]), [29, 46, 100, 0]),
    ];
    for (constraints, expected) in cases {
        let pod = constrained(web("p"), constraints.clone()).pod();
        let cluster = cluster(three_hosts().into_iter().chain([node("d")]));
        let (raw, normalized) = score(&plugin, &cluster, &pod).unwrap();
        assert_eq!(raw, expected, "{constraints}");
        assert_eq!(normalized, expected, "{constraints}");
    }
    // Where nobody is empty, the fewest count as none: three on a, one on b, so a: 100 − (3 − 1) × 100 / 4
    let on = |i: usize, name: &str| web(&format!("w{i}")).on(name);
    let pods = [on(1, "a"), on(2, "a"), on(3, "a"), on(4, "b")];
    let cluster = cluster([node("a"), node("b")].into_iter().chain(pods));
    let pod = constrained(web("p"), json!([soft(HOST, 4)])).pod();
    assert_eq!(score(&plugin, &cluster, &pod).unwrap().0, [50, 100]);
}

fn selecting(api_version: &str, kind: &str, name: &str, selector: Value) -> Builder {
    object(json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selector},
    }))
}

/// Hosts a and b in zone z1, host c in none; a has a web pod.
fn default_spread_cluster(more: impl IntoIterator<Item = Builder>) -> Cluster {
    let in_zone = |name: &str| node(name).label(ZONE_LABEL, "z1");
    let nodes = [in_zone("a"), in_zone("b"), node("c"), web("w").label("tier", "1").on("a")];
    cluster(nodes.into_iter().chain(more))
}

#[test]
fn system_defaults_spread_the_pods_of_a_service_or_an_owner() {
    let by_map = json!({"app": "web"});
    let by_selector = json!({"matchLabels": {"app": "web"}});
    let owned = |api_version: &str, kind: &str| web("p").owner(api_version, kind, "web");
    // Hosts count with maxSkew 3 and ln 5, zones (z1 and none at all) with maxSkew 5 and ln 4:
    // a: ln 5 + 2 + ln 4 + 4 = 9.0, b: 0 + 2 + ln 4 + 4 = 7.39, c: 0 + 2, as it has no zone
    // a: 100 × (9 + 2 − 9) / 9 = 22.2, b: 100 × (9 + 2 − 7) / 9 = 44.4, c: 100
    let spread = (vec![9, 7, 2], vec![22, 44, 100]);
    let skipped = (vec![], vec![]);
    // (who selects, the pod, scores)
    let cases = [
        ("service", Some(selecting("v1", "Service", "web", by_map.clone())), web("p"), &spread),
        (
            "replication controller",
            Some(selecting("v1", "ReplicationController", "web", by_map.clone())),
            owned("v1", "ReplicationController"),
            &spread,
        ),
        (
            "replica set",
            Some(selecting("apps/v1", "ReplicaSet", "web", by_selector.clone())),
            owned("apps/v1", "ReplicaSet"),
            &spread,
        ),
        (
            "stateful set",
            Some(selecting("apps/v1", "StatefulSet", "web", by_selector.clone())),
            owned("apps/v1", "StatefulSet"),
            &spread,
        ),
        (
            "an owner of another version",
            Some(selecting("apps/v1", "ReplicaSet", "web", by_selector)),
            owned("extensions/v1beta1", "ReplicaSet"),
            &skipped,
        ),
        ("an owner that is gone", None, owned("apps/v1", "ReplicaSet"), &skipped),
        (
            "a service of others",
            Some(selecting("v1", "Service", "db", json!({"app": "db"}))),
            web("p"),
            &skipped,
        ),
        (
            "a service that selects by nothing",
            Some(selecting("v1", "Service", "all", json!({}))),
            web("p"),
            &skipped,
        ),
        ("nobody", None, web("p"), &skipped),
    ];
    for (name, selecting, pod, expected) in cases {
        let cluster = default_spread_cluster(selecting);
        let scores = score(&default_plugin(), &cluster, &pod.pod()).unwrap();
        assert_eq!(&scores, expected, "{name}");
    }
}

#[test]
fn siblings_are_what_services_and_owner_select_together() {
    let both = [
        selecting("v1", "Service", "web", json!({"app": "web"})),
        selecting("apps/v1", "ReplicaSet", "web-2", json!({"matchLabels": {"tier": "2"}})),
    ];
    // The one that is there is of the same service, but not of the same replica set: only maxSkew − 1 is left.
    // a and b: 2 + 4, c: 2. a: 100 × (6 + 2 − 6) / 6 = 33.3
    let waits = web("p").label("tier", "2").owner("apps/v1", "ReplicaSet", "web-2").pod();
    let scores = score(&default_plugin(), &default_spread_cluster(both), &waits).unwrap();
    assert_eq!(scores, (vec![6, 6, 2], vec![33, 33, 100]));
    // A replication controller selects by a map, as a service does: of two values for a label its own holds. The db pod on a
    // counts, the web pod there does not.
    let both = [
        selecting("v1", "Service", "web", json!({"app": "web"})),
        selecting("v1", "ReplicationController", "web", json!({"app": "db"})),
        pod("db").label("app", "db").on("a"),
    ];
    let waits = web("p").owner("v1", "ReplicationController", "web").pod();
    let scores = score(&default_plugin(), &default_spread_cluster(both), &waits).unwrap();
    assert_eq!(scores, (vec![9, 7, 2], vec![22, 44, 100]));
}

#[test]
fn listed_defaults_hold_for_pods_without_constraints_of_their_own() {
    let text = "{defaultingType: List, defaultConstraints: [
        {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule},
        {topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}";
    let plugin = with_args(text).unwrap();
    let service = || selecting("v1", "Service", "web", json!({"app": "web"}));
    let cluster = cluster(two_zones().into_iter().chain([service()]));
    // As with a constraint of the pod's own.
    assert_eq!(marks(&plugin, &cluster, web("p")), "xx+?");
    // z1: 2 × ln 4 = 2.77, z2: ln 4 = 1.39; c: 100 × (3 + 1 − 1) / 3. d lacks the label.
    let (raw, normalized) = score(&plugin, &cluster, &web("p").pod()).unwrap();
    assert_eq!((raw, normalized), (vec![3, 3, 1, 0], vec![33, 33, 100, 0]));
    // Its own constraints stand alone, and a pod that nothing selects has none.
    assert_eq!(marks(&plugin, &cluster, constrained(web("p"), json!([soft("zone", 1)]))), "++++");
    assert_eq!(marks(&plugin, &cluster, pod("p")), "++++");
    // An empty list is no default at all.
    let none = with_args("{defaultingType: List}").unwrap();
    assert_eq!(score(&none, &cluster, &web("p").pod()).unwrap(), (vec![], vec![]));
}

#[test]
fn bad_arguments_are_told_with_their_place() {
    let list = |constraint: &str| format!("{{defaultingType: List, defaultConstraints: [{constraint}]}}");
    const GOOD: &str = "{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}";
    const HARD: &str = "{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}";
    let cases: &[(String, &[&str])] = &[
        (list(GOOD), &[]),
        (list(&format!("{GOOD}, {HARD}")), &[]),
        (list(&format!("{GOOD}, {GOOD}")), &["args.defaultConstraints[1]"]),
        (format!("{{defaultConstraints: [{GOOD}]}}"), &["args.defaultingType"]),
        (
            list("{topologyKey: zone, maxSkew: 0, whenUnsatisfiable: ScheduleAnyway}"),
            &["args.defaultConstraints[0].maxSkew"],
        ),
        (
            list("{topologyKey: a b, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}"),
            &["args.defaultConstraints[0].topologyKey"],
        ),
        (
            list("{maxSkew: 1}"),
            &["args.defaultConstraints[0].topologyKey", "args.defaultConstraints[0].whenUnsatisfiable"],
        ),
        (
            list("{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: Never}"),
            &["args.defaultConstraints[0].whenUnsatisfiable"],
        ),
        (
            list("{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}"),
            &["args.defaultConstraints[0].labelSelector"],
        ),
        ("{formula: Linear}".to_owned(), &["args.formula"]),
        ("{defaultingType: Both}".to_owned(), &["args.defaultingType"]),
    ];
    for (text, expected) in cases {
        let paths: Vec<String> = match with_args(text) {
            Ok(_) => vec![],
            Err(problems) => problems.0.into_iter().map(|p| p.path).collect(),
        };
        assert_eq!(paths, *expected, "{text}");
    }
}

#[test]
fn pods_that_change_a_count_help() {
    let waiting = constrained(web("p"), json!([hard("zone", 1)])).pod();
    let interest = &default_plugin().events()[0];
    let helps = |action, before: Option<&Pod>, after: Option<&Pod>| {
        interest.helps(
            &supercargo_model::Cluster::default(),
            EventResource::Pod,
            action,
            &waiting,
            &Change::Pod(before, after),
        )
    };
    let (counted, other) = (web("q").on("a").pod(), pod("q").on("a").pod());
    let unplaced = web("q").pod();
    let elsewhere = web("q").namespace("elsewhere").on("a").pod();
    assert!(helps(ActionType::Add, None, Some(&counted)));
    assert!(helps(ActionType::Delete, Some(&counted), None));
    assert!(helps(ActionType::UpdatePodLabel, Some(&other), Some(&counted)));
    assert!(helps(ActionType::UpdatePodLabel, Some(&counted), Some(&other)));
    assert!(!helps(ActionType::UpdatePodLabel, Some(&counted), Some(&counted)));
    for useless in [&other, &unplaced, &elsewhere] {
        assert!(!helps(ActionType::Add, None, Some(useless)));
        assert!(!helps(ActionType::Delete, Some(useless), None));
    }
}

#[test]
fn a_new_toleration_helps_where_taints_decide_what_counts() {
    let helps = |constraint: Value| {
        let waiting = constrained(web("p"), json!([constraint]));
        let before = waiting.clone().pod();
        let after = waiting.toleration(json!({"operator": "Exists"})).pod();
        let change = Change::Pod(Some(&before), Some(&after));
        let interest = &default_plugin().events()[0];
        interest.helps(
            &supercargo_model::Cluster::default(),
            EventResource::Pod,
            ActionType::UpdatePodToleration,
            &before,
            &change,
        )
    };
    assert!(helps(but(hard("zone", 1), "nodeTaintsPolicy", json!("Honor"))));
    assert!(!helps(hard("zone", 1)));
}

#[test]
fn nodes_that_change_the_domains_help() {
    let interest = &default_plugin().events()[1];
    let helps = |waiting: &Pod, before: Option<&Node>, after: Option<&Node>| {
        let change = Change::Node(before, after);
        interest.helps(
            &supercargo_model::Cluster::default(),
            EventResource::Node,
            ActionType::UpdateNodeLabel,
            waiting,
            &change,
        )
    };
    let waiting = constrained(web("p"), json!([hard("zone", 1)])).pod();
    let (z1, z2, none) = (zoned("n", "z1").node(), zoned("n", "z2").node(), node("n").node());
    let tainted = zoned("n", "z1").taint("a", "", "NoSchedule").node();
    let labelled = zoned("n", "z1").label("other", "x").node();
    // (before, after, helps)
    let cases = [
        (None, Some(&z1), true),
        (None, Some(&none), false),
        (Some(&z1), None, true),
        (Some(&none), None, false),
        (Some(&z1), Some(&z2), true),
        (Some(&none), Some(&z1), true),
        (Some(&z1), Some(&none), true),
        (Some(&z1), Some(&tainted), true),
        (Some(&z1), Some(&labelled), false),
        (Some(&none), Some(&none), false),
    ];
    for (i, (before, after, expected)) in cases.into_iter().enumerate() {
        assert_eq!(helps(&waiting, before, after), expected, "case {i}");
    }
    // The built-in defaults are soft, and refuse nobody.
    let by_defaults = web("p").pod();
    assert!(!helps(&by_defaults, Some(&z1), Some(&z2)));
    assert!(helps(&by_defaults, None, Some(&none)), "as kube-scheduler: every new node has all of no labels");
}

#[test]
fn defaults_are_looked_at_as_closely_as_own_constraints() {
    let text = r#"{"defaultingType": "List", "defaultConstraints":
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]}"#;
    let events = with_args(text).unwrap().events();
    let service = object(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"app": "web"}},
    }));
    let (served, empty) = (cluster([service]), Cluster::default());
    let waiting = web("p").pod();
    let counted = web("q").on("a").pod();
    let other = pod("q").on("a").pod();
    let comes = |cluster: &Cluster, pod: &Pod| {
        events[0].helps(cluster, EventResource::Pod, ActionType::Add, &waiting, &Change::Pod(None, Some(pod)))
    };
    assert!(comes(&served, &counted));
    assert!(!comes(&served, &other));
    assert!(!comes(&empty, &counted), "without a service there is no default to be refused by");
    let (z1, z2) = (zoned("n", "z1").node(), zoned("n", "z2").node());
    let moves = |cluster: &Cluster| {
        let change = Change::Node(Some(&z1), Some(&z2));
        events[1].helps(cluster, EventResource::Node, ActionType::UpdateNodeLabel, &waiting, &change)
    };
    assert!(moves(&served) && !moves(&empty));
}
