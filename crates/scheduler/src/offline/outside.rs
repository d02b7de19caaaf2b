//! What happens in a cluster besides scheduling, at the times that somebody tells: for replays.

use std::{sync::Arc, time::Duration};

use supercargo_engine::{At, Engine, Placement, Removal};
use supercargo_framework::event::Change;
use supercargo_model::{
    Key, Pod,
    object::{Kind, Object},
};

use super::{Attempt, OfflineScheduler};

/// What happened first.
#[derive(Debug)]
pub enum Step {
    /// A pod was tried.
    Attempt(Box<Attempt>),
    /// Time has passed, and pods that were asked to leave are gone.
    Passed,
}

impl OfflineScheduler {
    /// The first thing that happens until a time, or ever; `None` if nothing does: it is that time then. Nobody is given up,
    /// however often it has been tried.
    pub fn step_until(
        &mut self,
        until: Option<Duration>,
        mut decide: impl FnMut(&mut Engine, &Arc<Pod>) -> Option<Placement>,
    ) -> Option<Step> {
        self.max_attempts = u32::MAX;
        self.gated.clear();
        loop {
            match self.queue.pop(At { now: self.now, cluster: self.engine.cluster() }) {
                Some(popped) => {
                    let attempt = self.attempt(&popped, &mut |engine, pod, _| decide(engine, pod));
                    if let Some(attempt) = attempt {
                        return Some(Step::Attempt(Box::new(attempt)));
                    }
                }
                None => match self.next_change().filter(|at| until.is_none_or(|until| *at <= until)) {
                    Some(at) => {
                        self.pass_to(at);
                        return Some(Step::Passed);
                    }
                    None => {
                        self.pass_to(until.unwrap_or(self.now));
                        return None;
                    }
                },
            }
        }
    }

    /// A pod without a node is there, or has changed.
    pub fn pod_waits(&mut self, pod: Arc<Pod>) {
        let pod = self.engine.admit(pod);
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        let asked = self.queue.add(pod, nominations, At { now: self.now, cluster });
        self.other_schedulers += usize::from(asked.is_none());
    }

    /// A pod is on a node that somebody else chose, or has changed there.
    pub fn pod_runs(&mut self, pod: Arc<Pod>) {
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.remove(&pod.uid, Removal::Bound, nominations, At { now: self.now, cluster });
        self.tried.remove(&pod.uid);
        let before = self.engine.cluster().pod(&pod.key()).cloned();
        if before.as_ref() != Some(&pod) {
            self.engine.cluster_mut().put_pod(pod.clone());
            self.happened(Change::Pod(before.as_deref(), Some(&pod)));
        }
    }

    /// A pod is gone, wherever it was.
    pub fn pod_goes(&mut self, key: &Key) {
        if let Some(uid) = self.queue.named(key).map(|pending| pending.pod.uid.clone()) {
            let (cluster, nominations) = self.engine.cluster_and_nominations();
            self.queue.remove(&uid, Removal::Deleted, nominations, At { now: self.now, cluster });
            self.tried.remove(&uid);
        }
        // Another one of its name may come before its grace period would have ended.
        self.departures.retain(|_, leaving| leaving != key);
        if let Some(gone) = self.engine.cluster_mut().remove_pod(key) {
            self.happened(Change::Pod(Some(&gone), None));
        }
    }

    /// An object that is no pod is there, or has changed.
    pub fn put(&mut self, object: Object) {
        let (kind, key) = (object.kind(), object.key());
        if let Object::Node(node) = object {
            let before = self.engine.cluster().node(&node.name).map(|info| info.node.clone());
            if before.as_deref() != Some(&node) {
                self.engine.cluster_mut().put_node(node.clone());
                self.happened(Change::Node(before.as_deref(), Some(&node)));
            }
            return;
        }
        self.assumed.server_tells(kind, &key);
        let before = self.engine.cluster().object(kind, &key);
        self.engine.cluster_mut().put(object.clone());
        self.happened(Change::Other(before.as_ref(), Some(&object)));
    }

    /// An object that is no pod is gone.
    pub fn remove(&mut self, kind: Kind, key: &Key) {
        self.assumed.server_tells(kind, key);
        let node = self.engine.cluster().node(&key.name).filter(|_| kind == Kind::Node);
        let node = node.map(|info| info.node.clone());
        let before = self.engine.cluster().object(kind, key);
        self.engine.cluster_mut().remove(kind, key);
        match node {
            Some(node) => self.happened(Change::Node(Some(&node), None)),
            None => self.happened(Change::Other(before.as_ref(), None)),
        }
    }
}
