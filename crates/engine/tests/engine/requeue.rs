//! For each plugin that comes with Supercargo and each event: whether a pod that the plugin refused is tried again.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_engine::{AttemptFailure, QueuePlace, QueueSettings, Refusal, SchedulingQueue};
use supercargo_framework::{
    event::Change,
    preemption::{Claim, Nominations},
    profile::Profile,
};
use supercargo_model::{
    object::Object,
    testing::{Builder, node, object, pod},
};

use crate::support::{DEFAULT_PLUGINS, decide, default_profile, engine};

/// A pod that can be refused for every reason.
fn demanding() -> Builder {
    let near = json!([{"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}]);
    let far = json!([{"labelSelector": {"matchLabels": {"app": "noisy"}}, "topologyKey": "kubernetes.io/hostname"}]);
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }]);
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    pod("p")
        .label("app", "web")
        .set("/spec/containers/-", with_port(json!({"cpu": "2"})))
        .set("/spec/nodeSelector", json!({"disk": "ssd"}))
        .set(&format!("/spec/affinity/podAffinity/{REQUIRED}"), near)
        .set(&format!("/spec/affinity/podAntiAffinity/{REQUIRED}"), far)
        .set("/spec/topologySpreadConstraints", spread)
        .claim("data")
        .set("/spec/volumes/-", json!({"name": "inline", "csi": {"driver": "d"}}))
}

fn with_port(requests: Value) -> Value {
    json!({"name": "c", "resources": {"requests": requests}, "ports": [{"containerPort": 80, "hostPort": 80}]})
}

fn storage(kind: &str, name: &str, rest: Value) -> Box<Object> {
    let version = if kind.starts_with("Persistent") { "v1" } else { "storage.k8s.io/v1" };
    let mut value = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}});
    if matches!(kind, "PersistentVolumeClaim" | "CSIStorageCapacity") {
        value["metadata"]["namespace"] = "default".into();
    }
    value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    Box::new(object(value).object())
}

/// A change, by name: an object before and after it.
enum Changes {
    Node(Option<Builder>, Option<Builder>),
    Pod(Option<Builder>, Option<Builder>),
    Other(Option<Box<Object>>, Option<Box<Object>>),
    /// Of the refused pod itself.
    Own(Builder),
}

use Changes::{Node, Other, Own, Pod};

fn changes() -> Vec<(&'static str, Changes)> {
    let ssd = || node("n").allocatable("cpu", "4").label("disk", "ssd").label("zone", "a");
    let hdd = || node("n").allocatable("cpu", "4").label("disk", "hdd").label("zone", "a");
    let cordoned = || ssd().set("/spec/unschedulable", true);
    let tainted = || ssd().taint("k", "v", "NoSchedule");
    let poor =
        || node("n").allocatable("cpu", "1").taint("k", "v", "NoSchedule").set("/spec/unschedulable", true);
    let bound = |app: &str| pod("q").label("app", app).on("n").container(&[("cpu", "2")]);
    let smaller = || pod("q").label("app", "x").on("n").container(&[("cpu", "1")]);
    let with_port = || pod("q").label("app", "x").on("n").set("/spec/containers/-", with_port(json!({})));
    let claim = |name: &str| storage("PersistentVolumeClaim", name, json!({"spec": {}}));
    let volume = |zone: &str| {
        storage(
            "PersistentVolume",
            "v",
            json!({
                "metadata": {"name": "v", "labels": {"topology.kubernetes.io/zone": zone}}, "spec": {},
            }),
        )
    };
    let class = |mode: &str, zone: &str| {
        let topology = json!([{"matchLabelExpressions": [{"key": "zone", "values": [zone]}]}]);
        storage(
            "StorageClass",
            "c",
            json!({
                "provisioner": "x", "volumeBindingMode": mode, "allowedTopologies": topology,
            }),
        )
    };
    let csi_node = |limit: i32| {
        let drivers = json!([{"name": "d", "nodeID": "n", "allocatable": {"count": limit}}]);
        storage("CSINode", "n", json!({"spec": {"drivers": drivers}}))
    };
    let driver = |capacity: bool| storage("CSIDriver", "d", json!({"spec": {"storageCapacity": capacity}}));
    let capacity = |amount: &str| {
        storage("CSIStorageCapacity", "k", json!({"storageClassName": "c", "capacity": amount}))
    };
    let attachment = || {
        let spec = json!({"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}});
        storage("VolumeAttachment", "a", json!({"spec": spec}))
    };
    vec![
        ("node comes", Node(None, Some(ssd()))),
        ("poor node comes", Node(None, Some(poor()))),
        ("node goes", Node(Some(ssd()), None)),
        ("heartbeat", Node(Some(ssd()), Some(ssd()))),
        ("node grows", Node(Some(ssd().allocatable("cpu", "1")), Some(ssd()))),
        ("node shrinks", Node(Some(ssd()), Some(ssd().allocatable("cpu", "1")))),
        ("label fits", Node(Some(hdd()), Some(ssd()))),
        ("label stops fitting", Node(Some(ssd()), Some(hdd()))),
        ("zone changes", Node(Some(ssd()), Some(ssd().label("zone", "b")))),
        ("taint goes", Node(Some(tainted()), Some(ssd()))),
        ("taint comes", Node(Some(ssd()), Some(tainted()))),
        ("uncordoned", Node(Some(cordoned()), Some(ssd()))),
        ("cordoned", Node(Some(ssd()), Some(cordoned()))),
        ("annotation", Node(Some(ssd()), Some(ssd().set("/metadata/annotations/a", "b")))),
        ("condition", Node(Some(ssd()), Some(ssd().set("/status/conditions", json!([{"type": "Ready"}]))))),
        ("feature", Node(Some(ssd()), Some(ssd().set("/status/declaredFeatures", json!(["F"]))))),
        ("db comes", Pod(None, Some(bound("db")))),
        ("web comes", Pod(None, Some(bound("web")))),
        ("other comes", Pod(None, Some(bound("x")))),
        ("noisy goes", Pod(Some(bound("noisy")), None)),
        ("web goes", Pod(Some(bound("web")), None)),
        ("other goes", Pod(Some(bound("x")), None)),
        ("port goes", Pod(Some(with_port()), None)),
        ("holder of its claim goes", Pod(Some(bound("x").claim("data")), None)),
        ("holder of a claim goes", Pod(Some(bound("x").claim("other")), None)),
        ("other shrinks", Pod(Some(bound("x")), Some(smaller()))),
        ("noisy gets quiet", Pod(Some(bound("noisy")), Some(bound("x")))),
        ("other becomes db", Pod(Some(bound("x")), Some(bound("db")))),
        ("status of other", Pod(Some(bound("x")), Some(bound("x")))),
        ("its claim comes", Other(None, Some(claim("data")))),
        ("its claim changes", Other(Some(claim("data")), Some(claim("data")))),
        ("other claim comes", Other(None, Some(claim("other")))),
        ("volume comes", Other(None, Some(volume("a")))),
        ("volume changes", Other(Some(volume("a")), Some(volume("a")))),
        ("volume moves", Other(Some(volume("a")), Some(volume("b")))),
        ("volume goes", Other(Some(volume("a")), None)),
        ("late class comes", Other(None, Some(class("WaitForFirstConsumer", "a")))),
        ("early class comes", Other(None, Some(class("Immediate", "a")))),
        ("class moves", Other(Some(class("Immediate", "a")), Some(class("Immediate", "b")))),
        ("csi node comes", Other(None, Some(csi_node(1)))),
        ("csi limit rises", Other(Some(csi_node(1)), Some(csi_node(2)))),
        ("csi limit falls", Other(Some(csi_node(2)), Some(csi_node(1)))),
        ("driver stops counting", Other(Some(driver(true)), Some(driver(false)))),
        ("capacity grows", Other(Some(capacity("1Gi")), Some(capacity("2Gi")))),
        ("capacity shrinks", Other(Some(capacity("2Gi")), Some(capacity("1Gi")))),
        ("detached", Other(Some(attachment()), None)),
        ("attached", Other(None, Some(attachment()))),
        ("own labels", Own(demanding().label("app", "other"))),
        ("own requests shrink", Own(demanding().set("/spec/containers/0/resources/requests/cpu", "1"))),
        ("own toleration", Own(demanding().toleration(json!({"operator": "Exists"})))),
        ("own priority", Own(demanding().priority(5))),
        ("own features", Own(demanding().set("/spec/hostNetwork", true).set("/spec/hostUsers", false))),
    ]
}

/// Whether a pod that was refused by this plugin alone is tried again after a change.
fn is_woken(profile: &Profile, plugin: &str, changes: &Changes) -> bool {
    let mut queue = SchedulingQueue::new([profile.queue_rules()], QueueSettings::default());
    let (mut nominations, now) = (Nominations::default(), Duration::ZERO);
    queue.add(demanding().pod(), &mut nominations, now);
    queue.pop(now);
    let refusal = Refusal { plugins: [plugin.into()].into(), ..Refusal::default() };
    queue.park("p", AttemptFailure::Refused(refusal), Claim::Kept, &mut nominations, now);
    let node = |builder: &Option<Builder>| builder.clone().map(Builder::node);
    let pod = |builder: &Option<Builder>| builder.clone().map(Builder::pod);
    match changes {
        Node(before, after) => {
            let (before, after) = (node(before), node(after));
            queue.happened(&Change::Node(before.as_ref(), after.as_ref()).happened(), now);
        }
        Pod(before, after) => {
            let (before, after) = (pod(before), pod(after));
            queue.happened(&Change::Pod(before.as_deref(), after.as_deref()).happened(), now);
        }
        Other(before, after) => {
            queue.happened(&Change::Other(before.as_deref(), after.as_deref()).happened(), now);
        }
        Own(after) => drop(queue.update(after.clone().pod(), &mut nominations, now)),
    }
    queue.find("p").expect("a known pod").place != QueuePlace::Unschedulable
}

/// What wakes the pods that each plugin refused; nothing else does. Who waits for a node also wakes when any taint
/// changes, as in kube-scheduler.
const WAKES: &[(&str, &str)] = &[
    ("SchedulingGates", ""),
    ("NodeUnschedulable", "node comes, uncordoned, own toleration"),
    ("NodeName", "node comes, poor node comes, taint goes, taint comes, uncordoned"),
    ("TaintToleration", "node comes, taint goes, own toleration"),
    ("NodeAffinity", "node comes, label fits, taint goes, taint comes, uncordoned"),
    ("NodePorts", "node comes, poor node comes, taint goes, taint comes, uncordoned, port goes"),
    (
        "NodeResourcesFit",
        "node comes, node grows, taint goes, taint comes, uncordoned, noisy goes, web goes, other goes, port goes, \
         holder of its claim goes, holder of a claim goes, other shrinks, own requests shrink",
    ),
    (
        "VolumeRestrictions",
        "node comes, poor node comes, taint goes, taint comes, uncordoned, holder of its claim goes, its claim comes",
    ),
    (
        "NodeVolumeLimits",
        "holder of its claim goes, holder of a claim goes, its claim comes, csi node comes, csi limit rises, detached",
    ),
    (
        "VolumeBinding",
        "node comes, poor node comes, label fits, label stops fitting, zone changes, taint goes, taint comes, \
         uncordoned, its claim comes, its claim changes, volume comes, volume changes, volume moves, \
         late class comes, early class comes, class moves, csi node comes, driver stops counting, capacity grows",
    ),
    (
        "VolumeZone",
        "node comes, poor node comes, label fits, label stops fitting, zone changes, taint goes, taint comes, \
         uncordoned, its claim comes, its claim changes, volume comes, volume moves, late class comes",
    ),
    (
        "PodTopologySpread",
        "node comes, node goes, zone changes, taint goes, taint comes, web comes, web goes, own labels, own toleration",
    ),
    (
        "InterPodAffinity",
        "node comes, poor node comes, zone changes, taint goes, taint comes, uncordoned, db comes, noisy goes, \
         noisy gets quiet, other becomes db, own labels",
    ),
    (
        "DynamicResources",
        "node comes, poor node comes, node grows, node shrinks, label fits, label stops fitting, zone changes, \
         taint goes, taint comes, uncordoned",
    ),
    ("DefaultPreemption", ""),
    (
        "NodeDeclaredFeatures",
        "node comes, poor node comes, taint goes, taint comes, uncordoned, feature, own features",
    ),
];

/// They order, score or bind, and can refuse nobody.
const REFUSE_NOBODY: [&str; 4] =
    ["PrioritySort", "NodeResourcesBalancedAllocation", "ImageLocality", "DefaultBinder"];

#[test]
fn each_plugin_and_each_event() {
    let (profile, changes) = (default_profile(), changes());
    let plugins = DEFAULT_PLUGINS.map(|(name, _)| name);
    for plugin in plugins.into_iter().filter(|name| !REFUSE_NOBODY.contains(name)) {
        let expected = WAKES.iter().find(|(name, _)| *name == plugin).map(|(_, wakes)| *wakes);
        let woken = changes.iter().filter(|(_, change)| is_woken(&profile, plugin, change));
        let names: Vec<&str> = woken.map(|(name, _)| *name).collect();
        assert_eq!(Some(&*names.join(", ")), expected, "{plugin}");
    }
}

#[test]
fn the_queue_is_told_who_refused_a_pod() {
    let refused_by = |plugins: &[&str]| {
        let plugins = plugins.iter().map(|name| (*name).into()).collect();
        Some(AttemptFailure::Refused(Refusal { plugins, ..Refusal::default() }))
    };
    let wants = |cpu: &str| pod("p").container(&[("cpu", cpu)]);
    let small = || node("small").allocatable("cpu", "1");
    let tainted = || node("tainted").allocatable("cpu", "8").taint("k", "v", "NoSchedule");
    let failure = |nodes: Vec<Builder>, pod: Builder| decide(&mut engine(nodes), pod).failure();
    assert_eq!(failure(vec![small()], wants("1")), None);
    assert_eq!(failure(vec![small()], wants("4")), refused_by(&["NodeResourcesFit"]));
    let both = refused_by(&["NodeResourcesFit", "TaintToleration"]);
    assert_eq!(failure(vec![small(), tainted()], wants("4")), both);
    // Before any node is looked at.
    assert_eq!(failure(vec![small()], wants("1").claim("missing")), refused_by(&["VolumeRestrictions"]));
    // Without nodes nobody refused it: it is tried again after a while.
    assert_eq!(failure(vec![], wants("1")), Some(AttemptFailure::Error));
    // Narrowed to nodes that do not exist: who narrowed them refused it.
    let fields = json!([{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]);
    let path = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    assert_eq!(failure(vec![small()], wants("1").set(path, fields)), refused_by(&["NodeAffinity"]));
}
