//! What a plugin is made from and promises: the registry, its arguments, profiles that cannot be made, and events.

use serde::Deserialize;
use supercargo_framework::{
    Prepared, Status,
    event::{ActionType, Change, EventInterest, EventResource},
    normalize,
    points::{Observe, Observed},
    profile::ProfileError,
    registry::{Args, Point, Registry, define},
};
use supercargo_manifest::{Problems, Source};
use supercargo_model::{
    Key, Kind, Name,
    testing::{node, object, pod},
};

use crate::support::{ByArrival, ByLabel, Found, Normalizes, Setup, finds};

#[test]
fn a_registration_knows_its_points() {
    let mut registry = Registry::default();
    registry.add(finds("Finds", Found::Skip));
    registry.add(define("ByLabel", |_| Ok(ByLabel)).score());
    // Normalizing comes with scoring, and is no point that a configuration names.
    let tame = |column: &mut [i64]| {
        normalize::min_max(column);
        Ok(())
    };
    registry.add(define("Tamed", move |_| Ok(Normalizes(tame))).score().normalize());
    let all: Vec<(&str, &[Point])> = registry.iter().map(|r| (r.name(), r.points())).collect();
    assert_eq!(
        all,
        [
            ("ByLabel", &[Point::Score][..]),
            ("Finds", &[Point::PreFilter, Point::Filter]),
            ("Tamed", &[Point::Score]),
        ]
    );
    assert!(registry.get("Unknown").is_none());
    // The last one of a name counts.
    registry.add(define("Finds", |_| Ok(ByArrival)).queue_sort());
    assert_eq!(registry.get("Finds").unwrap().points(), [Point::QueueSort]);
}

#[test]
fn points_have_the_names_of_configurations() {
    let names = Point::ALL.map(Point::name);
    assert_eq!(
        names.join(" "),
        "preEnqueue queueSort preFilter filter postFilter preScore score reserve permit preBind bind postBind"
    );
}

#[test]
fn profiles_that_cannot_be_made() {
    let not_served = |plugin: &str, point| ProfileError::NotServed { plugin: plugin.into(), point };
    let cases = [
        (Setup::new().choose(Point::Filter, "Ghost", 0), not_served("Ghost", "filter")),
        (Setup::new().choose(Point::Score, "Ghost", 1), not_served("Ghost", "score")),
        (Setup::new().choose(Point::PreScore, "Binds", 0), not_served("Binds", "preScore")),
        (
            Setup::new().with(define("AlsoSorts", |_| Ok(ByArrival)).queue_sort(), 0),
            ProfileError::QueueSort { count: 2 },
        ),
        (Setup::new().without(Point::QueueSort, "ByArrival"), ProfileError::QueueSort { count: 0 }),
        (Setup::new().without(Point::Bind, "Binds"), ProfileError::NoBinder),
    ];
    for (setup, expected) in cases {
        assert_eq!(setup.profile().err(), Some(expected));
    }
    let told = [not_served("Ghost", "filter"), ProfileError::QueueSort { count: 2 }, ProfileError::NoBinder];
    assert_eq!(
        told.map(|error| error.to_string()),
        [
            "plugin Ghost does not serve filter",
            "a profile needs exactly one queueSort plugin, and has 2",
            "a profile needs at least one bind plugin",
        ]
    );
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Sails {
    masts: i32,
    colours: Vec<String>,
}

fn with_args<T>(text: &str, read: impl Fn(&Args<'_>) -> T) -> T {
    let source = Source::new("config.yaml", text);
    let documents = supercargo_manifest::read(&source).unwrap();
    read(&Args::new(&source, &documents[0], "profiles[0].pluginConfig[1].args"))
}

#[test]
fn arguments_are_read_as_the_plugins_own_type() {
    let read = |text: &str| with_args(text, |args| args.decode::<Sails>());
    assert_eq!(Args::none().decode::<Sails>(), Ok(Sails::default()));
    let two = Sails { masts: 2, colours: vec![] };
    assert_eq!(read("{masts: 2}"), Ok(two));
    // Version and kind say nothing to the plugin.
    assert_eq!(read("{apiVersion: v1, kind: SailsArgs}"), Ok(Sails::default()));
    let paths = |result: Result<Sails, Problems>| result.unwrap_err().0[0].path.clone();
    assert_eq!(paths(read("{mast: 2}")), "profiles[0].pluginConfig[1].args.mast");
    assert_eq!(paths(read("{masts: many}")), "profiles[0].pluginConfig[1].args.masts");
}

#[test]
fn problems_know_their_place() {
    let text = "masts: 2\ncolours:\n- red\n- blue\nrig:\n  kind: ketch\n";
    // (field, line)
    let cases = [
        ("masts", 1),
        ("colours[1]", 4),
        ("rig.kind", 6),
        // What is absent stands where it would stand.
        ("rig.height", 6),
        ("colours[7]", 3),
        ("ballast", 1),
        ("", 1),
    ];
    for (field, line) in cases {
        let problem = with_args(text, |args| args.problem(field, "is wrong"));
        let path = "profiles[0].pluginConfig[1].args";
        let expected = if field.is_empty() { path.to_owned() } else { format!("{path}.{field}") };
        assert_eq!((problem.path, problem.at.map(|at| at.line)), (expected, Some(line)), "{field}");
    }
    let nowhere = Args::none().problem("masts", "is wrong");
    assert_eq!((&*nowhere.path, nowhere.at, nowhere.source), ("masts", None, None));
}

#[test]
fn what_was_prepared_comes_back_as_its_own_type_only() {
    let mut prepared = Prepared::new(vec![1, 2]);
    let copy = prepared.clone();
    prepared.get_mut::<Vec<i32>>().unwrap().push(3);
    assert_eq!(prepared.get::<Vec<i32>>().unwrap(), &[1, 2, 3]);
    assert_eq!(copy.get::<Vec<i32>>().unwrap(), &[1, 2], "a copy is its own");
    for missing in [prepared.get::<String>().map(|_| ()), Prepared::nothing().get::<String>().map(|_| ())] {
        let message = "nothing was prepared for this step (String): its preparing step (preFilter or preScore) is disabled";
        assert_eq!(missing, Err(Status::error(message)));
    }
}

#[test]
fn events_help_if_the_closer_look_agrees() {
    let waiting = pod("p").pod();
    let (before, after) = (node("old").node(), node("new").node());
    let change = Change::Node(Some(&before), Some(&after));
    let always = EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeLabel]);
    assert!(always.helps(
        &supercargo_model::Cluster::default(),
        EventResource::Node,
        ActionType::Add,
        &waiting,
        &change
    ));
    assert!(always.helps(
        &supercargo_model::Cluster::default(),
        EventResource::Node,
        ActionType::UpdateNodeLabel,
        &waiting,
        &change
    ));
    assert!(!always.helps(
        &supercargo_model::Cluster::default(),
        EventResource::Node,
        ActionType::Delete,
        &waiting,
        &change
    ));
    assert!(!always.helps(
        &supercargo_model::Cluster::default(),
        EventResource::Pod,
        ActionType::Add,
        &waiting,
        &change
    ));

    let looks = (always.clone()).if_node(|pod, before, after| {
        &*pod.name == "p"
            && before.is_some_and(|n| &*n.name == "old")
            && after.is_some_and(|n| &*n.name == "new")
    });
    assert!(looks.helps(
        &supercargo_model::Cluster::default(),
        EventResource::Node,
        ActionType::Add,
        &waiting,
        &change
    ));
    let swapped = Change::Node(Some(&after), Some(&before));
    assert!(!looks.helps(
        &supercargo_model::Cluster::default(),
        EventResource::Node,
        ActionType::Add,
        &waiting,
        &swapped
    ));
    assert!(!looks.helps(
        &supercargo_model::Cluster::default(),
        EventResource::Node,
        ActionType::Delete,
        &waiting,
        &change
    ));
}

#[test]
fn closer_looks_at_pods_and_other_objects() {
    let waiting = pod("p").pod();
    let (bound, loose) = (pod("q").on("a").pod(), pod("q").pod());
    let by_pod = EventInterest::new(EventResource::Pod, [ActionType::Delete])
        .if_pod(|_, before, _| before.is_some_and(|pod| pod.node.is_some()));
    let gone = |pod| {
        by_pod.helps(
            &supercargo_model::Cluster::default(),
            EventResource::Pod,
            ActionType::Delete,
            &waiting,
            &Change::Pod(Some(pod), None),
        )
    };
    assert!(gone(&bound));
    assert!(!gone(&loose));

    let class = object(serde_json::json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast"}, "provisioner": "x",
    }))
    .object();
    let by_object = EventInterest::new(EventResource::StorageClass, [ActionType::Add])
        .if_object(|_, _, after| after.is_some());
    let helps = |after| {
        by_object.helps(
            &supercargo_model::Cluster::default(),
            EventResource::StorageClass,
            ActionType::Add,
            &waiting,
            &Change::Other(None, after),
        )
    };
    assert!(helps(Some(&class)));
    assert!(!helps(None));
}

#[test]
fn a_profile_knows_what_its_plugins_ask_for() {
    struct Watches(&'static [&'static str]);
    impl Observe for Watches {
        fn watched(&self) -> Vec<(Kind, Key)> {
            self.0.iter().map(|name| (Kind::ConfigMap, Key::new("ns", *name))).collect()
        }

        fn observe(&self, _: &Name, _: &Observed<'_>) {}
    }
    let watches =
        |name: &str, all: &'static [&'static str]| define(name, move |_| Ok(Watches(all))).observe();
    let plain = Setup::new().with(finds("Finds", Found::Skip), 0).ready();
    assert!(!plain.reads_time() && !plain.gives_way("Finds") && plain.watched().is_empty());
    let profile = Setup::new()
        .with(watches("One", &["a", "b"]).reads_time(), 0)
        .with(watches("Two", &["a"]).gives_way(), 0)
        .ready();
    assert!(profile.reads_time());
    assert_eq!(["One", "Two", "Unknown"].map(|name| profile.gives_way(name)), [false, true, false]);
    let watched = profile.watched();
    let watched = watched.iter().map(|(plugin, kind, key)| format!("{plugin} {} {key}", kind.name()));
    let expected = ["One ConfigMap ns/a", "One ConfigMap ns/b", "Two ConfigMap ns/a"];
    assert_eq!(watched.collect::<Vec<_>>(), expected);
}
