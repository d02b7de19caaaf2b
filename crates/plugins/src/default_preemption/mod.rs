//! Makes room for a pod that fits nowhere, by evicting less important pods from one node.

mod candidate;
mod victims;

use serde::Deserialize;
use supercargo_framework::{
    Code, Status, Verdict,
    event::{Action, EventInterest, Resource},
    points::{PostFilter, PreEnqueue, Requeue},
    preemption::{
        Candidate, FilterRunner, NodeVerdicts, Nomination, NotNominated, Rejection, no_node_available,
    },
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{NodeInfo, Pod};

use victims::Trial;

/// The plugin's name.
pub const NAME: &str = "DefaultPreemption";

const NOT_HELPFUL: &str = "Preemption is not helpful for scheduling";

/// The plugin.
pub struct DefaultPreemption {
    min_candidate_percentage: i32,
    min_candidates: i32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DefaultPreemptionArgs {
    min_candidate_nodes_percentage: i32,
    min_candidate_nodes_absolute: i32,
}

impl Default for DefaultPreemptionArgs {
    fn default() -> Self {
        Self { min_candidate_nodes_percentage: 10, min_candidate_nodes_absolute: 100 }
    }
}

impl DefaultPreemption {
    /// With the number of candidates that the arguments ask for.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        const PERCENTAGE: &str = "minCandidateNodesPercentage";
        const ABSOLUTE: &str = "minCandidateNodesAbsolute";
        let given: DefaultPreemptionArgs = args.decode()?;
        let (percentage, absolute) =
            (given.min_candidate_nodes_percentage, given.min_candidate_nodes_absolute);
        let mut problems = Problems::default();
        if !(0..=100).contains(&percentage) {
            let message = format!("must be in 0..=100, and is {percentage}");
            problems.push(args.problem(PERCENTAGE, message));
        }
        if absolute < 0 {
            let message = format!("must not be negative, and is {absolute}");
            problems.push(args.problem(ABSOLUTE, message));
        }
        if percentage == 0 && absolute == 0 {
            for field in [PERCENTAGE, ABSOLUTE] {
                problems.push(args.problem(field, format!("{PERCENTAGE} and {ABSOLUTE} must not both be 0")));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self { min_candidate_percentage: percentage, min_candidates: absolute })
    }

    /// How many candidates are enough.
    fn enough_candidates(&self, nodes: usize) -> usize {
        let share = nodes * self.min_candidate_percentage as usize / 100;
        share.max(self.min_candidates as usize).min(nodes)
    }

    fn preempt(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        check_eligible(runner, pod, verdicts)?;
        let cluster = runner.cluster();
        if cluster.node_count() == 0 {
            return Err(Status::error("no nodes available").into());
        }
        let promising: Vec<&NodeInfo> =
            (cluster.nodes()).filter(|node| verdicts.of(node.id).code == Code::Unschedulable).collect();
        let (candidates, refusals) = self.try_nodes(runner, pod, &promising);
        if candidates.is_empty() {
            return Err(nothing_found(refusals, cluster.node_count()));
        }
        match candidate::best(runner.narrow(candidates)?) {
            Some(best) => Ok(Nomination { node: best.node, victims: best.victims }),
            None => Err(Status::unschedulable("no candidate node for preemption").into()),
        }
    }

    /// Tries nodes from a random one on, until there are candidates enough.
    fn try_nodes(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> (Vec<Candidate>, NodeVerdicts) {
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut refusals =
            NodeVerdicts { others: Status::unresolvable(NOT_HELPFUL), ..NodeVerdicts::default() };
        let enough = self.enough_candidates(nodes.len());
        let start = match nodes.len() {
            0 => 0,
            count => (runner.seed() % count as u64) as usize,
        };
        for node in nodes[start..].iter().chain(&nodes[..start]) {
            match Trial::new(runner, pod, node).candidate() {
                Ok(candidate) => candidates.push(candidate),
                Err(status) => {
                    let plugin = NAME.into();
                    let rejection = Rejection { plugin, status };
                    refusals.rejected.insert(node.id, rejection);
                }
            }
            // One that violates no budget must be among them.
            let harmless = candidates.iter().any(|c| c.budget_violations == 0);
            if harmless && candidates.len() >= enough {
                break;
            }
        }
        (candidates, refusals)
    }
}

fn nothing_found(refusals: NodeVerdicts, node_count: usize) -> NotNominated {
    let fault = (refusals.rejected.values()).find(|r| r.status.code == Code::Error);
    match fault {
        Some(rejection) => Status::error(rejection.status.message()).into(),
        None => {
            let message = no_node_available(node_count, &refusals.summary(node_count));
            NotNominated::clearing(Status::unschedulable(message))
        }
    }
}

/// A pod may evict others unless it says never, or an eviction for it is still under way.
fn check_eligible(runner: &dyn FilterRunner, pod: &Pod, verdicts: &NodeVerdicts) -> Verdict {
    if pod.spec.never_preempts {
        return Err(Status::unschedulable("not eligible due to preemptionPolicy=Never."));
    }
    let nominated = (pod.nominated_node.as_ref()).and_then(|name| runner.cluster().node(name));
    let Some(node) = nominated else {
        return Ok(());
    };
    let hopeless = verdicts.of(node.id).code == Code::UnschedulableAndUnresolvable;
    let leaving = |other: &Pod| other.terminating && other.preempted && is_victim(other, pod);
    if !hopeless && node.pods.iter().any(|other| leaving(other)) {
        return Err(Status::unschedulable("not eligible due to a terminating pod on the nominated node."));
    }
    Ok(())
}

fn is_victim(other: &Pod, pod: &Pod) -> bool {
    other.spec.priority < pod.spec.priority
}

impl PostFilter for DefaultPreemption {
    fn post_filter(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        self.preempt(runner, pod, verdicts).map_err(|NotNominated { status, clears }| {
            let message = format!("preemption: {}", status.message());
            NotNominated { status: Status::new(status.code, [message.into()]), clears }
        })
    }
}

impl PreEnqueue for DefaultPreemption {
    /// The queue holds a pod back while evictions for it are under way; there are none in a decision alone.
    fn pre_enqueue(&self, _: &Pod) -> Verdict {
        Ok(())
    }
}

impl Requeue for DefaultPreemption {
    /// A pod that is held back for its evictions is let in by whoever carries them out. That a pod is deleted does not
    /// let it in, as others may still have to go.
    fn events(&self) -> Vec<EventInterest> {
        vec![EventInterest::new(Resource::Pod, [Action::Delete]).if_pod(|_, _, _| false)]
    }
}

#[cfg(test)]
mod tests;
