//! Devices (`resource.k8s.io/v1`): what drivers offer, what claims ask for, and what was allocated to them.

mod claims;
mod in_use;
mod quantity;
mod slices;
mod store;

pub use claims::{
    AllocatedDevice, AllocatedDeviceStatus, AllocationConfiguration, AllocationMode, CelSelector,
    ClaimAllocation, ClaimConfiguration, ClaimConstraint, ClaimConsumer, ClaimedDevices, DeviceAllocations,
    DeviceClass, DeviceCondition, DeviceRequest, DeviceToleration, EXTENDED_RESOURCE_CLAIM,
    OpaqueConfiguration, ResourceClaim, UNWRITTEN_CLAIM, extended_claim_uid,
};
pub use in_use::{DeviceId, DevicesInUse, TakenCapacity};
pub use quantity::DeviceQuantity;
pub use slices::{
    CapacityRange, CapacityRequestPolicy, CounterConsumption, CounterSet, CounterValue, Device,
    DeviceAttribute, DeviceCapacity, DeviceTaint, ResourcePool, ResourceSlice,
};
pub use store::{DEVICE_CLASS_RESOURCE, DeviceChange, DeviceChanges, Devices};
