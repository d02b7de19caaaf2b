//! Proof that the simulation bites: each known bug, switched on, is found within a stated number of seeds, by the rule that is
//! there for it; and the same seeds break nothing without it.
//!
//! Which seeds find a bug changes with what is drawn from them: `cargo sim --find-bugs 100 --bug NAME` tells.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use supercargo_framework::bugs::{self, Bug};
use supercargo_simulation::soak::{BrokenRule, SimulationRule, plan, run, soak_registry};

/// Runs a seed with a bug, or without any.
fn violations(seed: u64, bug: Option<Bug>) -> Vec<BrokenRule> {
    bugs::with(bug, || run(&plan(seed), &soak_registry()).violations)
}

/// What a seed breaks without any bug. Several bugs share seeds, which are run once.
fn without_bugs(seed: u64) -> Arc<OnceLock<Vec<BrokenRule>>> {
    static RUNS: Mutex<BTreeMap<u64, Arc<OnceLock<Vec<BrokenRule>>>>> = Mutex::new(BTreeMap::new());
    let run = RUNS.lock().unwrap_or_else(PoisonError::into_inner).entry(seed).or_default().clone();
    run.get_or_init(|| violations(seed, None));
    run
}

fn is_found(bug: Bug, first: u64, seeds: u64, rule: SimulationRule) {
    let mut found = Vec::new();
    for seed in first..first + seeds {
        let broken = without_bugs(seed);
        let broken = broken.get().map(Vec::as_slice).unwrap_or_default();
        assert!(broken.is_empty(), "seed {seed} breaks a rule without {bug:?}: {}", broken[0]);
        found.extend(violations(seed, Some(bug)));
        if found.iter().any(|found| found.rule == rule) {
            return;
        }
    }
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    panic!(
        "{bug:?} ({}) breaks no rule {rule:?} in {seeds} seeds from {first} on, but: {found:?}",
        bug.what()
    );
}

macro_rules! found {
    ($($test:ident: $bug:ident from $first:literal within $seeds:literal by $rule:ident;)*) => {
        const PROVEN: &[Bug] = &[$(Bug::$bug,)*];
        $(#[test]
        fn $test() {
            is_found(Bug::$bug, $first, $seeds, SimulationRule::$rule);
        })*
    };
}

/// Bugs that no seed was found for yet, or none was looked for: what the simulation still has to learn.
const NOT_PROVEN_YET: &[Bug] = &[
    Bug::AssumedVolumeNotRestored,
    Bug::DoneForgotten,
    Bug::DroppedClaimWakesNobody,
    Bug::EventInFlightLost,
    Bug::ExtenderRefusalForgotten,
    Bug::ExtenderWaitedForEver,
    Bug::LeaseKeptAfterDeadline,
    Bug::NoNodesPanics,
    Bug::RemovedTaintUnseen,
    Bug::ReservationLeaked,
    Bug::UnansweredVolumeWriteIsDone,
    Bug::UpdateWhileSchedulingLost,
];

#[test]
fn every_bug_that_can_be_switched_on_is_here() {
    let is_here = |bug: &Bug| PROVEN.contains(bug) != NOT_PROVEN_YET.contains(bug);
    let missing: Vec<&Bug> = Bug::ALL.iter().filter(|bug| !is_here(bug)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(PROVEN.len() >= 25, "{}", PROVEN.len());
}

found! {
    assumed_pod_not_counted: AssumedPodNotCounted from 6 within 3 by NothingGivenTwice;
    backoff_never_over: BackoffNeverOver from 1 within 3 by NobodyForgotten;
    binds_any_uid: BindsAnyUid from 1 within 3 by LeaseAndIdentity;
    binds_without_lease: BindsWithoutLease from 1 within 3 by LeaseAndIdentity;
    deleted_pod_keeps_nomination: DeletedPodKeepsNomination from 1 within 3 by NothingLeftBehind;
    equals_are_evicted: EqualsAreEvicted from 3 within 3 by EvictionsUseful;
    failure_kept: FailureKept from 1 within 3 by NothingLeftBehind;
    forbidden_counts_as_synced: ForbiddenCountsAsSynced from 103 within 1 by CacheEqualsServer;
    foreign_binding_aborts: ForeignBindingAborts from 104 within 1 by NeverEnds;
    foreign_pods_not_counted: ForeignPodsNotCounted from 5 within 3 by CacheEqualsServer;
    free_room_wraps: FreeRoomWraps from 9 within 3 by NothingGivenTwice;
    freed_port_unseen: FreedPortUnseen from 12 within 3 by NobodyForgotten;
    gate_opened_unseen: GateOpenedUnseen from 7 within 3 by NobodyForgotten;
    gone_is_not_relisted: GoneIsNotRelisted from 5 within 3 by NothingLeftBehind;
    hopeless_pod_holds_up_others: HopelessPodHoldsUpOthers from 6 within 3 by NobodyForgotten;
    lease_by_wall_clock: LeaseByWallClock from 100 within 1 by LeaseAndIdentity;
    lease_stolen_early: LeaseStolenEarly from 100 within 1 by LeaseAndIdentity;
    leaving_victims_unseen: LeavingVictimsUnseen from 5 within 3 by NobodyForgotten;
    message_of_another_pod: MessageOfAnotherPod from 1 within 3 by WrittenAsDecided;
    namespace_labels_unseen: NamespaceLabelsUnseen from 5 within 3 by CacheEqualsServer;
    nomination_dropped_early: NominationDroppedEarly from 9 within 3 by EvictionsUseful;
    own_binding_wakes_nobody: OwnBindingWakesNobody from 31 within 3 by NobodyForgotten;
    recreated_is_old: RecreatedIsOld from 10 within 3 by CacheEqualsServer;
    relist_forgets_deletions: RelistForgetsDeletions from 5 within 3 by NothingLeftBehind;
    status_after_binding: StatusAfterBinding from 14 within 3 by WrittenAsDecided;
    status_kept: StatusKept from 1 within 3 by NothingLeftBehind;
    task_leaked: TaskLeaked from 1 within 3 by NothingLeftBehind;
    unknown_node_aborts: UnknownNodeAborts from 1 within 3 by NeverEnds;
    unknown_outcome_is_failure: UnknownOutcomeIsFailure from 36 within 3 by NothingGivenTwice;
    victims_evicted_again: VictimsEvictedAgain from 6 within 3 by EvictionsUseful;
    waiting_pods_use_up_the_limit: WaitingPodsUseUpTheLimit from 1 within 3 by NobodyForgotten;
}
