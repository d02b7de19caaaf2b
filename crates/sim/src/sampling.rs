//! Compares which nodes are looked at, and how many, with what kube-scheduler does.

use serde::Deserialize;
use supercargo_config as config;
use supercargo_engine::nodes_to_find;
use supercargo_framework::registry::Registry;
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields, Value};
use supercargo_model::{Cluster, Pod, object::Object, object::read_object};

use supercargo_scheduler::setup::{self, Overrides};

use crate::conformance::CheckedCases;

/// kube-scheduler's own least number of feasible nodes; the data was made with it.
const MIN_FEASIBLE_NODES_TO_FIND: usize = 100;

#[derive(Deserialize)]
struct NodesToFind {
    /// Percentage, nodes, feasible nodes to find.
    rows: Vec<(i32, usize, usize)>,
}

/// Checks a table of how many feasible nodes are enough.
pub fn check_nodes_to_find(source: &Source) -> Result<CheckedCases, Problems> {
    let table: NodesToFind = manifest::decode(source, &single(source)?, "", UnknownFields::Ignore)?;
    let mut checked = CheckedCases::default();
    for (percentage, nodes, expected) in table.rows {
        let got = nodes_to_find(percentage, nodes, MIN_FEASIBLE_NODES_TO_FIND);
        let subject = format!("{percentage} % of {nodes} nodes");
        checked.case(&subject, |about| about.equal(None, "feasible nodes to find", &expected, &got));
    }
    Ok(checked)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeOrder {
    nodes: Vec<PlainNode>,
    order: Vec<String>,
    percentage_of_nodes_to_score: u32,
    cycles: Vec<Cycle>,
}

#[derive(Deserialize)]
struct PlainNode {
    name: String,
    cpu: String,
    #[serde(default)]
    labels: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cycle {
    evaluated: usize,
    feasible: usize,
    next_start: usize,
}

/// Checks the order in which nodes are tried, and where each of several cycles stops.
pub fn check_node_order(source: &Source, registry: &Registry) -> Result<CheckedCases, Problems> {
    let cases: Vec<NodeOrder> = manifest::decode(source, &single(source)?, "", UnknownFields::Ignore)?;
    let mut checked = CheckedCases::default();
    for (i, case) in cases.iter().enumerate() {
        let cluster = case.cluster()?;
        let order: Vec<String> =
            (cluster.order().iter()).map(|id| cluster.node_at(*id).name().to_string()).collect();
        let mut configuration = config::default_configuration(registry)?;
        configuration.percentage_of_nodes_to_score = case.percentage_of_nodes_to_score;
        let mut engine = setup::engine(cluster, &configuration, registry, Overrides::default())?;
        let pod = small_pod()?;
        let subject = format!("case {} ({} nodes)", i + 1, case.nodes.len());
        checked.case(&subject, |about| {
            about.equal(None, "order", &case.order, &order);
            for (number, expected) in case.cycles.iter().enumerate() {
                let Some(decision) = engine.decide(&pod) else { break };
                let what = |field: &str| format!("cycle {}: {field}", number + 1);
                about.equal(None, &what("evaluated"), &expected.evaluated, &decision.evaluated());
                about.equal(None, &what("feasible"), &expected.feasible, &decision.feasible.len());
                about.equal(None, &what("nextStart"), &expected.next_start, &engine.inspect().next_start());
            }
        });
    }
    Ok(checked)
}

impl NodeOrder {
    fn cluster(&self) -> Result<Cluster, Problems> {
        let mut cluster = Cluster::default();
        for node in &self.nodes {
            let allocatable = serde_json::json!({"cpu": node.cpu, "memory": "64Gi", "pods": "110"});
            let object = serde_json::json!({
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": node.name, "labels": node.labels},
                "status": {"allocatable": allocatable, "capacity": allocatable},
            });
            cluster.put(made("node", &object)?);
        }
        Ok(cluster)
    }
}

/// The pod that the data was made with; it is never bound.
fn small_pod() -> Result<Pod, Problems> {
    let object = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]},
    });
    match made("pod", &object)? {
        Object::Pod(pod) => Ok(pod),
        other => Err(Problem::error(format!("expected a Pod, found a {}", other.kind().name())).into()),
    }
}

fn made(name: &str, object: &serde_json::Value) -> Result<Object, Problems> {
    let source = Source::new(name, object.to_string());
    let read = read_object(&source, &single(&source)?, "")?;
    read.ok_or_else(|| Problem::error("this is no object that a scheduler reads").into())
}

/// The one document of a text.
pub(crate) fn single(source: &Source) -> Result<Value, Problems> {
    let mut documents = manifest::read(source)?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Ok(document),
        _ => Err(Problem::error("expected one JSON document").at(source, manifest::Location::START).into()),
    }
}
