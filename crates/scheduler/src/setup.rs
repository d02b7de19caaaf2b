//! An engine and a queue from a configuration.

use std::time::Duration;

use supercargo_config::Configuration;
use supercargo_engine::{Backoff, Engine, EngineProfile, QueueSettings, SchedulingQueue, Settings, TieBreak};
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problems;
use supercargo_model::Cluster;

/// Every node is looked at.
pub const ALL_NODES: i32 = 100;

/// What a run may set besides its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    /// What ties are broken by.
    pub seed: u64,
    /// How many percent of the nodes are looked at, whatever the configuration says.
    pub percentage: Option<i32>,
}

/// An engine over a cluster, as a configuration wants it.
pub fn engine(
    cluster: Cluster,
    configuration: &Configuration,
    registry: &Registry,
    overrides: Overrides,
) -> Result<Engine, Problems> {
    let percent = |given: u32| i32::try_from(given).unwrap_or(ALL_NODES);
    let profiles = configuration.profiles(registry)?.into_iter();
    let profiles = profiles.map(|ready| EngineProfile {
        profile: ready.profile,
        percentage_of_nodes_to_score: Some(
            overrides.percentage.unwrap_or_else(|| percent(ready.percentage_of_nodes_to_score)),
        ),
    });
    let settings = Settings {
        percentage_of_nodes_to_score: percent(configuration.percentage_of_nodes_to_score),
        min_feasible_nodes_to_find: configuration.min_feasible_nodes_to_find as usize,
        tie_break: match configuration.tie_break {
            supercargo_config::TieBreak::Random => TieBreak::Random,
            supercargo_config::TieBreak::First => TieBreak::First,
        },
        seed: overrides.seed,
        ..Settings::default()
    };
    Ok(Engine::new(cluster, profiles, settings))
}

/// How the queue behaves, as a configuration wants it.
pub fn queue_settings(configuration: &Configuration) -> QueueSettings {
    QueueSettings {
        backoff: Backoff {
            initial: Duration::from_secs(configuration.pod_initial_backoff_seconds),
            max: Duration::from_secs(configuration.pod_max_backoff_seconds),
        },
        extenders: !configuration.extenders.is_empty(),
        ..QueueSettings::default()
    }
}

/// An empty queue for the pods of an engine's profiles.
pub fn queue(engine: &Engine, settings: QueueSettings) -> SchedulingQueue {
    let rules: Vec<_> = engine.profiles().iter().map(|profile| profile.queue_rules().clone()).collect();
    SchedulingQueue::new(&rules, settings)
}
