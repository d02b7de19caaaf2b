//! The objects that a scheduler reads, and how they are read from a text.

mod quick;

use std::collections::{BTreeMap, HashMap, hash_map};

use supercargo_manifest::{self as manifest, Problem, Problems, Severity, Source, UnknownFields, Value};

use crate::{
    ApiResource, Key, Name,
    config_map::ConfigMap,
    custom::{CustomObject, Declared},
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

    /// Reads an object of a known kind from a text that holds it alone; problems name their fields.
    pub fn from_text(kind: Kind, annotations: &[Name], source: &Source) -> Result<Self, Problems> {
        match &*manifest::read(source)? {
            [value] => decode(source, kind, annotations, value, ""),
            _ => Err(Problem::error(format!("expected one {}", kind.name())).into()),
        }
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

/// What was read from texts: the objects, and a count of those that a scheduler does not read.
#[derive(Debug, Default)]
pub struct Objects {
    /// In the order of the texts.
    pub objects: Vec<Object>,
    /// `kind.group` of what was skipped, and how often.
    pub skipped: BTreeMap<String, usize>,
    /// Objects as they were written, in JSON, where the reader [keeps](Reader::keeping) them.
    pub texts: HashMap<(Kind, Key), String>,
}

/// Reads objects from several texts, as `kubectl get … -o yaml|json` prints them: single objects, streams, lists.
#[derive(Default)]
pub struct Reader {
    read: Objects,
    first_seen: HashMap<(Kind, Key), String>,
    problems: Problems,
    keeps: Vec<Kind>,
    declared: Declared,
}

impl Reader {
    /// A reader that also reads what plugins have declared.
    pub fn new(declared: Declared) -> Self {
        Self { declared, ..Self::default() }
    }

    /// Keeps objects of some kinds also as they were written.
    #[must_use]
    pub fn keeping(self, kinds: impl IntoIterator<Item = Kind>) -> Self {
        Self { keeps: kinds.into_iter().collect(), ..self }
    }

    /// Reads one text. Problems are kept until the end, so that all are told at once.
    pub fn read(&mut self, source: &Source) {
        if self.keeps.is_empty() && self.read_quickly(source).is_some() {
            return;
        }
        match manifest::read(source) {
            Ok(documents) => {
                for document in &documents {
                    self.document(source, document, "");
                }
            }
            Err(problems) => self.problems.extend(problems),
        }
    }

    /// What was read; or every problem, and nothing else.
    pub fn finish(self) -> Result<Objects, Problems> {
        if self.problems.has_errors() { Err(self.problems) } else { Ok(self.read) }
    }

    /// Reads a JSON text in which nothing is wrong; `None` if it is anything else, and then nothing was read.
    fn read_quickly(&mut self, source: &Source) -> Option<()> {
        let found = quick::objects(&source.text)?;
        let (objects, skipped) = (self.read.objects.len(), self.read.skipped.clone());
        let read = found.iter().try_for_each(|found| self.read_found(source, found));
        if read.is_none() {
            for object in self.read.objects.drain(objects..) {
                self.first_seen.remove(&(object.kind(), object.key()));
            }
            self.read.skipped = skipped;
        }
        read
    }

    fn read_found(&mut self, source: &Source, found: &quick::Found<'_>) -> Option<()> {
        let quick::Found { text, kind, group, line } = *found;
        let Some(known) = self.kind_of(group, kind) else {
            serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
            self.skip(kind, group);
            return Some(());
        };
        let object = read_at_its_place(known, &self.declared.annotations, source, text)?;
        let key = object.key();
        match self.first_seen.entry((known, key.clone())) {
            hash_map::Entry::Vacant(place) if !key.name.is_empty() => {
                place.insert(format!("{}:{line}", source.name));
            }
            _ => return None,
        }
        self.read.objects.push(object);
        Some(())
    }

    /// The kind by its API group and name, if it is a built-in or a declared one.
    fn kind_of(&self, group: &str, kind: &str) -> Option<Kind> {
        let custom = self.declared.kinds.iter().find(|api| api.group == group && api.kind == kind);
        Kind::of_group(group, kind).or(custom.map(|api| Kind::Custom(api)))
    }

    /// Counts an object that a scheduler does not read.
    fn skip(&mut self, kind: &str, group: &str) {
        let name = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        *self.read.skipped.entry(name).or_default() += 1;
    }

    fn document(&mut self, source: &Source, value: &Value, path: &str) {
        let (kind, group) = match kind_and_group(source, value, path) {
            Ok(found) => found,
            Err(problem) => return self.problems.push(problem),
        };
        if let Some(items) = value.get("items").filter(|_| kind.ends_with("List")) {
            return self.list(source, &kind, &group, value, items, path);
        }
        self.one(source, &kind, &group, value, path);
    }

    fn list(&mut self, source: &Source, kind: &str, group: &str, list: &Value, items: &Value, path: &str) {
        let path = if path.is_empty() { "items".to_owned() } else { format!("{path}.items") };
        let manifest::ValueKind::List(items) = &items.kind else {
            if !items.is_null() {
                let message = format!("expected a list, found {}", items.kind_name());
                self.problems.push(problem(source, list, &path, message));
            }
            return;
        };
        let item_kind = kind.strip_suffix("List").unwrap_or(kind);
        for (i, item) in items.iter().enumerate() {
            let path = format!("{path}[{i}]");
            // A list of one kind need not repeat it on every item.
            if item_kind.is_empty() || item.get("kind").is_some() {
                self.document(source, item, &path);
            } else {
                self.one(source, item_kind, group, item, &path);
            }
        }
    }

    fn one(&mut self, source: &Source, kind: &str, group: &str, value: &Value, path: &str) {
        let Some(known) = self.kind_of(group, kind) else {
            return self.skip(kind, group);
        };
        match decode(source, known, &self.declared.annotations, value, path) {
            Ok(object) => {
                if let Some(problem) = self.check_name(source, known, value, path) {
                    self.problems.push(problem);
                } else {
                    if self.keeps.contains(&known) {
                        self.read.texts.insert((known, object.key()), value.to_json());
                    }
                    self.read.objects.push(object);
                }
            }
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn check_name(&mut self, source: &Source, kind: Kind, value: &Value, path: &str) -> Option<Problem> {
        let metadata = value.get("metadata");
        let field = |name| metadata.and_then(|m| m.get(name)).and_then(Value::as_str).unwrap_or("");
        let name = field("name");
        let at = metadata.and_then(|m| m.get("name")).or(metadata).unwrap_or(value);
        let path = if path.is_empty() { "metadata.name".to_owned() } else { format!("{path}.metadata.name") };
        if name.is_empty() {
            let mut problem = problem(source, at, &path, format!("a {} needs a name", kind.name()));
            if !field("generateName").is_empty() {
                problem.hint =
                    Some("generateName is filled in by the API server; give a name here".to_owned());
            }
            return Some(problem);
        }
        let namespace: Name = match field("namespace") {
            _ if !kind.is_namespaced() => "".into(),
            "" => "default".into(),
            given => given.into(),
        };
        let key = Key::new(namespace, name);
        let place = format!("{}:{}", source.name, at.at.line);
        match self.first_seen.entry((kind, key.clone())) {
            hash_map::Entry::Occupied(first) => {
                let mut problem =
                    problem(source, at, &path, format!("{} {key} is defined twice", kind.name()));
                problem.hint = Some(format!("the first one is at {}", first.get()));
                Some(problem)
            }
            hash_map::Entry::Vacant(place_of) => {
                place_of.insert(place);
                None
            }
        }
    }
}

/// An object of a text; `None` if anything is wrong with it.
fn read_at_its_place(kind: Kind, annotations: &[Name], source: &Source, text: &str) -> Option<Object> {
    let mut json = serde_json::Deserializer::from_str(text);
    match Object::deserialize(kind, annotations, &mut json) {
        Ok(object) => json.end().ok().map(|()| object),
        // What the quick way refuses may be well all the same.
        Err(_) => Object::from_text(kind, annotations, &Source::new(source.name.clone(), text)).ok(),
    }
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
