//! What is in the way of a pod on a node, with numbers and names: for whoever asks why a filter refuses it.

use std::borrow::Cow;

use serde_json::{Map, Value};
use supercargo_model::{Name, resources};

/// One thing that is in the way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detail {
    /// For people.
    pub text: String,
    /// The same for programs, by name.
    pub facts: Map<String, Value>,
}

impl Detail {
    /// A detail in words.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), facts: Map::new() }
    }

    /// The same with a fact for programs.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }
}

/// What kind of node it is that was refused for a reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefusalKind {
    /// The reason, as the refusal says it.
    pub reason: Cow<'static, str>,
    /// What such nodes have in common: "have none", "are full".
    pub kind: Cow<'static, str>,
}

/// How many names are listed where there may be thousands.
pub const MAX_LISTED: usize = 5;

/// Up to [`MAX_LISTED`] texts, and how many more there are.
pub fn listed(texts: &[String]) -> String {
    let more = texts.len().saturating_sub(MAX_LISTED);
    let shown = texts[..texts.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} … and {more} more") }
}

/// An amount of a resource as people write it: `1.3` of cpu, `1.5Gi` of memory.
pub fn amount(resource: &str, value: i64) -> String {
    const UNITS: [(&str, i64); 4] = [("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let is_bytes = matches!(resource, resources::MEMORY | resources::EPHEMERAL_STORAGE)
        || resource.starts_with("hugepages-");
    if resource == resources::CPU {
        return decimal(value, 1000);
    }
    let unit = UNITS.iter().find(|(_, size)| value.unsigned_abs() >= size.unsigned_abs());
    match unit.filter(|_| is_bytes) {
        Some((name, size)) => format!("{}{name}", decimal(value, *size)),
        None => value.to_string(),
    }
}

/// A fraction with three digits at most, towards zero.
fn decimal(value: i64, of: i64) -> String {
    let thousandths = i128::from(value) * 1000 / i128::from(of);
    let (whole, rest) = ((thousandths / 1000).abs(), (thousandths % 1000).abs());
    let sign = if thousandths < 0 { "-" } else { "" };
    let digits = format!("{rest:03}");
    match digits.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        digits => format!("{sign}{whole}.{digits}"),
    }
}

/// A label of a node in words, or that it has none of the name.
pub fn label_in_words(key: &str, value: Option<&Name>) -> String {
    match value {
        Some(value) => format!("the node has {key}={value}"),
        None => format!("the node has no label {key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_written_as_people_write_them() {
        let cases = [
            ("cpu", 2_000, "2"),
            ("cpu", 1_300, "1.3"),
            ("cpu", 1, "0.001"),
            ("cpu", -250, "-0.25"),
            ("memory", 1 << 30, "1Gi"),
            ("memory", 3 << 29, "1.5Gi"),
            ("memory", (2 << 30) - 1, "1.999Gi"),
            ("memory", 700, "700"),
            ("ephemeral-storage", 5 << 20, "5Mi"),
            ("hugepages-2Mi", 4 << 20, "4Mi"),
            ("nvidia.com/gpu", 4096, "4096"),
        ];
        for (resource, value, text) in cases {
            assert_eq!(amount(resource, value), text, "{value} {resource}");
        }
    }

    #[test]
    fn long_lists_end_with_how_many_more_there_are() {
        let names = |n: usize| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!(listed(&names(2)), "1, 2");
        assert_eq!(listed(&names(5)), "1, 2, 3, 4, 5");
        assert_eq!(listed(&names(7)), "1, 2, 3, 4, 5 … and 2 more");
    }
}
