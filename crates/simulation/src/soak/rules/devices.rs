//! Devices: nobody is given what another has, nor more than there is, as far as whoever gave it could know.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;
use supercargo_live::world::Request;
use supercargo_model::quantity::Quantity;
use supercargo_testcluster::SeenChange;

use super::{OwnDecision, ProcessView, Rules, SimulationRule, State, name_of, text};

/// A device, as `driver/pool/device`.
type DeviceName = String;
type Amounts = BTreeMap<String, i128>;

/// What is known of devices.
#[derive(Default)]
pub(super) struct DeviceBook {
    /// What claims have, by uid.
    holders: BTreeMap<String, Holder>,
    /// What devices offer, and take from counters, by name. Nothing of it ever becomes less.
    offered: BTreeMap<DeviceName, Offered>,
    /// Counters by `driver/pool/set/counter`.
    counters: Amounts,
    /// Who wrote what a claim has, last, by the claim's path.
    writes: BTreeMap<String, ClaimWrite>,
}

#[derive(Default)]
struct Offered {
    capacity: Amounts,
    /// As the counters are named.
    consumes: Amounts,
}

struct Holder {
    claim: String,
    version: u64,
    given: Option<Given>,
    parts: Vec<Part>,
}

/// By whom, and for whom, a claim's devices were chosen.
struct Given {
    write: ClaimWrite,
    /// The uid of the pod.
    user: String,
    decision: OwnDecision,
}

struct Part {
    device: DeviceName,
    is_share: bool,
    consumed: Amounts,
}

/// An allocation that a process has sent.
#[derive(Clone)]
struct ClaimWrite {
    process: String,
    /// When it was told that it came to nothing, or was told nothing.
    failed: Option<Duration>,
}

impl Given {
    /// Whether a process counts it as its own when it decides something: as soon as it has chosen, also within a moment, and
    /// until it thinks that it came to nothing.
    fn counts_for(&self, process: &str, view: &ProcessView, decision: &OwnDecision) -> bool {
        let is_own = self.write.process == process;
        let failed = self.write.failed.is_some_and(|failed| failed < decision.at);
        is_own && !failed && view.last_before(&self.user, decision).is_some_and(|last| last.node.is_some())
    }
}

impl DeviceBook {
    /// The server was set back.
    pub(super) fn restored(&mut self) {
        self.holders.clear();
        self.writes.clear();
    }

    pub(super) fn sent(&mut self, process: &str, request: &Request, body: &Value) {
        if body["status"].get("allocation").is_some_and(|allocation| !allocation.is_null()) {
            let write = ClaimWrite { process: process.to_owned(), failed: None };
            self.writes.insert(request.path.clone(), write);
        }
    }

    pub(super) fn answered(&mut self, request: &Request, done: bool, now: Duration) {
        if let Some(write) = self.writes.get_mut(&request.path).filter(|_| !done) {
            write.failed = Some(now);
        }
    }

    /// The uids of claims that a process knew to have something, when it decided something.
    fn known_to(&self, process: &str, view: &ProcessView, decision: &OwnDecision) -> BTreeSet<&str> {
        let heard = view.heard("resourceclaims", decision.at);
        let counts = |given: &Given| given.counts_for(process, view, decision);
        let knows = |holder: &Holder| holder.version <= heard || holder.given.as_ref().is_some_and(counts);
        self.holders.iter().filter(|(_, holder)| knows(holder)).map(|(uid, _)| &**uid).collect()
    }

    /// What is given twice, if the claims that are known keep what they have.
    fn given_twice(&self, uid: &str, known: &BTreeSet<&str>) -> Option<String> {
        let own = self.holders.get(uid)?;
        let others = || self.holders.iter().filter(|(other, _)| *other != uid && known.contains(&***other));
        for part in &own.parts {
            let parts = others().flat_map(|(_, holder)| holder.parts.iter().map(move |part| (holder, part)));
            let shares: Vec<(&Holder, &Part)> =
                parts.filter(|(_, other)| other.device == part.device).collect();
            if let Some((holder, _)) = shares.iter().find(|(_, other)| !(part.is_share && other.is_share)) {
                return Some(format!("{} has {} already", holder.claim, part.device));
            }
            for (capacity, consumed) in &part.consumed {
                let taken: i128 = shares.iter().filter_map(|(_, other)| other.consumed.get(capacity)).sum();
                let offered =
                    self.offered.get(&part.device).and_then(|offered| offered.capacity.get(capacity));
                if offered.is_some_and(|offered| taken + consumed > *offered) {
                    return Some(format!("{} has too little {capacity} left", part.device));
                }
            }
        }
        let devices: BTreeSet<&DeviceName> = (others().map(|(_, holder)| holder))
            .chain([own])
            .flat_map(|holder| holder.parts.iter().map(|part| &part.device))
            .collect();
        let mut taken = Amounts::new();
        let in_use = devices.into_iter().filter_map(|device| self.offered.get(device));
        for (counter, amount) in in_use.flat_map(|offered| &offered.consumes) {
            *taken.entry(counter.clone()).or_default() += amount;
        }
        let own_counters: BTreeSet<&String> = (own.parts.iter())
            .filter_map(|part| self.offered.get(&part.device))
            .flat_map(|offered| offered.consumes.keys())
            .collect();
        let overdrawn = taken.iter().find(|(counter, taken)| {
            own_counters.contains(counter) && self.counters.get(*counter).is_some_and(|has| *taken > has)
        });
        overdrawn.map(|(counter, _)| format!("the counter {counter} has too little left"))
    }
}

impl State {
    /// What a process gave twice in this decision or a later one: what is decided first may be stored last.
    fn given_twice(&self, process: &str, since: u64) -> Vec<String> {
        let Some(view) = self.processes.get(process) else { return Vec::new() };
        let told = |(uid, holder): (&String, &Holder)| {
            let given = holder.given.as_ref()?;
            if given.write.process != process || given.decision.number < since {
                return None;
            }
            let known = self.devices.known_to(process, view, &given.decision);
            let twice = self.devices.given_twice(uid, &known)?;
            Some(format!("{process} gave devices to claim {}: {twice}", holder.claim))
        };
        self.devices.holders.iter().filter_map(told).collect()
    }
}

impl Rules {
    /// The server has stored a change of a claim.
    pub(in crate::soak) fn claim_changed(&self, change: &SeenChange) {
        let claim = change.object();
        let uid = text(claim, &["metadata", "uid"]).to_owned();
        let parts = if change.is_deletion() { Vec::new() } else { parts(claim) };
        let mut state = self.state();
        if parts.is_empty() {
            state.devices.holders.remove(&uid);
            return;
        }
        if state.devices.holders.contains_key(&uid) {
            return;
        }
        let path = format!(
            "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}/status",
            text(claim, &["metadata", "namespace"]),
            text(claim, &["metadata", "name"])
        );
        let user = text(&claim["status"]["reservedFor"][0], &["uid"]).to_owned();
        let given = state.devices.writes.get(&path).cloned().and_then(|write| {
            let decided = state.processes.get(&write.process)?.decided.get(&user)?;
            let decision = decided.iter().rev().find(|decision| decision.node.is_some())?.clone();
            Some(Given { write, user, decision })
        });
        let by = given.as_ref().map(|given| (given.write.process.clone(), given.decision.number));
        let holder = Holder { claim: name_of(claim), version: change.version(), given, parts };
        state.devices.holders.insert(uid, holder);
        let Some((process, since)) = by else { return };
        let broken = state.given_twice(&process, since);
        drop(state);
        broken.into_iter().for_each(|what| self.broken(SimulationRule::NothingGivenTwice, what));
    }

    /// All claims as they are, if it is not known what happened to them.
    pub(in crate::soak) fn claims_are(&self, claims: &[Value]) {
        let mut state = self.state();
        let mut before = std::mem::take(&mut state.devices.holders);
        for claim in claims {
            let (uid, parts) = (text(claim, &["metadata", "uid"]), parts(claim));
            if parts.is_empty() {
                continue;
            }
            let new =
                || Holder { claim: name_of(claim), version: super::version_of(claim), given: None, parts };
            let holder = before.remove(uid).unwrap_or_else(new);
            state.devices.holders.insert(uid.to_owned(), holder);
        }
    }

    /// The server has stored a change of a slice.
    pub(in crate::soak) fn slice_changed(&self, change: &SeenChange) {
        self.slices_are(std::slice::from_ref(change.object()));
    }

    /// All slices as they are.
    pub(in crate::soak) fn slices_are(&self, slices: &[Value]) {
        let mut state = self.state();
        for spec in slices.iter().map(|slice| &slice["spec"]) {
            let pool = format!("{}/{}", text(spec, &["driver"]), text(spec, &["pool", "name"]));
            for set in spec["sharedCounters"].as_array().into_iter().flatten() {
                let prefix = format!("{pool}/{}/", text(set, &["name"]));
                state.devices.counters.extend(amounts(&set["counters"], &prefix));
            }
            for device in spec["devices"].as_array().into_iter().flatten() {
                let sets = device["consumesCounters"].as_array().into_iter().flatten();
                let consumes = sets.flat_map(|set| {
                    amounts(&set["counters"], &format!("{pool}/{}/", text(set, &["counterSet"])))
                });
                let offered =
                    Offered { capacity: amounts(&device["capacity"], ""), consumes: consumes.collect() };
                state.devices.offered.insert(format!("{pool}/{}", text(device, &["name"])), offered);
            }
        }
    }
}

/// What a claim has for itself: an administrator's access takes nothing from anybody.
fn parts(claim: &Value) -> Vec<Part> {
    let results = claim["status"]["allocation"]["devices"]["results"].as_array();
    let part = |result: &Value| Part {
        device: ["driver", "pool", "device"].map(|key| text(result, &[key])).join("/"),
        is_share: !text(result, &["shareID"]).is_empty(),
        consumed: amounts(&result["consumedCapacity"], ""),
    };
    results.into_iter().flatten().filter(|result| result["adminAccess"] != true).map(part).collect()
}

/// Quantities by name, themselves or under `value`, in billionths.
fn amounts(map: &Value, prefix: &str) -> Amounts {
    let nanos = |amount: &Value| {
        let written = amount.as_str().or_else(|| amount["value"].as_str()).unwrap_or_default();
        written.parse::<Quantity>().unwrap_or_default().nanos()
    };
    let entries = map.as_object().into_iter().flatten();
    entries.map(|(name, amount)| (format!("{prefix}{name}"), nanos(amount))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holder(results: Value) -> Holder {
        let parts = parts(&json!({"status": {"allocation": {"devices": {"results": results}}}}));
        Holder { claim: "c".to_owned(), version: 1, given: None, parts }
    }

    fn device(name: &str) -> Value {
        json!({"driver": "d", "pool": "p", "device": name})
    }

    fn share(memory: &str) -> Value {
        json!({"driver": "d", "pool": "p", "device": "x", "shareID": "s", "consumedCapacity": {"memory": memory}})
    }

    #[test]
    fn what_is_known_to_be_anothers_is_given_twice() {
        let offered = |memory: &str, takes: &str| Offered {
            capacity: amounts(&json!({"memory": {"value": memory}}), ""),
            consumes: amounts(&json!({"parts": {"value": takes}}), "d/p/set/"),
        };
        for (one, two, twice) in [
            (json!([device("x")]), json!([device("x")]), true),
            (json!([device("x")]), json!([device("y")]), false),
            (json!([share("6Gi")]), json!([share("4Gi")]), false),
            (json!([share("6Gi")]), json!([share("5Gi")]), true),
            (json!([share("6Gi")]), json!([device("x")]), true),
            // 4 + 4 of 7
            (json!([device("large")]), json!([device("huge")]), true),
        ] {
            let mut book = DeviceBook::default();
            book.offered.insert("d/p/x".to_owned(), offered("10Gi", "0"));
            for large in ["large", "huge"] {
                book.offered.insert(format!("d/p/{large}"), offered("1Gi", "4"));
            }
            book.counters = amounts(&json!({"parts": {"value": "7"}}), "d/p/set/");
            book.holders.insert("one".to_owned(), holder(one.clone()));
            book.holders.insert("two".to_owned(), holder(two.clone()));
            let known = BTreeSet::from(["one"]);
            assert_eq!(book.given_twice("two", &known).is_some(), twice, "{one} and {two}");
            assert_eq!(book.given_twice("two", &BTreeSet::new()), None, "who did not know is not to blame");
        }
    }
}
