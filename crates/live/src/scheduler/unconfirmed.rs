//! Bindings that somebody says were made, and that the watch does not show: they are looked up, and what was not bound is
//! taken back. An extender can be wrong about what it has done, and its pod would be held on its node for ever.

use std::time::Duration;

use supercargo_model::{Kind, Name, Pod, object::Object};

use super::{Assumed, Report, Scheduler, binding::BindingFailure};
use crate::{requests, world::SharedWorld};

/// How far the watch may be behind before a binding is looked up.
const WATCH_DELAY: Duration = Duration::from_secs(30);
/// How often it is looked for such bindings.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How many of them are looked up at once. If there are more, it is the watch that is late.
const MAX_LOOKED_UP: usize = 16;

impl Scheduler {
    /// Looks bindings up that have been made for some time, and that the watch has not shown.
    pub(super) fn look_up_unconfirmed(&mut self, now: Duration) {
        if now < self.next_look_up {
            return;
        }
        self.next_look_up = now + LOOK_EVERY;
        let is_late = |assumed: &&Assumed| assumed.ended.is_some_and(|ended| now - ended >= WATCH_DELAY);
        let mut late: Vec<&Assumed> = self.assumed.values().filter(is_late).collect();
        late.sort_unstable_by_key(|assumed| (assumed.ended, &assumed.pod.uid));
        for assumed in late.into_iter().take(MAX_LOOKED_UP) {
            let (world, report_to) = (self.world.clone(), self.report_to.clone());
            let pod = assumed.pod.clone();
            self.world.spawn(Box::pin(async move {
                if is_without_node(&world, &pod).await {
                    // Nobody listens any more when the scheduler has stopped.
                    let _ = report_to.send(Report::NotBound(pod.uid.clone()));
                }
            }));
        }
    }

    /// A binding that was said to be made was not.
    pub(super) fn was_never_bound(&mut self, uid: &Name) {
        let Some(assumed) = self.assumed.get(uid).filter(|assumed| assumed.ended.is_some()) else { return };
        let (pod, node) = (assumed.pod.clone(), assumed.node.clone());
        let binder = self.extenders.binder_of(&pod);
        let who = binder.map_or_else(|| "it".to_owned(), |extender| format!("extender {}", extender.name()));
        let message =
            format!("{who} said that the pod was bound to {node}, and the API server has it on no node");
        tracing::warn!(pod = %pod.key(), %node, "{message}");
        self.is_not_bound(&pod, &node, BindingFailure::error(message));
    }
}

/// Whether the server has a pod, and on no node.
async fn is_without_node(world: &SharedWorld, pod: &Pod) -> bool {
    let Ok(reply) = world.send(requests::get_pod(&pod.key())).await else { return false };
    let read = Object::from_json(Kind::Pod, &[], &reply.body).ok().filter(|_| reply.is_success());
    matches!(read, Some(Object::Pod(read)) if read.uid == pod.uid && read.node.is_none())
}
