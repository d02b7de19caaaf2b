//! The devices that a node can reach, by pool.

use std::{collections::BTreeMap, sync::Arc};

use supercargo_model::{
    Name, Quantity,
    devices::{Device, DeviceId, Devices, ResourceSlice, TakenCapacity},
    selector::NodeSelector,
};

use super::{HashSet, NodeInQuestion};

/// By counter set and counter.
pub(super) type Counters = BTreeMap<Name, BTreeMap<Name, Quantity>>;

pub(super) struct Pool<'c> {
    pub(super) driver: Name,
    pub(super) name: Name,
    pub(super) state: PoolState<'c>,
}

pub(super) enum PoolState<'c> {
    /// Some of its slices are missing.
    Incomplete,
    /// Its slices contradict each other.
    Invalid,
    Usable {
        devices: Vec<Candidate<'c>>,
        available: Counters,
        has_binding_conditions: bool,
    },
}

/// A device that the node can reach, perhaps.
pub(super) struct Candidate<'c> {
    pub(super) slice: &'c Arc<ResourceSlice>,
    /// Its place there.
    pub(super) place: usize,
    pub(super) device: &'c Device,
    pub(super) in_use: bool,
    /// What others have of a device that several can have.
    pub(super) shared: Option<&'c TakenCapacity>,
}

impl Pool<'_> {
    pub(super) fn is_invalid(&self) -> bool {
        matches!(self.state, PoolState::Invalid)
    }

    fn has_binding_conditions(&self) -> bool {
        matches!(self.state, PoolState::Usable { has_binding_conditions: true, .. })
    }
}

pub(super) fn node_matches(
    node: &NodeInQuestion<'_>,
    name: Option<&Name>,
    all: bool,
    selector: Option<&NodeSelector>,
) -> Result<bool, String> {
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        return Ok(**name == *node.name);
    }
    let Some(selector) = selector.filter(|_| !all) else { return Ok(all) };
    let defect = selector.node_selector_terms.iter().find_map(|term| term.defect());
    match defect {
        Some(defect) => {
            Err(format!("failed to parse node selector {selector}: {}: {}", defect.field, defect.message))
        }
        None => Ok(selector.matches(node.name, node.labels)),
    }
}

fn concerns(slice: &ResourceSlice, node: &NodeInQuestion<'_>) -> Result<bool, String> {
    if !slice.shared_counters.is_empty() {
        return Ok(true);
    }
    let named = slice.node_name.as_ref().is_some_and(|name| !name.is_empty());
    if named || slice.all_nodes || slice.node_selector.is_some() {
        return node_matches(node, slice.node_name.as_ref(), slice.all_nodes, slice.node_selector.as_ref())
            .map_err(|why| format!("failed to perform node selection for slice {}: {why}", slice.name));
    }
    if !slice.per_device_node_selection {
        return Ok(false);
    }
    for device in &slice.devices {
        let all = device.all_nodes == Some(true);
        let matches = node_matches(node, device.node_name.as_ref(), all, device.node_selector.as_ref())
            .map_err(|why| {
                format!(
                    "failed to perform node selection for device {} in slice {}: {why}",
                    device.name, slice.name
                )
            })?;
        if matches {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The pools of which the node can reach something, in the order in which they are tried.
pub(super) fn gather<'c>(supply: &'c Devices, node: &NodeInQuestion<'_>) -> Result<Vec<Pool<'c>>, String> {
    let mut found: BTreeMap<(Name, Name), Vec<&'c Arc<ResourceSlice>>> = BTreeMap::new();
    for slice in supply.slices_on(node.name).iter().chain(supply.shared_slices()) {
        let is_concerned = concerns(slice, node).map_err(|why| format!("gather pool information: {why}"))?;
        if !is_concerned {
            continue;
        }
        let slices = found.entry((slice.driver.clone(), slice.pool.name.clone())).or_default();
        match slices.first().map(|first| first.pool.generation) {
            Some(newest) if slice.pool.generation < newest => {}
            Some(newest) if slice.pool.generation == newest => slices.push(slice),
            _ => *slices = vec![slice],
        }
    }
    let mut pools: Vec<Pool<'c>> =
        found.into_iter().filter_map(|((driver, name), slices)| pool(supply, driver, name, slices)).collect();
    // The sort keeps the order of drivers and names.
    pools.sort_by_key(Pool::has_binding_conditions);
    Ok(pools)
}

/// `None` for a pool of which there are newer slices elsewhere.
fn pool<'c>(
    supply: &'c Devices,
    driver: Name,
    name: Name,
    mut slices: Vec<&'c Arc<ResourceSlice>>,
) -> Option<Pool<'c>> {
    let expected = slices[0].pool.resource_slice_count;
    let generation = slices[0].pool.generation;
    let mut elsewhere = Vec::new();
    if slices.len() as i64 != expected {
        let mut all = Vec::new();
        for slice in supply.slices_of(&driver, &name) {
            if slice.pool.generation > generation {
                return None;
            }
            if slice.pool.generation == generation {
                all.push(slice);
            }
        }
        if all.len() as i64 != expected {
            return Some(Pool { driver, name, state: PoolState::Incomplete });
        }
        let here: HashSet<&str> = slices.iter().map(|slice| &*slice.name).collect();
        elsewhere = all.into_iter().filter(|slice| !here.contains(&*slice.name)).collect();
    }
    slices.sort_by(|left, right| left.name.cmp(&right.name));
    let state = usable(supply, &slices, &elsewhere).unwrap_or(PoolState::Invalid);
    Some(Pool { driver, name, state })
}

/// `None` if the slices contradict each other.
fn usable<'c>(
    supply: &'c Devices,
    slices: &[&'c Arc<ResourceSlice>],
    elsewhere: &[&'c Arc<ResourceSlice>],
) -> Option<PoolState<'c>> {
    let offering = || slices.iter().copied().filter(|slice| slice.shared_counters.is_empty());
    let mut names = HashSet::default();
    if !offering().flat_map(|slice| &slice.devices).all(|device| names.insert(&device.name)) {
        return None;
    }
    let mut counters = Counters::new();
    for set in slices.iter().flat_map(|slice| &slice.shared_counters) {
        let values =
            set.counters.iter().map(|(name, counter)| (name.clone(), counter.value.amount())).collect();
        if counters.insert(set.name.clone(), values).is_some() {
            return None;
        }
    }
    let known = |device: &Device| {
        device.consumes_counters.iter().all(|consumed| {
            let set = counters.get(&consumed.counter_set);
            set.is_some_and(|set| consumed.counters.keys().all(|name| set.contains_key(name)))
        })
    };
    if !slices.iter().chain(elsewhere).flat_map(|slice| &slice.devices).all(known) {
        return None;
    }
    let devices: Vec<Candidate<'c>> = offering().flat_map(|slice| candidates(supply, slice)).collect();
    let has_binding_conditions =
        devices.iter().any(|candidate| candidate.device.binding_conditions.is_some());
    let elsewhere: Vec<_> = elsewhere.iter().flat_map(|slice| candidates(supply, slice)).collect();
    let available = super::counters::available(counters, devices.iter().chain(&elsewhere));
    Some(PoolState::Usable { devices, available, has_binding_conditions })
}

fn candidates<'c>(supply: &'c Devices, slice: &'c Arc<ResourceSlice>) -> impl Iterator<Item = Candidate<'c>> {
    let pool = (slice.driver.clone(), slice.pool.name.clone());
    slice.devices.iter().enumerate().map(move |(place, device)| {
        let (driver, pool) = pool.clone();
        let id = DeviceId { driver, pool, device: device.name.clone() };
        let in_use = supply.in_use();
        Candidate { slice, place, device, in_use: in_use.has_whole(&id), shared: in_use.shared(&id) }
    })
}
