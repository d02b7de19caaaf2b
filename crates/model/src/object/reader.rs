//! Reads objects from texts, as `kubectl get … -o yaml|json` prints them: single objects, streams, lists.

use std::collections::{BTreeMap, HashMap, HashSet, hash_map};

use supercargo_manifest::{self as manifest, Entry, Problem, Problems, Source, Value, ValueKind};

use super::{Object, decode, kind_and_group, pod_fields, problem, quick};
use crate::{Key, Name, custom::Declared, kind::Kind};

/// How many pods of JSON texts are looked at for fields that no pod has: such texts are written by programs, which make the
/// same mistake every time.
const MAX_EXAMINED_PODS: usize = 1000;
/// How many warnings are kept; nobody reads more.
const MAX_WARNINGS: usize = 100;

/// What was read from texts: the objects, and a count of those that a scheduler does not read.
#[derive(Debug, Default)]
pub struct Objects {
    /// In the order of the texts.
    pub objects: Vec<Object>,
    /// `kind.group` of what was skipped, and how often.
    pub skipped: BTreeMap<String, usize>,
    /// Objects as they were written, in JSON, where the reader [keeps](Reader::keeping) them.
    pub texts: HashMap<(Kind, Key), String>,
    /// Objects of the kinds that make pods, where they are [expected](Reader::expect_new), in the order of the texts.
    pub set_aside: Vec<SetAside>,
    /// How many objects took the place of one from an earlier text.
    pub replaced: usize,
    /// What an API server would not have let pass, or would have dropped.
    pub warnings: Problems,
}

/// An object that was not read yet, and where it stands.
#[derive(Clone, Debug)]
pub struct SetAside {
    /// Its kind, as it is written.
    pub kind: String,
    /// The text.
    pub source: Source,
    /// The object.
    pub value: Value,
    /// The path of its field; empty for a document.
    pub path: String,
}

/// Reads objects from several texts. An object of a later text takes the place of one of an earlier text; twice in one text
/// is a mistake.
#[derive(Default)]
pub struct Reader {
    read: Objects,
    seen: HashMap<(Kind, Key), Seen>,
    problems: Problems,
    keeps: Vec<Kind>,
    set_aside: &'static [(&'static str, &'static str)],
    /// The namespace of objects that name none, where it is not `default`.
    namespace: Option<Box<str>>,
    declared: Declared,
    /// How many texts were read before.
    texts: usize,
    examined_pods: usize,
}

/// Where an object was read.
struct Seen {
    text: usize,
    place: String,
    index: usize,
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

    /// Whether objects of a kind are kept as they were written, too.
    pub fn keeps(&self, kind: Kind) -> bool {
        self.keeps.contains(&kind)
    }

    /// What is read from here on is new to the cluster: objects of these kinds (by API group and name) are set aside, for
    /// whoever makes pods of them, and objects without a namespace get one.
    pub fn expect_new(&mut self, kinds: &'static [(&'static str, &'static str)], namespace: Option<&str>) {
        self.set_aside = kinds;
        self.namespace = namespace.map(Box::from);
    }

    /// Reads an object, or a list of them, that is a part of a text.
    pub fn read_part(&mut self, source: &Source, value: &Value, path: &str) {
        self.texts += 1;
        self.document(source, value, path);
    }

    /// Takes an object that was read elsewhere, with its text if such are [kept](Self::keeps).
    pub fn take(&mut self, object: Object, text: Option<String>) {
        let known_as = (object.kind(), object.key());
        if let Some(text) = text {
            self.read.texts.insert(known_as.clone(), text);
        }
        let index = self.read.objects.len();
        self.seen.insert(known_as, Seen { text: self.texts, place: "the live cluster".to_owned(), index });
        self.read.objects.push(object);
    }

    /// Reads one text. Problems are kept until the end, so that all are told at once.
    pub fn read(&mut self, source: &Source) {
        self.texts += 1;
        if self.keeps.is_empty() && self.namespace.is_none() && self.read_quickly(source).is_some() {
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

    /// Reads a JSON text in which nothing is out of the ordinary; `None` if it is anything else, and then nothing was read.
    fn read_quickly(&mut self, source: &Source) -> Option<()> {
        let found = quick::objects(&source.text)?;
        let mut objects = Vec::with_capacity(found.len());
        let mut known: HashSet<(Kind, Key)> = HashSet::with_capacity(found.len());
        let mut skipped = Vec::new();
        for quick::Found { text, kind, group, line } in found {
            if is_answer(kind, group) || self.is_set_aside(group, kind) {
                return None;
            }
            let Some(kind) = self.kind_of(group, kind) else {
                serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
                skipped.push((kind, group));
                continue;
            };
            let object = read_at_its_place(kind, &self.declared.annotations, source, text)?;
            let key = object.key();
            if key.name.is_empty() || !known.insert((kind, key)) || !self.is_plain(&object, text) {
                return None;
            }
            objects.push((object, line));
        }
        for (object, line) in objects {
            let place = format!("{}:{line}", source.name);
            // Nothing of this text has the same name.
            let _ = self.put(object, place);
        }
        skipped.into_iter().for_each(|(kind, group)| self.skip(kind, group));
        Some(())
    }

    /// Whether an API server would take an object as it is written, as far as that is looked at.
    fn is_plain(&mut self, object: &Object, text: &str) -> bool {
        let Object::Pod(pod) = object else { return true };
        if !pod.version.0.is_empty() || self.examined_pods >= MAX_EXAMINED_PODS {
            return true;
        }
        self.examined_pods += 1;
        let read = manifest::read(&Source::new("", text)).unwrap_or_default();
        read.iter().all(|pod| pod_fields::check_pod(pod, "").is_empty())
    }

    /// Puts an object in its place; or tells where the same text has it already.
    fn put(&mut self, object: Object, place: String) -> Result<(), String> {
        let seen = Seen { text: self.texts, place, index: self.read.objects.len() };
        match self.seen.entry((object.kind(), object.key())) {
            hash_map::Entry::Vacant(entry) => {
                entry.insert(seen);
                self.read.objects.push(object);
            }
            hash_map::Entry::Occupied(earlier) if earlier.get().text == self.texts => {
                return Err(earlier.get().place.clone());
            }
            hash_map::Entry::Occupied(mut earlier) => {
                let index = earlier.get().index;
                self.read.objects[index] = object;
                self.read.replaced += 1;
                *earlier.get_mut() = Seen { index, ..seen };
            }
        }
        Ok(())
    }

    fn is_set_aside(&self, group: &str, kind: &str) -> bool {
        self.set_aside.contains(&(group, kind))
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
        let ValueKind::List(items) = &items.kind else {
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
        if is_answer(kind, group) {
            return self.problems.push(answer(source, value, path));
        }
        if self.is_set_aside(group, kind) {
            self.warn(source, pod_fields::check_template(value, path));
            let (source, value) = (source.clone(), value.clone());
            let aside = SetAside { kind: kind.to_owned(), source, value, path: path.to_owned() };
            return self.read.set_aside.push(aside);
        }
        let Some(known) = self.kind_of(group, kind) else {
            return self.skip(kind, group);
        };
        let moved = self.namespace.as_ref().filter(|_| known.is_namespaced());
        let moved = moved.and_then(|namespace| within_namespace(value, namespace));
        let value = moved.as_ref().unwrap_or(value);
        match decode(source, known, &self.declared.annotations, value, path) {
            Ok(object) => self.decoded(source, object, value, path),
            Err(problems) => self.problems.extend(problems),
        }
    }

    fn decoded(&mut self, source: &Source, object: Object, value: &Value, path: &str) {
        let metadata = value.get("metadata");
        let at = metadata.and_then(|m| m.get("name")).or(metadata).unwrap_or(value);
        let name_path =
            if path.is_empty() { "metadata.name".to_owned() } else { format!("{path}.metadata.name") };
        let (kind, key) = (object.kind(), object.key());
        if key.name.is_empty() {
            return self.problems.push(nameless(source, at, &name_path, kind, metadata));
        }
        if let Object::Pod(pod) = &object
            && pod.version.0.is_empty()
        {
            self.warn(source, pod_fields::check_pod(value, path));
        }
        match self.put(object, format!("{}:{}", source.name, at.at.line)) {
            Ok(()) if self.keeps(kind) => {
                self.read.texts.insert((kind, key), value.to_json());
            }
            Ok(()) => {}
            Err(first) => {
                let message = format!("{} {key} is defined twice", kind.name());
                let twice = problem(source, at, &name_path, message);
                self.problems.push(twice.hint(format!("the first one is at {first}")));
            }
        }
    }

    fn warn(&mut self, source: &Source, warnings: Vec<Problem>) {
        let more = MAX_WARNINGS.saturating_sub(self.read.warnings.len());
        let located = warnings.into_iter().map(|warning| Problem { source: Some(source.clone()), ..warning });
        self.read.warnings.extend(located.take(more));
    }
}

/// An object that names no namespace, in this one; `None` if it names one.
fn within_namespace(object: &Value, namespace: &str) -> Option<Value> {
    let mut object = object.clone();
    let ValueKind::Map(fields) = &mut object.kind else { return None };
    let metadata = fields.iter_mut().find(|entry| &*entry.key == "metadata")?;
    let at = metadata.value.at;
    let ValueKind::Map(fields) = &mut metadata.value.kind else { return None };
    if fields.iter().any(|entry| &*entry.key == "namespace") {
        return None;
    }
    let value = Value { at, kind: ValueKind::String(namespace.into()) };
    fields.push(Entry { key: "namespace".into(), key_at: at, value });
    Some(object)
}

/// Whether this is what an API server says when it refuses something.
fn is_answer(kind: &str, group: &str) -> bool {
    kind == "Status" && group.is_empty()
}

fn answer(source: &Source, value: &Value, path: &str) -> Problem {
    let said = value.get("message").and_then(Value::as_str).unwrap_or("it does not say why");
    let message = format!("an API server refused to give objects: {}", manifest::clip(said));
    problem(source, value, path, message)
        .hint("this is a Status, not a cluster; mend what it says and read the cluster again")
}

fn nameless(source: &Source, at: &Value, path: &str, kind: Kind, metadata: Option<&Value>) -> Problem {
    let nameless = problem(source, at, path, format!("a {} needs a name", kind.name()));
    let generated = metadata.and_then(|m| m.get("generateName")).and_then(Value::as_str);
    match generated {
        None | Some("") => nameless,
        Some(_) => nameless.hint("generateName is filled in by the API server; give a name here"),
    }
}

/// An object of a text; `None` if anything is wrong with it.
fn read_at_its_place(kind: Kind, annotations: &[Name], source: &Source, text: &str) -> Option<Object> {
    // What the quick way refuses may be well all the same.
    Object::from_json(kind, annotations, text.as_bytes())
        .ok()
        .or_else(|| Object::from_text(kind, annotations, &Source::new(source.name.clone(), text)).ok())
}
