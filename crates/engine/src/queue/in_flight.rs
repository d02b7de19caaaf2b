//! The pods that are being scheduled, and what has happened since each was taken.

use std::{
    collections::{BTreeMap, VecDeque, hash_map::Entry},
    sync::Arc,
};

use supercargo_framework::event::{ClusterEvent, KeptChange};
use supercargo_model::Name;

use super::{HashMap, QueueingCause};

/// Something that happened while pods were being scheduled.
#[derive(Clone)]
pub(super) enum Seen {
    /// An event in the cluster.
    Event(ClusterEvent, Arc<KeptChange>),
    /// Somebody asked that this pod be tried again.
    Activated(Name),
    /// Pods were tried again because they had waited for too long. To kube-scheduler this is an event for all.
    Flushed,
}

/// How many events are kept at most. A pod that waits for a permission for minutes would have all of them kept.
const MAX_EVENTS: usize = 100_000;

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
    /// Keeps events for a pod from here on. One that is in flight already goes on from where it started.
    pub(super) fn start(&mut self, uid: Name) {
        let now = self.dropped + self.seen.len() as u64;
        if let Entry::Vacant(vacant) = self.since.entry(uid) {
            vacant.insert(now);
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
        if self.is_empty() {
            return;
        }
        if self.seen.len() == MAX_EVENTS {
            self.seen.pop_front();
            self.dropped += 1;
        }
        self.seen.push_back(seen);
    }

    /// What has happened since a pod was taken; `None` if that was too much to be kept.
    pub(super) fn seen_since(&self, uid: &str) -> Option<impl Iterator<Item = &Seen>> {
        let skipped = match self.since.get(uid) {
            Some(since) => since.checked_sub(self.dropped)?,
            None => u64::MAX,
        };
        Some(self.seen.iter().skip(usize::try_from(skipped).unwrap_or(usize::MAX)))
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
        let oldest = self.starts.first_key_value().map_or(newest, |(since, _)| *since).max(self.dropped);
        self.seen.drain(..(oldest - self.dropped) as usize);
        self.dropped = oldest;
        if self.is_empty() {
            // A storm of events may have needed much room.
            self.seen = VecDeque::new();
        }
    }

    /// What was seen, as metrics tell it.
    pub(super) fn causes(&self) -> impl Iterator<Item = QueueingCause> {
        self.seen.iter().map(|seen| match seen {
            Seen::Event(event, _) => QueueingCause::Event(*event),
            Seen::Activated(_) => QueueingCause::ForceActivate,
            Seen::Flushed => QueueingCause::UnschedulableTimeout,
        })
    }

    /// How many events are kept.
    pub(super) fn events(&self) -> usize {
        self.seen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_starts_twice_is_counted_once() {
        let mut in_flight = InFlight::default();
        in_flight.start("p".into());
        in_flight.record(Seen::Flushed);
        in_flight.start("p".into());
        // What happened before the second start still counts for the pod…
        assert_eq!(in_flight.seen_since("p").map(Iterator::count), Some(1));
        // …and nothing is kept once it has ended.
        in_flight.end("p");
        in_flight.start("q".into());
        in_flight.record(Seen::Flushed);
        in_flight.end("q");
        assert_eq!((in_flight.len(), in_flight.events(), in_flight.starts.len()), (0, 0, 0));
    }

    #[test]
    fn events_are_kept_up_to_a_bound() {
        let mut in_flight = InFlight::default();
        in_flight.start("waits".into());
        (0..=MAX_EVENTS).for_each(|_| in_flight.record(Seen::Flushed));
        in_flight.start("new".into());
        assert_eq!(in_flight.events(), MAX_EVENTS);
        assert!(in_flight.seen_since("waits").is_none());
        assert_eq!(in_flight.seen_since("new").map(Iterator::count), Some(0));
        in_flight.end("waits");
        in_flight.end("new");
        assert_eq!(in_flight.events(), 0);
    }
}
