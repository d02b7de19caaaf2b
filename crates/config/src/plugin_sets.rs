//! What can be wrong with the lists of plugins in a profile.

use supercargo_framework::registry::Point;
use supercargo_manifest::{Problem, Problems};

use crate::{
    defaults,
    document::{PluginSetFields, PluginsFields, ProfileFields},
    merge::{ALL, Merged},
    place::Text,
    profile_plugins::ProfilePlugins,
};

/// Plugins that kube-scheduler once had, and what to use now.
const REMOVED: [(&str, &str); 7] = [
    ("SelectorSpread", "PodTopologySpread spreads the pods of a Service or ReplicaSet by default"),
    ("DefaultPodTopologySpread", "PodTopologySpread spreads the pods of a Service or ReplicaSet by default"),
    ("NodePreferAvoidPods", "use a taint with the effect PreferNoSchedule, which TaintToleration scores"),
    ("NodeLabel", "use the argument addedAffinity of NodeAffinity"),
    ("ServiceAffinity", "use pod affinity in the pods, which InterPodAffinity serves"),
    ("NodeResourceLimits", "kube-scheduler has no such score any more; remove it"),
    ("CSILimits", "it is called NodeVolumeLimits"),
];

/// Plugins that kube-scheduler once had, and refuses even arguments for.
const FORBIDDEN: [&str; 4] = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"];

/// Reports plugins that do not exist or do not serve where they are put.
pub(crate) fn check_written(
    at: &str,
    plugins: &PluginsFields,
    known: &ProfilePlugins<'_>,
    text: Text<'_>,
    problems: &mut Problems,
) {
    for point in Point::ALL {
        for (path, name) in enabled(at, point.name(), plugins.at(point)) {
            match known.get(name) {
                None if known.is_told(name) => {}
                None => problems.push(no_such_plugin(&path, name, known, text)),
                Some(plugin) if !plugin.points().contains(&point) => {
                    let served: Vec<&str> = plugin.points().iter().map(|point| point.name()).collect();
                    let message = format!("the plugin {name} does not serve {}", point.name());
                    let hint = format!("it serves {}", served.join(", "));
                    problems.push(text.error(path, message).hint(hint));
                }
                Some(_) => {}
            }
        }
    }
    for (path, name) in enabled(at, "multiPoint", &plugins.multi_point) {
        if known.get(name).is_none() && !known.is_told(name) {
            problems.push(no_such_plugin(&path, name, known, text));
        }
    }
    let placement =
        [("placementGenerate", &plugins.placement_generate), ("placementScore", &plugins.placement_score)];
    for (point, set) in placement {
        for (path, name) in enabled(at, point, set) {
            let message = format!("no plugin serves {point}, and so {name} does not");
            let hint = "remove the entry; pod groups are off by default in kube-scheduler, and unknown here";
            problems.push(text.error(path, message).hint(hint));
        }
    }
}

fn enabled<'s>(at: &str, point: &str, set: &'s PluginSetFields) -> impl Iterator<Item = (String, &'s str)> {
    let prefix = format!("{at}.plugins.{point}.enabled");
    let entries = set.enabled.iter().enumerate();
    entries.map(move |(index, plugin)| (format!("{prefix}[{index}]"), &*plugin.name))
}

/// What became of a plugin that kube-scheduler no longer has.
pub(crate) fn removed(name: &str) -> Option<&'static str> {
    let removed = REMOVED.iter().find(|(removed, _)| *removed == name).map(|(_, instead)| *instead);
    removed.or_else(|| forbidden(name))
}

/// What to do instead of a plugin that may not even be mentioned.
pub(crate) fn forbidden(name: &str) -> Option<&'static str> {
    FORBIDDEN.contains(&name).then_some("NodeVolumeLimits counts these volumes; remove the entry")
}

fn no_such_plugin(path: &str, name: &str, known: &ProfilePlugins<'_>, text: Text<'_>) -> Problem {
    let problem = |message: String| text.error(path, message);
    if name == ALL {
        return problem("* stands for all plugins only where plugins are disabled".to_owned())
            .hint("name the plugins to enable; those on by default need no entry");
    }
    if let Some(instead) = removed(name) {
        return problem(format!("kube-scheduler has no plugin {name} any more")).hint(instead);
    }
    let mut problem = problem(format!("there is no plugin {name:?}"));
    problem.hint = known.did_you_mean(name);
    problem
}

/// Reports what only shows when all lists of a profile are seen together.
pub(crate) fn check_merged(
    at: &str,
    merged: &Merged,
    profile: &ProfileFields,
    text: Text<'_>,
    problems: &mut Problems,
) {
    let name = profile.scheduler_name.as_deref().unwrap_or(defaults::SCHEDULER_NAME);
    // A plugin that is twice in multiPoint is doubled at each of its points: one report is enough.
    let mut reported = Vec::new();
    for (point, entry) in &merged.doubled {
        let path = entry.written.as_deref().unwrap_or("plugins.multiPoint");
        if reported.contains(&path) {
            continue;
        }
        reported.push(path);
        let message =
            format!("the plugin {} is enabled twice, and would run twice at {}", entry.name, point.name());
        problems.push(text.error(format!("{at}.{path}"), message).hint("keep one of the two entries"));
    }
    let count = |point| merged.points.get(&point).map_or(0, Vec::len);
    let sorts = count(Point::QueueSort);
    // Several are reported where the lists of all profiles are compared.
    if sorts == 0 || sorts > 1 && profile.plugins.queue_sort.enabled.len() <= 1 {
        problems.push(
            text.error(
                format!("{at}.plugins.queueSort"),
                format!("the profile {name} needs exactly one plugin that sorts the queue, and has {sorts}"),
            )
            .hint("enable PrioritySort, and no other, at queueSort"),
        );
    }
    if count(Point::Bind) == 0 {
        problems.push(
            text.error(format!("{at}.plugins.bind"), format!("no plugin of the profile {name} binds pods"))
                .hint("enable DefaultBinder at bind"),
        );
    }
    if let Some(entry) = &merged.overflow {
        let (path, hint) = culprit(profile);
        let message = format!("with the weight of {}, the total of the scores could overflow", entry.name);
        problems.push(text.error(format!("{at}.{path}"), message).hint(hint));
    }
}

/// The entry to blame for an overflow: what a 32-bit weight can only do if a negative one comes before it.
fn culprit(profile: &ProfileFields) -> (String, &'static str) {
    let sets = [("score", &profile.plugins.score), ("multiPoint", &profile.plugins.multi_point)];
    for (point, set) in sets {
        if let Some(index) =
            set.enabled.iter().position(|plugin| plugin.weight.is_some_and(|weight| weight < 0))
        {
            let hint =
                "a weight must not be negative: disable the plugin, or choose one that prefers the opposite";
            return (format!("plugins.{point}.enabled[{index}].weight"), hint);
        }
    }
    ("plugins.score".to_owned(), "make the weights smaller")
}
