//! The binding cycle: waits for permission, lets plugins prepare, and binds the pod; then says how it went.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, select, try_join_all};
use supercargo_engine::{At, AttemptFailure, EngineProfile, Popped};
use supercargo_extender::{BindError, Extenders};
use supercargo_framework::{
    Code, Status, Verdict,
    binding_signal::{BindingSignal, CalledOff},
    bugs::{self, Bug},
    event::Change,
    handle::Effect,
    points::{BindOutcome, Binding},
    preemption::{Claim, Rejection},
    registry::Point,
    waiting::{PermitWait, WaitingPods},
};
use supercargo_model::{Key, Kind, Name, Pod, object::Object};
use tokio::sync::{Semaphore, mpsc};

use super::{
    Assumed, PODS_TARGET, Report, Scheduler,
    meter::{Attempted, Counted, Meter},
    status_writer::Statuses,
};
use crate::{
    events::Busy,
    lease::Lease,
    requests,
    status::{NominatingInfo, Reason},
    world::{Reply, SharedWorld, Unanswered, run_aside},
};

/// How often a binding is sent again that the server was too busy to take.
const TRIES: u32 = 5;
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// How long to wait before asking again what became of a binding.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
const LONGEST_LOOK_AGAIN: Duration = Duration::from_secs(15);
/// Bindings that are on their way to the API server at once: enough to keep it busy, few enough not to drown it.
const BINDINGS_AT_ONCE: usize = 32;
/// Pods that are ready to be bound and wait for their turn. Beyond that, deciding ahead helps nobody.
const MAX_READY: usize = 1024;

/// The turns that bindings take on their way to the API server.
pub(super) struct BindingTurns {
    turns: Semaphore,
    ready: AtomicUsize,
}

impl Default for BindingTurns {
    fn default() -> Self {
        Self { turns: Semaphore::new(BINDINGS_AT_ONCE), ready: AtomicUsize::new(0) }
    }
}

impl BindingTurns {
    /// Whether so many pods wait for their turn that no more should be decided.
    pub(super) fn are_many(&self) -> bool {
        self.ready.load(Ordering::Relaxed) >= MAX_READY
    }

    async fn take(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Status> {
        self.ready.fetch_add(1, Ordering::Relaxed);
        let turn = self.turns.acquire().await;
        self.ready.fetch_sub(1, Ordering::Relaxed);
        turn.map_err(|_| Status::error("the scheduler stops"))
    }
}

/// What is to be carried out.
pub(super) struct Job {
    pub(super) popped: Popped,
    pub(super) node: Name,
    pub(super) profile: Arc<EngineProfile>,
    pub(super) lease: Option<Lease>,
    pub(super) started: Duration,
    /// Whose permission has to be waited for.
    pub(super) waits: Vec<PermitWait>,
    /// The first plugin that has something to prepare.
    pub(super) prepares: Option<Name>,
    /// Where it stands while it waits for permission.
    pub(super) waiting: WaitingPods,
    pub(super) signal: BindingSignal,
    pub(super) statuses: Statuses,
    pub(super) extenders: Arc<Extenders>,
    pub(super) report_to: mpsc::UnboundedSender<Report>,
    pub(super) meter: Arc<dyn Meter>,
    /// It is counted as long as it runs.
    pub(super) _counted: Counted,
    /// What can wait stands back until this is done; but not for a pod that may wait for an hour itself.
    pub(super) _busy: Option<Busy>,
}

impl Job {
    fn tell_step(&self, point: Point, code: Option<Code>, took: Duration) {
        let pod = &self.popped.pod;
        self.meter.point(&pod.spec.scheduler_name, point, code, took);
        self.meter.binding_step(pod, point, code, took);
    }
}

/// A binding that has come to its end, and how.
pub(super) struct FinishedBinding {
    popped: Popped,
    node: Name,
    result: Result<(), BindingFailure>,
    took: Duration,
}

/// How a binding failed.
pub(super) enum BindingFailure {
    /// Permission was refused: the pod waits for what can help with the plugin.
    Refused(Rejection),
    /// Anything else: the pod is tried again after a while.
    Error { message: String, reason: Reason },
}

impl BindingFailure {
    pub(super) fn error(message: impl Into<String>) -> Self {
        Self::Error { message: message.into(), reason: Reason::SchedulerError }
    }

    fn code(&self) -> Code {
        match self {
            Self::Refused(rejection) => rejection.status.code,
            Self::Error { reason: Reason::Unschedulable, .. } => Code::Unschedulable,
            Self::Error { .. } => Code::Error,
        }
    }

    /// A plugin of a step that comes after Permit has failed. One that only refuses says so for itself.
    fn at(step: &'static str) -> impl Fn(Rejection) -> Self {
        move |Rejection { plugin, status }| {
            let message = status.message();
            if status.is_rejection() {
                return Self::Error { message, reason: Reason::Unschedulable };
            }
            Self::error(format!("running {step} plugin \"{plugin}\": {message}"))
        }
    }
}

/// Carries a decision out, and reports.
pub(super) async fn carry_out(world: SharedWorld, job: Job) {
    let result = bind(&world, &job).await;
    if result.is_ok() {
        post_bind(&world, &job).await;
    }
    let took = world.uptime() - job.started;
    let bound = FinishedBinding { popped: job.popped, node: job.node, result, took };
    // Nobody listens any more when the scheduler has stopped.
    let _ = job.report_to.send(Report::Bound(bound));
}

async fn post_bind(world: &SharedWorld, job: &Job) {
    let began = world.uptime();
    for (name, plugin) in job.profile.profile.post_binders() {
        let (plugin, pod, node) = (plugin.clone(), job.popped.pod.clone(), job.node.clone());
        // Who fails here fails for itself: the pod is bound.
        let _ = run(world, job, name, async move { plugin.post_bind(&pod, &node).await }).await;
    }
    job.tell_step(Point::PostBind, None, world.uptime() - began);
}

/// Runs a plugin's effect: among the others if it gives way, else where it may block its thread. An error if it ends
/// without an answer.
async fn run<T: Send + 'static>(
    world: &SharedWorld,
    job: &Job,
    plugin: &Name,
    effect: impl Future<Output = T> + Send + 'static,
) -> Result<T, Status> {
    let effect: Effect<'static, T> = Box::pin(effect);
    if job.profile.profile.gives_way(plugin) {
        return Ok(effect.await);
    }
    run_aside(&**world, effect).await.ok_or_else(|| Status::error("the plugin ended without an answer"))
}

async fn bind(world: &SharedWorld, job: &Job) -> Result<(), BindingFailure> {
    announce(job).await;
    wait_for_permission(world, job).await?;
    let prepare = timed(world, job, Point::PreBind, prepare(world, job));
    let prepared = select(Box::pin(prepare), Box::pin(job.signal.called_off())).await;
    match prepared {
        Either::Left((prepared, _)) => prepared?,
        Either::Right((why, _)) => return Err(called_off_in_pre_bind(job, why)),
    }
    job.signal.commit().map_err(|why| called_off_in_pre_bind(job, why))?;
    // A status that is written after the binding would say that the pod waits.
    if !bugs::is_on(Bug::StatusAfterBinding) {
        job.statuses.close(&job.popped.pod.uid).await;
    }
    timed(world, job, Point::Bind, bind_pod(world, job)).await
}

/// Takes the time of a step.
async fn timed(
    world: &SharedWorld,
    job: &Job,
    point: Point,
    step: impl Future<Output = Result<(), BindingFailure>>,
) -> Result<(), BindingFailure> {
    let began = world.uptime();
    let result = step.await;
    let code = result.as_ref().err().map(BindingFailure::code);
    job.tell_step(point, code, world.uptime() - began);
    result
}

/// If the pod is not bound at once, its status tells others, such as autoscalers, which node it is for.
async fn announce(job: &Job) {
    let pod = &job.popped.pod;
    if !job.waits.is_empty() || job.prepares.is_some() {
        job.statuses.want(pod, None, NominatingInfo::Set(job.node.clone()));
        job.statuses.written(&pod.uid).await;
    }
}

/// Why a binding ends that was called off while PreBind was at work.
fn called_off_in_pre_bind(job: &Job, why: CalledOff) -> BindingFailure {
    BindingFailure::error(why.in_pre_bind(job.prepares.as_deref().unwrap_or_default()))
}

fn by(plugin: &str, status: Status) -> Rejection {
    Rejection { plugin: plugin.into(), status }
}

/// Waits until every plugin that asked for it has given its permission. Their times run side by side.
async fn wait_for_permission(world: &SharedWorld, job: &Job) -> Result<(), BindingFailure> {
    if job.waits.is_empty() {
        return Ok(());
    }
    let began = world.uptime();
    let waited = |code| job.meter.waited_on_permit(code, world.uptime() - began);
    let permissions =
        Box::pin(try_join_all(job.waits.iter().map(|wait| wait.permission(world.sleep(wait.timeout)))));
    let permitted = select(permissions, Box::pin(job.signal.called_off())).await;
    job.waiting.remove(&job.popped.pod.uid);
    let rejection = match permitted {
        Either::Left((Ok(_), _)) => {
            waited(None);
            job.signal.permitted();
            // Nothing that happens from here on can make a difference to whether the pod is refused.
            let _ = job.report_to.send(Report::Permitted(job.popped.pod.uid.clone()));
            return Ok(());
        }
        Either::Left((Err(rejection), _)) => rejection,
        Either::Right((why, _)) => why.on_permit(),
    };
    waited(Some(rejection.status.code));
    if rejection.status.is_rejection() {
        return Err(BindingFailure::Refused(rejection));
    }
    Err(BindingFailure::error(format!("waiting on permit for pod: {}", rejection.status.message())))
}

/// Does what has to be done before the pod can be bound.
async fn prepare(world: &SharedWorld, job: &Job) -> Result<(), BindingFailure> {
    for (name, plugin) in job.profile.profile.pre_binders() {
        if plugin.is_needed(&job.popped.pod, &job.node) {
            let (plugin, pod, node) = (plugin.clone(), job.popped.pod.clone(), job.node.clone());
            let effect = async move { plugin.pre_bind(&pod, &node).await };
            let prepared = run(world, job, name, effect).await.and_then(|verdict| verdict);
            prepared.map_err(|status| BindingFailure::at("PreBind")(by(name, status)))?;
        }
    }
    Ok(())
}

async fn bind_pod(world: &SharedWorld, job: &Job) -> Result<(), BindingFailure> {
    if let Some(done) = bind_by_extender(world, job).await {
        return done;
    }
    for (name, plugin) in job.profile.profile.binders() {
        let failed = |status| BindingFailure::at("Bind")(by(name, status));
        let began = world.uptime();
        let (plugin, pod, node) = (plugin.clone(), job.popped.pod.clone(), job.node.clone());
        let effect = async move { plugin.bind(&pod, &node).await };
        let done = run(world, job, name, effect).await.and_then(|done| done);
        if !matches!(done, Ok(BindOutcome::Skip)) {
            let (profile, code) =
                (&job.popped.pod.spec.scheduler_name, done.as_ref().err().map(|status| status.code));
            job.meter.plugin(profile, name, Point::Bind, code, world.uptime() - began);
        }
        match done.map_err(failed)? {
            BindOutcome::Skip => {}
            BindOutcome::Done => return Ok(()),
        }
    }
    Err(BindingFailure::error("no bind plugin took the pod"))
}

/// Lets the extender bind the pod whose business it is. `None` if there is none, or it has failed and may: then the bind
/// plugins do it, as in kube-scheduler.
async fn bind_by_extender(world: &SharedWorld, job: &Job) -> Option<Result<(), BindingFailure>> {
    let (pod, node) = (&job.popped.pod, &job.node);
    let extender = job.extenders.binder_of(pod)?;
    if job.lease.as_ref().is_some_and(|lease| !lease.is_held()) {
        return Some(Err(BindingFailure::error("the lease is not held any more")));
    }
    let Err((error, ignorable)) = job.extenders.bind(extender, pod, node).await else {
        return Some(Ok(()));
    };
    let status = match error {
        BindError::Refused(why) => Status::error(why),
        BindError::Unknown(why) => {
            let binding = Binding::new(pod, node);
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
    Some(Err(BindingFailure::error(status.message())))
}

/// Sends a binding until it is clear what became of it. No answer, or a failure inside the server, is not a failure of the
/// binding: the pod itself tells.
pub(super) async fn send_binding(
    world: &SharedWorld,
    lease: Option<&Lease>,
    turns: &BindingTurns,
    binding: &Binding,
) -> Verdict {
    let _turn = turns.take().await?;
    let key = Key::new(binding.namespace.clone(), binding.name.clone());
    for attempt in 1..=TRIES {
        if lease.is_some_and(|lease| !lease.is_held()) && !bugs::is_on(Bug::BindsWithoutLease) {
            return Err(Status::error("the lease is not held any more"));
        }
        let uid = if bugs::is_on(Bug::BindsAnyUid) { "" } else { &*binding.uid };
        let answer = world.send(requests::bind(&key, uid, &binding.node)).await;
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
    if bugs::is_on(Bug::UnknownOutcomeIsFailure) {
        return Err(Status::error(why));
    }
    let mut pause = LOOK_AGAIN;
    loop {
        match world.send(requests::get_pod(key)).await {
            Ok(reply) if reply.is_success() => {
                if let Ok(Object::Pod(pod)) = Object::from_json(Kind::Pod, &[], &reply.body) {
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
    pub(super) fn binding_ended(&mut self, bound: FinishedBinding) {
        let FinishedBinding { popped, node, result, took } = bound;
        self.waiting.remove(&popped.pod.uid);
        match result {
            Ok(()) => self.is_bound(&popped, &node, took),
            Err(failed) => self.is_not_bound(&popped.pod, &node, failed),
        }
    }

    fn is_bound(&mut self, popped: &Popped, node: &Name, took: Duration) {
        let pod = &popped.pod;
        tracing::info!(target: PODS_TARGET, pod = %pod.key(), %node, "bound");
        let because = self.assumed.get(&pod.uid).and_then(|assumed| assumed.because.as_deref());
        self.reporter.scheduled(pod, node, because);
        self.meter.attempted(&pod.spec.scheduler_name, Attempted::Scheduled, took);
        self.meter.ended(pod, Some(node), Attempted::Scheduled, took);
        // It stays assumed until the watch says the same, if it has not said so before.
        self.queue.bound(popped);
        self.assumed_objects.keep(self.engine.cluster_mut(), &pod.uid);
        self.meter.scheduled(popped.attempts, self.world.uptime().saturating_sub(popped.first_queued));
        match self.assumed.get_mut(&pod.uid) {
            Some(assumed) if assumed.gone => drop(self.assumed.remove(&pod.uid)),
            Some(assumed) => assumed.ended = Some(self.world.uptime()),
            None => {}
        }
    }

    /// What the pod had is given back. That wakes others; the pod itself only if it failed rather than was refused, because
    /// it is of no use to itself.
    pub(super) fn is_not_bound(&mut self, pod: &Arc<Pod>, node: &Name, failed: BindingFailure) {
        let Some(Assumed { started, .. }) = self.assumed.remove(&pod.uid) else {
            // The watch has told that it is bound after all.
            self.queue.done(&pod.uid);
            return;
        };
        self.unreserve(pod, node);
        if !bugs::is_on(Bug::ReservationLeaked) {
            self.take_off_its_node(&pod.key(), &pod.uid);
        }
        let held = pod.bound_to(node.clone());
        let released = Change::Pod(Some(&held), None).happened();
        match failed {
            BindingFailure::Refused(rejection) => {
                self.refused(pod, rejection, started);
                let at = At { now: self.world.uptime(), cluster: self.engine.cluster() };
                self.queue.happened_to_all_but(&pod.uid, &released, at);
            }
            BindingFailure::Error { message, reason } => {
                let at = At { now: self.world.uptime(), cluster: self.engine.cluster() };
                self.queue.happened(&released, at);
                self.failed(pod, AttemptFailure::Error, reason, Claim::Dropped, &message, started);
            }
        }
    }
}
