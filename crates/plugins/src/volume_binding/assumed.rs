//! Volumes that are given away before the API server knows it, so that the next pod sees them as taken.
//!
//! As in kube-scheduler's assume cache, what the server tells always wins over what was assumed, and what comes to
//! nothing is taken back to what the server told last.

use std::collections::HashMap;

use supercargo_framework::Status;
use supercargo_model::{
    Cluster, Key, Labels, Name,
    object::{Kind, Object},
    storage::{ClaimRef, PersistentVolume, PersistentVolumeClaim},
};

use super::{
    annotations::{BOUND_BY_CONTROLLER, SELECTED_NODE},
    delayed::refers_to,
    plan::{ClaimId, VolumePlan},
};

/// The volumes and claims of a cluster that are ahead of the API server.
#[derive(Debug, Default)]
pub struct AssumedVolumes {
    ahead: HashMap<(Kind, Key), Ahead>,
    assumption_count: u64,
}

/// An object of which the cluster has another version than the server has told.
#[derive(Debug)]
struct Ahead {
    told: Object,
    /// The assumptions that need ours: pods can share a claim.
    needed_by: Vec<u64>,
}

/// What was assumed for one pod, to be handed back if it comes to nothing. After a success it can be dropped: the server
/// will tell what was written, and that ends it.
#[must_use]
#[derive(Debug)]
pub struct Assumption {
    id: u64,
    objects: Vec<(Kind, Key)>,
}

/// An object that was taken back: to the queue, an update of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Restored {
    /// As it was assumed.
    pub before: Object,
    /// As the server told it.
    pub after: Object,
}

impl AssumedVolumes {
    /// Gives volumes away as planned for a node. Either all of it is done, or nothing.
    pub fn assume(
        &mut self,
        cluster: &mut Cluster,
        plan: &VolumePlan,
        node: &Name,
    ) -> Result<Assumption, Status> {
        let mut changes = Vec::new();
        for (volume, claim) in &plan.bind {
            changes.push(given_away(cluster, volume, claim)?);
        }
        for claim in &plan.provision {
            changes.push(sent_to(cluster, claim, node)?);
        }
        self.assumption_count += 1;
        let assumption = Assumption {
            id: self.assumption_count,
            objects: changes.iter().map(|(told, _)| (told.kind(), told.key())).collect(),
        };
        for (told, ours) in changes {
            self.put(cluster, assumption.id, told, ours);
        }
        Ok(assumption)
    }

    fn put(&mut self, cluster: &mut Cluster, id: u64, told: Object, ours: Object) {
        match self.ahead.get_mut(&(told.kind(), told.key())) {
            // The cluster's version is one that was assumed earlier, not one that the server has told.
            Some(ahead) => ahead.needed_by.push(id),
            None if told == ours => return,
            None => {
                let ahead = Ahead { told, needed_by: vec![id] };
                self.ahead.insert((ours.kind(), ours.key()), ahead);
            }
        }
        cluster.put(ours);
    }

    /// Takes an assumption back, except for what the server has told about since, and what another pod needs as well.
    pub fn restore(&mut self, cluster: &mut Cluster, assumption: Assumption) -> Vec<Restored> {
        let mut restored = Vec::new();
        for object in assumption.objects {
            let Some(ahead) = self.ahead.get_mut(&object) else {
                continue;
            };
            ahead.needed_by.retain(|id| *id != assumption.id);
            if !ahead.needed_by.is_empty() {
                continue;
            }
            let told = self.ahead.remove(&object).map(|ahead| ahead.told);
            if let (Some(before), Some(after)) = (current(cluster, &object), told) {
                cluster.put(after.clone());
                restored.push(Restored { before, after });
            }
        }
        restored
    }

    /// To be called when the server tells a new version of an object, or that it is gone, before the cluster learns of
    /// it: what was assumed about the object is over.
    pub fn server_tells(&mut self, kind: Kind, key: &Key) {
        if matches!(kind, Kind::PersistentVolume | Kind::PersistentVolumeClaim) {
            self.ahead.remove(&(kind, key.clone()));
        }
    }

    /// How many objects are ahead of the server.
    pub fn len(&self) -> usize {
        self.ahead.len()
    }

    /// Whether the server knows everything.
    pub fn is_empty(&self) -> bool {
        self.ahead.is_empty()
    }
}

fn current(cluster: &Cluster, (kind, key): &(Kind, Key)) -> Option<Object> {
    match kind {
        Kind::PersistentVolume => cluster.volume(&key.name).cloned().map(Object::PersistentVolume),
        _ => cluster.claim(key).cloned().map(Object::PersistentVolumeClaim),
    }
}

/// A volume now, and as it will be when it is bound to a claim.
fn given_away(cluster: &Cluster, volume: &str, id: &ClaimId) -> Result<(Object, Object), Status> {
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
    Ok((Object::PersistentVolume(now.clone()), Object::PersistentVolume(bound)))
}

/// A claim now, and as it will be when a volume is made for it on a node.
fn sent_to(cluster: &Cluster, id: &ClaimId, node: &Name) -> Result<(Object, Object), Status> {
    let now = planned_claim(cluster, id)?;
    let sent = PersistentVolumeClaim {
        annotations: with_annotation(&now.annotations, SELECTED_NODE, node.clone()),
        ..now.clone()
    };
    Ok((Object::PersistentVolumeClaim(now.clone()), Object::PersistentVolumeClaim(sent)))
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
