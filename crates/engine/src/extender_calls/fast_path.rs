//! Extenders on the fast path: the same calls and the same choice as in the reference cycle, from what is known about the pod's
//! signature. Nodes go by their places, in the cluster and in the call, and never by name.

use std::sync::Arc;

use supercargo_framework::vector::vectorized;
use supercargo_model::{Cluster, Name, NodeId};

use super::{ExtenderAnswers, ExtenderCall, Filtered, PlaceStep, Revision, SCALE, Said, interested};
use crate::{
    cycle::CycleInput,
    fast_path::{FastCycle, FastPath, Placement, pick_among},
    laps::{Lap, Laps},
    signature_state::Scope,
};

/// A place that is none: the node was not asked about.
const NOT_ASKED: u32 = u32::MAX;

/// The nodes of a call, by their places in the cluster, for as long as these mean the same nodes.
#[derive(Clone, Debug)]
pub(super) struct AskedPlaces {
    names: Arc<[Name]>,
    ids: Arc<[NodeId]>,
    invalidations: u64,
}

/// The nodes that the search has found, for as long as nothing changes.
#[derive(Clone, Debug)]
pub(super) struct FoundPlaces {
    at: Revision,
    ids: Arc<[NodeId]>,
    looked_at: usize,
}

impl AskedPlaces {
    fn is_current(&self, cluster: &Cluster) -> bool {
        self.invalidations == cluster.changes().invalidations()
    }
}

/// Memory that is used again from pod to pod.
#[derive(Default)]
pub(crate) struct ExtenderCallMemory {
    /// The nodes that were asked about last: often the same ones are asked about again.
    asked: Option<AskedPlaces>,
    /// By place in the cluster: the place in a call.
    by_node: Vec<u32>,
    /// The place in a call of each node that is left; not worked out where the nodes are those of the call, in its order.
    places: Vec<u32>,
    are_as_asked: bool,
    /// The totals of the nodes that are left, with the extenders' points.
    totals: Vec<i64>,
    /// The nodes that are left, if they are all that were found.
    all: Option<Arc<[NodeId]>>,
}

impl ExtenderCallMemory {
    /// The nodes that were found, kept: the same list as the last time if they are the same.
    fn keep_found(&mut self, found: &[NodeId]) -> Arc<[NodeId]> {
        let last = self.asked.as_ref().map(|asked| &asked.ids);
        let ids = last.filter(|ids| are_same(ids, found)).cloned().unwrap_or_else(|| found.into());
        self.all = Some(ids.clone());
        ids
    }

    /// The nodes that are left, to be asked about.
    fn ask_about(
        &mut self,
        cluster: &Cluster,
        found: &[NodeId],
        answers: &mut ExtenderAnswers,
    ) -> Arc<[Name]> {
        let ids = self.all.clone().unwrap_or_else(|| found.into());
        let same = |asked: &&AskedPlaces| asked.is_current(cluster) && Arc::ptr_eq(&asked.ids, &ids);
        let asked = match self.asked.as_ref().filter(same) {
            Some(asked) => asked.clone(),
            None => AskedPlaces {
                names: found.iter().map(|id| cluster.node_at(*id).name().clone()).collect(),
                ids,
                invalidations: cluster.changes().invalidations(),
            },
        };
        let names = asked.names.clone();
        answers.places.push(asked.clone());
        self.asked = Some(asked);
        names
    }

    /// Finds the place of each of the nodes in a call; `None` if places do not mean the same nodes any more.
    fn line_up(
        &mut self,
        cluster: &Cluster,
        found: &[NodeId],
        call: &Arc<[Name]>,
        answers: &ExtenderAnswers,
    ) -> Option<()> {
        let asked = answers.places.iter().find(|asked| Arc::ptr_eq(&asked.names, call))?;
        if !asked.is_current(cluster) {
            return None;
        }
        self.are_as_asked = self.all.as_ref().is_some_and(|all| Arc::ptr_eq(all, &asked.ids));
        if self.are_as_asked {
            return Some(());
        }
        self.places.clear();
        self.by_node.clear();
        self.by_node.resize(cluster.columns().len(), NOT_ASKED);
        for (place, id) in asked.ids.iter().enumerate() {
            self.by_node[id.index()] = place as u32;
        }
        self.places.extend(found.iter().map(|id| self.by_node[id.index()]));
        Some(())
    }

    /// Keeps the nodes that were asked about and passed, by their places in the call; without a word about that, all of them.
    fn keep(&mut self, found: &mut Vec<NodeId>, passed: Option<&[bool]>) {
        if self.are_as_asked {
            if passed.is_none_or(|passed| passed.len() >= found.len() && all(passed)) {
                return;
            }
            self.places.clear();
            self.places.extend(0..found.len() as u32);
            self.are_as_asked = false;
        }
        let passes = |place: usize| passed.is_none_or(|passed| passed.get(place) == Some(&true));
        let will_do = |place: &u32| *place != NOT_ASKED && passes(*place as usize);
        if self.places.iter().all(will_do) {
            return;
        }
        self.all = None;
        let mut places = self.places.iter();
        found.retain(|_| places.next().is_some_and(will_do));
        self.places.retain(will_do);
    }

    /// Adds an extender's points, which go by place in the call, to the totals of the nodes that are left.
    fn add_points(&mut self, points: &[i64], weight: i64) {
        let add = |sum: &mut i64, points: i64| {
            *sum = sum.saturating_add(points.saturating_mul(SCALE).saturating_mul(weight));
        };
        if self.are_as_asked {
            self.totals.iter_mut().zip(points).for_each(|(sum, points)| add(sum, *points));
            return;
        }
        for (sum, place) in self.totals.iter_mut().zip(&self.places) {
            add(sum, points.get(*place as usize).copied().unwrap_or(0));
        }
    }
}

/// Whether all are true. To stop at the first that is not would cost more: usually there is none.
fn all(passed: &[bool]) -> bool {
    vectorized(
        #[inline(always)]
        || passed.iter().fold(true, |all, passed| all & passed),
    )
}

/// Whether two lists are the same; usually they are.
fn are_same(one: &[NodeId], other: &[NodeId]) -> bool {
    one.len() == other.len()
        && vectorized(
            #[inline(always)]
            || one.iter().zip(other).fold(true, |same, (one, other)| same & (one == other)),
        )
}

impl FastPath {
    /// Finds open nodes for the signature that was asked for last, unless that was done and nothing has changed since; `None` if
    /// there are none. How many were looked at.
    fn find_for_extenders(
        &mut self,
        input: &CycleInput<'_>,
        answers: &mut ExtenderAnswers,
        now: Revision,
    ) -> Option<usize> {
        if let Some(before) = answers.found.as_ref().filter(|before| before.at == now) {
            self.found.clear();
            self.found.extend_from_slice(&before.ids);
            self.extenders.all = Some(before.ids.clone());
            return Some(before.looked_at);
        }
        let nodes = input.state.cluster.node_count();
        let looked_at = self.find(input, input.enough_nodes(nodes), &[])?;
        let ids = self.extenders.keep_found(&self.found);
        answers.found = Some(FoundPlaces { at: now, ids, looked_at });
        Some(looked_at)
    }

    /// Goes on with a pod that extenders have a say about; `None` where only the full path can: no node is left, an extender
    /// failed, or too much has changed since it was asked. Also tells where the next search starts in the order of nodes.
    pub(crate) fn place_with(
        &mut self,
        cycle: &FastCycle<'_>,
        answers: &mut ExtenderAnswers,
        plugin_changes: u64,
    ) -> Option<(PlaceStep, usize)> {
        let FastCycle { input, pod, .. } = cycle;
        let (profile, cluster) = (input.profile(), &input.state.cluster);
        let nodes = cluster.node_count();
        let is_simple = pod.nominated_node.is_none() && input.state.is_all_free_for(pod);
        if !is_simple || nodes == 0 || answers.is_endless() {
            return None;
        }
        let mut laps = Laps::begin(profile);
        let signature = self.signature(cycle, Scope::Sampled, &mut laps)?;
        signature.stay_out_of_search_classes(cluster);
        let looked_at = self.find_for_extenders(input, answers, input.state.revision(plugin_changes))?;
        let next_start = (input.start + looked_at) % nodes;
        let Self { signatures, found, totals, best, extenders: memory, .. } = self;
        let roles = || interested(&input.settings.extenders, pod);
        for (extender, _) in roles().filter(|(_, role)| role.filters) {
            let sieved = match answers.filters.get(&(false, extender)).map(Vec::as_slice) {
                None => {
                    let nodes = memory.ask_about(cluster, found, answers);
                    let call = ExtenderCall::Filter { extender, nodes, nominated: false };
                    return Some((PlaceStep::Call(call), next_start));
                }
                Some([Filtered { said: Said::Nothing, .. }]) => continue,
                Some([Filtered { nodes, said: Said::Yes(sieved) }]) => {
                    memory.line_up(cluster, found, nodes, answers)?;
                    sieved
                }
                Some(_) => return None,
            };
            memory.keep(found, Some(&sieved.passed));
            if found.is_empty() {
                return None;
            }
        }
        let prioritizers = roles().filter(|(_, role)| role.weight.is_some());
        let prioritizers: Vec<usize> = prioritizers.map(|(extender, _)| extender).collect();
        let counts = !prioritizers.is_empty() && found.len() > 1;
        match answers.scored.clone().filter(|_| counts) {
            None if counts => {
                let nodes = memory.ask_about(cluster, found, answers);
                let call = ExtenderCall::Prioritize { extenders: prioritizers, nodes };
                return Some((PlaceStep::Call(call), next_start));
            }
            None => {}
            Some(scored) => {
                memory.line_up(cluster, found, &scored, answers)?;
                memory.keep(found, None);
                if found.is_empty() {
                    return None;
                }
            }
        }
        laps.lap(Lap::Filter);
        let signature = signatures.last()?;
        signature.weigh_among(cluster, found, totals);
        if signature.has_failed() {
            return None;
        }
        memory.totals.clear();
        memory.totals.extend(totals.iter().map(|total| *total as i64));
        for (extender, said) in answers.scores.iter().filter(|_| counts && found.len() > 1) {
            let points = match said {
                Said::Yes(points) => points,
                Said::Nothing => continue,
                Said::Failed(_) => return None,
            };
            let weight = i64::from(input.settings.extenders[*extender].weight.unwrap_or(0));
            memory.add_points(points, weight);
        }
        let (node, total, ties) = pick_among(input, found, &memory.totals, best)?;
        laps.end(profile);
        let node = cluster.node_at(node).name().clone();
        let placement = Placement::On { node, total, ties, feasible: found.len(), evaluated: looked_at };
        Some((PlaceStep::Placed(placement), next_start))
    }
}
