//! Which devices claims get on a node: kube-scheduler's search, in its order, so that the same devices are chosen. Pools by
//! driver and name, slices by name, devices as listed; depth first over claims, requests, alternatives and devices; the first
//! solution counts. It ends by a budget of steps, never by a clock.

mod capacity;
mod constraints;
mod counters;
mod outcome;
mod pools;
mod reasons;
mod search;
mod selectors;
mod totals;

use supercargo_model::{
    Labels, Name,
    devices::{ClaimAllocation, Devices, ResourceClaim},
};

pub use reasons::{DeviceExamination, ExaminedDevice, ExaminedRequest, Obstacle, examine};
pub use selectors::SelectorCache;
pub use totals::devices_of_class;

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
type HashSet<T> = std::collections::HashSet<T, foldhash::fast::RandomState>;

/// What one search may take. The reference's ends by the clock; a search of so many steps has tried all combinations of
/// devices that anybody will wait for.
pub const MOST_STEPS: u64 = 1_000_000;

/// Of one claim.
const MOST_DEVICES: usize = 32;

/// How many claims, requests and devices one search goes down.
const MOST_DEPTH: usize = 1024;

/// Why nothing can be said about a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllocationError {
    /// The pod cannot be decided at all.
    Pod(String),
    /// Nothing can be allocated on this node.
    Node(String),
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
    devices: &Devices,
    node: NodeInQuestion<'_>,
    claims: &[&ResourceClaim],
    selectors: &mut SelectorCache,
    new_share: &mut dyn FnMut() -> Name,
) -> Result<Option<Vec<ClaimAllocation>>, AllocationError> {
    let pools = pools::gather(devices, &node).map_err(AllocationError::Pod)?;
    let mut search = search::Search::new(devices, &node, claims, &pools, selectors)?;
    if search.run()? {
        return outcome::results(&search, new_share).map(Some);
    }
    if pools.iter().any(pools::Pool::is_invalid) {
        return Err(AllocationError::Node("invalid resource pools were encountered".to_owned()));
    }
    Ok(None)
}
