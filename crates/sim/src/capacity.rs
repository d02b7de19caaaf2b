//! How many more pods like one fit into a cluster, where, and what stops the next one.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Serialize;
use supercargo_engine::{Decision, Engine, Outcome, Placement};
use supercargo_framework::{Verdict, assumed::AssumedObjects, preemption::Rejection};
use supercargo_model::{Key, Kind, Name, NodeInfo, Pod, Resources, object::Object};

use crate::resource_claims::{copy_claims, reserve};

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// How many more pods fit, and what stops the next one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// `namespace/name` of the pod.
    pub pod: String,
    /// How many fit.
    pub fits: usize,
    /// Whether it was not tried whether more would fit.
    pub or_more: bool,
    /// What stops the next one on the nodes that took some, or could have, the most frequent first: what runs out first.
    pub stopped_by: Vec<Limit>,
    /// What kept pods away from nodes from the start, the most frequent first.
    pub unusable: Vec<Limit>,
    /// Why there is no node for the next one, in kube-scheduler's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many more would fit into what is free on the nodes that took some, if nothing but resources counted.
    pub fits_by_resources: u64,
    /// By zone; nodes without one are under `-`.
    pub zones: BTreeMap<String, Zone>,
    /// By node, in the order of their names.
    pub nodes: Vec<NodeCapacity>,
}

/// Something that stops pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Limit {
    /// Who refuses.
    pub plugin: String,
    /// Why.
    pub reason: String,
    /// On how many nodes.
    pub nodes: usize,
}

/// What fits into a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Zone {
    /// How many nodes it has.
    pub nodes: usize,
    /// How many of them can take such pods at all.
    pub usable: usize,
    /// How many pods fit.
    pub fits: usize,
    /// What stops the next one on its usable nodes.
    pub stopped_by: Vec<Limit>,
}

/// What fits onto a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCapacity {
    /// Its name.
    pub name: String,
    /// Its zone, or `-`.
    pub zone: String,
    /// How many pods fit.
    pub fits: usize,
    /// Whether it could take any before the first was placed.
    pub usable: bool,
    /// Who stops the next one.
    pub plugin: String,
    /// Why.
    pub reason: String,
}

/// Who refuses each node, and why; for all nodes if the pod was refused as such.
struct Refusals {
    by_node: HashMap<Name, (String, String)>,
    of_all: Option<(String, String)>,
}

impl Refusals {
    fn new(decision: &Decision) -> Self {
        let told = |rejection: &Rejection| {
            let mut reasons: Vec<&str> =
                rejection.status.reasons.iter().map(|reason| reason.as_ref()).collect();
            reasons.sort_unstable();
            (rejection.plugin.to_string(), reasons.join(", "))
        };
        let narrowed: Vec<&str> = decision.narrowed_by.iter().map(|plugin| &**plugin).collect();
        let ruled_out = decision.ruled_out.iter().map(|node| {
            (node.clone(), (narrowed.join(", "), "node is not among those that the pod asks for".to_owned()))
        });
        let rejected = decision.rejected.iter().map(|(node, rejection)| (node.clone(), told(rejection)));
        Self { by_node: rejected.chain(ruled_out).collect(), of_all: decision.refused.as_ref().map(told) }
    }

    fn of(&self, node: &Name) -> Option<&(String, String)> {
        self.by_node.get(node).or(self.of_all.as_ref())
    }
}

/// Copies of a pod that were placed, with what was kept for them.
#[derive(Default)]
pub struct Copies {
    placed: Vec<(Arc<Pod>, Name)>,
    claims: Vec<Key>,
    assumed: AssumedObjects,
}

impl Copies {
    /// The next copy, with claims of its own where those of the pod were made for it.
    fn make(&mut self, engine: &mut Engine, pod: &Pod) -> Arc<Pod> {
        let name = copy_name(pod, self.placed.len() + 1);
        let uid = format!("{}/{name}", pod.namespace).into();
        let mut copy = Pod { uid, name, ..pod.clone() };
        for claim in copy_claims(engine.cluster(), pod, &mut copy) {
            self.claims.push(claim.key());
            engine.cluster_mut().put(Object::ResourceClaim(claim));
        }
        Arc::new(copy)
    }

    /// Puts a copy on its node, and keeps the devices that were chosen for it there.
    fn place(&mut self, engine: &mut Engine, copy: Arc<Pod>, node: Name) -> Verdict {
        engine.assume(&copy, node.clone());
        self.placed.push((copy.clone(), node.clone()));
        let needs_devices = !copy.spec.resource_claims.is_empty() || !copy.spec.extended_demand.is_empty();
        if needs_devices { reserve(engine, &mut self.assumed, &copy, &node) } else { Ok(()) }
    }

    /// Takes the copies off their nodes again, and gives back what was kept for them.
    pub fn undo(mut self, engine: &mut Engine) {
        for (copy, node) in &self.placed {
            if let Some(profile) = engine.profile(&copy.spec.scheduler_name) {
                profile.unreserve(copy, node);
            }
            engine.cluster_mut().remove_pod(&copy.key());
            self.assumed.restore(engine.cluster_mut(), &copy.uid);
        }
        for claim in &self.claims {
            engine.cluster_mut().remove(Kind::ResourceClaim, claim);
        }
    }
}

/// Places copies of a pod until one finds no node, or there are `max` of them. Nobody is evicted. `decide` is asked about
/// each, and `progress` told how many there are. `None` if no profile has the scheduler name that the pod asks for; an error
/// if a plugin fails.
pub fn fill(
    engine: &mut Engine,
    pod: &Pod,
    max: usize,
    mut decide: impl FnMut(&mut Engine, &Arc<Pod>) -> Option<Placement>,
    mut progress: impl FnMut(usize),
) -> Option<Result<(Capacity, Copies), String>> {
    let mut polite = (*pod.spec).clone();
    polite.never_preempts = true;
    let pod = Pod { node: None, nominated_node: None, spec: Arc::new(polite), ..pod.clone() };
    let template = engine.admit(Arc::new(pod));
    let at_first = Refusals::new(&engine.what_if(&template)?);
    let mut copies = Copies::default();
    let mut message = None;
    while copies.placed.len() < max {
        let copy = copies.make(engine, &template);
        match decide(engine, &copy)? {
            Placement::Decided(decision) if decision.node().is_none() => {
                if let Outcome::Error { message } = &decision.outcome {
                    return Some(Err(message.clone()));
                }
                message = decision.unschedulable_message();
                break;
            }
            placement => {
                let node = placement.node()?.clone();
                if let Err(status) = copies.place(engine, copy, node) {
                    return Some(Err(status.message()));
                }
                progress(copies.placed.len());
            }
        }
    }
    let or_more = message.is_none() && copies.placed.len() == max;
    let at_last = Refusals::new(&engine.what_if(&template)?);
    let mut placed: HashMap<Name, usize> = HashMap::new();
    for (_, node) in &copies.placed {
        *placed.entry(node.clone()).or_default() += 1;
    }
    Some(Ok((told(engine, &template, &placed, (&at_first, &at_last), message, or_more), copies)))
}

fn copy_name(pod: &Pod, number: usize) -> Name {
    // No name of a real pod has a tilde.
    format!("{}~{number}", pod.name).into()
}

fn told(
    engine: &Engine,
    pod: &Pod,
    placed: &HashMap<Name, usize>,
    (at_first, at_last): (&Refusals, &Refusals),
    message: Option<String>,
    or_more: bool,
) -> Capacity {
    let mut nodes: Vec<NodeCapacity> = Vec::with_capacity(engine.cluster().node_count());
    let mut fits_by_resources = 0_u64;
    for info in engine.cluster().nodes() {
        let refused_at_first = at_first.of(info.name());
        let (plugin, reason) =
            refused_at_first.or_else(|| at_last.of(info.name())).cloned().unwrap_or_default();
        if refused_at_first.is_none() {
            fits_by_resources = fits_by_resources.saturating_add(room(info, &pod.spec.requests.fit));
        }
        nodes.push(NodeCapacity {
            name: info.name().to_string(),
            zone: info.node.labels.get(ZONE_LABEL).map_or("-", |zone| &**zone).to_owned(),
            fits: placed.get(info.name()).copied().unwrap_or(0),
            usable: refused_at_first.is_none(),
            plugin,
            reason,
        });
    }
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let mut zones: BTreeMap<String, Zone> = BTreeMap::new();
    for node in &nodes {
        let zone = zones.entry(node.zone.clone()).or_default();
        zone.nodes += 1;
        zone.usable += usize::from(node.usable);
        zone.fits += node.fits;
    }
    for (name, zone) in &mut zones {
        zone.stopped_by = limits(nodes.iter().filter(|node| node.usable && node.zone == *name));
    }
    Capacity {
        pod: pod.key().to_string(),
        fits: placed.values().sum(),
        or_more,
        stopped_by: limits(nodes.iter().filter(|node| node.usable)),
        unusable: limits(nodes.iter().filter(|node| !node.usable)),
        message,
        fits_by_resources,
        zones,
        nodes,
    }
}

/// What stops pods on some nodes, the most frequent first.
fn limits<'n>(nodes: impl Iterator<Item = &'n NodeCapacity>) -> Vec<Limit> {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for node in nodes.filter(|node| !node.reason.is_empty()) {
        *counts.entry((&node.plugin, &node.reason)).or_default() += 1;
    }
    let mut limits: Vec<Limit> = counts
        .into_iter()
        .map(|((plugin, reason), nodes)| Limit {
            plugin: plugin.to_owned(),
            reason: reason.to_owned(),
            nodes,
        })
        .collect();
    // Those that are equally frequent stay in the order of their names.
    limits.sort_by_key(|limit| std::cmp::Reverse(limit.nodes));
    limits
}

/// How many pods of a size fit into what is free on a node.
fn room(info: &NodeInfo, size: &Resources) -> u64 {
    let (there, held) = (&info.node.allocatable, &info.requested);
    let free_pods = there.pods.saturating_sub(i64::try_from(info.pods.len()).unwrap_or(i64::MAX));
    let times = |there: i64, held: i64, each: i64| match each {
        ..=0 => i64::MAX,
        _ => there.saturating_sub(held).max(0) / each,
    };
    let scalars = size.scalars.iter().map(|(name, each)| times(there.get(name), held.get(name), *each));
    let fits = [
        times(there.milli_cpu, held.milli_cpu, size.milli_cpu),
        times(there.memory, held.memory, size.memory),
        times(there.ephemeral_storage, held.ephemeral_storage, size.ephemeral_storage),
        free_pods,
    ];
    let fewest = fits.into_iter().chain(scalars).min().unwrap_or(0).max(0);
    u64::try_from(fewest).unwrap_or(0)
}
