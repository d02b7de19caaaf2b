use serde_json::{Value, json};
use supercargo_framework::{
    Code,
    event::{ActionType, Change, EventResource},
};
use supercargo_manifest::{Source, read};
use supercargo_model::testing::{Builder, cluster, node, object, pod};

mod assumed;
mod edit;
mod plan;
mod progress;

use super::*;
use supercargo_framework::testing::{filter, plain_score};

const OUT_OF_REACH: &str = "node(s) didn't match PersistentVolume's node affinity";
const NOTHING_TO_BIND: &str = "node(s) didn't find available persistent volumes to bind";
const NOT_ENOUGH_ROOM: &str = "node(s) did not have enough free storage";
const NO_VOLUME: &str = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";

fn volume(name: &str, size: &str) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {}},
        "spec": {"storageClassName": "local", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"},
    }))
}

/// A volume that only one of the nodes can reach.
fn volume_on(name: &str, size: &str, node: &str) -> Builder {
    volume(name, size).set("/spec/nodeAffinity", on(node))
}

fn on(node: &str) -> Value {
    let expression = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": [node]});
    json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}})
}

fn claim(name: &str, size: &str) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": {}},
        "spec": {
            "storageClassName": "local",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
        "status": {"phase": "Pending"},
    }))
}

fn bound(name: &str, volume: &str) -> Builder {
    claim(name, "1Gi")
        .set("/spec/volumeName", volume)
        .set("/metadata/annotations/pv.kubernetes.io~1bind-completed", "yes")
        .set("/status/phase", "Bound")
}

fn class(name: &str, provisioner: &str) -> Builder {
    object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    }))
}

fn local() -> Builder {
    class("local", "kubernetes.io/no-provisioner")
}

/// A pod with these claims.
fn claims(claims: &[&str]) -> Builder {
    claims.iter().fold(pod("p"), |pod, claim| pod.claim(claim))
}

/// What nodes a and b say to a pod.
fn said(pod: &Builder, objects: impl IntoIterator<Item = Builder>) -> Vec<String> {
    let cluster = cluster([node("a"), node("b")].into_iter().chain(objects));
    filter(&VolumeBinding::default(), &cluster, &pod.clone().pod())
}

/// Why a pod is refused for all nodes.
fn refused(pod: &Builder, objects: impl IntoIterator<Item = Builder>) -> Status {
    VolumeBinding::default().pre_filter(&cluster(objects), &pod.clone().pod()).err().unwrap()
}

#[test]
fn bound_volumes_must_be_in_reach() {
    let pod = claims(&["c", "d"]);
    let said = |first, second| said(&pod, [bound("c", "v"), bound("d", "w"), first, second]);
    assert_eq!(said(volume("v", "1Gi"), volume("w", "1Gi")), ["ok", "ok"]);
    assert_eq!(said(volume("v", "1Gi"), volume_on("w", "1Gi", "b")), [OUT_OF_REACH, "ok"]);
    assert_eq!(said(volume_on("v", "1Gi", "a"), volume_on("w", "1Gi", "b")), [OUT_OF_REACH, OUT_OF_REACH]);
    assert_eq!(said(volume("v", "1Gi"), volume("other", "1Gi")), [NO_VOLUME, NO_VOLUME]);
    // The first reason is told.
    assert_eq!(said(volume_on("v", "1Gi", "a"), volume("other", "1Gi")), [NO_VOLUME, OUT_OF_REACH]);
}

#[test]
fn node_affinity_of_volumes() {
    let hostname =
        |values: Value| json!({"key": "kubernetes.io/hostname", "operator": "In", "values": values});
    let name_is_a = json!({"key": "metadata.name", "operator": "In", "values": ["a"]});
    // (name, terms, what node a and b say)
    let cases = [
        ("no terms match no node", json!([]), [OUT_OF_REACH, OUT_OF_REACH]),
        ("an empty term matches no node", json!([{}]), [OUT_OF_REACH, OUT_OF_REACH]),
        (
            "any term will do",
            json!([{}, {"matchExpressions": [hostname(json!(["b"]))]}]),
            [OUT_OF_REACH, "ok"],
        ),
        (
            "all conditions of a term must hold",
            json!([{"matchExpressions": [hostname(json!(["a", "b"])), hostname(json!(["b"]))]}]),
            [OUT_OF_REACH, "ok"],
        ),
        (
            "an unreadable term matches no node",
            json!([{"matchExpressions": [hostname(json!([]))]}]),
            [OUT_OF_REACH; 2],
        ),
        ("names are passed over", json!([{"matchFields": [name_is_a]}]), ["ok", "ok"]),
    ];
    for (name, terms, expected) in cases {
        let affinity = json!({"required": {"nodeSelectorTerms": terms}});
        let volume = volume("v", "1Gi").set("/spec/nodeAffinity", affinity);
        assert_eq!(said(&claims(&["c"]), [bound("c", "v"), volume]), expected, "{name}");
    }
}

#[test]
fn disks_of_the_way_of_old_where_they_are_handed_over() {
    let zoned = |id: &str| {
        let zone = json!({"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z"]});
        volume("v", "1Gi").set("/spec/awsElasticBlockStore", json!({"volumeID": id})).set(
            "/spec/nodeAffinity",
            json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}),
        )
    };
    let hands_over = |node: &str, plugins: &str| {
        object(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": node, "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": plugins}},
        }))
    };
    let said = |id: &str, plugins: &str| {
        let cluster = cluster([
            node("driver's label").label("topology.ebs.csi.aws.com/zone", "z"),
            node("label of old").label("topology.kubernetes.io/zone", "z"),
            hands_over("driver's label", plugins),
            hands_over("label of old", plugins),
            bound("c", "v"),
            zoned(id),
        ]);
        filter(&VolumeBinding::default(), &cluster, &claims(&["c"]).pod())
    };
    assert_eq!(said("vol-1", "kubernetes.io/gce-pd,kubernetes.io/aws-ebs"), ["ok", OUT_OF_REACH]);
    assert_eq!(said("vol-1", "kubernetes.io/gce-pd"), [OUT_OF_REACH, "ok"]);
    assert_eq!(said("vol-1", ""), [OUT_OF_REACH, "ok"]);
    let broken = "could not translate pv: failed to translate Kubernetes ID to EBS Volume ID \
                  Invalid format for AWS volume (aws://z/x)";
    assert_eq!(said("aws://z/x", "kubernetes.io/aws-ebs"), [broken, broken]);
    assert_eq!(said("aws://z/x", ""), [OUT_OF_REACH, "ok"]);
}

#[test]
fn claims_that_are_not_fit_for_use() {
    let ephemeral = pod("p").set("/spec/volumes/-", json!({"name": "v", "ephemeral": {}}));
    let plain = claims(&["c"]);
    let cases = [
        ("missing", &plain, vec![], "persistentvolumeclaim \"c\" not found"),
        (
            "not made yet",
            &ephemeral,
            vec![],
            "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-v\"",
        ),
        (
            "made for another pod",
            &ephemeral,
            vec![claim("p-v", "1Gi").owner("v1", "Pod", "q")],
            "PVC default/p-v was not created for pod default/p (pod is not owner)",
        ),
        (
            "lost",
            &plain,
            vec![bound("c", "v").set("/status/phase", "Lost")],
            "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"v\"",
        ),
        (
            "being deleted",
            &plain,
            vec![bound("c", "v").set("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z")],
            "persistentvolumeclaim \"c\" is being deleted",
        ),
        (
            "to be bound at once",
            &plain,
            vec![claim("c", "1Gi"), local().set("/volumeBindingMode", "Immediate")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            "of no known class",
            &plain,
            vec![claim("c", "1Gi")],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
        (
            "asking for a volume by name",
            &plain,
            vec![claim("c", "1Gi").set("/spec/volumeName", "v"), local()],
            "pod has unbound immediate PersistentVolumeClaims",
        ),
    ];
    for (name, pod, objects, message) in cases {
        let status = refused(pod, objects);
        assert_eq!(status.message(), message, "{name}");
        assert_eq!(status.code, Code::UnschedulableAndUnresolvable, "{name}");
    }
}

#[test]
fn a_class_without_binding_mode_is_an_error() {
    let status =
        refused(&claims(&["c"]), [claim("c", "1Gi"), local().set("/volumeBindingMode", Value::Null)]);
    assert_eq!(status.code, Code::Error);
    assert_eq!(status.message(), "VolumeBindingMode not set for StorageClass \"local\"");
}

#[test]
fn a_claim_made_for_the_pod() {
    let ephemeral = pod("p").set("/spec/volumes/-", json!({"name": "v", "ephemeral": {}}));
    let objects = [bound("p-v", "v").owner("v1", "Pod", "p"), volume_on("v", "1Gi", "b")];
    assert_eq!(said(&ephemeral, objects), [OUT_OF_REACH, "ok"]);
}

#[test]
fn volumes_that_would_do() {
    let meant_for = |name: &str, uid: &str| json!({"namespace": "default", "name": name, "uid": uid});
    let selector = json!({"matchLabels": {"disk": "ssd"}});
    let fast = || claim("c", "1Gi").set("/spec/selector", selector.clone());
    let one = || claim("c", "1Gi");
    let volume = || volume("v", "1Gi");
    // (name, claim, volume, found)
    let cases = [
        ("just large enough", one(), volume(), true),
        ("too small", claim("c", "1025Mi"), volume(), false),
        ("of another class", one(), volume().set("/spec/storageClassName", "other"), false),
        ("not available", one(), volume().set("/status/phase", "Released"), false),
        (
            "without the wanted access mode",
            one().set("/spec/accessModes/-", "ReadWriteMany"),
            volume(),
            false,
        ),
        (
            "with more access modes than wanted",
            one(),
            volume().set("/spec/accessModes/-", "ReadWriteMany"),
            true,
        ),
        ("a block device for files", one(), volume().set("/spec/volumeMode", "Block"), false),
        (
            "a block device",
            one().set("/spec/volumeMode", "Block"),
            volume().set("/spec/volumeMode", "Block"),
            true,
        ),
        ("selected", fast(), volume().label("disk", "ssd"), true),
        ("not selected", fast(), volume(), false),
        (
            "of another attributes class",
            one().set("/spec/volumeAttributesClassName", "gold"),
            volume(),
            false,
        ),
        (
            "no attributes class is the empty one",
            one().set("/spec/volumeAttributesClassName", ""),
            volume(),
            true,
        ),
        ("being deleted", one(), volume().set("/metadata/deletionTimestamp", "2026-01-01T00:00:00Z"), false),
        ("meant for another claim", one(), volume().set("/spec/claimRef", meant_for("d", "")), false),
        ("meant for an earlier claim", one(), volume().set("/spec/claimRef", meant_for("c", "old")), false),
        ("meant for this very claim", one(), volume().set("/spec/claimRef", meant_for("c", "c")), true),
        (
            "meant for a claim of this name, though not available or selected",
            fast(),
            volume().set("/spec/claimRef", meant_for("c", "")).set("/status/phase", "Pending"),
            true,
        ),
        (
            "meant for this claim, but too small",
            claim("c", "2Gi"),
            volume().set("/spec/claimRef", meant_for("c", "c")),
            false,
        ),
    ];
    for (name, claim, volume, found) in cases {
        let verdicts = said(&claims(&["c"]), [local(), claim, volume]);
        assert_eq!(verdicts, [if found { "ok" } else { NOTHING_TO_BIND }; 2], "{name}");
    }
}

#[test]
fn a_volume_meant_for_the_claim_rules_others_out() {
    let meant =
        volume_on("v", "1Gi", "b").set("/spec/claimRef", json!({"namespace": "default", "name": "c"}));
    let objects = [local(), claim("c", "1Gi"), volume("w", "1Gi"), meant];
    assert_eq!(said(&claims(&["c"]), objects), [NOTHING_TO_BIND, "ok"]);
}

#[test]
fn each_claim_gets_the_smallest_fit() {
    let pod = claims(&["large", "small"]);
    let said = |volumes: [Builder; 2]| {
        let wanted = [local(), claim("large", "5Gi"), claim("small", "1Gi")];
        said(&pod, wanted.into_iter().chain(volumes))
    };
    // The small claim comes first and takes 2Gi, so that 5Gi is left for the large one.
    assert_eq!(said([volume("v", "5Gi"), volume("w", "2Gi")]), ["ok", "ok"]);
    // 500Mi is too small for either: the small claim takes 5Gi, and nothing is left for the large one.
    assert_eq!(said([volume("v", "5Gi"), volume("w", "500Mi")]), [NOTHING_TO_BIND, NOTHING_TO_BIND]);
    // Node a reaches only one of them.
    assert_eq!(said([volume("v", "5Gi"), volume_on("w", "2Gi", "b")]), [NOTHING_TO_BIND, "ok"]);
}

#[test]
fn provisioning() {
    let wanted = || claim("c", "1Gi");
    let class = || class("local", "csi.example.com");
    let at = |hostname: &str| json!([{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": [hostname]}]}]);
    let said = |class: Builder, claim: Builder| said(&claims(&["c"]), [class, claim]);
    assert_eq!(said(class(), wanted()), ["ok", "ok"]);
    assert_eq!(said(local(), wanted()), [NOTHING_TO_BIND, NOTHING_TO_BIND]);
    assert_eq!(said(class().set("/provisioner", ""), wanted()), [NOTHING_TO_BIND, NOTHING_TO_BIND]);
    assert_eq!(said(class().set("/allowedTopologies", at("b")), wanted()), [NOTHING_TO_BIND, "ok"]);
    assert_eq!(said(class().set("/allowedTopologies", json!([])), wanted()), ["ok", "ok"]);
    assert_eq!(said(class().set("/allowedTopologies", json!([{}])), wanted()), [NOTHING_TO_BIND; 2]);
    // An earlier decision stands, and does not look for volumes again.
    let selected =
        |node: &str| wanted().set("/metadata/annotations/volume.kubernetes.io~1selected-node", node);
    assert_eq!(said(class(), selected("b")), [NOTHING_TO_BIND, "ok"]);
    assert_eq!(said(class().set("/allowedTopologies", at("a")), selected("b")), [NOTHING_TO_BIND; 2]);
}

#[test]
fn room_at_csi_drivers() {
    let driver = |tells: bool| {
        object(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": tells},
        }))
    };
    let capacity = |name: &str, nodes: Value, capacity: &str| {
        object(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
            "metadata": {"name": name, "namespace": "storage"},
            "storageClassName": "local", "nodeTopology": nodes, "capacity": capacity,
        }))
    };
    let only_b = || json!({"matchLabels": {"kubernetes.io/hostname": "b"}});
    let said = |claim: Builder, objects: Vec<Builder>| {
        said(&claims(&["c"]), objects.into_iter().chain([class("local", "csi.example.com"), claim]))
    };
    let one = || claim("c", "1Gi");
    // (name, claim, objects, what node a and b say)
    let cases = [
        ("the driver does not tell", one(), vec![driver(false)], ["ok", "ok"]),
        ("nothing is known", one(), vec![driver(true)], [NOT_ENOUGH_ROOM; 2]),
        (
            "just enough on b",
            one(),
            vec![driver(true), capacity("x", only_b(), "1Gi")],
            [NOT_ENOUGH_ROOM, "ok"],
        ),
        ("1023Mi < 1Gi", one(), vec![driver(true), capacity("x", only_b(), "1023Mi")], [NOT_ENOUGH_ROOM; 2]),
        ("everywhere", one(), vec![driver(true), capacity("x", json!({}), "1Gi")], ["ok", "ok"]),
        ("nowhere", one(), vec![driver(true), capacity("x", Value::Null, "1Gi")], [NOT_ENOUGH_ROOM; 2]),
        (
            "the largest single volume counts more",
            one(),
            vec![driver(true), capacity("x", json!({}), "9Gi").set("/maximumVolumeSize", "1Mi")],
            [NOT_ENOUGH_ROOM; 2],
        ),
        (
            "of another class",
            one(),
            vec![driver(true), capacity("x", json!({}), "1Gi").set("/storageClassName", "other")],
            [NOT_ENOUGH_ROOM; 2],
        ),
        ("no size wanted", one().set("/spec/resources", json!({})), vec![driver(true)], ["ok", "ok"]),
    ];
    for (name, claim, objects, expected) in cases {
        assert_eq!(said(claim, objects), expected, "{name}");
    }
}

#[test]
fn several_reasons() {
    let objects = || [local(), claim("c", "1Gi"), bound("d", "v")];
    let pod = claims(&["c", "d"]);
    let both = |first, second| format!("{first}, {second}");
    let taken = volume_on("v", "1Gi", "b").set("/status/phase", "Bound");
    let out_of_reach = objects().into_iter().chain([taken]);
    assert_eq!(said(&pod, out_of_reach), [both(OUT_OF_REACH, NOTHING_TO_BIND), NOTHING_TO_BIND.to_owned()]);
    assert_eq!(said(&pod, objects()), [both(NOTHING_TO_BIND, NO_VOLUME), both(NOTHING_TO_BIND, NO_VOLUME)]);
}

#[test]
fn evicting_would_not_help() {
    let cluster = cluster([node("a"), bound("c", "v"), volume_on("v", "1Gi", "b")]);
    let pod = claims(&["c"]).pod();
    let Ok(PreFilterOutcome::Go { nodes, prepared }) = VolumeBinding::default().pre_filter(&cluster, &pod)
    else {
        panic!("the claim is bound");
    };
    assert_eq!(nodes, None);
    let status =
        VolumeBinding::default().filter(&prepared, &cluster, &pod, cluster.node("a").unwrap()).unwrap_err();
    assert_eq!(status.code, Code::UnschedulableAndUnresolvable);
}

#[test]
fn skips_pods_without_claims_and_never_scores() {
    let cluster = cluster([node("a"), bound("c", "v"), volume("v", "1Gi")]);
    let disk =
        pod("d").set("/spec/volumes/-", json!({"name": "v", "awsElasticBlockStore": {"volumeID": "x"}}));
    for pod in [pod("plain"), disk] {
        assert!(matches!(
            VolumeBinding::default().pre_filter(&cluster, &pod.pod()),
            Ok(PreFilterOutcome::Skip)
        ));
    }
    assert!(plain_score(&VolumeBinding::default(), &cluster, &claims(&["c"]).pod()).is_empty());
}

#[test]
fn arguments() {
    // (arguments, the fields that are wrong)
    let cases: &[(&str, &[&str])] = &[
        ("{}", &[]),
        ("{bindTimeoutSeconds: 0}", &[]),
        ("{bindTimeoutSeconds: -1}", &["args.bindTimeoutSeconds"]),
        ("{shape: null}", &[]),
        ("{shape: []}", &["args.shape"]),
        (
            "{bindTimeoutSeconds: -1, shape: [{utilization: 0, score: 10}]}",
            &["args.bindTimeoutSeconds", "args.shape"],
        ),
    ];
    for (text, wrong) in cases {
        let source = Source::new("test", (*text).to_owned());
        let documents = read(&source).unwrap();
        let outcome = VolumeBinding::new(&Args::new(&source, &documents[0], "args"));
        let problems = outcome.err().unwrap_or_default();
        let paths: Vec<&str> = problems.iter().map(|problem| &*problem.path).collect();
        assert_eq!(paths, *wrong, "{text}");
    }
    assert!(VolumeBinding::new(&Args::none()).is_ok());
    assert_eq!(bind_timeout(&Args::none()).unwrap(), Duration::from_secs(600));
}

#[test]
fn events() {
    let events = VolumeBinding::default().events();
    let ephemeral = json!({"name": "v", "ephemeral": {}});
    let inline = json!({"name": "w", "csi": {"driver": "csi.example.com"}});
    let waiting = claims(&["c"]).set("/spec/volumes/-", ephemeral).set("/spec/volumes/-", inline).pod();
    let helps = |resource, before: Option<Builder>, after: Builder| {
        let action = if before.is_some() { ActionType::Update } else { ActionType::Add };
        let (before, after) = (before.map(Builder::object), after.object());
        let change = Change::Other(before.as_ref(), Some(&after));
        events.iter().any(|interest| {
            interest.helps(&supercargo_model::Cluster::default(), resource, action, &waiting, &change)
        })
    };
    let somewhere = || local().set("/allowedTopologies", json!([{}]));
    assert!(helps(EventResource::StorageClass, None, local()));
    assert!(helps(EventResource::StorageClass, Some(local()), somewhere()));
    assert!(!helps(EventResource::StorageClass, Some(somewhere()), somewhere().set("/provisioner", "x")));
    assert!(helps(EventResource::PersistentVolumeClaim, None, claim("c", "1Gi")));
    assert!(helps(EventResource::PersistentVolumeClaim, Some(claim("p-v", "1Gi")), claim("p-v", "1Gi")));
    assert!(!helps(EventResource::PersistentVolumeClaim, None, claim("d", "1Gi")));
    assert!(!helps(EventResource::PersistentVolumeClaim, None, claim("c", "1Gi").namespace("other")));
    assert!(helps(EventResource::PersistentVolume, Some(volume("v", "1Gi")), volume("v", "1Gi")));
    let csi_node = |plugins: &str| {
        let annotations = json!({"storage.alpha.kubernetes.io/migrated-plugins": plugins});
        object(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": "n", "annotations": annotations},
        }))
    };
    assert!(helps(EventResource::CsiNode, None, csi_node("")));
    assert!(helps(EventResource::CsiNode, Some(csi_node("")), csi_node("kubernetes.io/aws-ebs")));
    assert!(!helps(EventResource::CsiNode, Some(csi_node("a,b")), csi_node("a,b")));
    let driver = |name: &str, tells: bool| {
        object(json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
            "metadata": {"name": name}, "spec": {"storageCapacity": tells},
        }))
    };
    let stops = |name| helps(EventResource::CsiDriver, Some(driver(name, true)), driver(name, false));
    assert!(stops("csi.example.com"));
    assert!(!stops("other.example.com"));
    assert!(!helps(
        EventResource::CsiDriver,
        Some(driver("csi.example.com", false)),
        driver("csi.example.com", true)
    ));
    let capacity = |fields: Value| {
        let mut capacity = fields;
        capacity["apiVersion"] = "storage.k8s.io/v1".into();
        capacity["kind"] = "CSIStorageCapacity".into();
        capacity["metadata"] = json!({"name": "x", "namespace": "storage"});
        object(capacity)
    };
    let grows =
        |before, after| helps(EventResource::CsiStorageCapacity, Some(capacity(before)), capacity(after));
    assert!(helps(EventResource::CsiStorageCapacity, None, capacity(json!({}))));
    assert!(grows(json!({"capacity": "1Gi"}), json!({"capacity": "2Gi"})));
    assert!(grows(json!({}), json!({"capacity": "0"})));
    assert!(!grows(json!({"capacity": "2Gi"}), json!({"capacity": "2Gi", "maximumVolumeSize": "1Gi"})));
    assert!(!grows(json!({"capacity": "1Gi"}), json!({})));
}
