//! Which requirement of a pod a node does not meet, and what it has instead.

use serde_json::json;
use supercargo_framework::details::{Detail, label_in_words};
use supercargo_model::{
    Node, Pod,
    selector::{NODE_NAME_FIELD, NodeSelector, NodeSelectorTerm, Requirement},
};

use super::{NodeAffinity, matches};

impl NodeAffinity {
    pub(super) fn tell_details(&self, pod: &Pod, node: &Node) -> Vec<Detail> {
        let labels = pod.spec.node_selector.iter();
        let other = labels.filter(|(key, value)| node.labels.get(key) != Some(value));
        let by_selector = other.map(|(key, value)| {
            let requirement = Requirement::is_in(key.clone(), [value.clone()]);
            detail("nodeSelector", None, &requirement, node)
        });
        let enforced = self.added.required.as_ref();
        let required = pod.spec.node_affinity.required.as_ref();
        by_selector
            .chain(unmet("addedAffinity of the configuration", enforced, node))
            .chain(unmet("nodeAffinity", required, node))
            .collect()
    }
}

/// Any of the terms would do, so that each is told with all that fails it.
fn unmet(what: &str, selector: Option<&NodeSelector>, node: &Node) -> Vec<Detail> {
    let Some(selector) = selector.filter(|selector| !matches(Some(selector), node)) else {
        return Vec::new();
    };
    let terms = &selector.node_selector_terms;
    if terms.is_empty() {
        return vec![Detail::new(format!("{what} has no terms, which matches no node"))];
    }
    let mut details = Vec::new();
    for (i, term) in terms.iter().enumerate() {
        let number = (terms.len() > 1).then_some(i + 1);
        details.extend(unmet_by_term(what, number, term, node));
    }
    details
}

fn unmet_by_term(what: &str, number: Option<usize>, term: &NodeSelectorTerm, node: &Node) -> Vec<Detail> {
    let place = in_words(what, number);
    if let Some(defect) = term.defect() {
        return vec![Detail::new(format!("{place} cannot be read: {defect}"))];
    }
    if term.is_empty() {
        return vec![Detail::new(format!("{place} is empty, which matches no node"))];
    }
    let labels = term.match_expressions.iter().filter(|requirement| !requirement.matches(&node.labels));
    let fields = term.match_fields.iter().filter(|requirement| {
        let field = if &*requirement.key == NODE_NAME_FIELD { &*node.name } else { "" };
        !requirement.matches_value(Some(field))
    });
    let by_field = |requirement: &Requirement| {
        Detail::new(format!("{place} wants {requirement}, and the node is {}", node.name))
            .fact("term", number.unwrap_or(1))
            .fact("requirement", requirement.to_string())
    };
    labels.map(|requirement| detail(what, number, requirement, node)).chain(fields.map(by_field)).collect()
}

fn detail(what: &str, number: Option<usize>, requirement: &Requirement, node: &Node) -> Detail {
    let value = node.labels.get(&requirement.key);
    let has = label_in_words(&requirement.key, value);
    Detail::new(format!("{} wants {requirement}, and {has}", in_words(what, number)))
        .fact("term", number.unwrap_or(1))
        .fact("requirement", requirement.to_string())
        .fact("label", &*requirement.key)
        .fact("value", json!(value))
}

fn in_words(what: &str, number: Option<usize>) -> String {
    number.map_or_else(|| what.to_owned(), |number| format!("{what}, term {number},"))
}
