//! The referee: writes down every binding, and whether it broke a rule.
//!
//! An API server binds a pod wherever it is told to. Whether that was right is for the tests to
//! judge, by an arithmetic that shares nothing with the scheduler's.

mod claims;
mod devices;

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;
use supercargo_model::quantity::Quantity;

use crate::object::{at, items, name, namespace, text, uid};

/// A binding that the server has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedBinding {
    /// Its place in the order of all bindings, from 0.
    pub order: usize,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The pod's uid.
    pub uid: String,
    /// The node it was bound to.
    pub node: String,
    /// Who bound it: the user, and the user agent behind a slash.
    pub by: String,
}

/// A rule that a binding broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A pod was bound a second time.
    BoundTwice {
        /// The pod's uid.
        uid: String,
        /// The pod, as `namespace/name`.
        pod: String,
        /// The node of the second binding.
        node: String,
    },
    /// The pods on a node ask for more than it has to give.
    OverAllocatable {
        /// The node.
        node: String,
        /// The pod whose binding went over, as `namespace/name`.
        pod: String,
        /// `cpu`, `memory`, `pods` or any other resource.
        resource: String,
        /// What all pods there ask for together.
        asked: String,
        /// What the node has to give.
        allocatable: String,
    },
    /// Two pods on a node want the same port of the host.
    SameHostPort {
        /// The node.
        node: String,
        /// The pod that was bound second, as `namespace/name`.
        pod: String,
        /// The port, as `TCP 0.0.0.0:8080`.
        port: String,
    },
    /// A device was allocated that somebody else has.
    DeviceGivenTwice {
        /// The device, as `driver/pool/device`.
        device: String,
        /// The claim that got it last, as `namespace/name`.
        claim: String,
        /// The claim that had it.
        held_by: String,
    },
    /// The claims that share a device take more than it has.
    DeviceOverCapacity {
        /// The device, as `driver/pool/device`.
        device: String,
        /// The claim whose allocation went over, as `namespace/name`.
        claim: String,
        /// Such as `memory`.
        capacity: String,
        /// What all claims take together.
        taken: String,
        /// What the device has.
        has: String,
    },
    /// The devices of a pool that are in use take more from a counter than it has.
    CounterOverdrawn {
        /// The pool, as `driver/pool`.
        pool: String,
        /// The claim whose allocation went over, as `namespace/name`.
        claim: String,
        /// The counter, as `set/counter`.
        counter: String,
        /// What all devices in use take together.
        taken: String,
        /// What there is.
        has: String,
    },
    /// A pod was bound although a claim of its is not there, not allocated, or not reserved for it.
    ClaimNotReady {
        /// The pod, as `namespace/name`.
        pod: String,
        /// The claim's name; empty if it was not made yet.
        claim: String,
        /// What is missing.
        missing: &'static str,
    },
    /// A pod was bound to a node where the devices of a claim cannot be used.
    ClaimElsewhere {
        /// The pod, as `namespace/name`.
        pod: String,
        /// The claim's name.
        claim: String,
        /// The node.
        node: String,
    },
}

/// Amounts by resource, in thousandths: no sum of real ones overflows 128 bits.
type Amounts = BTreeMap<String, i128>;

#[derive(Debug, PartialEq, Eq, Hash)]
struct HostPort {
    protocol: String,
    address: String,
    port: u64,
}

#[derive(Debug)]
struct Demand {
    amounts: Amounts,
    ports: Vec<HostPort>,
}

/// How many bindings are looked at and remembered; tests and the demo stay far below.
const BINDINGS_LIMIT: usize = 2_000_000;

#[derive(Default)]
pub(crate) struct Referee {
    bindings: Vec<AcceptedBinding>,
    bound: HashSet<String>,
    violations: Vec<Violation>,
    /// What the pods on each node ask for, by node and uid.
    demands: HashMap<String, HashMap<String, Demand>>,
    devices: devices::DeviceLedger,
}

impl Referee {
    pub(crate) fn bindings(&self) -> &[AcceptedBinding] {
        &self.bindings
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The store was set back: nothing is bound but what it says now.
    pub(crate) fn restored(&mut self) {
        self.bound.clear();
        self.demands.clear();
        self.devices.forget_all();
    }

    pub(crate) fn slice_stored(&mut self, slice: &Value) {
        self.devices.slice_stored(slice);
    }

    pub(crate) fn slice_removed(&mut self, slice: &Value) {
        self.devices.slice_removed(slice);
    }

    pub(crate) fn claim_stored(&mut self, claim: &Value) {
        let broken = self.devices.claim_stored(claim);
        self.violations.extend(broken);
    }

    /// A claim as it is after the store was set back: what it has is nobody's doing.
    pub(crate) fn claim_restored(&mut self, claim: &Value) {
        self.devices.claim_stored(claim);
    }

    pub(crate) fn claim_removed(&mut self, claim: &Value) {
        self.devices.claim_removed(claim);
    }

    /// A pod with claims was bound; each claim is told by its name, and as it is stored.
    pub(crate) fn claims_of_bound(
        &mut self,
        pod: &Value,
        node: Option<&Value>,
        claims: &[(String, Option<Value>)],
    ) {
        self.violations.extend(claims::broken(pod, node, claims));
    }

    /// A pod as it is after the store was set back.
    pub(crate) fn pod_restored(&mut self, pod: &Value) {
        if !text(pod, &["spec", "nodeName"]).is_empty() {
            self.bound.insert(uid(pod).to_owned());
        }
        self.pod_stored(pod);
    }

    pub(crate) fn pod_stored(&mut self, pod: &Value) {
        let node = text(pod, &["spec", "nodeName"]);
        if node.is_empty() {
            return;
        }
        if matches!(text(pod, &["status", "phase"]), "Succeeded" | "Failed") {
            self.pod_removed(pod);
            return;
        }
        let on_node = self.demands.entry(node.to_owned()).or_default();
        on_node.entry(uid(pod).to_owned()).or_insert_with(|| demand(pod));
    }

    pub(crate) fn pod_removed(&mut self, pod: &Value) {
        let node = text(pod, &["spec", "nodeName"]);
        if let Some(on_node) = self.demands.get_mut(node) {
            on_node.remove(uid(pod));
            if on_node.is_empty() {
                self.demands.remove(node);
            }
        }
    }

    /// The pod is stored already.
    pub(crate) fn pod_bound(&mut self, pod: &Value, node: &str, node_object: Option<&Value>, by: &str) {
        if self.bindings.len() >= BINDINGS_LIMIT {
            return;
        }
        let pod_name = format!("{}/{}", namespace(pod), name(pod));
        if !self.bound.insert(uid(pod).to_owned()) {
            self.violations.push(Violation::BoundTwice {
                uid: uid(pod).to_owned(),
                pod: pod_name.clone(),
                node: node.to_owned(),
            });
        }
        self.bindings.push(AcceptedBinding {
            order: self.bindings.len(),
            namespace: namespace(pod).to_owned(),
            name: name(pod).to_owned(),
            uid: uid(pod).to_owned(),
            node: node.to_owned(),
            by: by.to_owned(),
        });
        if let Some(node_object) = node_object {
            self.check_room(&pod_name, uid(pod), node, node_object);
        }
        self.check_ports(&pod_name, uid(pod), node);
    }

    fn check_room(&mut self, pod_name: &str, pod_uid: &str, node: &str, node_object: &Value) {
        let Some(on_node) = self.demands.get(node) else { return };
        let Some(own) = on_node.get(pod_uid) else { return };
        // Only what this pod asks for can have gone over by this binding.
        for resource in own.amounts.iter().filter(|(_, amount)| **amount > 0).map(|(resource, _)| resource) {
            let asked: i128 =
                on_node.values().filter_map(|demand| demand.amounts.get(resource)).copied().sum();
            let allocatable = at(node_object, &["status", "allocatable", resource]);
            let allocatable = allocatable.map_or(0, |amount| thousandths(resource, amount));
            if asked > allocatable {
                self.violations.push(Violation::OverAllocatable {
                    node: node.to_owned(),
                    pod: pod_name.to_owned(),
                    resource: resource.clone(),
                    asked: written(asked),
                    allocatable: written(allocatable),
                });
            }
        }
    }

    fn check_ports(&mut self, pod_name: &str, pod_uid: &str, node: &str) {
        let Some(on_node) = self.demands.get(node) else { return };
        let Some(own) = on_node.get(pod_uid) else { return };
        for port in &own.ports {
            let others = on_node.iter().filter(|(uid, _)| *uid != pod_uid);
            if others.flat_map(|(_, demand)| &demand.ports).any(|other| clash(port, other)) {
                self.violations.push(Violation::SameHostPort {
                    node: node.to_owned(),
                    pod: pod_name.to_owned(),
                    port: format!("{} {}:{}", port.protocol, port.address, port.port),
                });
            }
        }
    }
}

fn clash(one: &HostPort, other: &HostPort) -> bool {
    const EVERY_ADDRESS: &str = "0.0.0.0";
    one.port == other.port
        && one.protocol == other.protocol
        && (one.address == other.address || one.address == EVERY_ADDRESS || other.address == EVERY_ADDRESS)
}

fn written(thousandths: i128) -> String {
    if thousandths % 1000 == 0 { (thousandths / 1000).to_string() } else { format!("{thousandths}m") }
}

/// Only cpu is counted in thousandths; everything else comes in whole numbers, rounded up.
fn thousandths(resource: &str, amount: &Value) -> i128 {
    let quantity: Option<Quantity> = match amount {
        Value::String(text) => text.parse().ok(),
        other => other.to_string().parse().ok(),
    };
    let quantity = quantity.unwrap_or_default();
    if resource == "cpu" { quantity.milli_value().into() } else { i128::from(quantity.value()) * 1000 }
}

fn requests(of: &Value) -> Amounts {
    let entries = at(of, &["resources", "requests"]).and_then(Value::as_object);
    let entries = entries.into_iter().flatten();
    entries.map(|(resource, amount)| (resource.clone(), thousandths(resource, amount))).collect()
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (resource, amount) in more {
        *total.entry(resource.clone()).or_default() += amount;
    }
}

fn raise(total: &mut Amounts, least: &Amounts) {
    for (resource, amount) in least {
        let known = total.entry(resource.clone()).or_default();
        *known = (*known).max(*amount);
    }
}

fn is_sidecar(init_container: &Value) -> bool {
    text(init_container, &["restartPolicy"]) == "Always"
}

/// What a pod asks for: all its containers and sidecars, or its hungriest moment while it starts.
fn demand(pod: &Value) -> Demand {
    let mut running = Amounts::new();
    for container in items(pod, &["spec", "containers"]) {
        add(&mut running, &requests(container));
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in items(pod, &["spec", "initContainers"]) {
        let mut needed = requests(container);
        if is_sidecar(container) {
            add(&mut sidecars, &needed);
            raise(&mut starting, &sidecars);
        } else {
            add(&mut needed, &sidecars);
            raise(&mut starting, &needed);
        }
    }
    add(&mut running, &sidecars);
    raise(&mut running, &starting);
    for (resource, amount) in &requests(&pod["spec"]) {
        running.insert(resource.clone(), *amount);
    }
    let overhead = at(pod, &["spec", "overhead"]).and_then(Value::as_object);
    for (resource, amount) in overhead.into_iter().flatten() {
        *running.entry(resource.clone()).or_default() += thousandths(resource, amount);
    }
    running.insert("pods".to_owned(), 1000);
    for claimed in items(pod, &["status", "extendedResourceClaimStatus", "requestMappings"]) {
        // A device of a claim stands for it; the node's own are not touched.
        running.remove(text(claimed, &["resourceName"]));
    }
    Demand { amounts: running, ports: host_ports(pod) }
}

fn host_ports(pod: &Value) -> Vec<HostPort> {
    let sidecars = items(pod, &["spec", "initContainers"]).iter().filter(|container| is_sidecar(container));
    let containers = items(pod, &["spec", "containers"]).iter().chain(sidecars);
    let ports = containers.flat_map(|container| items(container, &["ports"]));
    ports
        .filter_map(|port| {
            let number = port.get("hostPort")?.as_u64().filter(|number| *number > 0)?;
            let or = |key: &str, default: &str| match text(port, &[key]) {
                "" => default.to_owned(),
                given => given.to_owned(),
            };
            let (protocol, address) = (or("protocol", "TCP"), or("hostIP", "0.0.0.0"));
            Some(HostPort { protocol, address, port: number })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, spec: Value) -> Value {
        let mut pod = json!({"metadata": {"name": name, "namespace": "a", "uid": name}, "spec": spec});
        pod["spec"]["nodeName"] = "n".into();
        pod
    }

    fn bind(referee: &mut Referee, pod: &Value) {
        let node = json!({"status": {"allocatable": {"cpu": "2", "memory": "1Gi", "pods": "2"}}});
        referee.pod_stored(pod);
        referee.pod_bound(pod, "n", Some(&node), "tester/1");
    }

    fn cpu(amount: &str) -> Value {
        json!({"containers": [{"resources": {"requests": {"cpu": amount}}}]})
    }

    #[test]
    fn a_full_node_takes_no_more() {
        let mut referee = Referee::default();
        bind(&mut referee, &pod("one", cpu("1500m")));
        bind(&mut referee, &pod("two", cpu("500m")));
        assert_eq!(referee.violations(), []);
        referee.pod_removed(&pod("two", cpu("500m")));
        bind(&mut referee, &pod("three", cpu("501m")));
        // 1500m + 501m = 2001m > 2
        let over = Violation::OverAllocatable {
            node: "n".into(),
            pod: "a/three".into(),
            resource: "cpu".into(),
            asked: "2001m".into(),
            allocatable: "2".into(),
        };
        assert_eq!(referee.violations(), [over]);
    }

    #[test]
    fn pods_are_counted_and_so_are_resources_the_node_lacks() {
        let mut referee = Referee::default();
        for name in ["one", "two", "three"] {
            bind(&mut referee, &pod(name, json!({})));
        }
        assert!(
            matches!(referee.violations(), [Violation::OverAllocatable { resource, .. }] if resource == "pods")
        );
        let gpu = json!({"containers": [{"resources": {"requests": {"example.com/gpu": "1"}}}]});
        let mut referee = Referee::default();
        bind(&mut referee, &pod("four", gpu));
        assert_eq!(referee.violations().len(), 1);
    }

    #[test]
    fn a_pod_asks_for_its_hungriest_moment() {
        let request = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let spec = json!({
            "containers": [{"resources": request("1")}],
            "initContainers": [
                {"resources": request("300m"), "restartPolicy": "Always"},
                {"resources": request("1100m")},
            ],
            "overhead": {"cpu": "10m"},
        });
        // running 1000m + 300m; starting 300m + 1100m; the larger, and the overhead
        assert_eq!(demand(&pod("one", spec)).amounts["cpu"], 1410);
    }

    #[test]
    fn ports_of_the_host_are_given_once() {
        let port = |address: &str| json!({"containers": [{"ports": [{"hostPort": 80, "hostIP": address}]}]});
        for (first, second, clashes) in [("", "", 1), ("10.0.0.1", "10.0.0.2", 0), ("10.0.0.1", "", 1)] {
            let mut referee = Referee::default();
            bind(&mut referee, &pod("one", port(first)));
            bind(&mut referee, &pod("two", port(second)));
            assert_eq!(referee.violations().len(), clashes, "{first:?} and {second:?}");
        }
    }

    #[test]
    fn a_second_binding_is_told() {
        let mut referee = Referee::default();
        bind(&mut referee, &pod("one", json!({})));
        bind(&mut referee, &pod("one", json!({})));
        assert!(matches!(referee.violations(), [Violation::BoundTwice { .. }]));
        assert_eq!(referee.bindings().len(), 2);
    }
}
