//! How far the binding of a pod's volumes has come, as far as the cluster tells.

use supercargo_model::{
    Cluster, Key, Name, Node, ResourceVersion,
    storage::{PersistentVolume, PersistentVolumeClaim},
};

use super::{
    annotations::{BIND_COMPLETED, SELECTED_NODE},
    bound::reaches_volume,
    plan::ClaimId,
};

/// A plan that has been written into the API server, with the versions that its objects got there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WrittenPlan {
    /// The pod.
    pub(super) pod: Key,
    /// The node that was chosen for it.
    pub(super) node: Name,
    /// Volumes that were given to claims.
    pub(super) bound: Vec<(Name, ClaimId, ResourceVersion)>,
    /// Claims that were sent to the node.
    pub(super) provisioned: Vec<(ClaimId, ResourceVersion)>,
}

/// Why not everything is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unbound {
    /// The others have not done their part yet.
    NotYet,
    /// It has come to nothing, and the pod has to be tried again.
    Never(String),
}

/// Whether all that was written has led to bound claims. What is told in kube-scheduler's words is what the cluster shows
/// of the API server; where it shows less than what was written, the watch is behind.
pub(super) fn check_bound(cluster: &Cluster, written: &WrittenPlan, pod_exists: bool) -> Result<(), Unbound> {
    let name = &written.node;
    let Some(node) = cluster.node(name) else {
        return Err(Unbound::Never(format!("failed to get node {name:?}: node {name:?} not found")));
    };
    if !pod_exists {
        let name = &written.pod.name;
        return Err(Unbound::Never(format!("pod does not exist any more: pod {name:?} not found")));
    }
    let check = ProgressCheck { cluster, node: &node.node };
    for (volume, claim, version) in &written.bound {
        check.at_binding(volume, claim, version)?;
    }
    for (claim, version) in &written.provisioned {
        check.at_provisioning(claim, version)?;
    }
    Ok(())
}

struct ProgressCheck<'a> {
    cluster: &'a Cluster,
    node: &'a Node,
}

impl<'a> ProgressCheck<'a> {
    fn at_binding(&self, name: &Name, id: &ClaimId, written: &ResourceVersion) -> Result<(), Unbound> {
        let failed = |why: String| Unbound::Never(format!("failed to check binding: {why}"));
        let missing = || failed(format!("persistentvolumes {name:?} not found"));
        let volume = self.cluster.volume(name).ok_or_else(missing)?;
        let claim = self.claim(id).ok_or_else(|| failed(claim_not_found(id)))?;
        if is_older(&volume.version, written) {
            return Err(Unbound::NotYet);
        }
        self.check_reach(volume)?;
        if volume.claim.as_ref().and_then(|claim| claim.uid.as_ref()) != Some(&id.uid) {
            return Err(Unbound::Never(format!("ClaimRef got reset for pv {name:?}")));
        }
        check_claim(claim)
    }

    fn at_provisioning(&self, id: &ClaimId, written: &ResourceVersion) -> Result<(), Unbound> {
        let missing = || Unbound::Never(format!("failed to check provisioning pvc: {}", claim_not_found(id)));
        let claim = self.claim(id).ok_or_else(missing)?;
        if is_older(&claim.version, written) {
            return Err(Unbound::NotYet);
        }
        let name = &claim.name;
        if claim.annotations.is_empty() {
            return Err(Unbound::Never(format!("selectedNode annotation reset for PVC {name:?}")));
        }
        if claim.annotations.get(SELECTED_NODE) != Some(&self.node.name) {
            return Err(Unbound::Never(format!("provisioning failed for PVC {name:?}")));
        }
        if !claim.volume.is_empty() {
            // A claim can name its volume before the volume can be seen.
            self.check_reach(self.cluster.volume(&claim.volume).ok_or(Unbound::NotYet)?)?;
        }
        check_claim(claim)
    }

    fn check_reach(&self, volume: &PersistentVolume) -> Result<(), Unbound> {
        match reaches_volume(volume, &self.node.labels, self.cluster.csi_node(&self.node.name)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Unbound::Never(format!(
                "pv {:?} node affinity doesn't match node {:?}: no matching NodeSelectorTerms",
                volume.name, self.node.name
            ))),
            Err(status) => {
                Err(Unbound::Never(format!("failed to translate pv to csi: {}", status.message())))
            }
        }
    }

    /// The claim, if it still is the same.
    fn claim(&self, id: &ClaimId) -> Option<&'a PersistentVolumeClaim> {
        self.cluster.claim(&id.key).filter(|claim| claim.uid == id.uid)
    }
}

/// Whether the cluster has not seen yet what was written. Versions of one kind grow; what is no number is not compared.
fn is_older(seen: &ResourceVersion, written: &ResourceVersion) -> bool {
    let number = |version: &ResourceVersion| version.0.parse::<u64>().ok();
    matches!((number(seen), number(written)), (Some(seen), Some(written)) if seen < written)
}

fn check_claim(claim: &PersistentVolumeClaim) -> Result<(), Unbound> {
    let is_bound = !claim.volume.is_empty() && claim.annotations.has(BIND_COMPLETED);
    if is_bound { Ok(()) } else { Err(Unbound::NotYet) }
}

fn claim_not_found(ClaimId { key, .. }: &ClaimId) -> String {
    format!("persistentvolumeclaims \"{}/{}\" not found", key.namespace, key.name)
}
