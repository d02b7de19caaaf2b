//! Nobody starves: pods that have waited for their turn for too long come between those that are more important.
//!
//! Pods go in the order of the profile, the most important first. If trying hopeless pods again takes longer than they are
//! kept back, their turns never end, and in kube-scheduler whoever is less important is never tried. Here those who have
//! waited for too long share the time with them. What counts is the time that turns take, and not how long nobody was tried,
//! so that the order is the profile's alone wherever the scheduler keeps up.

use std::{collections::VecDeque, time::Duration};

use super::{
    SchedulingQueue,
    entry::{Entry, Spot},
};

/// How long a pod may wait for its turn while others are tried again: longer than those are kept back at most, by default.
const MAX_WAIT: Duration = Duration::from_secs(15);
/// How long it may wait while others are tried for the first time.
const MAX_WAIT_FOR_NEW: Duration = Duration::from_secs(60);
/// From then on, so much of the time that new pods take is owed; of the time of those that are tried again, all is.
const SHARE_OF_NEW: u32 = 8;
/// How often it is looked who has waited for too long.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// No more than this is owed.
const MAX_OWED: Duration = Duration::from_secs(10);

/// The pods that have waited for too long, and how the time is shared with them.
#[derive(Default)]
pub(super) struct Overdue {
    /// Who waits for longest, first.
    pods: VecDeque<OverduePod>,
    /// How long all turns took so far; what is told in this file is told on this clock.
    turns_took: Duration,
    looked: Duration,
    turn: TurnOf,
    popped: Duration,
    /// How much time was given to others and is due to them.
    owed: Duration,
}

/// A pod by its slot, and the arrival that tells it from a later one there.
struct OverduePod {
    since: Duration,
    arrival: u64,
    slot: usize,
}

/// Whose turn it is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum TurnOf {
    #[default]
    New,
    Again,
    Overdue,
}

impl Overdue {
    /// A turn begins.
    pub(super) fn begin_turn(&mut self, now: Duration) {
        self.popped = now;
    }

    /// Now, on the clock that goes on during turns only.
    pub(super) fn now(&self) -> Duration {
        self.turns_took
    }

    fn end_turn(&mut self, now: Duration) {
        let took = now.saturating_sub(self.popped);
        self.popped = now;
        self.turns_took += took;
        let owed = match self.turn {
            TurnOf::New => self.owed + took / SHARE_OF_NEW,
            TurnOf::Again => self.owed + took,
            TurnOf::Overdue => self.owed.saturating_sub(took),
        };
        self.owed = owed.min(MAX_OWED);
    }
}

impl SchedulingQueue {
    /// The attempt at the pod that was popped last is over, or goes on elsewhere. Whoever is never told so takes attempts
    /// for taking no time.
    pub fn turn_ended(&mut self, now: Duration) {
        self.overdue.end_turn(now);
    }

    /// The slot of the pod that goes instead of the one whose turn it is, which then waits on; mostly that one itself.
    pub(super) fn instead_of(&mut self, slot: usize) -> usize {
        let next = self.entries.at(slot);
        let (turn, max_wait) = match next.attempts {
            0 => (TurnOf::New, MAX_WAIT_FOR_NEW),
            _ => (TurnOf::Again, MAX_WAIT),
        };
        let priority = next.pod.spec.priority;
        let is_owed = !self.overdue.owed.is_zero();
        match self.next_overdue(priority, max_wait).filter(|_| is_owed) {
            None => {
                self.overdue.turn = turn;
                slot
            }
            Some(other) => {
                self.overdue.turn = TurnOf::Overdue;
                self.overdue.pods.pop_front();
                self.active.remove(&self.entries.at(other).turn());
                self.active.insert(self.entries.at(slot).turn());
                other
            }
        }
    }

    /// Who has waited for its turn for longest, and for longer than this, of those who are less important.
    fn next_overdue(&mut self, priority: i32, max_wait: Duration) -> Option<usize> {
        let now = self.overdue.now();
        if self.overdue.pods.is_empty() && now >= self.overdue.looked + LOOK_EVERY {
            self.look_for_overdue(priority);
        }
        while let Some(OverduePod { since, arrival, slot }) = self.overdue.pods.front() {
            let waits = |entry: &&Entry| {
                entry.spot == Spot::Active && entry.arrival == *arrival && entry.pod.spec.priority < priority
            };
            if self.entries.get(*slot).filter(waits).is_some() {
                return (since.saturating_add(max_wait) <= now).then_some(*slot);
            }
            self.overdue.pods.pop_front();
        }
        None
    }

    /// Pods of the same priority take turns in the order in which they came, so that they need not be looked for.
    fn look_for_overdue(&mut self, priority: i32) {
        let now = self.overdue.now();
        self.overdue.looked = now;
        let Some(latest) = now.checked_sub(MAX_WAIT) else { return };
        let waiting = self.entries.slots().filter(|(_, entry)| entry.spot == Spot::Active);
        let overdue =
            waiting.filter(|(_, entry)| entry.active_since <= latest && entry.pod.spec.priority < priority);
        let overdue = overdue.map(|(slot, Entry { active_since, arrival, .. })| OverduePod {
            since: *active_since,
            arrival: *arrival,
            slot,
        });
        let mut overdue: Vec<OverduePod> = overdue.collect();
        overdue.sort_unstable_by_key(|pod| (pod.since, pod.arrival));
        self.overdue.pods = overdue.into();
    }
}
