//! All nodes of a cluster and their load, in columns.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use serde::Serialize;
use supercargo_model::{
    Cluster, Name, Node,
    resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources},
};

/// Between region and zone, where a node names both.
const ZONE_SEPARATOR: &str = ":\0:";
/// The bits of a node's state.
const CORDONED: u8 = 1;
const NOT_READY: u8 = 2;
const TAINTED: u8 = 4;

/// What is taken from the cluster in one short look; columns are made from it when nobody waits.
pub(crate) struct ClusterLook(Vec<SeenNode>);

struct SeenNode {
    node: Arc<Node>,
    requested: Resources,
    pods: usize,
}

impl ClusterLook {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let seen = cluster.nodes().map(|info| SeenNode {
            node: info.node.clone(),
            requested: info.requested.clone(),
            pods: info.pods.len(),
        });
        Self(seen.collect())
    }
}

/// The nodes of a cluster, by zone and then by name: the same place in every column is the same node.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct ClusterColumns {
    /// Another one says that other nodes are there, or that they are otherwise.
    pub(crate) generation: String,
    /// What nodes are; left out for whoever has it already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nodes: Option<NodeColumns>,
    /// What the pods on each node hold, by resource.
    pub(crate) used: Vec<Vec<i64>>,
}

/// What nodes are.
#[derive(Clone, Debug, Default, PartialEq, Hash, Serialize)]
pub(crate) struct NodeColumns {
    pub(crate) names: Vec<Name>,
    /// The zones' names, and the place of each node's among them.
    pub(crate) zones: Vec<String>,
    pub(crate) zone: Vec<usize>,
    /// The resources' names: cpu in thousandths of a core, bytes, numbers.
    pub(crate) resources: Vec<Name>,
    /// What pods may use on each node, by resource.
    pub(crate) allocatable: Vec<Vec<i64>>,
    /// 1: cordoned, 2: not ready, 4: tainted; the sum of what holds.
    pub(crate) state: Vec<u8>,
}

impl ClusterColumns {
    pub(crate) fn new(ClusterLook(mut seen): ClusterLook) -> Self {
        seen.sort_by_cached_key(|seen| (zone(&seen.node), seen.node.name.clone()));
        let scalars = seen.iter().flat_map(|seen| seen.node.allocatable.scalars.iter().map(|(name, _)| name));
        let scalars: BTreeSet<&Name> = scalars.collect();
        let resources: Vec<Name> =
            [CPU, MEMORY, PODS, EPHEMERAL_STORAGE].map(Name::from).into_iter().collect();
        let resources: Vec<Name> = resources.into_iter().chain(scalars.into_iter().cloned()).collect();
        let mut zones: BTreeMap<String, usize> = BTreeMap::new();
        for seen in &seen {
            let next = zones.len();
            zones.entry(zone(&seen.node)).or_insert(next);
        }
        let nodes = NodeColumns {
            names: seen.iter().map(|seen| seen.node.name.clone()).collect(),
            zone: seen.iter().map(|seen| zones[&zone(&seen.node)]).collect(),
            zones: zones.into_keys().collect(),
            allocatable: column(&resources, &seen, |seen, name| amount(&seen.node.allocatable, name)),
            state: seen.iter().map(|seen| state(&seen.node)).collect(),
            resources,
        };
        let used = column(&nodes.resources, &seen, |seen, name| match &**name {
            PODS => seen.pods as i64,
            _ => amount(&seen.requested, name),
        });
        let mut hasher = DefaultHasher::new();
        nodes.hash(&mut hasher);
        Self { generation: format!("{:016x}", hasher.finish()), nodes: Some(nodes), used }
    }

    /// For a page that knows a generation already.
    pub(crate) fn since(&self, known: Option<&str>) -> Self {
        let is_known = known == Some(&self.generation);
        let nodes = self.nodes.as_ref().filter(|_| !is_known).cloned();
        Self { generation: self.generation.clone(), nodes, used: self.used.clone() }
    }
}

fn column<T>(resources: &[Name], seen: &[SeenNode], amount: impl Fn(&SeenNode, &Name) -> T) -> Vec<Vec<T>> {
    resources.iter().map(|name| seen.iter().map(|seen| amount(seen, name)).collect()).collect()
}

/// How much of a resource there is.
pub(super) fn amount(resources: &Resources, name: &str) -> i64 {
    match name {
        CPU => resources.milli_cpu,
        MEMORY => resources.memory,
        PODS => resources.pods,
        EPHEMERAL_STORAGE => resources.ephemeral_storage,
        _ => resources.scalars.iter().find(|(scalar, _)| **scalar == *name).map_or(0, |(_, amount)| *amount),
    }
}

/// A node's zone as people read it: with its region only if the zone does not begin with it.
pub(super) fn zone(node: &Node) -> String {
    let zone = node.zone();
    match zone.split_once(ZONE_SEPARATOR) {
        None => String::new(),
        Some((region, zone)) if region.is_empty() || zone.starts_with(region) => zone.to_owned(),
        Some((region, "")) => region.to_owned(),
        Some((region, zone)) => format!("{region}/{zone}"),
    }
}

/// What is the matter with a node.
pub(super) fn state(node: &Node) -> u8 {
    let ready = node.conditions.get("Ready").is_none_or(|status| &**status == "True");
    [(node.unschedulable, CORDONED), (!ready, NOT_READY), (!node.taints.is_empty(), TAINTED)]
        .into_iter()
        .filter_map(|(holds, bit)| holds.then_some(bit))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::offline::tests::read;

    const NODES: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: b1, labels: {topology.kubernetes.io/zone: b}},
   spec: {unschedulable: true}, status: {allocatable: {cpu: "2", memory: 1Gi, pods: "10"}}}
- {apiVersion: v1, kind: Node, metadata: {name: a2, labels: {topology.kubernetes.io/zone: a, topology.kubernetes.io/region: r}},
   status: {allocatable: {cpu: "4", example.com/gpu: "8"}, conditions: [{type: Ready, status: "False"}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default, uid: u}, spec: {nodeName: b1, containers: [
   {name: c, resources: {requests: {cpu: 500m, memory: 1Mi}}}]}}
"#;

    #[test]
    fn the_same_place_is_the_same_node_in_every_column() {
        let columns = ClusterColumns::new(ClusterLook::new(&read(NODES).cluster));
        let nodes = columns.nodes.clone().unwrap();
        assert_eq!(nodes.names.iter().map(|name| &**name).collect::<Vec<_>>(), ["b1", "a2"]);
        assert_eq!((nodes.zones, nodes.zone), (vec!["b".to_owned(), "r/a".to_owned()], vec![0, 1]));
        let resources: Vec<&str> = nodes.resources.iter().map(|name| &**name).collect();
        assert_eq!(resources, ["cpu", "memory", "pods", "ephemeral-storage", "example.com/gpu"]);
        let gi = 1 << 30;
        assert_eq!(nodes.allocatable, [[2000, 4000], [gi, 0], [10, 0], [0, 0], [0, 8]]);
        assert_eq!(columns.used, [[500, 0], [1 << 20, 0], [1, 0], [0, 0], [0, 0]]);
        assert_eq!(nodes.state, [CORDONED, NOT_READY]);
    }

    #[test]
    fn who_knows_the_nodes_gets_only_their_load() {
        let columns = ClusterColumns::new(ClusterLook::new(&read(NODES).cluster));
        assert_eq!(columns.since(None), columns);
        assert_eq!(columns.since(Some("other")), columns);
        let known = columns.since(Some(&columns.generation));
        assert_eq!((known.nodes, known.used), (None, columns.used));
    }
}
