//! What a pod's status says about scheduling: the PodScheduled condition and the nominated node, patched as kube-scheduler
//! does, and only when something changes.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use supercargo_model::{Key, Name};

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

/// The condition PodScheduled=False.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotScheduled {
    /// Why, in a word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
    /// The version of the pod's spec that this is about; 0 if it is not known.
    pub generation: i64,
}

/// What happens to the nominated node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nomination {
    /// It stays what it is.
    Keep,
    /// Room is being made on this node.
    Set(Name),
    /// It is taken back.
    Clear,
}

/// What a pod's status says, as far as we have read or written it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    condition: Option<NotScheduled>,
    /// When the pod was first found not to be schedulable.
    since: Option<Timestamp>,
    nominated_node: Option<Name>,
    /// The last write may not have arrived.
    unsure: bool,
}

impl Told {
    /// A pod whose status names a node, or none.
    pub fn of(nominated_node: Option<Name>) -> Self {
        Self { nominated_node, ..Self::default() }
    }

    /// The request that makes the pod's status say this; none if it says so already. The identity makes sure that it is
    /// still the same pod.
    pub fn update(
        &mut self,
        pod: &Key,
        uid: &str,
        condition: Option<NotScheduled>,
        nomination: Nomination,
        now: Timestamp,
    ) -> Option<Request> {
        let mut status = Map::new();
        if let Some(condition) = condition.filter(|condition| self.condition.as_ref() != Some(condition)) {
            // The moment of the transition, not of the last change of words.
            let since = *self.since.get_or_insert(now);
            status.insert("conditions".to_owned(), json!([written(&condition, since)]));
            self.condition = Some(condition);
        }
        let nominated = match nomination {
            Nomination::Keep => self.nominated_node.clone(),
            Nomination::Set(node) => Some(node),
            Nomination::Clear => None,
        };
        let unsure = std::mem::take(&mut self.unsure);
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
        self.condition = None;
        self.unsure = true;
    }
}

fn written(condition: &NotScheduled, since: Timestamp) -> Value {
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

    fn patch(told: &mut Told, message: &str, nomination: Nomination, at: i64) -> Option<Value> {
        let condition =
            NotScheduled { reason: Reason::Unschedulable, message: message.to_owned(), generation: 3 };
        let request = told.update(&Key::new("ns", "p"), "u", Some(condition), nomination, now(at))?;
        assert_eq!(request.to_string(), "PATCH /api/v1/namespaces/ns/pods/p/status");
        Some(serde_json::from_slice(&request.body).unwrap())
    }

    #[test]
    fn the_same_is_not_said_twice() {
        let mut told = Told::default();
        let first = patch(&mut told, "0/1 nodes are available", Nomination::Keep, 0).unwrap();
        assert_eq!(
            first,
            json!({"metadata": {"uid": "u"}, "status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/1 nodes are available", "lastProbeTime": null,
                "lastTransitionTime": "2027-01-15T08:00:00Z", "observedGeneration": 3}]}})
        );
        assert_eq!(patch(&mut told, "0/1 nodes are available", Nomination::Keep, 5), None);
        let other = patch(&mut told, "0/2 nodes are available", Nomination::Keep, 9).unwrap();
        assert_eq!(other["status"]["conditions"][0]["lastTransitionTime"], "2027-01-15T08:00:00Z");
    }

    #[test]
    fn a_nomination_is_set_and_cleared() {
        let mut told = Told::default();
        let set = patch(&mut told, "m", Nomination::Set("n1".into()), 0).unwrap();
        assert_eq!(set["status"]["nominatedNodeName"], "n1");
        assert_eq!(patch(&mut told, "m", Nomination::Set("n1".into()), 1), None);
        let cleared = patch(&mut told, "m", Nomination::Clear, 2).unwrap();
        assert_eq!(cleared["status"], json!({"nominatedNodeName": null}));
    }

    #[test]
    fn what_may_not_have_arrived_is_said_again() {
        let mut told = Told::default();
        patch(&mut told, "m", Nomination::Set("n1".into()), 0).unwrap();
        told.forget();
        let again = patch(&mut told, "m", Nomination::Keep, 1).unwrap();
        assert_eq!(again["status"]["conditions"][0]["message"], "m");
        assert_eq!(again["status"]["nominatedNodeName"], "n1");
        assert_eq!(patch(&mut told, "m", Nomination::Keep, 2), None);
    }
}
