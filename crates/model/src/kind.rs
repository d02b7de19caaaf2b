//! The kinds of objects that a scheduler reads, in one table.
//!
//! A row of `for_each_kind` says everything about a kind: the type that reads it, where it is on an API server, which of
//! its objects are watched, what a change of it invalidates, and where the cluster keeps it. [`Kind`], [`Object`], the
//! cluster's `put`, `remove` and `object`, the informer's resources, the roles of `supercargo rbac`, the test cluster's
//! resources and the scenarios' kinds follow from it. The event that a kind wakes pods with is `framework`'s to say: a
//! match that has to name every kind.
//!
//! Plugins can declare custom kinds besides ([`Kind::Custom`]): those are kept as they are, and treated alike otherwise.
//!
//! [`Object`]: crate::object::Object

/// A resource of an API server, and the kind of its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApiResource {
    /// Its API group; empty for the core's.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its name in paths and roles, such as `pods`.
    pub plural: &'static str,
    /// What its objects call themselves, such as `Pod`.
    pub kind: &'static str,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl ApiResource {
    /// Pods.
    pub const PODS: Self = *Kind::Pod.api();
    /// Persistent volumes.
    pub const PERSISTENT_VOLUMES: Self = *Kind::PersistentVolume.api();
    /// Persistent volume claims.
    pub const PERSISTENT_VOLUME_CLAIMS: Self = *Kind::PersistentVolumeClaim.api();

    /// `v1`, or `apps/v1`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `foos.v1.example.com`: how kube-scheduler names custom resources in events.
    pub fn qualified_name(&self) -> String {
        format!("{}.{}.{}", self.plural, self.version, self.group)
    }

    /// Where the server tells what its group and version serve: `/api/v1`, or `/apis/apps/v1`.
    pub fn group_version_path(&self) -> String {
        match self.group {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }

    /// Where all its objects are, or those of a namespace.
    pub fn path(&self, namespace: &str) -> String {
        let base = self.group_version_path();
        if self.namespaced && !namespace.is_empty() {
            format!("{base}/namespaces/{namespace}/{}", self.plural)
        } else {
            format!("{base}/{}", self.plural)
        }
    }
}

/// Which objects of a kind are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// All of them.
    All,
    /// Those that a field selector matches.
    Matching(&'static str),
    /// Only those that a configuration names, one by one.
    Named,
}

/// What a change of an object leaves untrue of what is kept about pods and nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalidates {
    /// Whatever it touches: nodes and pods have a log of their own.
    Touched,
    /// Everything.
    Everything,
    /// What is kept about pods with volumes: see [`Cluster::storage_revision`](crate::Cluster::storage_revision).
    Storage,
    /// Nothing: whoever reads it asks anew for every pod.
    Nothing,
}

/// Pods that have ended hold nothing.
const NOT_ENDED: Watched = Watched::Matching("status.phase!=Succeeded,status.phase!=Failed");
const NAMESPACED: bool = true;
const CLUSTER_WIDE: bool = false;
/// Every API server serves it.
const REQUIRED: bool = true;
/// An API server may not serve it.
const OPTIONAL: bool = false;

/// Hands the table to a macro. Nodes come first: pods are put on them. A row:
///
/// `Variant(type it is kept as) from (type it is read by): group version plural kind, scope, presence, watched,
/// invalidates, store`
///
/// The store is a map of the cluster (`in field`), or the cluster's own way with the kind (`by put remove find`).
macro_rules! for_each_kind {
    ($then:ident) => {
        $then! {
            Node(Node) from (Node): "" "v1" "nodes" "Node",
                CLUSTER_WIDE, REQUIRED, Watched::All, Touched, by put_node remove_node_at find_node;
            Pod(Pod) from (Pod): "" "v1" "pods" "Pod",
                NAMESPACED, REQUIRED, NOT_ENDED, Touched, by put_unshared_pod drop_pod find_pod;
            Namespace(Namespace) from (Namespace): "" "v1" "namespaces" "Namespace",
                CLUSTER_WIDE, REQUIRED, Watched::All, Everything, in namespaces;
            Service(PodOwner) from (SelectsByMap): "" "v1" "services" "Service",
                NAMESPACED, OPTIONAL, Watched::All, Everything, in services;
            ReplicationController(PodOwner) from (SelectsByMap):
                "" "v1" "replicationcontrollers" "ReplicationController",
                NAMESPACED, OPTIONAL, Watched::All, Everything, in replication_controllers;
            ReplicaSet(PodOwner) from (SelectsBySelector): "apps" "v1" "replicasets" "ReplicaSet",
                NAMESPACED, OPTIONAL, Watched::All, Everything, in replica_sets;
            StatefulSet(PodOwner) from (SelectsBySelector): "apps" "v1" "statefulsets" "StatefulSet",
                NAMESPACED, OPTIONAL, Watched::All, Everything, in stateful_sets;
            PersistentVolume(PersistentVolume) from (PersistentVolume):
                "" "v1" "persistentvolumes" "PersistentVolume",
                CLUSTER_WIDE, OPTIONAL, Watched::All, Storage, by put_volume remove_volume find_volume;
            PersistentVolumeClaim(PersistentVolumeClaim) from (PersistentVolumeClaim):
                "" "v1" "persistentvolumeclaims" "PersistentVolumeClaim",
                NAMESPACED, OPTIONAL, Watched::All, Storage, in claims;
            StorageClass(StorageClass) from (StorageClass): "storage.k8s.io" "v1" "storageclasses" "StorageClass",
                CLUSTER_WIDE, OPTIONAL, Watched::All, Storage, in storage_classes;
            CsiNode(CsiNode) from (CsiNode): "storage.k8s.io" "v1" "csinodes" "CSINode",
                CLUSTER_WIDE, OPTIONAL, Watched::All, Storage, in csi_nodes;
            CsiDriver(CsiDriver) from (CsiDriver): "storage.k8s.io" "v1" "csidrivers" "CSIDriver",
                CLUSTER_WIDE, OPTIONAL, Watched::All, Storage, in csi_drivers;
            CsiStorageCapacity(CsiStorageCapacity) from (CsiStorageCapacity):
                "storage.k8s.io" "v1" "csistoragecapacities" "CSIStorageCapacity",
                NAMESPACED, OPTIONAL, Watched::All, Storage, in csi_capacities;
            VolumeAttachment(VolumeAttachment) from (VolumeAttachment):
                "storage.k8s.io" "v1" "volumeattachments" "VolumeAttachment",
                CLUSTER_WIDE, OPTIONAL, Watched::All, Storage, in attachments;
            PodDisruptionBudget(PodDisruptionBudget) from (PodDisruptionBudget):
                "policy" "v1" "poddisruptionbudgets" "PodDisruptionBudget",
                NAMESPACED, OPTIONAL, Watched::All, Nothing, in budgets;
            ResourceClaim(ResourceClaim) from (ResourceClaim):
                "resource.k8s.io" "v1" "resourceclaims" "ResourceClaim",
                NAMESPACED, OPTIONAL, Watched::All, Nothing,
                by put_resource_claim remove_resource_claim find_resource_claim;
            ResourceSlice(ResourceSlice) from (ResourceSlice):
                "resource.k8s.io" "v1" "resourceslices" "ResourceSlice",
                CLUSTER_WIDE, OPTIONAL, Watched::All, Nothing,
                by put_resource_slice remove_resource_slice find_resource_slice;
            DeviceClass(DeviceClass) from (DeviceClass): "resource.k8s.io" "v1" "deviceclasses" "DeviceClass",
                CLUSTER_WIDE, OPTIONAL, Watched::All, Everything,
                by put_device_class remove_device_class find_device_class;
            ConfigMap(ConfigMap) from (ConfigMap): "" "v1" "configmaps" "ConfigMap",
                NAMESPACED, OPTIONAL, Watched::Named, Everything, in config_maps;
        }
    };
}
pub(crate) use for_each_kind;

macro_rules! define_kinds {
    ($($variant:ident($type:ident) from ($written:ident):
       $group:literal $version:literal $plural:literal $kind:literal,
       $namespaced:expr, $required:expr, $watched:expr, $invalidates:ident, $how:tt $($store:ident)+;)*) => {
        /// The kind of an object that a scheduler reads.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the variants are Kubernetes' own names")]
        pub enum Kind {
            $($variant,)*
            /// A kind that a plugin has declared.
            Custom(&'static ApiResource),
        }

        impl Kind {
            /// Every kind but custom ones, nodes first: pods are put on them.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Where it is on an API server.
            pub const fn api(self) -> &'static ApiResource {
                match self {
                    $(Self::$variant => &ApiResource {
                        group: $group,
                        version: $version,
                        plural: $plural,
                        kind: $kind,
                        namespaced: $namespaced,
                    },)*
                    Self::Custom(api) => api,
                }
            }

            /// Whether every API server serves it; others may be missing.
            pub const fn is_required(self) -> bool {
                match self {
                    $(Self::$variant => $required,)*
                    Self::Custom(_) => OPTIONAL,
                }
            }

            /// Which of its objects are watched.
            pub const fn watched(self) -> Watched {
                match self {
                    $(Self::$variant => $watched,)*
                    Self::Custom(_) => Watched::All,
                }
            }

            /// What a change of one of its objects invalidates.
            pub const fn invalidates(self) -> Invalidates {
                match self {
                    $(Self::$variant => Invalidates::$invalidates,)*
                    Self::Custom(_) => Invalidates::Everything,
                }
            }
        }
    };
}
for_each_kind!(define_kinds);

impl Kind {
    /// The kind by Kubernetes' name for it, if it is a built-in one.
    pub fn named(kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == kind)
    }

    /// The kind by its API group and name, whatever the version, if it is a built-in one.
    pub fn of_group(group: &str, kind: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.api().group == group && known.name() == kind)
    }

    /// Kubernetes' name for it.
    pub const fn name(self) -> &'static str {
        self.api().kind
    }

    /// Whether objects of the kind live in a namespace.
    pub const fn is_namespaced(self) -> bool {
        self.api().namespaced
    }
}
