//! Default weights were others before v1beta3: they are written down where v1 would take its own.

use super::OldProfile;
use crate::{header::Version, merge::ALL, tree::At};

/// The default weights of the score plugins that v1 weighs otherwise.
fn older(version: Version) -> &'static [(&'static str, i32)] {
    const BEFORE_V1BETA3: [(&str, i32); 3] =
        [("TaintToleration", 1), ("NodeAffinity", 1), ("InterPodAffinity", 1)];
    const BEFORE_V1BETA1: [(&str, i32); 4] =
        [("TaintToleration", 1), ("NodeAffinity", 1), ("PodTopologySpread", 1), ("InterPodAffinity", 1)];
    match version {
        Version::V1 | Version::V1Beta3 => &[],
        Version::V1Beta2 | Version::V1Beta1 => &BEFORE_V1BETA3,
        Version::V1Alpha2 | Version::V1Alpha1 => &BEFORE_V1BETA1,
    }
}

/// Names the plugins in multiPoint, where that changes nothing but their weight.
pub(super) fn keep(old: &mut OldProfile<'_>, version: Version) {
    for (plugin, weight) in older(version) {
        let lists = [
            ("score", "enabled"),
            ("score", "disabled"),
            ("multiPoint", "enabled"),
            ("multiPoint", "disabled"),
        ];
        let is_mentioned =
            lists.iter().any(|(point, list)| [ALL, plugin].iter().any(|name| old.names(point, list, name)));
        if !is_mentioned {
            let at = At(old.profile.at);
            let entry = at.map([("name", at.text(plugin)), ("weight", at.number(weight))]);
            old.add("multiPoint", "enabled", entry);
        }
    }
}
