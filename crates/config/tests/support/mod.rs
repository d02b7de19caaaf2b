//! What the tests of this crate share.

use supercargo_framework::registry::{Registry, define};
use supercargo_framework::{points::*, status::*};
use supercargo_model::*;

struct Fake;
impl PreFilter for Fake { fn pre_filter(&self, _: &Cluster, _: &Pod) -> Result<PreFilterOutcome, Status> { Ok(PreFilterOutcome::Skip) } }
impl Filter for Fake { fn filter(&self, _: &Prepared, _: &Cluster, _: &Pod, _: &NodeInfo) -> Verdict { Ok(()) } }
impl PreScore for Fake { fn pre_score(&self, _: &Cluster, _: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> { Ok(PreScoreOutcome::Skip) } }
impl Score for Fake { fn score(&self, _: ScoreInput<'_>, _: &mut [i64]) -> Verdict { Ok(()) } }
impl Reserve for Fake { fn reserve(&self, _: &Pod, _: &str) -> Verdict { Ok(()) } fn unreserve(&self, _: &Pod, _: &str) {} }
impl PreBind for Fake { fn pre_bind(&self, _: &Pod, _: &str) -> Verdict { Ok(()) } }

/// The plugins that exist.
pub fn registry() -> Registry {
    let mut all = supercargo_plugins::registry();
    for name in ["VolumeRestrictions", "NodeVolumeLimits", "VolumeZone"] {
        if all.get(name).is_none() { all.add(define(name, |_| Ok(Fake)).pre_filter().filter()); }
    }
    if all.get("VolumeBinding").is_none() { all.add(define("VolumeBinding", |_| Ok(Fake)).pre_filter().filter().pre_score().score().reserve().pre_bind()); }
    all
}
