//! Keeps pods on nodes that can reach their volumes: those they have, those that wait for a pod to be bound to, and
//! those that can be made there.

use serde::{Deserialize, de::IgnoredAny};
use std::sync::Arc;

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

mod bound;
mod claims;
mod delayed;
mod events;
mod reach;

use claims::{PodClaims, claims_of_pod};

/// The plugin's name.
pub const NAME: &str = "VolumeBinding";

/// The plugin.
pub struct VolumeBinding;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VolumeBindingArgs {
    /// Checked only: this core waits for no binding, the live scheduler will.
    bind_timeout_seconds: Option<i64>,
    shape: Option<IgnoredAny>,
}

impl VolumeBinding {
    /// The plugin, if its arguments are right.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let given: VolumeBindingArgs = args.decode()?;
        let mut problems = Problems::default();
        if given.bind_timeout_seconds.is_some_and(|seconds| seconds < 0) {
            problems.push(args.problem("bindTimeoutSeconds", "must not be negative"));
        }
        if given.shape.is_some() {
            let message =
                "has no effect while the feature gate StorageCapacityScoring is off, as it is by default";
            problems.push(args.problem("shape", message).hint("remove it"));
        }
        if problems.is_empty() { Ok(Self) } else { Err(problems) }
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
        claims.check(&node.node, cluster.csi_node(node.name()))
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

/// Nothing is kept: volumes change hands in the cluster's API, and this core sees the cluster only as it is.
impl Reserve for VolumeBinding {
    fn reserve(&self, _: &Pod, _: &str) -> Verdict {
        Ok(())
    }

    fn unreserve(&self, _: &Pod, _: &str) {}
}

/// Nothing is written: there is no API here to bind claims through. The live scheduler will do it at this point.
impl PreBind for VolumeBinding {
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
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn FilterPart> {
        only_without_volumes(pod)
    }
}

impl FastScore for VolumeBinding {
    fn compile_score(self: Arc<Self>, _: &Cluster, _: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        Compiled::Idle
    }
}

#[cfg(test)]
mod tests;
