//! Volumes that are given away before the API server knows it, so that the next pod sees them as taken.

use supercargo_framework::Status;
use supercargo_model::{
    Cluster, Labels, Name,
    object::Object,
    storage::{ClaimRef, PersistentVolume, PersistentVolumeClaim},
};

use super::{
    annotations::{BOUND_BY_CONTROLLER, SELECTED_NODE},
    delayed::refers_to,
    plan::{ClaimId, VolumePlan},
};

/// The volumes and claims as they will be when a plan for a node is carried out; or why it does not hold any more.
pub(super) fn as_planned(cluster: &Cluster, plan: &VolumePlan, node: &Name) -> Result<Vec<Object>, Status> {
    let bound = plan.bind.iter().map(|(volume, claim)| given_away(cluster, volume, claim));
    let provisioned = plan.provision.iter().map(|claim| sent_to(cluster, claim, node));
    bound.chain(provisioned).collect()
}

/// A volume as it will be when it is bound to a claim.
fn given_away(cluster: &Cluster, volume: &str, id: &ClaimId) -> Result<Object, Status> {
    let claim = planned_claim(cluster, id)?;
    let Some(now) = cluster.volume(volume) else {
        return Err(Status::error(format!("could not find v1.PersistentVolume {volume:?}")));
    };
    if now.claim.as_ref().is_some_and(|taken_by| !refers_to(taken_by, claim)) {
        return Err(Status::error(format!("persistentvolume {volume:?} is bound to another claim already")));
    }
    let bound = PersistentVolume {
        claim: Some(ClaimRef {
            namespace: Some(claim.namespace.clone()),
            name: Some(claim.name.clone()),
            uid: Some(claim.uid.clone()),
        }),
        // Where a person has written the claim down, that stays visible.
        annotations: match now.claim {
            None => with_annotation(&now.annotations, BOUND_BY_CONTROLLER, "yes".into()),
            Some(_) => now.annotations.clone(),
        },
        ..now.clone()
    };
    Ok(Object::PersistentVolume(bound))
}

/// A claim as it will be when a volume is made for it on a node.
fn sent_to(cluster: &Cluster, id: &ClaimId, node: &Name) -> Result<Object, Status> {
    let now = planned_claim(cluster, id)?;
    let sent = PersistentVolumeClaim {
        annotations: with_annotation(&now.annotations, SELECTED_NODE, node.clone()),
        ..now.clone()
    };
    Ok(Object::PersistentVolumeClaim(sent))
}

fn planned_claim<'a>(cluster: &'a Cluster, id: &ClaimId) -> Result<&'a PersistentVolumeClaim, Status> {
    let same = cluster.claim(&id.key).filter(|claim| claim.uid == id.uid);
    let key = id.key.to_string();
    same.ok_or_else(|| Status::error(format!("could not find v1.PersistentVolumeClaim {key:?}")))
}

fn with_annotation(annotations: &Labels, key: &str, value: Name) -> Labels {
    let others = annotations.iter().map(|(key, value)| (key.clone(), value.clone()));
    others.chain([(key.into(), value)]).collect()
}
