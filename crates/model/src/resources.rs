//! Amounts of resources, and what a pod asks for.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Name, Quantity, labels};

/// cpu, in thousandths of a core wherever it is a number.
pub const CPU: &str = "cpu";
/// memory, in bytes.
pub const MEMORY: &str = "memory";
/// Local disk, in bytes.
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// How many pods a node may run.
pub const PODS: &str = "pods";

/// What scoring assumes of a container that asks for no cpu.
pub const DEFAULT_MILLI_CPU: i64 = 100;
/// What scoring assumes of a container that asks for no memory.
pub const DEFAULT_MEMORY_BYTES: i64 = 200 * 1024 * 1024;

const HUGE_PAGES_PREFIX: &str = "hugepages-";
const NATIVE_PREFIX: &str = "kubernetes.io/";
const QUOTA_PREFIX: &str = "requests.";
const ATTACHABLE_VOLUMES_PREFIX: &str = "attachable-volumes-";

/// Resources by name, exactly as they are written in an object.
pub type ResourceList = BTreeMap<Name, Quantity>;

/// Whether a resource is one that device plugins and administrators add (it has a domain of its own).
pub fn is_extended(resource: &str) -> bool {
    resource.contains('/')
        && !resource.contains(NATIVE_PREFIX)
        && !resource.starts_with(QUOTA_PREFIX)
        && labels::is_valid_key(&format!("{QUOTA_PREFIX}{resource}"))
}

/// Whether a resource is counted besides cpu, memory, ephemeral storage and pods.
pub fn is_scalar(resource: &str) -> bool {
    resource.starts_with(HUGE_PAGES_PREFIX)
        || resource.contains(NATIVE_PREFIX)
        || resource.starts_with(ATTACHABLE_VOLUMES_PREFIX)
        || is_extended(resource)
}

/// Amounts as the integers that scheduling computes with. Sums saturate: demand added never lowers usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources {
    /// Thousandths of a core.
    pub milli_cpu: i64,
    /// Bytes.
    pub memory: i64,
    /// Bytes.
    pub ephemeral_storage: i64,
    /// A number of pods; only nodes have it.
    pub pods: i64,
    /// Every other resource that is counted, sorted by name.
    pub scalars: Vec<(Name, i64)>,
}

impl Resources {
    /// The integers of a list: cpu in thousandths, all else in units, rounded up.
    pub fn from_list(list: &ResourceList) -> Self {
        let mut all = Self::default();
        for (name, quantity) in list {
            match &**name {
                CPU => all.milli_cpu = quantity.milli_value(),
                MEMORY => all.memory = quantity.value(),
                EPHEMERAL_STORAGE => all.ephemeral_storage = quantity.value(),
                PODS => all.pods = quantity.value(),
                other if is_scalar(other) => all.scalars.push((name.clone(), quantity.value())),
                _ => {}
            }
        }
        all
    }

    /// The amount of one resource, 0 if there is none.
    pub fn get(&self, resource: &str) -> i64 {
        match resource {
            CPU => self.milli_cpu,
            MEMORY => self.memory,
            EPHEMERAL_STORAGE => self.ephemeral_storage,
            PODS => self.pods,
            other => self.scalar(other),
        }
    }

    fn scalar(&self, resource: &str) -> i64 {
        self.scalars.binary_search_by(|(name, _)| (**name).cmp(resource)).map_or(0, |i| self.scalars[i].1)
    }

    /// Whether an amount is as large as can be: more may have been added than it tells.
    pub(crate) fn has_most(&self) -> bool {
        let scalars = self.scalars.iter().map(|(_, amount)| *amount);
        [self.milli_cpu, self.memory, self.ephemeral_storage]
            .into_iter()
            .chain(scalars)
            .any(|a| a == i64::MAX)
    }

    /// Adds amounts.
    pub fn add(&mut self, other: &Self) {
        self.combine(other, i64::saturating_add);
    }

    /// Takes amounts away.
    pub fn subtract(&mut self, other: &Self) {
        self.combine(other, i64::saturating_sub);
    }

    fn combine(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        self.milli_cpu = with(self.milli_cpu, other.milli_cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral_storage = with(self.ephemeral_storage, other.ephemeral_storage);
        if other.scalars.iter().any(|(_, amount)| *amount != 0) {
            self.combine_scalars(&other.scalars, with);
        }
    }

    /// Both lists are sorted, which sorting them together makes use of. What comes to nothing is not kept: the names in
    /// pods' requests are whatever somebody made up.
    fn combine_scalars(&mut self, other: &[(Name, i64)], with: fn(i64, i64) -> i64) {
        let changes = other.iter().map(|(name, amount)| (name.clone(), with(0, *amount)));
        self.scalars.extend(changes);
        self.scalars.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.scalars.dedup_by(|(next, amount), (name, sum)| {
            let same = next == name;
            *sum = if same { sum.saturating_add(*amount) } else { *sum };
            same
        });
        self.scalars.retain(|(_, amount)| *amount != 0);
    }
}

/// `resources` of a container, of a pod, or of a container's status.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ResourceRequirements {
    /// What is set aside for it.
    #[serde(default)]
    pub requests: ResourceList,
    /// What it may use at most.
    #[serde(default)]
    pub limits: ResourceList,
}

impl ResourceRequirements {
    /// The extended resources in either.
    pub fn extended(&self) -> impl Iterator<Item = &Name> {
        self.requests.keys().chain(self.limits.keys()).filter(|name| is_qualified(name))
    }
}

/// Extended resources have a domain before a slash; cpu, memory and the like have none.
fn is_qualified(name: &str) -> bool {
    name.contains('/')
}

/// A container as far as its demand is concerned.
#[derive(Clone, Debug, Default)]
pub struct ContainerDemand {
    /// What it asks for.
    pub requests: ResourceList,
    /// What it may use at most.
    pub limits: ResourceList,
    /// What the kubelet has given it so far, while it is being resized.
    pub status: Option<ResizeStatus>,
    /// An init container that keeps running beside the others.
    pub sidecar: bool,
}

/// What a running container or pod was given and was promised.
#[derive(Clone, Debug, Default)]
pub struct ResizeStatus {
    /// What is in force.
    pub actuated: ResourceList,
    /// What the kubelet has promised.
    pub allocated: ResourceList,
}

/// All that determines what a pod asks for.
#[derive(Clone, Debug, Default)]
pub struct PodDemand {
    /// The containers.
    pub containers: Vec<ContainerDemand>,
    /// The init containers, in their order.
    pub init_containers: Vec<ContainerDemand>,
    /// Resources given for the pod as a whole.
    pub pod_level: ResourceList,
    /// What the pod as a whole may use at most.
    pub pod_level_limits: ResourceList,
    /// What the kubelet has given the pod as a whole.
    pub pod_level_status: Option<ResizeStatus>,
    /// What running the pod costs besides its containers.
    pub overhead: ResourceList,
    /// The kubelet has said that the resize asked for will never fit.
    pub resize_infeasible: bool,
}

/// Which of the rules apply to a sum.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// A running container counts at the most of what it asks for, was promised and has.
    status: bool,
    /// Resources of the pod as a whole replace its containers'.
    pod_level: bool,
    /// What a container counts that asks for no cpu, or for no memory.
    defaults: Defaults,
}

#[derive(Clone, Copy, Debug, Default)]
struct Defaults {
    cpu: bool,
    memory: bool,
}

/// The sums that the plugins need, worked out once for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requests {
    /// What must be free on a node (NodeResourcesFit).
    pub fit: Resources,
    /// What counts against the node that the pod sits on.
    pub held: Resources,
    /// `held`, with the defaults for containers that ask for nothing: cpu in thousandths.
    pub held_or_default_milli_cpu: i64,
    /// `held`, with the defaults for containers that ask for nothing: memory in bytes.
    pub held_or_default_memory: i64,
    /// What the scoring strategies of NodeResourcesFit add for the pod: with defaults, and by container even where the
    /// pod as a whole names its resources.
    pub score: Resources,
}

impl PodDemand {
    /// All the sums.
    pub fn requests(&self) -> Requests {
        if !self.is_plain() {
            return self.requests_by_rules();
        }
        let all = demanded(&self.sum(Rules::default()));
        Requests {
            held_or_default_milli_cpu: all.milli_cpu,
            held_or_default_memory: all.memory,
            held: all.clone(),
            score: all.clone(),
            fit: all,
        }
    }

    /// Whether no rule makes a difference, as for nearly all pods: each sum is then that of what the containers ask for.
    fn is_plain(&self) -> bool {
        let is_plain = |container: &ContainerDemand| {
            container.status.is_none()
                && [CPU, MEMORY].iter().all(|name| container.requests.contains_key(*name))
        };
        self.pod_level.is_empty() && self.containers.iter().chain(&self.init_containers).all(is_plain)
    }

    fn requests_by_rules(&self) -> Requests {
        let held_rules = Rules { status: true, pod_level: true, ..Rules::default() };
        let held = self.sum(held_rules);
        let pod_level_set = self.pod_level.keys().any(|name| is_pod_level(name));
        let missing = |resource| !(pod_level_set && held.contains_key(resource));
        let held_or_default = self
            .sum(Rules { defaults: Defaults { cpu: missing(CPU), memory: missing(MEMORY) }, ..held_rules });
        let with_defaults = Rules { defaults: Defaults { cpu: true, memory: true }, ..Rules::default() };
        let held_or_default = demanded(&held_or_default);
        Requests {
            fit: demanded(&self.sum(Rules { pod_level: true, ..Rules::default() })),
            held: demanded(&held),
            held_or_default_milli_cpu: held_or_default.milli_cpu,
            held_or_default_memory: held_or_default.memory,
            score: demanded(&self.sum(with_defaults)),
        }
    }

    /// What the pod may use at most; `None` if nothing limits it.
    pub fn limits(&self) -> Option<Resources> {
        let mut all = self.sum_of(|container| container.limits.clone());
        for (name, limit) in self.pod_level_limits.iter().filter(|(name, _)| is_pod_level(name)) {
            all.insert(name.clone(), *limit);
        }
        for (name, overhead) in &self.overhead {
            // What is not limited is not limited by its overhead either.
            if let Some(limit) = all.get_mut(name).filter(|limit| **limit != Quantity::default()) {
                *limit = limit.saturating_add(*overhead);
            }
        }
        (!all.is_empty()).then(|| demanded(&all))
    }

    /// Containers run together, init containers one after another, sidecars from their turn on: the most at any moment.
    fn sum_of(&self, amounts: impl Fn(&ContainerDemand) -> ResourceList) -> ResourceList {
        let mut all = ResourceList::new();
        for container in &self.containers {
            add(&mut all, &amounts(container));
        }
        let mut sidecars = ResourceList::new();
        let mut starting = ResourceList::new();
        for container in &self.init_containers {
            let mut now = amounts(container);
            if container.sidecar {
                add(&mut all, &now);
                add(&mut sidecars, &now);
            }
            // What else the sidecars hold has counted since the last of them that asks for it.
            for (name, quantity) in &mut now {
                let held = sidecars.get(name).copied().unwrap_or_default();
                *quantity = if container.sidecar { held } else { quantity.saturating_add(held) };
            }
            raise(&mut starting, &now);
        }
        raise(&mut all, &starting);
        all
    }

    fn sum(&self, rules: Rules) -> ResourceList {
        let mut all = self.sum_of(|container| self.container(container, rules));
        if rules.pod_level {
            let given = match &self.pod_level_status {
                Some(status) if rules.status => self.effective(&self.pod_level, status),
                _ => self.pod_level.clone(),
            };
            for name in self.pod_level.keys().filter(|name| is_pod_level(name)) {
                all.insert(name.clone(), given.get(name).copied().unwrap_or_default());
            }
        }
        add(&mut all, &self.overhead);
        all
    }

    fn container(&self, container: &ContainerDemand, rules: Rules) -> ResourceList {
        let mut requests = match &container.status {
            Some(status) if rules.status => self.effective(&container.requests, status),
            _ => container.requests.clone(),
        };
        if rules.defaults.cpu && !requests.contains_key(CPU) {
            requests.insert(CPU.into(), Quantity::from_milli(DEFAULT_MILLI_CPU));
        }
        if rules.defaults.memory && !requests.contains_key(MEMORY) {
            requests.insert(MEMORY.into(), Quantity::from_value(DEFAULT_MEMORY_BYTES));
        }
        requests
    }

    fn effective(&self, asked: &ResourceList, status: &ResizeStatus) -> ResourceList {
        let mut most = if self.resize_infeasible { ResourceList::new() } else { asked.clone() };
        raise(&mut most, &status.actuated);
        raise(&mut most, &status.allocated);
        most
    }
}

/// Demand below zero is no demand: it must never lower what a node's pods hold.
fn demanded(list: &ResourceList) -> Resources {
    let mut all = Resources::from_list(list);
    all.milli_cpu = all.milli_cpu.max(0);
    all.memory = all.memory.max(0);
    all.ephemeral_storage = all.ephemeral_storage.max(0);
    all.pods = 0;
    for (_, amount) in &mut all.scalars {
        *amount = (*amount).max(0);
    }
    all
}

/// Whether a pod as a whole can name this resource.
fn is_pod_level(resource: &str) -> bool {
    resource == CPU || resource == MEMORY || resource.starts_with(HUGE_PAGES_PREFIX)
}

fn add(list: &mut ResourceList, more: &ResourceList) {
    for (name, quantity) in more {
        let sum = list.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*quantity);
    }
}

fn raise(list: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        list.entry(name.clone()).and_modify(|most| *most = (*most).max(*quantity)).or_insert(*quantity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(amounts: &[(&str, i64)]) -> ContainerDemand {
        let requests = amounts.iter().map(|(name, amount)| ((*name).into(), Quantity::from_value(*amount)));
        ContainerDemand { requests: requests.collect(), ..ContainerDemand::default() }
    }

    #[test]
    fn where_no_rule_makes_a_difference_one_sum_is_all_of_them() {
        let both = || asks(&[(CPU, 2), (MEMORY, 100), ("example.com/gpu", 1)]);
        let sidecar = ContainerDemand { sidecar: true, ..both() };
        let resized = ContainerDemand { status: Some(ResizeStatus::default()), ..both() };
        let containers =
            |all: &[ContainerDemand]| PodDemand { containers: all.to_vec(), ..PodDemand::default() };
        let list = |amount: i64| ResourceList::from([(CPU.into(), Quantity::from_value(amount))]);
        for (demand, is_plain) in [
            (PodDemand::default(), true),
            (containers(&[both(), both()]), true),
            (PodDemand { init_containers: vec![sidecar, both()], ..containers(&[both()]) }, true),
            (PodDemand { overhead: list(1), ..containers(&[both()]) }, true),
            (containers(&[asks(&[(CPU, -1), (MEMORY, 5)])]), true),
            (containers(&[both(), asks(&[(CPU, 2)])]), false),
            (PodDemand { init_containers: vec![asks(&[])], ..containers(&[both()]) }, false),
            (PodDemand { pod_level: list(7), ..containers(&[both()]) }, false),
            (containers(&[resized]), false),
        ] {
            assert_eq!(demand.is_plain(), is_plain, "{demand:?}");
            assert_eq!(demand.requests(), demand.requests_by_rules(), "{demand:?}");
        }
        // 2 + 2 cores, 100 + 100 bytes, and no container lacks a default.
        let two = containers(&[both(), both()]).requests();
        assert_eq!((two.fit.milli_cpu, two.held_or_default_memory, two.score.memory), (4000, 200, 200));
    }
}
