//! The nodes that fell out, by who refused them and why.

use std::collections::BTreeMap;

use supercargo_engine::Decision;
use supercargo_model::Name;

use crate::{
    failure::Failure,
    output::{Console, Grid},
};

/// How many names stand in a row, unless all are asked for.
const MAX_NAMES: usize = 8;

pub(super) fn print(decision: &Decision, all_nodes: bool, console: &mut Console) -> Result<(), Failure> {
    if !decision.rejected.is_empty() {
        console.heading(format!("Rejected: {} of {} nodes", decision.rejected.len(), decision.node_count))?;
        console.grid(groups(decision, all_nodes))?;
    }
    print_ruled_out(decision, all_nodes, console)?;
    print_not_looked_at(decision, console)
}

fn groups(decision: &Decision, all_nodes: bool) -> Grid {
    let mut groups: BTreeMap<(&str, String), Vec<&Name>> = BTreeMap::new();
    for (node, rejection) in &decision.rejected {
        let group = (&*rejection.plugin, rejection.status.message());
        groups.entry(group).or_default().push(node);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, nodes)| std::cmp::Reverse(nodes.len()));
    let mut grid = Grid::new(["PLUGIN", "REASON", ">COUNT", "NODES"]).fitting().indented("  ");
    for ((plugin, reason), nodes) in groups {
        let names = names(&nodes, all_nodes);
        grid.row([plugin.to_owned(), reason, nodes.len().to_string(), names]);
    }
    grid
}

fn print_ruled_out(decision: &Decision, all_nodes: bool, console: &mut Console) -> Result<(), Failure> {
    if decision.ruled_out.is_empty() {
        return Ok(());
    }
    console.heading(format!(
        "Ruled out unseen: {} of {} nodes",
        decision.ruled_out.len(),
        decision.node_count
    ))?;
    let why = decision.verdicts.others.message();
    if !why.is_empty() {
        console.paragraph("  ", &why)?;
    }
    let nodes: Vec<&Name> = decision.ruled_out.iter().collect();
    console.paragraph("  ", &names(&nodes, all_nodes))?;
    Ok(())
}

/// Where enough feasible nodes were found before all were looked at.
fn print_not_looked_at(decision: &Decision, console: &mut Console) -> Result<(), Failure> {
    let seen = decision.evaluated() + decision.ruled_out.len();
    let unseen = decision.node_count.saturating_sub(seen);
    if decision.feasible.is_empty() || unseen == 0 {
        return Ok(());
    }
    console.heading(format!("Not looked at: {unseen} of {} nodes", decision.node_count))?;
    let text = format!(
        "The search ended with {} feasible nodes (percentageOfNodesToScore, or a node nominated before).",
        decision.feasible.len()
    );
    console.paragraph("  ", &text)?;
    Ok(())
}

fn names(nodes: &[&Name], all: bool) -> String {
    let shown = if all { nodes.len() } else { MAX_NAMES };
    let mut names: Vec<String> = nodes.iter().take(shown).map(ToString::to_string).collect();
    if nodes.len() > shown {
        names.push(format!("… and {} more", nodes.len() - shown));
    }
    names.join(", ")
}
