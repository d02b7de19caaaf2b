//! Entries without effect, and steps that lack the step that prepares them.

use std::collections::BTreeMap;

use supercargo_framework::registry::Point;
use supercargo_manifest::Problems;

use super::Seen;
use crate::{defaults, document::PluginSetFields, merge::ALL, plugin_sets};

pub(super) fn warn(seen: &Seen<'_>, problems: &mut Problems) {
    let plugins = &seen.fields.plugins;
    let points = Point::ALL.map(|point| (point.name(), plugins.at(point)));
    for (point, set) in points.into_iter().chain([("multiPoint", &plugins.multi_point)]) {
        enabled_and_disabled(seen, point, set, problems);
        disabled_without_effect(seen, point, set, problems);
    }
    arguments_without_effect(seen, problems);
    unprepared(seen, Point::PreScore, Point::Score, problems);
    unprepared(seen, Point::PreFilter, Point::Filter, problems);
}

fn enabled_and_disabled(seen: &Seen<'_>, point: &str, set: &PluginSetFields, problems: &mut Problems) {
    for (index, disabled) in set.disabled.iter().enumerate() {
        if set.enabled.iter().any(|plugin| plugin.name == disabled.name) {
            let path = format!("{}.plugins.{point}.disabled[{index}]", seen.at);
            let message = format!(
                "{} is enabled and disabled at {point}: it stays enabled, behind the default plugins",
                disabled.name
            );
            let hint = "remove the entry under disabled; an entry under enabled is enough to change a weight";
            problems.push(seen.text.warning(path, message).hint(hint));
        }
    }
}

fn disabled_without_effect(seen: &Seen<'_>, point: &str, set: &PluginSetFields, problems: &mut Problems) {
    let all = set.disabled.iter().any(|plugin| plugin.name == ALL);
    for (index, disabled) in set.disabled.iter().enumerate() {
        let name = &*disabled.name;
        let both = set.enabled.iter().any(|plugin| plugin.name == name);
        let Some((reason, hint)) =
            (if name == ALL || both { None } else { no_effect(seen, point, name, all) })
        else {
            continue;
        };
        let path = format!("{}.plugins.{point}.disabled[{index}]", seen.at);
        let hint = hint.unwrap_or_else(|| "remove the entry".to_owned());
        problems.push(seen.text.warning(path, format!("this has no effect: {reason}")).hint(hint));
    }
}

/// Why disabling a plugin changes nothing, and what may have been meant.
fn no_effect(seen: &Seen<'_>, point: &str, name: &str, all: bool) -> Option<(String, Option<String>)> {
    if all {
        return Some(("* disables all plugins already".to_owned(), None));
    }
    let Some(plugin) = seen.known.get(name) else {
        let meant = seen.known.did_you_mean(name);
        return Some((format!("there is no plugin {name:?}"), meant));
    };
    let on_by_default = defaults::PLUGINS.iter().any(|(default, _)| *default == name);
    if point == "multiPoint" {
        return (!on_by_default).then(|| (format!("{name} is not enabled by default"), None));
    }
    if !plugin.points().iter().any(|served| served.name() == point) {
        let served: Vec<&str> = plugin.points().iter().map(|point| point.name()).collect();
        let hint = format!("remove the entry; {name} serves {}", served.join(", "));
        return Some((format!("{name} does not serve {point}"), Some(hint)));
    }
    let on = seen.merged.multi_point.iter().any(|entry| &*entry.name == name);
    (!on).then(|| (format!("{name} is not enabled"), None))
}

fn arguments_without_effect(seen: &Seen<'_>, problems: &mut Problems) {
    for (index, config) in seen.fields.plugin_config.iter().enumerate() {
        let name = &*config.name;
        let path = format!("{}.pluginConfig[{index}]", seen.at);
        let runs = seen.profile.points.values().flatten().any(|choice| &*choice.plugin == name);
        if seen.known.is_told(name) {
            continue;
        }
        if seen.known.get(name).is_none() {
            let message = format!("these arguments have no effect: there is no plugin {name:?}");
            let hint =
                plugin_sets::removed(name).map(str::to_owned).or_else(|| seen.known.did_you_mean(name));
            problems.push(
                seen.text.warning(path, message).hint(hint.unwrap_or_else(|| "remove the entry".to_owned())),
            );
        } else if !runs && !seen.merged.spelled_out {
            let message = format!("these arguments have no effect: {name} is not enabled in this profile");
            problems
                .push(seen.text.warning(path, message).hint("enable the plugin, or remove its arguments"));
        }
    }
}

/// A step that finds nothing prepared ends in an error, or works with less than it should know.
fn unprepared(seen: &Seen<'_>, before: Point, step: Point, problems: &mut Problems) {
    let mut plugins_by_path: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for choice in seen.profile.at(step) {
        let prepares = seen.known.get(&choice.plugin).is_some_and(|plugin| plugin.points().contains(&before));
        let prepared = seen.profile.at(before).iter().any(|other| other.plugin == choice.plugin);
        if prepares && !prepared {
            plugins_by_path
                .entry(disabled_by(seen, before, &choice.plugin))
                .or_default()
                .push(&choice.plugin);
        }
    }
    let (before, step) = (before.name(), step.name());
    for (path, plugins) in plugins_by_path {
        let (names, runs, it, them) = match &*plugins {
            [one] => ((*one).to_owned(), "runs", "it prepares", "it"),
            several => (several.join(", "), "run", "they prepare", "them"),
        };
        let message = format!(
            "{names} {runs} at {step} and not at {before}, where {it} what {step} needs: \
             pods fail, or are placed as if nothing were known"
        );
        let hint = format!("disable {them} at {step}, too, or leave {them} enabled at {before}");
        problems.push(seen.text.warning(path, message).hint(hint));
    }
}

/// The entry that disables a plugin at a point; the point itself if there is none.
fn disabled_by(seen: &Seen<'_>, point: Point, name: &str) -> String {
    let disabled = seen.fields.plugins.at(point).disabled.iter();
    let index = disabled.enumerate().find(|(_, plugin)| plugin.name == ALL || plugin.name == name);
    match index {
        Some((index, _)) => format!("{}.plugins.{}.disabled[{index}]", seen.at, point.name()),
        None => format!("{}.plugins.{}", seen.at, point.name()),
    }
}
