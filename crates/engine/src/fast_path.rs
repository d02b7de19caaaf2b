//! The fast path: the incremental engine. It gives the full path's answer from what is known about the pod's signature,
//! brought up to date with the changes since.

use std::sync::Arc;

use supercargo_framework::{
    Code,
    bugs::{self, Bug},
    preemption::{NodeVerdicts, Rejection, Resolvable},
    profile::{PreFilterEnd, PreFiltered},
};
use supercargo_model::{Name, NodeId, NodeInfo, Pod};

use crate::{
    cycle::{CycleInput, DecisionPath},
    decision::{BriefRefusal, Decision},
    extender_calls::ExtenderCallMemory,
    laps::{Lap, Laps},
    load_buckets::LoadBuckets,
    pick::{TieBreak, reservoir},
    refusals::Refusals,
    search_classes::Stretch,
    signature_cache::{Found, SignatureCache},
    signature_state::{FoundByLoad, LoadSearch, Sample, Scope, SignatureState},
};

/// Where a pod goes.
#[derive(Debug)]
pub enum Placement {
    /// A node was chosen on the fast path.
    On {
        /// The node.
        node: Name,
        /// Its total, the highest.
        total: i64,
        /// How many nodes share it.
        ties: usize,
        /// How many nodes were feasible.
        feasible: usize,
        /// How many were looked at: not all, where enough feasible ones were found before.
        evaluated: usize,
    },
    /// The whole cycle was run, with its record: no node is left, or something has no fast form. For a template that was
    /// refused before, the record may be brief (see [`Decision::brief`]).
    Decided(Box<Decision>),
}

impl Placement {
    /// The chosen node.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Self::On { node, .. } => Some(node),
            Self::Decided(decision) => decision.node(),
        }
    }
}

/// What a cycle on the fast path came to.
pub(crate) struct Placed {
    pub(crate) placement: Placement,
    pub(crate) path: DecisionPath,
    /// Where the next search starts in the order of nodes.
    pub(crate) next_start: usize,
}

/// The incremental engine: the signatures, and memory that is used again.
#[derive(Default)]
pub(crate) struct FastPath {
    pub(crate) signatures: SignatureCache,
    /// The nodes that were found last, and their totals.
    pub(crate) found: Vec<NodeId>,
    pub(crate) totals: Vec<f64>,
    /// Those of them that share the highest total.
    pub(crate) best: Vec<NodeId>,
    pub(crate) extenders: ExtenderCallMemory,
    load_buckets: LoadBuckets,
    load_search: LoadSearch,
}

/// A pod's cycle on the fast path.
#[derive(Clone, Copy)]
pub(crate) struct FastCycle<'a> {
    pub(crate) input: CycleInput<'a>,
    /// The profile's place.
    pub(crate) index: usize,
    /// It should have been admitted.
    pub(crate) pod: &'a Arc<Pod>,
}

impl FastPath {
    /// Decides where a pod goes; `None` where the fast path does not apply: the pod is nominated, a plugin has no fast
    /// form, or no node is left, and only the full path can tell why or preempt.
    pub(crate) fn place(&mut self, cycle: &FastCycle<'_>) -> Option<Placed> {
        let FastCycle { input, pod, .. } = cycle;
        let nodes = input.state.cluster.node_count();
        // Without any node a pod is refused in other words, and nobody is asked to make room.
        assert!(nodes > 0 || !bugs::is_on(Bug::NoNodesPanics), "no node to start with");
        if pod.nominated_node.is_some() || nodes == 0 {
            return None;
        }
        let enough = input.enough_nodes(nodes);
        let all_free = input.state.is_all_free_for(pod);
        if enough >= nodes && all_free {
            self.place_on_best(cycle)
        } else {
            self.place_among_some(cycle, enough, all_free)
        }
    }

    /// What is known about a pod's signature, brought up to date for all nodes.
    pub(crate) fn whole(&mut self, cycle: &FastCycle<'_>) -> Option<&mut SignatureState> {
        self.signature(cycle, Scope::Whole, &mut Laps::none())
    }

    pub(crate) fn signature(
        &mut self,
        cycle: &FastCycle<'_>,
        scope: Scope,
        laps: &mut Laps<'_>,
    ) -> Option<&mut SignatureState> {
        let FastCycle { input, index, pod } = cycle;
        self.signatures.of(input.profile(), *index, &input.state.cluster, pod, scope, laps)
    }

    /// Why each node refuses a pod that no node is open to, as the full path would tell it, where that is known without
    /// asking every plugin; `None` otherwise.
    pub(crate) fn verdicts(&mut self, cycle: &FastCycle<'_>) -> Option<NodeVerdicts> {
        let FastCycle { input, pod, .. } = cycle;
        if pod.nominated_node.is_some() {
            return None;
        }
        let signature = self.whole(cycle)?;
        keep_room(signature, cycle)?;
        signature.refusals(&input.state.cluster).map(Refusals::verdicts)
    }

    /// Refuses a pod to whose signature, the last that was asked for, no node is open, or finds out whom it could take the room
    /// of. `None` if a plugin must be asked as ever.
    fn refuse(&mut self, cycle: &FastCycle<'_>) -> Option<Placed> {
        let FastCycle { input, pod, .. } = cycle;
        let (profile, cluster) = (input.profile(), &input.state.cluster);
        let signature = self.signatures.last()?;
        keep_room(signature, cycle)?;
        let refusals = signature.refusals(cluster)?;
        let brief = BriefRefusal { summary: refusals.summary(), refusal: refusals.refusal() };
        let mut made = None;
        if profile.has_post_filter_plugins() {
            let resolvable = Resolvable {
                count: refusals.resolvable_count(),
                nodes: &|| refusals.resolvable().collect(),
                was_pre_filtered_by: &|plugin| profile.has_pre_filter_plugin(plugin),
            };
            made = Some(match profile.foregone_post_filter(cluster, pod, &resolvable) {
                Some(refused) => Err(refused),
                None => {
                    signature.keep_room(profile, cluster, &input.state.nominations, pod)?;
                    signature.make_room(profile, input.state, pod, input.seed)?
                }
            });
        }
        let name = profile.scheduler_name().clone();
        let mut decision = Decision::new(pod, name, input.seed, cluster.node_count());
        decision.brief = Some(brief);
        if let Some(made) = made {
            decision.clears_nomination = made.as_ref().is_err_and(|refused| refused.clears);
            decision.follow_up = match &made {
                Ok(nomination) => nomination.follow_up.clone(),
                Err(refused) => refused.follow_up.clone(),
            };
            decision.preemption = Some(made.map_err(|refused| refused.status));
        }
        let is_nominated = matches!(decision.preemption, Some(Ok(_)));
        Some(Placed {
            placement: Placement::Decided(Box::new(decision)),
            path: if is_nominated { DecisionPath::Nominated } else { DecisionPath::Refused },
            next_start: input.start_again(),
        })
    }

    /// Where all nodes are looked at.
    fn place_on_best(&mut self, cycle: &FastCycle<'_>) -> Option<Placed> {
        let input = &cycle.input;
        let (profile, cluster) = (input.profile(), &input.state.cluster);
        let mut laps = Laps::begin(profile);
        let FastCycle { index, pod, .. } = cycle;
        let found =
            self.signatures.find_or_compile(profile, *index, cluster, pod, Scope::Whole, &mut laps)?;
        if found == Found::Compiled {
            if let Some(placed) = self.place_by_load(cycle, None) {
                laps.end(profile);
                return Some(placed);
            }
            self.signatures.last()?.catch_up(cluster, Scope::Whole, pod, &mut laps);
        }
        let signature = self.signatures.last().filter(|signature| !signature.has_failed())?;
        let Some((total, ties)) = signature.best() else {
            let refused = self.refuse(cycle)?;
            laps.end_in_vain(profile);
            return Some(refused);
        };
        let chosen = match input.settings.tie_break {
            TieBreak::Random => signature.nth_best(reservoir(ties, input.seed)?)?,
            TieBreak::First => {
                let best = |id: &&NodeId| signature.total(id.index()) == total;
                cluster.order().iter().find(best)?.index()
            }
        };
        laps.end(profile);
        let feasible = signature.open_count();
        let by_class = signature.has_node_classes();
        let node = cluster.node_at(NodeId::from_index(chosen)).name().clone();
        Some(Placed {
            placement: Placement::On {
                node,
                total: total as i64,
                ties,
                feasible,
                evaluated: cluster.node_count(),
            },
            path: if by_class { DecisionPath::NodeClasses } else { DecisionPath::Columns },
            next_start: input.start_again(),
        })
    }

    /// Where the signature was only compiled so far: the best nodes by what is taken of them. `None` if that cannot be told.
    fn place_by_load(&mut self, cycle: &FastCycle<'_>, sample: Option<Sample>) -> Option<Placed> {
        let input = &cycle.input;
        let cluster = &input.state.cluster;
        let Self { signatures, load_buckets, load_search, .. } = self;
        let FoundByLoad { total, ties, feasible, looked_at } =
            signatures.last()?.search_by_load(cluster, load_buckets, load_search, sample)?;
        let chosen = match input.settings.tie_break {
            TieBreak::Random => load_search.nth_best(reservoir(ties, input.seed)?)?,
            TieBreak::First => *cluster.order().iter().find(|id| load_search.is_best(**id))?,
        };
        let node = cluster.node_at(chosen).name().clone();
        Some(Placed {
            placement: Placement::On { node, total: total as i64, ties, feasible, evaluated: looked_at },
            path: DecisionPath::LoadBuckets,
            next_start: (input.start + looked_at) % cluster.node_count(),
        })
    }

    /// Where the search stops when enough nodes are found, or some nodes are kept for nominated pods.
    fn place_among_some(&mut self, cycle: &FastCycle<'_>, enough: usize, all_free: bool) -> Option<Placed> {
        let input = &cycle.input;
        let (profile, cluster) = (input.profile(), &input.state.cluster);
        let mut laps = Laps::begin(profile);
        let FastCycle { index, pod, .. } = cycle;
        let found =
            self.signatures.find_or_compile(profile, *index, cluster, pod, Scope::Sampled, &mut laps)?;
        if found == Found::Compiled {
            let sample = Sample { start: input.start % cluster.node_count(), enough };
            if all_free && let Some(placed) = self.place_by_load(cycle, Some(sample)) {
                laps.end(profile);
                return Some(placed);
            }
            self.signatures.last()?.catch_up(cluster, Scope::Sampled, pod, &mut laps);
        }
        let signature = self.signatures.last().filter(|signature| !signature.has_failed())?;
        if all_free && signature.open_count() == 0 {
            let refused = self.refuse(cycle)?;
            laps.end_in_vain(profile);
            return Some(refused);
        }
        let nodes = cluster.order();
        let start = input.start % nodes.len();
        if !all_free {
            signature.stay_out_of_search_classes(cluster);
        } else if signature.is_in_search_classes() {
            let (placement, looked_at) = pick_by_class(signature, input, start, enough)?;
            laps.end(profile);
            let next_start = (input.start + looked_at) % nodes.len();
            return Some(Placed { placement, path: DecisionPath::SearchClasses, next_start });
        }
        let kept_free: Vec<NodeId> = if all_free {
            Vec::new()
        } else if signature.keep_room(profile, cluster, &input.state.nominations, cycle.pod).is_some() {
            signature.kept_free().collect()
        } else {
            kept_free(signature, cycle)?
        };
        if signature.open_count() == kept_free.len() {
            let refused = self.refuse(cycle)?;
            laps.end_in_vain(profile);
            return Some(refused);
        }
        let looked_at = self.find(input, enough, &kept_free)?;
        let Self { signatures, found, totals, best, .. } = self;
        let signature = signatures.last()?;
        laps.lap(Lap::Filter);
        signature.weigh_among(cluster, found, totals);
        if signature.has_failed() {
            return None;
        }
        let (node, total, ties) = pick_among(input, found, totals, best)?;
        laps.end(profile);
        let node = cluster.node_at(node).name().clone();
        let (total, feasible) = (total as i64, found.len());
        let placement = Placement::On { node, total, ties, feasible, evaluated: looked_at };
        let next_start = (input.start + looked_at) % nodes.len();
        Some(Placed { placement, path: DecisionPath::Sampled, next_start })
    }

    /// Finds so many open nodes, for the signature that was asked for last, in the order from where the search starts; `None` if
    /// there are none. How many were looked at: it only stops at one open node more than it needs.
    pub(crate) fn find(
        &mut self,
        input: &CycleInput<'_>,
        enough: usize,
        kept_free: &[NodeId],
    ) -> Option<usize> {
        let Self { signatures, found, .. } = self;
        let signature = signatures.last()?;
        let nodes = input.state.cluster.order();
        let start = input.start % nodes.len();
        found.clear();
        if signature.open_count() == nodes.len() && kept_free.is_empty() {
            // The first ones are as good as any.
            let enough = enough.min(nodes.len());
            let later = &nodes[start..nodes.len().min(start + enough)];
            found.extend_from_slice(later);
            found.extend_from_slice(&nodes[..enough - later.len()]);
            return (!found.is_empty()).then_some(enough);
        }
        let mut looked_at = 0;
        for id in nodes[start..].iter().chain(&nodes[..start]) {
            if signature.is_open(*id) && kept_free.binary_search(id).is_err() {
                if found.len() == enough {
                    break;
                }
                found.push(*id);
            }
            looked_at += 1;
        }
        (!found.is_empty()).then_some(looked_at)
    }
}

/// One of the nodes with the highest total, that total, and how many have it.
pub(crate) fn pick_among<T: Copy + PartialOrd>(
    input: &CycleInput<'_>,
    found: &[NodeId],
    totals: &[T],
    best: &mut Vec<NodeId>,
) -> Option<(NodeId, T, usize)> {
    let higher = |one: T, other: T| if other > one { other } else { one };
    let total = totals.iter().copied().reduce(higher)?;
    best.clear();
    let tied = found.iter().zip(totals).filter(|(_, other)| **other == total);
    best.extend(tied.map(|(id, _)| *id));
    let ties = best.len();
    let chosen = match input.settings.tie_break {
        // By place, so that the choice does not depend on where the search started.
        TieBreak::Random => *best.select_nth_unstable(reservoir(ties, input.seed)?).1,
        TieBreak::First => *input.state.cluster.order().iter().find(|id| best.contains(id))?,
    };
    Some((chosen, total, ties))
}

/// Picks among the nodes that are found from a position in the order on, by class. Also tells how many were looked at.
fn pick_by_class(
    signature: &mut SignatureState,
    input: &CycleInput<'_>,
    start: usize,
    enough: usize,
) -> Option<(Placement, usize)> {
    let Stretch { found, looked_at } = signature.search(start, enough)?;
    let (total, ties) = signature.best_found()?;
    let chosen = signature.nth_found(input.settings.tie_break, ties, input.seed)?;
    let node = input.state.cluster.node_at(chosen).name().clone();
    let placement = Placement::On { node, total: total as i64, ties, feasible: found, evaluated: looked_at };
    Some((placement, looked_at))
}

/// Brings what a signature knows about nodes that are kept for others up to date; `None` if there are such nodes, and it cannot
/// be known.
fn keep_room(signature: &mut SignatureState, cycle: &FastCycle<'_>) -> Option<()> {
    let FastCycle { input, pod, .. } = cycle;
    let all_free = input.state.is_all_free_for(pod);
    if all_free && !signature.knows_room() {
        return Some(());
    }
    let kept =
        signature.keep_room(input.profile(), &input.state.cluster, &input.state.nominations, pod).is_some();
    (kept || all_free).then_some(())
}

/// The open nodes on which nominated pods leave no room for this one, by place; `None` if the pod is refused as such.
fn kept_free(signature: &SignatureState, cycle: &FastCycle<'_>) -> Option<Vec<NodeId>> {
    let FastCycle { input, pod, .. } = cycle;
    let (cluster, nominations) = (&input.state.cluster, &input.state.nominations);
    let nominated: Vec<&NodeInfo> = (nominations.nodes_ahead_of(pod))
        .filter_map(|name| cluster.node(name))
        .filter(|node| signature.is_open(node.id))
        .collect();
    if nominated.is_empty() {
        return Some(Vec::new());
    }
    let profile = input.profile();
    let Ok(PreFilterEnd::Go(PreFiltered { state, .. })) = profile.pre_filter(cluster, pod) else {
        return None;
    };
    let mut kept = Vec::new();
    for node in nominated {
        match profile.filter_with_nominated(&state, cluster, nominations, pod, node) {
            Ok(()) => {}
            Err(Rejection { status, .. }) if status.code == Code::Error => return None,
            Err(_) => kept.push(node.id),
        }
    }
    kept.sort_unstable();
    Some(kept)
}
