//! Whatever the cluster and the pods: no panic, and the same decisions from the same state and seed.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};
use supercargo_engine::{Decision, Engine, Outcome, Placement, Settings, TieBreak};
use supercargo_model::{
    Name,
    testing::{Builder, cluster, node, object, pod},
};

use crate::support::default_profile;

const NODES: [&str; 4] = ["n0", "n1", "n2", "n3"];
const APPS: [&str; 3] = ["web", "db", ""];
const KEYS: [&str; 4] = ["kubernetes.io/hostname", "topology.kubernetes.io/zone", "disk", "absent"];

/// Amounts as people write them, and some near the ends of what there is. Negative ones are not demand.
fn amount() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => select(vec!["0", "1m", "250m", "1", "2", "4", "1Gi", "1.5", "1e3"]).prop_map(str::to_owned),
        1 => select(vec!["9223372036854775807", "9223372036854775808", "1e30", "8Ei", "1n"]).prop_map(str::to_owned),
    ]
}

fn requests() -> impl Strategy<Value = Value> {
    let resources = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi", "bananas"];
    proptest::collection::btree_map(select(resources.to_vec()), amount(), 0..3).prop_map(|map| json!(map))
}

fn selector() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        Just(None),
        Just(Some(json!({}))),
        select(APPS.to_vec()).prop_map(|app| Some(json!({"matchLabels": {"app": app}}))),
        select(vec!["Exists", "DoesNotExist"])
            .prop_map(|operator| Some(json!({"matchExpressions": [{"key": "app", "operator": operator}]}))),
    ]
}

fn affinity_term() -> impl Strategy<Value = Value> {
    (selector(), selector(), select(KEYS.to_vec())).prop_map(|(pods, namespaces, key)| {
        let mut term = json!({"topologyKey": key});
        if let Some(pods) = pods {
            term["labelSelector"] = pods;
        }
        if let Some(namespaces) = namespaces {
            term["namespaceSelector"] = namespaces;
        }
        term
    })
}

fn spread_constraint() -> impl Strategy<Value = Value> {
    let actions = prop_oneof![1 => Just("DoNotSchedule"), 3 => Just("ScheduleAnyway")];
    let skew = prop_oneof![8 => 1..4_i32, 1 => any::<i32>(), 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
    (select(KEYS.to_vec()), skew, actions, selector(), option::of(any::<i32>())).prop_map(
        |(key, skew, action, selector, min_domains)| {
            let mut constraint = json!({"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action});
            if let Some(selector) = selector {
                constraint["labelSelector"] = selector;
            }
            if let Some(min_domains) = min_domains {
                constraint["minDomains"] = min_domains.into();
            }
            constraint
        },
    )
}

/// Adds to an object what a strategy gives, at a place of its own; most of the time nothing.
fn with(
    base: impl Strategy<Value = Builder>,
    pointer: &'static str,
    more: impl Strategy<Value = Value>,
    most: usize,
) -> impl Strategy<Value = Builder> {
    let how_many = prop_oneof![3 => Just(0), 1 => 1..=most];
    (base, vec(more, most), how_many).prop_map(move |(base, more, how_many)| {
        more.into_iter().take(how_many).fold(base, |built, value| built.set(pointer, value))
    })
}

fn any_pod(name: String) -> impl Strategy<Value = Builder> {
    let priority = prop_oneof![4 => -2..3_i32, 1 => Just(i32::MIN), 1 => Just(i32::MAX)];
    let base = (select(APPS.to_vec()), priority, select(vec!["default", "other"]), any::<bool>()).prop_map(
        move |(app, priority, namespace, never)| {
            let pod = pod(&name).namespace(namespace).label("app", app).priority(priority);
            if never { pod.set("/spec/preemptionPolicy", "Never") } else { pod }
        },
    );
    let host_port = prop_oneof![6 => Just(0), 1 => Just(80)];
    let container = (requests(), host_port).prop_map(|(requests, port)| {
        json!({"name": "c", "image": "web:1", "resources": {"requests": requests}, "ports": [{"hostPort": port}]})
    });
    let init = (requests(), any::<bool>()).prop_map(|(requests, sidecar)| {
        let mut container = json!({"name": "i", "resources": {"requests": requests}});
        if sidecar {
            container["restartPolicy"] = "Always".into();
        }
        container
    });
    let weighted = (any::<i32>(), affinity_term())
        .prop_map(|(weight, term)| json!({"weight": weight, "podAffinityTerm": term}));
    let weighted_too = (1..101_i32, affinity_term())
        .prop_map(|(weight, term)| json!({"weight": weight, "podAffinityTerm": term}));
    let toleration = select(vec![json!({"operator": "Exists"}), json!({"key": "a", "operator": "Exists"})]);
    let base = (base, vec(container, 0..3))
        .prop_map(|(base, all)| all.into_iter().fold(base, |built, c| built.set("/spec/containers/-", c)));
    let base = with(base, "/spec/initContainers/-", init, 2);
    let base = with(base, "/spec/tolerations/-", toleration, 1);
    let base = with(base, "/spec/topologySpreadConstraints/-", spread_constraint(), 2);
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let place = |kind: &str, list: &str| -> &'static str { format!("/spec/affinity/{kind}/{list}/-").leak() };
    let base = with(base, place("podAffinity", required), affinity_term(), 1);
    let base = with(base, place("podAntiAffinity", required), affinity_term(), 1);
    let base = with(base, place("podAffinity", preferred), weighted, 1);
    with(base, place("podAntiAffinity", preferred), weighted_too, 1)
}

fn any_node(name: &'static str) -> impl Strategy<Value = Builder> {
    let zone = option::of(select(vec!["z1", "z2"]));
    let room = vec(amount(), 3);
    let pods = prop_oneof![1 => Just("1"), 4 => Just("110")];
    let base = (room, zone, option::of(select(vec!["ssd", "hdd"])), pods).prop_map(
        move |(room, zone, disk, pods)| {
            let mut node = node(name).allocatable("pods", pods);
            for (resource, amount) in ["cpu", "memory", "example.com/gpu"].into_iter().zip(room) {
                node = node.allocatable(resource, &amount);
            }
            if let Some(zone) = zone {
                node = node.label("topology.kubernetes.io/zone", zone);
            }
            if let Some(disk) = disk {
                node = node.label("disk", disk);
            }
            node.has_image("web:1", i64::MAX)
        },
    );
    let effects = select(vec!["NoSchedule", "PreferNoSchedule", "NoExecute"]);
    let taint =
        (select(vec!["a", "b"]), effects).prop_map(|(key, effect)| json!({"key": key, "effect": effect}));
    with(base, "/spec/taints/-", taint, 2)
}

fn service() -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }))
}

fn budget() -> Builder {
    object(json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "db", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "db"}}}, "status": {"disruptionsAllowed": 1},
    }))
}

/// Decides for each pod in turn, and places it where it goes.
fn run(objects: &[Builder], pods: &[Builder], settings: &Settings) -> Vec<Decision> {
    let mut engine = Engine::new(cluster(objects.to_vec()), [default_profile()], settings.clone());
    let decide = |builder: &Builder| {
        let pod = builder.clone().pod();
        let decision = engine.decide(&pod).expect("a profile");
        match (&decision.outcome, &decision.preemption) {
            (Outcome::Scheduled { node }, _) => engine.assume(&pod, node.clone()),
            (_, Some(Ok(nomination))) => engine.nominations_mut().nominate(pod, nomination.node.clone()),
            _ => {}
        }
        decision
    };
    pods.iter().map(decide).collect()
}

/// The same on the fast path: where each pod goes, and the total there.
fn run_fast(objects: &[Builder], pods: &[Builder], settings: &Settings) -> Vec<(Option<Name>, Option<i64>)> {
    let mut engine = Engine::new(cluster(objects.to_vec()), [default_profile()], settings.clone());
    let place = |builder: &Builder| {
        let pod = engine.admit(builder.clone().pod());
        let placement = engine.place(&pod).expect("a profile");
        let node = placement.node().cloned();
        let total = match &placement {
            Placement::On { total, .. } => Some(*total),
            Placement::Decided(decision) => node.as_ref().and(decision.best_total()),
        };
        if let Some(node) = &node {
            engine.assume(&pod, node.clone());
        } else if let Placement::Decided(decision) = &placement
            && let Some(Ok(nomination)) = &decision.preemption
        {
            engine.nominations_mut().nominate(pod, nomination.node.clone());
        }
        (node, total)
    };
    pods.iter().map(place).collect()
}

fn check(decision: &Decision, nodes: usize) -> Result<(), TestCaseError> {
    prop_assert_eq!(decision.node_count, nodes);
    prop_assert_eq!(
        decision.scores.totals.len(),
        if decision.node().is_some() { decision.feasible.len() } else { 0 }
    );
    for column in &decision.scores.columns {
        prop_assert!(column.normalized.iter().all(|score| (0..=100).contains(score)), "{:?}", column);
    }
    match &decision.outcome {
        Outcome::Scheduled { node } => {
            prop_assert!(decision.best.contains(node) && decision.feasible.contains(node));
            prop_assert!(!decision.rejected.contains_key(node));
        }
        _ => prop_assert!(decision.message().is_some()),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn decisions_follow_from_state_and_seed(
        nodes in NODES.map(any_node),
        bound in vec((any_pod(String::new()), select(NODES.to_vec())), 0..6),
        pending in vec(any_pod(String::new()), 1..4),
        seed: u64,
        percentage in select(vec![0, 1, 50, 100]),
        first: bool,
    ) {
        let named = |prefix: &str, i: usize, pod: Builder| {
            let name = format!("{prefix}{i}");
            pod.set("/metadata/name", name.clone()).set("/metadata/uid", name)
        };
        let bound = bound.into_iter().enumerate().map(|(i, (pod, node))| named("bound", i, pod).on(node));
        let objects: Vec<Builder> = nodes.into_iter().chain([service(), budget()]).chain(bound).collect();
        let pods: Vec<Builder> = pending.into_iter().enumerate().map(|(i, pod)| named("pending", i, pod)).collect();
        let settings = Settings {
            percentage_of_nodes_to_score: percentage,
            min_feasible_nodes_to_find: 2,
            tie_break: if first { TieBreak::First } else { TieBreak::Random },
            seed,
            ..Settings::default()
        };
        let decisions = run(&objects, &pods, &settings);
        prop_assert_eq!(&decisions, &run(&objects, &pods, &settings));
        let slow: Vec<(Option<Name>, Option<i64>)> =
            decisions.iter().map(|d| (d.node().cloned(), d.node().and(d.best_total()))).collect();
        prop_assert_eq!(slow, run_fast(&objects, &pods, &settings));
        for decision in &decisions {
            // A score out of range, from a maxSkew or a weight that no API server would let in, ends the cycle.
            if !matches!(decision.outcome, Outcome::Error { .. }) {
                check(decision, NODES.len())?;
            }
        }
    }
}
