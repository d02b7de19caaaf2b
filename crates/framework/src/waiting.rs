//! The pods that Permit plugins make wait, for whoever lets them through: gang plugins let the members of a group through
//! together.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use supercargo_model::{Name, Pod};

use crate::{handle::Effect, points::PermitHandle, preemption::Rejection, status::Status};

/// No plugin makes a pod wait for longer.
pub(crate) const MAX_PERMIT_WAIT: Duration = Duration::from_secs(15 * 60);

/// A plugin that makes a pod wait for its permission.
pub struct PermitWait {
    /// The plugin's name.
    pub plugin: Name,
    /// How long at most.
    pub timeout: Duration,
    /// Its permission.
    pub handle: PermitHandle,
}

impl PermitWait {
    /// Waits for the permission, unless the time is up before.
    pub async fn permission(&self, mut timeout: Effect<'static, ()>) -> Result<(), Rejection> {
        let mut handle = self.handle.clone();
        let said = poll_fn(|context| match Pin::new(&mut handle).poll(context) {
            Poll::Ready(said) => Poll::Ready(Some(said)),
            Poll::Pending => timeout.as_mut().poll(context).map(|()| None),
        });
        let said = said.await.unwrap_or_else(|| Err(self.late()));
        said.map_err(|status| Rejection { plugin: self.plugin.clone(), status })
    }

    fn late(&self) -> Status {
        let span = go_duration(self.timeout);
        let plugin = &self.plugin;
        Status::unschedulable(format!("rejected due to timeout after waiting {span} at plugin {plugin}"))
    }
}

/// A span as Go writes it: `1m30s`.
fn go_duration(span: Duration) -> String {
    let (hours, minutes) = (span.as_secs() / 3600, span.as_secs() / 60 % 60);
    let seconds = (span - Duration::from_secs(span.as_secs() / 60 * 60)).as_secs_f64();
    match (hours, minutes) {
        (0, 0) if span.is_zero() => "0s".to_owned(),
        (0, 0) if seconds < 1.0 => format!("{}ms", span.as_secs_f64() * 1000.0),
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// An assumed pod that waits for the permission of Permit plugins.
#[derive(Clone, Debug)]
pub struct WaitingPod {
    /// The pod.
    pub pod: Arc<Pod>,
    /// The node that is kept for it.
    pub node: Name,
    /// The plugins that make it wait, each with the way to its permission.
    pub permits: Vec<(Name, PermitHandle)>,
}

impl WaitingPod {
    /// Gives the permission of one plugin. The pod goes on when it has all.
    pub fn allow(&self, plugin: &str) {
        self.permits.iter().filter(|(name, _)| **name == *plugin).for_each(|(_, permit)| permit.allow());
    }

    /// Refuses the pod, in the name of a plugin.
    pub fn reject(&self, plugin: &str, why: impl Into<String>) {
        let why = why.into();
        if let Some((_, permit)) = self.permits.iter().find(|(name, _)| **name == *plugin) {
            permit.refuse(Status::unschedulable(why));
        } else if let Some((_, permit)) = self.permits.first() {
            permit.refuse(Status::unschedulable(why));
        }
    }
}

/// The pods that wait for permissions, by uid. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct WaitingPods(Arc<Mutex<BTreeMap<Name, WaitingPod>>>);

impl WaitingPods {
    /// A pod begins to wait.
    pub fn insert(&self, waiting: WaitingPod) {
        self.locked().insert(waiting.pod.uid.clone(), waiting);
    }

    /// A pod waits no longer.
    pub fn remove(&self, uid: &str) {
        self.locked().remove(uid);
    }

    /// A pod, if it waits.
    pub fn get(&self, uid: &str) -> Option<WaitingPod> {
        self.locked().get(uid).cloned()
    }

    /// All of them, by uid.
    pub fn list(&self) -> Vec<WaitingPod> {
        self.locked().values().cloned().collect()
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<Name, WaitingPod>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_go_does() {
        let cases = [
            (0, "0s"),
            (250, "250ms"),
            (1_000, "1s"),
            (1_500, "1.5s"),
            (60_000, "1m0s"),
            (5_430_000, "1h30m30s"),
        ];
        for (millis, written) in cases {
            assert_eq!(go_duration(Duration::from_millis(millis)), written);
        }
    }
}
