//! What the queue knows about a pod.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use supercargo_framework::{points::QueuedPod, queueing::QueueRules};
use supercargo_model::{Key, Name, Pod};

use super::{HashMap, order::QueueTurn};

/// The plugins that refused a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Refusal {
    /// Those that said no.
    pub plugins: BTreeSet<Name>,
    /// Those that said to wait for something; when it happens, the pod is not kept back any longer.
    pub pending: BTreeSet<Name>,
}

impl Refusal {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Name> {
        self.plugins.union(&self.pending)
    }

    /// Whether nobody refused the pod.
    pub fn is_empty(&self) -> bool {
        self.plugins.is_empty() && self.pending.is_empty()
    }
}

/// Where the queue has a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// In the order of turns.
    Active,
    /// Kept back after a refusal, in this window.
    Backoff(Duration),
    /// Kept back after an error, in this window.
    ErrorBackoff(Duration),
    /// Waiting for events: the group, and the place in it.
    UnschedulablePods(usize, usize),
    /// Being scheduled.
    InFlight,
    /// Being bound: what happens is not recorded for it any more, but it can still come back.
    Leaving,
}

pub(super) struct Entry {
    pub(super) pod: Arc<Pod>,
    pub(super) rules: Arc<QueueRules>,
    pub(super) spot: Spot,
    /// Its place in the order of arrival, the last time it came.
    pub(super) arrival: u64,
    /// When it came the last time.
    pub(super) since: Duration,
    /// Since when it waits for its turn, if it does, by the time that turns take.
    pub(super) active_since: Duration,
    pub(super) first_queued: Option<Duration>,
    pub(super) attempts: u32,
    pub(super) refusals: u32,
    pub(super) errors_in_a_row: u32,
    pub(super) refused_by: Refusal,
    /// The PreEnqueue plugin that holds it back.
    pub(super) held_by: Option<Name>,
    pub(super) flushed: Option<Duration>,
    /// It was not woken by an event, but only because it had waited for too long.
    pub(super) after_flush: bool,
}

impl Entry {
    pub(super) fn new(pod: Arc<Pod>, rules: Arc<QueueRules>, arrival: u64, now: Duration) -> Self {
        Self {
            pod,
            rules,
            spot: Spot::Leaving,
            arrival,
            since: now,
            active_since: Duration::ZERO,
            first_queued: None,
            attempts: 0,
            refusals: 0,
            errors_in_a_row: 0,
            refused_by: Refusal::default(),
            held_by: None,
            flushed: None,
            after_flush: false,
        }
    }

    pub(super) fn turn(&self) -> QueueTurn {
        let queued = QueuedPod { pod: self.pod.clone(), arrival: self.arrival };
        QueueTurn { queued, sort: self.rules.sort().clone() }
    }

    /// The failures that decide how long it is kept back: errors count for themselves.
    pub(super) fn failures(&self) -> u32 {
        if self.errors_in_a_row > 0 { self.errors_in_a_row } else { self.refusals }
    }

    /// Since when it waits for events.
    pub(super) fn waiting_since(&self) -> Duration {
        self.flushed.map_or(self.since, |flushed| flushed.max(self.since))
    }

    /// Whether it is in the queue, rather than being scheduled or bound.
    pub(super) fn is_queued(&self) -> bool {
        !matches!(self.spot, Spot::InFlight | Spot::Leaving)
    }
}

/// All pods that the queue knows, each under a number that does not change.
#[derive(Default)]
pub(super) struct Entries {
    slots: Vec<Option<Entry>>,
    free: Vec<usize>,
    by_uid: HashMap<Name, usize>,
    by_name: HashMap<Key, usize>,
}

impl Entries {
    pub(super) fn insert(&mut self, entry: Entry) -> usize {
        let (uid, key) = (entry.pod.uid.clone(), entry.pod.key());
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(Some(entry));
        } else {
            self.slots[slot] = Some(entry);
        }
        self.by_uid.insert(uid, slot);
        self.by_name.insert(key, slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: usize) -> Option<Entry> {
        let entry = self.slots[slot].take()?;
        self.free.push(slot);
        self.by_uid.remove(&entry.pod.uid);
        self.by_name.remove(&entry.pod.key());
        Some(entry)
    }

    pub(super) fn find(&self, uid: &str) -> Option<usize> {
        self.by_uid.get(uid).copied()
    }

    pub(super) fn named(&self, key: &Key) -> Option<usize> {
        self.by_name.get(key).copied()
    }

    pub(super) fn at(&self, slot: usize) -> &Entry {
        self.slots[slot].as_ref().expect("a slot in use")
    }

    pub(super) fn at_mut(&mut self, slot: usize) -> &mut Entry {
        self.slots[slot].as_mut().expect("a slot in use")
    }

    pub(super) fn get(&self, slot: usize) -> Option<&Entry> {
        self.slots.get(slot)?.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().flatten()
    }

    /// All pods, each with its number.
    pub(super) fn slots(&self) -> impl Iterator<Item = (usize, &Entry)> {
        self.slots.iter().enumerate().filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }
}
