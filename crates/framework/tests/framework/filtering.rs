//! PreFilter, Filter, PostFilter, Reserve and PreEnqueue, as a profile runs them.

use std::sync::{Arc, Mutex};

use supercargo_framework::{
    Code, Prepared, Status, Verdict,
    assumed::{AssumedObjects, ReserveCycle},
    handle::{NoPendingPods, Verb},
    points::{Filter, PostFilter, PreEnqueue, PreFilter, PreFilterOutcome, Reserve},
    preemption::{
        Claim, FilterRunner, FollowUp, NodeVerdicts, Nomination, Nominations, NotNominated, Rejection,
        no_node_available,
    },
    profile::{PreFilterEnd, Profile, ProfileRunner},
    queueing::QueueView,
    registry::{Point, define},
};
use supercargo_model::{
    Cluster, Key, Name, NodeInfo, Pod,
    testing::{cluster, node, pod},
};

use crate::support::{Found, Setup, finds};

fn three_nodes() -> Cluster {
    cluster(["a", "b", "c"].map(node))
}

/// How PreFilter ends: the nodes left and what is said of the others, or who refuses and why.
fn pre_filter(profile: &Profile) -> String {
    match profile.pre_filter(&three_nodes(), &pod("p").pod()) {
        Err(error) => format!("error: {error}"),
        Ok(PreFilterEnd::Rejected { rejection, .. }) => {
            let Rejection { plugin, status } = rejection;
            format!("{plugin}: {} {}", status.code.name(), status.message())
        }
        Ok(PreFilterEnd::Go(go)) => match go.nodes {
            None => "all".to_owned(),
            Some(nodes) => {
                let nodes: Vec<&str> = nodes.iter().map(|n| &**n).collect();
                format!("{} ({})", nodes.join(" "), go.others.message())
            }
        },
    }
}

#[test]
fn before_the_nodes_are_looked_at() {
    use Code::{Error, Unschedulable, UnschedulableAndUnresolvable};
    use Found::{Not, Only, Skip};
    // (what One, Two and Three find, how it ends)
    let cases = [
        ([Skip, Skip, Skip], "all"),
        ([Skip, Only(&["a", "b"]), Skip], "a b (node(s) didn't satisfy plugin(s) [Two])"),
        ([Only(&["a", "b"]), Only(&["b", "c"]), Skip], "b (node(s) didn't satisfy plugin(s) [One Two])"),
        ([Only(&[]), Skip, Skip], ": UnschedulableAndUnresolvable node(s) didn't satisfy plugin One"),
        (
            [Only(&["a"]), Only(&["b"]), Skip],
            ": UnschedulableAndUnresolvable node(s) didn't satisfy plugin(s) [One Two] simultaneously",
        ),
        // Once nothing is left, nobody else is asked.
        (
            [Only(&["a"]), Only(&["b"]), Not(Error, "broken")],
            ": UnschedulableAndUnresolvable node(s) didn't satisfy plugin(s) [One Two] simultaneously",
        ),
        // A refusal that evictions could help lets the others speak; the last one counts.
        ([Not(Unschedulable, "no"), Skip, Skip], "One: Unschedulable no"),
        ([Not(Unschedulable, "no"), Not(Unschedulable, "nor this"), Skip], "Two: Unschedulable nor this"),
        (
            [Not(Unschedulable, "no"), Skip, Not(UnschedulableAndUnresolvable, "never")],
            "Three: UnschedulableAndUnresolvable never",
        ),
        (
            [Not(Unschedulable, "no"), Skip, Not(Error, "broken")],
            "error: running PreFilter plugin \"Three\": broken",
        ),
        // One that they could not help ends it.
        (
            [Not(UnschedulableAndUnresolvable, "never"), Skip, Not(Error, "broken")],
            "One: UnschedulableAndUnresolvable never",
        ),
    ];
    for ([one, two, three], expected) in cases {
        let profile = Setup::new()
            .with(finds("One", one), 0)
            .with(finds("Two", two), 0)
            .with(finds("Three", three), 0)
            .ready();
        assert_eq!(pre_filter(&profile), expected);
    }
}

/// Who refuses node `a`, and why.
fn filter(profile: &Profile) -> Result<(), (Name, Status)> {
    let (cluster, pod) = (three_nodes(), pod("p").pod());
    let Ok(PreFilterEnd::Go(go)) = profile.pre_filter(&cluster, &pod) else {
        panic!("goes on");
    };
    let verdict = profile.filter(&go.state, &cluster, &pod, cluster.node("a").unwrap());
    verdict.map_err(|Rejection { plugin, status }| (plugin, status))
}

#[test]
fn the_first_refusal_of_a_node_counts() {
    let setup = |one, two| Setup::new().with(finds("One", one), 0).with(finds("Two", two), 0);
    let refused_by = |profile: &Profile| filter(profile).map_err(|(plugin, _)| plugin.to_string());
    assert_eq!(refused_by(&setup(Found::Refuses("a"), Found::Refuses("a")).ready()), Err("One".into()));
    assert_eq!(refused_by(&setup(Found::Refuses("b"), Found::Refuses("a")).ready()), Err("Two".into()));
    assert_eq!(refused_by(&setup(Found::Refuses("b"), Found::Refuses("c")).ready()), Ok(()));
    // A plugin that skipped itself is not asked.
    assert_eq!(refused_by(&setup(Found::Skip, Found::Skip).ready()), Ok(()));
}

#[test]
fn a_filter_misses_what_was_not_prepared() {
    let profile =
        Setup::new().with(finds("Finds", Found::Refuses("a")), 0).without(Point::PreFilter, "Finds").ready();
    let (plugin, status) = filter(&profile).unwrap_err();
    assert_eq!((&*plugin, status.code), ("Finds", Code::Error));
    let message = status.message();
    let start = "running \"Finds\" filter plugin: nothing was prepared for this step";
    assert!(message.starts_with(start), "{message}");
}

/// Lets so many pods on a node, and keeps count in what it prepared.
struct AtMost(usize);

impl PreFilter for AtMost {
    fn pre_filter(&self, _: &Cluster, _: &Pod) -> Result<PreFilterOutcome, Status> {
        Ok(PreFilterOutcome::go(0_usize))
    }

    fn add_pod(&self, prepared: &mut Prepared, _: &Pod, _: &Pod, _: &NodeInfo) -> Verdict {
        *prepared.get_mut::<usize>()? += 1;
        Ok(())
    }

    fn remove_pod(&self, prepared: &mut Prepared, _: &Pod, _: &Pod, _: &NodeInfo) -> Verdict {
        *prepared.get_mut::<usize>()? -= 1;
        Ok(())
    }
}

impl Filter for AtMost {
    fn filter(&self, prepared: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        let told = *prepared.get::<usize>()?;
        if told > self.0 || node.pods.len() > self.0 {
            return Err(Status::unschedulable("full"));
        }
        Ok(())
    }
}

#[test]
fn room_is_left_for_nominated_pods_that_are_no_less_important() {
    let plugin = define("AtMost", |_| Ok(AtMost(0))).pre_filter().filter();
    let profile = Setup::new().with(plugin, 0).ready();
    let (cluster, waiting) = (three_nodes(), pod("p").priority(5).pod());
    let Ok(PreFilterEnd::Go(go)) = profile.pre_filter(&cluster, &waiting) else {
        panic!("goes on");
    };
    // (the nominated pod, its node, is there room on a)
    let cases = [
        (pod("q").priority(9), "a", false),
        (pod("q").priority(5), "a", false),
        (pod("q").priority(4), "a", true),
        (pod("q").priority(9), "b", true),
        // The pod itself is not in its own way.
        (pod("p").priority(5), "a", true),
    ];
    for (nominated, on, room) in cases {
        let mut nominations = Nominations::default();
        nominations.nominate(nominated.clone().pod(), on.into());
        let a = cluster.node("a").unwrap();
        let verdict = profile.filter_with_nominated(&go.state, &cluster, &nominations, &waiting, a);
        assert_eq!(verdict.is_ok(), room, "{nominated:?} on {on}");
        // The claim is over.
        nominations.forget(&nominated.pod().uid);
        assert!(nominations.is_empty());
        assert!(profile.filter_with_nominated(&go.state, &cluster, &nominations, &waiting, a).is_ok());
    }
}

#[test]
fn a_pod_has_one_nomination_at_a_time() {
    let mut nominations = Nominations::default();
    let (nominated, waiting) = (pod("q").priority(1).pod(), pod("p").pod());
    nominations.nominate(nominated.clone(), "a".into());
    nominations.nominate(nominated, "b".into());
    assert_eq!(nominations.ahead_of(&waiting, "a").count(), 0);
    assert_eq!(nominations.ahead_of(&waiting, "b").count(), 1);
}

#[test]
fn what_if_pods_came_or_went() {
    let plugin = define("AtMost", |_| Ok(AtMost(1))).pre_filter().filter();
    let profile = Setup::new().with(plugin, 0).with(finds("Skips", Found::Skip), 0).ready();
    let (cluster, waiting, other) = (three_nodes(), pod("p").pod(), pod("q").pod());
    let Ok(PreFilterEnd::Go(go)) = profile.pre_filter(&cluster, &waiting) else {
        panic!("goes on");
    };
    let nominations = Nominations::default();
    let runner = ProfileRunner {
        profile: &profile,
        cluster: &cluster,
        nominations: &nominations,
        state: &go.state,
        seed: 7,
        adviser: None,
    };
    let a = cluster.node("a").unwrap();
    let mut state = runner.state();
    runner.add_pod(&mut state, &waiting, &other, a).unwrap();
    runner.add_pod(&mut state, &waiting, &other, a).unwrap();
    assert!(runner.filter(&state, &waiting, a).is_err());
    runner.remove_pod(&mut state, &waiting, &other, a).unwrap();
    assert!(runner.filter(&state, &waiting, a).is_ok());
    // It all happened to a copy.
    runner.add_pod(&mut state, &waiting, &other, a).unwrap();
    assert!(runner.filter(&runner.state(), &waiting, a).is_ok());
    assert_eq!(runner.seed(), 7);
}

/// Makes room on a node, or says why not, and whether an earlier nomination is taken back.
struct MakesRoom(Result<&'static str, (Code, &'static str, bool)>);

impl PostFilter for MakesRoom {
    fn post_filter(
        &self,
        _: &dyn FilterRunner,
        _: &Pod,
        _: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        match self.0 {
            Ok(node) => Ok(Nomination::new(node.into(), vec![])),
            Err((code, reason, clears)) => {
                Err(NotNominated { status: Status::new(code, [reason.into()]), clears, follow_up: None })
            }
        }
    }
}

#[test]
fn what_is_done_about_a_pod_that_fits_nowhere_is_done_by_who_asked_for_it() {
    /// Notes what it is to do.
    struct Notes(&'static str, Arc<Mutex<Vec<String>>>);
    impl PostFilter for Notes {
        fn post_filter(
            &self,
            runner: &dyn FilterRunner,
            pod: &Pod,
            verdicts: &NodeVerdicts,
        ) -> Result<Nomination, NotNominated> {
            MakesRoom(Ok("a")).post_filter(runner, pod, verdicts)
        }

        fn follow_up(&self, pod: &Arc<Pod>, follow_up: &FollowUp) {
            let FollowUp { verb, key, .. } = follow_up;
            self.1.lock().unwrap().push(format!("{} for {}: {verb:?} {key}", self.0, pod.name));
        }
    }
    let log: Arc<Mutex<Vec<String>>> = Arc::default();
    let plugin = |name: &'static str| {
        let log = log.clone();
        define(name, move |_| Ok(Notes(name, log.clone()))).post_filter()
    };
    let profile = Setup::new().with(plugin("One"), 0).with(plugin("Two"), 0).ready();
    for name in ["Two", "Unknown", "One"] {
        let key = Key::new("default", "claim");
        let follow_up = FollowUp { plugin: name.into(), verb: Verb::Update, key, uid: "u".into() };
        profile.follow_up(&pod("p").pod(), &follow_up);
    }
    assert_eq!(*log.lock().unwrap(), ["Two for p: Update default/claim", "One for p: Update default/claim"]);
}

#[test]
fn the_first_that_can_make_room_does() {
    use Code::{Error, Unschedulable, UnschedulableAndUnresolvable};
    // (what One and Two say, how it ends)
    let cases = [
        ([Ok("a"), Ok("b")], Ok("a")),
        ([Err((Unschedulable, "not I", false)), Ok("b")], Ok("b")),
        (
            [Err((Unschedulable, "not I", false)), Err((Unschedulable, "nor I", false))],
            Err((Unschedulable, "not I, nor I", false)),
        ),
        // One that has nothing to say about an earlier nomination leaves it to the other.
        (
            [Err((Unschedulable, "not I", false)), Err((Unschedulable, "nowhere", true))],
            Err((Unschedulable, "not I, nowhere", true)),
        ),
        // A fault ends it, and keeps what was promised; so does one who knows that nobody can.
        ([Err((Error, "broken", false)), Ok("b")], Err((Error, "broken", false))),
        (
            [Err((UnschedulableAndUnresolvable, "nobody", false)), Ok("b")],
            Err((UnschedulableAndUnresolvable, "nobody", false)),
        ),
    ];
    for ([one, two], expected) in cases {
        let profile = Setup::new()
            .with(define("One", move |_| Ok(MakesRoom(one))).post_filter(), 0)
            .with(define("Two", move |_| Ok(MakesRoom(two))).post_filter(), 0)
            .ready();
        let (cluster, nominations, state) = (three_nodes(), Nominations::default(), Default::default());
        let runner = ProfileRunner {
            profile: &profile,
            cluster: &cluster,
            nominations: &nominations,
            state: &state,
            seed: 0,
            adviser: None,
        };
        let found = profile.post_filter(&runner, &pod("p").pod(), &NodeVerdicts::default());
        let found = found
            .map(|n| n.node.to_string())
            .map_err(|NotNominated { status, clears, .. }| (status.code, status.message(), clears));
        let expected = expected.map(str::to_owned).map_err(|(code, m, clears)| (code, m.to_owned(), clears));
        assert_eq!(found, expected);
    }
}

#[test]
fn reasons_are_counted_and_sorted_as_texts() {
    let cluster = cluster((0..12).map(|i| node(&format!("n{i:02}"))));
    let mut verdicts = NodeVerdicts::default();
    for (i, node) in cluster.nodes().enumerate() {
        let reasons = ["Insufficient cpu", "Insufficient memory"].map(Into::into);
        let status = Status::new(Code::Unschedulable, reasons.into_iter().take(if i < 2 { 2 } else { 1 }));
        let plugin = "Fit".into();
        verdicts.rejected.insert(node.id, Rejection { plugin, status });
    }
    // "1…" comes before "2…", whatever the number.
    assert_eq!(verdicts.summary(12), "12 Insufficient cpu, 2 Insufficient memory");
    // Nodes that were not looked at share one reason.
    verdicts.others = Status::unresolvable("node(s) were elsewhere");
    assert_eq!(verdicts.summary(15), "12 Insufficient cpu, 2 Insufficient memory, 3 node(s) were elsewhere");
    let unknown = three_nodes().nodes().nth(2).unwrap().id;
    assert_eq!(NodeVerdicts::default().of(unknown).code, Code::UnschedulableAndUnresolvable);
    assert_eq!(no_node_available(3, "3 Insufficient cpu"), "0/3 nodes are available: 3 Insufficient cpu.");
    assert_eq!(no_node_available(3, ""), "0/3 nodes are available:");
}

/// Notes what happens; refuses if told so.
struct Reserves {
    name: &'static str,
    refuses: bool,
    log: Arc<Mutex<Vec<String>>>,
}

impl Reserve for Reserves {
    fn reserve(&self, _: &mut ReserveCycle<'_>, _: &Arc<Pod>, node: &Name) -> Verdict {
        self.log.lock().unwrap().push(format!("{} {node}", self.name));
        if self.refuses { Err(Status::unschedulable("taken")) } else { Ok(()) }
    }

    fn unreserve(&self, _: &Pod, node: &str) {
        self.log.lock().unwrap().push(format!("not {} {node}", self.name));
    }
}

#[test]
fn what_is_reserved_is_given_back_in_the_opposite_order() {
    let run = |refuses: Option<&'static str>| {
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let plugin = |name: &'static str| {
            let log = log.clone();
            define(name, move |_| Ok(Reserves { name, refuses: refuses == Some(name), log: log.clone() }))
                .reserve()
        };
        let profile =
            Setup::new().with(plugin("One"), 0).with(plugin("Two"), 0).with(plugin("Three"), 0).ready();
        let (mut cluster, mut assumed) = (three_nodes(), AssumedObjects::default());
        let mut cycle = ReserveCycle::new(&mut cluster, &mut assumed, "p".into());
        let pod = pod("p").pod();
        let refused = profile.reserve(&mut cycle, &pod, &"a".into()).map_err(|r| r.plugin.to_string());
        let log = log.lock().unwrap().join(", ");
        (refused, log)
    };
    assert_eq!(run(None), (Ok(()), "One a, Two a, Three a".to_owned()));
    // All are told, also those that were not asked yet.
    let expected = "One a, Two a, not Three a, not Two a, not One a".to_owned();
    assert_eq!(run(Some("Two")), (Err("Two".to_owned()), expected));
}

#[test]
fn the_first_that_holds_a_pod_back_is_named() {
    struct Holds(bool);
    impl PreEnqueue for Holds {
        fn pre_enqueue(&self, _: &QueueView<'_>, _: &Pod) -> Verdict {
            if self.0 { Err(Status::unresolvable("not yet")) } else { Ok(()) }
        }
    }
    let run = |one: bool, two: bool| {
        let profile = Setup::new()
            .with(define("One", move |_| Ok(Holds(one))).pre_enqueue(), 0)
            .with(define("Two", move |_| Ok(Holds(two))).pre_enqueue(), 0)
            .ready();
        profile
            .pre_enqueue(
                &QueueView { cluster: &Cluster::default(), pending: &NoPendingPods },
                &pod("p").pod(),
            )
            .map_err(|r| r.plugin.to_string())
    };
    assert_eq!(run(false, false), Ok(()));
    assert_eq!(run(true, true), Err("One".to_owned()));
    assert_eq!(run(false, true), Err("Two".to_owned()));
}

#[test]
fn who_held_a_pod_back_is_asked_first_when_it_may_enter_the_queue() {
    struct Holds(&'static str, Arc<Mutex<Vec<&'static str>>>);
    impl PreEnqueue for Holds {
        fn pre_enqueue(&self, _: &QueueView<'_>, pod: &Pod) -> Verdict {
            self.1.lock().unwrap().push(self.0);
            if pod.spec.labels.get("gate").is_some_and(|gate| gate.contains(self.0)) {
                return Err(Status::unresolvable("not yet"));
            }
            Ok(())
        }
    }
    // (who holds it back now, who did so before, who is asked)
    let cases = [
        ("none", None, "One Two Three"),
        ("none", Some("Two"), "Two One Three"),
        ("Two", None, "One Two"),
        ("Two", Some("Two"), "Two"),
        ("Two-Three", Some("Three"), "Three"),
        ("One", Some("Three"), "Three One"),
        ("One", Some("Unknown"), "One"),
    ];
    for (gate, held_by, expected) in cases {
        let log: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let setup = ["One", "Two", "Three"].into_iter().fold(Setup::new(), |setup, name| {
            let log = log.clone();
            setup.with(define(name, move |_| Ok(Holds(name, log.clone()))).pre_enqueue(), 0)
        });
        let rules = setup.ready().queue_rules().clone();
        let view = QueueView { cluster: &Cluster::default(), pending: &NoPendingPods };
        let held_by = held_by.map(Name::from);
        let held = rules.pre_enqueue(&view, &pod("p").label("gate", gate).pod(), held_by.as_ref());
        assert_eq!(log.lock().unwrap().join(" "), expected, "{gate} {held_by:?}");
        let refuses = expected.split(' ').next_back().filter(|_| gate != "none");
        assert_eq!(held.err().map(|rejection| rejection.plugin.to_string()).as_deref(), refuses, "{gate}");
    }
}

#[test]
fn a_fault_is_no_refusal() {
    let statuses =
        [Status::unschedulable("x"), Status::unresolvable("x"), Status::error("x")].map(|s| s.is_rejection());
    assert_eq!(statuses, [true, true, false]);
}

#[test]
fn claims_follow_the_pod() {
    let written = |node: &str| pod("q").set("/status/nominatedNodeName", node).pod();
    let bare = || pod("q").pod();
    // (in memory, before, after, where the claim is then)
    let cases = [
        (None, bare(), bare(), None),
        (None, bare(), written("a"), Some("a")),
        (Some("a"), bare(), bare(), Some("a")),
        (Some("a"), bare(), written("b"), Some("b")),
        (Some("a"), written("a"), bare(), None),
        (Some("a"), written("a"), written("b"), Some("b")),
        (Some("a"), written("a"), pod("q").on("a").pod(), None),
    ];
    for (i, (memory, before, after, expected)) in cases.into_iter().enumerate() {
        let mut nominations = Nominations::default();
        if let Some(node) = memory {
            nominations.nominate(before.clone(), node.into());
        }
        nominations.update(&before, after);
        assert_eq!(nominations.node_of("q").map(|node| &**node), expected, "case {i}");
        assert_eq!(nominations.is_empty(), expected.is_none(), "case {i}");
    }
}

#[test]
fn claims_after_an_attempt() {
    let written = || pod("q").set("/status/nominatedNodeName", "a").pod();
    // (what the attempt came to, the pod, where the claim is then)
    let cases = [
        (Claim::Kept, written(), Some("a")),
        // What is in memory may be on its way into the status.
        (Claim::Kept, pod("q").pod(), Some("old")),
        (Claim::On("b".into()), written(), Some("b")),
        (Claim::Dropped, written(), None),
    ];
    for (claim, pod, expected) in cases {
        let mut nominations = Nominations::default();
        nominations.nominate(pod.clone(), "old".into());
        nominations.settle(pod, claim.clone());
        assert_eq!(nominations.node_of("q").map(|node| &**node), expected, "{claim:?}");
    }
}

#[test]
fn who_must_leave_room_for_whom() {
    let mut nominations = Nominations::default();
    for (name, priority, node) in [("low", 0, "a"), ("middle", 5, "a"), ("high", 10, "a"), ("other", 7, "b")]
    {
        nominations.nominate(pod(name).priority(priority).pod(), node.into());
    }
    assert_eq!((nominations.len(), nominations.is_empty()), (4, false));
    let names = |pods: Vec<&Arc<Pod>>| pods.iter().map(|pod| &*pod.name).collect::<Vec<_>>().join(" ");
    // (priority, on a: whom it must leave room for, who is less important; the nodes on which it must leave room)
    let cases = [
        (-1, "low middle high", "", "a b"),
        (0, "low middle high", "", "a b"),
        (5, "middle high", "low", "a b"),
        (6, "high", "low middle", "a b"),
        (8, "high", "low middle", "a"),
        (10, "high", "low middle", "a"),
        (11, "", "low middle high", ""),
    ];
    for (priority, ahead, less_important, nodes) in cases {
        let pod = pod("p").priority(priority).pod();
        assert_eq!(names(nominations.ahead_of(&pod, "a").collect()), ahead, "{priority}");
        assert_eq!(names(nominations.less_important(&pod, "a").collect()), less_important, "{priority}");
        let found: Vec<&str> = nominations.nodes_ahead_of(&pod).map(|node| &**node).collect();
        assert_eq!(found.join(" "), nodes, "{priority}");
        assert_eq!(nominations.any_ahead_of(&pod), !nodes.is_empty(), "{priority}");
        assert_eq!(
            nominations.ahead_of(&pod, "c").count() + nominations.less_important(&pod, "c").count(),
            0
        );
    }
    // Nobody leaves room for itself.
    let high = pod("high").priority(10).pod();
    assert!(!nominations.any_ahead_of(&high));
    assert_eq!(names(nominations.ahead_of(&pod("middle").priority(5).pod(), "a").collect()), "high");
}

#[test]
fn a_pod_is_shown_with_the_node_that_it_has_a_claim_to() {
    let mut nominations = Nominations::default();
    nominations.nominate(pod("p").pod(), "a".into());
    let written = |name: &str| pod(name).set("/status/nominatedNodeName", "b").pod();
    // (the pod, the node that is shown)
    let cases = [
        (pod("p").pod(), Some("a")),
        // The status may be newer than the claim.
        (written("p"), Some("b")),
        (pod("q").pod(), None),
        (written("q"), Some("b")),
    ];
    for (i, (pod, expected)) in cases.into_iter().enumerate() {
        assert_eq!(nominations.named_in(&pod).nominated_node.as_deref(), expected, "case {i}");
    }
}

#[test]
fn it_is_told_on_which_nodes_claims_have_changed() {
    let mut nominations = Nominations::default();
    let start = nominations.revision();
    nominations.nominate(pod("p").pod(), "a".into());
    let then = nominations.revision();
    // From one node to another: both have changed.
    nominations.nominate(pod("p").pod(), "b".into());
    nominations.forget("nobody");
    let since = |nominations: &Nominations, revision: u64| {
        let changed = nominations.changed_since(revision)?;
        Some(changed.map(|node| node.to_string()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(since(&nominations, start).as_deref(), Some("a a b"));
    assert_eq!(since(&nominations, then).as_deref(), Some("a b"));
    assert_eq!(since(&nominations, nominations.revision()).as_deref(), Some(""));
    assert_eq!(since(&nominations, nominations.revision() + 1), None, "that is still to come");
    // The last 1,024 are remembered: three were there, and each round makes two.
    for _ in 0..511 {
        nominations.forget("p");
        nominations.nominate(pod("p").pod(), "c".into());
    }
    assert_eq!(since(&nominations, start), None);
    assert_eq!(since(&nominations, start + 1).map(|nodes| nodes.split(' ').count()), Some(1024));
}
