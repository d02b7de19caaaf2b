//! What has been recorded of each object, so that only what changes is written.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use supercargo_live::{informer::WatchEvent, recording};
use supercargo_model::object::Kind;

/// Nodes before pods that run, and these before pods that wait; then by age and by name.
type Order = (u8, String, String, String);

/// Kind, namespace and name.
type Name = (String, String, String);

/// What is there, as it was recorded.
#[derive(Default)]
pub(super) struct State {
    recorded: BTreeMap<Name, Value>,
    /// What is there now, until all of it has been told for the first time.
    first_seen: Option<BTreeMap<Name, Value>>,
    annotations: Vec<String>,
    lines: String,
    changes: u64,
    /// Time does not go backwards in a recording, whatever the clock does.
    latest: f64,
}

impl State {
    /// What an earlier recording ended with.
    pub(super) fn resumed(recorded: Option<String>, annotations: &[String]) -> Self {
        let mut state =
            Self { first_seen: Some(BTreeMap::new()), annotations: annotations.to_vec(), ..Self::default() };
        for line in recorded.iter().flat_map(|text| text.lines()) {
            let Ok(mut line) = serde_json::from_str::<Map<String, Value>>(line) else { continue };
            let at = line.get("at").and_then(Value::as_f64).unwrap_or(0.0);
            state.latest = state.latest.max(at);
            if line.get("op").is_some_and(|op| op == "delete") {
                let field = |name: &str| line.get(name).map(text).unwrap_or_default();
                state.recorded.remove(&(field("kind"), field("namespace"), field("name")));
            } else if let Some(object) = line.remove("object") {
                state.recorded.insert(name_of(&object), object);
            }
        }
        state
    }

    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        self.recorded.len()
    }

    /// Whether everything has been told at least once.
    pub(super) fn is_complete(&self) -> bool {
        self.first_seen.is_none()
    }

    /// How many changes were written.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The lines that are to be written.
    pub(super) fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines)
    }

    pub(super) fn take_in(&mut self, event: WatchEvent, now: f64, synced: bool) {
        self.latest = self.latest.max(now);
        match event {
            WatchEvent::Put { object, text: Some(text), .. } => {
                if let Some(kept) = recording::kept(&object, &text, &self.annotations) {
                    match &mut self.first_seen {
                        Some(seen) => drop(seen.insert(name_of(&kept), kept)),
                        None => self.put(kept),
                    }
                }
            }
            WatchEvent::Gone { kind, key, .. } => {
                let name = name(kind, &key.namespace, &key.name);
                match &mut self.first_seen {
                    Some(seen) => drop(seen.remove(&name)),
                    None => self.remove(&name),
                }
            }
            WatchEvent::Put { text: None, .. }
            | WatchEvent::Unreadable { .. }
            | WatchEvent::Synced(_)
            | WatchEvent::UpTo(..) => {}
        }
        if synced && let Some(seen) = self.first_seen.take() {
            self.catch_up(seen);
        }
    }

    /// What has changed since the recording that is continued ended; all of it if there is none.
    fn catch_up(&mut self, seen: BTreeMap<Name, Value>) {
        let gone = self.recorded.keys().filter(|name| !seen.contains_key(*name));
        let gone: Vec<Name> = gone.cloned().collect();
        gone.iter().for_each(|name| self.remove(name));
        let mut seen: Vec<Value> = seen.into_values().collect();
        seen.sort_by_cached_key(order);
        seen.into_iter().for_each(|object| self.put(object));
    }

    fn put(&mut self, object: Value) {
        let name = name_of(&object);
        let op = match self.recorded.get(&name) {
            Some(known) if *known == object => return,
            Some(known) if known["metadata"]["uid"] != object["metadata"]["uid"] => {
                self.remove(&name);
                "add"
            }
            Some(_) => "update",
            None => "add",
        };
        self.changes += 1;
        self.lines.push_str(&line(self.latest, op, &object));
        self.recorded.insert(name, object);
    }

    fn remove(&mut self, name: &Name) {
        if self.recorded.remove(name).is_none() {
            return;
        }
        self.changes += 1;
        let (kind, namespace, name) = name;
        let mut line = json!({"at": self.latest, "op": "delete", "kind": kind, "name": name});
        if !namespace.is_empty() {
            line["namespace"] = json!(namespace);
        }
        self.lines.push_str(&format!("{line}\n"));
    }

    /// All that is there, as the beginning of a file.
    pub(super) fn snapshot(&self, now: f64) -> String {
        let mut all: Vec<&Value> = self.recorded.values().collect();
        all.sort_by_cached_key(|object| order(object));
        all.into_iter().map(|object| line(self.latest.max(now), "add", object)).collect()
    }

    /// All that is there, as objects.
    pub(super) fn into_objects(self) -> Vec<Value> {
        let mut all: Vec<Value> = self.recorded.into_values().collect();
        all.sort_by_cached_key(order);
        all
    }
}

fn line(at: f64, op: &str, object: &Value) -> String {
    format!("{{\"at\":{at},\"op\":\"{op}\",\"object\":{object}}}\n")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn name_of(object: &Value) -> Name {
    let metadata = &object["metadata"];
    (text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

fn name(kind: Kind, namespace: &str, name: &str) -> Name {
    (kind.name().to_owned(), namespace.to_owned(), name.to_owned())
}

fn order(object: &Value) -> Order {
    let metadata = &object["metadata"];
    let rank = match (object["kind"].as_str(), object["spec"]["nodeName"].as_str()) {
        (Some("Pod"), Some(_)) => 1,
        (Some("Pod"), None) => 2,
        _ => 0,
    };
    (rank, text(&metadata["creationTimestamp"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, uid: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": uid}})
    }

    #[test]
    fn lines_that_are_no_changes_are_passed_over() {
        let stays = line(5.0, "add", &object("Node", "stays", "1"));
        let text = format!("{{\"at\":4}}\n7\n[]\n\"delete\"\nnull\n{stays}");
        let state = State::resumed(Some(text), &[]);
        assert_eq!(state.snapshot(0.0), stays);
    }

    #[test]
    fn a_recording_goes_on_with_what_has_changed() {
        let earlier =
            [object("Node", "stays", "1"), object("Node", "goes", "2"), object("Pod", "again", "3")];
        let text: String = earlier.iter().map(|object| line(5.0, "add", object)).collect();
        let mut state = State::resumed(Some(text), &[]);
        let seen = [object("Node", "stays", "1"), object("Pod", "again", "4"), object("Node", "new", "5")];
        // The clock was put back.
        state.take_in(WatchEvent::Synced(Kind::Node), 3.0, false);
        state.first_seen = None;
        state.catch_up(seen.into_iter().map(|object| (name_of(&object), object)).collect());
        let lines = state.take_lines();
        let lines: Vec<(f64, String)> = lines
            .lines()
            .map(|line| {
                let line: Value = serde_json::from_str(line).unwrap();
                let named =
                    if line["op"] == "delete" { &line["name"] } else { &line["object"]["metadata"]["name"] };
                (
                    line["at"].as_f64().unwrap(),
                    format!("{} {}", line["op"].as_str().unwrap(), named.as_str().unwrap()),
                )
            })
            .collect();
        let expected = ["delete goes", "add new", "delete again", "add again"];
        assert_eq!(lines, expected.map(|what| (5.0, what.to_owned())));
    }
}
