//! Profiles of all plugins, with arguments that are drawn.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use supercargo_framework::{
    Prepared, ScoreInput, Status, Verdict, normalize,
    points::{Filter, NormalizeScore, ScoreNode},
    profile::{Choice, Profile, ProfileSpec},
    registry::{Args, Point, define},
};
use supercargo_manifest::Source;
use supercargo_model::{Cluster, Name, NodeInfo, Pod, testing::Random};

use crate::{Scene, objects};

/// The strategies of NodeResourcesFit under the names of plugins of their own.
const OLDER_NAMES: [&str; 3] =
    ["NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "RequestedToCapacityRatio"];

/// A plugin that has no fast form: an odd number of pods is unlucky, and fuller nodes are better.
struct Odd;

impl Filter for Odd {
    fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        if node.pods.len() % 4 == 3 { Err(Status::unschedulable("unlucky")) } else { Ok(()) }
    }
}

impl ScoreNode for Odd {
    fn score_node(&self, _: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        Ok(node.pods.len() as i64)
    }
}

impl NormalizeScore for Odd {
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::proportional(column);
        Ok(())
    }
}

/// The default profile, put together by hand; with the plugin that has no fast form, or without it, and with those that make
/// room, or without them.
pub(crate) fn profile(random: &mut Random, scene: &Scene) -> Profile {
    let mut registry = supercargo_plugins::registry();
    if scene.odd {
        registry.add(define("Odd", |_| Ok(Odd)).filter().score().normalize());
    }
    let weights = BTreeMap::from([
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
    ]);
    let args = if scene.arguments { drawn(random) } else { without() };
    let mut spec = ProfileSpec { scheduler_name: "default-scheduler".into(), ..ProfileSpec::default() };
    for registration in registry.iter() {
        let older = OLDER_NAMES.contains(&registration.name());
        if older && !args.contains_key(registration.name()) {
            continue;
        }
        let name: Name = registration.name().into();
        for point in registration.points() {
            let weight = weights.get(registration.name()).copied().unwrap_or(1);
            spec.points.entry(*point).or_default().push(Choice { plugin: name.clone(), weight });
        }
        let text = args.get(registration.name()).map_or_else(|| "{}".to_owned(), Value::to_string);
        let source = Source::new("args", text);
        let documents = supercargo_manifest::read(&source).unwrap();
        let built = registration.build(&Args::new(&source, &documents[0], ""));
        spec.plugins.insert(name, built.unwrap_or_else(|problems| panic!("{problems}")));
    }
    if !scene.preempts {
        spec.points.remove(&Point::PostFilter);
    }
    Profile::new(spec).unwrap()
}

/// What cannot be left out.
fn without() -> BTreeMap<&'static str, Value> {
    let scores = json!({"configMap": {"namespace": "kube-system", "name": "scores"}, "key": "scores.yaml"});
    BTreeMap::from([("DynamicScoring", scores)])
}

/// Arguments of all plugins that have any.
fn drawn(random: &mut Random) -> BTreeMap<&'static str, Value> {
    let mut args = without();
    args.insert("NodeResourcesFit", fit(random));
    args.insert(
        "NodeResourcesBalancedAllocation",
        json!({
            "resources": resources(random, 1),
            "formula": random.one(&["BalanceImprovement", "StandardDeviation", "AbsoluteDifference"]),
        }),
    );
    args.insert("PodTopologySpread", spread(random));
    args.insert(
        "InterPodAffinity",
        json!({
            "hardPodAffinityWeight": *random.one(&[&0, &1, &100]),
            "ignorePreferredTermsOfExistingPods": random.chance(3),
        }),
    );
    args.insert("NodeAffinity", added_affinity(random));
    args.insert("ImageLocality", json!({"formula": random.one(&["SpreadScaled", "CachedBytes"])}));
    args.insert(
        "DefaultPreemption",
        json!({
            "minCandidateNodesPercentage": *random.one(&[&0, &10, &50, &100]),
            "minCandidateNodesAbsolute": 1 + random.below(4),
        }),
    );
    args.insert("VolumeBinding", json!({"bindTimeoutSeconds": random.below(3)}));
    if random.chance(3) {
        let strategy = json!({"resources": resources(random, 100)});
        args.insert(OLDER_NAMES[0], strategy.clone());
        args.insert(OLDER_NAMES[1], strategy);
        args.insert(OLDER_NAMES[2], json!({"shape": shape(random), "resources": resources(random, 100)}));
    }
    args
}

fn fit(random: &mut Random) -> Value {
    let strategy = match random.below(3) {
        0 => json!({"type": "LeastAllocated", "resources": resources(random, 100)}),
        1 => json!({"type": "MostAllocated", "resources": resources(random, 100)}),
        _ => json!({"type": "RequestedToCapacityRatio", "resources": resources(random, 100),
                    "requestedToCapacityRatio": {"shape": shape(random)}}),
    };
    let mut args = json!({"scoringStrategy": strategy});
    if random.chance(3) {
        args["ignoredResources"] = json!(["example.com/gpu"]);
    }
    if random.chance(4) {
        args["ignoredResourceGroups"] = json!(["example.com"]);
    }
    args
}

/// Some resources that count, up to so much, or those that count by default.
fn resources(random: &mut Random, most: usize) -> Value {
    let all = ["cpu", "memory", "ephemeral-storage", "example.com/gpu", "example.com/nowhere", "pods"];
    let chosen = all.iter().filter(|_| random.chance(2)).copied().collect::<Vec<_>>();
    chosen.into_iter().map(|name| json!({"name": name, "weight": 1 + random.below(most)})).collect()
}

/// Points of growing utilization.
fn shape(random: &mut Random) -> Value {
    let mut at = 0;
    let mut points = Vec::new();
    for _ in 0..1 + random.below(4) {
        at += 1 + random.below(25);
        points.push(json!({"utilization": at, "score": random.below(11)}));
    }
    points.into()
}

/// The built-in constraints, or a list of up to three; and either formula.
fn spread(random: &mut Random) -> Value {
    let formula = random.one(&["LogWeighted", "LogWeighted", "LogWeighted", "LinearSkew"]);
    if random.chance(2) {
        return json!({"defaultingType": "System", "formula": formula});
    }
    let mut keys = objects::TOPOLOGY_KEYS.to_vec();
    let mut constraints = Vec::new();
    for _ in 0..random.below(4) {
        let key = keys.swap_remove(random.below(keys.len()));
        let action = random.one(&["ScheduleAnyway", "ScheduleAnyway", "DoNotSchedule"]);
        let skew = 1 + random.below(4);
        constraints.push(json!({"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": action}));
    }
    json!({"defaultingType": "List", "defaultConstraints": constraints, "formula": formula})
}

fn added_affinity(random: &mut Random) -> Value {
    let mut affinity = json!({});
    if random.chance(3) {
        let terms = [objects::node_term(random)];
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = json!({"nodeSelectorTerms": terms});
    }
    if random.chance(2) {
        let preference = objects::node_term(random);
        affinity["preferredDuringSchedulingIgnoredDuringExecution"] =
            json!([{"weight": 1 + random.below(100), "preference": preference}]);
    }
    json!({"addedAffinity": affinity})
}
