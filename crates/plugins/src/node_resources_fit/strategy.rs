//! The scoring strategies: how full a node may be, and still be liked.

use serde::Deserialize;
use supercargo_framework::{
    MAX_SCORE,
    formula::{Divisor, Number},
    registry::Args,
};
use supercargo_manifest::Problem;
use supercargo_model::{Cluster, NodeInfo, Pod, resources};

use crate::{
    device_resources::{DeviceCounts, stands_for_devices},
    resource_weights::ResourceWeight,
};

/// Shapes are given on a scale of 0 to 10.
const SHAPE_SCALE: i64 = MAX_SCORE / 10;
const FULL_PERCENT: i64 = 100;

/// A point of a shape: at this utilization in percent, this score of 0 to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ShapePoint {
    #[serde(default)]
    pub(crate) utilization: i32,
    #[serde(default)]
    pub(crate) score: i32,
}

/// How a resource's utilization becomes a score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// The emptier, the better.
    LeastAllocated,
    /// The fuller, the better.
    MostAllocated,
    /// Straight lines between the points of a shape.
    RequestedToCapacityRatio(Vec<ShapePoint>),
}

/// What a strategy makes of a node, over all its resources.
pub(crate) struct Scorer {
    pub(crate) strategy: Strategy,
    pub(crate) resources: Vec<ResourceWeight>,
    pub(crate) counts: DeviceCounts,
}

impl Scorer {
    /// The weighted mean over the resources that the node has.
    pub(crate) fn score(&self, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> i64 {
        let (mut sum, mut weights) = (0_i64, 0_i64);
        for resource in &self.resources {
            let Some((requested, capacity)) = self.utilization(&resource.name, cluster, pod, node) else {
                continue;
            };
            let score = self.strategy.score(requested, capacity);
            // A ratio of zero counts as if the resource were not there.
            if matches!(self.strategy, Strategy::RequestedToCapacityRatio(_)) && score <= 0 {
                continue;
            }
            sum += score * resource.weight;
            weights += resource.weight;
        }
        match self.strategy {
            _ if weights == 0 => 0,
            Strategy::RequestedToCapacityRatio(_) => (sum as f64 / weights as f64).round() as i64,
            _ => mean(sum, weights),
        }
    }

    /// What is requested of a resource with the pod on the node, and what there is; `None` if it does not count here.
    fn utilization(
        &self,
        resource: &str,
        cluster: &Cluster,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Option<(i64, i64)> {
        let wanted = pod.spec.requests.score.get(resource);
        if wanted == 0 && resources::is_scalar(resource) {
            return None;
        }
        if let Some((all, in_use)) = self.counts.of(cluster, node, resource) {
            return Some((in_use.saturating_add(wanted), all));
        }
        let capacity = node.node.allocatable.get(resource);
        let used = match resource {
            resources::CPU => node.requested_or_default_milli_cpu,
            resources::MEMORY => node.requested_or_default_memory,
            other => node.requested.get(other),
        };
        let counts = resource != resources::PODS && capacity != 0;
        counts.then(|| (used.saturating_add(wanted), capacity))
    }

    /// Whether devices stand for a resource that counts for a pod.
    pub(crate) fn counts_devices(&self, cluster: &Cluster, pod: &Pod) -> bool {
        let wanted = &pod.spec.requests.score;
        let mut scalars = self.resources.iter().filter(|r| resources::is_scalar(&r.name));
        scalars.any(|r| wanted.get(&r.name) != 0 && stands_for_devices(cluster, &r.name))
    }
}

impl Strategy {
    fn score(&self, requested: i64, capacity: i64) -> i64 {
        match self {
            Self::LeastAllocated => least_allocated(requested, capacity, capacity),
            Self::MostAllocated => most_allocated(requested, capacity, capacity),
            Self::RequestedToCapacityRatio(shape) if requested > capacity => along(shape, FULL_PERCENT),
            Self::RequestedToCapacityRatio(shape) => along(shape, capacity.percent(requested)),
        }
    }
}

/// The share of a resource that is left, in percent. The capacity is given twice: as it is, and to divide by.
#[inline(always)]
pub(super) fn least_allocated<N: Number>(requested: N, capacity: N, divisor: impl Divisor<N>) -> N {
    divisor.percent(if requested > capacity { N::ZERO } else { capacity.minus(requested) })
}

/// The share of a resource that is taken, in percent.
#[inline(always)]
pub(super) fn most_allocated<N: Number>(requested: N, capacity: N, divisor: impl Divisor<N>) -> N {
    divisor.percent(if requested > capacity { capacity } else { requested })
}

/// The mean of scores, from the sum of each times its weight.
#[inline(always)]
pub(super) fn mean<N: Number>(sum: N, weights: impl Divisor<N>) -> N {
    weights.divide(sum)
}

/// The score of a shape at a utilization: flat outside its points, straight lines between them.
fn along(shape: &[ShapePoint], utilization: i64) -> i64 {
    let point = |p: &ShapePoint| (i64::from(p.utilization), i64::from(p.score) * SHAPE_SCALE);
    let mut before: Option<(i64, i64)> = None;
    for (at, score) in shape.iter().map(point) {
        if utilization <= at {
            return match before {
                None => score,
                Some((start, from)) => from + (score - from) * (utilization - start) / (at - start),
            };
        }
        before = Some((at, score));
    }
    before.map_or(0, |(_, score)| score)
}

/// What is wrong with a shape that stands at a field.
pub(crate) fn shape_problems(args: &Args<'_>, field: &str, shape: &[ShapePoint]) -> Vec<Problem> {
    if shape.is_empty() {
        return vec![args.problem(field, "at least one point is needed")];
    }
    let mut problems = Vec::new();
    let unsorted = shape.windows(2).position(|pair| pair[0].utilization >= pair[1].utilization);
    if let Some(i) = unsorted {
        let field = format!("{field}[{}].utilization", i + 1);
        problems.push(args.problem(&field, "utilizations must increase from point to point"));
    }
    for (i, point) in shape.iter().enumerate() {
        let mut check = |name: &str, value: i32, highest: i32| {
            if !(0..=highest).contains(&value) {
                let message = format!("must be in 0..={highest}, and is {value}");
                problems.push(args.problem(&format!("{field}[{i}].{name}"), message));
            }
        };
        check("utilization", point.utilization, 100);
        check("score", point.score, 10);
    }
    problems
}
