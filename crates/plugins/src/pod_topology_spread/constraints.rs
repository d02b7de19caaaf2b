//! The constraints that hold for a pod: its own, or the defaults of the profile.

use std::{collections::HashMap, sync::Arc};

use supercargo_model::{
    Cluster, Key, Name, NodeInfo, Pod, PodSpec,
    bits::Bits,
    pod::{NodeInclusionPolicy, SpreadConstraint, WhenUnsatisfiable},
    pod_owner::PodOwnerKind,
    selection::{FEW_COMPARISONS, comparisons},
    selector::{Requirement, Selector},
    taint::find_untolerated,
};

use crate::required_nodes::RequiredNodes;

/// A constraint, ready to count by.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) max_skew: i32,
    pub(super) topology_key: Name,
    pub(super) selector: Selector,
    pub(super) min_domains: i32,
    affinity_policy: NodeInclusionPolicy,
    taints_policy: NodeInclusionPolicy,
    /// Which bound pods a long selector selects, by the address of their spec: known for one cycle, while no spec can go and
    /// leave its address to another.
    known: HashMap<usize, bool>,
}

impl Constraint {
    fn new(written: &SpreadConstraint, selector: Selector) -> Self {
        Self {
            max_skew: written.max_skew,
            topology_key: written.topology_key.clone(),
            selector,
            min_domains: written.min_domains.unwrap_or(1),
            affinity_policy: (written.node_affinity_policy).unwrap_or(NodeInclusionPolicy::Honor),
            taints_policy: (written.node_taints_policy).unwrap_or(NodeInclusionPolicy::Ignore),
            known: HashMap::new(),
        }
    }

    /// Asks a long selector about all bound pods at once, rather than pod by pod.
    pub(super) fn learn(&mut self, cluster: &Cluster) {
        let Selector::All(requirements) = &self.selector else {
            return;
        };
        if comparisons(requirements) > FEW_COMPARISONS {
            let mut selected = Bits::default();
            cluster.groups().selection().select(&self.selector, &mut selected);
            let groups = (0..cluster.groups().places()).filter_map(|i| Some((i, cluster.groups().get(i)?)));
            self.known = groups.map(|(i, group)| (address(&group.spec), selected.contains(i))).collect();
        }
    }

    /// Whether it counts a pod with this spec.
    pub(super) fn selects(&self, pod: &Arc<PodSpec>) -> bool {
        let known = if self.known.is_empty() { None } else { self.known.get(&address(pod)) };
        known.copied().unwrap_or_else(|| self.selector.matches(&pod.labels))
    }

    /// Whether it counts a pod for one of a namespace.
    pub(super) fn counts(&self, pod: &Pod, namespace: &str) -> bool {
        self.can_count(pod, namespace) && self.selects(&pod.spec)
    }

    /// Whether it counts a pod if its selector selects it. An empty selector selects none here.
    pub(super) fn can_count(&self, pod: &Pod, namespace: &str) -> bool {
        !pod.terminating && &*pod.namespace == namespace && !self.selector.is_empty()
    }

    /// Whether the pods on a node count.
    pub(super) fn includes(&self, required: &RequiredNodes, pod: &PodSpec, node: &NodeInfo) -> bool {
        let honor = NodeInclusionPolicy::Honor;
        (self.affinity_policy != honor || required.contain(pod, node))
            && (self.taints_policy != honor
                || find_untolerated(&node.node.taints, &pod.tolerations).is_none())
    }

    /// Whether the pods on every node count.
    pub(super) fn includes_all(&self, pod: &PodSpec) -> bool {
        let requires_nothing = pod.node_selector.is_empty() && pod.node_affinity.required.is_none();
        (self.affinity_policy != NodeInclusionPolicy::Honor || requires_nothing) && !self.honors_taints()
    }

    /// Whether taints decide which nodes count.
    pub(super) fn honors_taints(&self) -> bool {
        self.taints_policy == NodeInclusionPolicy::Honor
    }
}

fn address(spec: &Arc<PodSpec>) -> usize {
    Arc::as_ptr(spec) as usize
}

/// A pod's own constraints of one action.
pub(super) fn own(pod: &PodSpec, action: WhenUnsatisfiable) -> Vec<Constraint> {
    (pod.spread_constraints.iter())
        .filter(|written| written.when_unsatisfiable == action)
        .map(|written| {
            let values = (written.match_label_keys.iter()).filter_map(|key| {
                let value = pod.labels.get(key)?;
                Some(Requirement::is_in(key.clone(), [value.clone()]))
            });
            Constraint::new(written, written.label_selector.clone().and(values))
        })
        .collect()
}

/// The default constraints of one action, for the pods that the pod's services and its owner select. None, if nothing
/// selects it.
pub(super) fn defaults(
    cluster: &Cluster,
    pod: &Pod,
    all: &[SpreadConstraint],
    action: WhenUnsatisfiable,
) -> Vec<Constraint> {
    let mut chosen = all.iter().filter(|c| c.when_unsatisfiable == action).peekable();
    if chosen.peek().is_none() {
        return Vec::new();
    }
    let selector = siblings(cluster, pod);
    if selector.is_empty() {
        return Vec::new();
    }
    chosen.map(|written| Constraint::new(written, selector.clone())).collect()
}

/// Selects the pods that belong together with this one.
fn siblings(cluster: &Cluster, pod: &Pod) -> Selector {
    let services =
        (cluster.services(&pod.namespace)).filter(|service| service.selector.matches(&pod.spec.labels));
    let mut requirements: Vec<Requirement> = Vec::new();
    for service in services {
        if let Selector::All(more) = &service.selector {
            merge(&mut requirements, more);
        }
    }
    let owner = pod.spec.controller.as_ref();
    let found = owner.and_then(|owner| {
        let kind = match (&*owner.api_version, &*owner.kind) {
            ("v1", "ReplicationController") => PodOwnerKind::ReplicationController,
            ("apps/v1", "ReplicaSet") => PodOwnerKind::ReplicaSet,
            ("apps/v1", "StatefulSet") => PodOwnerKind::StatefulSet,
            _ => return None,
        };
        let key = Key::new(pod.namespace.clone(), owner.name.clone());
        Some((kind, &cluster.pod_owner(kind, &key)?.selector))
    });
    match found {
        // Plain maps are merged: the last one's value holds.
        Some((PodOwnerKind::ReplicationController, Selector::All(more))) => {
            merge(&mut requirements, more);
        }
        Some((_, Selector::All(more))) => requirements.extend(more.iter().cloned()),
        _ => {}
    }
    Selector::All(requirements)
}

/// Merges two maps of labels, written as requirements.
fn merge(requirements: &mut Vec<Requirement>, more: &[Requirement]) {
    requirements.retain(|old| !more.iter().any(|new| new.key == old.key));
    requirements.extend(more.iter().cloned());
}
