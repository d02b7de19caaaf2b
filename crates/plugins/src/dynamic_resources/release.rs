//! What can be given up for a pod that fits nowhere: devices of its own claims that are elsewhere, or never got ready.

use std::time::Duration;

use supercargo_framework::{
    Status,
    handle::Verb,
    preemption::{FollowUp, NodeVerdicts, NotNominated},
};
use supercargo_model::{Cluster, Name, Pod, devices::ResourceClaim};

use super::{
    NAME,
    cycle::{NOT_AVAILABLE, PodClaims, is_unavailable},
    extended,
};

pub(super) const NOTHING_TO_DEALLOCATE: &str = "no new claims to deallocate";

/// What is to be given up, if anything, and what is said about it.
pub(super) fn release(
    cluster: &Cluster,
    pod: &Pod,
    verdicts: &NodeVerdicts,
    timeout: Duration,
) -> NotNominated {
    let Some(claims) = PodClaims::of(cluster, pod).ok().filter(|claims| !claims.is_empty()) else {
        return Status::unschedulable(NOTHING_TO_DEALLOCATE).into();
    };
    let is_ours = |claim: &&std::sync::Arc<ResourceClaim>| match &claim.reserved_for[..] {
        [] => true,
        [only] => only.uid == pod.uid,
        _ => false,
    };
    let named = claims.claims[..claims.named].iter().filter(|claim| claim.allocation.is_some());
    let idle = named.filter(is_ours).find(|claim| is_refused(cluster, claim, verdicts, timeout));
    if let Some(claim) = idle {
        return with(Verb::Update, claim, "deallocation of ResourceClaim completed");
    }
    match claims.extended().filter(|claim| !extended::is_in_memory(claim)) {
        Some(stale) => with(Verb::Delete, stale, "deletion of ResourceClaim completed"),
        None => Status::unschedulable("still not schedulable").into(),
    }
}

fn with(verb: Verb, claim: &ResourceClaim, message: &'static str) -> NotNominated {
    let follow_up = FollowUp { plugin: Name::from(NAME), verb, key: claim.key(), uid: claim.uid.clone() };
    NotNominated { follow_up: Some(follow_up), ..Status::unschedulable(message).into() }
}

/// Whether a node was refused because of a claim.
fn is_refused(cluster: &Cluster, claim: &ResourceClaim, verdicts: &NodeVerdicts, timeout: Duration) -> bool {
    let by_us = verdicts.rejected.iter().filter(|(_, rejection)| {
        &*rejection.plugin == NAME && rejection.status.reasons.iter().any(|reason| reason == NOT_AVAILABLE)
    });
    by_us.into_iter().any(|(node, _)| is_unavailable(cluster, claim, cluster.node_at(*node), timeout))
}
