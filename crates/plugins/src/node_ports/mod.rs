//! Keeps pods off nodes where a host port that they want is taken.

use std::sync::Arc;

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    bugs::{self, Bug},
    details::listed,
    event::{ActionType, EventInterest, EventResource},
    fast::{CLOSED, Compiled, FastFilter, FilterPart, NodeFilter, OPEN},
    points::{Filter, PreFilter, PreFilterOutcome, Requeue},
};
use supercargo_model::{
    Cluster, NodeId, NodeInfo, Pod,
    ports::{HostPort, UsedPorts},
};

/// The plugin's name.
pub const NAME: &str = "NodePorts";

const NO_FREE_PORTS: &str = "node(s) didn't have free ports for the requested pod ports";

/// The plugin.
pub struct NodePorts;

fn conflict(wanted: &[HostPort], taken: &UsedPorts) -> bool {
    !taken.is_empty() && wanted.iter().any(|port| taken.conflict(port))
}

impl PreFilter for NodePorts {
    fn pre_filter(&self, _: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        if pod.spec.host_ports.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::Go { nodes: None, prepared: Prepared::nothing() })
    }
}

impl Filter for NodePorts {
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        if conflict(&pod.spec.host_ports, &node.used_ports) {
            Err(Status::unschedulable(NO_FREE_PORTS))
        } else {
            Ok(())
        }
    }

    fn details(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let held = |wanted: &HostPort| {
            let holds = |other: &&Arc<Pod>| other.spec.host_ports.iter().any(|port| port.conflicts(wanted));
            let holders: Vec<String> =
                node.pods.iter().filter(holds).map(|other| other.key().to_string()).collect();
            (!holders.is_empty()).then(|| {
                Detail::new(format!("host port {wanted} is held by {}", listed(&holders)))
                    .fact("port", wanted.to_string())
                    .fact("heldBy", holders)
            })
        };
        pod.spec.host_ports.iter().filter_map(held).collect()
    }
}

impl Requeue for NodePorts {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(EventResource::Pod, [ActionType::Delete]).if_pod(|pod, deleted, _| {
                deleted.filter(|_| !bugs::is_on(Bug::FreedPortUnseen)).is_some_and(|deleted| {
                    (deleted.node.is_some() || deleted.nominated_node.is_some())
                        && conflict(&pod.spec.host_ports, &UsedPorts::of(&deleted.spec.host_ports))
                })
            }),
            EventInterest::new(EventResource::Node, [ActionType::Add]),
        ]
    }
}

/// The ports that pods of one signature want.
struct Wanted(Arc<Pod>);

impl NodeFilter for Wanted {
    fn close(&mut self, cluster: &Cluster, open: &mut [f64]) {
        for port in &self.0.spec.host_ports {
            for node in cluster.taken_ports().nodes(port) {
                if open[node.index()] == OPEN && cluster.node_at(node).used_ports.conflict(port) {
                    open[node.index()] = CLOSED;
                }
            }
        }
    }

    fn passes(&self, cluster: &Cluster, node: NodeId) -> bool {
        !conflict(&self.0.spec.host_ports, &cluster.node_at(node).used_ports)
    }

    fn refusal(&self, _: &Cluster, _: NodeId) -> Option<Status> {
        Some(Status::unschedulable(NO_FREE_PORTS))
    }
}

impl FastFilter for NodePorts {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if pod.spec.host_ports.is_empty() {
            Compiled::Idle
        } else {
            Compiled::Part(FilterPart::ByNode(Box::new(Wanted(pod.clone()))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use supercargo_framework::testing::filter;
    use supercargo_model::testing::{Builder, cluster, node, pod};

    fn with_port(pod: Builder, ip: &str, protocol: &str, port: i32) -> Builder {
        pod.set(
            "/spec/containers/-",
            json!({"name": "c", "ports": [{"hostIP": ip, "protocol": protocol, "hostPort": port}]}),
        )
    }

    #[test]
    fn addresses_protocols_and_ports() {
        // (taken, wanted, fits)
        let cases = [
            (("", "TCP", 80), ("", "TCP", 80), false),
            (("", "TCP", 80), ("", "TCP", 81), true),
            (("", "TCP", 80), ("", "UDP", 80), true),
            (("", "", 80), ("", "TCP", 80), false),
            (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), false),
            (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), true),
            (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), false),
            (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), false),
            (("", "TCP", 80), ("10.0.0.1", "TCP", 80), false),
            (("10.0.0.1", "SCTP", 80), ("10.0.0.1", "TCP", 80), true),
        ];
        for (taken, wanted, fits) in cases {
            let holder = with_port(pod("holder").on("n"), taken.0, taken.1, taken.2);
            let cluster = cluster([node("n"), holder]);
            let asking = with_port(pod("p"), wanted.0, wanted.1, wanted.2).pod();
            assert_eq!(filter(&NodePorts, &cluster, &asking)[0] == "ok", fits, "{taken:?} {wanted:?}");
        }
    }

    #[test]
    fn sidecars_hold_ports_and_init_containers_do_not() {
        let ports = json!([{"hostPort": 80}]);
        let init = pod("init").set("/spec/initContainers/-", json!({"name": "i", "ports": ports}));
        let sidecar = json!({"name": "s", "restartPolicy": "Always", "ports": ports});
        let sidecar = pod("sidecar").set("/spec/initContainers/-", sidecar);
        assert_eq!(init.pod().spec.host_ports.len(), 0);
        assert_eq!(sidecar.pod().spec.host_ports.len(), 1);
    }

    #[test]
    fn a_port_is_free_again_when_its_last_holder_goes() {
        let mut cluster = cluster([
            node("n"),
            with_port(pod("one").on("n"), "", "TCP", 80),
            with_port(pod("two").on("n"), "", "TCP", 80),
        ]);
        let asking = with_port(pod("p"), "", "TCP", 80).pod();
        let fits = |cluster: &Cluster| filter(&NodePorts, cluster, &asking)[0] == "ok";
        cluster.remove_pod(&pod("one").pod().key());
        assert!(!fits(&cluster));
        cluster.remove_pod(&pod("two").pod().key());
        assert!(fits(&cluster));
    }
}
