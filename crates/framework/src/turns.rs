//! Turns: so many effects at a time, the others in the order in which they came.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// A number of turns. Clones are the same.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free: usize,
    waiting: BTreeMap<u64, Waker>,
    /// Those that waited and may go on, and have not noticed yet.
    granted: BTreeSet<u64>,
    came: u64,
}

impl Turns {
    /// So many at a time.
    pub fn new(at_once: usize) -> Self {
        let (waiting, granted) = (BTreeMap::new(), BTreeSet::new());
        Self(Arc::new(Mutex::new(State { free: at_once, waiting, granted, came: 0 })))
    }

    /// Waits for a turn, which ends when it is dropped.
    pub fn take(&self) -> impl Future<Output = Turn> + Send + use<> {
        Take { turns: self.clone(), number: None }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self) {
        let mut state = self.locked();
        match state.waiting.pop_first() {
            Some((number, waker)) => {
                state.granted.insert(number);
                drop(state);
                waker.wake();
            }
            None => state.free += 1,
        }
    }
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn(Turns);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

struct Take {
    turns: Turns,
    /// Its place among those that wait.
    number: Option<u64>,
}

impl Future for Take {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Turn> {
        let turns = self.turns.clone();
        let mut state = turns.locked();
        let has_turn = match self.number {
            None if state.free > 0 => {
                state.free -= 1;
                true
            }
            None => false,
            Some(number) => state.granted.remove(&number),
        };
        if has_turn {
            self.number = None;
            drop(state);
            return Poll::Ready(Turn(turns));
        }
        let number = match self.number {
            Some(number) => number,
            None => {
                state.came += 1;
                state.came
            }
        };
        self.number = Some(number);
        state.waiting.insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Take {
    fn drop(&mut self) {
        let Some(number) = self.number else { return };
        let granted = {
            let mut state = self.turns.locked();
            state.waiting.remove(&number);
            state.granted.remove(&number)
        };
        if granted {
            self.turns.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(take: &mut Pin<Box<impl Future<Output = Turn>>>) -> Option<Turn> {
        match take.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    #[test]
    fn turns_are_given_in_order_and_none_is_lost() {
        let turns = Turns::new(1);
        let [mut first, mut second, mut third] = [0; 3].map(|_| Box::pin(turns.take()));
        let turn = poll(&mut first).expect("it is free");
        assert!(poll(&mut second).is_none() && poll(&mut third).is_none());
        drop(turn);
        assert!(poll(&mut third).is_none(), "the second came earlier");
        // Who has a turn and goes without it passes it on.
        drop(second);
        drop(poll(&mut third).expect("its turn"));
        assert!(poll(&mut Box::pin(turns.take())).is_some());
    }
}
