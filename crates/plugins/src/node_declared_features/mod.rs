//! Keeps pods off nodes whose kubelet lacks a feature that they need.

use std::sync::Arc;

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    fast::{Compiled, FastFilter, FilterPart},
    points::{Filter, PreFilter, PreFilterOutcome, Requeue},
};
use supercargo_model::{Cluster, NodeInfo, Pod};

/// The plugin's name.
pub const NAME: &str = "NodeDeclaredFeatures";

/// The plugin.
pub struct NodeDeclaredFeatures;

impl PreFilter for NodeDeclaredFeatures {
    fn pre_filter(&self, _: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        if pod.spec.required_features.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::Go { nodes: None, prepared: Prepared::nothing() })
    }
}

impl Filter for NodeDeclaredFeatures {
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        let declared = &node.node.declared_features;
        if pod.spec.required_features.iter().all(|f| declared.contains(f)) {
            Ok(())
        } else {
            Err(Status::unresolvable("node(s) didn't match Pod's required features"))
        }
    }

    fn details(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let required = pod.spec.required_features.iter();
        let missing = required.filter(|feature| !node.node.declared_features.contains(feature));
        let missing: Vec<String> = missing.map(ToString::to_string).collect();
        let text = format!("the node's kubelet does not declare {}", missing.join(", "));
        vec![Detail::new(text).fact("missingFeatures", missing)]
    }
}

impl Requeue for NodeDeclaredFeatures {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeDeclaredFeature])
                .if_node(|_, before, after| {
                    let features = |node: &supercargo_model::Node| node.declared_features.clone();
                    before.map(features) != after.map(features)
                }),
            EventInterest::new(EventResource::Pod, [ActionType::Update]).if_pod(|pod, before, after| {
                let features = |pod: &Pod| pod.spec.required_features.clone();
                after.is_some_and(|after| after.uid == pod.uid) && before.map(features) != after.map(features)
            }),
        ]
    }
}

impl FastFilter for NodeDeclaredFeatures {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if pod.spec.required_features.is_empty() { Compiled::Idle } else { Compiled::NoFastForm }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use supercargo_framework::testing::filter;
    use supercargo_model::testing::{cluster, node, pod};

    #[test]
    fn pods_are_kept_from_nodes_that_lack_a_feature() {
        let refused = "node(s) didn't match Pod's required features";
        let cluster = cluster([
            node("both").set(
                "/status/declaredFeatures",
                json!(["RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"]),
            ),
            node("none"),
            node("one").set("/status/declaredFeatures", json!(["UserNamespacesHostNetworkSupport"])),
        ]);
        let plain = pod("plain").pod();
        let host_user = pod("p").set("/spec/hostNetwork", true).set("/spec/hostUsers", false);
        let rules = json!({"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]});
        let both = host_user.clone().set("/spec/containers/-", rules).pod();
        // (pod, verdicts for both, none, one)
        let cases = [
            (plain, ["ok", "ok", "ok"]),
            (host_user.pod(), ["ok", refused, "ok"]),
            (both, ["ok", refused, refused]),
        ];
        for (pod, expected) in cases {
            assert_eq!(filter(&NodeDeclaredFeatures, &cluster, &pod), expected);
        }
    }
}
