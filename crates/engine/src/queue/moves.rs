//! How pods move between the parts of the queue.

use std::{sync::Arc, time::Duration};

use supercargo_framework::{
    bugs::{self, Bug},
    event::{ActionType, Change, ClusterEvent, EventResource},
    queueing::QueueView,
    stopwatch::Stopwatch,
};
use supercargo_model::{Cluster, Name, Pod};

use super::{
    At, AttemptFailure, QueueName, QueuePlace, QueueingCause, Refusal, SchedulingQueue,
    backoff::is_kept_back,
    entry::{Entry, Spot},
    in_flight::Seen,
    order::QueueTurn,
};

/// How often pods are looked for that have waited for too long.
const FLUSH_EVERY_SECONDS: u64 = 30;

/// What an event means to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueingStrategy {
    /// Nothing.
    Stay,
    /// It is worth another try, when it is not kept back any more.
    AfterBackoff,
    /// It is worth another try now.
    Immediately,
}

impl Entry {
    /// Takes note of a failed attempt.
    pub(super) fn failed(&mut self, failure: AttemptFailure, arrival: u64, now: Duration) {
        self.refused_by = match failure {
            AttemptFailure::Refused(refusal) => refusal,
            AttemptFailure::Error => Refusal::default(),
        };
        if self.refused_by.is_empty() {
            self.errors_in_a_row = self.errors_in_a_row.saturating_add(1);
        } else {
            self.refusals = self.refusals.saturating_add(1);
            self.errors_in_a_row = 0;
        }
        self.arrival = arrival;
        self.since = now;
        self.flushed = None;
        self.after_flush = false;
    }

    /// What an event means to it, in the eyes of the plugins that refused it.
    fn strategy(
        &self,
        event: ClusterEvent,
        change: &Change<'_>,
        cluster: &Cluster,
        stopwatch: Option<&dyn Stopwatch>,
    ) -> QueueingStrategy {
        if self.refused_by.is_empty() {
            return QueueingStrategy::AfterBackoff;
        }
        let helps = |plugin: &Name| {
            let interests = self.rules.interests(plugin);
            let Some(stopwatch) = stopwatch else {
                return interests.helps(cluster, event, &self.pod, change);
            };
            let began = stopwatch.now();
            let helps = interests.helps(cluster, event, &self.pod, change);
            stopwatch.hint(plugin, event, helps, stopwatch.now().saturating_sub(began));
            helps
        };
        if self.refused_by.pending.iter().any(&helps) {
            QueueingStrategy::Immediately
        } else if self.refused_by.plugins.iter().any(helps) {
            QueueingStrategy::AfterBackoff
        } else {
            QueueingStrategy::Stay
        }
    }
}

impl SchedulingQueue {
    pub(super) fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Counts a pod that came into a queue.
    fn came(&mut self, slot: usize, queue: QueueName, cause: QueueingCause) {
        *self.incoming.entry((queue, cause)).or_default() += 1;
        if let Some(observer) = &self.observer {
            observer.queued(&self.entries.at(slot).pod, queue, cause);
        }
    }

    /// Wakes the pods that an event can help, among those that are meant.
    pub(super) fn wake(
        &mut self,
        event: ClusterEvent,
        change: &Change<'_>,
        is_meant: impl Fn(&Pod) -> bool,
        at: At<'_>,
    ) {
        let woken: Vec<(usize, QueueingStrategy)> = (self.unschedulable.awaiting(event))
            .filter(|slot| is_meant(&self.entries.at(*slot).pod))
            .map(|slot| {
                (slot, self.entries.at(slot).strategy(event, change, at.cluster, self.stopwatch.as_deref()))
            })
            .filter(|(_, strategy)| *strategy != QueueingStrategy::Stay)
            .collect();
        for (slot, strategy) in woken {
            self.requeue(slot, strategy, QueueingCause::Event(event), at);
        }
    }

    /// Wakes the pods that wait for what happens to another before it is bound, if any plugin asks for that.
    pub(super) fn tell_others(&mut self, events: &[ClusterEvent], change: &Change<'_>, at: At<'_>) {
        for event in events {
            if !self.of_others.contains(*event) {
                continue;
            }
            let helps = |slot: &usize| {
                let Entry { pod, rules, refused_by, .. } = self.entries.at(*slot);
                let helps = |by: &Name| rules.interests(by).other_helps(at.cluster, *event, pod, change);
                refused_by.all().any(helps)
            };
            let woken: Vec<usize> = self.unschedulable.awaiting(*event).filter(helps).collect();
            for slot in woken {
                self.requeue(slot, QueueingStrategy::AfterBackoff, QueueingCause::Event(*event), at);
            }
            self.record(&[*event], change);
        }
    }

    /// Remembers a change for the pods that are being scheduled, if any plugin asks for its like.
    pub(super) fn record(&mut self, events: &[ClusterEvent], change: &Change<'_>) {
        if self.in_flight.is_empty() || bugs::is_on(Bug::EventInFlightLost) {
            return;
        }
        let mut kept = None;
        for event in events.iter().filter(|event| self.of_interest.contains(**event)) {
            let kept = kept.get_or_insert_with(|| Arc::new(change.kept()));
            self.in_flight.record(Seen::Event(*event, kept.clone()));
        }
    }

    /// The room that a pod had a claim to is free again for those that had to leave it.
    pub(super) fn claim_dropped(&mut self, pod: &Pod, at: At<'_>) {
        if bugs::is_on(Bug::DroppedClaimWakesNobody) {
            return;
        }
        let event = ClusterEvent::new(EventResource::AssignedPod, ActionType::Delete);
        let change = Change::Pod(Some(pod), None);
        self.wake(event, &change, |other| other.spec.priority <= pod.spec.priority, at);
        self.record(&[event], &change);
    }

    /// Moves a unschedulable pod whose own update can help it.
    pub(super) fn helped_itself(
        &mut self,
        slot: usize,
        events: &[ClusterEvent],
        change: &Change<'_>,
        at: At<'_>,
    ) {
        for event in events {
            let strategy =
                self.entries.at(slot).strategy(*event, change, at.cluster, self.stopwatch.as_deref());
            if strategy != QueueingStrategy::Stay {
                self.requeue(slot, strategy, QueueingCause::Event(*event), at);
            }
            if !matches!(self.entries.at(slot).spot, Spot::UnschedulablePods(..)) {
                return;
            }
        }
    }

    /// What a pod has missed while it was being scheduled.
    pub(super) fn missed(&self, slot: usize, at: At<'_>) -> QueueingStrategy {
        let entry = self.entries.at(slot);
        let uid = &entry.pod.uid;
        if entry.refused_by.is_empty() || !self.in_flight.contains(uid) {
            return QueueingStrategy::AfterBackoff;
        }
        // What is not known may have been what the pod waits for.
        let Some(seen) = self.in_flight.seen_since(uid) else { return QueueingStrategy::AfterBackoff };
        let mut most = QueueingStrategy::Stay;
        for seen in seen {
            let strategy = match seen {
                Seen::Event(event, change) => {
                    entry.strategy(*event, &change.change(), at.cluster, self.stopwatch.as_deref())
                }
                Seen::Activated(other) if other != uid => QueueingStrategy::Stay,
                Seen::Activated(_) | Seen::Flushed => QueueingStrategy::AfterBackoff,
            };
            most = most.max(strategy);
            let best = if entry.refused_by.pending.is_empty() {
                QueueingStrategy::AfterBackoff
            } else {
                QueueingStrategy::Immediately
            };
            if most >= best {
                break;
            }
        }
        most
    }

    /// Puts a pod where it belongs after something happened, unless a PreEnqueue plugin holds it back.
    pub(super) fn requeue(
        &mut self,
        slot: usize,
        strategy: QueueingStrategy,
        cause: QueueingCause,
        at: At<'_>,
    ) {
        let was_parked = matches!(self.entries.at(slot).spot, Spot::UnschedulablePods(..));
        self.detach(slot);
        let entry = self.entries.at(slot);
        let until = self.settings.backoff.window(entry.since, entry.failures());
        if strategy == QueueingStrategy::Stay {
            self.put_parked(slot);
            self.came(slot, QueueName::Unschedulable, cause);
        } else if self.is_held(slot, at.cluster) {
            self.put_parked(slot);
            if !(was_parked && concerns_one(cause)) {
                self.came(slot, QueueName::Unschedulable, cause);
            }
        } else if let Some(until) = until
            && strategy == QueueingStrategy::AfterBackoff
            && is_kept_back(Some(until), at.now)
        {
            self.put_backoff(slot, until, cause);
        } else {
            self.put_active(slot, cause, at.now);
        }
    }

    /// Asks the PreEnqueue plugins.
    fn is_held(&mut self, slot: usize, cluster: &Cluster) -> bool {
        let entry = self.entries.at(slot);
        let view = QueueView { cluster, pending: &*self };
        let verdict = entry.rules.pre_enqueue(&view, &entry.pod, entry.held_by.as_ref());
        let entry = self.entries.at_mut(slot);
        match verdict {
            Ok(()) => {
                entry.held_by = None;
                false
            }
            Err(rejection) => {
                let known = entry.refused_by.all().any(|plugin| *plugin == rejection.plugin);
                if !known {
                    self.reasons.add_one(entry, &rejection.plugin);
                    entry.refused_by.plugins.insert(rejection.plugin.clone());
                }
                entry.held_by = Some(rejection.plugin);
                entry.after_flush = false;
                true
            }
        }
    }

    pub(super) fn put_active(&mut self, slot: usize, cause: QueueingCause, now: Duration) {
        let entry = self.entries.at_mut(slot);
        entry.first_queued.get_or_insert(now);
        entry.spot = Spot::Active;
        entry.active_since = self.overdue.now();
        self.active.insert(entry.turn());
        self.came(slot, QueueName::Active, cause);
    }

    fn put_backoff(&mut self, slot: usize, until: Duration, cause: QueueingCause) {
        let entry = self.entries.at_mut(slot);
        if entry.refused_by.is_empty() {
            entry.spot = Spot::ErrorBackoff(until);
            self.error_backoff.insert(until, entry.turn());
        } else {
            entry.spot = Spot::Backoff(until);
            self.backoff.insert(until, entry.turn());
        }
        self.came(slot, QueueName::Backoff, cause);
    }

    fn put_parked(&mut self, slot: usize) {
        let spot = self.unschedulable.insert(slot, self.entries.at(slot));
        self.entries.at_mut(slot).spot = spot;
    }

    /// Takes a pod out of the part it is in.
    pub(super) fn detach(&mut self, slot: usize) {
        let entry = self.entries.at(slot);
        match entry.spot {
            Spot::Active => self.active.remove(&entry.turn()),
            Spot::Backoff(until) => self.backoff.remove(until, entry.turn()),
            Spot::ErrorBackoff(until) => self.error_backoff.remove(until, entry.turn()),
            Spot::UnschedulablePods(group, place) => {
                if let Some(moved) = self.unschedulable.remove(slot, entry, group, place) {
                    self.entries.at_mut(moved).spot = Spot::UnschedulablePods(group, place);
                }
            }
            Spot::InFlight | Spot::Leaving => {}
        }
        self.entries.at_mut(slot).spot = Spot::Leaving;
    }

    /// The slot of the pod whose turn it is.
    pub(super) fn next_active(&mut self) -> Option<usize> {
        loop {
            let turn = self.active.pop_turn()?;
            if let Some(slot) = self.whose(&turn, QueuePlace::Active) {
                return Some(slot);
            }
        }
    }

    /// The slot of the first pod that is kept back after a refusal.
    pub(super) fn next_kept_back(&mut self) -> Option<usize> {
        loop {
            let turn = self.backoff.pop()?;
            if let Some(slot) = self.whose(&turn, QueuePlace::Backoff) {
                self.came(slot, QueueName::Active, QueueingCause::PopFromBackoffQ);
                return Some(slot);
            }
        }
    }

    /// Whose turn this is, if it still holds: an order that contradicts itself may hide turns from being taken back.
    fn whose(&self, turn: &QueueTurn, place: QueuePlace) -> Option<usize> {
        let slot = self.entries.find(&turn.queued.pod.uid)?;
        let entry = self.entries.at(slot);
        (entry.arrival == turn.queued.arrival && entry.place() == place).then_some(slot)
    }

    /// Lets pods come back whose time is over.
    pub(super) fn advance(&mut self, at: At<'_>) {
        let after_error = |queue: &mut Self| match bugs::is_on(Bug::BackoffNeverOver) {
            true => None,
            false => queue.error_backoff.pop_over(at.now),
        };
        while let Some(turn) = self.backoff.pop_over(at.now).or_else(|| after_error(self)) {
            if let Some(slot) = self.whose(&turn, QueuePlace::Backoff) {
                self.put_active(slot, QueueingCause::BackoffComplete, at.now);
            }
        }
        let last_look = Duration::from_secs(at.now.as_secs() / FLUSH_EVERY_SECONDS * FLUSH_EVERY_SECONDS);
        let mut flushed = false;
        while let Some((since, slot)) = self.unschedulable.longest()
            && since.saturating_add(self.settings.max_unschedulable) < last_look
        {
            self.detach(slot);
            let entry = self.entries.at_mut(slot);
            entry.after_flush = true;
            entry.flushed = Some(at.now);
            self.requeue(slot, QueueingStrategy::AfterBackoff, QueueingCause::UnschedulableTimeout, at);
            flushed = true;
        }
        if flushed {
            self.in_flight.record(Seen::Flushed);
        }
    }

    /// When a pod that waits for events since this moment is tried anyway.
    pub(super) fn flush_at(&self, since: Duration) -> Duration {
        let over = since.saturating_add(self.settings.max_unschedulable).as_secs();
        Duration::from_secs(
            (over / FLUSH_EVERY_SECONDS).saturating_add(1).saturating_mul(FLUSH_EVERY_SECONDS),
        )
    }
}

/// What concerns a pod alone is seen in place: if it stays where it is, it did not come.
fn concerns_one(cause: QueueingCause) -> bool {
    matches!(
        cause,
        QueueingCause::ForceActivate
            | QueueingCause::Event(ClusterEvent { resource: EventResource::UnscheduledPod, .. })
    )
}
