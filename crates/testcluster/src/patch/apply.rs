//! Server-side apply: a merge that remembers which manager set which fields.
//!
//! A manager that applies again without a field gives the field up, and with it goes the value unless
//! another manager has applied it too. Conflicts between managers are not looked for: who comes last wins.

use serde_json::{Map, Value, json};

use super::merge_keys::{ListMerge, list_merge};
use super::{PatchKind, patched};
use crate::failure::StatusError;
use crate::object::{as_map, items, list_at, map_at, text};

/// The object after `manager` has applied `config`; `target` is what is there already.
pub(crate) fn apply(
    target: Option<&Value>,
    config: &Value,
    manager: &str,
    api_version: &str,
    now: &str,
) -> Result<Value, StatusError> {
    if manager.is_empty() {
        return Err(StatusError::bad_request("fieldManager is required for apply patch"));
    }
    let mut config = config.clone();
    let given = map_at(&mut config, "metadata");
    if given
        .remove("managedFields")
        .is_some_and(|fields| fields.as_array().is_some_and(|list| !list.is_empty()))
    {
        return Err(StatusError::bad_request("metadata.managedFields must be nil"));
    }
    let fields = fields_of(&config);
    let mut result = match target {
        Some(target) => patched(PatchKind::Apply, target, &config)?,
        None => config,
    };
    let managers = items(&result, &["metadata", "managedFields"]);
    let is_own =
        |entry: &&Value| text(entry, &["manager"]) == manager && text(entry, &["operation"]) == "Apply";
    let before = managers.iter().find(is_own).map(|entry| entry["fieldsV1"].clone());
    let others: Vec<Value> = managers.iter().filter(|entry| !is_own(entry)).cloned().collect();
    if let Some(before) = before {
        let kept: Vec<&Value> = others.iter().map(|entry| &entry["fieldsV1"]).chain([&fields]).collect();
        give_up(&mut result, &before, &kept);
    }
    let entry = json!({
        "manager": manager,
        "operation": "Apply",
        "apiVersion": api_version,
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    });
    let recorded = list_at(map_at(&mut result, "metadata"), "managedFields");
    *recorded = others;
    recorded.push(entry);
    Ok(result)
}

/// The fields of a configuration, in the form `FieldsV1`: what names the object is nobody's.
fn fields_of(config: &Value) -> Value {
    let mut config = config.clone();
    let map = as_map(&mut config);
    map.remove("apiVersion");
    map.remove("kind");
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        map_at(&mut config, "metadata").remove(key);
    }
    fields(&config)
}

fn fields(value: &Value) -> Value {
    let Value::Object(map) = value else { return json!({}) };
    let mut owned = Map::new();
    for (key, value) in map {
        let inner = match value {
            Value::Object(_) => fields(value),
            Value::Array(list) => list_fields(key, list),
            _ => json!({}),
        };
        owned.insert(format!("f:{key}"), inner);
    }
    Value::Object(owned)
}

fn list_fields(field: &str, list: &[Value]) -> Value {
    let mut owned = Map::new();
    match list_merge(field, list) {
        ListMerge::Replace => {}
        ListMerge::Set => owned.extend(list.iter().map(|item| (format!("v:{item}"), json!({})))),
        ListMerge::ByKey(key) => {
            for item in list.iter().filter(|item| item.get(key).is_some()) {
                let mut inner = fields(item);
                as_map(&mut inner).insert(".".to_owned(), json!({}));
                owned.insert(format!("k:{}", json!({key: item[key]})), inner);
            }
        }
    }
    Value::Object(owned)
}

/// Removes from a value what is among `before`, but not among `kept`.
fn give_up(value: &mut Value, before: &Value, kept: &[&Value]) {
    let Value::Object(before) = before else { return };
    for (key, inner) in before {
        let still: Vec<&Value> = kept.iter().filter_map(|fields| fields.get(key)).collect();
        let Some((form, name)) = key.split_once(':') else { continue };
        match (form, &mut *value) {
            ("f", Value::Object(map)) if still.is_empty() => {
                map.remove(name);
            }
            ("f", Value::Object(map)) => {
                if let Some(field) = map.get_mut(name) {
                    give_up(field, inner, &still);
                }
            }
            ("v", Value::Array(list)) if still.is_empty() => {
                let Ok(unwanted) = serde_json::from_str::<Value>(name) else { continue };
                list.retain(|item| *item != unwanted);
            }
            ("k", Value::Array(list)) => {
                let Ok(Value::Object(wanted)) = serde_json::from_str(name) else { continue };
                let is_it = |item: &Value| wanted.iter().all(|(key, value)| item.get(key) == Some(value));
                if still.is_empty() {
                    list.retain(|item| !is_it(item));
                } else if let Some(item) = list.iter_mut().find(|item| is_it(item)) {
                    give_up(item, inner, &still);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(target: Option<&Value>, config: Value, manager: &str) -> Value {
        apply(target, &config, manager, "v1", "2026-01-01T00:00:00Z").expect("it applies")
    }

    #[test]
    fn what_a_manager_no_longer_applies_goes() {
        let first = applied(
            None,
            json!({"metadata": {"name": "x", "labels": {"a": "1", "b": "2"}}, "spec": {"containers": [{"name": "c"}, {"name": "d"}]}}),
            "me",
        );
        let second = applied(
            Some(&first),
            json!({"metadata": {"name": "x", "labels": {"a": "3"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
            "me",
        );
        assert_eq!(second["metadata"]["labels"], json!({"a": "3"}));
        assert_eq!(second["spec"], json!({"containers": [{"name": "c", "image": "i"}]}));
        assert_eq!(second["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn what_another_manager_applies_stays() {
        let first = applied(None, json!({"metadata": {"labels": {"a": "1", "b": "1"}}}), "me");
        let second = applied(Some(&first), json!({"metadata": {"labels": {"a": "1"}}}), "you");
        let third = applied(Some(&second), json!({"metadata": {"labels": {"c": "1"}}}), "me");
        assert_eq!(third["metadata"]["labels"], json!({"a": "1", "c": "1"}));
        assert_eq!(third["metadata"]["managedFields"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_manager_has_a_name() {
        let failure = apply(None, &json!({}), "", "v1", "").expect_err("nobody applies");
        assert_eq!(failure.code(), 400);
    }
}
