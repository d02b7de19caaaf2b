//! What is measured of a replay, and by which names.
//!
//! The definitions that people read are in docs/replay.md.

mod meter;
mod mix;
mod pending;
mod spread;

use serde::Serialize;
use supercargo_model::Name;

pub use meter::{ClusterMeter, ResourceSample, Sample};
pub use mix::PodMix;
pub use pending::PendingTimes;
pub use spread::SpreadWatch;

/// What is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The lower, the better.
    Lower,
    /// The higher, the better.
    Higher,
    /// It depends on what one wants.
    Neither,
}

/// How a measure is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// Seconds.
    Seconds,
    /// A share of 1.
    Share,
}

/// A measure, of all resources together or of each.
#[derive(Clone, Copy, Debug)]
pub struct MeasureKind {
    /// Its name in objectives and in JSON.
    pub name: &'static str,
    /// There is one for each resource: `name[resource]`. `name` alone is the mean of them.
    pub by_resource: bool,
    /// How it is counted.
    pub unit: Unit,
    /// What is better.
    pub better: Better,
    /// What it is, in a few words.
    pub what: &'static str,
}

const fn whole(name: &'static str, unit: Unit, better: Better, what: &'static str) -> MeasureKind {
    MeasureKind { name, by_resource: false, unit, better, what }
}

const fn each(name: &'static str, better: Better, what: &'static str) -> MeasureKind {
    MeasureKind { name, by_resource: true, unit: Unit::Share, better, what }
}

/// All measures, in the order in which they are shown.
pub const MEASURES: &[MeasureKind] = &[
    whole("placed", Unit::Count, Better::Higher, "pods that got a node"),
    whole(
        "never_placed",
        Unit::Count,
        Better::Lower,
        "pods that left, or were there at the end, without a node",
    ),
    whole("pending_at_end", Unit::Count, Better::Lower, "pods that wait at the end"),
    whole("pending_mean", Unit::Seconds, Better::Lower, "mean time without a node"),
    whole("pending_p50", Unit::Seconds, Better::Lower, "median time without a node"),
    whole("pending_p90", Unit::Seconds, Better::Lower, "90th percentile of the time without a node"),
    whole("pending_p99", Unit::Seconds, Better::Lower, "99th percentile of the time without a node"),
    whole("pending_max", Unit::Seconds, Better::Lower, "longest time without a node"),
    whole("preemptions", Unit::Count, Better::Lower, "times that room was made for a pod"),
    whole("evictions", Unit::Count, Better::Lower, "pods evicted for others"),
    whole("spread_violations", Unit::Count, Better::Lower, "spread constraints that a placement broke"),
    whole("nodes_in_use", Unit::Count, Better::Neither, "nodes with a pod, mean over time"),
    each("utilisation", Better::Neither, "requested of allocatable, mean over time"),
    each("utilisation_peak", Better::Neither, "requested of allocatable, highest sample"),
    each("imbalance", Better::Lower, "standard deviation of the nodes' utilisation, mean over time"),
    each("imbalance_min", Better::Neither, "utilisation of the emptiest node, mean over time"),
    each("imbalance_max", Better::Neither, "utilisation of the fullest node, mean over time"),
    each("fragmentation", Better::Lower, "share of what is free that the trace's pods cannot use"),
    each(
        "unusable",
        Better::Lower,
        "share of what there is that is free and that the trace's pods cannot use",
    ),
];

/// The measure of a name, without resource.
pub fn measure(name: &str) -> Option<&'static MeasureKind> {
    MEASURES.iter().find(|measure| measure.name == name)
}

/// What a replay came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measures {
    /// Pods that came.
    pub pods: usize,
    /// Pods that got a node.
    pub placed: usize,
    /// Pods that left, or were there at the end, without a node.
    pub never_placed: usize,
    /// Pods that wait at the end.
    pub pending_at_end: usize,
    /// How long pods were without a node.
    pub pending_seconds: PendingTimes,
    /// How often room was made.
    pub preemptions: usize,
    /// Pods that were evicted for it.
    pub evictions: usize,
    /// Spread constraints that a placement broke.
    pub spread_violations: usize,
    /// Nodes with a pod, mean over time.
    pub nodes_in_use: f64,
    /// By resource.
    pub resources: Vec<ResourceMeasures>,
}

/// What a replay came to for one resource, as shares of 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceMeasures {
    /// The resource.
    pub resource: Name,
    /// Requested of allocatable, mean over time.
    pub utilisation: f64,
    /// The highest sample of that.
    pub utilisation_peak: f64,
    /// Standard deviation of the nodes' utilisation, mean over time.
    pub imbalance: f64,
    /// Utilisation of the emptiest node, mean over the samples.
    pub imbalance_min: f64,
    /// Utilisation of the fullest node, mean over the samples.
    pub imbalance_max: f64,
    /// Share of what is free that the trace's pods cannot use.
    pub fragmentation: f64,
    /// Share of what there is that is free and that the trace's pods cannot use.
    pub unusable: f64,
}

impl ResourceMeasures {
    fn get(&self, name: &str) -> Option<f64> {
        Some(match name {
            "utilisation" => self.utilisation,
            "utilisation_peak" => self.utilisation_peak,
            "imbalance" => self.imbalance,
            "imbalance_min" => self.imbalance_min,
            "imbalance_max" => self.imbalance_max,
            "fragmentation" => self.fragmentation,
            "unusable" => self.unusable,
            _ => return None,
        })
    }
}

impl Measures {
    /// A measure by its name; of one resource, or the mean of all. `None` if there is no such measure or resource.
    pub fn get(&self, name: &str, resource: Option<&str>) -> Option<f64> {
        if measure(name)?.by_resource {
            return self.of_resources(name, resource);
        }
        let pending = &self.pending_seconds;
        Some(match name {
            "placed" => self.placed as f64,
            "never_placed" => self.never_placed as f64,
            "pending_at_end" => self.pending_at_end as f64,
            "pending_mean" => pending.mean,
            "pending_p50" => pending.p50,
            "pending_p90" => pending.p90,
            "pending_p99" => pending.p99,
            "pending_max" => pending.max,
            "preemptions" => self.preemptions as f64,
            "evictions" => self.evictions as f64,
            "spread_violations" => self.spread_violations as f64,
            "nodes_in_use" => self.nodes_in_use,
            _ => return None,
        })
    }

    fn of_resources(&self, name: &str, resource: Option<&str>) -> Option<f64> {
        match resource {
            Some(resource) => self.resources.iter().find(|r| &*r.resource == resource)?.get(name),
            None => {
                let all: Option<Vec<f64>> = self.resources.iter().map(|r| r.get(name)).collect();
                let all = all.filter(|all| !all.is_empty())?;
                Some(all.iter().sum::<f64>() / all.len() as f64)
            }
        }
    }

    /// All measures, each with the resource that it is about.
    pub fn all(&self) -> Vec<(&'static MeasureKind, Option<&Name>, f64)> {
        let mut all = Vec::new();
        for kind in MEASURES {
            if kind.by_resource {
                let values = self.resources.iter().filter_map(|of| Some((&of.resource, of.get(kind.name)?)));
                all.extend(values.map(|(resource, value)| (kind, Some(resource), value)));
            } else {
                all.extend(self.get(kind.name, None).map(|value| (kind, None, value)));
            }
        }
        all
    }
}
