//! Keeps nodes that belong to a team for that team's pods: a filter.

use serde::Deserialize;
use supercargo::{
    framework::{
        Prepared, Status, Verdict,
        event::{ActionType, EventInterest, EventResource},
        points::{Filter, Requeue},
        registry::{Args, Definition, define},
    },
    manifest::Problems,
    model::{Cluster, Node, NodeInfo, Pod},
};

/// What a configuration may say.
#[derive(Deserialize)]
#[serde(default)]
struct TeamNodesArgs {
    /// The label that names the team, on nodes and on pods.
    label: String,
}

impl Default for TeamNodesArgs {
    fn default() -> Self {
        Self { label: "example.com/team".to_owned() }
    }
}

/// The plugin.
pub struct TeamNodes {
    label: String,
}

/// Its name, how it is made, and what it serves.
pub fn definition() -> Definition<TeamNodes> {
    define("TeamNodes", TeamNodes::new).filter().requeue().default_args(r#"{"label": "example.com/team"}"#)
}

impl TeamNodes {
    fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let TeamNodesArgs { label } = args.decode()?;
        if label.is_empty() {
            return Err(args.problem("label", "must not be empty").into());
        }
        Ok(Self { label })
    }
}

fn admits(label: &str, pod: &Pod, node: &Node) -> bool {
    let owner = node.labels.get(label);
    owner.is_none() || owner == pod.spec.labels.get(label)
}

impl Filter for TeamNodes {
    /// A node without the label is open to all. The refusal is final: evicting other pods would not help.
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        if admits(&self.label, pod, &node.node) {
            Ok(())
        } else {
            Err(Status::unresolvable("node(s) belonged to another team"))
        }
    }
}

impl Requeue for TeamNodes {
    /// A refused pod is tried again when a node comes, or changes its labels, and then admits it; and when its own labels
    /// change. Without this it would be tried again at every event.
    fn events(&self) -> Vec<EventInterest> {
        let label = self.label.clone();
        let nodes = EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeLabel]);
        vec![
            nodes.if_node(move |pod, _, after| after.is_some_and(|node| admits(&label, pod, node))),
            EventInterest::new(EventResource::Pod, [ActionType::UpdatePodLabel])
                .if_pod(|pod, _, after| after.is_some_and(|after| after.uid == pod.uid)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use supercargo::{
        framework::{event::Change, testing::PluginUnderTest},
        model::testing::{cluster, node, pod},
    };

    use super::*;

    #[test]
    fn only_the_own_team_and_nobodys_nodes() {
        let nodes = cluster([
            node("blue").label("example.com/team", "blue"),
            node("nobody"),
            node("red").label("example.com/team", "red"),
        ]);
        let other = "node(s) belonged to another team";
        let plugin = PluginUnderTest::of(definition(), "{}").unwrap();
        let cases = [
            (pod("p").label("example.com/team", "blue"), ["ok", "ok", other]),
            (pod("p"), [other, "ok", other]),
        ];
        for (pod, verdicts) in cases {
            assert_eq!(plugin.filter(&nodes, &pod.pod()), verdicts);
        }
    }

    #[test]
    fn a_node_that_changes_hands_wakes_the_pods_that_it_admits() {
        let plugin = TeamNodes { label: "team".to_owned() };
        let pod = pod("p").label("team", "blue").pod();
        let (blue, red) = (node("n").label("team", "blue").node(), node("n").label("team", "red").node());
        let helps = |before, after| {
            let change = Change::Node(Some(before), Some(after));
            let interests = plugin.events();
            interests.iter().any(|i| {
                i.helps(&Cluster::default(), EventResource::Node, ActionType::UpdateNodeLabel, &pod, &change)
            })
        };
        assert!(helps(&red, &blue));
        assert!(!helps(&blue, &red));
    }
}
