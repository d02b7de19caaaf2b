//! Time that passes when it is told to.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use supercargo_testcluster::Clock;

/// When the wall clock starts, in seconds since 1970.
const EPOCH_SECONDS: i64 = 1_800_000_000;

/// A clock that stands still until an [`Executor`](crate::executor::Executor) moves it.
#[derive(Clone, Default)]
pub struct VirtualClock(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: Duration,
    /// Whom to wake at which moment; whoever came first is woken first.
    timers: BTreeMap<TimerKey, Waker>,
    timers_made: u64,
}

type TimerKey = (Duration, u64);

impl VirtualClock {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves to the next timer that is due until `end`, and wakes who waits for it; false if there is none.
    pub(crate) fn advance_to_next_timer(&self, end: Duration) -> bool {
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

    /// Moves to a moment.
    pub(crate) fn advance_to(&self, moment: Duration) {
        let mut state = self.state();
        state.now = state.now.max(moment);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let now = self.state().now;
        let seconds = EPOCH_SECONDS.saturating_add_unsigned(now.as_secs());
        Timestamp::new(seconds, now.subsec_nanos().cast_signed()).unwrap_or(Timestamp::MAX)
    }

    fn uptime(&self) -> Duration {
        self.state().now
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        let deadline = self.uptime().saturating_add(span);
        Box::pin(Sleep { clock: self.clone(), deadline, timer: None })
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
