//! Placement tests: what a team expects of where its pods go, written down next to their manifests.
//!
//! A file has a cluster, pods, and tests with expectations; where the objects come from is the caller's to say.

mod check;

use std::{collections::HashMap, sync::Arc};

use serde::{Deserialize, de::IgnoredAny};
use supercargo_engine::{Decision, Engine, Placement};
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields, Value};
use supercargo_model::{Key, Name, Pod, selector::Selector};
use supercargo_scheduler::offline::OfflineScheduler;

pub use check::check;

/// Tests that share a cluster: a document of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Suite {
    /// Files, or objects as they are written; read by whoever knows the files.
    #[serde(rename = "cluster")]
    _cluster: Anything,
    /// The same for pods and workloads that all tests place.
    #[serde(rename = "pods")]
    _pods: Anything,
    /// A file with a KubeSchedulerConfiguration.
    pub config: Option<String>,
    /// The tests.
    pub tests: Vec<PlacementTest>,
}

/// One test: what is placed, and what is expected of it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementTest {
    /// What it shows.
    pub name: String,
    /// Pods and workloads besides those of the suite.
    #[serde(rename = "pods")]
    _pods: Anything,
    /// How many pods each workload makes, in place of what it says.
    pub replicas: Option<u32>,
    /// With how many seeds it is run: expectations have to hold however ties are broken.
    pub seeds: Option<u32>,
    /// Nodes that are added: `FILE`, or `FILE:N` for several.
    pub add_nodes: Vec<String>,
    /// Nodes that are drained.
    pub drain: Vec<String>,
    /// Nodes that have failed.
    pub without: Vec<String>,
    /// All of this has to hold.
    pub expect: Vec<PlacementExpectation>,
}

/// What is expected of some pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacementExpectation {
    /// Which pods: a name, `namespace/name`, the name of their workload, or a pattern with `*`; all, if nothing is said.
    pub pods: Option<String>,
    /// Each of them gets one of these nodes.
    pub goes_to: Option<NodeMatch>,
    /// None of them gets one of these nodes.
    pub stays_away_from: Option<NodeMatch>,
    /// They are spread evenly.
    pub spreads_within: Option<Spread>,
    /// Each of them stays pending, for this reason.
    pub pending_because: Option<PendingReason>,
    /// Nobody has to leave for them.
    pub preempts_nobody: Option<bool>,
    /// These pods have to leave for them, and no others.
    pub preempts: Option<Vec<String>>,
    /// So many more would fit after all of it.
    pub would_fit: Option<usize>,
}

/// Some nodes: those that match whatever is said.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NodeMatch {
    /// By name; `*` stands for anything.
    pub nodes: Vec<String>,
    /// By zone.
    pub zones: Vec<String>,
    /// By labels.
    pub selector: Option<Selector>,
}

/// How evenly.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    /// The node label whose values are the domains.
    pub topology_key: String,
    /// By how much the fullest domain may exceed the emptiest, of those that nodes with such a label have.
    #[serde(default = "one")]
    pub max_skew: usize,
}

fn one() -> usize {
    1
}

/// Why a pod stays pending.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PendingReason {
    /// A part of the message.
    pub message: Option<String>,
    /// The plugin that refuses.
    pub plugin: Option<String>,
}

/// Whatever it is.
#[derive(Debug, Default)]
struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// Reads a suite. Fields that there are not are told, and tests that expect nothing.
pub fn read(source: &Source, document: &Value) -> Result<Suite, Problems> {
    let suite = manifest::decode::<Suite>(source, document, "", UnknownFields::Deny)?;
    let mut problems = Problems::default();
    let mut wrong = |path: String, message: &str| {
        problems.push(Problem::error(message).at(source, document.location_of(&path)).path(path));
    };
    if suite.tests.is_empty() {
        wrong("tests".to_owned(), "there are no tests");
    }
    for (i, test) in suite.tests.iter().enumerate() {
        if test.name.is_empty() {
            wrong(format!("tests[{i}].name"), "a test needs a name");
        }
        if test.expect.is_empty() {
            wrong(format!("tests[{i}].expect"), "a test needs an expectation");
        }
        for (j, _) in test.expect.iter().enumerate().filter(|(_, expectation)| expectation.is_empty()) {
            wrong(format!("tests[{i}].expect[{j}]"), "nothing is expected of these pods");
        }
    }
    if problems.is_empty() { Ok(suite) } else { Err(problems) }
}

impl PlacementExpectation {
    fn is_empty(&self) -> bool {
        self.goes_to.is_none()
            && self.stays_away_from.is_none()
            && self.spreads_within.is_none()
            && self.pending_because.is_none()
            && self.preempts_nobody.is_none()
            && self.preempts.is_none()
            && self.would_fit.is_none()
    }
}

/// What came of the pods.
pub struct Placements {
    pods: Vec<Placed>,
    engine: Engine,
}

/// What came of a pod.
struct Placed {
    pod: Arc<Pod>,
    /// Its last attempt.
    decision: Decision,
    /// Who had to leave for it.
    victims: Vec<Key>,
}

impl Placements {
    /// Schedules all pods until nothing more can happen, each with a full record.
    pub fn new(mut scheduler: OfflineScheduler) -> Self {
        let mut pods: Vec<Placed> = Vec::new();
        let mut places: HashMap<Name, usize> = HashMap::new();
        let decide = |engine: &mut Engine, pod: &Arc<Pod>, _| {
            engine.decide(pod).map(|decision| Placement::Decided(Box::new(decision)))
        };
        while let Some(attempt) = scheduler.next_attempt(decide) {
            let Placement::Decided(decision) = attempt.placement else { continue };
            let victims: Vec<Key> = decision.victims().iter().map(|victim| victim.key()).collect();
            let place = *places.entry(attempt.pod.uid.clone()).or_insert_with(|| {
                let (pod, decision) = (attempt.pod.clone(), (*decision).clone());
                pods.push(Placed { pod, decision, victims: Vec::new() });
                pods.len() - 1
            });
            pods[place].victims.extend(victims);
            pods[place].decision = *decision;
        }
        Self { pods, engine: scheduler.into_engine() }
    }
}
