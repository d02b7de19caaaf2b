//! Rules about how a scheduler goes about it, whatever comes of it: what it must know before it decides, and what it must do
//! before it does something else. Seen on the wire.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use supercargo_live::world::Request;

use super::rules::{Amounts, SimulationRule, demand, is_plain, text};

/// What is known of pods and of what was sent about them.
#[derive(Default)]
pub(super) struct Conduct {
    /// The bindings whose outcome is not known to their sender, by process and the pod's path: the pod's uid.
    unknown: BTreeMap<(String, String), String>,
    /// Who has bound a pod, as they were told themselves, by uid.
    bound_by: BTreeMap<String, String>,
    /// Since which version pods are on their way out, by uid.
    leaving: BTreeMap<String, u64>,
    /// How important pods are, by uid.
    priorities: BTreeMap<String, i64>,
    /// What pods ask for where amounts alone say where they fit, by uid.
    plain_demands: BTreeMap<String, Amounts>,
}

/// A request that the server has answered.
pub(super) struct Answered<'a> {
    pub(super) process: &'a str,
    pub(super) request: &'a Request,
    pub(super) body: &'a Value,
    pub(super) status: Option<u16>,
    /// How long that took.
    pub(super) took: Duration,
}

type Broken = Option<(SimulationRule, String)>;

impl Conduct {
    /// The server was set back: nothing is as those who wrote were told.
    pub(super) fn restored(&mut self) {
        self.bound_by.clear();
        self.leaving.clear();
    }

    /// A pod was stored.
    pub(super) fn stored(&mut self, pod: &Value, version: u64) {
        if !text(pod, &["metadata", "deletionTimestamp"]).is_empty() {
            self.leaving.entry(text(pod, &["metadata", "uid"]).to_owned()).or_insert(version);
        }
        let priority = pod["spec"]["priority"].as_i64().unwrap_or(0);
        let uid = text(pod, &["metadata", "uid"]);
        if self.priorities.insert(uid.to_owned(), priority).is_none() && is_plain(pod) {
            self.plain_demands.insert(uid.to_owned(), demand(pod));
        }
    }

    /// What a pod asks for, if amounts alone say where it fits.
    pub(super) fn plain_demand(&self, uid: &str) -> Option<&Amounts> {
        self.plain_demands.get(uid)
    }

    pub(super) fn priority(&self, uid: &str) -> i64 {
        self.priorities.get(uid).copied().unwrap_or(0)
    }

    /// A process reads something: to read a pod is to look what became of it.
    pub(super) fn reads(&mut self, process: &str, path: &str) {
        self.unknown.remove(&(process.to_owned(), path.to_owned()));
    }

    /// Whether a pod was on its way out at a version.
    pub(super) fn is_leaving(&self, uid: &str, version: u64) -> bool {
        self.leaving.get(uid).is_some_and(|since| *since <= version)
    }

    /// A process tells what it decided about a pod, by its path and uid.
    pub(super) fn decided(&mut self, process: &str, path: String, uid: &str) -> Broken {
        let unknown = self.unknown.remove(&(process.to_owned(), path))?;
        (unknown == uid).then(|| {
            let what =
                format!("{process} takes pod {uid} up again, and has not looked what became of its binding");
            (SimulationRule::NothingGivenTwice, what)
        })
    }

    /// The server has answered while the sender still waited for it.
    pub(super) fn answered(&mut self, answered: &Answered<'_>) -> Broken {
        let Answered { process, request, body, status, took } = answered;
        if *took >= request.timeout {
            return None;
        }
        let uid = text(body, &["metadata", "uid"]);
        let is_done = status.is_some_and(|status| (200..300).contains(&status));
        if let Some(pod) = request.path.strip_suffix("/binding") {
            if is_done {
                self.bound_by.insert(uid.to_owned(), (*process).to_owned());
            } else if status.is_none_or(|status| status >= 500) {
                self.unknown.insert(((*process).to_owned(), pod.to_owned()), uid.to_owned());
            }
        }
        let conditions = body["status"]["conditions"].as_array().into_iter().flatten();
        let waits = conditions.into_iter().any(|condition| text(condition, &["type"]) == "PodScheduled");
        let is_late =
            request.path.ends_with("/status") && self.bound_by.get(uid).is_some_and(|by| by == process);
        (is_done && waits && is_late).then(|| {
            let what = format!("{process} sends {request}, that the pod waits, after it has bound it");
            (SimulationRule::WrittenAsDecided, what)
        })
    }
}
