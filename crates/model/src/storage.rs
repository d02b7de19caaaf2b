//! Volumes, claims, and what is known about where they can be reached.

use std::sync::Arc;

use serde::Deserialize;

use crate::{
    Key, Labels, Name, Quantity,
    meta::{Meta, ResourceVersion},
    resources::ResourceList,
    selector::{NodeSelector, Selector},
};

pub mod annotations;
mod migration;

pub use migration::{Untranslatable, migrated_driver};

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "WrittenVolume")]
pub struct Volume {
    /// Its name within the pod.
    pub name: Name,
    /// Where it comes from.
    pub source: VolumeSource,
}

impl Volume {
    /// Whether it bears on where the pod can run: a claim or a disk does, a config map does not.
    pub fn is_bound_to_nodes(&self) -> bool {
        !matches!(self.source, VolumeSource::Image { .. } | VolumeSource::Other)
    }

    /// The claim behind it, if there is one. A claim made for a pod is named after the pod and the volume.
    pub fn claim_name(&self, pod_name: &str) -> Option<Name> {
        match &self.source {
            VolumeSource::Claim { name } => Some(name.clone()),
            VolumeSource::Ephemeral => Some(format!("{pod_name}-{}", self.name).into()),
            _ => None,
        }
    }
}

/// Where a pod's volume comes from, as far as it bears on scheduling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VolumeSource {
    /// A claim of the pod's namespace.
    Claim {
        /// The claim's name.
        name: Name,
    },
    /// A claim that is made for this pod, named after the pod and the volume.
    Ephemeral,
    /// A volume of a CSI driver that lives as long as the pod.
    Csi {
        /// The driver's name.
        driver: Name,
    },
    /// The content of an image.
    Image {
        /// The image's name.
        reference: Name,
    },
    /// A disk named in the pod itself, in the way of old.
    Disk(Disk),
    /// Anything else: it does not bear on scheduling.
    Other,
}

/// A network disk of one of the kinds that Kubernetes knew before CSI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Disk {
    /// A Google disk.
    GcePersistentDisk(GcePersistentDisk),
    /// An Amazon disk.
    AwsElasticBlockStore(AwsElasticBlockStore),
    /// An Azure disk.
    AzureDisk(AzureDisk),
    /// An Azure file share.
    AzureFile(AzureFile),
    /// An OpenStack disk.
    Cinder(Cinder),
    /// A vSphere disk.
    Vsphere(VsphereVolume),
    /// A Portworx volume.
    Portworx(PortworxVolume),
    /// A Ceph block device.
    Rbd(Rbd),
    /// An iSCSI target.
    Iscsi(Iscsi),
}

/// A Google disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GcePersistentDisk {
    /// The disk's name.
    pub pd_name: Name,
    /// Mounted for reading only.
    #[serde(default)]
    pub read_only: bool,
}

/// An Amazon disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AwsElasticBlockStore {
    /// The disk's identity.
    #[serde(rename = "volumeID")]
    pub volume_id: Name,
}

/// An Azure disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct AzureDisk {
    /// The disk's name.
    #[serde(rename = "diskName", default)]
    pub disk_name: Option<Name>,
    /// The disk's address.
    #[serde(rename = "diskURI", default)]
    pub disk_uri: Option<Name>,
    /// Who manages it: `Managed`, `Shared` or `Dedicated`.
    #[serde(default)]
    pub kind: Option<Name>,
}

/// An Azure file share.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AzureFile {
    /// The share's name.
    #[serde(default)]
    pub share_name: Option<Name>,
    /// The secret with the account.
    #[serde(default)]
    pub secret_name: Option<Name>,
    /// The secret's namespace.
    #[serde(default)]
    pub secret_namespace: Option<Name>,
}

/// An OpenStack disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Cinder {
    /// The disk's identity.
    #[serde(rename = "volumeID")]
    pub volume_id: Name,
}

/// A vSphere disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VsphereVolume {
    /// The path that identifies it.
    pub volume_path: Name,
}

/// A Portworx volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct PortworxVolume {
    /// The volume's identity.
    #[serde(rename = "volumeID")]
    pub volume_id: Name,
}

/// A Ceph block device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rbd {
    /// The monitors.
    #[serde(default)]
    pub monitors: Vec<Name>,
    /// The pool.
    #[serde(default = "default_pool")]
    pub pool: Name,
    /// The image.
    pub image: Name,
    /// Mounted for reading only.
    #[serde(default)]
    pub read_only: bool,
}

fn default_pool() -> Name {
    "rbd".into()
}

/// An iSCSI target.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Iscsi {
    /// The target's qualified name.
    pub iqn: Name,
    /// Mounted for reading only.
    #[serde(default)]
    pub read_only: bool,
}

/// Gives a written spec the fields of all kinds of disks: pods and persistent volumes name them alike.
macro_rules! with_disk_fields {
    ($(#[$attribute:meta])* struct $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        struct $name {
            $($field: $type,)*
            gce_persistent_disk: Option<GcePersistentDisk>,
            aws_elastic_block_store: Option<AwsElasticBlockStore>,
            azure_disk: Option<AzureDisk>,
            azure_file: Option<AzureFile>,
            cinder: Option<Cinder>,
            vsphere_volume: Option<VsphereVolume>,
            portworx_volume: Option<PortworxVolume>,
            rbd: Option<Rbd>,
            iscsi: Option<Iscsi>,
        }

        impl $name {
            fn take_disk(&mut self) -> Option<Disk> {
                (self.gce_persistent_disk.take().map(Disk::GcePersistentDisk))
                    .or(self.aws_elastic_block_store.take().map(Disk::AwsElasticBlockStore))
                    .or(self.azure_disk.take().map(Disk::AzureDisk))
                    .or(self.azure_file.take().map(Disk::AzureFile))
                    .or(self.cinder.take().map(Disk::Cinder))
                    .or(self.vsphere_volume.take().map(Disk::Vsphere))
                    .or(self.portworx_volume.take().map(Disk::Portworx))
                    .or(self.rbd.take().map(Disk::Rbd))
                    .or(self.iscsi.take().map(Disk::Iscsi))
            }
        }
    };
}

with_disk_fields! {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WrittenVolume {
        name: Name,
        persistent_volume_claim: Option<WrittenClaimSource>,
        ephemeral: Option<Ignored>,
        csi: Option<WrittenCsi>,
        image: Option<WrittenImage>,
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenClaimSource {
    claim_name: Name,
}

#[derive(Deserialize)]
struct WrittenCsi {
    driver: Name,
}

#[derive(Deserialize)]
struct WrittenImage {
    #[serde(default)]
    reference: Option<Name>,
}

/// Something whose presence is all that matters.
#[derive(Clone, Debug, Deserialize)]
struct Ignored {}

impl From<WrittenVolume> for Volume {
    fn from(mut written: WrittenVolume) -> Self {
        let disk = written.take_disk();
        let source = if let Some(claim) = written.persistent_volume_claim {
            VolumeSource::Claim { name: claim.claim_name }
        } else if written.ephemeral.is_some() {
            VolumeSource::Ephemeral
        } else if let Some(csi) = written.csi {
            VolumeSource::Csi { driver: csi.driver }
        } else if let Some(image) = written.image {
            VolumeSource::Image { reference: image.reference.unwrap_or_default() }
        } else if let Some(disk) = disk {
            VolumeSource::Disk(disk)
        } else {
            VolumeSource::Other
        };
        Self { name: written.name, source }
    }
}

/// How a volume may be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum AccessMode {
    /// By one node, to write.
    ReadWriteOnce,
    /// By many nodes, to read.
    ReadOnlyMany,
    /// By many nodes, to write.
    ReadWriteMany,
    /// By one pod, to write.
    ReadWriteOncePod,
}

/// Whether a volume is seen as files or as a block device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum VolumeMode {
    /// Files.
    #[default]
    #[serde(alias = "")]
    Filesystem,
    /// A block device.
    Block,
}

/// A persistent volume.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenPersistentVolume")]
pub struct PersistentVolume {
    /// Its name.
    pub name: Name,
    /// Which version of the object this is.
    pub version: ResourceVersion,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// Its deletion was asked for.
    pub terminating: bool,
    /// Its size.
    pub capacity: Quantity,
    /// How it may be used.
    pub access_modes: Vec<AccessMode>,
    /// Its class, empty for none.
    pub storage_class: Name,
    /// Files or a block device.
    pub volume_mode: VolumeMode,
    /// The attributes class it was given.
    pub attributes_class: Option<Name>,
    /// The claim it is for.
    pub claim: Option<ClaimRef>,
    /// The nodes that can reach it.
    pub node_affinity: Option<Arc<NodeSelector>>,
    /// `Available`, `Bound`, …
    pub phase: Name,
    /// The driver and the handle of a CSI volume.
    pub csi: Option<CsiVolume>,
    /// A disk of the way of old.
    pub disk: Option<Disk>,
}

impl PersistentVolume {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }
}

/// The claim that a volume is for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ClaimRef {
    /// The claim's namespace.
    #[serde(default)]
    pub namespace: Option<Name>,
    /// The claim's name.
    #[serde(default)]
    pub name: Option<Name>,
    /// The claim's identity.
    #[serde(default)]
    pub uid: Option<Name>,
}

/// A volume of a CSI driver.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CsiVolume {
    /// The driver's name.
    pub driver: Name,
    /// The driver's name for the volume.
    #[serde(default)]
    pub volume_handle: Option<Name>,
}

#[derive(Deserialize)]
struct WrittenPersistentVolume {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: WrittenPersistentVolumeSpec,
    #[serde(default)]
    status: WrittenPhase,
}

#[derive(Default, Deserialize)]
struct WrittenPhase {
    #[serde(default)]
    phase: Option<Name>,
}

with_disk_fields! {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct WrittenPersistentVolumeSpec {
        capacity: ResourceList,
        access_modes: Vec<AccessMode>,
        storage_class_name: Option<Name>,
        volume_mode: VolumeMode,
        volume_attributes_class_name: Option<Name>,
        claim_ref: Option<ClaimRef>,
        node_affinity: WrittenVolumeNodeAffinity,
        csi: Option<CsiVolume>,
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenVolumeNodeAffinity {
    required: Option<Arc<NodeSelector>>,
}

impl From<WrittenPersistentVolume> for PersistentVolume {
    fn from(written: WrittenPersistentVolume) -> Self {
        let WrittenPersistentVolume { metadata, mut spec, status } = written;
        let disk = spec.take_disk();
        Self {
            terminating: metadata.deletion_timestamp.is_some(),
            name: metadata.name,
            version: ResourceVersion(metadata.resource_version),
            labels: metadata.labels,
            storage_class: class_name(spec.storage_class_name, &metadata.annotations).unwrap_or_default(),
            annotations: metadata.annotations,
            capacity: spec.capacity.get("storage").copied().unwrap_or_default(),
            access_modes: spec.access_modes,
            volume_mode: spec.volume_mode,
            attributes_class: spec.volume_attributes_class_name,
            claim: spec.claim_ref,
            node_affinity: spec.node_affinity.required,
            phase: status.phase.unwrap_or_default(),
            csi: spec.csi,
            disk,
        }
    }
}

/// The annotation that named the class before there was a field for it; it still wins.
fn class_name(field: Option<Name>, annotations: &Labels) -> Option<Name> {
    annotations.get("volume.beta.kubernetes.io/storage-class").cloned().or(field)
}

/// A claim to a persistent volume.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenClaim")]
pub struct PersistentVolumeClaim {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Distinguishes it from an earlier claim of the same name.
    pub uid: Name,
    /// Which version of the object this is.
    pub version: ResourceVersion,
    /// Its annotations.
    pub annotations: Labels,
    /// The object that manages it.
    pub controller_uid: Option<Name>,
    /// Its deletion was asked for.
    pub terminating: bool,
    /// What size it asks for, if it says so.
    pub size: Option<Quantity>,
    /// What uses it asks for.
    pub access_modes: Vec<AccessMode>,
    /// Its class: absent is not the same as empty.
    pub storage_class: Option<Name>,
    /// Files or a block device.
    pub volume_mode: VolumeMode,
    /// The attributes class it asks for.
    pub attributes_class: Option<Name>,
    /// Which volumes will do.
    pub selector: Option<Selector>,
    /// The volume it has, or asks for; empty for none.
    pub volume: Name,
    /// `Pending`, `Bound`, `Lost`.
    pub phase: Name,
}

impl PersistentVolumeClaim {
    /// `namespace/name`.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }

    /// The name of its class, empty for none.
    pub fn class_name(&self) -> &str {
        self.storage_class.as_deref().unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct WrittenClaim {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: WrittenClaimSpec,
    #[serde(default)]
    status: WrittenPhase,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenClaimSpec {
    access_modes: Vec<AccessMode>,
    selector: Option<Selector>,
    resources: crate::resources::ResourceRequirements,
    volume_name: Option<Name>,
    storage_class_name: Option<Name>,
    volume_mode: VolumeMode,
    volume_attributes_class_name: Option<Name>,
}

impl From<WrittenClaim> for PersistentVolumeClaim {
    fn from(written: WrittenClaim) -> Self {
        let WrittenClaim { metadata, spec, status } = written;
        let controller_uid = metadata.controller().map(|owner| owner.uid.clone());
        Self {
            namespace: metadata.namespace_or_default(),
            name: metadata.name,
            uid: metadata.uid,
            version: ResourceVersion(metadata.resource_version),
            controller_uid,
            terminating: metadata.deletion_timestamp.is_some(),
            size: spec.resources.requests.get("storage").copied(),
            access_modes: spec.access_modes,
            storage_class: class_name(spec.storage_class_name, &metadata.annotations),
            annotations: metadata.annotations,
            volume_mode: spec.volume_mode,
            attributes_class: spec.volume_attributes_class_name,
            selector: spec.selector,
            volume: spec.volume_name.unwrap_or_default(),
            phase: status.phase.unwrap_or_default(),
        }
    }
}

/// When a claim of a class is bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum VolumeBindingMode {
    /// As soon as it is made.
    #[default]
    Immediate,
    /// When the first pod that uses it is placed.
    WaitForFirstConsumer,
}

/// A storage class.
#[derive(Clone, Debug, PartialEq)]
pub struct StorageClass {
    /// Its name.
    pub name: Name,
    /// Who makes its volumes.
    pub provisioner: Name,
    /// When its claims are bound; absent is an error of the class.
    pub binding_mode: Option<VolumeBindingMode>,
    /// Where its volumes can be made; empty for anywhere.
    pub allowed_topologies: Vec<TopologyTerm>,
}

impl StorageClass {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }
}

/// Labels that nodes of a topology have, all of them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopologyTerm {
    /// The labels.
    #[serde(default)]
    pub match_label_expressions: Vec<TopologyLabel>,
}

/// A label and its possible values.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct TopologyLabel {
    /// The label's key.
    pub key: Name,
    /// Its possible values.
    #[serde(default)]
    pub values: Vec<Name>,
}

impl<'de> Deserialize<'de> for StorageClass {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written {
            #[serde(default)]
            metadata: Meta,
            #[serde(default)]
            provisioner: Option<Name>,
            #[serde(default)]
            volume_binding_mode: Option<VolumeBindingMode>,
            #[serde(default)]
            allowed_topologies: Vec<TopologyTerm>,
        }
        let written = Written::deserialize(deserializer)?;
        Ok(Self {
            name: written.metadata.name,
            provisioner: written.provisioner.unwrap_or_default(),
            binding_mode: written.volume_binding_mode,
            allowed_topologies: written.allowed_topologies,
        })
    }
}

/// What a node's CSI drivers said about themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct CsiNode {
    /// The node's name.
    pub name: Name,
    /// Plugins whose volumes the node's kubelet hands to CSI drivers.
    pub migrated_plugins: Vec<Name>,
    /// The drivers.
    pub drivers: Vec<CsiNodeDriver>,
}

impl CsiNode {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }
}

/// A CSI driver on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct CsiNodeDriver {
    /// The driver's name.
    pub name: Name,
    /// How many volumes it can attach to the node; absent for no limit.
    pub volume_limit: Option<i32>,
    /// The labels of the node that say where its volumes can be reached from.
    pub topology_keys: Vec<Name>,
}

impl<'de> Deserialize<'de> for CsiNode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(default)]
            metadata: Meta,
            #[serde(default)]
            spec: Spec,
        }
        #[derive(Default, Deserialize)]
        struct Spec {
            #[serde(default)]
            drivers: Vec<Driver>,
        }
        #[derive(Deserialize)]
        struct Driver {
            name: Name,
            #[serde(default)]
            allocatable: Option<Allocatable>,
            #[serde(default, rename = "topologyKeys")]
            topology_keys: Option<Vec<Name>>,
        }
        #[derive(Deserialize)]
        struct Allocatable {
            #[serde(default)]
            count: Option<i32>,
        }
        let written = Written::deserialize(deserializer)?;
        let migrated = written.metadata.annotations.get("storage.alpha.kubernetes.io/migrated-plugins");
        Ok(Self {
            migrated_plugins: (migrated.filter(|list| !list.is_empty()))
                .map_or_else(Vec::new, |list| list.split(',').map(Name::from).collect()),
            name: written.metadata.name,
            drivers: (written.spec.drivers.into_iter())
                .map(|driver| CsiNodeDriver {
                    name: driver.name,
                    volume_limit: driver.allocatable.and_then(|a| a.count),
                    topology_keys: driver.topology_keys.unwrap_or_default(),
                })
                .collect(),
        })
    }
}

/// What the cluster knows about a CSI driver.
#[derive(Clone, Debug, PartialEq)]
pub struct CsiDriver {
    /// Its name.
    pub name: Name,
    /// Whether it says how much room it has where.
    pub storage_capacity: bool,
}

impl CsiDriver {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }
}

impl<'de> Deserialize<'de> for CsiDriver {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(default)]
            metadata: Meta,
            #[serde(default)]
            spec: Spec,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Spec {
            storage_capacity: bool,
        }
        let written = Written::deserialize(deserializer)?;
        Ok(Self { name: written.metadata.name, storage_capacity: written.spec.storage_capacity })
    }
}

/// How much room a storage class has on some nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct CsiStorageCapacity {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The class.
    pub storage_class: Name,
    /// The nodes; absent selects none.
    pub node_topology: Selector,
    /// The room.
    pub capacity: Option<Quantity>,
    /// The largest single volume.
    pub maximum_volume_size: Option<Quantity>,
}

impl CsiStorageCapacity {
    /// `namespace/name`.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }

    /// How large a volume can be: the most precise that is known.
    pub fn volume_limit(&self) -> Option<Quantity> {
        self.maximum_volume_size.or(self.capacity)
    }
}

impl<'de> Deserialize<'de> for CsiStorageCapacity {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written {
            #[serde(default)]
            metadata: Meta,
            #[serde(default)]
            storage_class_name: Option<Name>,
            #[serde(default)]
            node_topology: Option<Selector>,
            #[serde(default)]
            capacity: Option<Quantity>,
            #[serde(default)]
            maximum_volume_size: Option<Quantity>,
        }
        let written = Written::deserialize(deserializer)?;
        Ok(Self {
            namespace: written.metadata.namespace_or_default(),
            name: written.metadata.name,
            storage_class: written.storage_class_name.unwrap_or_default(),
            node_topology: written.node_topology.unwrap_or_default(),
            capacity: written.capacity,
            maximum_volume_size: written.maximum_volume_size,
        })
    }
}

/// A volume that is, or is being, attached to a node.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeAttachment {
    /// Its name.
    pub name: Name,
    /// The CSI driver.
    pub attacher: Name,
    /// The node.
    pub node: Name,
    /// The volume.
    pub volume: Option<Name>,
}

impl VolumeAttachment {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }
}

impl<'de> Deserialize<'de> for VolumeAttachment {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(default)]
            metadata: Meta,
            spec: Spec,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            attacher: Name,
            node_name: Name,
            #[serde(default)]
            source: Source,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Source {
            #[serde(default)]
            persistent_volume_name: Option<Name>,
        }
        let written = Written::deserialize(deserializer)?;
        Ok(Self {
            name: written.metadata.name,
            attacher: written.spec.attacher,
            node: written.spec.node_name,
            volume: written.spec.source.persistent_volume_name,
        })
    }
}
