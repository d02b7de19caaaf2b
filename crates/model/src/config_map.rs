//! ConfigMaps: texts that tell programs what to do, by key.

use serde::Deserialize;

use crate::{Key, Labels, Name, meta::Meta};

/// A ConfigMap. What is not text (`binaryData`) is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigMap {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its texts, by key.
    pub data: Labels,
}

impl ConfigMap {
    /// `namespace/name`.
    pub fn key(&self) -> Key {
        Key::new(self.namespace.clone(), self.name.clone())
    }
}

impl<'de> Deserialize<'de> for ConfigMap {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(default)]
            metadata: Meta,
            #[serde(default)]
            data: Labels,
        }
        let Written { metadata, data } = Written::deserialize(deserializer)?;
        Ok(Self { namespace: metadata.namespace_or_default(), name: metadata.name, data })
    }
}
