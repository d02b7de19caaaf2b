//! What changes in meaning from one configuration to another.

use std::fmt;

use supercargo_framework::registry::Registry;
use supercargo_manifest::{Value, ValueKind};

use crate::{Configuration, yaml};

/// One thing that changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigDifference {
    /// What it is about, such as `profiles[default-scheduler].plugins.score[NodeAffinity].weight`.
    pub path: String,
    /// What it was; `None` if it was not there.
    pub before: Option<String>,
    /// What it is; `None` if it is not there any more.
    pub after: Option<String>,
}

/// One line, such as `~ parallelism: 16 -> 8`.
impl fmt::Display for ConfigDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => write!(f, "~ {}: {before} -> {after}", self.path),
            (Some(before), None) => write!(f, "- {}: {before}", self.path),
            (None, Some(after)) => write!(f, "+ {}: {after}", self.path),
            (None, None) => write!(f, "  {}", self.path),
        }
    }
}

/// Everything that changes in meaning; nothing if the two differ only in how they are written.
pub fn diff(before: &Configuration, after: &Configuration, registry: &Registry) -> Vec<ConfigDifference> {
    let mut changes = Vec::new();
    compare("", &before.to_value(registry), &after.to_value(registry), &mut changes);
    changes
}

fn compare(path: &str, before: &Value, after: &Value, changes: &mut Vec<ConfigDifference>) {
    match (&before.kind, &after.kind) {
        (ValueKind::Map(old), ValueKind::Map(_)) => {
            let new_keys = after.entries().iter().filter(|entry| before.get(&entry.key).is_none());
            for entry in old.iter().chain(new_keys) {
                let path = child(path, &entry.key);
                side_by_side(&path, before.get(&entry.key), after.get(&entry.key), changes);
            }
        }
        (ValueKind::List(old), ValueKind::List(new)) if named(old) && named(new) => {
            compare_named(path, old, new, changes)
        }
        _ if same(before, after) => {}
        _ => changes.push(ConfigDifference {
            path: path.to_owned(),
            before: Some(short(before)),
            after: Some(short(after)),
        }),
    }
}

fn side_by_side(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    changes: &mut Vec<ConfigDifference>,
) {
    match (before, after) {
        (Some(before), Some(after)) => compare(path, before, after, changes),
        (before, after) => changes.push(ConfigDifference {
            path: path.to_owned(),
            before: before.map(short),
            after: after.map(short),
        }),
    }
}

/// Items that have names are the same thing if they have the same name; their order is compared on its own.
fn compare_named(path: &str, old: &[Value], new: &[Value], changes: &mut Vec<ConfigDifference>) {
    let find = |items: &'_ [Value], name: &str| items.iter().position(|item| name_of(item) == Some(name));
    let names: Vec<&str> = old.iter().filter_map(name_of).collect();
    let added = new.iter().filter_map(name_of).filter(|name| !names.contains(name));
    for name in names.iter().copied().chain(added) {
        let before = find(old, name).map(|index| &old[index]);
        let after = find(new, name).map(|index| &new[index]);
        side_by_side(&format!("{path}[{name}]"), before, after, changes);
    }
    let kept = |items: &[Value], others: &[Value]| -> Vec<String> {
        let names = items.iter().filter_map(name_of);
        names.filter(|name| find(others, name).is_some()).map(str::to_owned).collect()
    };
    let (before, after) = (kept(old, new), kept(new, old));
    // Scheduler names have no order; plugins and extenders are asked one after the other.
    if before != after && !path.ends_with("profiles") && !path.ends_with("pluginConfig") {
        let list = |names: Vec<String>| Some(names.join(", "));
        changes.push(ConfigDifference {
            path: format!("{path} (order)"),
            before: list(before),
            after: list(after),
        });
    }
}

fn named(items: &[Value]) -> bool {
    items.iter().all(|item| name_of(item).is_some())
}

fn name_of(item: &Value) -> Option<&str> {
    ["schedulerName", "name", "urlPrefix"].into_iter().find_map(|key| item.get(key)).and_then(Value::as_str)
}

/// Whether two values are the same, wherever they stand. The keys of a map have no order.
fn same(one: &Value, other: &Value) -> bool {
    match (&one.kind, &other.kind) {
        (ValueKind::Map(entries), ValueKind::Map(others)) => {
            entries.len() == others.len()
                && entries
                    .iter()
                    .all(|entry| other.get(&entry.key).is_some_and(|value| same(&entry.value, value)))
        }
        (ValueKind::List(items), ValueKind::List(others)) => {
            items.len() == others.len() && items.iter().zip(others).all(|(one, other)| same(one, other))
        }
        _ => shown(one) == shown(other),
    }
}

fn shown(value: &Value) -> String {
    let mut text = String::new();
    yaml::inline(&mut text, value);
    text
}

/// A value in one line that can be read at a glance.
fn short(value: &Value) -> String {
    const MAX_SHOWN_CHARS: usize = 100;
    let text = shown(value);
    match text.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

/// Lists of plugins are what the points of a profile are, so their path is the point's.
fn child(path: &str, key: &str) -> String {
    match key {
        "enabled" if path.contains(".plugins.") => path.to_owned(),
        _ if path.is_empty() => key.to_owned(),
        _ => format!("{path}.{key}"),
    }
}
