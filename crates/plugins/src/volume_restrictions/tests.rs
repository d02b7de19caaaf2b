use serde_json::{Value, json};
use supercargo_framework::{Code, event::Change};
use supercargo_model::testing::{Builder, cluster, node, object, pod};

use super::*;
use supercargo_framework::testing::{filter, verdict};

fn with_disk(name: &str, disk: &Value) -> Builder {
    let mut volume = disk.clone();
    volume["name"] = "v".into();
    pod(name).set("/spec/volumes/-", volume)
}

fn claim(name: &str, mode: &str) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"accessModes": [mode]},
    }))
}

#[test]
fn disks_on_one_node() {
    let gce =
        |name: &str, read_only: bool| json!({"gcePersistentDisk": {"pdName": name, "readOnly": read_only}});
    let aws = |id: &str| json!({"awsElasticBlockStore": {"volumeID": id, "readOnly": true}});
    let iscsi = |iqn: &str, read_only: bool| json!({"iscsi": {"iqn": iqn, "readOnly": read_only}});
    let rbd = |monitors: &[&str], pool: &str, read_only: bool| json!({"rbd": {"monitors": monitors, "pool": pool, "image": "i", "readOnly": read_only}});
    // (name, the pod's disk, the disk of the pod on the node, refused)
    let cases = [
        ("the same Google disk", gce("d", false), gce("d", false), true),
        ("one of two writes", gce("d", true), gce("d", false), true),
        ("both only read", gce("d", true), gce("d", true), false),
        ("another Google disk", gce("d", false), gce("e", false), false),
        ("the same Amazon disk, even to read", aws("d"), aws("d"), true),
        ("another Amazon disk", aws("d"), aws("e"), false),
        ("the same iSCSI target", iscsi("q", false), iscsi("q", true), true),
        ("an iSCSI target to read", iscsi("q", true), iscsi("q", true), false),
        ("a Ceph monitor in common", rbd(&["a", "b"], "p", false), rbd(&["c", "b"], "p", false), true),
        ("no Ceph monitor in common", rbd(&["a", "b"], "p", false), rbd(&["c"], "p", false), false),
        ("another Ceph pool", rbd(&["a"], "p", false), rbd(&["a"], "q", false), false),
        ("a Ceph image to read", rbd(&["a"], "p", true), rbd(&["a"], "p", true), false),
        ("disks of two kinds", gce("d", false), aws("d"), false),
        (
            "a disk that anybody may share",
            json!({"cinder": {"volumeID": "d"}}),
            json!({"cinder": {"volumeID": "d"}}),
            false,
        ),
    ];
    for (name, wanted, present, refused) in cases {
        let cluster = cluster([node("a"), node("b"), with_disk("present", &present).on("a")]);
        let verdicts = filter(&VolumeRestrictions, &cluster, &with_disk("p", &wanted).pod());
        let expected = if refused { DISK_IN_USE } else { "ok" };
        assert_eq!(verdicts, [expected, "ok"], "{name}");
    }
}

#[test]
fn claims_of_a_single_pod() {
    let user = |name: &str| pod(name).claim("c");
    // (name, access mode, the pod that uses the claim, refused)
    let cases = [
        ("in use", "ReadWriteOncePod", user("u").on("a"), true),
        ("in use in another namespace", "ReadWriteOncePod", user("u").on("a").namespace("other"), false),
        ("in use on a node that is gone", "ReadWriteOncePod", user("u").on("gone"), false),
        ("another claim is in use", "ReadWriteOncePod", pod("u").claim("d").on("a"), false),
        ("several pods may use it", "ReadWriteOnce", user("u").on("a"), false),
    ];
    for (name, mode, other, refused) in cases {
        let cluster = cluster([node("a"), node("b"), claim("c", mode), other]);
        let expected = if refused { CLAIM_IN_USE } else { "ok" };
        assert_eq!(filter(&VolumeRestrictions, &cluster, &user("p").pod()), [expected; 2], "{name}");
    }
}

#[test]
fn a_claim_that_does_not_exist() {
    let status = VolumeRestrictions.pre_filter(&cluster([]), &pod("p").claim("c").pod()).err().unwrap();
    assert_eq!(status.code, Code::UnschedulableAndUnresolvable);
    assert_eq!(status.message(), "persistentvolumeclaim \"c\" not found");
}

#[test]
fn evicting_could_help() {
    let cluster = cluster([node("a"), claim("c", "ReadWriteOncePod"), pod("u").claim("c").on("a")]);
    let pod = pod("p").claim("c").pod();
    let Ok(PreFilterOutcome::Go { prepared, .. }) = VolumeRestrictions.pre_filter(&cluster, &pod) else {
        panic!("the claim is in use");
    };
    let node = cluster.node("a").unwrap();
    let status = VolumeRestrictions.filter(&prepared, &cluster, &pod, node).unwrap_err();
    assert_eq!(status.code, Code::Unschedulable);
}

#[test]
fn skips_without_disks_and_claims_in_use() {
    let cluster = cluster([node("a"), claim("c", "ReadWriteOncePod")]);
    for pod in [pod("plain"), pod("unused").claim("c"), with_disk("other", &json!({"emptyDir": {}}))] {
        let outcome = VolumeRestrictions.pre_filter(&cluster, &pod.pod());
        assert!(matches!(outcome, Ok(PreFilterOutcome::Skip)));
    }
}

#[test]
fn pods_come_and_go() {
    let user = pod("u").claim("c").on("a");
    let cluster = cluster([node("a"), claim("c", "ReadWriteOncePod"), user.clone()]);
    let pod_to_place = pod("p").claim("c").pod();
    let Ok(PreFilterOutcome::Go { mut prepared, .. }) =
        VolumeRestrictions.pre_filter(&cluster, &pod_to_place)
    else {
        panic!("the claim is in use");
    };
    let node = cluster.node("a").unwrap();
    let check = |prepared: &Prepared| verdict(&VolumeRestrictions, prepared, &cluster, &pod_to_place, node);
    assert_eq!(check(&prepared), CLAIM_IN_USE); // 1 use
    VolumeRestrictions.remove_pod(&mut prepared, &pod_to_place, &user.clone().pod(), node).unwrap();
    assert_eq!(check(&prepared), "ok"); // 1 − 1
    VolumeRestrictions.add_pod(&mut prepared, &pod_to_place, &user.pod(), node).unwrap();
    assert_eq!(check(&prepared), CLAIM_IN_USE); // 1 − 1 + 1
    let bystander = pod("b").claim("d").pod();
    VolumeRestrictions.remove_pod(&mut prepared, &pod_to_place, &bystander, node).unwrap();
    assert_eq!(check(&prepared), CLAIM_IN_USE); // 1 − 0
    // As kube-scheduler has it: the same name in another namespace counts here.
    let namesake = pod("n").claim("c").namespace("other").pod();
    VolumeRestrictions.remove_pod(&mut prepared, &pod_to_place, &namesake, node).unwrap();
    assert_eq!(check(&prepared), "ok"); // 1 − 1
}

#[test]
fn only_pods_that_stood_in_the_way_help() {
    let events = VolumeRestrictions.events();
    let disk = json!({"awsElasticBlockStore": {"volumeID": "d"}});
    let waiting = with_disk("p", &disk).claim("c").pod();
    let helps = |deleted: Builder| {
        let deleted = deleted.pod();
        events[0].helps(
            &supercargo_model::Cluster::default(),
            EventResource::Pod,
            ActionType::Delete,
            &waiting,
            &Change::Pod(Some(&deleted), None),
        )
    };
    assert!(helps(with_disk("d", &disk)));
    assert!(helps(pod("d").claim("c")));
    assert!(!helps(pod("d").claim("other")));
    assert!(!helps(pod("d").claim("c").namespace("other")));
    assert!(!helps(pod("d")));
}

#[test]
fn only_a_claim_of_the_pod_helps() {
    let events = VolumeRestrictions.events();
    let waiting = pod("p").claim("c").pod();
    let helps = |added: Builder| {
        let added = added.object();
        let change = Change::Other(None, Some(&added));
        events[2].helps(
            &supercargo_model::Cluster::default(),
            EventResource::PersistentVolumeClaim,
            ActionType::Add,
            &waiting,
            &change,
        )
    };
    assert!(helps(claim("c", "ReadWriteOnce")));
    assert!(!helps(claim("d", "ReadWriteOnce")));
    assert!(!helps(claim("c", "ReadWriteOnce").namespace("other")));
}
