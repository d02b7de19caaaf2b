//! Node selectors and node affinity: what a pod requires of a node's labels and name, and what it prefers.

mod details;
mod fast;

use std::{collections::BTreeSet, sync::Arc};

use serde::Deserialize;
use supercargo_framework::{
    Detail, Prepared, ScoreInput, Status, Verdict,
    event::{ActionType, EventInterest, EventResource},
    normalize,
    points::{
        Filter, NormalizeScore, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome, Requeue, ScoreNode,
    },
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{
    Cluster, Name, Node, NodeInfo, Pod,
    selector::{NODE_NAME_FIELD, NodeAffinity as Affinity, NodeSelector, Operator, PreferredTerm},
};

use crate::required_nodes::{RequiredNodes, are_many, required_node_affinity};

/// The plugin's name.
pub const NAME: &str = "NodeAffinity";

const NOT_MATCHED: &str = "node(s) didn't match Pod's node affinity/selector";
const NOT_ENFORCED: &str = "node(s) didn't match scheduler-enforced node affinity";
const CONFLICT: &str = "pod affinity terms conflict";

/// The plugin.
#[derive(Default)]
pub struct NodeAffinity {
    added: Affinity,
}

/// The plugin's arguments.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeAffinityArgs {
    /// Holds for every pod of the profile besides its own affinity.
    added_affinity: Option<Affinity>,
}

impl NodeAffinity {
    /// With an affinity that is added to every pod's own.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let added = args.decode::<NodeAffinityArgs>()?.added_affinity.unwrap_or_default();
        let mut problems = Problems::default();
        const REQUIRED: &str = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution";
        const PREFERRED: &str = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution";
        if let Some(required) = &added.required {
            for (i, term) in required.node_selector_terms.iter().enumerate() {
                if let Some(defect) = term.defect() {
                    let field = format!("{REQUIRED}.nodeSelectorTerms[{i}].{}", defect.field);
                    problems.push(args.problem(&field, defect.message.clone()));
                }
            }
        }
        for (i, term) in added.preferred.iter().enumerate().filter(|(_, term)| counts(term)) {
            if let Some(defect) = term.preference.defect() {
                // As in kube-scheduler, the field is named without `preference`.
                let field = format!("{PREFERRED}[{i}].{}", defect.field);
                problems.push(args.problem(&field, defect.message.clone()));
            }
        }
        if problems.is_empty() { Ok(Self { added }) } else { Err(problems) }
    }

    fn enforces(&self, node: &Node) -> bool {
        matches(self.added.required.as_ref(), node)
    }
}

fn matches(selector: Option<&NodeSelector>, node: &Node) -> bool {
    selector.is_none_or(|selector| selector.matches(&node.name, &node.labels))
}

/// The nodes that a pod's affinity names, if every term names some.
fn named_nodes(affinity: &Affinity) -> Option<BTreeSet<Name>> {
    let terms = &affinity.required.as_ref()?.node_selector_terms;
    let mut all = None;
    for term in terms {
        let mut names: Option<BTreeSet<Name>> = None;
        for field in &term.match_fields {
            if &*field.key == NODE_NAME_FIELD && field.operator == Operator::In {
                let listed: BTreeSet<Name> = field.values.iter().cloned().collect();
                names = Some(match names {
                    None => listed,
                    Some(names) => &names & &listed,
                });
            }
        }
        all.get_or_insert_with(BTreeSet::new).extend(names?);
    }
    all
}

impl PreFilter for NodeAffinity {
    fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterOutcome, Status> {
        let affinity = &pod.spec.node_affinity;
        let asks_nothing = affinity.required.is_none() && pod.spec.node_selector.is_empty();
        if asks_nothing && self.added.required.is_none() {
            return Ok(PreFilterOutcome::Skip);
        }
        let nodes = named_nodes(affinity);
        if nodes.as_ref().is_some_and(BTreeSet::is_empty) {
            return Err(Status::unresolvable(CONFLICT));
        }
        let prepared = Prepared::new(RequiredNodes::new(cluster, &pod.spec));
        Ok(PreFilterOutcome::Go { nodes, prepared })
    }
}

impl Filter for NodeAffinity {
    fn filter(&self, prepared: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Verdict {
        let matches = || match prepared.get::<RequiredNodes>() {
            Ok(required) => required.contain(&pod.spec, node),
            // kube-scheduler's Filter works without its PreFilter, too.
            Err(_) => required_node_affinity(&pod.spec, &node.node),
        };
        if !self.enforces(&node.node) {
            Err(Status::unresolvable(NOT_ENFORCED))
        } else if !matches() {
            Err(Status::unresolvable(NOT_MATCHED))
        } else {
            Ok(())
        }
    }

    fn details(&self, _: &Prepared, _: &Cluster, pod: &Pod, node: &NodeInfo) -> Vec<Detail> {
        self.tell_details(pod, &node.node)
    }
}

impl PreScore for NodeAffinity {
    fn pre_score(&self, cluster: &Cluster, pod: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        let preferred = &pod.spec.node_affinity.preferred;
        if let Some(defect) =
            preferred.iter().filter(|term| counts(term)).find_map(|term| term.preference.defect())
        {
            return Err(Status::error(defect.to_string()));
        }
        if preferred.is_empty() && self.added.preferred.is_empty() {
            return Ok(PreScoreOutcome::Skip);
        }
        if are_many(preferred.iter().map(|term| &term.preference)) {
            return Ok(PreScoreOutcome::go(ScoresByPlace(self.scores(cluster, pod).into())));
        }
        Ok(PreScoreOutcome::Go(Prepared::nothing()))
    }
}

/// The scores of all nodes by place, where preferences are too many to be asked node by node.
#[derive(Clone)]
struct ScoresByPlace(Arc<[f64]>);

fn counts(term: &PreferredTerm) -> bool {
    term.weight != 0 && !term.preference.is_empty()
}

impl ScoreNode for NodeAffinity {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        if let Ok(ScoresByPlace(scores)) = input.prepared.get() {
            return Ok(scores[node.id.index()] as i64);
        }
        let preferred = &input.pod.spec.node_affinity.preferred;
        let matching = (self.added.preferred.iter().chain(preferred))
            .filter(|term| counts(term) && term.preference.matches(node.name(), &node.node.labels));
        Ok(matching.map(|term| i64::from(term.weight)).sum())
    }
}

impl NormalizeScore for NodeAffinity {
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        normalize::proportional(column);
        Ok(())
    }
}

impl Requeue for NodeAffinity {
    fn events(&self) -> Vec<EventInterest> {
        let added = self.added.required.clone();
        vec![EventInterest::new(EventResource::Node, [ActionType::Add, ActionType::UpdateNodeLabel]).if_node(
            move |pod, before, after| {
                after.is_some_and(|node| {
                    matches(added.as_ref(), node) && required_node_affinity(&pod.spec, node)
                }) && !before.is_some_and(|node| required_node_affinity(&pod.spec, node))
            },
        )]
    }
}

#[cfg(test)]
mod tests;
