//! Nodes, pods and the other objects a scheduler reads, and the cluster they make.
//!
//! Objects are read from text (see [`object::Reader`]) and kept in a [`Cluster`]. No plugin, no decision, no I/O.

pub mod bits;
pub mod changes;
pub mod cluster;
pub mod columns;
pub mod config_map;
pub mod custom;
pub mod devices;
pub mod images;
pub mod kind;
pub mod label_columns;
pub mod labels;
pub mod meta;
pub mod node;
pub mod node_set;
pub mod object;
pub mod pod;
pub mod pod_classes;
pub mod pod_owner;
pub mod ports;
pub mod quantity;
pub mod random;
pub mod resources;
pub mod selection;
pub mod selector;
pub mod storage;
pub mod taint;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod work;

pub use cluster::{AlreadyBound, Cluster, ClusterTrial, NodeId, NodeInfo};
pub use config_map::ConfigMap;
pub use custom::{CustomObject, Declared};
pub use kind::{ApiResource, Kind};
pub use labels::Labels;
pub use meta::{Key, ResourceVersion};
pub use node::Node;
pub use node_set::NodeSet;
pub use pod::{NotScheduled, Pod, PodSpec};
pub use quantity::Quantity;
pub use resources::Resources;

/// A moment.
pub type Timestamp = jiff::Timestamp;

/// A text that is shared rather than copied: names, label keys and values.
pub type Name = std::sync::Arc<str>;

/// Hashed quickly, and with a seed of its own, so that nobody can choose names that collide.
type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
type HashSet<T> = std::collections::HashSet<T, foldhash::fast::RandomState>;
