//! The pods that are being scheduled, and what has happened since each was taken.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use supercargo_framework::event::{Event, KeptChange};
use supercargo_model::Name;

use super::{Cause, HashMap};

/// Something that happened while pods were being scheduled.
#[derive(Clone)]
pub(super) enum Seen {
    /// An event in the cluster.
    Event(Event, Arc<KeptChange>),
    /// Somebody asked that this pod be tried again.
    Activated(Name),
    /// Pods were tried again because they had waited for too long. To kube-scheduler this is an event for all.
    Flushed,
}

/// Pods in flight. Events are kept from the oldest of them on, and no longer.
#[derive(Default)]
pub(super) struct InFlight {
    /// How many events had happened when each pod was taken, by uid.
    since: HashMap<Name, u64>,
    /// How many pods were taken at each of these counts.
    starts: BTreeMap<u64, usize>,
    seen: VecDeque<Seen>,
    /// How many events were dropped from the front.
    dropped: u64,
}

impl InFlight {
    pub(super) fn start(&mut self, uid: Name) {
        let now = self.dropped + self.seen.len() as u64;
        if self.since.insert(uid, now).is_none() {
            *self.starts.entry(now).or_default() += 1;
        }
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.since.contains_key(uid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.since.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.since.len()
    }

    pub(super) fn record(&mut self, seen: Seen) {
        if !self.is_empty() {
            self.seen.push_back(seen);
        }
    }

    /// What has happened since a pod was taken.
    pub(super) fn seen_since(&self, uid: &str) -> impl Iterator<Item = &Seen> {
        let skipped = self.since.get(uid).map_or(u64::MAX, |since| since - self.dropped);
        self.seen.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX))
    }

    /// Forgets a pod, and the events that only it would have asked for.
    pub(super) fn end(&mut self, uid: &str) {
        let Some(since) = self.since.remove(uid) else {
            return;
        };
        if let Some(count) = self.starts.get_mut(&since) {
            *count -= 1;
            if *count == 0 {
                self.starts.remove(&since);
            }
        }
        let newest = self.dropped + self.seen.len() as u64;
        let oldest = self.starts.first_key_value().map_or(newest, |(since, _)| *since);
        self.seen.drain(..(oldest - self.dropped) as usize);
        self.dropped = oldest;
        if self.is_empty() {
            // A storm of events may have needed much room.
            self.seen = VecDeque::new();
        }
    }

    /// What was seen, as metrics tell it.
    pub(super) fn causes(&self) -> impl Iterator<Item = Cause> {
        self.seen.iter().map(|seen| match seen {
            Seen::Event(event, _) => Cause::Event(*event),
            Seen::Activated(_) => Cause::ForceActivate,
            Seen::Flushed => Cause::UnschedulableTimeout,
        })
    }

    /// How many events are kept.
    pub(super) fn events(&self) -> usize {
        self.seen.len()
    }
}
