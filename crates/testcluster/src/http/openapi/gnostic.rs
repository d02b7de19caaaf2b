//! An OpenAPI document as gnostic's protobuf, which kubectl asks for up to 1.26: those parts that the test cluster tells.

use serde_json::{Map, Value};

/// A message that is being written.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push((number & 0x7f) as u8);
    }

    fn bytes(mut self, number: u64, bytes: &[u8]) -> Self {
        self.varint(number << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn text(self, number: u64, value: Option<&Value>) -> Self {
        match value.and_then(Value::as_str) {
            Some(text) => self.bytes(number, text.as_bytes()),
            None => self,
        }
    }

    fn message(self, number: u64, message: Self) -> Self {
        self.bytes(number, &message.0)
    }

    /// One message for each.
    fn each<T>(self, number: u64, all: impl IntoIterator<Item = T>, message: impl Fn(T) -> Self) -> Self {
        all.into_iter().fold(self, |written, one| written.message(number, message(one)))
    }

    /// The extensions of an object, whose values are YAML, and so may be JSON.
    fn extensions(self, number: u64, object: &Value) -> Self {
        let extensions = entries(object).filter(|(key, _)| key.starts_with("x-"));
        self.each(number, extensions, |(key, value)| {
            let any = Self::default().bytes(2, value.to_string().as_bytes());
            Self::default().bytes(1, key.as_bytes()).message(2, any)
        })
    }

    /// Names with a message each.
    fn named(self, number: u64, object: &Value, message: impl Fn(&Value) -> Self) -> Self {
        self.each(number, entries(object), |(key, value)| {
            Self::default().bytes(1, key.as_bytes()).message(2, message(value))
        })
    }
}

fn entries(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flat_map(Map::iter)
}

/// The whole document.
pub(super) fn document(document: &Value) -> Vec<u8> {
    let info = &document["info"];
    let info = Writer::default().text(1, info.get("title")).text(2, info.get("version"));
    let paths = Writer::default().named(2, &document["paths"], path_item);
    let definitions = Writer::default().named(1, &document["definitions"], schema);
    let written = Writer::default().text(1, document.get("swagger")).message(2, info);
    written.message(8, paths).message(9, definitions).0
}

fn path_item(item: &Value) -> Writer {
    [("get", 2), ("put", 3), ("patch", 8)].into_iter().fold(Writer::default(), |written, (method, number)| {
        match item.get(method) {
            Some(told) => written.message(number, operation(told)),
            None => written,
        }
    })
}

fn operation(told: &Value) -> Writer {
    let parameters = told["parameters"].as_array().into_iter().flatten();
    let written = Writer::default().text(5, told.get("operationId"));
    written.each(8, parameters, query_parameter).extensions(13, told)
}

/// A parameter of the query, in its four wrappings: item, parameter, not in the body, in the query.
fn query_parameter(told: &Value) -> Writer {
    let parameter =
        Writer::default().text(2, told.get("in")).text(4, told.get("name")).text(6, told.get("type"));
    let not_in_body = Writer::default().message(3, parameter);
    Writer::default().message(1, Writer::default().message(2, not_in_body))
}

fn schema(told: &Value) -> Writer {
    let mut written = Writer::default()
        .text(1, told.get("$ref"))
        .text(2, told.get("format"))
        .text(4, told.get("description"));
    if let Some(values) = told.get("additionalProperties") {
        written = written.message(21, Writer::default().message(1, schema(values)));
    }
    if let Some(kind) = told.get("type") {
        written = written.message(22, Writer::default().text(1, Some(kind)));
    }
    if let Some(items) = told.get("items") {
        written = written.message(23, Writer::default().message(1, schema(items)));
    }
    if let Some(properties) = told.get("properties") {
        written = written.message(25, Writer::default().named(1, properties, schema));
    }
    written.extensions(31, told)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_written_byte_by_byte() {
        let told = json!({"swagger": "2.0", "info": {"title": "t"}, "paths": {},
            "definitions": {"A": {"type": "object", "x-b": [1]}}});
        let expected: [&[u8]; 7] = [
            b"\x0a\x032.0",
            b"\x12\x03\x0a\x01t",
            b"\x42\x00",
            // The definitions, 2 + 31 bytes; the one of them, 3 + 2 + 26.
            b"\x4a\x21\x0a\x1f\x0a\x01A\x12\x1a",
            // Its type, 22 << 3 | 2 = 178, of 8 bytes.
            b"\xb2\x01\x08\x0a\x06object",
            // Its extension, 31 << 3 | 2 = 250, of 5 + 2 + 5 bytes.
            b"\xfa\x01\x0c\x0a\x03x-b",
            b"\x12\x05\x12\x03[1]",
        ];
        assert_eq!(document(&told), expected.concat());
    }
}
