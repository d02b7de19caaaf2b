//! The resources that the server knows, in one table.

/// A resource as discovery tells it.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) singular: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) namespaced: bool,
    pub(crate) subresources: &'static [&'static str],
}

impl Resource {
    /// `v1`, or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `pods`, or `deployments.apps`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }

    pub(crate) fn has(&self, subresource: &str) -> bool {
        self.subresources.contains(&subresource)
    }

    pub(crate) fn is(&self, other: &Resource) -> bool {
        std::ptr::eq(self, other)
    }

    /// Reviews are answered, not stored.
    pub(crate) fn is_review(&self) -> bool {
        self.kind.ends_with("Review")
    }

    /// Both kinds of events are one set of objects, stored as core/v1.
    pub(crate) fn stored_as(&'static self) -> &'static Resource {
        if self.is(&NEW_EVENTS) { &EVENTS } else { self }
    }

    /// Where its objects are in the store.
    pub(crate) fn slot(&'static self) -> usize {
        let stored = self.stored_as();
        ALL.iter().position(|resource| resource.is(stored)).unwrap_or_default()
    }

    /// What `kubectl get all` gets.
    pub(crate) fn categories(&self) -> &'static [&'static str] {
        match self.kind {
            "Pod"
            | "Service"
            | "ReplicationController"
            | "Deployment"
            | "ReplicaSet"
            | "StatefulSet"
            | "DaemonSet"
            | "Job" => &["all"],
            _ => &[],
        }
    }

    /// The verbs that discovery tells.
    pub(crate) fn verbs(&self) -> &'static [&'static str] {
        if self.is_review() {
            &["create"]
        } else {
            &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
        }
    }
}

/// The resource with this group, version and plural.
pub(crate) fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    ALL.iter()
        .copied()
        .find(|known| known.group == group && known.version == version && known.plural == plural)
}

/// The resource of an object that says `apiVersion` and `kind`.
pub(crate) fn of_kind(api_version: &str, kind: &str) -> Option<&'static Resource> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ALL.iter().copied().find(|known| known.kind == kind && known.group == group && known.version == version)
}

/// The resource with this name, as people write it: `pods`, `deployments.apps`, `pdb`.
pub(crate) fn named(name: &str) -> Option<&'static Resource> {
    ALL.iter().copied().find(|known| {
        known.plural == name
            || known.singular == name
            || known.short_names.contains(&name)
            || known.qualified() == name
            || known.kind == name
    })
}

/// Group and version of everything there is, each once, in the table's order.
pub(crate) fn group_versions() -> Vec<(&'static str, &'static str)> {
    let mut all = Vec::new();
    for resource in ALL {
        if !all.contains(&(resource.group, resource.version)) {
            all.push((resource.group, resource.version));
        }
    }
    all
}

const NAMESPACED: bool = true;
const CLUSTER_WIDE: bool = false;

macro_rules! resources {
    ($($name:ident: $group:literal $version:literal, $plural:literal $singular:literal $kind:literal,
       $short_names:expr, $namespaced:expr, $subresources:expr;)*) => {
        $(pub(crate) static $name: Resource = Resource {
            group: $group,
            version: $version,
            plural: $plural,
            singular: $singular,
            kind: $kind,
            short_names: &$short_names,
            namespaced: $namespaced,
            subresources: &$subresources,
        };)*

        /// Every resource.
        pub(crate) static ALL: &[&Resource] = &[$(&$name),*];
    };
}

resources! {
    NAMESPACES: "" "v1", "namespaces" "namespace" "Namespace", ["ns"], CLUSTER_WIDE, ["status"];
    NODES: "" "v1", "nodes" "node" "Node", ["no"], CLUSTER_WIDE, ["status"];
    PODS: "" "v1", "pods" "pod" "Pod", ["po"], NAMESPACED, ["status", "binding", "eviction", "resize"];
    SERVICES: "" "v1", "services" "service" "Service", ["svc"], NAMESPACED, ["status"];
    REPLICATION_CONTROLLERS: "" "v1", "replicationcontrollers" "replicationcontroller" "ReplicationController",
        ["rc"], NAMESPACED, ["status"];
    PERSISTENT_VOLUMES: "" "v1", "persistentvolumes" "persistentvolume" "PersistentVolume", ["pv"],
        CLUSTER_WIDE, ["status"];
    PERSISTENT_VOLUME_CLAIMS: "" "v1", "persistentvolumeclaims" "persistentvolumeclaim" "PersistentVolumeClaim",
        ["pvc"], NAMESPACED, ["status"];
    CONFIG_MAPS: "" "v1", "configmaps" "configmap" "ConfigMap", ["cm"], NAMESPACED, [];
    SECRETS: "" "v1", "secrets" "secret" "Secret", [], NAMESPACED, [];
    SERVICE_ACCOUNTS: "" "v1", "serviceaccounts" "serviceaccount" "ServiceAccount", ["sa"], NAMESPACED, [];
    EVENTS: "" "v1", "events" "event" "Event", ["ev"], NAMESPACED, [];
    ENDPOINTS: "" "v1", "endpoints" "endpoints" "Endpoints", ["ep"], NAMESPACED, [];
    DEPLOYMENTS: "apps" "v1", "deployments" "deployment" "Deployment", ["deploy"], NAMESPACED, ["status", "scale"];
    REPLICA_SETS: "apps" "v1", "replicasets" "replicaset" "ReplicaSet", ["rs"], NAMESPACED, ["status", "scale"];
    STATEFUL_SETS: "apps" "v1", "statefulsets" "statefulset" "StatefulSet", ["sts"], NAMESPACED,
        ["status", "scale"];
    DAEMON_SETS: "apps" "v1", "daemonsets" "daemonset" "DaemonSet", ["ds"], NAMESPACED, ["status"];
    JOBS: "batch" "v1", "jobs" "job" "Job", [], NAMESPACED, ["status"];
    POD_DISRUPTION_BUDGETS: "policy" "v1", "poddisruptionbudgets" "poddisruptionbudget" "PodDisruptionBudget",
        ["pdb"], NAMESPACED, ["status"];
    STORAGE_CLASSES: "storage.k8s.io" "v1", "storageclasses" "storageclass" "StorageClass", ["sc"],
        CLUSTER_WIDE, [];
    CSI_NODES: "storage.k8s.io" "v1", "csinodes" "csinode" "CSINode", [], CLUSTER_WIDE, [];
    CSI_DRIVERS: "storage.k8s.io" "v1", "csidrivers" "csidriver" "CSIDriver", [], CLUSTER_WIDE, [];
    CSI_STORAGE_CAPACITIES: "storage.k8s.io" "v1", "csistoragecapacities" "csistoragecapacity"
        "CSIStorageCapacity", [], NAMESPACED, [];
    VOLUME_ATTACHMENTS: "storage.k8s.io" "v1", "volumeattachments" "volumeattachment" "VolumeAttachment", [],
        CLUSTER_WIDE, ["status"];
    PRIORITY_CLASSES: "scheduling.k8s.io" "v1", "priorityclasses" "priorityclass" "PriorityClass", ["pc"],
        CLUSTER_WIDE, [];
    ROLES: "rbac.authorization.k8s.io" "v1", "roles" "role" "Role", [], NAMESPACED, [];
    ROLE_BINDINGS: "rbac.authorization.k8s.io" "v1", "rolebindings" "rolebinding" "RoleBinding", [], NAMESPACED,
        [];
    CLUSTER_ROLES: "rbac.authorization.k8s.io" "v1", "clusterroles" "clusterrole" "ClusterRole", [], CLUSTER_WIDE,
        [];
    CLUSTER_ROLE_BINDINGS: "rbac.authorization.k8s.io" "v1", "clusterrolebindings" "clusterrolebinding"
        "ClusterRoleBinding", [], CLUSTER_WIDE, [];
    LEASES: "coordination.k8s.io" "v1", "leases" "lease" "Lease", [], NAMESPACED, [];
    NEW_EVENTS: "events.k8s.io" "v1", "events" "event" "Event", ["ev"], NAMESPACED, [];
    TOKEN_REVIEWS: "authentication.k8s.io" "v1", "tokenreviews" "tokenreview" "TokenReview", [],
        CLUSTER_WIDE, [];
    SUBJECT_ACCESS_REVIEWS: "authorization.k8s.io" "v1", "subjectaccessreviews" "subjectaccessreview"
        "SubjectAccessReview", [], CLUSTER_WIDE, [];
    SELF_SUBJECT_ACCESS_REVIEWS: "authorization.k8s.io" "v1", "selfsubjectaccessreviews"
        "selfsubjectaccessreview" "SelfSubjectAccessReview", [], CLUSTER_WIDE, [];
    DEVICE_CLASSES: "resource.k8s.io" "v1", "deviceclasses" "deviceclass" "DeviceClass", [], CLUSTER_WIDE, [];
    RESOURCE_CLAIMS: "resource.k8s.io" "v1", "resourceclaims" "resourceclaim" "ResourceClaim", [], NAMESPACED,
        ["status"];
    RESOURCE_SLICES: "resource.k8s.io" "v1", "resourceslices" "resourceslice" "ResourceSlice", [],
        CLUSTER_WIDE, [];
    RESOURCE_CLAIM_TEMPLATES: "resource.k8s.io" "v1", "resourceclaimtemplates" "resourceclaimtemplate"
        "ResourceClaimTemplate", [], NAMESPACED, [];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_events_are_one_set_of_objects() {
        assert_eq!(NEW_EVENTS.slot(), EVENTS.slot());
        assert_ne!(PODS.slot(), NODES.slot());
    }

    #[test]
    fn people_may_write_any_of_a_resources_names() {
        for name in ["po", "pod", "pods", "Pod"] {
            assert!(named(name).is_some_and(|found| found.is(&PODS)), "{name}");
        }
        assert!(named("deployments.apps").is_some_and(|found| found.is(&DEPLOYMENTS)));
        assert!(named("boats").is_none());
        assert!(of_kind("apps/v1", "ReplicaSet").is_some_and(|found| found.is(&REPLICA_SETS)));
    }
}
