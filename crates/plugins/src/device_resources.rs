//! Extended resources that a class of devices stands for, as they look to plugins that count resources.

use std::sync::{Mutex, PoisonError};

use supercargo_model::{Cluster, Node, NodeInfo};

use crate::dynamic_resources::allocator::{NodeInQuestion, SelectorCache, devices_of_class};

/// Whether a node offers a resource by way of devices: no device plugin does, and there is a class that stands for it.
pub(crate) fn are_devices(cluster: &Cluster, node: &Node, resource: &str) -> bool {
    stands_for_devices(cluster, resource) && node.allocatable.get(resource) <= 0
}

/// Whether a class of devices stands for a resource.
pub(crate) fn stands_for_devices(cluster: &Cluster, resource: &str) -> bool {
    cluster.devices().class_of_resource(resource).is_some()
}

/// Counts the devices that stand for extended resources.
#[derive(Default)]
pub(crate) struct DeviceCounts(Mutex<SelectorCache>);

impl DeviceCounts {
    /// How many devices of a resource's class a node has, and how many of them are in use; `None` if it has none, or device
    /// plugins offer the resource.
    pub(crate) fn of(&self, cluster: &Cluster, node: &NodeInfo, resource: &str) -> Option<(i64, i64)> {
        if node.node.allocatable.get(resource) != 0 {
            return None;
        }
        let class = cluster.devices().class_of_resource(resource)?;
        let question = NodeInQuestion { name: node.name(), labels: &node.node.labels };
        let mut selectors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = devices_of_class(cluster.devices(), class, question, &mut selectors).ok();
        counted.filter(|(all, _)| *all > 0)
    }
}
