//! The engine: the cluster with its nominations, the profiles, and both paths from a pod to a decision.

use std::sync::Arc;

use supercargo_framework::{
    handle::NoPendingPods, preemption::Nominations, profile::Profile, queueing::QueueView,
};
use supercargo_model::{Cluster, Name, Pod};

use crate::{
    cluster_state::ClusterState,
    cycle::{CycleInput, CycleProgress, DecisionPath},
    decision::{Decision, Outcome},
    explanation::Explained,
    extender_calls::{Begun, CycleStep, ExtenderAnswers, ExtenderRole, PlaceStep},
    fast_path::{FastCycle, FastPath, Placed, Placement},
    full_path::FullCycle,
    inspection::Inspection,
    settings::{EngineProfile, Profiles, Settings},
    trial::Trial,
};

/// Decides where pods go.
///
/// The full path ([`Self::decide`]) is the specification; the fast path, which [`Self::place`] tries first, gives the same
/// answer without a record.
pub struct Engine {
    pub(crate) state: ClusterState,
    profiles: Profiles,
    settings: Settings,
    pub(crate) progress: CycleProgress,
    pub(crate) fast: FastPath,
    /// How often plugins have come to judge otherwise.
    plugin_changes: u64,
}

impl Engine {
    /// An engine over a cluster.
    pub fn new(
        cluster: Cluster,
        profiles: impl IntoIterator<Item = impl Into<EngineProfile>>,
        settings: Settings,
    ) -> Self {
        Self {
            state: ClusterState::new(cluster),
            profiles: Profiles::new(profiles),
            settings,
            progress: CycleProgress::default(),
            fast: FastPath::default(),
            plugin_changes: 0,
        }
    }

    /// The cluster as it is now.
    pub fn cluster(&self) -> &Cluster {
        &self.state.cluster
    }

    /// The cluster, to bring it up to date.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.state.cluster
    }

    /// The nominations of pods that wait for preemption.
    pub fn nominations(&self) -> &Nominations {
        &self.state.nominations
    }

    /// The nominations, to bring them up to date.
    pub fn nominations_mut(&mut self) -> &mut Nominations {
        &mut self.state.nominations
    }

    /// The cluster, and the nominations to bring them up to date.
    pub fn cluster_and_nominations(&mut self) -> (&Cluster, &mut Nominations) {
        (&self.state.cluster, &mut self.state.nominations)
    }

    /// All profiles.
    pub fn profiles(&self) -> &Profiles {
        &self.profiles
    }

    /// The profile that a pod asks for.
    pub fn profile(&self, scheduler_name: &str) -> Option<&Profile> {
        self.profiles.get(scheduler_name)
    }

    /// The same pod, ready for the queue: pods that are alike share their spec from here on.
    pub fn admit(&mut self, pod: Arc<Pod>) -> Arc<Pod> {
        self.state.cluster.share(pod)
    }

    /// Puts a pod on a node, so that the next one sees it there.
    pub fn assume(&mut self, pod: &Pod, node: Name) {
        self.state.assume(pod, node);
    }

    /// Decides where a pod goes, as [`Self::decide`] does, but leaves no record where it need not. The pod should have
    /// been admitted; `None` if no profile has the scheduler name that it asks for.
    pub fn place(&mut self, pod: &Arc<Pod>) -> Option<Placement> {
        let index = self.cycle_starts(pod)?;
        let (fast, input) = self.input(index);
        match fast.place(&FastCycle { input, index, pod }) {
            Some(Placed { placement, path, next_start }) => {
                self.progress.count(path);
                self.progress.next_start = next_start;
                Some(placement)
            }
            None => self.decide(pod).map(|decision| Placement::Decided(Box::new(decision))),
        }
    }

    /// Decides where a pod goes on the full path; `None` if no profile has the scheduler name that it asks for. Nothing is
    /// placed yet: see [`Self::assume`].
    ///
    /// Extenders are not called here: see [`Self::decide_with`].
    pub fn decide(&mut self, pod: &Pod) -> Option<Decision> {
        let index = self.cycle_starts(pod)?;
        let step = self.run_full(index, pod, None);
        self.progress.count(DecisionPath::Full);
        match step {
            CycleStep::Decided(decision) => Some(*decision),
            CycleStep::Call(call) => unreachable!("no extender is there for {call:?}"),
        }
    }

    /// What would be decided for a pod now and why, also with regard to these nodes. Nothing comes of it. A pod that is on a
    /// node is decided without itself, on a copy of the cluster. Extenders are not called.
    pub fn explain_now(&mut self, pod: &Pod, nodes: &[Name]) -> Option<Explained> {
        if pod.node.is_none() {
            let decision = self.held(pod).or_else(|| self.what_if(pod))?;
            return Some(self.explain(pod, decision, nodes));
        }
        let index = self.cycle_starts(pod)?;
        let state = self.state.without(pod);
        let pod = Pod { node: None, nominated_node: None, ..pod.clone() };
        let plugin_changes = self.plugin_changes;
        let (_, input) = self.input(index);
        let profile = input.profile();
        match FullCycle::new(CycleInput { state: &state, ..input }, &pod, None, plugin_changes).run().0 {
            CycleStep::Decided(decision) => Some(Explained::new(&state, profile, &pod, *decision, nodes)),
            CycleStep::Call(call) => unreachable!("no extender is there for {call:?}"),
        }
    }

    /// Explains a decision about a pod that was made in the present state, also with regard to these nodes.
    pub fn explain(&self, pod: &Pod, decision: Decision, nodes: &[Name]) -> Explained {
        match self.profile(&pod.spec.scheduler_name) {
            Some(profile) => Explained::new(&self.state, profile, pod, decision, nodes),
            None => Explained::from(decision),
        }
    }

    /// What would be decided for a pod now, with the full record. Nothing comes of it: the next decision is what it would
    /// have been. Extenders are not called.
    pub fn what_if(&mut self, pod: &Pod) -> Option<Decision> {
        let index = self.cycle_starts(pod)?;
        let plugin_changes = self.plugin_changes;
        let (_, input) = self.input(index);
        match FullCycle::new(input, pod, None, plugin_changes).run().0 {
            CycleStep::Decided(decision) => Some(*decision),
            CycleStep::Call(call) => unreachable!("no extender is there for {call:?}"),
        }
    }

    /// Decides where a pod goes as far as the extenders' answers reach; `None` if no profile has the scheduler name that
    /// it asks for. An attempt begins without answers, and goes on with the same when the next has been added.
    pub fn decide_with(&mut self, pod: &Pod, answers: &mut ExtenderAnswers) -> Option<CycleStep> {
        let index = self.cycle_starts(pod)?;
        Some(self.full_step(index, pod, answers))
    }

    /// The same, but leaves no record where it need not. The pod should have been admitted.
    pub fn place_with(&mut self, pod: &Arc<Pod>, answers: &mut ExtenderAnswers) -> Option<PlaceStep> {
        let index = self.cycle_starts(pod)?;
        let begun = answers.begun;
        let Begun { start, seed } = begun.unwrap_or_else(|| self.begin());
        let plugin_changes = self.plugin_changes;
        let (fast, input) = self.input(index);
        let cycle = FastCycle { input: CycleInput { start, seed, ..input }, index, pod };
        let Some((step, next_start)) = fast.place_with(&cycle, answers, plugin_changes) else {
            return Some(self.full_step(index, pod, answers).into());
        };
        if begun.is_none() {
            answers.begun = Some(Begun { start, seed });
            self.progress.next_start = next_start;
            self.progress.count(DecisionPath::Sampled);
        }
        Some(step)
    }

    /// Where and with what an attempt begins.
    fn begin(&self) -> Begun {
        Begun { start: self.progress.next_start, seed: self.progress.seed(&self.settings) }
    }

    fn full_step(&mut self, index: usize, pod: &Pod, answers: &mut ExtenderAnswers) -> CycleStep {
        let Some(Begun { start, seed }) = answers.begun else {
            answers.begun = Some(self.begin());
            let step = self.run_full(index, pod, Some(answers));
            self.progress.count(DecisionPath::Full);
            return step;
        };
        let plugin_changes = self.plugin_changes;
        let (_, input) = self.input(index);
        // Where the next search starts was settled when the attempt began.
        let input = CycleInput { start, seed, ..input };
        FullCycle::new(input, pod, Some(answers), plugin_changes).run().0
    }

    fn run_full(&mut self, index: usize, pod: &Pod, answers: Option<&ExtenderAnswers>) -> CycleStep {
        let plugin_changes = self.plugin_changes;
        let (_, input) = self.input(index);
        let (step, next_start) = FullCycle::new(input, pod, answers, plugin_changes).run();
        self.progress.next_start = next_start;
        step
    }

    /// The extenders, in the order in which they are asked.
    pub fn extenders(&self) -> &[ExtenderRole] {
        &self.settings.extenders
    }

    /// Calls these extenders from now on, in this order.
    pub fn set_extenders(&mut self, extenders: Vec<ExtenderRole>) {
        self.settings.extenders = extenders;
    }

    /// The record of a pod that a PreEnqueue plugin holds back; `None` if none does.
    pub fn held(&self, pod: &Pod) -> Option<Decision> {
        let profile = self.profiles.get(&pod.spec.scheduler_name)?;
        let view = QueueView { cluster: &self.state.cluster, pending: &NoPendingPods };
        let refused = profile.pre_enqueue(&view, pod).err()?;
        let name = profile.scheduler_name().clone();
        Some(Decision {
            outcome: Outcome::Gated,
            refused: Some(refused),
            ..Decision::new(pod, name, 0, self.state.cluster.node_count())
        })
    }

    /// Tries several pods: what comes of it stays, or never was.
    pub fn trial(&mut self) -> Trial<'_> {
        Trial::new(self)
    }

    /// A look inside, for whoever compares the two paths.
    pub fn inspect(&mut self) -> Inspection<'_> {
        Inspection(self)
    }

    /// A cycle begins for a pod: the place of the profile that it asks for.
    fn cycle_starts(&mut self, pod: &Pod) -> Option<usize> {
        let index = self.profiles.index_of(&pod.spec.scheduler_name)?;
        self.plugin_changes += u64::from(self.profiles.at(index).profile.cycle_starts());
        Some(index)
    }

    /// What a cycle starts from, and the fast path beside it.
    fn input(&mut self, index: usize) -> (&mut FastPath, CycleInput<'_>) {
        let input = CycleInput {
            state: &self.state,
            settings: &self.settings,
            engine_profile: self.profiles.at(index),
            seed: self.progress.seed(&self.settings),
            start: self.progress.next_start,
        };
        (&mut self.fast, input)
    }

    /// The fast path for a look at a pod.
    pub(crate) fn fast_cycle<'a>(
        &'a mut self,
        pod: &'a Arc<Pod>,
    ) -> Option<(&'a mut FastPath, FastCycle<'a>)> {
        let index = self.profiles.index_of(&pod.spec.scheduler_name)?;
        let (fast, input) = self.input(index);
        Some((fast, FastCycle { input, index, pod }))
    }
}
