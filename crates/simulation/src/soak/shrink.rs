//! Makes a plan that breaks a rule shorter, as long as it still breaks the same one.

use super::{
    plan::{Act, Plan, PlannedSetup},
    rules::SimulationRule,
};

/// How many shorter plans are tried at most.
const MAX_TRIES: usize = 400;

/// The shortest plan found that still breaks the rule, by an `is_broken` that runs plans.
pub fn shrink(
    plan: &Plan,
    rule: SimulationRule,
    mut is_broken: impl FnMut(&Plan) -> Option<SimulationRule>,
) -> Plan {
    let mut best = plan.clone();
    let mut tries = 0;
    let mut still = |candidate: &Plan| {
        tries += 1;
        tries <= MAX_TRIES && is_broken(candidate) == Some(rule)
    };
    // First the end: what comes after the first look that finds it is of no use.
    for (index, step) in plan.steps.iter().enumerate() {
        let candidate =
            Plan { steps: plan.steps[..=index].to_vec(), seconds: step.at_millis / 1000 + 1, ..plan.clone() };
        if step.act == Act::Look && still(&candidate) {
            best = candidate;
            break;
        }
    }
    // Then parts of it, large ones first.
    let mut part = best.steps.len() / 2;
    while part > 0 {
        let mut from = 0;
        while from < best.steps.len() {
            let mut candidate = best.clone();
            candidate.steps.drain(from..(from + part).min(best.steps.len()));
            if still(&candidate) {
                best = candidate;
            } else {
                from += part;
            }
        }
        part /= 2;
    }
    // Then what it begins with.
    let default = PlannedSetup::default();
    let setup = best.setup.clone();
    for simpler in [
        PlannedSetup { replicas: 1, ..setup.clone() },
        PlannedSetup { beside: false, ..setup.clone() },
        PlannedSetup { extender: false, ..setup.clone() },
        PlannedSetup { percentage: 100, ..setup.clone() },
        PlannedSetup { nodes: 1, ..setup.clone() },
        PlannedSetup { history: default.history, bookmark_seconds: default.bookmark_seconds, ..setup },
    ] {
        let candidate = Plan { setup: merged(&best.setup, &plan.setup, simpler), ..best.clone() };
        if still(&candidate) {
            best = candidate;
        }
    }
    best
}

/// What is simpler in one respect, together with what has become simpler before.
fn merged(best: &PlannedSetup, first: &PlannedSetup, simpler: PlannedSetup) -> PlannedSetup {
    PlannedSetup {
        replicas: if simpler.replicas == first.replicas { best.replicas } else { simpler.replicas },
        beside: best.beside && simpler.beside,
        extender: best.extender && simpler.extender,
        percentage: if simpler.percentage == first.percentage { best.percentage } else { simpler.percentage },
        nodes: if simpler.nodes == first.nodes { best.nodes } else { simpler.nodes },
        ..simpler
    }
}
