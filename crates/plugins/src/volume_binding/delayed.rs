//! Claims that are bound once the pod has a node: to a volume that is there, or to one that is made.

use std::sync::Arc;

use supercargo_model::{
    Cluster, Key, Labels, Name, Node, Quantity,
    selector::{NodeSelector, NodeSelectorTerm, Requirement, Selector},
    storage::{
        ClaimRef, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass, TopologyTerm,
    },
};

use super::{annotations::SELECTED_NODE, claims::ClaimRefusal, plan::ClaimId, reach::reaches};

/// The provisioner of classes whose volumes are all made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// A claim that waits for its pod's node.
pub(super) struct DelayedClaim {
    id: ClaimId,
    size: Quantity,
    /// An earlier decision: the node for which a volume is being made.
    selected_node: Option<Name>,
    /// Volumes that are there for this claim alone.
    prebound: Vec<Candidate>,
    /// Other volumes that would do, from small to large.
    available: Vec<Candidate>,
    provisioning: Provisioning,
}

struct Candidate {
    name: Name,
    affinity: Option<Arc<NodeSelector>>,
}

/// What a node has for a pod's claims.
#[derive(Default)]
pub(super) struct Found<'a> {
    /// Volumes to bind claims to.
    pub(super) bind: Vec<(&'a Name, &'a DelayedClaim)>,
    /// Claims for which a volume can be made.
    pub(super) provision: Vec<&'a DelayedClaim>,
}

/// How a volume can be made for a claim.
enum Provisioning {
    Impossible,
    Possible {
        /// What a node must match, any of these; anywhere, if there are none.
        places: Vec<NodeSelectorTerm>,
        /// The nodes where there is room, any of these; `None` if the driver does not say.
        room: Option<Vec<Selector>>,
    },
}

impl DelayedClaim {
    pub(super) fn of(cluster: &Cluster, claim: &PersistentVolumeClaim) -> Self {
        let (prebound, available) = candidates(cluster, claim);
        let class = cluster.storage_class(claim.class_name());
        Self {
            id: ClaimId::of(claim),
            size: claim.size.unwrap_or_default(),
            selected_node: claim.annotations.get(SELECTED_NODE).cloned(),
            prebound,
            available,
            provisioning: class
                .map_or(Provisioning::Impossible, |class| Provisioning::of(cluster, claim, class)),
        }
    }

    /// Whether any node has something for it: no volume is there, and one can be made anywhere.
    pub(super) fn can_be_anywhere(&self) -> bool {
        let anywhere = matches!(
            &self.provisioning,
            Provisioning::Possible { places, room: None } if places.is_empty()
        );
        anywhere && self.selected_node.is_none() && self.prebound.is_empty() && self.available.is_empty()
    }

    /// What a pod's claims are sorted by.
    pub(super) fn turn(&self) -> Option<Quantity> {
        self.selected_node.is_none().then_some(self.size)
    }

    /// The claim.
    pub(super) fn id(&self) -> &ClaimId {
        &self.id
    }

    /// What a node has for all of the claims; or why it will not do: the first reason there is.
    pub(super) fn find<'a>(claims: &'a [Self], node: &Node) -> Result<Found<'a>, ClaimRefusal> {
        if claims.iter().any(|claim| claim.selected_elsewhere(node).is_some()) {
            return Err(ClaimRefusal::NothingToBind);
        }
        let found = Self::match_volumes(claims, node);
        match found.provision.iter().find_map(|claim| claim.provisioning.check(&node.labels)) {
            Some(refusal) => Err(refusal),
            None => Ok(found),
        }
    }

    /// The claims that a node has nothing for, each with why.
    pub(super) fn unplaced<'a>(claims: &'a [Self], node: &Node) -> Vec<(&'a Key, String)> {
        let elsewhere = |claim: &'a Self| {
            let selected = claim.selected_elsewhere(node)?;
            Some((&claim.id.key, format!("a volume is being made for it on node {selected}")))
        };
        let unmade = |claim: &'a Self| Some((&claim.id.key, claim.why_unmade(node)?));
        let selected = claims.iter().filter_map(elsewhere);
        let found = Self::match_volumes(claims, node);
        let to_be_made = found.provision.into_iter().filter(|claim| claim.selected_elsewhere(node).is_none());
        selected.chain(to_be_made.filter_map(unmade)).collect()
    }

    /// Why no volume can be made for a node.
    fn why_unmade(&self, node: &Node) -> Option<String> {
        let why = match (self.provisioning.check(&node.labels)?, &self.provisioning) {
            (ClaimRefusal::NotEnoughRoom, _) => {
                format!("its class's driver has not the room for {} here (CSIStorageCapacity)", self.size)
            }
            (_, Provisioning::Impossible) => "its class makes none".to_owned(),
            (_, Provisioning::Possible { .. }) => {
                "its class makes none for this node (allowedTopologies)".to_owned()
            }
        };
        Some(format!("no available volume fits it and can be reached from the node, and {why}"))
    }

    /// The node that was selected for it, if it is another one.
    fn selected_elsewhere(&self, node: &Node) -> Option<&Name> {
        self.selected_node.as_ref().filter(|selected| **selected != node.name)
    }

    /// The claims that a volume is there for, and those for which one would have to be made.
    fn match_volumes<'a>(claims: &'a [Self], node: &Node) -> Found<'a> {
        let mut found = Found::default();
        for claim in claims {
            match claim.find_volume(&node.labels, &found.bind) {
                Some(volume) => found.bind.push((volume, claim)),
                None => found.provision.push(claim),
            }
        }
        found
    }

    /// A volume to bind the claim to, other than those chosen for the pod's other claims.
    fn find_volume(&self, node: &Labels, chosen: &[(&Name, &Self)]) -> Option<&Name> {
        if self.selected_node.is_some() {
            return None;
        }
        let free = |candidate: &&Candidate| chosen.iter().all(|(volume, _)| **volume != candidate.name);
        let in_reach = |candidate: &&Candidate| reaches(candidate.affinity.as_deref(), node);
        // A volume that is meant for the claim rules all others out, even where it is out of reach.
        let found = match self.prebound.iter().find(free) {
            Some(prebound) => Some(prebound).filter(in_reach),
            None => self.available.iter().find(|candidate| free(candidate) && in_reach(candidate)),
        };
        found.map(|candidate| &candidate.name)
    }
}

/// The volumes that would do wherever they can be reached: those meant for the claim, and the others by size.
fn candidates(cluster: &Cluster, claim: &PersistentVolumeClaim) -> (Vec<Candidate>, Vec<Candidate>) {
    let fitting = cluster.volumes_for(&claim.key()).filter(|volume| fits(volume, claim));
    let (prebound, others): (Vec<_>, Vec<_>) = fitting.partition(|volume| volume.claim.is_some());
    let mut available: Vec<_> = others.into_iter().filter(|volume| is_available(volume, claim)).collect();
    available.sort_by_key(|volume| volume.capacity);
    let candidate = |volume: &PersistentVolume| Candidate {
        name: volume.name.clone(),
        affinity: volume.node_affinity.clone(),
    };
    (prebound.into_iter().map(candidate).collect(), available.into_iter().map(candidate).collect())
}

/// What even a volume that is meant for the claim must meet.
fn fits(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let attributes = |class: &Option<Name>| class.clone().unwrap_or_default();
    *volume.storage_class == *claim.class_name()
        && volume.claim.as_ref().is_none_or(|meant_for| refers_to(meant_for, claim))
        && volume.capacity >= claim.size.unwrap_or_default()
        && volume.volume_mode == claim.volume_mode
        && attributes(&volume.attributes_class) == attributes(&claim.attributes_class)
        && !volume.terminating
}

/// Whether a volume is meant for a claim: the very one, or any of its name.
pub(super) fn refers_to(reference: &ClaimRef, claim: &PersistentVolumeClaim) -> bool {
    let uid = reference.uid.as_ref().filter(|uid| !uid.is_empty());
    reference.name.as_ref() == Some(&claim.name)
        && reference.namespace.as_ref() == Some(&claim.namespace)
        && uid.is_none_or(|uid| *uid == claim.uid)
}

/// What a volume must meet besides that is there for any claim.
fn is_available(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    &*volume.phase == "Available"
        && claim.selector.as_ref().is_none_or(|selector| selector.matches(&volume.labels))
        && claim.access_modes.iter().all(|mode| volume.access_modes.contains(mode))
}

impl Provisioning {
    fn of(cluster: &Cluster, claim: &PersistentVolumeClaim, class: &StorageClass) -> Self {
        if matches!(&*class.provisioner, "" | NO_PROVISIONER) {
            return Self::Impossible;
        }
        Self::Possible {
            places: class.allowed_topologies.iter().map(place).collect(),
            room: room(cluster, claim, class),
        }
    }

    /// Why a volume cannot be made for a node.
    fn check(&self, node: &Labels) -> Option<ClaimRefusal> {
        let Self::Possible { places, room } = self else {
            return Some(ClaimRefusal::NothingToBind);
        };
        if !places.is_empty() && !places.iter().any(|place| place.matches("", node)) {
            return Some(ClaimRefusal::NothingToBind);
        }
        let has_room = room.as_ref().is_none_or(|room| room.iter().any(|nodes| nodes.matches(node)));
        (!has_room).then_some(ClaimRefusal::NotEnoughRoom)
    }
}

fn place(term: &TopologyTerm) -> NodeSelectorTerm {
    let labels = term.match_label_expressions.iter();
    let expressions = labels.map(|label| Requirement::is_in(label.key.clone(), label.values.iter().cloned()));
    NodeSelectorTerm::new(expressions.collect(), Vec::new())
}

/// The nodes where a CSI driver has room for the claim, if it says so.
fn room(cluster: &Cluster, claim: &PersistentVolumeClaim, class: &StorageClass) -> Option<Vec<Selector>> {
    let bytes = claim.size?.value();
    cluster.csi_driver(&class.provisioner).filter(|driver| driver.storage_capacity)?;
    let suffices = |capacity: &&CsiStorageCapacity| {
        capacity.storage_class == class.name
            && capacity.volume_limit().is_some_and(|limit| limit.value() >= bytes)
    };
    Some(cluster.csi_capacities().filter(suffices).map(|capacity| capacity.node_topology.clone()).collect())
}
