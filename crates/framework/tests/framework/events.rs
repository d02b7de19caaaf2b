//! Which events a change amounts to, and which plugin is helped by which.

use serde_json::{Value, json};
use supercargo_framework::{
    Verdict,
    event::{ActionType, Change, ClusterEvent, EventInterest, EventResource, EventSet},
    points::{PreEnqueue, Requeue},
    queueing::QueueView,
    registry::{Registration, define},
};
use supercargo_model::{
    ApiResource, Cluster, Pod,
    testing::{Builder, node, object, pod},
};

use crate::support::Setup;

fn labels(events: &[ClusterEvent]) -> String {
    let labels: Vec<String> = events.iter().map(|event| event.label()).collect();
    labels.join(" ")
}

#[test]
fn what_the_update_of_a_node_amounts_to() {
    let plain = || node("n").allocatable("cpu", "4");
    let condition = |status: &str, heartbeat: &str| {
        plain().set(
            "/status/conditions",
            json!([{"type": "Ready", "status": status, "lastHeartbeatTime": heartbeat}]),
        )
    };
    let cordoned = || plain().set("/spec/unschedulable", true);
    let several = plain().label("zone", "a").taint("k", "v", "NoSchedule").allocatable("cpu", "8");
    let cases = [
        (plain(), plain(), ""),
        (condition("True", "2026-01-01T00:00:00Z"), condition("True", "2026-01-01T00:00:10Z"), ""),
        (plain(), plain().has_image("image", 1), ""),
        (condition("True", ""), condition("False", ""), "NodeUpdateNodeCondition"),
        (plain(), plain().allocatable("cpu", "8"), "NodeUpdateNodeAllocatable"),
        (plain(), plain().allocatable("example.com/gpu", "1"), "NodeUpdateNodeAllocatable"),
        (plain(), plain().label("zone", "a"), "NodeUpdateNodeLabel"),
        (plain(), plain().taint("k", "v", "NoSchedule"), "NodeUpdateNodeTaint"),
        (plain(), cordoned(), ""),
        (cordoned(), plain(), "NodeUpdateNodeTaint"),
        (plain(), plain().set("/metadata/annotations/a", "b"), "NodeUpdateNodeAnnotation"),
        (plain(), plain().set("/status/declaredFeatures", json!(["F"])), "NodeUpdateNodeDeclaredFeature"),
        (plain(), several, "NodeUpdateNodeAllocatable NodeUpdateNodeLabel NodeUpdateNodeTaint"),
    ];
    for (i, (before, after, expected)) in cases.into_iter().enumerate() {
        let (before, after) = (before.node(), after.node());
        let happened = Change::Node(Some(&before), Some(&after)).happened();
        assert_eq!(labels(&happened.events), expected, "case {i}");
    }
}

#[test]
fn nodes_that_come_and_go() {
    let n = node("n").node();
    assert_eq!(labels(&Change::Node(None, Some(&n)).happened().events), "NodeAdd");
    assert_eq!(labels(&Change::Node(Some(&n), None).happened().events), "NodeDelete");
    assert_eq!(labels(&Change::Node(None, None).happened().events), "");
}

#[test]
fn what_the_change_of_a_pod_amounts_to_for_others() {
    let asks = |cpu: &str| pod("p").container(&[("cpu", cpu)]);
    let bound = |builder: Builder| Some(builder.on("n"));
    let ended = || pod("p").on("n").set("/status/phase", "Succeeded");
    let gpu = || asks("1").set("/spec/containers/0/resources/requests/example.com~1gpu", "1");
    let holds = |resource: &str, amount: &str| pod("p").container(&[(resource, amount)]);
    let disk = |amount: &str| holds("ephemeral-storage", amount);
    // (before, after, the events, whether the object before and the one after are shown)
    let cases = [
        (None, bound(pod("p")), "AssignedPodAdd", (false, true)),
        (bound(pod("p")), None, "AssignedPodDelete", (true, false)),
        (bound(pod("p")), Some(ended()), "AssignedPodDelete", (true, false)),
        (Some(ended()), None, "", (false, false)),
        (None, Some(pod("p")), "", (false, false)),
        (Some(pod("p")), None, "", (false, false)),
        (Some(pod("p")), Some(pod("p").label("a", "b")), "", (false, false)),
        (Some(pod("p")), bound(pod("p")), "AssignedPodAdd", (false, true)),
        (bound(pod("p")), bound(pod("p")), "AssignedPodUpdate", (true, true)),
        (bound(pod("p")), bound(pod("p").label("a", "b")), "AssignedPodUpdatePodLabel", (true, true)),
        (bound(asks("2")), bound(asks("1")), "AssignedPodUpdatePodScaleDown", (true, true)),
        (bound(asks("1")), bound(asks("2")), "AssignedPodUpdate", (true, true)),
        (bound(gpu()), bound(asks("1")), "AssignedPodUpdatePodScaleDown", (true, true)),
        (bound(gpu()), bound(gpu()), "AssignedPodUpdate", (true, true)),
        (bound(asks("1")), bound(gpu()), "AssignedPodUpdate", (true, true)),
        (
            bound(holds("memory", "2")),
            bound(holds("memory", "1")),
            "AssignedPodUpdatePodScaleDown",
            (true, true),
        ),
        (bound(holds("memory", "1")), bound(holds("memory", "2")), "AssignedPodUpdate", (true, true)),
        (bound(disk("2")), bound(disk("1")), "AssignedPodUpdatePodScaleDown", (true, true)),
        (bound(disk("1")), bound(disk("2")), "AssignedPodUpdate", (true, true)),
        (
            bound(pod("p")),
            bound(pod("p").toleration(json!({"operator": "Exists"}))),
            "AssignedPodUpdatePodToleration",
            (true, true),
        ),
    ];
    for (i, (before, after, expected, shown)) in cases.into_iter().enumerate() {
        let (before, after) = (before.map(Builder::pod), after.map(Builder::pod));
        let happened = Change::Pod(before.as_deref(), after.as_deref()).happened();
        assert_eq!(labels(&happened.events), expected, "case {i}");
        let Change::Pod(before, after) = happened.change else { panic!("a pod") };
        assert_eq!((before.is_some(), after.is_some()), shown, "case {i}");
    }
}

#[test]
fn what_the_change_of_a_waiting_pod_amounts_to_for_itself() {
    let gated = |gates: Value| pod("p").set("/spec/schedulingGates", gates);
    let claims = |made: Value| pod("p").set("/status/resourceClaimStatuses", made);
    let cases = [
        (pod("p"), pod("p").priority(5), "UnschedulablePodUpdate"),
        (
            gated(json!([{"name": "a"}, {"name": "b"}])),
            gated(json!([{"name": "a"}])),
            "UnschedulablePodUpdate",
        ),
        (gated(json!([{"name": "a"}])), pod("p"), "UnschedulablePodUpdatePodSchedulingGatesEliminated"),
        (pod("p"), claims(json!([{"name": "a"}])), "UnschedulablePodUpdatePodGeneratedResourceClaim"),
        (
            claims(json!([{"name": "a"}])),
            claims(json!([{"name": "a", "resourceClaimName": "b"}])),
            "UnschedulablePodUpdatePodGeneratedResourceClaim",
        ),
        (
            claims(json!([{"name": "a"}])),
            claims(json!([{"name": "a"}])).priority(5),
            "UnschedulablePodUpdate",
        ),
        (
            gated(json!([{"name": "a"}])),
            pod("p").label("a", "b").toleration(json!({"operator": "Exists"})),
            "UnschedulablePodUpdatePodLabel UnschedulablePodUpdatePodSchedulingGatesEliminated \
             UnschedulablePodUpdatePodToleration",
        ),
    ];
    for (before, after, expected) in cases {
        let events = supercargo_framework::changes::pod_events(&before.pod(), &after.pod());
        assert_eq!(labels(&events), expected);
    }
}

#[test]
fn what_happens_to_other_objects() {
    let cases = [
        ("v1", "PersistentVolume", json!({"spec": {}}), "PersistentVolume"),
        ("v1", "PersistentVolumeClaim", json!({"spec": {}}), "PersistentVolumeClaim"),
        ("storage.k8s.io/v1", "StorageClass", json!({"provisioner": "x"}), "storage.k8s.io/StorageClass"),
        ("storage.k8s.io/v1", "CSINode", json!({"spec": {"drivers": []}}), "storage.k8s.io/CSINode"),
        ("storage.k8s.io/v1", "CSIDriver", json!({"spec": {}}), "storage.k8s.io/CSIDriver"),
        (
            "storage.k8s.io/v1",
            "CSIStorageCapacity",
            json!({"storageClassName": "c"}),
            "storage.k8s.io/CSIStorageCapacity",
        ),
        (
            "storage.k8s.io/v1",
            "VolumeAttachment",
            json!({"spec": {"attacher": "x", "nodeName": "n", "source": {}}}),
            "storage.k8s.io/VolumeAttachment",
        ),
        ("v1", "Namespace", json!({}), ""),
        ("v1", "Service", json!({"spec": {}}), ""),
    ];
    for (version, kind, rest, name) in cases {
        let mut value = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}});
        value.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let object = object(value).object();
        for (before, after, action) in [(false, true, "Add"), (true, false, "Delete"), (true, true, "Update")]
        {
            let shown = |there: bool| there.then_some(&object);
            let happened = Change::Other(shown(before), shown(after)).happened();
            let expected = if name.is_empty() { String::new() } else { format!("{name}{action}") };
            assert_eq!(labels(&happened.events), expected);
        }
    }
}

struct Waits(Vec<EventInterest>);

impl Requeue for Waits {
    fn events(&self) -> Vec<EventInterest> {
        self.0.clone()
    }
}

impl PreEnqueue for Waits {
    fn pre_enqueue(&self, _: &QueueView<'_>, _: &Pod) -> Verdict {
        Ok(())
    }
}

fn waits(interests: Vec<EventInterest>) -> Registration {
    define("Waits", move |_| Ok(Waits(interests.clone()))).pre_enqueue().requeue().into()
}

#[test]
fn a_profile_tells_the_events_of_each_plugin() {
    let events = |interests| {
        let profile = Setup::new().with(waits(interests), 0).ready();
        labels(&profile.queue_rules().interests("Waits").events().iter().collect::<Vec<_>>())
    };
    use ActionType::{Add, Update, UpdateNodeTaint};
    assert_eq!(events(vec![]), "");
    assert_eq!(events(vec![EventInterest::new(EventResource::CsiNode, [Add])]), "storage.k8s.io/CSINodeAdd");
    // Who waits for a node also waits for one to lose a taint.
    let node_added = EventInterest::new(EventResource::Node, [Add]);
    assert_eq!(events(vec![node_added.clone()]), "NodeAdd NodeUpdateNodeTaint");
    let looks = EventInterest::new(EventResource::Node, [UpdateNodeTaint]).if_node(|_, _, _| false);
    let profile = Setup::new().with(waits(vec![node_added, looks]), 0).ready();
    let taint = ClusterEvent::new(EventResource::Node, UpdateNodeTaint);
    let change = Change::Node(None, None);
    assert!(!profile.queue_rules().interests("Waits").helps(
        &Cluster::default(),
        taint,
        &pod("p").pod(),
        &change
    ));
    // Any update is every kind of update; any pod is one that is bound or not.
    let updates = EventInterest::new(EventResource::Pod, [Update]);
    assert!(updates.covers(EventResource::AssignedPod, ActionType::UpdatePodLabel));
    assert!(updates.covers(EventResource::UnscheduledPod, ActionType::Update));
    assert!(!updates.covers(EventResource::AssignedPod, Add));
    assert!(
        !EventInterest::new(EventResource::Pod, [ActionType::UpdatePodLabel])
            .covers(EventResource::Pod, Update)
    );
}

#[test]
fn plugins_that_do_not_say_are_helped_by_any_event() {
    let silent = define("Silent", |_| Ok(Waits(vec![]))).pre_enqueue();
    let profile = Setup::new().with(silent, 0).ready();
    let rules = profile.queue_rules();
    for plugin in ["Silent", "Extender"] {
        let events = rules.interests(plugin).events();
        assert!(events.contains(ClusterEvent::new(EventResource::Node, ActionType::UpdateNodeAnnotation)));
        assert!(events.contains(ClusterEvent::new(EventResource::AssignedPod, ActionType::Update)));
        assert!(events.contains(ClusterEvent::new(EventResource::StorageClass, ActionType::Delete)));
    }
    assert!(rules.events().contains(ClusterEvent::new(EventResource::DeviceClass, ActionType::Add)));
    // Those that only score or bind do not count: their refusals are faults.
    assert_eq!(Setup::new().ready().queue_rules().events(), EventSet::default());
}

static BOATS: ApiResource =
    ApiResource { group: "example.com", version: "v1", plural: "boats", kind: "Boat", namespaced: true };

#[test]
fn events_of_custom_kinds_help_those_who_ask_or_read_them() {
    let boat = object(json!({"metadata": {"name": "ark"}})).custom(&BOATS);
    assert_eq!(labels(&Change::Other(None, Some(&boat)).happened().events), "boats.v1.example.comAdd");
    assert_eq!(
        labels(&Change::Other(Some(&boat), Some(&boat)).happened().events),
        "boats.v1.example.comUpdate"
    );

    let boats = EventResource::Custom(&BOATS);
    let launched = EventInterest::new(boats, [ActionType::Add]);
    let asks = define("Asks", move |_| Ok(Waits(vec![launched.clone()]))).pre_enqueue().requeue();
    let reads = define("Reads", |_| Ok(Waits(vec![]))).pre_enqueue().reads(&BOATS);
    let neither = define("Neither", |_| Ok(Waits(vec![]))).pre_enqueue();
    let profile = Setup::new().with(asks, 0).with(reads, 0).with(neither, 0).ready();
    let rules = profile.queue_rules();
    let (added, deleted) =
        (ClusterEvent::new(boats, ActionType::Add), ClusterEvent::new(boats, ActionType::Delete));
    let told = ["Asks", "Reads", "Neither"].map(|plugin| {
        let events = rules.interests(plugin).events();
        (events.contains(added), events.contains(deleted))
    });
    assert_eq!(told, [(true, false), (true, true), (false, false)]);
    let all = rules.events();
    assert!(all.contains(added) && all.iter().any(|event| event == deleted));
    assert_eq!(EventSet::default().union(&all), all);
}
