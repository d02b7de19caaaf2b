//! What plugins' effects go through while the scheduler runs: the deciding task for the cluster, the world for the rest.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use serde_json::Value;
use supercargo_framework::{
    Status, Verdict,
    checks::WaitingCheck,
    handle::{
        ApiError, ApiFailure, ApiRequest, Check, Effect, Handle, LogLevel, Look, Measurement, Occurrence,
        Verb, View, Work,
    },
    points::Binding,
    waiting::WaitingPods,
};
use supercargo_model::Name;
use tokio::sync::{mpsc, oneshot};

use super::{
    Report,
    binding::{BindingTurns, send_binding},
    meter::{Meter, Task, VolumeStage},
};
use crate::{
    events::{Event, EventRecorder},
    lease::Lease,
    requests::with_body,
    world::{ContentType, Method, Reply, Request, SharedWorld, Unanswered},
};

const STOPS: &str = "the scheduler stops";

/// The handle of a running scheduler.
pub(super) struct LiveHandle {
    pub(super) world: SharedWorld,
    pub(super) lease: Option<Lease>,
    pub(super) turns: Arc<BindingTurns>,
    pub(super) recorder: EventRecorder,
    pub(super) report_to: mpsc::UnboundedSender<Report>,
    pub(super) meter: Arc<dyn Meter>,
    pub(super) waiting: WaitingPods,
    pub(super) checks: AtomicU64,
}

/// Takes a check back that nobody waits for any more.
struct TakesBack {
    check: u64,
    report_to: Option<mpsc::UnboundedSender<Report>>,
}

impl TakesBack {
    /// It is over by itself.
    fn finish(mut self) {
        self.report_to = None;
    }
}

impl Drop for TakesBack {
    fn drop(&mut self) {
        if let Some(report_to) = &self.report_to {
            // Nobody listens any more when the scheduler has stopped.
            let _ = report_to.send(Report::CheckOver(self.check));
        }
    }
}

impl Handle for LiveHandle {
    fn look(&self, look: Look) -> Effect<'static, Verdict> {
        let (reply, looked) = oneshot::channel();
        let question = Box::new(move |view: &View<'_>| {
            look(view);
            // Whoever asked may have gone.
            let _ = reply.send(());
        });
        let sent = self.report_to.send(Report::Look(question));
        Box::pin(async move {
            let looked = if sent.is_ok() { looked.await.ok() } else { None };
            looked.ok_or_else(|| Status::error(STOPS))
        })
    }

    fn until(&self, check: Check) -> Effect<'static, Verdict> {
        let id = self.checks.fetch_add(1, Ordering::Relaxed);
        let (found, ends) = oneshot::channel();
        // Whoever waited may have given up since.
        let found = Box::new(move || {
            let _ = found.send(());
        });
        let sent = self.report_to.send(Report::Check(id, WaitingCheck { check, found }));
        let takes_back = TakesBack { check: id, report_to: Some(self.report_to.clone()) };
        Box::pin(async move {
            let found = if sent.is_ok() { ends.await.ok() } else { None };
            if found.is_some() {
                takes_back.finish();
            }
            found.ok_or_else(|| Status::error(STOPS))
        })
    }

    fn send(&self, request: ApiRequest) -> Effect<'static, Result<Value, ApiError>> {
        let (world, lease) = (self.world.clone(), self.lease.clone());
        Box::pin(async move {
            if request.verb != Verb::Get && lease.is_some_and(|lease| !lease.is_held()) {
                return Err(ApiError::new(ApiFailure::NotLeading, "the lease is not held any more"));
            }
            send(world, request).await
        })
    }

    fn bind(&self, binding: Binding) -> Effect<'static, Verdict> {
        let (world, lease, turns) = (self.world.clone(), self.lease.clone(), self.turns.clone());
        Box::pin(async move { send_binding(&world, lease.as_ref(), &turns, &binding).await })
    }

    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn uptime(&self) -> Duration {
        self.world.uptime()
    }

    fn sleep(&self, span: Duration) -> Effect<'static, ()> {
        self.world.sleep(span)
    }

    fn spawn(&self, work: Work, effect: Effect<'static, ()>) {
        let counted = match work {
            Work::Preemption => self.meter.task(Task::Preemption),
            Work::Other => None,
        };
        self.world.spawn(Box::pin(async move {
            effect.await;
            drop(counted);
        }));
    }

    fn record(&self, occurrence: Occurrence) {
        self.recorder.record(Event::from(occurrence));
    }

    fn log(&self, level: LogLevel, line: &str) {
        match level {
            LogLevel::Error => tracing::error!("{line}"),
            LogLevel::Warn => tracing::warn!("{line}"),
            LogLevel::Info => tracing::info!("{line}"),
        }
    }

    fn measure(&self, measured: Measurement) {
        match measured {
            Measurement::VolumeAssumeFailed => self.meter.volumes_failed(VolumeStage::Assume),
            Measurement::VolumeBindFailed => self.meter.volumes_failed(VolumeStage::Bind),
            Measurement::Victims(victims) => self.meter.preempts(victims),
            Measurement::Evicted { success, took } => self.meter.evicted(success, took),
            Measurement::ClaimCreated { success } => self.meter.claim_created(success),
            Measurement::DeviceAwaited { profile, driver, has_conditions, outcome, took } => {
                self.meter.device_awaited(&profile, &driver, has_conditions, outcome, took);
            }
            Measurement::UnreadableInput => self.meter.input_is_unreadable(),
            Measurement::MissingInput(is_missing) => self.meter.input_is_missing(is_missing),
        }
    }

    fn waiting_pods(&self) -> &WaitingPods {
        &self.waiting
    }

    fn activate(&self, uid: Name) {
        let _ = self.report_to.send(Report::Activate(uid));
    }

    fn look_again(&self, uid: Name, plugin: Name) {
        let _ = self.report_to.send(Report::LookAgain(uid, plugin));
    }
}

/// Sends a request, once, whoever leads.
pub(super) async fn send(world: SharedWorld, request: ApiRequest) -> Result<Value, ApiError> {
    let reads = request.verb == Verb::Get;
    let request = on_the_wire(&request);
    let told = request.to_string();
    match world.send(request).await {
        Ok(reply) if reply.is_success() => match serde_json::from_slice(&reply.body) {
            Err(error) if reads => Err(ApiError::new(ApiFailure::Refused, format!("{told}: {error}"))),
            // It was done, whatever is told about it.
            object => Ok(object.unwrap_or_default()),
        },
        Ok(reply) => Err(refusal(&reply)),
        Err(unanswered) => {
            let failure = match unanswered {
                Unanswered::NotSent(_) => ApiFailure::NotSent,
                Unanswered::OutcomeUnknown(_) => ApiFailure::OutcomeUnknown,
            };
            Err(ApiError::new(failure, format!("{told}: {unanswered}")))
        }
    }
}

fn on_the_wire(request: &ApiRequest) -> Request {
    let (method, content_type) = match request.verb {
        Verb::Get => return Request::get(request.path()),
        Verb::Create => (Method::Post, ContentType::Json),
        Verb::Update => (Method::Put, ContentType::Json),
        Verb::MergePatch => (Method::Patch, ContentType::MergePatch),
        Verb::StrategicMergePatch => (Method::Patch, ContentType::StrategicMergePatch),
        Verb::Delete => (Method::Delete, ContentType::Json),
    };
    with_body(method, request.path(), content_type, &request.body)
}

fn refusal(reply: &Reply) -> ApiError {
    let failure = match reply.status {
        404 => ApiFailure::NotFound,
        409 => ApiFailure::Conflict,
        429 => ApiFailure::Busy(reply.retry_after),
        500.. => ApiFailure::ServerError(reply.retry_after),
        _ => ApiFailure::Refused,
    };
    ApiError::new(failure, reply.message())
}
