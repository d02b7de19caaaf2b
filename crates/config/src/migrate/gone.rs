//! Plugins that kube-scheduler no longer has.

use super::OldProfile;
use crate::{header::Version, plugin_sets, tree};

/// Every list of plugins that older versions have.
const POINTS: [&str; 13] = [
    "multiPoint",
    "preEnqueue",
    "queueSort",
    "preFilter",
    "filter",
    "postFilter",
    "preScore",
    "score",
    "reserve",
    "permit",
    "preBind",
    "bind",
    "postBind",
];

/// On by default up to v1beta1, with a weight above all others together.
const AVOIDS_PODS: &str = "NodePreferAvoidPods";

/// Takes them out of all lists, and says so where something is lost.
pub(super) fn leave_out(old: &mut OldProfile<'_>, version: Version) {
    tell_default(old, version);
    for point in POINTS {
        for list in ["enabled", "disabled"] {
            leave_out_of(old, point, list);
        }
    }
    let configs = old.profile.get("pluginConfig").map_or(&[][..], |configs| configs.items());
    let names: Vec<String> = configs.iter().filter_map(tree::name_of).map(str::to_owned).collect();
    for (index, name) in names.iter().enumerate() {
        if let Some(instead) = plugin_sets::removed(name)
            && let Some(args) = old.take_arguments(name)
        {
            let message =
                format!("the arguments of {name} are left out: kube-scheduler has no such plugin any more");
            old.warn(&format!("pluginConfig[{index}]"), &args, message, instead);
        }
    }
}

fn leave_out_of(old: &mut OldProfile<'_>, point: &str, list: &str) {
    let Some(entries) = old.list_mut(point, list) else { return };
    let is_gone = |entry: &_| tree::name_of(entry).is_some_and(|name| plugin_sets::removed(name).is_some());
    let gone: Vec<_> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| is_gone(entry))
        .map(|(i, gone)| (i, gone.clone()))
        .collect();
    entries.retain(|entry| !is_gone(entry));
    for (index, entry) in gone {
        let name = tree::name_of(&entry).unwrap_or_default();
        let path = format!("plugins.{point}.{list}[{index}]");
        let instead = plugin_sets::removed(name).unwrap_or_default();
        if list == "enabled" {
            let message = format!("{name} is left out: kube-scheduler has no such plugin any more");
            old.warn(&path, &entry, message, instead);
        } else if plugin_sets::forbidden(name).is_some() {
            let message = format!("{name} is not there to be disabled any more: its volumes count elsewhere");
            old.warn(
                &path,
                &entry,
                message,
                "NodeVolumeLimits counts them; disable that if none are to count",
            );
        }
    }
}

/// Where it is not mentioned, it did its work all the same.
fn tell_default(old: &mut OldProfile<'_>, version: Version) {
    let on_by_default = matches!(version, Version::V1Beta1 | Version::V1Alpha2 | Version::V1Alpha1);
    let is_off = ["*", AVOIDS_PODS].iter().any(|name| old.names("score", "disabled", name));
    if on_by_default && !is_off && !old.names("score", "enabled", AVOIDS_PODS) {
        let message = format!(
            "{AVOIDS_PODS}, on by default in {}, is gone: nodes' preferAvoidPods annotations count no more",
            version.short_name()
        );
        let hint = plugin_sets::removed(AVOIDS_PODS).unwrap_or_default();
        old.problems.push(old.text.warning("apiVersion", message).hint(hint));
    }
}
