//! The strategies under the names they had as plugins of their own, before they became a choice of NodeResourcesFit.

use serde::Deserialize;
use supercargo_framework::{ScoreInput, Status, points::ScoreNode, registry::Args};
use supercargo_manifest::Problems;
use supercargo_model::NodeInfo;

use super::strategy::{Scorer, ShapePoint, Strategy, shape_problems};
use crate::resource_weights::{self, ResourceWeight};

/// The emptier, the better.
pub const LEAST_ALLOCATED: &str = "NodeResourcesLeastAllocated";
/// The fuller, the better.
pub const MOST_ALLOCATED: &str = "NodeResourcesMostAllocated";
/// By a shape.
pub const REQUESTED_TO_CAPACITY_RATIO: &str = "RequestedToCapacityRatio";

/// A plugin that scores by one strategy.
pub struct SingleStrategy(pub(super) Scorer);

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ResourcesArgs {
    resources: Vec<ResourceWeight>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ShapeArgs {
    shape: Vec<ShapePoint>,
    resources: Vec<ResourceWeight>,
}

impl SingleStrategy {
    /// NodeResourcesLeastAllocated.
    pub fn least_allocated(args: &Args<'_>) -> Result<Self, Problems> {
        let ResourcesArgs { resources } = args.decode()?;
        Self::new(args, Strategy::LeastAllocated, resources, Problems::default())
    }

    /// NodeResourcesMostAllocated.
    pub fn most_allocated(args: &Args<'_>) -> Result<Self, Problems> {
        let ResourcesArgs { resources } = args.decode()?;
        Self::new(args, Strategy::MostAllocated, resources, Problems::default())
    }

    /// RequestedToCapacityRatio. Its shape must be given.
    pub fn requested_to_capacity_ratio(args: &Args<'_>) -> Result<Self, Problems> {
        let ShapeArgs { shape, resources } = args.decode()?;
        let problems = shape_problems(args, "shape", &shape).into_iter().collect();
        Self::new(args, Strategy::RequestedToCapacityRatio(shape), resources, problems)
    }

    fn new(
        args: &Args<'_>,
        strategy: Strategy,
        resources: Vec<ResourceWeight>,
        mut problems: Problems,
    ) -> Result<Self, Problems> {
        let resources = resource_weights::with_defaults(resources);
        problems.extend(resource_weights::problems(args, "resources", &resources));
        if problems.is_empty() {
            Ok(Self(Scorer { strategy, resources, counts: Default::default() }))
        } else {
            Err(problems)
        }
    }
}

impl ScoreNode for SingleStrategy {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        Ok(self.0.score(input.cluster, input.pod, node))
    }
}
