//! Prefers nodes whose resources the pod would leave in balance.

mod fast;

use serde::Deserialize;
use supercargo_framework::{
    MAX_SCORE, Prepared, ScoreInput, Status,
    points::{PreScore, PreScoreOutcome, ScoreNode},
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{
    Cluster, NodeInfo, Pod,
    columns::{capped_share, deviation_of_shares},
    resources,
};

use crate::{
    device_resources::DeviceCounts,
    resource_weights::{self, ResourceWeight},
};

/// The plugin's name.
pub const NAME: &str = "NodeResourcesBalancedAllocation";

const FULL: f64 = MAX_SCORE as f64;
const HALF: f64 = FULL / 2.0;

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
    counts: DeviceCounts,
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
        let counts = DeviceCounts::default();
        if problems.is_empty() {
            Ok(Self { formula: given.formula, resources, counts })
        } else {
            Err(problems)
        }
    }

    /// The share of each resource that is taken, without the pod and with it. Resources that do not count are left out.
    fn shares(&self, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> (Vec<f64>, Vec<f64>) {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for ResourceWeight { name, .. } in &self.resources {
            let wanted = pod.spec.requests.held.get(name);
            let absent = wanted == 0 && resources::is_scalar(name);
            if absent {
                continue;
            }
            let by_plugins = || (node.node.allocatable.get(name), node.requested.get(name));
            let (capacity, used) = self.counts.of(cluster, node, name).unwrap_or_else(by_plugins);
            if capacity == 0 || &**name == resources::PODS {
                continue;
            }
            let share = |amount: i64| capped_share(amount as f64 / capacity as f64);
            without.push(share(used));
            with.push(share(used.saturating_add(wanted)));
        }
        (without, with)
    }
}

/// How balanced shares are by their standard deviation: 100 if they are all the same.
#[inline(always)]
fn balance(deviation: f64) -> f64 {
    ((1.0 - deviation) * FULL).trunc()
}

/// A score by how balanced a node is with a pod and without it: 75 if the pod changes nothing.
#[inline(always)]
fn improvement(with: f64, without: f64) -> f64 {
    HALF + ((HALF + with - without) / 2.0).trunc()
}

fn standard_deviation(shares: &[f64]) -> f64 {
    match shares {
        [] | [_] => 0.0,
        [one, other] => deviation_of_shares(*one, *other),
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
        let (without, with) = self.shares(input.cluster, input.pod, node);
        let balance_of = |shares: &[f64]| balance(standard_deviation(shares));
        let score = match self.formula {
            Formula::BalanceImprovement => improvement(balance_of(&with), balance_of(&without)),
            Formula::StandardDeviation => balance_of(&with),
            Formula::AbsoluteDifference => {
                let cpu = with.first().copied().unwrap_or(0.0);
                let memory = with.get(1).copied().unwrap_or(cpu);
                balance((cpu - memory).abs())
            }
        };
        Ok(score as i64)
    }
}

#[cfg(test)]
mod tests;
