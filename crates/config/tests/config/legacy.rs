//! Older versions of the kind.

use supercargo_config::{Loaded, diff, load, migrate};
use supercargo_framework::registry::Point;
use supercargo_manifest::{Problems, Source};

use crate::load_v1;

fn old(version: &str, lines: &str) -> Source {
    let text = format!(
        "apiVersion: kubescheduler.config.k8s.io/{version}\nkind: KubeSchedulerConfiguration\n{lines}"
    );
    Source::new("old.yaml", text)
}

fn load_old(version: &str, lines: &str) -> Result<Loaded, Problems> {
    load(&old(version, lines), &supercargo_plugins::registry())
}

#[test]
fn clear_meanings_are_kept() {
    for (version, lines, in_v1) in [
        ("v1beta3", "parallelism: 4\n", "parallelism: 4\n"),
        (
            "v1beta2",
            "profiles: [{plugins: {multiPoint: {disabled: [{name: NodePorts}]}}}]\n",
            "profiles: [{plugins: {multiPoint: {disabled: [{name: NodePorts}]}}}]\n",
        ),
        (
            "v1alpha2",
            "disablePreemption: true\n",
            "profiles: [{plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}]\n",
        ),
        (
            "v1alpha2",
            "bindTimeoutSeconds: 60\n",
            "profiles: [{pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 60}}]}]\n",
        ),
        ("v1alpha1", "algorithmSource: {provider: DefaultProvider}\n", ""),
        (
            "v1alpha1",
            "schedulerName: mine\ndisablePreemption: false\n",
            "profiles: [{schedulerName: mine}]\n",
        ),
        (
            "v1alpha1",
            "plugins: {score: {enabled: [{name: ImageLocality, weight: 4}]}}\n",
            "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 4}]}}}]\n",
        ),
        (
            "v1alpha1",
            "hardPodAffinitySymmetricWeight: 9\n",
            "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 9}}]}]\n",
        ),
        (
            "v1alpha1",
            "leaderElection: {lockObjectName: a, lockObjectNamespace: b}\n",
            "leaderElection: {resourceName: a, resourceNamespace: b}\n",
        ),
        (
            "v1alpha1",
            "algorithmSource: {provider: ClusterAutoscalerProvider}\n",
            "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}}]}]\n",
        ),
    ] {
        let loaded = load_old(version, lines).unwrap_or_else(|problems| panic!("{lines}\n{problems}"));
        let registry = supercargo_plugins::registry();
        let expected = load_v1(in_v1).expect("it is a configuration of v1").configuration;
        let changes = diff(&expected, &loaded.configuration, &registry);
        assert!(changes.is_empty(), "{lines}\n{changes:?}");
        assert!(
            loaded.warnings.iter().any(|warning| warning.path == "apiVersion"),
            "{lines}\n{}",
            loaded.warnings
        );
        let migrated = migrate(&old(version, lines), &registry).expect("it can be written anew");
        let again = load(&Source::new("new.yaml", &*migrated.yaml), &registry)
            .expect("what is written anew can be read");
        let changes = diff(&expected, &again.configuration, &registry);
        let weights: Vec<String> = changes
            .iter()
            .map(|change| match (change.path.split(['[', ']']).nth(3), &change.after) {
                (Some(plugin), Some(weight)) => format!("{plugin} {weight}"),
                _ => change.to_string(),
            })
            .collect();
        assert_eq!(weights, older_weights(version), "{}", migrated.yaml);
    }
}

/// The default weights of a version that are not those of v1.
fn older_weights(version: &str) -> &'static [&'static str] {
    match version {
        // kube-scheduler 1.18: all 1.
        "v1alpha1" | "v1alpha2" => {
            &["TaintToleration 1", "NodeAffinity 1", "PodTopologySpread 1", "InterPodAffinity 1"]
        }
        // 1.19 to 1.22, and up to 1.27 as v1beta2: all 1, but PodTopologySpread 2, as in v1.
        "v1beta1" | "v1beta2" => &["TaintToleration 1", "NodeAffinity 1", "InterPodAffinity 1"],
        _ => &[],
    }
}

/// The scores of a configuration that was written anew, as `name:weight`, and the strategy of NodeResourcesFit.
fn migrated(version: &str, lines: &str) -> (String, String, Problems) {
    let registry = supercargo_plugins::registry();
    let migrated =
        migrate(&old(version, lines), &registry).unwrap_or_else(|problems| panic!("{lines}\n{problems}"));
    let loaded = load(&Source::new("new.yaml", &*migrated.yaml), &registry);
    let loaded = loaded.unwrap_or_else(|problems| panic!("{}\n{problems}", migrated.yaml));
    assert!(loaded.warnings.is_empty(), "{}\n{}", migrated.yaml, loaded.warnings);
    let profile = &loaded.configuration.profiles[0];
    let fit = profile.arguments.iter().find(|arguments| &*arguments.plugin == "NodeResourcesFit");
    let strategy = fit.and_then(|fit| fit.value.get("scoringStrategy")).map(|strategy| strategy.to_json());
    let scores = profile.at(Point::Score).iter().map(|choice| format!("{}:{}", choice.plugin, choice.weight));
    (scores.collect::<Vec<_>>().join(" "), strategy.unwrap_or_default(), migrated.warnings)
}

#[test]
fn ways_to_score_resources_become_one_strategy() {
    let rest = "TaintToleration:1 NodeAffinity:1";
    let last = "VolumeBinding:1 PodTopologySpread:2 InterPodAffinity:1 DynamicResources:2 \
                NodeResourcesBalancedAllocation:1 ImageLocality:1";
    let both = r#"[{"name":"cpu","weight":1},{"name":"memory","weight":1}]"#;
    let most = format!(r#"{{"type":"MostAllocated","resources":{both}}}"#);
    for (lines, scores, strategy, warned) in [
        ("", format!("{rest} NodeResourcesFit:1 {last}"), String::new(), 1),
        // The usual way to bin-pack.
        (
            "profiles: [{plugins: {score: {disabled: [{name: NodeResourcesLeastAllocated}], enabled: [{name: NodeResourcesMostAllocated, weight: 5}]}}}]\n",
            format!("NodeResourcesFit:5 {rest} {last}"),
            most.clone(),
            1,
        ),
        // With arguments that say of which version they are.
        (
            "profiles: [{plugins: {score: {disabled: [{name: '*'}], enabled: [{name: NodeResourcesMostAllocated, weight: 2}]}}, \
             pluginConfig: [{name: NodeResourcesMostAllocated, args: {apiVersion: kubescheduler.config.k8s.io/v1beta1, \
             kind: NodeResourcesMostAllocatedArgs, resources: [{name: cpu, weight: 3}]}}]}]\n",
            "NodeResourcesFit:2".to_owned(),
            r#"{"type":"MostAllocated","resources":[{"name":"cpu","weight":3}]}"#.to_owned(),
            0,
        ),
        (
            "profiles: [{plugins: {score: {disabled: [{name: NodeResourcesLeastAllocated}], enabled: [{name: RequestedToCapacityRatio}]}}, \
             pluginConfig: [{name: RequestedToCapacityRatio, args: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}]}]\n",
            format!("NodeResourcesFit:1 {rest} {last}"),
            format!(
                r#"{{"type":"RequestedToCapacityRatio","resources":{both},"requestedToCapacityRatio":{{"shape":[{{"utilization":0,"score":0}},{{"utilization":100,"score":10}}]}}}}"#
            ),
            1,
        ),
        // None at all.
        (
            "profiles: [{plugins: {score: {disabled: [{name: NodeResourcesLeastAllocated}]}}}]\n",
            format!("{rest} {last}"),
            String::new(),
            1,
        ),
        // Both: the one that counts more stays, and the other is told.
        (
            "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesMostAllocated, weight: 5}]}}}]\n",
            format!("NodeResourcesFit:5 {rest} {last}"),
            most,
            2,
        ),
    ] {
        let (found, way, warnings) = migrated("v1beta1", lines);
        assert_eq!((found, way, warnings.len()), (scores, strategy, warned), "{lines}\n{warnings}");
    }
}

#[test]
fn what_is_lost_is_said() {
    let lost = [
        ("v1beta1", "healthzBindAddress: '0.0.0.0:10251'\nmetricsBindAddress: ':0'\n"),
        (
            "v1beta1",
            "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: NodePreferAvoidPods\n        weight: 10000\n",
        ),
        (
            "v1beta1",
            "profiles:\n- plugins:\n    score:\n      disabled:\n      - name: NodePreferAvoidPods\n",
        ),
        (
            "v1beta1",
            "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: NodeResourcesMostAllocated\n        weight: 5\n",
        ),
        ("v1beta1", "algorithmSource:\n  provider: DefaultProvider\n"),
        ("v1beta3", "profiles:\n- plugins:\n    multiPoint:\n      disabled:\n      - name: EBSLimits\n"),
        (
            "v1alpha1",
            "plugins:\n  filter:\n    enabled:\n    - name: NodeLabel\npluginConfig:\n- name: NodeLabel\n  args:\n    presentLabels: [zone]\n",
        ),
        ("v1beta1", "leaderElection:\n  resourceLock: endpointsleases\n"),
    ];
    let reports = lost.map(|(version, lines)| format!("{lines}\n{}", migrated(version, lines).2));
    insta::assert_snapshot!("lost", reports.join("\n\n----\n\n"));
}

#[test]
fn what_would_not_be_accepted_is_not_written() {
    for (version, lines, path) in [
        ("v1beta1", "paralelism: 3\n", "paralelism"),
        ("v1", "algorithmSource: {provider: DefaultProvider}\n", "algorithmSource"),
        (
            "v1beta2",
            "profiles: [{plugins: {score: {enabled: [{name: Mine}]}}}]\n",
            "profiles[0].plugins.score.enabled[0]",
        ),
        ("v1alpha1", "plugins: {score: {enabled: [{name: Mine}]}}\n", "plugins.score.enabled[0]"),
    ] {
        let problems = migrate(&old(version, lines), &supercargo_plugins::registry()).expect_err(lines);
        let blamed = problems.iter().any(|problem| problem.path == path && problem.at.is_some());
        assert!(blamed, "{lines}\n{problems}");
    }
}

#[test]
fn unclear_meanings_are_refused_with_a_hint() {
    let unclear = [
        ("v1alpha1", "algorithmSource:\n  policy:\n    file:\n      path: policy.cfg\n"),
        ("v1alpha1", "algorithmSource:\n  provider: TalkintDataProvider\n"),
        ("v1alpha1", "plugins:\n  postFilter:\n    enabled:\n    - name: NodeAffinity\n"),
        ("v1alpha1", "plugins:\n  unreserve:\n    enabled:\n    - name: VolumeBinding\n"),
        ("v1alpha2", "profiles:\n- plugins:\n    unreserve:\n      enabled:\n      - name: VolumeBinding\n"),
        ("v1alpha1", "profiles:\n- schedulerName: a\n"),
        ("v1alpha1", "hardPodAffinitySymmetricWeight: 101\n"),
        ("v1alpha1", "plugins:\n  score:\n    enabled:\n    - name: ImageLocallity\n"),
        ("v1beta1", "algorithmSource:\n  provider: DefaultProvider\n"),
    ];
    let reports = unclear.map(|(version, lines)| {
        let problems = load_old(version, lines).expect_err(lines);
        let errors = problems.iter().filter(|problem| problem.path != "apiVersion").map(ToString::to_string);
        errors.collect::<Vec<_>>().join("\n\n")
    });
    insta::assert_snapshot!("unclear", reports.join("\n\n----\n\n"));
}
