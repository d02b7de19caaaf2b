//! Extenders in the reference cycle.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use supercargo_framework::{
    Code, Status,
    preemption::{Adviser, Candidate, Rejection},
    profile::{CycleError, ScoreColumn, Scores},
};
use supercargo_model::{Cluster, Name, NodeId, Pod};

use super::{
    ExtenderAnswers, ExtenderCall, ExtenderFailure, ExtenderRole, Filtered, Proposal, SCALE, Said, Sieved,
    interested,
};
use crate::decision::Decision;

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
        interested(self.roles, self.pod)
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
            let rounds = self.answers.filters.get(&(nominated, extender));
            let Some((rounds, Filtered { said, .. })) =
                rounds.and_then(|rounds| Some((rounds, rounds.last()?)))
            else {
                return Err(ask(&feasible));
            };
            match said {
                Said::Nothing => continue,
                // The node that room was made on is just not taken; all nodes are looked at then.
                Said::Failed(_) if nominated => return Ok(Vec::new()),
                Said::Failed(trouble) => return Err(CycleError(trouble.message.clone()).into()),
                Said::Yes(_) => {}
            }
            let verdicts = Verdicts::of(rounds);
            let (known, new): (Vec<_>, Vec<_>) = feasible
                .into_iter()
                .partition(|id| verdicts.passed.contains_key(cluster.node_at(*id).name()));
            feasible = verdicts.sieve(cluster, known, role, decision);
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
        let scored: HashSet<&Name> = self.answers.scored.iter().flat_map(|scored| &scored[..]).collect();
        let is_scored = |id: &NodeId| scored.contains(cluster.node_at(*id).name());
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
        let scored = self.answers.scored.iter().flat_map(|scored| &scored[..]);
        let places: HashMap<&Name, usize> = scored.enumerate().map(|(place, node)| (node, place)).collect();
        for (extender, said) in &self.answers.scores {
            let role = &self.roles[*extender];
            let points = match said {
                Said::Yes(points) => points,
                Said::Nothing => continue,
                Said::Failed(trouble) => return Err(CycleError(trouble.message.clone())),
            };
            let weight = role.weight.unwrap_or(0);
            let of = |node| places.get(node).and_then(|place| points.get(*place)).copied().unwrap_or(0);
            let raw: Vec<i64> = nodes.iter().map(of).collect();
            let normalized: Vec<i64> = raw.iter().map(|points| points.saturating_mul(SCALE)).collect();
            for (total, score) in scores.totals.iter_mut().zip(&normalized) {
                *total = total.saturating_add(score.saturating_mul(i64::from(weight)));
            }
            scores.columns.push(ScoreColumn { plugin: role.name.clone(), weight, raw, normalized });
        }
        Ok(())
    }
}

/// What an extender said about nodes, in one call or several.
struct Verdicts<'a> {
    passed: HashMap<&'a Name, bool>,
    /// The last comes first.
    said: Vec<&'a Sieved>,
}

impl<'a> Verdicts<'a> {
    fn of(rounds: &'a [Filtered]) -> Self {
        let mut verdicts = Self { passed: HashMap::new(), said: Vec::new() };
        for Filtered { nodes, said } in rounds {
            let sieved = match said {
                Said::Yes(sieved) => Some(sieved),
                Said::Nothing | Said::Failed(_) => None,
            };
            let passed = |place: usize| sieved.is_some_and(|sieved| sieved.passed.get(place) == Some(&true));
            verdicts.passed.extend(nodes.iter().enumerate().map(|(place, node)| (node, passed(place))));
            verdicts.said.extend(sieved);
        }
        verdicts.said.reverse();
        verdicts
    }

    fn refusal(&self, node: &Name) -> Option<Status> {
        let why = |reasons: fn(&Sieved) -> &BTreeMap<Name, String>| {
            self.said.iter().find_map(|sieved| reasons(sieved).get(node)).cloned()
        };
        let unresolvable = why(|sieved| &sieved.unresolvable).map(Status::unresolvable);
        unresolvable.or_else(|| why(|sieved| &sieved.failed).map(Status::unschedulable))
    }

    /// Takes the nodes away that the extender does not let pass, and keeps why.
    fn sieve(
        &self,
        cluster: &Cluster,
        nodes: Vec<NodeId>,
        role: &ExtenderRole,
        decision: &mut Decision,
    ) -> Vec<NodeId> {
        let mut feasible = Vec::with_capacity(nodes.len());
        for id in nodes {
            let node = cluster.node_at(id).name();
            if self.passed.get(node) == Some(&true) {
                feasible.push(id);
                continue;
            }
            let plugin = role.name.clone();
            match self.refusal(node) {
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
