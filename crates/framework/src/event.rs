//! Events in the cluster, and who may be helped by them.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use supercargo_model::{ApiResource, Cluster, Kind, Node, Pod, object::Object};

/// What an event happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are Kubernetes' own names")]
pub enum EventResource {
    Node,
    /// Any pod. Plugins ask for it; events tell bound pods from others.
    Pod,
    /// A pod that is bound to a node.
    AssignedPod,
    /// A pod that waits for a node. What happens to it concerns only itself.
    UnscheduledPod,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CsiNode,
    CsiDriver,
    CsiStorageCapacity,
    VolumeAttachment,
    ResourceClaim,
    ResourceSlice,
    DeviceClass,
    /// A kind that a plugin has declared.
    Custom(&'static ApiResource),
}

/// All but custom ones.
const RESOURCES: [EventResource; 14] = [
    EventResource::Node,
    EventResource::Pod,
    EventResource::AssignedPod,
    EventResource::UnscheduledPod,
    EventResource::PersistentVolume,
    EventResource::PersistentVolumeClaim,
    EventResource::StorageClass,
    EventResource::CsiNode,
    EventResource::CsiDriver,
    EventResource::CsiStorageCapacity,
    EventResource::VolumeAttachment,
    EventResource::ResourceClaim,
    EventResource::ResourceSlice,
    EventResource::DeviceClass,
];

impl EventResource {
    /// What a change of an object of a kind wakes pods with; nothing, if kube-scheduler lets no pod be tried again for it.
    /// Of pods, events tell those that are bound from others.
    pub fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Node => Some(Self::Node),
            Kind::Pod => Some(Self::Pod),
            Kind::PersistentVolume => Some(Self::PersistentVolume),
            Kind::PersistentVolumeClaim => Some(Self::PersistentVolumeClaim),
            Kind::StorageClass => Some(Self::StorageClass),
            Kind::CsiNode => Some(Self::CsiNode),
            Kind::CsiDriver => Some(Self::CsiDriver),
            Kind::CsiStorageCapacity => Some(Self::CsiStorageCapacity),
            Kind::VolumeAttachment => Some(Self::VolumeAttachment),
            Kind::ResourceClaim => Some(Self::ResourceClaim),
            Kind::ResourceSlice => Some(Self::ResourceSlice),
            Kind::DeviceClass => Some(Self::DeviceClass),
            Kind::Custom(api) => Some(Self::Custom(api)),
            Kind::Namespace
            | Kind::Service
            | Kind::ReplicationController
            | Kind::ReplicaSet
            | Kind::StatefulSet
            | Kind::PodDisruptionBudget
            | Kind::ConfigMap => None,
        }
    }

    /// kube-scheduler's name for it, as metrics spell it.
    pub fn name(self) -> Cow<'static, str> {
        let name = match self {
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::AssignedPod => "AssignedPod",
            Self::UnscheduledPod => "UnschedulablePod",
            Self::PersistentVolume => "PersistentVolume",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::StorageClass => "storage.k8s.io/StorageClass",
            Self::CsiNode => "storage.k8s.io/CSINode",
            Self::CsiDriver => "storage.k8s.io/CSIDriver",
            Self::CsiStorageCapacity => "storage.k8s.io/CSIStorageCapacity",
            Self::VolumeAttachment => "storage.k8s.io/VolumeAttachment",
            Self::ResourceClaim => "resource.k8s.io/ResourceClaim",
            Self::ResourceSlice => "resource.k8s.io/ResourceSlice",
            Self::DeviceClass => "resource.k8s.io/DeviceClass",
            Self::Custom(api) => return Cow::Owned(api.qualified_name()),
        };
        Cow::Borrowed(name)
    }

    /// Its place in [`RESOURCES`]; a custom one has none.
    fn place(self) -> Result<usize, &'static ApiResource> {
        Ok(match self {
            Self::Node => 0,
            Self::Pod => 1,
            Self::AssignedPod => 2,
            Self::UnscheduledPod => 3,
            Self::PersistentVolume => 4,
            Self::PersistentVolumeClaim => 5,
            Self::StorageClass => 6,
            Self::CsiNode => 7,
            Self::CsiDriver => 8,
            Self::CsiStorageCapacity => 9,
            Self::VolumeAttachment => 10,
            Self::ResourceClaim => 11,
            Self::ResourceSlice => 12,
            Self::DeviceClass => 13,
            Self::Custom(api) => return Err(api),
        })
    }

    fn covers(self, other: Self) -> bool {
        self == other || (self == Self::Pod && matches!(other, Self::AssignedPod | Self::UnscheduledPod))
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ActionType {
    Add,
    Delete,
    /// As an interest: any change. As an event: a change that is none of those below.
    Update,
    UpdateNodeAllocatable,
    UpdateNodeLabel,
    /// Uncordoning a node counts as well.
    UpdateNodeTaint,
    UpdateNodeCondition,
    UpdateNodeAnnotation,
    UpdateNodeDeclaredFeature,
    UpdatePodLabel,
    UpdatePodScaleDown,
    UpdatePodToleration,
    UpdatePodSchedulingGatesEliminated,
    UpdatePodGeneratedResourceClaim,
}

const ACTIONS: [ActionType; 14] = [
    ActionType::Add,
    ActionType::Delete,
    ActionType::Update,
    ActionType::UpdateNodeAllocatable,
    ActionType::UpdateNodeLabel,
    ActionType::UpdateNodeTaint,
    ActionType::UpdateNodeCondition,
    ActionType::UpdateNodeAnnotation,
    ActionType::UpdateNodeDeclaredFeature,
    ActionType::UpdatePodLabel,
    ActionType::UpdatePodScaleDown,
    ActionType::UpdatePodToleration,
    ActionType::UpdatePodSchedulingGatesEliminated,
    ActionType::UpdatePodGeneratedResourceClaim,
];

impl ActionType {
    fn is_update(self) -> bool {
        !matches!(self, Self::Add | Self::Delete)
    }
}

/// Something that happened to an object of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterEvent {
    /// What it happened to.
    pub resource: EventResource,
    /// What happened.
    pub action: ActionType,
}

impl ClusterEvent {
    /// An event.
    pub fn new(resource: EventResource, action: ActionType) -> Self {
        Self { resource, action }
    }

    /// Every event that can happen to built-in kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        RESOURCES.into_iter().flat_map(|resource| ACTIONS.map(|action| Self { resource, action }))
    }

    /// kube-scheduler's name for it, as metrics spell it.
    pub fn label(self) -> String {
        format!("{}{:?}", self.resource.name(), self.action)
    }
}

/// A set of events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSet {
    /// A bit for each action, by resource.
    actions: [u16; RESOURCES.len()],
    /// The same of custom kinds.
    custom: BTreeMap<&'static ApiResource, u16>,
}

impl EventSet {
    /// Adds an event.
    pub fn insert(&mut self, event: ClusterEvent) {
        let actions = match event.resource.place() {
            Ok(place) => &mut self.actions[place],
            Err(api) => self.custom.entry(api).or_default(),
        };
        *actions |= 1 << event.action as u16;
    }

    /// Whether an event is in the set.
    pub fn contains(&self, event: ClusterEvent) -> bool {
        let actions = match event.resource.place() {
            Ok(place) => self.actions[place],
            Err(api) => self.custom.get(api).copied().unwrap_or_default(),
        };
        actions & (1 << event.action as u16) != 0
    }

    /// The events of both sets.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        for (mine, more) in self.actions.iter_mut().zip(other.actions) {
            *mine |= more;
        }
        for (api, more) in &other.custom {
            *self.custom.entry(api).or_default() |= more;
        }
        self
    }

    /// The events, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = ClusterEvent> {
        let custom = self.custom.keys().flat_map(|api| {
            let resource = EventResource::Custom(api);
            ACTIONS.map(|action| ClusterEvent { resource, action })
        });
        ClusterEvent::all().chain(custom).filter(|event| self.contains(*event))
    }
}

impl FromIterator<ClusterEvent> for EventSet {
    fn from_iter<T: IntoIterator<Item = ClusterEvent>>(events: T) -> Self {
        let mut set = Self::default();
        events.into_iter().for_each(|event| set.insert(event));
        set
    }
}

/// An event, with the object before and after it.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A node: before, after.
    Node(Option<&'a Node>, Option<&'a Node>),
    /// A pod: before, after.
    Pod(Option<&'a Pod>, Option<&'a Pod>),
    /// Anything else: before, after.
    Other(Option<&'a Object>, Option<&'a Object>),
}

impl Change<'_> {
    /// A copy that can be kept for pods that are being scheduled while it happens.
    pub fn kept(&self) -> KeptChange {
        match *self {
            Self::Node(before, after) => KeptChange::Node(before.cloned(), after.cloned()),
            Self::Pod(before, after) => KeptChange::Pod(before.cloned(), after.cloned()),
            Self::Other(before, after) => KeptChange::Other(before.cloned(), after.cloned()),
        }
    }
}

/// A change that outlives the objects it is about.
#[derive(Clone, Debug)]
pub enum KeptChange {
    /// A node: before, after.
    Node(Option<Node>, Option<Node>),
    /// A pod: before, after.
    Pod(Option<Pod>, Option<Pod>),
    /// Anything else: before, after.
    Other(Option<Object>, Option<Object>),
}

impl KeptChange {
    /// The change, as hints look at it.
    pub fn change(&self) -> Change<'_> {
        match self {
            Self::Node(before, after) => Change::Node(before.as_ref(), after.as_ref()),
            Self::Pod(before, after) => Change::Pod(before.as_ref(), after.as_ref()),
            Self::Other(before, after) => Change::Other(before.as_ref(), after.as_ref()),
        }
    }
}

/// A closer look: can this change make this pod schedulable? The cluster has changed already.
pub type Hint = Arc<dyn Fn(&Cluster, &Pod, &Change<'_>) -> bool + Send + Sync>;

/// An event that a plugin wants its refused pods to be tried again after.
#[derive(Clone)]
pub struct EventInterest {
    /// What it happens to.
    pub resource: EventResource,
    /// What happens, any of these.
    pub actions: Vec<ActionType>,
    /// A closer look; without one the event always helps.
    pub hint: Option<Hint>,
    /// What happens to a pod before it is bound concerns others too.
    pub of_others: bool,
}

impl EventInterest {
    /// An event that always helps.
    pub fn new(resource: EventResource, actions: impl IntoIterator<Item = ActionType>) -> Self {
        Self { resource, actions: actions.into_iter().collect(), hint: None, of_others: false }
    }

    /// Also for what happens to other pods before they are bound, such as the members of a group that wait for each other.
    /// Otherwise such an event concerns its own pod alone.
    #[must_use]
    pub fn of_others(mut self) -> Self {
        self.of_others = true;
        self
    }

    /// With a closer look at the whole: the cluster, the waiting pod, and the change.
    #[must_use]
    pub fn if_in(
        mut self,
        helps: impl Fn(&Cluster, &Pod, &Change<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.hint = Some(Arc::new(helps));
        self
    }

    /// With a closer look at nodes: before, after.
    #[must_use]
    pub fn if_node(
        self,
        helps: impl Fn(&Pod, Option<&Node>, Option<&Node>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(move |pod, change| match change {
            Change::Node(before, after) => helps(pod, *before, *after),
            _ => true,
        })
    }

    /// With a closer look at pods: before, after.
    #[must_use]
    pub fn if_pod(
        self,
        helps: impl Fn(&Pod, Option<&Pod>, Option<&Pod>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(move |pod, change| match change {
            Change::Pod(before, after) => helps(pod, *before, *after),
            _ => true,
        })
    }

    /// With a closer look at another object: before, after.
    #[must_use]
    pub fn if_object(
        self,
        helps: impl Fn(&Pod, Option<&Object>, Option<&Object>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.with(move |pod, change| match change {
            Change::Other(before, after) => helps(pod, *before, *after),
            _ => true,
        })
    }

    fn with(self, hint: impl Fn(&Pod, &Change<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.if_in(move |_, pod, change| hint(pod, change))
    }

    /// Whether events of this kind are asked for. Who asks for updates asks for every kind of update.
    pub fn covers(&self, resource: EventResource, action: ActionType) -> bool {
        let wanted = |a: &ActionType| *a == action || (*a == ActionType::Update && action.is_update());
        self.resource.covers(resource) && self.actions.iter().any(wanted)
    }

    /// Whether a change of this kind can make a pod schedulable.
    pub fn helps(
        &self,
        cluster: &Cluster,
        resource: EventResource,
        action: ActionType,
        pod: &Pod,
        change: &Change<'_>,
    ) -> bool {
        self.covers(resource, action) && self.hint.as_ref().is_none_or(|hint| hint(cluster, pod, change))
    }
}
