//! Reserve, Permit and the plugins of the binding cycle.

use std::sync::Arc;

use supercargo_model::{Cluster, Name, Pod};

use super::{Named, Profile, rejection};
use crate::{
    assumed::ReserveCycle,
    points::{Bind, PermitOutcome, PostBind, PreBind},
    preemption::Rejection,
    waiting::{MAX_PERMIT_WAIT, PermitWait},
};

impl Profile {
    /// Runs all Reserve plugins; if one refuses, all are told to forget the pod again.
    pub fn reserve(
        &self,
        cycle: &mut ReserveCycle<'_>,
        pod: &Arc<Pod>,
        node: &Name,
    ) -> Result<(), Rejection> {
        for Named { name, plugin } in &self.reserve {
            if let Err(status) = plugin.reserve(cycle, pod, node) {
                self.unreserve(pod, node);
                return Err(rejection(name, status));
            }
        }
        Ok(())
    }

    /// Tells all Reserve plugins, in the opposite order, that the pod will not be placed after all.
    pub fn unreserve(&self, pod: &Pod, node: &str) {
        for Named { plugin, .. } in self.reserve.iter().rev() {
            plugin.unreserve(pod, node);
        }
    }

    /// Asks the Permit plugins, all of them unless one refuses. Those that make the pod wait.
    pub fn ask_permission(
        &self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        node: &Name,
    ) -> Result<Vec<PermitWait>, Rejection> {
        let mut waits = Vec::new();
        for Named { name, plugin } in &self.permit {
            match plugin.permit(cluster, pod, node) {
                Ok(PermitOutcome::Granted) => {}
                Ok(PermitOutcome::Wait { timeout, handle }) => {
                    let timeout = timeout.min(MAX_PERMIT_WAIT);
                    waits.push(PermitWait { plugin: name.clone(), timeout, handle });
                }
                Err(status) => return Err(rejection(name, status)),
            }
        }
        Ok(waits)
    }

    /// The first PreBind plugin that has something to do for a pod.
    pub fn first_to_pre_bind(&self, pod: &Pod, node: &str) -> Option<Name> {
        let mut plugins = self.pre_bind.iter();
        plugins.find(|named| named.plugin.is_needed(pod, node)).map(|named| named.name.clone())
    }

    /// The PreBind plugins, in their order.
    pub fn pre_binders(&self) -> impl Iterator<Item = (&Name, &Arc<dyn PreBind>)> {
        self.pre_bind.iter().map(|named| (&named.name, &named.plugin))
    }

    /// The Bind plugins, in their order.
    pub fn binders(&self) -> impl Iterator<Item = (&Name, &Arc<dyn Bind>)> {
        self.bind.iter().map(|named| (&named.name, &named.plugin))
    }

    /// The PostBind plugins, in their order.
    pub fn post_binders(&self) -> impl Iterator<Item = (&Name, &Arc<dyn PostBind>)> {
        self.post_bind.iter().map(|named| (&named.name, &named.plugin))
    }
}
