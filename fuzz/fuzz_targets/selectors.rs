//! Selectors as people write them, matched against the labels of the nodes and pods in the same text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use supercargo_manifest::{Source, UnknownFields, Value, decode, read};
use supercargo_model::{
    Labels, Node, Pod,
    pod::AffinityTerm,
    selector::{NodeSelector, Operator, Requirement, Selector},
};

fuzz_target!(|text: &str| {
    let source = Source::new("fuzz.yaml", text);
    let Ok(documents) = read(&source) else { return };
    let all = |document: &Value| Found::in_document(&source, document);
    let found: Vec<Found> = documents.iter().map(all).collect();
    let nodes: Vec<&Node> = found.iter().filter_map(|found| found.node.as_ref()).collect();
    let pods: Vec<&Pod> = found.iter().filter_map(|found| found.pod.as_ref()).collect();
    let labels = || nodes.iter().map(|node| &node.labels).chain(pods.iter().map(|pod| &pod.spec.labels));
    for Found { label_selector, node_selector, .. } in &found {
        for labels in labels() {
            label_selector.iter().for_each(|selector| check_selector(selector, labels));
            node_selector.iter().for_each(|selector| check_node_selector(selector, "node", labels));
        }
    }
    for pod in &pods {
        pods.iter().for_each(|other| check_pod_terms(pod, other));
        nodes.iter().for_each(|node| check_node_terms(pod, node));
    }
});

/// Everything that a document can be taken for.
struct Found {
    label_selector: Option<Selector>,
    node_selector: Option<NodeSelector>,
    node: Option<Node>,
    pod: Option<Pod>,
}

impl Found {
    fn in_document(source: &Source, document: &Value) -> Self {
        Self {
            label_selector: decode(source, document, "", UnknownFields::Ignore).ok(),
            node_selector: decode(source, document, "", UnknownFields::Deny).ok(),
            node: decode(source, document, "", UnknownFields::Ignore).ok(),
            pod: decode(source, document, "", UnknownFields::Ignore).ok(),
        }
    }
}

fn check_pod_terms(pod: &Pod, other: &Pod) {
    let affinities = [&pod.spec.pod_affinity, &pod.spec.pod_anti_affinity];
    let required = affinities.iter().flat_map(|affinity| &affinity.required);
    let preferred = affinities.iter().flat_map(|affinity| &affinity.preferred).map(|weighted| &weighted.term);
    for term in required.chain(preferred) {
        check_affinity_term(term, other);
    }
    for constraint in &pod.spec.spread_constraints {
        check_selector(&constraint.label_selector, &other.spec.labels);
    }
}

fn check_affinity_term(term: &AffinityTerm, pod: &Pod) {
    let matched = term.matches(pod, &Labels::default());
    assert!(
        !matched || term.selector.matches(&pod.spec.labels),
        "a term cannot match more than its selector"
    );
    check_selector(&term.selector, &pod.spec.labels);
    check_selector(&term.namespace_selector, &pod.spec.labels);
}

fn check_node_terms(pod: &Pod, node: &Node) {
    let affinity = &pod.spec.node_affinity;
    affinity.required.iter().for_each(|selector| check_node_selector(selector, &node.name, &node.labels));
    for preferred in &affinity.preferred {
        preferred.preference.matches(&node.name, &node.labels);
    }
    for taint in &node.taints {
        pod.spec.tolerations.tolerate(taint);
    }
}

fn check_node_selector(selector: &NodeSelector, node: &str, labels: &Labels) {
    let any_term = selector.node_selector_terms.iter().any(|term| term.matches(node, labels));
    assert_eq!(selector.matches(node, labels), any_term);
    for term in &selector.node_selector_terms {
        assert!(term.defect().is_none() || !term.matches(node, labels), "an unreadable term matches nothing");
        term.match_expressions.iter().for_each(|requirement| check_requirement(requirement, labels));
    }
}

fn check_selector(selector: &Selector, labels: &Labels) {
    let Selector::All(requirements) = selector else {
        return assert!(!selector.matches(labels), "no selector selects nothing");
    };
    assert_eq!(selector.matches(labels), requirements.iter().all(|requirement| requirement.matches(labels)));
    requirements.iter().for_each(|requirement| check_requirement(requirement, labels));
}

/// Of an operator and its opposite, one holds; of greater and less, at most one.
fn check_requirement(requirement: &Requirement, labels: &Labels) {
    let with = |operator| Requirement { operator, ..requirement.clone() }.matches(labels);
    assert_ne!(with(Operator::In), with(Operator::NotIn), "{requirement:?}");
    assert_ne!(with(Operator::Exists), with(Operator::DoesNotExist), "{requirement:?}");
    assert!(!(with(Operator::Gt) && with(Operator::Lt)), "{requirement:?}");
}
