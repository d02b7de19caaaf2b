//! Nodes, pods and what stands around them, drawn so that every plugin has something to say.

use std::sync::Arc;

use serde_json::{Value, json};
use supercargo_model::{
    Name, Node, Pod, Timestamp,
    object::Object,
    storage::VolumeSource,
    testing::{Random, object},
};

use crate::{Scene, devices::CLAIMS};

pub(crate) const HOST: &str = "kubernetes.io/hostname";
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
const RACK: &str = "rack";
pub(crate) const TOPOLOGY_KEYS: [&str; 3] = [HOST, ZONE, RACK];
const DRIVER: &str = "csi.example.com";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

pub(crate) fn node(random: &mut Random, scene: &Scene, i: usize) -> Node {
    let name = format!("n{i}");
    let mut labels = node_labels(random, &name);
    if scene.labelled {
        labels[HOST] = name.as_str().into();
        labels[ZONE] = random.one(&["z1", "z2", "z3"]).into();
        labels[RACK] = random.one(&["r1", "r2", "r3", "r4"]).into();
    }
    object(json!({
        "metadata": {"name": name, "labels": labels,
                     "creationTimestamp": Timestamp::from_second(random.below(4000) as i64).unwrap().to_string()},
        "spec": {"taints": taints(random, scene), "unschedulable": random.chance(12) && !scene.welcoming},
        "status": {"images": images(random), "allocatable": allocatable(random, scene)},
    }))
    .build()
}

/// Labels may be absent, empty, or another node's.
fn node_labels(random: &mut Random, name: &str) -> Value {
    let mut labels = json!({});
    if !random.chance(30) {
        labels[HOST] = if random.chance(15) { "n0".into() } else { name.into() };
    }
    if !random.chance(6) {
        labels[ZONE] = random.one(&["z1", "z2", "z3", "z1", "z2", "z3", "z1", "z2", "z3", ""]).into();
    }
    if random.chance(2) {
        labels["disk"] = random.one(&["ssd", "hdd"]).into();
    }
    if random.chance(2) {
        labels[RACK] = random.one(&["r1", "r2", "r3", ""]).into();
    }
    if random.chance(2) {
        labels["cores"] = random.one(&["4", "8", "16", "-1", "many", ""]).into();
    }
    labels
}

fn taints(random: &mut Random, scene: &Scene) -> Vec<Value> {
    let mut taints = Vec::new();
    if scene.welcoming {
        let some = if random.chance(3) { 1 + random.below(5) / 4 } else { 0 };
        let soft = |i| json!({"key": format!("old-{i}"), "value": "so", "effect": "PreferNoSchedule"});
        taints.extend((0..some).map(soft));
    } else if random.chance(4) {
        let effect = random.one(&["NoSchedule", "PreferNoSchedule", "NoExecute"]);
        taints.push(json!({"key": "dedicated", "value": random.one(&["gpu", "db"]), "effect": effect}));
    }
    taints
}

fn images(random: &mut Random) -> Vec<Value> {
    let mut images = Vec::new();
    if random.chance(2) {
        images.push(json!({"names": ["web:1"], "sizeBytes": 500 << 20}));
    }
    images
}

/// Some nodes offer nothing of a resource, some more than a column can hold.
fn allocatable(random: &mut Random, scene: &Scene) -> Value {
    if scene.welcoming {
        let (cpu, memory) = (4 * random.one(&[&2, &4]), format!("{}Gi", 16 * random.one(&[&1, &2])));
        return json!({"cpu": cpu.to_string(), "memory": memory, "pods": "110"});
    }
    let memory = match random.below(40) {
        0 => "50E".to_owned(),
        1 | 2 => "0".to_owned(),
        _ => format!("{}Gi", 1 + random.below(16)),
    };
    let cpu = if random.chance(20) { 0 } else { 1 + random.below(8) };
    let pods = if random.chance(20) { 0 } else { 2 + random.below(8) };
    let mut all = json!({
        "cpu": cpu.to_string(), "memory": memory, "pods": pods.to_string(),
        "example.com/gpu": random.below(3).to_string(),
    });
    if random.chance(3) {
        all["ephemeral-storage"] = format!("{}Gi", random.below(8)).into();
    }
    all
}

fn selector(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!({"matchLabels": {"app": "web"}}),
        1 => json!({"matchLabels": {"app": "db"}}),
        2 => json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db", "web"]}]}),
        3 => json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
        4 => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        _ => json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
    }
}

fn term(random: &mut Random) -> Value {
    let key = random.one(&TOPOLOGY_KEYS);
    let mut term = json!({"topologyKey": key, "labelSelector": selector(random)});
    match random.below(4) {
        0 => term["namespaces"] = json!(["default", "other"]),
        1 => term["namespaceSelector"] = json!({"matchLabels": {"team": "a"}}),
        2 => term["namespaceSelector"] = json!({}),
        _ => {}
    }
    match random.below(8) {
        0 => term["matchLabelKeys"] = json!(["tier"]),
        1 => term["mismatchLabelKeys"] = json!(["tier"]),
        _ => {}
    }
    term
}

fn spread(random: &mut Random) -> Value {
    let mut constraint = json!({
        "maxSkew": 1 + random.below(3),
        "topologyKey": random.one(&TOPOLOGY_KEYS),
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
    if random.chance(4) {
        constraint["matchLabelKeys"] = json!(["tier", "absent"]);
    }
    constraint
}

/// A term about nodes, with every operator, and now and then by name.
pub(crate) fn node_term(random: &mut Random) -> Value {
    let expression = match random.below(7) {
        0 => json!({"key": "disk", "operator": "In", "values": ["ssd"]}),
        1 => json!({"key": "disk", "operator": "NotIn", "values": ["ssd"]}),
        2 => json!({"key": "disk", "operator": random.one(&["Exists", "DoesNotExist"])}),
        3 => json!({"key": ZONE, "operator": "In", "values": ["z1", ""]}),
        _ => {
            let bound = random.one(&["0", "4", "8"]);
            json!({"key": "cores", "operator": random.one(&["Gt", "Lt"]), "values": [bound]})
        }
    };
    let mut term = json!({"matchExpressions": [expression]});
    if random.chance(6) {
        let operator = random.one(&["In", "NotIn", "NotIn", "NotIn"]);
        let name = format!("n{}", random.below(14));
        term["matchFields"] = json!([{"key": "metadata.name", "operator": operator, "values": [name]}]);
        if random.chance(2) {
            term["matchExpressions"] = json!([]);
        }
    }
    term
}

fn affinity(random: &mut Random, spec: &mut Value) {
    if random.chance(4) {
        let wish = json!({"weight": 1 + random.below(50), "preference": node_term(random)});
        spec["affinity"]["nodeAffinity"] = json!({PREFERRED: [wish]});
    }
    if random.chance(6) {
        let terms: Vec<Value> = (0..1 + random.below(2)).map(|_| node_term(random)).collect();
        spec["affinity"]["nodeAffinity"][REQUIRED] = json!({"nodeSelectorTerms": terms});
    }
    for (field, one_in) in [("podAffinity", 3), ("podAntiAffinity", 3)] {
        if random.chance(one_in) {
            let weighted = json!({"weight": 1 + random.below(100), "podAffinityTerm": term(random)});
            spec["affinity"][field] = json!({PREFERRED: [weighted]});
            if random.chance(3) {
                spec["affinity"][field][REQUIRED] = json!([term(random)]);
            }
        }
    }
}

fn container(random: &mut Random) -> Value {
    let mut requests = json!({});
    if !random.chance(4) {
        requests["cpu"] = format!("{}m", 100 * (1 + random.below(12))).into();
        requests["memory"] = format!("{}Mi", 128 * (1 + random.below(12))).into();
    }
    if random.chance(6) {
        requests["example.com/gpu"] = "1".into();
    }
    if random.chance(8) {
        requests["ephemeral-storage"] = "1Gi".into();
    }
    let mut container = json!({"name": "c", "image": "web:1", "resources": {"requests": requests}});
    if random.chance(6) {
        container["ports"] = json!([{"hostPort": 8000 + random.below(2)}]);
    }
    container
}

/// A volume of each kind that some plugin reads.
fn volume(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "storageClassName": "late", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}}}),
        1 => json!({"name": "disk", "gcePersistentDisk": {"pdName": "disk-1", "readOnly": random.chance(2)}}),
        2 => json!({"name": "single", "persistentVolumeClaim": {"claimName": "single"}}),
        3 => json!({"name": "late", "persistentVolumeClaim": {"claimName": "late"}}),
        _ => json!({"name": "data", "persistentVolumeClaim": {"claimName": "data"}}),
    }
}

/// A pod of some signature. `volumes`: once in so many times it has some.
pub(crate) fn pod(random: &mut Random, name: &str, volumes: usize) -> Pod {
    let mut labels = json!({"app": random.one(&["web", "db", "batch"])});
    if random.chance(3) {
        labels["tier"] = random.one(&["front", "back", ""]).into();
    }
    let mut spec = json!({"containers": [container(random)]});
    if random.chance(3) {
        let effect = random.one(&["", "NoSchedule", "PreferNoSchedule"]);
        spec["tolerations"] = json!([{"key": "dedicated", "operator": "Exists", "effect": effect}]);
    }
    if random.chance(5) {
        spec["nodeSelector"] = json!({"disk": random.one(&["ssd", "hdd"])});
    }
    affinity(random, &mut spec);
    if random.chance(3) {
        let constraints: Vec<Value> = (0..1 + random.below(4)).map(|_| spread(random)).collect();
        spec["topologySpreadConstraints"] = constraints.into();
    }
    if random.chance(volumes) {
        let some: Vec<Value> = (0..1 + random.below(2)).map(|_| volume(random)).collect();
        spec["volumes"] = some.into();
    }
    if random.chance(6) {
        let claim = format!("claim-{}", random.below(CLAIMS));
        spec["resourceClaims"] = json!([{"name": "devices", "resourceClaimName": claim}]);
    }
    if random.chance(3) {
        spec["priority"] = (*random.one(&[&-1, &1, &1000, &2_000_000_000])).into();
    }
    if random.chance(10) {
        spec["preemptionPolicy"] = "Never".into();
    }
    let namespace = random.one(&["default", "default", "other"]);
    let mut metadata = json!({"name": name, "namespace": namespace, "uid": name, "labels": labels});
    if random.chance(3) {
        let (version, kind) = *random.one(&[
            &("apps/v1", "ReplicaSet"),
            &("apps/v1", "StatefulSet"),
            &("v1", "ReplicationController"),
        ]);
        metadata["ownerReferences"] =
            json!([{"apiVersion": version, "kind": kind, "name": "owner", "uid": kind, "controller": true}]);
    }
    object(json!({"metadata": metadata, "spec": spec})).build()
}

/// The same pod, wanting more than most nodes have.
pub(crate) fn too_large(random: &mut Random, mut pod: Pod) -> Pod {
    let spec = Arc::make_mut(&mut pod.spec);
    spec.requests.fit.milli_cpu = 1000 * (5 + random.below(8)) as i64;
    pod
}

/// The same pod by another name, and of another priority.
pub(crate) fn nominated(random: &mut Random, template: &Pod, name: Name) -> Pod {
    let mut pod = Pod { name: name.clone(), uid: name, ..template.clone() };
    Arc::make_mut(&mut pod.spec).priority = *random.one(&[&-1, &0, &0, &1, &2000]);
    pod
}

/// Somebody who owns pods, or a service.
pub(crate) fn owner(random: &mut Random) -> Object {
    let namespace = random.one(&["default", "default", "other"]);
    let app = random.one(&["web", "db"]);
    let metadata = |name: &str| json!({"name": name, "namespace": namespace});
    let written = match random.below(4) {
        0 => json!({"apiVersion": "v1", "kind": "Service",
            "metadata": metadata("web"), "spec": {"selector": {"app": app}}}),
        1 => json!({"apiVersion": "v1", "kind": "ReplicationController",
            "metadata": metadata("owner"), "spec": {"selector": {"app": app}}}),
        2 => json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": metadata("owner"), "spec": {"selector": {"matchLabels": {"app": app}}}}),
        _ => json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": metadata("owner"), "spec": {"selector": selector(random)}}),
    };
    object(written).object()
}

/// Something about volumes: claims and volumes, bound or not, classes, and how many volumes a node can attach.
pub(crate) fn storage(random: &mut Random, nodes: usize, shapes: usize) -> Object {
    let once = json!(["ReadWriteOnce"]);
    let written = match random.below(10) {
        0 | 1 => persistent_volume(random),
        2 | 3 => claim("data", random.one(&["", "v1", "v2"]), &once),
        4 => claim("single", random.one(&["", "v1"]), &json!(["ReadWriteOncePod"])),
        5 => {
            let mut late = claim("late", random.one(&["", "", "", "v2"]), &once);
            if random.chance(4) {
                late["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] =
                    format!("n{}", random.below(nodes)).into();
            }
            late
        }
        6 => {
            let name = format!("t{}", random.below(shapes));
            let mut scratch = claim(&format!("{name}-scratch"), random.one(&["", "", "v1"]), &once);
            let owner = if random.chance(6) { "somebody" } else { &*name };
            scratch["metadata"]["ownerReferences"] =
                json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": owner, "controller": true}]);
            scratch
        }
        7 => storage_class(random),
        8 => {
            let limit = random.below(3);
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
                "metadata": {"name": format!("n{}", random.below(nodes))},
                "spec": {"drivers": [{"name": DRIVER, "nodeID": "n", "allocatable": {"count": limit}}]}})
        }
        _ => json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": {"name": format!("a{}", random.below(4))},
            "spec": {"attacher": DRIVER, "nodeName": format!("n{}", random.below(nodes)),
                     "source": {"persistentVolumeName": random.one(&["v1", "v2"])}}}),
    };
    object(written).object()
}

/// A pod like another but for its name and the claims it names, as pods of a StatefulSet are, and those claims, most of which
/// exist; `None` if that one names none.
pub(crate) fn sibling(random: &mut Random, of: &Pod, name: &str) -> Option<(Pod, Vec<Object>)> {
    let (mut spec, mut claims) = ((*of.spec).clone(), Vec::new());
    for volume in &mut spec.volumes {
        if let VolumeSource::Claim { name: claim_name } = &mut volume.source {
            *claim_name = format!("{name}-{}", volume.name).into();
            let mode = if random.chance(8) { "ReadWriteOncePod" } else { "ReadWriteOnce" };
            if !random.chance(10) {
                let written = claim(claim_name, random.one(&["", "v1", "v2"]), &json!([mode]));
                claims.push(object(written).object());
            }
        }
    }
    let pod = Pod { name: name.into(), uid: name.into(), spec: Arc::new(spec), ..of.clone() };
    (pod.spec.volumes != of.spec.volumes).then_some((pod, claims))
}

fn claim(name: &str, volume: &str, modes: &Value) -> Value {
    let mut annotations = json!({});
    if !volume.is_empty() {
        annotations["pv.kubernetes.io/bind-completed"] = "yes".into();
    }
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations},
        "spec": {"volumeName": volume, "accessModes": modes, "storageClassName": "late",
                 "resources": {"requests": {"storage": "1Gi"}}}})
}

fn persistent_volume(random: &mut Random) -> Value {
    let name = random.one(&["v1", "v2", "free-1", "free-2"]);
    let zone = random.one(&["z1", "z2", "z3"]);
    let term = json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]});
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
                 "csi": {"driver": DRIVER, "volumeHandle": name}},
        "status": {"phase": if name.starts_with("free") { "Available" } else { "Bound" }}});
    if random.chance(2) {
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [term]}});
    }
    if random.chance(2) {
        volume["metadata"]["labels"] = json!({ZONE: format!("{zone}__z2")});
    }
    volume
}

fn storage_class(random: &mut Random) -> Value {
    let provisioner = random.one(&[DRIVER, "kubernetes.io/no-provisioner"]);
    let mode = random.one(&["WaitForFirstConsumer", "WaitForFirstConsumer", "Immediate"]);
    let mut class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": "late"}, "provisioner": provisioner, "volumeBindingMode": mode});
    if random.chance(3) {
        class["allowedTopologies"] =
            json!([{"matchLabelExpressions": [{"key": ZONE, "values": ["z1", "z3"]}]}]);
    }
    class
}

/// Preferences for disks, and now and then for nodes by their age.
pub(crate) fn preferences(random: &mut Random) -> Object {
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
