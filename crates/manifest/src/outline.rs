//! Values as one line of text that shows every location, for tests.

use crate::value::{Value, ValueKind};

/// `{a@1:1: 5@1:4}@1:1`: keys and values, each followed by its line and column.
pub(crate) fn outline(value: &Value) -> String {
    let content = match &value.kind {
        ValueKind::Null => "null".to_owned(),
        ValueKind::Bool(bool) => bool.to_string(),
        ValueKind::Number(text) => text.to_string(),
        ValueKind::String(text) => format!("{text:?}"),
        ValueKind::List(items) => {
            format!("[{}]", items.iter().map(outline).collect::<Vec<_>>().join(", "))
        }
        ValueKind::Map(entries) => {
            let entry = |entry: &crate::Entry| {
                let at = entry.key_at;
                format!("{}@{}:{}: {}", entry.key, at.line, at.column, outline(&entry.value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    };
    format!("{content}@{}:{}", value.at.line, value.at.column)
}
