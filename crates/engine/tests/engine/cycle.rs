//! From a pod and a cluster to a decision.

use std::collections::BTreeSet;

use serde_json::json;
use supercargo_engine::{Engine, EngineProfile, Outcome, Placement, Settings, TieBreak, nodes_to_find};
use supercargo_framework::{
    Prepared, Status, Verdict,
    points::{Filter, PreFilter, PreFilterOutcome},
    registry::define,
};
use supercargo_model::{
    Cluster, NodeInfo, Pod,
    testing::{Builder, cluster, node, pod},
};

use crate::support::{
    DEFAULT_PLUGINS, decide, default_profile, engine, engine_with, feasible, profile, profile_of,
};

fn sized(name: &str, cpu: &str) -> Builder {
    node(name).allocatable("cpu", cpu).allocatable("memory", "8Gi")
}

fn wants(name: &str, cpu: &str) -> Builder {
    pod(name).container(&[("cpu", cpu), ("memory", "1Gi")])
}

#[test]
fn the_record_of_a_cycle_tells_everything() {
    let mut engine = engine([
        sized("large", "8"),
        sized("medium", "4"),
        sized("small", "1"),
        sized("closed", "8").set("/spec/unschedulable", true),
    ]);
    let decision = decide(&mut engine, wants("p", "2"));
    assert_eq!(decision.outcome, Outcome::Scheduled { node: "large".into() });
    assert_eq!(decision.node().map(|n| &**n), Some("large"));
    assert_eq!((decision.node_count, decision.evaluated()), (4, 4));
    assert_eq!(feasible(&decision), "large medium");
    let rejected: Vec<(&str, &str, String)> =
        (decision.rejected.iter()).map(|(node, r)| (&**node, &*r.plugin, r.status.message())).collect();
    assert_eq!(
        rejected,
        [
            ("closed", "NodeUnschedulable", "node(s) were unschedulable".to_owned()),
            ("small", "NodeResourcesFit", "Insufficient cpu".to_owned()),
        ]
    );
    // LeastAllocated: large (75 + 87) / 2 = 81, medium (50 + 87) / 2 = 68.
    // Balance: shares (0.25, 0.125) and (0.5, 0.125) with the pod: 93 and 81; 50 + (50 + 93 − 100) / 2 = 71, 65.
    // No taints: 3 × 100 each. The other plugins give nothing or skip themselves.
    let column = |plugin: &str| {
        let column = decision.scores.columns.iter().find(|c| &*c.plugin == plugin).expect("a column");
        (column.weight, column.normalized.clone())
    };
    assert_eq!(column("NodeResourcesFit"), (1, vec![81, 68]));
    assert_eq!(column("NodeResourcesBalancedAllocation"), (1, vec![71, 65]));
    assert_eq!(column("TaintToleration"), (3, vec![100, 100]));
    assert_eq!(decision.scores.totals, [452, 433]);
    assert_eq!((decision.best_total(), decision.best.len()), (Some(452), 1));
    assert_eq!((decision.message(), decision.preemption), (None, None));
}

#[test]
fn no_node_left() {
    let mut engine = engine([sized("a", "1"), sized("b", "1").taint("x", "", "NoSchedule"), sized("c", "1")]);
    let decision = decide(&mut engine, wants("p", "2"));
    assert_eq!(decision.outcome, Outcome::Unschedulable);
    let nodes = "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.";
    assert_eq!(decision.unschedulable_message().as_deref(), Some(nodes));
    let help = "no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(decision.message(), Some(format!("{nodes} {help}")));
    assert!(decision.victims().is_empty());
}

#[test]
fn no_nodes_at_all() {
    let decision = decide(&mut engine([]), pod("p"));
    assert_eq!(decision.outcome, Outcome::Unschedulable);
    assert_eq!(decision.message().as_deref(), Some("no nodes available to schedule pods"));
    assert_eq!(decision.preemption, None);
}

#[test]
fn no_nodes_and_a_nomination_to_one_that_is_gone() {
    let mut engine = engine([]);
    let ahead = pod("ahead").priority(10).pod();
    engine.nominations_mut().nominate(ahead, "gone".into());
    for patient in [false, true] {
        let waiting = pod("p")
            .set("/spec/preemptionPolicy", json!(if patient { "Never" } else { "PreemptLowerPriority" }));
        let (fast, full) = (engine.place(&waiting.clone().pod()), decide(&mut engine, waiting));
        let Some(Placement::Decided(fast)) = fast else { panic!("{fast:?}") };
        assert_eq!(fast.message(), full.message());
        assert_eq!(full.message().as_deref(), Some("no nodes available to schedule pods"));
    }
}

#[test]
fn nodes_that_are_ruled_out_unseen() {
    let term = json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]});
    let picky = wants("p", "2").set(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-",
        term,
    );
    let mut engine = engine([sized("a", "1"), sized("b", "8"), sized("c", "8")]);
    let decision = decide(&mut engine, picky);
    let ruled_out: Vec<&str> = decision.ruled_out.iter().map(|n| &**n).collect();
    assert_eq!((ruled_out, decision.evaluated()), (vec!["b", "c"], 1));
    assert_eq!(
        decision.unschedulable_message().as_deref(),
        Some(
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
        )
    );
}

#[test]
fn a_fault_of_a_plugin_ends_the_cycle() {
    let unreadable = json!({"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "Gt", "values": ["x"]}]}});
    let faulty = pod("p")
        .set("/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/-", unreadable);
    let decision = decide(&mut engine([node("a")]), faulty);
    let Outcome::Error { message } = &decision.outcome else {
        panic!("{:?}", decision.outcome);
    };
    assert!(message.starts_with("running PreScore plugin \"NodeAffinity\": "), "{message}");
    assert_eq!(decision.message().as_ref(), Some(message));
    assert_eq!((decision.node(), decision.unschedulable_message()), (None, None));
}

#[test]
fn pods_name_their_profile() {
    let packing = [("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated}}")];
    let profiles = [default_profile(), profile("packer", &DEFAULT_PLUGINS, &packing)];
    let cluster = cluster([sized("large", "8"), sized("small", "2")]);
    let mut engine = Engine::new(cluster, profiles, Settings::default());
    let mut node_for = |scheduler: &str| {
        let pod = wants("p", "1").set("/spec/schedulerName", scheduler).pod();
        engine.decide(&pod).map(|d| (d.scheduler_name.to_string(), d.node().expect("a node").to_string()))
    };
    assert_eq!(node_for(""), Some(("default-scheduler".to_owned(), "large".to_owned())));
    assert_eq!(node_for("packer"), Some(("packer".to_owned(), "small".to_owned())));
    assert_eq!(node_for("somebody-else"), None);
    assert!(engine.profile("packer").is_some());
    assert!(engine.profile("somebody-else").is_none());
}

#[test]
fn what_is_placed_is_seen_by_the_next_pod() {
    let mut engine = engine([sized("a", "2"), sized("b", "2")]);
    let mut placed = Vec::new();
    for name in ["p", "q", "r"] {
        let pod = wants(name, "2").pod();
        let decision = engine.decide(&pod).unwrap();
        if let Some(node) = decision.node() {
            engine.assume(&pod, node.clone());
            placed.push(node.to_string());
        }
    }
    placed.sort();
    assert_eq!(placed, ["a", "b"], "the third finds no room");
}

#[test]
fn gated_pods_are_held() {
    let engine = engine([node("a")]);
    let gated = pod("p").set("/spec/schedulingGates/-", json!({"name": "wait"})).pod();
    let decision = engine.held(&gated).expect("held");
    assert_eq!(decision.outcome, Outcome::Gated);
    assert_eq!(decision.refused.as_ref().map(|r| &*r.plugin), Some("SchedulingGates"));
    let message = decision.message().expect("a message");
    assert!(message.contains("wait"), "{message}");
    assert!(engine.held(&pod("q").pod()).is_none());
}

fn equal_nodes() -> Vec<Builder> {
    (0..20).map(|i| sized(&format!("n{i:02}"), "4")).collect()
}

#[test]
fn ties_may_go_to_the_first_in_node_order() {
    let settings = Settings { tie_break: TieBreak::First, seed: 42, ..Settings::default() };
    let mut engine = engine_with(equal_nodes(), settings);
    for (i, expected) in ["n00", "n01", "n02"].into_iter().enumerate() {
        let pod = wants(&format!("p{i}"), "1").pod();
        let decision = engine.decide(&pod).unwrap();
        assert_eq!(decision.node().map(|n| &**n), Some(expected));
        assert_eq!(decision.best.len(), 20 - i);
        engine.assume(&pod, expected.into());
    }
}

#[test]
fn the_first_in_node_order_is_first_wherever_the_search_started() {
    let settings = Settings { tie_break: TieBreak::First, ..Settings::default() };
    let mut engine = engine_with(equal_nodes(), settings);
    // A refused pod turns the start: 20 nodes were looked at, and one more is to be.
    decide(&mut engine, wants("big", "9"));
    engine.cluster_mut().put_node(sized("n20", "1").node());
    decide(&mut engine, wants("big", "9"));
    let decision = decide(&mut engine, wants("p", "1"));
    assert_eq!(decision.node().map(|n| &**n), Some("n00"));
}

fn placements(seed: u64) -> Vec<String> {
    let settings = Settings { seed, ..Settings::default() };
    let mut engine = engine_with(equal_nodes(), settings);
    let place = |i: usize| {
        let pod = wants(&format!("p{i}"), "1").pod();
        let node = engine.decide(&pod).unwrap().node().expect("a node").clone();
        engine.assume(&pod, node.clone());
        node.to_string()
    };
    (0..30).map(place).collect()
}

#[test]
fn the_same_seed_gives_the_same_placements() {
    assert_eq!(placements(7), placements(7));
    assert_ne!(placements(7), placements(8));
    // Among equals, all get their turn: the first 20 pods go to 20 nodes.
    let used: BTreeSet<String> = placements(7).into_iter().take(20).collect();
    assert_eq!(used.len(), 20);
}

#[test]
fn a_nominated_node_is_tried_first_and_alone() {
    let nodes = || [sized("a", "8"), sized("b", "2"), sized("c", "8")];
    let nominated = |cpu: &str| wants("p", cpu).set("/status/nominatedNodeName", "b");
    // Though a and c would score more.
    let decision = decide(&mut engine(nodes()), nominated("1"));
    assert_eq!((&*feasible(&decision), decision.node().map(|n| &**n)), ("b", Some("b")));
    // Where it does not fit, all others are looked at.
    let decision = decide(&mut engine(nodes()), nominated("4"));
    assert_eq!(feasible(&decision), "a c");
    assert_eq!(decision.rejected.len(), 1);
    // A node that is gone is no hindrance.
    let gone = wants("p", "1").set("/status/nominatedNodeName", "gone");
    assert_eq!(feasible(&decide(&mut engine(nodes()), gone)), "a b c");
}

#[test]
fn the_search_stops_at_enough_and_goes_on_from_there() {
    let settings =
        Settings { percentage_of_nodes_to_score: 30, min_feasible_nodes_to_find: 1, ..Settings::default() };
    let nodes = (0..10).map(|i| sized(&format!("n{i}"), if i == 4 { "1" } else { "8" }));
    let mut engine = engine_with(nodes, settings);
    // 30% of 10 are 3.
    let found: Vec<(String, usize)> = (0..4)
        .map(|i| {
            let decision = decide(&mut engine, wants(&format!("p{i}"), "2"));
            (feasible(&decision), engine.inspect().next_start())
        })
        .collect();
    let expected = [
        ("n0 n1 n2", 3),
        // n4 is too small, and counts as looked at.
        ("n3 n5 n6", 7),
        ("n7 n8 n9", 0),
        ("n0 n1 n2", 3),
    ];
    assert_eq!(found, expected.map(|(names, start)| (names.to_owned(), start)));
}

#[test]
fn a_search_that_looks_at_all_nodes_ends_where_it_began() {
    let settings =
        Settings { percentage_of_nodes_to_score: 100, min_feasible_nodes_to_find: 1, ..Settings::default() };
    let sampled = EngineProfile {
        profile: profile("sampled", &DEFAULT_PLUGINS, &[]),
        percentage_of_nodes_to_score: Some(30),
    };
    let all = EngineProfile { profile: default_profile(), percentage_of_nodes_to_score: None };
    let nodes = (0..10).map(|i| sized(&format!("n{i}"), "8"));
    let mut engine = Engine::new(cluster(nodes), [sampled, all], settings);
    // 30% of 10 are 3. Then all, twice, the second time from what is kept of the first; or nobody can have the pod.
    let pods = [
        (wants("p", "2").set("/spec/schedulerName", "sampled"), 3),
        (wants("q", "2"), 3),
        (wants("r", "2"), 3),
        (wants("too-large", "99"), 3),
        (wants("s", "2").set("/spec/schedulerName", "sampled"), 6),
        (wants("t", "2"), 6),
    ];
    for (pod, expected) in pods {
        let waits = engine.admit(pod.pod());
        engine.place(&waits).expect("a profile");
        assert_eq!(engine.inspect().next_start(), expected, "{}", waits.name);
    }
}

#[test]
fn a_profile_may_have_its_own_percentage() {
    let settings =
        Settings { percentage_of_nodes_to_score: 100, min_feasible_nodes_to_find: 1, ..Settings::default() };
    let with = |percentage: Option<i32>| {
        let profile = EngineProfile { profile: default_profile(), percentage_of_nodes_to_score: percentage };
        let mut engine = Engine::new(cluster(equal_nodes()), [profile], settings.clone());
        decide(&mut engine, pod("p")).feasible.len()
    };
    assert_eq!([with(None), with(Some(10)), with(Some(100))], [20, 2, 20]);
}

#[test]
fn without_scores_the_first_feasible_node_is_enough() {
    let plugins = [("PrioritySort", 0), ("NodeResourcesFit", 0), ("DefaultBinder", 0)];
    let profile = profile("default-scheduler", &plugins, &[]);
    let mut engine = Engine::new(cluster(equal_nodes()), [profile], Settings::default());
    assert_eq!(feasible(&decide(&mut engine, pod("p"))), "n00");
    assert_eq!(feasible(&decide(&mut engine, pod("q"))), "n01");
}

#[test]
fn how_many_feasible_nodes_are_enough() {
    // (percentage, nodes, minimum, enough)
    let cases = [
        (0, 50, 100, 50),
        (0, 100, 100, 100),
        // 50 − 1000 / 125 = 42%
        (0, 1000, 100, 420),
        // 50 − 5000 / 125 = 10%
        (0, 5000, 100, 500),
        // Never under 5%: 50 − 6000 / 125 = 2%
        (0, 6000, 100, 300),
        (0, 1_000_000, 100, 50_000),
        (70, 1000, 100, 700),
        (1, 1000, 100, 100),
        (1, 1000, 3, 10),
        (200, 1000, 100, 1000),
        (-5, 1000, 100, 420),
        (0, 0, 100, 0),
    ];
    for (percentage, nodes, minimum, expected) in cases {
        assert_eq!(nodes_to_find(percentage, nodes, minimum), expected, "{percentage}% of {nodes}");
    }
}

/// Has no fast form, and breaks on one node.
struct Breaks;

impl Filter for Breaks {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        if &**node.name() == "b" { Err(Status::error("it broke")) } else { Ok(()) }
    }
}

#[test]
fn a_plugin_that_breaks_on_a_node_does_not_refuse_it() {
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Breaks", |_| Ok(Breaks)).filter());
    let plugins = [("PrioritySort", 0), ("Breaks", 0), ("NodeResourcesFit", 1), ("DefaultBinder", 0)];
    let profile = profile_of(&registry, "default-scheduler", &plugins, &[]);
    let mut engine = Engine::new(cluster([sized("a", "4"), sized("b", "4")]), [profile], Settings::default());
    // The first of a template, and those that what is kept of it is used for.
    for i in 0..4 {
        let waits = engine.admit(wants(&format!("p{i}"), "1").pod());
        let Some(Placement::Decided(decided)) = engine.place(&waits) else { panic!("pod {i} got a node") };
        assert!(
            matches!(&decided.outcome, Outcome::Error { message } if message.contains("it broke")),
            "pod {i}"
        );
    }
}

/// Refuses pods, or breaks, before nodes are looked at; nodes it does not look at.
struct Forbids;

impl PreFilter for Forbids {
    fn pre_filter(&self, _: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        match pod.spec.labels.get("is").map(|label| &**label) {
            Some("forbidden") => Err(Status::unresolvable("not here")),
            Some("broken") => Err(Status::error("it broke")),
            _ => Ok(PreFilterOutcome::Skip),
        }
    }
}

impl Filter for Forbids {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, _: &NodeInfo) -> Verdict {
        Ok(())
    }
}

#[test]
fn what_is_said_before_nodes_are_looked_at_counts_however_a_pod_is_placed() {
    // Whether the plugin looks at nodes, too, though it has nothing to say of them.
    for filters in [false, true] {
        let mut registry = supercargo_plugins::registry();
        let forbids = define("Forbids", |_| Ok(Forbids)).pre_filter();
        registry.add(if filters { forbids.filter() } else { forbids });
        let names = ["PrioritySort", "Forbids", "NodeName", "NodeResourcesFit", "DefaultBinder"];
        let profile = profile_of(&registry, "default-scheduler", &names.map(|name| (name, 1)), &[]);
        let mut engine = Engine::new(cluster([sized("a", "4")]), [profile], Settings::default());
        // (what the pod is, how it ends); twice, the second time from what is kept of the first
        let cases = [
            ("forbidden", Outcome::Unschedulable),
            ("broken", Outcome::Error { message: "it broke".to_owned() }),
            ("fine", Outcome::Scheduled { node: "a".into() }),
        ];
        for (is, expected) in cases {
            for i in 0..2 {
                let waits = engine.admit(wants(&format!("{is}-{i}"), "1").label("is", is).pod());
                let outcome = match engine.place(&waits).expect("a profile") {
                    Placement::Decided(decision) => decision.outcome.clone(),
                    placed => Outcome::Scheduled { node: placed.node().expect("a node").clone() },
                };
                match (&outcome, &expected) {
                    (Outcome::Error { message }, Outcome::Error { message: part }) => {
                        assert!(message.contains(part), "{message}");
                    }
                    _ => assert_eq!(outcome, expected, "{is} {i}, filters: {filters}"),
                }
            }
        }
    }
}
