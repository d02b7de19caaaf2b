//! Keeps pods on nodes in the zones and regions that their volumes' labels name.

mod details;

use std::collections::BTreeSet;

use std::sync::Arc;

use supercargo_framework::{
    Detail, Prepared, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    fast::{Compiled, FastFilter, FilterPart},
    points::{Filter, PreFilter, PreFilterOutcome, Requeue},
};
use supercargo_model::{
    Cluster, Key, Labels, Name, NodeId, NodeInfo, Pod,
    object::Object,
    storage::{PersistentVolume, PersistentVolumeClaim, VolumeBindingMode, VolumeSource},
};

use crate::fast_parts::{LabelValue, OnlyNodes, OnlyValue, WhyNot};

/// The plugin's name.
pub const NAME: &str = "VolumeZone";

const CONFLICT: &str = "node(s) had no available volume zone";

const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const LABELS: [&str; 4] = [OLD_ZONE, OLD_REGION, ZONE, REGION];

/// Separates the zones of a volume that is in several.
const ZONE_DELIMITER: &str = "__";

/// The plugin.
pub struct VolumeZone;

/// A label that a node must have, with one of these values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ZoneRequirement {
    key: &'static str,
    values: BTreeSet<Name>,
}

/// Where the pod's volumes are.
#[derive(Clone)]
struct ZoneRequirements(Vec<ZoneRequirement>);

impl PreFilter for VolumeZone {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        let places = places_of_pod(cluster, pod)?;
        if places.is_empty() {
            return Ok(PreFilterOutcome::Skip);
        }
        Ok(PreFilterOutcome::go(ZoneRequirements(places)))
    }
}

impl Filter for VolumeZone {
    fn filter(&self, prepared: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        let labels = &node.node.labels;
        match prepared.get::<ZoneRequirements>() {
            Ok(ZoneRequirements(places)) => check(places, labels),
            // kube-scheduler's Filter works without its PreFilter, too.
            Err(_) => check(&places_of_pod(cluster, pod)?, labels),
        }
    }

    fn details(&self, _: &Prepared, cluster: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        details::details(cluster, pod, node)
    }
}

fn check(places: &[ZoneRequirement], node: &Labels) -> Verdict {
    // In a cluster of a single zone, nodes may not name it.
    let placeless = !LABELS.iter().any(|key| node.has(key));
    if placeless || places.iter().all(|place| place.includes(node)) {
        Ok(())
    } else {
        Err(Status::unresolvable(CONFLICT))
    }
}

impl ZoneRequirement {
    /// A volume's label may go by its old name where the node's does not.
    fn includes(&self, node: &Labels) -> bool {
        let stable = match self.key {
            OLD_ZONE => ZONE,
            OLD_REGION => REGION,
            key => key,
        };
        let value = node.get(self.key).or_else(|| node.get(stable));
        value.is_some_and(|value| self.values.contains(value))
    }
}

fn places_of_pod(cluster: &Cluster, pod: &Pod) -> Result<Vec<ZoneRequirement>, Status> {
    let mut places = Vec::new();
    for volume in &pod.spec.volumes {
        let VolumeSource::Claim { name } = &volume.source else {
            continue;
        };
        if name.is_empty() {
            return Err(Status::unresolvable("PersistentVolumeClaim had no name"));
        }
        let claim = cluster.claim(&Key::new(pod.namespace.clone(), name.clone()));
        let claim =
            claim.ok_or_else(|| Status::unresolvable(format!("persistentvolumeclaim {name:?} not found")))?;
        if claim.volume.is_empty() {
            check_unbound(cluster, claim)?;
            continue;
        }
        let volume = cluster.volume(&claim.volume);
        let missing = || Status::unresolvable(format!("persistentvolume {:?} not found", claim.volume));
        places.extend(places_of_volume(volume.ok_or_else(missing)?));
    }
    // A pod may name a claim any number of times.
    places.sort_unstable();
    places.dedup();
    Ok(places)
}

/// An unbound claim has no zone yet, which is fine only if it is to be bound along with the pod.
fn check_unbound(cluster: &Cluster, claim: &PersistentVolumeClaim) -> Verdict {
    let class = claim.class_name();
    if class.is_empty() {
        return Err(Status::unresolvable("PersistentVolumeClaim had no pv name and storageClass name"));
    }
    let Some(known) = cluster.storage_class(class) else {
        return Err(Status::unresolvable(format!("storageclass.storage.k8s.io {class:?} not found")));
    };
    match known.binding_mode {
        None => Err(Status::unresolvable(format!("VolumeBindingMode not set for StorageClass {class:?}"))),
        Some(VolumeBindingMode::WaitForFirstConsumer) => Ok(()),
        Some(VolumeBindingMode::Immediate) => Err(Status::unresolvable("PersistentVolume had no name")),
    }
}

/// What a volume's labels say. A label that cannot be read says nothing.
fn places_of_volume(volume: &PersistentVolume) -> Vec<ZoneRequirement> {
    let place = |key: &'static str| {
        let zones = volume.labels.get(key)?.split(ZONE_DELIMITER).map(str::trim);
        let values: BTreeSet<Name> = zones.map(Name::from).collect();
        (!values.contains("")).then_some(ZoneRequirement { key, values })
    };
    LABELS.into_iter().filter_map(place).collect()
}

impl Requeue for VolumeZone {
    fn events(&self) -> Vec<EventInterest> {
        use ActionType::{Add, Update, UpdateNodeLabel};
        vec![
            EventInterest::new(EventResource::StorageClass, [Add]).if_object(|_, _, added| match added {
                Some(Object::StorageClass(class)) => {
                    class.binding_mode == Some(VolumeBindingMode::WaitForFirstConsumer)
                }
                _ => true,
            }),
            EventInterest::new(EventResource::Node, [Add, UpdateNodeLabel]),
            EventInterest::new(EventResource::PersistentVolumeClaim, [Add, Update]).if_object(
                |pod, _, after| match after {
                    Some(Object::PersistentVolumeClaim(claim)) => uses(pod, claim),
                    _ => true,
                },
            ),
            EventInterest::new(EventResource::PersistentVolume, [Add, Update]).if_object(
                |_, before, after| match (before, after) {
                    (Some(Object::PersistentVolume(before)), Some(Object::PersistentVolume(after))) => {
                        places_of_volume(before) != places_of_volume(after)
                    }
                    _ => true,
                },
            ),
        ]
    }
}

fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let names = |source: &VolumeSource| matches!(source, VolumeSource::Claim { name } if *name == claim.name);
    pod.namespace == claim.namespace && pod.spec.volumes.iter().any(|volume| names(&volume.source))
}

impl WhyNot for ZoneRequirements {
    fn why_not(&self, cluster: &Cluster, node: NodeId) -> Option<Status> {
        check(&self.0, &cluster.node_at(node).node.labels).err()
    }
}

/// The zone that all volumes are in, where all nodes name theirs: what most clusters come to.
fn only_zone(cluster: &Cluster, places: &[ZoneRequirement]) -> Option<LabelValue> {
    let [ZoneRequirement { key: ZONE, values }] = places else {
        return None;
    };
    let zones = cluster.label_columns().get(ZONE)?;
    let only = values.first().filter(|_| values.len() == 1 && zones.all_have(cluster.node_count()))?;
    LabelValue::of(cluster, &ZONE.into(), only)
}

/// The nodes that are in the places of all volumes.
fn passing(cluster: &Cluster, places: &[ZoneRequirement]) -> Vec<NodeId> {
    let passes = |node: &NodeId| check(places, &cluster.node_at(*node).node.labels).is_ok();
    cluster.columns().live.iter().filter(passes).collect()
}

impl FastFilter for VolumeZone {
    fn compile_filter(self: Arc<Self>, cluster: &Cluster, pod: &Arc<Pod>) -> Compiled<FilterPart> {
        match places_of_pod(cluster, pod) {
            Err(_) => Compiled::NoFastForm,
            Ok(places) if places.is_empty() => Compiled::Idle,
            Ok(places) => match only_zone(cluster, &places) {
                Some(zone) => OnlyValue::compile(zone, ZoneRequirements(places)),
                None => {
                    let passing = passing(cluster, &places);
                    OnlyNodes::compile(cluster, passing.into_iter(), ZoneRequirements(places))
                }
            },
        }
    }

    fn reads_claims(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
