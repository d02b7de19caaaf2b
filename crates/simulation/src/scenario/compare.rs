//! How two records of a scenario differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Map, Value};

use super::expectation::Expectation;

/// How closely records are compared; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What the cluster becomes.
    State,
    /// The events' texts, and whether they came more than once.
    Events,
    /// How often pods were tried, and where they wait.
    Metrics,
}

/// Something that is not as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where: a checkpoint, a group, an object, a field.
    pub path: Vec<String>,
    /// What kube-scheduler did; null is nothing.
    pub expected: Value,
    /// What was seen.
    pub seen: Value,
}

impl Difference {
    /// On which level it shows.
    pub fn level(&self) -> Level {
        match self.path.get(1).map(String::as_str) {
            Some("events") => Level::Events,
            Some("metrics") => Level::Metrics,
            _ => Level::State,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, not {}", self.path.join(" | "), self.seen, self.expected)
    }
}

type Flat = BTreeMap<Vec<String>, Value>;

/// Where what was seen at the checkpoints differs from what was expected.
pub fn differences(expectation: &Expectation, seen: &Map<String, Value>) -> Vec<Difference> {
    let (expected, seen) = (flat(&expectation.checkpoints), flat(seen));
    let measured = |flat: &Flat, label: &str| flat.contains_key(&vec![label.to_owned(), METRICS.to_owned()]);
    let paths: BTreeSet<&Vec<String>> = expected.keys().chain(seen.keys()).collect();
    let value = |flat: &Flat, path: &Vec<String>| flat.get(path).cloned().unwrap_or_default();
    let ignored = |path: &[String]| expectation.ignore.iter().any(|prefix| path.starts_with(prefix));
    let comparable = |path: &[String]| {
        path.len() > 2 && (path[1] != METRICS || measured(&expected, &path[0]) && measured(&seen, &path[0]))
    };
    paths
        .into_iter()
        .filter(|path| comparable(path) && !ignored(path))
        .map(|path| Difference {
            path: path.clone(),
            expected: value(&expected, path),
            seen: value(&seen, path),
        })
        .filter(|difference| difference.expected != difference.seen)
        .collect()
}

const METRICS: &str = "metrics";

/// The checkpoints as paths with values.
fn flat(checkpoints: &Map<String, Value>) -> Flat {
    let mut flat = Flat::new();
    for (label, checkpoint) in checkpoints {
        let mut put = |path: &[&str], value: Value| {
            let path = std::iter::once(label.as_str()).chain(path.iter().copied());
            flat.insert(path.map(str::to_owned).collect(), value);
        };
        for (pod, fields) in entries(&checkpoint["pods"]) {
            for (field, value) in entries(fields) {
                if field == "events" {
                    for (text, count) in entries(value) {
                        put(&["events", pod, text], count.clone());
                    }
                } else {
                    put(&["pods", pod, field], value.clone());
                }
            }
        }
        for group in ["claims", "volumes", "resourceclaims"] {
            for (name, fields) in entries(&checkpoint[group]) {
                if fields.is_object() {
                    for (field, value) in entries(fields) {
                        put(&[group, name, field], value.clone());
                    }
                } else {
                    put(&[group, name, "claimRef"], fields.clone());
                }
            }
        }
        if let Some(metrics) = checkpoint.get(METRICS).filter(|metrics| metrics.is_object()) {
            // That there are any: without, they are not compared.
            put(&[METRICS], Value::Bool(true));
            for group in ["attempts", "pending"] {
                for (name, value) in entries(&metrics[group]) {
                    put(&[METRICS, group, name], value.clone());
                }
            }
            for (name, count) in incoming(&metrics["incoming"]) {
                put(&[METRICS, "incoming", &name], count.into());
            }
            for group in ["preemptions", "victims"] {
                put(&[METRICS, group, ""], metrics[group].clone());
            }
        }
    }
    flat
}

/// Whether a pod's backoff is over when an event comes is a matter of milliseconds: both queues are one.
fn incoming(written: &Value) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for (name, count) in entries(written) {
        let (event, queue) = name.rsplit_once('>').unwrap_or((name, ""));
        if matches!(event, "PopFromBackoffQ" | "BackoffComplete") {
            continue;
        }
        let queue = if matches!(queue, "active" | "backoff") { "ready" } else { queue };
        *counts.entry(format!("{event}>{queue}")).or_default() += count.as_i64().unwrap_or_default();
    }
    counts
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differ(expected: Value, seen: Value, ignore: Value) -> Vec<String> {
        let expectation = json!({"checkpoints": {"c": expected}, "ignore": ignore});
        let expectation: Expectation = serde_json::from_value(expectation).expect("an expectation");
        let seen = json!({"c": seen});
        let found = differences(&expectation, seen.as_object().expect("a map"));
        found.iter().map(|one| format!("{:?} {one}", one.level())).collect()
    }

    #[test]
    fn what_differs_is_told_by_path_and_level() {
        let expected = json!({"pods": {"p": {"node": "n", "nominated": null, "events": {"Normal x: y": "1"}}},
                              "volumes": {"v": "c"}});
        let seen =
            json!({"pods": {"p": {"node": "m", "events": {"Normal x: y": "2+"}}}, "volumes": {"v": null}});
        assert_eq!(
            differ(expected, seen, json!([])),
            [
                r#"Events c | events | p | Normal x: y: "2+", not "1""#,
                r#"State c | pods | p | node: "m", not "n""#,
                r#"State c | volumes | v | claimRef: null, not "c""#,
            ]
        );
    }

    #[test]
    fn what_is_chance_is_not_compared() {
        let metrics = |attempts: i64, queue: &str| {
            json!({"pods": {}, "metrics": {"attempts": {"error": attempts}, "pending": {},
                   "incoming": {format!("NodeAdd>{queue}"): 1, "BackoffComplete>active": attempts},
                   "preemptions": 0, "victims": 0}})
        };
        assert_eq!(differ(metrics(1, "active"), metrics(1, "backoff"), json!([])), [""; 0]);
        assert_eq!(
            differ(metrics(1, "active"), metrics(2, "active"), json!([])),
            ["Metrics c | metrics | attempts | error: 2, not 1"]
        );
        assert_eq!(
            differ(metrics(1, "active"), metrics(2, "active"), json!([["c", "metrics", "attempts"]])),
            [""; 0]
        );
        assert_eq!(
            differ(metrics(1, "active"), json!({"pods": {}}), json!([])),
            [""; 0],
            "nothing was measured"
        );
    }
}
