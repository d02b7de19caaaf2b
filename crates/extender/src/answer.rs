//! What extenders answer. Field names are read in any case, as Go reads them; fields that nobody knows are passed over.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use supercargo_engine::consult::{MAX_EXTENDER_SCORE, Proposal, Sieved};
use supercargo_framework::preemption::Candidate;
use supercargo_model::Name;

/// What is wrong with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The extender says itself that it failed.
    Refused(String),
    /// It cannot be true.
    Untrue(String),
}

fn untrue(what: impl Into<String>) -> Wrong {
    Wrong::Untrue(what.into())
}

/// A type of Go's without JSON tags: its fields are found whatever their case, and `null` leaves them empty.
macro_rules! from_go {
    ($name:ident { $($field:ident: $type:ty = $key:literal,)+ }) => {
        #[derive(Debug, Default)]
        struct $name { $($field: $type,)+ }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Read;
                impl<'de> Visitor<'de> for Read {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!("an object for ", stringify!($name)))
                    }

                    fn visit_unit<E>(self) -> Result<$name, E> {
                        Ok($name::default())
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                        let mut read = $name::default();
                        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                            $(if key.eq_ignore_ascii_case($key) {
                                if let Some(value) = map.next_value::<Option<$type>>()? {
                                    read.$field = value;
                                }
                                continue;
                            })+
                            map.next_value::<IgnoredAny>()?;
                        }
                        Ok(read)
                    }
                }
                from.deserialize_any(Read)
            }
        }
    };
}

from_go! { FilterResult {
    nodes: Option<NodeList> = "Nodes",
    node_names: Option<Vec<Name>> = "NodeNames",
    failed: Reasons = "FailedNodes",
    unresolvable: Reasons = "FailedAndUnresolvableNodes",
    error: String = "Error",
} }
from_go! { NodeList { items: Vec<Node> = "items", } }
from_go! { Node { metadata: Metadata = "metadata", } }
from_go! { Metadata { name: Option<Name> = "name", } }
from_go! { HostPriority { host: String = "Host", score: i64 = "Score", } }
from_go! { PreemptionResult { nodes: BTreeMap<Name, Option<MetaVictims>> = "NodeNameToMetaVictims", } }
from_go! { MetaVictims {
    pods: Vec<Option<MetaPod>> = "Pods",
    budget_violations: i64 = "NumPDBViolations",
} }
from_go! { MetaPod { uid: String = "UID", } }
from_go! { BindingResult { error: String = "Error", } }

/// Why nodes are refused, each; Go reads `null` as no words.
type Reasons = BTreeMap<Name, Option<String>>;

fn in_words(reasons: Reasons) -> BTreeMap<Name, String> {
    reasons.into_iter().map(|(node, why)| (node, why.unwrap_or_default())).collect()
}

/// The first JSON value of an answer. What follows it is not looked at, as in Go.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Wrong> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    T::deserialize(&mut reader).map_err(|error| untrue(format!("the answer cannot be read: {error}")))
}

/// `ExtenderFilterResult`, for nodes that were asked about.
pub(crate) fn filter(body: &[u8], nodes: &[Name], names_only: bool) -> Result<Sieved, Wrong> {
    let result: FilterResult = read(body)?;
    if !result.error.is_empty() {
        return Err(Wrong::Refused(result.error));
    }
    let passed: HashSet<Name> = match (result.node_names.filter(|_| names_only), result.nodes) {
        (Some(names), _) => names.into_iter().collect(),
        (None, Some(list)) => list.items.into_iter().filter_map(|node| node.metadata.name).collect(),
        (None, None) => HashSet::new(),
    };
    let asked: HashSet<&Name> = nodes.iter().collect();
    let named = passed.iter().chain(result.failed.keys()).chain(result.unresolvable.keys());
    if let Some(unknown) = named.filter(|name| !asked.contains(name)).min() {
        return Err(untrue(format!("it names the node {unknown:?}, which it was not asked about")));
    }
    Ok(Sieved { passed, failed: in_words(result.failed), unresolvable: in_words(result.unresolvable) })
}

/// `HostPriorityList`, for nodes that were asked about. One that is named twice gets both points, as in kube-scheduler.
pub(crate) fn prioritize(body: &[u8], nodes: &[Name]) -> Result<HashMap<Name, i64>, Wrong> {
    let list: Option<Vec<HostPriority>> = read(body)?;
    let asked: HashSet<&str> = nodes.iter().map(|name| &**name).collect();
    let mut points = HashMap::new();
    for HostPriority { host, score } in list.unwrap_or_default() {
        if !asked.contains(&*host) {
            return Err(untrue(format!("it scores the node {host:?}, which it was not asked about")));
        }
        if !(0..=MAX_EXTENDER_SCORE).contains(&score) {
            let message = format!("it gives {score} to the node {host:?}, outside 0..={MAX_EXTENDER_SCORE}");
            return Err(untrue(message));
        }
        *points.entry(Name::from(&*host)).or_default() += score;
    }
    Ok(points)
}

/// `ExtenderPreemptionResult`, in the order of the candidates.
pub(crate) fn preempt(body: &[u8], candidates: &[Candidate]) -> Result<Vec<Proposal>, Wrong> {
    let mut result: PreemptionResult = read(body)?;
    let mut proposals = Vec::new();
    for Candidate { node, .. } in candidates {
        let Some(victims) = result.nodes.remove(node) else { continue };
        let MetaVictims { pods, budget_violations } = victims.unwrap_or_default();
        let victims = pods.into_iter().flatten().map(|pod| Name::from(pod.uid)).collect();
        proposals.push(Proposal { node: node.clone(), victims, budget_violations });
    }
    match result.nodes.keys().next() {
        Some(unknown) => Err(untrue(format!("it names the node {unknown:?}, which it was not asked about"))),
        None => Ok(proposals),
    }
}

/// `ExtenderBindingResult`.
pub(crate) fn bind(body: &[u8]) -> Result<(), Wrong> {
    let BindingResult { error } = read(body)?;
    if error.is_empty() { Ok(()) } else { Err(Wrong::Refused(error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &str) -> Vec<Name> {
        names.split_whitespace().map(Name::from).collect()
    }

    /// `passed | failed | unresolvable`, or what is wrong.
    fn sieved(body: &str, names_only: bool) -> String {
        match filter(body.as_bytes(), &names("a b c"), names_only) {
            Ok(sieved) => {
                let mut passed: Vec<_> = sieved.passed.iter().map(|name| &**name).collect();
                passed.sort_unstable();
                let listed = |map: &BTreeMap<Name, String>| {
                    map.iter().map(|(node, why)| format!("{node}={why}")).collect::<Vec<_>>().join(" ")
                };
                format!(
                    "{} | {} | {}",
                    passed.join(" "),
                    listed(&sieved.failed),
                    listed(&sieved.unresolvable)
                )
            }
            Err(Wrong::Refused(why)) => format!("refused: {why}"),
            Err(Wrong::Untrue(why)) => format!("untrue: {why}"),
        }
    }

    #[test]
    fn answers_to_filters() {
        let full = r#"{"metadata":{"name":"a","labels":{}},"spec":{}}"#;
        // (names only?, answer, what is read)
        let cases = [
            (true, r#"{"NodeNames":["a","c"],"FailedNodes":{"b":"no gpu"}}"#.to_owned(), "a c | b=no gpu | "),
            // Other cases, other fields, nulls, a line end.
            (
                true,
                "{\"nodenames\":[\"a\"],\"failednodes\":null,\"nodes\":null,\"more\":{\"x\":[1]},\"error\":\"\"}\n".into(),
                "a |  | ",
            ),
            (
                true,
                r#"{"nodeNames":[],"failedAndUnresolvableNodes":{"a":"x"},"failedNodes":{"a":"y","b":null}}"#.into(),
                " | a=y b= | a=x",
            ),
            (false, format!(r#"{{"Nodes":{{"metadata":{{}},"items":[{full}]}},"NodeNames":null}}"#), "a |  | "),
            (false, r#"{"nodes":{"items":null}}"#.into(), " |  | "),
            // Names count only for those that know the nodes; nodes count for all.
            (false, r#"{"NodeNames":["a"]}"#.into(), " |  | "),
            (true, format!(r#"{{"Nodes":{{"items":[{full}]}}}}"#), "a |  | "),
            (true, "null".into(), " |  | "),
            (true, r#"{"NodeNames":["a"],"Error":"out of order"}"#.into(), "refused: out of order"),
            (
                true,
                r#"{"NodeNames":["a","zz"]}"#.into(),
                r#"untrue: it names the node "zz", which it was not asked about"#,
            ),
            (
                true,
                r#"{"NodeNames":["a"],"FailedNodes":{"x":"y"}}"#.into(),
                r#"untrue: it names the node "x", which it was not asked about"#,
            ),
            (
                true,
                "<html>".into(),
                "untrue: the answer cannot be read: expected value at line 1 column 1",
            ),
            (
                true,
                String::new(),
                "untrue: the answer cannot be read: EOF while parsing a value at line 1 column 0",
            ),
        ];
        for (names_only, body, expected) in cases {
            assert_eq!(sieved(&body, names_only), expected, "{body}");
        }
    }

    #[test]
    fn answers_to_prioritizers() {
        let cases = [
            (r#"[{"Host":"a","Score":10},{"host":"b","score":0}]"#, Ok(vec![("a", 10), ("b", 0)])),
            ("null", Ok(vec![])),
            ("[]", Ok(vec![])),
            (r#"[{"Host":"a","Score":3},{"Host":"a","Score":4}]"#, Ok(vec![("a", 7)])),
            (r#"[{"Host":"a","Score":11}]"#, Err(r#"it gives 11 to the node "a", outside 0..=10"#)),
            (r#"[{"Host":"a","Score":-1}]"#, Err(r#"it gives -1 to the node "a", outside 0..=10"#)),
            (r#"[{"Host":"z","Score":1}]"#, Err(r#"it scores the node "z", which it was not asked about"#)),
        ];
        for (body, expected) in cases {
            let found = prioritize(body.as_bytes(), &names("a b c")).map(|points| {
                let mut points: Vec<_> = points.into_iter().collect();
                points.sort();
                points
            });
            let expected = expected
                .map(|points| points.into_iter().map(|(host, score)| (Name::from(host), score)).collect())
                .map_err(untrue);
            assert_eq!(found, expected, "{body}");
        }
        for body in [r#"{"Host":"a"}"#, r#"[{"Host":"a","Score":7.5}]"#] {
            assert!(matches!(prioritize(body.as_bytes(), &names("a")), Err(Wrong::Untrue(_))), "{body}");
        }
    }

    #[test]
    fn answers_to_preemption() {
        let candidate = |node: &str| Candidate { node: node.into(), victims: vec![], budget_violations: 0 };
        let candidates = [candidate("b"), candidate("a"), candidate("c")];
        let body = br#"{"nodeNameToMetaVictims":{"a":{"Pods":[{"UID":"1"},{"uid":"2"}],"NumPDBViolations":1},"b":null}}"#;
        let expected = vec![
            Proposal { node: "b".into(), victims: vec![], budget_violations: 0 },
            Proposal { node: "a".into(), victims: names("1 2"), budget_violations: 1 },
        ];
        assert_eq!(preempt(body, &candidates), Ok(expected));
        assert_eq!(preempt(b"{}", &candidates), Ok(vec![]));
        let unknown = preempt(br#"{"NodeNameToMetaVictims":{"z":{}}}"#, &candidates);
        assert_eq!(unknown, Err(untrue(r#"it names the node "z", which it was not asked about"#)));
    }

    #[test]
    fn answers_to_bindings() {
        assert_eq!(bind(b"{}"), Ok(()));
        assert_eq!(bind(br#"{"error":""}"#), Ok(()));
        assert_eq!(bind(br#"{"Error":"taken"}"#), Err(Wrong::Refused("taken".into())));
        assert!(matches!(bind(b"OK"), Err(Wrong::Untrue(_))));
    }
}
