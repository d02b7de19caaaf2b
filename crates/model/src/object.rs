//! The objects that a scheduler reads, and how they are read from a text.

mod pod_fields;
mod quick;
mod reader;

use supercargo_manifest::{self as manifest, Problem, Problems, Severity, Source, UnknownFields, Value};

use crate::{
    ApiResource, Key, Name,
    config_map::ConfigMap,
    custom::{CustomObject, Declared},
    devices::{DeviceClass, ResourceClaim, ResourceSlice},
    kind::for_each_kind,
    meta::Meta,
    node::Node,
    pod::Pod,
    pod_owner::{Namespace, PodDisruptionBudget, PodOwner, SelectsByMap, SelectsBySelector},
    storage::{
        CsiDriver, CsiNode, CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass,
        VolumeAttachment,
    },
};

pub use crate::kind::Kind;
pub use reader::{Objects, Reader, SetAside};

macro_rules! define_objects {
    ($($variant:ident($type:ident) from ($written:ident):
       $group:literal $version:literal $plural:literal $kind:literal,
       $namespaced:expr, $required:expr, $watched:expr, $invalidates:ident, $how:tt $($store:ident)+;)*) => {
        /// An object that a scheduler reads.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the variants are Kubernetes' own names")]
        pub enum Object {
            $($variant($type),)*
            Custom(CustomObject),
        }

        impl Object {
            /// Its kind.
            pub fn kind(&self) -> Kind {
                match self {
                    $(Self::$variant(_) => Kind::$variant,)*
                    Self::Custom(object) => Kind::Custom(object.api),
                }
            }

            /// Its name among the objects of its kind.
            pub fn key(&self) -> Key {
                match self {
                    $(Self::$variant(object) => object.key(),)*
                    Self::Custom(object) => object.key(),
                }
            }

            fn deserialize_whole<'de, D: serde::Deserializer<'de>>(kind: Kind, from: D) -> Result<Self, D::Error> {
                Ok(match kind {
                    $(Kind::$variant => {
                        Self::$variant(<$written as serde::Deserialize>::deserialize(from)?.into())
                    })*
                    Kind::Custom(api) => Self::Custom(CustomObject::deserialize(api, from)?),
                })
            }
        }

        fn decode_whole(source: &Source, kind: Kind, value: &Value, path: &str) -> Result<Object, Problems> {
            let ignore = UnknownFields::Ignore;
            Ok(match kind {
                $(Kind::$variant => {
                    Object::$variant(manifest::decode::<$written>(source, value, path, ignore)?.into())
                })*
                Kind::Custom(api) => Object::Custom(decode_custom(source, api, value, path)?),
            })
        }
    };
}
for_each_kind!(define_objects);

impl Object {
    /// Reads an object of a known kind, as an API server sends it, from any of serde's formats: the quick way, whose
    /// errors do not know the field. What this refuses, [`Object::from_text`] may still read, and else explains. Of a
    /// pod's annotations the given ones are kept.
    pub fn deserialize<'de, D: serde::Deserializer<'de>>(
        kind: Kind,
        annotations: &[Name],
        from: D,
    ) -> Result<Self, D::Error> {
        Self::deserialize_whole(kind, from).map(|object| object.keeping(annotations))
    }

    /// The same from the JSON of one object. Where only this is used, the code that reads all the kinds is compiled once, and
    /// not for each form that JSON may come in: that is most of the time that this crate's users take to build.
    pub fn from_json(kind: Kind, annotations: &[Name], json: &[u8]) -> Result<Self, serde_json::Error> {
        let text = str::from_utf8(json).map_err(serde::de::Error::custom)?;
        let mut from = serde_json::Deserializer::from_str(text);
        let object = Self::deserialize(kind, annotations, &mut from)?;
        from.end().map(|()| object)
    }

    /// The same from JSON that has been read already.
    pub fn from_value(kind: Kind, value: &serde_json::Value) -> Result<Self, serde_json::Error> {
        Self::from_json(kind, &[], value.to_string().as_bytes())
    }

    /// Reads an object of a known kind from a text that holds it alone; problems name their fields.
    pub fn from_text(kind: Kind, annotations: &[Name], source: &Source) -> Result<Self, Problems> {
        match &*manifest::read(source)? {
            [value] => decode(source, kind, annotations, value, ""),
            _ => Err(Problem::error(format!("expected one {}", kind.name())).into()),
        }
    }

    /// Reads as much of a pod as can be, from a text that holds it alone: what makes no sense is left out. `None` if that is
    /// too much.
    pub fn pod_in_part(annotations: &[Name], source: &Source) -> Option<Pod> {
        let values = manifest::read(source).ok()?;
        let [value] = &*values else { return None };
        let (pod, _) = manifest::decode_in_part::<Pod>(source, value, "", UnknownFields::Ignore);
        let mut pod = pod?;
        pod.keep_annotations(annotations);
        Some(pod)
    }

    fn keeping(mut self, annotations: &[Name]) -> Self {
        if let Self::Pod(pod) = &mut self {
            pod.keep_annotations(annotations);
        }
        self
    }
}

fn decode(
    source: &Source,
    kind: Kind,
    annotations: &[Name],
    value: &Value,
    path: &str,
) -> Result<Object, Problems> {
    decode_whole(source, kind, value, path).map(|object| object.keeping(annotations))
}

fn decode_custom(
    source: &Source,
    api: &'static ApiResource,
    value: &Value,
    path: &str,
) -> Result<CustomObject, Problems> {
    #[derive(serde::Deserialize)]
    struct Written {
        #[serde(default, rename = "metadata")]
        _metadata: Meta,
    }
    // Its metadata have types: what is wrong with them is told with its place.
    manifest::decode::<Written>(source, value, path, UnknownFields::Ignore)?;
    let text = value.to_json();
    CustomObject::deserialize(api, &mut serde_json::Deserializer::from_str(&text))
        .map_err(|error| problem(source, value, path, error.to_string()).into())
}

/// Reads one object of a built-in kind; `None` for any other kind.
pub fn read_object(source: &Source, value: &Value, path: &str) -> Result<Option<Object>, Problems> {
    read_declared_object(source, value, path, &Declared::default())
}

/// Reads one object of a built-in kind, or of one that a plugin has declared; `None` for any other kind.
pub fn read_declared_object(
    source: &Source,
    value: &Value,
    path: &str,
    declared: &Declared,
) -> Result<Option<Object>, Problems> {
    let (kind, group) = kind_and_group(source, value, path)?;
    let custom = || declared.kinds.iter().find(|api| api.group == group && api.kind == kind);
    let known = Kind::of_group(&group, &kind).or_else(|| custom().map(|api| Kind::Custom(api)));
    known.map(|kind| decode(source, kind, &declared.annotations, value, path)).transpose()
}

fn kind_and_group(source: &Source, value: &Value, path: &str) -> Result<(String, String), Problem> {
    let field = |name: &str| match value.get(name) {
        Some(v) => v.as_str().map(str::to_owned).ok_or_else(|| {
            let message = format!("expected a string, found {}", v.kind_name());
            problem(source, v, &join(path, name), message)
        }),
        None => {
            let mut problem =
                problem(source, value, path, format!("an object needs a field `{name}`, and there is none"));
            problem.hint = Some(
                "give what `kubectl get … -o yaml` prints: objects, lists of them, or streams".to_owned(),
            );
            Err(problem)
        }
    };
    let kind = field("kind")?;
    let api_version = field("apiVersion")?;
    let group = match api_version.split_once('/') {
        Some((group, _)) => group.to_owned(),
        None => String::new(),
    };
    Ok((kind, group))
}

fn join(path: &str, field: &str) -> String {
    if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") }
}

fn problem(source: &Source, value: &Value, path: &str, message: String) -> Problem {
    Problem {
        source: Some(source.clone()),
        at: Some(value.at),
        path: path.to_owned(),
        message,
        hint: None,
        severity: Severity::Error,
    }
}
