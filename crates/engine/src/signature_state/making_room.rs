//! Nodes that are kept for others, and room that is made by evicting pods.

use supercargo_framework::{
    fast::FilterPart,
    preemption::{Nomination, Nominations, NotNominated, Resolvable},
    profile::{PreFilterEnd, PreFiltered, Profile, ProfileRunner},
};
use supercargo_model::{Cluster, NodeId, Pod};

use super::SignatureState;
use crate::{cluster_state::ClusterState, room::Room};

impl SignatureState {
    /// Whether every filter looks at one node at a time, for all that was noted so far.
    fn is_local(&self) -> bool {
        self.filters.iter().all(|(_, filter)| match filter {
            FilterPart::Fixed(_) | FilterPart::ByNode(_) => true,
            FilterPart::ByDomain(filter) => filter.is_idle(),
            FilterPart::Opaque(_) => false,
        })
    }

    /// Forgets what is known about making room.
    pub(crate) fn forget_room(&mut self) {
        if self.room.take().is_some() {
            // It may have come from there why nodes are closed.
            self.refusals = None;
        }
    }

    /// Brings what is known about nodes that are kept for others up to date, for a pod that has no claim to any; `None` if that
    /// cannot be known for one node at a time.
    pub(crate) fn keep_room(
        &mut self,
        profile: &Profile,
        cluster: &Cluster,
        nominations: &Nominations,
        pod: &Pod,
    ) -> Option<()> {
        if !self.is_local() || nominations.node_of(&pod.uid).is_some() {
            self.forget_room();
            return None;
        }
        let mut room = self.room.take().unwrap_or_default();
        if !room.is_current(cluster, nominations) {
            let Ok(PreFilterEnd::Go(PreFiltered { state, nodes: None, .. })) =
                profile.pre_filter(cluster, pod)
            else {
                self.refusals = None;
                return None;
            };
            let Some(changed) = room.catch_up(profile, cluster, nominations, &state, pod) else {
                self.refusals = None;
                return None;
            };
            self.unsure.extend(changed);
        }
        self.room = Some(room);
        Some(())
    }

    /// The open nodes that are kept for others.
    pub(crate) fn kept_free(&self) -> impl Iterator<Item = NodeId> {
        let kept = self.room.iter().flat_map(Room::kept);
        kept.filter(|node| self.is_open(*node))
    }

    /// Whether something is known about nodes that are kept for others.
    pub(crate) fn knows_room(&self) -> bool {
        self.room.is_some()
    }

    /// Looks for room, with what is kept about nodes that were tried before; `None` if plugins must be asked as ever. No node
    /// is open but those that are kept for others, and [`Self::keep_room`] was called.
    pub(crate) fn make_room(
        &mut self,
        profile: &Profile,
        state: &ClusterState,
        pod: &Pod,
        seed: u64,
    ) -> Option<Result<Nomination, NotNominated>> {
        let ClusterState { cluster, nominations } = state;
        let Ok(PreFilterEnd::Go(PreFiltered { state, nodes: None, .. })) = profile.pre_filter(cluster, pod)
        else {
            return None;
        };
        let in_order = self.refusals(cluster)?.resolvable_among(cluster.order());
        let mut dry_runs = std::mem::take(&mut self.room.as_mut()?.dry_runs);
        let resolvable = Resolvable {
            count: in_order.len(),
            nodes: &|| in_order.clone(),
            was_pre_filtered_by: &|plugin| profile.has_pre_filter_plugin(plugin),
        };
        let runner = ProfileRunner { profile, cluster, nominations, state: &state, seed, adviser: None };
        let made = profile.post_filter_again(&runner, pod, &resolvable, &in_order, &mut dry_runs);
        self.room.as_mut()?.dry_runs = dry_runs;
        made
    }
}
