//! Draws a plan from a seed.
//!
//! Each seed does only some of the things that can be done, and lets only some things go wrong: what hides behind much
//! else comes to light in a run that has little else.

use super::devices::with_devices;
use super::objects::{EXTENDED_TEMPLATE, UNUSUAL_TEMPLATES};
use super::plan::{
    Act, ExtenderMode, FaultyVerb, GuestMode, Plan, PlannedSetup, PlannedStep, RequestFault,
    SELDOM_RENEWED_SECONDS,
};
use crate::random::SeededRandom;

/// The longest pause between two steps, in milliseconds, for the busiest and the quietest seeds.
const PAUSES_MILLIS: [u64; 6] = [400, 2_000, 8_000, 30_000, 120_000, 240_000];
/// How many pods of a thousand an extender is asked about at least, where there is one.
const EXTENDED_SHARE: u64 = 300;
/// Claims that wait for so long wait for ever.
const NEVER_MILLIS: u64 = 1_000_000_000;
/// How many steps there are between two looks.
const STEPS_TO_A_LOOK: (u64, u64) = (8, 40);
/// How many looks a plan has.
const LOOKS: (u64, u64) = (1, 4);
/// How many times slower a soak's plan may be: from hours in which something happens every second to quiet weeks.
const PACES: [u64; 4] = [1, 10, 60, QUIET_WEEKS];
const QUIET_WEEKS: u64 = 600;
/// From this pace on, some schedulers renew their lease as seldom as OpenShift's do.
const SELDOM_RENEWED_FROM_PACE: u64 = 60;
/// How many of a thousand.
const SELDOM_RENEWED_PER_MILLE: u64 = 400;
/// What can be done besides creating pods and nodes, and what can go wrong: so many sorts.
const DEEDS: u64 = 27;
const FAULTS: u64 = 17;
/// The first seeds are plainer: without races, guests, late permissions, heartbeats and what makes no sense. They have the
/// first sorts only.
const PLAIN_SEEDS: u64 = 100;
const PLAIN_DEEDS: u64 = 25;
const PLAIN_FAULTS: u64 = 14;
/// How often API servers send bookmarks.
const USUAL_BOOKMARK_SECONDS: u64 = 60;
/// How many clusters of a thousand have devices.
const DEVICES_PER_MILLE: u64 = 150;
/// Sets the chance of paces apart from that of plans.
const PACED: u64 = 0x9ace;
/// How often nodes of a cluster that lives slowly tell that they are well, at least: kubelets do it every five minutes.
const SLOW_HEARTBEAT_SECONDS: u64 = 300;
/// How soon after a pod is made something happens to it or its scheduler, in milliseconds: while it is being scheduled or
/// bound, or after.
const RACES_WITHIN_MILLIS: u64 = 12;

/// The plan of a seed.
pub fn plan(seed: u64) -> Plan {
    let random = &mut SeededRandom::new(seed);
    let is_plain = seed < PLAIN_SEEDS;
    let setup = setup(random, is_plain);
    let drawn = Swarm::new(random, &setup, is_plain);
    let (mut steps, mut now) = (Vec::new(), 1_000);
    let longest_pause = *random.one_of(&PAUSES_MILLIS);
    // Something to begin with.
    for _ in 0..random.within(1, 4) {
        steps.push(PlannedStep { at_millis: now, act: drawn.create(random) });
        now += random.within(1, 500);
    }
    for _ in 0..random.within(LOOKS.0, LOOKS.1) {
        for _ in 0..random.within(STEPS_TO_A_LOOK.0, STEPS_TO_A_LOOK.1) {
            now += pause(random, longest_pause);
            let act = drawn.act(random, &setup);
            let is_raced = drawn.races && matches!(act, Act::CreatePods { .. }) && random.per_mille(500);
            steps.push(PlannedStep { at_millis: now, act });
            if is_raced {
                now += random.below(RACES_WITHIN_MILLIS);
                let act = Act::RaceNewest { sort: random.number(), pick: random.number() };
                steps.push(PlannedStep { at_millis: now, act });
            }
        }
        now += pause(random, longest_pause);
        steps.push(PlannedStep { at_millis: now, act: Act::Look });
    }
    Plan { seed, setup, seconds: now / 1000 + 1, steps }
}

/// The plan of a seed for a soak: the same, at one of a few paces, and at most so many times slower. Most clusters are quiet
/// most of the time, and what waits for timers, renewals and watches that end comes to light there.
pub fn paced_plan(seed: u64, slowest: u64) -> Plan {
    // Chance of its own: what is drawn in `plan` stays what it is.
    let random = &mut SeededRandom::new(seed ^ PACED);
    let paces = &PACES[..PACES.partition_point(|pace| *pace <= slowest).max(1)];
    let (mut plan, pace) = (plan(seed), *random.one_of(paces));
    plan.steps.iter_mut().for_each(|step| step.at_millis *= pace);
    plan.seconds *= pace;
    if pace > 1 && plan.setup.heartbeat_seconds > 0 {
        plan.setup.heartbeat_seconds = plan.setup.heartbeat_seconds.max(SLOW_HEARTBEAT_SECONDS);
    }
    if pace == QUIET_WEEKS {
        // As API servers do. Watches that hear less are opened anew all the time; that is tried at the other paces.
        plan.setup.bookmark_seconds = USUAL_BOOKMARK_SECONDS;
    }
    // A month of a lease that is renewed every two seconds is a minute of a processor that finds what an hour does.
    if pace == QUIET_WEEKS || pace >= SELDOM_RENEWED_FROM_PACE && random.per_mille(SELDOM_RENEWED_PER_MILLE) {
        set_lease(&mut plan, SELDOM_RENEWED_SECONDS);
    }
    if random.per_mille(DEVICES_PER_MILLE) { with_devices(plan) } else { plan }
}

/// Another lease; who was to be away for longer than it holds still is.
fn set_lease(plan: &mut Plan, lease_seconds: u64) {
    let before = std::mem::replace(&mut plan.setup.lease_seconds, lease_seconds);
    for step in &mut plan.steps {
        match &mut step.act {
            Act::Kill { down_seconds: seconds, .. }
            | Act::Pause { seconds, .. }
            | Act::LeaderGoes { frozen_seconds: seconds, .. } => {
                *seconds = *seconds * lease_seconds / before.max(1);
            }
            _ => {}
        }
    }
}

/// One of the usual sorts of pods, or of the unusual ones.
fn any_template(random: &mut SeededRandom) -> u64 {
    if random.per_mille(250) { *random.one_of(&UNUSUAL_TEMPLATES) } else { random.number() }
}

/// Mostly a while, sometimes nothing at all: things that happen at once are where races are.
fn pause(random: &mut SeededRandom, longest: u64) -> u64 {
    match random.below(4) {
        0 => random.below(3),
        1 => random.below(longest.min(1_000)),
        _ => random.below(longest),
    }
}

fn setup(random: &mut SeededRandom, is_plain: bool) -> PlannedSetup {
    let plain = PlannedSetup {
        replicas: *random.one_of(&[1, 1, 2, 2, 3]),
        beside: random.per_mille(250),
        lease_seconds: *random.one_of(&[15, 15, 30, 60]),
        nodes: random.within(1, 10),
        history: *random.one_of(&[20, 200, 2000]),
        bookmark_seconds: *random.one_of(&[0, 60, 300]),
        provision_millis: *random.one_of(&[10, 500, 20_000, NEVER_MILLIS]),
        extender: random.per_mille(200),
        percentage: *random.one_of(&[100, 100, 0, 30]),
        ..PlannedSetup::default()
    };
    if is_plain {
        return plain;
    }
    PlannedSetup {
        nodes: random.within(0, 2) + *random.one_of(&[0, 3, 8]),
        guest: random.per_mille(150),
        forbidden_seconds: *random.one_of(&[0, 0, 0, 5, 30]),
        forbidden_kind: random.number(),
        heartbeat_seconds: *random.one_of(&[0, 0, 0, 10]),
        ..plain
    }
}

/// The things that a seed does, and those that go wrong in it.
struct Swarm {
    deeds: Vec<u64>,
    faults: Vec<u64>,
    /// How many steps of a thousand are faults.
    fault_share: u64,
    /// The sorts of pods that there are; none is all of them.
    templates: Vec<u64>,
    /// Whether things happen to pods as soon as they are made.
    races: bool,
    /// How many pods of a thousand are some that an extender is asked about.
    extended_share: u64,
}

impl Swarm {
    fn new(random: &mut SeededRandom, setup: &PlannedSetup, is_plain: bool) -> Self {
        let (all_deeds, all_faults) = if is_plain { (PLAIN_DEEDS, PLAIN_FAULTS) } else { (DEEDS, FAULTS) };
        let (many_deeds, many_faults) = (random.within(150, 900), *random.one_of(&[0, 100, 300, 700]));
        let deeds: Vec<u64> = (0..all_deeds).filter(|_| random.per_mille(many_deeds)).collect();
        let faults: Vec<u64> = (0..all_faults).filter(|_| random.per_mille(many_faults)).collect();
        let fault_share = if faults.is_empty() { 0 } else { *random.one_of(&[50, 150, 400]) };
        let mut drawn =
            Self { deeds, faults, fault_share, templates: Vec::new(), races: false, extended_share: 0 };
        if !is_plain {
            if random.per_mille(500) {
                drawn.templates = (0..random.within(1, 3)).map(|_| any_template(random)).collect();
            }
            drawn.races = random.per_mille(400);
            drawn.extended_share = if setup.extender { EXTENDED_SHARE } else { 0 };
        }
        drawn
    }

    fn template(&self, random: &mut SeededRandom) -> u64 {
        if self.extended_share > 0 && random.per_mille(self.extended_share) {
            return EXTENDED_TEMPLATE;
        }
        if self.templates.is_empty() { random.number() } else { *random.one_of(&self.templates) }
    }

    fn create(&self, random: &mut SeededRandom) -> Act {
        if random.per_mille(120) {
            return Act::AddNode { shape: random.number(), zone: random.number() };
        }
        let life_seconds = *random.one_of(&[0, 0, 5, 60, 600]);
        Act::CreatePods { template: self.template(random), count: random.within(1, 6), life_seconds }
    }

    fn act(&self, random: &mut SeededRandom, setup: &PlannedSetup) -> Act {
        if random.per_mille(self.fault_share) {
            let sort = *random.one_of(&self.faults);
            return fault(random, sort, setup);
        }
        // Without pods and nodes there is nothing to do for anybody.
        if self.deeds.is_empty() || random.per_mille(350) {
            return self.create(random);
        }
        let sort = *random.one_of(&self.deeds);
        self.deed(random, sort)
    }

    fn deed(&self, random: &mut SeededRandom, sort: u64) -> Act {
        let pick = random.number();
        match sort {
            0 => Act::RemoveNode { pick },
            1 => Act::NodeDies { pick },
            2 => Act::RecreateNode { pick, shape: random.number() },
            3 => Act::Cordon { pick, on: random.per_mille(400) },
            4 => Act::Taint { pick, on: random.per_mille(400) },
            5 => Act::RelabelNode { pick, zone: random.number() },
            6 => Act::ResizeNode { pick, shape: random.number() },
            7 => Act::Drain { pick },
            8 => Act::DeletePod { pick },
            9 => Act::RecreatePod { pick, template: self.template(random) },
            10 => Act::RelabelPod { pick },
            11 => Act::TolerateMore { pick },
            12 => Act::CreateGated { template: self.template(random), count: random.within(1, 3) },
            13 => Act::OpenGate { pick },
            14 => Act::Deploy { template: self.template(random), replicas: random.within(1, 6) },
            15 => Act::Scale { pick, replicas: random.within(0, 8) },
            16 => Act::Roll { pick, template: self.template(random) },
            17 => Act::DeleteDeployment { pick },
            18 => Act::AddBudget { app: random.number(), min_available: random.within(0, 4) },
            19 => Act::RemoveBudget { pick },
            20 => Act::RelabelNamespace { pick },
            21 => Act::DeleteNamespace { pick },
            22 => Act::AddVolume { zone: random.number() },
            23 => Act::ForeignBinds { pick, node: random.number() },
            25 => Act::OddNode { pick },
            26 => Act::RaceNewest { sort: random.number(), pick },
            _ => Act::ForeignPod { template: self.template(random), node: random.number() },
        }
    }
}

fn fault(random: &mut SeededRandom, sort: u64, setup: &PlannedSetup) -> Act {
    let (process, seconds) = (random.number(), *random.one_of(&[1, 5, 20, 60]));
    match sort {
        0 | 1 => Act::Requests {
            fault: request_fault(random),
            verb: verb(random),
            per_mille: *random.one_of(&[30, 200, 600, 1000]),
            seconds,
        },
        2 => Act::CutWatches,
        3 => Act::Compact,
        4 => {
            let down_millis = *random.one_of(&[0, 500, 5_000, 40_000]);
            Act::RestartServer { down_millis, forget_history: random.per_mille(400) }
        }
        5 if random.per_mille(600) => Act::Backup,
        5 => Act::Restore { bumped: random.per_mille(500) },
        6 => {
            let millis = *random.one_of(&[10, 200, 3_000, 15_000]);
            Act::LateWatch { process, kind: random.number(), millis, seconds }
        }
        7 => Act::SlowLink { process, millis: *random.one_of(&[50, 500, 3_000]), seconds },
        8 => Act::LinkDown { process, seconds },
        9 | 10 => {
            let down_seconds = random.below(2 * setup.lease_seconds);
            Act::Kill { process, polls: random.within(1, 300), down_seconds }
        }
        11 if random.per_mille(300) => Act::Restart { process },
        11 => Act::Pause { process, seconds: random.within(1, 4 * setup.lease_seconds) },
        12 | 14 if setup.extender => Act::Extender { mode: extender_mode(random), seconds },
        12 | 15 if setup.guest => Act::Guest { mode: guest_mode(random), seconds },
        12 | 14 | 15 => {
            let hours = random.within(0, 4) as i64 - 2;
            Act::ClockStep { process, seconds: hours * 3600 + random.below(60) as i64 }
        }
        16 => Act::LeaderGoes {
            template: any_template(random),
            count: random.within(1, 8),
            after_millis: random.within(1, RACES_WITHIN_MILLIS),
            late_millis: *random.one_of(&[0, 200, 3_000, 15_000]),
            frozen_seconds: *random.one_of(&[0, 2 * setup.lease_seconds]),
        },
        _ => Act::Forbidden { kind: random.number(), seconds },
    }
}

fn request_fault(random: &mut SeededRandom) -> RequestFault {
    use RequestFault::*;
    *random.one_of(&[
        Lost,
        LostAfterwards,
        Conflict,
        TooMany,
        TooManyForLong,
        Internal,
        InternalAfterwards,
        Unavailable,
        Slow,
        SlowAfterwards,
        VerySlow,
    ])
}

fn verb(random: &mut SeededRandom) -> FaultyVerb {
    use FaultyVerb::*;
    *random.one_of(&[Any, Bind, Bind, Evict, Status, Lease, Read, Volume])
}

fn extender_mode(random: &mut SeededRandom) -> ExtenderMode {
    use ExtenderMode::*;
    *random.one_of(&[Hangs, Dies, Nonsense, Slow, Refuses, RefusesSome, RefusesSome, Endless])
}

fn guest_mode(random: &mut SeededRandom) -> GuestMode {
    use GuestMode::*;
    *random.one_of(&[Hangs, Dies, Nonsense])
}
