//! One thread that runs the tasks of several processes, in an order that follows from what they do, on virtual time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use super::VirtualClock;
use crate::handle::Effect;

/// Tasks that are stopped, and end, together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(u64);

/// Runs tasks.
#[derive(Default)]
pub struct Executor {
    clock: VirtualClock,
    ready: Arc<Ready>,
    tasks: Mutex<Tasks>,
}

/// The tasks that have something to do, in the order in which they were woken.
#[derive(Default)]
struct Ready(Mutex<VecDeque<u64>>);

#[derive(Default)]
struct Tasks {
    all: BTreeMap<u64, Task>,
    made: u64,
    processes_made: u64,
    paused: BTreeSet<ProcessId>,
    /// Tasks of paused processes that have something to do.
    held: Vec<u64>,
    /// How many more times tasks of a process are polled before it is killed.
    doomed: BTreeMap<ProcessId, u64>,
    /// How many more times tasks are polled at all, if that is bounded.
    polls_left: Option<u64>,
}

struct Task {
    process: ProcessId,
    future: Effect<'static, ()>,
    flag: Arc<Flag>,
}

/// Whether a task waits for its turn already.
struct Flag {
    id: u64,
    queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.queue().push_back(self.id);
        }
    }
}

impl Ready {
    fn queue(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor {
    /// The time that everything here goes by.
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Tasks on a clock.
    pub fn on(clock: VirtualClock) -> Self {
        Self { clock, ..Self::default() }
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process without tasks.
    pub fn process(&self) -> ProcessId {
        let mut tasks = self.tasks();
        tasks.processes_made += 1;
        ProcessId(tasks.processes_made)
    }

    /// Runs a task as part of a process.
    pub fn spawn(&self, process: ProcessId, future: Effect<'static, ()>) {
        let mut tasks = self.tasks();
        tasks.made += 1;
        let id = tasks.made;
        let flag = Arc::new(Flag { id, queued: AtomicBool::new(false), ready: self.ready.clone() });
        tasks.all.insert(id, Task { process, future, flag: flag.clone() });
        drop(tasks);
        flag.wake();
    }

    /// Its tasks stand still until [`resume`](Self::resume), while time goes on for everybody else.
    pub fn pause(&self, process: ProcessId) {
        self.tasks().paused.insert(process);
    }

    /// Its tasks go on.
    pub fn resume(&self, process: ProcessId) {
        let mut tasks = self.tasks();
        tasks.paused.remove(&process);
        let held = std::mem::take(&mut tasks.held);
        drop(tasks);
        self.ready.queue().extend(held);
    }

    /// Ends all tasks of a process wherever they are.
    pub fn kill(&self, process: ProcessId) {
        let mut tasks = self.tasks();
        let ended: Vec<Task> =
            tasks.all.extract_if(.., |_, task| task.process == process).map(|(_, task)| task).collect();
        tasks.paused.remove(&process);
        tasks.doomed.remove(&process);
        drop(tasks);
        // What they let go of may wake others.
        drop(ended);
    }

    /// Kills a process after its tasks have been polled so many times more: at an await that nobody chose.
    pub fn kill_after_polls(&self, process: ProcessId, polls: u64) {
        self.tasks().doomed.insert(process, polls);
    }

    /// Polls tasks so many times more, whatever there is to do: work without end ends there, and the time goes on without it.
    pub fn allow_polls(&self, polls: u64) {
        self.tasks().polls_left = Some(polls);
    }

    /// Whether there was more to do than was allowed.
    pub fn is_exhausted(&self) -> bool {
        self.tasks().polls_left == Some(0)
    }

    /// How many tasks of a process have not ended.
    pub fn task_count(&self, process: ProcessId) -> usize {
        self.tasks().all.values().filter(|task| task.process == process).count()
    }

    /// Whether a process has tasks that have not ended.
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.tasks().all.values().any(|task| task.process == process)
    }

    /// Everything that happens in a span of time.
    pub fn run_for(&self, span: Duration) {
        let end = self.clock.uptime() + span;
        loop {
            self.run_ready();
            if !self.clock.advance_to_next_timer(end) {
                break;
            }
        }
        self.clock.advance_to(end);
    }

    /// Runs until something has happened, or a span has passed; whether it has happened.
    pub fn run_until(&self, mut happened: impl FnMut() -> bool, limit: Duration) -> bool {
        let end = self.clock.uptime() + limit;
        loop {
            self.run_ready();
            if happened() {
                return true;
            }
            if !self.clock.advance_to_next_timer(end) {
                self.clock.advance_to(end);
                return false;
            }
        }
    }

    /// Runs whatever can be done without time passing.
    pub fn run_ready(&self) {
        while let Some(id) = self.next_ready() {
            let mut tasks = self.tasks();
            if tasks.polls_left == Some(0) {
                return;
            }
            let Some(mut task) = tasks.all.remove(&id) else { continue };
            if tasks.paused.contains(&task.process) {
                tasks.held.push(id);
                tasks.all.insert(id, task);
                continue;
            }
            tasks.polls_left = tasks.polls_left.map(|left| left - 1);
            let is_last = tasks.doomed.get_mut(&task.process).is_some_and(|left| {
                *left = left.saturating_sub(1);
                *left == 0
            });
            drop(tasks);
            task.flag.queued.store(false, Ordering::Relaxed);
            let (process, waker) = (task.process, Waker::from(task.flag.clone()));
            if task.future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                self.tasks().all.insert(id, task);
            }
            if is_last {
                self.kill(process);
            }
        }
    }

    /// Whether nothing can be done without time passing.
    pub fn is_idle(&self) -> bool {
        self.ready.queue().is_empty()
    }

    fn next_ready(&self) -> Option<u64> {
        self.ready.queue().pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn counts_seconds(executor: &Executor) -> (ProcessId, Arc<Mutex<Vec<u64>>>) {
        let (process, seconds) = (executor.process(), Arc::<Mutex<Vec<u64>>>::default());
        let (clock, written) = (executor.clock().clone(), seconds.clone());
        let counting = async move {
            loop {
                clock.sleep(SECOND).await;
                written.lock().unwrap().push(clock.uptime().as_secs());
            }
        };
        executor.spawn(process, Box::pin(counting));
        (process, seconds)
    }

    #[test]
    fn a_paused_process_stands_still_while_time_goes_on() {
        let executor = Executor::default();
        let (process, seconds) = counts_seconds(&executor);
        executor.run_for(2 * SECOND);
        executor.pause(process);
        executor.run_for(3 * SECOND);
        assert_eq!(*seconds.lock().unwrap(), [1, 2]);
        executor.resume(process);
        executor.run_for(2 * SECOND);
        assert_eq!(*seconds.lock().unwrap(), [1, 2, 5, 6, 7]);
    }

    #[test]
    fn a_killed_process_leaves_nothing_behind() {
        let executor = Executor::default();
        let (process, seconds) = counts_seconds(&executor);
        executor.run_for(SECOND);
        executor.kill(process);
        assert!(!executor.is_alive(process));
        assert!(!executor.clock().advance_to_next_timer(Duration::MAX), "no timer is left");
        executor.run_for(SECOND);
        assert_eq!(*seconds.lock().unwrap(), [1]);
    }

    #[test]
    fn a_doomed_process_ends_at_the_poll_that_was_named() {
        let executor = Executor::default();
        let (process, seconds) = counts_seconds(&executor);
        // The first poll falls asleep, each further one writes a second down.
        executor.kill_after_polls(process, 3);
        executor.run_for(9 * SECOND);
        assert_eq!(*seconds.lock().unwrap(), [1, 2]);
        assert!(!executor.is_alive(process));
    }

    #[test]
    fn work_without_end_ends_where_it_is_bounded() {
        let executor = Executor::default();
        let process = executor.process();
        let spinning = std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            std::task::Poll::Pending
        });
        executor.spawn(process, Box::pin(spinning));
        executor.allow_polls(1_000);
        executor.run_for(SECOND);
        assert!(executor.is_exhausted());
        assert_eq!(executor.clock().uptime(), SECOND);
    }

    #[test]
    fn what_is_waited_for_ends_the_run() {
        let executor = Executor::default();
        let (_, seconds) = counts_seconds(&executor);
        assert!(executor.run_until(|| seconds.lock().unwrap().len() == 3, 10 * SECOND));
        assert_eq!(executor.clock().uptime(), 3 * SECOND);
        assert!(!executor.run_until(|| false, SECOND));
    }
}
