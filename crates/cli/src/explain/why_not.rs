//! Why not this node: who refuses it, with numbers and names; or how far it is behind.

use supercargo_sim::explanation::{Explanation, ObjectionReport, WhyNot};

use super::influence::rank;
use crate::{
    failure::Failure,
    output::{Console, Grid},
    style::harmless,
};

pub(super) fn print(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    for node in &explanation.why_not {
        console.heading(title(node))?;
        if !node.exists {
            console.paragraph("  ", "There is no such node.")?;
        } else if node.objections.is_empty() {
            print_standing(node, explanation, console)?;
        } else {
            print_objections(node, console)?;
        }
    }
    Ok(())
}

fn title(node: &WhyNot) -> String {
    let name = harmless(&node.node);
    if node.chosen { format!("Why {name}") } else { format!("Why not {name}") }
}

fn print_standing(node: &WhyNot, explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    let text = match (node.chosen, node.rank, node.behind, node.total) {
        _ if !node.feasible => "No filter refuses it.".to_owned(),
        (true, ..) => "It is the one.".to_owned(),
        (false, Some(_), Some(0), Some(total)) => {
            format!("It has the highest total, {total}, too: the tie was decided against it.")
        }
        (false, Some(place), Some(behind), Some(total)) => format!(
            "It is feasible, with a total of {total}: {behind} points behind the highest, {} of {}.",
            rank(place),
            explanation.nodes.len()
        ),
        _ if explanation.stopped_early => {
            "No filter refuses it, but it was not looked at: the search stopped early, with enough feasible nodes \
             (percentageOfNodesToScore)."
                .to_owned()
        }
        _ => "No filter refuses it.".to_owned(),
    };
    console.paragraph("  ", &text)?;
    if !node.chosen && !node.plugins.is_empty() {
        let mut grid = Grid::new(["PLUGIN", ">POINTS", ">THE CHOSEN ONE'S", ">BEHIND"]).indented("  ");
        for gap in &node.plugins {
            let numbers = [gap.points, gap.chosen, gap.behind].map(|number| number.to_string());
            grid.row([gap.plugin.clone()].into_iter().chain(numbers));
        }
        console.grid(grid)?;
    }
    Ok(())
}

fn print_objections(node: &WhyNot, console: &mut Console) -> Result<(), Failure> {
    for objection in &node.objections {
        let reported = if objection.reported { " (the one that kube-scheduler reports)" } else { "" };
        let text = format!("{}: {}{reported}", objection.plugin, objection.reasons.join(", "));
        console.hanging("  ", "    ", &text)?;
        print_details(objection, console)?;
    }
    Ok(())
}

fn print_details(objection: &ObjectionReport, console: &mut Console) -> Result<(), Failure> {
    if objection.for_nominated {
        let text = "only because of more important pods that are nominated to the node";
        console.hanging("    - ", "      ", text)?;
    }
    for detail in &objection.details {
        console.hanging("    - ", "      ", &detail.text)?;
    }
    Ok(())
}
