//! What the queue asks a profile: who comes first, who is held back, and which events help whom.

use std::{collections::BTreeMap, sync::Arc};

use supercargo_model::{ApiResource, Cluster, Name, Pod};

use crate::{
    event::{ActionType, Change, ClusterEvent, EventInterest, EventResource, EventSet},
    handle::PendingPods,
    points::{PreEnqueue, QueueSort},
    preemption::Rejection,
    registry::Plugin,
};

/// The events that can help pods which a plugin refused.
#[derive(Clone, Default)]
pub struct Interests {
    all: Vec<EventInterest>,
    events: EventSet,
    /// Of these, what happens to other pods before they are bound.
    of_others: EventSet,
}

impl Interests {
    fn new(mut all: Vec<EventInterest>) -> Self {
        let asks = |action| all.iter().any(|interest| interest.covers(EventResource::Node, action));
        // kube-scheduler takes it that who waits for a new node also waits for one to lose a taint.
        if asks(ActionType::Add) && !asks(ActionType::UpdateNodeTaint) {
            all.push(EventInterest::new(EventResource::Node, [ActionType::UpdateNodeTaint]));
        }
        let covered = |event: &ClusterEvent| all.iter().any(|i| i.covers(event.resource, event.action));
        let custom = all.iter().filter(|interest| matches!(interest.resource, EventResource::Custom(_)));
        let custom = custom.flat_map(|interest| {
            [ActionType::Add, ActionType::Update, ActionType::Delete]
                .map(|action| ClusterEvent::new(interest.resource, action))
        });
        let events = ClusterEvent::all().chain(custom).filter(covered).collect();
        let of_others = |event: &ClusterEvent| {
            event.resource == EventResource::UnscheduledPod
                && all.iter().any(|i| i.of_others && i.covers(event.resource, event.action))
        };
        Self { events, of_others: ClusterEvent::all().filter(of_others).collect(), all }
    }

    /// For a plugin that does not say: whatever kube-scheduler counts as any event, and the custom kinds that it reads.
    fn any(kinds: &[&'static ApiResource]) -> Self {
        let resources = [
            EventResource::Pod,
            EventResource::Node,
            EventResource::PersistentVolume,
            EventResource::PersistentVolumeClaim,
            EventResource::CsiNode,
            EventResource::CsiDriver,
            EventResource::CsiStorageCapacity,
            EventResource::StorageClass,
            EventResource::ResourceClaim,
            EventResource::DeviceClass,
        ];
        let every = |resource| {
            EventInterest::new(resource, [ActionType::Add, ActionType::Update, ActionType::Delete])
        };
        let custom = kinds.iter().map(|api| EventResource::Custom(api));
        Self::new(resources.into_iter().chain(custom).map(every).collect())
    }

    fn of(plugin: &Plugin) -> Self {
        match &plugin.requeue {
            Some(requeue) => Self::new(requeue.events()),
            None => Self::any(&plugin.kinds),
        }
    }

    /// The kinds of events.
    pub fn events(&self) -> &EventSet {
        &self.events
    }

    /// The kinds of events that happen to other pods before they are bound.
    pub fn of_others(&self) -> &EventSet {
        &self.of_others
    }

    /// Whether a change can make a pod schedulable.
    pub fn helps(&self, cluster: &Cluster, event: ClusterEvent, pod: &Pod, change: &Change<'_>) -> bool {
        let helps = |i: &EventInterest| i.helps(cluster, event.resource, event.action, pod, change);
        self.events.contains(event) && self.all.iter().any(helps)
    }

    /// Whether what happens to another pod before it is bound can make a pod schedulable.
    pub fn other_helps(
        &self,
        cluster: &Cluster,
        event: ClusterEvent,
        pod: &Pod,
        change: &Change<'_>,
    ) -> bool {
        let helps =
            |i: &EventInterest| i.of_others && i.helps(cluster, event.resource, event.action, pod, change);
        self.of_others.contains(event) && self.all.iter().any(helps)
    }
}

/// What a PreEnqueue plugin sees.
#[derive(Clone, Copy)]
pub struct QueueView<'a> {
    /// Nodes, the pods on them, and every other object that is watched.
    pub cluster: &'a Cluster,
    /// The pods that have no node yet, the one that is asked about among them.
    pub pending: &'a dyn PendingPods,
}

/// What a profile has to say about waiting pods.
pub struct QueueRules {
    scheduler_name: Name,
    sort: Arc<dyn QueueSort>,
    pre_enqueue: Vec<(Name, Arc<dyn PreEnqueue>)>,
    interests: BTreeMap<Name, Interests>,
    any: Interests,
}

impl QueueRules {
    pub(crate) fn new(
        scheduler_name: Name,
        sort: Arc<dyn QueueSort>,
        pre_enqueue: Vec<(Name, Arc<dyn PreEnqueue>)>,
        plugins: &BTreeMap<Name, Plugin>,
    ) -> Self {
        let can_refuse = plugins.iter().filter(|(_, plugin)| plugin.can_refuse());
        let interests = can_refuse.map(|(name, plugin)| (name.clone(), Interests::of(plugin))).collect();
        Self { scheduler_name, sort, pre_enqueue, interests, any: Interests::any(&[]) }
    }

    /// The scheduler name that pods ask for the profile by.
    pub fn scheduler_name(&self) -> &Name {
        &self.scheduler_name
    }

    /// Orders the queue.
    pub fn sort(&self) -> &Arc<dyn QueueSort> {
        &self.sort
    }

    /// Whether a pod may enter the queue. Who held it back before is asked first.
    pub fn pre_enqueue(
        &self,
        view: &QueueView<'_>,
        pod: &Pod,
        held_by: Option<&Name>,
    ) -> Result<(), Rejection> {
        let held_it = |(name, _): &&(Name, _)| Some(name) == held_by;
        let first = self.pre_enqueue.iter().filter(held_it);
        let others = self.pre_enqueue.iter().filter(|plugin| !held_it(plugin));
        first.chain(others).try_for_each(|(name, plugin)| {
            plugin.pre_enqueue(view, pod).map_err(|status| Rejection { plugin: name.clone(), status })
        })
    }

    /// The events that can help, by the plugin that refused.
    pub fn all_interests(&self) -> impl Iterator<Item = (&Name, &Interests)> {
        self.interests.iter()
    }

    /// The events that help pods which a plugin refused; any, if the profile does not know the plugin.
    pub fn interests(&self, plugin: &str) -> &Interests {
        self.interests.get(plugin).unwrap_or(&self.any)
    }

    /// What happens to pods before they are bound, as far as any of the profile's plugins asks for it on behalf of others.
    pub fn events_of_others(&self) -> EventSet {
        (self.interests.values()).fold(EventSet::default(), |all, interests| all.union(&interests.of_others))
    }

    /// The events that any of the profile's plugins asks for.
    pub fn events(&self) -> EventSet {
        (self.interests.values()).fold(EventSet::default(), |all, interests| all.union(&interests.events))
    }
}
