//! Events of events.k8s.io/v1, as kube-scheduler writes them: told for people, never in the way of work.
//!
//! Recording never waits. A fixed number of writers takes from two bounded queues; `Scheduled` events stand back while
//! bindings are under way. Events that repeat are counted in one series by the rules of client-go: the first is written at
//! once, the second makes it a series, the others are counted here and written every half hour and when the series ends.

mod event;
mod queue;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::select;
use tokio::sync::Notify;

pub use event::{Event, Reference, Urgency};
use queue::{EventQueue, EventWrite, Take, Write};

use crate::{
    requests::with_body,
    world::{ContentType, Method, Reply, Request, SharedWorld, Unanswered, jittered},
};

/// Writes under way at a time.
const WRITERS: usize = 4;
/// client-go's figures.
const MAX_TRIES: u32 = 12;
const RETRY_PAUSE: Duration = Duration::from_secs(10);
const SWEEP_PERIOD: Duration = Duration::from_secs(6 * 60);

/// Records events. Clones record to the same queues; writing ends with the last of them.
#[derive(Clone)]
pub struct EventRecorder {
    shared: Arc<Shared>,
    _open: Arc<Open>,
}

/// Ends the writers when dropped.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.queue().close();
        self.0.wake.notify_waiters();
    }
}

struct Shared {
    world: SharedWorld,
    host: String,
    queue: Mutex<EventQueue>,
    /// Something has come, or the writers' situation has changed.
    wake: Notify,
    bindings: AtomicUsize,
}

/// Bindings are under way as long as one of these lives.
pub struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        if self.0.bindings.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.wake.notify_waiters();
        }
    }
}

/// Opens a recorder for the schedulers on a host.
pub fn open(world: &SharedWorld, host: impl Into<String>) -> EventRecorder {
    let shared = Arc::new(Shared {
        world: world.clone(),
        host: host.into(),
        queue: Mutex::new(EventQueue::new(world.uptime())),
        wake: Notify::new(),
        bindings: AtomicUsize::new(0),
    });
    for _ in 0..WRITERS {
        world.spawn(Box::pin(shared.clone().write_all()));
    }
    world.spawn(Box::pin(shared.clone().sweep()));
    EventRecorder { _open: Arc::new(Open(shared.clone())), shared }
}

impl EventRecorder {
    /// Records an event. This never waits; what does not fit is dropped, and counted.
    pub fn record(&self, event: Event) {
        let shared = &self.shared;
        shared.queue().record(event, shared.world.now(), shared.world.uptime());
        shared.wake.notify_one();
    }

    /// Says that a binding is under way, as long as the answer lives: `Scheduled` events stand back.
    pub fn busy(&self) -> Busy {
        self.shared.bindings.fetch_add(1, Ordering::Relaxed);
        Busy(self.shared.clone())
    }

    /// How many events have been dropped: no room, or refused, or tried in vain.
    pub fn dropped(&self) -> u64 {
        self.shared.queue().dropped
    }

    /// How many events have been written, series included.
    pub fn written(&self) -> u64 {
        self.shared.queue().written
    }
}

impl Shared {
    async fn write_all(self: Arc<Self>) {
        loop {
            let wake = self.wake.notified();
            let busy = self.bindings.load(Ordering::Relaxed) > 0;
            let take = self.queue().take(self.world.uptime(), busy);
            match take {
                Take::Job(job) => self.write(job).await,
                Take::Wait(span) => {
                    select(Box::pin(wake), self.world.sleep(span)).await;
                }
                Take::End => return,
            }
        }
    }

    async fn sweep(self: Arc<Self>) {
        loop {
            self.world.sleep(SWEEP_PERIOD).await;
            let mut queue = self.queue();
            if queue.is_closed() {
                return;
            }
            queue.sweep(self.world.uptime());
            drop(queue);
            self.wake.notify_waiters();
        }
    }

    async fn write(&self, job: EventWrite) {
        let Some(write) = self.queue().write_of(&job) else { return };
        let mut answer = self.send(&write).await;
        // A series whose event has been removed, by its age perhaps, begins anew with all it knows.
        if write.is_patch() && matches!(&answer, Ok(reply) if reply.status == 404) {
            answer = self.send(&write.as_create()).await;
        }
        let mut queue = self.queue();
        match answer {
            Ok(reply) if reply.is_success() => queue.done(job, &write),
            // Our own write, whose answer was lost; or a name that exists, which a series may be added to.
            Ok(Reply { status: 409, .. }) => queue.done(job, &write),
            Ok(reply) if !matches!(reply.status, 429 | 500..) => {
                tracing::debug!(status = reply.status, "event refused: {}", reply.message());
                queue.give_up(job);
            }
            unwritten => {
                if let Err(Unanswered::NotSent(why) | Unanswered::OutcomeUnknown(why)) = &unwritten {
                    tracing::debug!("event not written: {why}");
                }
                let wait = match unwritten {
                    Ok(Reply { retry_after: Some(span), .. }) => span,
                    _ => jittered(&*self.world, RETRY_PAUSE, 0.25),
                };
                queue.retry(job, self.world.uptime() + wait);
            }
        }
    }

    async fn send(&self, write: &Write) -> Result<Reply, Unanswered> {
        self.world.send(self.request(write)).await
    }

    fn request(&self, write: &Write) -> Request {
        let collection = format!("/apis/events.k8s.io/v1/namespaces/{}/events", write.namespace());
        if write.is_patch() {
            let path = format!("{collection}/{}", write.name());
            return with_body(Method::Patch, path, ContentType::StrategicMergePatch, &write.patch());
        }
        with_body(Method::Post, collection, ContentType::Json, &write.object(&self.host))
    }

    fn queue(&self) -> MutexGuard<'_, EventQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
