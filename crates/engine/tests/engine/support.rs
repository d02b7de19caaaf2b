//! Engines over clusters of built objects, with the plugins that come with Supercargo.

use supercargo_engine::{Decision, Engine, Settings};
use supercargo_framework::{
    profile::{Choice, Profile, ProfileSpec},
    registry::{Args, Registry},
};
use supercargo_manifest::Source;
use supercargo_model::testing::{Builder, cluster};

/// The plugins that are on by default, with the weights of their scores.
pub(crate) const DEFAULT_PLUGINS: [(&str, i32); 20] = [
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
];

/// A profile of these plugins at all the points that they serve, with arguments for some.
pub(crate) fn profile(scheduler_name: &str, plugins: &[(&str, i32)], args: &[(&str, &str)]) -> Profile {
    profile_of(&supercargo_plugins::registry(), scheduler_name, plugins, args)
}

/// As [`profile`], of other plugins than those that come with Supercargo.
pub(crate) fn profile_of(
    registry: &Registry,
    scheduler_name: &str,
    plugins: &[(&str, i32)],
    args: &[(&str, &str)],
) -> Profile {
    let mut spec = ProfileSpec { scheduler_name: scheduler_name.into(), ..ProfileSpec::default() };
    for (name, weight) in plugins {
        let registration = registry.get(name).unwrap_or_else(|| panic!("no plugin {name}"));
        let given = args.iter().find(|(plugin, _)| plugin == name);
        let source = Source::new("args", given.map_or("{}", |(_, text)| *text));
        let documents = supercargo_manifest::read(&source).expect("arguments that can be read");
        let built = registration.build(&Args::new(&source, &documents[0], *name));
        spec.plugins.insert((*name).into(), built.unwrap_or_else(|problems| panic!("{problems}")));
        for point in registration.points() {
            spec.points.entry(*point).or_default().push(Choice { plugin: (*name).into(), weight: *weight });
        }
    }
    Profile::new(spec).unwrap_or_else(|error| panic!("{error}"))
}

/// The profile that holds when nothing is configured.
pub(crate) fn default_profile() -> Profile {
    profile("default-scheduler", &DEFAULT_PLUGINS, &[])
}

/// An engine with the default profile.
pub(crate) fn engine(objects: impl IntoIterator<Item = Builder>) -> Engine {
    engine_with(objects, Settings::default())
}

/// An engine with the default profile and these settings.
pub(crate) fn engine_with(objects: impl IntoIterator<Item = Builder>, settings: Settings) -> Engine {
    Engine::new(cluster(objects), [default_profile()], settings)
}

/// What is decided for a pod.
pub(crate) fn decide(engine: &mut Engine, pod: Builder) -> Decision {
    engine.decide(&pod.pod()).expect("a profile for the pod")
}

/// The feasible nodes, in the order in which they were found.
pub(crate) fn feasible(decision: &Decision) -> String {
    let names: Vec<&str> = decision.feasible.iter().map(|name| &**name).collect();
    names.join(" ")
}
