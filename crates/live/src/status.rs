//! What a pod's status says about scheduling: the PodScheduled condition and the nominated node, patched as kube-scheduler
//! does, and only when something changes.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use supercargo_model::{Key, Name, NotScheduled, Pod};

use crate::{
    requests::{observe, patch_pod_status, whole_seconds},
    world::Request,
};

/// Why a pod is not scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No node takes it.
    Unschedulable,
    /// Something went wrong.
    SchedulerError,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Unschedulable => "Unschedulable",
            Self::SchedulerError => "SchedulerError",
        }
    }
}

/// The condition PodScheduled=False, as it is to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
    /// The version of the pod's spec that this is about; 0 if it is not known.
    pub generation: i64,
}

impl Condition {
    /// Whether a status says the same. That it says so of an older version of the spec does not matter.
    fn is_said_by(&self, status: &NotScheduled) -> bool {
        *status.reason == *self.reason.as_str() && *status.message == *self.message
    }
}

/// What happens to the nominated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NominatingInfo {
    /// It stays what it is.
    Keep,
    /// Room is being made on this node.
    Set(Name),
    /// It is taken back.
    Clear,
}

/// What a pod's status says, as far as we have read or written it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    condition: Option<NotScheduled>,
    nominated_node: Option<Name>,
    /// The last write may not have arrived.
    unsure: bool,
}

impl Reported {
    /// What the API server has told of a pod's status.
    pub fn of(pod: &Pod) -> Self {
        Self {
            condition: pod.not_scheduled.as_deref().cloned(),
            nominated_node: pod.nominated_node.clone(),
            unsure: false,
        }
    }

    /// The request that makes the pod's status say this; none if it says so already. The identity makes sure that it is
    /// still the same pod.
    pub fn update(
        &mut self,
        pod: &Key,
        uid: &str,
        condition: Option<&Condition>,
        nomination: NominatingInfo,
        now: Timestamp,
    ) -> Option<Request> {
        let mut status = Map::new();
        let unsure = std::mem::take(&mut self.unsure);
        let is_said =
            |condition: &Condition| self.condition.as_ref().is_some_and(|said| condition.is_said_by(said));
        if let Some(condition) = condition.filter(|condition| unsure || !is_said(condition)) {
            // The moment of the transition, not of the last change of words.
            let since = self.condition.as_ref().and_then(|said| said.since).unwrap_or(now);
            status.insert("conditions".to_owned(), json!([written(condition, since)]));
            self.condition = Some(NotScheduled {
                reason: condition.reason.as_str().into(),
                message: condition.message.as_str().into(),
                since: Some(since),
            });
        }
        let nominated = match nomination {
            NominatingInfo::Keep => self.nominated_node.clone(),
            NominatingInfo::Set(node) => Some(node),
            NominatingInfo::Clear => None,
        };
        if nominated != self.nominated_node || unsure {
            status.insert("nominatedNodeName".to_owned(), json!(nominated.as_deref()));
            self.nominated_node = nominated;
        }
        if status.is_empty() {
            return None;
        }
        Some(patch_pod_status(pod, &json!({"metadata": {"uid": uid}, "status": status})))
    }

    /// The write has failed, or its outcome is unknown: whatever comes next is written.
    pub fn forget(&mut self) {
        self.unsure = true;
    }
}

fn written(condition: &Condition, since: Timestamp) -> Value {
    let mut written = json!({
        "type": "PodScheduled",
        "status": "False",
        "reason": condition.reason.as_str(),
        "message": condition.message,
        "lastProbeTime": null,
        "lastTransitionTime": whole_seconds(since),
    });
    observe(&mut written, condition.generation);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn patch(reported: &mut Reported, message: &str, nomination: NominatingInfo, at: i64) -> Option<Value> {
        let condition =
            Condition { reason: Reason::Unschedulable, message: message.to_owned(), generation: 3 };
        let request = reported.update(&Key::new("ns", "p"), "u", Some(&condition), nomination, now(at))?;
        assert_eq!(request.to_string(), "PATCH /api/v1/namespaces/ns/pods/p/status");
        Some(serde_json::from_slice(&request.body).unwrap())
    }

    #[test]
    fn the_same_is_not_said_twice() {
        let mut reported = Reported::default();
        let first = patch(&mut reported, "0/1 nodes are available", NominatingInfo::Keep, 0).unwrap();
        assert_eq!(
            first,
            json!({"metadata": {"uid": "u"}, "status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available", "lastProbeTime": null,
                "lastTransitionTime": "2027-01-15T08:00:00Z", "observedGeneration": 3}]}})
        );
        assert_eq!(patch(&mut reported, "0/1 nodes are available", NominatingInfo::Keep, 5), None);
        let other = patch(&mut reported, "0/2 nodes are available", NominatingInfo::Keep, 9).unwrap();
        assert_eq!(other["status"]["conditions"][0]["lastTransitionTime"], "2027-01-15T08:00:00Z");
    }

    #[test]
    fn a_nomination_is_set_and_cleared() {
        let mut reported = Reported::default();
        let set = patch(&mut reported, "m", NominatingInfo::Set("n1".into()), 0).unwrap();
        assert_eq!(set["status"]["nominatedNodeName"], "n1");
        assert_eq!(patch(&mut reported, "m", NominatingInfo::Set("n1".into()), 1), None);
        let cleared = patch(&mut reported, "m", NominatingInfo::Clear, 2).unwrap();
        assert_eq!(cleared["status"], json!({"nominatedNodeName": null}));
    }

    #[test]
    fn what_may_not_have_arrived_is_said_again() {
        let mut reported = Reported::default();
        patch(&mut reported, "m", NominatingInfo::Set("n1".into()), 0).unwrap();
        reported.forget();
        let again = patch(&mut reported, "m", NominatingInfo::Keep, 1).unwrap();
        assert_eq!(again["status"]["conditions"][0]["message"], "m");
        assert_eq!(again["status"]["nominatedNodeName"], "n1");
        assert_eq!(patch(&mut reported, "m", NominatingInfo::Keep, 2), None);
    }

    #[test]
    fn what_the_status_says_already_is_not_written_after_a_failover() {
        let pod = |message: &str, nominated: Option<&str>| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"namespace": "ns", "name": "p", "uid": "u", "generation": 9},
                "status": {"nominatedNodeName": nominated, "conditions": [{
                    "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
                    "lastTransitionTime": "2026-01-02T03:04:05Z", "observedGeneration": 2}]},
            }))
            .unwrap()
        };
        let mut reported = Reported::of(&pod("m", Some("n1")));
        // Neither for a newer version of the spec alone: observedGeneration stays.
        assert_eq!(patch(&mut reported, "m", NominatingInfo::Set("n1".into()), 0), None);
        assert_eq!(patch(&mut reported, "m", NominatingInfo::Keep, 0), None);
        let other = patch(&mut reported, "other", NominatingInfo::Keep, 0).unwrap();
        let condition = &other["status"]["conditions"][0];
        assert_eq!(condition["lastTransitionTime"], "2026-01-02T03:04:05Z");
        assert_eq!(condition["observedGeneration"], 3);
    }
}
