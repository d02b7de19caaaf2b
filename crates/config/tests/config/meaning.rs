//! Order, weights and defaults, in tables.

use supercargo_config::{Configuration, TieBreak, default_configuration, diff, load};
use supercargo_framework::registry::Point;
use supercargo_manifest::Source;

use crate::load_v1;

fn configuration(lines: &str) -> Configuration {
    load_v1(lines).unwrap_or_else(|problems| panic!("{lines}\n{problems}")).configuration
}

/// The plugins at a point, as `name` or `name:weight`.
fn at(point: Point, plugins: &str) -> String {
    let configuration = configuration(&format!("profiles:\n- plugins: {{{plugins}}}\n"));
    let shown = configuration.profiles[0].at(point).iter().map(|choice| match point {
        Point::Score => format!("{}:{}", choice.plugin, choice.weight),
        _ => choice.plugin.to_string(),
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn scores_are_merged_in_order() {
    let rest = "VolumeBinding:1 PodTopologySpread:2 InterPodAffinity:2 DynamicResources:2 NodeResourcesBalancedAllocation:1";
    let fit_and_rest = format!("NodeResourcesFit:1 {rest}");
    for (plugins, expected) in [
        // Nothing said: the default order and weights.
        ("", format!("TaintToleration:3 NodeAffinity:2 {fit_and_rest} ImageLocality:1")),
        // Named at the point: first, with that weight.
        (
            "score: {enabled: [{name: ImageLocality, weight: 7}]}",
            format!("ImageLocality:7 TaintToleration:3 NodeAffinity:2 {fit_and_rest}"),
        ),
        // Named at the point without a weight: 1, not the default 3.
        (
            "score: {enabled: [{name: TaintToleration}]}",
            format!("TaintToleration:1 NodeAffinity:2 {fit_and_rest} ImageLocality:1"),
        ),
        // Named in multiPoint: in its old place, with that weight.
        (
            "multiPoint: {enabled: [{name: NodeAffinity, weight: 5}]}",
            format!("TaintToleration:3 NodeAffinity:5 {fit_and_rest} ImageLocality:1"),
        ),
        // Not on by default: after the default ones.
        (
            "multiPoint: {enabled: [{name: NodeResourcesMostAllocated, weight: 4}]}",
            format!(
                "TaintToleration:3 NodeAffinity:2 {fit_and_rest} ImageLocality:1 NodeResourcesMostAllocated:4"
            ),
        ),
        (
            "score: {enabled: [{name: NodeResourcesMostAllocated, weight: 4}]}",
            format!(
                "TaintToleration:3 NodeAffinity:2 {fit_and_rest} ImageLocality:1 NodeResourcesMostAllocated:4"
            ),
        ),
        // Disabled and enabled at the point: enabled, at the end.
        (
            "score: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration, weight: 9}]}",
            format!("NodeAffinity:2 {fit_and_rest} ImageLocality:1 TaintToleration:9"),
        ),
        // Disabled and enabled in multiPoint: at the end, and there without its default weight.
        (
            "multiPoint: {disabled: [{name: TaintToleration}], enabled: [{name: TaintToleration}]}",
            format!("NodeAffinity:2 {fit_and_rest} ImageLocality:1 TaintToleration:1"),
        ),
        // The point's weight goes before multiPoint's.
        (
            "multiPoint: {enabled: [{name: NodeAffinity, weight: 5}]}, score: {enabled: [{name: NodeAffinity, weight: 6}]}",
            format!("NodeAffinity:6 TaintToleration:3 {fit_and_rest} ImageLocality:1"),
        ),
        // All disabled at the point: only what the point names.
        ("score: {disabled: [{name: '*'}]}", String::new()),
        (
            "score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity}, {name: ImageLocality, weight: 2}]}",
            "NodeAffinity:1 ImageLocality:2".to_owned(),
        ),
        // Disabled in multiPoint, and enabled at the point.
        (
            "multiPoint: {disabled: [{name: NodeAffinity}]}, score: {enabled: [{name: NodeAffinity, weight: 2}]}",
            format!("TaintToleration:3 {fit_and_rest} ImageLocality:1 NodeAffinity:2"),
        ),
        // An explicit 0 stays 0.
        (
            "score: {enabled: [{name: NodeAffinity, weight: 0}]}",
            format!("NodeAffinity:0 TaintToleration:3 {fit_and_rest} ImageLocality:1"),
        ),
        // A negative weight is refused only where kube-scheduler's count overflows, which is not so for the
        // last one.
        (
            "multiPoint: {enabled: [{name: ImageLocality, weight: -2}]}",
            format!("TaintToleration:3 NodeAffinity:2 {fit_and_rest} ImageLocality:-2"),
        ),
    ] {
        assert_eq!(at(Point::Score, plugins), expected, "{plugins}");
    }
}

#[test]
fn other_points_are_merged_in_order() {
    for (point, plugins, expected) in [
        (Point::Bind, "", "DefaultBinder"),
        (Point::PostFilter, "", "DynamicResources DefaultPreemption"),
        (Point::PostFilter, "postFilter: {disabled: [{name: DynamicResources}]}", "DefaultPreemption"),
        (
            Point::PostFilter,
            "postFilter: {enabled: [{name: DefaultPreemption}]}",
            "DefaultPreemption DynamicResources",
        ),
        (Point::PostFilter, "multiPoint: {disabled: [{name: DefaultPreemption}]}", "DynamicResources"),
        (
            Point::Filter,
            "filter: {disabled: [{name: '*'}], enabled: [{name: NodeName}, {name: NodePorts}]}",
            "NodeName NodePorts",
        ),
    ] {
        assert_eq!(at(point, plugins), expected, "{plugins}");
    }
}

#[test]
fn fills_in_defaults() {
    let configuration =
        default_configuration(&supercargo_plugins::registry()).expect("the defaults are complete");
    insta::assert_snapshot!("defaults", configuration.to_yaml(&supercargo_plugins::registry()));
    assert_eq!(configuration.min_feasible_nodes_to_find, 100);
    assert_eq!(configuration.tie_break, TieBreak::Random);
}

#[test]
fn reads_every_field() {
    let configuration = configuration(include_str!("../data/every_field.yaml"));
    insta::assert_snapshot!("every_field", configuration.to_yaml(&supercargo_plugins::registry()));
    assert_eq!(configuration.min_feasible_nodes_to_find, 5);
    assert_eq!(configuration.tie_break, TieBreak::First);
    assert_eq!(configuration.percentage_for(&configuration.profiles[0]), 30);
    assert_eq!(configuration.percentage_for(&configuration.profiles[1]), 50);
    assert_eq!(configuration.healthz_bind_address.as_deref(), Some("0.0.0.0:10251"));
}

#[test]
fn reads_json() {
    let text = r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "parallelism": 3}"#;
    let loaded = load(&Source::new("config.json", text), &supercargo_plugins::registry())
        .expect("it is a configuration");
    assert_eq!(loaded.configuration.parallelism, 3);
}

#[test]
fn makes_each_plugin_of_each_profile() {
    let configuration =
        configuration("profiles: [{schedulerName: a, percentageOfNodesToScore: 20}, {schedulerName: b}]\n");
    let profiles = configuration.profiles(&supercargo_plugins::registry()).expect("all plugins can be made");
    let made: Vec<(&str, u32)> = profiles
        .iter()
        .map(|ready| (&**ready.profile.scheduler_name(), ready.percentage_of_nodes_to_score))
        .collect();
    assert_eq!(made, [("a", 20), ("b", 0)]);
}

#[test]
fn an_old_default_in_new_words_differs_in_nothing() {
    let registry = supercargo_plugins::registry();
    let one = configuration("");
    let other = configuration(
        "profiles:\n- schedulerName: default-scheduler\n  pluginConfig:\n  - name: DefaultPreemption\n    args: {}\n",
    );
    let changes = diff(&one, &other, &registry);
    // Until a plugin tells its default arguments, empty ones are a difference that can be seen.
    assert!(changes.iter().all(|change| change.path.contains("pluginConfig")), "{changes:?}");
}

#[test]
fn the_order_of_keys_is_no_difference() {
    let with_point = |point: &str| {
        configuration(&format!(
            "profiles: [{{pluginConfig: [{{name: NodeResourcesFit, args: {{scoringStrategy: \
             {{type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: [{{{point}}}]}}}}}}}}]}}]\n"
        ))
    };
    let changes = |one: &str, other: &str| {
        diff(&with_point(one), &with_point(other), &supercargo_plugins::registry()).len()
    };
    assert_eq!(changes("utilization: 0, score: 5", "score: 5, utilization: 0"), 0);
    assert_eq!(changes("utilization: 0, score: 5", "utilization: 0, score: 6"), 1);
}

#[test]
fn tells_what_changes_in_meaning() {
    let before = configuration("parallelism: 16\n");
    let after = configuration(
        "parallelism: 8
percentageOfNodesToScore: 50
profiles:
- plugins:
    score:
      enabled: [{name: NodeAffinity, weight: 5}]
      disabled: [{name: ImageLocality}]
  pluginConfig:
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 7}
- schedulerName: other
extenders: [{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true}]
"
        .replace("- plugins:", "- schedulerName: default-scheduler\n  plugins:")
        .as_str(),
    );
    let changes = diff(&before, &after, &supercargo_plugins::registry());
    let lines: Vec<String> =
        changes.iter().map(ToString::to_string).map(|line| line.chars().take(150).collect()).collect();
    insta::assert_snapshot!("changes", lines.join("\n"));
}

#[test]
fn resources_that_extenders_check_alone_are_ignored_by_fit_in_every_profile() {
    use supercargo_model::testing::{cluster, node, pod};
    let extender = |ignored: bool| {
        format!(
            "extenders: [{{urlPrefix: 'http://x', filterVerb: f, nodeCacheCapable: true, managedResources: \
             [{{name: example.com/gpu, ignoredByScheduler: {ignored}}}]}}]\n"
        )
    };
    let given = "profiles:\n- {schedulerName: one}\n- {schedulerName: two, pluginConfig: [{name: NodeResourcesFit, \
                 args: {ignoredResources: [example.com/other]}}]}\n";
    // (ignored?, how many profiles let a pod pass that asks for a gpu, or for another resource; no node has either)
    for (ignored, gpu, other) in [(true, 2, 0), (false, 0, 1)] {
        let configuration = configuration(&format!("{given}{}", extender(ignored)));
        let cluster = cluster([node("a").allocatable("pods", "9")]);
        let passes = |resource: &str| {
            let pod = pod("p").container(&[(resource, "1")]).pod();
            let profiles = configuration.profiles(&supercargo_plugins::registry()).expect("plugins");
            profiles
                .iter()
                .filter(|ready| {
                    let found = ready.profile.pre_filter(&cluster, &pod).expect("no error");
                    let supercargo_framework::profile::PreFilterEnd::Go(go) = found else { return false };
                    let node = cluster.node("a").expect("it is there");
                    let none = supercargo_framework::preemption::Nominations::default();
                    ready.profile.filter_with_nominated(&go.state, &cluster, &none, &pod, node).is_ok()
                })
                .count()
        };
        assert_eq!((passes("example.com/gpu"), passes("example.com/other")), (gpu, other), "{ignored}");
    }
}
