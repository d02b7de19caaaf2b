//! A pod that names its node runs there or nowhere.

use std::sync::Arc;

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    fast::{Compiled, FastFilter, FilterPart},
    points::{Filter, Requeue},
};
use supercargo_model::{Cluster, Name, NodeInfo, Pod};

/// The plugin's name.
pub const NAME: &str = "NodeName";

/// The plugin.
pub struct NodeName;

impl Filter for NodeName {
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        match &pod.node {
            Some(wanted) if wanted != node.name() => {
                Err(Status::unresolvable("node(s) didn't match the requested node name"))
            }
            _ => Ok(()),
        }
    }

    fn details(&self, _: &Prepared, _: &Cluster, pod: &Pod, _: &NodeInfo) -> Vec<Detail> {
        let named = |wanted: &Name| {
            Detail::new(format!("the pod names the node {wanted} (spec.nodeName)"))
                .fact("nodeName", &**wanted)
        };
        pod.node.as_ref().map(named).into_iter().collect()
    }
}

impl Requeue for NodeName {
    fn events(&self) -> Vec<EventInterest> {
        vec![EventInterest::new(EventResource::Node, [ActionType::Add])]
    }
}

impl FastFilter for NodeName {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if pod.node.is_none() { Compiled::Idle } else { Compiled::NoFastForm }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use supercargo_model::testing::{cluster, node, pod};

    #[test]
    fn only_the_named_node_will_do() {
        let cluster = cluster([node("a"), node("b")]);
        let verdict = |pod: &Pod, name: &str| {
            NodeName.filter(&Prepared::nothing(), &cluster, pod, cluster.node(name).unwrap()).is_ok()
        };
        let anywhere = pod("p").pod();
        let on_a = pod("p").on("a").pod();
        assert!(verdict(&anywhere, "a") && verdict(&anywhere, "b"));
        assert!(verdict(&on_a, "a") && !verdict(&on_a, "b"));
    }
}
