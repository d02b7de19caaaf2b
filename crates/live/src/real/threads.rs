//! Threads for tasks that may block theirs: as many as are blocked at a time, and gone when they are not needed any more.
//!
//! They are not the runtime's own blocking threads: those look up names for requests, and are to be free for that.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Wake, Waker},
    thread,
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;

/// How long a thread without work stays.
const LINGER: Duration = Duration::from_secs(10);

/// The threads. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Threads(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    /// The tasks that can go on.
    ready: VecDeque<Arc<Task>>,
    /// Threads that wait for one.
    idle: usize,
}

/// A task, and where it stands.
struct Task {
    phase: Mutex<Phase>,
    future: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Timers and sockets are this runtime's.
    runtime: Handle,
    threads: Threads,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Waiting,
    Ready,
    Running,
    /// It was woken while it ran.
    RunningAndWoken,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// Runs a task beside the runtime whose context this is called in.
    pub(crate) fn spawn(&self, future: BoxFuture<'static, ()>) {
        let task = Task {
            phase: Mutex::new(Phase::Ready),
            future: Mutex::new(Some(future)),
            runtime: Handle::current(),
            threads: self.clone(),
        };
        self.push(Arc::new(task));
    }

    fn push(&self, task: Arc<Task>) {
        let mut state = locked(&self.0.state);
        state.ready.push_back(task);
        if state.idle >= state.ready.len() {
            self.0.work.notify_one();
            return;
        }
        drop(state);
        let threads = self.clone();
        let body = move || threads.work();
        if let Err(error) = thread::Builder::new().name("effects".to_owned()).spawn(body) {
            // The next thread that has nothing to do takes it.
            tracing::error!(%error, "no thread for a plugin's effect");
        }
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            task.run();
        }
    }

    fn next(&self) -> Option<Arc<Task>> {
        let mut state = locked(&self.0.state);
        if let Some(task) = state.ready.pop_front() {
            return Some(task);
        }
        state.idle += 1;
        let waited = self.0.work.wait_timeout_while(state, LINGER, |state| state.ready.is_empty());
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state.ready.pop_front()
    }
}

impl Task {
    fn run(self: Arc<Self>) {
        *locked(&self.phase) = Phase::Running;
        let waker = Waker::from(self.clone());
        let mut future = locked(&self.future);
        let Some(running) = future.as_mut() else { return };
        let _entered = self.runtime.enter();
        let polled =
            catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(&mut Context::from_waker(&waker))));
        if !matches!(polled, Ok(poll) if poll.is_pending()) {
            // Done; or it has panicked, and whoever waits for it hears that it ended without an answer.
            let _ = catch_unwind(AssertUnwindSafe(|| *future = None));
            return;
        }
        drop(future);
        let mut phase = locked(&self.phase);
        if *phase == Phase::RunningAndWoken {
            *phase = Phase::Ready;
            drop(phase);
            self.threads.push(self.clone());
        } else {
            *phase = Phase::Waiting;
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let mut phase = locked(&self.phase);
        match *phase {
            Phase::Waiting => {
                *phase = Phase::Ready;
                drop(phase);
                self.threads.push(self.clone());
            }
            Phase::Running => *phase = Phase::RunningAndWoken,
            Phase::Ready | Phase::RunningAndWoken => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tasks_that_block_and_tasks_that_wait_pass_each_other_by() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let threads = Threads::default();
            let (release, blocked) = mpsc::channel::<()>();
            let blocked = Arc::new(Mutex::new(blocked));
            let (done, mut ended) = tokio::sync::mpsc::unbounded_channel();
            for task in 0..50 {
                let (blocked, done) = (blocked.clone(), done.clone());
                threads.spawn(Box::pin(async move {
                    // One waits for the channel, the others for it.
                    let _ = locked(&blocked).recv();
                    let _ = done.send(task);
                }));
            }
            for task in 50..100 {
                let done = done.clone();
                threads.spawn(Box::pin(async move {
                    tokio::time::sleep(Duration::from_millis(task)).await;
                    let _ = done.send(task);
                }));
            }
            threads.spawn(Box::pin(async { panic!("a plugin panics") }));
            let mut quick: Vec<u64> = Vec::new();
            while quick.len() < 50 {
                quick.push(ended.recv().await.unwrap());
            }
            assert!(quick.iter().all(|task| *task >= 50), "{quick:?}");
            drop(release);
            for _ in 0..50 {
                assert!(ended.recv().await.unwrap() < 50);
            }
        });
    }
}
