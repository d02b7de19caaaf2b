//! What people and controllers are told: events, and the pods' own statuses.

use supercargo_model::{Name, Pod};
use supercargo_plugins::dynamic_scoring::Place;

use super::status_writer::StatusWriter;
use crate::{
    events::{self, Busy, Event, Recorder, Reference},
    lease::Lease,
    status::{Nomination, NotScheduled, Reason},
    world::SharedWorld,
};

/// Tells.
pub(super) struct Teller {
    recorder: Recorder,
    statuses: StatusWriter,
}

impl Teller {
    pub(super) fn new(world: &SharedWorld, host: String, lease: Option<Lease>) -> Self {
        Self { recorder: events::open(world, host), statuses: StatusWriter::new(world, lease) }
    }

    /// Bindings are under way as long as the answer lives: what can wait stands back.
    pub(super) fn busy(&self) -> Busy {
        self.recorder.busy()
    }

    /// How many events were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.recorder.dropped()
    }

    /// A pod was bound.
    pub(super) fn scheduled(&self, pod: &Pod, node: &Name) {
        self.statuses.forget(&pod.uid);
        self.recorder.record(Event::scheduled(pod, node));
    }

    /// A pod was not scheduled. What becomes of its nominated node, if anything does.
    pub(super) fn failed(&self, pod: &Pod, reason: Reason, message: &str, nomination: Nomination) {
        self.recorder.record(Event::failed_scheduling(pod, message));
        let condition = NotScheduled { reason, message: message.to_owned(), generation: pod.generation };
        self.statuses.want(pod.key(), &pod.uid, pod.nominated_node.as_ref(), Some(condition), nomination);
    }

    /// A pod was evicted for another.
    pub(super) fn preempted(&self, victim: &Pod, preemptor: &Pod, node: &Name) {
        self.recorder.record(Event::preempted(victim, preemptor, node));
    }

    /// No room is made for a pod any more.
    pub(super) fn not_nominated(&self, pod: &Pod) {
        let nominated = pod.nominated_node.as_ref();
        self.statuses.want(pod.key(), &pod.uid, nominated, None, Nomination::Clear);
    }

    /// A pod that waited cannot be read any more.
    pub(super) fn unreadable(&self, pod: &Pod, reason: &str) {
        let message = format!("the pod cannot be read: {reason}");
        self.recorder.record(Event::failed_scheduling(pod, &message));
    }

    /// A text of DynamicScoring cannot be read.
    pub(super) fn broken_preferences(&self, place: &Place, scheduler: &Name, uid: &Name, reason: &str) {
        let note = format!("{}: {reason}. What held before still holds.", place.key);
        let map = Reference::config_map(&place.config_map, uid);
        self.recorder.record(Event::broken_preferences(map, scheduler, note));
    }

    /// A pod is gone.
    pub(super) fn forget(&self, uid: &Name) {
        self.statuses.forget(uid);
    }
}
