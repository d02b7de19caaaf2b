//! Compiles modules in a thread of its own. Nothing stops the compiler once it runs, so that whoever waits for it gives up
//! after a while, and the next one waits until that is over: there is never more than one that nobody waits for.

use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
    time::Duration,
};

use crate::module::Unfit;

const HINT: &str = "raise `compileTimeout` in its arguments, or make it smaller; \
                    a scheduler that is not optimised (`cargo build --release`) compiles ten times slower than a released one";

/// The thread that compiles, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Compiler(Arc<Turn>);

#[derive(Default)]
struct Turn {
    is_taken: Mutex<bool>,
    is_over: Condvar,
}

impl Turn {
    fn is_taken(&self) -> MutexGuard<'_, bool> {
        self.is_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Held by the thread for as long as it compiles.
struct Taken(Arc<Turn>);

impl Drop for Taken {
    fn drop(&mut self) {
        *self.0.is_taken() = false;
        self.0.is_over.notify_all();
    }
}

impl Compiler {
    /// Whether something is being compiled.
    pub(crate) fn is_busy(&self) -> bool {
        *self.0.is_taken()
    }

    /// Does the work of a compiler, and waits for it no longer than it may take.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        within: Duration,
        work: impl FnOnce() -> Result<T, Vec<Unfit>> + Send + 'static,
    ) -> Result<T, Vec<Unfit>> {
        let unfit = |what: String| vec![Unfit::new(what).hint(HINT)];
        let turn = self.turn(within).ok_or_else(|| {
            unfit(format!("not compiled: another guest still was after {within:?}, and one is at a time"))
        })?;
        let (done, result) = mpsc::channel();
        let compiles = move || {
            let compiled = work();
            drop(turn);
            // Nobody may be there to hear of it.
            let _ = done.send(compiled);
        };
        let thread = thread::Builder::new().name("wasm-compiler".to_owned()).spawn(compiles);
        thread.map_err(|error| vec![Unfit::new(format!("cannot be compiled: no thread: {error}"))])?;
        result.recv_timeout(within).unwrap_or_else(|error| match error {
            mpsc::RecvTimeoutError::Timeout => Err(unfit(format!("is not compiled after {within:?}"))),
            mpsc::RecvTimeoutError::Disconnected => Err(vec![Unfit::new("the compiler failed")]),
        })
    }

    fn turn(&self, within: Duration) -> Option<Taken> {
        let waited = self.0.is_over.wait_timeout_while(self.0.is_taken(), within, |is_taken| *is_taken);
        let (mut is_taken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *is_taken = true;
        Some(Taken(self.0.clone()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn one_is_given_up_and_the_next_waits_for_its_end() {
        let (compiler, (end, ends)) = (Compiler::default(), mpsc::channel::<()>());
        let slow = move || {
            let _ = ends.recv();
            Ok(1)
        };
        let started = Instant::now();
        let told = compiler.run(Duration::from_millis(50), slow).unwrap_err();
        assert_eq!(told[0].what, "is not compiled after 50ms");
        assert!(compiler.is_busy());
        let told = compiler.run(Duration::from_millis(50), || Ok(2)).unwrap_err();
        assert!(told[0].what.starts_with("not compiled: another guest still was after 50ms"), "{told:?}");
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        drop(end);
        assert_eq!(compiler.run(Duration::from_secs(60), || Ok(3)), Ok(3));
        let fails = || -> Result<u8, Vec<Unfit>> { panic!("as a compiler may") };
        assert_eq!(
            compiler.run(Duration::from_secs(60), fails),
            Err(vec![Unfit::new("the compiler failed")])
        );
        assert_eq!(compiler.run(Duration::from_secs(60), || Ok(4)), Ok(4));
    }
}
