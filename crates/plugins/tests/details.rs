//! What filters tell about the nodes that they refuse, with numbers and names.

use serde_json::{Value, json};
use supercargo_framework::testing::PluginUnderTest;
use supercargo_model::testing::{Builder, cluster, node, object, pod};
use supercargo_plugins::{
    inter_pod_affinity, node_affinity, node_declared_features, node_name, node_ports, node_resources_fit,
    node_unschedulable, node_volume_limits, pod_topology_spread, registry, taint_toleration, volume_binding,
    volume_restrictions, volume_zone,
};

/// What a plugin tells about each node by name.
fn told(plugin: &str, objects: Vec<Builder>, pod: Builder) -> Vec<Vec<String>> {
    let plugin_under_test = PluginUnderTest::named(&registry(), plugin).expect("it is registered");
    let details = plugin_under_test.details(&cluster(objects), &pod.pod());
    details.into_iter().map(|node| node.into_iter().map(|detail| detail.text).collect()).collect()
}

fn check(plugin: &str, objects: Vec<Builder>, pod: Builder, expected: &[&[&str]]) {
    assert_eq!(told(plugin, objects, pod), expected, "{plugin}");
}

fn wants(requests: &[(&str, &str)]) -> Builder {
    pod("p").container(requests)
}

fn sized(name: &str, cpu: &str, memory: &str) -> Builder {
    node(name).allocatable("cpu", cpu).allocatable("memory", memory).allocatable("pods", "10")
}

fn required(kind: &str, term: Value) -> (String, Value) {
    (format!("/spec/affinity/{kind}/requiredDuringSchedulingIgnoredDuringExecution/-"), term)
}

fn by_zone(app: &str) -> Value {
    json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}})
}

#[test]
fn resources_with_who_holds_them_largest_first() {
    let objects = vec![
        sized("a-full", "4", "8Gi"),
        pod("small").on("a-full").container(&[("cpu", "500m")]),
        pod("large").on("a-full").container(&[("cpu", "2200m"), ("memory", "1Gi")]),
        sized("b-small", "1", "8Gi"),
        sized("c-fits", "4", "8Gi"),
    ];
    // 4 − 2.2 − 0.5 = 1.3 cpu are free.
    check(
        node_resources_fit::NAME,
        objects,
        wants(&[("cpu", "2"), ("memory", "1Gi")]),
        &[
            &["needs 2 cpu, 1.3 free of 4; requested by default/large 2.2, default/small 0.5"],
            &["needs 2 cpu, 1 free of 1"],
            &[],
        ],
    );
    check(
        node_resources_fit::NAME,
        vec![sized("n", "4", "1073741823")],
        wants(&[("memory", "1073741824")]),
        // Both would be written 1Gi but for the last byte.
        &[&["needs 1Gi memory, 1023.999Mi free of 1023.999Mi"]],
    );
    let none_left = sized("n", "4", "8Gi").allocatable("pods", "0");
    check(node_resources_fit::NAME, vec![none_left], pod("p"), &[&["runs 0 pods, and may run 0"]]);
}

#[test]
fn having_none_is_told_from_being_full_and_too_small() {
    let gpus = |name: &str, count: &str| sized(name, "4", "8Gi").allocatable("example.com/gpu", count);
    let objects = vec![
        sized("a-none", "4", "8Gi"),
        gpus("b-full", "2"),
        pod("holder").on("b-full").container(&[("example.com/gpu", "1")]),
        gpus("c-small", "1"),
        gpus("d-fits", "2"),
    ];
    let plugin_under_test =
        PluginUnderTest::named(&registry(), node_resources_fit::NAME).expect("it is registered");
    let kinds = plugin_under_test.kinds(&cluster(objects), &wants(&[("example.com/gpu", "2")]).pod());
    let kinds: Vec<Vec<String>> = kinds
        .into_iter()
        .map(|node| node.into_iter().map(|kind| format!("{}: {}", kind.reason, kind.kind)).collect())
        .collect();
    let insufficient = |kind: &str| vec![format!("Insufficient example.com/gpu: {kind}")];
    assert_eq!(
        kinds,
        [insufficient("have none"), insufficient("are full"), insufficient("are too small"), Vec::new()]
    );
}

#[test]
fn taints_with_the_toleration_that_is_missing() {
    let tainted = node("n").taint("gpu", "yes", "NoSchedule").taint("old", "", "NoExecute").taint(
        "soft",
        "",
        "PreferNoSchedule",
    );
    let tolerates = pod("p").toleration(json!({"key": "gpu", "operator": "Equal", "value": "no"}));
    check(
        taint_toleration::NAME,
        vec![tainted],
        tolerates,
        &[&[
            "taint gpu=yes:NoSchedule is not tolerated: the pod lacks the toleration {key: gpu, operator: Equal, value: \
             yes, effect: NoSchedule}; it has {key: gpu, operator: Equal, value: no}",
            "taint old:NoExecute is not tolerated: the pod lacks the toleration {key: old, operator: Exists, effect: \
             NoExecute}",
        ]],
    );
}

#[test]
fn selector_terms_with_the_label_that_fails_them() {
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"key": key, "operator": operator, "values": values});
    let terms = json!([
        {"matchExpressions": [expression("zone", "In", &["a", "b"]), expression("disk", "Exists", &[])]},
        {"matchFields": [expression("metadata.name", "In", &["other"])]},
    ]);
    let pod = pod("p").set("/spec/nodeSelector/disk", "ssd").set(
        "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
        json!({"nodeSelectorTerms": terms}),
    );
    check(
        node_affinity::NAME,
        vec![node("n").label("zone", "c")],
        pod,
        &[&[
            "nodeSelector wants disk=ssd, and the node has no label disk",
            "nodeAffinity, term 1, wants zone in (a,b), and the node has zone=c",
            "nodeAffinity, term 1, wants disk, and the node has no label disk",
            "nodeAffinity, term 2, wants metadata.name=other, and the node is n",
        ]],
    );
}

#[test]
fn pods_that_are_in_the_way_of_affinity_in_both_directions() {
    let zoned = |name: &str, zone: &str| node(name).label("zone", zone);
    let (far, term) = required("podAntiAffinity", by_zone("web"));
    let objects = || {
        vec![
            zoned("a1", "a"),
            zoned("a2", "a"),
            zoned("b1", "b"),
            pod("shy").label("app", "db").set(&far, term.clone()).on("a2"),
            pod("db").label("app", "db").on("b1"),
        ]
    };
    // The pod is app=web: zone a has one that does not want it, though the node itself is empty.
    let refused = "the podAntiAffinity of default/shy on a2 keeps app=web out of zone=a, and the pod is that";
    check(inter_pod_affinity::NAME, objects(), pod("p").label("app", "web"), &[&[refused], &[refused], &[]]);
    let (own_far, no_db) = required("podAntiAffinity", by_zone("db"));
    check(
        inter_pod_affinity::NAME,
        objects(),
        pod("p").set(&own_far, no_db),
        &[
            &["podAntiAffinity keeps it from app=db, and in zone=a runs default/shy on a2"],
            &["podAntiAffinity keeps it from app=db, and in zone=a runs default/shy on a2"],
            &["podAntiAffinity keeps it from app=db, and in zone=b runs default/db on b1"],
        ],
    );
    let (near, cache) = required("podAffinity", by_zone("cache"));
    check(
        inter_pod_affinity::NAME,
        vec![zoned("a1", "a"), node("b")],
        pod("p").set(&near, cache),
        &[
            &["podAffinity wants app=cache nearby, and no such pod runs in zone=a"],
            &["podAffinity goes by zone, and the node has no such label"],
        ],
    );
}

#[test]
fn domains_over_the_skew_with_counts() {
    let zoned = |name: &str, zone: &str| node(name).label("zone", zone);
    let web = |name: &str| pod(name).label("app", "web");
    let constraint = json!({
        "topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    });
    let objects = vec![
        zoned("a", "a"),
        zoned("b", "b"),
        node("c"),
        web("1").on("a"),
        web("2").on("a"),
        web("3").on("b"),
    ];
    // a: 2 + 1 − 1 = 2 > 1; b: 1 + 1 − 1 = 1.
    check(
        pod_topology_spread::NAME,
        objects,
        web("p").set("/spec/topologySpreadConstraints/-", constraint),
        &[
            &[
                "zone=a would have 3 pods of app=web, and the emptiest domain has 1: a skew of 2 where maxSkew is 1 (a: 2, \
                 b: 1)",
            ],
            &[],
            &["pods are spread over zone, and the node has no such label"],
        ],
    );
}

#[test]
fn names_cordons_ports_and_features() {
    let port =
        |pod: Builder| pod.set("/spec/containers/-", json!({"name": "c", "ports": [{"hostPort": 80}]}));
    check(
        node_ports::NAME,
        vec![node("n"), port(pod("holder").on("n"))],
        port(pod("p")),
        &[&["host port 80/TCP is held by default/holder"]],
    );
    check(
        node_unschedulable::NAME,
        vec![node("n").set("/spec/unschedulable", true)],
        pod("p"),
        &[&["the node is cordoned (spec.unschedulable): uncordon it, or let the pod tolerate \
             node.kubernetes.io/unschedulable"]],
    );
    check(
        node_name::NAME,
        vec![node("a"), node("b")],
        pod("p").on("b"),
        &[&["the pod names the node b (spec.nodeName)"], &[]],
    );
    let restarts =
        json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]);
    let needy = pod("p").set(
        "/spec/containers/-",
        json!({"name": "c", "restartPolicy": "Never", "restartPolicyRules": restarts}),
    );
    check(
        node_declared_features::NAME,
        vec![node("n")],
        needy,
        &[&["the node's kubelet does not declare RestartAllContainersOnContainerExits"]],
    );
}

fn claim(name: &str, spec: Value) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name, "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": spec,
    }))
}

fn volume(name: &str, labels: Value, spec: Value) -> Builder {
    object(json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels}, "spec": spec,
    }))
}

#[test]
fn volumes_out_of_reach_in_other_zones_and_over_the_limit() {
    const ZONE: &str = "topology.kubernetes.io/zone";
    let bound = || claim("data", json!({"volumeName": "pv"}));
    check(
        volume_zone::NAME,
        vec![node("n").label(ZONE, "b"), bound(), volume("pv", json!({ZONE: "a"}), json!({}))],
        pod("p").claim("data"),
        &[&["volume pv of claim data is in topology.kubernetes.io/zone a, and the node has \
             topology.kubernetes.io/zone=b"]],
    );
    let expression = json!({"key": "rack", "operator": "In", "values": ["1"]});
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}});
    check(
        volume_binding::NAME,
        vec![node("n"), bound(), volume("pv", json!({}), json!({"nodeAffinity": affinity}))],
        pod("p").claim("data"),
        &[&["volume pv of claim data can only be reached from nodes with rack=1"]],
    );
    let local = object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer",
    }));
    check(
        volume_binding::NAME,
        vec![node("n"), local, claim("new", json!({"storageClassName": "local"}))],
        pod("p").claim("new"),
        &[&[
            "claim new: no available volume fits it and can be reached from the node, and its class makes none",
        ]],
    );
    let csi = |handle: &str| json!({"csi": {"driver": "csi.example.com", "volumeHandle": handle}});
    let csi_node = object(json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "n"},
        "spec": {"drivers": [{"name": "csi.example.com", "allocatable": {"count": 1}}]},
    }));
    check(
        node_volume_limits::NAME,
        vec![
            node("n"),
            csi_node,
            claim("one", json!({"volumeName": "v1"})),
            volume("v1", json!({}), csi("1")),
            claim("two", json!({"volumeName": "v2"})),
            volume("v2", json!({}), csi("2")),
            pod("user").claim("one").on("n"),
        ],
        pod("p").claim("two"),
        &[&["csi.example.com attaches 1 volumes of 1 at most, and the pod brings 1 more"]],
    );
}

#[test]
fn volumes_that_others_use() {
    let disk = |name: &str| {
        let volume = json!({"name": "v", "gcePersistentDisk": {"pdName": "d"}});
        pod(name).set("/spec/volumes/-", volume)
    };
    check(
        volume_restrictions::NAME,
        vec![node("n"), disk("user").on("n")],
        disk("p"),
        &[&["a disk of the pod is in use on the node by default/user"]],
    );
    let single = claim("single", json!({"accessModes": ["ReadWriteOncePod"]}));
    check(
        volume_restrictions::NAME,
        vec![node("n"), node("o"), single, pod("user").claim("single").on("o")],
        pod("p").claim("single"),
        &[
            &["claim single is for a single pod (ReadWriteOncePod), and default/user on o uses it"],
            &["claim single is for a single pod (ReadWriteOncePod), and default/user on o uses it"],
        ],
    );
}
