//! The pods that wait for their cycle, in the order of the profile.

use std::{cmp::Ordering, collections::VecDeque, sync::Arc};

use supercargo_framework::{points::QueuedPod, preemption::Rejection, profile::Profile};
use supercargo_model::Pod;

/// Whether a pod was let into the queue.
pub enum Admission {
    /// It waits for its turn.
    Queued,
    /// A PreEnqueue plugin holds it back.
    Held(Rejection),
}

/// Pods in the order in which they are to be scheduled.
#[derive(Default)]
pub struct Queue {
    /// Sorted, the next pod first: those that come later mostly go to the end.
    pods: VecDeque<QueuedPod>,
    arrivals: u64,
}

impl Queue {
    /// Lets a pod in, unless a PreEnqueue plugin holds it back.
    pub fn push(&mut self, profile: &Profile, pod: Arc<Pod>) -> Admission {
        if let Err(rejection) = profile.pre_enqueue(&pod) {
            return Admission::Held(rejection);
        }
        let queued = QueuedPod { pod, arrival: self.arrivals };
        self.arrivals += 1;
        let place = self.pods.partition_point(|other| order(profile, other, &queued) == Ordering::Less);
        self.pods.insert(place, queued);
        Admission::Queued
    }

    /// The next pod.
    pub fn pop(&mut self) -> Option<Arc<Pod>> {
        self.pods.pop_front().map(|queued| queued.pod)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.pods.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.pods.is_empty()
    }
}

fn order(profile: &Profile, one: &QueuedPod, other: &QueuedPod) -> Ordering {
    if profile.before(one, other) {
        Ordering::Less
    } else if profile.before(other, one) {
        Ordering::Greater
    } else {
        one.arrival.cmp(&other.arrival)
    }
}
