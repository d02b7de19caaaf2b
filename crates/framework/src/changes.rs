//! Which events a change of an object amounts to.

use supercargo_model::{Name, Node, Pod, Resources, pod::GeneratedClaim};

use crate::bugs::{self, Bug};
use crate::event::{ActionType, Change, ClusterEvent, EventResource};

/// A change as waiting pods are to see it.
#[derive(Clone, Debug)]
pub struct Happened<'a> {
    /// What happened, several things perhaps.
    pub events: Vec<ClusterEvent>,
    /// The object before and after it.
    pub change: Change<'a>,
}

impl<'a> Change<'a> {
    /// What this means to the pods that wait; no events if it means nothing to them.
    ///
    /// A pod that is bound, by whomever, is one that comes; a pod that has ended is one that goes. What happens to a pod
    /// before it is bound concerns nobody else.
    pub fn happened(self) -> Happened<'a> {
        match self {
            Self::Node(before, after) => {
                let events = match (before, after) {
                    (Some(before), Some(after)) => node_events(before, after),
                    _ => came_or_went(Some(EventResource::Node), before.is_some(), after.is_some()),
                };
                Happened { events, change: self }
            }
            Self::Pod(before, after) => {
                let (before, after) = (before.filter(|pod| is_held(pod)), after.filter(|pod| is_held(pod)));
                let events = match (before, after) {
                    (Some(before), Some(after)) => pod_events(before, after),
                    _ => came_or_went(Some(EventResource::AssignedPod), before.is_some(), after.is_some()),
                };
                Happened { events, change: Change::Pod(before, after) }
            }
            Self::Other(before, after) => {
                let resource = before.or(after).and_then(|object| EventResource::of(object.kind()));
                let events = match (before, after) {
                    (Some(_), Some(_)) => resource
                        .map(|resource| ClusterEvent::new(resource, ActionType::Update))
                        .into_iter()
                        .collect(),
                    _ => came_or_went(resource, before.is_some(), after.is_some()),
                };
                Happened { events, change: self }
            }
        }
    }
}

fn is_held(pod: &Pod) -> bool {
    pod.node.is_some() && !pod.finished
}

fn came_or_went(resource: Option<EventResource>, was: bool, is: bool) -> Vec<ClusterEvent> {
    let action = match (was, is) {
        (false, true) => ActionType::Add,
        (true, false) => ActionType::Delete,
        _ => return Vec::new(),
    };
    resource.map(|resource| ClusterEvent::new(resource, action)).into_iter().collect()
}

/// What the update of a node amounts to; nothing for a heartbeat. In kube-scheduler's order.
pub fn node_events(before: &Node, after: &Node) -> Vec<ClusterEvent> {
    let changes = [
        // Cordoning helps nobody.
        (before.unschedulable && !after.unschedulable, ActionType::UpdateNodeTaint),
        (before.allocatable != after.allocatable, ActionType::UpdateNodeAllocatable),
        (before.labels != after.labels, ActionType::UpdateNodeLabel),
        (before.taints != after.taints && !bugs::is_on(Bug::RemovedTaintUnseen), ActionType::UpdateNodeTaint),
        (before.conditions != after.conditions, ActionType::UpdateNodeCondition),
        (before.annotations != after.annotations, ActionType::UpdateNodeAnnotation),
        (before.declared_features != after.declared_features, ActionType::UpdateNodeDeclaredFeature),
    ];
    let happened = changes.into_iter().filter(|(changed, _)| *changed);
    happened.map(|(_, action)| ClusterEvent::new(EventResource::Node, action)).collect()
}

/// What the update of a pod amounts to, in kube-scheduler's order: something in particular, or an update.
pub fn pod_events(before: &Pod, after: &Pod) -> Vec<ClusterEvent> {
    let resource =
        if after.node.is_some() { EventResource::AssignedPod } else { EventResource::UnscheduledPod };
    let (old, new) = (&before.spec, &after.spec);
    let ungated = !old.scheduling_gates.is_empty() && new.scheduling_gates.is_empty();
    let ungated = ungated && !bugs::is_on(Bug::GateOpenedUnseen);
    let claims_made = generated_claims(before) != generated_claims(after);
    let claims_made = claims_made && !bugs::is_on(Bug::MadeClaimsUnseen);
    let changes = [
        (old.labels != new.labels, ActionType::UpdatePodLabel),
        (shrank(&old.requests.held, &new.requests.held), ActionType::UpdatePodScaleDown),
        (ungated, ActionType::UpdatePodSchedulingGatesEliminated),
        // Tolerations can only be added.
        (old.tolerations.len() != new.tolerations.len(), ActionType::UpdatePodToleration),
        (claims_made, ActionType::UpdatePodGeneratedResourceClaim),
    ];
    let particular = changes.into_iter().filter(|(changed, _)| *changed);
    let mut events: Vec<ClusterEvent> =
        particular.map(|(_, action)| ClusterEvent::new(resource, action)).collect();
    if events.is_empty() {
        events.push(ClusterEvent::new(resource, ActionType::Update));
    }
    events
}

fn generated_claims(pod: &Pod) -> &[GeneratedClaim] {
    pod.claims.as_ref().map_or(&[], |claims| &claims.generated)
}

fn shrank(before: &Resources, after: &Resources) -> bool {
    let lost = |(name, amount): &(Name, i64)| after.get(name) < *amount;
    before.milli_cpu > after.milli_cpu
        || before.memory > after.memory
        || before.ephemeral_storage > after.ephemeral_storage
        || before.scalars.iter().any(lost)
}
