//! Host ports: which are asked for, which are taken.

use serde::Deserialize;

use crate::Name;

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
