//! What the scheduler itself has to know of plugins' arguments.

use std::collections::BTreeMap;

use supercargo_config::{Configuration, ProfileConfiguration};
use supercargo_framework::registry::{Args, Point};
use supercargo_manifest::Problems;
use supercargo_model::Name;
use supercargo_plugins::dynamic_scoring::{self, Place};

/// The places that DynamicScoring reads, each with the name of a scheduler that has it on.
pub fn preferences(configuration: &Configuration) -> Result<BTreeMap<Place, Name>, Problems> {
    let mut places = BTreeMap::new();
    for profile in with_plugin(configuration, Point::Score, dynamic_scoring::NAME) {
        let place = Place::of(&arguments(profile, dynamic_scoring::NAME))?;
        places.entry(place).or_insert_with(|| profile.scheduler_name.clone());
    }
    Ok(places)
}

fn with_plugin<'c>(
    configuration: &'c Configuration,
    point: Point,
    plugin: &'c str,
) -> impl Iterator<Item = &'c ProfileConfiguration> {
    let profiles = configuration.profiles.iter();
    profiles.filter(move |profile| profile.at(point).iter().any(|choice| &*choice.plugin == plugin))
}

fn arguments<'p>(profile: &'p ProfileConfiguration, plugin: &str) -> Args<'p> {
    let given = profile.arguments.iter().find(|arguments| &*arguments.plugin == plugin);
    given.map_or_else(Args::none, |given| given.args())
}
