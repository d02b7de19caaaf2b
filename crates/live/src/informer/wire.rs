//! The server's JSON: lines of a watch and pages of a list, read straight from bytes.
//!
//! A line is read twice: first its head (what happened, to which object, in which version), which ends as soon as that is
//! known, near the line's beginning; then the object, if it is news.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use supercargo_manifest::{Source, clip};
use supercargo_model::object::{Kind, Object};

use super::Resource;

const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";
/// Where an object lives that does not say where, by [`Meta::namespace_or_default`](supercargo_model::meta::Meta).
const DEFAULT_NAMESPACE: &str = "default";

/// What stands at the beginning of a line or an object.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Head<'a> {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`; empty on an object of a list.
    pub(super) change: Cow<'a, str>,
    /// As the object will be known by: empty for kinds that live in none, and never for others.
    pub(super) namespace: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) uid: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    /// A bookmark that ends a streaming list.
    pub(super) ends_list: bool,
}

impl<'a> Head<'a> {
    /// The head of a watch's line.
    pub(super) fn of_line(line: &'a [u8], kind: Kind) -> Result<Self, serde_json::Error> {
        Self::read(line, kind, Level::Line)
    }

    /// The head of an object in a list.
    pub(super) fn of_object(object: &'a [u8], kind: Kind) -> Result<Self, serde_json::Error> {
        Self::read(object, kind, Level::Object)
    }

    fn read(bytes: &'a [u8], kind: Kind, level: Level) -> Result<Self, serde_json::Error> {
        let mut head = Self::default();
        let reading = HeadSeed { head: &mut head, level, outermost: level, namespaced: kind.is_namespaced() };
        match reading.deserialize(&mut serde_json::Deserializer::from_slice(bytes)) {
            // All that was looked for has been found: the error only ended the reading.
            Err(error) if !head.is_complete(level, kind.is_namespaced()) => Err(error),
            _ => {
                // Anybody can annotate an object like that, and its change may stand after it.
                head.ends_list &= head.change == "BOOKMARK";
                if !kind.is_namespaced() {
                    head.namespace = Cow::Borrowed("");
                } else if head.namespace.is_empty() {
                    head.namespace = Cow::Borrowed(DEFAULT_NAMESPACE);
                }
                Ok(head)
            }
        }
    }

    fn is_complete(&self, outermost: Level, namespaced: bool) -> bool {
        let has = |text: &str| !text.is_empty();
        has(&self.name)
            && has(&self.uid)
            && has(&self.version)
            && (has(&self.namespace) || !namespaced)
            && (has(&self.change) || outermost != Level::Line)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Line,
    Object,
    Metadata,
    Annotations,
}

/// Reads a head at one level of a line, and stops everything as soon as it is complete.
struct HeadSeed<'h, 'de> {
    head: &'h mut Head<'de>,
    level: Level,
    outermost: Level,
    namespaced: bool,
}

impl<'de> HeadSeed<'_, 'de> {
    fn inner(&mut self, level: Level) -> HeadSeed<'_, 'de> {
        HeadSeed { head: self.head, level, outermost: self.outermost, namespaced: self.namespaced }
    }
}

impl<'de> DeserializeSeed<'de> for HeadSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HeadSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_key_seed(Text)? {
            match (self.level, &*field) {
                (Level::Line, "type") => self.head.change = map.next_value_seed(Text)?,
                (Level::Line, "object") => map.next_value_seed(self.inner(Level::Object))?,
                (Level::Object, "metadata") => map.next_value_seed(self.inner(Level::Metadata))?,
                (Level::Metadata, "name") => self.head.name = map.next_value_seed(Text)?,
                (Level::Metadata, "namespace") => self.head.namespace = map.next_value_seed(Text)?,
                (Level::Metadata, "uid") => self.head.uid = map.next_value_seed(Text)?,
                (Level::Metadata, "resourceVersion") => self.head.version = map.next_value_seed(Text)?,
                (Level::Metadata, "annotations") if matches!(&*self.head.change, "" | "BOOKMARK") => {
                    map.next_value_seed(self.inner(Level::Annotations))?;
                }
                (Level::Annotations, INITIAL_EVENTS_END) => {
                    self.head.ends_list = map.next_value_seed(Text)? == "true";
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            if self.head.is_complete(self.outermost, self.namespaced) {
                return Err(A::Error::custom("enough"));
            }
        }
        Ok(())
    }
}

/// A text that is not copied unless it has to be.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// The object of a line; or what is wrong with it, by field.
pub(super) fn object_of_line(line: &[u8], resource: &Resource) -> Result<Object, String> {
    // As a text, so that the code that reads objects is compiled once: see [`Object::from_json`].
    let line_text = str::from_utf8(line).map_err(|error| error.to_string())?;
    let quickly = ObjectOfLine(resource).deserialize(&mut serde_json::Deserializer::from_str(line_text));
    quickly.or_else(|error| match text_of_line(line) {
        Some(text) => slowly(text, resource),
        None => Err(error.to_string()),
    })
}

/// The text of a line's object.
pub(super) fn text_of_line(line: &[u8]) -> Option<&str> {
    #[derive(Deserialize)]
    struct Line<'a> {
        #[serde(borrow)]
        object: &'a RawValue,
    }
    serde_json::from_slice::<Line<'_>>(line).ok().map(|line| line.object.get())
}

/// An object of a list; or what is wrong with it, by field.
pub(super) fn object(text: &str, resource: &Resource) -> Result<Object, String> {
    let quickly = Object::from_json(resource.kind, &resource.annotations, text.as_bytes());
    quickly.or_else(|_| slowly(text, resource))
}

/// What the quick way refuses is mostly `null` where a list might stand, which Go writes for empty ones. This way reads it
/// as nothing, and names the field of anything else.
fn slowly(text: &str, resource: &Resource) -> Result<Object, String> {
    let source = Source::new(resource.kind.name(), text);
    Object::from_text(resource.kind, &resource.annotations, &source).map_err(|problems| {
        let told = problems.iter().take(3).map(|problem| format!("{}: {}", problem.path, problem.message));
        told.collect::<Vec<_>>().join("; ")
    })
}

struct ObjectOfLine<'r>(&'r Resource);

impl<'de> DeserializeSeed<'de> for ObjectOfLine<'_> {
    type Value = Object;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Object, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectOfLine<'_> {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a line of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        struct Inner<'r>(&'r Resource);
        impl<'de> DeserializeSeed<'de> for Inner<'_> {
            type Value = Object;

            fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Object, D::Error> {
                Object::deserialize(self.0.kind, &self.0.annotations, from)
            }
        }
        let mut object = None;
        while let Some(field) = map.next_key_seed(Text)? {
            if field == "object" {
                object = Some(map.next_value_seed(Inner(self.0))?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        object.ok_or_else(|| A::Error::custom("no object"))
    }
}

/// A page of a list. What has no items, not even `null`, is something else, such as a status: it is not taken for an empty
/// list.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: PageMetadata,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) items: Option<Vec<&'a RawValue>>,
}

/// A field that must be there, if only as `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<&'a RawValue>>, D::Error> {
    Deserialize::deserialize(from)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMetadata {
    pub(super) resource_version: String,
    /// Where the next page begins; empty on the last one.
    #[serde(rename = "continue")]
    pub(super) continue_from: String,
}

/// Why a server refused or ended something.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub(super) struct Status {
    pub(super) code: u16,
    pub(super) message: String,
}

/// The status that an `ERROR` line carries.
pub(super) fn status_of_line(line: &[u8]) -> Status {
    #[derive(Deserialize)]
    struct Line {
        object: Status,
    }
    let Status { code, message } =
        serde_json::from_slice::<Line>(line).map(|line| line.object).unwrap_or_default();
    Status { code, message: clip(&message).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_ends_where_it_is_complete() {
        let line = br#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a",
            "namespace":"n","uid":"u","resourceVersion":"7","labels":here the reading has stopped"#;
        let head = Head::of_line(line, Kind::Pod).unwrap();
        assert_eq!((&*head.change, &*head.namespace, &*head.name), ("ADDED", "n", "a"));
        assert_eq!((&*head.uid, &*head.version), ("u", "7"));
    }

    #[test]
    fn fields_in_any_order_are_found() {
        let line = br#"{"object":{"spec":{"a":[1]},"metadata":{"resourceVersion":"7","uid":"u","name":"n"}},"type":"DELETED"}"#;
        let head = Head::of_line(line, Kind::Node).unwrap();
        assert_eq!((&*head.change, &*head.name), ("DELETED", "n"));
    }

    #[test]
    fn a_bookmark_may_end_the_list() {
        let line = br#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"42",
            "creationTimestamp":null,"annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}"#;
        let head = Head::of_line(line, Kind::Pod).unwrap();
        assert!(head.ends_list);
        assert_eq!(head.version, "42");
    }

    #[test]
    fn an_object_that_is_annotated_like_a_bookmark_ends_no_list() {
        for order in [r#"{"type":"ADDED","object":OBJECT}"#, r#"{"object":OBJECT,"type":"ADDED"}"#] {
            let object = r#"{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"name":"n","uid":"u",
                "resourceVersion":"7"}}"#;
            let line = order.replace("OBJECT", object);
            let head = Head::of_line(line.as_bytes(), Kind::Node).unwrap();
            assert_eq!((head.ends_list, &*head.change, &*head.name), (false, "ADDED", "n"), "{line}");
        }
    }

    #[test]
    fn a_cut_line_is_an_error() {
        let cut = br#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a""#;
        assert!(Head::of_line(cut, Kind::Pod).is_err());
    }

    #[test]
    fn null_for_an_empty_list_is_read() {
        let text = r#"{"metadata":{"name":"n"},"spec":{"drivers":null}}"#;
        let read = object(text, &Resource::of(Kind::CsiNode).unwrap()).unwrap();
        assert_eq!(read.key().name, "n".into());
    }

    #[test]
    fn a_wrong_type_names_its_field() {
        let line =
            br#"{"type":"ADDED","object":{"metadata":{"name":"n"},"spec":{"unschedulable":"perhaps"}}}"#;
        let reason = object_of_line(line, &Resource::of(Kind::Node).unwrap()).unwrap_err();
        assert!(reason.starts_with("spec.unschedulable: "), "{reason}");
    }
}
