//! The nodes that fell out, by who refused them and why.

use std::{cmp::Reverse, collections::BTreeMap};

use supercargo_sim::explanation::{Explanation, KindCount};

use crate::{
    failure::Failure,
    output::{Console, Grid, listed},
};

/// How many names stand in a row, unless all are asked for.
const MAX_NAMES: usize = 8;

pub(super) fn print(explanation: &Explanation, all: bool, console: &mut Console) -> Result<(), Failure> {
    let count: usize = explanation.rejections.iter().map(|group| group.count).sum();
    if count > 0 {
        console.heading(format!("Rejected: {count} of {} nodes", explanation.node_count))?;
        console.grid(groups(explanation, all))?;
        print_kinds(explanation, console)?;
    }
    print_ruled_out(explanation, all, console)?;
    print_not_looked_at(explanation, console)
}

fn groups(explanation: &Explanation, all: bool) -> Grid {
    let mut grid = Grid::new(["PLUGIN", "REASON", ">COUNT", "NODES"]).fitting().indented("  ");
    for group in &explanation.rejections {
        let names = listed(&group.nodes, shown(all));
        grid.row([group.plugin.clone(), group.reason.clone(), group.count.to_string(), names]);
    }
    grid
}

/// Whether nodes that share a reason have none of what is wanted, or are full.
fn print_kinds(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    let mut by_reason: BTreeMap<&str, Vec<&KindCount>> = BTreeMap::new();
    for kind in &explanation.kinds {
        by_reason.entry(&kind.reason).or_default().push(kind);
    }
    for (reason, mut kinds) in by_reason {
        kinds.sort_by_key(|kind| Reverse(kind.count));
        let kinds: Vec<String> = kinds.into_iter().map(in_words).collect();
        console.hanging("  ", "    ", &format!("{reason}: {}", kinds.join(", ")))?;
    }
    Ok(())
}

/// As in "3 are full", or "1 is full".
fn in_words(KindCount { kind, count, .. }: &KindCount) -> String {
    let singular = || match kind.split_once(' ') {
        Some(("are", rest)) => format!("is {rest}"),
        Some(("have", rest)) => format!("has {rest}"),
        _ => kind.clone(),
    };
    format!("{count} {}", if *count == 1 { singular() } else { kind.clone() })
}

fn print_ruled_out(explanation: &Explanation, all: bool, console: &mut Console) -> Result<(), Failure> {
    let Some(ruled_out) = &explanation.ruled_out else { return Ok(()) };
    console.heading(format!(
        "Ruled out unseen: {} of {} nodes",
        ruled_out.nodes.len(),
        explanation.node_count
    ))?;
    if !ruled_out.reason.is_empty() {
        console.paragraph("  ", &ruled_out.reason)?;
    }
    console.paragraph("  ", &listed(&ruled_out.nodes, shown(all)))?;
    Ok(())
}

/// Where enough feasible nodes were found before all were looked at.
fn print_not_looked_at(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    if !explanation.stopped_early {
        return Ok(());
    }
    let ruled_out = explanation.ruled_out.as_ref().map_or(0, |ruled_out| ruled_out.nodes.len());
    let unseen = explanation.node_count.saturating_sub(explanation.evaluated + ruled_out);
    console.heading(format!("Not looked at: {unseen} of {} nodes", explanation.node_count))?;
    let text = format!(
        "The search stopped early, with {} feasible nodes (percentageOfNodesToScore, or a node nominated before).",
        explanation.report.feasible.len()
    );
    console.paragraph("  ", &text)?;
    Ok(())
}

fn shown(all: bool) -> usize {
    if all { usize::MAX } else { MAX_NAMES }
}
