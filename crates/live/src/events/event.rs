//! What an event says.

use std::borrow::Cow;

use serde_json::{Value, json};
use supercargo_framework::handle::{ObjectReference, Occurrence};
use supercargo_model::{Key, Name, Pod};

/// The longest note that the API server takes.
const MAX_NOTE_BYTES: usize = 1024;

/// Whether somebody should look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Urgency {
    /// All is well.
    Normal,
    /// Somebody should look at it.
    Warning,
}

/// An object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    /// Group and version.
    pub api_version: Cow<'static, str>,
    /// Kind.
    pub kind: Cow<'static, str>,
    /// Namespace; empty for objects without.
    pub namespace: Name,
    /// Name.
    pub name: Name,
    /// Identity.
    pub uid: Name,
    /// Which version of it; empty if that does not matter. What happens to another version is another event.
    pub version: Name,
}

impl Reference {
    /// A pod.
    pub fn pod(pod: &Pod) -> Self {
        Self {
            api_version: Cow::Borrowed("v1"),
            kind: Cow::Borrowed("Pod"),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            version: pod.version.0.clone(),
        }
    }

    fn written(&self) -> Value {
        let mut written = json!({
            "apiVersion": self.api_version, "kind": self.kind, "name": &*self.name, "uid": &*self.uid,
        });
        if !self.namespace.is_empty() {
            written["namespace"] = json!(&*self.namespace);
        }
        if !self.version.is_empty() {
            written["resourceVersion"] = json!(&*self.version);
        }
        written
    }
}

impl From<ObjectReference> for Reference {
    fn from(reference: ObjectReference) -> Self {
        let ObjectReference { api_version, kind, key: Key { namespace, name }, uid, version } = reference;
        Self { api_version, kind, namespace, name, uid, version }
    }
}

impl From<Occurrence> for Event {
    fn from(occurrence: Occurrence) -> Self {
        Self {
            regarding: occurrence.regarding.into(),
            related: occurrence.related.map(Reference::from),
            scheduler_name: occurrence.scheduler_name,
            urgency: if occurrence.is_warning { Urgency::Warning } else { Urgency::Normal },
            reason: occurrence.reason,
            action: occurrence.action,
            note: shortened(occurrence.note),
        }
    }
}

/// What makes events the same series, by the rules of client-go. The words are not part of it: of a series, only those of
/// the first event are told.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeriesKey {
    regarding: Reference,
    related: Option<Reference>,
    scheduler_name: Name,
    urgency: Urgency,
    reason: Cow<'static, str>,
    action: Cow<'static, str>,
}

/// Something that happened, for people.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// What it happened to.
    pub regarding: Reference,
    /// What else had a part in it.
    pub related: Option<Reference>,
    /// The scheduler's name, as pods ask for it.
    pub scheduler_name: Name,
    /// Whether somebody should look at it.
    pub urgency: Urgency,
    /// Why, in a word.
    pub reason: Cow<'static, str>,
    /// What was being done.
    pub action: Cow<'static, str>,
    /// What happened, in a sentence.
    pub note: String,
}

impl Event {
    /// A pod was bound to a node.
    pub fn scheduled(pod: &Pod, node: &str) -> Self {
        let note = format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name);
        Self::about(pod, Urgency::Normal, "Scheduled", "Binding", note)
    }

    /// A pod was not scheduled.
    pub fn failed_scheduling(pod: &Pod, message: &str) -> Self {
        Self::about(pod, Urgency::Warning, "FailedScheduling", "Scheduling", message.to_owned())
    }

    /// A pod is not tried because its deletion was asked for.
    pub fn skips_deleting(pod: &Pod) -> Self {
        let note = format!("skip schedule deleting pod: {}/{}", pod.namespace, pod.name);
        Self::about(pod, Urgency::Warning, "FailedScheduling", "Scheduling", note)
    }

    fn about(pod: &Pod, urgency: Urgency, reason: &'static str, action: &'static str, note: String) -> Self {
        Self {
            regarding: Reference::pod(pod),
            related: None,
            scheduler_name: pod.spec.scheduler_name.clone(),
            urgency,
            reason: Cow::Borrowed(reason),
            action: Cow::Borrowed(action),
            note: shortened(note),
        }
    }

    /// What makes events the same series: all but the moment and the words.
    pub(super) fn series(&self) -> SeriesKey {
        SeriesKey {
            regarding: self.regarding.clone(),
            related: self.related.clone(),
            scheduler_name: self.scheduler_name.clone(),
            urgency: self.urgency,
            reason: self.reason.clone(),
            action: self.action.clone(),
        }
    }

    /// A pod is bound once: nothing to count, and nothing that cannot wait.
    pub(super) fn happens_once(&self) -> bool {
        self.reason == "Scheduled"
    }

    /// The namespace that the event is kept in.
    pub(super) fn namespace(&self) -> &str {
        if self.regarding.namespace.is_empty() { "default" } else { &self.regarding.namespace }
    }

    /// The event as an object, but for its series.
    pub(super) fn written(&self, name: &str, time: &str, host: &str) -> Value {
        let mut written = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": self.namespace()},
            "eventTime": time,
            "reportingController": &*self.scheduler_name,
            "reportingInstance": format!("{}-{host}", self.scheduler_name),
            "action": self.action,
            "reason": self.reason,
            "regarding": self.regarding.written(),
            "note": self.note,
            "type": match self.urgency {
                Urgency::Normal => "Normal",
                Urgency::Warning => "Warning",
            },
        });
        if let Some(related) = &self.related {
            written["related"] = related.written();
        }
        written
    }
}

/// A note that the API server takes, ending as kube-scheduler's do.
fn shortened(mut note: String) -> String {
    const END: &str = " ...";
    if note.len() > MAX_NOTE_BYTES {
        note.truncate(note.floor_char_boundary(MAX_NOTE_BYTES - END.len()));
        note.push_str(END);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_at_a_letter() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = shortened("é".repeat(1000));
        assert!(long.len() <= MAX_NOTE_BYTES && long.ends_with("é ..."), "{}", long.len());
    }
}
