//! Something that one task gives another, once.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// What somebody waits for. Clones are the same; whoever takes it has it.
pub struct Answer<T>(Arc<Mutex<State<T>>>);

struct State<T> {
    value: Option<T>,
    listener: Option<Waker>,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { value: None, listener: None })))
    }
}

impl<T> Clone for Answer<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Answer<T> {
    fn locked(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives it.
    pub fn give(&self, value: T) {
        let mut state = self.locked();
        state.value = Some(value);
        let listener = state.listener.take();
        drop(state);
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    /// Takes it, if it has been given.
    pub fn take(&self) -> Option<T> {
        self.locked().value.take()
    }
}

impl<T> Future for Answer<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.locked();
        match state.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                state.listener = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
