//! The fields of built-in kinds: names, types, and numbers on the wire. From one table come the reader of protobuf, what is
//! said about unknown fields, and the OpenAPI documents.

mod protobuf;
mod strict;

use std::collections::HashMap;
use std::sync::LazyLock;

pub(crate) use protobuf::{is_protobuf, read as read_protobuf};
pub(crate) use strict::faults;

static TABLE: &str = include_str!("fields.txt");
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse(TABLE));

/// All messages, by name.
struct Schema {
    messages: Vec<Message>,
    by_name: HashMap<&'static str, usize>,
}

/// An object, or a part of one.
pub(crate) struct Message {
    /// Package, version and name, such as `core.v1.PodSpec`.
    pub(crate) name: &'static str,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Field {
    number: u64,
    /// Empty if the fields of its message stand in its place in JSON.
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) value: ValueType,
}

/// How often a value occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Always there, if only as nothing: a zero is as good as none.
    Plain,
    /// A zero is something else than none.
    Optional,
    List,
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    Text,
    Bool,
    Integer,
    /// Base64 in JSON.
    Bytes,
    Quantity,
    Time,
    MicroTime,
    IntOrText,
    /// A list that is a message of its own on the wire.
    Texts,
    /// Any JSON.
    Json,
    Message(usize),
}

impl ValueType {
    /// The message that it is, if it is one.
    pub(crate) fn message(self) -> Option<&'static Message> {
        match self {
            Self::Message(index) => SCHEMA.messages.get(index),
            _ => None,
        }
    }
}

/// The message of a built-in kind, by its group, version and kind.
pub(crate) fn message_of(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    let package = match group.split('.').next() {
        Some("") | None => "core",
        Some(package) => package,
    };
    named(&format!("{package}.{version}.{kind}"))
}

fn named(name: &str) -> Option<&'static Message> {
    SCHEMA.by_name.get(name).and_then(|index| SCHEMA.messages.get(*index))
}

impl Message {
    /// The fields as JSON has them: those of an inlined message in its place.
    pub(crate) fn json_fields(&'static self) -> Vec<&'static Field> {
        let mut fields = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            match field.value.message() {
                Some(inlined) if field.name.is_empty() => fields.extend(inlined.json_fields()),
                _ => fields.push(field),
            }
        }
        fields
    }

    fn json_field(&'static self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find_map(|field| match field.value.message() {
            Some(inlined) if field.name.is_empty() => inlined.json_field(name),
            _ => (field.name == name).then_some(field),
        })
    }
}

impl Schema {
    fn parse(table: &'static str) -> Self {
        let lines = || table.lines().filter(|line| !line.starts_with('#'));
        let names = lines().filter(|line| !line.starts_with(' '));
        let by_name = names.enumerate().map(|(index, name)| (name, index)).collect();
        let mut messages: Vec<Message> = Vec::new();
        for line in lines() {
            match line.strip_prefix(' ') {
                None => messages.push(Message { name: line, fields: Vec::new() }),
                Some(row) => {
                    if let Some(message) = messages.last_mut() {
                        message.fields.extend(field(message.name, row, &by_name));
                    }
                }
            }
        }
        Self { messages, by_name }
    }
}

/// A row of the table; a test sees to it that every row is one.
fn field(message: &str, row: &'static str, by_name: &HashMap<&'static str, usize>) -> Option<Field> {
    let (number, rest) = row.split_once(' ')?;
    let (name, spelled) = rest.split_once(' ')?;
    let marks = [("*", Shape::Optional), ("[]", Shape::List), ("map ", Shape::Map)];
    let marked = marks.iter().find_map(|(mark, shape)| Some((*shape, spelled.strip_prefix(mark)?)));
    let (shape, spelled) = marked.unwrap_or((Shape::Plain, spelled));
    let value = match spelled {
        "string" => ValueType::Text,
        "bool" => ValueType::Bool,
        "int" => ValueType::Integer,
        "bytes" => ValueType::Bytes,
        "quantity" => ValueType::Quantity,
        "time" => ValueType::Time,
        "micro-time" => ValueType::MicroTime,
        "int-or-string" => ValueType::IntOrText,
        "strings" => ValueType::Texts,
        "json" | "raw" => ValueType::Json,
        other => {
            let package = message.rsplit_once('.').map_or("", |(package, _)| package);
            let own = format!("{package}.{other}");
            ValueType::Message(*by_name.get(own.as_str()).or_else(|| by_name.get(other))?)
        }
    };
    let name = if name == "-" { "" } else { name };
    Some(Field { number: number.parse().ok()?, name, shape, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::{ALL, CUSTOM_RESOURCE_DEFINITIONS};

    #[test]
    fn every_row_of_the_table_is_a_field() {
        let rows = TABLE.lines().filter(|line| line.starts_with(' ')).count();
        let fields: usize = SCHEMA.messages.iter().map(|message| message.fields.len()).sum();
        assert_eq!(fields, rows);
        assert_eq!(SCHEMA.by_name.len(), SCHEMA.messages.len(), "no message is told twice");
    }

    #[test]
    fn every_kind_that_is_served_has_fields() {
        for resource in ALL.iter().filter(|resource| !resource.is(&CUSTOM_RESOURCE_DEFINITIONS)) {
            let found = message_of(resource.group, resource.version, resource.kind);
            assert!(found.is_some_and(|found| !found.fields.is_empty()), "{}", resource.qualified());
        }
    }

    #[test]
    fn inlined_fields_stand_where_json_has_them() {
        let volume = message_of("", "v1", "Volume").expect("a volume");
        let names: Vec<&str> = volume.json_fields().iter().map(|field| field.name).collect();
        assert!(names.contains(&"name") && names.contains(&"emptyDir"), "{names:?}");
        assert_eq!(volume.json_field("emptyDir").map(|field| field.shape), Some(Shape::Optional));
        assert!(volume.json_field("volumeSource").is_none());
    }
}
