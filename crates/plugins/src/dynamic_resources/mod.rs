//! Dynamic resource allocation. It is not built yet: pods with resource claims are refused, and told so.

pub mod allocator;

use std::sync::Arc;

use serde::Deserialize;
use supercargo_framework::{
    Prepared, ScoreInput, Status, Verdict,
    assumed::ReserveCycle,
    event::{
        ActionType::{Add, Update, UpdateNodeAllocatable, UpdateNodeLabel, UpdatePodGeneratedResourceClaim},
        EventInterest, EventResource,
    },
    fast::{Compiled, FastFilter, FastScore, FilterPart, ScorePart},
    handle::Effect,
    points::{
        Filter, PostFilter, PreBind, PreEnqueue, PreFilter, PreFilterOutcome, Requeue, Reserve, ScoreNode,
    },
    preemption::{FilterRunner, NodeVerdicts, Nomination, NotNominated, Resolvable},
    queueing::QueueView,
    registry::Args,
};
use supercargo_manifest::{Duration, Problems};
use supercargo_model::{Cluster, Name, NodeInfo, Pod};

/// The plugin's name.
pub const NAME: &str = "DynamicResources";

const NOT_BUILT: &str =
    "the pod has resource claims, and this version of supercargo does not allocate them yet";

const NOTHING_TO_DEALLOCATE: &str = "no new claims to deallocate";

/// The plugin. It takes part at all points that kube-scheduler's does, so that configurations mean the same.
pub struct DynamicResources;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DynamicResourcesArgs {
    filter_timeout: Option<Duration>,
    binding_timeout: Option<Duration>,
}

impl DynamicResources {
    /// Its arguments are checked as kube-scheduler checks them; nothing reads them yet.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let given: DynamicResourcesArgs = args.decode()?;
        let mut problems = Problems::default();
        if given.filter_timeout.is_some_and(|timeout| timeout < Duration::ZERO) {
            problems.push(args.problem("filterTimeout", "must not be negative"));
        }
        if given.binding_timeout.is_some_and(|timeout| timeout < Duration::from_secs(1)) {
            problems.push(args.problem("bindingTimeout", "must be at least 1s"));
        }
        if problems.is_empty() { Ok(Self) } else { Err(problems) }
    }
}

fn check(pod: &Pod) -> Verdict {
    if pod.spec.resource_claims.is_empty() { Ok(()) } else { Err(Status::unresolvable(NOT_BUILT)) }
}

impl PreEnqueue for DynamicResources {
    /// A pod that is held back here is told nothing, so it is let in and refused below.
    fn pre_enqueue(&self, _: &QueueView<'_>, _: &Pod) -> Verdict {
        Ok(())
    }
}

impl PreFilter for DynamicResources {
    fn pre_filter(&self, _: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        check(pod).map(|()| PreFilterOutcome::Skip)
    }
}

impl Filter for DynamicResources {
    fn filter(&self, _: &Prepared, _: &Cluster, pod: &Pod, _: &NodeInfo) -> Verdict {
        check(pod)
    }
}

impl PostFilter for DynamicResources {
    /// Where another plugin ended the cycle before this one was asked, there is no state to look into. kube-scheduler
    /// calls that an error, and nobody tries to make room then.
    fn post_filter(
        &self,
        runner: &dyn FilterRunner,
        _: &Pod,
        _: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        if !runner.was_pre_filtered_by(NAME) {
            return Err(Status::error("not found").into());
        }
        Err(Status::unschedulable(NOTHING_TO_DEALLOCATE).into())
    }

    fn foregone(&self, _: &Cluster, _: &Pod, resolvable: &Resolvable<'_>) -> Option<NotNominated> {
        let asked = (resolvable.was_pre_filtered_by)(NAME);
        asked.then(|| Status::unschedulable(NOTHING_TO_DEALLOCATE).into())
    }
}

impl ScoreNode for DynamicResources {
    /// Without claims there is nothing to prefer.
    fn score_node(&self, _: ScoreInput<'_>, _: &NodeInfo) -> Result<i64, Status> {
        Ok(0)
    }
}

impl Reserve for DynamicResources {
    fn reserve(&self, _: &mut ReserveCycle<'_>, pod: &Arc<Pod>, _: &Name) -> Verdict {
        check(pod)
    }

    /// Nothing was reserved.
    fn unreserve(&self, _: &Pod, _: &str) {}
}

impl PreBind for DynamicResources {
    /// Nothing was allocated.
    fn is_needed(&self, _: &Pod, _: &str) -> bool {
        false
    }

    fn pre_bind<'a>(&'a self, pod: &'a Arc<Pod>, _: &'a Name) -> Effect<'a, Verdict> {
        Box::pin(std::future::ready(check(pod)))
    }
}

impl Requeue for DynamicResources {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(EventResource::Node, [Add, UpdateNodeLabel, UpdateNodeAllocatable]),
            EventInterest::new(EventResource::ResourceClaim, [Add, Update]),
            EventInterest::new(EventResource::Pod, [UpdatePodGeneratedResourceClaim])
                .if_pod(|pod, _, after| after.is_some_and(|after| after.uid == pod.uid)),
            EventInterest::new(EventResource::DeviceClass, [Add, Update]),
            EventInterest::new(EventResource::ResourceSlice, [Add, Update]),
        ]
    }
}

impl FastFilter for DynamicResources {
    fn compile_filter(self: Arc<Self>, _: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        if check(pod).is_ok() { Compiled::Idle } else { Compiled::NoFastForm }
    }
}

impl FastScore for DynamicResources {
    fn compile_score(self: Arc<Self>, _: &Cluster, _: &Arc<Pod>) -> Compiled<ScorePart> {
        Compiled::Idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use supercargo_framework::handle::NoPendingPods;
    use supercargo_model::testing::pod;

    #[test]
    fn pods_with_claims_are_refused_and_told_why() {
        let claims = json!([{"name": "gpu", "resourceClaimName": "gpu"}]);
        let held = pod("p").set("/spec/resourceClaims", claims).pod();
        // Told by FailedScheduling and the pod's condition, which a pod that PreEnqueue holds does not get.
        assert_eq!(
            DynamicResources
                .pre_enqueue(&QueueView { cluster: &Cluster::default(), pending: &NoPendingPods }, &held),
            Ok(())
        );
        let status = DynamicResources.pre_filter(&Cluster::default(), &held).map(drop).unwrap_err();
        assert_eq!(status.message(), NOT_BUILT);
        assert!(DynamicResources.pre_filter(&Cluster::default(), &pod("p").pod()).is_ok());
    }
}
