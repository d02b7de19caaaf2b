//! Prefers nodes that have the pod's images already.

use std::sync::Arc;

use serde::Deserialize;
use supercargo_framework::{
    MAX_SCORE, Prepared, ScoreInput, Status,
    fast::{Compiled, FastScore, Normalization, ScorePart},
    points::ScoreNode,
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, Name, NodeInfo, Pod};

use crate::fast_parts::Fixed;

/// The plugin's name.
pub const NAME: &str = "ImageLocality";

const MIB: i64 = 1024 * 1024;
/// Less than this is not worth a preference.
const MIN_THRESHOLD_BYTES: i64 = 23 * MIB;
/// More than this, for each container, is worth no more.
const MAX_CONTAINER_THRESHOLD_BYTES: i64 = 1000 * MIB;
/// What `CachedBytes` counts as a full score, for each image.
const CACHED_BYTES_FULL: i64 = 10 * MIB;

/// How cached bytes become a score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Formula {
    /// As kube-scheduler: bytes times the share of nodes that have the image, between two thresholds. The share keeps
    /// pods from crowding on the one node that has a rare image.
    #[default]
    SpreadScaled,
    /// As some documents tell it: cached bytes × 100 / (10 MiB × images), at most 100.
    CachedBytes,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ImageLocalityArgs {
    formula: Formula,
}

/// The plugin.
#[derive(Default)]
pub struct ImageLocality {
    formula: Formula,
}

impl ImageLocality {
    /// With the formula that the arguments choose.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let ImageLocalityArgs { formula } = args.decode()?;
        Ok(Self { formula })
    }
}

impl ScoreNode for ImageLocality {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        let spec = &input.pod.spec;
        let cached = (spec.images.iter())
            .filter(|image| has_image(node, image))
            .filter_map(|image| input.cluster.image(image));
        Ok(match self.formula {
            Formula::SpreadScaled => {
                let all_nodes = input.cluster.node_count() as f64;
                let bytes = cached
                    .map(|image| (image.size_bytes as f64 * (image.nodes.len() as f64 / all_nodes)) as i64)
                    .fold(0_i64, i64::saturating_add);
                spread_scaled(bytes, spec.container_count as i64)
            }
            Formula::CachedBytes => {
                let bytes = cached.map(|image| image.size_bytes).fold(0_i64, i64::saturating_add);
                cached_bytes(bytes, spec.images.len() as i64)
            }
        })
    }
}

fn has_image(node: &NodeInfo, image: &Name) -> bool {
    (node.node.images.iter()).any(|on_node| on_node.names.contains(image))
}

/// Linear from 23 MiB to 1000 MiB for each container.
fn spread_scaled(bytes: i64, containers: i64) -> i64 {
    let highest = MAX_CONTAINER_THRESHOLD_BYTES * containers;
    if highest <= MIN_THRESHOLD_BYTES {
        return 0;
    }
    let bytes = bytes.clamp(MIN_THRESHOLD_BYTES, highest);
    MAX_SCORE * (bytes - MIN_THRESHOLD_BYTES) / (highest - MIN_THRESHOLD_BYTES)
}

fn cached_bytes(bytes: i64, images: i64) -> i64 {
    if images == 0 {
        return 0;
    }
    let full = i128::from(CACHED_BYTES_FULL) * i128::from(images);
    let score = i128::from(bytes) * i128::from(MAX_SCORE) / full;
    score.clamp(0, i128::from(MAX_SCORE)) as i64
}

impl FastScore for ImageLocality {
    /// Only nodes that have one of the images can score.
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<dyn ScorePart> {
        let mut images = pod.spec.images.iter().filter_map(|image| cluster.image(image)).peekable();
        if images.peek().is_none() {
            return Compiled::Idle;
        }
        let mut scores = vec![0.0; cluster.columns().len()];
        let prepared = Prepared::nothing();
        let input = ScoreInput { prepared: &prepared, cluster, pod, nodes: &[] };
        for image in images {
            for node in &image.nodes {
                let score = self.score_node(input, cluster.node_at(*node));
                scores[node.index()] = score.unwrap_or(0) as f64;
            }
        }
        Compiled::Part(Box::new(Fixed { scores, normalization: Normalization::None }))
    }
}

#[cfg(test)]
mod tests;
