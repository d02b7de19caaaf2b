//! From default plugins and a profile's wishes to the plugins at each extension point: order and weights.

use std::collections::{BTreeMap, HashSet};

use supercargo_framework::{points::MAX_SCORE, registry::Point};
use supercargo_model::Name;

use crate::{
    defaults,
    document::{PluginFields, PluginSetFields, PluginsFields},
};

/// Disables everything that is on by default.
pub(crate) const ALL: &str = "*";

/// A plugin that is to be enabled.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    pub(crate) weight: Option<i32>,
    /// Its place in the profile, such as `plugins.score.enabled[0]`; `None` if it is on by default.
    pub(crate) written: Option<String>,
}

/// The plugins of a profile, after merging with the default ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Merged {
    /// The plugins of `multiPoint`, which serve wherever they can.
    pub(crate) multi_point: Vec<Entry>,
    /// What runs at each point, in order; weights as they are looked up for Score.
    pub(crate) points: BTreeMap<Point, Vec<Entry>>,
    /// Entries that would have a plugin run twice at a point.
    pub(crate) doubled: Vec<(Point, Entry)>,
    /// The first entry with which the total of all scores could overflow.
    pub(crate) overflow: Option<Entry>,
    /// kube-scheduler wrote the lists ([`is_spelled_out`]).
    pub(crate) spelled_out: bool,
}

/// Merges a profile's plugins with the default ones. Entries of plugins that do not exist or do not serve a
/// point must have been reported by the caller; they are passed over here.
pub(crate) fn merge(plugins: &PluginsFields, serves: &dyn Fn(&str, Point) -> bool) -> Merged {
    let multi_point = merge_multi_point(&plugins.multi_point);
    let spelled_out = is_spelled_out(plugins, serves);
    let zero = if spelled_out { Zero::IsUnset } else { Zero::Counts };
    let mut merged = Merged { spelled_out, ..Merged::default() };
    for point in Point::ALL {
        let set = plugins.at(point);
        let own: Vec<Entry> = (written(set, point.name(), zero).into_iter())
            .filter(|entry| serves(&entry.name, point))
            .collect();
        let expanded = expand(&own, &set.disabled_names(), &multi_point, &|name| serves(name, point));
        merged.doubled.extend(expanded.doubled.into_iter().map(|entry| (point, entry)));
        merged.points.insert(point, expanded.enabled);
    }
    let scores = |entry: &&Entry| serves(&entry.name, Point::Score);
    let own_scores = written(&plugins.score, Point::Score.name(), zero);
    let weights = weights(own_scores.iter().chain(&multi_point).filter(scores));
    merged.overflow = weights.overflow;
    if let Some(scores) = merged.points.get_mut(&Point::Score) {
        for entry in &mut *scores {
            entry.weight = weights.of.get(&entry.name).copied();
        }
        // Written out with a negative weight in front, the others would count as an overflow; sums do not mind the order.
        scores.sort_by_key(|entry| entry.weight.is_some_and(i32::is_negative));
    }
    merged.multi_point = multi_point;
    merged
}

impl PluginSetFields {
    pub(crate) fn disabled_names(&self) -> HashSet<&str> {
        self.disabled.iter().map(|plugin| &*plugin.name).collect()
    }
}

/// What a weight of 0 says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Zero {
    /// That the score counts for nothing.
    Counts,
    /// That no weight was given, as in kube-scheduler.
    IsUnset,
}

/// Whether kube-scheduler wrote a profile's lists (`--write-config-to`): it gives every entry a weight, 0 if it has none,
/// also where a weight says nothing. People do not.
fn is_spelled_out(plugins: &PluginsFields, serves: &dyn Fn(&str, Point) -> bool) -> bool {
    let is_given = |plugin: &PluginFields| plugin.weight.is_some();
    let is_idle = |plugin: &PluginFields| plugin.weight == Some(0);
    let never_scores = |plugin: &PluginFields| !serves(&plugin.name, Point::Score);
    let points = Point::ALL.map(|point| (Some(point), plugins.at(point)));
    let mut sets = points.into_iter().chain([(None, &plugins.multi_point)]);
    let says_nothing = sets.clone().any(|(point, set)| {
        let on = set.enabled.iter().filter(|plugin| match point {
            Some(point) => point != Point::Score,
            None => never_scores(plugin),
        });
        on.chain(&set.disabled).any(is_idle)
    });
    says_nothing && sets.all(|(_, set)| set.enabled.iter().chain(&set.disabled).all(is_given))
}

fn written(set: &PluginSetFields, point: &str, zero: Zero) -> Vec<Entry> {
    let enabled = set.enabled.iter().enumerate();
    enabled
        .map(|(index, plugin)| Entry {
            name: plugin.name.as_str().into(),
            weight: plugin.weight.filter(|weight| *weight != 0 || zero == Zero::Counts),
            written: Some(format!("plugins.{point}.enabled[{index}]")),
        })
        .collect()
}

/// A default plugin that is named again keeps its place and takes what is said of it; others come after the
/// default ones. Most plugins there do not score, so 0 is no weight, as in kube-scheduler.
fn merge_multi_point(set: &PluginSetFields) -> Vec<Entry> {
    let own = written(set, "multiPoint", Zero::IsUnset);
    let mut own: Vec<Option<Entry>> = own.into_iter().map(Some).collect();
    let disabled = set.disabled_names();
    let mut merged = Vec::new();
    if !disabled.contains(ALL) {
        for (name, weight) in defaults::PLUGINS {
            if disabled.contains(name) {
                continue;
            }
            let names_it = |entry: &Option<Entry>| entry.as_ref().is_some_and(|entry| &*entry.name == name);
            let again = own.iter().rposition(names_it).and_then(|index| own[index].take());
            merged.push(again.unwrap_or_else(|| Entry { name: name.into(), weight, written: None }));
        }
    }
    merged.extend(own.into_iter().flatten());
    merged
}

struct Expanded {
    enabled: Vec<Entry>,
    doubled: Vec<Entry>,
}

/// The plugins at one point: first those that are also in `multiPoint`, in the order of the point; then the
/// other ones of `multiPoint`; then the other ones of the point.
fn expand(
    own: &[Entry],
    disabled: &HashSet<&str>,
    multi_point: &[Entry],
    serves: &dyn Fn(&str) -> bool,
) -> Expanded {
    let (own, mut doubled) = split_doubled(own.to_vec());
    if disabled.contains(ALL) {
        return Expanded { enabled: own, doubled };
    }
    let spread = multi_point.iter().filter(|entry| serves(&entry.name) && !disabled.contains(&*entry.name));
    let is_own = |entry: &Entry| own.iter().any(|other| other.name == entry.name);
    let (overridden, added): (Vec<Entry>, Vec<Entry>) = spread.cloned().partition(is_own);
    let (added, doubled_added) = split_doubled(added);
    doubled.extend(doubled_added);
    let overrides = |entry: &Entry| overridden.iter().any(|other| other.name == entry.name);
    let (mut enabled, last): (Vec<Entry>, Vec<Entry>) = own.iter().cloned().partition(overrides);
    enabled.extend(added);
    enabled.extend(last);
    Expanded { enabled, doubled }
}

/// The first entry of each name, and the others.
fn split_doubled(entries: Vec<Entry>) -> (Vec<Entry>, Vec<Entry>) {
    let mut seen = HashSet::new();
    entries.into_iter().partition(|entry| seen.insert(entry.name.clone()))
}

struct Weights {
    of: BTreeMap<Name, i32>,
    overflow: Option<Entry>,
}

/// The weight of each scoring plugin: the first that is given counts. A 0 that counts stays 0.
fn weights<'e>(entries: impl Iterator<Item = &'e Entry>) -> Weights {
    let mut weights = Weights { of: BTreeMap::new(), overflow: None };
    let mut total: i64 = 0;
    for entry in entries {
        if weights.of.contains_key(&entry.name) {
            continue;
        }
        let weight = entry.weight.unwrap_or(defaults::WEIGHT);
        weights.of.insert(entry.name.clone(), weight);
        let most = i64::from(weight) * MAX_SCORE;
        // As kube-scheduler counts: after a negative weight, what is left to the limit wraps around.
        if most > i64::MAX.wrapping_sub(total) && weights.overflow.is_none() {
            weights.overflow = Some(entry.clone());
        }
        total = total.wrapping_add(most);
    }
    weights
}
