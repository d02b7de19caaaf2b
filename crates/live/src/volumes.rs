//! Writes into the API server what was planned for a pod's volumes, before the pod itself is bound.
//!
//! There is no way back for what has been written, and none is needed: a volume that was given to a claim is the one that
//! the next attempt plans for it, and a claim that was sent to a node stays there until its provisioner gives up.

mod edit;
mod write;

#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use supercargo_model::{Key, Name};
use supercargo_plugins::volume_binding::{VolumePlan, WrittenPlan};

use crate::world::World;

/// How long the watch gets to show what was written before it is first looked at: kube-scheduler's figure.
pub const FIRST_LOOK: Duration = Duration::from_secs(1);

/// What is to be done for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The pod.
    pub pod: Key,
    /// The node that was chosen for it.
    pub node: Name,
    /// What was planned for the pod on that node.
    pub plan: VolumePlan,
    /// How long to wait for the others, once everything is written. Zero is no wait: then only a later attempt, which
    /// finds everything bound, can succeed.
    pub bind_timeout: Duration,
}

/// Why a pod's volumes are not bound. The pod is tried again, unless it is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeFailure {
    /// Somebody has changed, since the plan was made, what was to be written.
    Conflict(String),
    /// The server does not do it, or cannot be reached.
    Refused(String),
    /// It was written, and came to nothing: the provisioner has given up, a claim is gone, the node suits no more.
    Undone(String),
    /// The others have not done their part in time.
    TimedOut,
    /// Another scheduler leads, so that nothing may be written.
    NotLeading,
}

impl fmt::Display for VolumeFailure {
    /// In kube-scheduler's words, where it has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(why) | Self::Refused(why) => f.write_str(why),
            Self::Undone(why) => write!(f, "binding volumes: {why}"),
            Self::TimedOut => f.write_str("binding volumes: context deadline exceeded"),
            Self::NotLeading => f.write_str("another scheduler leads"),
        }
    }
}

impl std::error::Error for VolumeFailure {}

/// Writes what was planned. `may_write` is asked right before everything that is written.
pub async fn write(
    world: &dyn World,
    order: &Order,
    may_write: &(dyn Fn() -> bool + Send + Sync),
) -> Result<WrittenPlan, VolumeFailure> {
    write::Writer { world, may_write }.write(order).await
}
