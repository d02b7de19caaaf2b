//! Keeps pods off nodes with taints that they do not tolerate, and prefers nodes with fewer unwelcome ones.

use supercargo_framework::{
    Prepared, ScoreInput, Status, Verdict,
    event::{Action, EventInterest, Resource},
    normalize,
    points::{Filter, NormalizeScore, PreScore, PreScoreOutcome, Requeue, ScoreNode},
};
use supercargo_model::{
    Cluster, Node, NodeInfo, Pod,
    taint::{Effect, Toleration, find_untolerated, tolerated},
};

/// The plugin's name.
pub const NAME: &str = "TaintToleration";

/// The plugin.
pub struct TaintToleration;

impl Filter for TaintToleration {
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        match find_untolerated(&node.node.taints, &pod.spec.tolerations) {
            None => Ok(()),
            Some(_) => Err(Status::unresolvable("node(s) had untolerated taint(s)")),
        }
    }
}

/// The tolerations that can match a PreferNoSchedule taint.
#[derive(Clone)]
struct SoftTolerations(Vec<Toleration>);

impl PreScore for TaintToleration {
    fn pre_score(&self, _: &Cluster, pod: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        let soft = |t: &&Toleration| t.effect.is_none_or(|e| e == Effect::PreferNoSchedule);
        let tolerations = pod.spec.tolerations.iter().filter(soft).cloned().collect();
        Ok(PreScoreOutcome::go(SoftTolerations(tolerations)))
    }
}

impl ScoreNode for TaintToleration {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        let SoftTolerations(tolerations) = input.prepared.get()?;
        let unwelcome = (node.node.taints.iter())
            .filter(|t| t.effect == Effect::PreferNoSchedule && !tolerated(t, tolerations));
        Ok(unwelcome.count() as i64)
    }
}

impl NormalizeScore for TaintToleration {
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::reversed(column);
        Ok(())
    }
}

impl Requeue for TaintToleration {
    fn events(&self) -> Vec<EventInterest> {
        let repels = |pod: &Pod, node: &Node| {
            find_untolerated(&node.taints, &pod.spec.tolerations).is_some()
        };
        vec![
            EventInterest::new(Resource::Node, [Action::Add, Action::UpdateNodeTaint]).if_node(
                move |pod, before, after| {
                    before.is_none_or(|node| repels(pod, node))
                        && after.is_some_and(|node| !repels(pod, node))
                },
            ),
            EventInterest::new(Resource::Pod, [Action::UpdatePodToleration])
                .if_pod(|pod, _, after| after.is_some_and(|after| after.uid == pod.uid)),
        ]
    }
}

#[cfg(test)]
mod tests;
