//! Writes pods' statuses: the newest word about each pod, by a fixed number of writers, however many pods there are.
//!
//! Writes about one pod come one after the other, in the order in which they were wanted, and whoever writes about a pod in
//! another way (its binding) waits for them to end: none overtakes another.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use supercargo_model::{Key, Name, Pod};
use tokio::sync::{Notify, oneshot};

use super::HashMap;
use crate::{
    lease::Lease,
    status::{Condition, NominatingInfo, Reported},
    world::SharedWorld,
};

/// Writes under way at a time.
const WRITERS: usize = 8;
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// What is known and wanted of one pod's status.
struct Entry {
    key: Key,
    /// The version of the pod that `reported` follows from, with what was written since.
    version: Name,
    reported: Reported,
    condition: Option<Condition>,
    nomination: NominatingInfo,
    /// A writer has it, or it waits for one.
    due: bool,
    /// Nothing more is wanted of it: the entry goes when a write that is under way has ended.
    closed: bool,
    /// Those that wait for it to be written.
    waiting: Vec<oneshot::Sender<()>>,
}

#[derive(Default)]
struct State {
    pods: HashMap<Name, Entry>,
    due: VecDeque<Name>,
    closed: bool,
}

struct Shared {
    world: SharedWorld,
    lease: Option<Lease>,
    state: Mutex<State>,
    wake: Notify,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes pods' statuses until it is dropped.
pub(super) struct StatusWriter(Statuses);

impl Drop for StatusWriter {
    fn drop(&mut self) {
        self.0.0.state().closed = true;
        self.0.0.wake.notify_waiters();
    }
}

impl StatusWriter {
    pub(super) fn new(world: &SharedWorld, lease: Option<Lease>) -> Self {
        let shared =
            Arc::new(Shared { world: world.clone(), lease, state: Mutex::default(), wake: Notify::new() });
        for _ in 0..WRITERS {
            world.spawn(Box::pin(write_all(shared.clone())));
        }
        Self(Statuses(shared))
    }

    /// The statuses, for whoever writes about pods in a task of its own.
    pub(super) fn statuses(&self) -> &Statuses {
        &self.0
    }
}

/// Pods' statuses, as they are to be.
#[derive(Clone)]
pub(super) struct Statuses(Arc<Shared>);

impl Statuses {
    /// Makes a pod's status say this, soon. What was wanted before and not written yet is not written any more.
    pub(super) fn want(&self, pod: &Pod, condition: Option<Condition>, nomination: NominatingInfo) {
        let mut state = self.0.state();
        let State { pods, due, .. } = &mut *state;
        let entry = pods.entry(pod.uid.clone()).or_insert_with(|| Entry {
            key: pod.key(),
            version: pod.version.0.clone(),
            reported: Reported::of(pod),
            condition: None,
            nomination: NominatingInfo::Keep,
            due: false,
            closed: false,
            waiting: Vec::new(),
        });
        if entry.version != pod.version.0 {
            // Our own write, or somebody else's: either way the server has told what holds.
            entry.version = pod.version.0.clone();
            entry.reported = Reported::of(pod);
        }
        entry.closed = false;
        if condition.is_some() {
            entry.condition = condition;
        }
        if nomination != NominatingInfo::Keep {
            entry.nomination = nomination;
        }
        if !std::mem::replace(&mut entry.due, true) {
            due.push_back(pod.uid.clone());
            drop(state);
            self.0.wake.notify_one();
        }
    }

    /// Of how many pods something is known or wanted.
    pub(super) fn len(&self) -> usize {
        self.0.state().pods.len()
    }

    /// Ends when all that was wanted of a pod's status has been written, or given up.
    pub(super) async fn written(&self, uid: &str) {
        let written = self.0.state().pods.get_mut(uid).filter(|entry| entry.due).map(|entry| {
            let (sender, receiver) = oneshot::channel();
            entry.waiting.push(sender);
            receiver
        });
        if let Some(written) = written {
            // A writer that goes away has written all it will.
            let _ = written.await;
        }
    }

    /// Nothing more is wanted of a pod's status: it is gone, or about to be bound. Ends when no write is under way.
    pub(super) async fn close(&self, uid: &Name) {
        self.forget(uid);
        self.written(uid).await;
    }

    /// Nothing more is wanted of a pod's status.
    pub(super) fn forget(&self, uid: &Name) {
        let mut state = self.0.state();
        if let Some(entry) = state.pods.get_mut(uid) {
            entry.closed = true;
            if !entry.due {
                state.pods.remove(uid);
            }
        }
    }
}

async fn write_all(shared: Arc<Shared>) {
    loop {
        let wake = shared.wake.notified();
        let next = {
            let mut state = shared.state();
            if state.closed {
                return;
            }
            state.due.pop_front()
        };
        match next {
            Some(uid) => {
                write(&shared, &uid).await;
                over(&shared, &uid);
            }
            None => wake.await,
        }
    }
}

/// The writer is done with a pod: tells those who wait, and forgets what nobody wants any more.
fn over(shared: &Shared, uid: &Name) {
    let mut state = shared.state();
    let Some(entry) = state.pods.get_mut(uid) else { return };
    entry.due = false;
    entry.condition = None;
    for waiting in entry.waiting.drain(..) {
        // Whoever waited may have gone.
        let _ = waiting.send(());
    }
    if entry.closed {
        state.pods.remove(uid);
    }
}

/// Writes the newest word about a pod, and what comes while it is being written.
async fn write(shared: &Shared, uid: &Name) {
    let mut failures = 0;
    loop {
        let request = {
            let mut state = shared.state();
            let Some(entry) = state.pods.get_mut(uid).filter(|entry| !entry.closed) else {
                return;
            };
            let nomination = std::mem::replace(&mut entry.nomination, NominatingInfo::Keep);
            let condition = entry.condition.as_ref();
            entry.reported.update(&entry.key, uid, condition, nomination, shared.world.now())
        };
        let Some(request) = request else {
            return;
        };
        // Whoever leads now tells what they find.
        if shared.lease.as_ref().is_some_and(|lease| !lease.is_held()) {
            return give_up(shared, uid);
        }
        let why = match shared.world.send(request).await {
            Ok(reply) if reply.is_success() => continue,
            // The pod is gone, or another has its name.
            Ok(reply) if matches!(reply.status, 404 | 409) => return give_up(shared, uid),
            Ok(reply) => reply.message(),
            Err(unanswered) => unanswered.to_string(),
        };
        failures += 1;
        if let Some(entry) = shared.state().pods.get_mut(uid) {
            entry.reported.forget();
            if failures == TRIES {
                tracing::warn!(pod = %entry.key, why, "the pod's status could not be written");
                return;
            }
        }
        shared.world.sleep(PAUSE * failures).await;
    }
}

fn give_up(shared: &Shared, uid: &Name) {
    if let Some(entry) = shared.state().pods.get_mut(uid) {
        entry.closed = true;
    }
}
