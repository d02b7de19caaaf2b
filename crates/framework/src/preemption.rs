//! What PostFilter plugins see: why each node was refused, and a way to ask "what if".

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use supercargo_model::{Cluster, Key, Name, NodeId, NodeInfo, Pod};

use crate::{
    handle::{Verb, View},
    points::Prepared,
    status::{Code, Status, Verdict},
};

/// Who refused a node, and why.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rejection {
    /// The plugin's name.
    pub plugin: Name,
    /// Its answer.
    pub status: Status,
}

/// Why each node was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeVerdicts {
    /// The nodes that were looked at.
    pub rejected: BTreeMap<NodeId, Rejection>,
    /// What holds for every other node.
    pub others: Status,
}

impl Default for NodeVerdicts {
    fn default() -> Self {
        Self { rejected: BTreeMap::new(), others: Status::new(Code::UnschedulableAndUnresolvable, []) }
    }
}

impl NodeVerdicts {
    /// Why a node was refused.
    pub fn of(&self, node: NodeId) -> &Status {
        self.rejected.get(&node).map_or(&self.others, |rejection| &rejection.status)
    }

    /// How many nodes were refused for each reason, in kube-scheduler's order and words.
    pub fn summary(&self, node_count: usize) -> String {
        // By list first: thousands of nodes may share one of thousands of reasons.
        let mut lists: HashMap<*const Cow<'static, str>, (&Status, usize)> = HashMap::new();
        for Rejection { status, .. } in self.rejected.values() {
            lists.entry(status.reasons.as_ptr()).or_insert((status, 0)).1 += 1;
        }
        let others = node_count.saturating_sub(self.rejected.len());
        summary(lists.into_values().chain([(&self.others, others)]))
    }
}

/// How many nodes were refused for each reason, in kube-scheduler's order and words.
pub fn summary<'a>(refused: impl Iterator<Item = (&'a Status, usize)>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (status, nodes) in refused.filter(|(_, nodes)| *nodes > 0) {
        for reason in status.reasons.iter() {
            *counts.entry(reason).or_default() += nodes;
        }
    }
    let mut lines: Vec<String> = counts.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    // Sorted as texts: "10 …" comes before "2 …".
    lines.sort();
    lines.join(", ")
}

/// Nodes on which evicting pods could help a pod that fits nowhere.
pub struct Resolvable<'a> {
    /// How many there are.
    pub count: usize,
    /// Which they are.
    pub nodes: &'a dyn Fn() -> Vec<NodeId>,
    /// Whether a plugin is asked before nodes are looked at.
    pub was_pre_filtered_by: &'a dyn Fn(&str) -> bool,
}

/// The sentence that a pod is told when no node is left.
pub fn no_node_available(node_count: usize, reasons: &str) -> String {
    let mut message = format!("0/{node_count} nodes are available:");
    if !reasons.is_empty() {
        message.push_str(&format!(" {reasons}."));
    }
    message
}

/// Room that can be made for a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Nomination {
    /// The node.
    pub node: Name,
    /// The pods to evict there, the most important first.
    pub victims: Vec<Arc<Pod>>,
    /// The plugin that found it; known once the profile has asked it.
    pub plugin: Name,
    /// What another plugin does besides.
    pub follow_up: Option<FollowUp>,
}

impl Nomination {
    /// Room on a node for these victims.
    pub fn new(node: Name, victims: Vec<Arc<Pod>>) -> Self {
        Self { node, victims, plugin: Name::default(), follow_up: None }
    }
}

/// What a PostFilter plugin can do when the room that it found is to be made.
pub trait PreemptionCycle {
    /// The scheduler's cache.
    fn view(&self) -> View<'_>;

    /// Calls the binding of a pod off that is under way, in the name of a plugin: the pod goes back to the queue. False if
    /// there is none, or it is too late for that.
    fn call_off(&mut self, uid: &str, plugin: &str) -> bool;

    /// Takes back the nominated node that a pod's status names.
    fn clear_nomination(&mut self, pod: &Arc<Pod>);
}

/// What a plugin does about a pod that fits nowhere, instead of making room: something is written about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUp {
    /// The plugin that does it.
    pub plugin: Name,
    /// What is done.
    pub verb: Verb,
    /// To which object.
    pub key: Key,
    /// Its identity.
    pub uid: Name,
}

/// Why no room can be made for a pod, and what becomes of the nomination that it may have from before.
#[derive(Clone, Debug, PartialEq)]
pub struct NotNominated {
    /// Why.
    pub status: Status,
    /// An earlier nomination is taken back: there is nothing to be had by waiting for it.
    pub clears: bool,
    /// What is done instead.
    pub follow_up: Option<FollowUp>,
}

impl NotNominated {
    /// No room can be made anywhere, so that an earlier nomination is of no use either.
    pub fn clearing(status: Status) -> Self {
        Self { status, clears: true, follow_up: None }
    }
}

impl From<Status> for NotNominated {
    fn from(status: Status) -> Self {
        Self { status, clears: false, follow_up: None }
    }
}

/// A node where room could be made, and at what cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The node.
    pub node: Name,
    /// The pods to evict there, the most important first.
    pub victims: Vec<Arc<Pod>>,
    /// How many of them a disruption budget protects.
    pub budget_violations: i64,
}

/// What came of trying to make room on nodes, for pods of one template: it holds until something on the node changes.
#[derive(Default)]
pub struct DryRuns(Vec<Option<Result<Candidate, Status>>>);

impl DryRuns {
    /// What came of a node, tried now if that is not known.
    pub fn of(
        &mut self,
        node: NodeId,
        attempt: impl FnOnce() -> Result<Candidate, Status>,
    ) -> &Result<Candidate, Status> {
        if node.index() >= self.0.len() {
            self.0.resize_with(node.index() + 1, || None);
        }
        self.0[node.index()].get_or_insert_with(attempt)
    }

    /// What came of a node, if it was tried.
    pub fn get(&self, node: NodeId) -> Option<&Result<Candidate, Status>> {
        self.0.get(node.index())?.as_ref()
    }

    /// Something on a node has changed.
    pub fn forget(&mut self, node: NodeId) {
        if let Some(known) = self.0.get_mut(node.index()) {
            *known = None;
        }
    }
}

/// Has a say in where room is made, once it is known where it could be.
pub trait Adviser {
    /// The candidates that are left, with whoever has to go there then; or why there can be none.
    fn narrow(&self, cluster: &Cluster, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, Status>;
}

/// What the PreFilter plugins prepared, one entry for each; `None` for a plugin that skipped itself.
#[derive(Clone, Default)]
pub struct FilterState(pub(crate) Vec<Option<Prepared>>);

/// Runs all filters on "what if" versions of nodes.
pub trait FilterRunner {
    /// The cluster.
    fn cluster(&self) -> &Cluster;

    /// A copy of what the filters prepared for the pod.
    fn state(&self) -> FilterState;

    /// Whether a plugin's PreFilter was asked in this cycle: none is after one that refuses the pod for good.
    fn was_pre_filtered_by(&self, plugin: &str) -> bool;

    /// Whether all filters agree, also if the more important pods nominated to the node come to run there.
    fn filter(&self, state: &FilterState, pod: &Pod, node: &NodeInfo) -> Result<(), Rejection>;

    /// Tells the filters that a pod was put on a node.
    fn add_pod(&self, state: &mut FilterState, pod: &Pod, added: &Pod, node: &NodeInfo) -> Verdict;

    /// Tells the filters that a pod was taken off a node.
    fn remove_pod(&self, state: &mut FilterState, pod: &Pod, removed: &Pod, node: &NodeInfo) -> Verdict;

    /// A number for choices that are otherwise equal.
    fn seed(&self) -> u64;

    /// What is left of the candidates when others have had their say.
    fn narrow(&self, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, Status>;
}

/// What becomes of a pod's claim to a node after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It stays what it is: what the pod's status says, or what is on its way there.
    Kept,
    /// Room is being made for it there.
    On(Name),
    /// It has none any more.
    Dropped,
}

/// How many changes of nominations are remembered.
const REMEMBERED_CHANGES: usize = 1024;

/// Pods for which room is being made, by node.
#[derive(Clone, Debug, Default)]
pub struct Nominations {
    by_node: BTreeMap<Name, Vec<Arc<Pod>>>,
    /// The node of each pod, by its uid.
    node_of: HashMap<Name, Name>,
    revision: u64,
    /// The nodes of the last changes.
    changed: VecDeque<Name>,
}

impl Nominations {
    /// Keeps a pod's claim to a node, instead of an earlier one. A pod that is bound needs none.
    pub fn nominate(&mut self, pod: Arc<Pod>, node: Name) {
        self.forget(&pod.uid);
        if pod.node.is_none() {
            self.note(node.clone());
            self.node_of.insert(pod.uid.clone(), node.clone());
            self.by_node.entry(node).or_default().push(pod);
        }
    }

    /// Honours the claim that a pod's status names, as after a restart; an earlier one is dropped.
    pub fn honour(&mut self, pod: Arc<Pod>) {
        match pod.nominated_node.clone() {
            Some(node) => self.nominate(pod, node),
            None => self.forget(&pod.uid),
        }
    }

    /// Does what an attempt has come to.
    pub fn settle(&mut self, pod: Arc<Pod>, claim: Claim) {
        match claim {
            Claim::Kept => match (pod.nominated_node.clone(), self.node_of.get(&pod.uid).cloned()) {
                (Some(node), _) | (None, Some(node)) => self.nominate(pod, node),
                (None, None) => {}
            },
            Claim::On(node) => self.nominate(pod, node),
            Claim::Dropped => self.forget(&pod.uid),
        }
    }

    /// Keeps the new version of a pod. A claim that its status has never named stays: the update may be older than it.
    pub fn update(&mut self, before: &Pod, after: Arc<Pod>) {
        let unwritten = before.nominated_node.is_none() && after.nominated_node.is_none();
        match self.node_of.get(&before.uid).filter(|_| unwritten).cloned() {
            Some(node) => self.nominate(after, node),
            None => self.honour(after),
        }
    }

    /// Drops a pod's claim.
    pub fn forget(&mut self, uid: &str) {
        // Asked about every pod that is placed, and mostly there are none.
        if self.node_of.is_empty() {
            return;
        }
        let Some(node) = self.node_of.remove(uid) else {
            return;
        };
        if let Some(pods) = self.by_node.get_mut(&node) {
            pods.retain(|pod| &*pod.uid != uid);
            if pods.is_empty() {
                self.by_node.remove(&node);
            }
        }
        self.note(node);
    }

    fn note(&mut self, node: Name) {
        self.revision += 1;
        if self.changed.len() == REMEMBERED_CHANGES {
            self.changed.pop_front();
        }
        self.changed.push_back(node);
    }

    /// The nodes whose nominations have changed since a revision; some may come more than once. `None` if that is too long
    /// ago to tell.
    pub fn changed_since(&self, revision: u64) -> Option<impl Iterator<Item = &Name>> {
        let changes = usize::try_from(self.revision.checked_sub(revision)?).ok()?;
        let first = self.changed.len().checked_sub(changes)?;
        Some(self.changed.range(first..))
    }

    /// The pods nominated to a node that are less important than one.
    pub fn less_important<'a>(&'a self, than: &'a Pod, node: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
        let nominated = self.by_node.get(node).into_iter().flatten();
        nominated.filter(|other| other.spec.priority < than.spec.priority)
    }

    /// The node that a pod has a claim to.
    pub fn node_of(&self, uid: &str) -> Option<&Name> {
        self.node_of.get(uid)
    }

    /// A pod with the node that it has a claim to, also if its status does not name it yet.
    pub fn named_in(&self, pod: &Arc<Pod>) -> Arc<Pod> {
        match self.node_of(&pod.uid) {
            Some(node) if pod.nominated_node.is_none() => {
                Arc::new(Pod { nominated_node: Some(node.clone()), ..(**pod).clone() })
            }
            _ => pod.clone(),
        }
    }

    /// A number that grows whenever a claim comes or goes.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many pods have a claim to a node.
    pub fn len(&self) -> usize {
        self.node_of.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_node.is_empty()
    }

    /// Whether there is a pod that another must leave room for.
    pub fn any_ahead_of(&self, pod: &Pod) -> bool {
        self.nodes_ahead_of(pod).next().is_some()
    }

    /// The nodes on which a pod must leave room for others.
    pub fn nodes_ahead_of<'a>(&'a self, pod: &'a Pod) -> impl Iterator<Item = &'a Name> {
        self.by_node.keys().filter(|node| self.ahead_of(pod, node).next().is_some())
    }

    /// The pods that another pod must leave room for on a node: not itself, and none less important.
    pub fn ahead_of<'a>(&'a self, pod: &'a Pod, node: &str) -> impl Iterator<Item = &'a Arc<Pod>> {
        (self.by_node.get(node).into_iter().flatten())
            .filter(|other| other.spec.priority >= pod.spec.priority && other.uid != pod.uid)
    }
}
