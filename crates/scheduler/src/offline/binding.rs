//! The binding cycle offline: waits for permission, lets plugins prepare, and binds the pod, all on virtual time. What ends
//! without waiting never becomes a task.

use std::{
    collections::BTreeMap,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use futures_util::future::{Either, select, try_join_all};
use supercargo_engine::{
    At, AttemptFailure, Decision, EngineProfile, Outcome, Placement, Popped, Refusal, Removal,
};
use supercargo_framework::{
    Status,
    assumed::{ReserveCycle, Restored},
    binding_signal::{BindingSignal, CalledOff},
    event::Change,
    handle::{Effect, Handle},
    points::BindOutcome,
    preemption::{Claim, NodeVerdicts, Rejection},
    profile::{Profile, Scores},
    virtual_time::ProcessId,
    waiting::{PermitWait, WaitingPod},
};
use supercargo_model::{Kind, Name, Pod};

use super::{
    Attempt, OfflineScheduler,
    handle::{Report, SchedulerHandle},
};

/// A pod whose effects fail is tried again this often: they may depend on what the cluster does not show.
const MAX_FAILED_BINDINGS: u32 = 5;

/// How a placement has come to nothing.
pub(super) enum BindingFailure {
    /// A plugin refused the node: the pod waits for what can help with the plugin.
    Refused(Rejection),
    /// Anything else: the pod is tried again after a while.
    Error(String),
}

impl BindingFailure {
    /// A plugin of the scheduling cycle refused the node after it was chosen, or failed.
    fn in_cycle(step: &str, rejection: Rejection) -> Self {
        if rejection.status.is_rejection() {
            return Self::Refused(rejection);
        }
        Self::at(step, &rejection.plugin, &rejection.status)
    }

    fn at(step: &str, plugin: &str, status: &Status) -> Self {
        let message = status.message();
        match status.is_rejection() {
            // It says so for itself.
            true => Self::Error(message),
            false => Self::Error(format!("running {step} plugin \"{plugin}\": {message}")),
        }
    }
}

/// An assumed pod, while its binding takes its time.
pub(super) struct Assumed {
    popped: Popped,
    node: Name,
    pub(super) signal: Option<BindingSignal>,
    process: ProcessId,
    /// The plugin that it waits for first.
    waits_for: Name,
    /// Its place in the order in which pods were decided.
    number: u64,
}

/// What is to be carried out.
struct Job {
    pod: Arc<Pod>,
    node: Name,
    profile: Arc<EngineProfile>,
    waits: Vec<PermitWait>,
    prepares: Option<Name>,
    /// `None` where there is nothing to call off.
    signal: Option<BindingSignal>,
    handle: Arc<SchedulerHandle>,
}

impl Job {
    async fn carry_out(self) -> Result<(), BindingFailure> {
        if let Some(signal) = &self.signal {
            self.wait_for_permission(signal).await?;
            let called_off = |why: CalledOff| {
                BindingFailure::Error(why.in_pre_bind(self.prepares.as_deref().unwrap_or_default()))
            };
            match select(Box::pin(self.prepare()), Box::pin(signal.called_off())).await {
                Either::Left((prepared, _)) => prepared?,
                Either::Right((why, _)) => return Err(called_off(why)),
            }
            signal.commit().map_err(called_off)?;
        }
        self.bind().await?;
        for (_, plugin) in self.profile.profile.post_binders() {
            plugin.post_bind(&self.pod, &self.node).await;
        }
        Ok(())
    }

    /// Waits until every plugin that asked for it has given its permission. Their times run side by side.
    async fn wait_for_permission(&self, signal: &BindingSignal) -> Result<(), BindingFailure> {
        if self.waits.is_empty() {
            return Ok(());
        }
        let permissions = self.waits.iter().map(|wait| wait.permission(self.handle.sleep(wait.timeout)));
        let permitted = select(Box::pin(try_join_all(permissions)), Box::pin(signal.called_off())).await;
        self.handle.waiting.remove(&self.pod.uid);
        let rejection = match permitted {
            Either::Left((Ok(_), _)) => {
                signal.permitted();
                self.handle.reports.push(Report::Permitted(self.pod.uid.clone()));
                return Ok(());
            }
            Either::Left((Err(rejection), _)) => rejection,
            Either::Right((why, _)) => why.on_permit(),
        };
        if rejection.status.is_rejection() {
            return Err(BindingFailure::Refused(rejection));
        }
        Err(BindingFailure::Error(format!("waiting on permit for pod: {}", rejection.status.message())))
    }

    async fn prepare(&self) -> Result<(), BindingFailure> {
        for (name, plugin) in self.profile.profile.pre_binders() {
            if plugin.is_needed(&self.pod, &self.node) {
                let prepared = plugin.pre_bind(&self.pod, &self.node).await;
                prepared.map_err(|status| BindingFailure::at("PreBind", name, &status))?;
            }
        }
        Ok(())
    }

    async fn bind(&self) -> Result<(), BindingFailure> {
        for (name, plugin) in self.profile.profile.binders() {
            match plugin.bind(&self.pod, &self.node).await {
                Ok(BindOutcome::Done) => return Ok(()),
                Ok(BindOutcome::Skip) => {}
                Err(status) => return Err(BindingFailure::at("Bind", name, &status)),
            }
        }
        Err(BindingFailure::Error("no bind plugin took the pod".to_owned()))
    }
}

impl OfflineScheduler {
    /// Puts a pod on its node, and binds it as far as that takes no time.
    pub(super) fn place(
        &mut self,
        popped: Popped,
        pod: Arc<Pod>,
        node: Name,
        placement: Placement,
    ) -> Option<Attempt> {
        let popped = Popped { pod: pod.clone(), ..popped };
        let Some(profile) = self.engine.profiles().shared(&pod.spec.scheduler_name) else {
            self.queue.done(&pod.uid);
            return None;
        };
        let waits = match self.reserve(&profile.profile, &pod, &node) {
            Ok(waits) => waits,
            Err(failed) => {
                // Nobody has seen the pod there, so that nobody is woken.
                self.take_back(&pod, &node);
                self.park_failed(&pod, &failed);
                return self.failed_attempt(&popped, &node, failed);
            }
        };
        let prepares = profile.profile.first_to_pre_bind(&pod, &node);
        let waits_for = waits.first().map(|wait| wait.plugin.clone()).or(prepares.clone());
        let signal = waits_for.as_ref().map(|_| BindingSignal::new(!waits.is_empty(), prepares.is_some()));
        if !waits.is_empty() {
            let permits = waits.iter().map(|wait| (wait.plugin.clone(), wait.handle.clone())).collect();
            self.handle.waiting.insert(WaitingPod { pod: pod.clone(), node: node.clone(), permits });
        } else {
            // Nothing that happens from here on can make a difference to whether the pod is refused.
            self.queue.done(&pod.uid);
        }
        let job = Job {
            pod: pod.clone(),
            node: node.clone(),
            profile,
            waits,
            prepares,
            signal: signal.clone(),
            handle: self.handle.clone(),
        };
        let mut binding: Effect<'static, Result<(), BindingFailure>> = Box::pin(job.carry_out());
        match binding.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => self.is_bound(&popped, &node),
            Poll::Ready(Err(failed)) => return self.is_not_bound(&popped, &node, failed),
            Poll::Pending => {
                let (process, number) = (self.tasks.process(), self.decided);
                let (reports, uid) = (self.handle.reports.clone(), pod.uid.clone());
                self.tasks
                    .spawn(process, Box::pin(async move { reports.push(Report::Bound(uid, binding.await)) }));
                let waits_for = waits_for.unwrap_or_default();
                let assumed = Assumed { popped: popped.clone(), node, signal, process, waits_for, number };
                self.assumed.insert(pod.uid.clone(), assumed);
            }
        }
        let (number, at) = (popped.attempts, self.now());
        Some(Attempt { pod, number, at, placement })
    }

    /// Keeps what the pod needs on its node for it. The plugins whose permission has to be waited for.
    fn reserve(
        &mut self,
        profile: &Profile,
        pod: &Arc<Pod>,
        node: &Name,
    ) -> Result<Vec<PermitWait>, BindingFailure> {
        self.engine.assume(pod, node.clone());
        let cluster = self.engine.cluster_mut();
        let mut cycle = ReserveCycle::new(cluster, &mut self.assumed_objects, pod.uid.clone());
        let reserved = profile.reserve(&mut cycle, pod, node);
        reserved.map_err(|rejection| BindingFailure::in_cycle("Reserve", rejection))?;
        let permitted = profile.ask_permission(self.engine.cluster(), pod, node);
        permitted.map_err(|rejection| BindingFailure::in_cycle("Permit", rejection))
    }

    pub(super) fn binding_ended(&mut self, uid: &Name, result: Result<(), BindingFailure>) {
        let Some(Assumed { popped, node, .. }) = self.assumed.remove(uid) else { return };
        match result {
            Ok(()) => self.is_bound(&popped, &node),
            Err(failed) => {
                let attempt = self.is_not_bound(&popped, &node, failed);
                self.told.extend(attempt);
            }
        }
    }

    /// A pod is on its node, and everybody sees it there at once.
    fn is_bound(&mut self, popped: &Popped, node: &Name) {
        let pod = &popped.pod;
        self.queue.bound(popped);
        let now = self.now();
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        self.queue.remove(&pod.uid, Removal::Bound, nominations, At { now, cluster });
        self.tried.remove(&pod.uid);
        self.assumed_objects.keep(self.engine.cluster_mut(), &pod.uid);
        let bound_to = self.handle.take_binding(&pod.uid).filter(|bound_to| bound_to != node);
        if let Some(elsewhere) = bound_to {
            self.engine.assume(pod, elsewhere);
        }
        if let Some(bound) = self.engine.cluster().pod(&pod.key()).cloned() {
            self.observe_pod(&bound);
            self.pod_has_changed(None, Some(&bound));
        }
    }

    /// What the pod had is given back. That wakes others; the pod itself only if it failed rather than was refused, because
    /// it is of no use to itself.
    fn is_not_bound(&mut self, popped: &Popped, node: &Name, failed: BindingFailure) -> Option<Attempt> {
        let pod = &popped.pod;
        self.handle.waiting.remove(&pod.uid);
        self.handle.take_binding(&pod.uid);
        self.take_back(pod, node);
        let held = pod.bound_to(node.clone());
        let released = Change::Pod(Some(&held), None).happened();
        if let BindingFailure::Refused(_) = &failed {
            self.park_failed(pod, &failed);
            let at = At { now: self.now(), cluster: self.engine.cluster() };
            self.queue.happened_to_all_but(&pod.uid, &released, at);
        } else {
            let at = At { now: self.now(), cluster: self.engine.cluster() };
            self.queue.happened(&released, at);
            self.park_failed(pod, &failed);
            let failures = self.failed_bindings.entry(pod.uid.clone()).or_default();
            *failures += 1;
            if *failures < MAX_FAILED_BINDINGS {
                self.tried.remove(&pod.uid);
            }
        }
        self.failed_attempt(popped, node, failed)
    }

    /// Whether a pod's effects have failed so often that they will again.
    pub(super) fn fails_for_good(&self, uid: &str) -> bool {
        self.failed_bindings.get(uid).is_some_and(|failures| *failures >= MAX_FAILED_BINDINGS)
    }

    /// Takes back what was kept for a pod on a node.
    pub(super) fn take_back(&mut self, pod: &Pod, node: &Name) {
        if let Some(profile) = self.engine.profile(&pod.spec.scheduler_name) {
            profile.unreserve(pod, node);
        }
        let restored = self.assumed_objects.restore(self.engine.cluster_mut(), &pod.uid);
        self.engine.cluster_mut().remove_pod(&pod.key());
        // Devices that were chosen and not given after all are free for others.
        for Restored { before, after } in restored {
            if before.kind() == Kind::ResourceClaim {
                self.happened(Change::Other(Some(&before), after.as_ref()));
            }
        }
    }

    fn park_failed(&mut self, pod: &Pod, failed: &BindingFailure) {
        let failure = match failed {
            BindingFailure::Refused(rejection) => AttemptFailure::Refused(Refusal {
                plugins: [rejection.plugin.clone()].into(),
                ..Refusal::default()
            }),
            BindingFailure::Error(_) => AttemptFailure::Error,
        };
        self.park(&pod.uid, failure, Claim::Dropped);
    }

    /// The record of an attempt that came to nothing after a node was chosen: there was one node, and it is not available.
    fn failed_attempt(&mut self, popped: &Popped, node: &Name, failed: BindingFailure) -> Option<Attempt> {
        let pod = popped.pod.clone();
        let decided = self.engine.what_if(&pod)?;
        let decision = match failed {
            BindingFailure::Error(message) => Decision { outcome: Outcome::Error { message }, ..decided },
            BindingFailure::Refused(rejection) => Decision {
                outcome: Outcome::Unschedulable,
                node_count: 1,
                verdicts: NodeVerdicts { rejected: BTreeMap::new(), others: rejection.status.clone() },
                rejected: [(node.clone(), rejection)].into(),
                refused: None,
                feasible: Vec::new(),
                scores: Scores::default(),
                best: Vec::new(),
                preemption: None,
                brief: None,
                ..decided
            },
        };
        let placement = Placement::Decided(Box::new(decision));
        let (number, at) = (popped.attempts, self.now());
        Some(Attempt { pod, number, at, placement })
    }

    /// Nothing more can happen: bindings that still wait do so in vain. Whether there are any.
    pub(super) fn end_waiting_bindings(&mut self) -> bool {
        let mut waiting: Vec<(u64, Name)> =
            self.assumed.iter().map(|(uid, assumed)| (assumed.number, uid.clone())).collect();
        waiting.sort();
        for (_, uid) in &waiting {
            let Some(Assumed { process, waits_for, .. }) = self.assumed.get(uid) else { continue };
            self.tasks.kill(*process);
            let message = format!("plugin \"{waits_for}\" waits for what nobody does offline");
            self.failed_bindings.insert(uid.clone(), MAX_FAILED_BINDINGS);
            self.binding_ended(uid, Err(BindingFailure::Error(message)));
        }
        !waiting.is_empty()
    }

    /// A pod goes while it is being bound.
    pub(super) fn assumed_pod_goes(&mut self, uid: &str) {
        let Some(Assumed { popped, node, process, .. }) = self.assumed.remove(uid) else { return };
        self.tasks.kill(process);
        self.handle.waiting.remove(uid);
        self.take_back(&popped.pod, &node);
        let held = popped.pod.bound_to(node);
        self.pod_has_changed(Some(&held), None);
    }
}
