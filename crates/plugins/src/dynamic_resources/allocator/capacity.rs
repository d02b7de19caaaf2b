//! Parts of devices: how much of its capacity a request takes, and whether that is left.

use std::collections::BTreeMap;

use supercargo_model::{
    Name,
    devices::{
        CapacityRange, CapacityRequestPolicy, ClaimedDevices, Device, DeviceCapacity, DeviceQuantity,
        TakenCapacity,
    },
};

/// Whether a device has what the request asks for, besides what others have and what is being allocated.
pub(super) fn suffices(
    request: &ClaimedDevices,
    device: &Device,
    others: Option<&TakenCapacity>,
    allocating: Option<&TakenCapacity>,
) -> bool {
    if request.capacity().any(|(name, _)| !device.capacity.contains_key(name)) {
        return false;
    }
    device.capacity.iter().all(|(name, capacity)| {
        let taken = taken_of(request.capacity_of(name), capacity);
        if capacity.request_policy.as_ref().is_some_and(|policy| violates(&taken, policy)) {
            return false;
        }
        let already = |taken: Option<&TakenCapacity>| {
            taken.and_then(|taken| taken.get(name)).copied().unwrap_or_default()
        };
        let sum = taken.amount().saturating_add(already(others)).saturating_add(already(allocating));
        sum <= capacity.value.amount()
    })
}

/// How much the request takes of each capacity.
pub(super) fn taken(request: &ClaimedDevices, device: &Device) -> BTreeMap<Name, DeviceQuantity> {
    let one = |(name, capacity): (&Name, &DeviceCapacity)| {
        (name.clone(), taken_of(request.capacity_of(name), capacity))
    };
    device.capacity.iter().map(one).collect()
}

fn taken_of(requested: Option<&DeviceQuantity>, capacity: &DeviceCapacity) -> DeviceQuantity {
    let policy = capacity.request_policy.as_ref();
    let Some(requested) = requested else {
        let default = policy.and_then(|policy| policy.default.as_ref());
        return default.unwrap_or(&capacity.value).clone();
    };
    let Some(policy) = policy else { return requested.clone() };
    let range = policy.valid_range.as_ref();
    if let Some((range, min)) = range.and_then(|range| Some((range, range.min.as_ref()?))) {
        return rounded_up(requested, min, range);
    }
    let values = policy.valid_values.iter().flatten();
    let enough = |value: &&DeviceQuantity| requested.amount() <= value.amount();
    values.clone().find(enough).unwrap_or(requested).clone()
}

fn rounded_up(requested: &DeviceQuantity, min: &DeviceQuantity, range: &CapacityRange) -> DeviceQuantity {
    if requested.amount() < min.amount() {
        return min.clone();
    }
    let Some(step) = &range.step else { return requested.clone() };
    let (value, min, step) = (requested.amount().value(), min.amount().value(), step.amount().value());
    // A step of nothing rounds nothing.
    if step == 0 {
        return requested.clone();
    }
    let added = value.saturating_sub(min);
    let steps = added.wrapping_div(step) + i64::from(added.wrapping_rem(step) != 0);
    DeviceQuantity::from_binary(min.saturating_add(step.saturating_mul(steps)))
}

fn violates(taken: &DeviceQuantity, policy: &CapacityRequestPolicy) -> bool {
    if policy.default.as_ref() == Some(taken) {
        return false;
    }
    if let Some(range) = &policy.valid_range {
        let above = range.max.as_ref().is_some_and(|max| taken.amount() > max.amount());
        let between = range.step.as_ref().is_some_and(|step| {
            let min = range.min.as_ref().map_or(0, |min| min.amount().value());
            let step = step.amount().value();
            step == 0 || taken.amount().value().saturating_sub(min).wrapping_rem(step) != 0
        });
        return above || between;
    }
    match policy.valid_values.as_deref() {
        None | Some([]) => false,
        Some(values) => values.iter().all(|value| value.amount() != taken.amount()),
    }
}
