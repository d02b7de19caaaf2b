//! One attempt to schedule a pod: decide, keep the place in our books, and send the binding off; or say why not.

use std::{sync::Arc, time::Duration};

use supercargo_engine::{Decision, Failure, Outcome, Placement, Popped, Refusal};
use supercargo_framework::{
    Code,
    event::Change,
    preemption::{Claim, Rejection},
};
use supercargo_model::{Name, Pod};
use supercargo_plugins::volume_binding::{self, Restored};
use tokio::sync::watch;

use super::{
    Assumed, HeldVolumes, PODS_TARGET, Scheduler,
    binding::{self, Job},
    meter::{Attempted, DecidedBy},
};
use crate::{
    status::{Nomination, Reason},
    volumes::{Order, Word},
};

/// One cycle of so many asks every plugin.
const ASK_EVERY: u64 = 100;
/// Of how many nodes the scores are logged, at most.
const MAX_LOGGED_NODES: usize = 50;

/// Volumes to be bound, and the ear for what becomes known about them.
type Ordered = (Order, watch::Receiver<Word>);

impl Scheduler {
    pub(super) fn attempt(&mut self, popped: Popped) {
        let started = self.world.uptime();
        let pod = popped.pod.clone();
        if pod.terminating {
            tracing::debug!(pod = %pod.key(), "its deletion was asked for, so it is not scheduled");
            self.queue.done(&pod.uid);
            return;
        }
        if self.hold_back(&pod) {
            tracing::debug!(pod = %pod.key(), "room is still being made for it");
            return;
        }
        if self.engine.is_consulted(&pod) {
            return self.consult_when_possible(popped);
        }
        let Some(placement) = self.decide(&pod) else {
            self.queue.done(&pod.uid);
            return;
        };
        let took = self.world.uptime() - started;
        match placement {
            Placement::On { node, total, ties, feasible } => {
                tracing::debug!(pod = %pod.key(), %node, total, ties, feasible, ?took, "decided");
                self.meter.decided(&pod.spec.scheduler_name, DecidedBy::Memory, took);
                self.place(popped, pod, node, started);
            }
            Placement::Decided(decision) => self.carry_on(popped, &decision, started, took),
        }
    }

    /// Does what was decided by asking every plugin.
    pub(super) fn carry_on(
        &mut self,
        popped: Popped,
        decision: &Decision,
        started: Duration,
        took: Duration,
    ) {
        let pod = popped.pod.clone();
        tracing::debug!(pod = %pod.key(), node = ?decision.node(), feasible = decision.feasible.len(),
            refused = decision.rejected.len(), ?took, "decided");
        self.meter.decided(&pod.spec.scheduler_name, DecidedBy::Asking, took);
        match decision.node().cloned() {
            Some(node) => self.place(popped, pod, node, started),
            None => self.no_node(&pod, decision, started),
        }
    }

    /// Decides from memory; but once in a while by asking every plugin, so that their times become known. The two ways
    /// lead to the same answer.
    fn decide(&mut self, pod: &Arc<Pod>) -> Option<Placement> {
        self.tell_time();
        let asks = self.cycles.is_multiple_of(ASK_EVERY) || tracing::enabled!(tracing::Level::TRACE);
        self.cycles += 1;
        if !asks {
            return self.engine.place(pod);
        }
        let decision = self.engine.decide(pod)?;
        log_scores(&decision);
        Some(Placement::Decided(Box::new(decision)))
    }

    /// Keeps the place in our books, and sends the binding off.
    fn place(&mut self, popped: Popped, pod: Arc<Pod>, node: Name, started: Duration) {
        let Some(profile) = self.engine.shared_profile(&pod.spec.scheduler_name) else {
            return;
        };
        let (volumes, order) = match self.assume_volumes(&pod, &node) {
            Ok(Some((held, order))) => (Some(held), Some(order)),
            Ok(None) => (None, None),
            Err(rejection) => return self.refused(&pod, rejection, started),
        };
        self.engine.assume(&pod, node.clone());
        if let Err(rejection) = profile.profile.reserve(&pod, &node) {
            self.unreserve(&pod, &node, volumes);
            self.off_its_node(&pod.key(), &pod.uid);
            return self.refused(&pod, rejection, started);
        }
        let job = Job {
            popped,
            node: node.clone(),
            profile,
            lease: self.lease.clone(),
            bindings: self.bindings.clone(),
            started,
            volumes: order,
            extenders: self.extenders.clone(),
            _busy: self.teller.busy(),
        };
        let by_extender = self.extenders.binder_of(&pod).is_some();
        self.assumed.insert(pod.uid.clone(), Assumed { pod, node, started, volumes, by_extender });
        let (world, report_to) = (self.world.clone(), self.report_to.clone());
        self.world.spawn(Box::pin(binding::carry_out(world, job, report_to)));
    }

    /// Keeps the pod's volumes for it, if any have to be bound first.
    fn assume_volumes(
        &mut self,
        pod: &Arc<Pod>,
        node: &Name,
    ) -> Result<Option<(HeldVolumes, Ordered)>, Rejection> {
        let refuse = |status| Rejection { plugin: volume_binding::NAME.into(), status };
        let Some(bind_timeout) = self.volume_timeouts.get(&pod.spec.scheduler_name).copied() else {
            return Ok(None);
        };
        let cluster = self.engine.cluster_mut();
        let Some(info) = cluster.node(node).filter(|_| !pod.spec.volumes.is_empty()) else {
            return Ok(None);
        };
        let plan = volume_binding::plan(cluster, pod, info).map_err(refuse)?;
        if plan.is_empty() {
            return Ok(None);
        }
        let assumption = self.volumes.assume(cluster, &plan, node).map_err(refuse)?;
        let (word, hears) = watch::channel(Word::default());
        let order = Order { pod: pod.key(), node: node.clone(), plan, bind_timeout };
        Ok(Some((HeldVolumes { assumption, word }, (order, hears))))
    }

    /// Gives back what was kept for a pod, and wakes those that it was in the way of.
    pub(super) fn unreserve(&mut self, pod: &Pod, node: &Name, volumes: Option<HeldVolumes>) {
        if let Some(profile) = self.engine.profile(&pod.spec.scheduler_name) {
            profile.unreserve(pod, node);
        }
        if let Some(HeldVolumes { assumption, .. }) = volumes {
            for Restored { before, after } in self.volumes.restore(self.engine.cluster_mut(), assumption) {
                self.happened(Change::Other(Some(&before), Some(&after)));
            }
        }
    }

    fn no_node(&mut self, pod: &Arc<Pod>, decision: &Decision, started: Duration) {
        let message = decision.message().unwrap_or_default();
        let failure = decision.failure().unwrap_or(Failure::Error);
        let claim = match &decision.preemption {
            Some(Ok(nomination)) => {
                self.make_room(pod, nomination);
                Claim::On(nomination.node.clone())
            }
            // It is no time to evict anybody: what was promised before is still under way.
            Some(Err(status)) if status.code == Code::Pending => Claim::AsWritten,
            _ => Claim::Dropped,
        };
        // Without any node it is nobody's fault, and tried again as after an error; but no error it is.
        let reason = match decision.outcome {
            Outcome::Error { .. } => Reason::SchedulerError,
            _ => Reason::Unschedulable,
        };
        self.failed(pod, failure, reason, claim, &message, started);
    }

    /// A plugin refused the node after it was chosen.
    pub(super) fn refused(&mut self, pod: &Arc<Pod>, rejection: Rejection, started: Duration) {
        let message = rejection.status.message();
        let (failure, reason) = if rejection.status.is_rejection() {
            let refusal = Refusal { plugins: [rejection.plugin].into(), ..Refusal::default() };
            (Failure::Refused(refusal), Reason::Unschedulable)
        } else {
            (Failure::Error, Reason::SchedulerError)
        };
        self.failed(pod, failure, reason, Claim::Dropped, &message, started);
    }

    /// Tells why a pod was not scheduled, and parks it until something can help it.
    pub(super) fn failed(
        &mut self,
        pod: &Arc<Pod>,
        failure: Failure,
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
        tracing::info!(target: PODS_TARGET, pod = %pod.key(), message, "not scheduled");
        let nomination = match &claim {
            Claim::On(node) => Nomination::Set(node.clone()),
            Claim::Dropped => Nomination::Clear,
            Claim::AsWritten => Nomination::Keep,
        };
        let parked = self.queue.park(&pod.uid, failure, claim, self.engine.nominations_mut(), now);
        if parked.is_some() {
            self.teller.failed(pod, reason, message, nomination);
        }
    }
}

/// Logs each plugin's score for each node, the best first.
pub(super) fn log_scores(decision: &Decision) {
    if !tracing::enabled!(tracing::Level::TRACE) {
        return;
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
