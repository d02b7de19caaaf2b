//! Older versions of the kind.

use supercargo_config::{Loaded, diff, load, migrate};
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
        ("v1beta1", "healthzBindAddress: '0.0.0.0:1'\n", "healthzBindAddress: '0.0.0.0:1'\n"),
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
        let migrated = migrate(&old(version, lines)).expect("it can be written anew");
        let again = load(&Source::new("new.yaml", &*migrated.yaml), &registry)
            .expect("what is written anew can be read");
        assert!(diff(&expected, &again.configuration, &registry).is_empty(), "{}", migrated.yaml);
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
