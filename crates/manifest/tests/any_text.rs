//! Properties that hold for any text: reading never panics, and JSON comes back as it was written.

use proptest::prelude::*;
use serde_json::Value as Json;
use supercargo_manifest::{Source, UnknownFields, Value, ValueKind, decode, read};

/// The value as serde_json has it.
fn to_json(value: &Value) -> Json {
    match &value.kind {
        ValueKind::Null => Json::Null,
        ValueKind::Bool(bool) => Json::Bool(*bool),
        ValueKind::Number(text) => number(text),
        ValueKind::String(text) => Json::String(text.to_string()),
        ValueKind::List(items) => items.iter().map(to_json).collect(),
        ValueKind::Map(entries) => {
            entries.iter().map(|entry| (entry.key.to_string(), to_json(&entry.value))).collect()
        }
    }
}

fn number(text: &str) -> Json {
    let signed = text.parse::<i64>().map(Json::from);
    let unsigned = || text.parse::<u64>().map(Json::from);
    signed.or_else(|_| unsigned()).unwrap_or_else(|_| Json::from(text.parse::<f64>().expect("a number")))
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        ".*".prop_map(Json::from),
    ];
    leaf.prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Json::from),
            prop::collection::btree_map(".*", inner, 0..8).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

/// Texts made of the characters that mean something to YAML or JSON.
fn punctuation() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop::sample::select(vec![
            "a", "b", "1", ".", "-", "- ", "? ", ": ", ":", ",", "[", "]", "{", "}", "\"", "'", "\n", "\r",
            "\n  ", "\t", " ", "#", " #", "&a ", "*a", "*a ", "!", "!!str ", "!<x>", "|", ">", "|2\n",
            ">-\n", "%", "@", "`", "---\n", "...\n", "<<: ", "\\", "\\u", "\\ud800", "é", "\u{feff}",
            "\u{0}", "\u{85}", "\u{2028}", "~",
        ]),
        0..60,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn json_comes_back(items in prop::collection::vec(any_json(), 1..4)) {
        let document = Json::from(items);
        for text in [document.to_string(), format!("{document:#}")] {
            let documents = read(&Source::new("t.json", text)).map_err(|problems| TestCaseError::fail(problems.to_string()))?;
            prop_assert_eq!(documents.iter().map(to_json).collect::<Vec<_>>(), vec![document.clone()]);
        }
    }

    #[test]
    fn json_decodes_to_itself(items in prop::collection::vec(any_json(), 1..4)) {
        let document = Json::from(items);
        let source = Source::new("t.json", document.to_string());
        let documents = read(&source).map_err(|problems| TestCaseError::fail(problems.to_string()))?;
        prop_assert_eq!(decode::<Json>(&source, &documents[0], "", UnknownFields::Deny), Ok(document));
    }

    #[test]
    fn no_text_panics(text in prop_oneof![any::<String>(), ".*", punctuation()]) {
        for text in [format!("{{{text}"), format!("[\"{text}"), format!("a: {text}"), text] {
            if let Err(problems) = read(&Source::new("t", text)) {
                prop_assert!(!problems.to_string().is_empty());
            }
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Err(problems) = read(&Source::new("t", text)) {
            prop_assert!(!problems.to_string().is_empty());
        }
    }
}
