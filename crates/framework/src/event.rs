//! Events in the cluster, and who may be helped by them.

use std::sync::Arc;

use supercargo_model::{Node, Pod, object::Object};

/// What an event happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are Kubernetes' own names")]
pub enum Resource {
    Node,
    /// A bound pod; or, for updates, the unscheduled pod itself.
    Pod,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CsiNode,
    CsiDriver,
    CsiStorageCapacity,
    VolumeAttachment,
    ResourceClaim,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Action {
    Add,
    Delete,
    /// Any change that is not listed below.
    Update,
    UpdateNodeAllocatable,
    UpdateNodeLabel,
    /// Cordoning a node counts as a taint.
    UpdateNodeTaint,
    UpdateNodeDeclaredFeature,
    UpdatePodLabel,
    UpdatePodScaleDown,
    UpdatePodToleration,
    UpdatePodSchedulingGatesEliminated,
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

/// A closer look: can this change make this pod schedulable?
pub type Hint = Arc<dyn Fn(&Pod, &Change<'_>) -> bool + Send + Sync>;

/// An event that a plugin wants its refused pods to be tried again after.
#[derive(Clone)]
pub struct EventInterest {
    /// What it happens to.
    pub resource: Resource,
    /// What happens, any of these.
    pub actions: Vec<Action>,
    /// A closer look; without one the event always helps.
    pub hint: Option<Hint>,
}

impl EventInterest {
    /// An event that always helps.
    pub fn new(resource: Resource, actions: impl IntoIterator<Item = Action>) -> Self {
        Self { resource, actions: actions.into_iter().collect(), hint: None }
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

    fn with(mut self, hint: impl Fn(&Pod, &Change<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.hint = Some(Arc::new(hint));
        self
    }

    /// Whether a change of this kind can make a pod schedulable.
    pub fn helps(&self, resource: Resource, action: Action, pod: &Pod, change: &Change<'_>) -> bool {
        self.resource == resource
            && self.actions.contains(&action)
            && self.hint.as_ref().is_none_or(|hint| hint(pod, change))
    }
}
