//! Virtual time: a clock that stands still until somebody moves it, and one thread's tasks on it. For everything that runs
//! effects without a world around them: offline schedulers, the simulation, the tests of plugins.

mod executor;

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use supercargo_model::Timestamp;

use crate::handle::Effect;

pub use executor::{Executor, ProcessId};

/// When the wall clock starts unless somebody says otherwise, in seconds since 1970.
const EPOCH_SECONDS: i64 = 1_800_000_000;

/// A clock that stands still until it is moved, as by an [`Executor`]. Clones are the same.
#[derive(Clone)]
pub struct VirtualClock(Arc<Inner>);

struct Inner {
    began: Timestamp,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    now: Duration,
    /// Whom to wake at which moment; whoever came first is woken first.
    timers: BTreeMap<TimerKey, Waker>,
    timers_made: u64,
}

type TimerKey = (Duration, u64);

impl Default for VirtualClock {
    fn default() -> Self {
        Self::starting_at(Timestamp::new(EPOCH_SECONDS, 0).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl VirtualClock {
    /// A clock whose wall time starts at a moment.
    pub fn starting_at(began: Timestamp) -> Self {
        Self(Arc::new(Inner { began, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The wall clock.
    pub fn now(&self) -> Timestamp {
        self.0.began.checked_add(self.uptime()).unwrap_or(Timestamp::MAX)
    }

    /// Time since the start.
    pub fn uptime(&self) -> Duration {
        self.state().now
    }

    /// Ends after a while.
    pub fn sleep(&self, span: Duration) -> Effect<'static, ()> {
        let deadline = self.uptime().saturating_add(span);
        Box::pin(Sleep { clock: self.clone(), deadline, timer: None })
    }

    /// When the next timer is due, if anybody waits for one.
    pub fn next_timer(&self) -> Option<Duration> {
        self.state().timers.keys().next().map(|(due, _)| *due)
    }

    /// Moves to the next timer that is due until `end`, and wakes who waits for it; false if there is none.
    pub fn advance_to_next_timer(&self, end: Duration) -> bool {
        let mut state = self.state();
        let Some(first) = state.timers.first_entry().filter(|first| first.key().0 <= end) else {
            return false;
        };
        let ((at, _), waker) = first.remove_entry();
        state.now = state.now.max(at);
        drop(state);
        waker.wake();
        true
    }

    /// Moves to a moment, past all timers.
    pub fn advance_to(&self, moment: Duration) {
        let mut state = self.state();
        state.now = state.now.max(moment);
    }
}

struct Sleep {
    clock: VirtualClock,
    deadline: Duration,
    timer: Option<TimerKey>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut state = clock.state();
        if state.now >= self.deadline {
            return Poll::Ready(());
        }
        let deadline = self.deadline;
        let key = *self.timer.get_or_insert_with(|| {
            state.timers_made += 1;
            (deadline, state.timers_made)
        });
        state.timers.insert(key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.timer {
            self.clock.state().timers.remove(&key);
        }
    }
}
