//! Prefers nodes that have the pod's images already.

use std::{collections::HashMap, sync::Arc};

use serde::Deserialize;
use supercargo_framework::{
    MAX_SCORE, ScoreInput, Verdict,
    fast::{Compiled, FastScore, RawScores, ScorePart},
    points::Score,
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{Cluster, Name, Pod, PodSpec};

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

impl ImageLocality {
    /// The bytes of the pod's images that each node has, by place; `None` if no node has any. An image that the pod names
    /// several times counts as often, and is looked for once.
    fn bytes(&self, cluster: &Cluster, pod: &Pod) -> Option<Vec<i64>> {
        let mut times: HashMap<&Name, i64> = HashMap::new();
        pod.spec.images.iter().for_each(|image| *times.entry(image).or_default() += 1);
        let mut bytes: Option<Vec<i64>> = None;
        for (image, times) in times {
            let Some(image) = cluster.image(image) else {
                continue;
            };
            let bytes = bytes.get_or_insert_with(|| vec![0; cluster.columns().len()]);
            let share = image.nodes.len() as f64 / cluster.node_count() as f64;
            let worth = match self.formula {
                Formula::SpreadScaled => (image.size_bytes as f64 * share) as i64,
                Formula::CachedBytes => image.size_bytes,
            };
            for node in &image.nodes {
                let bytes = &mut bytes[node.index()];
                *bytes = bytes.saturating_add(worth.saturating_mul(times));
            }
        }
        bytes
    }

    fn points(&self, bytes: i64, spec: &PodSpec) -> i64 {
        match self.formula {
            Formula::SpreadScaled => spread_scaled(bytes, spec.container_count as i64),
            Formula::CachedBytes => cached_bytes(bytes, spec.images.len() as i64),
        }
    }
}

impl Score for ImageLocality {
    fn score(&self, input: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        let bytes = self.bytes(input.cluster, input.pod);
        for (score, node) in column.iter_mut().zip(input.nodes) {
            let bytes = bytes.as_ref().map_or(0, |bytes| bytes[node.id.index()]);
            *score = self.points(bytes, &input.pod.spec);
        }
        Ok(())
    }
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
    fn compile_score(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<ScorePart> {
        let Some(bytes) = self.bytes(cluster, pod) else {
            return Compiled::Idle;
        };
        let scores = bytes.into_iter().map(|bytes| self.points(bytes, &pod.spec) as f64).collect();
        Compiled::Part(RawScores::Fixed(scores).in_range())
    }
}

#[cfg(test)]
mod tests;
