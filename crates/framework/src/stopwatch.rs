//! How long plugins take, for whoever wants to know. The clock is theirs: there is none here.

use std::{sync::Arc, time::Duration};

use crate::{Code, event::ClusterEvent, registry::Point};

/// Takes times. A code of `None` is success.
pub trait Stopwatch: Send + Sync {
    /// Time since some start.
    fn now(&self) -> Duration;

    /// A plugin has had its say.
    fn plugin(&self, profile: &str, plugin: &str, point: Point, code: Option<Code>, took: Duration);

    /// A plugin has normalized its scores.
    fn normalized(&self, profile: &str, plugin: &str, code: Option<Code>, took: Duration);

    /// All plugins of a point have had theirs.
    fn point(&self, profile: &str, point: Point, code: Option<Code>, took: Duration);

    /// A plugin has looked for pods whose eviction could make room, also in vain.
    fn preemption_attempted(&self);

    /// A plugin has said whether an event helps a pod that it refused.
    fn hint(&self, plugin: &str, event: ClusterEvent, helps: bool, took: Duration);
}

/// A stopwatch that may be missing.
pub(crate) type Taken = std::sync::OnceLock<Arc<dyn Stopwatch>>;
