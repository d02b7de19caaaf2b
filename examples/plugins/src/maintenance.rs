//! Keeps pods off nodes that somebody works on: a filter that reads objects of a custom kind.

use serde::Deserialize;
use supercargo::{
    framework::{
        Prepared, Status, Verdict,
        event::{ActionType, EventInterest, EventResource},
        points::{Filter, Requeue},
        registry::{Definition, define},
    },
    model::{ApiResource, Cluster, CustomObject, NodeInfo, Pod, object::Object},
};

/// The custom kind. `maintenance.yaml` has its definition.
pub static MAINTENANCES: ApiResource = ApiResource {
    group: "example.com",
    version: "v1",
    plural: "maintenances",
    kind: "Maintenance",
    namespaced: false,
};

/// The annotation of pods that do not mind.
const TOLERATES: &str = "example.com/tolerates-maintenance";

/// The plugin.
pub struct Maintenance;

/// Its name, how it is made, what it serves, and what it reads.
pub fn definition() -> Definition<Maintenance> {
    define("Maintenance", |_| Ok(Maintenance))
        .filter()
        .requeue()
        .reads(&MAINTENANCES)
        .reads_annotation(TOLERATES)
}

#[derive(Deserialize)]
struct Spec {
    node: String,
}

/// The node that an object is about; none, if it makes no sense.
fn node_of(maintenance: &CustomObject) -> Option<String> {
    maintenance.read::<Spec>("/spec").ok().map(|spec| spec.node)
}

fn tolerates(pod: &Pod) -> bool {
    pod.spec.annotations.get(TOLERATES).is_some_and(|value| &**value == "true")
}

impl Filter for Maintenance {
    /// A node that a maintenance names is closed. The refusal is final: evicting other pods would not help.
    fn filter(&self, _: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        let is_meant = |found: &CustomObject| node_of(found).is_some_and(|name| *name == **node.name());
        if tolerates(pod) || !cluster.custom_objects(&MAINTENANCES).any(is_meant) {
            Ok(())
        } else {
            Err(Status::unresolvable("node(s) were under maintenance"))
        }
    }
}

impl Requeue for Maintenance {
    /// A refused pod is tried again when a maintenance ends, or moves to another node; and when a node comes.
    fn events(&self) -> Vec<EventInterest> {
        let is_closed = |object: Option<&Object>| match object {
            Some(Object::Custom(maintenance)) => node_of(maintenance),
            _ => None,
        };
        let maintenances = EventInterest::new(
            EventResource::Custom(&MAINTENANCES),
            [ActionType::Update, ActionType::Delete],
        );
        vec![
            maintenances.if_object(move |_, before, after| is_closed(before) != is_closed(after)),
            EventInterest::new(EventResource::Node, [ActionType::Add]),
        ]
    }
}

#[cfg(test)]
mod tests {
    use supercargo::{
        framework::{event::Change, testing::PluginUnderTest},
        model::testing::{cluster, node, object, pod},
    };

    use super::*;

    fn maintenance(name: &str, node: &str) -> Object {
        let value = format!(r#"{{"metadata": {{"name": "{name}"}}, "spec": {{"node": "{node}"}}}}"#);
        object(value.parse().unwrap()).custom(&MAINTENANCES)
    }

    #[test]
    fn a_node_under_maintenance_is_closed_to_those_who_mind() {
        let mut nodes = cluster([node("a"), node("b")]);
        let plugin = PluginUnderTest::of(definition(), "{}").unwrap();
        let refused = "node(s) were under maintenance";
        assert_eq!(plugin.filter(&nodes, &pod("p").pod()), ["ok", "ok"]);
        nodes.put(maintenance("disk", "b"));
        assert_eq!(plugin.filter(&nodes, &pod("p").pod()), ["ok", refused]);
        assert_eq!(plugin.filter(&nodes, &pod("p").annotation(TOLERATES, "true").pod()), ["ok", "ok"]);
        nodes.put(maintenance("disk", "a"));
        assert_eq!(plugin.filter(&nodes, &pod("p").pod()), [refused, "ok"]);
    }

    #[test]
    fn the_end_of_a_maintenance_wakes_pods() {
        let (nodes, pod) = (cluster([]), pod("p").pod());
        let interest = &Maintenance.events()[0];
        let helps = |action, before: Option<&Object>, after: Option<&Object>| {
            interest.helps(
                &nodes,
                EventResource::Custom(&MAINTENANCES),
                action,
                &pod,
                &Change::Other(before, after),
            )
        };
        let (a, b) = (maintenance("disk", "a"), maintenance("disk", "b"));
        assert!(helps(ActionType::Delete, Some(&a), None));
        assert!(helps(ActionType::Update, Some(&a), Some(&b)));
        assert!(!helps(ActionType::Update, Some(&a), Some(&a)));
        assert!(!helps(ActionType::Add, None, Some(&a)));
    }
}
