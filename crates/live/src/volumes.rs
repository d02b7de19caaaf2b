//! Binds a pod's volumes before the pod itself is bound: writes what was planned for its node, and waits until the volume
//! controller and the provisioners have done their part.
//!
//! There is no way back for what has been written, and none is needed: a volume that was given to a claim is the one that
//! the next attempt plans for it, and a claim that was sent to a node stays there until its provisioner gives up.

mod edit;
mod wait;
mod write;

#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use futures_util::future::{Either, select};
use supercargo_model::{Key, Name};
use supercargo_plugins::volume_binding::VolumePlan;
use tokio::sync::watch;

use crate::world::{World, within};

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

/// What the scheduler tells a binding that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Counts changes of the order's claims and volumes, so that they are looked at now and not some time later.
    pub news: u64,
    /// The pod is gone: nobody needs its volumes any more.
    pub pod_gone: bool,
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
    /// The pod is gone, or the scheduler has let go of the binding.
    PodGone(Key),
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
            Self::PodGone(pod) => {
                let name = &pod.name;
                write!(f, "binding volumes: pod does not exist any more: pod {name:?} not found")
            }
            Self::NotLeading => f.write_str("another scheduler leads"),
        }
    }
}

impl std::error::Error for VolumeFailure {}

/// Binds a pod's volumes. `may_write` is asked right before everything that is written; dropping the other end of `word`
/// calls the binding off.
pub async fn bind(
    world: &dyn World,
    order: &Order,
    may_write: &(dyn Fn() -> bool + Send + Sync),
    word: watch::Receiver<Word>,
) -> Result<(), VolumeFailure> {
    let mut called_off = word.clone();
    let pod_gone = Box::pin(called_off.wait_for(|word| word.pod_gone));
    let work = Box::pin(write_and_wait(world, order, may_write, word));
    match select(pod_gone, work).await {
        Either::Left(_) => Err(VolumeFailure::PodGone(order.pod.clone())),
        Either::Right((outcome, _)) => outcome,
    }
}

async fn write_and_wait(
    world: &dyn World,
    order: &Order,
    may_write: &(dyn Fn() -> bool + Send + Sync),
    word: watch::Receiver<Word>,
) -> Result<(), VolumeFailure> {
    write::Writer { world, may_write }.write(order).await?;
    let bound = Box::pin(wait::until_bound(world, order, word));
    within(world, order.bind_timeout, bound).await.unwrap_or(Err(VolumeFailure::TimedOut))
}
