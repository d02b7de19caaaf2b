//! An explanation with its scores in columns, from which a page can work out what other weights would do.

use serde::Serialize;
use supercargo_sim::explanation::{Explanation, NodeScores};

/// An explanation whose nodes are in columns.
#[derive(Serialize)]
pub(crate) struct ScoreTable {
    #[serde(flatten)]
    explanation: Explanation,
    table: TableColumns,
}

/// The feasible nodes, the best first: the same place in every column is the same node.
#[derive(Default, Serialize)]
struct TableColumns {
    nodes: Vec<String>,
    totals: Vec<i64>,
    plugins: Vec<PluginColumn>,
}

/// What a plugin gave. A total is the sum of normalized × weight.
#[derive(Serialize)]
struct PluginColumn {
    name: String,
    weight: i32,
    raw: Vec<i64>,
    normalized: Vec<i64>,
}

impl ScoreTable {
    pub(crate) fn new(mut explanation: Explanation) -> Self {
        let nodes = std::mem::take(&mut explanation.nodes);
        let plugins = (explanation.score_plugins.iter()).map(|plugin| {
            let points = |node: &NodeScores| node.plugins.get(&plugin.name).copied().unwrap_or_default();
            PluginColumn {
                name: plugin.name.clone(),
                weight: plugin.weight,
                raw: nodes.iter().map(|node| points(node).raw).collect(),
                normalized: nodes.iter().map(|node| points(node).normalized).collect(),
            }
        });
        let table = TableColumns {
            plugins: plugins.collect(),
            totals: nodes.iter().map(|node| node.total).collect(),
            nodes: nodes.into_iter().map(|node| node.name).collect(),
        };
        // The same in other words, and long.
        let report = &mut explanation.report;
        report.rejected.clear();
        report.plugins.clear();
        report.feasible.clear();
        report.total.clear();
        Self { explanation, table }
    }
}
