//! Keeps pods off nodes with taints that they do not tolerate, and prefers nodes with fewer unwelcome ones.

mod details;

use std::sync::Arc;

use supercargo_framework::{
    Detail, Prepared, ScoreInput, Status, Verdict,
    details::RefusalKind,
    event::{ActionType, EventInterest, EventResource},
    fast::{Compiled, FastFilter, FastScore, FilterPart, Normalization, RawScores, ScorePart, SharedScores},
    normalize,
    points::{Filter, NormalizeScore, PreScore, PreScoreOutcome, Requeue, ScoreNode},
};
use supercargo_model::{
    Cluster, Node, NodeInfo, Pod,
    columns::{Columns, TaintClass},
    taint::{Taint, TaintEffect, Toleration, Tolerations, find_untolerated},
};

use crate::fast_parts::ByTaintClass;

/// The plugin's name.
pub const NAME: &str = "TaintToleration";

const UNTOLERATED: &str = "node(s) had untolerated taint(s)";

/// The plugin.
pub struct TaintToleration;

impl Filter for TaintToleration {
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        match find_untolerated(&node.node.taints, &pod.spec.tolerations) {
            None => Ok(()),
            Some(_) => Err(Status::unresolvable(UNTOLERATED)),
        }
    }

    fn details(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        details::details(pod, node)
    }

    fn kinds(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<RefusalKind> {
        details::kinds(pod, node)
    }
}

/// The tolerations that can match a PreferNoSchedule taint.
#[derive(Clone)]
struct SoftTolerations(Arc<Tolerations>);

impl PreScore for TaintToleration {
    fn pre_score(&self, _: &Cluster, pod: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        Ok(PreScoreOutcome::go(SoftTolerations(Arc::new(soft_tolerations(pod)))))
    }
}

fn soft_tolerations(pod: &Pod) -> Tolerations {
    let soft = |t: &&Toleration| t.effect.is_none_or(|e| e == TaintEffect::PreferNoSchedule);
    pod.spec.tolerations.iter().filter(soft).cloned().collect::<Vec<_>>().into()
}

fn count_unwelcome(taints: &[Taint], tolerations: &Tolerations) -> i64 {
    let unwelcome = |t: &&Taint| t.effect == TaintEffect::PreferNoSchedule && !tolerations.tolerate(t);
    taints.iter().filter(unwelcome).count() as i64
}

impl ScoreNode for TaintToleration {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        let SoftTolerations(tolerations) = input.prepared.get()?;
        Ok(count_unwelcome(&node.node.taints, tolerations))
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
        let repels = |pod: &Pod, node: &Node| find_untolerated(&node.taints, &pod.spec.tolerations).is_some();
        vec![
            EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeTaint]).if_node(
                move |pod, before, after| {
                    before.is_none_or(|node| repels(pod, node))
                        && after.is_some_and(|node| !repels(pod, node))
                },
            ),
            EventInterest::new(EventResource::Pod, [ActionType::UpdatePodToleration])
                .if_pod(|pod, _, after| after.is_some_and(|after| after.uid == pod.uid)),
        ]
    }
}

impl FastFilter for TaintToleration {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if cluster.columns().tainted.repelling == 0 {
            return Compiled::Idle;
        }
        let welcome = |class: &TaintClass| find_untolerated(&class.taints, &pod.spec.tolerations).is_none();
        ByTaintClass::compile(cluster, UNTOLERATED, welcome)
    }
}

/// How many taints of each node a pod would rather avoid.
fn unwelcome(columns: &Columns, pod: &Pod) -> RawScores {
    let Columns { soft_tainted_once: once, soft_tainted_more: more, soft_taints, .. } = columns;
    if once.is_empty() && more.is_empty() {
        return RawScores::Constant(0.0);
    }
    let tolerations = soft_tolerations(pod);
    if tolerations.is_empty() {
        let own = more.iter().map(|node| (node, soft_taints[node.index()])).collect();
        return RawScores::Shared(SharedScores {
            own,
            group: Some((once.clone(), 1.0)),
            ..SharedScores::default()
        });
    }
    let by_class: Vec<f64> = (columns.taint_classes.iter())
        .map(|class| count_unwelcome(&class.taints, &tolerations) as f64)
        .collect();
    if by_class.iter().all(|count| *count == 0.0) {
        RawScores::Constant(0.0)
    } else {
        RawScores::Fixed(columns.taint_class.iter().map(|class| by_class[*class as usize]).collect())
    }
}

impl FastScore for TaintToleration {
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        let columns = cluster.columns();
        Compiled::Part(unwelcome(columns, pod).normalized(Normalization::Reversed))
    }
}

#[cfg(test)]
mod tests;
