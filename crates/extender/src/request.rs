//! What extenders are sent: the JSON of `ExtenderArgs`, `ExtenderPreemptionArgs` and `ExtenderBindingArgs` as Go writes
//! it, put together from texts that are there already.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use supercargo_framework::preemption::Candidate;
use supercargo_model::{Name, Pod};

use crate::originals::Originals;

/// A body in pieces, most of which others hold, too.
pub(crate) type Body = Vec<Bytes>;

/// An object whose text is not known, by what it is.
pub(crate) struct Missing(pub(crate) String);

/// `ExtenderArgs`, with the nodes in full.
pub(crate) fn with_nodes(pod: &Pod, nodes: &[Name], originals: &Originals) -> Result<Body, Missing> {
    let mut body = Vec::with_capacity(nodes.len() + 4);
    push_pod(&mut body, pod, originals)?;
    if nodes.is_empty() {
        body.push(Bytes::from_static(br#","Nodes":{"metadata":{},"items":null},"NodeNames":null}"#));
        return Ok(body);
    }
    body.push(Bytes::from_static(br#","Nodes":{"metadata":{},"items":["#));
    let texts = nodes.iter().map(|node| originals.node(node).ok_or_else(|| Missing(format!("node {node}"))));
    push_list(&mut body, texts)?;
    body.push(Bytes::from_static(br#"]},"NodeNames":null}"#));
    Ok(body)
}

/// `ExtenderArgs`, with the nodes' names.
pub(crate) fn with_names(pod: &Pod, nodes: &[Name], originals: &Originals) -> Result<Body, Missing> {
    let mut body = Vec::new();
    push_pod(&mut body, pod, originals)?;
    let names = json!(nodes);
    body.push(Bytes::from(format!(r#","Nodes":null,"NodeNames":{names}}}"#)));
    Ok(body)
}

/// `ExtenderPreemptionArgs`, with the victims in full.
pub(crate) fn with_victims(
    pod: &Pod,
    candidates: &[Candidate],
    originals: &Originals,
) -> Result<Body, Missing> {
    let mut body = Vec::new();
    push_pod(&mut body, pod, originals)?;
    body.push(Bytes::from_static(br#","NodeNameToVictims":{"#));
    for (i, candidate) in by_name(candidates).into_iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        body.push(Bytes::from(format!(r#"{comma}{}:{{"Pods":["#, json!(candidate.node))));
        let texts = candidate
            .victims
            .iter()
            .map(|victim| originals.pod(&victim.uid).ok_or_else(|| Missing(format!("pod {}", victim.key()))));
        push_list(&mut body, texts)?;
        body.push(Bytes::from(format!(r#"],"NumPDBViolations":{}}}"#, candidate.budget_violations)));
    }
    body.push(Bytes::from_static(br#"},"NodeNameToMetaVictims":null}"#));
    Ok(body)
}

/// `ExtenderPreemptionArgs`, with the victims' uids.
pub(crate) fn with_uids(pod: &Pod, candidates: &[Candidate], originals: &Originals) -> Result<Body, Missing> {
    let mut body = Vec::new();
    push_pod(&mut body, pod, originals)?;
    let mut nodes = serde_json::Map::new();
    for candidate in by_name(candidates) {
        let pods: Vec<_> = candidate.victims.iter().map(|victim| json!({"UID": victim.uid})).collect();
        let victims = json!({"Pods": pods, "NumPDBViolations": candidate.budget_violations});
        nodes.insert(candidate.node.to_string(), victims);
    }
    let nodes = serde_json::Value::Object(nodes);
    body.push(Bytes::from(format!(r#","NodeNameToVictims":null,"NodeNameToMetaVictims":{nodes}}}"#)));
    Ok(body)
}

/// `ExtenderBindingArgs`.
pub(crate) fn binding(pod: &Pod, node: &str) -> Body {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Args<'a> {
        pod_name: &'a str,
        pod_namespace: &'a str,
        #[serde(rename = "PodUID")]
        pod_uid: &'a str,
        node: &'a str,
    }
    let args = Args { pod_name: &pod.name, pod_namespace: &pod.namespace, pod_uid: &pod.uid, node };
    vec![Bytes::from(json!(args).to_string())]
}

/// Go writes maps by key.
fn by_name(candidates: &[Candidate]) -> Vec<&Candidate> {
    let mut sorted: Vec<&Candidate> = candidates.iter().collect();
    sorted.sort_by(|one, other| one.node.cmp(&other.node));
    sorted
}

fn push_pod(body: &mut Body, pod: &Pod, originals: &Originals) -> Result<(), Missing> {
    let text = originals.pod(&pod.uid).ok_or_else(|| Missing(format!("pod {}", pod.key())))?;
    body.push(Bytes::from_static(br#"{"Pod":"#));
    body.push(text.slice(1..));
    Ok(())
}

/// Texts with commas between them: each has one before it, and the first goes without.
fn push_list<'a>(
    body: &mut Body,
    texts: impl Iterator<Item = Result<&'a Bytes, Missing>>,
) -> Result<(), Missing> {
    for (i, text) in texts.enumerate() {
        let text = text?;
        body.push(if i == 0 { text.slice(1..) } else { text.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;
    use supercargo_model::{
        object::Object,
        testing::{Builder, node, pod},
    };

    use super::*;
    use crate::originals::prepared;

    const POD: &str = r#"{"metadata":{"name":"p","namespace":"ns","uid":"u"},"spec":{"containers":[]}}"#;

    fn originals() -> Originals {
        let mut originals = Originals::default();
        let mut put = |object: Object, text: &str| originals.put(&object, prepared(text));
        let with_uid = |builder: Builder, uid: &str| builder.set("/metadata/uid", uid).object();
        put(with_uid(pod("p"), "u"), POD);
        put(with_uid(pod("v"), "v1"), r#"{"metadata":{"uid":"v1"}}"#);
        put(with_uid(pod("w"), "w1"), r#"{"metadata":{"uid":"w1"}}"#);
        put(node("a").object(), r#"{"kind":"Node","metadata":{"name":"a"}}"#);
        put(node("b").object(), r#"{"metadata":{"name":"b"},"status":{"x":"ü"}}"#);
        originals
    }

    fn the_pod() -> Arc<Pod> {
        pod("p").namespace("ns").set("/metadata/uid", "u").pod()
    }

    fn text(body: Result<Body, Missing>) -> String {
        let body = body.unwrap_or_else(|Missing(what)| panic!("{what} is missing"));
        String::from_utf8(body.concat()).unwrap()
    }

    fn candidates() -> [Candidate; 2] {
        let victim = |name: &str, uid: &str| pod(name).set("/metadata/uid", uid).pod();
        [
            Candidate { node: "b".into(), victims: vec![victim("w", "w1")], budget_violations: 2 },
            Candidate {
                node: "a".into(),
                victims: vec![victim("v", "v1"), victim("w", "w1")],
                budget_violations: 0,
            },
        ]
    }

    #[test]
    fn arguments_are_written_as_go_writes_them() {
        let (originals, pod) = (originals(), the_pod());
        let nodes: [Name; 2] = ["b".into(), "a".into()];
        // The types in Go have no JSON tags, so that their fields are written as they are named.
        let cases = [
            (
                text(with_nodes(&pod, &nodes, &originals)),
                format!(
                    r#"{{"Pod":{POD},"Nodes":{{"metadata":{{}},"items":[{{"metadata":{{"name":"b"}},"status":{{"x":"ü"}}}},{{"metadata":{{"name":"a"}}}}]}},"NodeNames":null}}"#
                ),
            ),
            (
                text(with_nodes(&pod, &[], &originals)),
                format!(r#"{{"Pod":{POD},"Nodes":{{"metadata":{{}},"items":null}},"NodeNames":null}}"#),
            ),
            (
                text(with_names(&pod, &nodes, &originals)),
                format!(r#"{{"Pod":{POD},"Nodes":null,"NodeNames":["b","a"]}}"#),
            ),
            (
                text(with_victims(&pod, &candidates(), &originals)),
                format!(
                    r#"{{"Pod":{POD},"NodeNameToVictims":{{"a":{{"Pods":[{{"metadata":{{"uid":"v1"}}}},{{"metadata":{{"uid":"w1"}}}}],"NumPDBViolations":0}},"b":{{"Pods":[{{"metadata":{{"uid":"w1"}}}}],"NumPDBViolations":2}}}},"NodeNameToMetaVictims":null}}"#
                ),
            ),
        ];
        for (written, expected) in cases {
            assert_eq!(written, expected);
        }
    }

    #[test]
    fn victims_by_uid() {
        let written = text(with_uids(&the_pod(), &candidates(), &originals()));
        let read: Value = serde_json::from_str(&written).unwrap();
        let expected = json!({
            "Pod": serde_json::from_str::<Value>(POD).unwrap(), "NodeNameToVictims": null,
            "NodeNameToMetaVictims": {
                "a": {"Pods": [{"UID": "v1"}, {"UID": "w1"}], "NumPDBViolations": 0},
                "b": {"Pods": [{"UID": "w1"}], "NumPDBViolations": 2},
            },
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn bindings() {
        let read: Value = serde_json::from_slice(&binding(&the_pod(), "a").concat()).unwrap();
        assert_eq!(read, json!({"PodName": "p", "PodNamespace": "ns", "PodUID": "u", "Node": "a"}));
    }

    #[test]
    fn a_body_refers_to_the_texts_of_nodes_and_does_not_copy_them() {
        let (originals, pod) = (originals(), the_pod());
        let nodes: [Name; 2] = ["a".into(), "b".into()];
        let Ok(body) = with_nodes(&pod, &nodes, &originals) else { panic!("all is there") };
        let kept = originals.node("b").unwrap();
        assert!(body.iter().any(|piece| piece.as_ptr() == kept.as_ptr() && piece.len() == kept.len()));
    }

    #[test]
    fn what_is_missing_is_named() {
        let Err(Missing(what)) = with_nodes(&the_pod(), &["c".into()], &originals()) else {
            panic!("there is no such node");
        };
        assert_eq!(what, "node c");
    }
}
