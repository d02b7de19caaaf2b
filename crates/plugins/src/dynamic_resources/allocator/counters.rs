//! Counters that the devices of a pool share: parts of one physical device cannot be given away with the whole.

use super::pools::{Candidate, Counters};
use supercargo_model::{Quantity, devices::Device};

/// What others leave of the counters.
pub(super) fn available<'c>(
    mut counters: Counters,
    devices: impl Iterator<Item = &'c Candidate<'c>>,
) -> Counters {
    for candidate in devices.filter(|candidate| candidate.in_use || candidate.shared.is_some()) {
        change(&mut counters, candidate.device, Quantity::saturating_sub);
    }
    counters
}

/// Counts what a device takes, of counters that are there or begin with nothing.
pub(super) fn take(consumed: &mut Counters, device: &Device) {
    for taken in &device.consumes_counters {
        let set = consumed.entry(taken.counter_set.clone()).or_default();
        for (name, counter) in &taken.counters {
            let sum = set.entry(name.clone()).or_default();
            *sum = sum.saturating_add(counter.value.amount());
        }
    }
}

pub(super) fn give_back(consumed: &mut Counters, device: &Device) {
    change(consumed, device, Quantity::saturating_sub);
}

fn change(counters: &mut Counters, device: &Device, by: fn(Quantity, Quantity) -> Quantity) {
    for taken in &device.consumes_counters {
        let Some(set) = counters.get_mut(&taken.counter_set) else { continue };
        for (name, counter) in &taken.counters {
            if let Some(left) = set.get_mut(name) {
                *left = by(*left, counter.value.amount());
            }
        }
    }
}

/// Whether all counters of the pool suffice.
pub(super) fn suffice(available: &Counters, consumed: &Counters) -> bool {
    available.iter().all(|(set, counters)| {
        let consumed = consumed.get(set);
        counters.iter().all(|(name, left)| {
            let taken = consumed.and_then(|consumed| consumed.get(name)).copied().unwrap_or_default();
            *left >= taken
        })
    })
}
