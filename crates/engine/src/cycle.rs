//! What a cycle starts from, and what it leaves for the next: the same on both paths.

use supercargo_framework::profile::Profile;

use crate::{
    cluster_state::ClusterState,
    extender_calls::ExtenderRole,
    random::cycle_seed,
    sampling::nodes_to_find,
    settings::{EngineProfile, Settings},
};

/// What a cycle starts from.
#[derive(Clone, Copy)]
pub(crate) struct CycleInput<'a> {
    pub(crate) state: &'a ClusterState,
    pub(crate) settings: &'a Settings,
    pub(crate) engine_profile: &'a EngineProfile,
    /// What ties are broken by.
    pub(crate) seed: u64,
    /// Where the search starts in the order of nodes.
    pub(crate) start: usize,
}

impl<'a> CycleInput<'a> {
    pub(crate) fn profile(&self) -> &'a Profile {
        &self.engine_profile.profile
    }

    /// Where the next search starts if all nodes are looked at: where this one did. There may be fewer nodes than then.
    pub(crate) fn start_again(&self) -> usize {
        self.start % self.state.cluster.node_count().max(1)
    }

    /// How many feasible nodes are looked for among so many.
    pub(crate) fn enough_nodes(&self, nodes: usize) -> usize {
        let chooses = |extender: &ExtenderRole| extender.filters || extender.weight.is_some();
        if !self.profile().has_score_plugins() && !self.settings.extenders.iter().any(chooses) {
            return 1;
        }
        let percentage = (self.engine_profile.percentage_of_nodes_to_score)
            .unwrap_or(self.settings.percentage_of_nodes_to_score);
        nodes_to_find(percentage, nodes, self.settings.min_feasible_nodes_to_find)
    }
}

/// What goes on from cycle to cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CycleProgress {
    /// Where the search for nodes starts in the order of nodes.
    pub(crate) next_start: usize,
    cycles: u64,
    pub(crate) paths: PathCounts,
}

impl CycleProgress {
    /// What the cycle that begins now breaks ties by.
    pub(crate) fn seed(&self, settings: &Settings) -> u64 {
        cycle_seed(settings.seed, self.cycles)
    }

    /// A cycle has taken a path.
    pub(crate) fn count(&mut self, path: DecisionPath) {
        self.cycles += 1;
        self.paths.count(path);
    }
}

/// How often decisions were made on each path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// From columns that are kept up to date.
    pub columns: u64,
    /// From classes of nodes that score alike.
    pub node_classes: u64,
    /// From what is taken of nodes, for a signature that is not kept: of all nodes, or of a sample.
    pub load_buckets: u64,
    /// Among some of the nodes.
    pub sampled: u64,
    /// Of those, the ones from classes of nodes that score alike.
    pub search_classes: u64,
    /// No node was open, and why was known.
    pub refused: u64,
    /// Of those, the ones for which room was found.
    pub nominated: u64,
    /// Every plugin was asked about every node.
    pub full: u64,
}

/// How a decision was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecisionPath {
    Columns,
    NodeClasses,
    LoadBuckets,
    Sampled,
    SearchClasses,
    Refused,
    Nominated,
    Full,
}

impl PathCounts {
    fn count(&mut self, path: DecisionPath) {
        self.search_classes += u64::from(path == DecisionPath::SearchClasses);
        self.nominated += u64::from(path == DecisionPath::Nominated);
        *match path {
            DecisionPath::Columns => &mut self.columns,
            DecisionPath::NodeClasses => &mut self.node_classes,
            DecisionPath::LoadBuckets => &mut self.load_buckets,
            DecisionPath::Sampled | DecisionPath::SearchClasses => &mut self.sampled,
            DecisionPath::Refused | DecisionPath::Nominated => &mut self.refused,
            DecisionPath::Full => &mut self.full,
        } += 1;
    }
}
