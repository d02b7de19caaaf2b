//! What drivers offer.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::DeviceQuantity;
use crate::{
    Key, Name,
    meta::{Meta, ResourceVersion},
    selector::NodeSelector,
};

/// Devices of one driver, or the counters that they share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "WrittenSlice")]
pub struct ResourceSlice {
    /// Its name.
    pub name: Name,
    /// Which version of the object this is.
    pub version: ResourceVersion,
    /// Whose devices they are.
    pub driver: Name,
    /// The pool that they belong to.
    pub pool: ResourcePool,
    /// The node that has them.
    pub node_name: Option<Name>,
    /// The nodes that can reach them.
    pub node_selector: Option<NodeSelector>,
    /// All nodes can reach them.
    pub all_nodes: bool,
    /// Each device says for itself which nodes can reach it.
    pub per_device_node_selection: bool,
    /// Some part of the slice says that.
    pub names_per_device_selection: bool,
    /// The devices, in order.
    pub devices: Vec<Device>,
    /// Counters that the pool's devices share.
    pub shared_counters: Vec<CounterSet>,
}

impl ResourceSlice {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }

    /// The node that alone can reach its devices, if it has any: counters are the pool's, wherever they are written.
    pub fn only_node(&self) -> Option<&Name> {
        let node = self.node_name.as_ref().filter(|name| !name.is_empty());
        node.filter(|_| self.shared_counters.is_empty())
    }
}

/// Slices that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcePool {
    /// Its name.
    pub name: Name,
    /// Slices of an older generation do not count.
    pub generation: i64,
    /// How many slices of this generation there are.
    pub resource_slice_count: i64,
}

#[derive(Deserialize)]
struct WrittenSlice {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: WrittenSliceSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenSliceSpec {
    driver: Name,
    pool: ResourcePool,
    node_name: Option<Name>,
    node_selector: Option<NodeSelector>,
    all_nodes: Option<bool>,
    per_device_node_selection: Option<bool>,
    devices: Vec<Device>,
    shared_counters: Vec<CounterSet>,
}

impl From<WrittenSlice> for ResourceSlice {
    fn from(WrittenSlice { metadata, spec }: WrittenSlice) -> Self {
        Self {
            name: metadata.name,
            version: ResourceVersion(metadata.resource_version),
            driver: spec.driver,
            pool: spec.pool,
            node_name: spec.node_name,
            node_selector: spec.node_selector,
            all_nodes: spec.all_nodes == Some(true),
            per_device_node_selection: spec.per_device_node_selection == Some(true),
            names_per_device_selection: spec.per_device_node_selection.is_some(),
            devices: spec.devices,
            shared_counters: spec.shared_counters,
        }
    }
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    /// Its name within the pool.
    pub name: Name,
    /// What is known of it, by name with or without a domain.
    pub attributes: BTreeMap<Name, DeviceAttribute>,
    /// What it has, by name with or without a domain.
    pub capacity: BTreeMap<Name, DeviceCapacity>,
    /// What it takes from the pool's counters when it is allocated.
    pub consumes_counters: Vec<CounterConsumption>,
    /// The node that has it, if the slice leaves that to devices.
    pub node_name: Option<Name>,
    /// The nodes that can reach it.
    pub node_selector: Option<NodeSelector>,
    /// All nodes can reach it.
    pub all_nodes: Option<bool>,
    /// What keeps claims away that do not tolerate it.
    pub taints: Vec<DeviceTaint>,
    /// Once allocated it can be used on that node only.
    pub binds_to_node: Option<bool>,
    /// What must become true before a pod that uses it is bound. Absent is not the same as empty.
    pub binding_conditions: Option<Vec<Name>>,
    /// What must not become true.
    pub binding_failure_conditions: Option<Vec<Name>>,
    /// Several claims can have it, each a part of its capacity.
    pub allow_multiple_allocations: Option<bool>,
}

impl Device {
    /// Whether several claims can have it.
    pub fn is_shared(&self) -> bool {
        self.allow_multiple_allocations == Some(true)
    }
}

/// The value of an attribute: one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceAttribute {
    /// A number.
    pub int: Option<i64>,
    /// Yes or no.
    pub bool: Option<bool>,
    /// A text.
    pub string: Option<Name>,
    /// A semantic version.
    pub version: Option<Name>,
}

/// How much of something a device has.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCapacity {
    /// How much.
    pub value: DeviceQuantity,
    /// How much of it a claim can have.
    #[serde(default)]
    pub request_policy: Option<CapacityRequestPolicy>,
}

/// How much of a capacity a claim can have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CapacityRequestPolicy {
    /// What a claim gets that does not say.
    pub default: Option<DeviceQuantity>,
    /// The amounts that there are, ascending.
    pub valid_values: Option<Vec<DeviceQuantity>>,
    /// The amounts that there are.
    pub valid_range: Option<CapacityRange>,
}

/// A range of amounts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CapacityRange {
    /// At least.
    pub min: Option<DeviceQuantity>,
    /// At most.
    pub max: Option<DeviceQuantity>,
    /// In steps from the least.
    pub step: Option<DeviceQuantity>,
}

/// Counters that devices of a pool share.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CounterSet {
    /// Its name within the pool.
    pub name: Name,
    /// What there is, by name.
    pub counters: BTreeMap<Name, CounterValue>,
}

/// What a device takes from a set of counters.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CounterConsumption {
    /// The set's name.
    pub counter_set: Name,
    /// What it takes, by name.
    pub counters: BTreeMap<Name, CounterValue>,
}

/// An amount of a counter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CounterValue {
    /// How much.
    pub value: DeviceQuantity,
}

/// A mark on a device that claims must tolerate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DeviceTaint {
    /// Its key.
    pub key: Name,
    /// Its value.
    pub value: Name,
    /// What it does: `NoSchedule`, `NoExecute`, `None`, or what is not known yet.
    pub effect: Name,
}

impl DeviceTaint {
    /// Whether it keeps claims away that do not tolerate it.
    pub fn repels(&self) -> bool {
        matches!(&*self.effect, "NoSchedule" | "NoExecute")
    }
}
