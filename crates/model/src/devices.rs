//! Devices (`resource.k8s.io/v1`): what drivers offer, what claims ask for, and what was allocated to them.

mod claims;
mod quantity;
mod slices;

pub use claims::{
    AllocatedDevice, AllocatedDeviceStatus, AllocationConfiguration, AllocationMode, CelSelector,
    ClaimAllocation, ClaimConfiguration, ClaimConstraint, ClaimConsumer, ClaimedDevices, DeviceAllocations,
    DeviceClass, DeviceCondition, DeviceRequest, DeviceToleration, OpaqueConfiguration, ResourceClaim,
};
pub use quantity::DeviceQuantity;
pub use slices::{
    CapacityRange, CapacityRequestPolicy, CounterConsumption, CounterSet, CounterValue, Device,
    DeviceAttribute, DeviceCapacity, DeviceTaint, ResourcePool, ResourceSlice,
};
