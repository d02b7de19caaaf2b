//! Keeps pods on nodes that can reach their volumes: those they have, those that wait for a pod to be bound to, and
//! those that can be made there.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::{Deserialize, de::IgnoredAny};
use supercargo_framework::{
    Detail, Prepared, ScoreInput, Status, Verdict,
    assumed::ReserveCycle,
    event::EventInterest,
    fast::{Compiled, FastFilter, FastScore, FilterPart, ScorePart},
    handle::{Effect, HandleRef, Measurement},
    points::{
        Filter, PreBind, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome, Requeue, Reserve, Score,
    },
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, Name, NodeId, NodeInfo, Pod};

use crate::fast_parts::{OnlyNodes, OnlyValue, WhyNot};

mod assumed;
pub mod bind;
mod bound;
mod claims;
mod delayed;
mod details;
mod edit;
mod events;
mod plan;
mod progress;
mod reach;
mod write;

pub use supercargo_model::storage::annotations;

pub use plan::{ClaimId, VolumePlan, plan};

use claims::{PodClaims, claims_of_pod};

/// The plugin's name.
pub const NAME: &str = "VolumeBinding";

/// The plugin.
#[derive(Default)]
pub struct VolumeBinding {
    handle: HandleRef,
    bind_timeout: Duration,
    /// What is to be done for the pods that have a node, by uid, until it is begun with.
    plans: Mutex<HashMap<Name, VolumePlan>>,
}

/// How long a pod waits for its volumes unless the arguments say otherwise.
const DEFAULT_BIND_TIMEOUT_SECONDS: i64 = 600;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeBindingArgs {
    bind_timeout_seconds: Option<i64>,
    shape: Option<IgnoredAny>,
}

impl VolumeBinding {
    /// The plugin, if its arguments are right.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        Ok(Self { handle: args.handle(), bind_timeout: bind_timeout(args)?, plans: Mutex::default() })
    }

    fn plans(&self) -> MutexGuard<'_, HashMap<Name, VolumePlan>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plans for a node, and shows the volumes as given away, if any have to be bound first.
    fn give_away(&self, cycle: &mut ReserveCycle<'_>, pod: &Pod, node: &Name) -> Verdict {
        let cluster = cycle.cluster();
        let Some(info) = cluster.node(node).filter(|_| !pod.spec.volumes.is_empty()) else {
            return Ok(());
        };
        let plan = plan(cluster, pod, info)?;
        if plan.is_empty() {
            return Ok(());
        }
        assumed::as_planned(cluster, &plan, node)?.into_iter().for_each(|object| cycle.assume(object));
        self.plans().insert(pod.uid.clone(), plan);
        Ok(())
    }
}

/// How long a pod waits for its volumes, by the plugin's arguments.
fn bind_timeout(args: &Args<'_>) -> Result<Duration, Problems> {
    let given: VolumeBindingArgs = args.decode()?;
    let mut problems = Problems::default();
    let seconds = u64::try_from(given.bind_timeout_seconds.unwrap_or(DEFAULT_BIND_TIMEOUT_SECONDS));
    if seconds.is_err() {
        problems.push(args.problem("bindTimeoutSeconds", "must not be negative"));
    }
    if given.shape.is_some() {
        let message =
            "has no effect while the feature gate StorageCapacityScoring is off, as it is by default";
        problems.push(args.problem("shape", message).hint("remove it"));
    }
    match seconds {
        Ok(seconds) if problems.is_empty() => Ok(Duration::from_secs(seconds)),
        _ => Err(problems),
    }
}

impl PreFilter for VolumeBinding {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        let claims = claims_of_pod(cluster, pod)?;
        if claims.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(PodClaims::of(cluster, &claims)?))
    }
}

impl Filter for VolumeBinding {
    fn filter(&self, prepared: &Prepared, cluster: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        let claims = prepared.get::<PodClaims>()?;
        claims.find(&node.node, cluster.csi_node(node.name())).map(drop)
    }

    fn details(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        let claims = prepared.get::<PodClaims>();
        claims.map_or_else(|_| Vec::new(), |claims| details::details(claims, cluster, pod, node))
    }
}

impl PreScore for VolumeBinding {
    /// Scoring by room is behind the feature gate StorageCapacityScoring, which is off by default.
    fn pre_score(&self, _: &Cluster, _: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        Ok(PreScoreOutcome::Skip)
    }
}

impl Score for VolumeBinding {
    /// Runs only where a configuration disables PreScore, which would skip it. All nodes are equal then.
    fn score(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        column.fill(0);
        Ok(())
    }
}

impl Reserve for VolumeBinding {
    fn reserve(&self, cycle: &mut ReserveCycle<'_>, pod: &Arc<Pod>, node: &Name) -> Verdict {
        let given = self.give_away(cycle, pod, node);
        if given.is_err() {
            self.handle.measure(Measurement::VolumeAssumeFailed);
        }
        given
    }

    fn unreserve(&self, pod: &Pod, _: &str) {
        self.plans().remove(&pod.uid);
    }

    fn kept(&self) -> usize {
        self.plans().len()
    }
}

impl PreBind for VolumeBinding {
    fn is_needed(&self, pod: &Pod, _: &str) -> bool {
        self.plans().contains_key(&pod.uid)
    }

    fn pre_bind<'a>(&'a self, pod: &'a Arc<Pod>, node: &'a Name) -> Effect<'a, Verdict> {
        Box::pin(async move {
            let Some(plan) = self.plans().remove(&pod.uid) else { return Ok(()) };
            let (pod, node, bind_timeout) = (pod.clone(), node.clone(), self.bind_timeout);
            let bound =
                bind::bind(&self.handle, bind::VolumeBindingRequest { pod, node, plan, bind_timeout }).await;
            bound.map_err(|failure| {
                self.handle.measure(Measurement::VolumeBindFailed);
                Status::error(failure.to_string())
            })
        })
    }
}

impl Requeue for VolumeBinding {
    fn events(&self) -> Vec<EventInterest> {
        events::interests()
    }
}

impl WhyNot for PodClaims {
    fn why_not(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        let node = cluster.node_at(node);
        self.find(&node.node, cluster.csi_node(node.name())).err()
    }
}

impl FastFilter for VolumeBinding {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        let claims = match claims_of_pod(cluster, pod) {
            Ok(claims) if claims.is_empty() => return Compiled::Idle,
            Ok(claims) => claims,
            Err(_) => return Compiled::NoFastForm,
        };
        match PodClaims::of(cluster, &claims) {
            Ok(claims) if !claims.are_migrated() => match claims.only_value(cluster) {
                Some(value) => OnlyValue::compile(value, claims),
                None => match claims.nodes(cluster) {
                    Some(nodes) => OnlyNodes::compile(cluster, nodes.iter(), claims),
                    None => Compiled::Idle,
                },
            },
            _ => Compiled::NoFastForm,
        }
    }

    fn reads_claims(&self) -> bool {
        true
    }
}

impl FastScore for VolumeBinding {
    fn compile_score(self: Arc<Self>, _: &Cluster, _: &Arc<Pod>) -> Compiled<ScorePart> {
        Compiled::Idle
    }
}

#[cfg(test)]
mod tests;
