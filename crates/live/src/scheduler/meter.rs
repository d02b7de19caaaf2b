//! What the scheduler tells about its own work, for whoever counts it.

use std::{sync::Arc, time::Duration};

use supercargo_engine::{Counts, Incoming};
use supercargo_framework::{Code, registry::Point, stopwatch::Stopwatch};
use supercargo_model::Name;

use super::preemption::DEFAULT_PREEMPTION;
use crate::world::SharedWorld;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempted {
    /// The pod is bound.
    Scheduled,
    /// No node is left for it.
    Unschedulable,
    /// Something broke.
    Error,
}

/// How a decision was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// From what is kept about the pod's shape.
    Memory,
    /// Every plugin was asked.
    Asking,
}

/// How things stand.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// How many pods wait where.
    pub waiting: Counts,
    /// How many pods came into which queue, and why, since the start.
    pub incoming: Incoming,
    /// How many waiting pods each plugin has refused: scheduler name, plugin, pods.
    pub refused: Vec<(Name, Name, usize)>,
    /// Pods that were bound although no event had woken them, since the start.
    pub after_flush: u64,
    /// Events that were dropped, since the start.
    pub events_dropped: u64,
    /// Nodes that are known.
    pub nodes: usize,
    /// Pods that are known to be on nodes.
    pub pods: usize,
    /// Pods that are on their nodes only in our books so far.
    pub assumed: usize,
}

/// Counts what the scheduler does. Everything may be left out.
pub trait Meter: Send + Sync {
    /// A cycle has decided.
    fn decided(&self, _profile: &str, _by: DecidedBy, _took: Duration) {}

    /// An attempt has ended, from the queue to the binding.
    fn attempted(&self, _profile: &str, _how: Attempted, _took: Duration) {}

    /// A pod was bound, in so many attempts, so long after it was first seen.
    fn scheduled(&self, _attempts: u32, _since_first_seen: Duration) {}

    /// Binding took so long.
    fn bound(&self, _profile: &str, _success: bool, _took: Duration) {}

    /// Somebody looked for victims that could make room for a pod, also in vain.
    fn preemption_attempted(&self) {}

    /// Room is made for a pod by evicting so many others.
    fn preempts(&self, _victims: usize) {}

    /// The evictions for a pod have ended.
    fn evicted(&self, _success: bool, _took: Duration) {}

    /// A plugin took so long; taken in one cycle of many. No code is success.
    fn plugin(&self, _profile: &str, _plugin: &str, _point: Point, _code: Option<Code>, _took: Duration) {}

    /// All plugins of a point took so long together; taken in one cycle of many.
    fn point(&self, _profile: &str, _point: Point, _code: Option<Code>, _took: Duration) {}

    /// A text of DynamicScoring could not be read.
    fn preferences_are_broken(&self) {}

    /// How things stand; told about once a second.
    fn stands(&self, _standing: &Standing) {}

    /// Whether we lead.
    fn leads(&self, _leads: bool) {}
}

/// Counts nothing.
pub struct NoMeter;

impl Meter for NoMeter {}

/// Takes the plugins' times by the world's clock.
pub(super) struct Timed {
    pub(super) world: SharedWorld,
    pub(super) meter: Arc<dyn Meter>,
}

impl Stopwatch for Timed {
    fn now(&self) -> Duration {
        self.world.uptime()
    }

    fn plugin(&self, profile: &str, plugin: &str, point: Point, code: Option<Code>, took: Duration) {
        if point == Point::PostFilter && plugin == DEFAULT_PREEMPTION {
            self.meter.preemption_attempted();
        }
        self.meter.plugin(profile, plugin, point, code, took);
    }

    fn point(&self, profile: &str, point: Point, code: Option<Code>, took: Duration) {
        self.meter.point(profile, point, code, took);
    }
}
