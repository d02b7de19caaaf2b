//! Clusters' lives under faults: a few here, the same every time; `cargo sim` runs as many as one likes.

use std::{fs, path::Path, time::Duration};

use serde::Deserialize;
use supercargo_framework::bugs::{self, Bug};
use supercargo_simulation::soak::{
    Act, BrokenRule, FaultyVerb, Plan, PlannedSetup, PlannedStep, RequestFault, SimulationRule, SoakTally,
    plan, run, shrink, soak_registry, with_devices,
};

/// A plan that found something once. The plan rather than its seed: what is drawn from a seed changes.
#[derive(Deserialize)]
struct Regression {
    found: String,
    plan: Plan,
}

fn violations(plan: &Plan) -> Vec<BrokenRule> {
    run(plan, &soak_registry()).violations
}

#[test]
fn what_was_found_once_stays_mended() {
    let regressions: Vec<Regression> =
        serde_json::from_str(include_str!("data/regressions.json")).expect("the file is in order");
    assert!(!regressions.is_empty());
    for Regression { found, plan } in regressions {
        assert_eq!(violations(&plan), [], "seed {}, which found: {found}", plan.seed);
    }
}

/// `cargo sim … --tally crates/simulation/tests/data/tally.json` counts a run, `cargo sim --figures` on that file prints the
/// table.
#[test]
fn the_document_has_the_figures_of_the_last_run() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(here.join(file)).expect("the file is there");
    let tally: SoakTally = serde_json::from_str(&read("tests/data/tally.json")).expect("it reads");
    let table = tally.to_string();
    let hint = "hint: cargo sim --figures crates/simulation/tests/data/tally.json";
    assert!(read("../../docs/reliability.md").contains(&table), "{hint}\n{table}");
}

#[test]
fn the_same_seed_leads_to_the_same_history() {
    for seed in [1, 5, 25] {
        let runs: Vec<_> = (0..2).map(|_| run(&plan(seed), &soak_registry())).collect();
        assert_eq!(runs[0].lines, runs[1].lines, "seed {seed}");
        assert_eq!(runs[0].fingerprint(), runs[1].fingerprint());
        assert!(runs[0].bindings > 0, "seed {seed} does something");
    }
}

/// What is done every half hour, about many pods at once, is done in the same order every time.
#[test]
fn hours_without_events_lead_to_the_same_history() {
    let more_than_anybody_has = Act::CreatePods { template: u64::MAX - 3, count: 8, life_seconds: 0 };
    let steps = vec![
        PlannedStep { at_millis: 1_000, act: more_than_anybody_has },
        PlannedStep { at_millis: 2 * 3_600_000, act: Act::Look },
    ];
    let plan = Plan { seed: 1, setup: PlannedSetup::default(), seconds: 2 * 3_600, steps };
    let runs: Vec<_> = (0..2).map(|_| run(&plan, &soak_registry())).collect();
    assert_eq!(runs[0].lines, runs[1].lines);
    assert_eq!(runs[0].violations, []);
    let renewed = runs[0].lines.iter().filter(|line| line.what.starts_with("PATCH /apis/events.k8s.io"));
    assert!(renewed.count() > 8, "events that are told again");
}

/// Claims of a pod's own and shared ones, under faults: no device is given twice, and nobody waits for one that is free.
#[test]
fn lives_with_devices_break_no_rule() {
    for seed in [100, 101, 102, 103] {
        let outcome = run(&with_devices(plan(seed)), &soak_registry());
        assert_eq!(outcome.violations, [], "seed {seed}");
        let given = outcome.lines.iter().filter(|line| line.what.contains("/resourceclaims/"));
        assert!(given.count() > 0, "seed {seed} gives devices to claims");
    }
}

#[test]
fn a_plan_reads_as_it_is_written() {
    for seed in 0..50 {
        let written = serde_json::to_string(&plan(seed)).expect("it is written");
        assert_eq!(serde_json::from_str::<Plan>(&written).expect("it reads"), plan(seed));
    }
}

#[test]
fn a_plan_is_shortened_to_what_breaks_the_rule() {
    let step = |at_millis, act| PlannedStep { at_millis, act };
    let mut steps: Vec<PlannedStep> = (0..40).map(|at| step(at * 100, Act::CutWatches)).collect();
    steps.insert(17, step(1_650, Act::Compact));
    steps.push(step(5_000, Act::Look));
    let long =
        Plan { seed: 1, setup: PlannedSetup { replicas: 3, ..PlannedSetup::default() }, seconds: 6, steps };
    // Broken by a compaction that a look follows.
    let is_broken = |plan: &Plan| {
        let at = |act: &Act| plan.steps.iter().position(|step| step.act == *act);
        let broken = at(&Act::Compact).zip(at(&Act::Look)).is_some_and(|(compact, look)| compact < look);
        broken.then_some(SimulationRule::CacheEqualsServer)
    };
    let short = shrink(&long, SimulationRule::CacheEqualsServer, is_broken);
    let acts: Vec<&Act> = short.steps.iter().map(|step| &step.act).collect();
    assert_eq!(acts, [&Act::Compact, &Act::Look]);
    assert_eq!((short.setup.replicas, short.setup.nodes), (1, 1));
}

#[test]
fn a_new_leader_decides_nothing_before_it_has_heard_what_the_last_one_bound() {
    let goes =
        Act::LeaderGoes { template: 1, count: 6, after_millis: 6, late_millis: 15_000, frozen_seconds: 0 };
    let steps =
        vec![PlannedStep { at_millis: 20_000, act: goes }, PlannedStep { at_millis: 60_000, act: Act::Look }];
    let setup = PlannedSetup { replicas: 2, nodes: 3, ..PlannedSetup::default() };
    let plan = Plan { seed: 1, setup, seconds: 61, steps };
    let outcome = run(&plan, &soak_registry());
    assert!(outcome.lines.iter().any(|line| line.what == "releases the lease"), "it is handed over");
    assert!(outcome.bindings > 6, "both lead: {}", outcome.bindings);
    assert_eq!(outcome.violations, []);
    for bug in [Bug::HandOverNotAwaited, Bug::ReleasedBeforeShown] {
        let broken = bugs::with(Some(bug), || violations(&plan));
        let is_found = broken.iter().any(|broken| broken.rule == SimulationRule::NothingGivenTwice);
        assert!(is_found, "{bug:?}: {broken:?}");
    }
}

#[test]
fn nodes_that_shrink_under_churn_are_overfilled_only_by_what_was_decided_before() {
    let step = |at_millis, act| PlannedStep { at_millis, act };
    let bindings_take_a_while =
        Act::Requests { fault: RequestFault::Slow, verb: FaultyVerb::Bind, per_mille: 1000, seconds: 20 };
    let mut steps = vec![step(0, bindings_take_a_while)];
    for i in 0..150 {
        let at = 100 + i * 100;
        steps.push(step(at, Act::CreatePods { template: i, count: 4, life_seconds: 2 }));
        // Large and small in turn, so that many shrink while a binding is on its way.
        steps.push(step(at + 20, Act::ResizeNode { pick: i, shape: i % 3 }));
        steps.push(step(at + 60, Act::ResizeNode { pick: i + 1, shape: 2 }));
    }
    steps.push(step(20_000, Act::Look));
    let setup = PlannedSetup { nodes: 8, ..PlannedSetup::default() };
    let (plan, registry) = (Plan { seed: 1, setup, seconds: 21, steps }, supercargo_plugins::registry());
    let outcome = run(&plan, &registry);
    // The referee goes by the moment of the binding and reports many; nobody could have known about any of them.
    assert!(outcome.overfilled > 10, "{} of {} bindings", outcome.overfilled, outcome.bindings);
    assert_eq!(outcome.violations, []);
    // Whoever could have known is found.
    let broken = bugs::with(Some(Bug::AssumedPodNotCounted), || run(&plan, &registry).violations);
    let is_found = broken.iter().any(|broken| broken.rule == SimulationRule::NothingGivenTwice);
    assert!(is_found, "{broken:?}");
}

/// The victim's binding fails while it is being evicted, so that it ends as a pod that was on no node: no event tells that.
#[test]
fn whoever_evicts_a_pod_that_was_not_bound_after_all_does_not_wait_for_a_timer() {
    let step = |at_millis, act| PlannedStep { at_millis, act };
    let pods = |template| Act::CreatePods { template, count: 1, life_seconds: 0 };
    let bindings_fail =
        Act::Requests { fault: RequestFault::Conflict, verb: FaultyVerb::Bind, per_mille: 1000, seconds: 3 };
    // What fails at 1.1 s is tried again when its backoff is over, at 3 s: just then the more important one comes.
    let steps = vec![
        step(1_000, bindings_fail),
        step(1_100, pods(2)),
        step(3_000, pods(10)),
        step(50_000, Act::Look),
    ];
    let setup = PlannedSetup { nodes: 1, ..PlannedSetup::default() };
    let outcome = run(&Plan { seed: 1, setup, seconds: 60, steps }, &soak_registry());
    let first = |what: &str| outcome.lines.iter().find(|line| line.what.ends_with(what)).map(|line| line.at);
    assert!(first("pod-2: 200").is_some(), "the victim is evicted");
    assert!(first("pod-3 is bound to node-1").is_some_and(|at| at < Duration::from_secs(10)));
    assert_eq!(outcome.violations, []);
}
