//! Which devices claims have.

use std::collections::BTreeMap;

use super::{AllocatedDevice, ClaimAllocation};
use crate::{HashMap, Name, Quantity};

/// A device by the names of its driver, its pool and its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceId {
    /// Its driver.
    pub driver: Name,
    /// Its pool.
    pub pool: Name,
    /// Its name.
    pub device: Name,
}

impl DeviceId {
    fn of(allocated: &AllocatedDevice) -> Self {
        Self {
            driver: allocated.driver.clone(),
            pool: allocated.pool.clone(),
            device: allocated.device.clone(),
        }
    }
}

/// What claims have taken of a device's capacity, by name.
pub type TakenCapacity = BTreeMap<Name, Quantity>;

/// A device that is shared.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shared {
    claims: u32,
    taken: TakenCapacity,
}

/// Which devices claims have, and how much of those that they share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DevicesInUse {
    /// By how many claims: one, unless something went wrong.
    whole: HashMap<DeviceId, u32>,
    shared: HashMap<DeviceId, Shared>,
}

impl DevicesInUse {
    /// Whether a claim has the whole device.
    pub fn has_whole(&self, id: &DeviceId) -> bool {
        self.whole.contains_key(id)
    }

    /// What claims have of a device that they share; `None` if none has any.
    pub fn shared(&self, id: &DeviceId) -> Option<&TakenCapacity> {
        self.shared.get(id).map(|shared| &shared.taken)
    }

    /// How many devices are with a claim, and how many are shared.
    pub fn counts(&self) -> (usize, usize) {
        (self.whole.len(), self.shared.len())
    }

    /// Counts what was allocated to a claim.
    pub fn add(&mut self, allocation: &ClaimAllocation) {
        for result in counted(allocation) {
            let id = DeviceId::of(result);
            if result.share_id.is_none() {
                *self.whole.entry(id).or_default() += 1;
                continue;
            }
            let shared = self.shared.entry(id).or_default();
            shared.claims += 1;
            for (name, taken) in &result.consumed_capacity {
                let sum = shared.taken.entry(name.clone()).or_default();
                *sum = sum.saturating_add(taken.amount());
            }
        }
    }

    /// Counts no longer what was allocated to a claim.
    pub fn remove(&mut self, allocation: &ClaimAllocation) {
        for result in counted(allocation) {
            let id = DeviceId::of(result);
            if result.share_id.is_none() {
                if let Some(claims) = self.whole.get_mut(&id) {
                    *claims -= 1;
                    if *claims == 0 {
                        self.whole.remove(&id);
                    }
                }
            } else if let Some(shared) = self.shared.get_mut(&id) {
                shared.claims -= 1;
                if shared.claims == 0 {
                    self.shared.remove(&id);
                    continue;
                }
                for (name, taken) in &result.consumed_capacity {
                    if let Some(sum) = shared.taken.get_mut(name) {
                        *sum = sum.saturating_sub(taken.amount());
                    }
                }
            }
        }
    }
}

/// Devices for whoever looks after them stay with those who have them.
fn counted(allocation: &ClaimAllocation) -> impl Iterator<Item = &AllocatedDevice> {
    allocation.devices.results.iter().filter(|result| result.admin_access != Some(true))
}
