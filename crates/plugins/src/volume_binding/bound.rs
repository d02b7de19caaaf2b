//! Claims that have their volume: its node affinity decides.

use std::sync::Arc;

use supercargo_framework::Status;
use supercargo_model::{
    Cluster, Labels, NodeSet,
    selector::NodeSelector,
    storage::{CsiNode, PersistentVolume, PersistentVolumeClaim, Untranslatable},
};

use crate::fast_parts::LabelValue;

use super::{
    claims::ClaimRefusal,
    reach::{reached_by, reached_by_value, reaches},
};

/// The volume of a bound claim.
pub(super) enum BoundVolume {
    /// It does not exist (any more).
    Missing,
    /// Nodes that it can be reached from.
    At(ReachableFrom),
}

pub(super) struct ReachableFrom {
    affinity: Option<Arc<NodeSelector>>,
    migrated: Option<Migrated>,
}

/// Where a disk of the way of old is, for nodes that hand it to a CSI driver.
struct Migrated {
    plugin: &'static str,
    affinity: Result<Option<Arc<NodeSelector>>, Untranslatable>,
}

impl BoundVolume {
    pub(super) fn of(cluster: &Cluster, claim: &PersistentVolumeClaim) -> Self {
        match cluster.volume(&claim.volume) {
            None => Self::Missing,
            Some(volume) => Self::At(ReachableFrom::of(volume)),
        }
    }

    /// Whether which nodes reach it depends on what they hand to CSI drivers.
    pub(super) fn is_migrated(&self) -> bool {
        matches!(self, Self::At(ReachableFrom { migrated: Some(_), .. }))
    }

    /// The nodes that reach it, unless all do.
    pub(super) fn reached_by(&self, cluster: &Cluster) -> Option<NodeSet> {
        match self {
            Self::Missing => Some(NodeSet::default()),
            Self::At(places) => Some(reached_by(cluster, places.affinity.as_deref()?)),
        }
    }

    /// The value of a label that tells the nodes which reach it, if that is all there is to it.
    pub(super) fn reached_by_value(&self, cluster: &Cluster) -> Option<LabelValue> {
        match self {
            Self::Missing => None,
            Self::At(places) => reached_by_value(cluster, places.affinity.as_deref()?),
        }
    }

    /// Why a node will not do for all of the volumes: the first reason there is.
    pub(super) fn check(
        volumes: &[Self],
        node: &Labels,
        csi_node: Option<&CsiNode>,
    ) -> Result<Option<ClaimRefusal>, Status> {
        for volume in volumes {
            let Self::At(places) = volume else {
                return Ok(Some(ClaimRefusal::NoVolume));
            };
            if !reaches(places.on(csi_node)?, node) {
                return Ok(Some(ClaimRefusal::OutOfReach));
            }
        }
        Ok(None)
    }
}

fn migrated(volume: &PersistentVolume) -> Option<Migrated> {
    Some(Migrated { plugin: volume.migrated_plugin()?, affinity: volume.migrated_node_affinity() })
}

/// Whether a node with these labels can reach a volume. An error if the volume is a disk of the way of old that the node
/// hands to a CSI driver, and the driver's form of it cannot be told.
pub(super) fn reaches_volume(
    volume: &PersistentVolume,
    node: &Labels,
    csi_node: Option<&CsiNode>,
) -> Result<bool, Status> {
    Ok(reaches(ReachableFrom::of(volume).on(csi_node)?, node))
}

impl ReachableFrom {
    fn of(volume: &PersistentVolume) -> Self {
        Self { affinity: volume.node_affinity.clone(), migrated: migrated(volume) }
    }

    /// The node affinity that counts on a node, which says what it hands to CSI drivers.
    fn on(&self, csi_node: Option<&CsiNode>) -> Result<Option<&NodeSelector>, Status> {
        let hands_over = |plugin: &str| {
            csi_node.is_some_and(|node| node.migrated_plugins.iter().any(|handed| **handed == *plugin))
        };
        match &self.migrated {
            Some(Migrated { plugin, affinity }) if hands_over(plugin) => match affinity {
                Ok(affinity) => Ok(affinity.as_deref()),
                Err(error) => Err(Status::error(format!("could not translate pv: {error}"))),
            },
            _ => Ok(self.affinity.as_deref()),
        }
    }
}
