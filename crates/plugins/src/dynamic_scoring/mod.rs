//! Prefers nodes as an operator says in a ConfigMap, for conditions that pass: an upgrade under way, nodes that should
//! warm up, nodes onboarded in a bad week.

mod creation;
mod fast;
mod selector;
mod text;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use supercargo_framework::{
    ScoreInput, Status, Verdict,
    handle::{HandleRef, LogLevel, Measurement, ObjectReference, Occurrence},
    normalize,
    points::{NormalizeScore, Observe, Observed, Score},
    registry::Args,
};
use supercargo_manifest::{Problem, Problems, Source, clip};
use supercargo_model::{
    Cluster, ConfigMap, Key, Name,
    object::{Kind, Object},
};

pub use text::{Preference, Preferences, read};

/// The plugin's name.
pub const NAME: &str = "DynamicScoring";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DynamicScoringArgs {
    config_map: ConfigMapReference,
    key: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ConfigMapReference {
    namespace: String,
    name: String,
}

/// Where the preferences stand: a text of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PreferencesReference {
    /// The ConfigMap.
    pub config_map: Key,
    /// The key of its text.
    pub key: Name,
}

impl PreferencesReference {
    /// The place that a plugin's arguments name.
    pub fn of(args: &Args<'_>) -> Result<Self, Problems> {
        let DynamicScoringArgs { config_map, key } = args.decode()?;
        let fields = [
            ("configMap.namespace", &config_map.namespace),
            ("configMap.name", &config_map.name),
            ("key", &key),
        ];
        let missing = fields.into_iter().filter(|(_, value)| value.is_empty());
        let problems: Problems = missing.map(|(field, _)| args.problem(field, "must be given")).collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { config_map: Key::new(config_map.namespace, config_map.name), key: key.into() })
    }

    /// The text that stands there.
    pub fn text<'c>(&self, cluster: &'c Cluster) -> Option<&'c Name> {
        cluster.config_map(&self.config_map)?.data.get(&self.key)
    }

    /// A text under the name that problems show.
    pub fn source(&self, text: &Name) -> Source {
        Source::new(format!("configmap/{}/{}", self.config_map, self.key), text.clone())
    }
}

/// A problem in one line, for where there is no room for an excerpt: cut, if the text makes it long.
pub fn in_a_line(problem: &Problem) -> String {
    let line = problem.at.map(|at| format!("line {}: ", at.line)).unwrap_or_default();
    let separator = if problem.path.is_empty() { "" } else { ": " };
    clip(&format!("{line}{}{separator}{}", problem.path, problem.message)).into_owned()
}

/// The plugin.
pub struct DynamicScoring {
    place: PreferencesReference,
    handle: HandleRef,
    texts: Mutex<Texts>,
}

/// What is known of the texts that stood in the plugin's place.
#[derive(Default)]
struct Texts {
    /// What was read last, so that the same text is read once.
    last: Option<(Name, Arc<Preferences>)>,
    /// A text that was told, and cannot be read: in its place holds what was read last.
    broken: Option<Name>,
    /// There is no ConfigMap, or it has no such key; and that was told.
    missing: bool,
}

impl DynamicScoring {
    /// Reads the ConfigMap that the arguments name.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        Ok(Self { place: PreferencesReference::of(args)?, handle: args.handle(), texts: Mutex::default() })
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes whether there is a text, and counts the change.
    fn is_missing(&self, missing: bool) {
        let mut texts = self.texts();
        if missing {
            (texts.last, texts.broken) = (None, None);
        }
        if std::mem::replace(&mut texts.missing, missing) != missing {
            self.handle.measure(Measurement::MissingInput(missing));
        }
    }

    /// The preferences that hold; `None` if there is no text.
    fn preferences(&self, cluster: &Cluster) -> Result<Option<Arc<Preferences>>, Status> {
        let Some(text) = self.place.text(cluster) else {
            return Ok(None);
        };
        let mut texts = self.texts();
        if texts.broken.as_ref() == Some(text) {
            return Ok(texts.last.as_ref().map(|(_, preferences)| preferences.clone()));
        }
        if let Some((of, preferences)) = &texts.last
            && of == text
        {
            return Ok(Some(preferences.clone()));
        }
        let source = self.place.source(text);
        let broken = |problems: Problems| {
            let first = problems.iter().next().map(in_a_line).unwrap_or_default();
            Status::error(format!("{} cannot be read: {first}", source.name))
        };
        let preferences = Arc::new(read(&source).map_err(broken)?);
        texts.last = Some((text.clone(), preferences.clone()));
        Ok(Some(preferences))
    }

    /// The ConfigMap is there, or has changed. In place of a broken text holds the last good one.
    fn map_is(&self, map: &ConfigMap, uid: &Name, scheduler_name: &Name) {
        let Some(text) = map.data.get(&self.place.key) else {
            self.is_missing(true);
            self.log(LogLevel::Warn, "DynamicScoring prefers no node: the ConfigMap has no such key", "");
            return;
        };
        self.is_missing(false);
        match read(&self.place.source(text)) {
            Ok(preferences) => {
                let entries = format!(" entries={}", preferences.entries().len());
                for warning in preferences.warnings() {
                    let reason = format!(" reason={:?}", in_a_line(warning));
                    self.log(LogLevel::Warn, "DynamicScoring is read, and something is odd", &reason);
                }
                let mut texts = self.texts();
                (texts.last, texts.broken) = (Some((text.clone(), Arc::new(preferences))), None);
                drop(texts);
                self.log(LogLevel::Info, "DynamicScoring has changed", &entries);
            }
            Err(problems) => {
                self.texts().broken = Some(text.clone());
                let first = problems.iter().next().map(in_a_line).unwrap_or_default();
                let more = problems.len().saturating_sub(1);
                let reason = if more == 0 { first } else { format!("{first} (and {more} more)") };
                self.tell_broken(uid, scheduler_name, &reason);
            }
        }
    }

    fn tell_broken(&self, uid: &Name, scheduler_name: &Name, reason: &str) {
        let line = "DynamicScoring cannot be read; what held before still holds";
        self.log(LogLevel::Error, line, &format!(" reason={reason:?}"));
        self.handle.measure(Measurement::UnreadableInput);
        self.handle.record(Occurrence {
            regarding: ObjectReference {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                key: self.place.config_map.clone(),
                uid: uid.clone(),
                version: Name::default(),
            },
            related: None,
            scheduler_name: scheduler_name.clone(),
            is_warning: true,
            reason: "InvalidDynamicScoring".into(),
            action: "Reading".into(),
            note: format!("{}: {reason}. What held before still holds.", self.place.key),
        });
    }

    fn log(&self, level: LogLevel, line: &str, more: &str) {
        let PreferencesReference { config_map, key } = &self.place;
        self.handle.log(level, &format!("{line}: config_map={config_map} key={key}{more}"));
    }
}

impl Observe for DynamicScoring {
    fn watched(&self) -> Vec<(Kind, Key)> {
        vec![(Kind::ConfigMap, self.place.config_map.clone())]
    }

    fn observe(&self, scheduler_name: &Name, observed: &Observed<'_>) {
        match observed {
            Observed::Is { object: Object::ConfigMap(map), uid } if map.key() == self.place.config_map => {
                self.map_is(map, uid, scheduler_name);
            }
            Observed::Gone { kind: Kind::ConfigMap, key } if **key == self.place.config_map => {
                self.is_missing(true);
                self.log(LogLevel::Info, "DynamicScoring prefers no node: the ConfigMap is gone", "");
            }
            Observed::Missing { kind: Kind::ConfigMap, key } if **key == self.place.config_map => {
                self.is_missing(true);
                let profile = format!(" profile={scheduler_name}");
                self.log(
                    LogLevel::Warn,
                    "DynamicScoring finds no ConfigMap, and so prefers none of the nodes",
                    &profile,
                );
            }
            _ => {}
        }
    }
}

impl Score for DynamicScoring {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        column.fill(0);
        if let Some(preferences) = self.preferences(input.cluster)? {
            let now = input.cluster.now();
            for (score, node) in column.iter_mut().zip(input.nodes) {
                *score = preferences.raw_score(&node.node, now);
            }
        }
        Ok(())
    }
}

impl NormalizeScore for DynamicScoring {
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::min_max_with_zero(column);
        Ok(())
    }
}
