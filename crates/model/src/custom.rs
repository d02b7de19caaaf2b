//! Custom resources: objects of kinds that a plugin has declared, kept as they are.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    ApiResource, Key, Labels, Name,
    meta::{Meta, ResourceVersion},
};

/// An object of a custom kind.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomObject {
    /// Its kind.
    pub api: &'static ApiResource,
    /// Its namespace; empty if it lives in none.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Distinguishes it from an earlier object of the same name.
    pub uid: Name,
    /// Which version of the object this is.
    pub version: ResourceVersion,
    /// Its labels.
    pub labels: Labels,
    /// All of it, but for its version and who wrote which of its fields.
    pub content: Arc<Value>,
}

impl CustomObject {
    /// `namespace/name`, or its name.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }

    /// A part of it as a type of one's own, by a path such as `/spec`; an absent part is read as `null`.
    pub fn read<T: DeserializeOwned>(&self, pointer: &str) -> Result<T, serde_json::Error> {
        T::deserialize(self.content.pointer(pointer).unwrap_or(&Value::Null))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        api: &'static ApiResource,
        from: D,
    ) -> Result<Self, D::Error> {
        use serde::de::Error;
        let mut content = Value::deserialize(from)?;
        let no_object = || D::Error::custom(format!("a {} must be an object", api.kind));
        let fields = content.as_object_mut().ok_or_else(no_object)?;
        let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Default::default()));
        let meta = Meta::deserialize(&*metadata).map_err(D::Error::custom)?;
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("resourceVersion");
            metadata.remove("managedFields");
        }
        Ok(Self {
            api,
            namespace: if api.namespaced { meta.namespace_or_default() } else { "".into() },
            name: meta.name,
            uid: meta.uid,
            version: ResourceVersion(meta.resource_version),
            labels: meta.labels,
            content: Arc::new(content),
        })
    }
}

/// What plugins read besides the built-in kinds and fields, as they declared it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Custom kinds.
    pub kinds: Vec<&'static ApiResource>,
    /// The annotations of pods that are kept; nodes keep all of theirs.
    pub annotations: Arc<[Name]>,
}
