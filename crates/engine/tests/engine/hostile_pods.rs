//! Pods as large as the API server takes them, made to cost: what is done for them, and for others because of them, stays
//! within a bound that follows from their size, and nothing of them stays behind.
//!
//! Work is counted in steps (see `supercargo_model::work`), not in time. Each bound is a small multiple of what is done now,
//! and a hundredth or less of the product of lists that it guards against.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_engine::{Decision, Engine, Placement, Settings};
use supercargo_model::{
    Key, Pod,
    object::Kind,
    testing::{Builder, Random, cluster, node, object, pod},
    work,
};

use crate::support::default_profile;

const NODES: usize = 200;
/// Bound pods, each of a template of its own.
const BOUND: usize = 400;
const ENTRIES: usize = 2000;

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

fn nodes() -> impl Iterator<Item = Builder> {
    (0..NODES).map(|i| {
        node(&format!("n{i}"))
            .label(ZONE, &format!("z{}", i % 3))
            .allocatable("cpu", "64")
            .allocatable("memory", "256Gi")
            .has_image("pause:3", 500 << 20)
    })
}

fn bound() -> impl Iterator<Item = Builder> {
    (0..BOUND).map(|i| {
        let name = format!("bound-{i}");
        pod(&name).label("app", &name).container(&[("cpu", "100m")]).on(&format!("n{}", i % NODES))
    })
}

fn engine() -> Engine {
    let settings = Settings { percentage_of_nodes_to_score: 100, ..Settings::default() };
    Engine::new(cluster(nodes().chain(bound())), [default_profile()], settings)
}

/// The steps that something takes.
fn steps<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let before = work::steps();
    let result = run();
    (result, work::steps() - before)
}

/// Decides for a pod in both paths, which must agree; neither may take more than so many steps.
fn check(what: &str, engine: &mut Engine, pod: &Arc<Pod>, most: u64) -> Decision {
    let (decision, full) = steps(|| engine.decide(pod).expect("a profile"));
    assert!(full <= most, "{what}, full path: {full} steps of {most}");
    for _ in 0..2 {
        let (placement, fast) = steps(|| engine.place(pod).expect("a profile"));
        assert!(fast <= most, "{what}, fast path: {fast} steps of {most}");
        match placement {
            Placement::On { total, feasible, .. } => {
                assert_eq!(
                    (Some(total), feasible),
                    (decision.best_total(), decision.feasible.len()),
                    "{what}"
                );
            }
            Placement::Decided(fast) => assert_eq!(fast.message(), decision.message(), "{what}"),
        }
    }
    decision
}

/// A term that selects all but the pods with a label that nobody has: nothing to look it up by.
fn term(i: usize) -> Value {
    json!({
        "topologyKey": if i.is_multiple_of(2) { ZONE } else { HOST },
        "namespaceSelector": {},
        "labelSelector": {"matchExpressions": [{"key": format!("x{i}"), "operator": "DoesNotExist"}]},
    })
}

fn with_terms(name: &str, field: &str, list: &str, term: impl Fn(usize) -> Value) -> Builder {
    let terms: Value = (0..ENTRIES).map(term).collect();
    pod(name).label("app", name).set(&format!("/spec/affinity/{field}/{list}"), terms)
}

fn weighted(i: usize) -> Value {
    json!({"weight": 1 + i % 100, "podAffinityTerm": term(i)})
}

#[test]
fn preferred_terms_cost_their_number_and_not_that_times_pods_times_domains() {
    let mut engine = engine();
    // 2,000 terms × 400 pods × 100 domains and more would be 10⁸.
    let hostile = engine.admit(with_terms("hostile", "podAffinity", PREFERRED, weighted).pod());
    let decision = check("its own terms", &mut engine, &hostile, 1_000_000);
    // Every term selects all pods, so a zone gets the weights of the even terms for each of its pods: 134, 133 and 133.
    assert!(decision.node().is_some());

    // Once it is bound, its terms are about others.
    engine.assume(&hostile, "n0".into());
    let other = engine.admit(pod("other").label("app", "other").pod());
    check("terms of a bound pod", &mut engine, &other, 100_000);
    // And when it goes, nothing goes through all terms for each of them.
    let (_, removal) = steps(|| engine.cluster_mut().remove_pod(&hostile.key()));
    assert!(removal < 10_000, "{removal} steps");
}

#[test]
fn many_terms_score_what_each_of_them_does() {
    // The same terms in two pods: in one they are too many to be asked one by one.
    let few = [("a", 3), ("b", 5)];
    let term = |(app, weight): (&str, i64)| {
        json!({"weight": weight, "podAffinityTerm": {"topologyKey": HOST, "labelSelector":
            {"matchExpressions": [{"key": "app", "operator": "In", "values": [app]}, {"key": "x", "operator": "DoesNotExist"}]}}})
    };
    let place = format!("/spec/affinity/podAffinity/{PREFERRED}");
    let short = pod("short").set(&place, few.map(term).into_iter().collect::<Value>());
    // None of the others selects anybody.
    let others = (0..100).map(|i| term((if i < 50 { "absent" } else { "gone" }, 1 + i)));
    let long = pod("long").set(&place, few.map(term).into_iter().chain(others).collect::<Value>());
    let holder = |name: &str, app: &str, on: &str| pod(name).label("app", app).on(on);
    let objects = [node("n0"), node("n1"), node("n2"), holder("p0", "a", "n0"), holder("p1", "b", "n1")];
    let settings = Settings { percentage_of_nodes_to_score: 100, ..Settings::default() };
    let mut engine = Engine::new(cluster(objects), [default_profile()], settings);
    let scores = |engine: &mut Engine, pod: Builder| {
        let decision = engine.decide(&pod.pod()).expect("a profile");
        let column = decision.scores.columns.iter().find(|column| &*column.plugin == "InterPodAffinity");
        column.expect("scores").raw.clone()
    };
    assert_eq!(scores(&mut engine, short), [3, 5, 0]);
    assert_eq!(scores(&mut engine, long.clone()), [3, 5, 0]);
    let long = engine.admit(long.pod());
    let recalled = engine.inspect().recall(&long).expect("a fast form");
    let column = recalled.scores.columns.iter().find(|column| &*column.plugin == "InterPodAffinity");
    assert_eq!(column.expect("scores").raw, [3, 5, 0]);
}

#[test]
fn required_terms_cost_their_number() {
    let mut engine = engine();
    for field in ["podAffinity", "podAntiAffinity"] {
        let hostile = engine.admit(with_terms(field, field, REQUIRED, term).pod());
        let decision = check(field, &mut engine, &hostile, 1_000_000);
        assert_eq!(decision.node().is_some(), field == "podAffinity");
    }
    let hostile = engine.admit(with_terms("far", "podAntiAffinity", REQUIRED, term).pod());
    engine.assume(&hostile, "n0".into());
    let other = engine.admit(pod("other").label("app", "other").pod());
    let decision = check("terms of a bound pod", &mut engine, &other, 100_000);
    assert!(decision.feasible.len() < NODES);
}

#[test]
fn a_single_selector_of_thousands_of_requirements_costs_their_number() {
    let mut engine = engine();
    let absent = |i: usize| json!({"key": format!("x{i}"), "operator": "DoesNotExist"});
    let requirements: Value = (0..ENTRIES).map(absent).collect();
    let constraint = |action: &str| {
        json!({"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": action,
               "labelSelector": {"matchExpressions": requirements}})
    };
    for action in ["DoNotSchedule", "ScheduleAnyway"] {
        let hostile = pod(action).set("/spec/topologySpreadConstraints/-", constraint(action));
        let hostile = engine.admit(hostile.pod());
        let decision = check(action, &mut engine, &hostile, 300_000);
        assert!(decision.node().is_some());
    }
}

#[test]
fn spread_constraints_about_labels_that_no_node_has_cost_their_number() {
    let mut engine = engine();
    for action in ["DoNotSchedule", "ScheduleAnyway"] {
        let constraint = |i: usize| {
            json!({"maxSkew": 1, "topologyKey": format!("x{i}"), "whenUnsatisfiable": action,
                   "labelSelector": {"matchLabels": {"app": "web"}}})
        };
        let constraints: Value = (0..ENTRIES).map(constraint).collect();
        let hostile = engine.admit(pod(action).set("/spec/topologySpreadConstraints", constraints).pod());
        let decision = check(action, &mut engine, &hostile, 100_000);
        assert_eq!(decision.node().is_some(), action == "ScheduleAnyway");
    }
}

#[test]
fn node_affinity_costs_its_size() {
    let mut engine = engine();
    let expressions =
        |i: usize| json!([{"key": HOST, "operator": "NotIn", "values": [format!("x{i}"), "n1"]}]);
    let preferred: Value = (0..ENTRIES)
        .map(|i| json!({"weight": 1, "preference": {"matchExpressions": expressions(i)}}))
        .collect();
    // Of these none matches, so that all must be looked at.
    let required: Value = (0..ENTRIES)
        .map(|i| json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [format!("x{i}")]}]}))
        .collect();
    let place = |list: &str| format!("/spec/affinity/nodeAffinity/{list}");
    let wishes = engine.admit(pod("wishes").set(&place(PREFERRED), preferred).pod());
    let decision = check("preferred", &mut engine, &wishes, 1_000_000);
    assert!(decision.best.len() == NODES - 1 || decision.best.iter().all(|name| &**name != "n1"));
    let selector = json!({"nodeSelectorTerms": required});
    let nowhere = engine.admit(pod("nowhere").set(&place(REQUIRED), selector).pod());
    let decision = check("required", &mut engine, &nowhere, 300_000);
    assert_eq!(decision.node(), None);
}

#[test]
fn tolerations_cost_no_product_with_taints() {
    let tainted = (0..NODES).map(|i| {
        let taint = json!({"key": format!("k{i}"), "value": "v", "effect": "NoSchedule"});
        node(&format!("n{i}")).set("/spec/taints/-", taint)
    });
    let settings = Settings { percentage_of_nodes_to_score: 100, ..Settings::default() };
    let mut engine = Engine::new(cluster(tainted), [default_profile()], settings);
    let tolerations: Value = (0..ENTRIES).map(|i| json!({"key": "k7", "value": format!("x{i}")})).collect();
    let hostile = pod("hostile").set("/spec/tolerations", tolerations);
    let hostile = hostile.toleration(json!({"key": "k8", "operator": "Exists"}));
    let hostile = engine.admit(hostile.pod());
    let decision = check("tolerations", &mut engine, &hostile, 50_000);
    assert_eq!(decision.node().map(|name| &**name), Some("n8"));
}

#[test]
fn host_ports_cost_no_product_with_those_that_are_taken() {
    let with_ports = |name: &str, address: &str| {
        let port = |i: usize| json!({"hostPort": 1 + i, "hostIP": address});
        let ports: Value = (0..ENTRIES).map(port).collect();
        pod(name).set("/spec/containers/-", json!({"name": "c", "ports": ports}))
    };
    let holders = (0..20).map(|i| with_ports(&format!("holder-{i}"), "10.0.0.1").on(&format!("n{i}")));
    let settings = Settings { percentage_of_nodes_to_score: 100, ..Settings::default() };
    let mut engine = Engine::new(cluster(nodes().chain(holders)), [default_profile()], settings);
    let beside = engine.admit(with_ports("beside", "10.0.0.2").pod());
    assert_eq!(check("another address", &mut engine, &beside, 300_000).feasible.len(), NODES);
    let same = engine.admit(with_ports("same", "10.0.0.1").pod());
    assert_eq!(check("the same address", &mut engine, &same, 300_000).feasible.len(), NODES - 20);
}

#[test]
fn an_image_that_is_named_by_every_container_is_looked_for_once() {
    let mut engine = engine();
    let containers: Value =
        (0..ENTRIES).map(|i| json!({"name": format!("c{i}"), "image": "pause:3"})).collect();
    let hostile = engine.admit(pod("hostile").set("/spec/containers", containers).pod());
    let decision = check("images", &mut engine, &hostile, 100_000);
    let column = decision.scores.columns.iter().find(|column| &*column.plugin == "ImageLocality");
    // 2,000 times 500 MiB on all nodes of 2,000 times 1000 MiB: 100 × (1,000,000 − 23) / (2,000,000 − 23) = 49.9.
    assert!(column.expect("scores").raw.iter().all(|score| *score == 49));
}

fn with_resources(name: &str, amount: &str) -> Builder {
    let requests: Value = (0..ENTRIES)
        .map(|i| (format!("example.com/{name}-{i}"), Value::from(amount)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    pod(name).set("/spec/containers/-", json!({"name": "c", "resources": {"requests": requests}}))
}

#[test]
fn resources_that_no_node_offers_take_no_column_and_leave_nothing_behind() {
    let mut engine = engine();
    let kept_before = engine.cluster().groups().spec_bytes();
    for (i, amount) in ["0", "1", "0", "1"].into_iter().enumerate() {
        let hostile = engine.admit(with_resources(&format!("made-up-{i}"), amount).pod());
        let decision = check(amount, &mut engine, &hostile, 100_000);
        assert_eq!(decision.node().is_some(), amount == "0");
        if amount == "1" {
            let message = decision.message().expect("a message");
            let missing = format!("{NODES} Insufficient example.com/made-up-{i}-{}", ENTRIES - 1);
            assert!(message.contains(&missing), "{}", &message[..200]);
            // All nodes share the list of what is missing.
            let lists = decision.rejected.values().map(|rejection| rejection.status.reasons.as_ptr());
            assert_eq!(lists.collect::<std::collections::HashSet<_>>().len(), 1);
        }
        engine.assume(&hostile, "n0".into());
        assert_eq!(engine.cluster().columns().scalar_count(), 0, "columns while it is bound");
        engine.cluster_mut().remove_pod(&hostile.key());
    }
    assert_eq!(engine.cluster().node("n0").expect("a node").requested.scalars, []);
    // The names are kept with specs only as long as there is room for them.
    for i in 0..200 {
        let hostile = engine.admit(with_resources(&format!("later-{i}"), "1").pod());
        drop(engine.place(&hostile));
    }
    let kept = engine.cluster().groups().spec_bytes() - kept_before;
    assert!(kept < 40 << 20, "{kept} bytes of specs are kept");
}

#[test]
fn a_resource_has_a_column_from_the_first_node_that_offers_it_to_the_last() {
    let mut engine = engine();
    let gpu = |i: usize| node(&format!("n{i}")).allocatable("example.com/gpu", "4");
    let holder = pod("holder").container(&[("example.com/gpu", "3")]).on("n1").pod();
    engine.cluster_mut().put_pod(holder.clone());
    let wants = engine.admit(pod("wants").container(&[("example.com/gpu", "2")]).pod());
    assert_eq!(check("nobody offers it", &mut engine, &wants, 10_000).node(), None);
    for i in [0, 1] {
        engine.cluster_mut().put_node(gpu(i).node());
    }
    // What n1 offers is taken by a pod that came before.
    let decision = check("two offer it", &mut engine, &wants, 10_000);
    assert_eq!(decision.node().map(|name| &**name), Some("n0"));
    assert_eq!(engine.cluster().columns().scalar_count(), 1);
    engine.cluster_mut().remove_pod(&holder.key());
    assert_eq!(check("it is free again", &mut engine, &wants, 10_000).feasible.len(), 2);
    for i in [0, 1] {
        engine.cluster_mut().put_node(node(&format!("n{i}")).node());
    }
    assert_eq!(engine.cluster().columns().scalar_count(), 0);
    assert_eq!(check("nobody offers it any more", &mut engine, &wants, 10_000).node(), None);
}

#[test]
fn taints_with_ever_new_values_cost_the_same_at_the_end() {
    let mut engine = engine();
    let classes = |engine: &Engine| engine.cluster().columns().taint_classes.len();
    for i in 0..20_000 {
        let taint = json!({"key": "since", "value": format!("t{i}"), "effect": "PreferNoSchedule"});
        let tainted = node(&format!("n{}", i % 10)).set("/spec/taints/-", taint);
        engine.cluster_mut().put_node(tainted.node());
    }
    // Ten nodes have a taint of their own, and all others have none; one place is for a node on its way.
    assert!(classes(&engine) <= 12, "{} taint classes", classes(&engine));
    for i in 0..NODES {
        engine.cluster_mut().remove(Kind::Node, &Key::new("", format!("n{i}")));
    }
    let left = engine.cluster().columns().taint_classes.iter().filter(|class| !class.taints.is_empty());
    assert_eq!(left.count(), 0);
}

/// Makes pods up.
struct RandomPods(Random);

impl RandomPods {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound)
    }

    fn selector(&mut self) -> Value {
        let key = ["app", "tier"][self.below(2)];
        let requirement = match self.below(4) {
            0 => json!({"key": key, "operator": "In", "values": ["a", "c"]}),
            1 => json!({"key": key, "operator": "NotIn", "values": ["a", "b"]}),
            2 => json!({"key": key, "operator": "Exists"}),
            _ => json!({"key": key, "operator": "DoesNotExist"}),
        };
        json!({"matchExpressions": [requirement]})
    }

    fn term(&mut self) -> Value {
        let key = [ZONE, HOST, "absent"][self.below(3)];
        let mut term = json!({"topologyKey": key, "labelSelector": self.selector()});
        match self.below(4) {
            0 => term["namespaces"] = json!(["default", "other"]),
            1 => term["namespaceSelector"] = json!({"matchLabels": {"team": "a"}}),
            2 => term["namespaceSelector"] = json!({}),
            _ => {}
        }
        term
    }
}

/// Adds entries to a list that make it too long to be gone through, and change nothing.
fn padded(value: &mut Value, pointer: &str, entry: impl Fn(usize) -> Value) {
    if let Some(list) = value.pointer_mut(pointer).and_then(Value::as_array_mut) {
        list.extend((0..60).map(entry));
    }
}

fn padded_spec(spec: &Value, is_bound: bool) -> Value {
    let mut spec = spec.clone();
    // Selected by nobody, or by everybody, as the list wants it.
    let nobody = |i: usize| json!({"topologyKey": ZONE, "labelSelector": {"matchLabels": {"nobody": format!("x{i}")}}});
    let weighted = |i: usize| json!({"weight": 7, "podAffinityTerm": nobody(i)});
    let met = |i: usize| json!({"key": format!("x{i}"), "operator": "DoesNotExist"});
    let first = spec.pointer(&format!("/affinity/podAffinity/{REQUIRED}/0")).cloned();
    let everybody = |i: usize| {
        let key = first.as_ref().map(|term| term["topologyKey"].clone());
        json!({"topologyKey": key, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [met(i)]}})
    };
    for field in ["podAffinity", "podAntiAffinity"] {
        padded(&mut spec, &format!("/affinity/{field}/{PREFERRED}"), weighted);
    }
    padded(&mut spec, &format!("/affinity/podAntiAffinity/{REQUIRED}"), nobody);
    if !is_bound {
        // A term of a bound pod that selects the asking one pulls it, so that more of them would change the score.
        padded(&mut spec, &format!("/affinity/podAffinity/{REQUIRED}"), everybody);
    }
    let never = |i: usize| json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": [format!("x{i}")]}]});
    padded(&mut spec, &format!("/affinity/nodeAffinity/{REQUIRED}/nodeSelectorTerms"), never);
    padded(
        &mut spec,
        &format!("/affinity/nodeAffinity/{PREFERRED}"),
        |i| json!({"weight": 3, "preference": never(i)}),
    );
    padded(&mut spec, "/topologySpreadConstraints/0/labelSelector/matchExpressions", met);
    padded(&mut spec, "/tolerations", |i| json!({"key": format!("x{i}"), "operator": "Exists"}));
    spec
}

fn random_spec(random: &mut RandomPods) -> Value {
    let mut spec = json!({"containers": [], "tolerations": [], "affinity": {}});
    for field in ["podAffinity", "podAntiAffinity"] {
        let preferred: Value = (0..random.below(3))
            .map(|i| json!({"weight": 1 + i, "podAffinityTerm": random.term()}))
            .collect();
        spec["affinity"][field][PREFERRED] = preferred;
        if random.below(3) == 0 {
            spec["affinity"][field][REQUIRED] = json!([random.term()]);
        }
    }
    let node_term = |random: &mut RandomPods| {
        let operator = ["In", "NotIn"][random.below(2)];
        json!({"matchExpressions": [{"key": "disk", "operator": operator, "values": ["ssd"]},
                                    {"key": "rank", "operator": "Gt", "values": [format!("{}", random.below(3))]}],
               "matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n3"]}]})
    };
    if random.below(3) == 0 {
        spec["affinity"]["nodeAffinity"][REQUIRED] = json!({"nodeSelectorTerms": [node_term(random)]});
    }
    spec["affinity"]["nodeAffinity"][PREFERRED] = json!([{"weight": 5, "preference": node_term(random)}]);
    if random.below(2) == 0 {
        let action = ["DoNotSchedule", "ScheduleAnyway"][random.below(2)];
        let policy = ["Honor", "Ignore"][random.below(2)];
        let key = [ZONE, HOST][random.below(2)];
        spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": key,
            "whenUnsatisfiable": action, "labelSelector": random.selector(),
            "nodeTaintsPolicy": policy, "nodeAffinityPolicy": policy}]);
    }
    if random.below(2) == 0 {
        spec["tolerations"] = json!([{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]);
    }
    spec
}

/// Why nodes were refused, and what each plugin gave to the others.
type Answers = (Vec<(String, String)>, Vec<(String, Vec<i64>)>);

/// Which nodes are refused and why, and what the others score.
fn answers(decision: &Decision) -> Answers {
    let refused = decision.rejected.iter().map(|(node, r)| (node.to_string(), r.status.message())).collect();
    let mut scores: Vec<(String, Vec<i64>)> = Vec::new();
    for (i, node) in decision.feasible.iter().enumerate() {
        let columns = decision.scores.columns.iter();
        // A plugin that gives every node nothing may as well have skipped itself.
        let loud = columns.filter(|column| column.normalized.iter().any(|score| *score != 0));
        scores.push((node.to_string(), loud.map(|column| column.normalized[i]).collect()));
    }
    scores.sort();
    (refused, scores)
}

#[test]
fn lists_too_long_to_be_gone_through_mean_what_short_ones_mean() {
    let mut random = RandomPods(Random(11));
    for round in 0..150 {
        let mut objects = Vec::new();
        for name in ["default", "other"] {
            let team = ["a", "b"][random.below(2)];
            objects.push(object(json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"team": team}}})));
        }
        for i in 0..9 {
            let mut built = node(&format!("n{i}")).label("rank", &format!("{}", i % 4));
            if i != 8 {
                built = built.label(ZONE, &format!("z{}", i % 3));
            }
            if random.below(2) == 0 {
                built = built.label("disk", ["ssd", "hdd"][random.below(2)]);
            }
            if random.below(3) == 0 {
                let effect = ["NoSchedule", "PreferNoSchedule"][random.below(2)];
                built = built
                    .set("/spec/taints/-", json!({"key": "dedicated", "value": "gpu", "effect": effect}));
            }
            objects.push(built);
        }
        for i in 0..20 {
            let mut built = pod(&format!("p{i}")).namespace(["default", "other"][random.below(2)]);
            if random.below(4) != 0 {
                built = built.label("app", ["a", "b", "c"][random.below(3)]);
            }
            if random.below(2) == 0 {
                built = built.label("tier", ["a", "b"][random.below(2)]);
            }
            if random.below(3) == 0 {
                built = built.set("/spec/affinity", random_spec(&mut random)["affinity"].clone());
            }
            objects.push(built.on(&format!("n{}", random.below(9))));
        }
        let spec = random_spec(&mut random);
        let short = pod("asking").label("app", "a").set("/spec", spec.clone());
        let long = pod("asking").label("app", "a").set("/spec", padded_spec(&spec, false));
        let settings = || Settings { percentage_of_nodes_to_score: 100, ..Settings::default() };
        let decide = |objects: &[Builder], pod: &Builder| {
            let mut engine = Engine::new(cluster(objects.to_vec()), [default_profile()], settings());
            let pod = engine.admit(pod.clone().pod());
            let decision = engine.decide(&pod).expect("a profile");
            let fast = engine.inspect().recall(&pod).map(|recalled| answers(&recalled).1);
            (answers(&decision), fast)
        };
        let (expected, fast) = decide(&objects, &short);
        let (got, long_fast) = decide(&objects, &long);
        assert_eq!(got, expected, "round {round}: {spec}");
        assert_eq!(long_fast, fast, "round {round}: {spec}");
        // The same with bound pods that have long lists.
        let pad = |built: &Builder| -> Builder { built.clone().map("/spec", |spec| padded_spec(spec, true)) };
        let padded_objects: Vec<Builder> = objects.iter().map(pad).collect();
        let (got, long_fast) = decide(&padded_objects, &short);
        assert_eq!(got, expected, "round {round}, others: {spec}");
        assert_eq!(long_fast, fast, "round {round}, others: {spec}");
    }
}

#[test]
fn a_pod_that_is_refused_again_costs_what_has_changed_since() {
    let mut engine = engine();
    let hopeless =
        |i: usize| pod(&format!("hopeless-{i}")).priority(1000).container(&[("cpu", "1000")]).pod();
    let first = engine.admit(hopeless(0));
    let expected = engine.decide(&first).expect("a profile");
    let message = expected.message();
    // The first pods of a template make its signature; from then on it is known.
    for i in 1..4 {
        let pod = engine.admit(hopeless(i));
        drop(engine.place(&pod));
    }
    let known = engine.inspect().paths();
    for i in 4..100 {
        // A small pod goes between two attempts.
        let gone = engine.cluster().pod(&Key::new("default", format!("bound-{i}"))).expect("a pod").key();
        engine.cluster_mut().remove_pod(&gone);
        let pod = engine.admit(hopeless(i));
        let (placement, steps) = steps(|| engine.place(&pod).expect("a profile"));
        let Placement::Decided(decision) = placement else { panic!("{placement:?}") };
        assert_eq!((decision.message(), decision.failure()), (message.clone(), expected.failure()));
        assert!(steps < 100, "{steps} steps");
    }
    let paths = engine.inspect().paths();
    assert_eq!(
        (paths.refused - known.refused, paths.full),
        (96, known.full),
        "nobody was asked about every node"
    );
    assert_eq!(engine.inspect().verdicts(&first), Some(expected.verdicts));
}
