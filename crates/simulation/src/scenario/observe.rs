//! What can be seen of the pods of a scenario, from outside.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{kind::resource_of, play::Stage, step::Scenario};

/// Whoever reports events under this name is a player, and not looked at.
const PLAYER: &str = "live-diff";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const ANY: &str = "<any>";

/// What a scheduler has counted since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricReadings {
    /// Attempts, by result.
    pub attempts: BTreeMap<String, i64>,
    /// Pods that wait, by queue.
    pub pending: BTreeMap<String, i64>,
    /// Pods that came into a queue, as `event>queue`.
    pub incoming: BTreeMap<String, i64>,
    /// How often it was looked for victims.
    pub preemptions: i64,
    /// How many there were.
    pub victims: i64,
}

/// Writes down what it sees at checkpoints.
pub(super) struct Observer {
    /// What had been counted before.
    base: MetricReadings,
    /// Every pod that has been there.
    seen: BTreeSet<String>,
}

impl Observer {
    /// Nothing has been seen yet, and so much been counted already.
    pub(super) fn since(base: MetricReadings) -> Self {
        Self { base, seen: BTreeSet::new() }
    }

    /// Counts from here on.
    pub(super) fn count_from(&mut self, base: MetricReadings) {
        self.base = base;
    }

    /// What can be seen now.
    pub(super) fn checkpoint(&mut self, scenario: &Scenario, stage: &mut dyn Stage) -> Value {
        let namespace = scenario.namespace();
        let view = View { scenario, namespace: &namespace };
        let mut pods: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
        for pod in items(stage, "Pod").iter().filter(|pod| view.is_own(text(pod, "/metadata/namespace"))) {
            let key = view.key(text(pod, "/metadata/namespace"), text(pod, "/metadata/name"));
            pods.insert(key, view.pod(pod));
        }
        let gone = || json!({"gone": true}).as_object().cloned().unwrap_or_default();
        for name in &self.seen {
            pods.entry(name.clone()).or_insert_with(gone);
        }
        self.seen.extend(pods.keys().cloned());
        for (name, events) in view.events(&items(stage, "Event")) {
            pods.entry(name).or_insert_with(gone).insert("events".to_owned(), events);
        }
        let mut seen = json!({"pods": pods});
        if scenario.volumes {
            seen["claims"] = view.claims(&items(stage, "PersistentVolumeClaim"));
            seen["volumes"] = volumes(&items(stage, "PersistentVolume"));
        }
        if scenario.theme == "dra" {
            seen["resourceclaims"] = view.resource_claims(&items(stage, "ResourceClaim"));
        }
        if let Some(metrics) = stage.metrics().filter(|_| !scenario.loose) {
            seen["metrics"] = self.counted(&metrics);
        }
        seen
    }

    /// What has been counted since the scenario began.
    fn counted(&self, now: &MetricReadings) -> Value {
        let grown = |now: &BTreeMap<String, i64>, base: &BTreeMap<String, i64>| -> Value {
            let grown = now.iter().map(|(key, count)| (key, count - base.get(key).copied().unwrap_or(0)));
            grown.filter(|(_, count)| *count != 0).map(|(key, count)| (key.clone(), json!(count))).collect()
        };
        let waiting = now.pending.iter().filter(|(_, pods)| **pods != 0);
        json!({
            "attempts": grown(&now.attempts, &self.base.attempts),
            "incoming": grown(&now.incoming, &self.base.incoming),
            "pending": waiting.collect::<BTreeMap<_, _>>(),
            "preemptions": now.preemptions - self.base.preemptions,
            "victims": now.victims - self.base.victims,
        })
    }
}

/// All objects of a kind, wherever they are.
pub(super) fn items(stage: &mut dyn Stage, kind: &str) -> Vec<Value> {
    let path = resource_of(kind).map(|resource| resource.path("")).unwrap_or_default();
    let (_, mut list) = stage.request("GET", &path, "", Value::Null);
    match list["items"].take() {
        Value::Array(items) => items,
        // The server does not know the kind.
        _ => Vec::new(),
    }
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A text, or null if it is empty.
fn or_null(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

fn volumes(volumes: &[Value]) -> Value {
    let claim = |volume| or_null(text(volume, "/spec/claimRef/name"));
    volumes.iter().map(|volume| (text(volume, "/metadata/name").to_owned(), claim(volume))).collect()
}

/// How a scenario looks at objects.
struct View<'s> {
    scenario: &'s Scenario,
    namespace: &'s str,
}

impl View<'_> {
    fn is_own(&self, namespace: &str) -> bool {
        namespace.starts_with(self.namespace)
    }

    /// A pod's name, behind its namespace's if that is another than the scenario's first.
    fn key(&self, namespace: &str, name: &str) -> String {
        match namespace {
            own if own == self.namespace => name.to_owned(),
            other => format!("{}/{name}", other.replace(self.namespace, "")),
        }
    }

    /// A text without what differs from run to run.
    fn normalized(&self, text: &str) -> String {
        without_uids(text).replace(self.namespace, "<ns>")
    }

    /// Which node it is, is chance.
    fn is_free(&self, pod: &str) -> bool {
        self.scenario.any_node.iter().any(|free| free == pod || free == "*")
    }

    fn pod(&self, pod: &Value) -> Map<String, Value> {
        let free = self.is_free(text(pod, "/metadata/name"));
        let node = |pointer| match text(pod, pointer) {
            "" => Value::Null,
            _ if free => ANY.into(),
            node => node.into(),
        };
        let mut seen = Map::new();
        seen.insert("bound".to_owned(), (!text(pod, "/spec/nodeName").is_empty()).into());
        seen.insert("node".to_owned(), node("/spec/nodeName"));
        seen.insert("nominated".to_owned(), node("/status/nominatedNodeName"));
        seen.insert("deleting".to_owned(), (!text(pod, "/metadata/deletionTimestamp").is_empty()).into());
        for condition in list(pod, "/status/conditions") {
            let kind = text(condition, "/type");
            if !matches!(kind, "PodScheduled" | "DisruptionTarget") {
                continue;
            }
            let (status, reason) = (text(condition, "/status"), text(condition, "/reason"));
            let message = self.normalized(text(condition, "/message"));
            seen.insert(kind.to_owned(), format!("{status}/{reason}: {message}").into());
            if self.scenario.shape {
                let generation = condition["observedGeneration"].clone();
                seen.insert(format!("{kind}.observedGeneration"), generation);
            }
        }
        if self.scenario.shape {
            seen.insert("generation".to_owned(), pod["metadata"]["generation"].clone());
        }
        seen
    }

    /// The scheduler's events, by pod.
    fn events(&self, events: &[Value]) -> BTreeMap<String, Value> {
        let mut counts: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        let mut shapes: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for event in events.iter().filter(|event| self.is_of_scheduler(event)) {
            let pod = self.key(text(event, "/regarding/namespace"), text(event, "/regarding/name"));
            let (kind, reason) = (text(event, "/type"), text(event, "/reason"));
            let what = format!("{kind} {reason}: {}", self.note(event));
            let number = |pointer| event.pointer(pointer).and_then(Value::as_i64).filter(|count| *count != 0);
            let count = number("/series/count").or_else(|| number("/deprecatedCount")).unwrap_or(1).max(1);
            *counts.entry(pod.clone()).or_default().entry(what).or_default() += count;
            if self.scenario.shape {
                shapes.entry(pod).or_default().entry(reason.to_owned()).or_default().insert(shape(event));
            }
        }
        let mut seen = BTreeMap::new();
        for (pod, counts) in counts {
            let how_often = |count: i64| match count {
                _ if self.scenario.loose => "1+",
                1 => "1",
                _ => "2+",
            };
            let counted = counts.into_iter().map(|(what, count)| (what, how_often(count).to_owned()));
            let forms = shapes.remove(&pod).unwrap_or_default().into_iter().map(|(reason, forms)| {
                let forms: Vec<String> = forms.into_iter().collect();
                (format!("(shape of {reason})"), forms.join(", "))
            });
            seen.insert(pod, counted.chain(forms).collect());
        }
        seen
    }

    fn is_of_scheduler(&self, event: &Value) -> bool {
        let by = match text(event, "/reportingController") {
            "" => text(event, "/deprecatedSource/component"),
            by => by,
        };
        !matches!(by, "" | "kubelet")
            && !by.starts_with(PLAYER)
            && self.is_own(text(event, "/regarding/namespace"))
            && text(event, "/regarding/kind") == "Pod"
    }

    fn note(&self, event: &Value) -> String {
        let note = self.normalized(text(event, "/note"));
        if self.is_free(text(event, "/regarding/name")) {
            let note = with_any_after(&note, "Successfully assigned ", " to ");
            return with_any_after(&note, "", "on node ");
        }
        note
    }

    fn claims(&self, claims: &[Value]) -> Value {
        let own = claims.iter().filter(|claim| self.is_own(text(claim, "/metadata/namespace")));
        own.map(|claim| {
            let seen = json!({
                "selectedNode": claim["metadata"]["annotations"][SELECTED_NODE],
                "volume": claim["spec"]["volumeName"],
            });
            (text(claim, "/metadata/name").to_owned(), seen)
        })
        .collect()
    }

    fn resource_claims(&self, claims: &[Value]) -> Value {
        let own = claims.iter().filter(|claim| self.is_own(text(claim, "/metadata/namespace")));
        own.map(|claim| {
            let seen = json!({
                "allocated": claim["status"]["allocation"].is_object(),
                "reservedFor": list(claim, "/status/reservedFor").len(),
            });
            (text(claim, "/metadata/name").to_owned(), seen)
        })
        .collect()
    }
}

/// The form of an event, in the words of the recordings.
fn shape(event: &Value) -> String {
    let or_none = |value: &str| if value.is_empty() { "None".to_owned() } else { value.to_owned() };
    let has_version = !text(event, "/regarding/resourceVersion").is_empty();
    let related = match event["related"].as_object().is_some_and(|related| !related.is_empty()) {
        true => format!("{}/{}", text(event, "/related/kind"), text(event, "/related/name")),
        false => "None".to_owned(),
    };
    format!(
        "action={} by={} version={} api={} related={related}",
        or_none(text(event, "/action")),
        or_none(text(event, "/reportingController")),
        if has_version { "True" } else { "False" },
        or_none(text(event, "/regarding/apiVersion")),
    )
}

const UID_PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// How many bytes of a uid are at the beginning of the text, if there is one.
fn uid_length(text: &[u8]) -> Option<usize> {
    let mut length = 0;
    for (place, part) in UID_PARTS.into_iter().enumerate() {
        if place > 0 {
            text.get(length).filter(|byte| **byte == b'-')?;
            length += 1;
        }
        let digits = text.get(length..length + part)?;
        digits.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).then_some(())?;
        length += part;
    }
    Some(length)
}

fn without_uids(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(letter) = rest.chars().next() {
        let taken = match uid_length(rest.as_bytes()) {
            Some(length) => {
                kept.push_str("<uid>");
                length
            }
            None => {
                kept.push(letter);
                letter.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    kept
}

/// Puts `<any>` in place of the word after `before`, where `start` comes first.
fn with_any_after(text: &str, start: &str, before: &str) -> String {
    let Some(from) = text.find(start).map(|at| at + start.len()) else { return text.to_owned() };
    let Some(word) = text[from..].find(before).map(|at| from + at + before.len()) else {
        return text.to_owned();
    };
    let end = text[word..].find(char::is_whitespace).map_or(text.len(), |at| word + at);
    format!("{}{ANY}{}", &text[..word], &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_left_out() {
        let uid = "0a1b2c3d-0000-4fff-8abc-0123456789ab";
        assert_eq!(without_uids(&format!("é {uid}, {uid}!")), "é <uid>, <uid>!");
        assert_eq!(without_uids(&uid[..35]), uid[..35]);
        assert_eq!(
            with_any_after("Successfully assigned a/p to n1", "Successfully assigned ", " to "),
            "Successfully assigned a/p to <any>"
        );
        assert_eq!(
            with_any_after("Preempted by pod x on node n1", "", "on node "),
            "Preempted by pod x on node <any>"
        );
        assert_eq!(with_any_after("nothing", "", "on node "), "nothing");
    }
}
