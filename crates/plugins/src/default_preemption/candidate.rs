//! The choice among nodes where room could be made.

use std::sync::Arc;

use supercargo_model::{Name, Pod};

use super::victims::started;

/// A node where room could be made, and at what cost.
pub(super) struct Candidate {
    pub(super) node: Name,
    /// The most important first.
    pub(super) victims: Vec<Arc<Pod>>,
    pub(super) budget_violations: i64,
}

impl Candidate {
    /// What is asked one after another: less is better, and the next question only counts among equals.
    fn costs(&self) -> [i128; 5] {
        let highest = self.victims.first().map_or(0, |pod| pod.spec.priority);
        // Every victim counts, also one of the lowest priority.
        let weight = |pod: &Arc<Pod>| i128::from(pod.spec.priority) + (1_i128 << 31);
        let earliest = (self.victims.iter())
            .filter(|pod| pod.spec.priority == highest)
            .map(|pod| started(pod).as_nanosecond())
            .min();
        [
            i128::from(self.budget_violations),
            i128::from(highest),
            self.victims.iter().map(weight).sum(),
            self.victims.len() as i128,
            // The most important victims should have run the shortest.
            -earliest.unwrap_or(i128::MAX),
        ]
    }
}

/// The candidate that costs least; the first of equals.
pub(super) fn best(candidates: Vec<Candidate>) -> Option<Candidate> {
    candidates.into_iter().min_by_key(Candidate::costs)
}
