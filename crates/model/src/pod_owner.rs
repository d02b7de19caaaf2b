//! Namespaces, and the objects that stand behind pods: services, controllers, disruption budgets.

use serde::Deserialize;

use crate::{Key, Labels, Name, Pod, meta::Meta, selector::Selector};

/// A namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct Namespace {
    /// Its name.
    pub name: Name,
    /// Its labels.
    pub labels: Labels,
}

impl Namespace {
    /// Its name.
    pub fn key(&self) -> Key {
        Key::new("", self.name.clone())
    }
}

impl<'de> Deserialize<'de> for Namespace {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(default)]
            metadata: Meta,
        }
        let Written { metadata } = Written::deserialize(deserializer)?;
        Ok(Self { name: metadata.name, labels: metadata.labels })
    }
}

/// Which of the objects that select pods this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PodOwnerKind {
    /// A service.
    Service,
    /// A replication controller.
    ReplicationController,
    /// A replica set.
    ReplicaSet,
    /// A stateful set.
    StatefulSet,
}

/// A service or a controller: something that selects pods of its namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct PodOwner {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The pods it selects. A service without selector selects nothing.
    pub selector: Selector,
}

impl PodOwner {
    /// `namespace/name`.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }

    fn new(metadata: Meta, selector: Selector) -> Self {
        Self { namespace: metadata.namespace_or_default(), name: metadata.name, selector }
    }
}

/// A service or a replication controller: `spec.selector` is a plain map.
#[derive(Deserialize)]
pub(crate) struct SelectsByMap {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: MapSpec,
}

#[derive(Default, Deserialize)]
struct MapSpec {
    #[serde(default)]
    selector: Option<Labels>,
}

impl From<SelectsByMap> for PodOwner {
    fn from(written: SelectsByMap) -> Self {
        let selector = written.spec.selector.as_ref().map(Selector::equal_to);
        Self::new(written.metadata, selector.unwrap_or_default())
    }
}

/// A replica set or a stateful set: `spec.selector` is a label selector.
#[derive(Deserialize)]
pub(crate) struct SelectsBySelector {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: SelectorSpec,
}

#[derive(Default, Deserialize)]
struct SelectorSpec {
    #[serde(default)]
    selector: Option<Selector>,
}

impl From<SelectsBySelector> for PodOwner {
    fn from(written: SelectsBySelector) -> Self {
        Self::new(written.metadata, written.spec.selector.unwrap_or_default())
    }
}

/// How many pods of a kind may be disrupted.
#[derive(Clone, Debug, PartialEq)]
pub struct PodDisruptionBudget {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The pods it protects.
    pub selector: Selector,
    /// How many may be disrupted now.
    pub disruptions_allowed: i32,
    /// Pods whose disruption is under way and counted already.
    pub disrupted_pods: Vec<Name>,
}

impl PodDisruptionBudget {
    /// Whether it protects a pod from preemption. An empty selector protects nothing there, and a pod without labels is not
    /// protected.
    pub fn protects(&self, pod: &Pod) -> bool {
        !pod.spec.labels.is_empty()
            && self.namespace == pod.namespace
            && !self.selector.is_empty()
            && self.selector.matches(&pod.spec.labels)
    }

    /// `namespace/name`.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }
}

impl<'de> Deserialize<'de> for PodDisruptionBudget {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(default)]
            metadata: Meta,
            #[serde(default)]
            spec: SelectorSpec,
            #[serde(default)]
            status: Status,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Status {
            disruptions_allowed: i32,
            disrupted_pods: Labels,
        }
        let written = Written::deserialize(deserializer)?;
        Ok(Self {
            namespace: written.metadata.namespace_or_default(),
            name: written.metadata.name,
            selector: written.spec.selector.unwrap_or_default(),
            disruptions_allowed: written.status.disruptions_allowed,
            disrupted_pods: (written.status.disrupted_pods.iter()).map(|(name, _)| name.clone()).collect(),
        })
    }
}
