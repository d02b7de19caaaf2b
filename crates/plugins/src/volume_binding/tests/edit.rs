//! What is written into volumes and claims, and when it is not.

use supercargo_model::Key;

use super::super::{
    edit::{check_free, give_away, select_node},
    plan::ClaimId,
};
use super::*;

fn id() -> ClaimId {
    ClaimId { key: Key::new("default", "c"), uid: "u1".into() }
}

/// A claim as the server has it.
fn claim_json() -> Value {
    json!({
        "metadata": {"name": "c", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
        "spec": {"volumeName": ""},
    })
}

fn reference(namespace: &str, name: &str, uid: &str) -> Value {
    json!({"namespace": namespace, "name": name, "uid": uid})
}

#[test]
fn a_volume_is_given_to_a_claim() {
    let taken = || Err(r#"persistentvolume "v" is bound to another claim already"#.to_owned());
    // (who the volume is for, whether it changes)
    let cases = [
        (Value::Null, Ok(true)),
        (reference("default", "c", "u1"), Ok(false)),
        // Meant for the claim before that was made.
        (reference("default", "c", ""), Ok(true)),
        (json!({"namespace": "default", "name": "c"}), Ok(true)),
        (reference("default", "c", "u2"), taken()),
        (reference("default", "d", "u1"), taken()),
        (reference("default", "d", ""), taken()),
        (reference("other", "c", "u1"), taken()),
        (reference("other", "c", ""), taken()),
    ];
    for (claim_ref, expected) in cases {
        let before = json!({"metadata": {"name": "v"}, "spec": {"claimRef": claim_ref, "unknown": 1}});
        let mut volume = before.clone();
        assert_eq!(give_away(&mut volume, &claim_json()), expected, "{claim_ref}");
        if expected != Ok(true) {
            assert_eq!(volume, before, "{claim_ref}: nothing is written");
            continue;
        }
        let given = &volume["spec"]["claimRef"];
        assert_eq!((&given["uid"], &given["resourceVersion"]), (&json!("u1"), &json!("7")), "{claim_ref}");
        assert_eq!((&given["namespace"], &given["name"]), (&json!("default"), &json!("c")), "{claim_ref}");
        assert_eq!(volume["spec"]["unknown"], 1);
        // Only where nobody was named before, it was the scheduler who chose.
        let by_us = &volume["metadata"]["annotations"]["pv.kubernetes.io/bound-by-controller"];
        assert_eq!(by_us.is_null(), !claim_ref.is_null(), "{claim_ref}");
    }
}

#[test]
fn what_has_not_the_form_of_a_volume_is_not_written() {
    let no_volume = || Err("what the server sent is no PersistentVolume".to_owned());
    let cases = [
        (json!({"metadata": {"name": "v"}, "spec": {}}), Ok(true)),
        (json!({"metadata": {"name": "v", "annotations": {}}, "spec": {}}), Ok(true)),
        (json!({"metadata": {"name": "v", "annotations": null}, "spec": {}}), Ok(true)),
        (json!({"metadata": {"name": "v", "annotations": 1}, "spec": {}}), no_volume()),
        (json!({"metadata": {"name": "v"}}), no_volume()),
        (json!({"metadata": {"name": "v"}, "spec": [1]}), no_volume()),
        (json!({"metadata": {"name": 1}, "spec": {}}), no_volume()),
        (
            json!({"metadata": {"name": "v", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {}}),
            Err(r#"persistentvolume "v" is being deleted"#.to_owned()),
        ),
    ];
    for (mut volume, expected) in cases {
        let written = volume.to_string();
        assert_eq!(give_away(&mut volume, &claim_json()), expected, "{written}");
    }
}

#[test]
fn a_claim_is_sent_to_a_node_once() {
    let with = |path: &str, value: Value| {
        let mut claim = claim_json();
        *claim.pointer_mut(path).expect("it has that") = value;
        claim
    };
    let annotated = |annotations: Value| {
        let mut claim = claim_json();
        claim["metadata"]["annotations"] = annotations;
        claim
    };
    let selected = |node: &str| annotated(json!({"volume.kubernetes.io/selected-node": node}));
    let mut going = claim_json();
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    let why = |why: &str| Err(format!("persistentvolumeclaim \"c\" {why}"));
    // (the claim, whether it changes, whether it can get the volume v)
    let cases = [
        (claim_json(), Ok(true), Ok(())),
        (annotated(json!({"a": "b"})), Ok(true), Ok(())),
        (selected("n"), Ok(false), Ok(())),
        (selected("m"), why("has been given to node \"m\""), Ok(())),
        (with("/spec/volumeName", "v".into()), why("has been bound to persistentvolume \"v\""), Ok(())),
        (
            with("/spec/volumeName", "w".into()),
            why("has been bound to persistentvolume \"w\""),
            why("has been bound to persistentvolume \"w\"").map(drop),
        ),
        (with("/metadata/uid", "u2".into()), why("has been made anew"), why("has been made anew").map(drop)),
        (going, why("is being deleted"), why("is being deleted").map(drop)),
    ];
    for (before, changes, free) in cases {
        let mut claim = before.clone();
        assert_eq!(select_node(&mut claim, &id(), "n"), changes, "{before}");
        let selected = &claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
        match changes {
            Ok(_) => assert_eq!(selected, "n", "{before}"),
            Err(_) => assert_eq!(claim, before, "nothing is written"),
        }
        assert_eq!(check_free(&before, &id(), "v"), free, "{before}");
    }
}
