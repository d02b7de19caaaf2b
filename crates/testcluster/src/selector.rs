//! Label and field selectors: which objects a list or a watch wants to see.

use serde_json::Value;

use crate::failure::StatusError;
use crate::object::{at, text};
use crate::resource::{EVENTS, NEW_EVENTS, NODES, PODS, Resource};

/// What a list or a watch asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct LabelRequirement {
    key: String,
    test: LabelTest,
}

#[derive(Clone, Debug, PartialEq)]
enum LabelTest {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Above(i64),
    Below(i64),
}

#[derive(Clone, Debug, PartialEq)]
struct FieldRequirement {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl Selector {
    pub(crate) fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self, StatusError> {
        let wrong = |why: String| {
            let kind = format!("{}, Resource={}", resource.api_version(), resource.plural);
            StatusError::bad_request(format!(
                "Unable to find {kind:?} that match label selector {labels:?}, field selector {fields:?}: {why}"
            ))
        };
        let label_list = terms(labels).into_iter().map(label_requirement).collect::<Result<_, _>>();
        let field_list = fields.split(',').filter(|term| !term.trim().is_empty());
        let field_list = field_list.map(|term| field_requirement(resource, term)).collect::<Result<_, _>>();
        Ok(Self { labels: label_list.map_err(wrong)?, fields: field_list.map_err(wrong)? })
    }

    /// A selector as it stands in an object (`matchLabels`, `matchExpressions`); none matches nothing.
    pub(crate) fn of_labels(selector: Option<&Value>) -> Option<Self> {
        let selector = selector?;
        let mut labels = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let test = LabelTest::In(vec![value.as_str()?.to_owned()]);
            labels.push(LabelRequirement { key: key.clone(), test });
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
            let values = values.filter_map(Value::as_str).map(str::to_owned).collect();
            let test = match text(expression, &["operator"]) {
                "In" => LabelTest::In(values),
                "NotIn" => LabelTest::NotIn(values),
                "Exists" => LabelTest::Exists,
                "DoesNotExist" => LabelTest::Missing,
                _ => return None,
            };
            labels.push(LabelRequirement { key: text(expression, &["key"]).to_owned(), test });
        }
        Some(Self { labels, fields: Vec::new() })
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(crate) fn matches(&self, object: &Value) -> bool {
        let labels = at(object, &["metadata", "labels"]);
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.labels.iter().all(|wanted| wanted.test.accepts(label(&wanted.key)))
            && self.fields.iter().all(|wanted| wanted.accepts(object))
    }
}

impl LabelTest {
    fn accepts(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::In(wanted) => value.is_some_and(|value| wanted.iter().any(|one| one == value)),
            Self::NotIn(unwanted) => value.is_none_or(|value| unwanted.iter().all(|one| one != value)),
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
            Self::Above(bound) => number().is_some_and(|number| number > *bound),
            Self::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

impl FieldRequirement {
    fn accepts(&self, object: &Value) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let equal = match at(object, &path) {
            Some(Value::String(found)) => *found == self.value,
            Some(Value::Bool(found)) => found.to_string() == self.value,
            Some(Value::Number(found)) => found.to_string() == self.value,
            // What is not there is empty, or false where the field is a truth value.
            _ => self.value.is_empty() || (self.value == "false" && is_truth_value(&path)),
        };
        equal == self.equal
    }
}

fn is_truth_value(path: &[&str]) -> bool {
    matches!(path, ["spec", "unschedulable" | "hostNetwork"])
}

/// The terms of a label selector: commas between parentheses do not count.
fn terms(selector: &str) -> Vec<&str> {
    let mut depth = 0;
    selector
        .split(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            letter == ',' && depth == 0
        })
        .map(str::trim)
        .filter(|term| !term.is_empty())
        .collect()
}

fn label_requirement(term: &str) -> Result<LabelRequirement, String> {
    let requirement = |key: &str, test| {
        let key = key.trim();
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
        if key.is_empty() || !key.chars().all(plain) {
            return Err(format!("unable to parse requirement: {term:?}"));
        }
        Ok(LabelRequirement { key: key.to_owned(), test })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(set) = term.strip_suffix(')') {
        let (head, values) = set.split_once('(').ok_or_else(|| format!("found ')' in {term:?}"))?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        return match head.trim().rsplit_once(char::is_whitespace) {
            Some((key, "in")) => requirement(key, LabelTest::In(values)),
            Some((key, "notin")) => requirement(key, LabelTest::NotIn(values)),
            _ => Err(format!("unable to parse requirement: {term:?}")),
        };
    }
    if let Some(key) = term.strip_prefix('!') {
        return requirement(key, LabelTest::Missing);
    }
    if let Some((key, value)) = term.split_once("!=") {
        return requirement(key, LabelTest::NotIn(one(value)));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return requirement(key, LabelTest::In(one(value)));
    }
    let number = |value: &str| value.trim().parse().map_err(|_| format!("{value:?} is not an integer"));
    if let Some((key, value)) = term.split_once('>') {
        return requirement(key, LabelTest::Above(number(value)?));
    }
    if let Some((key, value)) = term.split_once('<') {
        return requirement(key, LabelTest::Below(number(value)?));
    }
    requirement(term, LabelTest::Exists)
}

fn field_requirement(resource: &Resource, term: &str) -> Result<FieldRequirement, String> {
    let (field, value, equal) = if let Some((field, value)) = term.split_once("!=") {
        (field, value, false)
    } else if let Some((field, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        (field, value, true)
    } else {
        return Err(format!("invalid selector: {term:?}; can't understand {term:?}"));
    };
    let field = field.trim();
    if !is_selectable(resource, field) {
        return Err(format!("field label not supported: {field}"));
    }
    // The old name of a field that events have both ways.
    let field = if field == "source" { "source.component" } else { field };
    let path = field.split('.').map(str::to_owned).collect();
    Ok(FieldRequirement { path, value: value.trim().to_owned(), equal })
}

fn is_selectable(resource: &Resource, field: &str) -> bool {
    let own: &[&str] = if resource.is(&PODS) {
        &[
            "spec.nodeName",
            "spec.schedulerName",
            "spec.restartPolicy",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ]
    } else if resource.is(&NODES) {
        &["spec.unschedulable"]
    } else if resource.is(&EVENTS) {
        &["reason", "type", "source", "reportingComponent"]
    } else if resource.is(&NEW_EVENTS) {
        &["reason", "type", "reportingController"]
    } else {
        match resource.kind {
            "Namespace" | "PersistentVolume" | "PersistentVolumeClaim" => &["status.phase"],
            "Secret" => &["type"],
            "ReplicaSet" | "ReplicationController" => &["status.replicas"],
            "Job" => &["status.successful"],
            "ResourceSlice" => &["spec.nodeName", "spec.driver"],
            _ => &[],
        }
    };
    let about = if resource.is(&EVENTS) { "involvedObject." } else { "regarding." };
    let about_object = resource.kind == "Event"
        && field.strip_prefix(about).is_some_and(|part| {
            ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].contains(&part)
        });
    matches!(field, "metadata.name" | "metadata.namespace") || own.contains(&field) || about_object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_are_matched_as_kubectl_writes_them() {
        let pod = json!({"metadata": {"labels": {"app": "web", "tier": "front", "size": "7"}}});
        for (selector, matches) in [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app=web,tier=back", false),
            ("app!=web", false),
            ("other!=web", true),
            ("app in (web,api), tier notin (back)", true),
            ("app notin (web,api)", false),
            ("app", true),
            ("!app", false),
            ("!other", true),
            ("size>6", true),
            ("size<7", false),
        ] {
            let parsed = Selector::parse(&PODS, selector, "").expect(selector);
            assert_eq!(parsed.matches(&pod), matches, "{selector}");
        }
        for wrong in ["a b", "=x", "a>x", "a in x)", "a near (x)"] {
            let failure = Selector::parse(&PODS, wrong, "").expect_err(wrong);
            assert_eq!(failure.code(), 400, "{wrong}");
        }
    }

    #[test]
    fn fields_are_matched_and_only_those_an_api_server_knows() {
        let pod =
            json!({"metadata": {"name": "x"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}});
        for (selector, matches) in [
            ("metadata.name=x", true),
            ("spec.nodeName=", false),
            ("spec.nodeName!=", true),
            ("status.phase!=Succeeded,status.phase!=Failed", true),
            ("spec.schedulerName=", true),
            ("spec.hostNetwork=false", true),
        ] {
            let parsed = Selector::parse(&PODS, "", selector).expect(selector);
            assert_eq!(parsed.matches(&pod), matches, "{selector}");
        }
        let failure = Selector::parse(&PODS, "", "spec.boat=x").expect_err("no such field");
        assert!(failure.message().ends_with("field label not supported: spec.boat"), "{failure}");
        assert!(Selector::parse(&EVENTS, "", "involvedObject.name=x").is_ok());
        assert!(Selector::parse(&NEW_EVENTS, "", "regarding.uid=x").is_ok());
    }

    #[test]
    fn a_selector_of_an_object_matches_labels() {
        let selector =
            json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]});
        let selector = Selector::of_labels(Some(&selector)).expect("it is well-formed");
        assert!(selector.matches(&json!({"metadata": {"labels": {"app": "web", "x": ""}}})));
        assert!(!selector.matches(&json!({"metadata": {"labels": {"app": "web"}}})));
        assert!(Selector::of_labels(None).is_none());
    }
}
