//! The verdict, and what it was based on.

use supercargo_sim::explanation::{Explanation, WHAT_IF};

use crate::{
    failure::Failure,
    output::Console,
    style::{harmless, paint},
};

pub(super) fn print(explanation: &Explanation, console: &mut Console) -> Result<(), Failure> {
    let report = &explanation.report;
    let palette = console.palette;
    let (style, verdict) = match (&*report.result, &report.placed, &explanation.bound_to) {
        ("Scheduled", Some(node), Some(bound)) if node == bound => {
            (palette.good, format!("runs on {bound}, and would go there now"))
        }
        ("Scheduled", Some(node), Some(bound)) => {
            (palette.caution, format!("runs on {bound}, would go to {node} now"))
        }
        ("Scheduled", Some(node), None) => (palette.good, format!("goes to {node}")),
        ("Gated", ..) => (palette.caution, "is gated".to_owned()),
        ("Error", ..) => (palette.bad, "cannot be decided".to_owned()),
        (_, _, Some(bound)) => (palette.bad, format!("runs on {bound}, and would be unschedulable now")),
        _ => (palette.bad, "is unschedulable".to_owned()),
    };
    let pod = paint(palette.heading, harmless(&report.pod));
    console.line(format!("{pod} {}", paint(style, harmless(&verdict))))?;
    if let Some(message) = message(explanation) {
        console.paragraph("  ", &message)?;
    }
    console.paragraph("  ", &facts(explanation).join(", "))?;
    if report.evicted {
        console.paragraph("  ", "It has to leave again, for a more important pod.")?;
    }
    let basis = match (&*explanation.basis, &explanation.bound_to, explanation.pods_before) {
        (WHAT_IF, Some(_), _) => {
            "Decided on the scheduler's present state, without the pod itself.".to_owned()
        }
        (WHAT_IF, ..) => {
            "Decided on the scheduler's present state; its own decision may be older.".to_owned()
        }
        (_, Some(_), _) => "Decided as if it were pending, on the cluster without it.".to_owned(),
        (_, None, 0) => return Ok(()),
        (_, None, 1) => "1 pod before it in the queue was placed first.".to_owned(),
        (_, None, n) => format!("{n} pods before it in the queue were placed first."),
    };
    console.paragraph("  ", &basis)?;
    Ok(())
}

/// Why no node is left, with what came of making room.
fn message(explanation: &Explanation) -> Option<String> {
    let report = &explanation.report;
    if report.result == "Gated" {
        return report.pre_filter.as_ref().map(|gate| gate.reasons.iter().flatten().cloned().collect());
    }
    let mut message = report.message.clone()?;
    if let Some(why) = report.preemption.as_ref().and_then(|preemption| preemption.message.as_ref()) {
        message.push(' ');
        message.push_str(why);
    }
    Some(message)
}

fn facts(explanation: &Explanation) -> Vec<String> {
    let report = &explanation.report;
    let mut facts = Vec::new();
    facts.extend(explanation.nodes.first().map(|best| format!("total {}", best.total)));
    if report.result != "Gated" {
        let (feasible, all) = (report.feasible.len(), explanation.node_count);
        facts.push(match explanation.stopped_early {
            false => format!("{feasible} of {all} nodes feasible"),
            true => format!(
                "{feasible} feasible among the first {} of {all} nodes (the search stopped early)",
                explanation.evaluated
            ),
        });
    }
    facts.extend(report.scheduler_name.as_ref().map(|name| format!("profile {name}")));
    facts
}
