//! What kube-scheduler 1.36.4 allocates on every node that it finds feasible, what it cannot allocate, and what it says about
//! claims that cannot be decided (tests/data/dra, described in its README.md).

use flate2::read::GzDecoder;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
};
use supercargo_manifest::Source;
use supercargo_model::{
    Key, Kind, Name, Node,
    devices::{ClaimAllocation, DeviceClass, ResourceClaim, ResourceSlice},
    object::Object,
};
use supercargo_plugins::dynamic_resources::allocator::{
    AllocationError, DeviceSupply, DevicesInUse, NodeInQuestion, SelectorCache, allocate,
};

/// A pod's claim for extended resources, which is made while the pod is scheduled.
const EXTENDED: &str = "<extended-resources>";

fn scenarios() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dra");
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = all.filter(|path| path.extension().is_some_and(|end| end == "gz")).collect();
    files.sort();
    files
        .iter()
        .map(|file| serde_json::from_reader(GzDecoder::new(File::open(file).unwrap())).unwrap())
        .collect()
}

fn object(kind: Kind, written: &Value) -> Object {
    Object::from_text(kind, &[], &Source::new("scenario", written.to_string()))
        .unwrap_or_else(|problems| panic!("{written}: {problems}"))
}

#[derive(Default)]
struct World {
    nodes: BTreeMap<Name, Node>,
    slices: Vec<ResourceSlice>,
    classes: BTreeMap<Name, DeviceClass>,
    claims: BTreeMap<Key, ResourceClaim>,
    /// Chosen for pods whose binding takes place later.
    in_flight: Vec<ClaimAllocation>,
    selectors: SelectorCache,
}

impl World {
    fn new(scenario: &Value) -> Self {
        let mut world = Self::default();
        for written in scenario["objects"].as_array().unwrap() {
            let kind = match written["kind"].as_str().unwrap() {
                "Node" => Kind::Node,
                "ResourceSlice" => Kind::ResourceSlice,
                "DeviceClass" => Kind::DeviceClass,
                "ResourceClaim" => Kind::ResourceClaim,
                _ => continue,
            };
            match object(kind, written) {
                Object::Node(node) => drop(world.nodes.insert(node.name.clone(), node)),
                Object::ResourceSlice(slice) => world.slices.push(slice),
                Object::DeviceClass(class) => drop(world.classes.insert(class.name.clone(), class)),
                Object::ResourceClaim(claim) => drop(world.claims.insert(claim.key(), claim)),
                _ => {}
            }
        }
        world.slices.sort_by(|left, right| left.name.cmp(&right.name));
        world
    }

    fn store(&mut self, after: &Value) {
        for (key, written) in after.as_object().into_iter().flatten() {
            let (namespace, name) = key.split_once('/').unwrap();
            let key = Key::new(namespace, name);
            if written.is_null() {
                self.claims.remove(&key);
            } else if let Object::ResourceClaim(claim) = object(Kind::ResourceClaim, written) {
                self.claims.insert(key, claim);
            }
        }
    }

    fn allocate(
        &mut self,
        node: &str,
        claims: &[Key],
    ) -> Result<Option<Vec<ClaimAllocation>>, AllocationError> {
        let mut in_use = DevicesInUse::default();
        self.claims.values().filter_map(|claim| claim.allocation.as_ref()).for_each(|held| in_use.add(held));
        self.in_flight.iter().for_each(|held| in_use.add(held));
        let supply = DeviceSupply::new(&self.slices, self.classes.values(), &in_use);
        let node = &self.nodes[node];
        let question = NodeInQuestion { name: &node.name, labels: &node.labels };
        let claims: Vec<&ResourceClaim> = claims.iter().map(|key| &self.claims[key]).collect();
        allocate(&supply, question, &claims, &mut self.selectors, &mut || "<share>".into())
    }

    /// The pod's claims that have no devices yet, in its order; `None` if one is not there.
    fn open_claims(&self, pod: &Value) -> Option<Vec<Key>> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or("default");
        let statuses = pod["status"]["resourceClaimStatuses"].as_array();
        let mut open = Vec::new();
        for named in pod["spec"]["resourceClaims"].as_array().into_iter().flatten() {
            let made = || {
                statuses?.iter().find(|status| status["name"] == named["name"])?["resourceClaimName"].as_str()
            };
            let name = named["resourceClaimName"].as_str().or_else(made)?;
            let key = Key::new(namespace, name);
            if self.claims.get(&key)?.allocation.is_none() {
                open.push(key);
            }
        }
        Some(open)
    }
}

#[derive(Debug, Default, PartialEq)]
struct Counts {
    allocated: usize,
    refused: usize,
    errors: usize,
    extended: usize,
}

#[test]
fn the_same_devices_are_chosen_on_every_node() {
    let mut counts = Counts::default();
    let mut different = Vec::new();
    for scenario in scenarios() {
        let mut world = World::new(&scenario);
        let mut later: Vec<Value> = Vec::new();
        let queue = scenario["queue"].as_array().unwrap();
        for (pod, expected) in queue.iter().zip(scenario["expect"].as_array().unwrap()) {
            let at = format!("{} {}", scenario["name"], expected["pod"]);
            compare(&mut world, &at, pod, expected, &mut counts, &mut different);
            if expected["hold"] == true {
                let placed = expected["placed"].as_str().unwrap();
                let chosen = expected["allocations"][placed].as_object();
                for allocation in chosen.into_iter().flat_map(|chosen| chosen.values()) {
                    world.in_flight.push(serde_json::from_value(allocation.clone()).unwrap());
                }
                later.push(expected["after"].clone());
                continue;
            }
            world.store(&expected["after"]);
            world.in_flight.clear();
            later.drain(..).for_each(|after| world.store(&after));
        }
    }
    assert!(different.is_empty(), "{counts:?}, {} differences:\n{}", different.len(), different.join("\n"));
    assert!(counts.allocated > 3000 && counts.refused > 300 && counts.errors > 50, "{counts:?}");
}

fn compare(
    world: &mut World,
    at: &str,
    pod: &Value,
    expected: &Value,
    counts: &mut Counts,
    different: &mut Vec<String>,
) {
    let Some(claims) = world.open_claims(pod) else { return };
    if claims.is_empty() {
        return;
    }
    let mut differs = |node: &str, expected: &str, found: &str| {
        different.push(format!("{at} on {node}:\n  expected {expected}\n  found    {found}"));
    };
    for (node, allocations) in expected["allocations"].as_object().into_iter().flatten() {
        if allocations.get(EXTENDED).is_some() {
            counts.extended += 1;
            continue;
        }
        let found = match world.allocate(node, &claims) {
            Ok(Some(found)) => found,
            other => {
                differs(node, &allocations.to_string(), &format!("{other:?}"));
                continue;
            }
        };
        for (claim, found) in claims.iter().zip(found) {
            let found = serde_json::to_value(&found).unwrap();
            counts.allocated += 1;
            if allocations[&*claim.name] != found {
                differs(node, &allocations[&*claim.name].to_string(), &found.to_string());
            }
        }
    }
    for (node, rejected) in expected["rejected"].as_object().into_iter().flatten() {
        let by_us = rejected["plugin"] == "DynamicResources"
            && rejected["reasons"][0] == "cannot allocate all claims";
        // With extended resources it may be those that cannot be allocated.
        if by_us
            && expected.get("extended").is_none()
            && pod["status"].get("extendedResourceClaimStatus").is_none()
        {
            counts.refused += 1;
            let found = world.allocate(node, &claims);
            if found != Ok(None) && !asks_for_extended(world, pod) {
                differs(node, "nothing", &format!("{found:?}"));
            }
        }
    }
    for (node, error) in expected["errors"].as_object().into_iter().flatten() {
        counts.errors += 1;
        let found = world.allocate(node, &claims);
        let error = error.as_str().unwrap();
        if !matches!(&found, Err(AllocationError::Pod(message)) if error.contains(&**message)) {
            differs(node, error, &format!("{found:?}"));
        }
    }
}

fn asks_for_extended(world: &World, pod: &Value) -> bool {
    let text = pod["spec"]["containers"].to_string() + &pod["spec"]["initContainers"].to_string();
    let names = world.classes.values().flat_map(|class| class.extended_resource.iter());
    text.contains("deviceclass.resource.kubernetes.io/")
        || names.into_iter().any(|name| text.contains(&**name))
}

#[test]
fn a_search_without_end_is_given_up() {
    let device = |number: usize| serde_json::json!({ "name": format!("d{number}") });
    let devices: Vec<Value> = (0..30).map(device).collect();
    let request = |name: &str, count: usize, expression: &str| {
        let selectors = [serde_json::json!({ "cel": { "expression": expression } })];
        let exactly = serde_json::json!({
            "deviceClassName": "any", "allocationMode": "ExactCount", "count": count, "selectors": selectors,
        });
        serde_json::json!({ "name": name, "exactly": exactly })
    };
    // There are 30 million ways to choose 10 of 30, and none leads to the device that is not there.
    let scenario = serde_json::json!({ "objects": [
        { "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } },
        { "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": { "name": "any" } },
        { "apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": { "name": "s" }, "spec": {
            "driver": "d.example.com", "pool": { "name": "p", "generation": 1, "resourceSliceCount": 1 },
            "nodeName": "n", "devices": devices } },
        { "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": { "name": "c", "namespace": "default" },
          "spec": { "devices": { "requests": [request("many", 10, "true"), request("none", 1, "false")] } } },
    ] });
    let mut world = World::new(&scenario);
    let found = world.allocate("n", &[Key::new("default", "c")]);
    let given_up = "the search for devices was given up after 1000000 steps".to_owned();
    assert_eq!(found, Err(AllocationError::Pod(given_up)));
}
