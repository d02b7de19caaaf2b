//! Values that know where in the text they stand.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::problem::{Problem, Problems};
use crate::{number, read};

/// A text and the name people know it by: a path, or `<stdin>`.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// The name that problems show.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

impl Source {
    /// Names a text.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// Shows the name only: a text may be a hundred megabytes long.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A place in a text. Both numbers start at 1; the column counts characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    /// The line.
    pub line: u32,
    /// The character in that line.
    pub column: u32,
}

impl Location {
    /// The first character of a text.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// A value and where it stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Where the value begins.
    pub at: Location,
    /// What it is.
    pub kind: ValueKind,
}

/// What a value is.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueKind {
    /// `null`, `~` or nothing at all.
    Null,
    /// `true` or `false`, and in YAML also `yes`, `no`, `on`, `off`, `y` and `n`.
    Bool(bool),
    /// A number as it was written, so that nothing is lost.
    Number(Box<str>),
    /// A text.
    String(Box<str>),
    /// Values in order.
    List(Vec<Value>),
    /// Keys and values in the order of the text; no key occurs twice.
    Map(Vec<Entry>),
}

/// A key of a map and its value.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The key.
    pub key: Box<str>,
    /// Where the key begins.
    pub key_at: Location,
    /// The value.
    pub value: Value,
}

impl Value {
    /// The value of `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries().iter().find(|entry| &*entry.key == key).map(|entry| &entry.value)
    }

    /// The entries of a map; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.kind {
            ValueKind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The items of a list; none for anything else.
    pub fn items(&self) -> &[Value] {
        match &self.kind {
            ValueKind::List(items) => items,
            _ => &[],
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            ValueKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// A boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            ValueKind::Bool(bool) => Some(bool),
            _ => None,
        }
    }

    /// An integer, if this is a number without a fraction that fits.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.kind {
            ValueKind::Number(text) => number::integer(text)?.try_into().ok(),
            _ => None,
        }
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        self.kind == ValueKind::Null
    }

    /// Where a field such as `resources[0].weight` stands; where it would stand, if it is absent.
    pub fn location_of(&self, field: &str) -> Location {
        let mut at = self;
        for step in field.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match step.strip_suffix(']') {
                Some(index) => index.parse().ok().and_then(|i: usize| at.items().get(i)),
                None => at.get(step),
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at.at
    }

    /// The value as JSON. Numbers are written as they were read.
    pub fn to_json(&self) -> String {
        let mut text = String::new();
        write_json(self, &mut text);
        text
    }

    /// What this is, in words for a message: `a map`, `a string`, and so on.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            ValueKind::Null => "null",
            ValueKind::Bool(_) => "a boolean",
            ValueKind::Number(_) => "a number",
            ValueKind::String(_) => "a string",
            ValueKind::List(_) => "a list",
            ValueKind::Map(_) => "a map",
        }
    }
}

/// Reads a text of one document; made for tests and for short texts of a command line.
impl FromStr for Value {
    type Err = Problems;

    fn from_str(text: &str) -> Result<Self, Problems> {
        let source = Source::new("<text>", text);
        let mut documents = read(&source)?;
        match (documents.pop(), documents.len()) {
            (Some(document), 0) => Ok(document),
            (None, _) => Ok(Value { at: Location::START, kind: ValueKind::Null }),
            (Some(second), _) => {
                Err(Problem::error("expected one document, found several").at(&source, second.at).into())
            }
        }
    }
}

fn write_json(value: &Value, text: &mut String) {
    match &value.kind {
        ValueKind::Null => text.push_str("null"),
        ValueKind::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        ValueKind::Number(number) => text.push_str(number),
        ValueKind::String(string) => write_json_string(string, text),
        ValueKind::List(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write_json(item, text);
            }
            text.push(']');
        }
        ValueKind::Map(entries) => {
            text.push('{');
            for (i, entry) in entries.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write_json_string(&entry.key, text);
                text.push(':');
                write_json(&entry.value, text);
            }
            text.push('}');
        }
    }
}

fn write_json_string(string: &str, text: &mut String) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c < ' ' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
}
