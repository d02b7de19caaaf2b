//! Strategic merge patch: a merge that knows which lists hold named things, and a few directives.

use serde_json::{Map, Value};

use super::merge_keys::{ListMerge, list_merge};
use crate::failure::StatusError;
use crate::object::{as_map, list_at};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_SET: &str = "$deleteFromPrimitiveList/";

pub(super) fn merge(target: &mut Value, patch: &Value) -> Result<(), StatusError> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        None => merge_maps(as_map(target), patch),
        Some("replace") => {
            *target = without_directives(&Value::Object(patch.clone()));
            Ok(())
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            Ok(())
        }
        Some("merge") => merge_maps(as_map(target), patch),
        Some(other) => Err(unknown_directive(other)),
    }
}

fn unknown_directive(directive: &str) -> StatusError {
    StatusError::bad_request(format!("unknown patch type {directive:?} in map"))
}

fn merge_maps(target: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), StatusError> {
    if let Some(Value::Array(kept)) = patch.get(RETAIN_KEYS) {
        target.retain(|key, _| kept.iter().any(|one| one == key.as_str()));
    }
    for (key, value) in patch {
        if key == DIRECTIVE || key == RETAIN_KEYS || key.starts_with(ELEMENT_ORDER) {
            continue;
        }
        if let Some(field) = key.strip_prefix(DELETE_FROM_SET) {
            if let Value::Array(unwanted) = value {
                list_at(target, field).retain(|item| !unwanted.contains(item));
            }
            continue;
        }
        match value {
            Value::Null => {
                target.remove(key);
            }
            Value::Array(items) => merge_lists(list_at(target, key), key, items)?,
            Value::Object(_) => merge(target.entry(key.as_str()).or_insert(Value::Null), value)?,
            plain => {
                target.insert(key.clone(), plain.clone());
            }
        }
    }
    put_in_order(target, patch);
    Ok(())
}

fn merge_lists(target: &mut Vec<Value>, field: &str, patch: &[Value]) -> Result<(), StatusError> {
    let replaces = |item: &Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "replace");
    if patch.iter().any(replaces) {
        *target = patch.iter().filter(|item| !replaces(item)).map(without_directives).collect();
        return Ok(());
    }
    let known = if target.is_empty() { patch } else { target.as_slice() };
    match list_merge(field, known) {
        ListMerge::Replace => *target = patch.iter().map(without_directives).collect(),
        ListMerge::Set => {
            for item in patch {
                if !target.contains(item) {
                    target.push(item.clone());
                }
            }
        }
        ListMerge::ByKey(key) => {
            for item in patch {
                merge_item(target, field, key, item)?;
            }
        }
    }
    Ok(())
}

fn merge_item(target: &mut Vec<Value>, field: &str, key: &str, item: &Value) -> Result<(), StatusError> {
    let Some(name) = item.get(key) else {
        let map = format!("map: {item} does not contain declared merge key: {key}");
        return Err(StatusError::bad_request(format!("{map} (in {field})")));
    };
    let place = target.iter().position(|known| known.get(key) == Some(name));
    match (item.get(DIRECTIVE).and_then(Value::as_str), place) {
        (Some("delete"), _) => target.retain(|known| known.get(key) != Some(name)),
        (None | Some("merge"), Some(place)) => {
            merge_maps(as_map(&mut target[place]), as_map(&mut item.clone()))?
        }
        (None | Some("merge"), None) => target.push(without_directives(item)),
        (Some(other), _) => return Err(unknown_directive(other)),
    }
    Ok(())
}

/// What a patch adds is taken without its directives and its nulls.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_directives(value))).collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(without_directives).collect()),
        plain => plain.clone(),
    }
}

/// Sorts lists as `$setElementOrder/…` says; what it does not name stays behind what it followed.
fn put_in_order(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, order) in patch {
        let (Some(field), Value::Array(order)) = (key.strip_prefix(ELEMENT_ORDER), order) else { continue };
        let Some(Value::Array(list)) = target.get_mut(field) else { continue };
        let place = |item: &Value| match list_merge(field, order) {
            ListMerge::ByKey(key) => order.iter().position(|wanted| wanted.get(key) == item.get(key)),
            _ => order.iter().position(|wanted| wanted == item),
        };
        let mut last = 0;
        let mut placed: Vec<(usize, Value)> = Vec::with_capacity(list.len());
        for item in list.drain(..) {
            last = place(&item).map_or(last, |place| place + 1);
            placed.push((last, item));
        }
        placed.sort_by_key(|(place, _)| *place);
        list.extend(placed.into_iter().map(|(_, item)| item));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_as_kubectl_and_schedulers_send_them() {
        let cases = [
            (
                "a condition is replaced by its type, others stay",
                json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Disk", "status": "True"}]}}),
                json!({"status": {"$setElementOrder/conditions": [{"type": "Ready"}, {"type": "Disk"}, {"type": "PodScheduled"}],
                    "conditions": [{"type": "Ready", "status": "True"}, {"type": "PodScheduled", "status": "False"}]}}),
                json!({"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Disk", "status": "True"},
                    {"type": "PodScheduled", "status": "False"}]}}),
            ),
            (
                "containers and their lists are merged by name",
                json!({"containers": [{"name": "a", "image": "x", "env": [{"name": "K", "value": "1"}]}, {"name": "b"}]}),
                json!({"containers": [{"name": "a", "env": [{"name": "L", "value": "2"}]}]}),
                json!({"containers": [{"name": "a", "image": "x", "env": [{"name": "K", "value": "1"}, {"name": "L", "value": "2"}]},
                    {"name": "b"}]}),
            ),
            (
                "an item is deleted by its key",
                json!({"containers": [{"name": "a"}, {"name": "b"}]}),
                json!({"containers": [{"name": "a", "$patch": "delete"}]}),
                json!({"containers": [{"name": "b"}]}),
            ),
            (
                "tolerations are replaced as a whole",
                json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
                json!({"tolerations": [{"key": "c"}]}),
                json!({"tolerations": [{"key": "c"}]}),
            ),
            (
                "finalizers are a set",
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"metadata": {"finalizers": ["c", "a"], "$deleteFromPrimitiveList/finalizers": ["b"]}}),
                json!({"metadata": {"finalizers": ["a", "c"]}}),
            ),
            (
                "retained keys drop the others",
                json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
                json!({"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "c"}}]}),
                json!({"volumes": [{"name": "v", "configMap": {"name": "c"}}]}),
            ),
            (
                "null removes, and a map can be replaced",
                json!({"a": 1, "strategy": {"type": "RollingUpdate", "rollingUpdate": {}}, "m": {"x": 1}}),
                json!({"a": null, "strategy": {"$patch": "replace", "type": "Recreate"}, "m": {"y": null}}),
                json!({"strategy": {"type": "Recreate"}, "m": {"x": 1}}),
            ),
            (
                "ports of a service and of a container have different keys",
                json!({"ports": [{"port": 80, "targetPort": 1}], "c": {"ports": [{"containerPort": 80}]}}),
                json!({"ports": [{"port": 80, "targetPort": 2}], "c": {"ports": [{"containerPort": 81, "protocol": null}]}}),
                json!({"ports": [{"port": 80, "targetPort": 2}], "c": {"ports": [{"containerPort": 80}, {"containerPort": 81}]}}),
            ),
            (
                "owners are told apart by uid",
                json!({"ownerReferences": [{"uid": "1", "name": "a"}]}),
                json!({"ownerReferences": [{"uid": "1", "$patch": "delete"}, {"uid": "2", "name": "b"}]}),
                json!({"ownerReferences": [{"uid": "2", "name": "b"}]}),
            ),
            (
                "a list is put in the order asked for",
                json!({"containers": [{"name": "a"}, {"name": "b"}]}),
                json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}], "containers": [{"name": "c"}]}),
                json!({"containers": [{"name": "c"}, {"name": "b"}, {"name": "a"}]}),
            ),
        ];
        for (what, target, patch, expected) in cases {
            let mut result = target;
            merge(&mut result, &patch).expect(what);
            assert_eq!(result, expected, "{what}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for patch in [json!({"containers": [{"image": "x"}]}), json!({"a": {"$patch": "sink"}})] {
            let failure = merge(&mut json!({}), &patch).err();
            // A list without any key yet is taken as it comes; only named lists insist.
            assert_eq!(failure.map(|failure| failure.code()), Some(400), "{patch}");
        }
    }
}
