//! Ways to score resources were plugins of their own up to v1beta1, and are a strategy of NodeResourcesFit now: one in a
//! profile.

use supercargo_manifest::Value;

use super::OldProfile;
use crate::{
    header::Version,
    merge::ALL,
    tree::{self, At},
};

const FIT: &str = "NodeResourcesFit";
const LEAST: &str = "NodeResourcesLeastAllocated";
const MOST: &str = "NodeResourcesMostAllocated";

/// The plugins, with their strategies.
const STRATEGIES: [(&str, &str); 3] = [
    (LEAST, "LeastAllocated"),
    (MOST, "MostAllocated"),
    ("RequestedToCapacityRatio", "RequestedToCapacityRatio"),
];

/// A way to score that held.
struct Held {
    plugin: &'static str,
    strategy: &'static str,
    weight: i64,
    /// Its entry in the list, if it was not just the default.
    entry: Option<(usize, Value)>,
}

/// Makes the strategy that held, by default or by name, one of NodeResourcesFit.
pub(super) fn rename(old: &mut OldProfile<'_>, version: Version) {
    let mut held = held(old, version);
    // The largest weight counts most; of equal ones, the first.
    held.sort_by_key(|held| std::cmp::Reverse(held.weight));
    let mut held = held.into_iter();
    let kept = held.next();
    held.for_each(|other| tell_left_out(old, &other));
    let is_other = |entry: &Value| {
        let name = tree::name_of(entry).unwrap_or_default();
        STRATEGIES.iter().any(|(plugin, _)| *plugin == name)
            && kept.as_ref().is_none_or(|kept| kept.plugin != name || kept.entry.is_none())
    };
    let was_mentioned =
        ["enabled", "disabled"].iter().any(|list| old.listed("score", list).iter().any(is_other));
    for list in ["enabled", "disabled"] {
        if let Some(entries) = old.list_mut("score", list) {
            entries.retain(|entry| !is_other(entry));
        }
    }
    match &kept {
        Some(kept) => score_by(old, kept),
        None if was_mentioned
            && !old.names("score", "disabled", ALL)
            && !old.names("score", "enabled", FIT) =>
        {
            let at = At(old.profile.at);
            old.add("score", "disabled", at.map([("name", at.text(FIT))]));
        }
        None => {}
    }
    for (plugin, _) in STRATEGIES {
        old.take_arguments(plugin);
    }
}

/// The ways to score resources that held in the old version.
fn held(old: &OldProfile<'_>, version: Version) -> Vec<Held> {
    let enabled = old.listed("score", "enabled");
    let mut held = Vec::new();
    for (plugin, strategy) in STRATEGIES {
        let entry = enabled.iter().enumerate().find(|(_, entry)| tree::name_of(entry) == Some(plugin));
        let is_off = [ALL, plugin].iter().any(|name| old.names("score", "disabled", name));
        if entry.is_some() || plugin == default_of(old, version) && !is_off {
            let weight = entry.and_then(|(_, entry)| entry.get("weight")?.as_i64()).unwrap_or(1);
            held.push(Held { plugin, strategy, weight, entry: entry.map(|(i, entry)| (i, entry.clone())) });
        }
    }
    held
}

/// What scored resources when nothing was said; nothing of these from v1beta2 on.
fn default_of(old: &OldProfile<'_>, version: Version) -> &'static str {
    let configs = old.profile.get("pluginConfig").map_or(&[][..], Value::items);
    let fit = configs.iter().find(|config| tree::name_of(config) == Some(FIT));
    let strategy = fit.and_then(|fit| fit.get("args")?.get("scoringStrategy")?.get("type")?.as_str());
    match (version, strategy) {
        (Version::V1 | Version::V1Beta3 | Version::V1Beta2, _) => "",
        // What the provider of an algorithm has become.
        (_, Some("MostAllocated")) => MOST,
        _ => LEAST,
    }
}

/// Puts NodeResourcesFit in the place of the plugin, with its arguments.
fn score_by(old: &mut OldProfile<'_>, kept: &Held) {
    let arguments = old.take_arguments(kept.plugin);
    for entry in old.list_mut("score", "enabled").into_iter().flatten() {
        if tree::name_of(entry) == Some(kept.plugin) {
            tree::set(entry, "name", At(entry.at).text(FIT));
        }
    }
    let is_default = kept.plugin == LEAST && arguments.is_none();
    if is_default {
        return;
    }
    let at = At(old.profile.at);
    let given = |field: &str| arguments.as_ref().and_then(|args| args.get(field)).cloned();
    let both = || ["cpu", "memory"].map(|name| at.map([("name", at.text(name)), ("weight", at.number(1))]));
    let resources = given("resources").unwrap_or_else(|| at.list(both()));
    let mut strategy = at.map([("type", at.text(kept.strategy)), ("resources", resources)]);
    if let Some(shape) = given("shape") {
        tree::set(&mut strategy, "requestedToCapacityRatio", at.map([("shape", shape)]));
    }
    let empty = || supercargo_manifest::ValueKind::List(Vec::new());
    tree::entry(old.profile, "pluginConfig", empty());
    let Some(configs) = tree::list_mut(old.profile, "pluginConfig") else { return };
    let place = configs.iter().position(|config| tree::name_of(config) == Some(FIT)).unwrap_or_else(|| {
        configs.push(at.map([("name", at.text(FIT)), ("args", at.map([]))]));
        configs.len() - 1
    });
    let map = supercargo_manifest::ValueKind::Map(Vec::new());
    if let Some(args) = tree::entry(&mut configs[place], "args", map) {
        tree::set(args, "scoringStrategy", strategy);
    }
}

fn tell_left_out(old: &mut OldProfile<'_>, other: &Held) {
    let message = format!(
        "{} is left out, and with it the weight {}: in v1 a profile has one way to score resources",
        other.plugin, other.weight
    );
    let hint = format!(
        "Supercargo still has the plugin: enable {} at score if kube-scheduler need not read the file",
        other.plugin
    );
    match &other.entry {
        Some((index, entry)) => old.warn(&format!("plugins.score.enabled[{index}]"), entry, message, &hint),
        None => old.problems.push(old.text.warning("apiVersion", message).hint(hint)),
    }
}
