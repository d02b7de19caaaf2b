//! What is measured in a profile's cycles, with every series looked up once and then only written to.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use prometheus::{Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry};

use super::{
    define::{Define, exponential},
    labels::{Attempt, ExtensionPoint, Status},
};

/// The families whose series belong to a profile.
#[derive(Clone)]
pub(super) struct ProfileFamilies {
    attempts: IntCounterVec,
    attempt_duration: HistogramVec,
    point_duration: HistogramVec,
    plugin_duration: HistogramVec,
    evaluations: IntCounterVec,
    unschedulable: IntGaugeVec,
}

impl ProfileFamilies {
    pub(super) fn new(registry: &Registry) -> Self {
        let define = Define(registry);
        Self {
            attempts: define.counters(
                "scheduler_schedule_attempts_total",
                "Attempts to schedule a pod by how they ended; an error is the scheduler's fault, not the pod's.",
                &["result", "profile"],
            ),
            attempt_duration: define.histograms(
                "scheduler_scheduling_attempt_duration_seconds",
                "How long an attempt took, with binding.",
                exponential(0.001, 2.0, 15),
                &["result", "profile"],
            ),
            point_duration: define.histograms(
                "scheduler_framework_extension_point_duration_seconds",
                "How long all plugins of an extension point took together.",
                exponential(0.0001, 2.0, 12),
                &["extension_point", "status", "profile"],
            ),
            plugin_duration: define.histograms(
                "scheduler_plugin_execution_duration_seconds",
                "How long one plugin took at one extension point; measured in a tenth of the cycles.",
                exponential(0.00001, 1.5, 20),
                &["plugin", "extension_point", "status"],
            ),
            evaluations: define.counters(
                "scheduler_plugin_evaluation_total",
                "Cycles in which a plugin was evaluated at PreFilter, Filter, PreScore or Score.",
                &["plugin", "extension_point", "profile"],
            ),
            unschedulable: define.gauges(
                "scheduler_unschedulable_pods",
                "Unschedulable pods by the plugins that rejected them; a pod counts once for each of these.",
                &["plugin", "profile"],
            ),
        }
    }
}

/// What is measured in one profile's cycles. Cheap to clone and to write to.
#[derive(Clone)]
pub struct ProfileMetrics(Arc<Inner>);

struct Inner {
    name: String,
    families: ProfileFamilies,
    attempts: Vec<(IntCounter, Histogram)>,
    points: Cells,
    plugins: Vec<PluginMetrics>,
}

impl ProfileMetrics {
    pub(super) fn new(families: &ProfileFamilies, name: &str, plugins: &[&str]) -> Self {
        let attempts = Attempt::ALL.iter().map(|result| {
            let labels = [result.as_str(), name];
            let counter = families.attempts.with_label_values(&labels);
            (counter, families.attempt_duration.with_label_values(&labels))
        });
        Self(Arc::new(Inner {
            name: name.to_owned(),
            families: families.clone(),
            attempts: attempts.collect(),
            points: Cells::new(),
            plugins: plugins.iter().map(|plugin| PluginMetrics::new(families, plugin, name)).collect(),
        }))
    }

    /// The profile's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// An attempt has ended, after this long.
    pub fn attempted(&self, result: Attempt, took: Duration) {
        let (count, duration) = &self.0.attempts[result as usize];
        count.inc();
        duration.observe(took.as_secs_f64());
    }

    /// All plugins of an extension point have run.
    pub fn ran(&self, point: ExtensionPoint, status: Status, took: Duration) {
        let labels = [point.as_str(), status.as_str(), &self.0.name];
        let family = &self.0.families.point_duration;
        self.0.points.get(point, status, || family.with_label_values(&labels)).observe(took.as_secs_f64());
    }

    /// What is measured about each plugin that the profile was made with, in the order in which they were given.
    pub fn plugins(&self) -> &[PluginMetrics] {
        &self.0.plugins
    }

    /// Takes the profile's series away. What one plugin took is shared with other profiles and stays.
    pub(super) fn forget(&self) {
        // A series that was never written to is not there: nothing to tell anybody.
        let Inner { name, families, plugins, .. } = &*self.0;
        for result in Attempt::ALL {
            let _ = families.attempts.remove_label_values(&[result.as_str(), name]);
            let _ = families.attempt_duration.remove_label_values(&[result.as_str(), name]);
        }
        for point in ExtensionPoint::ALL {
            for status in Status::ALL {
                let labels = [point.as_str(), status.as_str(), name];
                let _ = families.point_duration.remove_label_values(&labels);
            }
            for PluginMetrics { plugin, .. } in plugins {
                let _ = families.evaluations.remove_label_values(&[plugin, point.as_str(), name]);
            }
        }
        for PluginMetrics { plugin, .. } in plugins {
            let _ = families.unschedulable.remove_label_values(&[plugin, name]);
        }
    }
}

/// What is measured about one plugin in one profile.
pub struct PluginMetrics {
    plugin: String,
    profile: String,
    families: ProfileFamilies,
    durations: Cells,
    evaluations: [OnceLock<IntCounter>; ExtensionPoint::ALL.len()],
    unschedulable: OnceLock<IntGauge>,
}

impl PluginMetrics {
    fn new(families: &ProfileFamilies, plugin: &str, profile: &str) -> Self {
        Self {
            plugin: plugin.to_owned(),
            profile: profile.to_owned(),
            families: families.clone(),
            durations: Cells::new(),
            evaluations: [const { OnceLock::new() }; ExtensionPoint::ALL.len()],
            unschedulable: OnceLock::new(),
        }
    }

    /// The plugin's name.
    pub fn name(&self) -> &str {
        &self.plugin
    }

    /// The plugin took this long. Call it in a tenth of the cycles: reading the clock for every plugin costs more than
    /// most plugins do.
    pub fn ran(&self, point: ExtensionPoint, status: Status, took: Duration) {
        let labels = [&self.plugin, point.as_str(), status.as_str()];
        let family = &self.families.plugin_duration;
        self.durations.get(point, status, || family.with_label_values(&labels)).observe(took.as_secs_f64());
    }

    /// The plugin had its say in a cycle: PreFilter, Filter, PreScore or Score.
    pub fn evaluated(&self, point: ExtensionPoint) {
        let labels = [&self.plugin, point.as_str(), &self.profile];
        let family = &self.families.evaluations;
        self.evaluations[point as usize].get_or_init(|| family.with_label_values(&labels)).inc();
    }

    /// So many pods more (or fewer) lie unschedulable because of this plugin.
    pub fn unschedulable_pods(&self, change: i64) {
        let family = &self.families.unschedulable;
        let labels = [&self.plugin, &self.profile];
        self.unschedulable.get_or_init(|| family.with_label_values(&labels)).add(change);
    }
}

/// A histogram for each extension point and status, made when it is first written to: most never are.
struct Cells([[OnceLock<Histogram>; Status::ALL.len()]; ExtensionPoint::ALL.len()]);

impl Cells {
    fn new() -> Self {
        Self([const { [const { OnceLock::new() }; Status::ALL.len()] }; ExtensionPoint::ALL.len()])
    }

    fn get(&self, point: ExtensionPoint, status: Status, make: impl FnOnce() -> Histogram) -> &Histogram {
        self.0[point as usize][status as usize].get_or_init(make)
    }
}
