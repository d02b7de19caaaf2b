//! How much of a cluster is requested, by zone and resource.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use supercargo_model::{Cluster, Name, Node, Resources, object::Object};

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// How much there is of a resource, and how much of it is requested; cpu in thousandths of a core, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    /// What pods may use.
    pub allocatable: i128,
    /// What pods hold.
    pub requested: i128,
}

impl Amount {
    /// How much is requested, in percent; 0 where there is none of it.
    pub fn percent(&self) -> f64 {
        match self.allocatable {
            0 => 0.0,
            allocatable => self.requested as f64 * 100.0 / allocatable as f64,
        }
    }

    fn add(&mut self, allocatable: i64, requested: i64) {
        self.allocatable += i128::from(allocatable);
        self.requested += i128::from(requested);
    }
}

/// Nodes that are counted together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeTotals {
    /// How many.
    pub nodes: usize,
    /// By resource.
    pub resources: BTreeMap<String, Amount>,
}

impl NodeTotals {
    /// Counts a node, and what its pods hold.
    fn add(&mut self, node: &Node, requested: &Resources, pods: usize) {
        self.nodes += 1;
        let allocatable = &node.allocatable;
        let pods = i64::try_from(pods).unwrap_or(i64::MAX);
        let mut add = |resource: &str, there, held| {
            if there != 0 || held != 0 {
                self.resources.entry(resource.to_owned()).or_default().add(there, held);
            }
        };
        add("cpu", allocatable.milli_cpu, requested.milli_cpu);
        add("memory", allocatable.memory, requested.memory);
        add("ephemeral-storage", allocatable.ephemeral_storage, requested.ephemeral_storage);
        add("pods", allocatable.pods, pods);
        for (name, there) in &allocatable.scalars {
            add(name, *there, requested.get(name));
        }
    }
}

/// How much of a cluster is requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Utilisation {
    /// The whole cluster.
    pub total: NodeTotals,
    /// By the value of the nodes' zone label; nodes without one are under the empty name.
    pub zones: BTreeMap<Name, NodeTotals>,
}

impl Utilisation {
    /// How much of a cluster is requested now.
    pub fn of(cluster: &Cluster) -> Self {
        let mut utilisation = Self::default();
        for info in cluster.nodes() {
            utilisation.add(&info.node, &info.requested, info.pods.len());
        }
        utilisation
    }

    /// The same for objects that are not in a cluster yet.
    pub fn of_objects(objects: &[Object]) -> Self {
        let mut held: HashMap<&Name, (Resources, usize)> = HashMap::new();
        for object in objects {
            if let Object::Pod(pod) = object
                && let Some(node) = pod.node.as_ref().filter(|_| !pod.finished)
            {
                let (requested, pods) = held.entry(node).or_default();
                requested.add(&pod.spec.requests.held);
                *pods += 1;
            }
        }
        let mut utilisation = Self::default();
        for object in objects {
            if let Object::Node(node) = object {
                let (requested, pods) = held.remove(&node.name).unwrap_or_default();
                utilisation.add(node, &requested, pods);
            }
        }
        utilisation
    }

    fn add(&mut self, node: &Node, requested: &Resources, pods: usize) {
        let zone = node.labels.get(ZONE_LABEL).cloned().unwrap_or_default();
        self.total.add(node, requested, pods);
        self.zones.entry(zone).or_default().add(node, requested, pods);
    }
}

#[cfg(test)]
mod tests {
    use supercargo_model::testing::{cluster, node, pod};

    use super::*;

    #[test]
    fn nodes_of_a_zone_are_summed_up() {
        let at = |name: &str, zone: &str| node(name).label(ZONE_LABEL, zone);
        let builders = [
            at("a1", "a").allocatable("cpu", "4"),
            at("a2", "a").allocatable("cpu", "4"),
            at("b1", "b").allocatable("example.com/gpu", "8"),
            pod("p").on("a2").container(&[("cpu", "2")]),
        ];
        let utilisation = Utilisation::of(&cluster(builders.clone()));
        assert_eq!(Utilisation::of_objects(&builders.map(|builder| builder.object())), utilisation);
        // 2 of 4 + 4 cores.
        let cpu = utilisation.zones["a"].resources["cpu"];
        assert_eq!(cpu, Amount { allocatable: 8000, requested: 2000 });
        assert_eq!(cpu.percent(), 25.0);
        // 110 on each node, one of them taken.
        assert_eq!(utilisation.zones["a"].resources["pods"], Amount { allocatable: 220, requested: 1 });
        let gpu = utilisation.zones["b"].resources["example.com/gpu"];
        assert_eq!(gpu, Amount { allocatable: 8, requested: 0 });
        assert_eq!((utilisation.total.nodes, utilisation.total.resources["cpu"]), (3, cpu));
    }
}
