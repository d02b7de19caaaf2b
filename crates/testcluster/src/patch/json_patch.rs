//! JSON patch, RFC 6902.

use serde_json::Value;

use super::{MAX_DEPTH, depth};
use crate::failure::StatusError;
use crate::object::text;

/// As many operations as an API server takes.
const OPERATIONS_LIMIT: usize = 10_000;
/// Copies may add this much: otherwise a short patch could double an object again and again.
const COPIED_BYTES_LIMIT: usize = 3 * 1024 * 1024;

pub(super) fn run(target: &mut Value, patch: &Value) -> Result<(), StatusError> {
    let Value::Array(operations) = patch else {
        return Err(wrong("a JSON patch is a list of operations"));
    };
    if operations.len() > OPERATIONS_LIMIT {
        return Err(wrong("too many operations"));
    }
    let mut copied_bytes = 0;
    for operation in operations {
        apply(target, operation, &mut copied_bytes)?;
    }
    Ok(())
}

fn wrong(why: impl std::fmt::Display) -> StatusError {
    StatusError::bad_request(format!("the server rejected our request due to an error in our request: {why}"))
}

fn apply(target: &mut Value, operation: &Value, copied_bytes: &mut usize) -> Result<(), StatusError> {
    let path = pointer(operation, "path")?;
    let value = || operation.get("value").cloned().ok_or_else(|| wrong("an operation lacks its value"));
    match text(operation, &["op"]) {
        "add" => add(target, &path, value()?),
        "replace" => {
            let found = find(target, &path).ok_or_else(|| missing(&path))?;
            *found = value()?;
            Ok(())
        }
        "remove" => remove(target, &path).map(drop),
        "move" => {
            let moved = remove(target, &pointer(operation, "from")?)?;
            add(target, &path, moved)
        }
        "copy" => {
            let from = pointer(operation, "from")?;
            let copy = find(target, &from).ok_or_else(|| missing(&from))?.clone();
            *copied_bytes += copy.to_string().len();
            if *copied_bytes > COPIED_BYTES_LIMIT {
                return Err(wrong("the copies are too large"));
            }
            add(target, &path, copy)
        }
        "test" => match find(target, &path) {
            Some(found) if *found == value()? => Ok(()),
            _ => Err(wrong(format!("testing value /{} failed", path.join("/")))),
        },
        other => Err(wrong(format!("unexpected kind of operation {other:?}"))),
    }
}

fn missing(path: &[String]) -> StatusError {
    wrong(format!("there is nothing at /{}", path.join("/")))
}

fn pointer(operation: &Value, key: &str) -> Result<Vec<String>, StatusError> {
    let Some(pointer) = operation.get(key).and_then(Value::as_str) else {
        return Err(wrong(format!("an operation lacks its {key}")));
    };
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(tokens) = pointer.strip_prefix('/') else {
        return Err(wrong(format!("{pointer:?} does not begin with a slash")));
    };
    Ok(tokens.split('/').map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
}

fn find<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |inner, token| match inner {
        Value::Object(map) => map.get_mut(token),
        Value::Array(list) => list.get_mut(token.parse::<usize>().ok()?),
        _ => None,
    })
}

fn add(target: &mut Value, path: &[String], value: Value) -> Result<(), StatusError> {
    if path.len() + depth(&value) > MAX_DEPTH {
        return Err(wrong("the value is nested too deeply"));
    }
    let Some((last, parents)) = path.split_last() else {
        *target = value;
        return Ok(());
    };
    match find(target, parents) {
        Some(Value::Object(map)) => {
            map.insert(last.clone(), value);
            Ok(())
        }
        Some(Value::Array(list)) if last == "-" => {
            list.push(value);
            Ok(())
        }
        Some(Value::Array(list)) => match last.parse::<usize>() {
            Ok(index) if index <= list.len() => {
                list.insert(index, value);
                Ok(())
            }
            _ => Err(missing(path)),
        },
        _ => Err(missing(path)),
    }
}

fn remove(target: &mut Value, path: &[String]) -> Result<Value, StatusError> {
    let Some((last, parents)) = path.split_last() else {
        return Ok(target.take());
    };
    let removed = match find(target, parents) {
        Some(Value::Object(map)) => map.remove(last),
        Some(Value::Array(list)) => {
            last.parse::<usize>().ok().filter(|index| *index < list.len()).map(|index| list.remove(index))
        }
        _ => None,
    };
    removed.ok_or_else(|| missing(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_do_what_they_say() {
        for (target, patch, expected) in [
            (
                json!({"a": [1, 3]}),
                json!([{"op": "add", "path": "/a/1", "value": 2}]),
                Some(json!({"a": [1, 2, 3]})),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/-", "value": 2}]),
                Some(json!({"a": [1, 2]})),
            ),
            (json!({"a": 1}), json!([{"op": "replace", "path": "/a", "value": 2}]), Some(json!({"a": 2}))),
            (json!({"a": 1}), json!([{"op": "replace", "path": "/b", "value": 2}]), None),
            (
                json!({"a/b": {"c~d": 1}}),
                json!([{"op": "remove", "path": "/a~1b/c~0d"}]),
                Some(json!({"a/b": {}})),
            ),
            (json!({"a": 1}), json!([{"op": "remove", "path": "/b"}]), None),
            (json!({"a": 1}), json!([{"op": "move", "from": "/a", "path": "/b"}]), Some(json!({"b": 1}))),
            (
                json!({"a": 1}),
                json!([{"op": "copy", "from": "/a", "path": "/b"}]),
                Some(json!({"a": 1, "b": 1})),
            ),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 1}]), Some(json!({"a": 1}))),
            (json!({"a": 1}), json!([{"op": "test", "path": "/a", "value": 2}]), None),
            (json!({"a": 1}), json!([{"op": "sink", "path": "/a"}]), None),
            (json!({"a": 1}), json!({"a": 2}), None),
            (json!({"a": [1]}), json!([{"op": "add", "path": "/a/7", "value": 2}]), None),
        ] {
            let mut result = target.clone();
            let outcome = run(&mut result, &patch).map(|()| result);
            assert_eq!(outcome.ok(), expected, "{target} with {patch}");
        }
    }

    #[test]
    fn no_patch_grows_without_bound() {
        let double = json!({"op": "copy", "from": "", "path": "/a"});
        let mut target = json!({"b": "c"});
        let failure = run(&mut target, &Value::Array(vec![double; 1_000])).expect_err("it doubles");
        assert_eq!(failure.code(), 400);
        assert!(depth(&target) <= MAX_DEPTH);
    }
}
