//! How much of a cluster is requested, by zone and resource.

use std::collections::BTreeMap;

use serde::Serialize;
use supercargo_model::{Cluster, Name, NodeInfo};

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
pub struct Share {
    /// How many.
    pub nodes: usize,
    /// By resource.
    pub resources: BTreeMap<String, Amount>,
}

impl Share {
    fn add(&mut self, info: &NodeInfo) {
        self.nodes += 1;
        let (allocatable, requested) = (&info.node.allocatable, &info.requested);
        let pods = i64::try_from(info.pods.len()).unwrap_or(i64::MAX);
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
    pub total: Share,
    /// By the value of the nodes' zone label; nodes without one are under the empty name.
    pub zones: BTreeMap<Name, Share>,
}

impl Utilisation {
    /// How much of a cluster is requested now.
    pub fn of(cluster: &Cluster) -> Self {
        let mut utilisation = Self::default();
        for info in cluster.nodes() {
            let zone = info.node.labels.get(ZONE_LABEL).cloned().unwrap_or_default();
            utilisation.total.add(info);
            utilisation.zones.entry(zone).or_default().add(info);
        }
        utilisation
    }
}

#[cfg(test)]
mod tests {
    use supercargo_model::testing::{cluster, node, pod};

    use super::*;

    #[test]
    fn nodes_of_a_zone_are_summed_up() {
        let at = |name: &str, zone: &str| node(name).label(ZONE_LABEL, zone);
        let cluster = cluster([
            at("a1", "a").allocatable("cpu", "4"),
            at("a2", "a").allocatable("cpu", "4"),
            at("b1", "b").allocatable("example.com/gpu", "8"),
            pod("p").on("a2").container(&[("cpu", "2")]),
        ]);
        let utilisation = Utilisation::of(&cluster);
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
