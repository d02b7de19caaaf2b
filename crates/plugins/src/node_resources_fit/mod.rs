//! Keeps pods off nodes without enough free resources, and scores nodes by how full they would be.

mod details;
mod fast;
mod older_names;
mod strategy;

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde::Deserialize;
use supercargo_framework::{
    Code, Detail, Prepared, ScoreInput, Status, Verdict,
    bugs::{self, Bug},
    details::RefusalKind,
    event::{ActionType, Change, EventInterest, EventResource},
    points::{Filter, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome, Requeue, ScoreNode},
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{
    Cluster, Name, Node, NodeInfo, Pod, Resources,
    devices::{DEVICE_CLASS_RESOURCE, DeviceClass},
    labels,
    object::Object,
    resources,
};

use crate::{
    device_resources::{DeviceCounts, are_devices, stands_for_devices},
    resource_weights::{self, ResourceWeight},
};

pub use older_names::{LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, SingleStrategy};
use strategy::{Scorer, ShapePoint, Strategy, shape_problems};

/// The plugin's name.
pub const NAME: &str = "NodeResourcesFit";

/// The plugin.
pub struct NodeResourcesFit {
    ignored_resources: Vec<Name>,
    ignored_groups: Vec<Name>,
    scorer: Scorer,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeResourcesFitArgs {
    ignored_resources: Vec<Name>,
    ignored_resource_groups: Vec<Name>,
    scoring_strategy: Option<ScoringStrategy>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScoringStrategy {
    #[serde(rename = "type")]
    kind: Option<StrategyKind>,
    resources: Vec<ResourceWeight>,
    requested_to_capacity_ratio: Option<RequestedToCapacityRatio>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum StrategyKind {
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct RequestedToCapacityRatio {
    shape: Vec<ShapePoint>,
}

impl NodeResourcesFit {
    /// With the resources to ignore and the scoring strategy that the arguments give.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let given: NodeResourcesFitArgs = args.decode()?;
        let mut problems = Problems::default();
        for (i, resource) in given.ignored_resources.iter().enumerate() {
            if !labels::is_valid_key(resource) {
                let message = format!("{resource:?} is not the name of a resource");
                problems.push(args.problem(&format!("ignoredResources[{i}]"), message));
            }
        }
        for (i, group) in given.ignored_resource_groups.iter().enumerate() {
            if group.contains('/') || !labels::is_valid_key(group) {
                let message = format!("{group:?} is not the part of a resource's name before its slash");
                problems.push(args.problem(&format!("ignoredResourceGroups[{i}]"), message));
            }
        }
        let strategy = given.scoring_strategy.unwrap_or_else(ScoringStrategy::least_allocated);
        let scorer = strategy.scorer(args, &mut problems);
        if problems.is_empty() {
            Ok(Self {
                ignored_resources: given.ignored_resources,
                ignored_groups: given.ignored_resource_groups,
                scorer,
            })
        } else {
            Err(problems)
        }
    }

    fn ignores(&self, resource: &str) -> bool {
        let group = resource.split('/').next().unwrap_or(resource);
        resources::is_extended(resource)
            && (self.ignored_resources.iter().any(|r| &**r == resource)
                || self.ignored_groups.iter().any(|g| &**g == group))
    }
}

impl ScoringStrategy {
    /// What holds if none is given.
    fn least_allocated() -> Self {
        Self { kind: Some(StrategyKind::LeastAllocated), ..Self::default() }
    }

    fn scorer(self, args: &Args<'_>, problems: &mut Problems) -> Scorer {
        let resources = resource_weights::with_defaults(self.resources);
        problems.extend(resource_weights::problems(args, "scoringStrategy.resources", &resources));
        const RATIO: &str = "scoringStrategy.requestedToCapacityRatio";
        let kind = self.kind.unwrap_or_else(|| {
            let message = "must be LeastAllocated, MostAllocated or RequestedToCapacityRatio";
            problems.push(args.problem("scoringStrategy.type", message));
            StrategyKind::LeastAllocated
        });
        let strategy = match (kind, self.requested_to_capacity_ratio) {
            (StrategyKind::RequestedToCapacityRatio, None) => {
                problems.push(args.problem(RATIO, "must be given when the type is RequestedToCapacityRatio"));
                Strategy::RequestedToCapacityRatio(Vec::new())
            }
            (StrategyKind::RequestedToCapacityRatio, Some(ratio)) => {
                let field = format!("{RATIO}.shape");
                problems.extend(shape_problems(args, &field, &ratio.shape));
                Strategy::RequestedToCapacityRatio(ratio.shape)
            }
            (kind, ratio) => {
                if ratio.is_some() {
                    let message = "goes only with the type RequestedToCapacityRatio";
                    problems.push(args.problem(RATIO, message));
                }
                match kind {
                    StrategyKind::MostAllocated => Strategy::MostAllocated,
                    _ => Strategy::LeastAllocated,
                }
            }
        };
        Scorer { strategy, resources, counts: DeviceCounts::default() }
    }
}

impl PreFilter for NodeResourcesFit {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        Ok(PreFilterOutcome::Go { nodes: None, prepared: self.prepare(cluster, pod) })
    }
}

impl NodeResourcesFit {
    fn prepare(&self, cluster: &Cluster, pod: &Pod) -> Prepared {
        if pod.spec.requests.fit.scalars.len() > FEW_RESOURCES {
            Prepared::new(Arc::new(ManyResources::new(self, cluster, pod)))
        } else {
            Prepared::nothing()
        }
    }
}

impl Filter for NodeResourcesFit {
    fn filter(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        let mut shortage = Shortage::default();
        if node.pods.len() as i64 + 1 > node.node.allocatable.pods {
            shortage.reasons.push("Too many pods".into());
        }
        if let Ok(many) = prepared.get::<Arc<ManyResources>>() {
            return many.check(shortage, cluster, &pod.spec.requests.fit, node);
        }
        let ignores = |resource: &str| self.ignores(resource) || are_devices(cluster, &node.node, resource);
        shortage.check_all(&pod.spec.requests.fit, node, ignores);
        shortage.verdict()
    }

    fn details(&self, _: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        self.tell_details(cluster, pod, node)
    }

    fn kinds(&self, _: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<RefusalKind> {
        self.tell_kinds(cluster, pod, node)
    }
}

/// What a node lacks.
#[derive(Default)]
struct Shortage {
    reasons: Vec<Cow<'static, str>>,
    /// Some resource would not suffice even if the node were empty.
    hopeless: bool,
}

impl Shortage {
    fn check_all(&mut self, wanted: &Resources, node: &NodeInfo, ignores: impl Fn(&str) -> bool) {
        self.check_basic(wanted, node);
        self.check_scalars(
            wanted.scalars.iter().filter(|(name, amount)| *amount != 0 && !ignores(name)),
            node,
        );
    }

    fn check_basic(&mut self, wanted: &Resources, node: &NodeInfo) {
        let (all, used) = (&node.node.allocatable, &node.requested);
        self.check(wanted.milli_cpu, used.milli_cpu, all.milli_cpu, || "Insufficient cpu".into());
        self.check(wanted.memory, used.memory, all.memory, || "Insufficient memory".into());
        let disk = (wanted.ephemeral_storage, used.ephemeral_storage, all.ephemeral_storage);
        self.check(disk.0, disk.1, disk.2, || "Insufficient ephemeral-storage".into());
    }

    fn check_scalars<'a>(&mut self, wanted: impl Iterator<Item = &'a (Name, i64)>, node: &NodeInfo) {
        let (all, used) = (&node.node.allocatable, &node.requested);
        for (name, amount) in wanted {
            self.check(*amount, used.get(name), all.get(name), || insufficient(name));
        }
    }

    fn check(&mut self, wanted: i64, used: i64, all: i64, reason: impl Fn() -> Cow<'static, str>) {
        if bugs::is_on(Bug::FreeRoomWraps) && used > all {
            return;
        }
        if wanted > 0 && wanted > all.saturating_sub(used) {
            self.reasons.push(reason());
            self.hopeless |= wanted > all;
        }
    }

    fn verdict(self) -> Verdict {
        if self.reasons.is_empty() {
            Ok(())
        } else if self.hopeless {
            Err(Status::new(Code::UnschedulableAndUnresolvable, self.reasons))
        } else {
            Err(Status::new(Code::Unschedulable, self.reasons))
        }
    }
}

fn insufficient(resource: &str) -> Cow<'static, str> {
    format!("Insufficient {resource}").into()
}

/// Why a node will not do.
type Reason = Cow<'static, str>;

/// Up to so many resources, the names of which a pod makes up, are looked for node by node.
const FEW_RESOURCES: usize = 8;

/// The wants of a pod that asks for many resources. Those that no node offers are missing everywhere: they are told from one
/// list that all nodes share.
struct ManyResources {
    offered: Vec<(Name, i64)>,
    missing: Vec<Cow<'static, str>>,
    /// The reasons of nodes that lack the same.
    told: Mutex<HashMap<Vec<Reason>, Arc<[Reason]>>>,
}

impl ManyResources {
    fn new(plugin: &NodeResourcesFit, cluster: &Cluster, pod: &Pod) -> Self {
        let wanted = pod.spec.requests.fit.scalars.iter();
        let wanted = wanted.filter(|(name, amount)| *amount > 0 && !plugin.ignores(name)).cloned();
        let (offered, missing): (Vec<_>, Vec<_>) =
            wanted.partition(|(name, _)| cluster.columns().scalar(name).is_some());
        let missing = missing.iter().filter(|(name, _)| !stands_for_devices(cluster, name));
        let missing = missing.map(|(name, _)| insufficient(name)).collect();
        Self { offered, missing, told: Mutex::default() }
    }

    fn check(
        &self,
        mut shortage: Shortage,
        cluster: &Cluster,
        wanted: &Resources,
        node: &NodeInfo,
    ) -> Verdict {
        shortage.check_basic(wanted, node);
        let basic = shortage.reasons.len();
        let offered = self.offered.iter().filter(|(name, _)| !are_devices(cluster, &node.node, name));
        shortage.check_scalars(offered, node);
        if self.missing.is_empty() {
            return shortage.verdict();
        }
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let reasons = told.entry(shortage.reasons).or_insert_with_key(|lacked| {
            let mut scalars: Vec<_> = lacked[basic..].iter().chain(&self.missing).cloned().collect();
            scalars.sort_unstable();
            lacked[..basic].iter().cloned().chain(scalars).collect()
        });
        Err(Status { code: Code::UnschedulableAndUnresolvable, reasons: reasons.clone() })
    }
}

impl PreScore for NodeResourcesFit {
    fn pre_score(&self, _: &Cluster, _: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        Ok(PreScoreOutcome::Go(Prepared::nothing()))
    }
}

impl ScoreNode for NodeResourcesFit {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        Ok(self.scorer.score(input.cluster, input.pod, node))
    }
}

/// Whether an empty node would have room for a pod.
fn fits_empty(cluster: &Cluster, pod: &Pod, node: &Node) -> bool {
    let wanted = &pod.spec.requests.fit;
    let all = &node.allocatable;
    all.pods >= 1
        && wanted.milli_cpu <= all.milli_cpu.max(0)
        && wanted.memory <= all.memory.max(0)
        && wanted.ephemeral_storage <= all.ephemeral_storage.max(0)
        && (wanted.scalars.iter()).all(|(name, amount)| {
            *amount == 0 || *amount <= all.get(name) || are_devices(cluster, node, name)
        })
}

/// Whether a node got more of something that a pod wants.
fn grew(cluster: &Cluster, pod: &Pod, before: &Node, after: &Node) -> bool {
    let wanted = &pod.spec.requests.fit;
    if wanted.scalars.iter().any(|(name, amount)| *amount != 0 && are_devices(cluster, after, name)) {
        return true;
    }
    let (before, after) = (&before.allocatable, &after.allocatable);
    after.pods > before.pods
        || (wanted.milli_cpu > 0 && after.milli_cpu > before.milli_cpu)
        || (wanted.memory > 0 && after.memory > before.memory)
        || (wanted.ephemeral_storage > 0 && after.ephemeral_storage > before.ephemeral_storage)
        || (wanted.scalars.iter()).any(|(name, amount)| *amount != 0 && after.get(name) > before.get(name))
}

/// Whether a pod holds less than before of something that another pod wants.
fn shrank(pod: &Pod, before: &Pod, after: &Pod) -> bool {
    let wanted = &pod.spec.requests.fit;
    let (before, after) = (&before.spec.requests.held, &after.spec.requests.held);
    (wanted.milli_cpu > 0 && after.milli_cpu < before.milli_cpu)
        || (wanted.memory > 0 && after.memory < before.memory)
        || (wanted.ephemeral_storage > 0 && after.ephemeral_storage < before.ephemeral_storage)
        || (wanted.scalars.iter()).any(|(name, amount)| *amount != 0 && after.get(name) < before.get(name))
}

/// Whether a class has come to stand for a resource that a pod asks for.
fn class_helps(pod: &Pod, before: Option<&Object>, after: &DeviceClass) -> bool {
    let asks = |resource: &str| pod.spec.requests.fit.scalars.iter().any(|(name, _)| **name == *resource);
    let by_name = || asks(&format!("{DEVICE_CLASS_RESOURCE}{}", after.name));
    match before {
        Some(Object::DeviceClass(before)) if before.extended_resource == after.extended_resource => false,
        None if by_name() => true,
        _ => after.extended_resource.as_ref().is_some_and(|resource| asks(resource)),
    }
}

impl Requeue for NodeResourcesFit {
    fn events(&self) -> Vec<EventInterest> {
        let placed = |pod: &Pod| pod.node.is_some() || pod.nominated_node.is_some();
        vec![
            EventInterest::new(EventResource::Pod, [ActionType::Delete, ActionType::UpdatePodScaleDown])
                .if_pod(move |pod, before, after| match (before, after) {
                    (Some(deleted), None) => placed(deleted),
                    (Some(before), Some(after)) => {
                        after.uid == pod.uid || (after.node.is_some() && shrank(pod, before, after))
                    }
                    _ => true,
                }),
            EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeAllocatable])
                .if_in(|cluster, pod, change| {
                    let Change::Node(before, after) = change else { return true };
                    after.is_some_and(|after| {
                        fits_empty(cluster, pod, after)
                            && before.is_none_or(|before| grew(cluster, pod, before, after))
                    })
                }),
            EventInterest::new(EventResource::DeviceClass, [ActionType::Add, ActionType::Update]).if_object(
                |pod, before, after| match after {
                    Some(Object::DeviceClass(after)) => class_helps(pod, before, after),
                    _ => true,
                },
            ),
        ]
    }
}

#[cfg(test)]
mod tests;
