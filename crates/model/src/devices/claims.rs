//! What is asked for, and what was allocated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DeviceQuantity, DeviceTaint};
use crate::{
    Key, Name, Timestamp,
    meta::{Meta, Owner, ResourceVersion},
    selector::{NodeSelector, Requirement},
};

/// What a request names to select devices in a certain way.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenClass")]
pub struct DeviceClass {
    /// Its name.
    pub name: Name,
    /// Which version of the object this is.
    pub version: ResourceVersion,
    /// When it was made: of several for one extended resource, the newest counts.
    pub created: Option<Timestamp>,
    /// What devices must meet.
    pub selectors: Vec<CelSelector>,
    /// What is handed to the drivers.
    pub config: Vec<OpaqueConfiguration>,
    /// The extended resource that stands for a device of this class.
    pub extended_resource: Option<Name>,
}

impl DeviceClass {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }
}

#[derive(Deserialize)]
struct WrittenClass {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: WrittenClassSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenClassSpec {
    selectors: Vec<CelSelector>,
    config: Vec<OpaqueConfiguration>,
    extended_resource_name: Option<Name>,
}

impl From<WrittenClass> for DeviceClass {
    fn from(WrittenClass { metadata, spec }: WrittenClass) -> Self {
        Self {
            name: metadata.name,
            version: ResourceVersion(metadata.resource_version),
            created: metadata.creation_timestamp,
            selectors: spec.selectors,
            config: spec.config,
            extended_resource: spec.extended_resource_name,
        }
    }
}

/// A condition on devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct CelSelector {
    cel: Option<CelExpression>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct CelExpression {
    expression: Name,
}

impl CelSelector {
    /// The expression; none, if the selector is of a kind that is not known.
    pub fn expression(&self) -> Option<&Name> {
        self.cel.as_ref().map(|cel| &cel.expression)
    }
}

/// What is handed to a driver; nobody else understands it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct OpaqueConfiguration {
    /// The driver and its parameters, as they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<serde_json::Value>,
}

/// What the claim for a pod's extended resources is called until it is written: no claim can have such a name.
pub const UNWRITTEN_CLAIM: &str = "<extended-resources>";

/// What that claim goes by until the API server gives it a uid.
pub fn extended_claim_uid(pod_uid: &str) -> Name {
    format!("{UNWRITTEN_CLAIM} {pod_uid}").into()
}

/// A claim to devices.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenResourceClaim")]
pub struct ResourceClaim {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Distinguishes it from an earlier claim of the same name.
    pub uid: Name,
    /// Which version of the object this is.
    pub version: ResourceVersion,
    /// Who made it.
    pub owners: Vec<Owner>,
    /// Its deletion was asked for.
    pub terminating: bool,
    /// It was made for the extended resources of the pod that owns it.
    pub is_for_extended_resources: bool,
    /// What it asks for.
    pub requests: Vec<DeviceRequest>,
    /// What must hold between the devices.
    pub constraints: Vec<ClaimConstraint>,
    /// What is handed to the drivers.
    pub config: Vec<ClaimConfiguration>,
    /// What it has got.
    pub allocation: Option<ClaimAllocation>,
    /// Who may use it.
    pub reserved_for: Vec<ClaimConsumer>,
    /// What drivers tell about its devices.
    pub devices: Vec<AllocatedDeviceStatus>,
}

impl ResourceClaim {
    /// `namespace/name`.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }

    /// Whether a pod owns it, and nobody else controls it.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.owners
            .iter()
            .find(|owner| owner.controller == Some(true))
            .is_some_and(|owner| *owner.uid == *uid)
    }

    /// Whether it was made for the extended resources of a pod.
    pub fn is_extended_of(&self, pod: &str, uid: &str) -> bool {
        let owns =
            |owner: &Owner| *owner.name == *pod && owner.controller == Some(true) && *owner.uid == *uid;
        self.is_for_extended_resources && self.owners.iter().any(owns)
    }

    /// Whether a pod may use it already.
    pub fn is_reserved_for(&self, uid: &str) -> bool {
        self.reserved_for.iter().any(|consumer| *consumer.uid == *uid)
    }

    pub(super) fn extended_owners(&self) -> impl Iterator<Item = &Name> {
        let controls = |owner: &&Owner| owner.controller == Some(true) && self.is_for_extended_resources;
        self.owners.iter().filter(controls).map(|owner| &owner.uid)
    }
}

/// What tells a claim that was made for a pod's extended resources.
pub const EXTENDED_RESOURCE_CLAIM: &str = "resource.kubernetes.io/extended-resource-claim";

#[derive(Deserialize)]
struct WrittenResourceClaim {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: WrittenClaimSpec,
    #[serde(default)]
    status: WrittenClaimStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenClaimSpec {
    devices: WrittenClaimDevices,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenClaimDevices {
    requests: Vec<DeviceRequest>,
    constraints: Vec<ClaimConstraint>,
    config: Vec<ClaimConfiguration>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenClaimStatus {
    allocation: Option<ClaimAllocation>,
    reserved_for: Vec<ClaimConsumer>,
    devices: Vec<AllocatedDeviceStatus>,
}

impl From<WrittenResourceClaim> for ResourceClaim {
    fn from(WrittenResourceClaim { metadata, spec, status }: WrittenResourceClaim) -> Self {
        Self {
            namespace: metadata.namespace_or_default(),
            name: metadata.name,
            uid: metadata.uid,
            version: ResourceVersion(metadata.resource_version),
            owners: metadata.owner_references,
            terminating: metadata.deletion_timestamp.is_some(),
            is_for_extended_resources: (metadata.annotations.get(EXTENDED_RESOURCE_CLAIM))
                .is_some_and(|value| &**value == "true"),
            requests: spec.devices.requests,
            constraints: spec.devices.constraints,
            config: spec.devices.config,
            allocation: status.allocation,
            reserved_for: status.reserved_for,
            devices: status.devices,
        }
    }
}

/// Devices of one kind, or of the first of several kinds that there are enough of.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceRequest {
    /// Its name within the claim.
    pub name: Name,
    /// What is asked for, if it is one kind.
    pub exactly: Option<ClaimedDevices>,
    /// Alternatives, the best first.
    pub first_available: Vec<ClaimedDevices>,
}

/// Devices of one kind that are asked for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimedDevices {
    /// Its name, if it is one of several alternatives.
    pub name: Name,
    /// The class that they are of.
    pub device_class_name: Name,
    /// What else they must meet.
    pub selectors: Vec<CelSelector>,
    /// How many.
    pub allocation_mode: AllocationMode,
    /// How many, if that is a number.
    pub count: i64,
    /// For whoever looks after devices: they stay with those who have them.
    pub admin_access: Option<bool>,
    /// Which taints do not matter.
    pub tolerations: Vec<DeviceToleration>,
    capacity: Option<CapacityRequirements>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct CapacityRequirements {
    requests: BTreeMap<Name, DeviceQuantity>,
}

impl ClaimedDevices {
    /// How much of a device's capacity is asked for, by name.
    pub fn capacity(&self) -> impl Iterator<Item = (&Name, &DeviceQuantity)> {
        self.capacity.iter().flat_map(|capacity| &capacity.requests)
    }

    /// How much of one capacity is asked for.
    pub fn capacity_of(&self, name: &str) -> Option<&DeviceQuantity> {
        self.capacity.as_ref()?.requests.get(name)
    }
}

/// How many devices are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Name")]
pub enum AllocationMode {
    /// A number of them.
    #[default]
    ExactCount,
    /// All that there are.
    All,
    /// In a way that is not known.
    Unknown(Name),
}

impl From<Name> for AllocationMode {
    fn from(written: Name) -> Self {
        match &*written {
            "ExactCount" => Self::ExactCount,
            "All" => Self::All,
            _ => Self::Unknown(written),
        }
    }
}

/// A taint of devices that does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeviceToleration {
    /// The taint's key; any, if empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub key: Name,
    /// `Equal` or `Exists`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub operator: Name,
    /// The taint's value.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub value: Name,
    /// The taint's effect; any, if empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub effect: Name,
    /// For how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub toleration_seconds: Option<i64>,
}

impl DeviceToleration {
    /// Whether a taint does not matter.
    pub fn tolerates(&self, taint: &DeviceTaint) -> bool {
        let same = |ours: &Name, theirs: &Name| ours.is_empty() || ours == theirs;
        same(&self.effect, &taint.effect)
            && same(&self.key, &taint.key)
            && match &*self.operator {
                "" | "Equal" => self.value == taint.value,
                "Exists" => true,
                _ => false,
            }
    }
}

/// What must hold between the devices of some requests, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimConstraint {
    /// The requests, or alternatives as `request/alternative`; all, if empty.
    pub requests: Vec<Name>,
    /// They have the same value of this attribute.
    pub match_attribute: Option<Name>,
    /// No two of them have the same value of this attribute.
    pub distinct_attribute: Option<Name>,
}

/// What is handed to the drivers of some requests' devices, or of all.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ClaimConfiguration {
    /// The requests, or alternatives as `request/alternative`; all, if empty.
    pub requests: Vec<Name>,
    /// The driver and its parameters, as they were written.
    pub opaque: Option<serde_json::Value>,
}

/// What a claim has got.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimAllocation {
    /// The devices.
    pub devices: DeviceAllocations,
    /// The nodes where they can be used; all, if there is none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "written_selector")]
    pub node_selector: Option<NodeSelector>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocation_timestamp: Option<Timestamp>,
}

/// Devices that were allocated, and what is handed to their drivers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct DeviceAllocations {
    /// The devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<AllocatedDevice>,
    /// What is handed to their drivers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<AllocationConfiguration>,
}

/// A device that was allocated.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocatedDevice {
    /// For which request, or alternative as `request/alternative`.
    pub request: Name,
    /// Whose device it is.
    pub driver: Name,
    /// Its pool.
    pub pool: Name,
    /// Its name.
    pub device: Name,
    /// It stays with whoever has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_access: Option<bool>,
    /// Which taints did not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<DeviceToleration>,
    /// What must become true before a pod that uses it is bound.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binding_conditions: Vec<Name>,
    /// What must not become true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub binding_failure_conditions: Vec<Name>,
    /// Tells this part of a device from others.
    #[serde(rename = "shareID", skip_serializing_if = "Option::is_none")]
    pub share_id: Option<Name>,
    /// How much of the device's capacity.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub consumed_capacity: BTreeMap<Name, DeviceQuantity>,
}

/// What is handed to a driver, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct AllocationConfiguration {
    /// `FromClass` or `FromClaim`.
    pub source: Name,
    /// For which requests; for all, if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Name>,
    /// The driver and its parameters, as they were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opaque: Option<serde_json::Value>,
}

/// Who may use a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimConsumer {
    /// Its API group; empty for the core's.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub api_group: Name,
    /// Its resource, such as `pods`.
    pub resource: Name,
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub uid: Name,
}

/// What a driver tells about a device.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct AllocatedDeviceStatus {
    /// Whose device it is.
    pub driver: Name,
    /// Its pool.
    pub pool: Name,
    /// Its name.
    pub device: Name,
    /// Which part of it.
    #[serde(rename = "shareID", skip_serializing_if = "Option::is_none")]
    pub share_id: Option<Name>,
    /// What is so.
    pub conditions: Vec<DeviceCondition>,
}

/// Something that is so, or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct DeviceCondition {
    /// What.
    #[serde(rename = "type")]
    pub kind: Name,
    /// `True`, `False`, `Unknown`.
    pub status: Name,
    /// Why, in a word.
    pub reason: Name,
    /// Why, in a sentence.
    pub message: Name,
}

/// As Kubernetes writes it.
fn written_selector<S: serde::Serializer>(
    selector: &Option<NodeSelector>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Written<'s> {
        node_selector_terms: Vec<Term<'s>>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Term<'s> {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        match_expressions: Vec<Condition<'s>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        match_fields: Vec<Condition<'s>>,
    }
    #[derive(Serialize)]
    struct Condition<'s> {
        key: &'s str,
        operator: String,
        #[serde(skip_serializing_if = "<[Name]>::is_empty")]
        values: &'s [Name],
    }
    fn conditions(all: &[Requirement]) -> Vec<Condition<'_>> {
        let written = |one: &Requirement| format!("{:?}", one.operator);
        all.iter()
            .map(|one| Condition { key: &one.key, operator: written(one), values: &one.values })
            .collect()
    }
    let terms = selector.iter().flat_map(|selector| &selector.node_selector_terms);
    let node_selector_terms = terms
        .map(|term| Term {
            match_expressions: conditions(&term.match_expressions),
            match_fields: conditions(&term.match_fields),
        })
        .collect();
    Written { node_selector_terms }.serialize(serializer)
}
