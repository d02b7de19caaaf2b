//! Six plugins, one for each pattern. TUTORIAL.md tells how they came to be.
//!
//! | plugin | pattern |
//! |---|---|
//! | [`cheapest_first`] | a score that sees the whole list of nodes |
//! | [`roomy`] | the same, on the older scale of 0 to 10 |
//! | [`namespace_spread`] | a score of one node at a time (the map), and a normalize that sees all of them (the reduce) |
//! | [`team_nodes`] | a filter |
//! | [`maintenance`] | a filter that reads objects of a custom kind |
//! | [`licences`] | an effect before a pod is bound: writes an object of a custom kind, and waits for its status |

pub mod cheapest_first;
pub mod licences;
pub mod maintenance;
pub mod namespace_spread;
pub mod roomy;
pub mod team_nodes;

use supercargo::framework::registry::Registry;

/// Adds the plugins by name. A configuration that names none of them is not changed by them.
pub fn register(plugins: &mut Registry) {
    plugins.add(cheapest_first::definition());
    plugins.add(roomy::definition());
    plugins.add(namespace_spread::definition());
    plugins.add(team_nodes::definition());
    plugins.add(maintenance::definition());
    plugins.add(licences::definition());
}
