//! Holds a pod back until all its scheduling gates are gone.

use supercargo_framework::{
    Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    points::{PreEnqueue, Requeue},
    queueing::QueueView,
};
use supercargo_model::Pod;

/// The plugin's name.
pub const NAME: &str = "SchedulingGates";

/// The plugin.
pub struct SchedulingGates;

impl PreEnqueue for SchedulingGates {
    fn pre_enqueue(&self, _: &QueueView<'_>, pod: &Pod) -> Verdict {
        let gates = &pod.spec.scheduling_gates;
        if gates.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = gates.iter().map(|gate| &**gate).collect();
        Err(Status::unresolvable(format!("waiting for scheduling gates: [{}]", names.join(" "))))
    }
}

impl Requeue for SchedulingGates {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(EventResource::Pod, [ActionType::UpdatePodSchedulingGatesEliminated])
                .if_pod(|pod, _, after| after.is_some_and(|after| after.uid == pod.uid)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use supercargo_framework::handle::NoPendingPods;
    use supercargo_model::{Cluster, testing::pod};

    #[test]
    fn a_pod_waits_for_its_gates() {
        let cluster = Cluster::default();
        let view = QueueView { cluster: &cluster, pending: &NoPendingPods };
        let free = pod("free").pod();
        assert_eq!(SchedulingGates.pre_enqueue(&view, &free), Ok(()));

        let gates = json!([{"name": "quota"}, {"name": "example.com/hold"}]);
        let held = pod("held").set("/spec/schedulingGates", gates).pod();
        let status = SchedulingGates.pre_enqueue(&view, &held).unwrap_err();
        assert_eq!(status.message(), "waiting for scheduling gates: [quota example.com/hold]");
    }

    #[test]
    fn only_the_pods_own_gates_matter() {
        let interest = &SchedulingGates.events()[0];
        let (held, other) = (pod("held").pod(), pod("other").pod());
        let lifted = |which: &Pod| {
            let change = supercargo_framework::event::Change::Pod(Some(which), Some(which));
            let action = ActionType::UpdatePodSchedulingGatesEliminated;
            interest.helps(&supercargo_model::Cluster::default(), EventResource::Pod, action, &held, &change)
        };
        assert!(lifted(&held));
        assert!(!lifted(&other));
    }
}
