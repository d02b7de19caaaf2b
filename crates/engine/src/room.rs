//! What is known about making room for pods of one signature, where every filter looks at one node at a time: what nodes say
//! with the pods there that are ahead, and what came of evicting others in a dry run.

use std::collections::BTreeMap;

use supercargo_framework::{
    Code,
    preemption::{DryRuns, FilterState, Nominations, Rejection},
    profile::Profile,
};
use supercargo_model::{Cluster, NodeId, Pod};

/// What is known, and of when.
#[derive(Default)]
pub(crate) struct Room {
    /// The revisions of the nominations and of the disruption budgets; `None` if nothing is known so far.
    known_at: Option<(u64, u64)>,
    /// For the nodes that are kept for others: why they are refused with those there; `None` if they are not.
    nominated: BTreeMap<NodeId, Option<Rejection>>,
    /// The nodes whose pods have changed since.
    changed: Vec<NodeId>,
    /// By the place of the plugin that tries to make room.
    pub(crate) dry_runs: Vec<DryRuns>,
}

impl Room {
    /// Pods have come to a node or left it.
    pub(crate) fn note(&mut self, nodes: &[NodeId]) {
        self.changed.extend_from_slice(nodes);
    }

    /// Brings it up to date, and tells the nodes for which something may have changed; `None` if a plugin failed.
    pub(crate) fn catch_up(
        &mut self,
        profile: &Profile,
        cluster: &Cluster,
        nominations: &Nominations,
        state: &FilterState,
        pod: &Pod,
    ) -> Option<Vec<NodeId>> {
        let (revision, budgets) = (nominations.revision(), cluster.budget_revision());
        if self.known_at.is_some_and(|(_, known)| known != budgets) {
            self.dry_runs.clear();
        }
        let changed = (self.known_at).and_then(|(known, _)| nominations.changed_since(known));
        let mut nodes = std::mem::take(&mut self.changed);
        match changed {
            Some(names) => nodes.extend(names.filter_map(|name| Some(cluster.node(name)?.id))),
            None => {
                self.dry_runs.clear();
                nodes.extend(self.nominated.keys());
                nodes.extend(nominations.nodes_ahead_of(pod).filter_map(|name| Some(cluster.node(name)?.id)));
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
        for id in &nodes {
            self.dry_runs.iter_mut().for_each(|dry_runs| dry_runs.forget(*id));
            let node = cluster.node_at(*id);
            self.nominated.remove(id);
            if nominations.ahead_of(pod, node.name()).next().is_some() {
                let refused = profile.filter_with_nominated(state, cluster, nominations, pod, node).err();
                if matches!(&refused, Some(Rejection { status, .. }) if status.code == Code::Error) {
                    self.known_at = None;
                    return None;
                }
                self.nominated.insert(*id, refused);
            }
        }
        self.known_at = Some((revision, budgets));
        Some(nodes)
    }

    /// Whether it is up to date.
    pub(crate) fn is_current(&self, cluster: &Cluster, nominations: &Nominations) -> bool {
        self.known_at == Some((nominations.revision(), cluster.budget_revision())) && self.changed.is_empty()
    }

    /// Why a node is refused with the pods there that are ahead; `None` if it is not, or there are none.
    pub(crate) fn refusal(&self, node: NodeId) -> Option<&Rejection> {
        self.nominated.get(&node)?.as_ref()
    }

    /// The nodes that are refused because of pods that are ahead, or with them.
    pub(crate) fn kept(&self) -> impl Iterator<Item = NodeId> {
        self.nominated.iter().filter(|(_, refused)| refused.is_some()).map(|(node, _)| *node)
    }
}
