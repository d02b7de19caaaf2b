//! Labels: a small sorted map from key to value.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::Name;

/// The labels of an object, sorted by key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[(Name, Name)]>);

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&Name> {
        self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &self.0[i].1)
    }

    /// Whether there is a label with this key.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// All labels, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Name)> {
        self.0.iter().map(|(k, v)| (k, v))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<Name>, V: Into<Name>> FromIterator<(K, V)> for Labels {
    /// The last of two labels with the same key wins.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let sorted: BTreeMap<Name, Name> = pairs.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Self(sorted.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<Name, Name>::deserialize(deserializer)?;
        Ok(Self(map.into_iter().collect()))
    }
}

const MAX_NAME_CHARS: usize = 63;
const MAX_PREFIX_CHARS: usize = 253;

/// Whether a text can be a label's value: empty, or at most 63 characters of a name.
pub fn is_valid_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// Whether a text can be a label's key: a name, with an optional DNS prefix and a slash before it.
pub fn is_valid_key(text: &str) -> bool {
    match text.split_once('/') {
        None => is_name(text),
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
    }
}

fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= MAX_NAME_CHARS
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn is_dns_subdomain(text: &str) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= MAX_PREFIX_CHARS
        && text.split('.').all(|part| {
            let bytes = part.as_bytes();
            bytes.first().is_some_and(|b| lower(*b))
                && bytes.last().is_some_and(|b| lower(*b))
                && bytes.iter().all(|b| lower(*b) || *b == b'-')
        })
}
