//! The text of the ConfigMap: a score for each group of nodes.

use serde::Deserialize;
use supercargo_manifest::{self as manifest, Location, Problem, Problems, Source, UnknownFields, Value};
use supercargo_model::{Node, Timestamp};

use super::selector::Selector;

/// How many values the entries may hold, each alias written out. A short text may say much, and every node is compared with
/// all of it.
const MAX_VALUES: usize = 20_000;

/// What an operator prefers now.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    entries: Vec<Preference>,
    warnings: Problems,
}

/// An entry: a score, and the nodes that get it.
#[derive(Clone, Debug)]
pub struct Preference {
    /// The score; below zero for nodes that should rather be left alone.
    pub score: i32,
    /// The line on which the entry begins.
    pub line: u32,
    selector: Selector,
}

impl Preferences {
    /// The entries, as they are written.
    pub fn entries(&self) -> &[Preference] {
        &self.entries
    }

    /// What is worth a look in the text.
    pub fn warnings(&self) -> &Problems {
        &self.warnings
    }

    /// The sum over the entries that select a node.
    pub fn raw_score(&self, node: &Node, now: Timestamp) -> i64 {
        let selecting = self.entries.iter().filter(|entry| entry.selects(node, now));
        selecting.map(|entry| i64::from(entry.score)).sum()
    }

    /// Whether the scores change as time passes.
    pub fn reads_the_clock(&self) -> bool {
        self.entries.iter().any(|entry| entry.selector.reads_the_clock())
    }
}

impl Preference {
    /// Whether a node gets the score.
    pub fn selects(&self, node: &Node, now: Timestamp) -> bool {
        self.selector.selects(node, now)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    #[serde(default, rename = "apiVersion")]
    _api_version: Option<ApiVersion>,
    #[serde(default, rename = "kind")]
    _kind: Option<DocumentKind>,
    #[serde(default)]
    dynamic_scores: Vec<WrittenEntry>,
}

#[derive(Deserialize)]
enum ApiVersion {
    #[serde(rename = "kubescheduler.config.k8s.io/v1")]
    V1,
}

#[derive(Deserialize)]
enum DocumentKind {
    DynamicScoring,
}

#[derive(Deserialize)]
struct WrittenEntry {
    score: i32,
    /// Read on its own: it may be an object or a list.
    #[serde(default, rename = "selector")]
    _selector: serde::de::IgnoredAny,
}

/// Reads a text; or tells everything that is wrong with it.
pub fn read(source: &Source) -> Result<Preferences, Problems> {
    let documents = manifest::read(source)?;
    let document = the_document(source, &documents)?;
    let entries = document.get("dynamicScores").map_or(&[][..], Value::items);
    check_size(source, entries)?;
    let (mut selectors, mut problems) = (Vec::new(), Problems::default());
    for (i, entry) in entries.iter().enumerate() {
        match Selector::read(source, entry.get("selector"), &format!("dynamicScores[{i}].selector")) {
            Ok(selector) => selectors.push((entry.at.line, selector)),
            Err(more) => problems.extend(more),
        }
    }
    let written = manifest::decode::<Written>(source, document, "", UnknownFields::Deny);
    match written {
        Ok(written) if problems.is_empty() => {
            let entries = written.dynamic_scores.into_iter().zip(selectors);
            let entries =
                entries.map(|(entry, (line, selector))| Preference { score: entry.score, line, selector });
            Ok(Preferences { entries: entries.collect(), warnings: header(source, document) })
        }
        written => {
            problems.extend(written.err().into_iter().flatten());
            problems.0.sort_by_key(|problem| problem.at);
            Err(problems)
        }
    }
}

fn check_size(source: &Source, entries: &[Value]) -> Result<(), Problem> {
    let mut values = 0;
    for entry in entries {
        values += values_within(entry, MAX_VALUES + 1 - values);
        if values > MAX_VALUES {
            let message = format!("the entries hold more than {MAX_VALUES} values, with aliases written out");
            let hint = "give nodes a label, and select them by it";
            return Err(Problem::error(message).at(source, entry.at).path("dynamicScores").hint(hint));
        }
    }
    Ok(())
}

/// How many values there are in one, itself included, counted up to a number.
fn values_within(value: &Value, most: usize) -> usize {
    let inner = value.items().iter().chain(value.entries().iter().map(|entry| &entry.value));
    let mut count = 1;
    for inner in inner {
        if count >= most {
            break;
        }
        count += values_within(inner, most - count);
    }
    count
}

/// Texts as the plugin's proposal shows them do not say what they are.
fn header(source: &Source, document: &Value) -> Problems {
    let missing: Vec<&str> = ["apiVersion", "kind"]
        .into_iter()
        .filter(|field| document.get(field).is_none_or(Value::is_null))
        .collect();
    if missing.is_empty() {
        return Problems::default();
    }
    let message = format!("the text does not say what it is: {} missing", missing.join(" and "));
    let hint = "begin with `apiVersion: kubescheduler.config.k8s.io/v1` and `kind: DynamicScoring`";
    Problem::warning(message).at(source, document.at).hint(hint).into()
}

fn the_document<'d>(source: &Source, documents: &'d [Value]) -> Result<&'d Value, Problem> {
    match documents {
        [document] => Ok(document),
        [] => {
            let hint = "to prefer no node, write `dynamicScores: []`, or delete the ConfigMap";
            Err(Problem::error("the file is empty").at(source, Location::START).hint(hint))
        }
        [_, second, ..] => Err(Problem::error("expected one document, found several").at(source, second.at)),
    }
}
