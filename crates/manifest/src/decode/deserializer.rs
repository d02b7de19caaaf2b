//! serde's view of a located value.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess};
use serde::de::{VariantAccess, Visitor};

use super::error::{DecodeError, did_you_mean};
use super::{Pass, UnknownFields};
use crate::number;
use crate::path::Path;
use crate::problem::Problem;
use crate::value::{Entry, Value, ValueKind};

/// A value to decode and the way to it.
#[derive(Clone, Copy)]
pub(super) struct ValueDeserializer<'v, 'p> {
    pub(super) value: &'v Value,
    pub(super) path: &'p Path<'p>,
    pub(super) pass: &'p Pass,
}

type Decoded<'v, T> = Result<T, DecodeError<'v>>;

impl<'v> ValueDeserializer<'v, '_> {
    fn mismatch(&self, expected: &str) -> DecodeError<'v> {
        let hint = match &self.value.kind {
            ValueKind::Number(text) if expected == "a string" => Some(format!("put it in quotes: {text:?}")),
            ValueKind::Bool(_) if expected == "a string" => Some("put it in quotes".to_owned()),
            ValueKind::Null if expected == "a string" => Some(r#"write "" for an empty string"#.to_owned()),
            ValueKind::String(text) if expected == "a boolean" => {
                unquote_hint(matches!(&**text, "true" | "false"))
            }
            ValueKind::String(text) if expected == "an integer" => {
                unquote_hint(number::integer(text).is_some())
            }
            ValueKind::String(text) if expected == "a number" => unquote_hint(number::is_yaml_number(text)),
            _ => None,
        };
        DecodeError::new(format!("expected {expected}, found {}", self.value.kind_name())).hint(hint)
    }

    fn integer<T: TryFrom<i128>>(&self, least: impl ToString, most: impl ToString) -> Decoded<'v, T> {
        let ValueKind::Number(text) = &self.value.kind else {
            return Err(self.mismatch("an integer"));
        };
        let outside = || {
            let (least, most) = (least.to_string(), most.to_string());
            DecodeError::new(format!("{text} is not between {least} and {most}"))
        };
        match number::integer(text) {
            Some(integer) => T::try_from(integer).map_err(|_| outside()),
            // More digits than any integer of ours has.
            None if text.trim_start_matches(['-', '+']).bytes().all(|b| b.is_ascii_digit()) => Err(outside()),
            None => Err(DecodeError::new(format!("expected an integer, found the number {text}"))),
        }
    }

    fn visit_list<V: Visitor<'v>>(self, items: &'v [Value], visitor: V) -> Decoded<'v, V::Value> {
        let Self { path, pass, .. } = self;
        visitor.visit_seq(ListAccess { items: items.iter().enumerate(), path, pass })
    }

    fn visit_entries<V: Visitor<'v>>(self, fields: Fields, visitor: V) -> Decoded<'v, V::Value> {
        let Self { value, path, pass } = self;
        visitor.visit_map(EntryAccess { entries: value.entries().iter(), current: None, fields, path, pass })
    }
}

fn unquote_hint(fits: bool) -> Option<String> {
    fits.then(|| "write it without quotes".to_owned())
}

macro_rules! deserialize_integers {
    ($($method:ident $visit:ident $type:ident),*) => {$(
        fn $method<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
            visitor.$visit(self.integer::<$type>($type::MIN, $type::MAX)?)
        }
    )*};
}

impl<'v> Deserializer<'v> for ValueDeserializer<'v, '_> {
    type Error = DecodeError<'v>;

    fn deserialize_any<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        match &self.value.kind {
            ValueKind::Null => visitor.visit_unit(),
            ValueKind::Bool(bool) => visitor.visit_bool(*bool),
            ValueKind::String(text) => visitor.visit_borrowed_str(text),
            ValueKind::List(items) => self.visit_list(items, visitor),
            ValueKind::Map(_) => self.visit_entries(Fields::Any, visitor),
            ValueKind::Number(text) => {
                let integer = number::integer(text);
                if let Some(integer) = integer.and_then(|integer| i64::try_from(integer).ok()) {
                    visitor.visit_i64(integer)
                } else if let Some(integer) = integer.and_then(|integer| u64::try_from(integer).ok()) {
                    visitor.visit_u64(integer)
                } else {
                    self.deserialize_f64(visitor)
                }
            }
        }
    }

    deserialize_integers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128, deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16, deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64,
        deserialize_u128 visit_u128 u128
    );

    fn deserialize_f32<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        match &self.value.kind {
            ValueKind::Number(text) => match number::float(text) {
                Some(float) => visitor.visit_f64(float),
                None => Err(DecodeError::new(format!("{text} is not a number"))),
            },
            _ => Err(self.mismatch("a number")),
        }
    }

    fn deserialize_bool<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        match self.value.kind {
            ValueKind::Bool(bool) => visitor.visit_bool(bool),
            _ => Err(self.mismatch("a boolean")),
        }
    }

    fn deserialize_str<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        match &self.value.kind {
            ValueKind::String(text) => visitor.visit_borrowed_str(text),
            _ => Err(self.mismatch("a string")),
        }
    }

    fn deserialize_string<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_unit<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        if self.value.is_null() { visitor.visit_unit() } else { Err(self.mismatch("null")) }
    }

    fn deserialize_unit_struct<V: Visitor<'v>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Decoded<'v, V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'v>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Decoded<'v, V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        match &self.value.kind {
            ValueKind::List(items) => self.visit_list(items, visitor),
            _ => Err(self.mismatch("a list")),
        }
    }

    fn deserialize_tuple<V: Visitor<'v>>(self, length: usize, visitor: V) -> Decoded<'v, V::Value> {
        let items = self.value.items().len();
        if matches!(self.value.kind, ValueKind::List(_)) && items != length {
            return Err(DecodeError::new(format!(
                "expected a list of {length} items, found {items} of them"
            )));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'v>>(
        self,
        _name: &'static str,
        length: usize,
        visitor: V,
    ) -> Decoded<'v, V::Value> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        match self.value.kind {
            ValueKind::Map(_) => self.visit_entries(Fields::Any, visitor),
            _ => Err(self.mismatch("a map")),
        }
    }

    fn deserialize_struct<V: Visitor<'v>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Decoded<'v, V::Value> {
        match self.value.kind {
            ValueKind::Map(_) => self.visit_entries(Fields::Of(fields), visitor),
            _ => Err(self.mismatch("a map")),
        }
    }

    fn deserialize_enum<V: Visitor<'v>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Decoded<'v, V::Value> {
        let Self { value, path, pass } = self;
        match &value.kind {
            ValueKind::String(name) => visitor.visit_enum(Variant { name, content: None, path, pass }),
            ValueKind::Map(entries) => match entries.as_slice() {
                [Entry { key, value, .. }] => {
                    visitor.visit_enum(Variant { name: key, content: Some(value), path, pass })
                }
                _ => Err(DecodeError::new(format!("expected one of the keys {}", variants.join(", ")))),
            },
            _ => Err(self.mismatch(&format!("one of {}", variants.join(", ")))),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'v>>(self, visitor: V) -> Decoded<'v, V::Value> {
        visitor.visit_unit()
    }
}

struct ListAccess<'v, 'p> {
    items: std::iter::Enumerate<std::slice::Iter<'v, Value>>,
    path: &'p Path<'p>,
    pass: &'p Pass,
}

impl<'v> SeqAccess<'v> for ListAccess<'v, '_> {
    type Error = DecodeError<'v>;

    fn next_element_seed<T: DeserializeSeed<'v>>(&mut self, seed: T) -> Decoded<'v, Option<T::Value>> {
        let pass = self.pass;
        let Some((index, value)) = self.items.find(|(_, item)| !pass.leaves_out(item)) else {
            return Ok(None);
        };
        let path = Path::Index(self.path, index);
        seed.deserialize(ValueDeserializer { value, path: &path, pass })
            .map(Some)
            .map_err(|error| error.locate(value, value.at, &path))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// Which keys a map may have.
#[derive(Clone, Copy)]
enum Fields {
    Any,
    Of(&'static [&'static str]),
}

struct EntryAccess<'v, 'p> {
    entries: std::slice::Iter<'v, Entry>,
    current: Option<&'v Entry>,
    fields: Fields,
    path: &'p Path<'p>,
    pass: &'p Pass,
}

impl<'v> EntryAccess<'v, '_> {
    /// Whether the type is to see this entry; reports it if no such field is known.
    fn admits(&self, entry: &Entry) -> bool {
        let Fields::Of(fields) = self.fields else {
            return !self.pass.leaves_out(&entry.value);
        };
        if self.pass.unknown == UnknownFields::Deny && !fields.contains(&&*entry.key) {
            self.report_unknown(entry, fields);
            return false;
        }
        // Kubernetes treats a null field as if it were absent.
        !entry.value.is_null() && !self.pass.leaves_out(&entry.value)
    }

    fn report_unknown(&self, entry: &Entry, fields: &[&str]) {
        // Nobody reads more, and each costs a search for what may have been meant.
        const MAX_TOLD: usize = 1000;
        if self.pass.unknown_fields.borrow().len() >= MAX_TOLD {
            return;
        }
        let problem = Problem {
            at: Some(entry.key_at),
            path: Path::Key(self.path, &entry.key).to_string(),
            hint: did_you_mean(&entry.key, fields),
            ..Problem::error("there is no such field")
        };
        self.pass.unknown_fields.borrow_mut().push(problem);
    }
}

impl<'v> MapAccess<'v> for EntryAccess<'v, '_> {
    type Error = DecodeError<'v>;

    fn next_key_seed<K: DeserializeSeed<'v>>(&mut self, seed: K) -> Decoded<'v, Option<K::Value>> {
        loop {
            let Some(entry) = self.entries.next() else {
                return Ok(None);
            };
            if !self.admits(entry) {
                continue;
            }
            self.current = Some(entry);
            let key: StrDeserializer<'v, DecodeError<'v>> = (&*entry.key).into_deserializer();
            return seed.deserialize(key).map(Some).map_err(|error| {
                error.locate(&entry.value, entry.key_at, &Path::Key(self.path, &entry.key))
            });
        }
    }

    fn next_value_seed<V: DeserializeSeed<'v>>(&mut self, seed: V) -> Decoded<'v, V::Value> {
        let Some(entry) = self.current.take() else {
            return Err(DecodeError::new("the value of an entry was asked for before its key"));
        };
        let value = &entry.value;
        let path = Path::Key(self.path, &entry.key);
        seed.deserialize(ValueDeserializer { value, path: &path, pass: self.pass })
            .map_err(|error| error.locate(value, value.at, &path))
    }
}

/// A variant of an enum: a lone name, or the one key of a map and its value.
struct Variant<'v, 'p> {
    name: &'v str,
    content: Option<&'v Value>,
    path: &'p Path<'p>,
    pass: &'p Pass,
}

impl<'v, 'p> EnumAccess<'v> for Variant<'v, 'p> {
    type Error = DecodeError<'v>;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'v>>(self, seed: V) -> Decoded<'v, (V::Value, Self)> {
        let name: StrDeserializer<'v, DecodeError<'v>> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'v> Variant<'v, '_> {
    /// Decodes the content of the variant, and says where an error in it is.
    fn content<T>(&self, decode: impl FnOnce(ValueDeserializer<'v, '_>) -> Decoded<'v, T>) -> Decoded<'v, T> {
        let Some(value) = self.content else {
            return Err(DecodeError::new(format!("{:?} needs a value", self.name))
                .hint(Some(format!("write it as a map with the key {}", self.name))));
        };
        let path = Path::Key(self.path, self.name);
        decode(ValueDeserializer { value, path: &path, pass: self.pass })
            .map_err(|error| error.locate(value, value.at, &path))
    }
}

impl<'v> VariantAccess<'v> for Variant<'v, '_> {
    type Error = DecodeError<'v>;

    fn unit_variant(self) -> Decoded<'v, ()> {
        match self.content {
            Some(value) if !value.is_null() => {
                Err(DecodeError::new(format!("{:?} takes no value", self.name)))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'v>>(self, seed: T) -> Decoded<'v, T::Value> {
        self.content(|content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'v>>(self, length: usize, visitor: V) -> Decoded<'v, V::Value> {
        self.content(|content| content.deserialize_tuple(length, visitor))
    }

    fn struct_variant<V: Visitor<'v>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Decoded<'v, V::Value> {
        self.content(|content| content.deserialize_struct("", fields, visitor))
    }
}
