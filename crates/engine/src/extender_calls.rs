//! Extenders in the cycle: what they are asked, and what becomes of their answers.
//!
//! The cycle does no I/O. It runs with the answers that are known so far ([`ExtenderAnswers`]); where it needs one that is
//! not there yet, it ends with an [`ExtenderCall`]. Whoever drives it makes the call, adds the answer, and runs the cycle
//! again, on the cluster as it is by then: plugins decide anew, and a node that an extender was not asked about is left out.

mod fast_path;
mod full_path;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use supercargo_framework::preemption::{Candidate, Rejection};
use supercargo_model::{Name, NodeId, Pod, changes::Moment};

use crate::{decision::Decision, engine::Engine, fast_path::Placement};

pub(crate) use fast_path::ExtenderCallMemory;
use fast_path::{AskedPlaces, FoundPlaces};
pub(crate) use full_path::{Halt, PreemptionCalls, WithExtenders};

/// What extenders are called together, as kube-scheduler's queue names whoever refused a pod.
pub const EXTENDER: &str = "Extender";

/// An extender scores from 0 to this.
pub const MAX_EXTENDER_SCORE: i64 = 10;

/// What an extender's points are multiplied by, so that its best is as good as a plugin's.
const SCALE: i64 = 100 / MAX_EXTENDER_SCORE;

/// How many calls an attempt may take. More than a few are only needed where the cluster changes faster than
/// extenders answer; then the pod is tried again later.
const MAX_CALLS: usize = 64;

/// An extender, as far as the cycle is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtenderRole {
    /// Its name: where it is.
    pub name: Name,
    /// It refuses nodes.
    pub filters: bool,
    /// It scores nodes, and its points count so much.
    pub weight: Option<i32>,
    /// It has a say in where room is made.
    pub preempts: bool,
    /// Its failures are passed over.
    pub ignorable: bool,
    /// If there are any: only pods that name one of them are its business.
    pub managed_resources: BTreeSet<Name>,
}

impl ExtenderRole {
    /// Whether a pod is its business.
    pub fn is_interested(&self, pod: &Pod) -> bool {
        let manages = |name| self.managed_resources.contains(name);
        self.managed_resources.is_empty() || pod.spec.extended_resources.iter().any(manages)
    }

    /// Whether it takes part in decisions, and does not only bind.
    pub fn decides(&self) -> bool {
        self.filters || self.weight.is_some() || self.preempts
    }
}

/// What is to be asked before a decision can be made. Extenders go by their places in the settings.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtenderCall {
    /// Which of these nodes are fit for the pod?
    Filter {
        /// Who is asked.
        extender: usize,
        /// The nodes that are left so far.
        nodes: Arc<[Name]>,
        /// It is only about the node that room was made on.
        nominated: bool,
    },
    /// How good are these nodes? All are asked at once.
    Prioritize {
        /// Who is asked.
        extenders: Vec<usize>,
        /// The feasible nodes.
        nodes: Arc<[Name]>,
    },
    /// Where may room be made, and by evicting whom?
    Preempt {
        /// Who is asked.
        extender: usize,
        /// Where it could be.
        candidates: Vec<Candidate>,
    },
}

/// Why an extender has no say, although it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtenderFailure {
    /// What is wrong; it names the extender.
    pub message: String,
    /// It answered, and the answer is invalid.
    pub invalid: bool,
}

/// What an extender says about nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sieved {
    /// Whether it lets them pass, in the order of the call.
    pub passed: Vec<bool>,
    /// Those that it refuses, and why.
    pub failed: BTreeMap<Name, String>,
    /// Those that it refuses whoever is evicted there, and why.
    pub unresolvable: BTreeMap<Name, String>,
}

/// Where an extender would have room made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The node.
    pub node: Name,
    /// The uids of those that have to go, the most important first.
    pub victims: Vec<Name>,
    /// How many disruption budgets that violates.
    pub budget_violations: i64,
}

/// What came of a call, in its order.
#[derive(Clone, Debug, PartialEq)]
pub enum ExtenderAnswer {
    /// To a filter call.
    Filter(Result<Sieved, ExtenderFailure>),
    /// To a prioritize call: each extender's points, in the order of the nodes in the call.
    Prioritize(Vec<Result<Vec<i64>, ExtenderFailure>>),
    /// To a preemption call.
    Preempt(Result<Vec<Proposal>, ExtenderFailure>),
}

/// How a cycle with extenders ends, for now.
#[derive(Debug)]
pub enum CycleStep {
    /// An extender must be called first.
    Call(ExtenderCall),
    /// All is known.
    Decided(Box<Decision>),
}

/// How a cycle with extenders ends, for now, where no record is needed.
#[derive(Debug)]
pub enum PlaceStep {
    /// An extender must be called first.
    Call(ExtenderCall),
    /// All is known.
    Placed(Placement),
}

impl From<CycleStep> for PlaceStep {
    fn from(step: CycleStep) -> Self {
        match step {
            CycleStep::Call(call) => Self::Call(call),
            CycleStep::Decided(decision) => Self::Placed(Placement::Decided(decision)),
        }
    }
}

/// What an extender had to say.
#[derive(Clone, Debug)]
enum Said<T> {
    Yes(T),
    /// It is ignorable and failed, or failed where that does not matter.
    Nothing,
    /// What ends the attempt.
    Failed(ExtenderFailure),
}

/// What an extender said about the nodes of one call.
#[derive(Clone, Debug)]
struct Filtered {
    nodes: Arc<[Name]>,
    said: Said<Sieved>,
}

/// Where and with what an attempt has begun, so that going on with it means the same nodes and the same draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) start: usize,
    pub(crate) seed: u64,
}

/// What the filters said about all nodes: it holds for as long as nothing has changed since.
#[derive(Clone, Debug)]
struct Search {
    at: Revision,
    feasible: Vec<NodeId>,
    rejected: BTreeMap<NodeId, Rejection>,
}

/// A state of the cluster, of its devices, of its nominations, and of the plugins.
pub(crate) type Revision = (Moment, u64, u64, u64);

/// What extenders have said about a pod in this attempt.
#[derive(Clone, Debug, Default)]
pub struct ExtenderAnswers {
    pub(crate) begun: Option<Begun>,
    search: RefCell<Option<Search>>,
    /// By whether it was about the nominated node, and by extender: more than once, if nodes came in the meantime.
    filters: HashMap<(bool, usize), Vec<Filtered>>,
    /// The nodes that have points.
    scored: Option<Arc<[Name]>>,
    scores: BTreeMap<usize, Said<Vec<i64>>>,
    proposals: BTreeMap<usize, Said<Vec<Proposal>>>,
    calls: usize,
    /// What the fast path has asked about.
    places: Vec<AskedPlaces>,
    /// What it found last.
    found: Option<FoundPlaces>,
}

impl ExtenderAnswers {
    /// Adds what came of a call.
    ///
    /// # Panics
    ///
    /// If the answer is to another kind of call.
    pub fn add(&mut self, roles: &[ExtenderRole], call: ExtenderCall, answer: ExtenderAnswer) {
        self.calls += 1;
        match (call, answer) {
            (ExtenderCall::Filter { extender, nodes, nominated }, ExtenderAnswer::Filter(answer)) => {
                let said = said(&roles[extender], answer);
                self.filters.entry((nominated, extender)).or_default().push(Filtered { nodes, said });
            }
            (ExtenderCall::Prioritize { extenders, nodes }, ExtenderAnswer::Prioritize(answers)) => {
                self.scored = Some(nodes);
                for (extender, answer) in extenders.into_iter().zip(answers) {
                    let said = match answer {
                        // A prioritizer that cannot be reached is left out; an invalid answer is an error.
                        Err(ExtenderFailure { invalid: false, .. }) => Said::Nothing,
                        answer => said(&roles[extender], answer),
                    };
                    self.scores.insert(extender, said);
                }
            }
            (ExtenderCall::Preempt { extender, .. }, ExtenderAnswer::Preempt(answer)) => {
                self.proposals.insert(extender, said(&roles[extender], answer));
            }
            (call, answer) => panic!("{answer:?} is no answer to {call:?}"),
        }
    }

    /// The nodes that the filters left when the cluster was as it is now, with those that they refused.
    pub(crate) fn search_at(&self, now: Revision) -> Option<(Vec<NodeId>, BTreeMap<NodeId, Rejection>)> {
        let search = self.search.borrow();
        let search = search.as_ref().filter(|search| search.at == now)?;
        Some((search.feasible.clone(), search.rejected.clone()))
    }

    pub(crate) fn keep_search(
        &self,
        at: Revision,
        feasible: &[NodeId],
        rejected: &BTreeMap<NodeId, Rejection>,
    ) {
        let search = Search { at, feasible: feasible.to_vec(), rejected: rejected.clone() };
        *self.search.borrow_mut() = Some(search);
    }

    fn is_endless(&self) -> bool {
        self.calls >= MAX_CALLS
    }
}

/// Whether an extender takes part in deciding where a pod goes.
pub fn take_part(extenders: &[ExtenderRole], pod: &Pod) -> bool {
    extenders.iter().any(|extender| extender.decides() && extender.is_interested(pod))
}

/// The extenders that have a say about a pod, with their places.
fn interested<'a>(
    roles: &'a [ExtenderRole],
    pod: &'a Pod,
) -> impl Iterator<Item = (usize, &'a ExtenderRole)> {
    roles.iter().enumerate().filter(|(_, role)| role.is_interested(pod))
}

/// Decides where a pod goes, with the extenders that take part; whoever calls makes the calls to them. `None` if no profile
/// has the scheduler name that the pod asks for.
pub fn decide_calling(
    engine: &mut Engine,
    pod: &Pod,
    mut call_extender: impl FnMut(&Pod, &ExtenderCall) -> ExtenderAnswer,
) -> Option<Decision> {
    if !take_part(engine.extenders(), pod) {
        return engine.decide(pod);
    }
    let mut answers = ExtenderAnswers::default();
    loop {
        match engine.decide_with(pod, &mut answers)? {
            CycleStep::Decided(decision) => return Some(*decision),
            CycleStep::Call(call) => {
                let answer = call_extender(pod, &call);
                answers.add(engine.extenders(), call, answer);
            }
        }
    }
}

fn said<T>(role: &ExtenderRole, answer: Result<T, ExtenderFailure>) -> Said<T> {
    match answer {
        Ok(answer) => Said::Yes(answer),
        Err(_) if role.ignorable => Said::Nothing,
        Err(trouble) => Said::Failed(trouble),
    }
}
