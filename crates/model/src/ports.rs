//! Host ports: which are asked for, which are taken.

use serde::Deserialize;

use crate::{HashMap, Name, NodeId};

/// The transport of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
pub enum Protocol {
    /// The default.
    #[default]
    #[serde(alias = "")]
    TCP,
    /// Datagrams.
    UDP,
    /// Streams of messages.
    SCTP,
}

/// The address that stands for every address of the host.
pub const ALL_ADDRESSES: &str = "0.0.0.0";

/// A port of the host that a container wants for itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPort {
    /// The host's address, `0.0.0.0` for all.
    pub address: Name,
    /// The transport.
    pub protocol: Protocol,
    /// 1 to 65535.
    pub port: i32,
}

impl HostPort {
    /// Whether two ports cannot be had on one host at once.
    pub fn conflicts(&self, other: &Self) -> bool {
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address
                || &*self.address == ALL_ADDRESSES
                || &*other.address == ALL_ADDRESSES)
    }
}

/// Which nodes have a port taken, whatever the address.
#[derive(Clone, Debug, Default)]
pub struct TakenPorts(HashMap<(Protocol, i32), HashMap<NodeId, u32>>);

impl TakenPorts {
    /// The nodes on which a port is taken on some address.
    pub fn nodes(&self, port: &HostPort) -> impl Iterator<Item = NodeId> {
        self.0.get(&(port.protocol, port.port)).into_iter().flat_map(|nodes| nodes.keys().copied())
    }

    pub(crate) fn add(&mut self, ports: &[HostPort], node: NodeId) {
        for port in ports {
            *self.0.entry((port.protocol, port.port)).or_default().entry(node).or_insert(0) += 1;
        }
    }

    pub(crate) fn remove(&mut self, ports: &[HostPort], node: NodeId) {
        for port in ports {
            let key = (port.protocol, port.port);
            let Some(nodes) = self.0.get_mut(&key) else {
                continue;
            };
            if let Some(count) = nodes.get_mut(&node) {
                *count -= 1;
                if *count == 0 {
                    nodes.remove(&node);
                }
            }
            if nodes.is_empty() {
                self.0.remove(&key);
            }
        }
    }
}
