//! What extenders answer. Field names are read in any case, as Go reads them; fields that nobody knows are passed over.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt,
};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor},
};
use supercargo_engine::extender_calls::{MAX_EXTENDER_SCORE, Proposal, Sieved};
use supercargo_framework::preemption::Candidate;
use supercargo_manifest::clip;
use supercargo_model::Name;

/// What is wrong with an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The extender says itself that it failed.
    Refused(String),
    /// It cannot be true.
    Untrue(String),
}

/// Whether answers are passed over that kube-scheduler passes over, and that are likely to be mistakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// As kube-scheduler.
    #[default]
    Lenient,
    /// They fail the pod.
    Strict,
}

/// Something about scores that is passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Anomaly {
    /// A node that was not asked about has one; it counts for nothing.
    UnknownHost,
    /// It is below 0 or above 10; it counts as it is.
    OutOfRange,
}

/// What a prioritizer says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Prioritized {
    /// In the order of the nodes in the call.
    pub(crate) points: Vec<i64>,
    /// How often each was passed over, with the first of them.
    pub(crate) anomalies: BTreeMap<Anomaly, (u64, String)>,
}

impl Prioritized {
    fn note(&mut self, anomaly: Anomaly, what: String) {
        self.anomalies.entry(anomaly).or_insert((0, what)).0 += 1;
    }
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
    reasons.into_iter().map(|(node, why)| (node, clip(&why.unwrap_or_default()).into_owned())).collect()
}

/// The first JSON value of an answer. What follows it is not looked at, as in Go.
fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Wrong> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    T::deserialize(&mut reader).map_err(|error| untrue(format!("the answer cannot be read: {error}")))
}

/// `ExtenderFilterResult`, for nodes that were asked about. Reasons for others are passed over, as in kube-scheduler, but
/// for those who are strict.
pub(crate) fn filter(
    body: &[u8],
    nodes: &[Name],
    names_only: bool,
    strictness: Strictness,
) -> Result<Sieved, Wrong> {
    let result: FilterResult = read(body)?;
    if !result.error.is_empty() {
        return Err(Wrong::Refused(result.error));
    }
    let named: Vec<Name> = match (result.node_names.filter(|_| names_only), result.nodes) {
        (Some(names), _) => names,
        (None, Some(list)) => list.items.into_iter().filter_map(|node| node.metadata.name).collect(),
        (None, None) => Vec::new(),
    };
    let places = places(nodes);
    let refused = result.failed.keys().chain(result.unresolvable.keys());
    let refused = refused.filter(|_| strictness == Strictness::Strict);
    if let Some(unknown) = named.iter().chain(refused).filter(|name| !places.contains_key(&***name)).min() {
        return Err(untrue(format!("it names the node {unknown:?}, which it was not asked about")));
    }
    let mut passed = vec![false; nodes.len()];
    named.iter().for_each(|name| passed[places[&**name]] = true);
    Ok(Sieved { passed, failed: in_words(result.failed), unresolvable: in_words(result.unresolvable) })
}

/// Where nodes are in a call.
fn places(nodes: &[Name]) -> HashMap<&str, usize> {
    nodes.iter().enumerate().map(|(place, name)| (&**name, place)).collect()
}

/// `HostPriorityList`, for nodes that were asked about. One that is named twice gets both points, and points beyond 10 count
/// in full, as in kube-scheduler.
pub(crate) fn prioritize(body: &[u8], nodes: &[Name], strictness: Strictness) -> Result<Prioritized, Wrong> {
    let list: Option<Vec<HostPriority>> = read(body)?;
    let places = places(nodes);
    let mut prioritized = Prioritized { points: vec![0; nodes.len()], ..Prioritized::default() };
    for HostPriority { host, score } in list.unwrap_or_default() {
        let place = places.get(&*host);
        let anomaly = if place.is_none() {
            let what = format!("it scores the node {:?}, which it was not asked about", clip(&host));
            Some((Anomaly::UnknownHost, what))
        } else if !(0..=MAX_EXTENDER_SCORE).contains(&score) {
            let what = format!("it gives {score} to the node {host:?}, outside 0..={MAX_EXTENDER_SCORE}");
            Some((Anomaly::OutOfRange, what))
        } else {
            None
        };
        match anomaly {
            Some((_, what)) if strictness == Strictness::Strict => return Err(untrue(what)),
            Some((anomaly, what)) => prioritized.note(anomaly, what),
            None => {}
        }
        if let Some(place) = place {
            let points = &mut prioritized.points[*place];
            *points = points.saturating_add(score);
        }
    }
    Ok(prioritized)
}

/// `ExtenderPreemptionResult`, in the order of the candidates.
pub(crate) fn preempt(body: &[u8], candidates: &[Candidate]) -> Result<Vec<Proposal>, Wrong> {
    let mut result: PreemptionResult = read(body)?;
    let mut proposals = Vec::new();
    for Candidate { node, .. } in candidates {
        let Some(victims) = result.nodes.remove(node) else { continue };
        let MetaVictims { pods, budget_violations } = victims.unwrap_or_default();
        // No pod has a uid so long that it is cut; whoever says that it is not there names it.
        let victims = pods.into_iter().flatten().map(|pod| Name::from(&*clip(&pod.uid))).collect();
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
    fn sieved(body: &str, names_only: bool, strictness: Strictness) -> String {
        match filter(body.as_bytes(), &names("a b c"), names_only, strictness) {
            Ok(sieved) => {
                let asked = ["a", "b", "c"].into_iter().zip(&sieved.passed);
                let passed: Vec<_> = asked.filter(|(_, passed)| **passed).map(|(name, _)| name).collect();
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
            for strictness in [Strictness::Lenient, Strictness::Strict] {
                assert_eq!(sieved(&body, names_only, strictness), expected, "{body}");
            }
        }
        let unknown = r#"{"NodeNames":["a"],"FailedNodes":{"x":"y"}}"#;
        assert_eq!(sieved(unknown, true, Strictness::Lenient), "a | x=y | ");
        let told = r#"untrue: it names the node "x", which it was not asked about"#;
        assert_eq!(sieved(unknown, true, Strictness::Strict), told);
    }

    #[test]
    fn reasons_are_cut() {
        let body = format!(r#"{{"FailedNodes":{{"a":"{}"}}}}"#, "no ".repeat(5_000_000));
        let sieved = filter(body.as_bytes(), &names("a"), true, Strictness::Lenient).unwrap();
        assert!(sieved.failed["a"].len() < 1100, "{}", sieved.failed["a"].len());
    }

    #[test]
    fn uids_are_cut() {
        let candidates = [Candidate { node: "a".into(), victims: Vec::new(), budget_violations: 0 }];
        let uid = "u".repeat(5_000_000);
        let body = format!(
            r#"{{"NodeNameToMetaVictims":{{"a":{{"Pods":[{{"UID":"{uid}"}},{{"UID":"short"}}]}}}}}}"#
        );
        let proposals = preempt(body.as_bytes(), &candidates).unwrap();
        let [long, short] = &proposals[0].victims[..] else { panic!("two victims") };
        assert!(long.len() < 1100, "{}", long.len());
        assert_eq!(&**short, "short");
    }

    /// The points of a, b and c, and how often what was passed over.
    type Points = ([i64; 3], Vec<(Anomaly, u64)>);

    #[test]
    fn answers_to_prioritizers() {
        use Anomaly::{OutOfRange, UnknownHost};
        let above = r#"it gives 11 to the node "a", outside 0..=10"#;
        let below = r#"it gives -1 to the node "a", outside 0..=10"#;
        let unknown = r#"it scores the node "z", which it was not asked about"#;
        let most = r#"it gives 9223372036854775807 to the node "a", outside 0..=10"#;
        // (answer, what kube-scheduler makes of it, what is wrong with it for those who are strict)
        let cases: [(&str, Points, Option<&str>); 9] = [
            (r#"[{"Host":"a","Score":10},{"host":"b","score":0}]"#, ([10, 0, 0], vec![]), None),
            ("null", ([0; 3], vec![]), None),
            ("[]", ([0; 3], vec![]), None),
            (r#"[{"Host":"a","Score":3},{"Host":"a","Score":4}]"#, ([7, 0, 0], vec![]), None),
            (r#"[{"Host":"a","Score":11}]"#, ([11, 0, 0], vec![(OutOfRange, 1)]), Some(above)),
            (r#"[{"Host":"a","Score":-1}]"#, ([-1, 0, 0], vec![(OutOfRange, 1)]), Some(below)),
            (r#"[{"Host":"z","Score":1}]"#, ([0; 3], vec![(UnknownHost, 1)]), Some(unknown)),
            (
                r#"[{"Host":"z","Score":1},{"Host":"b","Score":2},{"Host":"y","Score":11}]"#,
                ([0, 2, 0], vec![(UnknownHost, 2)]),
                Some(unknown),
            ),
            (
                r#"[{"Host":"a","Score":9223372036854775807},{"Host":"a","Score":9}]"#,
                ([i64::MAX, 0, 0], vec![(OutOfRange, 1)]),
                Some(most),
            ),
        ];
        for (body, expected, wrong) in cases {
            let Prioritized { points, anomalies } =
                prioritize(body.as_bytes(), &names("a b c"), Strictness::Lenient).unwrap();
            let counts: Vec<_> = anomalies.iter().map(|(anomaly, (count, _))| (*anomaly, *count)).collect();
            assert_eq!((&points[..], &counts), (&expected.0[..], &expected.1), "{body}");
            let strictly = prioritize(body.as_bytes(), &names("a b c"), Strictness::Strict);
            assert_eq!(strictly.err(), wrong.map(untrue), "{body}");
        }
        for body in [r#"{"Host":"a"}"#, r#"[{"Host":"a","Score":7.5}]"#, r#"[{"Host":"a","Score":7.0}]"#] {
            let found = prioritize(body.as_bytes(), &names("a"), Strictness::Lenient);
            assert!(matches!(found, Err(Wrong::Untrue(_))), "{body}");
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
