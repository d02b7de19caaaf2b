//! Lets the plugin that found room for a pod make it.

use std::sync::Arc;

use supercargo_framework::{
    binding_signal::CalledOff,
    handle::View,
    preemption::{Nomination, PreemptionCycle},
};
use supercargo_model::Pod;

use super::Scheduler;
use crate::status;

impl Scheduler {
    /// Has room made for a pod as a plugin found it.
    pub(super) fn preempt(&mut self, pod: &Arc<Pod>, nomination: &Nomination) {
        if let Some(profile) = self.engine.profiles().shared(&pod.spec.scheduler_name) {
            profile.profile.preempt(self, pod, nomination);
        }
    }
}

impl PreemptionCycle for Scheduler {
    fn view(&self) -> View<'_> {
        View { cluster: self.engine.cluster(), nominations: self.engine.nominations(), pending: &self.queue }
    }

    fn call_off(&mut self, uid: &str, plugin: &str) -> bool {
        let assumed = self.assumed.get(uid);
        assumed.is_some_and(|assumed| assumed.signal.call_off(CalledOff::Preempted(plugin.into())))
    }

    fn clear_nomination(&mut self, pod: &Arc<Pod>) {
        self.reporter.nominates(pod, status::NominatingInfo::Clear);
    }
}
