//! Prefers nodes whose resources the pod would leave in balance.

mod fast;

use serde::Deserialize;
use supercargo_framework::{
    MAX_SCORE, Prepared, ScoreInput, Status,
    points::{PreScore, PreScoreOutcome, ScoreNode},
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, NodeInfo, Pod, resources};

use crate::resource_weights::{self, ResourceWeight};

/// The plugin's name.
pub const NAME: &str = "NodeResourcesBalancedAllocation";

/// How utilizations become a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Formula {
    /// As kube-scheduler 1.36: how much more (or less) balanced the node is with the pod than without it.
    #[default]
    BalanceImprovement,
    /// As kube-scheduler up to 1.35: how balanced the node is with the pod.
    StandardDeviation,
    /// As some documents tell it: the distance between cpu and memory.
    AbsoluteDifference,
}

/// The plugin.
pub struct NodeResourcesBalancedAllocation {
    formula: Formula,
    resources: Vec<ResourceWeight>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeResourcesBalancedAllocationArgs {
    resources: Vec<ResourceWeight>,
    formula: Formula,
}

impl NodeResourcesBalancedAllocation {
    /// With the resources and the formula that the arguments give.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let given: NodeResourcesBalancedAllocationArgs = args.decode()?;
        let resources = resource_weights::with_defaults(given.resources);
        let mut problems = Problems::default();
        for (i, resource) in resources.iter().enumerate() {
            if resources[..i].iter().any(|other| other.name == resource.name) {
                let message = format!("{} is defined twice", resource.name);
                problems.push(args.problem(&format!("resources[{i}].name"), message));
            }
            if resource.weight != 1 {
                let message = "must be 1: a balance has no weights".to_owned();
                problems.push(args.problem(&format!("resources[{i}].weight"), message));
            }
        }
        if problems.is_empty() { Ok(Self { formula: given.formula, resources }) } else { Err(problems) }
    }

    /// The share of each resource that is taken, without the pod and with it. Resources that do not count are left out.
    fn shares(&self, pod: &Pod, node: &NodeInfo) -> (Vec<f64>, Vec<f64>) {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for ResourceWeight { name, .. } in &self.resources {
            let wanted = pod.spec.requests.held.get(name);
            let capacity = node.node.allocatable.get(name);
            let absent = wanted == 0 && resources::is_scalar(name);
            if absent || capacity == 0 || &**name == resources::PODS {
                continue;
            }
            let used = node.requested.get(name);
            let share = |amount: i64| (amount as f64 / capacity as f64).min(1.0);
            without.push(share(used));
            with.push(share(used.saturating_add(wanted)));
        }
        (without, with)
    }
}

/// How balanced shares are: 100 if they are all the same.
fn balance(shares: &[f64]) -> i64 {
    ((1.0 - standard_deviation(shares)) * MAX_SCORE as f64) as i64
}

fn standard_deviation(shares: &[f64]) -> f64 {
    match shares {
        [] | [_] => 0.0,
        [one, other] => ((one - other) / 2.0).abs(),
        _ => {
            let count = shares.len() as f64;
            let mean = shares.iter().sum::<f64>() / count;
            let squares: f64 = shares.iter().map(|s| (s - mean) * (s - mean)).sum();
            (squares / count).sqrt()
        }
    }
}

impl PreScore for NodeResourcesBalancedAllocation {
    /// A pod that asks for none of the resources changes no balance.
    fn pre_score(&self, _: &Cluster, pod: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        let asks = |r: &ResourceWeight| pod.spec.requests.held.get(&r.name) != 0;
        Ok(if self.resources.iter().any(asks) {
            PreScoreOutcome::Go(Prepared::nothing())
        } else {
            PreScoreOutcome::Skip
        })
    }
}

impl ScoreNode for NodeResourcesBalancedAllocation {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        let (without, with) = self.shares(input.pod, node);
        Ok(match self.formula {
            Formula::BalanceImprovement => {
                let half = MAX_SCORE / 2;
                half + (half + balance(&with) - balance(&without)) / 2
            }
            Formula::StandardDeviation => balance(&with),
            Formula::AbsoluteDifference => {
                let cpu = with.first().copied().unwrap_or(0.0);
                let memory = with.get(1).copied().unwrap_or(cpu);
                ((1.0 - (cpu - memory).abs()) * MAX_SCORE as f64) as i64
            }
        })
    }
}

#[cfg(test)]
mod tests;
