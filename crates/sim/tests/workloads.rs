//! The pods that workloads make.

use std::collections::HashSet;

use supercargo_manifest::{Problems, Source};
use supercargo_model::{
    Name, Node, Pod,
    object::{Object, Reader},
    pod::PriorityFrom,
    testing::node,
};
use supercargo_sim::workloads::{KINDS, Made, Setting, expand};

const TEMPLATE: &str =
    "{metadata: {labels: {app: web}}, spec: {priorityClassName: high, containers: [{name: c}]}}";
const SELECTOR: &str = "selector: {matchLabels: {app: web}}";

fn made_with(text: &str, nodes: &[Node], daemons: &[&str], replicas: Option<u32>) -> Result<Made, Problems> {
    let mut reader = Reader::default();
    reader.expect_new(KINDS, None);
    reader.read(&Source::new("w.yaml", text));
    let aside = reader.finish()?.set_aside;
    let nodes: Vec<&Node> = nodes.iter().collect();
    let daemons: HashSet<(Name, Name, Name)> =
        daemons.iter().map(|node| ("default".into(), "w".into(), (*node).into())).collect();
    let setting =
        Setting { nodes: &nodes, daemons: &daemons, replicas, namespace: "default", annotations: &[] };
    expand(&aside[0], &setting)
}

fn made(api: &str, kind: &str, spec: &str) -> Made {
    let text = format!("{{apiVersion: {api}, kind: {kind}, metadata: {{name: w}}, spec: {{{spec}}}}}");
    made_with(&text, &[], &[], None).unwrap_or_else(|problems| panic!("{problems}"))
}

fn pods(made: &Made) -> Vec<&Pod> {
    let pods = made.objects.iter().filter_map(|object| match object {
        Object::Pod(pod) => Some(pod),
        _ => None,
    });
    pods.collect()
}

fn names(made: &Made) -> Vec<&str> {
    pods(made).into_iter().map(|pod| &*pod.name).collect()
}

#[test]
fn how_many_pods_there_are_and_how_they_are_called() {
    let template = format!("template: {TEMPLATE}");
    let cases: [(&str, &str, String, &[&str]); 9] = [
        ("apps/v1", "ReplicaSet", format!("replicas: 2, {SELECTOR}, {template}"), &["w-1", "w-2"]),
        ("apps/v1", "ReplicaSet", format!("{SELECTOR}, {template}"), &["w-1"]),
        ("apps/v1", "ReplicaSet", format!("replicas: 0, {SELECTOR}, {template}"), &[]),
        ("v1", "ReplicationController", format!("selector: {{app: web}}, {template}"), &["w-1"]),
        ("apps/v1", "StatefulSet", format!("replicas: 2, {SELECTOR}, {template}"), &["w-0", "w-1"]),
        ("batch/v1", "Job", format!("parallelism: 3, completions: 2, {template}"), &["w-1", "w-2"]),
        (
            "batch/v1",
            "Job",
            format!("parallelism: 2, completionMode: Indexed, completions: 9, {template}"),
            &["w-0", "w-1"],
        ),
        ("batch/v1", "Job", format!("suspend: true, {template}"), &[]),
        (
            "batch/v1",
            "CronJob",
            format!("jobTemplate: {{spec: {{parallelism: 2, {template}}}}}"),
            &["w-1-1", "w-1-2"],
        ),
    ];
    for (api, kind, spec, expected) in cases {
        let made = made(api, kind, &spec);
        assert_eq!(names(&made), expected, "{kind}: {spec}");
        for pod in pods(&made) {
            let owner = pod.spec.controller.as_ref().expect("somebody manages it");
            let expected = if kind == "CronJob" { "Job" } else { kind };
            assert_eq!(
                (&*owner.kind, pod.priority_from.clone()),
                (expected, PriorityFrom::Class("high".into()))
            );
            assert_eq!(pod.spec.labels.get("app").map(|app| &**app), Some("web"));
        }
    }
}

#[test]
fn a_deployment_has_a_replica_set_that_selects_its_pods() {
    // The hash has to be among the labels before the label keys are merged into the selector.
    let term = "{topologyKey: host, labelSelector: {}, matchLabelKeys: [pod-template-hash]}";
    let affinity =
        format!("{{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}}}");
    let template = format!("{{metadata: {{labels: {{app: web}}}}, spec: {{affinity: {affinity}}}}}");
    let made = made("apps/v1", "Deployment", &format!("replicas: 2, {SELECTOR}, template: {template}"));
    let [one, two] = pods(&made)[..] else { panic!("two pods") };
    let Some(Object::ReplicaSet(replica_set)) = made.objects.last() else { panic!("a replica set") };
    assert_eq!(one.name, format!("{}-1", replica_set.name).into());
    assert_eq!(one.spec.controller.as_ref().expect("an owner").name, replica_set.name);
    assert!(replica_set.selector.matches(&one.spec.labels));
    let keeps_away = &one.spec.pod_anti_affinity.required[0];
    assert!(keeps_away.matches(two, &Default::default()));
    assert_eq!(keeps_away.namespaces, ["default".into()]);
    let other = template.replace("host", "zone");
    let other = self::made("apps/v1", "Deployment", &format!("{SELECTOR}, template: {other}"));
    assert!(!keeps_away.matches(pods(&other)[0], &Default::default()), "another template has another hash");
}

#[test]
fn stateful_pods_have_claims_of_their_own() {
    let claims = "volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]";
    let made =
        made("apps/v1", "StatefulSet", &format!("replicas: 2, {claims}, {SELECTOR}, template: {TEMPLATE}"));
    let claims: Vec<String> = made.claims.iter().map(|claim| claim.key().to_string()).collect();
    assert_eq!(claims, ["default/data-w-0", "default/data-w-1"]);
    let volumes = &pods(&made)[1].spec.volumes;
    assert!(format!("{volumes:?}").contains("data-w-1"), "{volumes:?}");
}

#[test]
fn daemons_run_where_they_may_and_tolerate_what_ails_nodes() {
    let nodes = [
        node("plain").node(),
        node("cordoned").taint("node.kubernetes.io/unschedulable", "", "NoSchedule").node(),
        node("pressed").taint("node.kubernetes.io/memory-pressure", "", "NoSchedule").node(),
        node("tainted").taint("dedicated", "gpu", "NoSchedule").node(),
        node("has-one").node(),
        node("unwanted").label("reserved", "yes").node(),
    ];
    let term = "{nodeSelectorTerms: [{matchExpressions: [{key: reserved, operator: DoesNotExist}]}]}";
    let affinity = format!("{{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {term}}}}}");
    let text = format!(
        "{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: w}}, \
          spec: {{template: {{spec: {{affinity: {affinity}}}}}}}}}"
    );
    let made = made_with(&text, &nodes, &["has-one"], Some(7)).unwrap();
    assert_eq!(names(&made), ["w-plain", "w-cordoned", "w-pressed"]);
    let required = pods(&made)[0].spec.node_affinity.required.clone().expect("it is for one node");
    let allowed: Vec<&str> = (nodes.iter().filter(|node| required.matches(&node.name, &node.labels)))
        .map(|node| &*node.name)
        .collect();
    assert_eq!(allowed, ["plain"]);
    assert_eq!(made.notes, ["DaemonSet default/w runs on 1 of its nodes already"]);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let cases = [
        ("kind: Deployment\nmetadata: {}\nspec: {template: {}}", "2", "metadata.name"),
        ("kind: Deployment\nmetadata: {name: w}\nspec:\n  replicas: 1", "4", "spec.template"),
        ("kind: Deployment\nmetadata: {name: w}\nspec:\n  replicas: many", "4", "spec.replicas"),
        (
            "kind: Deployment\nmetadata: {name: w}\nspec:\n  template:\n    spec:\n      tolerations: 7",
            "6",
            "spec.template.spec.tolerations",
        ),
        (
            "kind: Deployment\nmetadata: {name: w}\nspec:\n  replicas: 2000000\n  template: {}",
            "4",
            "spec.replicas",
        ),
    ];
    for (text, line, path) in cases {
        let problems = made_with(&format!("apiVersion: apps/v1\n{text}"), &[], &[], None).expect_err(text);
        let problem = problems.iter().next().expect("a problem");
        let line: u32 = line.parse().unwrap();
        assert_eq!((problem.at.map(|at| at.line), &*problem.path), (Some(line + 1), path), "{problems}");
    }
}
