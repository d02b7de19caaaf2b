//! What a node has too little of: how much is wanted, how much is free, and who holds the rest.

use std::cmp::Reverse;

use serde_json::{Value, json};
use supercargo_framework::details::{Detail, RefusalKind, amount, listed};
use supercargo_model::{Cluster, NodeInfo, Pod, resources};

use super::{NodeResourcesFit, insufficient};
use crate::device_resources::are_devices;

/// A resource of which a pod wants more than is free.
struct Lack<'a> {
    resource: &'a str,
    wanted: i64,
    free: i64,
    allocatable: i64,
}

impl NodeResourcesFit {
    fn lacks<'a>(
        &'a self,
        cluster: &'a Cluster,
        pod: &'a Pod,
        node: &'a NodeInfo,
    ) -> impl Iterator<Item = Lack<'a>> {
        let wanted = &pod.spec.requests.fit;
        let basic = [
            (resources::CPU, wanted.milli_cpu),
            (resources::MEMORY, wanted.memory),
            (resources::EPHEMERAL_STORAGE, wanted.ephemeral_storage),
        ];
        let scalars = wanted.scalars.iter().map(|(name, amount)| (&**name, *amount));
        let scalars =
            scalars.filter(|(name, _)| !self.ignores(name) && !are_devices(cluster, &node.node, name));
        let lack = |(resource, wanted): (&'a str, i64)| {
            let allocatable = node.node.allocatable.get(resource);
            let free = allocatable.saturating_sub(node.requested.get(resource));
            Lack { resource, wanted, free, allocatable }
        };
        basic.into_iter().chain(scalars).map(lack).filter(|lack| lack.wanted > 0 && lack.wanted > lack.free)
    }

    pub(super) fn tell_details(&self, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let most = node.node.allocatable.pods;
        let full = node.pods.len() as i64 + 1 > most;
        let pods = full.then(|| {
            let text = format!("runs {} pods, and may run {most}", node.pods.len());
            Detail::new(text)
                .fact("resource", resources::PODS)
                .fact("needed", 1)
                .fact("requested", node.pods.len())
                .fact("allocatable", most)
        });
        pods.into_iter().chain(self.lacks(cluster, pod, node).map(|lack| lack.detail(node))).collect()
    }

    pub(super) fn tell_kinds(&self, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<RefusalKind> {
        let kind = |lack: Lack<'_>| RefusalKind {
            reason: insufficient(lack.resource),
            kind: match lack.allocatable {
                ..=0 => "have none".into(),
                all if lack.wanted > all => "are too small".into(),
                _ => "are full".into(),
            },
        };
        self.lacks(cluster, pod, node).map(kind).collect()
    }
}

impl Lack<'_> {
    fn detail(&self, node: &NodeInfo) -> Detail {
        let Self { resource, wanted, free, allocatable } = *self;
        // Near misses are told to the last byte.
        let near = amount(resource, wanted) == amount(resource, free);
        let write = |value: i64| if near { value.to_string() } else { amount(resource, value) };
        let holders = self.holders(node);
        let by = |(pod, held): &(String, i64)| format!("{pod} {}", amount(resource, *held));
        let named: Vec<String> = holders.iter().map(by).collect();
        let text = match (allocatable, &named[..]) {
            (..=0, _) => format!("needs {} {resource}, and the node has none", write(wanted)),
            (_, []) => {
                format!("needs {} {resource}, {} free of {}", write(wanted), write(free), write(allocatable))
            }
            _ => format!(
                "needs {} {resource}, {} free of {}; requested by {}",
                write(wanted),
                write(free),
                write(allocatable),
                listed(&named)
            ),
        };
        let requested_by: Vec<Value> =
            holders.iter().map(|(pod, held)| json!({"pod": pod, "amount": held})).collect();
        Detail::new(text)
            .fact("resource", resource)
            .fact("needed", wanted)
            .fact("free", free)
            .fact("allocatable", allocatable)
            .fact("requestedBy", requested_by)
    }

    /// The pods that hold some of it, the largest first.
    fn holders(&self, node: &NodeInfo) -> Vec<(String, i64)> {
        let held = |pod: &Pod| (pod.key().to_string(), pod.spec.requests.held.get(self.resource));
        let mut holders: Vec<(String, i64)> =
            node.pods.iter().map(|pod| held(pod)).filter(|(_, held)| *held > 0).collect();
        holders.sort_by(|one, two| (Reverse(one.1), &one.0).cmp(&(Reverse(two.1), &two.0)));
        holders
    }
}
