//! An engine from a configuration.

use supercargo_config::Configuration;
use supercargo_engine::{Engine, EngineProfile, Settings, TieBreak};
use supercargo_framework::registry::Registry;
use supercargo_manifest::Problems;
use supercargo_model::Cluster;

/// What a run may set besides its configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overrides {
    /// What ties are broken by.
    pub seed: u64,
    /// Look at every node, whatever the configuration says.
    pub all_nodes: bool,
}

/// An engine over a cluster, as a configuration wants it.
pub fn engine(
    cluster: Cluster,
    configuration: &Configuration,
    registry: &Registry,
    overrides: Overrides,
) -> Result<Engine, Problems> {
    const ALL: i32 = 100;
    let percent = |given: u32| i32::try_from(given).unwrap_or(ALL);
    let profiles = configuration.profiles(registry)?.into_iter();
    let profiles = profiles.map(|ready| EngineProfile {
        profile: ready.profile,
        percentage_of_nodes_to_score: Some(if overrides.all_nodes {
            ALL
        } else {
            percent(ready.percentage_of_nodes_to_score)
        }),
    });
    let settings = Settings {
        percentage_of_nodes_to_score: percent(configuration.percentage_of_nodes_to_score),
        min_feasible_nodes_to_find: configuration.min_feasible_nodes_to_find as usize,
        tie_break: match configuration.tie_break {
            supercargo_config::TieBreak::Random => TieBreak::Random,
            supercargo_config::TieBreak::First => TieBreak::First,
        },
        seed: overrides.seed,
    };
    Ok(Engine::new(cluster, profiles, settings))
}
