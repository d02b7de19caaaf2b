//! Writes values as YAML.

use std::fmt::Write;

use supercargo_manifest::{Value, ValueKind};

/// A value as YAML that reads back as the same value, with a line break at the end.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes a value at the beginning of a line or after `- `.
fn block(out: &mut String, value: &Value, indent: usize) {
    match &value.kind {
        ValueKind::Map(entries) if !entries.is_empty() => {
            for (index, entry) in entries.iter().enumerate() {
                if index > 0 {
                    pad(out, indent);
                }
                scalar(out, &entry.key);
                out.push(':');
                under_key(out, &entry.value, indent);
            }
        }
        ValueKind::List(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    pad(out, indent);
                }
                out.push_str("- ");
                block(out, item, indent + 2);
            }
        }
        _ => {
            inline(out, value);
            out.push('\n');
        }
    }
}

fn under_key(out: &mut String, value: &Value, indent: usize) {
    match &value.kind {
        ValueKind::Map(entries) if !entries.is_empty() => {
            out.push('\n');
            pad(out, indent + 2);
            block(out, value, indent + 2);
        }
        // As people write it: the items of a list stand below their key, not further in.
        ValueKind::List(items) if !items.is_empty() => {
            out.push('\n');
            pad(out, indent);
            block(out, value, indent);
        }
        _ => {
            out.push(' ');
            block(out, value, indent);
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Writes a value in one line: a scalar, or something empty.
pub(crate) fn inline(out: &mut String, value: &Value) {
    match &value.kind {
        ValueKind::Null => out.push_str("null"),
        ValueKind::Bool(boolean) => out.push_str(if *boolean { "true" } else { "false" }),
        ValueKind::Number(text) => out.push_str(text),
        ValueKind::String(text) => scalar(out, text),
        ValueKind::List(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                inline(out, item);
            }
            out.push(']');
        }
        ValueKind::Map(entries) => {
            out.push('{');
            for (index, entry) in entries.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                scalar(out, &entry.key);
                out.push_str(": ");
                inline(out, &entry.value);
            }
            out.push('}');
        }
    }
}

fn scalar(out: &mut String, text: &str) {
    if is_plain(text) { out.push_str(text) } else { quoted(out, text) }
}

/// Whether a text can stand without quotes, anywhere, and still is that text. In doubt it cannot.
fn is_plain(text: &str) -> bool {
    let harmless = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    let begins = text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'/');
    let reads_back = || text.parse::<Value>().is_ok_and(|value| value.as_str() == Some(text));
    begins && text.bytes().all(harmless) && reads_back()
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use supercargo_manifest::{Entry, Location};

    use super::*;

    fn at_start(kind: ValueKind) -> Value {
        Value { at: Location::START, kind }
    }

    /// The value without its locations.
    fn bare(value: &Value) -> Value {
        at_start(match &value.kind {
            ValueKind::List(items) => ValueKind::List(items.iter().map(bare).collect()),
            ValueKind::Map(entries) => ValueKind::Map(entries.iter().map(bare_entry).collect()),
            other => other.clone(),
        })
    }

    fn bare_entry(entry: &Entry) -> Entry {
        Entry { key: entry.key.clone(), key_at: Location::START, value: bare(&entry.value) }
    }

    #[test]
    fn writes_as_people_do() {
        let value: Value =
            r#"{"a": {"b": [{"c": 1, "d": []}, [2, 3], "*"]}, "e": {}, "f": "yes", "g": "plain-text"}"#
                .parse()
                .expect("it is JSON");
        insta::assert_snapshot!(write(&value), @r#"
        a:
          b:
          - c: 1
            d: []
          - - 2
            - 3
          - "*"
        e: {}
        f: "yes"
        g: plain-text
        "#);
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = || prop_oneof![".*", "[a-z]{1,3}", "[0-9.:#*-]{0,4}", Just("\u{85}\u{7f}".to_owned())];
        let leaf = prop_oneof![
            Just(ValueKind::Null),
            any::<bool>().prop_map(ValueKind::Bool),
            any::<i64>().prop_map(|n| ValueKind::Number(n.to_string().into())),
            text().prop_map(|text| ValueKind::String(text.into())),
        ]
        .prop_map(at_start);
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(ValueKind::List),
                prop::collection::btree_map(text(), inner, 0..4).prop_map(|map| {
                    let entry = |(key, value): (String, Value)| Entry {
                        key: key.into(),
                        key_at: Location::START,
                        value,
                    };
                    ValueKind::Map(map.into_iter().map(entry).collect())
                }),
            ]
            .prop_map(at_start)
        })
    }

    proptest! {
        #[test]
        fn reads_back_the_same(value in value()) {
            let text = write(&value);
            let read: Value = text.parse().expect("what is written can be read");
            prop_assert_eq!(bare(&read), value, "{}", text);
        }
    }
}
