//! What the API server knows, as a stream of watch events: for every resource that plugins read, a list and a watch that survive
//! cuts, expiry, restarts and objects that make no sense.
//!
//! Watch events of one resource come in the server's order. Nothing is lost and nothing doubled across a cut: what is read
//! anew is compared with what was told before, and only the difference is told.

mod backoff;
mod complaints;
mod discovery;
mod health;
mod known_objects;
mod paths;
mod reflector;
mod resource;
pub mod snapshot;
mod wire;

#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use supercargo_framework::profile::Profile;
use supercargo_model::{
    Declared, Key, Name, Pod,
    object::{Kind, Object},
};
use tokio::sync::mpsc;

use complaints::Complaints;
pub use health::InformerHealth;
pub use resource::Resource;

use crate::world::SharedWorld;

/// Watch events that wait to be taken. A reader that is slower than the server holds the server back, not the memory.
const MAX_WAITING_FACTS: usize = 8192;

/// Something that has become known about the cluster.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "nearly all watch_events are of the largest variant")]
pub enum WatchEvent {
    /// An object is there, or has changed.
    Put {
        /// The object.
        object: Object,
        /// Its identity.
        uid: Name,
        /// Its resourceVersion, for writing it back.
        version: Name,
        /// Itself as it was sent, ready for extenders, where the resource [says so](Resource::texts).
        text: Option<Bytes>,
    },
    /// An object is there no more.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Its name.
        key: Key,
        /// The identity that is gone.
        uid: Name,
    },
    /// A node or a pod cannot be read. A node's older version has been told [`Gone`](Self::Gone) before this. A pod's has
    /// not, because a pod that runs goes on holding its room whatever its status says; a pod that waits is not to be
    /// scheduled by what it was before. `Gone` follows when it is deleted.
    Unreadable {
        /// Its kind.
        kind: Kind,
        /// Its name.
        key: Key,
        /// Its identity.
        uid: Name,
        /// Which field is wrong, and how.
        reason: String,
        /// What can be read of a pod that has a node: it holds room there.
        remains: Option<Arc<Pod>>,
    },
    /// All objects of a kind have been told for the first time, or the server does not serve the kind.
    Synced(Kind),
    /// Whatever happened to objects of a kind up to a version has been told. After a [`Put`](Self::Put) that goes without
    /// saying.
    UpTo(Kind, u64),
}

/// The resources of every kind, what plugins have declared included, and the ConfigMaps that they want to be watched.
pub fn resources<'p>(declared: &Declared, profiles: impl IntoIterator<Item = &'p Profile>) -> Vec<Resource> {
    let watched = profiles.into_iter().flat_map(Profile::watched);
    let config_maps: BTreeSet<Key> =
        watched.filter(|(_, kind, _)| *kind == Kind::ConfigMap).map(|(.., key)| key).collect();
    resources_and(declared, &config_maps)
}

/// The resources of every kind, what plugins have declared included, and some ConfigMaps.
fn resources_and<'k>(declared: &Declared, config_maps: impl IntoIterator<Item = &'k Key>) -> Vec<Resource> {
    let custom = declared.kinds.iter().map(|api| Kind::Custom(api));
    let kinds = Kind::ALL.iter().copied().chain(custom).filter_map(Resource::of);
    let kinds = kinds.map(|resource| Resource { annotations: declared.annotations.clone(), ..resource });
    kinds.chain(config_maps.into_iter().map(Resource::config_map)).collect()
}

/// Follows resources, and says in `health` which of them are out of sight. It ends when the watch events are no longer taken.
pub fn open(
    world: &SharedWorld,
    resources: Vec<Resource>,
    health: &InformerHealth,
) -> mpsc::Receiver<WatchEvent> {
    open_after(world, resources, health, Box::pin(std::future::ready(())))
}

/// Follows resources, once `start` has ended.
pub fn open_after(
    world: &SharedWorld,
    resources: Vec<Resource>,
    health: &InformerHealth,
    start: BoxFuture<'static, ()>,
) -> mpsc::Receiver<WatchEvent> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_FACTS);
    let (shared, health, complaints) = (world.clone(), health.clone(), Complaints::default());
    world.spawn(Box::pin(async move {
        start.await;
        for resource in resources {
            let (world, health, complaints) = (shared.clone(), health.clone(), complaints.clone());
            let follower = reflector::Reflector::new(world, resource, sender.clone(), health, complaints);
            shared.spawn(Box::pin(follower.run()));
        }
    }));
    receiver
}
