//! Which pods use the volumes that a pod cannot share with them.

use supercargo_framework::details::{Detail, listed};
use supercargo_model::{Cluster, NodeInfo, Pod};

use super::{Disks, SinglePodClaims, claim_names};

pub(super) fn details(
    claims: Option<&SinglePodClaims>,
    cluster: &Cluster,
    pod: &Pod,
    node: &NodeInfo,
) -> Vec<Detail> {
    let disks = Disks::of(pod);
    let users: Vec<String> =
        node.pods.iter().filter(|other| disks.conflict(other)).map(|other| other.key().to_string()).collect();
    let by_disk = (!users.is_empty()).then(|| {
        let text = format!("a disk of the pod is in use on the node by {}", listed(&users));
        Detail::new(text).fact("usedBy", users)
    });
    by_disk.into_iter().chain(claims.into_iter().flat_map(|claims| by_claims(claims, cluster, pod))).collect()
}

fn by_claims(claims: &SinglePodClaims, cluster: &Cluster, pod: &Pod) -> Vec<Detail> {
    let mut details = Vec::new();
    for name in &claims.names {
        let uses = |other: &Pod| {
            other.uid != pod.uid
                && other.namespace == pod.namespace
                && claim_names(other).any(|used| used == name)
        };
        let users = cluster.pods().filter(|other| uses(other));
        let users: Vec<String> = users
            .map(|other| match &other.node {
                Some(node) => format!("{} on {node}", other.key()),
                None => other.key().to_string(),
            })
            .collect();
        if !users.is_empty() {
            let text = format!(
                "claim {name} is for a single pod (ReadWriteOncePod), and {} uses it",
                listed(&users)
            );
            details.push(Detail::new(text).fact("claim", &**name).fact("usedBy", users));
        }
    }
    details
}
