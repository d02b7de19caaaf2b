//! Claims that have their volume: its node affinity decides.

use std::sync::Arc;

use supercargo_framework::Status;
use supercargo_model::{
    Cluster, Labels,
    selector::NodeSelector,
    storage::{CsiNode, PersistentVolume, PersistentVolumeClaim, Untranslatable},
};

use super::{claims::Refusal, reach::reaches};

/// The volume of a bound claim.
pub(super) enum BoundVolume {
    /// It does not exist (any more).
    Missing,
    /// Nodes that it can be reached from.
    At(Places),
}

pub(super) struct Places {
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
            Some(volume) => {
                Self::At(Places { affinity: volume.node_affinity.clone(), migrated: migrated(volume) })
            }
        }
    }

    /// Why a node will not do for all of the volumes: the first reason there is.
    pub(super) fn check(
        volumes: &[Self],
        node: &Labels,
        csi_node: Option<&CsiNode>,
    ) -> Result<Option<Refusal>, Status> {
        for volume in volumes {
            let Self::At(places) = volume else {
                return Ok(Some(Refusal::NoVolume));
            };
            if !reaches(places.on(csi_node)?, node) {
                return Ok(Some(Refusal::OutOfReach));
            }
        }
        Ok(None)
    }
}

fn migrated(volume: &PersistentVolume) -> Option<Migrated> {
    Some(Migrated { plugin: volume.migrated_plugin()?, affinity: volume.migrated_node_affinity() })
}

impl Places {
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
