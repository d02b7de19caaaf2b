//! The plugins that a profile can name: those of the registry, and those that are loaded by their arguments.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use supercargo_framework::registry::{Loader, Registration, Registry};
use supercargo_manifest::{Problems, nearest};
use supercargo_model::Name;

use crate::configuration::{PluginArguments, ProfileConfiguration};

/// The plugins that exist for a profile.
pub(crate) struct ProfilePlugins<'r> {
    registry: &'r Registry,
    pub(crate) loaded: BTreeMap<Name, Arc<Registration>>,
    /// What was to be loaded and could not be: it has been told why.
    broken: BTreeSet<Name>,
}

impl<'r> ProfilePlugins<'r> {
    /// Loads what the arguments ask for and the registry does not know.
    pub(crate) fn load(
        registry: &'r Registry,
        arguments: &[PluginArguments],
        problems: &mut Problems,
    ) -> Self {
        let mut known = Self { registry, loaded: BTreeMap::new(), broken: BTreeSet::new() };
        let Some(loader) = registry.loader() else {
            return known;
        };
        for given in arguments.iter().filter(|given| registry.get(&given.plugin).is_none()) {
            if known.get(&given.plugin).is_none()
                && let Some(loaded) = loader.load(&given.plugin, &given.args())
            {
                match loaded {
                    Ok(plugin) => drop(known.loaded.insert(given.plugin.clone(), Arc::new(plugin))),
                    Err(more) => {
                        known.broken.insert(given.plugin.clone());
                        problems.extend(more);
                    }
                }
            }
        }
        known
    }

    /// The plugins that a profile found.
    pub(crate) fn of(registry: &'r Registry, profile: &ProfileConfiguration) -> Self {
        Self { registry, loaded: profile.loaded.clone(), broken: BTreeSet::new() }
    }

    /// A plugin by name.
    pub(crate) fn get(&self, name: &str) -> Option<&Registration> {
        self.registry.get(name).or_else(|| self.loaded.get(name).map(|plugin| &**plugin))
    }

    /// Whether nothing more need be said about a name.
    pub(crate) fn is_told(&self, name: &str) -> bool {
        self.broken.contains(name)
    }

    /// The hint for a name that no plugin has.
    pub(crate) fn did_you_mean(&self, name: &str) -> Option<String> {
        let known = self.registry.iter().map(|plugin| plugin.name());
        let known = known.chain(self.loaded.keys().map(|name| &**name));
        let near = nearest(name, known).map(|nearest| format!("did you mean {nearest}?"));
        near.or_else(|| self.registry.loader().map(|loader| Loader::hint(loader, name)))
    }
}
