//! Where pods go, and when they come back.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::json;
use supercargo_engine::{
    AttemptFailure, Backoff, Popped, QueueName, QueuePlace, QueueSettings, QueueingCause, Refusal, Removal,
    SchedulingQueue,
};
use supercargo_framework::{
    Prepared, Verdict,
    event::{ActionType, Change, ClusterEvent, EventInterest, EventResource},
    points::{Filter, QueueSort, QueuedPod, Requeue},
    preemption::{Claim, Nominations},
    profile::{Choice, Profile, ProfileSpec},
    registry::{Args, define},
};
use supercargo_model::{
    Cluster, Node, NodeInfo, Pod,
    testing::{Builder, node, pod},
};

use crate::support::{DEFAULT_PLUGINS, default_profile, profile, profile_of};

/// A queue with its nominations, and the time in milliseconds.
struct Waiting {
    queue: SchedulingQueue,
    nominations: Nominations,
    now: Duration,
}

impl Waiting {
    fn new() -> Self {
        Self::with(QueueSettings::default())
    }

    fn with(settings: QueueSettings) -> Self {
        let profile = default_profile();
        let queue = SchedulingQueue::new([profile.queue_rules()], settings);
        Self { queue, nominations: Nominations::default(), now: Duration::ZERO }
    }

    fn at(&mut self, millis: u64) -> &mut Self {
        self.now = Duration::from_millis(millis);
        self
    }

    fn add(&mut self, pod: Builder) -> Option<QueuePlace> {
        self.queue.add(pod.pod(), &mut self.nominations, self.now)
    }

    fn update(&mut self, pod: Builder) -> Option<QueuePlace> {
        self.queue.update(pod.pod(), &mut self.nominations, self.now)
    }

    fn remove(&mut self, uid: &str) -> Option<QueuePlace> {
        self.queue.remove(uid, Removal::Deleted, &mut self.nominations, self.now)
    }

    fn pop(&mut self) -> Option<Popped> {
        self.queue.pop(self.now)
    }

    /// The name of the pod whose turn it is; empty if there is none.
    fn next(&mut self) -> String {
        self.pop().map_or_else(String::new, |popped| popped.pod.name.to_string())
    }

    fn refuse(&mut self, uid: &str, plugins: &[&str]) -> Option<QueuePlace> {
        self.park(uid, AttemptFailure::Refused(refused_by(plugins)))
    }

    fn park(&mut self, uid: &str, failure: AttemptFailure) -> Option<QueuePlace> {
        self.queue.park(uid, failure, Claim::Kept, &mut self.nominations, self.now)
    }

    /// Adds a pod that is tried at once, and refused by these plugins.
    fn add_refused(&mut self, pod: Builder, plugins: &[&str]) -> Arc<Pod> {
        self.add(pod);
        let pod = self.pop().expect("its turn").pod;
        assert_eq!(self.refuse(&pod.uid, plugins), Some(QueuePlace::Unschedulable));
        pod
    }

    fn node(&mut self, before: Option<&Node>, after: Option<&Node>) {
        self.queue.happened(&Change::Node(before, after).happened(), self.now);
    }

    fn pod(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        self.queue.happened(&Change::Pod(before, after).happened(), self.now);
    }

    fn place(&self, uid: &str) -> Option<QueuePlace> {
        self.queue.find(uid).map(|pending| pending.place)
    }

    fn came(&self, queue: QueueName, cause: QueueingCause) -> u64 {
        self.queue.incoming().get(&(queue, cause)).copied().unwrap_or_default()
    }
}

fn refused_by(plugins: &[&str]) -> Refusal {
    Refusal { plugins: plugins.iter().map(|name| (*name).into()).collect(), ..Refusal::default() }
}

fn gated(name: &str) -> Builder {
    pod(name).set("/spec/schedulingGates/-", json!({"name": "wait"}))
}

fn wants_cpu(name: &str) -> Builder {
    pod(name).container(&[("cpu", "1")])
}

fn big_node(name: &str) -> Node {
    node(name).allocatable("cpu", "8").node()
}

#[test]
fn turns_follow_priority_then_arrival() {
    let mut waiting = Waiting::new();
    for (name, priority) in [("a", 0), ("b", 10), ("c", 0), ("d", -5)] {
        assert_eq!(waiting.add(pod(name).priority(priority)), Some(QueuePlace::Active));
    }
    assert_eq!(["b", "a", "c", "d", ""].map(|_| waiting.next()), ["b", "a", "c", "d", ""]);
    assert_eq!(waiting.queue.counts().in_flight, 4);
}

#[test]
fn pods_of_other_schedulers_are_left_alone() {
    let mut waiting = Waiting::new();
    assert_eq!(waiting.add(pod("p").set("/spec/schedulerName", "other")), None);
    assert_eq!(waiting.queue.pending().count(), 0);
}

#[test]
fn a_refused_pod_waits_for_what_can_help_it() {
    let mut waiting = Waiting::new();
    waiting.add_refused(wants_cpu("p"), &["NodeResourcesFit"]);
    let small = node("small").allocatable("cpu", "1").node();
    let labelled = node("small").allocatable("cpu", "1").label("a", "b").node();
    let tiny = node("tiny").allocatable("cpu", "500m").node();
    // Labels do not help, nor does a node that is too small.
    waiting.at(5_000).node(Some(&small), Some(&labelled));
    waiting.node(None, Some(&tiny));
    assert_eq!((waiting.place("p"), waiting.next()), (Some(QueuePlace::Unschedulable), String::new()));
    waiting.node(None, Some(&small));
    assert_eq!((waiting.place("p"), waiting.next()), (Some(QueuePlace::Active), "p".to_owned()));
    let cause = QueueingCause::Event(ClusterEvent::new(
        EventResource::Node,
        supercargo_framework::event::ActionType::Add,
    ));
    assert_eq!(waiting.came(QueueName::Active, cause), 1);
}

#[test]
fn a_pod_that_is_woken_too_early_is_kept_back() {
    let mut waiting = Waiting::new();
    waiting.at(300);
    waiting.add_refused(wants_cpu("p"), &["NodeResourcesFit"]);
    waiting.add(pod("other"));
    waiting.at(500).node(None, Some(&big_node("n")));
    assert_eq!(waiting.place("p"), Some(QueuePlace::Backoff));
    // Somebody else waits for a turn, and gets it.
    assert_eq!(waiting.next(), "other");
    waiting.add(pod("another"));
    assert_eq!(waiting.at(1_999).next(), "another");
    waiting.add(pod("third"));
    // Its window is over: it came before the third.
    assert_eq!(waiting.at(2_000).next(), "p");
    assert_eq!(waiting.came(QueueName::Active, QueueingCause::BackoffComplete), 1);
}

#[test]
fn an_idle_queue_does_not_keep_pods_back() {
    let mut waiting = Waiting::new();
    waiting.add_refused(wants_cpu("p"), &["NodeResourcesFit"]);
    waiting.node(None, Some(&big_node("n")));
    assert_eq!(waiting.place("p"), Some(QueuePlace::Backoff));
    assert_eq!(waiting.queue.next_due(), Some(Duration::ZERO));
    assert_eq!(waiting.next(), "p");
    assert_eq!(waiting.came(QueueName::Active, QueueingCause::PopFromBackoffQ), 1);
}

#[test]
fn errors_are_waited_out_even_if_the_queue_is_idle() {
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    // (failed at, comes back at): 1, 2, 4, 8, 10, 10 seconds, and the window they end in.
    let mut at = 0;
    for back in [2_000, 5_000, 10_000, 19_000, 30_000, 41_000] {
        let popped = waiting.at(at).pop().expect("its turn");
        assert_eq!(waiting.park(&popped.pod.uid, AttemptFailure::Error), Some(QueuePlace::Backoff));
        assert_eq!(waiting.at(back - 1).next(), "");
        assert_eq!(waiting.queue.next_due(), Some(Duration::from_millis(back)));
        at = back;
    }
    assert_eq!(waiting.at(at).pop().map(|popped| popped.attempts), Some(7));
}

#[test]
fn a_refusal_ends_a_row_of_errors() {
    let mut waiting = Waiting::new();
    waiting.add(wants_cpu("p"));
    for (at, back) in [(0, 2_000), (2_000, 5_000)] {
        assert_eq!(waiting.at(at).next(), "p");
        waiting.park("p", AttemptFailure::Error);
        assert_eq!(waiting.at(back - 1).next(), "");
    }
    assert_eq!(waiting.at(5_000).next(), "p");
    waiting.refuse("p", &["NodeResourcesFit"]);
    waiting.at(6_999).node(None, Some(&big_node("n")));
    assert_eq!(waiting.place("p"), Some(QueuePlace::Backoff), "the first refusal: one second");
    let Some(until) = waiting.queue.find("p").and_then(|pending| pending.until) else { panic!("kept back") };
    assert_eq!(until, Duration::from_secs(7));
    assert_eq!(waiting.next(), "p");
    waiting.park("p", AttemptFailure::Error);
    let until = waiting.queue.find("p").and_then(|pending| pending.until);
    assert_eq!(until, Some(Duration::from_secs(8)), "the first error of a new row");
}

#[test]
fn without_backoff_pods_come_back_at_once() {
    let backoff = Backoff { max: Duration::ZERO, ..Backoff::default() };
    let mut waiting = Waiting::with(QueueSettings { backoff, ..QueueSettings::default() });
    waiting.add(pod("p"));
    assert_eq!(waiting.next(), "p");
    assert_eq!(waiting.park("p", AttemptFailure::Error), Some(QueuePlace::Active));
}

#[test]
fn within_a_window_the_more_important_pod_comes_first() {
    let mut waiting = Waiting::new();
    for (name, priority, at) in [("low", 0, 100), ("high", 5, 900), ("later", 9, 1_000)] {
        waiting.at(at).add_refused(wants_cpu(name).priority(priority), &["NodeResourcesFit"]);
    }
    waiting.at(1_100).node(None, Some(&big_node("n")));
    assert_eq!(waiting.queue.counts().backoff, 3);
    assert_eq!(["", "", ""].map(|_| waiting.next()), ["high", "low", "later"]);
}

#[test]
fn pods_that_wait_for_something_in_particular_are_not_kept_back() {
    let mut waiting = Waiting::new();
    waiting.add(wants_cpu("p"));
    waiting.next();
    let pending =
        Refusal { plugins: ["TaintToleration".into()].into(), pending: ["NodeResourcesFit".into()].into() };
    waiting.park("p", AttemptFailure::Refused(pending));
    waiting.node(None, Some(&big_node("n")));
    assert_eq!(waiting.place("p"), Some(QueuePlace::Active));
}

#[test]
fn gated_pods_wait_for_their_gates() {
    let mut waiting = Waiting::new();
    assert_eq!(waiting.add(gated("p").set("/status/nominatedNodeName", "n")), Some(QueuePlace::Gated));
    assert!(waiting.nominations.is_empty());
    waiting.node(None, Some(&big_node("n")));
    let two = gated("q").set("/spec/schedulingGates/-", json!({"name": "too"}));
    assert_eq!(waiting.add(two), Some(QueuePlace::Gated));
    assert_eq!(waiting.update(gated("q")), Some(QueuePlace::Gated));
    assert_eq!(waiting.next(), "");
    assert_eq!(waiting.queue.counts().gated, 2);
    let reasons: Vec<_> = waiting.queue.refused_by_plugin().map(|(_, p, n)| (p.to_string(), n)).collect();
    assert_eq!(reasons, [("SchedulingGates".to_owned(), 2)]);
    assert_eq!(waiting.update(pod("q")), Some(QueuePlace::Active));
    assert_eq!(waiting.next(), "q");
    assert_eq!(waiting.queue.counts().gated, 1);
}

#[test]
fn a_pod_that_stays_where_it_is_did_not_come() {
    let itself = |action| QueueingCause::Event(ClusterEvent::new(EventResource::UnscheduledPod, action));
    let mut waiting = Waiting::new();
    waiting.add(gated("p"));
    let held = |waiting: &Waiting, cause| waiting.came(QueueName::Unschedulable, cause);
    assert_eq!(held(&waiting, itself(ActionType::Add)), 1);
    waiting.queue.activate(["p"], waiting.now);
    assert_eq!(
        (waiting.place("p"), held(&waiting, QueueingCause::ForceActivate)),
        (Some(QueuePlace::Gated), 0)
    );
    // One gate of two is opened.
    let two = json!([{"name": "a"}, {"name": "b"}]);
    waiting.update(gated("p").set("/spec/schedulingGates", two));
    waiting.update(gated("p"));
    assert_eq!(waiting.place("p"), Some(QueuePlace::Gated));
    assert_eq!(held(&waiting, itself(ActionType::Update)), 0);
}

#[test]
fn an_event_between_decision_and_parking_is_not_lost() {
    let (small, big) = (node("n").allocatable("cpu", "1").node(), big_node("n"));
    let holder = wants_cpu("holder").on("n").pod();
    type Happens<'a> = &'a dyn Fn(&mut Waiting);
    // (what happens while the pod is in flight, whether it can help)
    let cases: [(Happens<'_>, bool); 7] = [
        (&|w| w.node(None, Some(&big)), true),
        (&|w| w.node(Some(&small), Some(&big)), true),
        (&|w| w.node(Some(&big), Some(&small)), false),
        (&|w| w.node(Some(&big), None), false),
        (&|w| w.pod(Some(&holder), None), true),
        (&|w| w.pod(None, Some(&holder)), false),
        (&|w| assert!(w.update(wants_cpu("p").label("a", "b")).is_some()), false),
    ];
    for (i, (happens, helps)) in cases.iter().enumerate() {
        let mut waiting = Waiting::new();
        // Before it is taken: it will see it.
        waiting.add(wants_cpu("p"));
        happens(&mut waiting);
        assert_eq!(waiting.next(), "p");
        assert_eq!(waiting.queue.counts().in_flight_events, 0);
        // While it is being scheduled.
        happens(&mut waiting);
        let place = waiting.refuse("p", &["NodeResourcesFit"]);
        assert_eq!(
            place,
            Some(if *helps { QueuePlace::Backoff } else { QueuePlace::Unschedulable }),
            "case {i}"
        );
        let counts = waiting.queue.counts();
        assert_eq!((counts.in_flight, counts.in_flight_events), (0, 0), "case {i}");
    }
}

#[test]
fn events_are_kept_for_the_oldest_in_flight_and_no_longer() {
    let mut waiting = Waiting::new();
    for name in ["a", "b", "c"] {
        waiting.add(wants_cpu(name));
    }
    let big = big_node("n");
    let kept = |waiting: &Waiting| waiting.queue.counts().in_flight_events;
    waiting.node(None, Some(&big));
    assert_eq!((waiting.next(), kept(&waiting)), ("a".to_owned(), 0));
    waiting.node(None, Some(&big));
    waiting.next();
    waiting.node(None, Some(&big));
    waiting.node(None, Some(&big));
    waiting.next();
    waiting.node(None, Some(&big));
    assert_eq!(kept(&waiting), 4);
    let by_event = waiting.queue.in_flight_events();
    let by_event: Vec<_> = by_event.iter().map(|(cause, count)| (cause.label(), *count)).collect();
    assert_eq!(by_event, [("NodeAdd".into(), 4)]);
    // What no plugin asks for is not kept.
    waiting.node(Some(&big), Some(&node("n").allocatable("cpu", "8").has_image("i", 1).node()));
    waiting.node(
        Some(&big),
        Some(&node("n").allocatable("cpu", "8").set("/metadata/annotations/a", "b").node()),
    );
    assert_eq!(kept(&waiting), 4);
    waiting.queue.done("b");
    assert_eq!(kept(&waiting), 4, "a may still ask");
    waiting.queue.done("a");
    assert_eq!(kept(&waiting), 1);
    waiting.queue.done("a");
    waiting.remove("c");
    assert_eq!(kept(&waiting), 1, "still in flight");
    waiting.queue.done("c");
    waiting.queue.done("c");
    assert_eq!((kept(&waiting), waiting.queue.counts().in_flight), (0, 0));
}

#[test]
fn a_pod_changed_while_it_is_scheduled_comes_back_in_its_new_version() {
    let tolerant = || pod("p").toleration(json!({"operator": "Exists"}));
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    waiting.next();
    assert_eq!(waiting.update(tolerant()), Some(QueuePlace::InFlight));
    // The new toleration can help with taints.
    assert_eq!(waiting.refuse("p", &["TaintToleration"]), Some(QueuePlace::Backoff));
    let popped = waiting.pop().expect("its turn");
    assert_eq!(popped.pod.spec.tolerations.len(), 1);
    // Its priority does not help by itself, but holds from now on.
    waiting.update(tolerant().priority(7));
    assert_eq!(waiting.refuse("p", &["TaintToleration"]), Some(QueuePlace::Unschedulable));
    assert_eq!(waiting.queue.find("p").map(|pending| pending.pod.spec.priority), Some(7));
}

#[test]
fn updates_reach_a_pod_wherever_it_is() {
    // Active: it goes to its new place in the order.
    let mut waiting = Waiting::new();
    waiting.add(pod("a"));
    waiting.add(pod("b"));
    assert_eq!(waiting.update(pod("b").priority(5)), Some(QueuePlace::Active));
    assert_eq!([waiting.next(), waiting.next()], ["b", "a"]);
    // Kept back: likewise.
    for name in ["a", "b"] {
        waiting.node(None, Some(&big_node("n")));
        assert_eq!(waiting.refuse(name, &["NodeName"]), Some(QueuePlace::Backoff));
    }
    assert_eq!(waiting.update(pod("a").priority(9)), Some(QueuePlace::Backoff));
    assert_eq!([waiting.next(), waiting.next()], ["a", "b"]);
    // After an error.
    waiting.park("a", AttemptFailure::Error);
    assert_eq!(waiting.update(pod("a").priority(1)), Some(QueuePlace::Backoff));
    // Parked: only what can help moves it.
    assert_eq!(waiting.refuse("b", &["TaintToleration"]), Some(QueuePlace::Unschedulable));
    assert_eq!(waiting.update(pod("b").priority(6)), Some(QueuePlace::Unschedulable));
    let tolerant = pod("b").toleration(json!({"operator": "Exists"}));
    assert_eq!(waiting.update(tolerant), Some(QueuePlace::Backoff));
    // Unknown: it is taken in. Bound: it leaves.
    assert_eq!(waiting.update(pod("new")), Some(QueuePlace::Active));
    assert_eq!(waiting.update(pod("new").on("n")), Some(QueuePlace::Active));
    assert_eq!(waiting.place("new"), None);
}

#[test]
fn pods_are_removed_wherever_they_are() {
    let mut waiting = Waiting::new();
    waiting.add(pod("active"));
    assert_eq!(waiting.remove("active"), Some(QueuePlace::Active));
    waiting.add(gated("gated"));
    assert_eq!(waiting.remove("gated"), Some(QueuePlace::Gated));
    waiting.add_refused(pod("parked"), &["NodeName"]);
    waiting.add_refused(pod("parked too"), &["NodeName"]);
    assert_eq!(waiting.remove("parked"), Some(QueuePlace::Unschedulable));
    assert_eq!(waiting.remove("parked too"), Some(QueuePlace::Unschedulable));
    waiting.add(pod("error"));
    waiting.next();
    waiting.park("error", AttemptFailure::Error);
    assert_eq!(waiting.remove("error"), Some(QueuePlace::Backoff));
    waiting.add_refused(pod("kept back"), &["NodeName"]);
    waiting.node(None, Some(&big_node("n")));
    assert_eq!(waiting.remove("kept back"), Some(QueuePlace::Backoff));
    waiting.add(pod("in flight"));
    waiting.next();
    assert_eq!(waiting.remove("in flight"), Some(QueuePlace::InFlight));
    assert_eq!(waiting.refuse("in flight", &["NodeName"]), None);
    assert_eq!(waiting.remove("in flight"), None);
    assert_eq!(waiting.at(1_000_000).next(), "");
    assert_eq!(waiting.queue.counts(), Default::default());
    assert_eq!(waiting.queue.pending().count() + waiting.queue.refused_by_plugin().count(), 0);
    assert_eq!(waiting.queue.next_due(), None);
}

#[test]
fn a_pod_recreated_under_its_name_is_another_pod() {
    let again = || pod("p").set("/metadata/uid", "second");
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    assert_eq!(waiting.add(again()), Some(QueuePlace::Active));
    assert_eq!(waiting.pop().map(|popped| popped.pod.uid.to_string()), Some("second".to_owned()));
    assert_eq!(waiting.next(), "");
    // While the first one is being scheduled.
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    waiting.next();
    assert_eq!(waiting.add(again()), Some(QueuePlace::Active));
    assert_eq!(waiting.refuse("p", &["NodeName"]), None);
    assert_eq!(waiting.queue.pending().map(|p| p.pod.uid.to_string()).collect::<Vec<_>>(), ["second"]);
    assert_eq!(waiting.queue.counts().in_flight, 0);
}

/// No API server does so; what is written in a file may.
#[test]
fn a_pod_that_has_the_uid_of_another_takes_its_place() {
    let other = || pod("other").set("/metadata/uid", "p");
    let key = |name: &str| pod(name).pod().key();
    let places: [fn(&mut Waiting); 4] = [
        |_| {},
        |waiting| {
            waiting.next();
        },
        |waiting| {
            waiting.next();
            waiting.refuse("p", &["NodeName"]);
        },
        |waiting| {
            waiting.next();
            waiting.queue.done("p");
        },
    ];
    for (i, go) in places.into_iter().enumerate() {
        for is_renewed in [false, true] {
            let mut waiting = Waiting::new();
            waiting.add(pod("p"));
            go(&mut waiting);
            // A pod of that name is there already.
            waiting.add(pod("other").set("/metadata/uid", "another"));
            match is_renewed {
                true => waiting.queue.renew(other().pod()),
                false => {
                    waiting.update(other());
                }
            }
            let named = |waiting: &Waiting| {
                ["p", "other"]
                    .map(|name| waiting.queue.named(&key(name)).map(|found| found.pod.uid.to_string()))
            };
            let expected = match is_renewed {
                // Whoever is being bound is another pod.
                true => [Some("p".to_owned()), Some("another".to_owned())],
                false => [None, Some("p".to_owned())],
            };
            assert_eq!(named(&waiting), expected, "case {i}");
            waiting.remove("another");
            waiting.remove("p");
            assert_eq!(named(&waiting), [None, None], "case {i}");
            assert_eq!(waiting.queue.pending().count(), 0, "case {i}");
        }
    }
}

#[test]
fn a_pod_put_in_again_while_in_flight_is_not_scheduled_twice() {
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    waiting.next();
    waiting.remove("p");
    assert_eq!(waiting.add(pod("p")), Some(QueuePlace::InFlight));
    assert_eq!(waiting.next(), "");
    assert_eq!(waiting.refuse("p", &["NodeName"]), Some(QueuePlace::Unschedulable));
}

#[test]
fn a_failed_binding_brings_the_pod_back() {
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    waiting.next();
    waiting.queue.done("p");
    assert_eq!(waiting.place("p"), Some(QueuePlace::InFlight));
    assert_eq!(waiting.update(pod("p").label("a", "b")), Some(QueuePlace::InFlight));
    assert_eq!(waiting.park("p", AttemptFailure::Error), Some(QueuePlace::Backoff));
    assert_eq!(waiting.at(2_000).next(), "p");
    // A refusal without events at hand: they were not kept, so something may have been missed.
    waiting.queue.done("p");
    assert_eq!(waiting.refuse("p", &["NodeName"]), Some(QueuePlace::Backoff));
}

#[test]
fn pods_that_wait_for_too_long_are_tried_anyway_and_counted() {
    let mut waiting = Waiting::new();
    waiting.at(10_000).add_refused(pod("p"), &["NodeName"]);
    waiting.add(gated("gated"));
    assert_eq!(waiting.queue.next_due(), Some(Duration::from_secs(330)));
    assert_eq!(waiting.at(329_999).next(), "");
    let popped = waiting.at(330_000).pop().expect("its turn");
    assert!(popped.after_flush);
    assert_eq!(waiting.came(QueueName::Active, QueueingCause::UnschedulableTimeout), 1);
    assert_eq!(waiting.came(QueueName::Unschedulable, QueueingCause::UnschedulableTimeout), 1, "still gated");
    waiting.queue.bound(&popped);
    assert_eq!(waiting.queue.bound_after_flush(), 1);
    // The gated one is looked at again after as long a time.
    assert_eq!(waiting.queue.next_due(), Some(Duration::from_secs(660)));
}

#[test]
fn it_is_looked_every_half_a_minute_who_waits_for_more_than_five() {
    // (for how many seconds if not five minutes, refused at, tried again at)
    let cases = [
        (None, 0, 330),
        (None, 29_999, 330),
        (None, 30_000, 360),
        (None, 30_001, 360),
        (Some(50), 0, 60),
        (Some(50), 10_000, 90),
    ];
    for (span, refused, tried) in cases {
        let mut waiting = Waiting::new();
        if let Some(span) = span {
            waiting.queue.set_max_unschedulable(Duration::from_secs(span));
        }
        waiting.at(refused).add_refused(pod("p"), &["NodeName"]);
        assert_eq!(waiting.queue.next_due(), Some(Duration::from_secs(tried)), "{refused}");
        assert_eq!(waiting.at(tried * 1000 - 1).next(), "", "{refused}");
        assert_eq!(waiting.at(tried * 1000).next(), "p", "{refused}");
    }
}

#[test]
fn a_pod_that_came_back_is_not_done() {
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    waiting.next();
    waiting.queue.done("p");
    assert_eq!(waiting.park("p", AttemptFailure::Error), Some(QueuePlace::Backoff));
    waiting.queue.done("p");
    assert_eq!(waiting.place("p"), Some(QueuePlace::Backoff));
    assert_eq!(waiting.at(2_000).next(), "p");
}

#[test]
fn what_a_pod_says_that_is_being_bound_counts_if_it_is_not() {
    let mut waiting = Waiting::new();
    waiting.add(wants_cpu("p").priority(1).set("/status/nominatedNodeName", "a"));
    waiting.next();
    waiting.queue.done("p");
    waiting.add_refused(wants_cpu("low"), &["NodeResourcesFit"]);
    waiting.queue.renew(wants_cpu("p").priority(7).pod());
    waiting.queue.renew(wants_cpu("unknown").pod());
    assert_eq!(waiting.place("low"), Some(QueuePlace::Unschedulable), "it concerns nobody");
    assert_eq!([waiting.place("p"), waiting.place("unknown")], [Some(QueuePlace::InFlight), None]);
    waiting.park("p", AttemptFailure::Error);
    let popped = waiting.at(2_000).pop().expect("its turn");
    assert_eq!((&*popped.pod.name, popped.pod.spec.priority), ("p", 7));
}

#[test]
fn an_event_after_a_flush_is_what_counts() {
    let mut waiting = Waiting::new();
    waiting.add_refused(wants_cpu("p"), &["NodeResourcesFit"]);
    assert!(waiting.at(330_000).pop().expect("its turn").after_flush);
    waiting.refuse("p", &["NodeResourcesFit"]);
    waiting.at(340_000).node(None, Some(&big_node("n")));
    let popped = waiting.pop().expect("its turn");
    assert!(!popped.after_flush);
    waiting.queue.bound(&popped);
    assert_eq!(waiting.queue.bound_after_flush(), 0);
}

#[test]
fn pods_can_be_given_their_turn() {
    let mut waiting = Waiting::new();
    waiting.add_refused(pod("parked"), &["NodeName"]);
    waiting.add(pod("error"));
    waiting.next();
    waiting.park("error", AttemptFailure::Error);
    waiting.add(gated("gated"));
    waiting.add(pod("flies"));
    waiting.next();
    waiting.queue.activate(["parked", "error", "gated", "flies", "unknown"], waiting.now);
    assert_eq!(waiting.place("parked"), Some(QueuePlace::Active));
    assert_eq!(waiting.place("error"), Some(QueuePlace::Active));
    assert_eq!(waiting.place("gated"), Some(QueuePlace::Gated));
    assert_eq!(waiting.came(QueueName::Active, QueueingCause::ForceActivate), 2);
    assert_eq!(waiting.refuse("flies", &["NodeName"]), Some(QueuePlace::Backoff));
}

#[test]
fn a_plugin_that_judges_otherwise_gives_those_that_it_refused_their_turn() {
    let mut waiting = Waiting::new();
    waiting.add_refused(pod("its"), &["NodeName"]);
    waiting.add_refused(pod("anothers"), &["NodeResourcesFit"]);
    waiting.queue.plugin_changed("NodeName", waiting.now);
    assert_eq!(waiting.place("its"), Some(QueuePlace::Active));
    assert_eq!(waiting.place("anothers"), Some(QueuePlace::Unschedulable));
}

#[test]
fn claims_to_nodes_follow_the_pod_through_the_queue() {
    let claims = |name: &str, node: &str| wants_cpu(name).set("/status/nominatedNodeName", node);
    let mut waiting = Waiting::new();
    // After a restart the status is all there is.
    waiting.add(claims("p", "a").priority(5));
    assert_eq!(waiting.nominations.node_of("p").map(|n| &**n), Some("a"));
    waiting.next();
    let failure = AttemptFailure::Refused(refused_by(&["NodeResourcesFit"]));
    waiting.queue.park("p", failure.clone(), Claim::On("b".into()), &mut waiting.nominations, waiting.now);
    assert_eq!(waiting.nominations.node_of("p").map(|n| &**n), Some("b"));
    // Pods that had to leave the room to it are tried again when it gives it up; more important ones never had to.
    for (name, priority) in [("low", 0), ("equal", 5), ("high", 6)] {
        waiting.add_refused(wants_cpu(name).priority(priority), &["NodeResourcesFit"]);
    }
    waiting.at(100_000).update(claims("p", "c").priority(5));
    assert_eq!(waiting.nominations.node_of("p").map(|n| &**n), Some("c"));
    assert_eq!(
        ["low", "equal", "high"].map(|p| waiting.place(p).unwrap()),
        [QueuePlace::Active, QueuePlace::Active, QueuePlace::Unschedulable]
    );
    waiting.remove("p");
    assert!(waiting.nominations.is_empty());
}

#[test]
fn a_claim_that_stays_wakes_nobody() {
    let claims = |node: &str| wants_cpu("p").priority(1).set("/status/nominatedNodeName", node);
    let none = || wants_cpu("p").priority(1);
    // (before, after, whether those that had to leave the room are tried again)
    let cases = [
        (none(), none().label("a", "b"), false),
        (none(), claims("a"), false),
        (claims("a"), claims("a").label("a", "b"), false),
        (claims("a"), claims("b"), true),
        (claims("a"), none(), true),
    ];
    for (i, (before, after, wakes)) in cases.into_iter().enumerate() {
        let mut waiting = Waiting::new();
        waiting.add_refused(wants_cpu("low"), &["NodeResourcesFit"]);
        waiting.add(before);
        waiting.at(50_000).update(after);
        let expected = if wakes { QueuePlace::Active } else { QueuePlace::Unschedulable };
        assert_eq!(waiting.place("low"), Some(expected), "case {i}");
    }
}

#[test]
fn a_claim_given_up_by_a_deleted_pod_wakes_others() {
    let mut waiting = Waiting::new();
    waiting.add_refused(wants_cpu("low"), &["NodeResourcesFit"]);
    waiting.add(wants_cpu("p").priority(1).set("/status/nominatedNodeName", "a"));
    waiting.at(50_000).remove("p");
    assert_eq!(waiting.place("low"), Some(QueuePlace::Active));
}

/// kube-scheduler looks at the status alone, and those who had to leave the room wait for the flush.
#[test]
fn a_claim_given_up_before_its_status_was_written_wakes_others() {
    let mut waiting = Waiting::new();
    waiting.add(wants_cpu("p").priority(1));
    waiting.next();
    let failure = AttemptFailure::Refused(refused_by(&["NodeResourcesFit"]));
    waiting.queue.park("p", failure, Claim::On("a".into()), &mut waiting.nominations, waiting.now);
    waiting.add_refused(wants_cpu("low"), &["NodeResourcesFit"]);
    waiting.at(50_000).remove("p");
    assert_eq!(waiting.place("low"), Some(QueuePlace::Active));
}

#[test]
fn a_pod_alone_in_the_queue_is_tried_again_in_bounded_time() {
    for failure in [AttemptFailure::Error, AttemptFailure::Refused(refused_by(&["NodeName"]))] {
        let mut waiting = Waiting::new();
        waiting.add(pod("p"));
        for _ in 0..10 {
            let now = waiting.queue.next_due().expect("something is due").max(waiting.now);
            assert!(now - waiting.now <= Duration::from_secs(330), "{failure:?}");
            waiting.now = now;
            assert_eq!(waiting.next(), "p", "{failure:?}");
            waiting.park("p", failure.clone());
        }
    }
}

#[test]
fn hopeless_pods_do_not_starve_others_in_a_storm_of_heartbeats() {
    let mut waiting = Waiting::new();
    for i in 0..100 {
        waiting.add_refused(wants_cpu(&format!("hopeless-{i}")).priority(1_000), &["NodeResourcesFit"]);
    }
    waiting.add(pod("low"));
    let beat = |time: &str| {
        node("n").set(
            "/status/conditions",
            json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": time}]),
        )
    };
    let (before, after) = (beat("2026-01-01T00:00:00Z").node(), beat("2026-01-01T00:00:10Z").node());
    for _ in 0..1_000 {
        waiting.node(Some(&before), Some(&after));
    }
    assert_eq!(waiting.next(), "low");
    assert_eq!(waiting.queue.counts().unschedulable, 100);
    // Even if all are woken, they are kept back while others have a turn.
    waiting.node(None, Some(&big_node("n")));
    waiting.add(pod("low too"));
    assert_eq!(waiting.next(), "low too");
}

#[test]
fn refusals_by_extenders_are_helped_by_any_event() {
    let annotated = node("n").set("/metadata/annotations/a", "b").node();
    let mut waiting = Waiting::with(QueueSettings { extenders: true, ..QueueSettings::default() });
    waiting.add_refused(pod("p"), &["Extender"]);
    waiting.add(pod("q"));
    waiting.next();
    waiting.node(Some(&node("n").node()), Some(&annotated));
    assert_eq!(waiting.place("p"), Some(QueuePlace::Backoff));
    assert_eq!(waiting.refuse("q", &["Extender"]), Some(QueuePlace::Backoff));
}

/// Wants to know of other pods of the same group, before they are bound.
struct Gang;

impl Filter for Gang {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, _: &NodeInfo) -> Verdict {
        Ok(())
    }
}

impl Requeue for Gang {
    fn events(&self) -> Vec<EventInterest> {
        use ActionType::{Add, Delete, UpdatePodLabel};
        let group = |pod: &Pod| pod.spec.labels.get("group").cloned();
        vec![
            EventInterest::new(EventResource::UnscheduledPod, [Add, UpdatePodLabel, Delete])
                .of_others()
                .if_pod(move |pod, before, after| after.or(before).and_then(group) == group(pod)),
        ]
    }
}

#[test]
fn whoever_waits_for_others_of_its_group_is_told_of_them_before_they_are_bound() {
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Gang", |_| Ok(Gang)).filter().requeue());
    let plugins = DEFAULT_PLUGINS.into_iter().chain([("Gang", 0)]).collect::<Vec<_>>();
    let profile = profile_of(&registry, "default-scheduler", &plugins, &[]);
    let of_group = |name: &str, group: &str| pod(name).label("group", group);
    // What happens to another pod; and whether that wakes the one that waits for those of its group.
    type Happens = (&'static str, fn(&mut Waiting) -> Option<QueuePlace>, bool);
    let cases: [Happens; 7] = [
        ("one of the group comes", |w| w.add(pod("x").label("group", "a")), true),
        ("one of another group comes", |w| w.add(pod("x").label("group", "b")), false),
        ("one joins the group", |w| w.update(pod("other").label("group", "a")), true),
        ("one changes otherwise", |w| w.update(pod("other").label("group", "b").priority(3)), false),
        ("one is deleted", |w| w.remove("same"), true),
        ("another is deleted", |w| w.remove("other"), false),
        ("one changes otherwise", |w| w.update(pod("same").label("group", "a").priority(3)), false),
    ];
    for (what, happens, wakes) in cases {
        for is_in_flight in [false, true] {
            let mut waiting = Waiting::new();
            waiting.queue = SchedulingQueue::new([profile.queue_rules()], QueueSettings::default());
            waiting.add(of_group("same", "a"));
            waiting.add_refused(of_group("unconcerned", "a").priority(9), &["NodeName"]);
            waiting.add(of_group("other", "b"));
            waiting.add(of_group("p", "a").priority(9));
            assert_eq!(waiting.next(), "p");
            let refused = match is_in_flight {
                true => {
                    happens(&mut waiting);
                    waiting.refuse("p", &["Gang"])
                }
                false => {
                    waiting.refuse("p", &["Gang"]);
                    happens(&mut waiting);
                    waiting.place("p")
                }
            };
            let expected = if wakes { QueuePlace::Backoff } else { QueuePlace::Unschedulable };
            assert_eq!(refused, Some(expected), "{what}, in flight: {is_in_flight}");
            assert_eq!(waiting.place("unconcerned"), Some(QueuePlace::Unschedulable), "{what}");
        }
    }
}

#[test]
fn each_profile_asks_its_own_plugins() {
    let one = default_profile();
    let without: Vec<_> =
        DEFAULT_PLUGINS.into_iter().filter(|(name, _)| *name != "SchedulingGates").collect();
    let two = profile("two", &without, &[]);
    let mut queue = SchedulingQueue::new([one.queue_rules(), two.queue_rules()], QueueSettings::default());
    let mut nominations = Nominations::default();
    let mut add = |pod: Builder| queue.add(pod.pod(), &mut nominations, Duration::ZERO);
    assert_eq!(add(gated("p")), Some(QueuePlace::Gated));
    assert_eq!(add(gated("q").set("/spec/schedulerName", "two")), Some(QueuePlace::Active));
}

#[test]
fn attempts_and_times_are_told() {
    let mut waiting = Waiting::new();
    waiting.at(1_000).add(gated("p"));
    waiting.at(2_000).update(wants_cpu("p"));
    waiting.at(3_000).pop();
    waiting.refuse("p", &["NodeResourcesFit"]);
    let pending = waiting.queue.find("p").expect("parked");
    assert_eq!((pending.attempts, pending.since), (1, Duration::from_secs(3)));
    assert_eq!(pending.refused_by, &refused_by(&["NodeResourcesFit"]));
    waiting.at(9_000).node(None, Some(&big_node("n")));
    let popped = waiting.pop().expect("its turn");
    assert_eq!((popped.attempts, popped.first_queued), (2, Duration::from_secs(2)));
    assert_eq!(popped.since, Duration::from_secs(3));
}

/// Contradicts itself.
#[derive(Default)]
struct Chaos(AtomicU64);

impl QueueSort for Chaos {
    fn before(&self, _: &QueuedPod, _: &QueuedPod) -> bool {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        asked.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63 == 0
    }
}

#[test]
fn an_order_that_contradicts_itself_loses_nobody() {
    let mut registry = supercargo_plugins::registry();
    registry.add(define("Chaos", |_| Ok(Chaos::default())).queue_sort());
    let mut spec = ProfileSpec { scheduler_name: "default-scheduler".into(), ..ProfileSpec::default() };
    for name in ["Chaos", "DefaultBinder", "NodeName"] {
        let registration = registry.get(name).expect("a plugin");
        spec.plugins.insert(name.into(), registration.build(&Args::none()).expect("no arguments"));
        for point in registration.points() {
            spec.points.entry(*point).or_default().push(Choice { plugin: name.into(), weight: 0 });
        }
    }
    let profile = Profile::new(spec).expect("a profile");
    let mut waiting = Waiting::new();
    waiting.queue = SchedulingQueue::new([profile.queue_rules()], QueueSettings::default());
    for i in 0..300 {
        waiting.add(pod(&format!("p{i}")));
    }
    for i in 0..100 {
        waiting.update(pod(&format!("p{i}")).priority(1));
        waiting.remove(&format!("p{}", i + 100));
    }
    let mut popped: Vec<Popped> = std::iter::from_fn(|| waiting.pop()).collect();
    let urgent = popped.iter().filter(|popped| popped.pod.spec.priority == 1).count();
    assert_eq!((popped.len(), urgent), (200, 100));
    for popped in popped.drain(..) {
        waiting.node(None, Some(&big_node("n")));
        assert_eq!(waiting.refuse(&popped.pod.uid, &["NodeName"]), Some(QueuePlace::Backoff));
    }
    for i in 0..100 {
        waiting.update(pod(&format!("p{i}")).priority(2));
    }
    let names: BTreeSet<String> =
        std::iter::from_fn(|| waiting.pop()).map(|p| p.pod.name.to_string()).collect();
    assert_eq!(names.len(), 200);
}

#[test]
fn nothing_is_remembered_for_a_pod_that_was_set_aside() {
    let mut waiting = Waiting::new();
    waiting.add(pod("p"));
    let uid = waiting.pop().expect("its turn").pod.uid.clone();
    waiting.queue.set_aside(&uid);
    waiting.node(None, Some(&node("a").node()));
    assert_eq!(waiting.queue.counts().in_flight_events, 0);
    assert_eq!(waiting.next(), "");
    waiting.update(pod("p").label("newer", "yes"));
    let taken = waiting.queue.take_up(&uid).expect("it is there");
    assert_eq!(taken.spec.labels.len(), 1);
    waiting.node(None, Some(&node("b").node()));
    assert_ne!(waiting.queue.counts().in_flight_events, 0);
    waiting.remove(&uid);
    waiting.queue.done(&uid);
    assert_eq!(waiting.queue.take_up(&uid), None);
    assert_eq!(waiting.queue.counts().in_flight, 0);
}
