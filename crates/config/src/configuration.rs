//! The effective configuration: defaults filled in, plugins merged.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use supercargo_framework::{
    profile::{Choice, Profile, ProfileSpec},
    registry::{Args, Plugin, Point, Registration, Registry},
};
use supercargo_manifest::{Problem, Problems, Source, Value};
use supercargo_model::{ApiResource, Declared, Name};

use crate::{
    Duration, Extender, TieBreak,
    profile_plugins::ProfilePlugins,
    tree::{self, At},
};

/// The plugin that checks resources.
const FIT: &str = "NodeResourcesFit";

/// All that a scheduler is told.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// How many things may be done at once; at least 1.
    pub parallelism: u32,
    /// The part of the feasible nodes that is looked for, 0..=100; 0: by the size of the cluster. A profile
    /// may say otherwise.
    pub percentage_of_nodes_to_score: u32,
    /// At least so many feasible nodes are looked for, whatever the percentage.
    pub min_feasible_nodes_to_find: u32,
    /// Which of the best nodes is taken.
    pub tie_break: TieBreak,
    /// How long a pod waits after its first failure.
    pub pod_initial_backoff_seconds: u64,
    /// How long a pod waits at most.
    pub pod_max_backoff_seconds: u64,
    /// How one of several schedulers is chosen to work.
    pub leader_election: LeaderElection,
    /// How to reach the API server.
    pub client_connection: ClientConnection,
    /// Whether profiles of the process can be asked for.
    pub enable_profiling: bool,
    /// Whether they tell about lock contention, too.
    pub enable_contention_profiling: bool,
    /// Where health is served; `None`: as the command line says.
    pub healthz_bind_address: Option<String>,
    /// Where metrics are served; `None`: as the command line says.
    pub metrics_bind_address: Option<String>,
    /// Whether a scheduler that is not the leader leaves its caches empty.
    pub delay_cache_until_active: bool,
    /// A profile for each scheduler name.
    pub profiles: Vec<ProfileConfiguration>,
    /// The web services that take part, in order.
    pub extenders: Vec<Extender>,
}

/// How one of several schedulers is chosen to work.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaderElection {
    /// Whether one is chosen at all.
    pub leader_elect: bool,
    /// How long the others wait for a silent leader.
    pub lease_duration: Duration,
    /// How long the leader tries to stay the leader.
    pub renew_deadline: Duration,
    /// How long to wait between attempts.
    pub retry_period: Duration,
    /// The kind of the lock: always `leases`.
    pub resource_lock: String,
    /// The lock's name.
    pub resource_name: String,
    /// The lock's namespace.
    pub resource_namespace: String,
}

/// How to reach the API server.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientConnection {
    /// The kubeconfig file; empty: as the environment says.
    pub kubeconfig: String,
    /// What is accepted; empty: as sent.
    pub accept_content_types: String,
    /// What is sent.
    pub content_type: String,
    /// Requests in a second; [`NO_LIMIT`](Self::NO_LIMIT) or positive.
    pub qps: f32,
    /// Requests at once beyond that.
    pub burst: u32,
}

impl ClientConnection {
    /// The `qps` that does not limit: client-go, and so kube-scheduler, takes a negative one for that, too.
    pub const NO_LIMIT: f32 = -1.0;

    /// Limits the requests in a second; what is no positive number does not limit them.
    pub fn limit(&mut self, qps: f32) {
        self.qps = if qps > 0.0 && qps.is_finite() { qps } else { Self::NO_LIMIT };
    }

    /// Requests in a second; `None`: without limit.
    pub fn queries_per_second(&self) -> Option<f32> {
        (self.qps > 0.0).then_some(self.qps)
    }
}

/// The plugins of a scheduler name.
#[derive(Clone, Debug)]
pub struct ProfileConfiguration {
    /// The name that pods ask for it by.
    pub scheduler_name: Name,
    /// Overrides the configuration's own.
    pub percentage_of_nodes_to_score: Option<u32>,
    /// The plugins at each point, in order; the weight means something at Score only.
    pub points: BTreeMap<Point, Vec<Choice>>,
    /// The arguments that were given to plugins, enabled or not.
    pub arguments: Vec<PluginArguments>,
    /// The plugins that are not in the registry and were found by their arguments.
    pub loaded: BTreeMap<Name, Arc<Registration>>,
}

/// Arguments of a plugin, as they were written.
#[derive(Clone, Debug)]
pub struct PluginArguments {
    /// The plugin's name.
    pub plugin: Name,
    /// The text that they stand in.
    pub source: Source,
    /// Themselves.
    pub value: Value,
    /// Their path, such as `profiles[0].pluginConfig[1].args`.
    pub path: String,
}

/// A profile whose plugins are ready to run.
pub struct ReadyProfile {
    /// The profile.
    pub profile: Profile,
    /// The part of the feasible nodes that is looked for, 0..=100; 0: by the size of the cluster.
    pub percentage_of_nodes_to_score: u32,
}

impl Configuration {
    /// The plugins that are on in any profile, each once.
    fn plugins<'r>(&self, registry: &'r Registry) -> impl Iterator<Item = &'r Registration> {
        let choices = self.profiles.iter().flat_map(|profile| &profile.points).flat_map(|(_, on)| on);
        let names: BTreeSet<&str> = choices.map(|choice| &*choice.plugin).collect();
        names.into_iter().filter_map(|name| registry.get(name))
    }

    /// What the plugins that are on read besides the built-in kinds and fields.
    pub fn declared(&self, registry: &Registry) -> Declared {
        let kinds: BTreeSet<&ApiResource> =
            self.plugins(registry).flat_map(|plugin| plugin.kinds()).copied().collect();
        let annotations: BTreeSet<&Name> =
            self.plugins(registry).flat_map(|plugin| plugin.annotations()).collect();
        Declared {
            kinds: kinds.into_iter().collect(),
            annotations: annotations.into_iter().cloned().collect(),
        }
    }

    /// The custom kinds that the plugins that are on write.
    pub fn written_kinds(&self, registry: &Registry) -> BTreeSet<&'static ApiResource> {
        self.plugins(registry).flat_map(|plugin| plugin.written_kinds()).copied().collect()
    }

    /// Makes the plugins of all profiles, each once for a profile.
    ///
    /// # Errors
    ///
    /// What the plugins say about their arguments. There are none for a configuration that was loaded with
    /// the same registry.
    pub fn profiles(&self, registry: &Registry) -> Result<Vec<ReadyProfile>, Problems> {
        let mut ready = Vec::new();
        let mut problems = Problems::default();
        for profile in &self.profiles {
            let made = self.with_ignored_resources(profile).spec(registry).and_then(|spec| {
                Profile::new(spec).map_err(|error| Problem::error(error.to_string()).into())
            });
            match made {
                Ok(made) => ready.push(ReadyProfile {
                    profile: made,
                    percentage_of_nodes_to_score: self.percentage_for(profile),
                }),
                Err(more) => problems.extend(more),
            }
        }
        if problems.is_empty() { Ok(ready) } else { Err(problems) }
    }

    /// A profile in which NodeResourcesFit leaves the resources alone that extenders check in its stead. As in
    /// kube-scheduler, they take the place of any that its own arguments name.
    fn with_ignored_resources<'p>(&self, profile: &'p ProfileConfiguration) -> Cow<'p, ProfileConfiguration> {
        let managed = self.extenders.iter().flat_map(|extender| &extender.managed_resources);
        let ignored: Vec<Value> = managed
            .filter(|resource| resource.ignored_by_scheduler)
            .map(|resource| At::NOWHERE.text(&resource.name))
            .collect();
        if ignored.is_empty() {
            return Cow::Borrowed(profile);
        }
        let mut profile = profile.clone();
        let given = profile.arguments.iter().position(|arguments| &*arguments.plugin == FIT);
        let place = given.unwrap_or_else(|| {
            profile.arguments.push(PluginArguments {
                plugin: FIT.into(),
                source: Source::new("extenders", ""),
                value: At::NOWHERE.map([]),
                path: "extenders".to_owned(),
            });
            profile.arguments.len() - 1
        });
        let value = &mut profile.arguments[place].value;
        if value.is_null() {
            *value = At::NOWHERE.map([]);
        }
        tree::set(value, "ignoredResources", At::NOWHERE.list(ignored));
        Cow::Owned(profile)
    }

    /// The percentage that holds for a profile.
    pub fn percentage_for(&self, profile: &ProfileConfiguration) -> u32 {
        profile.percentage_of_nodes_to_score.unwrap_or(self.percentage_of_nodes_to_score)
    }
}

impl ProfileConfiguration {
    /// Makes the plugins, each once.
    ///
    /// # Errors
    ///
    /// What the plugins say about their arguments, of all of them.
    pub fn spec(&self, registry: &Registry) -> Result<ProfileSpec, Problems> {
        let mut spec = ProfileSpec {
            scheduler_name: self.scheduler_name.clone(),
            points: self.points.clone(),
            ..ProfileSpec::default()
        };
        let mut problems = Problems::default();
        for choice in self.points.values().flatten() {
            if spec.plugins.contains_key(&choice.plugin) {
                continue;
            }
            let plugin = self.build(registry, &choice.plugin).unwrap_or_else(|more| {
                problems.extend(more);
                Plugin::default()
            });
            spec.plugins.insert(choice.plugin.clone(), plugin);
        }
        if problems.is_empty() { Ok(spec) } else { Err(problems) }
    }

    /// Makes one plugin with the arguments that it was given.
    fn build(&self, registry: &Registry, name: &Name) -> Result<Plugin, Problems> {
        let plugin = ProfilePlugins::of(registry, self);
        let Some(plugin) = plugin.get(name) else {
            return Err(Problem::error(format!("there is no plugin {name}")).into());
        };
        match self.arguments.iter().find(|arguments| arguments.plugin == *name) {
            Some(arguments) => plugin.build(&arguments.args()),
            None => plugin.build(&Args::none()),
        }
    }

    /// The plugins at a point, in order.
    pub fn at(&self, point: Point) -> &[Choice] {
        self.points.get(&point).map_or(&[], Vec::as_slice)
    }
}

impl PluginArguments {
    /// As plugins read them.
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.source, &self.value, self.path.as_str())
    }
}
