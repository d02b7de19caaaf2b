//! Selectors over labels and over nodes, with Kubernetes' rules for what is empty, absent or unreadable.

use serde::Deserialize;

use crate::{
    Name,
    labels::{self, Labels},
    selection::comparisons,
    work,
};

/// How a requirement compares a label with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum Operator {
    /// The label is there, and its value is one of the values.
    In,
    /// The label is absent, or its value is none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label's value is an integer greater than the one value.
    Gt,
    /// The label's value is an integer less than the one value.
    Lt,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct Requirement {
    /// The label's key.
    pub key: Name,
    /// The comparison.
    pub operator: Operator,
    /// What to compare with.
    #[serde(default)]
    pub values: Vec<Name>,
}

impl Requirement {
    /// `key` is one of `values`.
    pub fn is_in(key: impl Into<Name>, values: impl IntoIterator<Item = impl Into<Name>>) -> Self {
        Self { key: key.into(), operator: Operator::In, values: values.into_iter().map(Into::into).collect() }
    }

    /// Whether labels meet the condition.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.matches_value(labels.get(&self.key).map(|v| &**v))
    }

    /// Whether a label's value (or its absence) meets the condition.
    pub fn matches_value(&self, value: Option<&str>) -> bool {
        work::done(1 + self.values.len());
        let listed = |value: &str| self.values.iter().any(|v| &**v == value);
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => self.compares(value, |label, bound| label > bound),
            Operator::Lt => self.compares(value, |label, bound| label < bound),
        }
    }

    fn compares(&self, value: Option<&str>, holds: fn(i64, i64) -> bool) -> bool {
        let [bound] = &self.values[..] else {
            return false;
        };
        match (value.and_then(parse_integer), parse_integer(bound)) {
            (Some(label), Some(bound)) => holds(label, bound),
            _ => false,
        }
    }

    /// What makes the requirement unreadable, if anything: a term with such a requirement never matches.
    pub fn defect(&self) -> Option<Defect> {
        if !labels::is_valid_key(&self.key) {
            return Some(Defect::new("key", &format!("{:?} is not a label key", self.key)));
        }
        if let Some(i) = self.values.iter().position(|value| !labels::is_valid_value(value)) {
            let message = format!("{:?} is not a label value", self.values[i]);
            return Some(Defect::new(&format!("values[{i}]"), &message));
        }
        self.defect_of_values()
    }

    /// What is wrong with the number of values or, where they are compared as integers, with the values themselves.
    /// Whether key and values could be a label's is not asked.
    pub fn defect_of_values(&self) -> Option<Defect> {
        let not_one_integer = || match &self.values[..] {
            [value] => parse_integer(value).is_none(),
            _ => true,
        };
        let defect = |field: &str, message: &str| Some(Defect::new(field, message));
        match self.operator {
            Operator::In | Operator::NotIn if self.values.is_empty() => {
                defect("values", "In and NotIn need at least one value")
            }
            Operator::Exists | Operator::DoesNotExist if !self.values.is_empty() => {
                defect("values", "Exists and DoesNotExist take no values")
            }
            Operator::Gt | Operator::Lt if self.values.len() == 1 && not_one_integer() => {
                defect("values[0]", "Gt and Lt compare with an integer")
            }
            Operator::Gt | Operator::Lt if not_one_integer() => {
                defect("values", "Gt and Lt take exactly one value, an integer")
            }
            _ => None,
        }
    }
}

/// What makes a selector unreadable, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Defect {
    /// The field, such as `matchExpressions[0].values`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Defect {
    fn new(field: &str, message: &str) -> Self {
        Self { field: field.to_owned(), message: message.to_owned() }
    }

    fn within(self, list: &str, index: usize) -> Self {
        Self { field: format!("{list}[{index}].{}", self.field), ..self }
    }
}

impl std::fmt::Display for Defect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Go's `strconv.ParseInt(s, 10, 64)`: an optional sign and digits.
fn parse_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

/// As `kubectl --selector` takes it.
impl std::fmt::Display for Requirement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { key, operator, values } = self;
        match (operator, &values[..]) {
            (Operator::In, [value]) => write!(f, "{key}={value}"),
            (Operator::NotIn, [value]) => write!(f, "{key}!={value}"),
            (Operator::In, _) => write!(f, "{key} in ({})", values.join(",")),
            (Operator::NotIn, _) => write!(f, "{key} notin ({})", values.join(",")),
            (Operator::Exists, _) => write!(f, "{key}"),
            (Operator::DoesNotExist, _) => write!(f, "!{key}"),
            (Operator::Gt, _) => write!(f, "{key}>{}", values.join(",")),
            (Operator::Lt, _) => write!(f, "{key}<{}", values.join(",")),
        }
    }
}

/// A label selector. Absent selects nothing; empty selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Selects nothing: the selector was not given.
    #[default]
    Nothing,
    /// Selects what meets all requirements; everything, if there are none.
    All(Vec<Requirement>),
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => write!(f, "<none>"),
            Self::All(requirements) if requirements.is_empty() => write!(f, "<all>"),
            Self::All(requirements) => {
                let texts: Vec<String> = requirements.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
        }
    }
}

impl Selector {
    /// Labels equal to these.
    pub fn equal_to(labels: &Labels) -> Self {
        Self::All(labels.iter().map(|(k, v)| Requirement::is_in(k.clone(), [v.clone()])).collect())
    }

    /// Whether the selector selects an object with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        match self {
            Self::Nothing => false,
            Self::All(requirements) => requirements.iter().all(|r| r.matches(labels)),
        }
    }

    /// How many requirements and values it has.
    pub(crate) fn entries(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::All(requirements) => comparisons(requirements),
        }
    }

    /// Whether it asks for nothing in particular. A selector that selects nothing is not empty.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(requirements) if requirements.is_empty())
    }

    /// The same selector with more requirements; one that selects nothing stays so.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Requirement>) -> Self {
        if let Self::All(requirements) = &mut self {
            requirements.extend(more);
        }
        self
    }
}

impl<'de> Deserialize<'de> for Selector {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = WrittenSelector::deserialize(deserializer)?;
        let Self::All(mut requirements) = Self::equal_to(&written.match_labels) else {
            return Ok(Self::Nothing);
        };
        requirements.extend(written.match_expressions.into_iter().map(|r| r.0));
        Ok(Self::All(requirements))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenSelector {
    #[serde(default)]
    match_labels: Labels,
    #[serde(default)]
    match_expressions: Vec<LabelRequirement>,
}

/// A requirement of a label selector: four of the six operators, and values where they belong.
struct LabelRequirement(Requirement);

impl<'de> Deserialize<'de> for LabelRequirement {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        enum LabelOperator {
            In,
            NotIn,
            Exists,
            DoesNotExist,
        }
        #[derive(Deserialize)]
        struct Written {
            key: Name,
            operator: LabelOperator,
            #[serde(default)]
            values: Vec<Name>,
        }
        let written = Written::deserialize(deserializer)?;
        let requirement = Requirement {
            key: written.key,
            operator: match written.operator {
                LabelOperator::In => Operator::In,
                LabelOperator::NotIn => Operator::NotIn,
                LabelOperator::Exists => Operator::Exists,
                LabelOperator::DoesNotExist => Operator::DoesNotExist,
            },
            values: written.values,
        };
        match requirement.defect() {
            None => Ok(Self(requirement)),
            Some(defect) => Err(serde::de::Error::custom(defect)),
        }
    }
}

/// A node selector: a node matches if any term does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    /// The terms, any of which may match.
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

/// All requirements of a term have to hold, of any term.
impl std::fmt::Display for NodeSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let term = |term: &NodeSelectorTerm| {
            let all = term.match_expressions.iter().chain(&term.match_fields);
            all.map(ToString::to_string).collect::<Vec<_>>().join(",")
        };
        let terms: Vec<String> = self.node_selector_terms.iter().map(term).collect();
        f.write_str(&terms.join(" or "))
    }
}

impl NodeSelector {
    /// Whether a node with this name and these labels is selected.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        self.node_selector_terms.iter().any(|term| term.matches(name, labels))
    }
}

/// A term of a node selector: all its requirements must hold. An empty term matches no node, and neither does an
/// unreadable one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(from = "WrittenTerm")]
pub struct NodeSelectorTerm {
    /// Conditions on the node's labels.
    pub match_expressions: Vec<Requirement>,
    /// Conditions on the node's fields; `metadata.name` is the only one there is.
    pub match_fields: Vec<Requirement>,
    defect: Option<Box<Defect>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTerm {
    #[serde(default)]
    match_expressions: Vec<Requirement>,
    #[serde(default)]
    match_fields: Vec<Requirement>,
}

impl From<WrittenTerm> for NodeSelectorTerm {
    fn from(written: WrittenTerm) -> Self {
        Self::new(written.match_expressions, written.match_fields)
    }
}

impl NodeSelectorTerm {
    /// A term of these requirements.
    pub fn new(match_expressions: Vec<Requirement>, match_fields: Vec<Requirement>) -> Self {
        let in_labels = |(i, r): (usize, &Requirement)| Some(r.defect()?.within("matchExpressions", i));
        let in_fields = |(i, r): (usize, &Requirement)| Some(field_defect(r)?.within("matchFields", i));
        let defect = (match_expressions.iter().enumerate().find_map(in_labels))
            .or_else(|| match_fields.iter().enumerate().find_map(in_fields))
            .map(Box::new);
        Self { match_expressions, match_fields, defect }
    }

    /// Whether the term asks for nothing; such a term matches no node.
    pub fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }

    /// Whether a node with this name and these labels meets the term.
    pub fn matches(&self, name: &str, labels: &Labels) -> bool {
        !self.is_empty()
            && self.defect.is_none()
            && self.match_expressions.iter().all(|r| r.matches(labels))
            && self.match_fields.iter().all(|r| {
                // A field that nodes do not have reads as the empty string.
                let field = if &*r.key == NODE_NAME_FIELD { name } else { "" };
                r.matches_value(Some(field))
            })
    }

    /// What makes the term unreadable, if anything.
    pub fn defect(&self) -> Option<&Defect> {
        self.defect.as_deref()
    }
}

fn field_defect(field: &Requirement) -> Option<Defect> {
    match field.operator {
        Operator::In | Operator::NotIn if field.values.len() == 1 => None,
        Operator::In | Operator::NotIn => Some(Defect::new("values", "must have one element")),
        _ => Some(Defect::new("operator", "only In and NotIn apply to fields")),
    }
}

/// The field that `matchFields` can name.
pub const NODE_NAME_FIELD: &str = "metadata.name";

/// A node selector term that a pod prefers, and how much.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
pub struct PreferredTerm {
    /// 1 to 100.
    pub weight: i32,
    /// What is preferred.
    pub preference: NodeSelectorTerm,
}

/// A pod's or an administrator's wishes about nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct NodeAffinity {
    /// What a node must meet.
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution")]
    pub required: Option<NodeSelector>,
    /// What raises a node's score.
    #[serde(rename = "preferredDuringSchedulingIgnoredDuringExecution")]
    pub preferred: Vec<PreferredTerm>,
}
