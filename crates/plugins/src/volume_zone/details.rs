//! Which volume is in another zone than a node.

use serde_json::json;
use supercargo_framework::details::{Detail, label_in_words};
use supercargo_model::{Cluster, Key, Name, NodeInfo, Pod, storage::VolumeSource};

use super::{ZoneRequirement, places_of_volume};

pub(super) fn details(cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
    let claims = pod.spec.volumes.iter().filter_map(|volume| match &volume.source {
        VolumeSource::Claim { name } => Some(name),
        _ => None,
    });
    let mut details = Vec::new();
    for name in claims {
        let claim = cluster.claim(&Key::new(pod.namespace.clone(), name.clone()));
        let Some(volume) = claim.and_then(|claim| cluster.volume(&claim.volume)) else { continue };
        let elsewhere =
            places_of_volume(volume).into_iter().filter(|place| !place.includes(&node.node.labels));
        details.extend(elsewhere.map(|place| detail(&place, name, &volume.name, node)));
    }
    details
}

fn detail(place: &ZoneRequirement, claim: &Name, volume: &Name, node: &NodeInfo) -> Detail {
    let zones: Vec<&str> = place.values.iter().map(|zone| &**zone).collect();
    let value = node.node.labels.get(place.key);
    let text = format!(
        "volume {volume} of claim {claim} is in {} {}, and {}",
        place.key,
        zones.join(" or "),
        label_in_words(place.key, value)
    );
    Detail::new(text)
        .fact("claim", &**claim)
        .fact("volume", &**volume)
        .fact("label", place.key)
        .fact("zones", json!(zones))
        .fact("value", json!(value))
}
