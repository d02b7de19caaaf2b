//! Configurations that were written out: by us, and by kube-scheduler 1.36.4 (`--write-config-to`,
//! `data/spelled_out/*.written.yaml`, each from the `.given.yaml` beside it).

use supercargo_config::{Loaded, diff, load};
use supercargo_framework::registry::Point;
use supercargo_manifest::Source;

use crate::load_v1;

const SPELLED_OUT: [(&str, &str, &str); 3] = [
    (
        "defaults",
        include_str!("../data/spelled_out/defaults.given.yaml"),
        include_str!("../data/spelled_out/defaults.written.yaml"),
    ),
    (
        "scores",
        include_str!("../data/spelled_out/scores.given.yaml"),
        include_str!("../data/spelled_out/scores.written.yaml"),
    ),
    (
        "profiles",
        include_str!("../data/spelled_out/profiles.given.yaml"),
        include_str!("../data/spelled_out/profiles.written.yaml"),
    ),
];

fn loaded(name: &str, text: &str) -> Loaded {
    load(&Source::new(name, text), &supercargo_plugins::registry())
        .unwrap_or_else(|problems| panic!("{name}\n{problems}"))
}

#[test]
fn what_kube_scheduler_wrote_means_what_it_was_written_from() {
    for (name, given, written) in SPELLED_OUT {
        let (given, written) = (loaded(name, given), loaded(name, written));
        assert!(written.warnings.is_empty(), "{name}\n{}", written.warnings);
        assert_eq!(written.configuration.effective(), given.configuration.effective(), "{name}");
        // kube-scheduler limits its requests by default, and says so; here nothing is limited by default.
        let changes = diff(&given.configuration, &written.configuration, &supercargo_plugins::registry());
        let paths: Vec<&str> = changes.iter().map(|change| &*change.path).collect();
        let expected: &[&str] = if name == "profiles" { &[] } else { &["clientConnection.qps"] };
        assert_eq!(paths, expected, "{name}\n{changes:?}");
    }
}

#[test]
fn zero_is_no_weight_only_where_kube_scheduler_wrote_it() {
    let [_, (name, _, written), _] = SPELLED_OUT;
    let scores = |lists: &str| {
        let lists = load_v1(&format!("profiles: [{{plugins: {{{lists}}}}}]\n")).expect(lists);
        let weighed =
            lists.configuration.profiles[0].at(Point::Score).iter().find(|c| &*c.plugin == "TaintToleration");
        (weighed.map(|choice| choice.weight), lists.warnings.len())
    };
    let of_kube_scheduler = loaded(name, written);
    let score = &of_kube_scheduler.configuration.profiles[0].at(Point::Score)[0];
    assert_eq!((&*score.plugin, score.weight), ("TaintToleration", 1));
    for (lists, expected) in [
        // By hand, in the score list: no influence, and a warning.
        ("score: {enabled: [{name: TaintToleration, weight: 0}]}", (Some(0), 1)),
        // Other weights beside it do not make it kube-scheduler's.
        (
            "score: {enabled: [{name: TaintToleration, weight: 0}, {name: NodeAffinity, weight: 2}]}",
            (Some(0), 1),
        ),
        (
            "multiPoint: {enabled: [{name: NodePorts}]}, score: {enabled: [{name: TaintToleration, weight: 0}]}",
            (Some(0), 1),
        ),
        // As kube-scheduler writes it: every entry has a weight, also those that cannot count.
        (
            "multiPoint: {enabled: [{name: NodePorts, weight: 0}]}, score: {enabled: [{name: TaintToleration, weight: 0}]}",
            (Some(1), 0),
        ),
        (
            "filter: {disabled: [{name: NodePorts, weight: 0}]}, score: {enabled: [{name: TaintToleration, weight: 0}]}",
            (Some(1), 0),
        ),
        // In multiPoint, 0 is no weight, as in kube-scheduler; by hand it may be meant otherwise.
        ("multiPoint: {enabled: [{name: TaintToleration, weight: 0}]}", (Some(1), 1)),
    ] {
        assert_eq!(scores(lists), expected, "{lists}");
    }
}

#[test]
fn no_limit_is_written_down_and_stays_none() {
    let registry = supercargo_plugins::registry();
    for (lines, limit, written) in [
        ("", None, "qps: -1\n"),
        ("clientConnection: {qps: 0}\n", None, "qps: -1\n"),
        ("clientConnection: {qps: -1}\n", None, "qps: -1\n"),
        ("clientConnection: {qps: -7.5}\n", None, "qps: -1\n"),
        ("clientConnection: {burst: 3}\n", None, "qps: -1\n"),
        ("clientConnection: {qps: 50}\n", Some(50.0), "qps: 50\n"),
        ("clientConnection: {qps: 0.5, burst: 1}\n", Some(0.5), "qps: 0.5\n"),
    ] {
        let configuration = load_v1(lines).expect(lines).configuration;
        assert_eq!(configuration.client_connection.queries_per_second(), limit, "{lines}");
        let text = configuration.to_yaml(&registry);
        assert!(text.contains(written), "{lines}\n{text}");
        let again = loaded("again.yaml", &text);
        assert!(again.warnings.is_empty(), "{}", again.warnings);
        assert_eq!(again.configuration.client_connection, configuration.client_connection, "{lines}");
        assert_eq!(again.configuration.to_yaml(&registry), text, "{lines}");
    }
}
