//! Carries a decision out: waits for permission, gets the volumes ready, and binds the pod; then says how it went.

use std::{cell::RefCell, sync::Arc, time::Duration};

use supercargo_engine::{EngineProfile, Failure, Popped};
use supercargo_extender::{BindError, Extenders};
use supercargo_framework::{
    Status, Verdict,
    points::{BindTarget, Binding, Bound as BoundBy, Permission},
    preemption::{Claim, Rejection},
};
use supercargo_model::{Key, Name, Pod};
use supercargo_plugins::volume_binding;
use tokio::sync::{Semaphore, mpsc, watch};

use super::{Assumed, PODS_TARGET, Report, Scheduler, meter::Attempted};
use crate::{
    events::Busy,
    lease::Lease,
    requests,
    status::Reason,
    volumes::{self, Order, Word},
    world::{Reply, SharedWorld, Unanswered, within},
};

/// How often a binding is sent again that the server was too busy to take.
const TRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// How long to wait before asking again what became of a binding.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const LONGEST_LOOK_AGAIN: Duration = Duration::from_secs(15);

/// What is to be carried out.
pub(super) struct Job {
    pub(super) popped: Popped,
    pub(super) node: Name,
    pub(super) profile: Arc<EngineProfile>,
    pub(super) lease: Option<Lease>,
    pub(super) bindings: Arc<Semaphore>,
    pub(super) started: Duration,
    /// The volumes to be bound first, and what becomes known about them meanwhile.
    pub(super) volumes: Option<(Order, watch::Receiver<Word>)>,
    pub(super) extenders: Arc<Extenders>,
    /// What can wait stands back until this is done.
    pub(super) _busy: Busy,
}

/// How it went.
pub(super) struct Bound {
    popped: Popped,
    node: Name,
    result: Result<(), Failed>,
    took: Duration,
}

/// The step that failed, and who says so.
struct Failed {
    step: &'static str,
    rejection: Rejection,
}

/// Carries a decision out, and reports.
pub(super) async fn carry_out(world: SharedWorld, job: Job, report_to: mpsc::UnboundedSender<Report>) {
    let result = bind(&world, &job).await;
    if result.is_ok() {
        job.profile.profile.post_bind(&job.popped.pod, &job.node);
    }
    let took = world.uptime() - job.started;
    // Nobody listens any more when the scheduler has stopped.
    let _ = report_to.send(Report::Bound(Bound { popped: job.popped, node: job.node, result, took }));
}

async fn bind(world: &SharedWorld, job: &Job) -> Result<(), Failed> {
    let at = |step: &'static str| move |rejection| Failed { step, rejection };
    wait_for_permission(world, job).await.map_err(at("Permit"))?;
    bind_volumes(world, job).await.map_err(at("PreBind"))?;
    for (name, plugin) in job.profile.profile.pre_binders() {
        plugin.pre_bind(&job.popped.pod, &job.node).map_err(|status| at("PreBind")(by(name, status)))?;
    }
    bind_pod(world, job).await.map_err(at("Bind"))
}

fn by(plugin: &str, status: Status) -> Rejection {
    Rejection { plugin: plugin.into(), status }
}

async fn wait_for_permission(world: &SharedWorld, job: &Job) -> Result<(), Rejection> {
    for (name, plugin) in job.profile.profile.permits() {
        match plugin.permit(&job.popped.pod, &job.node).map_err(|status| by(name, status))? {
            Permission::Granted => {}
            Permission::Wait { timeout, word } => {
                let said = within(&**world, timeout, word).await;
                let late = || Err(Status::unschedulable("timed out waiting for permission to bind"));
                said.unwrap_or_else(late).map_err(|status| by(name, status))?;
            }
        }
    }
    Ok(())
}

async fn bind_volumes(world: &SharedWorld, job: &Job) -> Result<(), Rejection> {
    let Some((order, word)) = &job.volumes else {
        return Ok(());
    };
    let may_write = || job.lease.as_ref().is_none_or(Lease::is_held);
    let bound = volumes::bind(&**world, order, &may_write, word.clone()).await;
    bound.map_err(|failure| by(volume_binding::NAME, Status::error(failure.to_string())))
}

async fn bind_pod(world: &SharedWorld, job: &Job) -> Result<(), Rejection> {
    if let Some(done) = bind_by_extender(world, job).await {
        return done;
    }
    for (name, plugin) in job.profile.profile.binders() {
        let orders = Orders::default();
        match plugin.bind(&orders, &job.popped.pod, &job.node).map_err(|status| by(name, status))? {
            BoundBy::Skip => {}
            BoundBy::Done => {
                for binding in orders.0.into_inner() {
                    send(world, job, &binding).await.map_err(|status| by(name, status))?;
                }
                return Ok(());
            }
        }
    }
    Err(by("", Status::error("no bind plugin took the pod")))
}

/// Lets the extender bind the pod whose business it is. `None` if there is none, or it has failed and may: then the bind
/// plugins do it, as in kube-scheduler.
async fn bind_by_extender(world: &SharedWorld, job: &Job) -> Option<Result<(), Rejection>> {
    let (pod, node) = (&job.popped.pod, &job.node);
    let extender = job.extenders.binder_of(pod)?;
    if job.lease.as_ref().is_some_and(|lease| !lease.is_held()) {
        return Some(Err(by(extender.name(), Status::error("the lease is not held any more"))));
    }
    let Err((error, ignorable)) = job.extenders.bind(extender, pod, node).await else {
        return Some(Ok(()));
    };
    let status = match error {
        BindError::Refused(why) => Status::error(why),
        BindError::Unknown(why) => {
            let binding = Binding {
                namespace: pod.namespace.clone(),
                name: pod.name.clone(),
                uid: pod.uid.clone(),
                node: node.clone(),
            };
            match what_became_of(world, &binding, &pod.key(), why).await {
                Ok(()) => return Some(Ok(())),
                Err(status) => status,
            }
        }
    };
    if ignorable {
        tracing::warn!(extender = extender.name(), pod = %pod.key(), why = status.message(), "bound without it");
        return None;
    }
    Some(Err(by(extender.name(), status)))
}

/// Takes down what a plugin wants to be sent: plugins do not wait, this task does.
#[derive(Default)]
struct Orders(RefCell<Vec<Binding>>);

impl BindTarget for Orders {
    fn bind(&self, binding: &Binding) -> Verdict {
        self.0.borrow_mut().push(binding.clone());
        Ok(())
    }
}

/// Sends a binding until it is clear what became of it. No answer, or a failure inside the server, is not a failure of the
/// binding: the pod itself tells.
async fn send(world: &SharedWorld, job: &Job, binding: &Binding) -> Verdict {
    let Ok(_turn) = job.bindings.acquire().await else {
        return Err(Status::error("the scheduler stops"));
    };
    let key = Key::new(binding.namespace.clone(), binding.name.clone());
    for attempt in 1..=TRIES {
        if job.lease.as_ref().is_some_and(|lease| !lease.is_held()) {
            return Err(Status::error("the lease is not held any more"));
        }
        let answer = world.send(requests::bind(&key, &binding.uid, &binding.node)).await;
        match answer {
            Ok(reply) if reply.is_success() => return Ok(()),
            // Too busy: the server has not looked at it.
            Ok(reply @ Reply { status: 429, .. }) if attempt < TRIES => {
                world.sleep(reply.retry_after.unwrap_or(BUSY_PAUSE * attempt)).await;
            }
            Err(Unanswered::NotSent(_)) if attempt < TRIES => world.sleep(BUSY_PAUSE * attempt).await,
            Ok(reply) if reply.status < 500 && reply.status != 409 => {
                return Err(Status::error(reply.message()));
            }
            Err(Unanswered::NotSent(why)) => return Err(Status::error(why)),
            // A conflict may be our own earlier attempt.
            Ok(reply) => return what_became_of(world, binding, &key, reply.message()).await,
            Err(Unanswered::OutcomeUnknown(why)) => return what_became_of(world, binding, &key, why).await,
        }
    }
    Err(Status::error("the API server was too busy to bind the pod"))
}

/// Asks for the pod until the server tells where it is.
async fn what_became_of(world: &SharedWorld, binding: &Binding, key: &Key, why: String) -> Verdict {
    let mut pause = LOOK_AGAIN;
    loop {
        match world.send(requests::get_pod(key)).await {
            Ok(reply) if reply.is_success() => {
                if let Ok(pod) = serde_json::from_slice::<Pod>(&reply.body) {
                    let ours = pod.uid == binding.uid && pod.node.as_ref() == Some(&binding.node);
                    return if ours { Ok(()) } else { Err(Status::error(why)) };
                }
                return Err(Status::error(why));
            }
            Ok(reply) if reply.status == 404 => return Err(Status::error(why)),
            _ => {
                world.sleep(pause).await;
                pause = (pause * 2).min(LONGEST_LOOK_AGAIN);
            }
        }
    }
}

impl Scheduler {
    pub(super) fn binding_ended(&mut self, bound: Bound) {
        let Bound { popped, node, result, took } = bound;
        self.meter.bound(&popped.pod.spec.scheduler_name, result.is_ok(), took);
        match result {
            Ok(()) => self.is_bound(&popped, &node, took),
            Err(failed) => self.is_not_bound(&popped.pod, &node, failed),
        }
    }

    fn is_bound(&mut self, popped: &Popped, node: &Name, took: Duration) {
        let pod = &popped.pod;
        tracing::info!(target: PODS_TARGET, pod = %pod.key(), %node, "bound");
        self.teller.scheduled(pod, node);
        self.meter.attempted(&pod.spec.scheduler_name, Attempted::Scheduled, took);
        // It stays assumed until the watch says the same, if it has not said so before.
        self.queue.bound(popped);
        self.meter.scheduled(popped.attempts, self.world.uptime().saturating_sub(popped.first_queued));
    }

    fn is_not_bound(&mut self, pod: &Arc<Pod>, node: &Name, failed: Failed) {
        let Some(Assumed { started, volumes, .. }) = self.assumed.remove(&pod.uid) else {
            // It is gone, or the watch has told that it is bound after all.
            self.queue.done(&pod.uid);
            return;
        };
        self.unreserve(pod, node, volumes);
        self.off_its_node(&pod.key(), &pod.uid);
        let Failed { step, rejection } = failed;
        if rejection.status.is_rejection() {
            return self.refused(pod, rejection, started);
        }
        let message =
            format!("running {step} plugin \"{}\": {}", rejection.plugin, rejection.status.message());
        self.failed(pod, Failure::Error, Reason::SchedulerError, Claim::Dropped, &message, started);
    }
}
