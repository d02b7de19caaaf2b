//! The engine: the cluster, the profiles, and the cycle that leads from a pod to a decision.

use std::{collections::BTreeSet, sync::Arc};

use supercargo_framework::{
    Code,
    preemption::{Adviser, FilterState, NodeVerdicts, Nominations, NotNominated, Rejection, Resolvable},
    profile::{CycleError, PreFilterEnd, PreFiltered, Profile, ProfileRunner},
    registry::Point,
    stopwatch::Stopwatch,
};
use supercargo_model::{Cluster, Name, NodeId, NodeInfo, Pod};

use crate::{
    consult::{Advice, Answer, Begun, Consulted, ExtenderRole, Halt, Preempting, Question, Step},
    decision::{BriefRefusal, Decision, Outcome},
    laps::{Lap, Laps},
    pick::{TieBreak, best, reservoir},
    random::cycle_seed,
    refusals::Refusals,
    sampling::nodes_to_find,
    signature_cache::SignatureCache,
    signature_state::Scope,
};

/// How many feasible nodes are looked for at least.
const DEFAULT_MIN_FEASIBLE_NODES: usize = 100;

/// What holds for all profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many percent of the nodes are enough; 0 adapts to the size of the cluster.
    pub percentage_of_nodes_to_score: i32,
    /// How many feasible nodes are looked for at least.
    pub min_feasible_nodes_to_find: usize,
    /// How to choose among equals.
    pub tie_break: TieBreak,
    /// What choices among equals follow from.
    pub seed: u64,
    /// The extenders, in the order in which they are asked.
    pub extenders: Vec<ExtenderRole>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            percentage_of_nodes_to_score: 0,
            min_feasible_nodes_to_find: DEFAULT_MIN_FEASIBLE_NODES,
            tie_break: TieBreak::default(),
            seed: 0,
            extenders: Vec::new(),
        }
    }
}

/// A profile, and what it has to itself.
pub struct EngineProfile {
    /// The plugins.
    pub profile: Profile,
    /// Overrides the setting for all profiles.
    pub percentage_of_nodes_to_score: Option<i32>,
}

impl From<Profile> for EngineProfile {
    fn from(profile: Profile) -> Self {
        Self { profile, percentage_of_nodes_to_score: None }
    }
}

/// Decides where pods go.
pub struct Engine {
    cluster: Cluster,
    profiles: Vec<Arc<EngineProfile>>,
    settings: Settings,
    nominations: Nominations,
    /// Where the search for nodes starts in the order of nodes.
    next_start: usize,
    cycles: u64,
    signatures: SignatureCache,
    /// The nodes that were found last, and their totals: kept for their memory.
    found: Vec<NodeId>,
    totals: Vec<f64>,
    paths: PathCounts,
    /// How often plugins have come to judge otherwise.
    plugin_changes: u64,
}

/// How often decisions were made in each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// From columns that are kept up to date.
    pub columns: u64,
    /// From node_classes of nodes that score alike.
    pub node_classes: u64,
    /// From columns, among some of the nodes.
    pub sampled: u64,
    /// No node was open, and why was known.
    pub refused: u64,
    /// Every plugin was asked about every node.
    pub full: u64,
}

enum DecisionPath {
    Columns,
    NodeClasses,
    Sampled,
    Refused,
    Full,
}

impl PathCounts {
    fn count(&mut self, path: DecisionPath) {
        *match path {
            DecisionPath::Columns => &mut self.columns,
            DecisionPath::NodeClasses => &mut self.node_classes,
            DecisionPath::Sampled => &mut self.sampled,
            DecisionPath::Refused => &mut self.refused,
            DecisionPath::Full => &mut self.full,
        } += 1;
    }
}

/// A pod's chances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// How many nodes are feasible.
    pub feasible: usize,
    /// The highest total.
    pub best: i64,
    /// How many nodes share it.
    pub ties: usize,
    /// The sum of all totals.
    pub sum: i64,
    /// The first of the best, by name.
    pub first: Name,
}

/// Where a pod goes.
#[derive(Debug)]
pub enum Placement {
    /// A node was chosen in the fast way.
    On {
        /// The node.
        node: Name,
        /// Its total, the highest.
        total: i64,
        /// How many nodes share it.
        ties: usize,
        /// How many nodes were feasible.
        feasible: usize,
    },
    /// The whole cycle was run, with its record: no node is left, or something has no fast form. For a template that was
    /// refused before, the record may be brief (see [`Decision::brief`]).
    Decided(Box<Decision>),
}

impl Placement {
    /// The chosen node.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Self::On { node, .. } => Some(node),
            Self::Decided(decision) => decision.node(),
        }
    }
}

impl Engine {
    /// An engine over a cluster.
    pub fn new(
        cluster: Cluster,
        profiles: impl IntoIterator<Item = impl Into<EngineProfile>>,
        settings: Settings,
    ) -> Self {
        Self {
            cluster,
            profiles: (profiles.into_iter()).map(|profile| Arc::new(profile.into())).collect(),
            settings,
            nominations: Nominations::default(),
            next_start: 0,
            cycles: 0,
            signatures: SignatureCache::default(),
            found: Vec::new(),
            totals: Vec::new(),
            paths: PathCounts::default(),
            plugin_changes: 0,
        }
    }

    /// The cluster as it is now.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster, to bring it up to date.
    pub fn cluster_mut(&mut self) -> &mut Cluster {
        &mut self.cluster
    }

    /// Where the search of the next cycle starts in the order of nodes.
    pub fn next_start(&self) -> usize {
        self.next_start
    }

    /// How often decisions were made in each way.
    pub fn paths(&self) -> PathCounts {
        self.paths
    }

    /// The profile that a pod asks for.
    pub fn profile(&self, scheduler_name: &str) -> Option<&Profile> {
        self.find(scheduler_name).map(|p| &p.profile)
    }

    /// Takes the times of plugins, wherever they are asked one by one.
    pub fn time_with(&self, stopwatch: &Arc<dyn Stopwatch>) {
        self.profiles().for_each(|profile| profile.time_with(stopwatch.clone()));
    }

    /// All profiles.
    pub fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.iter().map(|p| &p.profile)
    }

    /// The profile that a pod asks for, to be used beside the engine.
    pub fn shared_profile(&self, scheduler_name: &str) -> Option<Arc<EngineProfile>> {
        self.find(scheduler_name).cloned()
    }

    /// The nominations of pods that room is being made for.
    pub fn nominations(&self) -> &Nominations {
        &self.nominations
    }

    /// The claims of pods that room is being made for.
    pub fn nominations_mut(&mut self) -> &mut Nominations {
        &mut self.nominations
    }

    fn find(&self, scheduler_name: &str) -> Option<&Arc<EngineProfile>> {
        self.index_of(scheduler_name).map(|index| &self.profiles[index])
    }

    fn index_of(&self, scheduler_name: &str) -> Option<usize> {
        (self.profiles.iter()).position(|p| &**p.profile.scheduler_name() == scheduler_name)
    }

    /// The same pod, ready for the queue: pods that are alike share their spec from here on.
    pub fn admit(&mut self, pod: Arc<Pod>) -> Arc<Pod> {
        self.cluster.share(pod)
    }

    /// Decides where a pod goes, as [`Self::decide`] does, but leaves no record where it need not. The pod should have
    /// been admitted; `None` if no profile has the scheduler name that it asks for.
    pub fn place(&mut self, pod: &Arc<Pod>) -> Option<Placement> {
        let index = self.index_of(&pod.spec.scheduler_name)?;
        self.cycle_starts(index);
        match self.place_fast(index, pod) {
            Some(placement) => {
                self.cycles += 1;
                Some(placement)
            }
            None => self.decide(pod).map(|decision| Placement::Decided(Box::new(decision))),
        }
    }

    /// Decides in the fast way; `None` where that does not apply: room was made for this very pod, a plugin has no fast
    /// form, or no node is left, and only the slow way can tell why or make room.
    fn place_fast(&mut self, index: usize, pod: &Arc<Pod>) -> Option<Placement> {
        if pod.nominated_node.is_some() {
            return None;
        }
        let nodes = self.cluster.node_count();
        let enough = self.enough_nodes(&self.profiles[index], nodes);
        let all_free = self.nominations.is_empty() || !self.nominations.any_ahead_of(pod);
        if enough >= nodes && all_free {
            self.place_on_best(index, pod)
        } else {
            self.place_among_some(index, pod, enough, all_free)
        }
    }

    /// Refuses a pod to whose signature, the last that was asked for, no node is open. Nobody is ahead of it anywhere. `None` if
    /// a plugin must be asked why, or room might be made.
    fn refuse(&mut self, index: usize, pod: &Arc<Pod>) -> Option<Placement> {
        let profile = &self.profiles[index].profile;
        let refusals = self.signatures.last()?.refusals(&self.cluster)?;
        let resolvable = Resolvable {
            count: refusals.resolvable_count(),
            nodes: &|| refusals.resolvable().collect(),
            was_pre_filtered_by: &|plugin| profile.has_pre_filter_plugin(plugin),
        };
        let not_nominated = match profile.has_post_filter_plugins() {
            true => Some(profile.foregone_post_filter(&self.cluster, pod, &resolvable)?),
            false => None,
        };
        let brief = BriefRefusal { summary: refusals.summary(), refusal: refusals.refusal() };
        let seed = cycle_seed(self.settings.seed, self.cycles);
        let name = profile.scheduler_name().clone();
        let mut decision = Decision::new(pod, name, seed, self.cluster.node_count());
        decision.brief = Some(brief);
        if let Some(NotNominated { status, clears }) = not_nominated {
            decision.clears_nomination = clears;
            decision.preemption = Some(Err(status));
        }
        // All nodes count as looked at, which leads back to where the search started; there may be fewer nodes than then.
        self.next_start %= self.cluster.node_count().max(1);
        self.paths.count(DecisionPath::Refused);
        Some(Placement::Decided(Box::new(decision)))
    }

    /// Why each node refuses a pod that no node is open to, as [`Self::decide`] would tell it, where that is known without
    /// asking every plugin; `None` otherwise.
    pub fn verdicts(&mut self, pod: &Arc<Pod>) -> Option<NodeVerdicts> {
        let index = self.index_of(&pod.spec.scheduler_name)?;
        if pod.nominated_node.is_some() || self.nominations.any_ahead_of(pod) {
            return None;
        }
        let profile = &self.profiles[index].profile;
        let signature =
            self.signatures.of(profile, index, &self.cluster, pod, Scope::Whole, &mut Laps::none())?;
        signature.refusals(&self.cluster).map(Refusals::verdicts)
    }

    /// Where all nodes are looked at.
    fn place_on_best(&mut self, index: usize, pod: &Arc<Pod>) -> Option<Placement> {
        let engine_profile = self.profiles[index].clone();
        let profile = &engine_profile.profile;
        let mut laps = Laps::begin(profile);
        let signature = self.signatures.of(profile, index, &self.cluster, pod, Scope::Whole, &mut laps)?;
        let Some((total, ties)) = signature.best() else {
            let refused = self.refuse(index, pod)?;
            laps.end_in_vain(profile);
            return Some(refused);
        };
        let chosen = match self.settings.tie_break {
            TieBreak::Random => {
                let chosen = reservoir(ties, cycle_seed(self.settings.seed, self.cycles))?;
                signature.nth_best(chosen)?
            }
            TieBreak::First => {
                let best = |id: &&NodeId| signature.total(id.index()) == total;
                self.cluster.order().iter().find(best)?.index()
            }
        };
        laps.end(profile);
        let feasible = signature.open_count();
        self.paths.count(if signature.has_node_classes() {
            DecisionPath::NodeClasses
        } else {
            DecisionPath::Columns
        });
        let node = self.cluster.node_at(NodeId::from_index(chosen)).name().clone();
        Some(Placement::On { node, total: total as i64, ties, feasible })
    }

    /// Where the search stops when enough nodes are found, or room on some nodes is kept for other pods.
    fn place_among_some(
        &mut self,
        index: usize,
        pod: &Arc<Pod>,
        enough: usize,
        all_free: bool,
    ) -> Option<Placement> {
        let profile = self.profiles[index].clone();
        let mut laps = Laps::begin(&profile.profile);
        let signature =
            self.signatures.of(&profile.profile, index, &self.cluster, pod, Scope::Sampled, &mut laps)?;
        if all_free && signature.open_count() == 0 {
            let refused = self.refuse(index, pod)?;
            laps.end_in_vain(&profile.profile);
            return Some(refused);
        }
        let kept_free = self.kept_free(&profile.profile, pod)?;
        let signature = self.signatures.last()?;
        let nodes = self.cluster.order();
        let found = &mut self.found;
        found.clear();
        let start = self.next_start % nodes.len();
        let mut looked_at = 0;
        for id in nodes[start..].iter().chain(&nodes[..start]) {
            if signature.is_open(*id) && !kept_free.contains(id) {
                if found.len() == enough {
                    break;
                }
                found.push(*id);
            }
            looked_at += 1;
        }
        if found.is_empty() {
            return None;
        }
        laps.lap(Lap::Filter);
        // By place, so that the choice does not depend on where the search started.
        found.sort_unstable();
        signature.weigh_among(&self.cluster, found, &mut self.totals);
        if signature.has_failed() {
            return None;
        }
        self.next_start = (self.next_start + looked_at) % nodes.len();
        self.paths.count(DecisionPath::Sampled);
        let placement = self.pick_among_found();
        laps.end(&profile.profile);
        placement
    }

    fn pick_among_found(&self) -> Option<Placement> {
        let total = self.totals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let best = || (0..self.found.len()).filter(|i| self.totals[*i] == total);
        let ties = best().count();
        let chosen = match self.settings.tie_break {
            TieBreak::Random => {
                let nth = reservoir(ties, cycle_seed(self.settings.seed, self.cycles))?;
                self.found[best().nth(nth)?]
            }
            TieBreak::First => {
                let is_best = |id: &&NodeId| best().any(|i| self.found[i] == **id);
                *self.cluster.order().iter().find(is_best)?
            }
        };
        let node = self.cluster.node_at(chosen).name().clone();
        Some(Placement::On { node, total: total as i64, ties, feasible: self.found.len() })
    }

    /// The open nodes on which pods that room was made for leave none for this one; `None` if the pod is refused as such.
    fn kept_free(&mut self, profile: &Profile, pod: &Arc<Pod>) -> Option<Vec<NodeId>> {
        let signature = self.signatures.last()?;
        let nominated: Vec<&NodeInfo> = (self.nominations.nodes_ahead_of(pod))
            .filter_map(|name| self.cluster.node(name))
            .filter(|node| signature.is_open(node.id))
            .collect();
        if nominated.is_empty() {
            return Some(Vec::new());
        }
        let Ok(PreFilterEnd::Go(PreFiltered { state, .. })) = profile.pre_filter(&self.cluster, pod) else {
            return None;
        };
        let mut kept = Vec::new();
        for node in nominated {
            match profile.filter_with_nominated(&state, &self.cluster, &self.nominations, pod, node) {
                Ok(()) => {}
                Err(Rejection { status, .. }) if status.code == Code::Error => return None,
                Err(_) => kept.push(node.id),
            }
        }
        Some(kept)
    }

    /// What the fast way knows about a pod's chances when all nodes are looked at, without choosing; `None` where it
    /// does not apply, or no node is left.
    pub fn survey(&mut self, pod: &Arc<Pod>) -> Option<Survey> {
        let index = self.index_of(&pod.spec.scheduler_name)?;
        let profile = &self.profiles[index].profile;
        let signature =
            self.signatures.of(profile, index, &self.cluster, pod, Scope::Whole, &mut Laps::none())?;
        let (best, ties) = signature.best()?;
        let total = |id: &&NodeId| signature.total(id.index());
        let open = self.cluster.order().iter().filter(|id| total(id).is_finite());
        let tied = self.cluster.order().iter().filter(|id| total(id) == best);
        let names = tied.map(|id| self.cluster.node_at(*id).name());
        Some(Survey {
            feasible: signature.open_count(),
            best: best as i64,
            ties,
            sum: open.map(|id| total(&id) as i64).sum(),
            first: names.min()?.clone(),
        })
    }

    /// The feasible nodes and all scores as the fast way knows them, in the form of a decision without a choice; `None`
    /// where the fast way does not apply. For tests that compare the two.
    pub fn recall(&mut self, pod: &Arc<Pod>) -> Option<Decision> {
        let index = self.index_of(&pod.spec.scheduler_name)?;
        let profile = self.profiles[index].clone();
        let signature = self.signatures.of(
            &profile.profile,
            index,
            &self.cluster,
            pod,
            Scope::Whole,
            &mut Laps::none(),
        )?;
        let name = profile.profile.scheduler_name().clone();
        let mut decision = Decision::new(pod, name, 0, self.cluster.node_count());
        (decision.feasible, decision.scores) = signature.record(&self.cluster);
        Some(decision)
    }

    /// Keeps a pod's claim to the node that room was made on.
    pub fn nominate(&mut self, pod: Arc<Pod>, node: Name) {
        self.nominations.nominate(pod, node);
    }

    /// Puts a pod on a node, so that the next one sees it there.
    pub fn assume(&mut self, pod: &Pod, node: Name) {
        self.nominations.forget(&pod.uid);
        self.cluster.put_pod(Arc::new(pod.bound_to(node)));
    }

    /// Decides where a pod goes; `None` if no profile has the scheduler name that it asks for. Nothing is placed yet:
    /// see [`Self::assume`].
    ///
    /// Extenders have no say here: see [`Self::consult`].
    pub fn decide(&mut self, pod: &Pod) -> Option<Decision> {
        let index = self.index_of(&pod.spec.scheduler_name)?;
        self.cycle_starts(index);
        let profile = self.profiles[index].clone();
        let seed = cycle_seed(self.settings.seed, self.cycles);
        self.cycles += 1;
        self.paths.count(DecisionPath::Full);
        match self.run_cycle(&profile, pod, seed, None) {
            Step::Decided(decision) => Some(*decision),
            Step::Ask(question) => unreachable!("nobody is there to be asked {question:?}"),
        }
    }

    /// What would be decided for a pod now, with the full record. Nothing comes of it: the next decision is what it would
    /// have been. Extenders have no say.
    pub fn what_if(&mut self, pod: &Pod) -> Option<Decision> {
        let (cycles, next_start, paths) = (self.cycles, self.next_start, self.paths);
        let decision = self.decide(pod);
        (self.cycles, self.next_start, self.paths) = (cycles, next_start, paths);
        decision
    }

    /// The extenders, in the order in which they are asked.
    pub fn extenders(&self) -> &[ExtenderRole] {
        &self.settings.extenders
    }

    /// Gives extenders a say from now on, in this order.
    pub fn set_extenders(&mut self, extenders: Vec<ExtenderRole>) {
        self.settings.extenders = extenders;
    }

    /// Whether an extender has a say in where a pod goes.
    pub fn is_consulted(&self, pod: &Pod) -> bool {
        let mut extenders = self.settings.extenders.iter();
        extenders.any(|extender| extender.decides() && extender.is_interested(pod))
    }

    /// Decides where a pod goes as far as the extenders' advice reaches; `None` if no profile has the scheduler name that
    /// it asks for. An attempt begins with empty advice, and goes on with the same when the answer has been added.
    pub fn consult(&mut self, pod: &Pod, advice: &mut Advice) -> Option<Step> {
        let index = self.index_of(&pod.spec.scheduler_name)?;
        self.cycle_starts(index);
        let profile = self.profiles[index].clone();
        let (next_start, begun) = (self.next_start, advice.begun);
        let seed = match begun {
            Some(begun) => {
                self.next_start = begun.start;
                begun.seed
            }
            None => {
                let seed = cycle_seed(self.settings.seed, self.cycles);
                self.cycles += 1;
                self.paths.count(DecisionPath::Full);
                advice.begun = Some(Begun { start: next_start, seed });
                seed
            }
        };
        let step = self.run_cycle(&profile, pod, seed, Some(advice));
        if begun.is_some() {
            // The search moved on when the attempt began.
            self.next_start = next_start;
        }
        Some(step)
    }

    /// Decides where a pod goes, with the extenders' say; whoever calls gets their answers.
    pub fn decide_asking(
        &mut self,
        pod: &Pod,
        mut ask: impl FnMut(&Pod, &Question) -> Answer,
    ) -> Option<Decision> {
        if !self.is_consulted(pod) {
            return self.decide(pod);
        }
        let mut advice = Advice::default();
        loop {
            match self.consult(pod, &mut advice)? {
                Step::Decided(decision) => return Some(*decision),
                Step::Ask(question) => {
                    let answer = ask(pod, &question);
                    advice.add(&self.settings.extenders, question, answer);
                }
            }
        }
    }

    fn cycle_starts(&mut self, index: usize) {
        self.plugin_changes += u64::from(self.profiles[index].profile.cycle_starts());
    }

    fn run_cycle(&mut self, profile: &EngineProfile, pod: &Pod, seed: u64, advice: Option<&Advice>) -> Step {
        let name = profile.profile.scheduler_name().clone();
        let mut decision = Decision::new(pod, name, seed, self.cluster.node_count());
        match self.cycle(profile, pod, advice, &mut decision) {
            Ok(()) => {}
            Err(Halt::Ask(question)) => return Step::Ask(question),
            Err(Halt::Failed(CycleError(message))) => decision.outcome = Outcome::Error { message },
        }
        Step::Decided(Box::new(decision))
    }

    /// The record of a pod that a PreEnqueue plugin holds back; `None` if none does.
    pub fn held(&self, pod: &Pod) -> Option<Decision> {
        let profile = &self.find(&pod.spec.scheduler_name)?.profile;
        let refused = profile.pre_enqueue(pod).err()?;
        let name = profile.scheduler_name().clone();
        Some(Decision {
            outcome: Outcome::Gated,
            refused: Some(refused),
            ..Decision::new(pod, name, 0, self.cluster.node_count())
        })
    }

    fn cycle(
        &mut self,
        profile: &EngineProfile,
        pod: &Pod,
        advice: Option<&Advice>,
        decision: &mut Decision,
    ) -> Result<(), Halt> {
        if self.cluster.node_count() == 0 {
            return Ok(());
        }
        let pre_filter = || profile.profile.pre_filter(&self.cluster, pod);
        let refused = |end: &Result<PreFilterEnd, CycleError>| match end {
            Ok(PreFilterEnd::Go(_)) => None,
            Ok(PreFilterEnd::Rejected { rejection, .. }) => Some(rejection.status.code),
            Err(_) => Some(Code::Error),
        };
        match profile.profile.timed_point(Point::PreFilter, pre_filter, refused)? {
            PreFilterEnd::Rejected { rejection, narrowed_by, state } => {
                decision.verdicts.others = rejection.status.clone();
                decision.narrowed_by = narrowed_by;
                decision.refused = Some(rejection);
                self.make_room(profile, pod, &state, advice, decision)?;
            }
            PreFilterEnd::Go(PreFiltered { state, nodes, narrowed_by, others }) => {
                let search = || self.search(profile, pod, &state, nodes.as_ref(), advice, decision);
                let code = |found: &Result<Vec<NodeId>, Halt>| match found {
                    Ok(found) => found.is_empty().then_some(Code::Unschedulable),
                    Err(Halt::Failed(_)) => Some(Code::Error),
                    Err(Halt::Ask(_)) => None,
                };
                let feasible = profile.profile.timed_point(Point::Filter, search, code)?;
                decision.verdicts.others = others;
                decision.narrowed_by = narrowed_by;
                self.record_rejections(decision, nodes.as_ref());
                if feasible.is_empty() {
                    self.make_room(profile, pod, &state, advice, decision)?;
                } else {
                    self.score(profile, pod, feasible, advice, decision)?;
                }
            }
        }
        Ok(())
    }

    fn record_rejections(&self, decision: &mut Decision, only: Option<&BTreeSet<Name>>) {
        let rejected = (decision.verdicts.rejected.iter())
            .map(|(id, rejection)| (self.cluster.node_at(*id).name().clone(), rejection.clone()));
        decision.rejected.extend(rejected);
        if let Some(only) = only {
            let outside = (self.cluster.nodes()).filter(|node| !only.contains(node.name()));
            decision.ruled_out = outside.map(|node| node.name().clone()).collect();
            decision.ruled_out.sort();
        }
    }

    /// Looks for feasible nodes. A pod that room was made for tries that node first.
    fn search(
        &mut self,
        profile: &EngineProfile,
        pod: &Pod,
        state: &FilterState,
        only: Option<&BTreeSet<Name>>,
        advice: Option<&Advice>,
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, Halt> {
        let nominated = (pod.nominated_node.as_ref()).and_then(|name| self.cluster.node(name));
        if let Some(node) = nominated {
            let feasible = self.filter_nodes(profile, pod, state, &[node.id], decision)?;
            let feasible = match self.consulted(pod, advice) {
                Some(consulted) => consulted.filter(&self.cluster, feasible, true, decision)?,
                None => feasible,
            };
            if !feasible.is_empty() {
                return Ok(feasible);
            }
        }
        let feasible = self.filter_all(profile, pod, state, only, advice, decision)?;
        let looked_at = feasible.len() + decision.verdicts.rejected.len();
        self.next_start = (self.next_start + looked_at) % self.cluster.node_count();
        match self.consulted(pod, advice) {
            Some(consulted) => consulted.filter(&self.cluster, feasible, false, decision),
            None => Ok(feasible),
        }
    }

    /// Runs the filters on all nodes; while extenders are asked, only if anything has changed since the last time.
    fn filter_all(
        &self,
        profile: &EngineProfile,
        pod: &Pod,
        state: &FilterState,
        only: Option<&BTreeSet<Name>>,
        advice: Option<&Advice>,
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, CycleError> {
        let now = (self.cluster.changes().now(), self.nominations.revision(), self.plugin_changes);
        if let Some((feasible, rejected)) = advice.and_then(|advice| advice.search_at(now)) {
            decision.verdicts.rejected = rejected;
            return Ok(feasible);
        }
        let narrowed: Option<Vec<NodeId>> = only.map(|only| {
            (self.cluster.nodes()).filter(|node| only.contains(node.name())).map(|node| node.id).collect()
        });
        let nodes = narrowed.as_deref().unwrap_or_else(|| self.cluster.order());
        let feasible = self.filter_nodes(profile, pod, state, nodes, decision)?;
        if let Some(advice) = advice {
            advice.keep_search(now, &feasible, &decision.verdicts.rejected);
        }
        Ok(feasible)
    }

    fn consulted<'a>(&'a self, pod: &'a Pod, advice: Option<&'a Advice>) -> Option<Consulted<'a>> {
        advice.map(|advice| Consulted { roles: &self.settings.extenders, advice, pod })
    }

    /// Runs the filters on nodes, from where the last search stopped, until enough are feasible. It only stops when it
    /// meets one feasible node more than it needs: the refused ones on the way there count as looked at.
    fn filter_nodes(
        &self,
        profile: &EngineProfile,
        pod: &Pod,
        state: &FilterState,
        nodes: &[NodeId],
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, CycleError> {
        let mut feasible = Vec::new();
        if nodes.is_empty() {
            return Ok(feasible);
        }
        let enough = self.enough_nodes(profile, nodes.len());
        let start = self.next_start % nodes.len();
        for id in nodes[start..].iter().chain(&nodes[..start]) {
            let node = self.cluster.node_at(*id);
            let (cluster, nominations) = (&self.cluster, &self.nominations);
            match (profile.profile).filter_with_nominated(state, cluster, nominations, pod, node) {
                Ok(()) if feasible.len() == enough => break,
                Ok(()) => feasible.push(*id),
                Err(Rejection { status, .. }) if status.code == Code::Error => {
                    return Err(CycleError(status.message()));
                }
                Err(rejection) => {
                    decision.verdicts.rejected.insert(*id, rejection);
                }
            }
        }
        Ok(feasible)
    }

    fn enough_nodes(&self, profile: &EngineProfile, nodes: usize) -> usize {
        let chooses = |extender: &ExtenderRole| extender.filters || extender.weight.is_some();
        if !profile.profile.has_score_plugins() && !self.settings.extenders.iter().any(chooses) {
            return 1;
        }
        let percentage =
            (profile.percentage_of_nodes_to_score).unwrap_or(self.settings.percentage_of_nodes_to_score);
        nodes_to_find(percentage, nodes, self.settings.min_feasible_nodes_to_find)
    }

    fn score(
        &self,
        profile: &EngineProfile,
        pod: &Pod,
        feasible: Vec<NodeId>,
        advice: Option<&Advice>,
        decision: &mut Decision,
    ) -> Result<(), Halt> {
        let consulted = self.consulted(pod, advice);
        let feasible = match &consulted {
            Some(consulted) => consulted.to_score(&self.cluster, feasible)?,
            None => feasible,
        };
        let nodes: Vec<&NodeInfo> = (feasible.iter()).map(|id| self.cluster.node_at(*id)).collect();
        decision.feasible = nodes.iter().map(|node| node.name().clone()).collect();
        decision.scores = profile.profile.score(&self.cluster, pod, &nodes)?;
        if let Some(consulted) = &consulted {
            consulted.add_scores(&decision.feasible, &mut decision.scores)?;
        }
        let mut best = best(&decision.scores.totals);
        // By place, so that the choice does not depend on where the search started.
        best.sort_by_key(|i| feasible[*i]);
        let chosen = match self.settings.tie_break {
            TieBreak::Random => reservoir(best.len(), decision.seed).map(|nth| best[nth]),
            TieBreak::First => self.first_in_order(&feasible, &best),
        };
        decision.best = best.iter().map(|i| nodes[*i].name().clone()).collect();
        if let Some(chosen) = chosen {
            let node = nodes[chosen].name().clone();
            decision.outcome = Outcome::Scheduled { node };
        }
        Ok(())
    }

    /// The one of the best that stands first in the order of nodes, wherever the search started.
    fn first_in_order(&self, feasible: &[NodeId], best: &[usize]) -> Option<usize> {
        let order = self.cluster.order();
        let place = |i: &usize| order.iter().position(|id| *id == feasible[*i]);
        best.iter().copied().min_by_key(place)
    }

    fn make_room(
        &self,
        profile: &EngineProfile,
        pod: &Pod,
        state: &FilterState,
        advice: Option<&Advice>,
        decision: &mut Decision,
    ) -> Result<(), Halt> {
        if !profile.profile.has_post_filter_plugins() {
            return Ok(());
        }
        let consulted = self.consulted(pod, advice);
        let preempting =
            consulted.as_ref().map(|consulted| Preempting { consulted, halt: Default::default() });
        let runner = ProfileRunner {
            profile: &profile.profile,
            cluster: &self.cluster,
            nominations: &self.nominations,
            state,
            seed: decision.seed,
            adviser: preempting.as_ref().map(|preempting| preempting as &dyn Adviser),
        };
        let post_filter = || profile.profile.post_filter(&runner, pod, &decision.verdicts);
        let code = |made: &Result<_, NotNominated>| made.as_ref().err().map(|refused| refused.status.code);
        let made = profile.profile.timed_point(Point::PostFilter, post_filter, code);
        decision.clears_nomination = made.as_ref().is_err_and(|refused| refused.clears);
        decision.preemption = Some(made.map_err(|refused| refused.status));
        match preempting.and_then(|preempting| preempting.halt.into_inner()) {
            Some(halt) => Err(halt),
            None => Ok(()),
        }
    }
}
