//! A thread beside the one that decides, for what must not wait for decisions: the lease, and what is served.

use std::{thread, time::Duration};

use supercargo_manifest::Problem;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// How long tasks may take to end that nobody waits for.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The thread, with a runtime of its own. It ends when this is dropped.
pub(super) struct Beside {
    runtime: Handle,
    end: CancellationToken,
}

impl Beside {
    /// Starts the thread.
    pub(super) fn start() -> Result<Self, Problem> {
        let cannot = |error| Problem::error(format!("cannot start a thread: {error}"));
        let runtime = Builder::new_current_thread().enable_all().build().map_err(cannot)?;
        let beside = Self { runtime: runtime.handle().clone(), end: CancellationToken::new() };
        let end = beside.end.clone();
        let body = move || {
            runtime.block_on(end.cancelled());
            runtime.shutdown_timeout(END_WITHIN);
        };
        thread::Builder::new().name("beside".to_owned()).spawn(body).map_err(cannot)?;
        Ok(beside)
    }

    /// Does something at once whose tasks are to run there.
    pub(super) fn enter<T>(&self, spawns: impl FnOnce() -> T) -> T {
        let _entered = self.runtime.enter();
        spawns()
    }

    /// Runs something there, and waits for what comes of it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Problem> {
        let done = self.runtime.spawn(task).await;
        done.map_err(|error| Problem::error(format!("the thread beside the deciding one failed: {error}")))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, time::Instant};

    use super::*;

    #[tokio::test]
    async fn what_runs_beside_goes_on_while_this_thread_is_busy() {
        let beside = Beside::start().unwrap();
        let (ticks, ticked) = mpsc::channel();
        beside.enter(|| {
            tokio::spawn(async move {
                while ticks.send(()).is_ok() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            });
        });
        // Nothing of this thread's runtime gets a turn meanwhile.
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {}
        assert!(ticked.try_iter().count() >= 5);
        assert_eq!(beside.run(async { 7 }).await.unwrap(), 7);
    }
}
