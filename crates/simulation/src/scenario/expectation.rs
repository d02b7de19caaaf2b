//! What kube-scheduler did.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::step::Unreadable;

/// What was seen of kube-scheduler, and what of it is chance.
#[derive(Clone, Debug, Deserialize)]
pub struct Expectation {
    /// What was seen, by checkpoint.
    pub checkpoints: Map<String, Value>,
    /// Paths that the runs did not agree on; a path's beginning is enough.
    #[serde(default)]
    pub ignore: Vec<Vec<String>>,
}

impl Expectation {
    /// The expectation of a scenario.
    pub fn read(folder: &Path, scenario: &str) -> Result<Self, Unreadable> {
        let path = folder.join(format!("{scenario}.json"));
        let text = fs::read_to_string(&path).map_err(|error| error.to_string());
        let read = text.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        read.map_err(|error| Unreadable(format!("{}: {error}", path.display())))
    }
}
