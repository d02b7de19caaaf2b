//! A pod as the scheduler sees it.

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    Key, Labels, Name, Timestamp,
    devices::DEVICE_CLASS_RESOURCE,
    images,
    meta::{Meta, Owner, ResourceVersion},
    ports::{ALL_ADDRESSES, HostPort, Protocol},
    resources::{
        self, ContainerDemand, PodDemand, Requests, ResizeStatus, ResourceList, ResourceRequirements,
        Resources,
    },
    selection::comparisons,
    selector::{NodeAffinity, NodeSelectorTerm, Operator, Requirement, Selector},
    storage::{Volume, VolumeSource},
    taint::Tolerations,
};

/// The scheduler that pods name when they name none.
pub const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";

/// A pod: who it is and where it stands, and the spec that it may share with others of its template.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Distinguishes it from an earlier pod of the same name.
    pub uid: Name,
    /// Which version of the object this is, for telling the API server's versions apart.
    pub version: ResourceVersion,
    /// Which version of its spec this is; 0 where the API server does not count them.
    pub generation: i64,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Its deletion was asked for.
    pub terminating: bool,
    /// How long it may take to leave once its deletion is asked for, if it says so.
    pub grace_period_seconds: Option<i64>,
    /// The scheduler evicted it to make room.
    pub preempted: bool,
    /// The node it is bound to.
    pub node: Option<Name>,
    /// The node that an earlier preemption made room on.
    pub nominated_node: Option<Name>,
    /// When it started to run.
    pub started: Option<Timestamp>,
    /// It has ended, well or badly, and holds nothing any more.
    pub finished: bool,
    /// Where its priority comes from: an API server fills it in when a pod is made.
    pub priority_from: PriorityFrom,
    /// What its status says about why it has no node.
    pub not_scheduled: Option<Arc<NotScheduled>>,
    /// The claims to devices that were made for it, if any were.
    pub claims: Option<Arc<PodClaimStatuses>>,
    /// What it may use at most, if anything limits it. Scheduling does not depend on it; it is told in metrics.
    pub limits: Option<Arc<Resources>>,
    /// All else that scheduling depends on.
    pub spec: Arc<PodSpec>,
}

impl Pod {
    /// `namespace/name`.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }

    /// Forgets all annotations but some: most are of no use to a scheduler, and pods that differ only in them are alike.
    pub fn keep_annotations(&mut self, keys: &[Name]) {
        let all = self.spec.annotations.len();
        if self.spec.annotations.iter().all(|(key, _)| keys.contains(key)) {
            return;
        }
        let spec = Arc::make_mut(&mut self.spec);
        let kept = spec.annotations.iter().filter(|(key, _)| keys.contains(key));
        spec.annotations = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        spec.bytes -= (all - spec.annotations.len()) * ENTRY_BYTES;
    }

    /// The same pod, bound to a node, as the API server will show it.
    #[must_use]
    pub fn bound_to(&self, node: Name) -> Self {
        Self { node: Some(node), nominated_node: None, not_scheduled: None, ..self.clone() }
    }
}

/// A claim to devices that a pod names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodResourceClaim {
    /// Its name within the pod.
    pub name: Name,
    /// The claim, if it exists by itself.
    pub resource_claim_name: Option<Name>,
    /// What the claim is made from, if it is made for this pod.
    pub resource_claim_template_name: Option<Name>,
}

/// The claims to devices that were made for a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodClaimStatuses {
    /// From templates.
    pub generated: Vec<GeneratedClaim>,
    /// For extended resources that a class of devices stands for.
    pub extended: Option<ExtendedResourceClaim>,
}

/// A claim that was made from a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GeneratedClaim {
    /// Its name within the pod.
    pub name: Name,
    /// The claim; none, if none is needed.
    pub resource_claim_name: Option<Name>,
}

/// The claim for a pod's extended resources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtendedResourceClaim {
    /// The claim.
    pub resource_claim_name: Name,
    /// Which request of it stands for which resource of which container.
    pub request_mappings: Vec<ExtendedRequest>,
}

/// A request that stands for an extended resource of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ExtendedRequest {
    /// The container.
    pub container_name: Name,
    /// The resource.
    pub resource_name: Name,
    /// The request.
    pub request_name: Name,
}

/// Where a pod's priority comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PriorityFrom {
    /// The pod says it.
    #[default]
    Spec,
    /// The PriorityClass of this name, which nobody has looked up yet.
    Class(Name),
    /// The PriorityClass that is the global default, if there is one; nobody has looked yet.
    GlobalDefault,
}

impl PriorityFrom {
    fn new(priority: Option<i32>, class: Option<&Name>) -> Self {
        match (priority, class.filter(|name| !name.is_empty())) {
            (Some(_), _) => Self::Spec,
            (None, Some(name)) => Self::Class(name.clone()),
            (None, None) => Self::GlobalDefault,
        }
    }
}

/// The condition PodScheduled=False of a pod, as its status has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotScheduled {
    /// Why, in a word.
    pub reason: Name,
    /// Why, in a sentence.
    pub message: Name,
    /// Since when it is so.
    pub since: Option<Timestamp>,
}

/// What pods of one template have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodSpec {
    /// The pod's labels.
    pub labels: Labels,
    /// Those of the pod's annotations that a plugin has declared to read.
    pub annotations: Labels,
    /// The object that manages it.
    pub controller: Option<Owner>,
    /// Which scheduler is to place it.
    pub scheduler_name: Name,
    /// More is more important.
    pub priority: i32,
    /// It waits rather than evict others.
    pub never_preempts: bool,
    /// Names of the gates that hold it back.
    pub scheduling_gates: Vec<Name>,
    /// Labels that a node must have.
    pub node_selector: Labels,
    /// Its wishes about nodes.
    pub node_affinity: NodeAffinity,
    /// Its wishes about pods nearby.
    pub pod_affinity: PodAffinity,
    /// Its wishes about pods elsewhere.
    pub pod_anti_affinity: PodAffinity,
    /// What it tolerates.
    pub tolerations: Tolerations,
    /// How it wants to be spread.
    pub spread_constraints: Vec<SpreadConstraint>,
    /// What it asks for.
    pub requests: Requests,
    /// The host ports of its containers and sidecars.
    pub host_ports: Vec<HostPort>,
    /// The images of its init containers, containers and image volumes, normalized.
    pub images: Vec<Name>,
    /// How many containers it has, init containers included.
    pub container_count: usize,
    /// Its volumes.
    pub volumes: Vec<Volume>,
    /// The claims to devices that it names.
    pub resource_claims: Vec<PodResourceClaim>,
    /// The features that its node's kubelet must have.
    pub required_features: Vec<Name>,
    /// The extended resources that its containers and init containers name in requests or limits, in order: extenders
    /// go by them.
    pub extended_resources: Vec<Name>,
    /// What containers ask for of resources that devices may stand for.
    pub extended_demand: Vec<ExtendedDemand>,
    /// About how much memory it takes.
    pub bytes: usize,
}

/// What a container asks for of a resource that devices may stand for: an extended one, or a class by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtendedDemand {
    /// The container's name.
    pub container: Name,
    /// The container's place among the init containers and those after them.
    pub container_place: usize,
    /// It ends before the others start.
    pub is_short_lived: bool,
    /// The resource.
    pub resource: Name,
    /// Its place among the names of all that the container asks for.
    pub resource_place: usize,
    /// How much.
    pub count: i64,
}

/// What an entry of a list takes, with the texts in it, roughly.
const ENTRY_BYTES: usize = 96;

impl PodSpec {
    /// The same without the names of the claims to volumes; `None` if it names none.
    pub fn without_claim_names(&self) -> Option<Self> {
        let names_claim = |volume: &Volume| matches!(volume.source, VolumeSource::Claim { .. });
        self.volumes.iter().any(names_claim).then(|| {
            let mut same = self.clone();
            for volume in same.volumes.iter_mut().filter(|volume| names_claim(volume)) {
                volume.source = VolumeSource::Claim { name: Name::default() };
            }
            same
        })
    }

    /// Whether it has volumes whose claims are named after the pod, so that each pod has claims of its own.
    pub fn has_ephemeral_claims(&self) -> bool {
        self.volumes.iter().any(|volume| volume.source == VolumeSource::Ephemeral)
    }

    /// Knows from here on how much memory it takes.
    fn weighed(mut self) -> Self {
        let terms = |affinity: &PodAffinity| -> usize {
            let preferred = affinity.preferred.iter().map(|weighted| &weighted.term);
            affinity.required.iter().chain(preferred).map(AffinityTerm::entries).sum()
        };
        let node_terms =
            self.node_affinity.required.iter().flat_map(|selector| &selector.node_selector_terms);
        let node_terms = node_terms.chain(self.node_affinity.preferred.iter().map(|term| &term.preference));
        let node_entries = |term: &NodeSelectorTerm| {
            1 + comparisons(&term.match_expressions) + comparisons(&term.match_fields)
        };
        let spread = |constraint: &SpreadConstraint| {
            1 + constraint.label_selector.entries() + constraint.match_label_keys.len()
        };
        let requests = &self.requests;
        let scalars = requests.fit.scalars.len() + requests.held.scalars.len() + requests.score.scalars.len();
        let entries = terms(&self.pod_affinity)
            + terms(&self.pod_anti_affinity)
            + node_terms.map(node_entries).sum::<usize>()
            + self.spread_constraints.iter().map(spread).sum::<usize>()
            + scalars
            + self.labels.len()
            + self.annotations.len()
            + self.node_selector.len()
            + self.scheduling_gates.len()
            + self.resource_claims.len()
            + 2 * self.tolerations.len()
            + self.host_ports.len()
            + self.images.len()
            + self.volumes.len()
            + self.extended_resources.len()
            + self.extended_demand.len();
        self.bytes = size_of::<Self>() + entries * ENTRY_BYTES;
        self
    }

    /// Whether it says anything about other pods.
    pub fn has_pod_affinity(&self) -> bool {
        !self.pod_affinity.is_empty() || !self.pod_anti_affinity.is_empty()
    }
}

/// Terms about other pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PodAffinity {
    /// What must hold.
    pub required: Vec<AffinityTerm>,
    /// What raises or lowers a node's score.
    pub preferred: Vec<WeightedAffinityTerm>,
}

impl PodAffinity {
    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.preferred.is_empty()
    }
}

/// Pods that are selected by labels in some namespaces, counted by the value of a node label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffinityTerm {
    /// Which pods.
    pub selector: Selector,
    /// In which namespaces, by name.
    pub namespaces: Vec<Name>,
    /// In which namespaces besides, by their labels.
    pub namespace_selector: Selector,
    /// The node label whose values are the domains.
    pub topology_key: Name,
}

impl AffinityTerm {
    fn entries(&self) -> usize {
        1 + self.selector.entries() + self.namespaces.len() + self.namespace_selector.entries()
    }

    /// Whether the term selects a pod, whose namespace has these labels.
    pub fn matches(&self, pod: &Pod, namespace_labels: &Labels) -> bool {
        (self.namespaces.contains(&pod.namespace) || self.namespace_selector.matches(namespace_labels))
            && self.selector.matches(&pod.spec.labels)
    }
}

/// A term and how much it counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedAffinityTerm {
    /// 1 to 100.
    pub weight: i32,
    /// The term.
    pub term: AffinityTerm,
}

/// What to do where a spread constraint cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum WhenUnsatisfiable {
    /// The pod waits.
    DoNotSchedule,
    /// The node scores less.
    ScheduleAnyway,
}

/// Whether nodes that the pod cannot use count as domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum NodeInclusionPolicy {
    /// They do not.
    Honor,
    /// They do.
    Ignore,
}

/// How evenly a pod wants to be spread over the values of a node label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// How much fuller than the emptiest a domain may be.
    pub max_skew: i32,
    /// The node label whose values are the domains.
    pub topology_key: Name,
    /// What to do where it cannot be met.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// Which pods are counted.
    #[serde(default)]
    pub label_selector: Selector,
    /// With fewer domains than this, the emptiest counts as empty.
    #[serde(default)]
    pub min_domains: Option<i32>,
    /// Nodes outside the pod's node affinity.
    #[serde(default)]
    pub node_affinity_policy: Option<NodeInclusionPolicy>,
    /// Nodes with taints that the pod does not tolerate.
    #[serde(default)]
    pub node_taints_policy: Option<NodeInclusionPolicy>,
    /// Labels whose values on this pod narrow the selector.
    #[serde(default)]
    pub match_label_keys: Vec<Name>,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer).map(Self::from)
    }
}

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: WrittenSpec,
    #[serde(default)]
    status: WrittenStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenSpec {
    node_name: Option<Name>,
    scheduler_name: Option<Name>,
    priority: Option<i32>,
    priority_class_name: Option<Name>,
    preemption_policy: Option<PreemptionPolicy>,
    scheduling_gates: Vec<Named>,
    node_selector: Labels,
    affinity: WrittenAffinity,
    tolerations: Tolerations,
    topology_spread_constraints: Vec<SpreadConstraint>,
    containers: Vec<WrittenContainer>,
    init_containers: Vec<WrittenContainer>,
    resources: ResourceRequirements,
    overhead: ResourceList,
    volumes: Vec<Volume>,
    resource_claims: Vec<PodResourceClaim>,
    host_network: bool,
    host_users: Option<bool>,
    termination_grace_period_seconds: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
enum PreemptionPolicy {
    PreemptLowerPriority,
    Never,
}

#[derive(Deserialize)]
struct Named {
    name: Name,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenAffinity {
    node_affinity: NodeAffinity,
    pod_affinity: WrittenPodAffinity,
    pod_anti_affinity: WrittenPodAffinity,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WrittenPodAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    required: Vec<WrittenTerm>,
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    preferred: Vec<WrittenWeightedTerm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenWeightedTerm {
    weight: i32,
    pod_affinity_term: WrittenTerm,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTerm {
    label_selector: Option<Selector>,
    namespace_selector: Option<Selector>,
    #[serde(default)]
    namespaces: Vec<Name>,
    topology_key: Name,
    #[serde(default)]
    match_label_keys: Vec<Name>,
    #[serde(default)]
    mismatch_label_keys: Vec<Name>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenContainer {
    name: Option<Name>,
    image: Option<Name>,
    resources: ResourceRequirements,
    ports: Vec<WrittenPort>,
    restart_policy: Option<Name>,
    restart_policy_rules: Vec<RestartRule>,
}

#[derive(Deserialize)]
struct RestartRule {
    #[serde(default)]
    action: Option<Name>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPort {
    #[serde(default)]
    host_port: i32,
    #[serde(default, rename = "hostIP")]
    host_ip: Option<Name>,
    #[serde(default)]
    protocol: Protocol,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenStatus {
    phase: Option<Name>,
    start_time: Option<Timestamp>,
    nominated_node_name: Option<Name>,
    conditions: Vec<Condition>,
    container_statuses: Vec<ContainerStatus>,
    init_container_statuses: Vec<ContainerStatus>,
    resources: Option<ResourceRequirements>,
    allocated_resources: ResourceList,
    resource_claim_statuses: Vec<GeneratedClaim>,
    extended_resource_claim_status: Option<ExtendedResourceClaim>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type", default)]
    kind: Option<Name>,
    #[serde(default)]
    status: Option<Name>,
    #[serde(default)]
    reason: Option<Name>,
    #[serde(default)]
    message: Option<Name>,
    #[serde(default, rename = "lastTransitionTime")]
    since: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(default)]
    name: Option<Name>,
    #[serde(default)]
    resources: Option<ResourceRequirements>,
    #[serde(default)]
    allocated_resources: ResourceList,
}

impl WrittenContainer {
    fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    fn restarts_all_containers(&self) -> bool {
        self.restart_policy_rules.iter().any(|rule| rule.action.as_deref() == Some("RestartAllContainers"))
    }
}

impl WrittenStatus {
    fn is_finished(&self) -> bool {
        matches!(self.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    /// The first condition of a type, if it is true and was set for this reason.
    fn has_reason(&self, kind: &str, reason: &str) -> bool {
        self.conditions
            .iter()
            .find(|c| c.kind.as_deref() == Some(kind))
            .is_some_and(|c| c.reason.as_deref() == Some(reason))
    }

    fn was_preempted(&self) -> bool {
        self.has_reason("DisruptionTarget", "PreemptionByScheduler")
            && self
                .conditions
                .iter()
                .any(|c| c.kind.as_deref() == Some("DisruptionTarget") && c.status.as_deref() == Some("True"))
    }

    fn claims(&mut self) -> Option<PodClaimStatuses> {
        let generated = std::mem::take(&mut self.resource_claim_statuses);
        let extended = self.extended_resource_claim_status.take();
        let any = !generated.is_empty() || extended.is_some();
        any.then_some(PodClaimStatuses { generated, extended })
    }

    fn not_scheduled(&self) -> Option<NotScheduled> {
        let condition = self.conditions.iter().find(|c| c.kind.as_deref() == Some("PodScheduled"))?;
        (condition.status.as_deref() == Some("False")).then(|| NotScheduled {
            reason: condition.reason.clone().unwrap_or_default(),
            message: condition.message.clone().unwrap_or_default(),
            since: condition.since,
        })
    }

    fn resizes(&mut self) -> HashMap<Name, ResizeStatus> {
        let all = self.container_statuses.drain(..).chain(self.init_container_statuses.drain(..));
        all.filter_map(|status| {
            let resize =
                ResizeStatus { actuated: status.resources?.requests, allocated: status.allocated_resources };
            Some((status.name?, resize))
        })
        .collect()
    }
}

impl From<Written> for Pod {
    fn from(written: Written) -> Self {
        let Written { metadata, mut spec, mut status } = written;
        let namespace = metadata.namespace_or_default();
        let extended_resources = extended_resources(&spec);
        let extended_demand = extended_demand(&spec);
        let demand = demand(&mut spec, &mut status);
        Self {
            // A pod written by hand has no uid yet; its name tells it apart just as well.
            uid: if metadata.uid.is_empty() {
                format!("{namespace}/{}", metadata.name).into()
            } else {
                metadata.uid.clone()
            },
            namespace,
            name: metadata.name.clone(),
            version: ResourceVersion(metadata.resource_version.clone()),
            generation: metadata.generation,
            created: metadata.creation_timestamp,
            terminating: metadata.deletion_timestamp.is_some(),
            grace_period_seconds: metadata
                .deletion_grace_period_seconds
                .or(spec.termination_grace_period_seconds),
            preempted: status.was_preempted(),
            node: spec.node_name.clone().filter(|n| !n.is_empty()),
            nominated_node: status.nominated_node_name.take().filter(|n| !n.is_empty()),
            started: status.start_time,
            finished: status.is_finished(),
            priority_from: PriorityFrom::new(spec.priority, spec.priority_class_name.as_ref()),
            not_scheduled: status.not_scheduled().map(Arc::new),
            claims: status.claims().map(Arc::new),
            limits: demand.limits().map(Arc::new),
            spec: Arc::new(PodSpec {
                extended_resources,
                extended_demand,
                ..pod_spec(metadata, spec, &demand)
            }),
        }
    }
}

fn pod_spec(metadata: Meta, mut spec: WrittenSpec, demand: &PodDemand) -> PodSpec {
    let volumes = std::mem::take(&mut spec.volumes);
    let image_volumes = volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Image { reference } => Some(images::normalized(reference)),
        _ => None,
    });
    let images = (spec.init_containers.iter().chain(&spec.containers))
        .filter_map(|container| container.image.as_deref().map(images::normalized))
        .chain(image_volumes)
        .collect();
    let affinity = std::mem::take(&mut spec.affinity);
    let term = |written: WrittenTerm| affinity_term(written, &metadata);
    let spec = PodSpec {
        controller: metadata.controller().cloned(),
        scheduler_name: (spec.scheduler_name.take().filter(|name| !name.is_empty()))
            .unwrap_or_else(|| DEFAULT_SCHEDULER_NAME.into()),
        priority: spec.priority.unwrap_or(0),
        never_preempts: spec.preemption_policy == Some(PreemptionPolicy::Never),
        scheduling_gates: spec.scheduling_gates.drain(..).map(|g| g.name).collect(),
        node_affinity: affinity.node_affinity,
        pod_affinity: pod_affinity(affinity.pod_affinity, term),
        pod_anti_affinity: pod_affinity(affinity.pod_anti_affinity, term),
        requests: demand.requests(),
        host_ports: host_ports(&spec),
        images,
        container_count: spec.init_containers.len() + spec.containers.len(),
        volumes,
        resource_claims: std::mem::take(&mut spec.resource_claims),
        required_features: required_features(&spec),
        // They are found before the containers' resources are taken apart.
        extended_resources: Vec::new(),
        extended_demand: Vec::new(),
        node_selector: spec.node_selector,
        tolerations: spec.tolerations,
        spread_constraints: spec.topology_spread_constraints,
        labels: metadata.labels,
        annotations: metadata.annotations,
        bytes: 0,
    };
    spec.weighed()
}

fn extended_resources(spec: &WrittenSpec) -> Vec<Name> {
    let containers = spec.init_containers.iter().chain(&spec.containers);
    let mut names: Vec<Name> = containers.flat_map(|c| c.resources.extended()).cloned().collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn extended_demand(spec: &WrittenSpec) -> Vec<ExtendedDemand> {
    let mut demand = Vec::new();
    let inits = spec.init_containers.len();
    for (place, container) in spec.init_containers.iter().chain(&spec.containers).enumerate() {
        for (resource_place, (resource, quantity)) in container.resources.requests.iter().enumerate() {
            let is_meant = resources::is_extended(resource) || resource.starts_with(DEVICE_CLASS_RESOURCE);
            if let Some(count) = quantity.as_whole().filter(|count| is_meant && *count != 0) {
                demand.push(ExtendedDemand {
                    container: container.name.clone().unwrap_or_default(),
                    container_place: place,
                    is_short_lived: place < inits && !container.is_sidecar(),
                    resource: resource.clone(),
                    resource_place,
                    count,
                });
            }
        }
    }
    demand
}

fn pod_affinity(written: WrittenPodAffinity, term: impl Fn(WrittenTerm) -> AffinityTerm) -> PodAffinity {
    PodAffinity {
        required: written.required.into_iter().map(&term).collect(),
        preferred: (written.preferred.into_iter())
            .map(|weighted| WeightedAffinityTerm {
                weight: weighted.weight,
                term: term(weighted.pod_affinity_term),
            })
            .collect(),
    }
}

/// The API server merges the label keys into the selector when a pod is made. For a pod that was never sent to one this
/// does the same; for any other it changes nothing.
fn affinity_term(written: WrittenTerm, metadata: &Meta) -> AffinityTerm {
    let namespaces = if written.namespaces.is_empty() && written.namespace_selector.is_none() {
        vec![metadata.namespace_or_default()]
    } else {
        written.namespaces
    };
    let own_value = |operator, keys: Vec<Name>| {
        keys.into_iter().filter_map(move |key| {
            let value = metadata.labels.get(&key)?.clone();
            Some(Requirement { key, operator, values: vec![value] })
        })
    };
    AffinityTerm {
        selector: written
            .label_selector
            .unwrap_or_default()
            .and(own_value(Operator::In, written.match_label_keys))
            .and(own_value(Operator::NotIn, written.mismatch_label_keys)),
        namespaces,
        namespace_selector: written.namespace_selector.unwrap_or_default(),
        topology_key: written.topology_key,
    }
}

fn demand(spec: &mut WrittenSpec, status: &mut WrittenStatus) -> PodDemand {
    let mut resizes = status.resizes();
    let mut container = |c: &mut WrittenContainer, resizable: bool| ContainerDemand {
        requests: std::mem::take(&mut c.resources.requests),
        limits: std::mem::take(&mut c.resources.limits),
        status: match &c.name {
            Some(name) if resizable => resizes.remove(name),
            _ => None,
        },
        sidecar: c.is_sidecar(),
    };
    PodDemand {
        containers: (spec.containers.iter_mut()).map(|c| container(c, true)).collect(),
        init_containers: (spec.init_containers.iter_mut())
            .map(|c| {
                let sidecar = c.is_sidecar();
                container(c, sidecar)
            })
            .collect(),
        pod_level: std::mem::take(&mut spec.resources.requests),
        pod_level_limits: std::mem::take(&mut spec.resources.limits),
        pod_level_status: status.resources.take().map(|resources| ResizeStatus {
            actuated: resources.requests,
            allocated: std::mem::take(&mut status.allocated_resources),
        }),
        overhead: std::mem::take(&mut spec.overhead),
        resize_infeasible: status.has_reason("PodResizePending", "Infeasible"),
    }
}

fn host_ports(spec: &WrittenSpec) -> Vec<HostPort> {
    let sidecars = spec.init_containers.iter().filter(|c| c.is_sidecar());
    sidecars
        .chain(&spec.containers)
        .flat_map(|container| &container.ports)
        .filter(|port| port.host_port > 0)
        .map(|port| HostPort {
            address: (port.host_ip.clone().filter(|ip| !ip.is_empty()))
                .unwrap_or_else(|| ALL_ADDRESSES.into()),
            protocol: port.protocol,
            port: port.host_port,
        })
        .collect()
}

/// What Kubernetes 1.36 infers from a pod's spec about the kubelet it needs.
fn required_features(spec: &WrittenSpec) -> Vec<Name> {
    let mut features = Vec::new();
    let mut containers = spec.init_containers.iter().chain(&spec.containers);
    if containers.any(WrittenContainer::restarts_all_containers) {
        features.push("RestartAllContainersOnContainerExits".into());
    }
    if spec.host_network && spec.host_users == Some(false) {
        features.push("UserNamespacesHostNetworkSupport".into());
    }
    features
}
