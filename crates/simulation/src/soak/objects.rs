//! The objects that simulated users make: few sorts, each there for a plugin or a race.

use serde_json::{Value, json};

/// Namespaces that pods come to.
pub(super) const NAMESPACES: [&str; 3] = ["default", "team-a", "team-b"];
/// The scheduler that runs beside the others.
pub(super) const SECOND_SCHEDULER: &str = "second-scheduler";
/// The scheduler that is none of ours.
pub(super) const FOREIGN_SCHEDULER: &str = "foreign-scheduler";
/// Claims of this class get a volume after a while.
pub(super) const PROVISIONED: &str = "provisioned";
/// Claims of this class wait for a volume that somebody makes by hand.
pub(super) const BY_HAND: &str = "by-hand";
/// The claim that only one pod of a namespace may use at a time.
pub(super) const EXCLUSIVE: &str = "exclusive-data";
/// Pods that an extender is asked about want this.
pub(super) const EXTENDED: &str = "example.com/device";
/// The sort of pods that do.
pub(super) const EXTENDED_TEMPLATE: u64 = 14;
/// Resources whose changes can come late, or whose reading can be forbidden.
pub(super) const KINDS: [&str; 6] =
    ["pods", "nodes", "persistentvolumeclaims", "persistentvolumes", "namespaces", "services"];
/// The gate that gated pods have.
pub(super) const GATE: &str = "example.com/gate";
/// What holds up the deletion of pods that are held.
pub(super) const FINALIZER: &str = "example.com/held";
/// How many sorts of pods there are; those from the claims on, and what makes no sense, are not for deployments.
const TEMPLATES: u64 = 18;
/// Further sorts, which are there only where they are asked for: an exclusive claim, a class and a claim that are not
/// there, and more than anybody has.
pub(super) const UNUSUAL_TEMPLATES: [u64; 4] = [u64::MAX, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3];
const WITHOUT_CLAIMS: u64 = 16;

/// The sort that a number stands for.
fn sort_of(template: u64) -> u64 {
    let unusual = UNUSUAL_TEMPLATES.iter().position(|unusual| *unusual == template);
    unusual.map_or(template % TEMPLATES, |place| TEMPLATES + place as u64)
}

/// A name and a number in one.
pub(super) fn zone(number: u64) -> String {
    format!("zone-{}", ["a", "b", "c"][(number % 3) as usize])
}

/// A node of one of a few sizes.
pub(super) fn node(name: &str, shape: u64, zone_number: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone(zone_number)}},
        "status": {"capacity": capacity(shape), "allocatable": capacity(shape)},
    })
}

/// What a node of a shape has.
pub(super) fn capacity(shape: u64) -> Value {
    let (cpu, memory, pods) =
        [("2", "4Gi", "10"), ("4", "8Gi", "4"), ("8", "16Gi", "110")][(shape % 3) as usize];
    let mut capacity = json!({"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi"});
    if shape % 5 < 2 {
        capacity[EXTENDED] = "2".into();
    }
    capacity
}

/// A node that says nonsense about itself, of one of a few sorts.
pub(super) fn odd_node(name: &str, sort: u64) -> Value {
    const MOST: &str = "9223372036854775807";
    let capacity = match sort % 5 {
        0 => json!({"cpu": "-1", "memory": "-1", "pods": "-1"}),
        1 => json!({"cpu": MOST, "memory": MOST, "pods": MOST}),
        2 => json!({"cpu": "9E", "memory": "50E", "pods": "110"}),
        3 => json!({"cpu": "0", "memory": "0", "pods": "0"}),
        _ => json!({}),
    };
    let mut node = node(name, sort, sort / 5);
    node["status"] = json!({"capacity": capacity, "allocatable": capacity});
    node
}

/// A pod on a node that cannot be read as a whole: its priority is no number.
pub(super) fn unreadable_pod(namespace: &str, name: &str, node: &str) -> Value {
    let container = json!({"name": "c", "image": "x", "resources": {"requests": {"cpu": "3"}}});
    let spec = json!({"nodeName": node, "schedulerName": FOREIGN_SCHEDULER, "priority": "high",
                      "containers": [container]});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

/// What a pod is to be.
pub(super) struct Wanted<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) template: u64,
    pub(super) scheduler: &'a str,
    pub(super) gated: bool,
}

/// A pod, and the claim that it comes with.
pub(super) fn pod(wanted: &Wanted<'_>) -> (Value, Option<Value>) {
    let (labels, mut spec) = template(wanted.template);
    if wanted.gated {
        spec["schedulingGates"] = json!([{"name": GATE}]);
    }
    if !wanted.scheduler.is_empty() {
        spec["schedulerName"] = wanted.scheduler.into();
    }
    let claim = claim(wanted, &mut spec);
    let metadata = json!({"namespace": wanted.namespace, "name": wanted.name, "labels": labels});
    (json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}), claim)
}

fn claim(wanted: &Wanted<'_>, spec: &mut Value) -> Option<Value> {
    let own = format!("{}-data", wanted.name);
    let (name, class, mode) = match sort_of(wanted.template) {
        16 => (own, PROVISIONED, "ReadWriteOnce"),
        17 => (own, BY_HAND, "ReadWriteOnce"),
        // One claim for all of a namespace, and for one of them at a time.
        18 => (EXCLUSIVE.to_owned(), PROVISIONED, "ReadWriteOncePod"),
        // Of a class that is not there.
        19 => (own, "no-such-class", "ReadWriteOnce"),
        // That nobody makes.
        20 => {
            spec["volumes"] =
                json!([{"name": "data", "persistentVolumeClaim": {"claimName": "no-such-claim"}}]);
            return None;
        }
        _ => return None,
    };
    spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
    Some(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": wanted.namespace, "name": name},
        "spec": {"storageClassName": class, "accessModes": [mode],
                 "resources": {"requests": {"storage": "1Gi"}}},
    }))
}

/// A deployment of pods of a sort.
pub(super) fn deployment(namespace: &str, name: &str, sort: u64, replicas: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"deployment": name}},
                 "template": deployment_template(name, sort)},
    })
}

/// The template of a deployment's pods.
pub(super) fn deployment_template(name: &str, sort: u64) -> Value {
    let (mut labels, spec) = template(sort % WITHOUT_CLAIMS);
    labels["deployment"] = name.into();
    json!({"metadata": {"labels": labels}, "spec": spec})
}

/// A budget for the pods of an app.
pub(super) fn budget(namespace: &str, name: &str, app: u64, min_available: u64) -> Value {
    let app = format!("app-{}", app % TEMPLATES);
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
    })
}

/// A volume for claims that nobody provisions, in a zone.
pub(super) fn volume(name: &str, zone_number: u64) -> Value {
    let in_zone =
        json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone(zone_number)]});
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": BY_HAND,
                 "persistentVolumeReclaimPolicy": "Retain", "local": {"path": "/data"},
                 "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [in_zone]}]}}},
    })
}

/// What is there before anybody does anything.
pub(super) fn beginnings() -> Vec<Value> {
    let class = |name: &str, value: i64, policy: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
               "value": value, "preemptionPolicy": policy})
    };
    let storage = |name: &str, provisioner: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
               "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"})
    };
    let namespace =
        |name: &&str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let mut beginnings: Vec<Value> = NAMESPACES[1..].iter().map(namespace).collect();
    beginnings.extend([
        class("high", 1000, "PreemptLowerPriority"),
        class("higher", 2000, "PreemptLowerPriority"),
        class("patient", 1500, "Never"),
        storage(PROVISIONED, "example.com/provisioner"),
        storage(BY_HAND, "kubernetes.io/no-provisioner"),
    ]);
    beginnings
}

/// Labels and spec of a sort of pods.
fn template(sort: u64) -> (Value, Value) {
    let sort = sort_of(sort);
    let app = format!("app-{sort}");
    let labels = json!({"app": app, "size": if sort.is_multiple_of(2) { "even" } else { "odd" }});
    let selector = json!({"matchLabels": {"app": app}});
    let grace = [0, 1, 30][(sort % 3) as usize];
    let (cpu, memory) = match sort {
        1 | 4 | 9 => ("1", "1Gi"),
        2 | 10 => ("3", "2Gi"),
        // As much as can be written, and more than anybody has.
        21 => ("9223372036854775807", "50E"),
        _ => ("250m", "256Mi"),
    };
    let mut container =
        json!({"name": "c", "image": "i:1", "resources": {"requests": {"cpu": cpu, "memory": memory}}});
    let mut spec = json!({"terminationGracePeriodSeconds": grace});
    let spread = |key: &str, when: &str| json!([{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}]);
    let term = |key: &str, selector: &Value| json!({"topologyKey": key, "labelSelector": selector});
    match sort {
        3 => spec["topologySpreadConstraints"] = spread("topology.kubernetes.io/zone", "DoNotSchedule"),
        4 => {
            let terms = json!([term("kubernetes.io/hostname", &selector)]);
            spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = terms;
        }
        5 => {
            let other = json!({"matchLabels": {"app": "app-1"}});
            let terms = json!([term("topology.kubernetes.io/zone", &other)]);
            spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = terms;
        }
        6 => container["ports"] = json!([{"containerPort": 8080, "hostPort": 8080}]),
        7 => spec["tolerations"] = json!([{"key": "example.com/busy", "operator": "Exists"}]),
        8 => spec["nodeSelector"] = json!({"topology.kubernetes.io/zone": "zone-b"}),
        9 => spec["priorityClassName"] = "high".into(),
        10 => spec["priorityClassName"] = "higher".into(),
        11 => spec["priorityClassName"] = "patient".into(),
        12 => {
            // By a list: kube-scheduler wakes nobody by what namespace selectors select.
            let mut anti = term("topology.kubernetes.io/zone", &json!({"matchLabels": {"size": "odd"}}));
            anti["namespaces"] = json!(["default", "team-a"]);
            spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!([anti]);
        }
        13 => spec["topologySpreadConstraints"] = spread("kubernetes.io/hostname", "ScheduleAnyway"),
        EXTENDED_TEMPLATE => container["resources"]["requests"][EXTENDED] = "1".into(),
        15 => {
            spec["priorityClassName"] = "high".into();
            container["ports"] = json!([{"containerPort": 8080, "hostPort": 8080}]);
        }
        _ => {}
    }
    if let Some(requests) = container["resources"]["requests"].get(EXTENDED).cloned() {
        container["resources"]["limits"][EXTENDED] = requests;
    }
    spec["containers"] = json!([container]);
    (labels, spec)
}
