//! Which events a change of an object amounts to.

use supercargo_model::{Name, Node, Pod, Resources};

use crate::event::{Action, Change, Event, Resource};

/// A change as waiting pods are to see it.
#[derive(Clone, Debug)]
pub struct Happened<'a> {
    /// What happened, several things perhaps.
    pub events: Vec<Event>,
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
                    _ => came_or_went(Some(Resource::Node), before.is_some(), after.is_some()),
                };
                Happened { events, change: self }
            }
            Self::Pod(before, after) => {
                let (before, after) = (before.filter(|pod| is_held(pod)), after.filter(|pod| is_held(pod)));
                let events = match (before, after) {
                    (Some(before), Some(after)) => pod_events(before, after),
                    _ => came_or_went(Some(Resource::AssignedPod), before.is_some(), after.is_some()),
                };
                Happened { events, change: Change::Pod(before, after) }
            }
            Self::Other(before, after) => {
                let resource = before.or(after).and_then(|object| Resource::of(object.kind()));
                let events = match (before, after) {
                    (Some(_), Some(_)) => {
                        resource.map(|resource| Event::new(resource, Action::Update)).into_iter().collect()
                    }
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

fn came_or_went(resource: Option<Resource>, was: bool, is: bool) -> Vec<Event> {
    let action = match (was, is) {
        (false, true) => Action::Add,
        (true, false) => Action::Delete,
        _ => return Vec::new(),
    };
    resource.map(|resource| Event::new(resource, action)).into_iter().collect()
}

/// What the update of a node amounts to; nothing for a heartbeat. In kube-scheduler's order.
pub fn node_events(before: &Node, after: &Node) -> Vec<Event> {
    let changes = [
        // Cordoning helps nobody.
        (before.unschedulable && !after.unschedulable, Action::UpdateNodeTaint),
        (before.allocatable != after.allocatable, Action::UpdateNodeAllocatable),
        (before.labels != after.labels, Action::UpdateNodeLabel),
        (before.taints != after.taints, Action::UpdateNodeTaint),
        (before.conditions != after.conditions, Action::UpdateNodeCondition),
        (before.annotations != after.annotations, Action::UpdateNodeAnnotation),
        (before.declared_features != after.declared_features, Action::UpdateNodeDeclaredFeature),
    ];
    let happened = changes.into_iter().filter(|(changed, _)| *changed);
    happened.map(|(_, action)| Event::new(Resource::Node, action)).collect()
}

/// What the update of a pod amounts to, in kube-scheduler's order: something in particular, or an update.
pub fn pod_events(before: &Pod, after: &Pod) -> Vec<Event> {
    let resource = if after.node.is_some() { Resource::AssignedPod } else { Resource::UnscheduledPod };
    let (old, new) = (&before.spec, &after.spec);
    let ungated = !old.scheduling_gates.is_empty() && new.scheduling_gates.is_empty();
    let changes = [
        (old.labels != new.labels, Action::UpdatePodLabel),
        (shrank(&old.requests.held, &new.requests.held), Action::UpdatePodScaleDown),
        (ungated, Action::UpdatePodSchedulingGatesEliminated),
        // Tolerations can only be added.
        (old.tolerations.len() != new.tolerations.len(), Action::UpdatePodToleration),
    ];
    let particular = changes.into_iter().filter(|(changed, _)| *changed);
    let mut events: Vec<Event> = particular.map(|(_, action)| Event::new(resource, action)).collect();
    if events.is_empty() {
        events.push(Event::new(resource, Action::Update));
    }
    events
}

fn shrank(before: &Resources, after: &Resources) -> bool {
    let lost = |(name, amount): &(Name, i64)| after.get(name) < *amount;
    before.milli_cpu > after.milli_cpu
        || before.memory > after.memory
        || before.ephemeral_storage > after.ephemeral_storage
        || before.scalars.iter().any(lost)
}
