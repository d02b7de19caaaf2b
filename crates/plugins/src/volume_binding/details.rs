//! Which volume or claim a node will not do for, and why.

use serde_json::json;
use supercargo_framework::details::Detail;
use supercargo_model::{
    Cluster, NodeInfo, Pod,
    storage::{PersistentVolume, PersistentVolumeClaim},
};

use super::{
    bound::reaches_volume,
    claims::{PodClaims, claims_of_pod, is_bound},
};

pub(super) fn details(claims: &PodClaims, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
    let all = claims_of_pod(cluster, pod).unwrap_or_default();
    let bound = all.into_iter().filter(|claim| is_bound(claim));
    let mut details: Vec<Detail> = bound.filter_map(|claim| unreachable(claim, cluster, node)).collect();
    for (claim, why) in claims.unplaced(&node.node) {
        let text = format!("claim {}: {why}", claim.name);
        details.push(Detail::new(text).fact("claim", &*claim.name));
    }
    details
}

/// Why the volume of a bound claim rules a node out.
fn unreachable(claim: &PersistentVolumeClaim, cluster: &Cluster, node: &NodeInfo) -> Option<Detail> {
    let (name, volume) = (&claim.name, &claim.volume);
    let Some(found) = cluster.volume(volume) else {
        let text = format!("claim {name} is bound to volume {volume}, which does not exist");
        return Some(Detail::new(text).fact("claim", &**name).fact("volume", &**volume));
    };
    let csi_node = cluster.csi_node(node.name());
    match reaches_volume(found, &node.node.labels, csi_node) {
        Ok(true) => None,
        Ok(false) => Some(out_of_reach(claim, found)),
        Err(status) => Some(Detail::new(status.message()).fact("claim", &**name)),
    }
}

fn out_of_reach(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Detail {
    let affinity = volume.node_affinity.as_ref().map(|affinity| affinity.to_string()).unwrap_or_default();
    let text = format!(
        "volume {} of claim {} can only be reached from nodes with {affinity}",
        volume.name, claim.name
    );
    Detail::new(text)
        .fact("claim", &*claim.name)
        .fact("volume", &*volume.name)
        .fact("nodeAffinity", json!(affinity))
}
