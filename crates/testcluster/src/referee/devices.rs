//! What the referee knows of devices: who has which, and what there is of them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde_json::Value;
use supercargo_model::quantity::Quantity;

use super::Violation;
use crate::object::{at, items, name, namespace, text, uid};

/// Amounts by name, in billionths.
type Amounts = BTreeMap<String, i128>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct PoolId {
    driver: String,
    pool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct DeviceId {
    pool: PoolId,
    device: String,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.pool.driver, self.pool.pool, self.device)
    }
}

/// A device that a claim has, or a share of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    device: DeviceId,
    is_share: bool,
    consumed: Amounts,
}

/// A slice: what is offered, and by which generation.
#[derive(Debug, Default)]
struct Offered {
    generation: i64,
    devices: BTreeMap<String, OfferedDevice>,
    /// Counters by the names of their sets and their own.
    counters: BTreeMap<(String, String), i128>,
}

#[derive(Debug, Default)]
struct OfferedDevice {
    capacity: Amounts,
    consumes: BTreeMap<(String, String), i128>,
}

#[derive(Debug)]
struct Holder {
    claim: String,
    held: Vec<Held>,
}

/// Who has which device.
#[derive(Default)]
pub(super) struct DeviceLedger {
    /// Slices by pool and name.
    pools: HashMap<PoolId, BTreeMap<String, Offered>>,
    /// The pool of each slice, by its name.
    pool_of: HashMap<String, PoolId>,
    /// What claims have, by their uid.
    holders: HashMap<String, Holder>,
    /// The uids of those who have a device, or a share of it.
    held_by: HashMap<DeviceId, Vec<String>>,
}

impl DeviceLedger {
    pub(super) fn forget_all(&mut self) {
        *self = Self::default();
    }

    pub(super) fn slice_stored(&mut self, slice: &Value) {
        self.slice_removed(slice);
        let pool = pool_of(slice);
        self.pool_of.insert(name(slice).to_owned(), pool.clone());
        self.pools.entry(pool).or_default().insert(name(slice).to_owned(), offered(slice));
    }

    pub(super) fn slice_removed(&mut self, slice: &Value) {
        let Some(pool) = self.pool_of.remove(name(slice)) else { return };
        if let Some(slices) = self.pools.get_mut(&pool) {
            slices.remove(name(slice));
        }
    }

    pub(super) fn claim_removed(&mut self, claim: &Value) {
        let Some(holder) = self.holders.remove(uid(claim)) else { return };
        for held in holder.held {
            if let Some(uids) = self.held_by.get_mut(&held.device) {
                uids.retain(|known| known != uid(claim));
                if uids.is_empty() {
                    self.held_by.remove(&held.device);
                }
            }
        }
    }

    /// A claim as it is now; the rules that its allocation breaks, if that is new.
    pub(super) fn claim_stored(&mut self, claim: &Value) -> Vec<Violation> {
        let held = held(claim);
        if self.holders.get(uid(claim)).map_or(held.is_empty(), |known| known.held == held) {
            return Vec::new();
        }
        self.claim_removed(claim);
        if held.is_empty() {
            return Vec::new();
        }
        for one in &held {
            self.held_by.entry(one.device.clone()).or_default().push(uid(claim).to_owned());
        }
        let claim_name = format!("{}/{}", namespace(claim), name(claim));
        self.holders.insert(uid(claim).to_owned(), Holder { claim: claim_name, held: held.clone() });
        let mut broken = Vec::new();
        for one in &held {
            self.check_given_once(uid(claim), one, &mut broken);
            self.check_capacity(uid(claim), one, &mut broken);
        }
        self.check_counters(uid(claim), &held, &mut broken);
        broken
    }

    fn name_of(&self, claim_uid: &str) -> String {
        self.holders.get(claim_uid).map(|holder| holder.claim.clone()).unwrap_or_default()
    }

    /// All that claims have of a device, with the uid of the claim.
    fn parts<'l>(&'l self, device: &'l DeviceId) -> impl Iterator<Item = (&'l str, &'l Held)> {
        let mut uids: Vec<&String> = self.held_by.get(device).into_iter().flatten().collect();
        uids.sort();
        uids.dedup();
        uids.into_iter().flat_map(move |uid| {
            let held = self.holders.get(uid).into_iter().flat_map(|holder| &holder.held);
            held.filter(move |held| held.device == *device).map(move |held| (uid.as_str(), held))
        })
    }

    /// A whole device has one holder; a share stands beside shares only.
    fn check_given_once(&self, claim_uid: &str, own: &Held, broken: &mut Vec<Violation>) {
        let own_parts = self.parts(&own.device).filter(|(uid, _)| *uid == claim_uid).count();
        let other = self
            .parts(&own.device)
            .find(|(uid, held)| (*uid != claim_uid || own_parts > 1) && !(own.is_share && held.is_share));
        if let Some((other, _)) = other {
            broken.push(Violation::DeviceGivenTwice {
                device: own.device.to_string(),
                claim: self.name_of(claim_uid),
                held_by: self.name_of(other),
            });
        }
    }

    /// The slices of a pool that count: those of its newest generation.
    fn newest(&self, pool: &PoolId) -> impl Iterator<Item = &Offered> {
        let slices = self.pools.get(pool);
        let newest = slices.into_iter().flat_map(BTreeMap::values).map(|slice| slice.generation).max();
        slices.into_iter().flat_map(BTreeMap::values).filter(move |slice| Some(slice.generation) == newest)
    }

    /// The shares of a device take no more than it has. A driver that has withdrawn it meanwhile says nothing about that.
    fn check_capacity(&self, claim_uid: &str, own: &Held, broken: &mut Vec<Violation>) {
        let offered = self.newest(&own.device.pool).find_map(|slice| slice.devices.get(&own.device.device));
        let Some(offered) = offered.filter(|_| own.is_share) else { return };
        for capacity in own.consumed.keys() {
            let consumed = |held: &Held| held.consumed.get(capacity).copied().unwrap_or_default();
            let taken = self.parts(&own.device).map(|(_, held)| consumed(held)).sum();
            let has = offered.capacity.get(capacity).copied().unwrap_or_default();
            if taken > has {
                broken.push(Violation::DeviceOverCapacity {
                    device: own.device.to_string(),
                    claim: self.name_of(claim_uid),
                    capacity: capacity.clone(),
                    taken: written(taken),
                    has: written(has),
                });
            }
        }
    }

    /// The devices of a pool that are in use take no more than its counters have.
    fn check_counters(&self, claim_uid: &str, held: &[Held], broken: &mut Vec<Violation>) {
        let mut pools: Vec<&PoolId> = held.iter().map(|held| &held.device.pool).collect();
        pools.sort();
        pools.dedup();
        for pool in pools {
            let own = held.iter().filter(|held| held.device.pool == *pool);
            let touched: Vec<&(String, String)> =
                own.filter_map(|held| self.consumption(&held.device)).flat_map(BTreeMap::keys).collect();
            if touched.is_empty() {
                continue;
            }
            let taken = self.counters_taken(pool);
            let has: BTreeMap<&(String, String), i128> = self
                .newest(pool)
                .flat_map(|slice| &slice.counters)
                .map(|(counter, amount)| (counter, *amount))
                .collect();
            for (counter, taken) in taken.iter().filter(|(counter, _)| touched.contains(counter)) {
                let has = has.get(counter).copied().unwrap_or_default();
                if *taken > has {
                    broken.push(Violation::CounterOverdrawn {
                        pool: format!("{}/{}", pool.driver, pool.pool),
                        claim: self.name_of(claim_uid),
                        counter: format!("{}/{}", counter.0, counter.1),
                        taken: written(*taken),
                        has: written(has),
                    });
                }
            }
        }
    }

    fn consumption(&self, device: &DeviceId) -> Option<&BTreeMap<(String, String), i128>> {
        let found = self.newest(&device.pool).find_map(|slice| slice.devices.get(&device.device));
        found.map(|found| &found.consumes)
    }

    /// A device takes its counters once, however many share it.
    fn counters_taken(&self, pool: &PoolId) -> BTreeMap<(String, String), i128> {
        let mut taken = BTreeMap::new();
        let in_use = self.held_by.keys().filter(|device| device.pool == *pool);
        for (counter, amount) in in_use.filter_map(|device| self.consumption(device)).flatten() {
            *taken.entry(counter.clone()).or_default() += amount;
        }
        taken
    }
}

fn pool_of(slice: &Value) -> PoolId {
    PoolId {
        driver: text(slice, &["spec", "driver"]).to_owned(),
        pool: text(slice, &["spec", "pool", "name"]).to_owned(),
    }
}

fn offered(slice: &Value) -> Offered {
    let devices = items(slice, &["spec", "devices"]).iter().map(|device| {
        let capacity = amounts(device.get("capacity"), "value");
        let consumes = counters(items(device, &["consumesCounters"]), "counterSet");
        (text(device, &["name"]).to_owned(), OfferedDevice { capacity, consumes })
    });
    Offered {
        generation: at(slice, &["spec", "pool", "generation"]).and_then(Value::as_i64).unwrap_or(0),
        devices: devices.collect(),
        counters: counters(items(slice, &["spec", "sharedCounters"]), "name"),
    }
}

fn counters(sets: &[Value], name_key: &str) -> BTreeMap<(String, String), i128> {
    let of_set = |set: &Value| {
        let set_name = text(set, &[name_key]).to_owned();
        let counters = amounts(set.get("counters"), "value");
        counters.into_iter().map(move |(counter, amount)| ((set_name.clone(), counter), amount))
    };
    sets.iter().flat_map(of_set).collect()
}

/// The devices of a claim that it has for itself: an administrator's access takes nothing from anybody.
fn held(claim: &Value) -> Vec<Held> {
    let results = items(claim, &["status", "allocation", "devices", "results"]).iter();
    results
        .filter(|result| result["adminAccess"] != true)
        .map(|result| Held {
            device: DeviceId {
                pool: PoolId {
                    driver: text(result, &["driver"]).to_owned(),
                    pool: text(result, &["pool"]).to_owned(),
                },
                device: text(result, &["device"]).to_owned(),
            },
            is_share: !text(result, &["shareID"]).is_empty(),
            consumed: amounts(result.get("consumedCapacity"), ""),
        })
        .collect()
}

/// A map of quantities, each of them under a key of its own if there is one.
fn amounts(map: Option<&Value>, key: &str) -> Amounts {
    let entries = map.and_then(Value::as_object).into_iter().flatten();
    entries
        .map(|(name, amount)| (name.clone(), billionths(if key.is_empty() { amount } else { &amount[key] })))
        .collect()
}

fn billionths(amount: &Value) -> i128 {
    let quantity: Option<Quantity> = match amount {
        Value::String(text) => text.parse().ok(),
        other => other.to_string().parse().ok(),
    };
    quantity.unwrap_or_default().nanos()
}

fn written(billionths: i128) -> String {
    const WHOLE: i128 = 1_000_000_000;
    if billionths % WHOLE == 0 { (billionths / WHOLE).to_string() } else { format!("{billionths}n") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(spec: Value) -> Value {
        let mut slice = json!({"metadata": {"name": "s"}, "spec": spec});
        slice["spec"]["driver"] = "d".into();
        slice["spec"]["pool"] = json!({"name": "p", "generation": 1});
        slice
    }

    fn claim(name: &str, results: Value) -> Value {
        let metadata = json!({"name": name, "namespace": "a", "uid": name});
        let mut claim =
            json!({"metadata": metadata, "status": {"allocation": {"devices": {"results": results}}}});
        for result in claim["status"]["allocation"]["devices"]["results"].as_array_mut().expect("a list") {
            result["driver"] = "d".into();
            result["pool"] = "p".into();
        }
        claim
    }

    #[test]
    fn a_device_is_given_once() {
        let mut ledger = DeviceLedger::default();
        let one = claim("one", json!([{"device": "x"}, {"device": "y"}]));
        assert_eq!(ledger.claim_stored(&one), []);
        assert_eq!(ledger.claim_stored(&one), [], "nothing is new");
        let looks = claim("admin", json!([{"device": "x", "adminAccess": true}]));
        assert_eq!(ledger.claim_stored(&looks), []);
        let twice = Violation::DeviceGivenTwice {
            device: "d/p/y".into(),
            claim: "a/two".into(),
            held_by: "a/one".into(),
        };
        let two = claim("two", json!([{"device": "y"}]));
        assert_eq!(ledger.claim_stored(&two), [twice]);
        ledger.claim_removed(&two);
        assert_eq!(ledger.claim_stored(&claim("one", json!([]))), []);
        assert_eq!(ledger.claim_stored(&two), [], "it was given back");
        let same = claim("same", json!([{"device": "z"}, {"device": "z"}]));
        assert_eq!(ledger.claim_stored(&same).len(), 2, "nor twice to one claim");
    }

    #[test]
    fn shares_stay_within_the_capacity() {
        let mut ledger = DeviceLedger::default();
        ledger.slice_stored(&slice(
            json!({"devices": [{"name": "x", "capacity": {"memory": {"value": "10Gi"}}}]}),
        ));
        let share = |name: &str, amount: &str| {
            claim(name, json!([{"device": "x", "shareID": name, "consumedCapacity": {"memory": amount}}]))
        };
        assert_eq!(ledger.claim_stored(&share("one", "6Gi")), []);
        assert_eq!(ledger.claim_stored(&share("two", "4Gi")), []);
        let broken = ledger.claim_stored(&share("three", "1"));
        // 6 + 4 = 10Gi = 10737418240, and one more
        assert!(
            matches!(&broken[..], [Violation::DeviceOverCapacity { taken, has, .. }]
                if taken == "10737418241" && has == "10737418240"),
            "{broken:?}"
        );
        let whole = claim("whole", json!([{"device": "x"}]));
        assert!(matches!(&ledger.claim_stored(&whole)[..], [Violation::DeviceGivenTwice { .. }]));
    }

    #[test]
    fn partitions_stay_within_the_counters() {
        let mut ledger = DeviceLedger::default();
        let takes = |amount: &str| json!([{"counterSet": "gpu", "counters": {"slices": {"value": amount}}}]);
        ledger.slice_stored(&slice(json!({
            "sharedCounters": [{"name": "gpu", "counters": {"slices": {"value": "7"}}}],
            "devices": [
                {"name": "large", "consumesCounters": takes("4")},
                {"name": "medium", "consumesCounters": takes("3")},
                {"name": "small", "consumesCounters": takes("1")},
                {"name": "other"},
            ],
        })));
        for (name, device) in [("one", "large"), ("two", "medium"), ("three", "other")] {
            assert_eq!(ledger.claim_stored(&claim(name, json!([{"device": device}]))), []);
        }
        let broken = ledger.claim_stored(&claim("four", json!([{"device": "small"}])));
        // 4 + 3 + 1 = 8 > 7
        assert!(
            matches!(&broken[..], [Violation::CounterOverdrawn { counter, taken, has, .. }]
                if counter == "gpu/slices" && taken == "8" && has == "7"),
            "{broken:?}"
        );
    }
}
