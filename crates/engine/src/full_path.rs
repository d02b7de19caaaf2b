//! The full path: the reference cycle. It runs every plugin on every node it looks at, and leaves a complete record.

use std::{cell::Cell, collections::BTreeSet};

use supercargo_framework::{
    Code,
    preemption::{Adviser, FilterState, NotNominated, Rejection},
    profile::{CycleError, PreFilterEnd, PreFiltered, Profile, ProfileRunner},
    registry::Point,
};
use supercargo_model::{Cluster, Name, NodeId, NodeInfo, Pod};

use crate::{
    cycle::CycleInput,
    decision::{Decision, Outcome},
    extender_calls::{CycleStep, ExtenderAnswers, Halt, PreemptionCalls, Revision, WithExtenders},
    pick::{TieBreak, best, reservoir},
};

/// One run of the reference cycle.
pub(crate) struct FullCycle<'a> {
    input: CycleInput<'a>,
    cluster: &'a Cluster,
    profile: &'a Profile,
    pod: &'a Pod,
    /// The extenders that take part, with what they have answered so far.
    extenders: Option<WithExtenders<'a>>,
    /// The state that the filters are run on.
    revision: Revision,
    /// Where the next search starts in the order of nodes.
    next_start: Cell<usize>,
}

impl<'a> FullCycle<'a> {
    pub(crate) fn new(
        input: CycleInput<'a>,
        pod: &'a Pod,
        answers: Option<&'a ExtenderAnswers>,
        plugin_changes: u64,
    ) -> Self {
        let state = input.state;
        let roles = &input.settings.extenders;
        Self {
            input,
            cluster: &state.cluster,
            profile: input.profile(),
            pod,
            extenders: answers.map(|answers| WithExtenders { roles, answers, pod }),
            revision: state.revision(plugin_changes),
            next_start: Cell::new(input.start),
        }
    }

    /// Decides, as far as the extenders' answers reach. Also tells where the next search starts in the order of nodes.
    pub(crate) fn run(self) -> (CycleStep, usize) {
        let name = self.profile.scheduler_name().clone();
        let mut decision = Decision::new(self.pod, name, self.input.seed, self.cluster.node_count());
        let step = match self.decide(&mut decision) {
            Err(Halt::Call(call)) => CycleStep::Call(call),
            end => {
                if let Err(Halt::Failed(CycleError(message))) = end {
                    decision.outcome = Outcome::Error { message };
                }
                CycleStep::Decided(Box::new(decision))
            }
        };
        (step, self.next_start.get())
    }

    fn decide(&self, decision: &mut Decision) -> Result<(), Halt> {
        if self.cluster.node_count() == 0 {
            return Ok(());
        }
        let pre_filter = || self.profile.pre_filter(self.cluster, self.pod);
        let refused = |end: &Result<PreFilterEnd, CycleError>| match end {
            Ok(PreFilterEnd::Go(_)) => None,
            Ok(PreFilterEnd::Rejected { rejection, .. }) => Some(rejection.status.code),
            Err(_) => Some(Code::Error),
        };
        match self.profile.timed_point(Point::PreFilter, pre_filter, refused)? {
            PreFilterEnd::Rejected { rejection, narrowed_by, state } => {
                decision.verdicts.others = rejection.status.clone();
                decision.narrowed_by = narrowed_by;
                decision.refused = Some(rejection);
                self.preempt(&state, decision)?;
            }
            PreFilterEnd::Go(PreFiltered { state, nodes, narrowed_by, others }) => {
                let search = || self.search(&state, nodes.as_ref(), decision);
                let code = |found: &Result<Vec<NodeId>, Halt>| match found {
                    Ok(found) => found.is_empty().then_some(Code::Unschedulable),
                    Err(Halt::Failed(_)) => Some(Code::Error),
                    Err(Halt::Call(_)) => None,
                };
                let feasible = self.profile.timed_point(Point::Filter, search, code)?;
                decision.verdicts.others = others;
                decision.narrowed_by = narrowed_by;
                self.record_rejections(decision, nodes.as_ref());
                if feasible.is_empty() {
                    self.preempt(&state, decision)?;
                } else {
                    self.score(feasible, decision)?;
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

    /// Looks for feasible nodes. A nominated pod tries its node first.
    fn search(
        &self,
        state: &FilterState,
        only: Option<&BTreeSet<Name>>,
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, Halt> {
        let nominated = (self.pod.nominated_node.as_ref()).and_then(|name| self.cluster.node(name));
        if let Some(node) = nominated {
            let feasible = self.filter_nodes(state, &[node.id], decision)?;
            let feasible = self.ask_extenders(feasible, true, decision)?;
            if !feasible.is_empty() {
                return Ok(feasible);
            }
        }
        let feasible = self.filter_all(state, only, decision)?;
        let looked_at = feasible.len() + decision.verdicts.rejected.len();
        self.next_start.set((self.input.start + looked_at) % self.cluster.node_count());
        self.ask_extenders(feasible, false, decision)
    }

    fn ask_extenders(
        &self,
        feasible: Vec<NodeId>,
        nominated: bool,
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, Halt> {
        match &self.extenders {
            Some(extenders) => extenders.filter(self.cluster, feasible, nominated, decision),
            None => Ok(feasible),
        }
    }

    /// Runs the filters on all nodes; while extenders are asked, only if anything has changed since the last time.
    fn filter_all(
        &self,
        state: &FilterState,
        only: Option<&BTreeSet<Name>>,
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, CycleError> {
        let answers = self.extenders.as_ref().map(|extenders| extenders.answers);
        if let Some((feasible, rejected)) = answers.and_then(|answers| answers.search_at(self.revision)) {
            decision.verdicts.rejected = rejected;
            return Ok(feasible);
        }
        let narrowed: Option<Vec<NodeId>> = only.map(|only| {
            (self.cluster.nodes()).filter(|node| only.contains(node.name())).map(|node| node.id).collect()
        });
        let nodes = narrowed.as_deref().unwrap_or_else(|| self.cluster.order());
        let feasible = self.filter_nodes(state, nodes, decision)?;
        if let Some(answers) = answers {
            answers.keep_search(self.revision, &feasible, &decision.verdicts.rejected);
        }
        Ok(feasible)
    }

    /// Runs the filters on nodes, from where the last search stopped, until enough are feasible. It only stops when it
    /// meets one feasible node more than it needs: the refused ones on the way there count as looked at.
    fn filter_nodes(
        &self,
        state: &FilterState,
        nodes: &[NodeId],
        decision: &mut Decision,
    ) -> Result<Vec<NodeId>, CycleError> {
        let mut feasible = Vec::new();
        if nodes.is_empty() {
            return Ok(feasible);
        }
        let enough = self.input.enough_nodes(nodes.len());
        let start = self.input.start % nodes.len();
        let nominations = &self.input.state.nominations;
        for id in nodes[start..].iter().chain(&nodes[..start]) {
            let node = self.cluster.node_at(*id);
            match self.profile.filter_with_nominated(state, self.cluster, nominations, self.pod, node) {
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

    fn score(&self, feasible: Vec<NodeId>, decision: &mut Decision) -> Result<(), Halt> {
        let feasible = match &self.extenders {
            Some(extenders) => extenders.to_score(self.cluster, feasible)?,
            None => feasible,
        };
        let nodes: Vec<&NodeInfo> = (feasible.iter()).map(|id| self.cluster.node_at(*id)).collect();
        decision.feasible = nodes.iter().map(|node| node.name().clone()).collect();
        decision.scores = self.profile.score(self.cluster, self.pod, &nodes)?;
        if let Some(extenders) = &self.extenders {
            extenders.add_scores(&decision.feasible, &mut decision.scores)?;
        }
        let mut best = best(&decision.scores.totals);
        // By place, so that the choice does not depend on where the search started.
        best.sort_by_key(|i| feasible[*i]);
        let chosen = match self.input.settings.tie_break {
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

    fn preempt(&self, state: &FilterState, decision: &mut Decision) -> Result<(), Halt> {
        if !self.profile.has_post_filter_plugins() {
            return Ok(());
        }
        let calls = self.extenders.as_ref().map(PreemptionCalls::new);
        let runner = ProfileRunner {
            profile: self.profile,
            cluster: self.cluster,
            nominations: &self.input.state.nominations,
            state,
            seed: decision.seed,
            adviser: calls.as_ref().map(|calls| calls as &dyn Adviser),
        };
        let post_filter = || self.profile.post_filter(&runner, self.pod, &decision.verdicts);
        let code = |made: &Result<_, NotNominated>| made.as_ref().err().map(|refused| refused.status.code);
        let made = self.profile.timed_point(Point::PostFilter, post_filter, code);
        decision.clears_nomination = made.as_ref().is_err_and(|refused| refused.clears);
        decision.follow_up = match &made {
            Ok(nomination) => nomination.follow_up.clone(),
            Err(refused) => refused.follow_up.clone(),
        };
        decision.preemption = Some(made.map_err(|refused| refused.status));
        match calls.and_then(PreemptionCalls::into_halt) {
            Some(halt) => Err(halt),
            None => Ok(()),
        }
    }
}
