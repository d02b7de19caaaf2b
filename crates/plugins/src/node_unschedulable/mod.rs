//! Keeps pods off cordoned nodes, unless they tolerate the taint that goes with cordoning.

use std::sync::Arc;

use serde_json::json;
use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    fast::{Compiled, FastFilter, FilterPart},
    points::{Filter, Requeue},
};
use supercargo_model::{
    Cluster, NodeInfo, Pod,
    taint::{Taint, TaintEffect},
};

use crate::fast_parts::ByTaintClass;

/// The plugin's name.
pub const NAME: &str = "NodeUnschedulable";

/// The taint that goes with cordoning.
const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";
const UNSCHEDULABLE: &str = "node(s) were unschedulable";

/// The plugin.
pub struct NodeUnschedulable;

fn tolerates_cordon(pod: &Pod) -> bool {
    let cordon = Taint { key: CORDON_TAINT.into(), value: "".into(), effect: TaintEffect::NoSchedule };
    pod.spec.tolerations.tolerate(&cordon)
}

impl Filter for NodeUnschedulable {
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        if !node.node.unschedulable || tolerates_cordon(pod) {
            Ok(())
        } else {
            Err(Status::unresolvable(UNSCHEDULABLE))
        }
    }

    fn details(&self, _: &Prepared, _: &Cluster, _: &Pod, _: &NodeInfo) -> Vec<Detail> {
        let text = format!(
            "the node is cordoned (spec.unschedulable): uncordon it, or let the pod tolerate {CORDON_TAINT}"
        );
        vec![Detail::new(text).fact("missingToleration", json!({"key": CORDON_TAINT, "operator": "Exists"}))]
    }
}

impl Requeue for NodeUnschedulable {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeTaint]).if_node(
                |_, before, after| {
                    let was_open = before.is_some_and(|node| !node.unschedulable);
                    !was_open && after.is_some_and(|node| !node.unschedulable)
                },
            ),
            EventInterest::new(EventResource::Pod, [ActionType::UpdatePodToleration]).if_pod(
                |pod, _, after| after.is_some_and(|after| after.uid == pod.uid && tolerates_cordon(after)),
            ),
        ]
    }
}

impl FastFilter for NodeUnschedulable {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if cluster.columns().tainted.cordoned == 0 {
            return Compiled::Idle;
        }
        let tolerated = tolerates_cordon(pod);
        ByTaintClass::compile(cluster, UNSCHEDULABLE, |class| !class.unschedulable || tolerated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_framework::testing::taint_change_helps;
    use supercargo_model::testing::{cluster, node, pod};

    #[test]
    fn cordoned_nodes_take_no_pods_but_those_that_tolerate_it() {
        let cluster = cluster([node("open"), node("cordoned").set("/spec/unschedulable", true)]);
        let plain = pod("plain").pod();
        let daemon = pod("daemon")
            .toleration(json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}))
            .pod();
        let verdict = |pod: &Pod, name: &str| {
            NodeUnschedulable
                .filter(&Prepared::nothing(), &cluster, pod, cluster.node(name).unwrap())
                .map_err(|status| status.message())
        };
        assert_eq!(verdict(&plain, "open"), Ok(()));
        assert_eq!(verdict(&plain, "cordoned"), Err("node(s) were unschedulable".to_owned()));
        assert_eq!(verdict(&daemon, "cordoned"), Ok(()));
    }

    #[test]
    fn uncordoning_helps_and_cordoning_does_not() {
        let open = node("n").node();
        let cordoned = node("n").set("/spec/unschedulable", true).node();
        let interest = &NodeUnschedulable.events()[0];
        let waiting = pod("p").pod();
        let helps = |before, after| taint_change_helps(interest, &waiting, before, after);
        assert!(helps(Some(&cordoned), &open));
        assert!(helps(None, &open));
        assert!(!helps(None, &cordoned));
        assert!(!helps(Some(&open), &open));
        assert!(!helps(Some(&open), &cordoned));
    }
}
