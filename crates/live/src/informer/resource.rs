//! The resources that are followed, and where they are.

use std::{borrow::Cow, sync::Arc};

use supercargo_extender::Wanted;
use supercargo_model::{Key, object::Kind, pod_owner::PodOwnerKind};

/// A resource of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// The kind of its objects.
    pub kind: Kind,
    /// Its path, for all namespaces or for one.
    pub path: Cow<'static, str>,
    /// Which of its objects are read, as a field selector ready for a query; empty for all.
    pub field_selector: Cow<'static, str>,
    /// Every API server serves it. The others may be missing.
    pub required: bool,
    /// Which of its objects' texts are told besides; `None` for none.
    pub texts: Option<Arc<Wanted>>,
}

impl Resource {
    /// The same resource, with the texts that extenders want.
    #[must_use]
    pub fn with_texts(self, wanted: &Arc<Wanted>) -> Self {
        let texts = wanted.any(self.kind).then(|| wanted.clone());
        Self { texts, ..self }
    }

    /// The path of its API group and version, where the server tells what it serves.
    pub(super) fn group_version(&self) -> &str {
        // `/api/v1`, or `/apis/GROUP/VERSION`.
        let parts = if self.path.starts_with("/api/") { 2 } else { 3 };
        let end = self.path.match_indices('/').nth(parts).map_or(self.path.len(), |(at, _)| at);
        &self.path[..end]
    }

    /// Its API group; empty for the core's.
    pub(super) fn group(&self) -> &str {
        self.path.strip_prefix("/apis/").and_then(|path| path.split('/').next()).unwrap_or_default()
    }

    /// Its name in paths and in roles, such as `pods`.
    pub(super) fn plural(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// One ConfigMap. The server is only asked for that one, so that a permission for that one is enough.
    pub fn config_map(key: &Key) -> Self {
        Self {
            kind: Kind::ConfigMap,
            path: format!("/api/v1/namespaces/{}/configmaps", key.namespace).into(),
            field_selector: format!("metadata.name%3D{}", key.name).into(),
            required: false,
            texts: None,
        }
    }
}

const fn resource(kind: Kind, path: &'static str) -> Resource {
    Resource {
        kind,
        path: Cow::Borrowed(path),
        field_selector: Cow::Borrowed(""),
        required: false,
        texts: None,
    }
}

const fn required(kind: Kind, path: &'static str, field_selector: &'static str) -> Resource {
    Resource {
        kind,
        path: Cow::Borrowed(path),
        field_selector: Cow::Borrowed(field_selector),
        required: true,
        texts: None,
    }
}

/// `status.phase!=Succeeded,status.phase!=Failed`: pods that have ended hold nothing.
const NOT_ENDED: &str = "status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed";

/// Every resource that a plugin reads, but for single objects that an operator names. Nodes come first: pods are put on them.
pub const RESOURCES: &[Resource] = &[
    required(Kind::Node, "/api/v1/nodes", ""),
    required(Kind::Pod, "/api/v1/pods", NOT_ENDED),
    required(Kind::Namespace, "/api/v1/namespaces", ""),
    resource(Kind::PodOwner(PodOwnerKind::Service), "/api/v1/services"),
    resource(Kind::PodOwner(PodOwnerKind::ReplicationController), "/api/v1/replicationcontrollers"),
    resource(Kind::PodOwner(PodOwnerKind::ReplicaSet), "/apis/apps/v1/replicasets"),
    resource(Kind::PodOwner(PodOwnerKind::StatefulSet), "/apis/apps/v1/statefulsets"),
    resource(Kind::PersistentVolume, "/api/v1/persistentvolumes"),
    resource(Kind::PersistentVolumeClaim, "/api/v1/persistentvolumeclaims"),
    resource(Kind::StorageClass, "/apis/storage.k8s.io/v1/storageclasses"),
    resource(Kind::CsiNode, "/apis/storage.k8s.io/v1/csinodes"),
    resource(Kind::CsiDriver, "/apis/storage.k8s.io/v1/csidrivers"),
    resource(Kind::CsiStorageCapacity, "/apis/storage.k8s.io/v1/csistoragecapacities"),
    resource(Kind::VolumeAttachment, "/apis/storage.k8s.io/v1/volumeattachments"),
    resource(Kind::PodDisruptionBudget, "/apis/policy/v1/poddisruptionbudgets"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_group_version_and_name() {
        let map = Resource::config_map(&Key::new("kube-system", "scores"));
        let budgets = RESOURCES.last().unwrap();
        let told: Vec<_> = [&RESOURCES[0], &map, budgets]
            .map(|resource| (resource.group_version(), resource.group(), resource.plural()))
            .into();
        let expected = [
            ("/api/v1", "", "nodes"),
            ("/api/v1", "", "configmaps"),
            ("/apis/policy/v1", "policy", "poddisruptionbudgets"),
        ];
        assert_eq!(told, expected);
    }
}
