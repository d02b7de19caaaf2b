//! Questions about what the scheduler knows, from other threads: answered between decisions.

use supercargo_engine::{Engine, SchedulingQueue};
use tokio::sync::{mpsc, oneshot};

use super::{Report, Scheduler};

/// A question with the way back for its answer.
pub(super) type Question = Box<dyn FnOnce(&Engine, &SchedulingQueue) + Send>;

/// Asks the scheduler while it runs.
#[derive(Clone)]
pub struct Inspector(mpsc::UnboundedSender<Report>);

impl Scheduler {
    /// The way to ask it while it runs.
    pub fn inspector(&self) -> Inspector {
        Inspector(self.report_to.clone())
    }
}

impl Inspector {
    /// What the scheduler's state says; `None` when it has stopped. Nobody is scheduled meanwhile, so that it should be a
    /// short look: what takes time is done with the answer.
    pub async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, &SchedulingQueue) -> T + Send + 'static,
    ) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        let question = Box::new(move |engine: &Engine, queue: &SchedulingQueue| {
            // Whoever asked may have gone.
            drop(reply.send(question(engine, queue)));
        });
        self.0.send(Report::Asked(question)).ok()?;
        answer.await.ok()
    }
}
