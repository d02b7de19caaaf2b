//! What is in deploy/ fits the command: permissions, configurations, and the metrics that the dashboard shows.

use std::{collections::BTreeSet, fs};

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
    let (preempts, binds) = ("  verbs: [delete]", "resources: [persistentvolumes, persistentvolumeclaims]\n");
    assert!(all.contains(preempts) && all.contains(binds));
    assert!(!without("postFilter").contains(preempts));
    assert!(!without("preBind").contains(binds));
    let no_election = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                       leaderElection: {leaderElect: false}\n";
    assert!(!run(&project(), "rbac --config -", no_election).stdout.contains("leases"));
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

#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let golden = fs::read_to_string(project().join("crates/server/tests/golden/metrics.txt")).unwrap();
    let known: BTreeSet<&str> = golden.lines().filter_map(|line| line.split(' ').next()).collect();
    let dashboard: serde_json::Value = serde_json::from_str(&deployed("dashboard.json")).unwrap();
    let mut asked = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let prefixes = ["scheduler_", "supercargo_", "process_", "leader_election_"];
            for word in words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix))) {
                let name = word.strip_suffix("_bucket").unwrap_or(word);
                assert!(known.contains(name), "{name} in {expression}");
                asked += 1;
            }
        }
    }
    assert!(asked >= 15, "only {asked} metrics are shown");
}
