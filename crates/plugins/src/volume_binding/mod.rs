//! Keeps pods on nodes that can reach their volumes: those they have, those that wait for a pod to be bound to, and
//! those that can be made there.

use serde::{Deserialize, de::IgnoredAny};
use std::{sync::Arc, time::Duration};

use supercargo_framework::{
    Prepared, ScoreInput, Status, Verdict,
    event::EventInterest,
    fast::{Compiled, FastFilter, FastScore, FilterPart, ScorePart},
    points::{
        Filter, PreBind, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome, Requeue, Reserve, Score,
    },
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, NodeInfo, Pod};

use crate::fast_parts::only_without_volumes;

pub mod annotations;
mod assumed;
mod bound;
mod claims;
mod delayed;
mod events;
mod plan;
mod progress;
mod reach;

pub use assumed::{AssumedVolumes, Assumption, Restored};
pub use plan::{ClaimId, VolumePlan, plan};
pub use progress::{Unbound, WrittenPlan, check_bound};

use claims::{PodClaims, claims_of_pod};

/// The plugin's name.
pub const NAME: &str = "VolumeBinding";

/// The plugin.
pub struct VolumeBinding;

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
        bind_timeout(args).map(|_| Self)
    }
}

/// How long a pod waits for its volumes, by the plugin's arguments. Nothing here waits: it is for who binds volumes.
pub fn bind_timeout(args: &Args<'_>) -> Result<Duration, Problems> {
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

/// Nothing is kept here: volumes are given away in the cluster itself, by [`AssumedVolumes`], which needs to change it.
impl Reserve for VolumeBinding {
    fn reserve(&self, _: &Pod, _: &str) -> Verdict {
        Ok(())
    }

    fn unreserve(&self, _: &Pod, _: &str) {}
}

/// Nothing is written: there is no API here to bind claims through. The live scheduler carries the [`plan()`] out.
impl PreBind for VolumeBinding {
    /// Volumes are bound by who carries out the [plan].
    fn is_needed(&self, _: &Pod, _: &str) -> bool {
        false
    }

    fn pre_bind(&self, _: &Pod, _: &str) -> Verdict {
        Ok(())
    }
}

impl Requeue for VolumeBinding {
    fn events(&self) -> Vec<EventInterest> {
        events::interests()
    }
}

impl FastFilter for VolumeBinding {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        only_without_volumes(pod)
    }
}

impl FastScore for VolumeBinding {
    fn compile_score(self: Arc<Self>, _: &Cluster, _: &Arc<Pod>) -> Compiled<ScorePart> {
        Compiled::Idle
    }
}

#[cfg(test)]
mod tests;
