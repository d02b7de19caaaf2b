//! One node, and what is on it.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::Serialize;
use supercargo_model::{
    Cluster, Name, Pod,
    resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources},
};

use super::cluster_columns::{amount, state, zone};

/// How many pods are listed at most.
const MAX_PODS: usize = 500;

/// A node, and what is on it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeDetail {
    pub(crate) name: Name,
    pub(crate) zone: String,
    pub(crate) state: u8,
    pub(crate) labels: BTreeMap<Name, Name>,
    pub(crate) taints: Vec<String>,
    pub(crate) resources: Vec<NodeResource>,
    /// The pods, those that hold most cpu first.
    pub(crate) pods: Vec<PodOnNode>,
    pub(crate) pod_count: usize,
}

/// How much of a resource a node has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct NodeResource {
    pub(crate) name: Name,
    pub(crate) allocatable: i64,
    pub(crate) used: i64,
}

/// A pod on a node, and what it holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PodOnNode {
    pub(crate) pod: String,
    pub(crate) priority: i32,
    pub(crate) terminating: bool,
    pub(crate) held: BTreeMap<Name, i64>,
}

impl NodeDetail {
    /// The node of a name, if there is one.
    pub(crate) fn new(cluster: &Cluster, name: &str) -> Option<Self> {
        let info = cluster.node(name)?;
        let node = &info.node;
        let scalars = node.allocatable.scalars.iter().map(|(name, _)| name.clone());
        let names = [CPU, MEMORY, PODS, EPHEMERAL_STORAGE].map(Name::from).into_iter().chain(scalars);
        let used = |name: &str| match name {
            PODS => info.pods.len() as i64,
            _ => amount(&info.requested, name),
        };
        let resource = |name: Name| NodeResource {
            allocatable: amount(&node.allocatable, &name),
            used: used(&name),
            name,
        };
        let mut pods: Vec<&Pod> = info.pods.iter().map(|pod| &**pod).collect();
        pods.sort_by_key(|pod| (Reverse(pod.spec.requests.held.milli_cpu), &pod.namespace, &pod.name));
        Some(Self {
            name: node.name.clone(),
            zone: zone(node),
            state: state(node),
            labels: node.labels.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            taints: node.taints.iter().map(ToString::to_string).collect(),
            resources: names.map(resource).filter(|resource| resource.allocatable > 0).collect(),
            pods: pods.iter().take(MAX_PODS).map(|pod| PodOnNode::new(pod)).collect(),
            pod_count: pods.len(),
        })
    }
}

impl PodOnNode {
    fn new(pod: &Pod) -> Self {
        Self {
            pod: pod.key().to_string(),
            priority: pod.spec.priority,
            terminating: pod.terminating,
            held: held(&pod.spec.requests.held),
        }
    }
}

/// What a pod holds, without what it does not.
fn held(resources: &Resources) -> BTreeMap<Name, i64> {
    let named = [CPU, MEMORY, EPHEMERAL_STORAGE].map(|name| (Name::from(name), amount(resources, name)));
    let all = named.into_iter().chain(resources.scalars.iter().cloned());
    all.filter(|(_, amount)| *amount > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::offline::tests::read;

    #[test]
    fn a_node_tells_what_is_on_it() {
        let input = read(
            r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1, labels: {disk: ssd}}, spec: {taints: [{key: k, effect: NoSchedule}]},
   status: {allocatable: {cpu: "2", memory: 1Gi, pods: "10"}}}
- {apiVersion: v1, kind: Pod, metadata: {name: small, namespace: default, uid: s}, spec: {nodeName: n1, containers: [
   {name: c, resources: {requests: {cpu: 100m}}}]}}
- {apiVersion: v1, kind: Pod, metadata: {name: large, namespace: default, uid: l}, spec: {nodeName: n1, priority: 7, containers: [
   {name: c, resources: {requests: {cpu: "1"}}}]}}
"#,
        );
        let detail = NodeDetail::new(&input.cluster, "n1").unwrap();
        assert_eq!(detail.taints, ["k:NoSchedule"]);
        let told: Vec<(&str, i64, i64)> =
            detail.resources.iter().map(|r| (&*r.name, r.allocatable, r.used)).collect();
        assert_eq!(told, [("cpu", 2000, 1100), ("memory", 1 << 30, 0), ("pods", 10, 2)]);
        let pods: Vec<(&str, i32)> = detail.pods.iter().map(|pod| (&*pod.pod, pod.priority)).collect();
        assert_eq!(pods, [("default/large", 7), ("default/small", 0)]);
        assert_eq!(detail.pods[0].held, BTreeMap::from([("cpu".into(), 1000)]));
        assert!(NodeDetail::new(&input.cluster, "none").is_none());
    }
}
