//! Why a pod is refused: everybody who refuses it, where a cycle ends with the first.

use std::{borrow::Cow, collections::BTreeSet};

use supercargo_model::{Cluster, Name, NodeInfo, Pod};

use super::{FilterStep, Named, Profile, filtering::others_status, rejection};
use crate::{
    details::{Detail, RefusalKind},
    points::{PreFilterOutcome, Prepared},
    preemption::{FilterState, Nominations, Rejection},
    registry::Point,
    status::Status,
};

/// What all PreFilter plugins make of a pod.
pub struct Examination {
    state: FilterState,
    /// Those that refuse it for every node.
    pub refused: Vec<Rejection>,
    /// Those that leave only some nodes, and which.
    narrowed: Vec<(Name, BTreeSet<Name>)>,
}

/// Somebody who refuses a node.
#[derive(Clone, Debug, PartialEq)]
pub struct Objection {
    /// The plugin.
    pub plugin: Name,
    /// Where it refuses: PreFilter is about all nodes, or all but some.
    pub point: Point,
    /// The refusal as it is told.
    pub status: Status,
    /// What is in the way, with numbers and names; empty if the plugin does not say.
    pub details: Vec<Detail>,
    /// The room is kept for pods that are nominated to the node; without them it would do.
    pub for_nominated: bool,
}

impl Profile {
    /// Asks all PreFilter plugins about a pod, also after one has refused it.
    pub fn examine(&self, cluster: &Cluster, pod: &Pod) -> Examination {
        let state = FilterState(Vec::with_capacity(self.pre_filter.len()));
        let mut examination = Examination { state, refused: Vec::new(), narrowed: Vec::new() };
        for Named { name, plugin } in &self.pre_filter {
            let prepared = match plugin.pre_filter(cluster, pod) {
                Ok(PreFilterOutcome::Skip) => None,
                Ok(PreFilterOutcome::Go { nodes, prepared }) => {
                    examination.narrowed.extend(nodes.map(|nodes| (name.clone(), nodes)));
                    Some(prepared)
                }
                Err(status) => {
                    examination.refused.push(rejection(name, status));
                    None
                }
            };
            examination.state.0.push(prepared);
        }
        examination
    }

    /// Everybody who refuses a node, in the order in which they are asked.
    pub fn objections(
        &self,
        examination: &Examination,
        cluster: &Cluster,
        nominations: &Nominations,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Vec<Objection> {
        let mut filters = self.filter_objections(&examination.state, cluster, pod, node);
        for more in self.objections_for_nominated(examination, cluster, nominations, pod, node) {
            if filters.iter().all(|known| known.plugin != more.plugin) {
                filters.push(Objection { for_nominated: true, ..more });
            }
        }
        let by_filter: BTreeSet<Name> = filters.iter().map(|objection| objection.plugin.clone()).collect();
        // Whoever narrows the nodes mostly refuses the others by its filter as well, which can tell why.
        let outside = examination
            .narrowed
            .iter()
            .filter(|(plugin, nodes)| !nodes.contains(node.name()) && !by_filter.contains(plugin));
        let ruled_out = outside.map(|(plugin, _)| {
            let status = others_status(true, &BTreeSet::from([plugin.clone()]));
            pre_filter_objection(rejection(plugin, status))
        });
        let refused = examination.refused.iter().cloned().map(pre_filter_objection);
        refused.chain(ruled_out).chain(filters).collect()
    }

    /// What plugins allot a pod on a node that will do, in the order in which they are asked.
    pub fn allotments(
        &self,
        examination: &Examination,
        cluster: &Cluster,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Vec<(Name, Vec<Detail>)> {
        let nothing = Prepared::nothing();
        let of_step = |step: &FilterStep| {
            let prepared = examination.state.of(step.prepared, &nothing)?;
            let details = step.plugin.allotments(prepared, cluster, pod, node);
            (!details.is_empty()).then(|| (step.name.clone(), details))
        };
        self.filter.iter().filter_map(of_step).collect()
    }

    /// What tells a node from others that were refused for the same reason.
    pub fn refusal_kinds(
        &self,
        examination: &Examination,
        cluster: &Cluster,
        pod: &Pod,
        node: &NodeInfo,
        rejection: &Rejection,
    ) -> Vec<RefusalKind> {
        let nothing = Prepared::nothing();
        let step = self.filter.iter().find(|step| step.name == rejection.plugin);
        let prepared = |step: &FilterStep| examination.state.of(step.prepared, &nothing).cloned();
        match step.and_then(|step| Some((step, prepared(step)?))) {
            None => Vec::new(),
            Some((step, prepared)) => match step.plugin.filter(&prepared, cluster, pod, node) {
                Err(_) => step.plugin.kinds(&prepared, cluster, pod, node),
                // Nothing is in the way but pods that are yet to come.
                Ok(()) => rejection.status.reasons.iter().cloned().map(kept_for_nominated).collect(),
            },
        }
    }

    /// As if the more important pods that are nominated to the node ran there.
    fn objections_for_nominated(
        &self,
        examination: &Examination,
        cluster: &Cluster,
        nominations: &Nominations,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Vec<Objection> {
        match self.with_nominated(&examination.state, nominations, pod, node) {
            Ok(None) => Vec::new(),
            Ok(Some((state, node))) => self.filter_objections(&state, cluster, pod, &node),
            Err(status) => {
                let objection = pre_filter_objection(rejection(&"".into(), status));
                vec![Objection { point: Point::Filter, ..objection }]
            }
        }
    }

    fn filter_objections(
        &self,
        state: &FilterState,
        cluster: &Cluster,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Vec<Objection> {
        let nothing = Prepared::nothing();
        let mut objections = Vec::new();
        for step in &self.filter {
            let Some(prepared) = state.of(step.prepared, &nothing) else { continue };
            if let Err(status) = step.plugin.filter(prepared, cluster, pod, node) {
                objections.push(Objection {
                    plugin: step.name.clone(),
                    point: Point::Filter,
                    status,
                    details: step.plugin.details(prepared, cluster, pod, node),
                    for_nominated: false,
                });
            }
        }
        objections
    }
}

fn kept_for_nominated(reason: Cow<'static, str>) -> RefusalKind {
    RefusalKind { reason, kind: "have room that is kept for nominated pods".into() }
}

fn pre_filter_objection(Rejection { plugin, status }: Rejection) -> Objection {
    Objection { plugin, point: Point::PreFilter, status, details: Vec::new(), for_nominated: false }
}
