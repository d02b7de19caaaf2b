//! Proof that the simulation bites: each known bug, switched on, is found within a stated number of seeds, by the rule that is
//! there for it; and the same seeds break nothing without it. What seldom comes together has a plan of its own.
//!
//! Which seeds find a bug changes with what is drawn from them: `cargo sim --find-bugs 100 --bug NAME` tells.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use supercargo_framework::bugs::{self, Bug};
use supercargo_simulation::soak::{
    Act, BrokenRule, ExtenderMode, FaultyVerb, GuestMode, Plan, PlannedSetup, PlannedStep, RequestFault,
    SimulationRule, plan, run, soak_registry,
};

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
const NOT_PROVEN_YET: &[Bug] = &[];

/// The sort of pods that the extender is asked about.
const EXTENDED: u64 = 14;

fn step(at_millis: u64, act: Act) -> PlannedStep {
    PlannedStep { at_millis, act }
}

/// Pods of a sort come, once.
fn pods(template: u64, count: u64) -> Act {
    Act::CreatePods { template, count, life_seconds: 0 }
}

/// Requests go wrong, all of them, for a second.
fn requests(fault: RequestFault, verb: FaultyVerb) -> Act {
    Act::Requests { fault, verb, per_mille: 1000, seconds: 1 }
}

/// A bug, the rule that it breaks, and what has to come together for that: rare in what is drawn from seeds. There is one
/// node, of 4 cpus and 4 pods.
type OwnPlan = (Bug, SimulationRule, PlannedSetup, Vec<PlannedStep>);

fn plans_of_their_own() -> Vec<OwnPlan> {
    let one_node = || PlannedSetup { nodes: 1, ..PlannedSetup::default() };
    vec![
        // Four pods of one cpu each fill the node; a more important one needs one of them to go.
        (
            Bug::NobodyReprieved,
            SimulationRule::EvictionsUseful,
            one_node(),
            vec![step(1_000, pods(1, 4)), step(10_000, pods(9, 1))],
        ),
        (
            Bug::RemovedTaintUnseen,
            SimulationRule::NobodyForgotten,
            one_node(),
            vec![
                step(1_000, Act::Taint { pick: 0, on: true }),
                step(5_000, pods(0, 1)),
                step(20_000, Act::Taint { pick: 0, on: false }),
            ],
        ),
        // The claim of the pod's own is made when the pod waits already, and before its status names it.
        (
            Bug::MadeClaimsUnseen,
            SimulationRule::NobodyForgotten,
            PlannedSetup { devices: true, ..one_node() },
            vec![
                step(500, Act::Devices { sort: 0, pick: 0 }),
                step(5_000, Act::Devices { sort: 7, pick: 0 }),
            ],
        ),
        // A binding is to be sent again, when the leader stands still until another leads.
        (
            Bug::LeaseKeptAfterDeadline,
            SimulationRule::LeaseAndIdentity,
            PlannedSetup { replicas: 2, ..one_node() },
            vec![
                step(20_000, requests(RequestFault::TooMany, FaultyVerb::Bind)),
                step(20_001, pods(0, 3)),
                step(20_050, Act::Pause { process: 0, seconds: 40 }),
            ],
        ),
        // All five are decided in one moment, and the fifth one knew of four.
        (
            Bug::AssumedPodNotCounted,
            SimulationRule::NothingGivenTwice,
            one_node(),
            vec![step(1_000, pods(1, 5))],
        ),
        // Two claims that come in one moment want both devices of a root, and the node has one such root.
        (
            Bug::ChosenDevicesNotKept,
            SimulationRule::NothingGivenTwice,
            PlannedSetup { devices: true, ..one_node() },
            vec![
                step(500, Act::Devices { sort: 0, pick: 0 }),
                step(5_000, Act::Devices { sort: 6, pick: 1 }),
                step(5_000, Act::Devices { sort: 6, pick: 1 }),
            ],
        ),
        // Each of three nodes has a pod of 3 cpus, which take half a minute to leave. One more important pod needs one of them
        // to go; those who start anew meanwhile are to wait for that one, too.
        (
            Bug::ClaimsForgottenAtStart,
            SimulationRule::EvictionsUseful,
            PlannedSetup { nodes: 3, ..PlannedSetup::default() },
            vec![
                step(1_000, pods(2, 4)),
                step(10_000, pods(10, 1)),
                step(13_000, Act::Restart { process: 0 }),
                step(16_000, Act::Restart { process: 0 }),
                step(19_000, Act::Restart { process: 0 }),
                step(22_000, Act::Restart { process: 0 }),
            ],
        ),
        // The pod that has the port is about to be bound, and a more important one wants the port. Neither the binding nor the
        // eviction reaches the server; the eviction is tried for longer.
        (
            Bug::EvictedWhereverTheyAre,
            SimulationRule::EvictionsUseful,
            one_node(),
            vec![
                step(3_000, Act::LinkDown { process: 0, seconds: 5 }),
                step(3_500, pods(6, 1)),
                step(5_000, pods(15, 1)),
            ],
        ),
        // The pod is to go when it is tried, and a finalizer keeps it. What happens later is for nobody.
        (
            Bug::DoneForgotten,
            SimulationRule::NothingLeftBehind,
            one_node(),
            vec![
                step(500, Act::Taint { pick: 0, on: true }),
                step(1_000, Act::HeldPod { template: 0 }),
                step(5_000, Act::DeletePod { pick: 0 }),
                step(10_000, Act::Taint { pick: 0, on: false }),
                step(20_000, Act::AddNode { shape: 1, zone: 0 }),
            ],
        ),
        // Beside the pod of 3 cpus, which a finalizer keeps, there is room for one of 1 cpu as soon as the one that has a claim
        // to the node is gone.
        (
            Bug::DroppedClaimWakesNobody,
            SimulationRule::NobodyForgotten,
            one_node(),
            vec![
                step(1_000, Act::HeldPod { template: 2 }),
                step(5_000, pods(10, 1)),
                step(50_000, pods(1, 1)),
                step(60_000, Act::DeletePod { pick: 2 }),
            ],
        ),
        // While the extender is asked, the node is tainted again, and the pod tolerates it. What is told of the pod has been told
        // before, so that no write brings the version back that was missed.
        (
            Bug::UpdateWhileSchedulingLost,
            SimulationRule::CacheEqualsServer,
            PlannedSetup { extender: true, ..one_node() },
            vec![
                step(500, Act::Extender { mode: ExtenderMode::Slow, seconds: 20 }),
                step(600, Act::Taint { pick: 0, on: true }),
                step(1_000, pods(EXTENDED, 1)),
                step(4_000, Act::Taint { pick: 0, on: false }),
                step(5_000, Act::Taint { pick: 0, on: true }),
                step(5_500, Act::TolerateMore { pick: 0 }),
            ],
        ),
        // One node lacks the device, the other is refused by the extender: whatever happens may have changed its mind.
        (
            Bug::ExtenderRefusalForgotten,
            SimulationRule::NobodyForgotten,
            PlannedSetup { extender: true, nodes: 2, ..PlannedSetup::default() },
            vec![
                step(500, Act::Extender { mode: ExtenderMode::Refuses, seconds: 20 }),
                step(1_000, pods(EXTENDED, 1)),
            ],
        ),
        // The node joins while the pod waits for a permission, and the pod is refused after that: by then, nobody is left who
        // would tell it.
        (
            Bug::EventInFlightLost,
            SimulationRule::NobodyForgotten,
            PlannedSetup { guest: true, ..one_node() },
            vec![
                step(500, Act::Guest { mode: GuestMode::PermitsNobody, seconds: 2 }),
                step(1_000, pods(0, 1)),
                step(3_000, Act::AddNode { shape: 1, zone: 0 }),
            ],
        ),
        // The second time that the binding fails, the status tells so already: no write comes back by the watch and mends it.
        // The more important pod that comes before the third time needs nobody to go.
        (
            Bug::ReservationLeaked,
            SimulationRule::EvictionsUseful,
            one_node(),
            vec![
                step(
                    1_000,
                    Act::Requests {
                        fault: RequestFault::Conflict,
                        verb: FaultyVerb::Bind,
                        per_mille: 1000,
                        seconds: 10,
                    },
                ),
                step(1_100, pods(2, 1)),
                step(4_000, pods(10, 1)),
            ],
        ),
        // Whoever asks for an hour is asked again all the same.
        (
            Bug::PatienceWithoutEnd,
            SimulationRule::NobodyForgotten,
            one_node(),
            vec![
                step(1_000, requests(RequestFault::TooManyForAnHour, FaultyVerb::Bind)),
                step(1_100, pods(0, 1)),
            ],
        ),
        // Three of four cpus are taken by a pod that cannot be read: one of two pods of one cpu fits.
        (
            Bug::UnreadablePodNotCounted,
            SimulationRule::NothingGivenTwice,
            one_node(),
            vec![
                step(1_000, Act::UnreadablePod { node: 0 }),
                step(5_000, pods(1, 1)),
                step(6_000, pods(1, 1)),
            ],
        ),
        // The claim is written when the pod's status names the node, and that write is lost.
        (
            Bug::UnansweredVolumeWriteIsDone,
            SimulationRule::NobodyForgotten,
            one_node(),
            vec![step(1_100, pods(16, 1)), step(1_105, requests(RequestFault::Lost, FaultyVerb::Volume))],
        ),
        // Nobody wants the volume any more that could not be given to a claim.
        (
            Bug::AssumedVolumeNotRestored,
            SimulationRule::CacheEqualsServer,
            one_node(),
            vec![
                step(500, Act::AddVolume { zone: 0 }),
                step(1_000, requests(RequestFault::Conflict, FaultyVerb::Volume)),
                step(1_100, pods(17, 1)),
                step(1_600, Act::DeletePod { pick: 0 }),
            ],
        ),
    ]
}

#[test]
fn what_seldom_comes_together_is_found_where_it_does() {
    for (bug, rule, setup, mut steps) in plans_of_their_own() {
        steps.push(step(70_000, Act::Look));
        let plan = Plan { seed: 1, setup, seconds: 71, steps };
        let violations = |bug| bugs::with(bug, || run(&plan, &soak_registry()).violations);
        assert_eq!(violations(None), [], "without {bug:?}");
        let found = violations(Some(bug));
        assert!(
            found.iter().any(|found| found.rule == rule),
            "{bug:?} ({}) breaks no rule {rule:?}, but: {found:?}",
            bug.what()
        );
    }
}

#[test]
fn every_bug_that_can_be_switched_on_is_here() {
    let of_their_own = plans_of_their_own();
    let is_proven = |bug: &Bug| PROVEN.contains(bug) || of_their_own.iter().any(|(own, ..)| own == bug);
    let is_here = |bug: &Bug| is_proven(bug) != NOT_PROVEN_YET.contains(bug);
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
    extender_waited_for_ever: ExtenderWaitedForEver from 317 within 1 by NobodyForgotten;
    equals_are_evicted: EqualsAreEvicted from 3 within 3 by EvictionsUseful;
    failure_kept: FailureKept from 1 within 3 by NothingLeftBehind;
    forbidden_counts_as_synced: ForbiddenCountsAsSynced from 103 within 1 by CacheEqualsServer;
    foreign_binding_aborts: ForeignBindingAborts from 114 within 1 by NeverEnds;
    foreign_pods_not_counted: ForeignPodsNotCounted from 5 within 3 by CacheEqualsServer;
    free_room_wraps: FreeRoomWraps from 9 within 3 by NothingGivenTwice;
    freed_port_unseen: FreedPortUnseen from 12 within 3 by NobodyForgotten;
    gate_opened_unseen: GateOpenedUnseen from 7 within 3 by NobodyForgotten;
    gone_is_not_relisted: GoneIsNotRelisted from 5 within 3 by NothingLeftBehind;
    hand_over_not_awaited: HandOverNotAwaited from 100 within 1 by NothingGivenTwice;
    hopeless_pod_holds_up_others: HopelessPodHoldsUpOthers from 6 within 3 by NobodyForgotten;
    lease_by_wall_clock: LeaseByWallClock from 100 within 1 by LeaseAndIdentity;
    lease_stolen_early: LeaseStolenEarly from 100 within 1 by LeaseAndIdentity;
    leaving_victims_unseen: LeavingVictimsUnseen from 5 within 3 by NobodyForgotten;
    message_of_another_pod: MessageOfAnotherPod from 1 within 3 by WrittenAsDecided;
    namespace_labels_unseen: NamespaceLabelsUnseen from 5 within 3 by CacheEqualsServer;
    no_nodes_panics: NoNodesPanics from 114 within 1 by NeverEnds;
    nomination_dropped_early: NominationDroppedEarly from 9 within 3 by EvictionsUseful;
    own_binding_wakes_nobody: OwnBindingWakesNobody from 31 within 3 by NobodyForgotten;
    recreated_is_old: RecreatedIsOld from 13 within 1 by CacheEqualsServer;
    relist_forgets_deletions: RelistForgetsDeletions from 5 within 3 by NothingLeftBehind;
    released_before_shown: ReleasedBeforeShown from 100 within 1 by NothingGivenTwice;
    status_after_binding: StatusAfterBinding from 14 within 3 by WrittenAsDecided;
    status_kept: StatusKept from 1 within 3 by NothingLeftBehind;
    task_leaked: TaskLeaked from 1 within 3 by NothingLeftBehind;
    unknown_node_aborts: UnknownNodeAborts from 1 within 3 by NeverEnds;
    unknown_outcome_is_failure: UnknownOutcomeIsFailure from 36 within 3 by NothingGivenTwice;
    victims_evicted_again: VictimsEvictedAgain from 4 within 3 by EvictionsUseful;
    waiting_pods_use_up_the_limit: WaitingPodsUseUpTheLimit from 1 within 3 by NobodyForgotten;
}
