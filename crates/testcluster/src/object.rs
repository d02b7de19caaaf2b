//! What every object has: a name, a namespace, labels; and how to reach into one without panicking.

use serde_json::{Map, Value};

/// The value at the end of a path of keys.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |inner, key| inner.get(key))
}

/// The text at the end of a path of keys, or nothing at all.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The list at the end of a path of keys, or an empty one.
pub(crate) fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn name(value: &Value) -> &str {
    text(value, &["metadata", "name"])
}

pub(crate) fn namespace(value: &Value) -> &str {
    text(value, &["metadata", "namespace"])
}

pub(crate) fn uid(value: &Value) -> &str {
    text(value, &["metadata", "uid"])
}

pub(crate) fn resource_version(value: &Value) -> &str {
    text(value, &["metadata", "resourceVersion"])
}

/// It has been deleted, and waits for its grace or its finalizers.
pub(crate) fn is_terminating(value: &Value) -> bool {
    at(value, &["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null())
}

pub(crate) fn has_finalizers(value: &Value) -> bool {
    !items(value, &["metadata", "finalizers"]).is_empty()
}

/// A map under a key, made where there is none.
pub(crate) fn map_at<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let entry = as_map(value).entry(key).or_insert(Value::Null);
    as_map(entry)
}

/// The value as a map: anything else is replaced by an empty one.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        _ => unreachable!("it was just made a map"),
    }
}

/// Sets `metadata.KEY`.
pub(crate) fn set_meta(value: &mut Value, key: &str, to: impl Into<Value>) {
    map_at(value, "metadata").insert(key.to_owned(), to.into());
}

/// Without the parts of the metadata that are empty: an API server does not write them.
pub(crate) fn tidied(mut value: Value) -> Value {
    let is_empty = |part: &Value| match part {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    map_at(&mut value, "metadata").retain(|_, part| !is_empty(part));
    value
}

/// A list under a key of a map, made where there is none.
pub(crate) fn list_at<'a>(map: &'a mut Map<String, Value>, key: &str) -> &'a mut Vec<Value> {
    let entry = map.entry(key).or_insert(Value::Null);
    if !entry.is_array() {
        *entry = Value::Array(Vec::new());
    }
    match entry {
        Value::Array(list) => list,
        _ => unreachable!("it was just made a list"),
    }
}

/// Sets a condition of `status.conditions` by its type; whether anything changed.
pub(crate) fn set_condition(value: &mut Value, condition: Value, now: &str) -> bool {
    let conditions = list_at(map_at(value, "status"), "conditions");
    let mut condition = condition;
    let known = conditions.iter_mut().find(|known| known.get("type") == condition.get("type"));
    match known {
        Some(known) if known.get("status") == condition.get("status") => false,
        Some(known) => {
            as_map(&mut condition).insert("lastTransitionTime".to_owned(), now.into());
            *known = condition;
            true
        }
        None => {
            as_map(&mut condition).insert("lastTransitionTime".to_owned(), now.into());
            conditions.push(condition);
            true
        }
    }
}
