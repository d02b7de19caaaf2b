//! A disruption budget says how many of its pods may go now.

use std::sync::Arc;

use serde_json::Value;

use super::follow::ChangeFollower;
use super::workloads::{PAUSE, all, is_ready, write_status};
use crate::StatusError;
use crate::api::Api;
use crate::object::{self, at, namespace};
use crate::resource::{POD_DISRUPTION_BUDGETS, PODS};
use crate::selector::Selector;
use crate::store::StoredObject;

pub(super) async fn run(api: Arc<Api>) {
    let mut pods = ChangeFollower::new(&api, &PODS);
    let mut budgets = ChangeFollower::new(&api, &POD_DISRUPTION_BUDGETS);
    loop {
        tokio::select! {
            biased;
            () = pods.changed() => {}
            () = budgets.changed() => {}
        }
        api.time.sleep(PAUSE).await;
        if let Err(failure) = reconcile(&api) {
            // Somebody else has changed the budget: that wakes this loop again.
            tracing::debug!(%failure, "not every disruption budget could be counted");
        }
    }
}

fn reconcile(api: &Api) -> Result<(), StatusError> {
    let budgets = all(api, &POD_DISRUPTION_BUDGETS);
    if budgets.is_empty() {
        return Ok(());
    }
    let pods = all(api, &PODS);
    budgets.iter().try_for_each(|budget| reconcile_one(api, &budget.value, &pods))
}

fn reconcile_one(api: &Api, budget: &Value, pods: &[Arc<StoredObject>]) -> Result<(), StatusError> {
    let Some(selector) = Selector::of_labels(at(budget, &["spec", "selector"])) else { return Ok(()) };
    let covered = |pod: &Value| namespace(pod) == namespace(budget) && selector.matches(pod);
    let covered: Vec<&Value> = pods.iter().map(|pod| &pod.value).filter(|pod| covered(pod)).collect();
    let expected = covered.len() as u64;
    let healthy = covered.iter().filter(|pod| is_ready(pod) && !object::is_terminating(pod)).count() as u64;
    let desired = desired_healthy(budget, expected);
    let numbers = [
        ("expectedPods", expected),
        ("currentHealthy", healthy),
        ("desiredHealthy", desired),
        ("disruptionsAllowed", healthy.saturating_sub(desired)),
    ];
    write_status(api, &POD_DISRUPTION_BUDGETS, budget, &numbers)
}

fn desired_healthy(budget: &Value, expected: u64) -> u64 {
    if let Some(most) = at(budget, &["spec", "maxUnavailable"]) {
        return expected.saturating_sub(amount(most, expected));
    }
    // A budget that says nothing wants one.
    at(budget, &["spec", "minAvailable"]).map_or(1, |least| amount(least, expected))
}

/// A number, or a share of all that is rounded up.
pub(super) fn amount(value: &Value, of: u64) -> u64 {
    match percent(value) {
        Some(percent) => of.saturating_mul(percent).div_ceil(100),
        None => value.as_u64().unwrap_or(0),
    }
}

/// A number, or a share of all that is rounded down.
pub(super) fn amount_rounded_down(value: &Value, of: u64) -> u64 {
    match percent(value) {
        Some(percent) => of.saturating_mul(percent) / 100,
        None => value.as_u64().unwrap_or(0),
    }
}

fn percent(value: &Value) -> Option<u64> {
    value.as_str()?.strip_suffix('%')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn shares_are_rounded_up() {
        for (spec, expected) in [
            (json!({"minAvailable": 2}), 2),
            (json!({"minAvailable": "50%"}), 4),   // 7 × 50 % = 3.5
            (json!({"maxUnavailable": 1}), 6),     // 7 − 1
            (json!({"maxUnavailable": "30%"}), 4), // 7 − ⌈2.1⌉
            (json!({"maxUnavailable": "boat"}), 7),
            (json!({}), 1),
        ] {
            assert_eq!(desired_healthy(&json!({"spec": spec}), 7), expected, "{spec}");
        }
    }
}
