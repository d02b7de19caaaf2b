//! Prefers nodes as an operator says in a ConfigMap, for conditions that pass: an upgrade under way, nodes that should
//! warm up, nodes onboarded in a bad week.

mod creation;
mod fast;
mod selector;
mod text;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use supercargo_framework::{
    ScoreInput, Status, Verdict, normalize,
    points::{NormalizeScore, Score},
    registry::Args,
};
use supercargo_manifest::{Problem, Problems, Source};
use supercargo_model::{Cluster, Key, Name};

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
pub struct Place {
    /// The ConfigMap.
    pub config_map: Key,
    /// The key of its text.
    pub key: Name,
}

impl Place {
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

/// A problem in one line, for where there is no room for an excerpt.
pub fn in_a_line(problem: &Problem) -> String {
    let line = problem.at.map(|at| format!("line {}: ", at.line)).unwrap_or_default();
    let separator = if problem.path.is_empty() { "" } else { ": " };
    format!("{line}{}{separator}{}", problem.path, problem.message)
}

/// The plugin.
pub struct DynamicScoring {
    place: Place,
    /// What was read last, so that the same text is read once.
    last: Mutex<Option<(Name, Arc<Preferences>)>>,
}

impl DynamicScoring {
    /// Reads the ConfigMap that the arguments name.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        Ok(Self { place: Place::of(args)?, last: Mutex::default() })
    }

    /// The preferences that hold; `None` if there is no text.
    fn preferences(&self, cluster: &Cluster) -> Result<Option<Arc<Preferences>>, Status> {
        let Some(text) = self.place.text(cluster) else {
            return Ok(None);
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, preferences)) = &*last
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
        *last = Some((text.clone(), preferences.clone()));
        Ok(Some(preferences))
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
