//! Affinity and anti-affinity between pods: near which other pods, and far from which, a pod may or should run.

mod details;
mod domain_counts;
mod filtering;
mod filtering_fast;
mod scoring;
mod scoring_fast;
mod terms;

use serde::Deserialize;
use supercargo_framework::{
    event::{ActionType, EventInterest, EventResource},
    points::Requeue,
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{Labels, Node, Pod, pod::AffinityTerm};

/// The plugin's name.
pub const NAME: &str = "InterPodAffinity";

/// The plugin.
pub struct InterPodAffinity {
    hard_weight: i32,
    ignore_existing_preferences: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InterPodAffinityArgs {
    hard_pod_affinity_weight: i32,
    ignore_preferred_terms_of_existing_pods: bool,
}

impl Default for InterPodAffinityArgs {
    fn default() -> Self {
        Self { hard_pod_affinity_weight: 1, ignore_preferred_terms_of_existing_pods: false }
    }
}

impl InterPodAffinity {
    /// With the weights that the arguments give.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let given: InterPodAffinityArgs = args.decode()?;
        let weight = given.hard_pod_affinity_weight;
        if !(0..=100).contains(&weight) {
            let message = format!("must be in 0..=100, and is {weight}");
            return Err(args.problem("hardPodAffinityWeight", message).into());
        }
        Ok(Self {
            hard_weight: weight,
            ignore_existing_preferences: given.ignore_preferred_terms_of_existing_pods,
        })
    }
}

/// Whether terms select a pod, all of them; no terms select none. What namespaces are called is not asked.
fn all_match(terms: &[AffinityTerm], pod: &Pod) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(pod, &Labels::default()))
}

impl Requeue for InterPodAffinity {
    fn events(&self) -> Vec<EventInterest> {
        vec![
            EventInterest::new(
                EventResource::Pod,
                [ActionType::Add, ActionType::UpdatePodLabel, ActionType::Delete],
            )
            .if_pod(pod_change_helps),
            EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeLabel])
                .if_node(node_change_helps),
        ]
    }
}

fn pod_change_helps(pod: &Pod, before: Option<&Pod>, after: Option<&Pod>) -> bool {
    let placed = |other: &Pod| other.node.is_some() || other.nominated_node.is_some();
    let affinity = &pod.spec.pod_affinity.required;
    let anti_affinity = &pod.spec.pod_anti_affinity.required;
    match (before, after) {
        (Some(_), Some(after)) if after.uid == pod.uid => true,
        (Some(before), Some(after)) => {
            placed(before)
                && placed(after)
                && ((!all_match(affinity, before) && all_match(affinity, after))
                    || (all_match(anti_affinity, before) && !all_match(anti_affinity, after)))
        }
        (None, Some(added)) => placed(added) && all_match(affinity, added),
        (Some(deleted), None) => {
            placed(deleted)
                && (all_match(anti_affinity, deleted)
                    || all_match(&deleted.spec.pod_anti_affinity.required, pod))
        }
        (None, None) => false,
    }
}

fn node_change_helps(pod: &Pod, before: Option<&Node>, after: Option<&Node>) -> bool {
    let Some(after) = after else {
        return false;
    };
    let came_or_changed = |term: &AffinityTerm| {
        let new = after.labels.get(&term.topology_key);
        new.is_some() && before.and_then(|node| node.labels.get(&term.topology_key)) != new
    };
    let went_or_changed = |term: &AffinityTerm| {
        let old = before.and_then(|node| node.labels.get(&term.topology_key));
        before.is_none() || (old.is_some() && old != after.labels.get(&term.topology_key))
    };
    pod.spec.pod_affinity.required.iter().any(came_or_changed)
        || pod.spec.pod_anti_affinity.required.iter().any(went_or_changed)
}

#[cfg(test)]
mod tests;
