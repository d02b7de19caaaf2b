//! The resources that the server knows, in one table: those that a scheduler reads are told by the model's table of kinds.

use std::sync::Arc;

use supercargo_model::{ApiResource, Kind};

use crate::schema::{self, Message};

/// A resource as discovery tells it.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) short_names: &'static [&'static str],
    pub(crate) namespaced: bool,
    pub(crate) subresources: &'static [&'static str],
    /// Where a custom resource's objects are in the store.
    pub(crate) custom_slot: Option<usize>,
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

    /// `pod`.
    pub(crate) fn singular(&self) -> String {
        self.kind.to_lowercase()
    }

    pub(crate) fn has(&self, subresource: &str) -> bool {
        self.subresources.contains(&subresource)
    }

    pub(crate) fn is(&self, other: &Resource) -> bool {
        std::ptr::eq(self, other)
    }

    /// Reviews are answered, not stored.
    pub(crate) fn is_review(&self) -> bool {
        self.kind.ends_with("Review") && self.custom_slot.is_none()
    }

    /// Both kinds of events are one set of objects, stored as core/v1.
    pub(crate) fn stored_as(&'static self) -> &'static Resource {
        if self.is(&NEW_EVENTS) { &EVENTS } else { self }
    }

    /// Where its objects are in the store.
    pub(crate) fn slot(&'static self) -> usize {
        if let Some(slot) = self.custom_slot {
            return slot;
        }
        let stored = self.stored_as();
        ALL.iter().position(|resource| resource.is(stored)).unwrap_or_default()
    }

    /// The fields of its kind; of a custom kind nobody knows them.
    pub(crate) fn schema(&self) -> Option<&'static Message> {
        if self.custom_slot.is_some() {
            return None;
        }
        schema::message_of(self.group, self.version, self.kind)
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

/// The resources that a server serves at the moment: those of the table, and custom ones.
#[derive(Clone)]
pub(crate) struct Served(Arc<[&'static Resource]>);

impl Default for Served {
    fn default() -> Self {
        Self(ALL.into())
    }
}

impl Served {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Resource> {
        self.0.iter().copied()
    }

    /// The resource with this group, version and plural.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
        self.of_version(group, version).find(|known| known.plural == plural)
    }

    /// The resources of a group and version.
    pub(crate) fn of_version(&self, group: &str, version: &str) -> impl Iterator<Item = &'static Resource> {
        self.iter().filter(move |known| known.group == group && known.version == version)
    }

    /// The resource of an object that says `apiVersion` and `kind`.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&'static Resource> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.of_version(group, version).find(|known| known.kind == kind)
    }

    /// The resource with this name, as people write it: `pods`, `deployments.apps`, `pdb`.
    pub(crate) fn named(&self, name: &str) -> Option<&'static Resource> {
        self.iter().find(|known| {
            known.plural == name
                || known.singular() == name
                || known.short_names.contains(&name)
                || known.qualified() == name
                || known.kind == name
        })
    }

    /// Group and version of everything there is, each once, in the table's order.
    pub(crate) fn group_versions(&self) -> Vec<(&'static str, &'static str)> {
        let mut all = Vec::new();
        for resource in self.iter() {
            if !all.contains(&(resource.group, resource.version)) {
                all.push((resource.group, resource.version));
            }
        }
        all
    }

    /// One more is served.
    pub(crate) fn add(&mut self, resource: &'static Resource) {
        self.0 = self.iter().chain([resource]).collect();
    }

    /// One is served no more.
    pub(crate) fn remove(&mut self, resource: &Resource) {
        self.0 = self.iter().filter(|known| !known.is(resource)).collect();
    }
}

const NAMESPACED: bool = true;
const CLUSTER_WIDE: bool = false;

const fn api(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
) -> ApiResource {
    ApiResource { group, version, plural, kind, namespaced }
}

macro_rules! resources {
    ($($name:ident: $api:expr, $short_names:expr, $subresources:expr;)*) => {
        $(pub(crate) static $name: Resource = {
            const API: ApiResource = $api;
            Resource {
                group: API.group,
                version: API.version,
                plural: API.plural,
                kind: API.kind,
                short_names: &$short_names,
                namespaced: API.namespaced,
                subresources: &$subresources,
                custom_slot: None,
            }
        };)*

        /// Every resource that is not a custom one.
        pub(crate) static ALL: &[&Resource] = &[$(&$name),*];
    };
}

resources! {
    NAMESPACES: *Kind::Namespace.api(), ["ns"], ["status"];
    NODES: *Kind::Node.api(), ["no"], ["status"];
    PODS: *Kind::Pod.api(), ["po"],
        ["status", "binding", "eviction", "resize", "log", "exec", "attach", "portforward"];
    SERVICES: *Kind::Service.api(), ["svc"], ["status"];
    REPLICATION_CONTROLLERS: *Kind::ReplicationController.api(), ["rc"], ["status"];
    PERSISTENT_VOLUMES: *Kind::PersistentVolume.api(), ["pv"], ["status"];
    PERSISTENT_VOLUME_CLAIMS: *Kind::PersistentVolumeClaim.api(), ["pvc"], ["status"];
    CONFIG_MAPS: *Kind::ConfigMap.api(), ["cm"], [];
    SECRETS: api("", "v1", "secrets", "Secret", NAMESPACED), [], [];
    SERVICE_ACCOUNTS: api("", "v1", "serviceaccounts", "ServiceAccount", NAMESPACED), ["sa"], [];
    EVENTS: api("", "v1", "events", "Event", NAMESPACED), ["ev"], [];
    ENDPOINTS: api("", "v1", "endpoints", "Endpoints", NAMESPACED), ["ep"], [];
    ENDPOINT_SLICES: api("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", NAMESPACED), [], [];
    RESOURCE_QUOTAS: api("", "v1", "resourcequotas", "ResourceQuota", NAMESPACED), ["quota"], ["status"];
    LIMIT_RANGES: api("", "v1", "limitranges", "LimitRange", NAMESPACED), ["limits"], [];
    DEPLOYMENTS: api("apps", "v1", "deployments", "Deployment", NAMESPACED), ["deploy"], ["status", "scale"];
    REPLICA_SETS: *Kind::ReplicaSet.api(), ["rs"], ["status", "scale"];
    STATEFUL_SETS: *Kind::StatefulSet.api(), ["sts"], ["status", "scale"];
    DAEMON_SETS: api("apps", "v1", "daemonsets", "DaemonSet", NAMESPACED), ["ds"], ["status"];
    CONTROLLER_REVISIONS: api("apps", "v1", "controllerrevisions", "ControllerRevision", NAMESPACED), [], [];
    JOBS: api("batch", "v1", "jobs", "Job", NAMESPACED), [], ["status"];
    CRON_JOBS: api("batch", "v1", "cronjobs", "CronJob", NAMESPACED), ["cj"], ["status"];
    AUTOSCALERS: api("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", NAMESPACED),
        ["hpa"], ["status"];
    INGRESSES: api("networking.k8s.io", "v1", "ingresses", "Ingress", NAMESPACED), ["ing"], ["status"];
    INGRESS_CLASSES: api("networking.k8s.io", "v1", "ingressclasses", "IngressClass", CLUSTER_WIDE), [], [];
    NETWORK_POLICIES: api("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", NAMESPACED), ["netpol"], [];
    RUNTIME_CLASSES: api("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", CLUSTER_WIDE), [], [];
    POD_DISRUPTION_BUDGETS: *Kind::PodDisruptionBudget.api(), ["pdb"], ["status"];
    STORAGE_CLASSES: *Kind::StorageClass.api(), ["sc"], [];
    CSI_NODES: *Kind::CsiNode.api(), [], [];
    CSI_DRIVERS: *Kind::CsiDriver.api(), [], [];
    CSI_STORAGE_CAPACITIES: *Kind::CsiStorageCapacity.api(), [], [];
    VOLUME_ATTACHMENTS: *Kind::VolumeAttachment.api(), [], ["status"];
    PRIORITY_CLASSES: api("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", CLUSTER_WIDE),
        ["pc"], [];
    ROLES: api("rbac.authorization.k8s.io", "v1", "roles", "Role", NAMESPACED), [], [];
    ROLE_BINDINGS: api("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", NAMESPACED), [], [];
    CLUSTER_ROLES: api("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", CLUSTER_WIDE), [], [];
    CLUSTER_ROLE_BINDINGS: api("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", CLUSTER_WIDE),
        [], [];
    LEASES: api("coordination.k8s.io", "v1", "leases", "Lease", NAMESPACED), [], [];
    NEW_EVENTS: api("events.k8s.io", "v1", "events", "Event", NAMESPACED), ["ev"], [];
    TOKEN_REVIEWS: api("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", CLUSTER_WIDE), [], [];
    SUBJECT_ACCESS_REVIEWS: api("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", CLUSTER_WIDE),
        [], [];
    SELF_SUBJECT_ACCESS_REVIEWS: api("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", CLUSTER_WIDE),
        [], [];
    SELF_SUBJECT_RULES_REVIEWS: api("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", CLUSTER_WIDE),
        [], [];
    SELF_SUBJECT_REVIEWS: api("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", CLUSTER_WIDE),
        [], [];
    DEVICE_CLASSES: *Kind::DeviceClass.api(), [], [];
    RESOURCE_CLAIMS: *Kind::ResourceClaim.api(),
        [], ["status"];
    RESOURCE_SLICES: *Kind::ResourceSlice.api(), [], [];
    RESOURCE_CLAIM_TEMPLATES: api("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", NAMESPACED),
        [], [];
    CUSTOM_RESOURCE_DEFINITIONS: api("apiextensions.k8s.io", "v1", "customresourcedefinitions",
        "CustomResourceDefinition", CLUSTER_WIDE), ["crd", "crds"], ["status"];
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
    fn every_kind_that_a_scheduler_reads_is_served() {
        for kind in Kind::ALL {
            let api = kind.api();
            assert!(Served::default().of_kind(&api.api_version(), api.kind).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn people_may_write_any_of_a_resources_names() {
        for name in ["po", "pod", "pods", "Pod"] {
            assert!(Served::default().named(name).is_some_and(|found| found.is(&PODS)), "{name}");
        }
        assert!(Served::default().named("deployments.apps").is_some_and(|found| found.is(&DEPLOYMENTS)));
        assert!(Served::default().named("boats").is_none());
        assert!(
            Served::default().of_kind("apps/v1", "ReplicaSet").is_some_and(|found| found.is(&REPLICA_SETS))
        );
    }
}
