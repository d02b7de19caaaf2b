//! Writes pods' statuses: the newest word about each pod, by a fixed number of writers, however many pods there are.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use supercargo_model::{Key, Name};
use tokio::sync::Notify;

use super::HashMap;
use crate::{
    lease::Lease,
    status::{Nomination, NotScheduled, Told},
    world::SharedWorld,
};

/// Writes under way at a time.
const WRITERS: usize = 8;
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// What is known and wanted of one pod's status.
struct Entry {
    key: Key,
    told: Told,
    condition: Option<NotScheduled>,
    nomination: Nomination,
    /// A writer has it, or it waits for one.
    due: bool,
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
pub(super) struct StatusWriter(Arc<Shared>);

impl Drop for StatusWriter {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.wake.notify_waiters();
    }
}

impl StatusWriter {
    pub(super) fn new(world: &SharedWorld, lease: Option<Lease>) -> Self {
        let shared =
            Arc::new(Shared { world: world.clone(), lease, state: Mutex::default(), wake: Notify::new() });
        for _ in 0..WRITERS {
            world.spawn(Box::pin(write_all(shared.clone())));
        }
        Self(shared)
    }

    /// Makes a pod's status say this, soon. What was wanted before and not written yet is not written any more.
    pub(super) fn want(
        &self,
        key: Key,
        uid: &Name,
        nominated_node: Option<&Name>,
        condition: Option<NotScheduled>,
        nomination: Nomination,
    ) {
        let mut state = self.0.state();
        let State { pods, due, .. } = &mut *state;
        let entry = pods.entry(uid.clone()).or_insert_with(|| Entry {
            key,
            told: Told::of(nominated_node.cloned()),
            condition: None,
            nomination: Nomination::Keep,
            due: false,
        });
        if condition.is_some() {
            entry.condition = condition;
        }
        if nomination != Nomination::Keep {
            entry.nomination = nomination;
        }
        if !std::mem::replace(&mut entry.due, true) {
            due.push_back(uid.clone());
            drop(state);
            self.0.wake.notify_one();
        }
    }

    /// The pod is gone, or bound.
    pub(super) fn forget(&self, uid: &Name) {
        self.0.state().pods.remove(uid);
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
            Some(uid) => write(&shared, &uid).await,
            None => wake.await,
        }
    }
}

/// Writes the newest word about a pod, and what comes while it is being written.
async fn write(shared: &Shared, uid: &Name) {
    let mut failures = 0;
    loop {
        let request = {
            let mut state = shared.state();
            let Some(entry) = state.pods.get_mut(uid) else {
                return;
            };
            let nomination = std::mem::replace(&mut entry.nomination, Nomination::Keep);
            let condition = entry.condition.clone();
            let request = entry.told.update(&entry.key, uid, condition, nomination, shared.world.now());
            if request.is_none() {
                entry.due = false;
            }
            request
        };
        let Some(request) = request else {
            return;
        };
        // Whoever leads now tells what they find.
        if shared.lease.as_ref().is_some_and(|lease| !lease.is_held()) {
            return shared.state().pods.remove(uid).map_or((), drop);
        }
        let why = match shared.world.send(request).await {
            Ok(reply) if reply.is_success() => continue,
            // The pod is gone, or another has its name.
            Ok(reply) if matches!(reply.status, 404 | 409) => {
                return shared.state().pods.remove(uid).map_or((), drop);
            }
            Ok(reply) => reply.message(),
            Err(unanswered) => unanswered.to_string(),
        };
        failures += 1;
        if let Some(entry) = shared.state().pods.get_mut(uid) {
            entry.told.forget();
            if failures == TRIES {
                tracing::warn!(pod = %entry.key, why, "the pod's status could not be written");
                entry.due = false;
                return;
            }
        }
        shared.world.sleep(PAUSE * failures).await;
    }
}
