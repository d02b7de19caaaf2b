//! Reads a trace that is in order in one look. Whatever is out of the ordinary is left to the located reader.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use supercargo_model::{
    Declared,
    object::{Kind, Object},
};

use super::{Line, Op, event_of, removal};

#[derive(Deserialize)]
struct Written<'t> {
    at: f64,
    op: Op,
    #[serde(borrow, default)]
    object: Option<&'t RawValue>,
    #[serde(borrow, default)]
    kind: Option<Cow<'t, str>>,
    #[serde(borrow, default)]
    namespace: Cow<'t, str>,
    #[serde(borrow, default)]
    name: Cow<'t, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head<'t> {
    #[serde(borrow)]
    api_version: Cow<'t, str>,
    #[serde(borrow)]
    kind: Cow<'t, str>,
}

/// The lines of a trace; `None` if anything is out of the ordinary.
pub(super) fn lines(text: &str, declared: &Declared) -> Option<Vec<Line>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| read(line, declared)).collect()
}

fn read(line: &str, declared: &Declared) -> Option<Line> {
    let written: Written<'_> = serde_json::from_str(line).ok()?;
    let event = if written.op == Op::Delete {
        let name = Some(written.name).filter(|name| !name.is_empty())?;
        removal(&written.kind?, &written.namespace, &name, declared)
    } else {
        let text = written.object?.get();
        let head: Head<'_> = serde_json::from_str(text).ok()?;
        let group = head.api_version.split_once('/').map_or("", |(group, _)| group);
        let custom = || {
            let declared = declared.kinds.iter().find(|api| api.group == group && api.kind == head.kind);
            declared.map(|api| Kind::Custom(api))
        };
        match Kind::of_group(group, &head.kind).or_else(custom) {
            None => None,
            Some(kind) => {
                let mut json = serde_json::Deserializer::from_str(text);
                let object = Object::deserialize(kind, &declared.annotations, &mut json).ok()?;
                if object.key().name.is_empty() {
                    return None;
                }
                Some(event_of(written.op, object))
            }
        }
    };
    Some(Line { at_seconds: written.at, event })
}
