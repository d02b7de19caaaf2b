//! Volumes that are given away before the server knows it.

use supercargo_framework::assumed::{AssumedObjects, Restored};
use supercargo_model::{
    Key, Name,
    object::{Kind, Object},
};

use super::*;

/// Two nodes, one volume of 1Gi, a class whose volumes are made, and three claims: p and q want the volume, made wants
/// one to be made.
fn start() -> Cluster {
    cluster([
        node("a"),
        node("b"),
        local(),
        class("csi", "csi.example.com"),
        volume("v", "1Gi"),
        claim("p", "1Gi"),
        claim("q", "1Gi"),
        claim("made", "1Gi").set("/spec/storageClassName", "csi"),
    ])
}

/// Assumes what is planned for a pod on a node, under a uid.
fn assume(
    assumed: &mut AssumedObjects,
    cluster: &mut Cluster,
    pod: &Builder,
    on: &str,
    uid: &str,
) -> Result<(), Status> {
    let plan = plan_for(cluster, pod, on)?;
    carry_out(assumed, cluster, &plan, on, uid)
}

fn carry_out(
    assumed: &mut AssumedObjects,
    cluster: &mut Cluster,
    plan: &VolumePlan,
    on: &str,
    uid: &str,
) -> Result<(), Status> {
    let objects = super::super::assumed::as_planned(cluster, plan, &Name::from(on))?;
    let mut cycle = ReserveCycle::new(cluster, assumed, uid.into());
    objects.into_iter().for_each(|object| cycle.assume(object));
    Ok(())
}

fn plan_for(cluster: &Cluster, pod: &Builder, on: &str) -> Result<VolumePlan, Status> {
    super::plan(cluster, &pod.clone().pod(), cluster.node(on).unwrap())
}

/// As the server tells it.
fn tell(assumed: &mut AssumedObjects, cluster: &mut Cluster, object: Builder) {
    let object = object.object();
    assumed.server_tells(object.kind(), &object.key());
    cluster.put(object);
}

#[test]
fn the_next_pod_sees_a_volume_as_taken() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    assume(&mut assumed, &mut cluster, &claims(&["p"]), "a", "one").unwrap();
    let volume = cluster.volume("v").unwrap();
    assert_eq!(volume.claim.as_ref().unwrap().uid.as_deref(), Some("p"));
    assert!(volume.annotations.has(annotations::BOUND_BY_CONTROLLER));
    assert_eq!(plan_for(&cluster, &claims(&["q"]), "a").unwrap_err().message(), NOTHING_TO_BIND);
    // A pod that shares the claim gets the same volume.
    assert_eq!(&*plan_for(&cluster, &claims(&["p"]), "b").unwrap().bind[0].0, "v");

    let restored = assumed.restore(&mut cluster, "one");
    assert!(plan_for(&cluster, &claims(&["q"]), "a").is_ok());
    assert!(assumed.is_empty());
    let [Restored { before: Object::PersistentVolume(before), after: Some(Object::PersistentVolume(after)) }] =
        &restored[..]
    else {
        panic!("{restored:?}");
    };
    assert!(before.claim.is_some() && after.claim.is_none());
    assert_eq!(Some(after), start().volume("v"));
}

#[test]
fn a_claim_whose_volume_is_made_is_tied_to_the_node() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    assume(&mut assumed, &mut cluster, &claims(&["made"]), "b", "one").unwrap();
    let said = |cluster: &Cluster| filter(&VolumeBinding::default(), cluster, &claims(&["made"]).pod());
    assert_eq!(said(&cluster), [NOTHING_TO_BIND, "ok"]);
    assert_eq!(assumed.restore(&mut cluster, "one").len(), 1);
    assert_eq!(said(&cluster), ["ok", "ok"]);
}

#[test]
fn what_the_server_tells_wins_and_is_not_taken_back() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    assume(&mut assumed, &mut cluster, &claims(&["p"]), "a", "one").unwrap();
    let written = volume("v", "1Gi")
        .set("/spec/claimRef", json!({"namespace": "default", "name": "p", "uid": "p"}))
        .set("/status/phase", "Bound");
    tell(&mut assumed, &mut cluster, written);
    assert!(assumed.is_empty());
    assert!(assumed.restore(&mut cluster, "one").is_empty());
    assert_eq!(&*cluster.volume("v").unwrap().phase, "Bound");
}

#[test]
fn other_news_do_not_end_it() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    assume(&mut assumed, &mut cluster, &claims(&["p"]), "a", "one").unwrap();
    tell(&mut assumed, &mut cluster, claim("q", "1Gi"));
    tell(&mut assumed, &mut cluster, node("v"));
    assert_eq!(assumed.len(), 1);
    assert!(cluster.volume("v").unwrap().claim.is_some());
}

#[test]
fn a_deleted_volume_does_not_come_back() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    assume(&mut assumed, &mut cluster, &claims(&["p"]), "a", "one").unwrap();
    let key = Key::new("", "v");
    assumed.server_tells(Kind::PersistentVolume, &key);
    cluster.remove(Kind::PersistentVolume, &key);
    assert!(assumed.restore(&mut cluster, "one").is_empty());
    assert!(cluster.volume("v").is_none());
}

#[test]
fn a_shared_claim_stays_while_one_pod_needs_it() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    let pod = claims(&["made", "p"]);
    assume(&mut assumed, &mut cluster, &pod, "a", "one").unwrap();
    assume(&mut assumed, &mut cluster, &pod, "a", "two").unwrap();
    assert!(assumed.restore(&mut cluster, "one").is_empty());
    assert!(cluster.volume("v").unwrap().claim.is_some());
    assert_eq!(assumed.restore(&mut cluster, "two").len(), 2);
    assert_eq!(cluster.volume("v"), start().volume("v"));
    let key = Key::new("default", "made");
    assert_eq!(cluster.claim(&key), start().claim(&key));
}

#[test]
fn an_old_assumption_does_not_undo_a_new_one() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    assume(&mut assumed, &mut cluster, &claims(&["p"]), "a", "one").unwrap();
    // The server tells something that was not ours, and so the volume is given away anew.
    tell(&mut assumed, &mut cluster, volume("v", "1Gi").label("disk", "ssd"));
    assume(&mut assumed, &mut cluster, &claims(&["q"]), "a", "two").unwrap();
    assert!(assumed.restore(&mut cluster, "one").is_empty());
    assert_eq!(cluster.volume("v").unwrap().claim.as_ref().unwrap().name.as_deref(), Some("q"));
}

#[test]
fn a_plan_that_no_longer_holds_changes_nothing() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    let pod = claims(&["made", "p"]);
    let plan = plan_for(&cluster, &pod, "a").unwrap();
    let refused = |cluster: &mut Cluster, assumed: &mut AssumedObjects| {
        let before = cluster.volume("v").cloned();
        let status = carry_out(assumed, cluster, &plan, "a", "one").unwrap_err();
        assert_eq!(cluster.volume("v").cloned(), before);
        status.message()
    };
    let anew = || claim("made", "1Gi").set("/metadata/uid", "anew").object();
    cluster.put(anew());
    assert_eq!(
        refused(&mut cluster, &mut assumed),
        "could not find v1.PersistentVolumeClaim \"default/made\""
    );
    assume(&mut assumed, &mut cluster, &claims(&["q"]), "a", "other").unwrap();
    assert_eq!(
        refused(&mut cluster, &mut assumed),
        "persistentvolume \"v\" is bound to another claim already"
    );
}

#[test]
fn a_volume_that_is_bound_as_planned_is_not_ahead() {
    let (mut cluster, mut assumed) = (start(), AssumedObjects::default());
    cluster.put(
        volume("v", "1Gi")
            .set("/spec/claimRef", json!({"namespace": "default", "name": "p", "uid": "p"}))
            .object(),
    );
    assume(&mut assumed, &mut cluster, &claims(&["p"]), "a", "one").unwrap();
    assert!(assumed.is_empty());
    assert!(assumed.restore(&mut cluster, "one").is_empty());
}
