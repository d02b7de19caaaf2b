//! Who would have to go from one node.

use std::{cmp::Ordering, sync::Arc};

use supercargo_framework::{
    Status,
    bugs::{self, Bug},
    preemption::{Candidate, FilterRunner, FilterState},
};
use supercargo_model::{NodeInfo, Pod, Timestamp, pod_owner::PodDisruptionBudget};

use super::{NO_VICTIMS, is_victim};

/// A node as it would be without some of its pods.
pub(super) struct DryRun<'a> {
    runner: &'a dyn FilterRunner,
    pod: &'a Pod,
    node: NodeInfo,
    state: FilterState,
}

impl<'a> DryRun<'a> {
    pub(super) fn new(runner: &'a dyn FilterRunner, pod: &'a Pod, node: &NodeInfo) -> Self {
        Self { runner, pod, node: node.clone(), state: runner.state() }
    }

    /// Takes all less important pods away, and lets as many come back as the pod leaves room for: first those whose
    /// going would violate a disruption budget, the most important first.
    pub(super) fn candidate(mut self) -> Result<Candidate, Status> {
        let mut possible: Vec<Arc<Pod>> =
            (self.node.pods.iter()).filter(|other| is_victim(other, self.pod)).cloned().collect();
        if possible.is_empty() {
            return Err(Status::unresolvable(NO_VICTIMS));
        }
        for other in &possible {
            self.remove(other)?;
        }
        self.fits()?;
        possible.sort_by(by_importance);
        let budgets: Vec<&PodDisruptionBudget> = self.runner.cluster().budgets().collect();
        let (violating, harmless) = split_by_budgets(&possible, &budgets);
        let mut victims = Vec::new();
        let mut budget_violations = 0;
        for other in &violating {
            if !self.reprieve(other)? {
                victims.push(other.clone());
                budget_violations += 1;
            }
        }
        for other in &harmless {
            if !self.reprieve(other)? {
                victims.push(other.clone());
            }
        }
        if victims.is_empty() {
            let name = self.node.name();
            return Err(Status::error(format!("expected at least one victim pod on node {name:?}")));
        }
        victims.sort_by(by_importance);
        Ok(Candidate { node: self.node.name().clone(), victims, budget_violations })
    }

    fn fits(&self) -> Result<(), Status> {
        let verdict = self.runner.filter(&self.state, self.pod, &self.node);
        verdict.map_err(|rejection| rejection.status)
    }

    fn remove(&mut self, other: &Pod) -> Result<(), Status> {
        self.node.remove_pod(other);
        self.runner.remove_pod(&mut self.state, self.pod, other, &self.node)
    }

    /// Lets a pod stay if it can.
    fn reprieve(&mut self, other: &Arc<Pod>) -> Result<bool, Status> {
        self.node.add_pod(other.clone());
        self.runner.add_pod(&mut self.state, self.pod, other, &self.node)?;
        let stays = self.fits().is_ok() && !bugs::is_on(Bug::NobodyReprieved);
        if !stays {
            self.remove(other)?;
        }
        Ok(stays)
    }
}

/// The more important first: by priority, then by how long it has run.
fn by_importance(one: &Arc<Pod>, other: &Arc<Pod>) -> Ordering {
    (other.spec.priority.cmp(&one.spec.priority)).then_with(|| started(one).cmp(&started(other)))
}

/// A pod that has not told its start counts as started now.
pub(super) fn started(pod: &Pod) -> Timestamp {
    pod.started.unwrap_or(Timestamp::MAX)
}

/// Pods whose eviction would violate a budget, and the others; both in the given order.
fn split_by_budgets(pods: &[Arc<Pod>], budgets: &[&PodDisruptionBudget]) -> (Vec<Arc<Pod>>, Vec<Arc<Pod>>) {
    let mut allowed: Vec<i32> = budgets.iter().map(|b| b.disruptions_allowed).collect();
    pods.iter().cloned().partition(|pod| {
        let mut violates = false;
        for (budget, allowed) in budgets.iter().zip(&mut allowed) {
            if budget.protects(pod) && !budget.disrupted_pods.contains(&pod.name) {
                *allowed = allowed.saturating_sub(1);
                violates |= *allowed < 0;
            }
        }
        violates
    })
}
