//! Tells those who wait that something has happened, in the order in which they came.
//!
//! As tokio's watch channel, which wakes in an order of its own choice: on virtual time the same has to happen every time.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::Notify;

#[derive(Default)]
struct Shared {
    happened: AtomicU64,
    news: Notify,
}

/// Something that happens again and again.
#[derive(Default)]
pub(crate) struct Signal(Arc<Shared>);

impl Signal {
    /// It happens.
    pub(crate) fn give(&self) {
        self.0.happened.fetch_add(1, Ordering::Release);
        self.0.news.notify_waiters();
    }

    /// Whoever waits for it from now on.
    pub(crate) fn subscribe(&self) -> SignalReceiver {
        SignalReceiver { shared: self.0.clone(), seen: self.0.happened.load(Ordering::Acquire) }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // Nobody waits for what will never happen.
        self.give();
    }
}

/// Waits for a signal.
#[derive(Clone)]
pub struct SignalReceiver {
    shared: Arc<Shared>,
    seen: u64,
}

impl SignalReceiver {
    /// Whether it has happened since it was last seen.
    pub fn has_changed(&self) -> bool {
        self.shared.happened.load(Ordering::Acquire) != self.seen
    }

    /// It was seen up to now.
    pub fn mark_seen(&mut self) {
        self.seen = self.shared.happened.load(Ordering::Acquire);
    }

    /// As if it had happened just now.
    pub(crate) fn mark_changed(&mut self) {
        self.seen = self.seen.wrapping_sub(1);
    }

    /// Waits until it happens, unless it has happened since it was last seen.
    pub async fn changed(&mut self) {
        loop {
            let mut news = pin!(self.shared.news.notified());
            news.as_mut().enable();
            if self.has_changed() {
                self.seen = self.shared.happened.load(Ordering::Acquire);
                return;
            }
            news.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn what_happened_is_seen_once() {
        let signal = Signal::default();
        let mut receiver = signal.subscribe();
        assert!(receiver.changed().now_or_never().is_none());
        signal.give();
        assert!(receiver.has_changed());
        assert!(receiver.changed().now_or_never().is_some());
        assert!(receiver.changed().now_or_never().is_none());
        receiver.mark_changed();
        assert!(receiver.changed().now_or_never().is_some());
    }
}
