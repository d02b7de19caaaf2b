//! A pod's claims, as far as they are independent of the node: which are bound, which wait for the pod's node.

use std::{collections::HashSet, sync::Arc};

use supercargo_framework::{Code, Status};
use supercargo_model::{
    Cluster, Key, Name, Node, NodeId, NodeSet, Pod,
    storage::{CsiNode, PersistentVolumeClaim, VolumeBindingMode, VolumeSource},
};

use crate::fast_parts::LabelValue;

use super::{
    annotations::BIND_COMPLETED,
    bound::BoundVolume,
    delayed::{DelayedClaim, Found},
};

const UNBOUND_IMMEDIATE: &str = "pod has unbound immediate PersistentVolumeClaims";

/// Why a node will not do, in the order in which the reasons are told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClaimRefusal {
    OutOfReach,
    NothingToBind,
    NotEnoughRoom,
    NoVolume,
}

impl ClaimRefusal {
    fn reason(self) -> &'static str {
        match self {
            Self::OutOfReach => "node(s) didn't match PersistentVolume's node affinity",
            Self::NothingToBind => "node(s) didn't find available persistent volumes to bind",
            Self::NotEnoughRoom => "node(s) did not have enough free storage",
            Self::NoVolume => "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
        }
    }
}

/// The claims of a pod, each with what can become of it.
#[derive(Clone)]
pub(super) struct PodClaims {
    bound: Arc<[BoundVolume]>,
    /// Those with a node selected earlier first, then the others from small to large: so each gets the smallest fit.
    delayed: Arc<[DelayedClaim]>,
}

impl PodClaims {
    /// Sorts the claims of a pod. Those that are to be bound at once must be bound by now.
    pub(super) fn of(cluster: &Cluster, claims: &[&PersistentVolumeClaim]) -> Result<Self, Status> {
        let (mut bound, mut delayed, mut immediate) = (Vec::new(), Vec::new(), false);
        // A pod may name a claim any number of times: its volume is looked at once.
        let mut seen = HashSet::new();
        for claim in claims {
            if is_bound(claim) {
                if seen.insert(&claim.volume) {
                    bound.push(BoundVolume::of(cluster, claim));
                }
            } else if waits_for_pod(cluster, claim)? && claim.volume.is_empty() {
                delayed.push(*claim);
            } else {
                immediate = true;
            }
        }
        if immediate {
            return Err(Status::unresolvable(UNBOUND_IMMEDIATE));
        }
        let mut delayed: Vec<_> = delayed.into_iter().map(|claim| DelayedClaim::of(cluster, claim)).collect();
        delayed.sort_by_key(DelayedClaim::turn);
        Ok(Self { bound: bound.into(), delayed: delayed.into() })
    }

    /// Whether some volume can be reached by way of what nodes hand to CSI drivers.
    pub(super) fn are_migrated(&self) -> bool {
        self.bound.iter().any(BoundVolume::is_migrated)
    }

    /// The value of a label that tells the nodes which will do, if that is all there is to it; no volume may be migrated.
    pub(super) fn only_value(&self, cluster: &Cluster) -> Option<LabelValue> {
        match &*self.bound {
            [only] if self.delayed.iter().all(DelayedClaim::can_be_anywhere) => {
                only.reached_by_value(cluster)
            }
            _ => None,
        }
    }

    /// The nodes that will do, unless all will; no volume may be migrated.
    pub(super) fn nodes(&self, cluster: &Cluster) -> Option<NodeSet> {
        let mut reached_by = self.bound.iter().filter_map(|volume| volume.reached_by(cluster));
        let first = reached_by.next();
        let by_all = first.map(|first| {
            let others: Vec<NodeSet> = reached_by.collect();
            let is_in_all = |node: &NodeId| others.iter().all(|nodes| nodes.contains(*node));
            if others.is_empty() { first } else { first.iter().filter(is_in_all).collect() }
        });
        if self.delayed.iter().all(DelayedClaim::can_be_anywhere) {
            return by_all;
        }
        let finds = |node: &NodeId| self.find(&cluster.node_at(*node).node, None).is_ok();
        let all = by_all.unwrap_or_else(|| cluster.columns().live.clone());
        Some(all.iter().filter(finds).collect())
    }

    /// The claims that wait and that a node has nothing for, each with why.
    pub(super) fn unplaced(&self, node: &Node) -> Vec<(&Key, String)> {
        DelayedClaim::unplaced(&self.delayed, node)
    }

    /// What a node has for the claims that wait, if it can reach the volumes of the others.
    pub(super) fn find(&self, node: &Node, csi_node: Option<&CsiNode>) -> Result<Found<'_>, Status> {
        let bound = BoundVolume::check(&self.bound, &node.labels, csi_node)?;
        let mut refusals: Vec<ClaimRefusal> = bound.into_iter().collect();
        match DelayedClaim::find(&self.delayed, node) {
            Ok(found) if refusals.is_empty() => return Ok(found),
            Ok(_) => {}
            Err(refusal) => refusals.push(refusal),
        }
        refusals.sort();
        let reasons = refusals.into_iter().map(|refusal| refusal.reason().into());
        Err(Status::new(Code::UnschedulableAndUnresolvable, reasons))
    }
}

/// Whether a claim has its volume for good.
pub(super) fn is_bound(claim: &PersistentVolumeClaim) -> bool {
    !claim.volume.is_empty() && claim.annotations.has(BIND_COMPLETED)
}

/// Whether a claim is bound only once a pod that uses it has a node.
fn waits_for_pod(cluster: &Cluster, claim: &PersistentVolumeClaim) -> Result<bool, Status> {
    let name = claim.class_name();
    let Some(class) = cluster.storage_class(name) else {
        return Ok(false);
    };
    let mode = class.binding_mode;
    let unset = || Status::error(format!("VolumeBindingMode not set for StorageClass {name:?}"));
    Ok(mode.ok_or_else(unset)? == VolumeBindingMode::WaitForFirstConsumer)
}

/// The claims that a pod names, all of them fit for use.
pub(super) fn claims_of_pod<'a>(
    cluster: &'a Cluster,
    pod: &Pod,
) -> Result<Vec<&'a PersistentVolumeClaim>, Status> {
    let mut claims = Vec::new();
    for volume in &pod.spec.volumes {
        if let Some(name) = volume.claim_name(&pod.name) {
            let made_for_pod = volume.source == VolumeSource::Ephemeral;
            claims.push(usable_claim(cluster, pod, name, made_for_pod).map_err(Status::unresolvable)?);
        }
    }
    Ok(claims)
}

fn usable_claim<'a>(
    cluster: &'a Cluster,
    pod: &Pod,
    name: Name,
    made_for_pod: bool,
) -> Result<&'a PersistentVolumeClaim, String> {
    let key = Key::new(pod.namespace.clone(), name);
    let name = &key.name;
    let Some(claim) = cluster.claim(&key) else {
        return Err(if made_for_pod {
            format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
        } else {
            format!("persistentvolumeclaim {name:?} not found")
        });
    };
    if &*claim.phase == "Lost" {
        let volume = &claim.volume;
        return Err(format!(
            "persistentvolumeclaim {name:?} bound to non-existent persistentvolume {volume:?}"
        ));
    }
    if claim.terminating {
        return Err(format!("persistentvolumeclaim {name:?} is being deleted"));
    }
    if made_for_pod && claim.controller_uid.as_ref() != Some(&pod.uid) {
        let pod = pod.key();
        return Err(format!("PVC {key} was not created for pod {pod} (pod is not owner)"));
    }
    Ok(claim)
}
