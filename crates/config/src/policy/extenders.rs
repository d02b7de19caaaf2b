//! The extenders of a policy: their keys were read without regard to case, and their timeout was a number of
//! nanoseconds.

use supercargo_manifest::{Entry, Problems, Value, ValueKind, nearest};

use crate::{Duration, place::Text, tree::At};

/// The fields of an extender in v1.
const FIELDS: [&str; 12] = [
    "urlPrefix",
    "filterVerb",
    "preemptVerb",
    "prioritizeVerb",
    "weight",
    "bindVerb",
    "enableHTTPS",
    "tlsConfig",
    "httpTimeout",
    "nodeCacheCapable",
    "managedResources",
    "ignorable",
];

pub(super) fn translate(text: Text<'_>, problems: &mut Problems) -> Vec<Value> {
    let extenders = text.find("extenders").map(Value::items).unwrap_or_default();
    let translated = extenders.iter().enumerate().map(|(index, extender)| {
        let entries = extender.entries().iter().filter_map(|entry| field(index, entry, text, problems));
        Value { at: extender.at, kind: ValueKind::Map(entries.collect()) }
    });
    translated.collect()
}

fn field(index: usize, entry: &Entry, text: Text<'_>, problems: &mut Problems) -> Option<Entry> {
    let path = format!("extenders[{index}].{}", entry.key);
    let Some(name) = FIELDS.iter().find(|name| name.eq_ignore_ascii_case(&entry.key)) else {
        let mut problem = text.error(path, "there is no such field");
        problem.hint = nearest(&entry.key, FIELDS).map(|nearest| format!("did you mean {nearest}?"));
        problems.push(problem);
        return None;
    };
    let value = match *name {
        "httpTimeout" => At(entry.value.at).text(timeout(&entry.value).to_string()),
        _ => entry.value.clone(),
    };
    Some(Entry { key: (*name).into(), value, ..entry.clone() })
}

fn timeout(value: &Value) -> Duration {
    let written = value.as_str().and_then(Duration::parse);
    written.unwrap_or_else(|| Duration::from_nanos(value.as_i64().unwrap_or_default()))
}
