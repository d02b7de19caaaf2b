//! Building values that were not written, or not where they now stand.

use supercargo_manifest::{Entry, Location, Value, ValueKind};

/// Makes values that all stand in one place.
#[derive(Clone, Copy)]
pub(crate) struct At(pub(crate) Location);

impl At {
    /// For values that stand in no text.
    pub(crate) const NOWHERE: Self = Self(Location::START);

    pub(crate) fn text(self, text: impl AsRef<str>) -> Value {
        self.value(ValueKind::String(text.as_ref().into()))
    }

    pub(crate) fn number(self, number: impl ToString) -> Value {
        self.value(ValueKind::Number(number.to_string().into()))
    }

    pub(crate) fn boolean(self, boolean: bool) -> Value {
        self.value(ValueKind::Bool(boolean))
    }

    pub(crate) fn list(self, items: impl IntoIterator<Item = Value>) -> Value {
        self.value(ValueKind::List(items.into_iter().collect()))
    }

    pub(crate) fn map<'k>(self, entries: impl IntoIterator<Item = (&'k str, Value)>) -> Value {
        let entry = |(key, value): (&str, Value)| Entry { key: key.into(), key_at: self.0, value };
        self.value(ValueKind::Map(entries.into_iter().map(entry).collect()))
    }

    fn value(self, kind: ValueKind) -> Value {
        Value { at: self.0, kind }
    }
}

/// Takes a key out of a map.
pub(crate) fn take(map: &mut Value, key: &str) -> Option<Value> {
    let ValueKind::Map(entries) = &mut map.kind else {
        return None;
    };
    let index = entries.iter().position(|entry| &*entry.key == key)?;
    Some(entries.remove(index).value)
}

/// The value of a key, to change it; an empty one of the given kind if it is absent.
pub(crate) fn entry<'v>(map: &'v mut Value, key: &str, empty: ValueKind) -> Option<&'v mut Value> {
    let at = map.at;
    let ValueKind::Map(entries) = &mut map.kind else {
        return None;
    };
    let index = entries.iter().position(|entry| &*entry.key == key).unwrap_or_else(|| {
        entries.push(Entry { key: key.into(), key_at: at, value: Value { at, kind: empty } });
        entries.len() - 1
    });
    entries.get_mut(index).map(|entry| &mut entry.value)
}

/// The value of a key, to change it, if it is there.
pub(crate) fn get_mut<'v>(map: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    let ValueKind::Map(entries) = &mut map.kind else {
        return None;
    };
    entries.iter_mut().find(|entry| &*entry.key == key).map(|entry| &mut entry.value)
}

/// The list under a key, to change it, if it is there.
pub(crate) fn list_mut<'v>(map: &'v mut Value, key: &str) -> Option<&'v mut Vec<Value>> {
    match get_mut(map, key) {
        Some(Value { kind: ValueKind::List(items), .. }) => Some(items),
        _ => None,
    }
}

/// The name of an item of a list.
pub(crate) fn name_of(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

/// Sets a key of a map, over what it had.
pub(crate) fn set(map: &mut Value, key: &str, value: Value) {
    if let Some(slot) = entry(map, key, ValueKind::Null) {
        *slot = value;
    }
}

/// Adds an item to the list under a key, which is made if it is absent.
pub(crate) fn append(map: &mut Value, key: &str, item: Value) {
    if let Some(Value { kind: ValueKind::List(items), .. }) = entry(map, key, ValueKind::List(Vec::new())) {
        items.push(item);
    }
}

/// What is given, filled up with what is default, map by map.
pub(crate) fn over(given: &Value, default: &Value) -> Value {
    let (ValueKind::Map(given_entries), ValueKind::Map(default_entries)) = (&given.kind, &default.kind)
    else {
        return given.clone();
    };
    let mut entries: Vec<Entry> = Vec::new();
    for entry in given_entries {
        let default = default.get(&entry.key);
        let value = default.map_or_else(|| entry.value.clone(), |default| over(&entry.value, default));
        entries.push(Entry { value, ..entry.clone() });
    }
    let absent = default_entries.iter().filter(|entry| given.get(&entry.key).is_none());
    entries.extend(absent.cloned());
    Value { at: given.at, kind: ValueKind::Map(entries) }
}

/// A map without some of its keys.
pub(crate) fn without(map: &Value, keys: &[&str]) -> Value {
    let mut rest = map.clone();
    for key in keys {
        take(&mut rest, key);
    }
    rest
}
