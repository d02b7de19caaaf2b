//! What happens in a cluster besides scheduling, at the times that somebody tells: for replays.

use std::{sync::Arc, time::Duration};

use supercargo_engine::{At, Engine, Placement, Removal};
use supercargo_model::{
    Key, Pod,
    object::{Kind, Object},
};

use super::{Attempt, MAX_QUIET, OfflineScheduler};

/// What happened first.
#[derive(Debug)]
pub enum OfflineStep {
    /// A pod was tried.
    Attempt(Box<Attempt>),
    /// Time has passed.
    Passed,
}

impl OfflineScheduler {
    /// The first thing that happens until a time, or ever; `None` if nothing does: it is that time then. Nobody is given up,
    /// however often it has been tried.
    pub fn step_until(
        &mut self,
        until: Option<Duration>,
        mut decide: impl FnMut(&mut Engine, &Arc<Pod>) -> Option<Placement>,
    ) -> Option<OfflineStep> {
        self.max_attempts = u32::MAX;
        loop {
            self.run_effects();
            if let Some(told) = self.told.pop_front() {
                return Some(OfflineStep::Attempt(Box::new(told)));
            }
            let at = At { now: self.now(), cluster: self.engine.cluster() };
            if let Some(popped) = self.queue.pop(at) {
                if let Some(attempt) = self.attempt(popped, &mut |engine, pod, _| decide(engine, pod)) {
                    return Some(OfflineStep::Attempt(Box::new(attempt)));
                }
                continue;
            }
            let end = until.unwrap_or(self.last_decided + MAX_QUIET);
            if let Some(at) = self.next_moment().filter(|at| *at <= end) {
                self.pass_to(at);
                return Some(OfflineStep::Passed);
            }
            match until {
                Some(until) => self.pass_to(until),
                None if self.end_waiting_bindings() => continue,
                None => {}
            }
            return None;
        }
    }

    /// A pod without a node is there, or has changed.
    pub fn pod_waits(&mut self, pod: Arc<Pod>) {
        self.pod_is(pod);
    }

    /// A pod is on a node that somebody else chose, or has changed there.
    pub fn pod_runs(&mut self, pod: Arc<Pod>) {
        let now = self.now();
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.remove(&pod.uid, Removal::Bound, nominations, At { now, cluster });
        self.tried.remove(&pod.uid);
        if self.engine.cluster().pod(&pod.key()) != Some(&pod) {
            self.pod_is(pod);
        }
    }

    /// A pod is gone, wherever it was.
    pub fn pod_goes(&mut self, key: &Key) {
        // Another one of its name may come before its grace period would have ended.
        self.departures.retain(|_, leaving| leaving != key);
        let waiting = self.queue.named(key).map(|pending| pending.pod.uid.clone());
        let running = self.engine.cluster().pod(key).map(|pod| pod.uid.clone());
        for uid in [waiting, running].into_iter().flatten() {
            self.tried.remove(&uid);
            self.pod_is_gone(key, &uid);
        }
    }

    /// An object that is no pod is there, or has changed.
    pub fn put(&mut self, object: Object) {
        let is_known = match &object {
            Object::Node(node) => {
                self.engine.cluster().node(&node.name).is_some_and(|known| *known.node == *node)
            }
            _ => false,
        };
        if !is_known {
            self.object_is(object);
        }
    }

    /// An object that is no pod is gone.
    pub fn remove(&mut self, kind: Kind, key: &Key) {
        self.object_is_gone(kind, key);
    }
}
