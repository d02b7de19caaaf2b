//! What is in deploy/ fits the command: permissions and configurations.

use std::fs;

use crate::invocation::{project, run, supercargo};

fn deployed(name: &str) -> String {
    fs::read_to_string(project().join("deploy").join(name)).expect("a file of deploy/")
}

#[test]
fn the_permissions_are_those_that_the_defaults_need() {
    let printed = supercargo("rbac");
    assert_eq!(printed.code, Some(0), "{printed}");
    let hint = "deploy/rbac.yaml is stale: cargo run -- rbac > deploy/rbac.yaml";
    assert_eq!(printed.stdout, deployed("rbac.yaml"), "{hint}");
    assert!(!printed.stdout.contains("secrets"));
}

#[test]
fn what_is_switched_off_needs_no_permission() {
    let without = |point: &str| {
        let text = format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             profiles:\n- plugins:\n    {point}:\n      disabled: [{{name: '*'}}]\n"
        );
        let printed = run(&project(), "rbac --config -", &text);
        assert_eq!(printed.code, Some(0), "{printed}");
        printed.stdout
    };
    let all = supercargo("rbac").stdout;
    let (preempts, binds) =
        ("  verbs: [delete]\n", "resources: [persistentvolumes, persistentvolumeclaims]\n");
    assert!(all.contains(preempts) && all.contains(binds));
    assert!(!without("postFilter").contains(preempts));
    assert!(!without("preBind").contains(binds));
    let no_election = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                       leaderElection: {leaderElect: false}\n";
    assert!(!run(&project(), "rbac --config -", no_election).stdout.contains("leases"));
}

#[test]
fn without_the_plugin_that_evicts_no_pod_may_be_deleted() {
    let config = |off: &str| {
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
             profiles:\n- plugins:\n    {off}:\n      disabled: [{{name: DefaultPreemption}}]\n"
        )
    };
    for point in ["postFilter", "multiPoint"] {
        let printed = run(&project(), "rbac --config -", &config(point));
        let deletes_pods = printed.stdout.contains("resources: [pods]\n  verbs: [delete]");
        assert!(printed.code == Some(0) && !deletes_pods, "{point}: {printed}");
    }
}

#[test]
fn whoever_allocates_devices_writes_claims_and_nobody_else() {
    let off = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
               profiles:\n- plugins:\n    multiPoint:\n      disabled: [{name: DynamicResources}]\n";
    let (with, without) = (supercargo("rbac").stdout, run(&project(), "rbac --config -", off).stdout);
    for rule in [
        "resources: [resourceclaims]\n  verbs: [create, delete, update]",
        "resources: [resourceclaims/status, resourceclaims/binding]\n  verbs: [patch, update]",
    ] {
        assert_eq!((with.matches(rule).count(), without.matches(rule).count()), (1, 0), "{rule}");
    }
}

#[test]
fn a_name_is_nothing_but_a_name() {
    let hostile =
        "x]\n  verbs: [get]\n- apiGroups: ['*']\n  resources: ['*']\n  verbs: ['*']\n- resourceNames: [y";
    let config = serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"resourceName": hostile, "resourceNamespace": "kube-system\n---\nkind: ClusterRole"},
    });
    let printed = run(&project(), "rbac --config -", &config.to_string());
    assert_eq!(printed.code, Some(0), "{printed}");
    let source = supercargo_manifest::Source::new("rbac", printed.stdout);
    let documents = supercargo_manifest::read(&source).expect("YAML");
    let usual = supercargo_manifest::Source::new("rbac", supercargo("rbac").stdout);
    assert_eq!(documents.len(), supercargo_manifest::read(&usual).expect("YAML").len());
    let rules = documents.iter().filter_map(|document| document.get("rules")).flat_map(|rules| rules.items());
    for rule in rules {
        let verbs = rule.get("verbs").map(|verbs| verbs.to_json()).unwrap_or_default();
        assert!(!verbs.contains('*'), "{verbs}");
        if let Some(names) = rule.get("resourceNames") {
            assert_eq!(names.items().first().and_then(|name| name.as_str()), Some(hostile));
        }
    }
}

#[test]
fn the_second_scheduler_runs_the_configuration_beside_it() {
    let checked = supercargo("config check deploy/second-scheduler-config.yaml");
    assert_eq!(checked.code, Some(0), "{checked}");
    let beside = deployed("second-scheduler-config.yaml");
    for line in beside.lines().filter(|line| !line.starts_with('#')) {
        let within = format!("    {line}\n");
        assert!(deployed("second-scheduler.yaml").contains(&within), "{line} is missing");
    }
}
