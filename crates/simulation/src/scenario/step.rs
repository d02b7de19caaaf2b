//! A scenario as it is written.

use std::{fmt, fs, path::Path, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value};

/// What stands for the scenario's namespace.
const NAMESPACE_SIGN: &str = "$NS";

/// What is done to a cluster, and when to look.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, and its file's.
    pub name: String,
    /// What it is about.
    pub theme: String,
    #[serde(default, rename = "about")]
    _about: String,
    /// Parts of a KubeSchedulerConfiguration.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Pods whose node is chance; `*` is all.
    #[serde(default)]
    pub any_node: Vec<String>,
    /// Whether claims and volumes are looked at, too.
    #[serde(default)]
    pub volumes: bool,
    /// How often something happens is chance: no counts, no metrics.
    #[serde(default)]
    pub loose: bool,
    /// Also the form of events and conditions is looked at.
    #[serde(default)]
    pub shape: bool,
    /// What is done, in this order.
    pub steps: Vec<Step>,
}

/// One thing that is done.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// An object is made.
    Create(Value),
    /// An object is changed.
    Patch(Patch),
    /// An object is deleted.
    Delete(Delete),
    /// Another scheduler binds a pod.
    Bind(BindStep),
    /// So many seconds pass.
    Wait(f64),
    /// Until nothing changes any more, at most so many seconds.
    Settle(f64),
    /// The scheduler's process stands still.
    Pause(Value),
    /// It goes on.
    Resume(Value),
    /// It is asked to end.
    Stop(Value),
    /// A new one starts.
    Start(Value),
    /// It is asked to end, and a new one starts.
    Restart(Value),
    /// What can be seen is written down under this label.
    Checkpoint(String),
}

/// A change of an object.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    pub(super) kind: String,
    #[serde(default)]
    pub(super) ns: Option<String>,
    pub(super) name: String,
    pub(super) body: Value,
    #[serde(default)]
    pub(super) subresource: Option<String>,
    #[serde(default, rename = "type")]
    pub(super) patch_type: PatchType,
}

/// How a patch is written.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PatchType {
    #[default]
    Merge,
    Strategic,
    Json,
}

impl PatchType {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}

/// A deletion.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    pub(super) kind: String,
    #[serde(default)]
    pub(super) ns: Option<String>,
    pub(super) name: String,
    #[serde(default)]
    pub(super) grace: Option<i64>,
    /// It may be gone already.
    #[serde(default)]
    pub(super) maybe: bool,
}

/// A binding.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BindStep {
    #[serde(default)]
    pub(super) ns: Option<String>,
    pub(super) name: String,
    pub(super) node: String,
}

impl Scenario {
    /// Reads a scenario; its namespace is put where it is meant.
    pub fn read(text: &str) -> Result<Self, serde_json::Error> {
        let mut written: Value = serde_json::from_str(text)?;
        let namespace = namespace_of(written["name"].as_str().unwrap_or_default());
        put_namespace(&mut written["steps"], &namespace);
        serde_json::from_value(written)
    }

    /// The namespace that is its own.
    pub fn namespace(&self) -> String {
        namespace_of(&self.name)
    }

    /// The configuration of its scheduler, as a text.
    pub fn configuration(&self) -> String {
        let mut document = serde_json::json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": false},
        });
        if let Some(document) = document.as_object_mut() {
            document.extend(self.config.clone());
        }
        document.to_string()
    }

    /// How long it takes to play it at most, if nothing but its own waiting takes time.
    pub fn longest(&self) -> Duration {
        let seconds = self.steps.iter().map(|step| match step {
            Step::Wait(seconds) | Step::Settle(seconds) => *seconds,
            _ => 0.0,
        });
        Duration::from_secs_f64(seconds.sum())
    }
}

fn namespace_of(name: &str) -> String {
    format!("ld-{name}")
}

fn put_namespace(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) => *text = text.replace(NAMESPACE_SIGN, namespace),
        Value::Array(list) => list.iter_mut().for_each(|inner| put_namespace(inner, namespace)),
        Value::Object(map) => map.values_mut().for_each(|inner| put_namespace(inner, namespace)),
        _ => {}
    }
}

/// A file that is no scenario, or no expectation.
#[derive(Debug)]
pub struct Unreadable(pub(super) String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// All scenarios of a folder, by name.
pub fn read_folder(folder: &Path) -> Result<Vec<Scenario>, Unreadable> {
    let cannot = |what: &Path, error: &dyn fmt::Display| Unreadable(format!("{}: {error}", what.display()));
    let mut scenarios = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| cannot(folder, &error))? {
        let path = entry.map_err(|error| cannot(folder, &error))?.path();
        let text = fs::read_to_string(&path).map_err(|error| cannot(&path, &error))?;
        scenarios.push(Scenario::read(&text).map_err(|error| cannot(&path, &error))?);
    }
    scenarios.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(scenarios)
}
