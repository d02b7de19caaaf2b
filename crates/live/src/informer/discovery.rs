//! Whether the API server serves a resource at all: a 404 alone may be a proxy's, or a server's that is about to start.

use serde::{Deserialize, de::DeserializeOwned};

use super::Resource;
use crate::world::{Request, World};

/// The groups that the API server serves, but for the core's.
const GROUPS: &str = "/apis";

/// What the API server says of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Yes,
    No,
    /// It did not say.
    Unknown,
}

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct GroupList {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    versions: Vec<Version>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    group_version: String,
}

/// Asks the API server whether it serves a resource.
pub(super) async fn served(world: &dyn World, resource: &Resource) -> Served {
    let api = resource.kind.api();
    let group_version = &api.group_version_path();
    let known = match get::<ResourceList>(world, group_version).await {
        Ok(list) => Some(list.resources.iter().any(|named| named.name == api.plural)),
        Err(404) => serves_group_version(world, group_version).await,
        Err(_) => None,
    };
    match known {
        Some(true) => Served::Yes,
        Some(false) => Served::No,
        None => Served::Unknown,
    }
}

/// Whether a group's version is listed. The core's always is there.
async fn serves_group_version(world: &dyn World, path: &str) -> Option<bool> {
    let wanted = path.strip_prefix(GROUPS)?.trim_start_matches('/');
    let list = get::<GroupList>(world, GROUPS).await.ok()?;
    let mut versions = list.groups.iter().flat_map(|group| &group.versions);
    Some(versions.any(|version| version.group_version == wanted))
}

/// What is read; or the status, 0 if there is none.
async fn get<T: DeserializeOwned>(world: &dyn World, path: &str) -> Result<T, u16> {
    let reply = world.send(Request::get(path)).await.map_err(|_| 0u16)?;
    if !reply.is_success() {
        return Err(reply.status);
    }
    serde_json::from_slice(&reply.body).map_err(|_| 0)
}
