//! What the scheduler tells about its own work, for whoever counts it.

use std::{any::Any, collections::BTreeMap, sync::Arc, time::Duration};

use supercargo_engine::{Incoming, QueueCounts, QueueingCause};
use supercargo_framework::{
    Code, event::ClusterEvent, handle::AwaitOutcome, registry::Point, stopwatch::Stopwatch,
};
use supercargo_model::{Name, Pod};

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

/// A step of binding volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeStage {
    /// It is kept for a pod.
    Assume,
    /// It is bound.
    Bind,
}

/// What runs beside the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The binding cycle of a pod.
    Binding,
    /// The eviction of a pod's victims.
    Preemption,
}

/// Counts a task until it is dropped.
pub type Counted = Option<Box<dyn Any + Send + Sync>>;

/// How things stand.
#[derive(Clone, Debug, Default)]
pub struct QueueStats {
    /// How many pods wait where.
    pub waiting: QueueCounts,
    /// How many pods came into which queue, and why, since the start.
    pub incoming: Incoming,
    /// What is remembered for the pods in flight, and how many of each.
    pub in_flight: BTreeMap<QueueingCause, usize>,
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
    /// Assumed pods: on their nodes only in our cache so far.
    pub assumed: usize,
}

/// Counts what the scheduler does. Everything may be left out.
pub trait Meter: Send + Sync {
    /// An attempt of a pod begins, or goes on after extenders have answered: the points of the scheduling cycle that follow
    /// are its, until this is told of another.
    fn tries(&self, _pod: &Pod, _attempt: u32) {}

    /// A step of a pod's binding cycle has ended. No code is success.
    fn binding_step(&self, _pod: &Pod, _point: Point, _code: Option<Code>, _took: Duration) {}

    /// An attempt of a pod has ended, on a node if it is bound.
    fn ended(&self, _pod: &Pod, _node: Option<&Name>, _how: Attempted, _took: Duration) {}

    /// A cycle has decided.
    fn decided(&self, _profile: &str, _by: DecidedBy, _took: Duration) {}

    /// An attempt has ended, from the queue to the binding.
    fn attempted(&self, _profile: &str, _how: Attempted, _took: Duration) {}

    /// A pod was bound, in so many attempts, so long after it was first seen.
    fn scheduled(&self, _attempts: u32, _since_first_seen: Duration) {}

    /// Somebody looked for victims that could make room for a pod, also in vain.
    fn preemption_attempted(&self) {}

    /// Room is made for a pod by evicting so many others.
    fn preempts(&self, _victims: usize) {}

    /// The evictions for a pod have ended.
    fn evicted(&self, _success: bool, _took: Duration) {}

    /// A pod has waited so long for permission. No code is success.
    fn waited_on_permit(&self, _code: Option<Code>, _took: Duration) {}

    /// A step of binding volumes has failed.
    fn volumes_failed(&self, _stage: VolumeStage) {}

    /// A claim for a pod's extended resources was made, or could not be.
    fn claim_created(&self, _success: bool) {}

    /// A pod of a profile has waited for a driver's device; whether it was this one that had to become ready.
    fn device_awaited(
        &self,
        _profile: &str,
        _driver: &str,
        _has_conditions: bool,
        _outcome: AwaitOutcome,
        _took: Duration,
    ) {
    }

    /// Something that became known about the cluster has been taken in.
    fn handled(&self, _event: ClusterEvent, _took: Duration) {}

    /// A plugin has said whether an event helps a pod that it refused.
    fn hinted(&self, _plugin: &str, _event: ClusterEvent, _helps: bool, _took: Duration) {}

    /// The deciding task has run for so long before the watches, and whatever else shares its thread, got their turn.
    fn gave_way(&self, _after: Duration) {}

    /// A task runs beside the scheduler for as long as the answer is held.
    fn task(&self, _task: Task) -> Counted {
        None
    }

    /// A plugin took so long, wherever it was asked as such. No code is success.
    fn plugin(&self, _profile: &str, _plugin: &str, _point: Point, _code: Option<Code>, _took: Duration) {}

    /// A plugin took so long to normalize its scores. No code is success.
    fn normalized(&self, _profile: &str, _plugin: &str, _code: Option<Code>, _took: Duration) {}

    /// All plugins of a point took so long together; on the fast path, the part of it that stands for them.
    fn point(&self, _profile: &str, _point: Point, _code: Option<Code>, _took: Duration) {}

    /// What an operator wrote for a plugin could not be read.
    fn input_is_unreadable(&self) {}

    /// What an operator is to write for a plugin is not there, or is there again.
    fn input_is_missing(&self, _is_missing: bool) {}

    /// How things stand; told about once a second.
    fn queue_stats(&self, _standing: &QueueStats) {}

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
        self.meter.plugin(profile, plugin, point, code, took);
    }

    fn normalized(&self, profile: &str, plugin: &str, code: Option<Code>, took: Duration) {
        self.meter.normalized(profile, plugin, code, took);
    }

    fn point(&self, profile: &str, point: Point, code: Option<Code>, took: Duration) {
        let status = code.map_or("Success", Code::name);
        tracing::debug!(profile, extension_point = point.name(), status, ?took, "extension point");
        self.meter.point(profile, point, code, took);
    }

    fn preemption_attempted(&self) {
        self.meter.preemption_attempted();
    }

    fn hint(&self, plugin: &str, event: ClusterEvent, helps: bool, took: Duration) {
        self.meter.hinted(plugin, event, helps, took);
    }
}
