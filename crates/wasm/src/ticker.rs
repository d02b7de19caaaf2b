//! The clock by which guests are interrupted: one thread for all of them, asleep while nobody calls a guest.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, Thread},
    time::Duration,
};

use wasmtime::EngineWeak;

/// How long a tick is: limits in time are kept this exactly.
pub(crate) const TICK: Duration = Duration::from_millis(10);
/// After so many ticks without a call the clock goes to sleep.
const IDLE_TICKS: u32 = 100;

/// Moves the engine's epoch on. Ends with the engine, or with itself.
pub(crate) struct Ticker {
    calls: Arc<Calls>,
    thread: Thread,
}

#[derive(Default)]
struct Calls {
    begun: AtomicU64,
    ended: AtomicU64,
    asleep: AtomicBool,
}

impl Ticker {
    pub(crate) fn start(engine: EngineWeak) -> std::io::Result<Self> {
        let calls = Arc::new(Calls::default());
        let watched = Arc::downgrade(&calls);
        let thread = thread::Builder::new().name("wasm-ticker".to_owned()).spawn(move || {
            tick(&engine, &watched);
        })?;
        Ok(Self { calls, thread: thread.thread().clone() })
    }

    /// Counts a call for as long as the answer is held.
    pub(crate) fn during(&self) -> During<'_> {
        self.calls.begun.fetch_add(1, Ordering::SeqCst);
        if self.calls.asleep.swap(false, Ordering::SeqCst) {
            self.thread.unpark();
        }
        During(&self.calls)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // So that it sees that nobody is there any more.
        self.thread.unpark();
    }
}

/// A call that is going on.
pub(crate) struct During<'a>(&'a Calls);

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

fn tick(engine: &EngineWeak, watched: &Weak<Calls>) {
    let (mut seen, mut idle) = (0, 0);
    loop {
        thread::sleep(TICK);
        let (Some(engine), Some(calls)) = (engine.upgrade(), watched.upgrade()) else {
            return;
        };
        engine.increment_epoch();
        let begun = calls.begun.load(Ordering::SeqCst);
        let quiet = begun == seen && calls.ended.load(Ordering::SeqCst) == begun;
        (seen, idle) = (begun, if quiet { idle + 1 } else { 0 });
        if idle < IDLE_TICKS {
            continue;
        }
        calls.asleep.store(true, Ordering::SeqCst);
        // A call that began just now has not seen that this sleeps.
        if calls.begun.load(Ordering::SeqCst) == seen {
            drop((engine, calls));
            thread::park();
        }
        idle = 0;
    }
}
