//! The shape of a type: which fields it reads and of what kind, learned by letting serde read made-up values
//! into it.
//!
//! So a schema can be written for a type that has nothing but its `Deserialize`, and never says anything else
//! than what is read.

use std::{cell::RefCell, collections::HashSet, fmt};

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
    value::{Error as PlainError, StrDeserializer},
};

/// What a value must look like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ArgsSchema {
    /// Anything.
    #[default]
    Any,
    /// `true` or `false`.
    Bool,
    /// A whole number within these bounds, inclusive.
    Integer(i128, i128),
    /// A number.
    Number,
    /// A text.
    Text,
    /// One of these texts.
    Names(&'static [&'static str]),
    /// A list of such values.
    List(Box<ArgsSchema>),
    /// A map of any keys to such values.
    Map(Box<ArgsSchema>),
    /// A map of these fields and no others.
    Fields(Vec<Field>),
}

/// A field of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What its value must look like.
    pub shape: ArgsSchema,
    /// Whether it must be there.
    pub required: bool,
}

/// The shape of a type. That a field is required goes unnoticed if it comes after a required one that refuses
/// every made-up value.
pub fn shape_of<T: DeserializeOwned>() -> ArgsSchema {
    let mut shape = ArgsSchema::Any;
    let mut left_out = HashSet::new();
    // A made-up value may not please a type; then it is left out, and the next one is looked at.
    while let Err(refused) = read::<T>(&left_out, &mut shape) {
        let culprit = match refused.missing {
            Some(field) => {
                require(&mut shape, &refused.at, field);
                refused.at
            }
            None => refused.at,
        };
        if culprit.is_empty() || !left_out.insert(culprit) {
            break;
        }
    }
    for (at, field) in all_fields(&shape, "") {
        // The map itself must be there, even if it was refused for another of its fields.
        let mut without: HashSet<String> =
            left_out.iter().filter(|left| !at.starts_with(&**left)).cloned().collect();
        without.insert(join(&at, field));
        if let Err(Refused { missing: Some(missing), at: within }) = read::<T>(&without, &mut shape)
            && (missing, &within) == (field, &at)
        {
            require(&mut shape, &at, field);
        }
    }
    shape
}

fn read<T: DeserializeOwned>(left_out: &HashSet<String>, shape: &mut ArgsSchema) -> Result<(), Refused> {
    let seen = RefCell::new(std::mem::take(shape));
    let made_up = MadeUp { at: String::new(), left_out, seen: &seen };
    let result = T::deserialize(made_up).map(drop);
    *shape = seen.into_inner();
    result
}

fn join(at: &str, field: &str) -> String {
    format!("{at}.{field}")
}

/// The fields of all maps within a shape, with the place of their map.
fn all_fields(shape: &ArgsSchema, at: &str) -> Vec<(String, &'static str)> {
    match shape {
        ArgsSchema::List(item) | ArgsSchema::Map(item) => all_fields(item, &join(at, ITEM)),
        ArgsSchema::Fields(fields) => {
            let own = fields.iter().map(|field| (at.to_owned(), field.name));
            let inner = fields.iter().flat_map(|field| all_fields(&field.shape, &join(at, field.name)));
            own.chain(inner).collect()
        }
        _ => Vec::new(),
    }
}

fn require(shape: &mut ArgsSchema, at: &str, name: &str) {
    let place = at.split('.').skip(1).try_fold(shape, inner);
    if let Some(ArgsSchema::Fields(fields)) = place {
        fields.iter_mut().filter(|field| field.name == name).for_each(|field| field.required = true);
    }
}

fn inner<'s>(shape: &'s mut ArgsSchema, step: &str) -> Option<&'s mut ArgsSchema> {
    match shape {
        ArgsSchema::List(item) | ArgsSchema::Map(item) => Some(item),
        ArgsSchema::Fields(fields) => {
            fields.iter_mut().find(|field| field.name == step).map(|field| &mut field.shape)
        }
        _ => None,
    }
}

/// The step to what is in a list or a map.
const ITEM: &str = "[]";

/// That a type did not accept a made-up value, and where.
#[derive(Debug, Default)]
struct Refused {
    missing: Option<&'static str>,
    at: String,
}

impl Refused {
    fn within(mut self, at: &str) -> Self {
        if self.at.is_empty() {
            at.clone_into(&mut self.at);
        }
        self
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused at {}", self.at)
    }
}

impl std::error::Error for Refused {}

impl Error for Refused {
    fn custom<M: fmt::Display>(_: M) -> Self {
        Self::default()
    }

    fn missing_field(field: &'static str) -> Self {
        Self { missing: Some(field), ..Self::default() }
    }
}

impl From<PlainError> for Refused {
    fn from(_: PlainError) -> Self {
        Self::default()
    }
}

/// A value that is whatever a type asks for, and notes what that was.
struct MadeUp<'s> {
    at: String,
    left_out: &'s HashSet<String>,
    seen: &'s RefCell<ArgsSchema>,
}

impl MadeUp<'_> {
    /// Notes a shape at this place. Notes of an earlier reading stay, since they may know more.
    fn note(&self, shape: ArgsSchema) {
        let mut root = self.seen.borrow_mut();
        if let Some(place @ ArgsSchema::Any) = self.at.split('.').skip(1).try_fold(&mut *root, inner) {
            *place = shape;
        }
    }

    fn inner(&self, step: &str) -> Self {
        Self { at: join(&self.at, step), left_out: self.left_out, seen: self.seen }
    }

    fn give<T>(&self, shape: ArgsSchema, value: Result<T, Refused>) -> Result<T, Refused> {
        self.note(shape);
        value.map_err(|refused| refused.within(&self.at))
    }
}

macro_rules! integers {
    ($($method:ident $type:ident $visit:ident;)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
                self.give(ArgsSchema::Integer($type::MIN.into(), $type::MAX.into()), visitor.$visit(1))
            }
        )*
    };
}

impl<'de> Deserializer<'de> for MadeUp<'_> {
    type Error = Refused;

    integers! {
        deserialize_i8 i8 visit_i8;
        deserialize_i16 i16 visit_i16;
        deserialize_i32 i32 visit_i32;
        deserialize_i64 i64 visit_i64;
        deserialize_u8 u8 visit_u8;
        deserialize_u16 u16 visit_u16;
        deserialize_u32 u32 visit_u32;
        deserialize_u64 u64 visit_u64;
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.give(ArgsSchema::Any, visitor.visit_unit())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_any(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.give(ArgsSchema::Bool, visitor.visit_bool(false))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.give(ArgsSchema::Number, visitor.visit_f32(1.0))
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.give(ArgsSchema::Number, visitor.visit_f64(1.0))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.give(ArgsSchema::Text, visitor.visit_str(""))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.note(ArgsSchema::List(Box::default()));
        let value = visitor.visit_seq(Items { of: &self, left: true });
        value.map_err(|refused| refused.within(&self.at))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.note(ArgsSchema::Map(Box::default()));
        let value = visitor.visit_map(Entries { of: &self, left: [ITEM].iter(), current: ITEM });
        value.map_err(|refused| refused.within(&self.at))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let field = |name: &&'static str| Field { name, shape: ArgsSchema::Any, required: false };
        self.note(ArgsSchema::Fields(fields.iter().map(field).collect()));
        let value = visitor.visit_map(Entries { of: &self, left: fields.iter(), current: ITEM });
        value.map_err(|refused| refused.within(&self.at))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let first: StrDeserializer<'_, Refused> =
            variants.first().copied().unwrap_or_default().into_deserializer();
        self.give(ArgsSchema::Names(variants), visitor.visit_enum(first))
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
    }
}

struct Items<'m, 's> {
    of: &'m MadeUp<'s>,
    left: bool,
}

impl<'de> SeqAccess<'de> for Items<'_, '_> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        let item = self.of.inner(ITEM);
        if !std::mem::take(&mut self.left) || item.left_out.contains(&item.at) {
            return Ok(None);
        }
        seed.deserialize(item).map(Some)
    }
}

struct Entries<'m, 's> {
    of: &'m MadeUp<'s>,
    left: std::slice::Iter<'static, &'static str>,
    current: &'static str,
}

impl<'de> MapAccess<'de> for Entries<'_, '_> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        for key in self.left.by_ref() {
            if self.of.left_out.contains(&join(&self.of.at, key)) {
                continue;
            }
            self.current = key;
            let key: StrDeserializer<'_, Refused> = key.into_deserializer();
            return seed.deserialize(key).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let value = self.of.inner(self.current);
        let at = value.at.clone();
        seed.deserialize(value).map_err(|refused| refused.within(&at))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    struct Even;
    impl<'de> Deserialize<'de> for Even {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            match i32::deserialize(deserializer)? % 2 {
                0 => Ok(Self),
                _ => Err(D::Error::custom("odd")),
            }
        }
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    #[expect(dead_code, reason = "only its shape is looked at")]
    struct Inner {
        text: String,
        picky_number: Even,
        #[serde(default)]
        flag: bool,
    }

    #[derive(Deserialize)]
    enum Choice {
        One,
        #[serde(rename = "two")]
        Two,
    }

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its shape is looked at")]
    struct Outer {
        choice: Option<Choice>,
        list: Vec<Inner>,
        map: BTreeMap<String, f64>,
        #[serde(default)]
        last: u8,
    }

    #[test]
    fn learns_a_shape() {
        let field = |name, shape, required| Field { name, shape, required };
        let inner = ArgsSchema::Fields(vec![
            field("text", ArgsSchema::Text, true),
            field("pickyNumber", ArgsSchema::Integer(i32::MIN.into(), i32::MAX.into()), true),
            field("flag", ArgsSchema::Bool, false),
        ]);
        let outer = ArgsSchema::Fields(vec![
            field("choice", ArgsSchema::Names(&["One", "two"]), false),
            field("list", ArgsSchema::List(Box::new(inner)), true),
            field("map", ArgsSchema::Map(Box::new(ArgsSchema::Number)), true),
            field("last", ArgsSchema::Integer(0, 255), false),
        ]);
        assert_eq!(shape_of::<Outer>(), outer);
    }
}
