//! What a strict reader says about an object: fields that its kind does not have, and values of another type.

use serde_json::{Map, Value};

use super::{Field, Message, Shape, ValueType};

/// So many faults are told, the rest is not.
const FAULTS_LIMIT: usize = 20;

/// What is wrong with the fields of an object, in the words of an API server.
pub(crate) fn faults(message: &'static Message, object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Value::Object(map) = object {
        check_message(message, map, "", true, &mut found);
    }
    found
}

fn check_message(
    message: &'static Message,
    map: &Map<String, Value>,
    path: &str,
    is_object: bool,
    found: &mut Vec<String>,
) {
    for (key, value) in map {
        if found.len() >= FAULTS_LIMIT {
            return;
        }
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match message.json_field(key) {
            Some(field) => check_field(field, value, &path, found),
            None if is_object && matches!(key.as_str(), "apiVersion" | "kind") => {}
            None => found.push(format!("unknown field {path:?}")),
        }
    }
}

fn check_field(field: &Field, value: &Value, path: &str, found: &mut Vec<String>) {
    match (field.shape, value) {
        (_, Value::Null) => {}
        (Shape::List, Value::Array(list)) => {
            for (place, element) in list.iter().enumerate() {
                check_value(field.value, element, &format!("{path}[{place}]"), found);
            }
        }
        (Shape::Map, Value::Object(map)) => {
            for (key, element) in map {
                check_value(field.value, element, &format!("{path}.{key}"), found);
            }
        }
        (Shape::List, _) => found.push(wrong_type(path, "a list", value)),
        (Shape::Map, _) => found.push(wrong_type(path, "a map", value)),
        (Shape::Plain | Shape::Optional, _) => check_value(field.value, value, path, found),
    }
}

fn check_value(kind: ValueType, value: &Value, path: &str, found: &mut Vec<String>) {
    let wanted = match kind {
        ValueType::Message(_) => match (kind.message(), value) {
            (Some(message), Value::Object(map)) => return check_message(message, map, path, false, found),
            _ => "an object",
        },
        ValueType::Bool if !value.is_boolean() => "a boolean",
        ValueType::Integer if !value.is_i64() && !value.is_u64() => "a whole number",
        ValueType::Texts if !value.is_array() => "a list",
        ValueType::Quantity | ValueType::IntOrText if !value.is_string() && !value.is_number() => {
            "a text or a number"
        }
        ValueType::Text | ValueType::Bytes | ValueType::Time | ValueType::MicroTime if !value.is_string() => {
            "a text"
        }
        _ => return,
    };
    if !value.is_null() {
        found.push(wrong_type(path, wanted, value));
    }
}

fn wrong_type(path: &str, wanted: &str, value: &Value) -> String {
    let given = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("field {path:?} wants {wanted}, not {given}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::message_of;

    #[test]
    fn unknown_fields_and_wrong_types_are_told_by_path() {
        let pod = message_of("", "v1", "Pod").expect("a pod");
        let cases = [
            (json!({"spec": {"nodeName": "n", "nodeSelector": {"any": "thing"}}}), ""),
            (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"creationTimestamp": null}}), ""),
            (json!({"spec": {"nodename": "n"}}), r#"unknown field "spec.nodename""#),
            (
                json!({"spec": {"containers": [{}, {"imagee": "x"}]}}),
                r#"unknown field "spec.containers[1].imagee""#,
            ),
            (json!({"spec": {"kind": "Pod"}}), r#"unknown field "spec.kind""#),
            (
                json!({"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": 1}}]}}),
                r#"field "spec.volumes[0].emptyDir.medium" wants a text, not a number"#,
            ),
            (
                json!({"spec": {"priority": "high"}}),
                r#"field "spec.priority" wants a whole number, not a text"#,
            ),
            (
                json!({"metadata": {"labels": {"a": 1}}}),
                r#"field "metadata.labels.a" wants a text, not a number"#,
            ),
            (
                json!({"spec": {"containers": {"name": "c"}}}),
                r#"field "spec.containers" wants a list, not an object"#,
            ),
            (json!({"spec": {"containers": [{"resources": {"requests": {"cpu": 1, "memory": "1Gi"}}}]}}), ""),
        ];
        for (object, expected) in cases {
            assert_eq!(faults(pod, &object).join(", "), expected, "{object}");
        }
    }
}
