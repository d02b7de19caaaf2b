//! Extenders in the cycle: what they are asked, and what becomes of their answers and failures.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use supercargo_engine::{
    AttemptFailure, Decision, Engine, Outcome, Settings,
    extender_calls::{
        CycleStep, ExtenderAnswer, ExtenderAnswers, ExtenderCall, ExtenderFailure, ExtenderRole, Proposal,
        Sieved, decide_calling, take_part,
    },
};
use supercargo_framework::{
    Code, Prepared, Status, Verdict,
    points::{CycleStart, Filter},
    registry::define,
};
use supercargo_model::{
    Cluster, Name, NodeInfo, Pod,
    testing::{Builder, cluster, node, pod},
};

use crate::support::{engine_with, profile_of};

fn filter(name: &str) -> ExtenderRole {
    ExtenderRole { name: name.into(), filters: true, ..ExtenderRole::default() }
}

fn scorer(name: &str, weight: i32) -> ExtenderRole {
    ExtenderRole { name: name.into(), weight: Some(weight), ..ExtenderRole::default() }
}

fn preempter(name: &str) -> ExtenderRole {
    ExtenderRole { name: name.into(), preempts: true, ..ExtenderRole::default() }
}

fn ignorable(role: ExtenderRole) -> ExtenderRole {
    ExtenderRole { ignorable: true, ..role }
}

fn three_nodes() -> Vec<Builder> {
    ["a", "b", "c"].map(|name| node(name).allocatable("cpu", "4").allocatable("pods", "10")).into()
}

fn passes(nodes: &[Name], only: &str) -> Sieved {
    let passed = nodes.iter().map(|name| only.contains(&**name)).collect();
    let failed = nodes.iter().filter(|name| !only.contains(&***name));
    Sieved {
        passed,
        failed: failed.map(|name| (name.clone(), "no gpu".to_owned())).collect(),
        ..Sieved::default()
    }
}

fn trouble(invalid: bool) -> ExtenderFailure {
    ExtenderFailure { message: "extender \"one\" is broken".to_owned(), invalid }
}

/// A call in a line: who is asked what about which nodes.
fn line(call: &ExtenderCall) -> String {
    let names = |names: &[Name]| names.iter().map(|name| &**name).collect::<Vec<_>>().join(" ");
    match call {
        ExtenderCall::Filter { extender, nodes, nominated } => {
            let which = if *nominated { "nominated" } else { "filter" };
            format!("{which} {extender}: {}", names(nodes))
        }
        ExtenderCall::Prioritize { extenders, nodes } => {
            format!("prioritize {extenders:?}: {}", names(nodes))
        }
        ExtenderCall::Preempt { extender, candidates } => {
            let candidates: Vec<String> = (candidates.iter())
                .map(|c| {
                    let victims: Vec<&str> = c.victims.iter().map(|pod| &*pod.name).collect();
                    format!("{}-{}", c.node, victims.join("-"))
                })
                .collect();
            format!("preempt {extender}: {}", candidates.join(" "))
        }
    }
}

/// What is decided, and what was asked on the way.
fn decide(
    objects: Vec<Builder>,
    extenders: Vec<ExtenderRole>,
    pod: Builder,
    answer: impl Fn(&ExtenderCall) -> ExtenderAnswer,
) -> (Decision, Vec<String>) {
    let asked = RefCell::new(Vec::new());
    let settings = Settings { extenders, ..Settings::default() };
    let decision = decide_calling(&mut engine_with(objects, settings), &pod.pod(), |_, call| {
        asked.borrow_mut().push(line(call));
        answer(call)
    })
    .expect("a profile for the pod");
    (decision, asked.into_inner())
}

fn sieve(call: &ExtenderCall, only: &str) -> ExtenderAnswer {
    let ExtenderCall::Filter { nodes, .. } = call else { panic!("{call:?}") };
    ExtenderAnswer::Filter(Ok(passes(nodes, only)))
}

#[test]
fn filters_run_one_after_another_and_each_sees_what_the_one_before_left() {
    let (decision, asked) =
        decide(three_nodes(), vec![filter("one"), filter("two")], pod("p"), |call| match call {
            ExtenderCall::Filter { extender: 0, .. } => sieve(call, "a b"),
            _ => sieve(call, "b c"),
        });
    assert_eq!(asked, ["filter 0: a b c", "filter 1: a b"]);
    assert_eq!(decision.node().map(|name| &**name), Some("b"));
    let rejected: BTreeMap<&str, &str> =
        decision.rejected.iter().map(|(node, by)| (&**node, &*by.plugin)).collect();
    assert_eq!(rejected, BTreeMap::from([("a", "two"), ("c", "one")]));
}

#[test]
fn a_pod_that_they_refuse_everywhere_is_told_why_and_waits_for_any_event() {
    let (decision, _) = decide(three_nodes(), vec![filter("one")], pod("p"), |call| {
        let ExtenderCall::Filter { nodes, .. } = call else { panic!("{call:?}") };
        let mut sieved = passes(nodes, "");
        sieved.unresolvable = BTreeMap::from([("a".into(), "never".to_owned())]);
        sieved.failed.remove("c");
        ExtenderAnswer::Filter(Ok(sieved))
    });
    // Nothing was said about c.
    let message = decision.unschedulable_message().unwrap();
    assert_eq!(message, "0/3 nodes are available: 1 never, 1 no gpu.");
    let Some(AttemptFailure::Refused(refusal)) = decision.failure() else {
        panic!("{:?}", decision.failure())
    };
    assert_eq!(refusal.plugins.iter().map(|name| &**name).collect::<Vec<_>>(), ["Extender"]);
    assert_eq!(decision.rejected.len(), 3);
}

#[test]
fn only_pods_that_name_a_managed_resource_are_sent() {
    let manages =
        |role: ExtenderRole| ExtenderRole { managed_resources: ["e.com/gpu".into()].into(), ..role };
    let limits = |builder: Builder, list: &str| {
        builder.container(&[("cpu", "1")]).set(&format!("/spec/{list}/0/resources/limits/e.com~1gpu"), "0")
    };
    let with_gpus =
        || three_nodes().into_iter().map(|node| node.allocatable("e.com/gpu", "4")).collect::<Vec<_>>();
    // (pod, is it sent?)
    let cases = [
        (pod("p"), false),
        (pod("p").container(&[("e.com/other", "0")]), false),
        (pod("p").container(&[("e.com/gpu", "1")]), true),
        (pod("p").init_container(&[("e.com/gpu", "1")]), true),
        (limits(pod("p"), "containers"), true),
        (limits(pod("p").init_container(&[]), "initContainers"), true),
    ];
    for (i, (pod, expected)) in cases.into_iter().enumerate() {
        let roles = vec![manages(filter("one")), manages(scorer("two", 1)), manages(preempter("three"))];
        let (decision, asked) = decide(with_gpus(), roles, pod, |call| match call {
            ExtenderCall::Filter { .. } => sieve(call, "a b"),
            _ => ExtenderAnswer::Prioritize(vec![Ok(vec![0; 2])]),
        });
        assert!(decision.node().is_some(), "case {i}: {decision:?}");
        assert_eq!(!asked.is_empty(), expected, "case {i}: {asked:?}");
    }
}

#[test]
fn prioritizers_are_asked_at_once_and_their_points_count_weight_times_ten() {
    let (decision, asked) = decide(three_nodes(), vec![scorer("one", 2), scorer("two", 1)], pod("p"), |_| {
        ExtenderAnswer::Prioritize(vec![Ok(vec![3, 10, 0]), Ok(vec![1, 0, 5])])
    });
    assert_eq!(asked, ["prioritize [0, 1]: a b c"]);
    let plugins: i64 = decision.scores.totals[0] - (3 * 10 * 2 + 10);
    // a: 3 × 10 × 2 + 1 × 10 = 70; b: 10 × 10 × 2 = 200; c: 5 × 10 = 50. Plugins see three equal nodes.
    assert_eq!(decision.scores.totals, [plugins + 70, plugins + 200, plugins + 50]);
    let column = &decision.scores.columns[decision.scores.columns.len() - 2];
    assert_eq!((&*column.plugin, column.weight), ("one", 2));
    assert_eq!((&column.raw[..], &column.normalized[..]), (&[3, 10, 0][..], &[30, 100, 0][..]));
    assert_eq!(decision.node().map(|name| &**name), Some("b"));
}

#[test]
fn a_single_node_needs_no_points() {
    let (decision, asked) = decide(vec![three_nodes().remove(0)], vec![scorer("one", 1)], pod("p"), |_| {
        panic!("nobody is asked")
    });
    assert!(asked.is_empty() && decision.node().is_some());
}

#[test]
fn what_failures_do() {
    let fails = |invalid: bool| {
        move |call: &ExtenderCall| match call {
            ExtenderCall::Filter { extender: 0, .. } => ExtenderAnswer::Filter(Err(trouble(invalid))),
            ExtenderCall::Filter { .. } => sieve(call, "a b c"),
            ExtenderCall::Prioritize { extenders, .. } => {
                ExtenderAnswer::Prioritize(extenders.iter().map(|_| Err(trouble(invalid))).collect())
            }
            ExtenderCall::Preempt { .. } => ExtenderAnswer::Preempt(Err(trouble(invalid))),
        }
    };
    // (extenders, does the first lie?, is the pod scheduled?)
    let cases = [
        ("a filter that counts", vec![filter("one")], false, false),
        ("a filter that counts, and lies", vec![filter("one")], true, false),
        ("an ignorable filter", vec![ignorable(filter("one")), filter("two")], false, true),
        ("an ignorable filter that lies", vec![ignorable(filter("one"))], true, true),
        ("a prioritizer is left out", vec![scorer("one", 1)], false, true),
        ("a prioritizer that lies", vec![scorer("one", 1)], true, false),
        ("an ignorable prioritizer that lies", vec![ignorable(scorer("one", 1))], true, true),
    ];
    for (name, extenders, invalid, scheduled) in cases {
        let (decision, _) = decide(three_nodes(), extenders, pod("p"), fails(invalid));
        match decision.outcome {
            Outcome::Scheduled { .. } => assert!(scheduled, "{name}"),
            Outcome::Error { message } => {
                assert!(!scheduled, "{name}");
                assert_eq!(message, "extender \"one\" is broken", "{name}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn a_node_that_room_was_made_on_is_asked_about_alone_first() {
    let nominated = || pod("p").set("/status/nominatedNodeName", "b");
    let (decision, asked) =
        decide(three_nodes(), vec![filter("one")], nominated(), |call| sieve(call, "a b c"));
    assert_eq!(asked, ["nominated 0: b"]);
    assert_eq!(decision.node().map(|name| &**name), Some("b"));
    let (decision, asked) = decide(three_nodes(), vec![filter("one")], nominated(), |call| match call {
        ExtenderCall::Filter { nominated: true, .. } => ExtenderAnswer::Filter(Err(trouble(false))),
        _ => sieve(call, "c"),
    });
    assert_eq!(asked, ["nominated 0: b", "filter 0: a b c"]);
    assert_eq!(decision.node().map(|name| &**name), Some("c"));
}

/// Nodes a and b are full of one less important pod each.
fn full() -> Vec<Builder> {
    let runs =
        |name: &str, node: &str| pod(name).on(node).set("/metadata/uid", name).container(&[("cpu", "4")]);
    let mut objects = three_nodes();
    objects.truncate(2);
    objects.extend([runs("one", "a"), runs("two", "b")]);
    objects
}

fn urgent() -> Builder {
    pod("urgent").priority(100).container(&[("cpu", "2")])
}

fn proposal(node: &str, victims: &[&str]) -> Proposal {
    let victims = victims.iter().map(|uid| Name::from(*uid)).collect();
    Proposal { node: node.into(), victims, budget_violations: 0 }
}

#[test]
fn where_room_is_made() {
    let proposes =
        |proposals: Vec<Proposal>| move |_: &ExtenderCall| ExtenderAnswer::Preempt(Ok(proposals.clone()));
    let made = |decision: &Decision| match decision.preemption.as_ref() {
        Some(Ok(nomination)) => {
            let victims: Vec<&str> = nomination.victims.iter().map(|pod| &*pod.name).collect();
            format!("{} {}", nomination.node, victims.join(" "))
        }
        Some(Err(status)) => status.message().split("preemption: ").last().unwrap_or_default().to_owned(),
        None => "nothing".to_owned(),
    };
    let none = "no candidate node for preemption";
    let no_victims = "expected at least one victim pod on node \"a\"";
    let one = || vec![preempter("one")];
    let may_fail = || vec![ignorable(preempter("one"))];
    // (extenders, proposals, where room is made)
    let cases = [
        (one(), vec![proposal("b", &["two"])], "b two"),
        // Named twice, a victim is evicted once.
        (one(), vec![proposal("b", &["two", "two"])], "b two"),
        (one(), vec![], none),
        (one(), vec![proposal("a", &[])], no_victims),
        (may_fail(), vec![proposal("a", &[]), proposal("b", &["two"])], "b two"),
        // Of one that may fail, a proposal that cannot be is left out: two is not on a.
        (may_fail(), vec![proposal("a", &["two"]), proposal("b", &["two"])], "b two"),
        // Both extenders give the same answer: the second sees what the first left.
        (vec![preempter("one"), preempter("two")], vec![proposal("b", &["two"])], "b two"),
    ];
    for (extenders, proposals, expected) in cases {
        let (decision, asked) = decide(full(), extenders, urgent(), proposes(proposals.clone()));
        assert_eq!(made(&decision), expected, "{proposals:?}");
        let first = asked[0].strip_prefix("preempt 0: ").unwrap();
        assert!(["a-one b-two", "b-two a-one"].contains(&first), "{asked:?}");
        if let Some(second) = asked.get(1) {
            assert_eq!(second, "preempt 1: b-two");
        }
    }
}

#[test]
fn lies_about_victims_are_errors_and_failures_leave_the_pod_unschedulable() {
    let (decision, _) = decide(full(), vec![preempter("one")], urgent(), |_| {
        ExtenderAnswer::Preempt(Ok(vec![proposal("a", &["two"])]))
    });
    let Outcome::Error { message } = &decision.outcome else { panic!("{:?}", decision.outcome) };
    assert!(message.starts_with("extender: one claims to preempt pod (UID: two) on node: a"), "{message}");

    let (decision, _) =
        decide(full(), vec![preempter("one")], urgent(), |_| ExtenderAnswer::Preempt(Err(trouble(false))));
    assert_eq!(decision.outcome, Outcome::Unschedulable);
    assert!(decision.message().unwrap().ends_with("preemption: extender \"one\" is broken"));

    let (decision, _) =
        decide(full(), vec![preempter("one")], urgent(), |_| ExtenderAnswer::Preempt(Err(trouble(true))));
    assert!(matches!(decision.outcome, Outcome::Error { .. }));

    let (decision, _) = decide(full(), vec![ignorable(preempter("one"))], urgent(), |_| {
        ExtenderAnswer::Preempt(Err(trouble(true)))
    });
    assert!(matches!(decision.preemption, Some(Ok(_))));
}

#[test]
fn what_an_extender_refuses_for_good_is_told_to_whoever_makes_room() {
    let (decision, _) = decide(three_nodes(), vec![filter("one")], pod("p"), |call| {
        let ExtenderCall::Filter { nodes, .. } = call else { panic!("{call:?}") };
        let mut sieved = passes(nodes, "");
        // It is in both: for good counts.
        sieved.unresolvable = BTreeMap::from([("a".into(), "never".to_owned())]);
        ExtenderAnswer::Filter(Ok(sieved))
    });
    let code = |node: &str| decision.rejected[node].status.code;
    assert_eq!((code("a"), code("b")), (Code::UnschedulableAndUnresolvable, Code::Unschedulable));
}

#[test]
fn a_cluster_that_changes_while_an_extender_is_asked_is_looked_at_anew() {
    let settings = Settings { extenders: vec![filter("one")], ..Settings::default() };
    let mut engine = engine_with(three_nodes(), settings);
    let waiting = pod("p").container(&[("cpu", "3")]).pod();
    let mut answers = ExtenderAnswers::default();
    let Some(CycleStep::Call(call)) = engine.decide_with(&waiting, &mut answers) else { panic!("it asks") };
    // Meanwhile a and b fill up, and d comes: it was not asked about.
    for (name, node) in [("x", "a"), ("y", "b")] {
        engine.assume(&pod(name).container(&[("cpu", "3")]).pod(), node.into());
    }
    engine.cluster_mut().put_node(node("d").allocatable("cpu", "4").allocatable("pods", "9").node());
    let answer = sieve(&call, "a b c");
    let roles = engine.extenders().to_vec();
    answers.add(&roles, call, answer);
    let Some(CycleStep::Decided(decision)) = engine.decide_with(&waiting, &mut answers) else {
        panic!("all is known")
    };
    assert_eq!(decision.node().map(|name| &**name), Some("c"));

    // And then c, too: only the new node is left, and asked about.
    engine.assume(&pod("z").container(&[("cpu", "3")]).pod(), "c".into());
    let Some(CycleStep::Call(call)) = engine.decide_with(&waiting, &mut answers) else {
        panic!("it asks again")
    };
    assert_eq!(line(&call), "filter 0: d");
    let answer = sieve(&call, "d");
    answers.add(&roles, call, answer);
    let Some(CycleStep::Decided(decision)) = engine.decide_with(&waiting, &mut answers) else {
        panic!("all is known")
    };
    assert_eq!(decision.node().map(|name| &**name), Some("d"));
}

#[test]
fn a_cluster_that_changes_with_every_answer_costs_a_bounded_number_of_calls() {
    let settings = Settings { extenders: vec![filter("one")], ..Settings::default() };
    let one_node = node("n0").allocatable("cpu", "4").allocatable("pods", "9");
    let mut engine = engine_with([one_node], settings);
    let waiting = pod("p").container(&[("cpu", "3")]).pod();
    let (mut answers, roles) = (ExtenderAnswers::default(), engine.extenders().to_vec());
    let mut calls = 0;
    let decision = loop {
        match engine.decide_with(&waiting, &mut answers).expect("a profile") {
            CycleStep::Decided(decision) => break decision,
            CycleStep::Call(call) => {
                // The node that is asked about fills up, and another one comes, which has to be asked about.
                assert_eq!(line(&call), format!("filter 0: n{calls}"));
                engine.assume(
                    &pod(&format!("x{calls}")).container(&[("cpu", "3")]).pod(),
                    format!("n{calls}").into(),
                );
                calls += 1;
                let next = node(&format!("n{calls}")).allocatable("cpu", "4").allocatable("pods", "9");
                engine.cluster_mut().put_node(next.node());
                let answer = sieve(&call, &format!("n{}", calls - 1));
                answers.add(&roles, call, answer);
            }
        }
    };
    assert_eq!(calls, 64);
    let Outcome::Error { message } = &decision.outcome else { panic!("{:?}", decision.outcome) };
    assert!(message.contains("the cluster changes faster than the extenders answer"), "{message}");
}

#[test]
fn whether_extenders_take_part_in_a_decision() {
    let managed =
        |role: ExtenderRole| ExtenderRole { managed_resources: ["e.com/gpu".into()].into(), ..role };
    let binder = || ExtenderRole { name: "binds".into(), ..ExtenderRole::default() };
    // (extenders, whether one takes part for a pod, and for one that asks for what is managed)
    let cases = [
        (vec![], [false, false]),
        (vec![binder()], [false, false]),
        (vec![managed(binder())], [false, false]),
        (vec![filter("one")], [true, true]),
        (vec![scorer("one", 1)], [true, true]),
        (vec![preempter("one")], [true, true]),
        (vec![managed(filter("one"))], [false, true]),
        (vec![binder(), managed(scorer("one", 1))], [false, true]),
    ];
    let (plain, gpu) = (pod("p").pod(), pod("q").container(&[("e.com/gpu", "1")]).pod());
    for (i, (roles, expected)) in cases.into_iter().enumerate() {
        assert_eq!([&plain, &gpu].map(|pod| take_part(&roles, pod)), expected, "case {i}");
    }
}

#[test]
fn going_on_with_an_attempt_means_the_same_nodes_and_the_same_draw() {
    let settings = || Settings {
        percentage_of_nodes_to_score: 50,
        min_feasible_nodes_to_find: 2,
        extenders: vec![filter("one"), scorer("two", 1)],
        ..Settings::default()
    };
    let nodes = || (0..8).map(|i| node(&format!("n{i}")).allocatable("cpu", "4").allocatable("pods", "99"));
    let mut engine = engine_with(nodes(), settings());
    let starts: Vec<usize> = (0..4)
        .map(|_| {
            let asked = RefCell::new(Vec::new());
            decide_calling(&mut engine, &pod("p").pod(), |_, call| match call {
                ExtenderCall::Filter { nodes, .. } => {
                    asked.borrow_mut().push(nodes.clone());
                    ExtenderAnswer::Filter(Ok(Sieved {
                        passed: vec![true; nodes.len()],
                        ..Sieved::default()
                    }))
                }
                ExtenderCall::Prioritize { nodes, .. } => {
                    assert_eq!(asked.borrow()[0], *nodes);
                    ExtenderAnswer::Prioritize(vec![Ok(vec![0; nodes.len()])])
                }
                other => panic!("{other:?}"),
            });
            engine.inspect().next_start()
        })
        .collect();
    // Four of eight nodes are enough, and each attempt goes on where the one before stopped.
    assert_eq!(starts, [4, 0, 4, 0]);
}

#[test]
fn a_profile_without_scores_still_looks_at_all_nodes_if_an_extender_chooses() {
    let profile = || {
        let plugins = [("PrioritySort", 0), ("NodeResourcesFit", 0), ("DefaultBinder", 0)];
        crate::support::profile("default-scheduler", &plugins, &[])
    };
    let settings = Settings { extenders: vec![filter("one")], ..Settings::default() };
    let cluster = supercargo_model::testing::cluster(three_nodes());
    let mut engine = supercargo_engine::Engine::new(cluster, [profile()], settings);
    let decision = decide_calling(&mut engine, &pod("p").pod(), |_, call| sieve(call, "c")).unwrap();
    assert_eq!(decision.node().map(|name| &**name), Some("c"));
}

/// Takes the node `a`, until the second cycle begins.
#[derive(Default)]
struct Fickle {
    began: AtomicBool,
    changed: AtomicBool,
}

impl CycleStart for Fickle {
    fn cycle_starts(&self) -> bool {
        self.began.swap(true, Ordering::Relaxed) && !self.changed.swap(true, Ordering::Relaxed)
    }
}

impl Filter for Fickle {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        if self.changed.load(Ordering::Relaxed) && &**node.name() == "a" {
            return Err(Status::unschedulable("not any more"));
        }
        Ok(())
    }
}

#[test]
fn a_plugin_that_judges_otherwise_meanwhile_is_heard_anew() {
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Fickle", |_| Ok(Fickle::default())).filter().cycle_start());
    let plugins = [("PrioritySort", 0), ("Fickle", 0), ("DefaultBinder", 0)];
    let profile = profile_of(&registry, "default-scheduler", &plugins, &[]);
    let settings = Settings { extenders: vec![filter("one")], ..Settings::default() };
    let nodes = ["a", "b"].map(|name| node(name).allocatable("pods", "10"));
    let mut engine = Engine::new(cluster(nodes), [profile], settings);
    let asked = RefCell::new(Vec::new());
    let decision = decide_calling(&mut engine, &pod("p").pod(), |_, call| {
        asked.borrow_mut().push(line(call));
        sieve(call, "a b")
    });
    let decision = decision.unwrap();
    assert_eq!(asked.into_inner(), ["filter 0: a b"]);
    assert_eq!(decision.node().map(|name| &**name), Some("b"));
    assert_eq!(&*decision.rejected["a"].plugin, "Fickle");
}
