//! What goes wrong under load, and how things stand afterwards.

use std::time::{Duration, SystemTime};

use supercargo_testcluster::{Fault, FaultPlan, FaultRule};

use crate::{
    load::{PODS, all_is_well, loaded_stage, slow_bindings, wait_for_bindings},
    process::{tell, wait_until},
    stage::Stage,
};

/// A number that differs from run to run; a failing test shows it.
fn seed() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().expect("a clock after 1970");
    since.subsec_nanos().into()
}

/// Some moment in the middle of the work, by how many pods are bound by then.
fn some_moment(seed: u64) -> usize {
    PODS / 10 + usize::try_from(seed % (PODS as u64 * 7 / 10)).expect("a small number")
}

#[test]
fn killed_at_any_moment_and_started_again_then_all_is_well() {
    let stage = loaded_stage();
    slow_bindings(stage.cluster());
    let seed = seed();
    tell(&format!("seed {seed}"));
    let mut moments = [1, 7, 49].map(|factor| some_moment(seed.wrapping_mul(factor)));
    moments.sort_unstable();
    for moment in moments {
        let mut scheduler = stage.scheduler();
        wait_for_bindings(&stage, moment);
        scheduler.kill();
    }
    let scheduler = stage.scheduler();
    all_is_well(&stage, &scheduler, PODS);
}

#[test]
fn the_api_server_restarts_and_keeps_its_history_then_all_is_well() {
    server_restarts(false);
}

#[test]
fn the_api_server_restarts_and_forgets_its_history_then_all_is_well() {
    server_restarts(true);
}

fn server_restarts(forget_history: bool) {
    let stage = loaded_stage();
    slow_bindings(stage.cluster());
    let scheduler = stage.scheduler();
    wait_for_bindings(&stage, PODS / 3);
    stage.cluster().faults().restart(Duration::from_millis(700), forget_history);
    // Somebody's binding is seen to be gone, so that the restart is over when the clock starts.
    wait_until("the server is back", || stage.client.get("/readyz-is-no-object").is_none());
    all_is_well(&stage, &scheduler, PODS);
    assert!(scheduler.metric("supercargo_watch_restarts_total", "resource=\"nodes\"") >= 1.0);
}

fn bindings_go_wrong(fault: Fault) {
    let stage = loaded_stage();
    let rule = FaultRule::new(fault).verb("create").resource("pods/binding").every(10);
    stage.cluster().faults().add(rule);
    let scheduler = stage.scheduler();
    all_is_well(&stage, &scheduler, PODS);
}

fn answered(code: u16) -> Fault {
    Fault::Answer { code, retry_after_seconds: u64::from(code == 429) }
}

#[test]
fn every_tenth_binding_answered_409_then_all_is_well() {
    bindings_go_wrong(answered(409));
}

#[test]
fn every_tenth_binding_answered_429_then_all_is_well() {
    bindings_go_wrong(answered(429));
}

#[test]
fn every_tenth_binding_answered_500_then_all_is_well() {
    bindings_go_wrong(answered(500));
}

#[test]
fn every_tenth_binding_hung_up_before_it_is_done_then_all_is_well() {
    bindings_go_wrong(Fault::HangUp);
}

#[test]
fn every_tenth_binding_done_but_answered_500_then_all_is_well() {
    bindings_go_wrong(Fault::CommitThenAnswer { code: 500 });
}

#[test]
fn every_tenth_binding_done_but_hung_up_then_all_is_well() {
    bindings_go_wrong(Fault::CommitThenHangUp);
}

#[test]
fn bindings_done_but_answered_too_late_then_all_is_well() {
    let stage = loaded_stage();
    // Longer than the scheduler's patience, so that the answer never comes.
    let late = FaultRule::new(Fault::CommitThenDelay { millis: 60_000 });
    stage.cluster().faults().add(late.verb("create").resource("pods/binding").every(25));
    let scheduler = stage.scheduler();
    all_is_well(&stage, &scheduler, PODS);
}

#[test]
fn watches_cut_at_random_then_all_is_well() {
    let stage = loaded_stage();
    slow_bindings(stage.cluster());
    let mut plan = FaultPlan { seed: seed(), watches_cut_per_second: 2.0, ..stage.cluster().faults().plan() };
    stage.cluster().faults().set(plan.clone());
    let scheduler = stage.scheduler();
    wait_for_bindings(&stage, PODS / 2);
    stage.cluster().faults().compact();
    plan.gone_as_status = true;
    stage.cluster().faults().set(plan);
    wait_for_bindings(&stage, PODS * 9 / 10);
    stage.cluster().faults().clear();
    all_is_well(&stage, &scheduler, PODS);
}

#[test]
fn everything_slow_and_a_little_of_everything_wrong_then_all_is_well() {
    let stage = loaded_stage();
    let seed = seed();
    tell(&format!("seed {seed}"));
    let rule = |fault, share| FaultRule::new(fault).share(share);
    let rules = vec![
        rule(Fault::Delay { millis: 30 }, 0.5),
        rule(answered(429), 0.03),
        rule(answered(500), 0.03),
        rule(Fault::HangUp, 0.02),
        rule(Fault::CommitThenHangUp, 0.02),
        rule(Fault::CommitThenAnswer { code: 500 }, 0.02),
    ];
    let plan = FaultPlan { seed, rules, watches_cut_per_second: 0.5, gone_as_status: false };
    stage.cluster().faults().set(plan);
    let scheduler = stage.start("", &[]);
    wait_for_bindings(&stage, PODS * 2 / 3);
    stage.cluster().faults().clear();
    all_is_well(&stage, &scheduler, PODS);
}

#[test]
fn another_scheduler_binds_the_same_pods_then_each_is_bound_once() {
    let stage: Stage = loaded_stage();
    slow_bindings(stage.cluster());
    let one = stage.scheduler();
    let _two = stage.start("", &[]);
    // Two that do not know of each other may fill a node twice; that is why there is an election. But no pod is bound twice.
    wait_until("every pod is bound", || stage.cluster().pods_bound() == PODS);
    assert_eq!(stage.cluster().bindings().len(), PODS);
    assert!(one.answers("/healthz", 200));
}
