//! The extension points: what a plugin can take part in. A type may serve several.

use std::{
    any::Any,
    collections::BTreeSet,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use supercargo_model::{
    Cluster, Key, Name, NodeId, NodeInfo, Pod,
    object::{Kind, Object},
};

use crate::{
    assumed::ReserveCycle,
    details::{Detail, RefusalKind},
    event::EventInterest,
    handle::Effect,
    preemption::{
        DryRuns, FilterRunner, FollowUp, NodeVerdicts, Nomination, NotNominated, PreemptionCycle, Resolvable,
    },
    queueing::QueueView,
    status::{Status, Verdict},
};

/// The lowest score after normalizing.
pub const MIN_SCORE: i64 = 0;
/// The highest score after normalizing.
pub const MAX_SCORE: i64 = 100;

/// What a plugin works out for a pod before the nodes are looked at, and reads again at every node.
///
/// Preemption tries "what if" on a copy, so it can be cloned.
pub struct Prepared(Option<Box<dyn CycleData>>);

impl Prepared {
    /// Keeps a plugin's own data.
    pub fn new<T: Clone + Send + Sync + 'static>(data: T) -> Self {
        Self(Some(Box::new(data)))
    }

    /// There is nothing to keep.
    pub fn nothing() -> Self {
        Self(None)
    }

    /// The data, as the type it was kept as. An error if the step that makes it was switched off.
    pub fn get<T: 'static>(&self) -> Result<&T, Status> {
        let data = self.0.as_deref().and_then(|d| d.as_any().downcast_ref());
        data.ok_or_else(nothing_prepared::<T>)
    }

    /// The data, to change it.
    pub fn get_mut<T: 'static>(&mut self) -> Result<&mut T, Status> {
        let data = self.0.as_deref_mut().and_then(|d| d.as_any_mut().downcast_mut());
        data.ok_or_else(nothing_prepared::<T>)
    }
}

fn nothing_prepared<T>() -> Status {
    let name = std::any::type_name::<T>().rsplit("::").next();
    Status::error(format!(
        "nothing was prepared for this step ({}): its preparing step (preFilter or preScore) is disabled",
        name.unwrap_or_default()
    ))
}

impl Clone for Prepared {
    fn clone(&self) -> Self {
        Self(self.0.as_deref().map(CycleData::boxed_clone))
    }
}

trait CycleData: Send + Sync {
    fn boxed_clone(&self) -> Box<dyn CycleData>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Clone + Send + Sync + 'static> CycleData for T {
    fn boxed_clone(&self) -> Box<dyn CycleData> {
        Box::new(self.clone())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Says whether a pod may enter the queue at all. One that is refused is asked about again after the events that the plugin
/// asks for ([`Requeue`], also for [what happens to others](EventInterest::of_others)), and when it is
/// [told to](crate::handle::Handle::look_again).
pub trait PreEnqueue: Send + Sync {
    /// Refuses a pod that must wait.
    fn pre_enqueue(&self, view: &QueueView<'_>, pod: &Pod) -> Verdict;
}

/// A pod in the queue.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    /// The pod.
    pub pod: Arc<Pod>,
    /// Its place in the order of arrival.
    pub arrival: u64,
}

/// Orders the queue. There is exactly one.
pub trait QueueSort: Send + Sync {
    /// Whether one pod is to be scheduled before another.
    fn before(&self, one: &QueuedPod, other: &QueuedPod) -> bool;
}

/// What a plugin finds before the nodes are looked at.
pub enum PreFilterOutcome {
    /// The plugin has nothing to say about this pod; its Filter is not called.
    Skip,
    /// The plugin goes on.
    Go {
        /// The only nodes worth looking at, by name; `None` for all.
        nodes: Option<BTreeSet<Name>>,
        /// What Filter will read.
        prepared: Prepared,
    },
}

impl PreFilterOutcome {
    /// Goes on with all nodes.
    pub fn go<T: Clone + Send + Sync + 'static>(data: T) -> Self {
        Self::Go { nodes: None, prepared: Prepared::new(data) }
    }
}

/// Works out once for a pod what Filter needs, and may refuse the pod or narrow the nodes.
pub trait PreFilter: Send + Sync {
    /// Looks at the pod and the cluster.
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status>;

    /// Brings what was prepared up to date as if a pod were on a node as well.
    fn add_pod(&self, _: &mut Prepared, _pod: &Pod, _added: &Pod, _node: &NodeInfo) -> Verdict {
        Ok(())
    }

    /// Brings what was prepared up to date as if a pod were gone from a node.
    fn remove_pod(&self, _: &mut Prepared, _pod: &Pod, _removed: &Pod, _node: &NodeInfo) -> Verdict {
        Ok(())
    }
}

/// Says whether a pod can run on a node.
pub trait Filter: Send + Sync {
    /// Looks at one node, which may differ from the cluster's in the pods on it.
    fn filter(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict;

    /// All that is in the way of the pod on a node that was refused, with numbers and names, for whoever asks why. Without
    /// any, the reasons of the refusal have to do.
    fn details(&self, _prepared: &Prepared, _cluster: &Cluster, _pod: &Pod, _node: &NodeInfo) -> Vec<Detail> {
        Vec::new()
    }

    /// What the pod is allotted on a node that will do, such as devices, by name; for whoever asks.
    fn allotments(
        &self,
        _prepared: &Prepared,
        _cluster: &Cluster,
        _pod: &Pod,
        _node: &NodeInfo,
    ) -> Vec<Detail> {
        Vec::new()
    }

    /// What tells a refused node from others that were refused for the same reason, in a summary over many. All of them are
    /// asked about: it should cost no more than the refusal did.
    fn kinds(
        &self,
        _prepared: &Prepared,
        _cluster: &Cluster,
        _pod: &Pod,
        _node: &NodeInfo,
    ) -> Vec<RefusalKind> {
        Vec::new()
    }
}

/// Called when no node is left, to make room.
pub trait PostFilter: Send + Sync {
    /// Looks for a node where room could be made. A plain [`Status`] leaves an earlier nomination of the pod alone.
    fn post_filter(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated>;

    /// Whether it makes room by evicting pods: that it looks for some is counted.
    fn preempts(&self) -> bool {
        false
    }

    /// Begins to make the room that this plugin has found for a pod. What takes time is an effect of its own.
    fn preempt(&self, _cycle: &mut dyn PreemptionCycle, _pod: &Arc<Pod>, _nomination: &Nomination) {}

    /// Begins with what this plugin does about a pod that fits nowhere. What takes time is an effect of its own.
    fn follow_up(&self, _pod: &Arc<Pod>, _follow_up: &FollowUp) {}

    /// Why there is no such node, if that follows without trying any; `None` if it must be tried. The pod has no claim to a
    /// node, and nobody is ahead of it anywhere.
    fn foregone(&self, _cluster: &Cluster, _pod: &Pod, _resolvable: &Resolvable<'_>) -> Option<NotNominated> {
        None
    }

    /// As [`Self::post_filter`], where every filter looks at one node at a time: what came of trying nodes is kept for the next
    /// pod of the template. These are the nodes on which evicting pods could help, in the cluster's order; the pod has no
    /// claim to a node. `None` if it must be tried without that.
    fn post_filter_again(
        &self,
        _runner: &dyn FilterRunner,
        _pod: &Pod,
        _resolvable: &[NodeId],
        _dry_runs: &mut DryRuns,
    ) -> Option<Result<Nomination, NotNominated>> {
        None
    }

    /// How many pods the plugin keeps something for at the moment. With the last pod that is none.
    fn kept(&self) -> usize {
        0
    }
}

/// What a plugin finds before the feasible nodes are scored.
pub enum PreScoreOutcome {
    /// The plugin does not score this pod.
    Skip,
    /// The plugin scores, and reads this.
    Go(Prepared),
}

impl PreScoreOutcome {
    /// The plugin scores, and reads this.
    pub fn go<T: Clone + Send + Sync + 'static>(data: T) -> Self {
        Self::Go(Prepared::new(data))
    }
}

/// Works out once for a pod what Score needs, or skips its plugin.
pub trait PreScore: Send + Sync {
    /// Looks at the feasible nodes. An error ends this pod's cycle.
    fn pre_score(&self, cluster: &Cluster, pod: &Pod, nodes: &[&NodeInfo])
    -> Result<PreScoreOutcome, Status>;
}

/// What a plugin looks at when it scores.
#[derive(Clone, Copy)]
pub struct ScoreInput<'a> {
    /// What PreScore prepared.
    pub prepared: &'a Prepared,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The pod to be placed.
    pub pod: &'a Pod,
    /// The feasible nodes.
    pub nodes: &'a [&'a NodeInfo],
}

/// Scores all feasible nodes in one call.
pub trait Score: Send + Sync {
    /// Fills the column: one score for each of the nodes, in their order. Any range, if the plugin normalizes.
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict;
}

/// Scores one node at a time: the convenient form of [`Score`].
pub trait ScoreNode: Send + Sync {
    /// The score of one node.
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status>;
}

impl<T: ScoreNode> Score for T {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        for (score, node) in column.iter_mut().zip(input.nodes) {
            *score = self.score_node(input, node)?;
        }
        Ok(())
    }
}

/// Brings a plugin's scores into 0..=100, seeing all of them.
pub trait NormalizeScore: Send + Sync {
    /// Changes the column in place. See [`crate::normalize`] for the usual ways.
    fn normalize(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict;
}

/// Keeps what a pod needs on its node for it.
pub trait Reserve: Send + Sync {
    /// The pod is about to be placed on the node. What others have to see as given is [assumed](ReserveCycle::assume).
    fn reserve(&self, cycle: &mut ReserveCycle<'_>, pod: &Arc<Pod>, node: &Name) -> Verdict;
    /// It will not be placed there after all. Must not fail, and may be called without a reserve before it. What was
    /// assumed is taken back without the plugin's doing.
    fn unreserve(&self, pod: &Pod, node: &str);

    /// How many pods the plugin keeps something for at the moment. With the last pod that is none.
    fn kept(&self) -> usize {
        0
    }
}

/// Lets a waiting pod through, or refuses it. Clones are the same; the first answer counts.
#[derive(Clone, Debug, Default)]
pub struct PermitHandle(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    verdict: Option<Verdict>,
    listener: Option<Waker>,
}

impl PermitHandle {
    /// Lets the pod through.
    pub fn allow(&self) {
        self.say(Ok(()));
    }

    /// Refuses the pod.
    pub fn refuse(&self, status: Status) {
        self.say(Err(status));
    }

    fn say(&self, verdict: Verdict) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.verdict.get_or_insert(verdict);
        if let Some(listener) = said.listener.take() {
            listener.wake();
        }
    }
}

impl Future for PermitHandle {
    type Output = Verdict;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Verdict> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &said.verdict {
            Some(verdict) => Poll::Ready(verdict.clone()),
            None => {
                said.listener = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// What Permit says.
pub enum PermitOutcome {
    /// Go on.
    Granted,
    /// Wait until somebody lets it through.
    Wait {
        /// How long at most; then the pod is refused.
        timeout: Duration,
        /// Keep a clone of it to let the pod through.
        handle: PermitHandle,
    },
}

/// Can hold a placed pod back before it is bound. Decided in the scheduling cycle; who waits holds up nobody else.
pub trait Permit: Send + Sync {
    /// Lets the pod through, refuses it, or makes it wait. The cluster has the pod on the node already.
    fn permit(&self, cluster: &Cluster, pod: &Arc<Pod>, node: &Name) -> Result<PermitOutcome, Status>;
}

/// Does what must be done before a pod is bound, beside the deciding task: it may take its time.
pub trait PreBind: Send + Sync {
    /// Whether there is anything to do for the pod. If there is, the pod's status names the node meanwhile.
    fn is_needed(&self, _pod: &Pod, _node: &str) -> bool {
        true
    }

    /// Prepares the node for the pod.
    fn pre_bind<'a>(&'a self, pod: &'a Arc<Pod>, node: &'a Name) -> Effect<'a, Verdict>;
}

/// The order to bind a pod to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The pod's namespace.
    pub namespace: Name,
    /// The pod's name.
    pub name: Name,
    /// The pod's identity: a pod that was recreated since must not be bound.
    pub uid: Name,
    /// The node.
    pub node: Name,
}

impl Binding {
    /// The order to bind a pod.
    pub fn new(pod: &Pod, node: &Name) -> Self {
        Self {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
            node: node.clone(),
        }
    }
}

/// What a Bind plugin did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindOutcome {
    /// The pod is bound.
    Done,
    /// The plugin leaves this pod to the next one.
    Skip,
}

/// Binds a pod to a node.
pub trait Bind: Send + Sync {
    /// Binds the pod, or leaves it to the next plugin.
    fn bind<'a>(&'a self, pod: &'a Arc<Pod>, node: &'a Name) -> Effect<'a, Result<BindOutcome, Status>>;
}

/// Told after a pod was bound.
pub trait PostBind: Send + Sync {
    /// The pod is bound.
    fn post_bind<'a>(&'a self, pod: &'a Arc<Pod>, node: &'a Name) -> Effect<'a, ()>;
}

/// Says which events in the cluster can make a pod schedulable that the plugin refused.
pub trait Requeue: Send + Sync {
    /// The events, each with a closer look at whether it helps a given pod.
    fn events(&self) -> Vec<EventInterest>;
}

/// What the API server tells.
#[derive(Clone, Copy, Debug)]
pub enum Observed<'a> {
    /// An object is there, or has changed.
    Is {
        /// The object.
        object: &'a Object,
        /// Its identity.
        uid: &'a Name,
    },
    /// An object is gone.
    Gone {
        /// Its kind.
        kind: Kind,
        /// Namespace and name.
        key: &'a Key,
    },
    /// Everything has been read for the first time, and an object that is watched for the plugin is not there.
    Missing {
        /// Its kind.
        kind: Kind,
        /// Namespace and name.
        key: &'a Key,
    },
}

/// Told what the API server tells, before the cluster shows it and before pods are woken by it.
pub trait Observe: Send + Sync {
    /// Single objects that are watched for the plugin, besides the kinds that every scheduler watches.
    fn watched(&self) -> Vec<(Kind, Key)> {
        Vec::new()
    }

    /// Looks at what is told. Short: nobody is scheduled meanwhile.
    fn observe(&self, scheduler_name: &Name, observed: &Observed<'_>);
}

/// Told that a pod's cycle begins. What a plugin takes over from outside, such as a new version of itself, it takes over
/// here, so that a whole cycle sees the same.
pub trait CycleStart: Send + Sync {
    /// A cycle begins. Whether the plugin judges otherwise from here on.
    fn cycle_starts(&self) -> bool;
}
