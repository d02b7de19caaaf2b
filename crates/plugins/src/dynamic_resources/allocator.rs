//! Which devices claims get on a node: kube-scheduler's search, in its order, so that the same devices are chosen. Pools by
//! driver and name, slices by name, devices as listed; depth first over claims, requests, alternatives and devices; the first
//! solution counts. It ends by a budget of steps, never by a clock.

mod capacity;
mod constraints;
mod counters;
mod outcome;
mod pools;
mod search;
mod selectors;

use std::collections::{BTreeMap, HashMap, HashSet};

use supercargo_model::{
    Labels, Name, Quantity,
    devices::{ClaimAllocation, DeviceClass, ResourceClaim, ResourceSlice},
};

pub use selectors::SelectorCache;

/// What one search may take. The reference's ends by the clock; a search of so many steps has tried all combinations of
/// devices that anybody will wait for.
pub const MOST_STEPS: u64 = 1_000_000;

/// Of one claim.
const MOST_DEVICES: usize = 32;

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

/// What others have.
#[derive(Clone, Debug, Default)]
pub struct DevicesInUse {
    whole: HashSet<DeviceId>,
    shared: HashMap<DeviceId, BTreeMap<Name, Quantity>>,
}

impl DevicesInUse {
    /// Counts what was allocated to a claim.
    pub fn add(&mut self, allocation: &ClaimAllocation) {
        for result in &allocation.devices.results {
            if result.admin_access == Some(true) {
                continue;
            }
            let id = DeviceId {
                driver: result.driver.clone(),
                pool: result.pool.clone(),
                device: result.device.clone(),
            };
            if result.share_id.is_none() {
                self.whole.insert(id);
                continue;
            }
            let shared = self.shared.entry(id).or_default();
            for (name, taken) in &result.consumed_capacity {
                let sum = shared.entry(name.clone()).or_default();
                *sum = sum.saturating_add(taken.amount());
            }
        }
    }
}

/// Why nothing can be said about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationError {
    /// The pod cannot be decided at all.
    Pod(String),
    /// Nothing can be allocated on this node.
    Node(String),
}

/// What is there to be allocated. It is put together once for all nodes.
pub struct DeviceSupply<'c> {
    /// Slices of one node, by its name.
    on_node: HashMap<&'c str, Vec<&'c ResourceSlice>>,
    /// Slices that more than one node can reach, and counters.
    shared: Vec<&'c ResourceSlice>,
    /// By driver and pool.
    of_pool: HashMap<(&'c str, &'c str), Vec<&'c ResourceSlice>>,
    in_use: &'c DevicesInUse,
    classes: HashMap<&'c str, &'c DeviceClass>,
}

impl<'c> DeviceSupply<'c> {
    /// What slices offer and others leave.
    pub fn new(
        slices: impl IntoIterator<Item = &'c ResourceSlice>,
        classes: impl IntoIterator<Item = &'c DeviceClass>,
        in_use: &'c DevicesInUse,
    ) -> Self {
        let classes = classes.into_iter().map(|class| (&*class.name, class)).collect();
        let (on_node, of_pool) = (HashMap::new(), HashMap::new());
        let mut supply = Self { on_node, shared: Vec::new(), of_pool, in_use, classes };
        for slice in slices {
            supply.of_pool.entry((&*slice.driver, &*slice.pool.name)).or_default().push(slice);
            match slice.node_name.as_deref().filter(|name| !name.is_empty()) {
                Some(node) if slice.shared_counters.is_empty() => {
                    supply.on_node.entry(node).or_default().push(slice);
                }
                _ => supply.shared.push(slice),
            }
        }
        supply
    }
}

/// The node that is asked about.
#[derive(Clone, Copy)]
pub struct NodeInQuestion<'n> {
    /// Its name.
    pub name: &'n str,
    /// Its labels.
    pub labels: &'n Labels,
}

/// What each claim gets on the node, or nothing if not all can get what they ask for.
///
/// # Errors
/// What is wrong with a claim, a class, a slice or a selector.
pub fn allocate(
    supply: &DeviceSupply<'_>,
    node: NodeInQuestion<'_>,
    claims: &[&ResourceClaim],
    selectors: &mut SelectorCache,
    new_share: &mut dyn FnMut() -> Name,
) -> Result<Option<Vec<ClaimAllocation>>, AllocationError> {
    let pools = pools::gather(supply, &node).map_err(AllocationError::Pod)?;
    let mut search = search::Search::new(supply, &node, claims, &pools, selectors)?;
    if search.run()? {
        return outcome::results(&search, new_share).map(Some);
    }
    if pools.iter().any(pools::Pool::is_invalid) {
        return Err(AllocationError::Node("invalid resource pools were encountered".to_owned()));
    }
    Ok(None)
}
