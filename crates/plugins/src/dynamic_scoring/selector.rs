//! Which nodes an entry is about.

use serde::Deserialize;
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields, Value};
use supercargo_model::{
    Node, Timestamp,
    node::SYSTEM_INFO_FIELDS,
    selector::{Defect, Requirement},
};

use super::creation::{self, CreationBound, lies_within};

/// A selector: every node, or those that any of the terms selects.
#[derive(Clone, Debug)]
pub(super) enum Selector {
    All,
    AnyOf(Vec<Term>),
}

/// Conditions on a node, all of which must hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Term {
    labels: Vec<Requirement>,
    annotations: Vec<Requirement>,
    creation: Vec<CreationBound>,
    conditions: Vec<Requirement>,
    node_info: Vec<Requirement>,
}

impl Selector {
    pub(super) fn selects(&self, node: &Node, now: Timestamp) -> bool {
        match self {
            Self::All => true,
            Self::AnyOf(terms) => terms.iter().any(|term| term.selects(node, now)),
        }
    }

    /// Whether the nodes that it selects change as time passes.
    pub(super) fn reads_the_clock(&self) -> bool {
        match self {
            Self::All => false,
            Self::AnyOf(terms) => {
                terms.iter().flat_map(|term| &term.creation).any(|bound| bound.is_relative())
            }
        }
    }

    /// Reads a selector: an object, or a list of them. One that is absent or empty asks for nothing.
    pub(super) fn read(source: &Source, value: Option<&Value>, path: &str) -> Result<Self, Problems> {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(Self::All);
        };
        let manifest::ValueKind::List(items) = &value.kind else {
            return Ok(Self::AnyOf(vec![Term::read(source, value, path)?]));
        };
        if items.is_empty() {
            return Ok(Self::All);
        }
        let (mut terms, mut problems) = (Vec::new(), Problems::default());
        for (i, item) in items.iter().enumerate() {
            match Term::read(source, item, &format!("{path}[{i}]")) {
                Ok(term) => terms.push(term),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() { Ok(Self::AnyOf(terms)) } else { Err(problems) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default)]
    match_label_expressions: Vec<Requirement>,
    #[serde(default)]
    match_annotation_expressions: Vec<Requirement>,
    #[serde(default)]
    creation_expressions: Vec<creation::Written>,
    #[serde(default)]
    creation_expression: Vec<creation::Written>,
    #[serde(default)]
    condition_expressions: Vec<Requirement>,
    #[serde(default)]
    node_info_expressions: Vec<Requirement>,
}

impl Term {
    fn selects(&self, node: &Node, now: Timestamp) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(&node.labels))
            && self.annotations.iter().all(|requirement| requirement.matches(&node.annotations))
            && self.conditions.iter().all(|requirement| requirement.matches(&node.conditions))
            && self.node_info.iter().all(|requirement| requirement.matches(&node.system_info))
            && lies_within(&self.creation, node.created, now)
    }

    fn read(source: &Source, value: &Value, path: &str) -> Result<Self, Problems> {
        let written: Written = manifest::decode(source, value, path, UnknownFields::Deny)?;
        let mut found = Found { source, value, path, problems: Problems::default() };
        found.check("matchLabelExpressions", &written.match_label_expressions, Requirement::defect);
        let of_values = Requirement::defect_of_values;
        found.check("matchAnnotationExpressions", &written.match_annotation_expressions, of_values);
        found.check("conditionExpressions", &written.condition_expressions, of_values);
        found.check("nodeInfoExpressions", &written.node_info_expressions, of_values);
        found.check_fields(&written.node_info_expressions);
        let mut creation = found.bounds("creationExpressions", &written.creation_expressions);
        creation.extend(found.bounds("creationExpression", &written.creation_expression));
        if !found.problems.is_empty() {
            found.problems.0.sort_by_key(|problem| problem.at);
            return Err(found.problems);
        }
        Ok(Self {
            labels: written.match_label_expressions,
            annotations: written.match_annotation_expressions,
            creation,
            conditions: written.condition_expressions,
            node_info: written.node_info_expressions,
        })
    }
}

/// What is wrong with a term whose fields are of the right types.
struct Found<'s> {
    source: &'s Source,
    value: &'s Value,
    path: &'s str,
    problems: Problems,
}

impl Found<'_> {
    fn check(
        &mut self,
        list: &str,
        requirements: &[Requirement],
        defect: fn(&Requirement) -> Option<Defect>,
    ) {
        for (i, requirement) in requirements.iter().enumerate() {
            if let Some(Defect { field, message }) = defect(requirement) {
                self.add(&format!("{list}[{i}].{field}"), message, None);
            }
        }
    }

    /// A field that no node has would never match, and nobody would be told.
    fn check_fields(&mut self, requirements: &[Requirement]) {
        for (i, Requirement { key, .. }) in requirements.iter().enumerate() {
            if !SYSTEM_INFO_FIELDS.contains(&&**key) {
                let hint = match manifest::nearest(key, SYSTEM_INFO_FIELDS) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("there are: {}", SYSTEM_INFO_FIELDS.join(", ")),
                };
                let message = format!("{key:?} is not a field of a node's nodeInfo");
                self.add(&format!("nodeInfoExpressions[{i}].key"), message, Some(hint));
            }
        }
    }

    fn bounds(&mut self, list: &str, written: &[creation::Written]) -> Vec<CreationBound> {
        let mut bounds = Vec::new();
        for (i, written) in written.iter().enumerate() {
            match written.read() {
                Ok(bound) => bounds.push(bound),
                Err(message) => self.add(&format!("{list}[{i}].value"), message, None),
            }
        }
        bounds
    }

    fn add(&mut self, field: &str, message: String, hint: Option<String>) {
        let problem = Problem::error(message)
            .at(self.source, self.value.location_of(field))
            .path(format!("{}.{field}", self.path));
        self.problems.push(Problem { hint, ..problem });
    }
}
