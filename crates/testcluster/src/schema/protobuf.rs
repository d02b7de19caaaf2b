//! Kubernetes' protobuf, read as JSON: kubectl's typed commands, such as `create deployment` and `drain`, send their objects
//! in it.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Field, Message, Shape, ValueType, message_of, named};

/// What every body starts with.
const MAGIC: &[u8] = b"k8s\0";
/// Deeper than any object is.
const DEPTH_LIMIT: usize = 64;

/// Whether this is the media type of Kubernetes' protobuf.
pub(crate) fn is_protobuf(content_type: &str) -> bool {
    content_type.contains("application/vnd.kubernetes.protobuf")
}

/// The object in a body, with `apiVersion` and `kind`; or what is wrong with the body.
pub(crate) fn read(body: &[u8]) -> Result<Value, String> {
    let enveloped = body.strip_prefix(MAGIC).ok_or("it does not start as Kubernetes' protobuf does")?;
    let (mut api_version, mut kind, mut raw): (&str, &str, &[u8]) = ("", "", &[]);
    for entry in Entries(enveloped) {
        match entry? {
            (1, Wire::Bytes(bytes)) => {
                for entry in Entries(bytes) {
                    match entry? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let message =
        message_named(api_version, kind).ok_or_else(|| format!("no kind {kind:?} in {api_version:?}"))?;
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    read_message(message, raw, &mut object, 0)?;
    Ok(Value::Object(object))
}

fn message_named(api_version: &str, kind: &str) -> Option<&'static Message> {
    if kind == "DeleteOptions" {
        // It belongs to every group.
        return named("meta.v1.DeleteOptions");
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    message_of(group, version, kind)
}

/// Adds the fields of a message to an object. Fields that nobody knows are left out, as protobuf wants it.
fn read_message(
    message: &'static Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEPTH_LIMIT {
        return Err("it is nested too deeply".to_owned());
    }
    for entry in Entries(bytes) {
        let (number, wire) = entry?;
        let Some(field) = message.fields.iter().find(|field| field.number == number) else { continue };
        let misread = |why: String| format!("{}.{}: {why}", message.name, field.name);
        match (field.value.message(), wire) {
            (Some(inlined), Wire::Bytes(bytes)) if field.name.is_empty() => {
                read_message(inlined, bytes, object, depth + 1)?;
            }
            _ => add(field, wire, object, depth).map_err(misread)?,
        }
    }
    Ok(())
}

fn add(field: &Field, wire: Wire<'_>, object: &mut Map<String, Value>, depth: usize) -> Result<(), String> {
    match field.shape {
        Shape::Plain => {
            let value = read_value(field.value, wire, depth)?;
            if !is_zero(&value) {
                object.insert(field.name.to_owned(), value);
            }
        }
        Shape::Optional => {
            object.insert(field.name.to_owned(), read_value(field.value, wire, depth)?);
        }
        Shape::List => {
            let values = read_elements(field.value, wire, depth)?;
            let entry = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(list) = entry {
                list.extend(values);
            }
        }
        Shape::Map => {
            let (key, value) = read_map_entry(field.value, wire, depth)?;
            let entry = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = entry {
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

/// What a field that is always written holds when it holds nothing.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// The elements that an entry brings: numbers may come many at once.
fn read_elements(kind: ValueType, wire: Wire<'_>, depth: usize) -> Result<Vec<Value>, String> {
    match (kind, wire) {
        (ValueType::Integer | ValueType::Bool, Wire::Bytes(mut packed)) => {
            let mut values = Vec::new();
            while !packed.is_empty() {
                let (number, rest) = varint(packed)?;
                values.push(read_value(kind, Wire::Number(number), depth)?);
                packed = rest;
            }
            Ok(values)
        }
        _ => Ok(vec![read_value(kind, wire, depth)?]),
    }
}

fn read_map_entry(kind: ValueType, wire: Wire<'_>, depth: usize) -> Result<(String, Value), String> {
    let Wire::Bytes(bytes) = wire else { return Err("a map is wanted".to_owned()) };
    let (mut key, mut value) = (String::new(), None);
    for entry in Entries(bytes) {
        match entry? {
            (1, Wire::Bytes(text)) => utf8(text)?.clone_into(&mut key),
            (2, wire) => value = Some(read_value(kind, wire, depth)?),
            _ => {}
        }
    }
    // A value that is not written is empty.
    let value = value.map_or_else(|| read_value(kind, Wire::Bytes(&[]), depth), Ok)?;
    Ok((key, value))
}

fn read_value(kind: ValueType, wire: Wire<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (kind, wire) {
        (ValueType::Bool, Wire::Number(number)) => (number != 0).into(),
        (ValueType::Integer, Wire::Number(number)) => number.cast_signed().into(),
        (ValueType::Text, Wire::Bytes(bytes)) => utf8(bytes)?.into(),
        (ValueType::Bytes, Wire::Bytes(bytes)) => base64(bytes).into(),
        // A quantity is a message whose only field is its text.
        (ValueType::Quantity, Wire::Bytes(bytes)) => utf8(last_bytes(bytes, 1)?.unwrap_or_default())?.into(),
        (ValueType::Time, Wire::Bytes(bytes)) => time(bytes, 0)?,
        (ValueType::MicroTime, Wire::Bytes(bytes)) => time(bytes, 6)?,
        (ValueType::IntOrText, Wire::Bytes(bytes)) => int_or_text(bytes)?,
        (ValueType::Texts, Wire::Bytes(bytes)) => texts(bytes)?,
        (ValueType::Json, Wire::Bytes(bytes)) => match last_bytes(bytes, 1)? {
            None | Some([]) => Value::Null,
            Some(json) => serde_json::from_slice(json).map_err(|error| error.to_string())?,
        },
        (ValueType::Message(_), Wire::Bytes(bytes)) => {
            let mut object = Map::new();
            if let Some(message) = kind.message() {
                read_message(message, bytes, &mut object, depth + 1)?;
            }
            Value::Object(object)
        }
        (kind, _) => return Err(format!("{kind:?} is written otherwise")),
    })
}

/// The last entry with this number: it counts.
fn last_bytes(bytes: &[u8], wanted: u64) -> Result<Option<&[u8]>, String> {
    let mut last = None;
    for entry in Entries(bytes) {
        if let (number, Wire::Bytes(bytes)) = entry?
            && number == wanted
        {
            last = Some(bytes);
        }
    }
    Ok(last)
}

fn texts(bytes: &[u8]) -> Result<Value, String> {
    let mut list = Vec::new();
    for entry in Entries(bytes) {
        if let (1, Wire::Bytes(text)) = entry? {
            list.push(utf8(text)?.into());
        }
    }
    Ok(Value::Array(list))
}

/// Seconds and nanoseconds; no time at all is null.
fn time(bytes: &[u8], fraction_digits: usize) -> Result<Value, String> {
    let (mut seconds, mut nanos) = (None, 0);
    for entry in Entries(bytes) {
        match entry? {
            (1, Wire::Number(number)) => seconds = Some(number.cast_signed()),
            (2, Wire::Number(number)) => nanos = i32::try_from(number.cast_signed()).unwrap_or_default(),
            _ => {}
        }
    }
    let Some(seconds) = seconds else { return Ok(Value::Null) };
    let time = Timestamp::new(seconds, nanos).map_err(|error| error.to_string())?;
    Ok(format!("{time:.fraction_digits$}").into())
}

fn int_or_text(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    for entry in Entries(bytes) {
        match entry? {
            (1, Wire::Number(kind)) => is_text = kind == 1,
            (2, Wire::Number(value)) => number = value.cast_signed(),
            (3, Wire::Bytes(value)) => text = utf8(value)?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "a text is not UTF-8".to_owned())
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_usize, |group, byte| group << 8 | usize::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let digit = DIGITS[group >> (18 - 6 * place) & 63];
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// A value as it is on the wire.
#[derive(Clone, Copy)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The entries of a message: numbers of fields and values.
struct Entries<'a>(&'a [u8]);

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(u64, Wire<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let entry = self.entry();
        if entry.is_err() {
            self.0 = &[];
        }
        Some(entry)
    }
}

impl<'a> Entries<'a> {
    fn entry(&mut self) -> Result<(u64, Wire<'a>), String> {
        let (key, rest) = varint(self.0)?;
        let cut = |length: usize, rest: &'a [u8]| rest.split_at_checked(length).ok_or("it ends too early");
        let (wire, rest) = match key & 7 {
            0 => {
                let (number, rest) = varint(rest)?;
                (Wire::Number(number), rest)
            }
            1 => cut(8, rest).map(|(bytes, rest)| (Wire::Bytes(bytes), rest))?,
            2 => {
                let (length, rest) = varint(rest)?;
                let (bytes, rest) = cut(usize::try_from(length).unwrap_or(usize::MAX), rest)?;
                (Wire::Bytes(bytes), rest)
            }
            5 => cut(4, rest).map(|(bytes, rest)| (Wire::Bytes(bytes), rest))?,
            other => return Err(format!("there is no wire type {other}")),
        };
        self.0 = rest;
        Ok((key >> 3, wire))
    }
}

/// A number of seven bits a byte, and what follows it.
fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), String> {
    let mut number = 0_u64;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Ok((number, &bytes[place + 1..]));
        }
    }
    Err("a number does not end".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What kubectl 1.32 sent, byte for byte.
    #[test]
    fn kubectls_bodies_are_read() {
        let cases: [(&str, &[u8], Value); 5] = [
            (
                "create namespace team",
                b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x1c\x0a\x14\x0a\x04team\x12\x00\x1a\x00\x22\x00*\x002\x008\
                  \x00B\x00\x12\x00\x1a\x02\x0a\x00\x1a\x00\x22\x00",
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
            ),
            (
                "create configmap cfg --from-literal=empty= --from-literal=a=b",
                b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12(\x0a\x13\x0a\x03cfg\x12\x00\x1a\x00\x22\x00*\x002\x008\x00B\
                  \x00\x12\x06\x0a\x01a\x12\x01b\x12\x09\x0a\x05empty\x12\x00\x1a\x00\x22\x00",
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cfg"}, "data": {"a": "b", "empty": ""}}),
            ),
            (
                "create secret generic s --from-literal=p=w",
                b"k8s\x00\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x1d\x0a\x11\x0a\x01s\x12\x00\x1a\x00\x22\x00*\x002\x008\x00B\
                  \x00\x12\x06\x0a\x01p\x12\x01w\x1a\x00\x1a\x00\x22\x00",
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"p": "dw=="}}),
            ),
            (
                "create pdb guard --selector=app=front --min-available=50%",
                b"k8s\x00\x0a \x0a\x09policy/v1\x12\x13PodDisruptionBudget\x12@\x0a\x15\x0a\x05guard\x12\x00\x1a\x00\x22\x00*\
                  \x002\x008\x00B\x00\x12\x1b\x0a\x09\x08\x01\x10\x00\x1a\x0350%\x12\x0e\x0a\x0c\x0a\x03app\x12\x05front\x1a\x0a\
                  \x08\x00\x18\x00 \x00(\x000\x00\x1a\x00\x22\x00",
                json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard"},
                    "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "front"}}}}),
            ),
            (
                "create deployment front --image=front:1 --replicas=0 --port=80",
                DEPLOYMENT,
                // No replicas are something else than no number of replicas.
                json!({"apiVersion": "apps/v1", "kind": "Deployment",
                    "metadata": {"name": "front", "labels": {"app": "front"}},
                    "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "front"}},
                        "template": {"metadata": {"labels": {"app": "front"}}, "spec": {
                            "containers": [{"name": "front", "image": "front:1", "ports": [{"containerPort": 80}]}]}}}}),
            ),
        ];
        for (command, body, expected) in cases {
            assert_eq!(read(body), Ok(expected), "{command}");
        }
    }

    const DEPLOYMENT: &[u8] =
        b"k8s\x00\x0a\x15\x0a\x07apps/v1\x12\x0aDeployment\x12\xc2\x01\x0a#\x0a\x05front\x12\x00\x1a\x00\x22\x00*\x002\x008\
          \x00B\x00Z\x0c\x0a\x03app\x12\x05front\x12\x8c\x01\x08\x00\x12\x0e\x0a\x0c\x0a\x03app\x12\x05front\x1ap\x0a\x1e\x0a\
          \x00\x12\x00\x1a\x00\x22\x00*\x002\x008\x00B\x00Z\x0c\x0a\x03app\x12\x05front\x12N\x120\x0a\x05front\x12\x07front:1*\
          \x002\x0a\x0a\x00\x10\x00\x18P\x22\x00*\x00B\x00j\x00r\x00\x80\x01\x00\x88\x01\x00\x90\x01\x00\xa2\x01\x00\x1a\x002\
          \x00B\x00J\x00R\x00X\x00`\x00h\x00\x82\x01\x00\x8a\x01\x00\x9a\x01\x00\xc2\x01\x00\x22\x02\x0a\x00(\x008\x00\x1a\x0c\
          \x08\x00\x10\x00\x18\x00 \x00(\x008\x00\x1a\x00\x22\x00";

    #[test]
    fn no_body_makes_it_panic() {
        for end in 0..DEPLOYMENT.len() {
            let _ = read(&DEPLOYMENT[..end]);
        }
        for place in 0..DEPLOYMENT.len() {
            for byte in [0x00, 0x7f, 0x80, 0xff] {
                let mut body = DEPLOYMENT.to_vec();
                body[place] = byte;
                let _ = read(&body);
            }
        }
        assert!(read(b"{}").is_err());
        assert_eq!(read(b"k8s\x00\x0a\x06\x12\x04Boat"), Err("no kind \"Boat\" in \"\"".to_owned()));
    }

    #[test]
    fn times_and_bytes_are_written_as_json_has_them() {
        // 1,700,000,000 s and 5,000 ns: 0x80 0xe2 0xcf 0xaa 0x06 and 0x88 0x27.
        let moment = b"\x08\x80\xe2\xcf\xaa\x06\x10\x88\x27";
        assert_eq!(time(moment, 0), Ok(json!("2023-11-14T22:13:20Z")));
        assert_eq!(time(moment, 6), Ok(json!("2023-11-14T22:13:20.000005Z")));
        assert_eq!(time(b"", 0), Ok(Value::Null));
        for (bytes, expected) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), expected);
        }
    }
}
