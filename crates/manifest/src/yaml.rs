//! YAML streams, with scalars understood as Kubernetes' own YAML library understands them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use crate::duplicates::check_duplicates;
use crate::problem::{Problem, Problems};
use crate::value::{Entry, Location, Source, Value, ValueKind};
use crate::{BYTE_ORDER_MARK, MAX_DEPTH, number};

/// How much the aliases of a text may copy. A few lines of aliases of aliases ("a billion laughs")
/// would otherwise fill the memory.
const MAX_COPIED_BYTES: usize = 64 << 20;

/// Reads all documents of a stream.
pub(crate) fn read(source: &Source) -> Result<Vec<Value>, Problems> {
    let text = source.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&source.text);
    let mut loader = Loader {
        source,
        parser: Parser::new_from_str(text),
        anchors: HashMap::new(),
        copied_bytes: 0,
        duplicates: Problems::default(),
    };
    let documents = loader.documents().map_err(|problem| Problems::from(*problem))?;
    if loader.duplicates.is_empty() {
        return Ok(documents);
    }
    loader.duplicates.0.sort_by_key(|problem| problem.at);
    Err(loader.duplicates)
}

type Loaded<T> = Result<T, Box<Problem>>;

struct Loader<'t> {
    source: &'t Source,
    parser: Parser<'t, StrInput<'t>>,
    anchors: HashMap<usize, Rc<Anchored>>,
    copied_bytes: usize,
    duplicates: Problems,
}

/// A value that has a name.
struct Anchored {
    value: Value,
    weight: Weight,
}

/// What a copy of a value costs.
#[derive(Clone, Copy)]
struct Weight {
    bytes: usize,
    depth: usize,
}

impl<'t> Loader<'t> {
    fn documents(&mut self) -> Loaded<Vec<Value>> {
        let mut documents = Vec::new();
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(documents),
                (Event::DocumentStart(_), _) => self.anchors.clear(),
                (Event::StreamStart | Event::DocumentEnd | Event::Nothing, _) => {}
                (event, span) => {
                    let document = self.node(event, span, 0)?;
                    if !document.is_null() {
                        documents.push(document);
                    }
                }
            }
        }
    }

    fn next(&mut self) -> Loaded<(Event<'t>, Span)> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let message = format!("this is not valid YAML: {}", error.info());
                // The parser notices an early end on a line that the text does not have.
                let at = location(*error.marker()).min(end(&self.source.text));
                let mut problem = self.problem(message, at);
                problem.hint = syntax_hint(error.info()).map(str::to_owned);
                Err(problem)
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Loaded<Value> {
        let at = location(span.start);
        let (kind, anchor) = match event {
            Event::Alias(anchor) => return self.alias(anchor, at, depth),
            Event::Scalar(text, style, anchor, tag) => {
                (self.scalar(&text, style, tag.as_deref(), at)?, anchor)
            }
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", at)?;
                (self.list(depth + 1, at)?, anchor)
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", at)?;
                (self.map(depth + 1, at)?, anchor)
            }
            _ => return Err(self.problem("expected a value", at)),
        };
        let value = Value { at, kind };
        if anchor > 0 {
            let weight = weigh(&value);
            self.count_copy(weight, at)?;
            self.anchors.insert(anchor, Rc::new(Anchored { value: value.clone(), weight }));
        }
        Ok(value)
    }

    fn list(&mut self, depth: usize, at: Location) -> Loaded<ValueKind> {
        self.check_depth(depth, at)?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(ValueKind::List(items)),
                (event, span) => items.push(self.node(event, span, depth)?),
            }
        }
    }

    fn map(&mut self, depth: usize, at: Location) -> Loaded<ValueKind> {
        self.check_depth(depth, at)?;
        let mut entries = Vec::new();
        let mut merged = Vec::new();
        loop {
            let (event, span) = match self.next()? {
                (Event::MappingEnd, _) => break,
                next => next,
            };
            let is_merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<");
            let key_at = location(span.start);
            let key = self.node(event, span, depth)?;
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth)?;
            if is_merge {
                self.collect_merged(value, &mut merged)?;
            } else {
                entries.push(Entry { key: self.key(key)?, key_at, value });
            }
        }
        check_duplicates(self.source, &entries, &mut self.duplicates);
        if !merged.is_empty() {
            let mut keys: HashSet<Box<str>> = entries.iter().map(|entry| entry.key.clone()).collect();
            // What the map says itself wins over what it merges, and the first merged over the next.
            entries.extend(merged.into_iter().filter(|entry| keys.insert(entry.key.clone())));
        }
        Ok(ValueKind::Map(entries))
    }

    /// The text of a key, which JSON wants to be a string: `1:` is `"1"`, and `yes:` is `"true"`.
    fn key(&self, key: Value) -> Loaded<Box<str>> {
        match key.kind {
            ValueKind::String(text) => Ok(text),
            ValueKind::Bool(bool) => Ok(bool.to_string().into()),
            ValueKind::Number(text) => {
                Ok(number::integer(&text).map_or(text, |integer| integer.to_string().into()))
            }
            ValueKind::Null => Err(self.problem("a key is empty", key.at)),
            ValueKind::List(_) | ValueKind::Map(_) => {
                let message = format!("a key must be a string, and this is {}", key.kind_name());
                let problem = self.problem(message, key.at);
                Err(Box::new(problem.hint("a text that begins with { or [ needs quotes")))
            }
        }
    }

    /// The entries that `<<: value` adds to its map.
    fn collect_merged(&self, value: Value, merged: &mut Vec<Entry>) -> Loaded<()> {
        match value.kind {
            ValueKind::Map(entries) => merged.extend(entries),
            ValueKind::List(items) if items.iter().all(|item| matches!(item.kind, ValueKind::Map(_))) => {
                for item in items {
                    self.collect_merged(item, merged)?;
                }
            }
            _ => {
                let message = format!("<< merges a map or a list of maps, and this is {}", value.kind_name());
                return Err(self.problem(message, value.at));
            }
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, at: Location, depth: usize) -> Loaded<Value> {
        let Some(anchored) = self.anchors.get(&anchor).cloned() else {
            return Err(self.problem("this alias names nothing that ends before it in its document", at));
        };
        self.count_copy(anchored.weight, at)?;
        self.check_depth(depth + anchored.weight.depth, at)?;
        // The copy keeps the location of the original: what is wrong in it is to be mended there.
        Ok(anchored.value.clone())
    }

    fn count_copy(&mut self, weight: Weight, at: Location) -> Loaded<()> {
        self.copied_bytes = self.copied_bytes.saturating_add(weight.bytes);
        if self.copied_bytes <= MAX_COPIED_BYTES {
            return Ok(());
        }
        let limit_mib = MAX_COPIED_BYTES >> 20;
        Err(self.problem(format!("the anchors and aliases of this text copy more than {limit_mib} MiB"), at))
    }

    fn check_depth(&self, depth: usize, at: Location) -> Loaded<()> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self.problem(format!("lists and maps are nested more than {MAX_DEPTH} deep"), at))
    }

    fn check_tag(&self, tag: Option<&Tag>, allowed: &str, at: Location) -> Loaded<()> {
        match tag {
            None => Ok(()),
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == allowed => Ok(()),
            Some(tag) => Err(self.unknown_tag(tag, at)),
        }
    }

    fn scalar(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Location) -> Loaded<ValueKind> {
        let Some(tag) = tag else {
            return Ok(if style == ScalarStyle::Plain {
                plain(text)
            } else {
                ValueKind::String(text.into())
            });
        };
        let kind = plain(text);
        let fits = match tag.suffix.as_str() {
            _ if is_non_specific(tag) => return Ok(ValueKind::String(text.into())),
            _ if !tag.is_yaml_core_schema() => return Err(self.unknown_tag(tag, at)),
            "str" | "timestamp" => return Ok(ValueKind::String(text.into())),
            "null" => kind == ValueKind::Null,
            "bool" => matches!(kind, ValueKind::Bool(_)),
            "int" => matches!(&kind, ValueKind::Number(text) if number::integer(text).is_some()),
            "float" => matches!(kind, ValueKind::Number(_)),
            _ => return Err(self.unknown_tag(tag, at)),
        };
        if fits {
            Ok(kind)
        } else {
            Err(self.problem(format!("{text:?} is not what !!{} promises", tag.suffix), at))
        }
    }

    fn unknown_tag(&self, tag: &Tag, at: Location) -> Box<Problem> {
        let name = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
        self.problem(format!("the tag {name} means nothing in a manifest"), at)
    }

    fn problem(&self, message: impl Into<String>, at: Location) -> Box<Problem> {
        Box::new(Problem::error(message).at(self.source, at))
    }
}

/// What a scalar without quotes and without a tag is.
fn plain(text: &str) -> ValueKind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => ValueKind::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "y" | "Y" | "on" | "On" | "ON" => {
            ValueKind::Bool(true)
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "n" | "N" | "off" | "Off" | "OFF" => {
            ValueKind::Bool(false)
        }
        _ if number::is_yaml_number(text) => ValueKind::Number(text.into()),
        _ => ValueKind::String(text.into()),
    }
}

/// Whether the tag is a lone `!`, which says: whatever it looks like, it is a string.
fn is_non_specific(tag: &Tag) -> bool {
    matches!((tag.handle.as_str(), tag.suffix.as_str()), ("", "!") | ("!", ""))
}

fn weigh(value: &Value) -> Weight {
    let own_bytes = size_of::<Value>();
    let heavier = |sum: Weight, inner: &Value, key_bytes: usize| {
        let inner = weigh(inner);
        Weight { bytes: sum.bytes + key_bytes + inner.bytes, depth: sum.depth.max(inner.depth + 1) }
    };
    match &value.kind {
        ValueKind::Null | ValueKind::Bool(_) => Weight { bytes: own_bytes, depth: 0 },
        ValueKind::Number(text) | ValueKind::String(text) => {
            Weight { bytes: own_bytes + text.len(), depth: 0 }
        }
        ValueKind::List(items) => {
            items.iter().fold(Weight { bytes: own_bytes, depth: 1 }, |sum, item| heavier(sum, item, 0))
        }
        ValueKind::Map(entries) => {
            entries.iter().fold(Weight { bytes: own_bytes, depth: 1 }, |sum, entry| {
                heavier(sum, &entry.value, size_of::<Entry>() + entry.key.len())
            })
        }
    }
}

/// How to mend the mistakes that people make most.
fn syntax_hint(message: &str) -> Option<&'static str> {
    if message.starts_with("mapping values are not allowed") {
        Some("check the indentation, and put a text that contains a colon and a space in quotes")
    } else if message.starts_with("tabs disallowed") {
        Some("indent with spaces")
    } else if message.starts_with("unexpected character") {
        Some("a text that begins with this character needs quotes")
    } else {
        None
    }
}

/// The place after the last character that is not space.
fn end(text: &str) -> Location {
    let text = text.trim_start_matches(BYTE_ORDER_MARK).trim_end();
    let last_line = text.rsplit(['\n', '\r']).next().unwrap_or_default();
    let line_breaks = text.matches('\n').count() + text.matches('\r').count() - text.matches("\r\n").count();
    location(Marker::new(0, line_breaks + 1, last_line.chars().count()))
}

fn location(marker: Marker) -> Location {
    let one_based = |zero_based: usize| u32::try_from(zero_based).unwrap_or(u32::MAX).saturating_add(1);
    Location { line: one_based(marker.line().saturating_sub(1)), column: one_based(marker.col()) }
}

#[cfg(test)]
mod tests;
