//! What a configuration amounts to, for people and for programs.

use std::collections::BTreeMap;

use serde::Serialize;
use supercargo_framework::registry::Point;

use crate::{Configuration, ProfileConfiguration};

/// The plugins that run at each point, with what else decides about scheduling.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Effective {
    /// How many things may be done at once.
    pub parallelism: u32,
    /// 0: by the size of the cluster.
    pub percentage_of_nodes_to_score: u32,
    /// How long a pod waits after its first failure.
    pub pod_initial_backoff_seconds: u64,
    /// How long a pod waits at most.
    pub pod_max_backoff_seconds: u64,
    /// By scheduler name, and then by the name of the point; points without plugins are absent.
    pub profiles: BTreeMap<String, BTreeMap<&'static str, Vec<EffectivePlugin>>>,
}

/// A plugin at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EffectivePlugin {
    /// Its name.
    pub name: String,
    /// How much its score counts; only at Score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
}

/// A line of the table of plugins by point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRow {
    /// The scheduler name of the profile.
    pub profile: String,
    /// The point's name.
    pub point: &'static str,
    /// The plugins there, in order, with their weights at Score.
    pub plugins: Vec<EffectivePlugin>,
}

impl Configuration {
    /// The plugins by profile and point, and the numbers beside them.
    pub fn effective(&self) -> Effective {
        let points = |profile: &ProfileConfiguration| {
            let rows = Point::ALL.map(|point| (point.name(), plugins(profile, point)));
            rows.into_iter().filter(|(_, plugins)| !plugins.is_empty()).collect()
        };
        Effective {
            parallelism: self.parallelism,
            percentage_of_nodes_to_score: self.percentage_of_nodes_to_score,
            pod_initial_backoff_seconds: self.pod_initial_backoff_seconds,
            pod_max_backoff_seconds: self.pod_max_backoff_seconds,
            profiles: (self.profiles.iter())
                .map(|profile| (profile.scheduler_name.to_string(), points(profile)))
                .collect(),
        }
    }

    /// The plugins in the order of the profiles, and in each in the order in which a pod passes the points.
    pub fn table(&self) -> Vec<TableRow> {
        let rows = |profile: &ProfileConfiguration| {
            Point::ALL.map(|point| TableRow {
                profile: profile.scheduler_name.to_string(),
                point: point.name(),
                plugins: plugins(profile, point),
            })
        };
        let all = self.profiles.iter().flat_map(rows);
        all.filter(|row| !row.plugins.is_empty()).collect()
    }
}

impl Effective {
    /// As JSON, for programs.
    pub fn to_json(&self) -> String {
        // Texts and numbers alone cannot fail to be written.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn plugins(profile: &ProfileConfiguration, point: Point) -> Vec<EffectivePlugin> {
    let choices = profile.at(point).iter();
    choices
        .map(|choice| EffectivePlugin {
            name: choice.plugin.to_string(),
            weight: (point == Point::Score).then_some(choice.weight),
        })
        .collect()
}
