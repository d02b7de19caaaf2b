//! The choice among nodes where room could be made.

use std::{borrow::Borrow, sync::Arc};

use supercargo_framework::preemption::Candidate;
use supercargo_model::Pod;

use super::victims::started;

/// What is asked one after another: less is better, and the next question only counts among equals.
fn costs(candidate: &Candidate) -> [i128; 5] {
    let victims = &candidate.victims;
    let highest = victims.first().map_or(0, |pod| pod.spec.priority);
    // Every victim counts, also one of the lowest priority.
    let weight = |pod: &Arc<Pod>| i128::from(pod.spec.priority) + (1_i128 << 31);
    let earliest = (victims.iter())
        .filter(|pod| pod.spec.priority == highest)
        .map(|pod| started(pod).as_nanosecond())
        .min();
    [
        i128::from(candidate.budget_violations),
        i128::from(highest),
        victims.iter().map(weight).sum(),
        victims.len() as i128,
        // The most important victims should have run the shortest.
        -earliest.unwrap_or(i128::MAX),
    ]
}

/// The candidate that costs least; the first of equals.
pub(super) fn best<C: Borrow<Candidate>>(candidates: Vec<C>) -> Option<C> {
    candidates.into_iter().min_by_key(|candidate| costs(candidate.borrow()))
}
