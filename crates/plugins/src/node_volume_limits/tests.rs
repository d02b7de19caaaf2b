use serde_json::{Value, json};
use supercargo_framework::{Code, event::Change};
use supercargo_model::testing::{Builder, cluster, node, object, pod};

use super::*;
use supercargo_framework::testing::filter;

const DRIVER: &str = "csi.example.com";
const EBS: &str = "ebs.csi.aws.com";

fn csi_node(drivers: &[(&str, Option<i32>)]) -> Builder {
    let drivers: Vec<Value> = (drivers.iter())
        .map(|(name, limit)| json!({"name": name, "allocatable": {"count": limit}}))
        .collect();
    object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
        "metadata": {"name": "n"}, "spec": {"drivers": drivers},
    }))
}

fn claim(name: &str, spec: Value) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    }))
}

fn volume(name: &str, spec: Value) -> Builder {
    object(json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}))
}

/// A claim bound to a volume of a driver, all by the same name.
fn bound(name: &str, driver: &str) -> [Builder; 2] {
    let csi = json!({"csi": {"driver": driver, "volumeHandle": name}});
    [claim(name, json!({"volumeName": name})), volume(name, csi)]
}

fn class(name: &str, provisioner: &str) -> Builder {
    object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name}, "provisioner": provisioner,
    }))
}

fn attachment(name: &str, attacher: &str, volume: &str) -> Builder {
    object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": {"name": name},
        "spec": {"attacher": attacher, "nodeName": "n", "source": {"persistentVolumeName": volume}},
    }))
}

/// A pod with these claims.
fn claims(name: &str, claims: &[&str]) -> Builder {
    claims.iter().fold(pod(name), |pod, claim| pod.claim(claim))
}

fn disk(name: &str, disk: Value) -> Builder {
    let mut volume = disk;
    volume["name"] = "v".into();
    pod(name).set("/spec/volumes/-", volume)
}

/// What node `n` says to a pod, in a cluster with volumes a, b and c of the driver and x of another.
fn said(pod: &Builder, others: impl IntoIterator<Item = Builder>) -> String {
    let volumes =
        [bound("a", DRIVER), bound("b", DRIVER), bound("c", DRIVER), bound("x", "other.example.com")];
    let cluster = cluster(volumes.into_iter().flatten().chain([node("n")]).chain(others));
    filter(&NodeVolumeLimits::default(), &cluster, &pod.clone().pod()).concat()
}

#[test]
fn limits_by_driver() {
    let limited = |limit| csi_node(&[(DRIVER, Some(limit))]);
    type Case<'a> = (&'a str, &'a [&'a str], &'a [&'a str], Builder, bool);
    // (name, the pod's claims, the claims of a pod on the node, the node's limits, refused)
    let cases: &[Case<'_>] = &[
        ("0 + 2 = 2", &["a", "b"], &[], limited(2), false),
        ("1 + 2 > 2", &["a", "b"], &["c"], limited(2), true),
        ("1 + 1 = 2: a volume in common counts once", &["a", "b"], &["a"], limited(2), false),
        ("the same claim twice counts once", &["a", "a"], &[], limited(1), false),
        ("0 + 1 > 0", &["a"], &[], limited(0), true),
        ("nothing new, though the limit is exceeded", &["a"], &["a", "b"], limited(1), false),
        ("other drivers' volumes do not count", &["a"], &["x"], limited(1), false),
        ("other drivers' limits do not count", &["x"], &["a"], limited(1), false),
        ("no limit given", &["a", "b"], &["c"], csi_node(&[(DRIVER, None)]), false),
        ("the driver is not on the node", &["a"], &[], csi_node(&[]), false),
    ];
    for (name, wanted, present, limits, refused) in cases {
        let verdict = said(&claims("p", wanted), [limits.clone(), claims("q", present).on("n")]);
        assert_eq!(verdict, if *refused { LIMIT_EXCEEDED } else { "ok" }, "{name}");
    }
    assert_eq!(said(&claims("p", &["a", "b", "c"]), []), "ok", "no CSINode, no limits");
}

#[test]
fn evicting_could_help() {
    let cluster = cluster(bound("a", DRIVER).into_iter().chain([node("n"), csi_node(&[(DRIVER, Some(0))])]));
    let pod = pod("p").claim("a").pod();
    // A configuration may switch PreFilter off.
    let status =
        NodeVolumeLimits::default().filter(&Prepared::nothing(), &cluster, &pod, cluster.node("n").unwrap());
    assert_eq!(status.unwrap_err().code, Code::Unschedulable);
}

#[test]
fn attachments_that_no_pod_uses() {
    let limit = csi_node(&[(DRIVER, Some(2))]);
    let wants = |claim| claims("p", &[claim]);
    // 1 attached + 1 new = 2
    assert_eq!(said(&wants("a"), [limit.clone(), attachment("1", DRIVER, "b")]), "ok");
    // 2 attached + 1 new > 2
    let two = [attachment("1", DRIVER, "b"), attachment("2", DRIVER, "c")];
    assert_eq!(said(&wants("a"), [limit.clone()].into_iter().chain(two.clone())), LIMIT_EXCEEDED);
    // b is both attached and in use, and counts once: 2 + 1 > 2 but 1 + 1 = 2
    let user = claims("q", &["b"]).on("n");
    assert_eq!(said(&wants("a"), [limit.clone(), user, attachment("1", DRIVER, "b")]), "ok");
    // The wanted volume is attached already, and counts as new all the same: 2 + 1 > 2
    assert_eq!(said(&wants("b"), [limit.clone()].into_iter().chain(two)), LIMIT_EXCEEDED);
    // Without a CSI volume, an attachment says nothing.
    let empty = [attachment("1", DRIVER, "gone"), attachment("2", "", "b"), attachment("3", "other", "c")];
    assert_eq!(said(&claims("p", &["a", "b"]), [limit].into_iter().chain(empty)), "ok");
}

#[test]
fn volumes_yet_to_be_made() {
    let unbound = |name, class: &str| claim(name, json!({"storageClassName": class}));
    let classes = || {
        [
            class("csi", DRIVER),
            class("ebs", "kubernetes.io/aws-ebs"),
            class("vm", "kubernetes.io/vsphere-volume"),
        ]
    };
    let limits = || csi_node(&[(DRIVER, Some(1)), (EBS, Some(1)), ("csi.vsphere.vmware.com", Some(0))]);
    let said = |wanted: &[&str]| {
        let volumes =
            [unbound("c1", "csi"), unbound("c2", "csi"), unbound("e1", "ebs"), unbound("e2", "ebs")];
        let others = [unbound("v1", "vm"), unbound("u1", "unknown"), claim("n1", json!({}))];
        let prebound = claim("p1", json!({"volumeName": "gone", "storageClassName": "csi"}));
        let objects = volumes.into_iter().chain(others).chain(classes()).chain([prebound, limits()]);
        super::tests::said(&claims("p", wanted), objects)
    };
    assert_eq!(said(&["c1"]), "ok"); // 1 of 1
    assert_eq!(said(&["c1", "c2"]), LIMIT_EXCEEDED); // 2 of 1
    assert_eq!(said(&["c1", "p1"]), LIMIT_EXCEEDED); // its volume is missing, so its class counts: 2 of 1
    assert_eq!(said(&["e1"]), "ok");
    assert_eq!(said(&["e1", "e2"]), LIMIT_EXCEEDED); // of the driver in the plugin's place: 2 of 1
    assert_eq!(said(&["v1", "u1", "n1"]), "ok"); // not handed over; no known class; no class
}

#[test]
fn disks_of_the_way_of_old() {
    let ebs = |id: &str| json!({"awsElasticBlockStore": {"volumeID": id}});
    let limit = || csi_node(&[(EBS, Some(1))]);
    // 0 + 1 = 1; 1 + 1 > 1; the same volume, by another spelling
    assert_eq!(said(&disk("p", ebs("vol-1")), [limit()]), "ok");
    assert_eq!(said(&disk("p", ebs("vol-1")), [limit(), disk("q", ebs("vol-2")).on("n")]), LIMIT_EXCEEDED);
    assert_eq!(said(&disk("p", ebs("vol-1")), [limit(), disk("q", ebs("aws://z/vol-1")).on("n")]), "ok");
    // A persistent volume of the same disk.
    let persistent = || [claim("e", json!({"volumeName": "e"})), volume("e", ebs("vol-1"))];
    let objects = || persistent().into_iter().chain([limit()]);
    assert_eq!(said(&disk("p", ebs("vol-1")), objects().chain([claims("q", &["e"]).on("n")])), "ok");
    assert_eq!(
        said(&disk("p", ebs("vol-2")), objects().chain([claims("q", &["e"]).on("n")])),
        LIMIT_EXCEEDED
    );
    // Without a CSINode nothing is handed over, not even a disk that cannot be.
    assert_eq!(said(&disk("p", ebs("aws://z/x")), []), "ok");
    assert_eq!(
        said(&disk("p", ebs("aws://z/x")), [limit()]),
        "converting volume(v) from inline to csi: failed to translate Kubernetes ID to EBS Volume ID \
         Invalid format for AWS volume (aws://z/x)"
    );
    // vSphere's are not handed over.
    let vsphere = csi_node(&[("csi.vsphere.vmware.com", Some(0))]);
    assert_eq!(said(&disk("p", json!({"vsphereVolume": {"volumePath": "v"}})), [vsphere]), "ok");
}

#[test]
fn ephemeral_volumes() {
    let ephemeral = |name| disk(name, json!({"ephemeral": {}}));
    let class = || class("csi", DRIVER);
    let made_for = |owner| claim("p-v", json!({"storageClassName": "csi"})).owner("v1", "Pod", owner);
    let limit = |limit| csi_node(&[(DRIVER, Some(limit))]);
    assert_eq!(said(&ephemeral("p"), [class(), made_for("p"), limit(1)]), "ok");
    assert_eq!(said(&ephemeral("p"), [class(), made_for("p"), limit(0)]), LIMIT_EXCEEDED);
    let stolen = "PVC default/p-v was not created for pod default/p (pod is not owner)";
    assert_eq!(said(&ephemeral("p"), [class(), made_for("q"), limit(1)]), stolen);
    // Something is wrong with a pod on the node.
    let objects = [class(), made_for("q"), limit(1), ephemeral("p").on("n")];
    assert_eq!(said(&claims("r", &["a"]), objects), stolen);
}

#[test]
fn missing_claims() {
    let cluster = cluster([node("n"), csi_node(&[(DRIVER, Some(0))])]);
    let status = |claim| {
        let pod = pod("p").claim(claim).pod();
        let node = cluster.node("n").unwrap();
        NodeVolumeLimits::default().filter(&Prepared::nothing(), &cluster, &pod, node).unwrap_err()
    };
    let missing = status("c");
    assert_eq!(missing.code, Code::UnschedulableAndUnresolvable);
    assert_eq!(missing.message(), "looking up PVC default/c: persistentvolumeclaim \"c\" not found");
    let nameless = status("");
    assert_eq!(nameless.code, Code::Error);
    assert_eq!(nameless.message(), "PersistentVolumeClaim had no name");
    // A pod on the node may well have lost its claim.
    let objects = [csi_node(&[(DRIVER, Some(1))]), pod("q").claim("gone").on("n")];
    assert_eq!(said(&claims("p", &["a"]), objects), "ok");
}

#[test]
fn skips_what_is_never_attached() {
    let skips = |pod: Builder| {
        matches!(NodeVolumeLimits::default().pre_filter(&cluster([]), &pod.pod()), Ok(PreFilterOutcome::Skip))
    };
    assert!(skips(pod("p")));
    assert!(skips(disk("p", json!({"emptyDir": {}}))));
    assert!(skips(disk("p", json!({"csi": {"driver": DRIVER}}))));
    assert!(skips(disk("p", json!({"iscsi": {"iqn": "q"}}))));
    assert!(!skips(disk("p", json!({"ephemeral": {}}))));
    assert!(!skips(disk("p", json!({"vsphereVolume": {"volumePath": "v"}}))));
    assert!(!skips(pod("p").claim("c")));
}

#[test]
fn events_about_objects() {
    let events = NodeVolumeLimits::default().events();
    let helps = |pod: Builder, resource, action, before: Option<Builder>, after: Option<Builder>| {
        let (before, after) = (before.map(Builder::object), after.map(Builder::object));
        let change = Change::Other(before.as_ref(), after.as_ref());
        let pod = pod.pod();
        events.iter().any(|interest| {
            interest.helps(&supercargo_model::Cluster::default(), resource, action, &pod, &change)
        })
    };
    let waiting = || pod("p").claim("c").set("/spec/volumes/-", json!({"name": "v", "ephemeral": {}}));
    let limit = |before, after| {
        let node = |limit| Some(csi_node(&[(DRIVER, limit)]));
        helps(waiting(), EventResource::CsiNode, ActionType::Update, node(before), node(after))
    };
    assert!(limit(Some(1), Some(2)));
    assert!(!limit(Some(2), Some(1)));
    assert!(!limit(Some(1), None)); // as kube-scheduler has it: no limit reads as 0
    assert!(limit(None, Some(1)));
    assert!(helps(waiting(), EventResource::CsiNode, ActionType::Add, None, Some(csi_node(&[]))));
    let added =
        |claim| helps(waiting(), EventResource::PersistentVolumeClaim, ActionType::Add, None, Some(claim));
    assert!(added(claim("c", json!({}))));
    assert!(added(claim("p-v", json!({}))));
    assert!(!added(claim("d", json!({}))));
    assert!(!added(claim("c", json!({})).namespace("other")));
    let detached = |pod, attacher| {
        let attachment = Some(attachment("1", attacher, "a"));
        helps(pod, EventResource::VolumeAttachment, ActionType::Delete, attachment, None)
    };
    assert!(detached(waiting(), "any"));
    let ebs = |id: &str| disk("p", json!({"awsElasticBlockStore": {"volumeID": id}}));
    assert!(detached(ebs("vol-1"), EBS));
    assert!(!detached(ebs("vol-1"), DRIVER));
    assert!(detached(ebs("aws://z/x"), DRIVER)); // it cannot be told
    assert!(!detached(disk("p", json!({"ephemeral": {}})), DRIVER));
}

#[test]
fn only_pods_with_volumes_on_a_node_help() {
    let events = NodeVolumeLimits::default().events();
    let helps = |deleted: Builder| {
        let deleted = deleted.pod();
        let change = Change::Pod(Some(&deleted), None);
        events.iter().any(|interest| {
            interest.helps(
                &supercargo_model::Cluster::default(),
                EventResource::Pod,
                ActionType::Delete,
                &pod("p").claim("c").pod(),
                &change,
            )
        })
    };
    assert!(helps(pod("q").claim("d").on("n")));
    assert!(helps(pod("q").claim("d").set("/status/nominatedNodeName", "n")));
    assert!(!helps(pod("q").claim("d")));
    assert!(!helps(pod("q").on("n")));
    assert!(!helps(disk("q", json!({"emptyDir": {}})).on("n")));
}
