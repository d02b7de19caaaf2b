//! All that a cluster knows of devices: what drivers offer, what claims have, and where that has changed lately.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{ClaimAllocation, DeviceClass, DevicesInUse, ResourceClaim, ResourceSlice};
use crate::{HashMap, Key, Name, changes::ChangeLogId};

/// Whoever is further behind than this starts anew.
const KEPT_CHANGES: usize = 4096;

/// What a class is called as an extended resource, with its name behind it.
pub const DEVICE_CLASS_RESOURCE: &str = "deviceclass.resource.kubernetes.io/";

/// Claims, slices and classes, and what follows from them.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    claims: BTreeMap<Key, Arc<ResourceClaim>>,
    slices: BTreeMap<Name, Arc<ResourceSlice>>,
    classes: BTreeMap<Name, DeviceClass>,
    /// The class that stands for an extended resource.
    by_resource: HashMap<Name, Name>,
    /// Claims for extended resources, by the uid of the pod that owns them.
    of_owner: HashMap<Name, Vec<Key>>,
    /// Slices of one node, by its name.
    on_node: HashMap<Name, Vec<Arc<ResourceSlice>>>,
    /// Slices that more than one node can reach, and counters.
    shared: Vec<Arc<ResourceSlice>>,
    /// By driver and pool.
    of_pool: HashMap<(Name, Name), Vec<Arc<ResourceSlice>>>,
    in_use: DevicesInUse,
    /// What was chosen for claims and is not written yet, by the claim's uid.
    in_flight: HashMap<Name, Arc<ClaimAllocation>>,
    changes: DeviceChanges,
    /// How often anything has changed.
    revision: u64,
}

/// What plugins read.
impl Devices {
    /// A claim.
    pub fn claim(&self, key: &Key) -> Option<&Arc<ResourceClaim>> {
        self.claims.get(key)
    }

    /// All claims, by namespace and name.
    pub fn claims(&self) -> impl ExactSizeIterator<Item = &Arc<ResourceClaim>> {
        self.claims.values()
    }

    /// The claim for a pod's extended resources, by the pod's name and uid: the first by namespace and name.
    pub fn extended_claim(&self, pod: &str, uid: &str) -> Option<&Arc<ResourceClaim>> {
        let owned = self.of_owner.get(uid)?.iter().filter_map(|key| self.claims.get(key));
        owned.filter(|claim| claim.is_extended_of(pod, uid)).min_by_key(|claim| claim.key())
    }

    /// All slices, by name.
    pub fn slices(&self) -> impl ExactSizeIterator<Item = &Arc<ResourceSlice>> {
        self.slices.values()
    }

    /// The slices of one node alone.
    pub fn slices_on(&self, node: &str) -> &[Arc<ResourceSlice>] {
        self.on_node.get(node).map_or(&[], |slices| slices)
    }

    /// The slices that more than one node can reach, and those with counters.
    pub fn shared_slices(&self) -> &[Arc<ResourceSlice>] {
        &self.shared
    }

    /// The slices of a pool, of whatever generation.
    pub fn slices_of(&self, driver: &Name, pool: &Name) -> &[Arc<ResourceSlice>] {
        self.of_pool.get(&(driver.clone(), pool.clone())).map_or(&[], |slices| slices)
    }

    /// A class.
    pub fn class(&self, name: &str) -> Option<&DeviceClass> {
        self.classes.get(name)
    }

    /// All classes, by name.
    pub fn classes(&self) -> impl ExactSizeIterator<Item = &DeviceClass> {
        self.classes.values()
    }

    /// The class whose devices stand for an extended resource.
    pub fn class_of_resource(&self, resource: &str) -> Option<&DeviceClass> {
        if self.classes.is_empty() {
            return None;
        }
        match resource.strip_prefix(DEVICE_CLASS_RESOURCE) {
            Some(class) => self.class(class),
            None => self.class(self.by_resource.get(resource)?),
        }
    }

    /// Which devices claims have, also those that are in flight.
    pub fn in_use(&self) -> &DevicesInUse {
        &self.in_use
    }

    /// What was chosen for a claim and is not written yet.
    pub fn in_flight(&self, claim_uid: &str) -> Option<&Arc<ClaimAllocation>> {
        self.in_flight.get(claim_uid)
    }

    /// How many allocations are in flight.
    pub fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }

    /// A number that grows whenever anything changes.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What has changed lately.
    pub fn changes(&self) -> &DeviceChanges {
        &self.changes
    }
}

/// What keeps it up to date.
impl Devices {
    pub(crate) fn put_claim(&mut self, claim: ResourceClaim) {
        self.revision += 1;
        let key = claim.key();
        self.remove_claim(&key);
        if let Some(allocation) = &claim.allocation {
            // From here on the claim speaks for itself.
            self.land(&claim.uid);
            self.in_use.add(allocation);
            self.touch_devices(allocation);
        }
        for owner in claim.extended_owners() {
            self.of_owner.entry(owner.clone()).or_default().push(key.clone());
        }
        self.claims.insert(key, Arc::new(claim));
    }

    pub(crate) fn remove_claim(&mut self, key: &Key) {
        let Some(claim) = self.claims.remove(key) else { return };
        self.revision += 1;
        if let Some(allocation) = &claim.allocation {
            self.in_use.remove(allocation);
            self.touch_devices(allocation);
        }
        for owner in claim.extended_owners() {
            if let Some(keys) = self.of_owner.get_mut(owner) {
                keys.retain(|other| other != key);
                if keys.is_empty() {
                    self.of_owner.remove(owner);
                }
            }
        }
    }

    pub(crate) fn put_slice(&mut self, slice: ResourceSlice) {
        if self.slices.get(&slice.name).is_some_and(|known| **known == slice) {
            return;
        }
        self.remove_slice(&slice.name);
        self.revision += 1;
        let slice = Arc::new(slice);
        self.slices.insert(slice.name.clone(), slice.clone());
        enter(self.of_pool.entry(pool_of(&slice)).or_default(), &slice);
        enter(
            match slice.only_node() {
                Some(node) => self.on_node.entry(node.clone()).or_default(),
                None => &mut self.shared,
            },
            &slice,
        );
        self.touch_pool(&pool_of(&slice));
    }

    pub(crate) fn remove_slice(&mut self, name: &str) {
        let Some(slice) = self.slices.remove(name) else { return };
        self.revision += 1;
        let pool = pool_of(&slice);
        self.touch_pool(&pool);
        let leave = |slices: &mut Vec<Arc<ResourceSlice>>| slices.retain(|other| !Arc::ptr_eq(other, &slice));
        leave(&mut self.shared);
        leave_entry(&mut self.of_pool, &pool, leave);
        if let Some(node) = slice.only_node() {
            leave_entry(&mut self.on_node, node, leave);
        }
    }

    pub(crate) fn put_class(&mut self, class: DeviceClass) {
        self.classes.insert(class.name.clone(), class);
        self.classes_have_changed();
    }

    pub(crate) fn remove_class(&mut self, name: &str) {
        if self.classes.remove(name).is_some() {
            self.classes_have_changed();
        }
    }

    /// Of several classes for one resource the newest counts, then the first by name.
    fn classes_have_changed(&mut self) {
        self.revision += 1;
        self.changes.note(DeviceChange::Everywhere);
        self.by_resource.clear();
        for class in self.classes.values() {
            let Some(resource) = &class.extended_resource else { continue };
            let known = self.by_resource.get(resource).and_then(|name| self.classes.get(name));
            if known.is_none_or(|known| class.created > known.created) {
                self.by_resource.insert(resource.clone(), class.name.clone());
            }
        }
    }

    /// Counts what was chosen for a claim, until the claim shows it or it comes to nothing.
    pub fn take_off(&mut self, claim_uid: Name, allocation: Arc<ClaimAllocation>) {
        self.land(&claim_uid);
        self.revision += 1;
        self.in_use.add(&allocation);
        self.touch_devices(&allocation);
        self.in_flight.insert(claim_uid, allocation);
    }

    /// What was chosen for a claim is written, or has come to nothing.
    pub fn land(&mut self, claim_uid: &str) {
        if let Some(allocation) = self.in_flight.remove(claim_uid) {
            self.revision += 1;
            self.in_use.remove(&allocation);
            self.touch_devices(&allocation);
        }
    }

    fn touch_devices(&mut self, allocation: &ClaimAllocation) {
        let mut last = None;
        for result in &allocation.devices.results {
            let pool = (result.driver.clone(), result.pool.clone());
            if last.as_ref() != Some(&pool) {
                self.touch_pool(&pool);
                last = Some(pool);
            }
        }
    }

    fn touch_pool(&mut self, pool: &(Name, Name)) {
        let Some(slices) = self.of_pool.get(pool) else { return };
        if slices.iter().any(|slice| slice.only_node().is_none()) {
            return self.changes.note(DeviceChange::Everywhere);
        }
        let mut last = None;
        for node in slices.iter().filter_map(|slice| slice.only_node()) {
            if last.replace(node) != Some(node) {
                self.changes.note(DeviceChange::OnNode(node.clone()));
            }
        }
    }
}

fn pool_of(slice: &ResourceSlice) -> (Name, Name) {
    (slice.driver.clone(), slice.pool.name.clone())
}

/// By name.
fn enter(slices: &mut Vec<Arc<ResourceSlice>>, slice: &Arc<ResourceSlice>) {
    let place = slices.partition_point(|other| other.name < slice.name);
    slices.insert(place, slice.clone());
}

fn leave_entry<K: Eq + std::hash::Hash>(
    all: &mut HashMap<K, Vec<Arc<ResourceSlice>>>,
    key: &K,
    leave: impl Fn(&mut Vec<Arc<ResourceSlice>>),
) {
    if let Some(slices) = all.get_mut(key) {
        leave(slices);
        if slices.is_empty() {
            all.remove(key);
        }
    }
}

/// Where what there is of devices, or what is left of them, has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChange {
    /// For this node alone.
    OnNode(Name),
    /// For any node.
    Everywhere,
}

/// The latest changes.
#[derive(Clone, Debug, Default)]
pub struct DeviceChanges {
    history: ChangeLogId,
    count: u64,
    latest: VecDeque<DeviceChange>,
}

impl DeviceChanges {
    /// Which history this is: counts of different ones cannot be compared.
    pub fn history(&self) -> &ChangeLogId {
        &self.history
    }

    /// How many changes there have been.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The changes since there were so many; `None` if that is too long ago.
    pub fn since(&self, count: u64) -> Option<impl Iterator<Item = &DeviceChange>> {
        let missed = usize::try_from(self.count.checked_sub(count)?).ok()?;
        let first = self.latest.len().checked_sub(missed)?;
        Some(self.latest.range(first..))
    }

    fn note(&mut self, change: DeviceChange) {
        if self.latest.len() == KEPT_CHANGES {
            self.latest.pop_front();
        }
        self.count += 1;
        self.latest.push_back(change);
    }
}
