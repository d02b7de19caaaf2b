//! What goes over a process's connection to the API server: what it sends, and what it has heard.

use std::{collections::BTreeSet, ops::Bound, sync::Arc, time::Duration};

use bytes::Bytes;
use memchr::memmem;
use serde_json::Value;
use supercargo_live::world::{Method, Request};

use super::{Eviction, HandOver, ProcessView, Rules, SimulationRule, State, text};
use crate::{
    soak::conduct::Answered,
    world::{Wiretap, resource_in},
};

/// Listens to one process.
pub(in crate::soak) struct Tap {
    pub(in crate::soak) rules: Arc<Rules>,
    pub(in crate::soak) process: String,
}

impl Wiretap for Tap {
    fn sent(&self, request: &Request) {
        self.rules.wrote(&self.process, request);
    }

    fn answered(&self, request: &Request, sent: Duration, status: Option<u16>) {
        self.rules.answered(&self.process, request, sent, status);
    }

    fn arrived(&self, request: &Request, status: u16, body: &Bytes) {
        self.rules.arrived(&self.process, request, status, body);
    }

    fn delivered(&self, resource: &str, version: u64) {
        self.rules.delivered(&self.process, resource, version);
    }
}

impl Rules {
    fn wrote(&self, process: &str, request: &Request) {
        self.hear(process);
        let resource = resource_in(&request.path);
        if request.method == Method::Get {
            return self.state().conduct.reads(process, &request.path);
        }
        if resource == "leases" {
            return;
        }
        // Events tell of attempts, and those are made again when a backoff or a timer is over.
        self.state().writes += u64::from(resource != "events");
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let is_binding = request.path.ends_with("/binding");
        let is_eviction = resource == "pods" && request.method == Method::Delete;
        let is_claim = resource == "resourceclaims";
        if is_claim {
            self.state().devices.sent(process, request, &body);
        }
        if is_binding || is_eviction || is_claim || resource.starts_with("persistentvolume") {
            self.check_lease(process, request);
        }
        if is_binding {
            self.check_binding(process, request, &body);
        }
        if is_eviction {
            self.check_eviction(process, text(&body, &["preconditions", "uid"]));
        }
        if request.path.ends_with("/status") && resource == "pods" {
            self.check_status(process, request, &body);
            if body["status"].get("nominatedNodeName").is_some_and(Value::is_null) {
                self.check_claim_is_over(process, text(&body, &["metadata", "uid"]));
            }
        }
    }

    fn check_lease(&self, process: &str, request: &Request) {
        let now = self.clock.uptime();
        let state = self.state();
        let elects = state.processes.get(process).is_some_and(|view| view.elects);
        if !elects || now < state.lease.unsure_until {
            return;
        }
        let leads = state.lease.holder.as_deref() == Some(process);
        let in_time = state.lease.until.get(process).is_some_and(|until| now < *until);
        let holder = state.lease.holder.clone().unwrap_or_else(|| "nobody".to_owned());
        drop(state);
        if !leads || !in_time {
            self.broken(
                SimulationRule::LeaseAndIdentity,
                format!("{process} sends {request} while {holder} holds the lease"),
            );
        }
    }

    fn check_binding(&self, process: &str, request: &Request, body: &Value) {
        let (uid, node) = (text(body, &["metadata", "uid"]), text(body, &["target", "name"]));
        let state = self.state();
        let decided = state.processes.get(process).is_some_and(|view| view.decision(uid, node).is_some());
        drop(state);
        if uid.is_empty() || !decided {
            self.broken(
                SimulationRule::LeaseAndIdentity,
                format!("{process} sends {request} for uid {uid:?} to {node}, which it did not decide"),
            );
        }
    }

    fn check_status(&self, process: &str, request: &Request, body: &Value) {
        let uid = text(body, &["metadata", "uid"]);
        let conditions = body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        for condition in conditions.iter().filter(|one| text(one, &["status"]) == "False") {
            let message = text(condition, &["message"]);
            let is_so = |view: &ProcessView| view.failures.get(uid).is_some_and(|all| all.contains(message));
            if !self.state().processes.get(process).is_some_and(is_so) {
                self.broken(
                    SimulationRule::WrittenAsDecided,
                    format!("{process} sends {request} with {message:?}, which it did not decide"),
                );
            }
        }
    }

    /// What people are told about a pod is what was decided about it.
    fn check_event(&self, process: &str, event: &Value) {
        let (uid, note) = (text(event, &["regarding", "uid"]), text(event, &["note"]));
        let state = self.state();
        let Some(view) = state.processes.get(process) else { return };
        let is_so = match text(event, &["reason"]) {
            "Scheduled" => {
                let node = note.split_once(" to ").map_or("", |(_, node)| node);
                view.decision(uid, node).is_some()
            }
            "FailedScheduling" if !note.starts_with("skip schedule deleting pod") => {
                // A long message is cut.
                let told = note.strip_suffix(" ...").unwrap_or(note);
                let first = |all: &BTreeSet<String>| {
                    let mut from = all.range::<str, _>((Bound::Included(told), Bound::Unbounded));
                    from.next().is_some_and(|failure| failure.starts_with(told))
                };
                view.failures.get(uid).is_some_and(first)
            }
            _ => true,
        };
        drop(state);
        if !is_so {
            let what = format!("{process} tells about pod {uid} what it did not decide: {note}");
            self.broken(SimulationRule::WrittenAsDecided, what);
        }
    }

    fn answered(&self, process: &str, request: &Request, sent: Duration, status: Option<u16>) {
        let resource = resource_in(&request.path);
        let done = status.is_some_and(|status| (200..300).contains(&status));
        if resource == "leases" {
            if done && request.method != Method::Get {
                self.lease_written(process, request, sent);
            } else if request.method != Method::Get && is_release(request) {
                // Nobody knows whether it was given back.
                self.state().lease.holder = None;
            }
            return;
        }
        if request.method != Method::Get {
            let status = status.map_or("no answer".to_owned(), |status| status.to_string());
            let about = if resource == "events" { event_note(&request.body) } else { String::new() };
            self.history.say(process, format!("{request}: {status}{about}"));
        }
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if resource == "events" && request.method == Method::Post {
            // Not when it is sent: what was decided at the same moment may be told a little later.
            self.check_event(process, &body);
        }
        if resource == "resourceclaims" {
            self.state().devices.answered(request, done, self.clock.uptime());
        }
        let took = self.clock.uptime().saturating_sub(sent);
        let answered = Answered { process, request, body: &body, status, took };
        let broken = self.state().conduct.answered(&answered);
        broken.into_iter().for_each(|(rule, what)| self.broken(rule, what));
        if request.path.ends_with("/binding") && done {
            let uid = text(&body, &["metadata", "uid"]).to_owned();
            self.state().bound_by.insert(uid, process.to_owned());
            // Only now it is known whose binding the server has stored.
            self.check_node(text(&body, &["target", "name"]));
        }
        if resource == "pods" && request.method == Method::Delete && done {
            let victim = text(&body, &["preconditions", "uid"]).to_owned();
            let mut state = self.state();
            let Some(pod) = state.bound.get(&victim) else { return };
            let (uid, victim, node) = (victim, pod.pod.clone(), pod.node.clone());
            state.is_evicted(process, &uid, &node);
            let at = self.clock.uptime();
            state.evictions.push(Eviction { at, by: process.to_owned(), victim, uid, node });
        }
    }

    /// A whole list tells all there is up to its version; a part of one, or a single object, says nothing about others.
    fn arrived(&self, process: &str, request: &Request, status: u16, body: &Bytes) {
        let resource = resource_in(&request.path);
        let is_list =
            request.method == Method::Get && resource != "leases" && !request.path.contains("watch=");
        if !is_list || status != 200 || request.path.contains("limit=1&") || request.path.ends_with("limit=1")
        {
            return;
        }
        if let Some(version) = list_version(body) {
            self.delivered(process, resource, version);
        }
    }

    fn lease_written(&self, process: &str, request: &Request, sent: Duration) {
        let mut state = self.state();
        let held = (!is_release(request)).then(|| process.to_owned());
        let changed = state.lease.holder != held;
        let stolen = state.lease.stolen_by(process, sent);
        let until = sent + state.lease.duration;
        if changed {
            state.is_handed_over(process, held.is_some(), self.clock.uptime());
        }
        state.lease.holder = held.clone();
        state.lease.until.insert(process.to_owned(), until);
        drop(state);
        if let Some(from) = stolen {
            let what = format!("{process} takes the lease, and that of {from} has not run out");
            self.broken(SimulationRule::LeaseAndIdentity, what);
        }
        if changed {
            self.disturbed();
            self.history
                .say(process, if held.is_some() { "holds the lease now" } else { "releases the lease" });
        }
    }

    fn delivered(&self, process: &str, resource: &str, version: u64) {
        let now = self.clock.uptime();
        let mut state = self.state();
        let Some(view) = state.processes.get_mut(process) else { return };
        let heard = view.delivered.entry(resource.to_owned()).or_default();
        heard.push((now, version));
    }
}

impl State {
    /// The lease is given back, or taken by somebody who did not have it.
    fn is_handed_over(&mut self, process: &str, is_taken: bool, now: Duration) {
        let before = self.lease.given_back.take();
        if is_taken {
            if let Some(view) = self.processes.get_mut(process) {
                view.takes_over = before.map(|hand_over| HandOver { at: now, ..hand_over });
            }
            return;
        }
        let is_own = |uid: &String| self.bound_by.get(uid).is_some_and(|by| by == process);
        let own = self.bound.iter().filter(|(uid, _)| is_own(uid));
        let version = own.map(|(_, pod)| pod.version).max().unwrap_or(0);
        self.lease.given_back = Some(HandOver { from: process.to_owned(), version, at: now });
    }
}

fn list_version(answer: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct List {
        metadata: ListMeta,
        #[serde(default)]
        kind: String,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListMeta {
        resource_version: String,
        #[serde(default, rename = "continue")]
        continues: String,
    }
    let list: List = serde_json::from_slice(answer).ok()?;
    let is_whole = list.kind.ends_with("List") && list.metadata.continues.is_empty();
    is_whole.then(|| list.metadata.resource_version.parse().ok())?
}

fn is_release(request: &Request) -> bool {
    const NOBODY: &[u8] = br#""holderIdentity":"""#;
    memmem::find(&request.body, NOBODY).is_some()
}

fn event_note(body: &[u8]) -> String {
    let event: Value = serde_json::from_slice(body).unwrap_or_default();
    format!(
        " ({} {}: {})",
        text(&event, &["regarding", "name"]),
        text(&event, &["reason"]),
        text(&event, &["note"])
    )
}
