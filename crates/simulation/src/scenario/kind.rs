//! Where the objects of each kind are on an API server.

/// A kind: its name, the path of its version, its plural, and whether it is in namespaces.
pub(super) struct Kind {
    name: &'static str,
    prefix: &'static str,
    plural: &'static str,
    pub(super) namespaced: bool,
}

const fn kind(name: &'static str, prefix: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { name, prefix, plural, namespaced }
}

const CORE: &str = "/api/v1";
const APPS: &str = "/apis/apps/v1";
const STORAGE: &str = "/apis/storage.k8s.io/v1";
const DEVICES: &str = "/apis/resource.k8s.io/v1";

const KINDS: [Kind; 22] = [
    kind("Pod", CORE, "pods", true),
    kind("Node", CORE, "nodes", false),
    kind("Namespace", CORE, "namespaces", false),
    kind("PersistentVolume", CORE, "persistentvolumes", false),
    kind("PersistentVolumeClaim", CORE, "persistentvolumeclaims", true),
    kind("ConfigMap", CORE, "configmaps", true),
    kind("Service", CORE, "services", true),
    kind("ReplicationController", CORE, "replicationcontrollers", true),
    kind("ReplicaSet", APPS, "replicasets", true),
    kind("StatefulSet", APPS, "statefulsets", true),
    kind("PriorityClass", "/apis/scheduling.k8s.io/v1", "priorityclasses", false),
    kind("PodDisruptionBudget", "/apis/policy/v1", "poddisruptionbudgets", true),
    kind("StorageClass", STORAGE, "storageclasses", false),
    kind("CSINode", STORAGE, "csinodes", false),
    kind("CSIDriver", STORAGE, "csidrivers", false),
    kind("CSIStorageCapacity", STORAGE, "csistoragecapacities", true),
    kind("VolumeAttachment", STORAGE, "volumeattachments", false),
    kind("ResourceClaim", DEVICES, "resourceclaims", true),
    kind("ResourceClaimTemplate", DEVICES, "resourceclaimtemplates", true),
    kind("DeviceClass", DEVICES, "deviceclasses", false),
    kind("ResourceSlice", DEVICES, "resourceslices", false),
    kind("Event", "/apis/events.k8s.io/v1", "events", true),
];

impl Kind {
    /// The kind of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// `v1`, or `apps/v1`.
    pub(super) fn api_version(&self) -> &'static str {
        self.prefix.trim_start_matches("/apis/").trim_start_matches("/api/")
    }

    /// All objects, or those of a namespace.
    pub(super) fn collection(&self, namespace: &str) -> String {
        match (self.namespaced, namespace) {
            (true, namespace) if !namespace.is_empty() => {
                format!("{}/namespaces/{namespace}/{}", self.prefix, self.plural)
            }
            _ => format!("{}/{}", self.prefix, self.plural),
        }
    }

    /// One object, or a subresource of it.
    pub(super) fn object(&self, namespace: &str, name: &str, subresource: Option<&str>) -> String {
        let object = format!("{}/{name}", self.collection(namespace));
        subresource.map_or(object.clone(), |subresource| format!("{object}/{subresource}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_place() {
        let path = |kind, namespace, name| Kind::named(kind).map(|kind| kind.object(namespace, name, None));
        assert_eq!(path("Pod", "a", "p").as_deref(), Some("/api/v1/namespaces/a/pods/p"));
        assert_eq!(path("Node", "a", "n").as_deref(), Some("/api/v1/nodes/n"));
        assert_eq!(Kind::named("ReplicaSet").map(Kind::api_version), Some("apps/v1"));
        assert!(Kind::named("Boat").is_none());
    }
}
