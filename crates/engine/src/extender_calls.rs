//! Extenders in the cycle: what they are asked, and what becomes of their answers.
//!
//! The cycle does no I/O. It runs with the answers that are known so far ([`ExtenderAnswers`]); where it needs one that is
//! not there yet, it ends with an [`ExtenderCall`]. Whoever drives it makes the call, adds the answer, and runs the cycle
//! again, on the cluster as it is by then: plugins decide anew, and a node that an extender was not asked about is left out.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use supercargo_framework::{
    Code, Status,
    preemption::{Adviser, Candidate, Rejection},
    profile::{CycleError, ScoreColumn, Scores},
};
use supercargo_model::{Cluster, Name, NodeId, Pod, changes::Moment};

use crate::{decision::Decision, engine::Engine};

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
        nodes: Vec<Name>,
        /// It is only about the node that room was made on.
        nominated: bool,
    },
    /// How good are these nodes? All are asked at once.
    Prioritize {
        /// Who is asked.
        extenders: Vec<usize>,
        /// The feasible nodes.
        nodes: Vec<Name>,
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
    /// The nodes that it lets pass.
    pub passed: HashSet<Name>,
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
    /// To a prioritize call: each extender's points, by node.
    Prioritize(Vec<Result<HashMap<Name, i64>, ExtenderFailure>>),
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

/// What an extender had to say.
#[derive(Clone, Debug)]
enum Said<T> {
    Yes(T),
    /// It is ignorable and failed, or failed where that does not matter.
    Nothing,
    /// What ends the attempt.
    Failed(ExtenderFailure),
}

#[derive(Clone, Debug)]
struct Filtered {
    asked: HashSet<Name>,
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

/// A state of the cluster, of its nominations, and of the plugins.
pub(crate) type Revision = (Moment, u64, u64);

/// What extenders have said about a pod in this attempt.
#[derive(Clone, Debug, Default)]
pub struct ExtenderAnswers {
    pub(crate) begun: Option<Begun>,
    search: RefCell<Option<Search>>,
    /// By whether it was about the nominated node, and by extender.
    filters: HashMap<(bool, usize), Filtered>,
    scored: HashSet<Name>,
    scores: BTreeMap<usize, Said<HashMap<Name, i64>>>,
    proposals: BTreeMap<usize, Said<Vec<Proposal>>>,
    calls: usize,
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
                self.add_filter((nominated, extender), nodes, said);
            }
            (ExtenderCall::Prioritize { extenders, nodes }, ExtenderAnswer::Prioritize(answers)) => {
                self.scored = nodes.into_iter().collect();
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

    fn add_filter(&mut self, key: (bool, usize), nodes: Vec<Name>, said: Said<Sieved>) {
        let known = self.filters.entry(key);
        let known = known.or_insert_with(|| Filtered { asked: HashSet::new(), said: Said::Nothing });
        known.asked.extend(nodes);
        match (&mut known.said, said) {
            // Asked again about nodes that came in the meantime.
            (Said::Yes(before), Said::Yes(more)) => {
                before.passed.extend(more.passed);
                before.failed.extend(more.failed);
                before.unresolvable.extend(more.unresolvable);
            }
            (before, said) => *before = said,
        }
    }

    fn is_endless(&self) -> bool {
        self.calls >= MAX_CALLS
    }
}

/// Whether an extender takes part in deciding where a pod goes.
pub fn take_part(extenders: &[ExtenderRole], pod: &Pod) -> bool {
    extenders.iter().any(|extender| extender.decides() && extender.is_interested(pod))
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

/// Why a cycle did not come to its end.
pub(crate) enum Halt {
    Failed(CycleError),
    Call(ExtenderCall),
}

impl From<CycleError> for Halt {
    fn from(error: CycleError) -> Self {
        Self::Failed(error)
    }
}

/// The extenders that have a say about a pod, and what they have said so far.
pub(crate) struct WithExtenders<'a> {
    pub(crate) roles: &'a [ExtenderRole],
    pub(crate) answers: &'a ExtenderAnswers,
    pub(crate) pod: &'a Pod,
}

impl WithExtenders<'_> {
    fn interested(&self) -> impl Iterator<Item = (usize, &ExtenderRole)> {
        (self.roles.iter().enumerate()).filter(|(_, role)| role.is_interested(self.pod))
    }

    fn call(&self, call: ExtenderCall) -> Halt {
        if self.answers.is_endless() {
            let why = "the cluster changes faster than the extenders answer";
            return Halt::Failed(CycleError(why.to_owned()));
        }
        Halt::Call(call)
    }

    /// The nodes that every extender lets pass, one extender after the other.
    pub(crate) fn filter(
        &self,
        cluster: &Cluster,
        mut feasible: Vec<NodeId>,
        nominated: bool,
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, Halt> {
        let name = |id: &NodeId| cluster.node_at(*id).name().clone();
        for (extender, role) in self.interested().filter(|(_, role)| role.filters) {
            if feasible.is_empty() {
                break;
            }
            let ask = |nodes: &[NodeId]| {
                self.call(ExtenderCall::Filter {
                    extender,
                    nodes: nodes.iter().map(name).collect(),
                    nominated,
                })
            };
            let Some(Filtered { asked, said }) = self.answers.filters.get(&(nominated, extender)) else {
                return Err(ask(&feasible));
            };
            let sieved = match said {
                Said::Nothing => continue,
                // The node that room was made on is just not taken; all nodes are looked at then.
                Said::Failed(_) if nominated => return Ok(Vec::new()),
                Said::Failed(trouble) => return Err(CycleError(trouble.message.clone()).into()),
                Said::Yes(sieved) => sieved,
            };
            let (known, new): (Vec<_>, Vec<_>) =
                feasible.into_iter().partition(|id| asked.contains(&name(id)));
            feasible = sieve(cluster, known, sieved, role, decision);
            if feasible.is_empty() && !new.is_empty() {
                return Err(ask(&new));
            }
        }
        Ok(feasible)
    }

    /// The nodes that prioritizers were asked about; or what to ask them. A single node needs no points.
    pub(crate) fn to_score(&self, cluster: &Cluster, feasible: Vec<NodeId>) -> Result<Vec<NodeId>, Halt> {
        let prioritizers = self.interested().filter(|(_, role)| role.weight.is_some());
        let extenders: Vec<usize> = prioritizers.map(|(extender, _)| extender).collect();
        if extenders.is_empty() || feasible.len() < 2 {
            return Ok(feasible);
        }
        let name = |id: &NodeId| cluster.node_at(*id).name().clone();
        let is_scored = |id: &NodeId| self.answers.scored.contains(&name(id));
        if !feasible.iter().any(is_scored) {
            let nodes = feasible.iter().map(name).collect();
            return Err(self.call(ExtenderCall::Prioritize { extenders, nodes }));
        }
        Ok(feasible.into_iter().filter(is_scored).collect())
    }

    /// Adds a column for each extender that gave points.
    pub(crate) fn add_scores(&self, nodes: &[Name], scores: &mut Scores) -> Result<(), CycleError> {
        if nodes.len() < 2 {
            return Ok(());
        }
        for (extender, said) in &self.answers.scores {
            let role = &self.roles[*extender];
            let points = match said {
                Said::Yes(points) => points,
                Said::Nothing => continue,
                Said::Failed(trouble) => return Err(CycleError(trouble.message.clone())),
            };
            let weight = role.weight.unwrap_or(0);
            let raw: Vec<i64> = nodes.iter().map(|node| points.get(node).copied().unwrap_or(0)).collect();
            let normalized: Vec<i64> = raw.iter().map(|points| points.saturating_mul(SCALE)).collect();
            for (total, score) in scores.totals.iter_mut().zip(&normalized) {
                *total = total.saturating_add(score.saturating_mul(i64::from(weight)));
            }
            scores.columns.push(ScoreColumn { plugin: role.name.clone(), weight, raw, normalized });
        }
        Ok(())
    }
}

/// Takes the nodes away that an extender does not let pass, and keeps why.
fn sieve(
    cluster: &Cluster,
    nodes: Vec<NodeId>,
    sieved: &Sieved,
    role: &ExtenderRole,
    decision: &mut Decision,
) -> Vec<NodeId> {
    let mut feasible = Vec::with_capacity(nodes.len());
    for id in nodes {
        let node = cluster.node_at(id).name();
        if sieved.passed.contains(node) {
            feasible.push(id);
            continue;
        }
        let unresolvable = |why: &String| Status::unresolvable(why.clone());
        let failed = |why: &String| Status::unschedulable(why.clone());
        let status =
            (sieved.unresolvable.get(node).map(unresolvable)).or_else(|| sieved.failed.get(node).map(failed));
        let plugin = role.name.clone();
        match status {
            Some(status) => {
                decision.verdicts.rejected.insert(id, Rejection { plugin, status });
            }
            // Nothing was said about it: it counts among all other nodes.
            None => {
                let status = Status::new(Code::UnschedulableAndUnresolvable, []);
                decision.rejected.insert(node.clone(), Rejection { plugin, status });
            }
        }
        decision.extenders.insert(role.name.clone());
    }
    feasible
}

/// The extenders' say in where room is made.
pub(crate) struct PreemptionCalls<'a> {
    extenders: &'a WithExtenders<'a>,
    /// Why preemption was broken off.
    halt: RefCell<Option<Halt>>,
}

impl<'a> PreemptionCalls<'a> {
    pub(crate) fn new(extenders: &'a WithExtenders<'a>) -> Self {
        Self { extenders, halt: RefCell::default() }
    }

    /// Why preemption was broken off, if it was.
    pub(crate) fn into_halt(self) -> Option<Halt> {
        self.halt.into_inner()
    }

    fn halt(&self, halt: Halt) -> Status {
        let message = match &halt {
            Halt::Failed(CycleError(message)) => message.clone(),
            Halt::Call(_) => "an extender is to be asked".to_owned(),
        };
        *self.halt.borrow_mut() = Some(halt);
        Status::error(message)
    }

    fn propose(
        &self,
        cluster: &Cluster,
        role: &ExtenderRole,
        asked: &[Candidate],
        proposals: &[Proposal],
    ) -> Result<Vec<Candidate>, Status> {
        let mut candidates = Vec::new();
        for proposal in proposals {
            let victims = match victims(cluster, role, asked, proposal) {
                Ok(victims) => victims,
                Err(_) if role.ignorable => continue,
                Err(message) => return Err(self.halt(Halt::Failed(CycleError(message)))),
            };
            if !victims.is_empty() {
                let Proposal { node, budget_violations, .. } = proposal.clone();
                candidates.push(Candidate { node, victims, budget_violations });
            } else if proposal.victims.is_empty() && !role.ignorable {
                let message = format!("expected at least one victim pod on node {:?}", &*proposal.node);
                return Err(Status::error(message));
            }
        }
        Ok(candidates)
    }
}

/// Who has to go by a proposal, as far as they are still there.
fn victims(
    cluster: &Cluster,
    role: &ExtenderRole,
    asked: &[Candidate],
    proposal: &Proposal,
) -> Result<Vec<Arc<Pod>>, String> {
    let there = cluster.node(&proposal.node).map_or(&[][..], |node| &node.pods);
    let named = asked.iter().find(|candidate| candidate.node == proposal.node);
    let was_there = |uid: &Name| named.is_some_and(|c| c.victims.iter().any(|victim| victim.uid == *uid));
    let mut victims: Vec<Arc<Pod>> = Vec::new();
    for uid in &proposal.victims {
        match there.iter().find(|pod| pod.uid == *uid) {
            // Named twice, it goes once.
            Some(_) if victims.iter().any(|victim| victim.uid == *uid) => {}
            Some(pod) => victims.push(pod.clone()),
            None if was_there(uid) => {}
            None => {
                return Err(format!(
                    "extender: {} claims to preempt pod (UID: {uid}) on node: {}, but the pod is not found on that node",
                    role.name, proposal.node
                ));
            }
        }
    }
    Ok(victims)
}

impl Adviser for PreemptionCalls<'_> {
    fn narrow(&self, cluster: &Cluster, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, Status> {
        let mut candidates = candidates;
        for (extender, role) in self.extenders.interested().filter(|(_, role)| role.preempts) {
            candidates = match self.extenders.answers.proposals.get(&extender) {
                None => {
                    let call = ExtenderCall::Preempt { extender, candidates };
                    return Err(self.halt(self.extenders.call(call)));
                }
                Some(Said::Nothing) => continue,
                Some(Said::Failed(ExtenderFailure { message, invalid: true })) => {
                    return Err(self.halt(Halt::Failed(CycleError(message.clone()))));
                }
                Some(Said::Failed(ExtenderFailure { message, .. })) => {
                    return Err(Status::error(message.clone()));
                }
                Some(Said::Yes(proposals)) => self.propose(cluster, role, &candidates, proposals)?,
            };
            if candidates.is_empty() {
                break;
            }
        }
        Ok(candidates)
    }
}
