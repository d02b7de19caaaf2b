//! After any sequence of events, the fast path knows what the full path finds: the same feasible nodes and the same scores,
//! for every signature, at every step; and a trial that was undone has left no trace.
//!
//! A failing run prints the seed that replays it: `SUPERCARGO_SEED=7 cargo test -p supercargo-engine --test fast_equals_slow`.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use supercargo_engine::{Decision, Engine, PathCounts, Placement, Settings};
use supercargo_framework::{
    Prepared, ScoreInput, Status, Verdict, normalize,
    points::{Filter, NormalizeScore, ScoreNode},
    profile::{Choice, Profile, ProfileSpec},
    registry::{Args, Point, define},
};
use supercargo_manifest::Source;
use supercargo_model::{
    AlreadyBound, Cluster, Key, Name, Node, NodeId, NodeInfo, Pod, Timestamp,
    changes::Moment,
    object::{Kind, Object},
    testing::{Random, object},
};

const RUNS: u64 = 500;
const STEPS: usize = 200;
const SHAPES: usize = 5;

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
fn profile(odd: bool, preempts: bool) -> Profile {
    let mut registry = supercargo_plugins::registry();
    if odd {
        registry.add(define("Odd", |_| Ok(Odd)).filter().score().normalize());
    }
    let weights = BTreeMap::from([
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
    ]);
    let args = BTreeMap::from([(
        "DynamicScoring",
        "{configMap: {namespace: kube-system, name: scores}, key: scores.yaml}",
    )]);
    let older = ["NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "RequestedToCapacityRatio"];
    let mut spec = ProfileSpec { scheduler_name: "default-scheduler".into(), ..ProfileSpec::default() };
    for registration in registry.iter().filter(|r| !older.contains(&r.name())) {
        let name: Name = registration.name().into();
        for point in registration.points() {
            let weight = weights.get(registration.name()).copied().unwrap_or(1);
            spec.points.entry(*point).or_default().push(Choice { plugin: name.clone(), weight });
        }
        let source = Source::new("args", args.get(registration.name()).copied().unwrap_or("{}"));
        let documents = supercargo_manifest::read(&source).unwrap();
        let built = registration.build(&Args::new(&source, &documents[0], ""));
        spec.plugins.insert(name, built.unwrap());
    }
    if !preempts {
        spec.points.remove(&Point::PostFilter);
    }
    Profile::new(spec).unwrap()
}

fn node(random: &mut Random, i: usize) -> Node {
    let name = format!("n{i}");
    let mut labels = json!({"kubernetes.io/hostname": name});
    if !random.chance(6) {
        labels["topology.kubernetes.io/zone"] = random.one(&["z1", "z2", "z3"]).into();
    }
    if random.chance(2) {
        labels["disk"] = random.one(&["ssd", "hdd"]).into();
    }
    let mut taints = Vec::new();
    if random.chance(4) {
        let effect = random.one(&["NoSchedule", "PreferNoSchedule"]);
        taints.push(json!({"key": "dedicated", "value": random.one(&["gpu", "db"]), "effect": effect}));
    }
    let mut images = Vec::new();
    if random.chance(2) {
        images.push(json!({"names": ["web:1"], "sizeBytes": 500 << 20}));
    }
    let memory = if random.chance(40) { "50E".to_owned() } else { format!("{}Gi", 1 + random.below(16)) };
    object(json!({
        "metadata": {"name": name, "labels": labels,
                     "creationTimestamp": Timestamp::from_second(random.below(4000) as i64).unwrap().to_string()},
        "spec": {"taints": taints, "unschedulable": random.chance(12)},
        "status": {"images": images, "allocatable": {
            "cpu": format!("{}", 1 + random.below(8)), "memory": memory,
            "pods": format!("{}", 2 + random.below(8)), "example.com/gpu": format!("{}", random.below(3)),
        }},
    }))
    .build()
}

fn selector(random: &mut Random) -> Value {
    match random.below(5) {
        0 => json!({"matchLabels": {"app": "web"}}),
        1 => json!({"matchLabels": {"app": "db"}}),
        2 => json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db", "web"]}]}),
        3 => json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
        _ => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
    }
}

fn term(random: &mut Random) -> Value {
    let key = random.one(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]);
    let mut term = json!({"topologyKey": key, "labelSelector": selector(random)});
    match random.below(4) {
        0 => term["namespaces"] = json!(["default", "other"]),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"team": "a"}}),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    term
}

fn spread(random: &mut Random) -> Value {
    let mut constraint = json!({
        "maxSkew": 1 + random.below(3),
        "topologyKey": random.one(&["kubernetes.io/hostname", "topology.kubernetes.io/zone"]),
        "whenUnsatisfiable": random.one(&["DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"]),
        "labelSelector": selector(random),
    });
    if random.chance(3) {
        constraint["nodeTaintsPolicy"] = "Honor".into();
    }
    if random.chance(3) {
        constraint["nodeAffinityPolicy"] = "Ignore".into();
    }
    if random.chance(3) && constraint["whenUnsatisfiable"] == "DoNotSchedule" {
        constraint["minDomains"] = (1 + random.below(4)).into();
    }
    constraint
}

/// A pod of some signature.
fn pod(random: &mut Random, name: &str) -> Pod {
    let mut labels = json!({"app": random.one(&["web", "db", "batch"])});
    if random.chance(3) {
        labels["tier"] = random.one(&["front", "back"]).into();
    }
    let mut requests = json!({});
    if !random.chance(4) {
        requests["cpu"] = format!("{}m", 100 * (1 + random.below(12))).into();
        requests["memory"] = format!("{}Mi", 128 * (1 + random.below(12))).into();
    }
    if random.chance(6) {
        requests["example.com/gpu"] = "1".into();
    }
    let mut container = json!({"name": "c", "image": "web:1", "resources": {"requests": requests}});
    if random.chance(6) {
        container["ports"] = json!([{"hostPort": 8000 + random.below(2)}]);
    }
    let mut spec = json!({"containers": [container]});
    if random.chance(3) {
        let effect = random.one(&["", "NoSchedule", "PreferNoSchedule"]);
        spec["tolerations"] = json!([{"key": "dedicated", "operator": "Exists", "effect": effect}]);
    }
    if random.chance(5) {
        spec["nodeSelector"] = json!({"disk": random.one(&["ssd", "hdd"])});
    }
    if random.chance(4) {
        let wish = json!({"matchExpressions": [{"key": "disk", "operator": random.one(&["In", "NotIn"]), "values": ["ssd"]}]});
        spec["affinity"]["nodeAffinity"] = json!({"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1 + random.below(50), "preference": wish}]});
    }
    for (field, one_in) in [("podAffinity", 3), ("podAntiAffinity", 3)] {
        if random.chance(one_in) {
            let weighted = json!({"weight": 1 + random.below(100), "podAffinityTerm": term(random)});
            spec["affinity"][field] = json!({"preferredDuringSchedulingIgnoredDuringExecution": [weighted]});
            if random.chance(3) {
                spec["affinity"][field]["requiredDuringSchedulingIgnoredDuringExecution"] =
                    json!([term(random)]);
            }
        }
    }
    if random.chance(3) {
        let constraints: Vec<Value> = (0..1 + random.below(2)).map(|_| spread(random)).collect();
        spec["topologySpreadConstraints"] = constraints.into();
    }
    if random.chance(8) {
        spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    }
    if random.chance(6) {
        let claim = format!("claim-{}", random.below(CLAIMS));
        spec["resourceClaims"] = json!([{"name": "devices", "resourceClaimName": claim}]);
    }
    if random.chance(3) {
        spec["priority"] = (random.below(3) as i64 - 1).into();
    }
    if random.chance(10) {
        spec["preemptionPolicy"] = "Never".into();
    }
    let namespace = random.one(&["default", "default", "other"]);
    object(json!({
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
        "spec": spec,
    }))
    .build()
}

/// The same pod, wanting more than most nodes have.
fn too_large(random: &mut Random, mut pod: Pod) -> Pod {
    let spec = Arc::make_mut(&mut pod.spec);
    spec.requests.fit.milli_cpu = 1000 * (5 + random.below(8)) as i64;
    pod
}

/// Something happens to the cluster. Where little but pods changes, what is known is mended rather than made anew.
fn event(random: &mut Random, engine: &mut Engine, templates: &[Pod], serial: &mut usize, scene: &Scene) {
    if scene.nominations && random.chance(8) {
        let name: Name = format!("nominated-{}", random.below(3)).into();
        let node: Name = format!("n{}", random.below(scene.nodes)).into();
        let template = &templates[random.below(templates.len())];
        let pod = Pod { name: name.clone(), uid: name, ..template.clone() };
        engine.nominations_mut().nominate(Arc::new(pod), node);
    }
    let cluster = engine.cluster_mut();
    let some_pod = |random: &mut Random, cluster: &Cluster| -> Option<Arc<Pod>> {
        let mut all: Vec<&Arc<Pod>> = cluster.pods().collect();
        all.sort_by_key(|pod| pod.name.clone());
        (!all.is_empty()).then(|| all[random.below(all.len())].clone())
    };
    let what = if scene.calm && !random.chance(30) { 5 + random.below(15) } else { random.below(22) };
    if random.chance(6) {
        device_event(random, cluster, scene);
    }
    match what {
        21 => {
            // An operator's preferences change, or end; time goes on.
            cluster.set_now(Timestamp::from_second(random.below(4000) as i64).unwrap());
            if random.chance(4) {
                cluster.remove(Kind::ConfigMap, &Key::new("kube-system", "scores"));
            } else {
                cluster.put(preferences(random));
            }
        }
        20 => {
            // A claim is bound to a volume of some zone, or loses it.
            let volume = random.one(&["", "v1", "v2"]);
            let zone = if volume == "v1" { "z1" } else { "z2" };
            let term = json!({"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]});
            if !volume.is_empty() {
                cluster.put(
                    object(
                        json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
                    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                             "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}),
                    )
                    .object(),
                );
            }
            cluster.put(
                object(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": "data", "namespace": "default",
                             "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                "spec": {"volumeName": volume, "accessModes": ["ReadWriteOnce"]}}))
                .object(),
            );
        }
        0 | 1 => {
            let i = random.below(scene.nodes);
            cluster.put_node(node(random, i));
        }
        2 => cluster.remove(Kind::Node, &Key::new("", format!("n{}", random.below(scene.nodes)))),
        3 => {
            let team = random.one(&["a", "b"]);
            let name = random.one(&["default", "other"]);
            cluster.put(
                object(json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"team": team}}}))
                .object(),
            );
        }
        4 => {
            let key = Key::new("default", "web");
            if random.chance(2) {
                cluster.remove(Kind::Service, &key);
            } else {
                cluster.put(
                    object(json!({"apiVersion": "v1", "kind": "Service",
                    "metadata": {"name": "web", "namespace": "default"},
                    "spec": {"selector": {"app": random.one(&["web", "db"])}}}))
                    .object(),
                );
            }
        }
        5..=8 => {
            if let Some(gone) = some_pod(random, cluster) {
                cluster.remove_pod(&gone.key());
            }
        }
        9 => {
            // A pod is relabelled, or its deletion is asked for.
            if let Some(old) = some_pod(random, cluster) {
                let mut new = pod(random, &old.name);
                new.namespace = old.namespace.clone();
                new.node = old.node.clone();
                new.terminating = random.chance(2);
                cluster.put(Object::Pod(new));
            }
        }
        _ => {
            *serial += 1;
            let name: Name = format!("p{serial}").into();
            let template = &templates[random.below(templates.len())];
            let node: Name = format!("n{}", random.below(scene.nodes)).into();
            let pod = Pod { name: name.clone(), uid: name, node: Some(node), ..template.clone() };
            cluster.put(Object::Pod(pod));
        }
    }
}

const CLAIMS: usize = 4;

/// Something happens to devices: a driver offers others, a claim comes, gets devices, loses them or goes, a class changes.
fn device_event(random: &mut Random, cluster: &mut Cluster, scene: &Scene) {
    let (i, k) = (random.below(scene.nodes), random.below(CLAIMS));
    let claim_key = Key::new(random.one(&["default", "other"]), format!("claim-{k}"));
    match random.below(9) {
        0..=2 => cluster.put(slice(random, i)),
        3 => cluster.remove(Kind::ResourceSlice, &Key::new("", format!("slice-{i}"))),
        4 => cluster.put(
            object(
                json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"},
                "spec": {"extendedResourceName": random.one(&["example.com/gpu", "example.com/other"])}}),
            )
            .object(),
        ),
        5 => {
            // What is chosen for some claim, and comes to nothing.
            let uid: Name = format!("flying-{k}").into();
            let results = [json!({"request": "r", "driver": "d", "pool": format!("n{i}"), "device": "d0"})];
            let allocation = serde_json::from_value(json!({"devices": {"results": results}})).unwrap();
            match random.chance(2) {
                true => cluster.devices_mut().take_off(uid, Arc::new(allocation)),
                false => cluster.devices_mut().land(&uid),
            }
        }
        6 => cluster.remove(Kind::ResourceClaim, &claim_key),
        _ => cluster.put(claim(random, &claim_key, i)),
    }
}

/// Devices of a node, or of nobody in particular, some of them of the better kind.
fn slice(random: &mut Random, i: usize) -> Object {
    let device = |(d, random): (usize, &mut Random)| {
        json!({"name": format!("d{d}"), "attributes": {
            "kind": {"string": random.one(&["small", "large"])}, "bus": {"int": random.below(2)}}})
    };
    let devices: Vec<Value> = (0..random.below(4)).map(|d| device((d, random))).collect();
    let mut spec = json!({"driver": "d", "devices": devices,
        "pool": {"name": format!("n{i}"), "generation": 1, "resourceSliceCount": 1}});
    match random.below(8) {
        0 => spec["allNodes"] = true.into(),
        1 => {
            let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]});
            spec["nodeSelector"] = json!({"nodeSelectorTerms": [{"matchExpressions": [zone]}]});
        }
        _ => spec["nodeName"] = format!("n{i}").into(),
    }
    object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("slice-{i}")}, "spec": spec}))
    .object()
}

/// A claim to one device, to two on one bus, or to the first of two kinds; now and then it has devices already.
fn claim(random: &mut Random, key: &Key, i: usize) -> Object {
    let asks = |name: &str, count: usize, kind: &str| {
        let expression = format!("device.attributes[\"d\"].kind == \"{kind}\"");
        json!({"name": name, "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count,
            "selectors": [{"cel": {"expression": expression}}]})
    };
    let request = match random.below(3) {
        0 => json!({"name": "r", "exactly": asks("", 1, "small")}),
        1 => json!({"name": "r", "exactly": asks("", 2, "large")}),
        _ => json!({"name": "r", "firstAvailable": [asks("best", 2, "large"), asks("good", 1, "small")]}),
    };
    let mut devices = json!({"requests": [request]});
    if random.chance(2) {
        devices["constraints"] = json!([{"matchAttribute": "d/bus"}]);
    }
    let mut status = json!({});
    if random.chance(4) {
        let here = json!({"key": "metadata.name", "operator": "In", "values": [format!("n{i}")]});
        status["allocation"] = json!({
            "devices": {"results": [{"request": "r", "driver": "d", "pool": format!("n{i}"), "device": "d1"}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        });
    }
    object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": &*key.name, "namespace": &*key.namespace, "uid": format!("{key}-{}", random.below(1000))},
        "spec": {"devices": devices}, "status": status}))
    .object()
}

/// Preferences for disks, and now and then for nodes by their age.
fn preferences(random: &mut Random) -> Object {
    let mut score = || random.below(21) as i64 - 10;
    let disk = |value: &str| json!({"matchLabelExpressions": [{"key": "disk", "operator": "In", "values": [value]}]});
    let mut entries = vec![
        json!({"score": score(), "selector": disk("ssd")}),
        json!({"score": score(), "selector": [disk("hdd"), disk("ssd")]}),
    ];
    if random.chance(3) {
        let old = json!({"creationExpressions": [{"operator": "Ago", "value": "20m"}]});
        entries.push(json!({"score": 7, "selector": old}));
    }
    let text = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "DynamicScoring", "dynamicScores": entries,
    });
    object(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"namespace": "kube-system", "name": "scores"}, "data": {"scores.yaml": text.to_string()}}))
    .object()
}

type ByNode = BTreeMap<Name, BTreeMap<Name, i64>>;

/// Scores by node and plugin, without the plugins that give every node 0; `total` for the sum.
fn by_node(decision: &Decision) -> ByNode {
    let mut all = ByNode::new();
    for (i, node) in decision.feasible.iter().enumerate() {
        let scores = all.entry(node.clone()).or_default();
        for column in &decision.scores.columns {
            if column.normalized[i] != 0 {
                scores.insert(column.plugin.clone(), column.normalized[i]);
            }
        }
        scores.insert("total".into(), decision.scores.totals[i]);
    }
    all
}

/// What a run is like.
struct Scene {
    nodes: usize,
    /// Little but pods changes.
    calm: bool,
    /// Not all nodes are looked at.
    sampled: bool,
    /// Room is kept for some pods.
    nominations: bool,
    /// A plugin has no fast form.
    odd: bool,
    /// Room is made for pods that fit nowhere.
    preempts: bool,
    /// Everybody wants so much that many fit nowhere.
    tight: bool,
}

impl Scene {
    fn of(seed: u64) -> Self {
        let small = !seed.is_multiple_of(5);
        Self {
            nodes: if small { 14 } else { 70 },
            calm: !small,
            sampled: seed % 3 == 1,
            nominations: seed % 4 == 2,
            odd: seed.is_multiple_of(4),
            preempts: seed % 7 < 3,
            tight: seed % 3 == 2,
        }
    }
}

/// One decides on the fast path, the other on the full one; both see the same. Only the first tries pods and undoes it.
struct Twins {
    fast: Engine,
    slow: Engine,
}

impl Twins {
    fn compare(&mut self, scene: &Scene, pod: &Arc<Pod>, at: &str) -> bool {
        if !pod.spec.resource_claims.is_empty() || !pod.spec.extended_demand.is_empty() {
            // A copy has a history of its own: what was kept about its devices is of no use.
            let copy = self.slow.cluster().clone();
            *self.slow.cluster_mut() = copy;
        }
        let slow = self.slow.decide(pod).unwrap();
        if !scene.sampled
            && !scene.nominations
            && let Some(recalled) = self.fast.inspect().recall(pod)
        {
            assert_eq!(by_node(&recalled), by_node(&slow), "fast and full path, {at}, pod {pod:?}");
        }
        let placement = self.fast.place(pod).unwrap();
        assert_eq!(placement.node(), slow.node(), "{at}");
        assert_eq!(self.fast.inspect().next_start(), self.slow.inspect().next_start(), "{at}");
        let (total, ties, feasible) = match placement {
            Placement::On { total, ties, feasible, .. } => (total, ties, feasible),
            Placement::Decided(decided) => {
                self.compare_refusals(&decided, slow, pod, at);
                return false;
            }
        };
        assert_eq!(Some(total), slow.best_total(), "{at}");
        assert_eq!((ties, feasible), (slow.best.len(), slow.feasible.len()), "{at}");
        true
    }
}

impl Twins {
    /// A pod that was refused from memory is told the same, and its record can be filled in.
    fn compare_refusals(&mut self, fast: &Decision, slow: Decision, pod: &Arc<Pod>, at: &str) {
        assert_eq!(fast.message(), slow.message(), "{at}");
        assert_eq!(fast.failure(), slow.failure(), "{at}");
        assert_eq!(fast.preemption, slow.preemption, "{at}");
        assert_eq!(fast.clears_nomination, slow.clears_nomination, "{at}");
        assert_eq!((fast.seed, fast.evaluated()), (slow.seed, slow.evaluated()), "{at}");
        if fast.brief.is_some() {
            assert_eq!(self.fast.inspect().verdicts(pod), Some(slow.verdicts), "{at}");
        }
    }
}

/// Everything that a trial must leave as it was.
fn state(engine: &mut Engine) -> String {
    let next_start = engine.inspect().next_start();
    let (cluster, nominations) = (engine.cluster(), engine.nominations());
    let columns = cluster.columns();
    let nodes: Vec<_> = (cluster.nodes())
        .map(|node| {
            let pods: Vec<&Name> = node.pods.iter().map(|pod| &pod.name).collect();
            let or_default = (node.requested_or_default_milli_cpu, node.requested_or_default_memory);
            (node.name(), pods, &node.requested, or_default, node.used_ports.len())
        })
        .collect();
    let resources = [&columns.cpu, &columns.memory, &columns.ephemeral_storage, &columns.pods];
    let scalar = columns.scalar("example.com/gpu");
    let or_default = (&columns.cpu_or_default, &columns.memory_or_default, &columns.inexact);
    let classes: Vec<_> = (0..cluster.groups().places())
        .map(|place| {
            let class = cluster.groups().get(place)?;
            let nodes: BTreeMap<_, _> = class.nodes().collect();
            Some((&class.sample.name, &class.spec.labels, class.sample.terminating, nodes))
        })
        .collect();
    let nominated: Vec<_> = (0..3).map(|i| nominations.node_of(&format!("nominated-{i}"))).collect();
    let claimed = cluster.is_claim_used(&Key::new("default", "data"));
    format!(
        "{nodes:?}\n{resources:?}\n{scalar:?}\n{or_default:?}\n{classes:?}\n{nominated:?} {} {claimed} {next_start}",
        nominations.revision(),
    )
}

/// The changes since a moment of each twin, if they are still known.
fn log(engine: &Engine, since: Moment) -> Option<Vec<(NodeId, Name, bool)>> {
    let changes = engine.cluster().changes().since(since)?;
    Some(changes.map(|change| (change.node, change.pod.name.clone(), change.added)).collect())
}

impl Twins {
    /// Tries some pods, each seeing those before it. What is undone leaves the first twin like the second, which never tried;
    /// what stays is done by both.
    fn try_some(&mut self, random: &mut Random, waiting: &[Arc<Pod>], serial: &mut usize, at: &str) {
        let pods: Vec<Arc<Pod>> = (0..1 + random.below(6))
            .map(|_| {
                *serial += 1;
                let name: Name = format!("tried-{serial}").into();
                let template = &waiting[random.below(waiting.len())];
                Arc::new(Pod { name: name.clone(), uid: name, ..(**template).clone() })
            })
            .collect();
        let (before, moment) = (state(&mut self.fast), self.fast.cluster().changes().now());
        let mut trial = self.fast.trial();
        for pod in &pods {
            if let Some(node) = trial.place(pod).and_then(|placement| placement.node().cloned()) {
                assert_eq!(trial.assume(pod, node.clone()), Ok(()), "{at}");
                assert_eq!(trial.assume(pod, node), Err(AlreadyBound), "{at}");
            }
        }
        trial.undo();
        assert_eq!(state(&mut self.fast), before, "{at}");
        assert_eq!(self.fast.cluster().changes().now(), moment, "{at}");
        if random.chance(4) {
            let (mut fast, mut slow) = (self.fast.trial(), self.slow.trial());
            for pod in &pods {
                let placed = fast.place(pod).and_then(|placement| placement.node().cloned());
                assert_eq!(placed.as_ref(), slow.decide(pod).unwrap().node(), "{at}");
                if let Some(node) = placed {
                    assert_eq!(fast.assume(pod, node.clone()), Ok(()), "{at}");
                    assert_eq!(slow.assume(pod, node), Ok(()), "{at}");
                }
            }
            fast.commit();
            slow.commit();
        }
        assert_eq!(state(&mut self.fast), state(&mut self.slow), "{at}");
    }
}

/// Steps, comparisons that had a fast form, those of them that were about claims, and the paths that were taken.
fn run(seed: u64) -> (usize, usize, usize, PathCounts) {
    let scene = Scene::of(seed);
    let engine = || {
        let mut random = Random(seed);
        let mut cluster = Cluster::default();
        for i in 0..scene.nodes * 2 / 3 {
            cluster.put_node(node(&mut random, i));
            cluster.put(slice(&mut random, i));
        }
        for (k, namespace) in (0..CLAIMS).flat_map(|k| [(k, "default"), (k, "other")]) {
            cluster.put(claim(&mut random, &Key::new(namespace, format!("claim-{k}")), k));
        }
        cluster.put(
            object(json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "gpu"}}))
                .object(),
        );
        let percentage = if scene.sampled { 40 } else { 100 };
        let settings = Settings {
            percentage_of_nodes_to_score: percentage,
            min_feasible_nodes_to_find: 3,
            seed,
            ..Settings::default()
        };
        Engine::new(cluster, [profile(scene.odd, scene.preempts)], settings)
    };
    let mut twins = Twins { fast: engine(), slow: engine() };
    let mut random = Random(!seed);
    let mut templates: Vec<Pod> = (0..SHAPES).map(|i| pod(&mut random, &format!("t{i}"))).collect();
    if scene.tight {
        templates[0] = too_large(&mut random, templates[0].clone());
    }
    let waiting: Vec<Arc<Pod>> = templates.iter().map(|pod| Arc::new(pod.clone())).collect();
    let waiting: Vec<Arc<Pod>> = waiting.into_iter().map(|pod| twins.fast.admit(pod)).collect();
    let (mut compared, mut with_claims, mut serial, mut tried) = (0, 0, 0, 0);
    let began = [&twins.fast, &twins.slow].map(|engine| engine.cluster().changes().now());
    for step in 0..STEPS {
        let (mut same, mut twin_serial) = (Random(random.0), serial);
        event(&mut random, &mut twins.fast, &templates, &mut serial, &scene);
        event(&mut same, &mut twins.slow, &templates, &mut twin_serial, &scene);
        if twins.fast.cluster().node_count() == 0 {
            continue;
        }
        if random.chance(5) {
            twins.try_some(&mut random, &waiting, &mut tried, &format!("seed {seed}, step {step}"));
            assert_eq!(log(&twins.fast, began[0]), log(&twins.slow, began[1]), "seed {seed}, step {step}");
        }
        // Not always all of them, so that some fall behind and have more to catch up with.
        for (i, pod) in waiting.iter().enumerate() {
            if !random.chance(4) {
                let at = format!("seed {seed}, step {step}, signature {i}");
                let is_fast = twins.compare(&scene, pod, &at);
                compared += usize::from(is_fast);
                with_claims += usize::from(is_fast && !pod.spec.resource_claims.is_empty());
            }
        }
    }
    (STEPS, compared, with_claims, twins.fast.inspect().paths())
}

#[test]
fn fast_equals_slow_at_every_step() {
    if let Ok(seed) = std::env::var("SUPERCARGO_SEED") {
        run(seed.parse().expect("a number"));
        return;
    }
    let (mut steps, mut compared, mut with_claims, mut paths) = (0, 0, 0, PathCounts::default());
    for seed in 0..RUNS {
        let (s, c, d, w) = run(seed);
        steps += s;
        compared += c;
        with_claims += d;
        paths.columns += w.columns;
        paths.node_classes += w.node_classes;
        paths.sampled += w.sampled;
        paths.refused += w.refused;
    }
    assert_eq!(steps, 100_000);
    assert!(compared > 200_000, "only {compared} comparisons had a fast form");
    assert!(with_claims > 10_000, "only {with_claims} of them were about claims");
    // Each path was taken often enough to mean something.
    assert!(
        paths.columns > 50_000
            && paths.node_classes > 1_000
            && paths.sampled > 50_000
            && paths.refused > 5_000,
        "{paths:?}"
    );
}
