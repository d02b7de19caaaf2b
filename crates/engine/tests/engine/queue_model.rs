//! Any interleaving of pods, events and attempts, against a slow queue that forgets nothing and looks at everything.
//!
//! A failing run prints the seed that replays it: `SUPERCARGO_SEED=7 cargo test -p supercargo-engine --test engine queue_model`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde_json::json;
use supercargo_engine::{
    AttemptFailure, Backoff, Popped, QueuePlace, QueueSettings, Refusal, Removal, SchedulingQueue,
};
use supercargo_framework::{
    Verdict,
    changes::{Happened, pod_events},
    event::{ActionType, Change, ClusterEvent, EventInterest, EventResource, KeptChange},
    points::{PreEnqueue, Requeue},
    preemption::{Claim, Nominations},
    profile::{Choice, Profile, ProfileSpec},
    queueing::{QueueRules, QueueView},
    registry::{Args, define},
};
use supercargo_model::{
    Cluster, Name, Node, Pod,
    testing::{Builder, Random, node, pod},
};

const RUNS: u64 = 400;
const STEPS: usize = 300;
const PODS: usize = 8;
const FLUSH: Duration = Duration::from_secs(60);
/// The plugins that refuse pods here; the last one is in no profile.
const REFUSERS: [&str; 5] = ["Selects", "Waits", "Deaf", "Silent", "Ghost"];

/// Asks for these events.
struct Asks(fn() -> Vec<EventInterest>);

impl Requeue for Asks {
    fn events(&self) -> Vec<EventInterest> {
        (self.0)()
    }
}

impl PreEnqueue for Asks {
    fn pre_enqueue(&self, _: &QueueView<'_>, _: &Pod) -> Verdict {
        Ok(())
    }
}

fn selects() -> Vec<EventInterest> {
    let fits = |pod: &Pod, _: Option<&Node>, after: Option<&Node>| {
        after.is_some_and(|node| node.labels.get("zone") == pod.spec.labels.get("zone"))
    };
    let own = |pod: &Pod, _: Option<&Pod>, after: Option<&Pod>| after.is_some_and(|p| p.uid == pod.uid);
    vec![
        EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeLabel]).if_node(fits),
        EventInterest::new(EventResource::Pod, [ActionType::UpdatePodLabel]).if_pod(own),
    ]
}

fn waits() -> Vec<EventInterest> {
    vec![
        EventInterest::new(EventResource::Pod, [ActionType::Delete]),
        EventInterest::new(EventResource::Node, [ActionType::Delete]),
    ]
}

fn profile() -> Profile {
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Selects", |_| Ok(Asks(selects))).pre_enqueue().requeue());
    registry.add(define("Waits", |_| Ok(Asks(waits))).pre_enqueue().requeue());
    registry.add(define("Deaf", |_| Ok(Asks(Vec::new))).pre_enqueue().requeue());
    registry.add(define("Silent", |_| Ok(Asks(Vec::new))).pre_enqueue());
    let mut spec = ProfileSpec { scheduler_name: "default-scheduler".into(), ..ProfileSpec::default() };
    for name in ["SchedulingGates", "PrioritySort", "DefaultBinder", "Selects", "Waits", "Deaf", "Silent"] {
        let registration = registry.get(name).expect("a plugin");
        spec.plugins.insert(name.into(), registration.build(&Args::none()).expect("no arguments"));
        for point in registration.points() {
            spec.points.entry(*point).or_default().push(Choice { plugin: name.into(), weight: 0 });
        }
    }
    Profile::new(spec).expect("a profile")
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Spot {
    Active,
    KeptBack(Duration),
    Parked,
    Out,
}

/// What the slow queue knows about a pod.
struct ModelPod {
    pod: Arc<Pod>,
    spot: Spot,
    arrival: usize,
    since: Duration,
    refusals: u32,
    errors: u32,
    refusal: Refusal,
    held: bool,
    flushed: Duration,
}

enum Seen {
    Event(ClusterEvent, Arc<KeptChange>),
    Activated(Name),
    Flushed,
}

/// The slow queue.
struct Model {
    rules: Arc<QueueRules>,
    pods: BTreeMap<Name, ModelPod>,
    /// Everything that ever happened, and whether it happened while a pod was in flight.
    seen: Vec<Seen>,
    /// How much had happened when a pod was taken.
    taken: BTreeMap<Name, usize>,
    arrivals: usize,
}

impl Model {
    fn worth(&self, known: &ModelPod, event: ClusterEvent, change: &Change<'_>) -> u8 {
        let helps = |plugin: &Name| {
            self.rules.interests(plugin).helps(&Cluster::default(), event, &known.pod, change)
        };
        match () {
            () if known.refusal.pending.iter().any(helps) => 2,
            () if known.refusal.plugins.iter().any(helps) || known.refusal.is_empty() => 1,
            () => 0,
        }
    }

    /// Puts a pod where it belongs: 0 stays parked, 1 is kept back if need be, 2 is not.
    fn put(&mut self, uid: &str, worth: u8, now: Duration) {
        let known = self.pods.get_mut(uid).expect("a known pod");
        if worth == 0 {
            known.spot = Spot::Parked;
            return;
        }
        known.held = !known.pod.spec.scheduling_gates.is_empty();
        if known.held {
            known.refusal.plugins.insert("SchedulingGates".into());
            known.spot = Spot::Parked;
            return;
        }
        let failures = if known.errors > 0 { known.errors } else { known.refusals };
        let until = (known.since + Backoff::default().after(failures)).as_secs();
        let kept_back = failures > 0 && until >= now.as_secs() && worth == 1;
        known.spot = if kept_back { Spot::KeptBack(Duration::from_secs(until)) } else { Spot::Active };
    }

    fn add(&mut self, pod: Arc<Pod>, now: Duration) {
        self.arrivals += 1;
        let (uid, in_flight) = (pod.uid.clone(), self.taken.contains_key(&pod.uid));
        let known = ModelPod {
            pod,
            spot: Spot::Out,
            arrival: self.arrivals,
            since: now,
            refusals: 0,
            errors: 0,
            refusal: Refusal::default(),
            held: false,
            flushed: Duration::ZERO,
        };
        self.pods.insert(uid.clone(), known);
        if !in_flight {
            self.put(&uid, 2, now);
        }
    }

    fn update(&mut self, pod: Arc<Pod>, now: Duration) {
        let uid = pod.uid.clone();
        let known = self.pods.get_mut(&uid).expect("a known pod");
        let before = std::mem::replace(&mut known.pod, pod.clone());
        if before == pod {
            return;
        }
        let change = Change::Pod(Some(&before), Some(&pod));
        for event in pod_events(&before, &pod) {
            if self.taken.contains_key(&uid) {
                self.seen.push(Seen::Event(event, Arc::new(change.kept())));
            } else if self.pods[&uid].spot == Spot::Parked {
                let worth = self.worth(&self.pods[&uid], event, &change);
                if worth > 0 {
                    self.put(&uid, worth, now);
                }
            }
        }
    }

    fn happened(&mut self, happened: &Happened<'_>, now: Duration) {
        for event in &happened.events {
            let parked = self.pods.iter().filter(|(_, known)| known.spot == Spot::Parked);
            let gate = self.rules.interests("SchedulingGates").events();
            let let_in = parked.filter(|(_, known)| !known.held || gate.contains(*event));
            let worth: Vec<(Name, u8)> = let_in
                .map(|(uid, known)| (uid.clone(), self.worth(known, *event, &happened.change)))
                .collect();
            for (uid, worth) in worth {
                if worth > 0 {
                    self.put(&uid, worth, now);
                }
            }
            if self.rules.events().contains(*event) && !self.taken.is_empty() {
                self.seen.push(Seen::Event(*event, Arc::new(happened.change.kept())));
            }
        }
    }

    fn advance(&mut self, now: Duration) {
        let look = now.as_secs() / 30 * 30;
        let mut overdue = Vec::new();
        for (uid, known) in &mut self.pods {
            match known.spot {
                Spot::KeptBack(until) if until.as_secs() < now.as_secs() => known.spot = Spot::Active,
                Spot::Parked if known.since.max(known.flushed) + FLUSH < Duration::from_secs(look) => {
                    known.flushed = now;
                    overdue.push(uid.clone());
                }
                _ => {}
            }
        }
        if !overdue.is_empty() && !self.taken.is_empty() {
            self.seen.push(Seen::Flushed);
        }
        overdue.iter().for_each(|uid| self.put(uid, 1, now));
    }

    fn pop(&mut self, now: Duration) -> Option<Name> {
        self.advance(now);
        let turn = |(uid, known): (&Name, &ModelPod)| {
            let order = (std::cmp::Reverse(known.pod.spec.priority), known.arrival, uid.clone());
            match known.spot {
                Spot::Active => Some((Duration::ZERO, order)),
                Spot::KeptBack(until) if !known.refusal.is_empty() => Some((until, order)),
                _ => None,
            }
        };
        let active = |turn: &(Duration, _)| turn.0.is_zero();
        let turns: Vec<_> = self.pods.iter().filter_map(turn).collect();
        let first = turns.iter().filter(|turn| active(turn)).min().or_else(|| turns.iter().min());
        let uid = first.map(|(_, (_, _, uid))| uid.clone())?;
        self.pods.get_mut(&uid).expect("a known pod").spot = Spot::Out;
        self.taken.insert(uid.clone(), self.seen.len());
        Some(uid)
    }

    fn park(&mut self, uid: &Name, failure: &AttemptFailure, now: Duration) {
        let taken = self.taken.remove(uid);
        let Some(known) = self.pods.get_mut(uid) else {
            return;
        };
        match failure {
            AttemptFailure::Error => (known.errors, known.refusal) = (known.errors + 1, Refusal::default()),
            AttemptFailure::Refused(refusal) => {
                (known.errors, known.refusals) = (0, known.refusals + 1);
                known.refusal = refusal.clone();
            }
        }
        self.arrivals += 1;
        (known.arrival, known.since, known.flushed) = (self.arrivals, now, Duration::ZERO);
        let known = &self.pods[uid];
        let worth = |seen: &Seen| match seen {
            Seen::Event(event, change) => self.worth(known, *event, &change.change()),
            Seen::Activated(other) => u8::from(other == uid),
            Seen::Flushed => 1,
        };
        let worth = match taken {
            Some(taken) if !known.refusal.is_empty() => {
                self.seen[taken..].iter().map(worth).max().unwrap_or(0)
            }
            _ => 1,
        };
        self.put(uid, worth, now);
    }

    fn activate(&mut self, uid: &Name, now: Duration) {
        match self.pods.get_mut(uid) {
            Some(known) if matches!(known.spot, Spot::KeptBack(_)) => known.spot = Spot::Active,
            Some(known) if known.spot == Spot::Parked => self.put(uid, 2, now),
            Some(_) if self.taken.contains_key(uid) => self.seen.push(Seen::Activated(uid.clone())),
            _ => {}
        }
    }

    fn place(&self, uid: &str) -> Option<QueuePlace> {
        self.pods.get(uid).map(|known| match known.spot {
            Spot::Active => QueuePlace::Active,
            Spot::KeptBack(_) => QueuePlace::Backoff,
            Spot::Parked if known.held => QueuePlace::Gated,
            Spot::Parked => QueuePlace::Unschedulable,
            Spot::Out => QueuePlace::InFlight,
        })
    }
}

struct Run {
    random: Random,
    queue: SchedulingQueue,
    nominations: Nominations,
    model: Model,
    now: Duration,
    flying: Vec<Popped>,
    generation: usize,
}

impl Run {
    fn new(seed: u64, profile: &Profile) -> Self {
        let rules = profile.queue_rules().clone();
        let settings = QueueSettings { max_unschedulable: FLUSH, ..QueueSettings::default() };
        Self {
            random: Random(seed),
            queue: SchedulingQueue::new([&rules], settings),
            nominations: Nominations::default(),
            model: Model {
                rules,
                pods: BTreeMap::new(),
                seen: Vec::new(),
                taken: BTreeMap::new(),
                arrivals: 0,
            },
            now: Duration::ZERO,
            flying: Vec::new(),
            generation: 0,
        }
    }

    /// Some pod of a few names, in some version; now and then the name is another pod's than before.
    fn some_pod(&mut self) -> Builder {
        let name = format!("p{}", self.random.below(PODS));
        let zone = ["a", "b"][self.random.below(2)];
        let mut built = pod(&name).label("zone", zone).priority(self.random.below(3) as i32);
        if self.random.chance(4) {
            built = built.set("/spec/schedulingGates/-", json!({"name": "wait"}));
        }
        if self.random.chance(20) {
            self.generation += 1;
        }
        built.set("/metadata/uid", format!("{name}-{}", self.generation))
    }

    fn some_uid(&mut self) -> Option<Name> {
        let count = self.model.pods.len();
        (count > 0).then(|| self.random.below(count)).and_then(|i| self.model.pods.keys().nth(i).cloned())
    }

    fn happens(&mut self) {
        let zone = |zone: &str| node("n").label("zone", zone).node();
        let (a, b, bound) = (zone("a"), zone("b"), pod("bound").on("n").pod());
        let (labelled, annotated) = (
            pod("bound").on("n").label("x", "y").pod(),
            node("n").label("zone", "a").set("/metadata/annotations/x", "y").node(),
        );
        let changes = [
            Change::Node(None, Some(&a)),
            Change::Node(None, Some(&b)),
            Change::Node(Some(&a), Some(&b)),
            Change::Node(Some(&a), Some(&a)),
            Change::Node(Some(&a), Some(&annotated)),
            Change::Node(Some(&a), None),
            Change::Pod(None, Some(&bound)),
            Change::Pod(Some(&bound), Some(&labelled)),
            Change::Pod(Some(&bound), None),
        ];
        let happened = changes[self.random.below(changes.len())].happened();
        self.queue.happened(&happened, self.now);
        self.model.happened(&happened, self.now);
    }

    fn fails(&mut self) {
        if self.flying.is_empty() {
            return;
        }
        let popped = self.flying.swap_remove(self.random.below(self.flying.len()));
        let uid = popped.pod.uid.clone();
        if self.random.chance(4) {
            // Bound, said twice; the cluster tells of it later.
            self.queue.bound(&popped);
            self.queue.done(&uid);
            self.model.taken.remove(&uid);
            if self.random.chance(3) {
                return self.parks(&uid, AttemptFailure::Error);
            }
            self.queue.remove(&uid, Removal::Bound, &mut self.nominations, self.now);
            self.model.pods.remove(&uid);
            return;
        }
        let mut refusal = Refusal::default();
        for plugin in REFUSERS {
            match self.random.below(6) {
                0 => drop(refusal.plugins.insert(plugin.into())),
                1 if self.random.chance(3) => drop(refusal.pending.insert(plugin.into())),
                _ => {}
            }
        }
        let failure =
            if refusal.is_empty() { AttemptFailure::Error } else { AttemptFailure::Refused(refusal) };
        self.parks(&uid, failure);
    }

    fn parks(&mut self, uid: &Name, failure: AttemptFailure) {
        self.model.park(uid, &failure, self.now);
        self.queue.park(uid, failure, Claim::Kept, &mut self.nominations, self.now);
    }

    fn adds(&mut self) {
        let pod = self.some_pod().pod();
        self.queue.add(pod.clone(), &mut self.nominations, self.now);
        self.model.pods.retain(|uid, known| known.pod.name != pod.name || *uid == pod.uid);
        if self.model.pods.contains_key(&pod.uid) {
            self.model.update(pod, self.now);
        } else {
            self.model.add(pod, self.now);
        }
    }

    fn step(&mut self) {
        match self.random.below(10) {
            0 | 1 => self.adds(),
            2 => {
                if let Some(uid) = self.some_uid() {
                    self.queue.remove(&uid, Removal::Deleted, &mut self.nominations, self.now);
                    self.model.pods.remove(&uid);
                }
            }
            3 | 4 => self.happens(),
            5 | 6 => {
                let popped = self.queue.pop(self.now);
                let expected = self.model.pop(self.now);
                assert_eq!(
                    popped.as_ref().map(|popped| popped.pod.uid.clone()),
                    expected,
                    "whose turn it is"
                );
                self.flying.extend(popped);
            }
            7 => self.fails(),
            8 => {
                if let Some(uid) = self.some_uid() {
                    self.queue.activate([&*uid], self.now);
                    self.model.activate(&uid, self.now);
                }
            }
            _ => {
                let millis = if self.random.chance(10) { 40_000 } else { 1_500 };
                self.now += Duration::from_millis(self.random.below(millis) as u64);
            }
        }
    }

    fn check(&self) {
        let places: BTreeMap<Name, QueuePlace> =
            self.queue.pending().map(|pending| (pending.pod.uid.clone(), pending.place)).collect();
        let expected: BTreeMap<Name, QueuePlace> =
            self.model.pods.keys().map(|uid| (uid.clone(), self.model.place(uid).expect("known"))).collect();
        assert_eq!(places, expected, "where pods are");
        for pending in self.queue.pending() {
            assert_eq!(*pending.pod, self.model.pods[&pending.pod.uid].pod, "the newest version");
        }
        let counts = self.queue.counts();
        let at = |place| places.values().filter(|p| **p == place).count();
        let of_parts = [counts.active, counts.backoff, counts.unschedulable, counts.gated];
        let by_place =
            [QueuePlace::Active, QueuePlace::Backoff, QueuePlace::Unschedulable, QueuePlace::Gated].map(at);
        assert_eq!(of_parts, by_place, "no pod in two places");
        assert_eq!(counts.in_flight, self.model.taken.len());
        let oldest = self.model.taken.values().min();
        let kept = oldest.map_or(0, |oldest| self.model.seen.len() - oldest);
        assert_eq!(counts.in_flight_events, kept, "events are kept for the oldest in flight, and no longer");
        let ready = counts.active > 0;
        assert!(!ready || self.queue.next_due() == Some(Duration::ZERO));
        let waits = counts.backoff + counts.unschedulable + counts.gated > 0;
        assert!(!waits || self.queue.next_due().is_some(), "nobody waits for ever");
        let reasons: usize = self.queue.refused_by_plugin().map(|(_, _, count)| count).sum();
        let queued = self.model.pods.values().filter(|known| known.spot != Spot::Out);
        assert_eq!(reasons, queued.map(|known| known.refusal.all().count()).sum::<usize>());
    }
}

fn run(seed: u64, profile: &Profile) {
    let mut run = Run::new(seed, profile);
    for _ in 0..STEPS {
        run.step();
        run.check();
    }
}

#[test]
fn nothing_is_lost_and_nobody_is_in_two_places() {
    let profile = profile();
    if let Ok(seed) = std::env::var("SUPERCARGO_SEED") {
        return run(seed.parse().expect("a number"), &profile);
    }
    for seed in 0..RUNS {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &profile)));
        assert!(outcome.is_ok(), "replay with SUPERCARGO_SEED={seed}");
    }
}
