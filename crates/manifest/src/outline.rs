//! Values as one line of text that shows every location, for tests.

use crate::value::{Kind, Value};

/// `{a@1:1: 5@1:4}@1:1`: keys and values, each followed by its line and column.
pub(crate) fn outline(value: &Value) -> String {
    let content = match &value.kind {
        Kind::Null => "null".to_owned(),
        Kind::Bool(bool) => bool.to_string(),
        Kind::Number(text) => text.to_string(),
        Kind::String(text) => format!("{text:?}"),
        Kind::List(items) => {
            format!("[{}]", items.iter().map(outline).collect::<Vec<_>>().join(", "))
        }
        Kind::Map(entries) => {
            let entry = |entry: &crate::Entry| {
                let at = entry.key_at;
                format!("{}@{}:{}: {}", entry.key, at.line, at.column, outline(&entry.value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    };
    format!("{content}@{}:{}", value.at.line, value.at.column)
}
