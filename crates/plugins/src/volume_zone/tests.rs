use serde_json::{Value, json};
use supercargo_framework::{Code, event::Change};
use supercargo_model::testing::{Builder, cluster, node, object, pod};

use super::*;
use supercargo_framework::testing::{filter, verdict};

fn volume(name: &str, labels: Value) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
    }))
}

fn claim(name: &str, spec: Value) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }))
}

fn class(name: &str, mode: Value) -> Builder {
    object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "csi.example.com", "volumeBindingMode": mode,
    }))
}

#[test]
fn labels_of_volumes_and_nodes() {
    type Case<'a> = (&'a str, Value, &'a [(&'a str, &'a str)], bool);
    // (name, the volume's labels, the node's labels, refused)
    let cases: &[Case<'_>] = &[
        ("the volume names no place", json!({"color": "red"}), &[(ZONE, "a")], false),
        ("the node names no place", json!({ZONE: "a"}), &[("color", "red")], false),
        ("the same zone", json!({ZONE: "a"}), &[(ZONE, "a")], false),
        ("another zone", json!({ZONE: "a"}), &[(ZONE, "b")], true),
        ("the node names only its region", json!({ZONE: "a"}), &[(REGION, "r")], true),
        ("one of several zones", json!({ZONE: "a__ b "}), &[(ZONE, "b")], false),
        ("none of several zones", json!({ZONE: "a__b"}), &[(ZONE, "c")], true),
        ("an empty zone in the list makes it unreadable", json!({ZONE: "a__"}), &[(ZONE, "c")], false),
        ("zone and region", json!({ZONE: "a", REGION: "r"}), &[(ZONE, "a"), (REGION, "r")], false),
        ("the zone of another region", json!({ZONE: "a", REGION: "r"}), &[(ZONE, "a"), (REGION, "s")], true),
        ("both by their old names", json!({OLD_ZONE: "a"}), &[(OLD_ZONE, "a")], false),
        ("the volume by its old name", json!({OLD_ZONE: "a"}), &[(ZONE, "a")], false),
        ("the volume by its old name, another region", json!({OLD_REGION: "r"}), &[(REGION, "s")], true),
        ("the node by its old name", json!({ZONE: "a"}), &[(OLD_ZONE, "a")], true),
        ("the node's old name comes first", json!({OLD_ZONE: "a"}), &[(OLD_ZONE, "b"), (ZONE, "a")], true),
    ];
    for (name, labels, of_node, refused) in cases {
        let node = of_node.iter().fold(node("n"), |node, (key, value)| node.label(key, value));
        let cluster = cluster([node, volume("v", labels.clone()), claim("c", json!({"volumeName": "v"}))]);
        let verdicts = filter(&VolumeZone, &cluster, &pod("p").claim("c").pod());
        assert_eq!(verdicts, [if *refused { CONFLICT } else { "ok" }], "{name}");
    }
}

#[test]
fn every_volume_counts() {
    let cluster = cluster([
        node("a").label(ZONE, "a"),
        node("b").label(ZONE, "b"),
        volume("v", json!({ZONE: "a__b"})),
        volume("w", json!({ZONE: "b"})),
        claim("c", json!({"volumeName": "v"})),
        claim("d", json!({"volumeName": "w"})),
    ]);
    let pod = pod("p").claim("c").claim("d").pod();
    assert_eq!(filter(&VolumeZone, &cluster, &pod), [CONFLICT, "ok"]);
    // A configuration may switch PreFilter off.
    let unprepared = verdict(&VolumeZone, &Prepared::nothing(), &cluster, &pod, cluster.node("a").unwrap());
    assert_eq!(unprepared, CONFLICT);
}

#[test]
fn claims_without_a_zone() {
    let classed = |class: &str| json!({"storageClassName": class});
    // (name, the claim's spec, message; empty if the pod is let through)
    let cases = [
        ("unbound, waiting for the pod", classed("late"), ""),
        ("unbound, to be bound at once", classed("soon"), "PersistentVolume had no name"),
        (
            "unbound, of a class without mode",
            classed("bad"),
            "VolumeBindingMode not set for StorageClass \"bad\"",
        ),
        ("unbound, of no known class", classed("x"), "storageclass.storage.k8s.io \"x\" not found"),
        ("unbound, without class", json!({}), "PersistentVolumeClaim had no pv name and storageClass name"),
        ("bound to nothing", json!({"volumeName": "gone"}), "persistentvolume \"gone\" not found"),
    ];
    for (name, spec, message) in cases {
        let cluster = cluster([
            class("late", json!("WaitForFirstConsumer")),
            class("soon", json!("Immediate")),
            class("bad", Value::Null),
            claim("c", spec),
        ]);
        let outcome = VolumeZone.pre_filter(&cluster, &pod("p").claim("c").pod());
        match outcome.err() {
            None => assert_eq!(message, "", "{name}"),
            Some(status) => {
                assert_eq!(status.message(), message, "{name}");
                assert_eq!(status.code, Code::UnschedulableAndUnresolvable, "{name}");
            }
        }
    }
}

#[test]
fn claims_that_cannot_be_found() {
    let message = |claim: &str| {
        let outcome = VolumeZone.pre_filter(&cluster([]), &pod("p").claim(claim).pod());
        outcome.err().unwrap().message()
    };
    assert_eq!(message("c"), "persistentvolumeclaim \"c\" not found");
    assert_eq!(message(""), "PersistentVolumeClaim had no name");
}

#[test]
fn skips_without_places() {
    let cluster = cluster([volume("v", json!({})), claim("c", json!({"volumeName": "v"}))]);
    let ephemeral = pod("e").set("/spec/volumes/-", json!({"name": "v", "ephemeral": {}}));
    for pod in [pod("plain"), pod("placeless").claim("c"), ephemeral] {
        assert!(matches!(VolumeZone.pre_filter(&cluster, &pod.pod()), Ok(PreFilterOutcome::Skip)));
    }
}

#[test]
fn events() {
    let events = VolumeZone.events();
    let waiting = pod("p").claim("c").pod();
    let helps = |resource, action, before: Option<Builder>, after: Builder| {
        let (before, after) = (before.map(Builder::object), after.object());
        let change = Change::Other(before.as_ref(), Some(&after));
        events.iter().any(|interest| {
            interest.helps(&supercargo_model::Cluster::default(), resource, action, &waiting, &change)
        })
    };
    let class_added = |mode| helps(EventResource::StorageClass, ActionType::Add, None, class("s", mode));
    assert!(class_added(json!("WaitForFirstConsumer")));
    assert!(!class_added(json!("Immediate")));
    assert!(!class_added(Value::Null));
    let claim_changed = |claim| helps(EventResource::PersistentVolumeClaim, ActionType::Update, None, claim);
    assert!(claim_changed(claim("c", json!({}))));
    assert!(!claim_changed(claim("d", json!({}))));
    assert!(!claim_changed(claim("c", json!({})).namespace("other")));
    let place = |zone: &str| volume("v", json!({ZONE: zone}));
    assert!(helps(EventResource::PersistentVolume, ActionType::Add, None, place("a")));
    assert!(helps(EventResource::PersistentVolume, ActionType::Update, Some(place("b")), place("a")));
    assert!(!helps(EventResource::PersistentVolume, ActionType::Update, Some(place("a__b")), place("b__a")));
}
