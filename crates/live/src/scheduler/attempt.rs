//! One attempt to schedule a pod: decide, assume the pod, and send the binding off; or say why not.

use std::{sync::Arc, time::Duration};

use supercargo_engine::{
    At, AttemptFailure, Decision, Outcome, Placement, Popped, Refusal, Removal, extender_calls,
};
use supercargo_framework::{
    Code,
    assumed::{ReserveCycle, Restored},
    binding_signal::BindingSignal,
    bugs::{self, Bug},
    event::Change,
    preemption::{Claim, Rejection, no_node_available},
    registry::Point,
    waiting::WaitingPod,
};
use supercargo_manifest::clip;
use supercargo_model::{Kind, Name, Pod};

use super::{
    Assumed, PODS_TARGET, Scheduler,
    binding::{self, Job},
    inspector::LastFailure,
    meter::{Attempted, DecidedBy, Task},
    records::RecordKind,
};
use crate::status::{NominatingInfo, Reason};

/// Of how many nodes the scores are logged, at most.
const MAX_LOGGED_NODES: usize = 50;

impl Scheduler {
    pub(super) fn attempt(&mut self, popped: Popped) {
        let started = self.world.uptime();
        let popped = Popped { pod: self.engine.nominations().named_in(&popped.pod), ..popped };
        let pod = popped.pod.clone();
        if pod.terminating {
            return self.skip_deleting(&pod);
        }
        if self.assumed.contains_key(&pod.uid) {
            return self.queue.done(&pod.uid);
        }
        if extender_calls::take_part(self.engine.extenders(), &pod) {
            return self.call_extenders_when_possible(popped);
        }
        self.meter.tries(&pod, popped.attempts);
        let Some(placement) = self.decide(&pod) else {
            self.queue.done(&pod.uid);
            return;
        };
        let took = self.world.uptime() - started;
        self.carry_on(popped, placement, started, took);
    }

    /// A pod whose deletion was asked for is not tried, and told so. If it changes, it is told again.
    fn skip_deleting(&mut self, pod: &Pod) {
        tracing::debug!(pod = %pod.key(), "its deletion was asked for, so it is not scheduled");
        self.reporter.skips_deleting(pod);
        if !bugs::is_on(Bug::DoneForgotten) {
            self.queue.done(&pod.uid);
        }
        self.leave_queue(&pod.uid, Removal::Skipped);
    }

    /// Does what was decided.
    pub(super) fn carry_on(
        &mut self,
        popped: Popped,
        placement: Placement,
        started: Duration,
        took: Duration,
    ) {
        let (node, total, ties, feasible) = match placement {
            Placement::On { node, total, ties, feasible, .. } => (node, total, ties, feasible),
            Placement::Decided(decision) => return self.carry_on_in_full(popped, &decision, started, took),
        };
        let pod = popped.pod.clone();
        tracing::debug!(pod = %pod.key(), %node, total, ties, feasible, ?took, "decided");
        self.meter.decided(&pod.spec.scheduler_name, DecidedBy::Memory, took);
        self.recorder.keep(&pod, || RecordKind::Decided {
            attempt: popped.attempts,
            node: node.clone(),
            feasible,
            total: Some(total),
            ties,
        });
        let because = self.because(Some(total), ties, feasible);
        self.place(popped, pod, node, started, because);
    }

    /// Does what was decided by asking every plugin.
    fn carry_on_in_full(&mut self, popped: Popped, decision: &Decision, started: Duration, took: Duration) {
        let pod = popped.pod.clone();
        tracing::debug!(pod = %pod.key(), node = decision.node().map(tracing::field::display), feasible = decision.feasible.len(),
            refused = decision.rejected.len(), ?took, "decided");
        self.meter.decided(&pod.spec.scheduler_name, DecidedBy::Asking, took);
        if let Some(decisions) = &self.decisions {
            decisions.decided(popped.attempts, decision);
        }
        match decision.node().cloned() {
            Some(node) => {
                self.recorder.keep(&pod, || RecordKind::Decided {
                    attempt: popped.attempts,
                    node: node.clone(),
                    feasible: decision.feasible.len(),
                    total: decision.best_total(),
                    ties: decision.best.len(),
                });
                let because =
                    self.because(decision.best_total(), decision.best.len(), decision.feasible.len());
                self.place(popped, pod, node, started, because);
            }
            None => self.no_node(&pod, decision, started),
        }
    }

    /// Whether scores are to be logged, or somebody sees all decisions in full.
    pub(super) fn needs_records(&self) -> bool {
        self.decisions.is_some() || tracing::enabled!(tracing::Level::TRACE)
    }

    /// Decides on the fast path where that is possible, unless scores are to be logged, or somebody sees all decisions in full. Both paths lead to the same answer.
    fn decide(&mut self, pod: &Arc<Pod>) -> Option<Placement> {
        self.tell_time();
        if !self.needs_records() {
            return self.engine.place(pod);
        }
        let decision = self.engine.decide(pod)?;
        log_scores(&decision);
        Some(Placement::Decided(Box::new(decision)))
    }

    /// Why a node was chosen, in a few words, if events are to say it.
    fn because(&self, total: Option<i64>, ties: usize, feasible: usize) -> Option<String> {
        let total = total.filter(|_| self.explains_in_events && feasible > 1);
        let tied = if ties > 1 { format!(", drawn from {ties} with the same") } else { String::new() };
        match total {
            Some(total) => Some(format!("highest total, {total}, of {feasible} feasible nodes{tied}")),
            None => self.explains_in_events.then(|| "the only feasible node".to_owned()),
        }
    }

    /// Tells the cluster the time, if a plugin asks for it.
    pub(super) fn tell_time(&mut self) {
        if self.reads_time {
            let now = self.world.now();
            self.engine.cluster_mut().set_now(now);
        }
    }

    /// Assumes the pod on its node, and sends the binding off.
    fn place(
        &mut self,
        popped: Popped,
        pod: Arc<Pod>,
        node: Name,
        started: Duration,
        because: Option<String>,
    ) {
        let Some(profile) = self.engine.profiles().shared(&pod.spec.scheduler_name) else {
            return;
        };
        if !bugs::is_on(Bug::AssumedPodNotCounted) {
            self.engine.assume(&pod, node.clone());
        }
        let reserved = {
            let (cluster, assumed) = (self.engine.cluster_mut(), &mut self.assumed_objects);
            let mut cycle = ReserveCycle::new(cluster, assumed, pod.uid.clone());
            let reserve = || profile.profile.reserve(&mut cycle, &pod, &node);
            profile.profile.timed_point(Point::Reserve, reserve, code)
        };
        let cluster = self.engine.cluster();
        let permit = || profile.profile.ask_permission(cluster, &pod, &node);
        let permitted = match reserved {
            Ok(()) => profile
                .profile
                .timed_point(Point::Permit, permit, code)
                .map_err(|rejection| ("Permit", rejection)),
            Err(rejection) => Err(("Reserve", rejection)),
        };
        let waits = match permitted {
            Ok(waits) => waits,
            Err((step, rejection)) => {
                // Nobody has seen the pod there, so that nobody is woken.
                self.unreserve(&pod, &node);
                self.take_off_its_node(&pod.key(), &pod.uid);
                return self.not_placed(step, &pod, rejection, started);
            }
        };
        let prepares = profile.profile.first_to_pre_bind(&pod, &node);
        let signal = BindingSignal::new(!waits.is_empty(), prepares.is_some());
        let is_bound_at_once = waits.is_empty() && prepares.is_none();
        if waits.is_empty() {
            // Nothing that happens from here on can make a difference to whether the pod is refused.
            self.queue.done(&pod.uid);
        } else {
            let permits = waits.iter().map(|wait| (wait.plugin.clone(), wait.handle.clone())).collect();
            self.waiting.insert(WaitingPod { pod: pod.clone(), node: node.clone(), permits });
        }
        let job = Job {
            popped,
            node: node.clone(),
            profile,
            lease: self.lease.clone(),
            started,
            waits,
            prepares,
            waiting: self.waiting.clone(),
            signal: signal.clone(),
            statuses: self.reporter.statuses().clone(),
            extenders: self.extenders.clone(),
            report_to: self.report_to.clone(),
            meter: self.meter.clone(),
            _counted: self.meter.task(Task::Binding),
            _busy: is_bound_at_once.then(|| self.reporter.busy()),
        };
        let assumed = Assumed { pod: pod.clone(), node, started, signal, because, gone: false, ended: None };
        self.assumed.insert(pod.uid.clone(), assumed);
        self.world.spawn(Box::pin(binding::carry_out(self.world.clone(), job)));
    }

    /// Takes back what was kept for a pod on a node.
    pub(super) fn unreserve(&mut self, pod: &Pod, node: &Name) {
        if let Some(profile) = self.engine.profile(&pod.spec.scheduler_name) {
            profile.unreserve(pod, node);
        }
        if !bugs::is_on(Bug::AssumedVolumeNotRestored) {
            let restored = self.assumed_objects.restore(self.engine.cluster_mut(), &pod.uid);
            // Devices that were chosen and not given after all are free for others.
            for Restored { before, after } in restored {
                if before.kind() == Kind::ResourceClaim {
                    self.happened(Change::Other(Some(&before), after.as_ref()));
                }
            }
        }
    }

    fn no_node(&mut self, pod: &Arc<Pod>, decision: &Decision, started: Duration) {
        let message = decision.message().unwrap_or_default();
        let failure = decision.failure().unwrap_or(AttemptFailure::Error);
        if let Some(Ok(nomination)) = &decision.preemption {
            self.preempt(pod, nomination);
        }
        let profile = self.engine.profile(&pod.spec.scheduler_name);
        if let (Some(profile), Some(follow_up)) = (profile, &decision.follow_up) {
            profile.follow_up(pod, follow_up);
        }
        // Without any node it is nobody's fault, and tried again as after an error; but no error it is.
        let reason = match decision.outcome {
            Outcome::Error { .. } => Reason::SchedulerError,
            _ => Reason::Unschedulable,
        };
        self.failed(pod, failure, reason, decision.claim(), &message, started);
    }

    /// A plugin of the scheduling cycle refused the node after it was chosen, or failed.
    fn not_placed(&mut self, step: &str, pod: &Arc<Pod>, rejection: Rejection, started: Duration) {
        if rejection.status.is_rejection() {
            return self.refused(pod, rejection, started);
        }
        let message =
            format!("running {step} plugin \"{}\": {}", rejection.plugin, rejection.status.message());
        self.failed(pod, AttemptFailure::Error, Reason::SchedulerError, Claim::Dropped, &message, started);
    }

    /// A plugin refused the node after it was chosen: there was one node, and it is not available.
    pub(super) fn refused(&mut self, pod: &Arc<Pod>, rejection: Rejection, started: Duration) {
        let reasons = rejection.status.reasons.iter().map(|reason| format!("1 {reason}"));
        let mut reasons: Vec<String> = reasons.collect();
        reasons.sort();
        let message = no_node_available(1, &reasons.join(", "));
        let failure =
            AttemptFailure::Refused(Refusal { plugins: [rejection.plugin].into(), ..Refusal::default() });
        self.failed(pod, failure, Reason::Unschedulable, Claim::Dropped, &message, started);
    }

    /// Tells why a pod was not scheduled, and parks it until something can help it.
    pub(super) fn failed(
        &mut self,
        pod: &Arc<Pod>,
        failure: AttemptFailure,
        reason: Reason,
        claim: Claim,
        message: &str,
        started: Duration,
    ) {
        let now = self.world.uptime();
        let how = match reason {
            Reason::Unschedulable => Attempted::Unschedulable,
            Reason::SchedulerError => Attempted::Error,
        };
        self.meter.attempted(&pod.spec.scheduler_name, how, now - started);
        self.meter.ended(pod, None, how, now - started);
        // It names all that the pod asks for in vain, which may be as long as the pod's object.
        tracing::info!(target: PODS_TARGET, pod = %pod.key(), reason = &*clip(message), "not scheduled");
        self.recorder.keep(pod, || RecordKind::Failed {
            message: message.to_owned(),
            nominated_node: match &claim {
                Claim::On(node) => Some(node.clone()),
                Claim::Kept | Claim::Dropped => None,
            },
        });
        if bugs::is_on(Bug::TaskLeaked) {
            self.world.spawn(Box::pin(std::future::pending()));
        }
        let mistaken = bugs::is_on(Bug::MessageOfAnotherPod).then(|| self.last_message()).flatten();
        let message = mistaken.as_deref().unwrap_or(message);
        let nomination = match &claim {
            Claim::On(node) => NominatingInfo::Set(node.clone()),
            Claim::Dropped => NominatingInfo::Clear,
            Claim::Kept => NominatingInfo::Keep,
        };
        let (cluster, nominations) = self.engine.cluster_and_nominations();
        let parked = self.queue.park(&pod.uid, failure, claim, nominations, At { now, cluster });
        match self.queue.find(&pod.uid) {
            Some(newest) if parked.is_some() => {
                let failure = LastFailure { at: now, message: message.into() };
                self.last_failures.insert(pod.uid.clone(), failure);
                self.reporter.failed(newest.pod, reason, message, nomination);
            }
            // Another pod has its name by now.
            _ if self.queue.named(&pod.key()).is_some() => {}
            _ => self.reporter.failed_and_gone(pod, message),
        }
    }
}

impl Scheduler {
    /// Why some pod was not scheduled, the last time. For a bug that is switched on.
    fn last_message(&self) -> Option<Arc<str>> {
        let newest = self.last_failures.values().max_by_key(|failure| (failure.at, failure.message.clone()));
        newest.map(|failure| failure.message.clone())
    }
}

fn code<T>(result: &Result<T, Rejection>) -> Option<Code> {
    result.as_ref().err().map(|rejection| rejection.status.code)
}

/// Logs each plugin's score for each node, the best first, and who refused which nodes.
pub(super) fn log_scores(decision: &Decision) {
    if !tracing::enabled!(tracing::Level::TRACE) {
        return;
    }
    for (node, rejection) in decision.rejected.iter().take(MAX_LOGGED_NODES) {
        let (plugin, reasons) = (&rejection.plugin, rejection.status.message());
        tracing::trace!(pod = %decision.pod, %node, %plugin, reasons, "node refused");
    }
    let more = decision.rejected.len().saturating_sub(MAX_LOGGED_NODES);
    if more > 0 {
        tracing::trace!(pod = %decision.pod, more, "further refused nodes are not logged");
    }
    let mut order: Vec<usize> = (0..decision.feasible.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(decision.scores.totals[*i]));
    for i in order.iter().copied().take(MAX_LOGGED_NODES) {
        let scores: Vec<String> = (decision.scores.columns.iter())
            .map(|column| {
                format!(
                    "{} {} (raw {}) × {}",
                    column.plugin, column.normalized[i], column.raw[i], column.weight
                )
            })
            .collect();
        let total = decision.scores.totals[i];
        tracing::trace!(pod = %decision.pod, node = %decision.feasible[i], total, "{}", scores.join(", "));
    }
    let more = order.len().saturating_sub(MAX_LOGGED_NODES);
    if more > 0 {
        tracing::trace!(pod = %decision.pod, more, "further nodes are not logged");
    }
}
