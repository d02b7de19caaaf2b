//! What plugins' effects go through offline: the scheduler for the cluster and the API, virtual time for the rest. Nobody
//! reads events, logs and measures.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use supercargo_framework::{
    Verdict,
    answer::Answer,
    checks::WaitingCheck,
    handle::{
        ApiError, ApiRequest, Check, Effect, Handle, LogLevel, Look, Measurement, Occurrence, View, Work,
    },
    points::Binding,
    virtual_time::{Executor, VirtualClock},
    waiting::WaitingPods,
};
use supercargo_model::{Name, Timestamp};

use super::binding::BindingFailure;

/// What effects ask of the scheduler, or tell it.
pub(super) enum Report {
    Look(Look),
    Check(u64, WaitingCheck),
    /// Nobody waits for a check any more.
    CheckOver(u64),
    Send(ApiRequest, Answer<Result<Value, ApiError>>),
    Activate(Name),
    LookAgain(Name, Name),
    /// A pod that waited has its permission.
    Permitted(Name),
    /// The binding of a pod has ended.
    Bound(Name, Result<(), BindingFailure>),
}

/// What has been asked or told, and not been looked at yet. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<Mutex<VecDeque<Report>>>);

impl Reports {
    fn locked(&self) -> MutexGuard<'_, VecDeque<Report>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, report: Report) {
        self.locked().push_back(report);
    }

    pub(super) fn pop(&self) -> Option<Report> {
        self.locked().pop_front()
    }
}

/// The handle of an offline scheduler.
pub(super) struct SchedulerHandle {
    clock: VirtualClock,
    /// Its tasks hold the handle: they must not hold themselves.
    tasks: Weak<Executor>,
    pub(super) reports: Reports,
    pub(super) waiting: WaitingPods,
    bindings: Mutex<Vec<Binding>>,
    checks: AtomicU64,
}

impl SchedulerHandle {
    pub(super) fn new(tasks: &Arc<Executor>) -> Self {
        Self {
            clock: tasks.clock().clone(),
            tasks: Arc::downgrade(tasks),
            reports: Reports::default(),
            waiting: WaitingPods::default(),
            bindings: Mutex::default(),
            checks: AtomicU64::new(0),
        }
    }

    /// The node that a Bind plugin has bound a pod to, if it has done so by this handle.
    pub(super) fn take_binding(&self, uid: &str) -> Option<Name> {
        let mut bindings = self.bindings.lock().unwrap_or_else(PoisonError::into_inner);
        let last = bindings.iter().rposition(|binding| *binding.uid == *uid)?;
        Some(bindings.swap_remove(last).node)
    }
}

/// Takes a check back that nobody waits for any more.
struct TakesBack(u64, Option<Reports>);

impl TakesBack {
    /// It is over by itself.
    fn finish(mut self) {
        self.1 = None;
    }
}

impl Drop for TakesBack {
    fn drop(&mut self) {
        if let Some(reports) = &self.1 {
            reports.push(Report::CheckOver(self.0));
        }
    }
}

impl Handle for SchedulerHandle {
    fn look(&self, look: Look) -> Effect<'static, Verdict> {
        let answer = Answer::default();
        let given = answer.clone();
        self.reports.push(Report::Look(Box::new(move |view: &View<'_>| {
            look(view);
            given.give(Ok(()));
        })));
        Box::pin(answer)
    }

    fn until(&self, check: Check) -> Effect<'static, Verdict> {
        let id = self.checks.fetch_add(1, Ordering::Relaxed);
        let answer = Answer::default();
        let given = answer.clone();
        let found = Box::new(move || given.give(()));
        self.reports.push(Report::Check(id, WaitingCheck { check, found }));
        let takes_back = TakesBack(id, Some(self.reports.clone()));
        Box::pin(async move {
            answer.await;
            takes_back.finish();
            Ok(())
        })
    }

    fn send(&self, request: ApiRequest) -> Effect<'static, Result<Value, ApiError>> {
        let answer = Answer::default();
        self.reports.push(Report::Send(request, answer.clone()));
        Box::pin(answer)
    }

    /// Nobody is there to refuse it.
    fn bind(&self, binding: Binding) -> Effect<'static, Verdict> {
        self.bindings.lock().unwrap_or_else(PoisonError::into_inner).push(binding);
        Box::pin(std::future::ready(Ok(())))
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn uptime(&self) -> Duration {
        self.clock.uptime()
    }

    fn sleep(&self, span: Duration) -> Effect<'static, ()> {
        self.clock.sleep(span)
    }

    fn spawn(&self, _: Work, effect: Effect<'static, ()>) {
        // Once the scheduler is gone, nothing runs any more.
        if let Some(tasks) = self.tasks.upgrade() {
            tasks.spawn(tasks.process(), effect);
        }
    }

    fn record(&self, _: Occurrence) {}

    fn log(&self, _: LogLevel, _: &str) {}

    fn measure(&self, _: Measurement) {}

    fn waiting_pods(&self) -> &WaitingPods {
        &self.waiting
    }

    fn activate(&self, uid: Name) {
        self.reports.push(Report::Activate(uid));
    }

    fn look_again(&self, uid: Name, plugin: Name) {
        self.reports.push(Report::LookAgain(uid, plugin));
    }
}
