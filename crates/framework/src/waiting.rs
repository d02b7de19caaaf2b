//! The pods that Permit plugins make wait, for whoever lets them through: gang plugins let the members of a group through
//! together.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use supercargo_model::{Name, Pod};

use crate::{points::PermitHandle, status::Status};

/// A pod that has a node in the scheduler's books, and waits for permissions.
#[derive(Clone, Debug)]
pub struct WaitingPod {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The node that is kept for it.
    pub node: Name,
    /// The plugins that make it wait, each with the way to its permission.
    pub permits: Vec<(Name, PermitHandle)>,
}

impl WaitingPod {
    /// Gives the permission of one plugin. The pod goes on when it has all.
    pub fn allow(&self, plugin: &str) {
        self.permits.iter().filter(|(name, _)| **name == *plugin).for_each(|(_, permit)| permit.allow());
    }

    /// Refuses the pod, in the name of a plugin.
    pub fn reject(&self, plugin: &str, why: impl Into<String>) {
        let why = why.into();
        if let Some((_, permit)) = self.permits.iter().find(|(name, _)| **name == *plugin) {
            permit.refuse(Status::unschedulable(why));
        } else if let Some((_, permit)) = self.permits.first() {
            permit.refuse(Status::unschedulable(why));
        }
    }
}

/// The pods that wait for permissions, by uid. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct WaitingPods(Arc<Mutex<BTreeMap<Name, WaitingPod>>>);

impl WaitingPods {
    /// A pod begins to wait.
    pub fn insert(&self, waiting: WaitingPod) {
        self.locked().insert(waiting.pod.uid.clone(), waiting);
    }

    /// A pod waits no longer.
    pub fn remove(&self, uid: &str) {
        self.locked().remove(uid);
    }

    /// A pod, if it waits.
    pub fn get(&self, uid: &str) -> Option<WaitingPod> {
        self.locked().get(uid).cloned()
    }

    /// All of them, by uid.
    pub fn list(&self) -> Vec<WaitingPod> {
        self.locked().values().cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<Name, WaitingPod>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
