//! Evicts the victims that were chosen, as kube-scheduler does asynchronously, beside the deciding task.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, stream};
use serde_json::{Value, json};
use supercargo_framework::{
    bugs::{self, Bug},
    handle::{
        ApiError, ApiFailure, ApiRequest, ApiResource, Handle, LogLevel, Look, Measurement, ObjectReference,
        Occurrence, Verb, View, Work,
    },
    turns::Turns,
};
use supercargo_model::{Name, Pod, Timestamp};

use super::{NAME, under_way::UnderWay};

/// Victims of one pod that are evicted at a time; kube-scheduler's figure.
const VICTIMS_AT_ONCE: usize = 16;
/// Evictions under way at a time, for all pods together: bindings and the lease are not to wait behind a thousand of them.
pub(super) const EVICTIONS_AT_ONCE: usize = 32;
/// How far the watch may be behind the evictions before a pod is tried without knowing what became of its victims.
const WATCH_DELAY: Duration = Duration::from_secs(30);
/// How long a pod is kept from being tried again whose victims could not be evicted.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// How often a request is tried that the server had no time for. To give up means to evict somebody else as well.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(250);

/// How a pod had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preempted {
    /// It was deleted.
    Evicted,
    /// It was not bound yet, and goes back to the queue.
    CalledOff,
}

/// A pod had to go for another.
pub(super) fn preempted(victim: &Pod, preemptor: &Pod, node: &str, how: Preempted) -> Occurrence {
    let in_memory = match how {
        Preempted::Evicted => "",
        Preempted::CalledOff => " (in kube-scheduler memory).",
    };
    Occurrence {
        regarding: ObjectReference::pod(victim),
        related: None,
        scheduler_name: preemptor.spec.scheduler_name.clone(),
        is_warning: false,
        reason: "Preempted".into(),
        action: "Preempting".into(),
        note: format!("Preempted by pod {} on node {node}{in_memory}", preemptor.uid),
    }
}

/// Pods may be tried again that were held back for their victims; and are, if something would have given them their turn.
pub(super) fn look_again(handle: &dyn Handle, preemptors: impl IntoIterator<Item = Name>) {
    for preemptor in preemptors {
        handle.look_again(preemptor, NAME.into());
    }
}

/// The evictions for one pod.
pub(super) struct Eviction {
    pub(super) handle: Arc<dyn Handle>,
    pub(super) turns: Turns,
    pub(super) under_way: Arc<UnderWay>,
    pub(super) preemptor: Arc<Pod>,
    pub(super) node: Name,
}

impl Eviction {
    /// Evicts all but the last victim side by side, until one cannot be; then the last one.
    pub(super) async fn evict_all(self, victims: Vec<Arc<Pod>>) {
        let started = self.handle.uptime();
        let failed = match victims.split_last() {
            Some((last, others)) => match self.evict_side_by_side(others).await {
                Ok(()) => self.evict(last).await.err(),
                Err(why) => Some(why),
            },
            None => None,
        };
        if failed.is_some() {
            // The pod is tried again at once, and may well choose the same victims.
            self.handle.sleep(AFTER_FAILURE).await;
        }
        let took = self.handle.uptime() - started;
        self.handle.measure(Measurement::Evicted { success: failed.is_none(), took });
        match failed {
            Some(why) => self.has_failed(&why),
            None => self.wait_for_watch(),
        }
    }

    fn has_failed(&self, why: &str) {
        let line = format!(
            "not all victims could be evicted: pod={} node={} why={why:?}",
            self.preemptor.key(),
            self.node
        );
        self.handle.log(LogLevel::Warn, &line);
        self.over();
        self.handle.activate(self.preemptor.uid.clone());
    }

    /// Tried before the watch shows that its victims leave, the pod would look for others. A watch that is too far behind
    /// does not hold it for ever.
    fn wait_for_watch(self) {
        let (late, handle) = (self.handle.sleep(WATCH_DELAY), self.handle.clone());
        let wait = async move {
            late.await;
            if !bugs::is_on(Bug::LeavingVictimsUnseen) {
                self.over();
            }
        };
        handle.spawn(Work::Other, Box::pin(wait));
    }

    /// Whatever the watch shows, the pod may be tried again; and is, if something would have given it its turn meanwhile.
    fn over(&self) {
        let released = self.under_way.end(&self.preemptor.uid, &self.node);
        look_again(&*self.handle, released.preemptors);
        for other in released.bystanders {
            self.handle.activate(other);
        }
        look_again(&*self.handle, [self.preemptor.uid.clone()]);
    }

    async fn evict_side_by_side(&self, victims: &[Arc<Pod>]) -> Result<(), String> {
        let evictions: Vec<_> = victims.iter().map(|victim| self.evict(victim).boxed()).collect();
        let mut evictions = stream::iter(evictions).buffer_unordered(VICTIMS_AT_ONCE);
        while let Some(evicted) = evictions.next().await {
            evicted?;
        }
        Ok(())
    }

    /// Tells a pod why it has to go, deletes it, and tells people.
    async fn evict(&self, victim: &Arc<Pod>) -> Result<(), String> {
        let _turn = self.turns.take().await;
        let scheduler_name = &self.preemptor.spec.scheduler_name;
        let mark = || mark_preempted(victim, scheduler_name, self.handle.now());
        let delete = || ApiRequest::delete(ApiResource::PODS, victim.key(), &victim.uid);
        if self.until_done(victim, mark).await? && self.until_done(victim, delete).await? {
            self.handle.record(preempted(victim, &self.preemptor, &self.node, Preempted::Evicted));
        }
        Ok(())
    }

    /// Sends a request until it has been done. Sending it twice does no harm. False if the victim is not in the way any more.
    async fn until_done(&self, victim: &Pod, request: impl Fn() -> ApiRequest) -> Result<bool, String> {
        let mut why = String::new();
        for attempt in 1..=TRIES {
            if !self.is_in_the_way(victim).await && !bugs::is_on(Bug::EvictedWhereverTheyAre) {
                // Nothing else tells that it has left: it was never there for anybody but us.
                let others = self.under_way.leaves(&victim.key());
                look_again(&*self.handle, others);
                look_again(&*self.handle, [self.preemptor.uid.clone()]);
                return Ok(false);
            }
            match self.handle.send(request()).await {
                Ok(_) => return Ok(true),
                Err(ApiError { failure: ApiFailure::NotFound, .. }) => return Ok(false),
                Err(ApiError { failure: ApiFailure::Refused | ApiFailure::NotLeading, message }) => {
                    return Err(message);
                }
                // Another pod may have the name by now; or the two of us wrote at once.
                Err(ApiError { failure: ApiFailure::Conflict, message }) => {
                    if self.is_gone(victim).await {
                        return Ok(false);
                    }
                    why = message;
                }
                Err(error) => why = error.message,
            }
            self.handle.sleep(PAUSE * attempt).await;
        }
        Err(why)
    }

    /// Whether a victim is still on the node. One that was about to be bound there may have failed to be: it waits, or is on
    /// another node by now, and its end would be of no use to anybody.
    async fn is_in_the_way(&self, victim: &Pod) -> bool {
        let (key, uid, node) = (victim.key(), victim.uid.clone(), self.node.clone());
        let is_there = Arc::new(AtomicBool::new(true));
        let told = is_there.clone();
        let look: Look = Box::new(move |view: &View<'_>| {
            let found =
                view.cluster.pod(&key).is_some_and(|pod| pod.uid == uid && pod.node.as_ref() == Some(&node));
            told.store(found, Ordering::Relaxed);
        });
        // Who cannot look goes by what was decided.
        let _ = self.handle.look(look).await;
        is_there.load(Ordering::Relaxed)
    }

    /// Whether the server has no such pod any more, or another one of its name.
    async fn is_gone(&self, victim: &Pod) -> bool {
        let read = ApiRequest::new(Verb::Get, ApiResource::PODS, victim.key(), Value::Null);
        match self.handle.send(read).await {
            Err(error) => error.failure == ApiFailure::NotFound,
            Ok(pod) => pod["metadata"]["uid"].as_str().is_some_and(|uid| uid != &*victim.uid),
        }
    }
}

/// Marks a pod that is about to be deleted to make room, in kube-scheduler's words. The identity makes sure that it is
/// still the same pod.
fn mark_preempted(pod: &Pod, scheduler_name: &str, now: Timestamp) -> ApiRequest {
    let mut condition = json!({
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": format!("{scheduler_name}: preempting to accommodate a higher priority pod"),
        "lastProbeTime": null,
        // A Time has whole seconds.
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    // Which version of the pod's spec it is about, unless that is not known.
    if pod.generation != 0 {
        condition["observedGeneration"] = pod.generation.into();
    }
    let patch = json!({"metadata": {"uid": &*pod.uid}, "status": {"conditions": [condition]}});
    ApiRequest::new(Verb::StrategicMergePatch, ApiResource::PODS, pod.key(), patch).at("status")
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_model::testing::pod;

    #[test]
    fn a_victim_is_told_why() {
        let now: Timestamp = "2026-01-02T03:04:05.6789Z".parse().unwrap();
        let victim = pod("p").namespace("ns").set("/metadata/generation", 2).pod();
        let request = mark_preempted(&victim, "default-scheduler", now);
        assert_eq!(request.path(), "/api/v1/namespaces/ns/pods/p/status");
        let condition = &request.body["status"]["conditions"][0];
        assert_eq!(condition["reason"], "PreemptionByScheduler");
        assert_eq!(
            condition["message"],
            "default-scheduler: preempting to accommodate a higher priority pod"
        );
        assert_eq!(condition["lastTransitionTime"], "2026-01-02T03:04:05Z");
        assert_eq!(condition["observedGeneration"], 2);
    }
}
