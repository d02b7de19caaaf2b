//! What an engine is set up with: settings for all profiles, and the profiles.

use std::sync::Arc;

use supercargo_framework::{profile::Profile, stopwatch::Stopwatch};

use crate::{extender_calls::ExtenderRole, pick::TieBreak};

/// How many feasible nodes are looked for at least.
const DEFAULT_MIN_FEASIBLE_NODES: usize = 100;

/// What holds for all profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many percent of the nodes are enough; 0 adapts to the size of the cluster.
    pub percentage_of_nodes_to_score: i32,
    /// How many feasible nodes are looked for at least.
    pub min_feasible_nodes_to_find: usize,
    /// How to choose among equals.
    pub tie_break: TieBreak,
    /// What choices among equals follow from.
    pub seed: u64,
    /// The extenders, in the order in which they are asked.
    pub extenders: Vec<ExtenderRole>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            percentage_of_nodes_to_score: 0,
            min_feasible_nodes_to_find: DEFAULT_MIN_FEASIBLE_NODES,
            tie_break: TieBreak::default(),
            seed: 0,
            extenders: Vec::new(),
        }
    }
}

/// A profile, and what it has to itself.
pub struct EngineProfile {
    /// The plugins.
    pub profile: Profile,
    /// Overrides the setting for all profiles.
    pub percentage_of_nodes_to_score: Option<i32>,
}

impl From<Profile> for EngineProfile {
    fn from(profile: Profile) -> Self {
        Self { profile, percentage_of_nodes_to_score: None }
    }
}

/// All profiles, found by the scheduler name that a pod asks for.
pub struct Profiles(Vec<Arc<EngineProfile>>);

impl Profiles {
    pub(crate) fn new(profiles: impl IntoIterator<Item = impl Into<EngineProfile>>) -> Self {
        Self(profiles.into_iter().map(|profile| Arc::new(profile.into())).collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.0.iter().map(|p| &p.profile)
    }

    /// The profile that a pod asks for.
    pub fn get(&self, scheduler_name: &str) -> Option<&Profile> {
        self.index_of(scheduler_name).map(|index| &self.0[index].profile)
    }

    /// The profile that a pod asks for, to be used beside the engine.
    pub fn shared(&self, scheduler_name: &str) -> Option<Arc<EngineProfile>> {
        self.index_of(scheduler_name).map(|index| self.0[index].clone())
    }

    /// Takes the times of plugins, wherever they are asked one by one.
    pub fn time_with(&self, stopwatch: &Arc<dyn Stopwatch>) {
        self.iter().for_each(|profile| profile.time_with(stopwatch.clone()));
    }

    pub(crate) fn index_of(&self, scheduler_name: &str) -> Option<usize> {
        self.0.iter().position(|p| &**p.profile.scheduler_name() == scheduler_name)
    }

    pub(crate) fn at(&self, index: usize) -> &EngineProfile {
        &self.0[index]
    }
}
