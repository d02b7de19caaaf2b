//! From a field's path to its place in the text.

use std::collections::{BTreeMap, BTreeSet};

use supercargo_manifest::{Location, Problem, Source, Value, ValueKind};

/// A document and the text that it was read from.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) source: &'a Source,
    pub(crate) root: &'a Value,
}

impl Text<'_> {
    /// An error at a field.
    pub(crate) fn error(&self, path: impl Into<String>, message: impl Into<String>) -> Problem {
        self.tell(path.into(), Problem::error(message))
    }

    /// A warning at a field.
    pub(crate) fn warning(&self, path: impl Into<String>, message: impl Into<String>) -> Problem {
        self.tell(path.into(), Problem::warning(message))
    }

    fn tell(&self, path: String, problem: Problem) -> Problem {
        problem.at(self.source, self.location(&path)).path(path)
    }

    /// Where a field stands, or the innermost of the fields around it that is there. Of a map or a list that
    /// is its key, and of an item that has a name its name.
    fn location(&self, path: &str) -> Location {
        let (mut value, mut at) = (self.root, self.root.at);
        for step in steps(path) {
            let Some(next) = child(value, step) else {
                return at;
            };
            let entry = value.entries().iter().find(|entry| &*entry.key == step);
            at = match (&next.kind, entry) {
                (ValueKind::Map(_) | ValueKind::List(_), Some(entry)) => entry.key_at,
                _ => next.at,
            };
            value = next;
        }
        value.get("name").filter(|name| name.as_str().is_some()).map_or(at, |name| name.at)
    }

    /// The value of a field.
    pub(crate) fn find(&self, path: &str) -> Option<&Value> {
        steps(path).try_fold(self.root, child)
    }
}

/// Takes a field out of a document; whether it was there. Items of lists stay, since taking one out would
/// rename the others.
pub(crate) fn remove(root: &mut Value, path: &str) -> bool {
    let mut at = root;
    let mut steps = steps(path).peekable();
    while let Some(step) = steps.next() {
        let last = steps.peek().is_none();
        at = match (&mut at.kind, step) {
            (ValueKind::Map(entries), key) => match entries.iter().position(|entry| &*entry.key == key) {
                Some(index) if last => {
                    entries.remove(index);
                    return true;
                }
                Some(index) => &mut entries[index].value,
                None => return false,
            },
            (ValueKind::List(items), index) => {
                match index.parse().ok().and_then(|index: usize| items.get_mut(index)) {
                    Some(item) if !last => item,
                    _ => return false,
                }
            }
            _ => return false,
        };
    }
    false
}

/// Takes many fields out of a document, each map in one go: there may be as many fields as a text has room for.
pub(crate) fn remove_all<'p>(root: &mut Value, paths: impl IntoIterator<Item = &'p str>) {
    let mut by_map: BTreeMap<Vec<&str>, BTreeSet<&str>> = BTreeMap::new();
    for path in paths {
        let mut steps: Vec<&str> = steps(path).collect();
        if let Some(field) = steps.pop() {
            by_map.entry(steps).or_default().insert(field);
        }
    }
    for (steps, fields) in by_map {
        let found = steps.into_iter().try_fold(&mut *root, child_mut);
        if let Some(Value { kind: ValueKind::Map(entries), .. }) = found {
            entries.retain(|entry| !fields.contains(&*entry.key));
        }
    }
}

/// Whether one of two paths is that of a field and the other of something in it.
pub(crate) fn related(one: &str, other: &str) -> bool {
    let within = |path: &str, field: &str| {
        path.strip_prefix(field)
            .is_some_and(|rest| rest.is_empty() || field.is_empty() || rest.starts_with(['.', '[']))
    };
    within(one, other) || within(other, one)
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    std::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let (step, after) = match rest.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once(']').unwrap_or((bracketed, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        rest = after;
        (!step.is_empty()).then_some(step)
    })
}

fn child<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match &value.kind {
        ValueKind::List(items) => items.get(step.parse::<usize>().ok()?),
        _ => value.get(step),
    }
}

fn child_mut<'v>(value: &'v mut Value, step: &str) -> Option<&'v mut Value> {
    match &mut value.kind {
        ValueKind::List(items) => items.get_mut(step.parse::<usize>().ok()?),
        ValueKind::Map(entries) => {
            entries.iter_mut().find(|entry| &*entry.key == step).map(|entry| &mut entry.value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_removed_at_once() {
        let mut root: Value =
            "{a: [{b: 1, c: 2}, {c.d: 2, e: 3}], f: 4, g: {h: 5}}".parse().expect("it is YAML");
        remove_all(&mut root, ["a[0].b", "a[1][c.d]", "f", "a[1]", "g", "g.h", "absent.b", "a[0].b.c", ""]);
        assert_eq!(root.to_json(), r#"{"a":[{"c":2},{"e":3}]}"#);
    }

    #[test]
    fn walks_and_removes() {
        let mut root: Value = "{a: [{b: 1}, {c.d: 2}]}".parse().expect("it is YAML");
        let source = Source::new("x", "");
        let text = Text { source: &source, root: &root };
        assert_eq!(text.find("a[0].b").and_then(Value::as_i64), Some(1));
        assert_eq!(text.find("a[1][c.d]").and_then(Value::as_i64), Some(2));
        assert_eq!(text.find("a[2]"), None);
        assert!(remove(&mut root, "a[0].b"));
        assert!(!remove(&mut root, "a[0].b"));
        assert!(!remove(&mut root, "a[1]"), "a list keeps its items");
    }
}
