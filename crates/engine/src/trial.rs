//! Trying several pods: what comes of it stays, or never was. Groups of pods that only make sense together, and questions of
//! the kind "what if", need it.

use std::sync::Arc;

use supercargo_framework::preemption::Nominations;
use supercargo_model::{AlreadyBound, Cluster, ClusterTrial, Name, Pod};

use crate::{cycle::CycleProgress, decision::Decision, engine::Engine, fast_path::Placement};

/// Pods on trial. Cycles see those that were assumed before, as ever; until [`Self::commit`] all of it can be undone, and is
/// undone when the trial is dropped.
///
/// After that the engine is as if nothing had been tried: the cluster with its columns, classes and change log, the
/// nominations, where the next search starts and what the next cycle breaks ties by. What is known about signatures follows
/// back with the changes that are taken back.
pub struct Trial<'a> {
    engine: &'a mut Engine,
    /// How it was when the trial began.
    progress: CycleProgress,
    /// How they were before the first was dropped.
    nominations: Option<Nominations>,
    /// Until it has ended.
    cluster: Option<ClusterTrial>,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(engine: &'a mut Engine) -> Self {
        let (progress, cluster) = (engine.progress, engine.state.cluster.begin_trial());
        Self { engine, progress, nominations: None, cluster: Some(cluster) }
    }

    /// The cluster, with the pods on trial.
    pub fn cluster(&self) -> &Cluster {
        self.engine.cluster()
    }

    /// Decides where a pod goes: see [`Engine::place`].
    pub fn place(&mut self, pod: &Arc<Pod>) -> Option<Placement> {
        self.engine.place(pod)
    }

    /// Decides where a pod goes on the full path: see [`Engine::decide`].
    pub fn decide(&mut self, pod: &Pod) -> Option<Decision> {
        self.engine.decide(pod)
    }

    /// Puts a pod on a node for the time of the trial, so that the next one sees it there.
    pub fn assume(&mut self, pod: &Pod, node: Name) -> Result<(), AlreadyBound> {
        let trial = self.cluster.as_mut().expect("a trial that has not ended");
        let state = &mut self.engine.state;
        state.cluster.try_pod(trial, Arc::new(pod.bound_to(node)))?;
        if state.nominations.node_of(&pod.uid).is_some() {
            self.nominations.get_or_insert_with(|| state.nominations.clone());
            state.nominations.forget(&pod.uid);
        }
        Ok(())
    }

    /// What was tried stays.
    pub fn commit(mut self) {
        if let Some(trial) = self.cluster.take() {
            self.engine.state.cluster.commit_trial(trial);
        }
    }

    /// What was tried never was.
    pub fn undo(self) {
        drop(self);
    }
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        let Some(trial) = self.cluster.take() else { return };
        let Engine { state, fast, progress, .. } = &mut *self.engine;
        state.cluster.undo_trial(trial, |cluster, began| fast.signatures.go_back(cluster, began));
        *progress = self.progress;
        if let Some(nominations) = self.nominations.take() {
            state.nominations = nominations;
        }
    }
}
