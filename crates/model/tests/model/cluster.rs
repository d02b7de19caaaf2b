//! The cluster's sums and indexes: whatever the order of events, they agree with the objects that are there.

use std::sync::Arc;

use proptest::prelude::*;
use supercargo_model::{Cluster, Key, Pod, object::Kind};

use crate::support::{node, order, pod};

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn on(name: &str, node: &str) -> Arc<Pod> {
    let spec = "containers: [{name: c, resources: {requests: {cpu: 1}}, ports: [{hostPort: 80}]}], \
                volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]";
    pod(name, &format!("spec: {{nodeName: {node}, {spec}}}"))
}

/// The pods on a node, the cpu they hold, and their host ports.
fn load(cluster: &Cluster, name: &str) -> (Vec<String>, i64, usize) {
    let node = cluster.node(name).expect("a known node");
    let pods = node.pods.iter().map(|pod| pod.name.to_string()).collect();
    (pods, node.requested.milli_cpu, node.used_ports.len())
}

fn nothing() -> (Vec<String>, i64, usize) {
    (vec![], 0, 0)
}

#[test]
fn pods_come_and_go() {
    let mut cluster = Cluster::default();
    cluster.put_node(node("a", "", ""));
    cluster.put_node(node("b", "", ""));
    cluster.put_pod(on("p", "a"));
    cluster.put_pod(on("q", "a"));
    assert_eq!(load(&cluster, "a"), (vec!["p".into(), "q".into()], 2000, 2));
    assert!(cluster.is_claim_used(&key("data")));
    // A pod of the same name takes the place of the old one, wherever it is.
    cluster.put_pod(on("p", "b"));
    assert_eq!(load(&cluster, "a"), (vec!["q".into()], 1000, 1));
    assert_eq!(load(&cluster, "b"), (vec!["p".into()], 1000, 1));
    cluster.remove_pod(&key("q"));
    assert!(cluster.remove_pod(&key("q")).is_none(), "it is gone already");
    assert_eq!(load(&cluster, "a"), nothing());
    assert!(cluster.is_claim_used(&key("data")));
    cluster.remove(Kind::Pod, &key("p"));
    assert_eq!(load(&cluster, "b"), nothing());
    assert!(!cluster.is_claim_used(&key("data")));
    assert_eq!(cluster.pods().len(), 0);
}

#[test]
fn a_pod_that_has_ended_or_is_not_bound_holds_nothing() {
    let mut cluster = Cluster::default();
    cluster.put_node(node("a", "", ""));
    cluster.put_pod(on("p", "a"));
    cluster.put_pod(pod("p", "spec: {nodeName: a}, status: {phase: Succeeded}"));
    assert_eq!(load(&cluster, "a"), nothing());
    assert!(cluster.pod(&key("p")).is_none());
    cluster.put_pod(on("p", "a"));
    cluster.put_pod(pod("p", "spec: {}"));
    assert_eq!(load(&cluster, "a"), nothing());
}

#[test]
fn a_pod_may_come_before_its_node() {
    let mut cluster = Cluster::default();
    cluster.put_pod(on("p", "a"));
    cluster.put_pod(on("q", "a"));
    assert!(cluster.node("a").is_none());
    assert!(!cluster.is_claim_used(&key("data")), "its node is not known");
    assert!(cluster.pod(&key("p")).is_some());
    cluster.remove_pod(&key("q"));
    cluster.put_node(node("a", "", ""));
    assert_eq!(load(&cluster, "a"), (vec!["p".into()], 1000, 1));
    assert!(cluster.is_claim_used(&key("data")));
}

#[test]
fn a_node_that_comes_back_finds_its_pods() {
    let mut cluster = Cluster::default();
    cluster.put_node(node("a", "", ""));
    cluster.put_pod(on("p", "a"));
    cluster.put_pod(on("q", "a"));
    cluster.remove(Kind::Node, &Key::new("", "a"));
    assert_eq!((cluster.node_count(), cluster.pods().len()), (0, 2));
    assert!(!cluster.is_claim_used(&key("data")));
    // Meanwhile one of them ends, and another node takes the place in the tables.
    cluster.remove_pod(&key("q"));
    cluster.put_node(node("b", "", ""));
    cluster.put_node(node("a", "", ""));
    assert_eq!(load(&cluster, "a"), (vec!["p".into()], 1000, 1));
    assert_eq!(load(&cluster, "b"), nothing());
    assert!(cluster.is_claim_used(&key("data")));
}

#[test]
fn a_node_that_changes_keeps_its_pods_and_its_place() {
    let mut cluster = Cluster::default();
    cluster.put_node(node("a", "", ""));
    cluster.put_pod(on("p", "a"));
    let id = cluster.node("a").unwrap().id;
    cluster.put_node(node("a", "disk: ssd", "status: {allocatable: {cpu: 4}}"));
    let changed = cluster.node("a").unwrap();
    assert_eq!((changed.id, changed.node.allocatable.milli_cpu), (id, 4000));
    assert_eq!(load(&cluster, "a"), (vec!["p".into()], 1000, 1));
}

#[test]
fn places_are_given_again_only_after_their_node_is_gone() {
    let mut cluster = Cluster::default();
    for name in ["a", "b", "c"] {
        cluster.put_node(node(name, "", ""));
    }
    let place = |cluster: &Cluster, name: &str| cluster.node(name).unwrap().id;
    let of_b = place(&cluster, "b");
    cluster.remove(Kind::Node, &Key::new("", "b"));
    cluster.remove(Kind::Node, &Key::new("", "b"));
    cluster.put_node(node("d", "", ""));
    assert_eq!(place(&cluster, "d"), of_b);
    assert_eq!(order(&cluster), "a c d");
    assert_eq!(cluster.node_at(of_b).name(), &cluster.node("d").unwrap().node.name);
}

#[test]
fn zones_take_turns() {
    const ZONE: &str = "topology.kubernetes.io/zone";
    let in_zone = |name: &str, zone: &str| node(name, &format!("{ZONE}: {zone}"), "");
    let mut cluster = Cluster::default();
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b"), ("c1", "c"), ("c2", "c")] {
        cluster.put_node(in_zone(name, zone));
    }
    assert_eq!(order(&cluster), "a1 b1 c1 a2 c2 a3");
    // Nodes without a zone have a turn of their own.
    cluster.put_node(node("n1", "", ""));
    assert_eq!(order(&cluster), "a1 b1 c1 n1 a2 c2 a3");
    // A node that moves goes to the end of its new zone, and an empty zone is gone.
    cluster.put_node(in_zone("b1", "a"));
    assert_eq!(order(&cluster), "a1 c1 n1 a2 c2 a3 b1");
    // A zone that comes back comes last.
    cluster.put_node(in_zone("b1", "b"));
    assert_eq!(order(&cluster), "a1 c1 n1 b1 a2 c2 a3");
    cluster.remove(Kind::Node, &Key::new("", "a1"));
    assert_eq!(order(&cluster), "a2 c1 n1 b1 a3 c2");
    // A change that leaves the zone alone leaves the order alone.
    cluster.put_node(node("c1", &format!("{ZONE}: c, disk: ssd"), ""));
    assert_eq!(order(&cluster), "a2 c1 n1 b1 a3 c2");
}

#[test]
fn a_zone_is_a_region_and_a_zone() {
    let zone = |labels: &str| node("n", labels, "").zone();
    let (new_zone, new_region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let (old_zone, old_region) =
        ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region");
    assert_eq!(&*zone(""), "");
    let both = zone(&format!("{new_region}: r, {new_zone}: z"));
    assert_eq!(zone(&format!("{old_region}: r, {old_zone}: z")), both);
    assert_eq!(
        zone(&format!("{new_region}: x, {old_region}: r, {new_zone}: z")),
        both,
        "the old name comes first"
    );
    let others = [
        zone(&format!("{new_region}: r")),
        zone(&format!("{new_zone}: z")),
        zone(&format!("{new_region}: z, {new_zone}: r")),
    ];
    for other in others {
        assert_ne!(other, both);
        assert_ne!(&*other, "");
    }
}

#[test]
fn images_are_counted_by_node() {
    let with = |name: &str, images: &str| node(name, "", &format!("status: {{images: [{images}]}}"));
    let image = |name: &str, size: i64| format!("{{names: [{name}], sizeBytes: {size}}}");
    let state = |cluster: &Cluster, name: &str| cluster.image(name).map(|i| (i.size_bytes, i.nodes.len()));
    let mut cluster = Cluster::default();
    cluster.put_node(with("a", &image("web", 10)));
    // The first node's word on the size counts; an image that a node lists twice counts once.
    cluster.put_node(with("b", &format!("{}, {}", image("web", 99), image("web", 98))));
    assert_eq!(state(&cluster, "web"), Some((10, 2)));
    // Nothing changes by telling the same again.
    cluster.put_node(with("a", &image("web", 10)));
    assert_eq!(state(&cluster, "web"), Some((10, 2)));
    cluster.put_node(with("a", &image("db", 5)));
    assert_eq!((state(&cluster, "web").map(|s| s.1), state(&cluster, "db")), (Some(1), Some((5, 1))));
    cluster.remove(Kind::Node, &Key::new("", "b"));
    assert_eq!((state(&cluster, "web"), state(&cluster, "db")), (None, Some((5, 1))));
}

#[test]
fn services_are_those_of_a_namespace() {
    let service = |namespace: &str, name: &str| {
        format!("{{apiVersion: v1, kind: Service, metadata: {{namespace: {namespace}, name: {name}}}}}")
    };
    let mut cluster = Cluster::default();
    let written = [("a", "web"), ("b", "db"), ("b", "web"), ("c", "db")].map(|(ns, name)| service(ns, name));
    for object in crate::support::objects(&written.join("\n---\n")) {
        cluster.put(object);
    }
    let names = |cluster: &Cluster, namespace: &str| {
        cluster.services(namespace).map(|s| s.name.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((&*names(&cluster, "b"), &*names(&cluster, "")), ("db web", ""));
    cluster.remove(Kind::Service, &Key::new("b", "web"));
    assert_eq!((&*names(&cluster, "b"), &*names(&cluster, "a")), ("db", "web"));
}

#[test]
fn a_config_map_is_a_fact_when_its_text_changes() {
    let mut cluster = Cluster::default();
    let put = |cluster: &mut Cluster, text: &str| {
        let before = cluster.changes().now();
        let map =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: scores}}, data: {{a: {text}}}}}");
        crate::support::objects(&map).into_iter().for_each(|object| cluster.put(object));
        cluster.changes().since(before).is_none()
    };
    assert!(put(&mut cluster, "one"));
    assert!(!put(&mut cluster, "one"));
    assert!(put(&mut cluster, "two"));
    let text =
        |cluster: &Cluster| cluster.config_map(&key("scores")).and_then(|map| map.data.get("a").cloned());
    assert_eq!(text(&cluster), Some("two".into()));
    let before = cluster.changes().now();
    cluster.remove(Kind::ConfigMap, &key("scores"));
    assert!(text(&cluster).is_none() && cluster.changes().since(before).is_none());
}

#[derive(Clone, Debug)]
enum Event {
    PutNode(u8, u8),
    RemoveNode(u8),
    PutPod(u8, Option<u8>),
    RemovePod(u8),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0..4_u8, 0..3_u8).prop_map(|(n, zone)| Event::PutNode(n, zone)),
        (0..4_u8).prop_map(Event::RemoveNode),
        (0..6_u8, proptest::option::of(0..4_u8)).prop_map(|(p, n)| Event::PutPod(p, n)),
        (0..6_u8).prop_map(Event::RemovePod),
    ]
}

/// What can be asked of a cluster, in an order of its own.
fn books(cluster: &Cluster) -> Vec<String> {
    let mut all: Vec<String> = (cluster.nodes())
        .map(|info| {
            let mut pods: Vec<&str> = info.pods.iter().map(|pod| &*pod.name).collect();
            pods.sort_unstable();
            let requested = (
                info.requested.milli_cpu,
                info.requested_or_default_milli_cpu,
                info.requested_or_default_memory,
            );
            let images =
                ["z0", "z1", "z2"].map(|name| cluster.image(name).map_or(0, |image| image.nodes.len()));
            format!(
                "{} {} {pods:?} {requested:?} {} {images:?}",
                info.name(),
                info.node.zone(),
                info.used_ports.len()
            )
        })
        .collect();
    all.sort_unstable();
    let claimed = cluster.is_claim_used(&key("data"));
    all.push(format!("{claimed} {}", cluster.pods().len()));
    all
}

proptest! {
    #[test]
    fn any_order_of_events_leads_to_the_same_books(events in proptest::collection::vec(event(), 0..40)) {
        let mut cluster = Cluster::default();
        let mut nodes: [Option<u8>; 4] = [None; 4];
        let mut pods: [Option<u8>; 6] = [None; 6];
        let written = |n: usize, zone: u8| {
            let labels = format!("topology.kubernetes.io/zone: z{zone}");
            node(&format!("n{n}"), &labels, &format!("status: {{images: [{{names: [z{zone}], sizeBytes: 1}}]}}"))
        };
        let bound = |p: usize, n: u8| on(&format!("p{p}"), &format!("n{n}"));
        for event in events {
            match event {
                Event::PutNode(n, zone) => {
                    cluster.put_node(written(n.into(), zone));
                    nodes[usize::from(n)] = Some(zone);
                }
                Event::RemoveNode(n) => {
                    cluster.remove(Kind::Node, &Key::new("", format!("n{n}")));
                    nodes[usize::from(n)] = None;
                }
                Event::PutPod(p, n) => {
                    let unbound = || pod(&format!("p{p}"), "spec: {}");
                    cluster.put_pod(n.map_or_else(unbound, |n| bound(p.into(), n)));
                    pods[usize::from(p)] = n;
                }
                Event::RemovePod(p) => {
                    cluster.remove(Kind::Pod, &key(&format!("p{p}")));
                    pods[usize::from(p)] = None;
                }
            }
        }
        let mut from_nothing = Cluster::default();
        for (n, zone) in nodes.into_iter().enumerate().filter_map(|(n, zone)| Some((n, zone?))) {
            from_nothing.put_node(written(n, zone));
        }
        for (p, n) in pods.into_iter().enumerate().filter_map(|(p, n)| Some((p, n?))) {
            from_nothing.put_pod(bound(p, n));
        }
        prop_assert_eq!(books(&cluster), books(&from_nothing));
        prop_assert_eq!(cluster.order().len(), cluster.node_count());
    }
}

#[test]
fn nodes_with_taints_are_counted_as_they_come_change_and_go() {
    let mut cluster = Cluster::default();
    let tainted = |name: &str, effects: &[&str], cordoned: bool| {
        let taints: Vec<String> =
            effects.iter().map(|effect| format!("{{key: k, effect: {effect}}}")).collect();
        node(name, "", &format!("spec: {{unschedulable: {cordoned}, taints: [{}]}}", taints.join(", ")))
    };
    // Cordoned, with taints that keep pods off, how many of those that ask them to stay away each place has, and which have one or
    // more of these.
    let counts = |cluster: &Cluster| {
        let columns = cluster.columns();
        let soft = [&columns.soft_tainted_once, &columns.soft_tainted_more]
            .map(|nodes| nodes.iter().map(|node| node.index()).collect::<Vec<_>>());
        (columns.tainted.cordoned, columns.tainted.repelling, columns.soft_taints.clone(), soft)
    };
    cluster.put_node(tainted("a", &["PreferNoSchedule", "NoExecute"], true));
    cluster.put_node(tainted("b", &["PreferNoSchedule", "PreferNoSchedule"], false));
    assert_eq!(counts(&cluster), (1, 1, vec![1.0, 2.0], [vec![0], vec![1]]));
    cluster.put_node(tainted("b", &["NoSchedule"], false));
    assert_eq!(counts(&cluster), (1, 2, vec![1.0, 0.0], [vec![0], vec![]]));
    cluster.remove(Kind::Node, &Key::new("", "a"));
    assert_eq!(counts(&cluster), (0, 1, vec![0.0, 0.0], [vec![], vec![]]));
}
