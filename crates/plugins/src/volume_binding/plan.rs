//! What becomes of a pod's claims on a node: which volume each is bound to, and for which one is made there.

use supercargo_framework::Status;
use supercargo_model::{Cluster, Key, Name, NodeInfo, Pod, storage::PersistentVolumeClaim};

use super::{
    claims::{PodClaims, claims_of_pod},
    delayed::Found,
};

/// What is to be done before a pod can run on a node. Nothing, if all of its claims are bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumePlan {
    /// Volumes, and the claims that they are to be bound to, from the smallest claim on.
    pub bind: Vec<(Name, ClaimId)>,
    /// Claims for which a volume is to be made. Those that had the node selected before come first.
    pub provision: Vec<ClaimId>,
}

/// A claim and its identity: one that was made anew under the name may ask for something else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimId {
    /// Namespace and name.
    pub key: Key,
    /// The identity.
    pub uid: Name,
}

impl ClaimId {
    pub(super) fn of(claim: &PersistentVolumeClaim) -> Self {
        Self { key: claim.key(), uid: claim.uid.clone() }
    }
}

impl VolumePlan {
    /// Whether there is nothing to be done.
    pub fn is_empty(&self) -> bool {
        self.bind.is_empty() && self.provision.is_empty()
    }
}

impl From<Found<'_>> for VolumePlan {
    fn from(found: Found<'_>) -> Self {
        let bind = found.bind.into_iter().map(|(volume, claim)| (volume.clone(), claim.id().clone()));
        let provision = found.provision.into_iter().map(|claim| claim.id().clone());
        Self { bind: bind.collect(), provision: provision.collect() }
    }
}

/// The plan for a pod on a node; where the plugin's filter refuses the node, its refusal.
pub fn plan(cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Result<VolumePlan, Status> {
    let claims = PodClaims::of(cluster, &claims_of_pod(cluster, pod)?)?;
    Ok(claims.find(&node.node, cluster.csi_node(node.name()))?.into())
}
