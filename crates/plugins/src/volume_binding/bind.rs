//! Binds a pod's volumes before the pod itself is bound: writes the plan, and waits for the volume controllers.
//!
//! There is no way back for what has been written, and none is needed: a volume that was given to a claim is the one that
//! the next attempt plans for it, and a claim that was sent to a node stays there until its provisioner gives up.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::{Either, select};
use supercargo_framework::{
    Status,
    handle::{Dependency, HandleRef, View},
};
use supercargo_model::{Cluster, Key, Name, Pod, object::Kind};

use super::{
    plan::VolumePlan,
    progress::{Unbound, WrittenPlan, check_bound},
    write::write,
};

/// How long the watch gets to show what was written before it is first looked at: kube-scheduler's figure.
const FIRST_LOOK: Duration = Duration::from_secs(1);

/// What is to be done for a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct VolumeBindingRequest {
    /// The pod.
    pub pod: Arc<Pod>,
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

impl From<Status> for VolumeFailure {
    fn from(status: Status) -> Self {
        Self::Refused(status.message())
    }
}

/// Writes what was planned, and waits for others to do their part.
pub async fn bind(handle: &HandleRef, order: VolumeBindingRequest) -> Result<(), VolumeFailure> {
    let connected = handle.connected()?;
    let written = write(&**connected, &order).await?;
    let bound = Box::pin(until_bound(handle, order.pod.uid.clone(), written));
    match select(bound, connected.sleep(order.bind_timeout)).await {
        Either::Left((bound, _)) => bound,
        Either::Right(_) => Err(VolumeFailure::TimedOut),
    }
}

/// Waits until the scheduler sees that the volumes are bound, or never will be.
async fn until_bound(handle: &HandleRef, uid: Name, written: WrittenPlan) -> Result<(), VolumeFailure> {
    handle.sleep(FIRST_LOOK).await;
    let look =
        move |view: &View<'_>| match check_bound(view.cluster, &written, view.pending.find(&uid).is_some()) {
            Ok(()) => Ok(Ok(())),
            Err(Unbound::Never(why)) => Ok(Err(VolumeFailure::Undone(why))),
            Err(Unbound::NotYet) => Err(dependencies(view.cluster, &uid, &written)),
        };
    handle.until(look).await?
}

/// What the binding of the volumes depends on.
fn dependencies(cluster: &Cluster, uid: &Name, written: &WrittenPlan) -> Vec<Dependency> {
    let volume = |name: &Name| Dependency::Object(Kind::PersistentVolume, Key::new("", name.clone()));
    let claim = |key: &Key| Dependency::Object(Kind::PersistentVolumeClaim, key.clone());
    let node = Key::new("", written.node.clone());
    let mut all = vec![
        Dependency::PendingPod(uid.clone()),
        Dependency::Object(Kind::Node, node.clone()),
        Dependency::Object(Kind::CsiNode, node),
    ];
    for (name, id, _) in &written.bound {
        all.extend([volume(name), claim(&id.key)]);
    }
    for (id, _) in &written.provisioned {
        all.push(claim(&id.key));
        // A claim can name its volume before the volume can be seen.
        let named = cluster.claim(&id.key).map(|claim| &claim.volume).filter(|name| !name.is_empty());
        all.extend(named.map(volume));
    }
    all
}
