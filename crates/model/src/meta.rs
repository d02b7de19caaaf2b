//! What every object carries.

use serde::Deserialize;

use crate::{Labels, Name, Timestamp};

/// An object's metadata, as far as a scheduler reads it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// The object's name. Its absence is an error that the reader reports.
    #[serde(default)]
    pub name: Name,
    /// Its namespace, empty for objects that have none.
    #[serde(default)]
    pub namespace: Name,
    /// Distinguishes it from an earlier object of the same name.
    #[serde(default)]
    pub uid: Name,
    /// Its labels.
    #[serde(default)]
    pub labels: Labels,
    /// Its annotations.
    #[serde(default)]
    pub annotations: Labels,
    /// Which version of its spec this is.
    #[serde(default)]
    pub generation: i64,
    /// Which version of the object this is.
    #[serde(default)]
    pub resource_version: Name,
    /// When it was made.
    #[serde(default)]
    pub creation_timestamp: Option<Timestamp>,
    /// When its deletion was asked for.
    #[serde(default)]
    pub deletion_timestamp: Option<Timestamp>,
    /// How long it may take to leave, once its deletion was asked for.
    #[serde(default)]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Who made it.
    #[serde(default)]
    pub owner_references: Vec<Owner>,
}

/// A reference to the object that made this one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Group and version.
    #[serde(default)]
    pub api_version: Name,
    /// Kind.
    #[serde(default)]
    pub kind: Name,
    /// Name, in the same namespace.
    #[serde(default)]
    pub name: Name,
    /// Identity.
    #[serde(default)]
    pub uid: Name,
    /// Whether it manages the object.
    #[serde(default)]
    pub controller: Option<bool>,
}

impl Meta {
    /// The owner that manages the object.
    pub fn controller(&self) -> Option<&Owner> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// The namespace of an object that lives in one: `default`, if it names none.
    pub fn namespace_or_default(&self) -> Name {
        if self.namespace.is_empty() { "default".into() } else { self.namespace.clone() }
    }
}

/// Which version of an object this is. Objects are compared by what they say, whatever their versions: two of these are
/// always equal. To tell versions apart, compare the texts.
#[derive(Clone, Debug, Default)]
pub struct ResourceVersion(pub Name);

impl PartialEq for ResourceVersion {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Names an object among those of its kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Empty for objects without namespace.
    pub namespace: Name,
    /// The name.
    pub name: Name,
}

impl Key {
    /// A key from its parts.
    pub fn new(namespace: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
