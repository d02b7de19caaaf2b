//! Taints that only ask pods to stay away: nodes with one of them are a set in the search by load, whatever else counts there.

use std::sync::Arc;

use serde_json::json;
use supercargo_engine::{Placement, Settings};
use supercargo_model::{
    Pod,
    testing::{Builder, node, pod},
};

use crate::support::engine_with;

const NODES: usize = 60;

fn tainted_node(i: usize, taints: usize) -> Builder {
    let name = format!("n{i:02}");
    let zone = format!("z{}", i % 3);
    let node = node(&name)
        .label("kubernetes.io/hostname", &name)
        .label("topology.kubernetes.io/zone", &zone)
        .allocatable("cpu", "8")
        .allocatable("memory", "16Gi")
        .allocatable("pods", "110");
    (0..taints).fold(node, |node, taint| node.taint(&format!("old-{taint}"), "", "PreferNoSchedule"))
}

/// Every pod has a shape of its own: of four kinds in turn.
fn one_off_pod(i: usize) -> Arc<Pod> {
    let app = format!("app-{}", i % 8);
    let pod = pod(&format!("p{i}")).label("app", &app).container(&[("cpu", &format!("{}m", 100 + 7 * i))]);
    let of_app = json!({"matchLabels": {"app": app}});
    let spread = |key: &str| json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": of_app});
    let in_zone = json!({"weight": 10, "preference": {"matchExpressions":
        [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}]}});
    let not_here = json!({"weight": 100, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": of_app}});
    let pod = match i % 4 {
        0 => pod,
        1 => pod.set(
            "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
            json!([in_zone]),
        ),
        2 => pod.set(
            "/spec/topologySpreadConstraints",
            json!([spread("topology.kubernetes.io/zone"), spread("kubernetes.io/hostname")]),
        ),
        _ => pod.set(
            "/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution",
            json!([not_here]),
        ),
    };
    // Some mind one taint less.
    if i % 5 == 4 { pod.toleration(json!({"key": "old-1", "operator": "Exists"})).pod() } else { pod.pod() }
}

#[test]
fn nodes_that_ask_pods_to_stay_away_score_as_on_the_full_path() {
    /// How many such taints the n-th node has.
    type Taints = fn(usize) -> usize;
    let cases: [(&str, Taints); 6] = [
        ("none has any", |_| 0),
        ("every third", |i| usize::from(i % 3 == 0)),
        ("one or two", |i| i % 3),
        ("all but one", |i| usize::from(i != 7)),
        ("all one, so that they are worth the same", |_| 1),
        ("all but two, which are worth less by the zone", |i| usize::from(i != 6 && i != 9)),
    ];
    // All nodes, and 18 of the 60.
    for ((name, taints), percent) in cases.into_iter().flat_map(|case| [(case, 100), (case, 30)]) {
        let name = format!("{name}, {percent} %");
        let nodes = || (0..NODES).map(|i| tainted_node(i, taints(i)));
        let settings = || Settings {
            percentage_of_nodes_to_score: percent,
            min_feasible_nodes_to_find: 5,
            seed: 11,
            ..Settings::default()
        };
        let (mut fast, mut slow) = (engine_with(nodes(), settings()), engine_with(nodes(), settings()));
        for i in 0..80 {
            let pod = one_off_pod(i);
            let expected = slow.decide(&pod).unwrap();
            let Placement::On { node, total, ties, feasible, .. } = fast.place(&pod).unwrap() else {
                panic!("{name}: pod {i} was not placed on the fast path");
            };
            assert_eq!(Some(&node), expected.node(), "{name}: pod {i}");
            assert_eq!(
                (Some(total), ties, feasible),
                (expected.best_total(), expected.best.len(), expected.feasible.len()),
                "{name}: pod {i}"
            );
            for engine in [&mut fast, &mut slow] {
                engine.cluster_mut().put_pod(Arc::new(pod.bound_to(node.clone())));
            }
        }
        let paths = fast.inspect().paths();
        assert!(paths.load_buckets > 60, "{name}: {paths:?}");
    }
}
