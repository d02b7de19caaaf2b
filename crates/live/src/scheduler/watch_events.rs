//! Takes in what becomes known about the cluster: brings the cache up to date, and wakes the pods that it can help.

use std::sync::Arc;

use supercargo_engine::{At, Removal};
use supercargo_framework::{
    binding_signal::CalledOff,
    bugs::{self, Bug},
    event::{ActionType, Change, ClusterEvent, EventResource},
    handle::Dependency,
    points::Observed,
};
use supercargo_model::{
    Key, Name, Pod,
    object::{Kind, Object},
};

use super::{Assumed, Scheduler};
use crate::informer::WatchEvent;

impl Scheduler {
    /// Takes a watch event in, and the time that this takes.
    pub(super) fn take_watch_event(&mut self, event: WatchEvent) {
        self.has_news |= !matches!(event, WatchEvent::UpTo(..));
        self.handling_since = Some(self.world.uptime());
        self.take_in(event);
        self.handling_since = None;
    }

    fn handled(&self, event: ClusterEvent) {
        if let Some(began) = self.handling_since {
            self.meter.handled(event, self.world.uptime() - began);
        }
    }

    fn take_in(&mut self, event: WatchEvent) {
        self.keep_text(&event);
        self.tell_plugins(&event);
        self.seen.take_in(&event);
        match event {
            WatchEvent::Put { object: Object::Pod(pod), .. } => self.pod_is(Arc::new(pod)),
            WatchEvent::Put { object: Object::Node(node), .. } => {
                let before = self.engine.cluster().node(&node.name).map(|info| info.node.clone());
                if before.as_deref() == Some(&node) {
                    return;
                }
                self.engine.cluster_mut().put_node(node.clone());
                self.check_after_change_of(Kind::Node, &Key::new("", node.name.clone()));
                self.happened(Change::Node(before.as_deref(), Some(&node)));
            }
            WatchEvent::Put { object, .. } => self.object_is(object),
            WatchEvent::Gone { kind: Kind::Pod, key, uid } => self.pod_is_gone(&key, &uid),
            WatchEvent::Gone { kind, key, .. } => self.object_is_gone(kind, &key),
            WatchEvent::Unreadable { kind, key, uid, reason, remains } => {
                tracing::error!(kind = kind.name(), object = %key, reason, "an object cannot be read");
                match remains {
                    Some(pod) => self.pod_holds_room(pod),
                    None => self.cannot_read(kind, &uid, &reason),
                }
            }
            WatchEvent::Synced(kind) => self.is_read(kind),
            WatchEvent::UpTo(..) => {}
        }
    }

    /// Extenders are sent objects as they were written.
    fn keep_text(&mut self, event: &WatchEvent) {
        if self.extenders.all().is_empty() {
            return;
        }
        match event {
            WatchEvent::Put { object, text, .. } => self.originals.put(object, text.clone()),
            WatchEvent::Gone { kind: Kind::Node, key, .. } => self.originals.forget_node(&key.name),
            WatchEvent::Gone { kind: Kind::Pod, uid, .. } => self.originals.forget_pod(uid),
            _ => {}
        }
    }

    /// Plugins hear of it before anybody is woken by it.
    fn tell_plugins(&self, event: &WatchEvent) {
        let observed = match event {
            WatchEvent::Put { object, uid, .. } => Observed::Is { object, uid },
            WatchEvent::Gone { kind, key, .. } => Observed::Gone { kind: *kind, key },
            WatchEvent::Unreadable { .. } | WatchEvent::Synced(_) | WatchEvent::UpTo(..) => return,
        };
        self.engine.profiles().iter().for_each(|profile| profile.observe(&observed));
    }

    /// A resource has been told in full. Each ConfigMap is a resource of its own.
    fn is_read(&mut self, kind: Kind) {
        let Some(index) = self.unsynced.iter().position(|unsynced| *unsynced == kind) else { return };
        self.unsynced.swap_remove(index);
        if self.unsynced.is_empty() {
            let cluster = self.engine.cluster();
            tracing::info!(nodes = cluster.node_count(), pods = cluster.pods().len(), "caches synced");
            self.tell_missing();
            self.synced.send_replace(true);
        }
    }

    /// Tells plugins which of the objects that are watched for them are not there.
    fn tell_missing(&self) {
        for profile in self.engine.profiles().iter() {
            for (_, kind, key) in profile.watched() {
                if self.engine.cluster().object(kind, &key).is_none() {
                    profile.observe(&Observed::Missing { kind, key: &key });
                }
            }
        }
    }

    pub(super) fn happened(&mut self, change: Change<'_>) {
        let happened = change.happened();
        if !happened.events.is_empty() {
            let at = At { now: self.world.uptime(), cluster: self.engine.cluster() };
            self.queue.happened(&happened, at);
            happened.events.iter().for_each(|event| self.handled(*event));
        }
    }

    pub(super) fn object_is(&mut self, object: Object) {
        let (kind, key) = (object.kind(), object.key());
        // What the server says counts for more than what we assumed.
        self.assumed_objects.server_tells(kind, &key);
        let before = self.engine.cluster().object(kind, &key);
        if bugs::is_on(Bug::NamespaceLabelsUnseen) && kind == Kind::Namespace && before.is_some() {
            return;
        }
        self.engine.cluster_mut().put(object.clone());
        self.check_after_change_of(kind, &key);
        self.happened(Change::Other(before.as_ref(), Some(&object)));
    }

    fn object_is_gone(&mut self, kind: Kind, key: &Key) {
        self.assumed_objects.server_tells(kind, key);
        if kind == Kind::Node {
            let before = self.engine.cluster().node(&key.name).map(|info| info.node.clone());
            self.engine.cluster_mut().remove(kind, key);
            self.check_after_change_of(kind, key);
            self.happened(Change::Node(before.as_deref(), None));
        } else {
            let before = self.engine.cluster().object(kind, key);
            self.engine.cluster_mut().remove(kind, key);
            self.check_after_change_of(kind, key);
            self.happened(Change::Other(before.as_ref(), None));
        }
    }

    fn pod_is(&mut self, pod: Arc<Pod>) {
        let key = pod.key();
        // A pod that was deleted and made anew: the older one's end was told, or was missed.
        let earlier = self.engine.cluster().pod(&key).filter(|known| known.uid != pod.uid).cloned();
        if let Some(earlier) = earlier {
            self.pod_is_gone(&key, &earlier.uid);
        }
        if pod.node.is_some() {
            self.pod_is_bound(pod);
        } else if self.assumed.contains_key(&pod.uid) {
            if pod.terminating {
                self.assumed_pod_goes(&pod.uid);
            }
            // Its binding is on its way: only if that fails does this version count.
            self.queue.renew(pod);
        } else {
            // A server that was set back to an earlier state has taken the binding back.
            if let Some(before) = self.take_off_its_node(&key, &pod.uid) {
                self.check_after_change_of(Kind::Pod, &key);
                self.happened(Change::Pod(Some(&before), None));
            }
            self.pod_waits(pod);
        }
    }

    /// The watch shows a pod on a node. That it was ours to bind makes no difference to those who wait for such a pod: to
    /// them it comes now.
    fn pod_is_bound(&mut self, pod: Arc<Pod>) {
        if bugs::is_on(Bug::ForeignPodsNotCounted) && self.engine.profile(&pod.spec.scheduler_name).is_none()
        {
            return;
        }
        let is_known = |node: &Name| self.engine.cluster().node(node).is_some();
        if bugs::is_on(Bug::UnknownNodeAborts) && !pod.node.as_ref().is_some_and(is_known) {
            panic!("a pod on a node that is not known");
        }
        let assumed = self.assumed.remove(&pod.uid);
        self.last_failures.remove(&pod.uid);
        let was_assumed = assumed.is_some();
        let mut given_back = None;
        if let Some(Assumed { pod: ours, node, .. }) = assumed {
            if pod.node.as_ref() == Some(&node) {
                self.assumed_objects.keep(self.engine.cluster_mut(), &pod.uid);
            } else {
                assert!(!bugs::is_on(Bug::ForeignBindingAborts), "somebody else bound the pod");
                tracing::warn!(pod = %pod.key(), ours = %node, theirs = pod.node.as_ref().map(tracing::field::display), "somebody else bound the pod");
                self.unreserve(&ours, &node);
                given_back = Some(ours.bound_to(node));
            }
        }
        self.leave_queue(&pod.uid, Removal::Bound);
        let before = self.engine.cluster().pod(&pod.key()).filter(|_| !was_assumed).cloned();
        if before.as_ref() == Some(&pod) {
            return;
        }
        self.engine.cluster_mut().put_pod(pod.clone());
        self.check_after_change_of(Kind::Pod, &pod.key());
        // Nobody else tells those who wait for the room that we had kept for it: its binding ends as that of a pod which is
        // where it belongs.
        if let Some(given_back) = &given_back {
            self.happened(Change::Pod(Some(given_back), None));
        }
        if bugs::is_on(Bug::OwnBindingWakesNobody) && was_assumed {
            return;
        }
        self.happened(Change::Pod(before.as_deref(), Some(&pod)));
    }

    /// The deletion of a pod was asked for, or it is gone, while it is being bound: its room is free at once. The binding
    /// goes on, and finds out for itself.
    fn assumed_pod_goes(&mut self, uid: &Name) {
        let Some(assumed) = self.assumed.get(uid) else { return };
        let (key, rejected) = (assumed.pod.key(), assumed.signal.reject(CalledOff::Removed));
        if rejected {
            return;
        }
        if let Some(before) = self.take_off_its_node(&key, uid) {
            self.check_after_change_of(Kind::Pod, &key);
            self.happened(Change::Pod(Some(&before), None));
        }
    }

    fn pod_waits(&mut self, pod: Arc<Pod>) {
        if self.engine.profile(&pod.spec.scheduler_name).is_none() {
            return;
        }
        let (now, pod) = (self.world.uptime(), self.engine.admit(pod));
        let action = if self.queue.find(&pod.uid).is_some() { ActionType::Update } else { ActionType::Add };
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.add(pod, nominations, At { now, cluster });
        self.handled(ClusterEvent::new(EventResource::UnscheduledPod, action));
    }

    pub(super) fn pod_is_gone(&mut self, key: &Key, uid: &Name) {
        let is_assumed = self.assumed.get(uid).is_some_and(|assumed| assumed.ended.is_none());
        // The room of a pod that is being bound is told to be free below.
        let removal = if is_assumed { Removal::Bound } else { Removal::Deleted };
        if self.leave_queue(uid, removal).is_some() {
            self.handled(ClusterEvent::new(EventResource::UnscheduledPod, ActionType::Delete));
        }
        if !bugs::is_on(Bug::DoneForgotten) {
            self.queue.done(uid);
        }
        if !bugs::is_on(Bug::FailureKept) {
            self.last_failures.remove(uid);
        }
        if !bugs::is_on(Bug::StatusKept) {
            self.reporter.forget(uid);
        }
        if is_assumed {
            self.assumed_pod_goes(uid);
            if let Some(assumed) = self.assumed.get_mut(uid) {
                assumed.gone = true;
            }
            self.check_those_that_depend_on(&Dependency::PendingPod(uid.clone()));
        } else {
            self.assumed.remove(uid);
            self.check_those_that_depend_on(&Dependency::PendingPod(uid.clone()));
            if let Some(before) = self.take_off_its_node(key, uid) {
                self.check_after_change_of(Kind::Pod, key);
                self.happened(Change::Pod(Some(&before), None));
            }
        }
    }

    /// Takes a pod off its node in the cache; as it was there.
    pub(super) fn take_off_its_node(&mut self, key: &Key, uid: &Name) -> Option<Arc<Pod>> {
        let is_there = self.engine.cluster().pod(key).is_some_and(|known| known.uid == *uid);
        if is_there { self.engine.cluster_mut().remove_pod(key) } else { None }
    }

    /// A pod that cannot be read as a whole is on a node. It counts as it was when it could be read, if it was there then;
    /// else by what can be read of it.
    fn pod_holds_room(&mut self, pod: Arc<Pod>) {
        let known = self.engine.cluster().pod(&pod.key());
        if known.is_some_and(|known| known.uid == pod.uid && known.node == pod.node) && !pod.finished {
            let ours = self.assumed.get(&pod.uid).map(|assumed| (assumed.pod.clone(), assumed.node.clone()));
            if let Some((ours, node)) = ours {
                self.pod_is(Arc::new(ours.bound_to(node)));
            }
            return;
        }
        tracing::warn!(
            pod = %pod.key(),
            node = pod.node.as_ref().map(tracing::field::display),
            "counted by what can be read of it"
        );
        self.pod_is(pod);
    }

    /// An object makes no sense to us. It costs itself, nothing else.
    fn cannot_read(&mut self, kind: Kind, uid: &Name, reason: &str) {
        if kind != Kind::Pod || self.assumed.contains_key(uid) {
            return;
        }
        if let Some(pod) = self.queue.find(uid).map(|pending| pending.pod.clone()) {
            self.leave_queue(uid, Removal::Deleted);
            self.reporter.unreadable(&pod, reason);
        }
    }
}
