//! What people and controllers are told: events, and the pods' own statuses.

use supercargo_model::{Name, Pod};

use super::status_writer::{StatusWriter, Statuses};
use crate::{
    events::{self, Busy, Event, EventRecorder},
    lease::Lease,
    status::{Condition, NominatingInfo, Reason},
    world::SharedWorld,
};

/// Tells.
pub(super) struct Reporter {
    recorder: EventRecorder,
    writer: StatusWriter,
}

impl Reporter {
    pub(super) fn new(world: &SharedWorld, host: String, lease: Option<Lease>) -> Self {
        Self { recorder: events::open(world, host), writer: StatusWriter::new(world, lease) }
    }

    /// Bindings are under way as long as the answer lives: what can wait stands back.
    pub(super) fn busy(&self) -> Busy {
        self.recorder.busy()
    }

    /// How many events were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.recorder.dropped()
    }

    /// Events, for whoever records them in a task of its own.
    pub(super) fn recorder(&self) -> &EventRecorder {
        &self.recorder
    }

    /// Pods' statuses, for whoever writes about pods in a task of its own.
    pub(super) fn statuses(&self) -> &Statuses {
        self.writer.statuses()
    }

    /// A pod was bound. Why there is told only if it is said.
    pub(super) fn scheduled(&self, pod: &Pod, node: &Name, because: Option<&str>) {
        self.statuses().forget(&pod.uid);
        let mut event = Event::scheduled(pod, node);
        if let Some(because) = because {
            event.note.push_str(&format!(": {because}"));
        }
        self.recorder.record(event);
    }

    /// A pod was not scheduled. What becomes of its nominated node, if anything does.
    pub(super) fn failed(&self, pod: &Pod, reason: Reason, message: &str, nomination: NominatingInfo) {
        self.recorder.record(Event::failed_scheduling(pod, message));
        let condition = Condition { reason, message: message.to_owned(), generation: pod.generation };
        self.statuses().want(pod, Some(condition), nomination);
    }

    /// A pod was not scheduled that is gone by now.
    pub(super) fn failed_and_gone(&self, pod: &Pod, message: &str) {
        self.recorder.record(Event::failed_scheduling(pod, message));
    }

    /// A pod is not tried because its deletion was asked for.
    pub(super) fn skips_deleting(&self, pod: &Pod) {
        self.recorder.record(Event::skips_deleting(pod));
    }

    /// What a pod's status says about its nominated node changes.
    pub(super) fn nominates(&self, pod: &Pod, nomination: NominatingInfo) {
        self.statuses().want(pod, None, nomination);
    }

    /// A pod that waited cannot be read any more.
    pub(super) fn unreadable(&self, pod: &Pod, reason: &str) {
        let message = format!("the pod cannot be read: {reason}");
        self.recorder.record(Event::failed_scheduling(pod, &message));
    }

    /// A pod is gone.
    pub(super) fn forget(&self, uid: &Name) {
        self.statuses().forget(uid);
    }
}
