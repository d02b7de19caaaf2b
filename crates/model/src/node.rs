//! A node as the scheduler sees it.

use serde::Deserialize;

use crate::{
    Key, Labels, Name, Timestamp, meta::Meta, resources::ResourceList, resources::Resources, taint::Taint,
};

/// The label that holds a node's host name.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
const REGION_LABEL: &str = "topology.kubernetes.io/region";
const OLD_ZONE_LABEL: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION_LABEL: &str = "failure-domain.beta.kubernetes.io/region";

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: Name,
    /// Distinguishes it from an earlier node of the same name.
    pub uid: Name,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Cordoned: no new pods.
    pub unschedulable: bool,
    /// Its taints.
    pub taints: Vec<Taint>,
    /// What pods may use.
    pub allocatable: Resources,
    /// The images it has.
    pub images: Vec<Image>,
    /// The features that its kubelet declares.
    pub declared_features: Vec<Name>,
    /// The status of each of its conditions, by type.
    pub conditions: Labels,
    /// What its kubelet says of the machine and its software, by the names of [`SYSTEM_INFO_FIELDS`].
    pub system_info: Labels,
}

/// The fields of `status.nodeInfo` that hold a text.
pub const SYSTEM_INFO_FIELDS: [&str; 10] = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
];

/// An image that a node has.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The names it goes by.
    #[serde(default)]
    pub names: Vec<Name>,
    /// Its size in bytes.
    #[serde(default)]
    pub size_bytes: i64,
}

impl Node {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }

    /// The zone that interleaving goes by: region and zone. Empty if the node names neither.
    pub fn zone(&self) -> Name {
        // The old names come first, as they may stand on objects that were never relabelled.
        let label = |stable, old| {
            let value = self.labels.get(old).or_else(|| self.labels.get(stable));
            value.map_or("", |v| &**v)
        };
        let region = label(REGION_LABEL, OLD_REGION_LABEL);
        let zone = label(ZONE_LABEL, OLD_ZONE_LABEL);
        if region.is_empty() && zone.is_empty() {
            return "".into();
        }
        // A separator that no label value can contain.
        format!("{region}:\0:{zone}").into()
    }
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: WrittenSpec,
    #[serde(default)]
    status: WrittenStatus,
}

#[derive(Default, Deserialize)]
struct WrittenSpec {
    #[serde(default)]
    unschedulable: bool,
    #[serde(default)]
    taints: Vec<Taint>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenStatus {
    #[serde(default)]
    allocatable: ResourceList,
    #[serde(default)]
    images: Vec<Image>,
    #[serde(default)]
    declared_features: Vec<Name>,
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    node_info: SystemInfo,
}

/// The times are left out: they change with every heartbeat.
#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type", default)]
    kind: Name,
    #[serde(default)]
    status: Name,
}

/// `status.nodeInfo`; what is not a text (`swap`) is left out.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SystemInfo {
    #[serde(rename = "machineID")]
    machine_id: Option<Name>,
    #[serde(rename = "systemUUID")]
    system_uuid: Option<Name>,
    #[serde(rename = "bootID")]
    boot_id: Option<Name>,
    kernel_version: Option<Name>,
    os_image: Option<Name>,
    container_runtime_version: Option<Name>,
    kubelet_version: Option<Name>,
    kube_proxy_version: Option<Name>,
    operating_system: Option<Name>,
    architecture: Option<Name>,
}

impl From<SystemInfo> for Labels {
    fn from(info: SystemInfo) -> Self {
        let values = [
            info.machine_id,
            info.system_uuid,
            info.boot_id,
            info.kernel_version,
            info.os_image,
            info.container_runtime_version,
            info.kubelet_version,
            info.kube_proxy_version,
            info.operating_system,
            info.architecture,
        ];
        let fields = SYSTEM_INFO_FIELDS.into_iter().zip(values);
        fields.filter_map(|(field, value)| Some((field, value?))).collect()
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Written { metadata, spec, status } = Written::deserialize(deserializer)?;
        Ok(Self {
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
            annotations: metadata.annotations,
            created: metadata.creation_timestamp,
            unschedulable: spec.unschedulable,
            taints: spec.taints,
            allocatable: Resources::from_list(&status.allocatable),
            images: status.images,
            declared_features: status.declared_features,
            conditions: status.conditions.into_iter().map(|c| (c.kind, c.status)).collect(),
            system_info: status.node_info.into(),
        })
    }
}
