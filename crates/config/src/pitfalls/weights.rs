//! Weights that do not do what they seem to.

use supercargo_framework::registry::Point;
use supercargo_manifest::Problems;

use super::Seen;
use crate::{defaults, document::PluginFields};

pub(super) fn warn(seen: &Seen<'_>, problems: &mut Problems) {
    unused(seen, problems);
    zero_or_negative(seen, problems);
    forgotten(seen, problems);
    overriding(seen, problems);
}

/// The entries that can set a weight, with the paths of their weights; the first of a plugin counts.
fn setting<'s>(seen: &'s Seen<'_>) -> impl Iterator<Item = (String, &'s PluginFields)> {
    let plugins = &seen.fields.plugins;
    [("score", &plugins.score), ("multiPoint", &plugins.multi_point)].into_iter().flat_map(
        move |(point, set)| {
            let entries = set.enabled.iter().enumerate();
            entries.map(move |(index, plugin)| {
                (format!("{}.plugins.{point}.enabled[{index}].weight", seen.at), plugin)
            })
        },
    )
}

fn unused(seen: &Seen<'_>, problems: &mut Problems) {
    let plugins = &seen.fields.plugins;
    for point in Point::ALL {
        let set = plugins.at(point);
        let lists = [("enabled", &set.enabled, point != Point::Score), ("disabled", &set.disabled, true)];
        for (list, entries, unused) in lists {
            for (index, plugin) in entries.iter().enumerate() {
                if unused && plugin.weight.is_some_and(|weight| weight != 0) {
                    let path = format!("{}.plugins.{}.{list}[{index}].weight", seen.at, point.name());
                    let message = "this weight has no effect: only scores are weighted";
                    problems.push(
                        seen.text.warning(path, message).hint("put it under score.enabled, or remove it"),
                    );
                }
            }
        }
    }
    for (path, plugin) in setting(seen).filter(|(path, _)| path.contains(".multiPoint.")) {
        let overrides = plugins.score.enabled.iter().any(|other| other.name == plugin.name);
        if plugin.weight.is_some() && overrides && !seen.merged.spelled_out {
            let message = format!(
                "this weight has no effect: {} is named at score, and that entry counts",
                plugin.name
            );
            problems
                .push(seen.text.warning(path, message).hint("set the weight at score, and remove it here"));
        }
    }
}

fn scores(seen: &Seen<'_>, plugin: &PluginFields) -> bool {
    seen.known.get(&plugin.name).is_some_and(|known| known.points().contains(&Point::Score))
}

fn zero_or_negative(seen: &Seen<'_>, problems: &mut Problems) {
    for (path, plugin) in setting(seen) {
        let problem = match plugin.weight {
            Some(0) if seen.merged.spelled_out || !scores(seen, plugin) => continue,
            Some(0) if path.contains(".multiPoint.") => seen
                .text
                .warning(
                    path,
                    format!(
                        "the weight 0 counts as 1 in multiPoint, as in kube-scheduler: {} scores",
                        plugin.name
                    ),
                )
                .hint("disable the plugin at score instead, or write 1"),
            Some(0) => seen
                .text
                .warning(
                    path,
                    format!(
                        "with the weight 0, {} has no influence; kube-scheduler takes 0 as 1",
                        plugin.name
                    ),
                )
                .hint("disable the plugin at score instead, or write 1"),
            Some(..0) => seen
                .text
                .warning(
                    path,
                    format!(
                        "with a negative weight, the nodes that {} likes best are the last choice",
                        plugin.name
                    ),
                )
                .hint("use a plugin or an argument that prefers what you want, with a positive weight"),
            _ => continue,
        };
        problems.push(problem);
    }
}

/// A plugin that is named at score again, to change its order, loses its default weight.
fn forgotten(seen: &Seen<'_>, problems: &mut Problems) {
    for (index, plugin) in seen.fields.plugins.score.enabled.iter().enumerate() {
        let spread = seen.merged.multi_point.iter().find(|entry| *entry.name == *plugin.name);
        let before = spread.and_then(|entry| entry.weight).filter(|weight| *weight != defaults::WEIGHT);
        if let (None, Some(before)) = (plugin.weight, before) {
            let path = format!("{}.plugins.score.enabled[{index}]", seen.at);
            let message =
                format!("{} is named without a weight, and so counts 1 instead of {before}", plugin.name);
            problems.push(
                seen.text.warning(path, message).hint(format!("write weight: {before}, or remove the entry")),
            );
        }
    }
}

fn overriding(seen: &Seen<'_>, problems: &mut Problems) {
    let scores = seen.profile.at(Point::Score);
    let total: i64 = scores.iter().map(|choice| i64::from(choice.weight.max(0))).sum();
    let others_score = |name: &str| scores.iter().any(|choice| *choice.plugin != *name && choice.weight > 0);
    for (path, plugin) in setting(seen) {
        let Some(choice) = scores.iter().find(|choice| *choice.plugin == *plugin.name) else {
            continue;
        };
        let (weight, others) = (i64::from(choice.weight), total - i64::from(choice.weight));
        if plugin.weight == Some(choice.weight) && weight > others && others_score(&plugin.name) {
            let message = format!(
                "the weight {weight} lets {} override all other plugins together, which weigh {others}",
                plugin.name
            );
            let hint = format!(
                "if the others are to count, stay well below {others}; if not, disable them at score"
            );
            problems.push(seen.text.warning(path, message).hint(hint));
        }
    }
}
