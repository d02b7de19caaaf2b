//! Host ports: which are asked for, which are taken.

use serde::Deserialize;

use crate::{HashMap, Name, NodeId, work};

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

/// As in `80/TCP`; with the address, if it is for one alone.
impl std::fmt::Display for HostPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if &*self.address != ALL_ADDRESSES {
            write!(f, "{}:", self.address)?;
        }
        write!(f, "{}/{:?}", self.port, self.protocol)
    }
}

impl HostPort {
    /// Whether two ports cannot be had on one host at once.
    pub fn conflicts(&self, other: &Self) -> bool {
        work::done(1);
        self.port == other.port
            && self.protocol == other.protocol
            && (self.address == other.address
                || &*self.address == ALL_ADDRESSES
                || &*other.address == ALL_ADDRESSES)
    }
}

/// Host ports that are taken on a node, and by how many pods.
#[derive(Clone, Debug, Default)]
pub struct UsedPorts {
    by_port: HashMap<(Protocol, i32), HashMap<Name, u32>>,
    count: usize,
}

impl UsedPorts {
    /// Those of one pod.
    pub fn of(ports: &[HostPort]) -> Self {
        let mut used = Self::default();
        used.add(ports);
        used
    }

    /// How many ports are taken.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether none is taken.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a port cannot be had any more.
    pub fn conflict(&self, wanted: &HostPort) -> bool {
        work::done(1);
        self.by_port.get(&(wanted.protocol, wanted.port)).is_some_and(|addresses| {
            &*wanted.address == ALL_ADDRESSES
                || addresses.contains_key(ALL_ADDRESSES)
                || addresses.contains_key(&wanted.address)
        })
    }

    pub(crate) fn add(&mut self, ports: &[HostPort]) {
        for port in ports {
            let addresses = self.by_port.entry((port.protocol, port.port)).or_default();
            *addresses.entry(port.address.clone()).or_insert(0) += 1;
        }
        self.count += ports.len();
    }

    pub(crate) fn remove(&mut self, ports: &[HostPort]) {
        for port in ports {
            let Some(addresses) = self.by_port.get_mut(&(port.protocol, port.port)) else {
                continue;
            };
            let Some(pods) = addresses.get_mut(&port.address) else {
                continue;
            };
            self.count -= 1;
            *pods -= 1;
            if *pods == 0 {
                addresses.remove(&port.address);
            }
            if addresses.is_empty() {
                self.by_port.remove(&(port.protocol, port.port));
            }
        }
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

    /// How many ports are taken somewhere.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
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
