//! Spreads pods over the values of node labels: zones, hosts, racks.

mod constraints;
mod details;
mod filtering;
mod filtering_fast;
mod scoring;
mod scoring_fast;

use serde::Deserialize;
use supercargo_framework::{
    event::{ActionType, Change, EventInterest, EventResource},
    points::Requeue,
    registry::Args,
};
use supercargo_manifest::Problems;
use supercargo_model::{
    Cluster, Labels, Node, NodeInfo, Pod, labels,
    node::HOSTNAME_LABEL,
    pod::{SpreadConstraint, WhenUnsatisfiable},
    selector::Selector,
};

use constraints::Constraint;

/// The plugin's name.
pub const NAME: &str = "PodTopologySpread";

const ZONE_LABEL: &str = "topology.kubernetes.io/zone";

/// The plugin.
pub struct PodTopologySpread {
    /// Apply to pods that have no constraints of their own.
    default_constraints: Vec<SpreadConstraint>,
    /// The defaults are the built-in ones; then a node may lack some of their labels.
    system_defaults: bool,
    formula: Formula,
}

/// How soft constraints score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Formula {
    /// As kube-scheduler: count × ln(domains + 2) + maxSkew − 1, then inverted.
    #[default]
    LogWeighted,
    /// As some documents tell it: 100 − (domain − fewest) × 100 / maxSkew, the mean over the constraints.
    LinearSkew,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum DefaultingType {
    #[default]
    System,
    List,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodTopologySpreadArgs {
    default_constraints: Vec<DefaultConstraint>,
    defaulting_type: DefaultingType,
    formula: Formula,
}

/// As a pod's constraint, with nothing taken for granted, so that every mistake can be told.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DefaultConstraint {
    max_skew: i32,
    topology_key: supercargo_model::Name,
    when_unsatisfiable: Option<WhenUnsatisfiable>,
    label_selector: Option<Selector>,
    min_domains: Option<i32>,
    node_affinity_policy: Option<supercargo_model::pod::NodeInclusionPolicy>,
    node_taints_policy: Option<supercargo_model::pod::NodeInclusionPolicy>,
    match_label_keys: Vec<supercargo_model::Name>,
}

impl PodTopologySpread {
    /// With the defaults that the arguments choose.
    pub fn new(args: &Args<'_>) -> Result<Self, Problems> {
        let given: PodTopologySpreadArgs = args.decode()?;
        let mut problems = Problems::default();
        let system_defaults = given.defaulting_type == DefaultingType::System;
        if system_defaults && !given.default_constraints.is_empty() {
            let message = "must be List where defaultConstraints are given";
            problems.push(args.problem("defaultingType", message));
        }
        let mut listed: Vec<SpreadConstraint> = Vec::new();
        for (i, written) in given.default_constraints.into_iter().enumerate() {
            let at = format!("defaultConstraints[{i}]");
            let mut blame = |field: &str, message: String| {
                problems.push(args.problem(&format!("{at}{field}"), message));
            };
            if written.max_skew <= 0 {
                let skew = written.max_skew;
                blame(".maxSkew", format!("must be greater than 0, and is {skew}"));
            }
            if !labels::is_valid_key(&written.topology_key) {
                let key = &written.topology_key;
                blame(".topologyKey", format!("{key:?} is not a label key"));
            }
            if written.when_unsatisfiable.is_none() {
                blame(".whenUnsatisfiable", "must be given".to_owned());
            }
            if written.label_selector.is_some() {
                let message = "must not be given: it follows from each pod's services and owner";
                blame(".labelSelector", message.to_owned());
            }
            let constraint = written.constraint();
            let same = |other: &SpreadConstraint| {
                other.topology_key == constraint.topology_key
                    && other.when_unsatisfiable == constraint.when_unsatisfiable
            };
            if listed.iter().any(same) {
                let message = "has the topologyKey and whenUnsatisfiable of one before it";
                blame("", message.to_owned());
            }
            listed.push(constraint);
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            default_constraints: if system_defaults { system_default_constraints() } else { listed },
            system_defaults,
            formula: given.formula,
        })
    }

    fn constraints(&self, cluster: &Cluster, pod: &Pod, action: WhenUnsatisfiable) -> Vec<Constraint> {
        if pod.spec.spread_constraints.is_empty() {
            constraints::defaults(cluster, pod, &self.default_constraints, action)
        } else {
            constraints::own(&pod.spec, action)
        }
    }
}

impl DefaultConstraint {
    fn constraint(self) -> SpreadConstraint {
        SpreadConstraint {
            max_skew: self.max_skew,
            topology_key: self.topology_key,
            when_unsatisfiable: (self.when_unsatisfiable).unwrap_or(WhenUnsatisfiable::ScheduleAnyway),
            label_selector: Selector::Nothing,
            min_domains: self.min_domains,
            node_affinity_policy: self.node_affinity_policy,
            node_taints_policy: self.node_taints_policy,
            match_label_keys: self.match_label_keys,
        }
    }
}

fn system_default_constraints() -> Vec<SpreadConstraint> {
    let soft = |key: &str, max_skew: i32| {
        DefaultConstraint { max_skew, topology_key: key.into(), ..DefaultConstraint::default() }.constraint()
    };
    vec![soft(HOSTNAME_LABEL, 3), soft(ZONE_LABEL, 5)]
}

/// Whether a constraint is about a label that no node has: then no node has the labels of all constraints.
fn any_key_is_absent(cluster: &Cluster, constraints: &[Constraint]) -> bool {
    constraints.iter().any(|c| cluster.label_columns().get(&c.topology_key).is_none())
}

/// Whether a node has the labels of all constraints.
fn has_all_keys(node: &Labels, constraints: &[Constraint]) -> bool {
    constraints.iter().all(|c| node.has(&c.topology_key))
}

/// How many pods of a namespace on a node a constraint counts.
fn count_matching(node: &NodeInfo, constraint: &Constraint, namespace: &str) -> i64 {
    node.pods.iter().filter(|pod| constraint.counts(pod, namespace)).count() as i64
}

impl Requeue for PodTopologySpread {
    fn events(&self) -> Vec<EventInterest> {
        let (of_pods, of_nodes) = (self.default_constraints.clone(), self.default_constraints.clone());
        vec![
            EventInterest::new(
                EventResource::Pod,
                [
                    ActionType::Add,
                    ActionType::UpdatePodLabel,
                    ActionType::UpdatePodToleration,
                    ActionType::Delete,
                ],
            )
            .if_in(move |cluster, pod, change| match change {
                Change::Pod(before, after) => {
                    pod_change_helps(|| hard_constraints(cluster, pod, &of_pods), pod, *before, *after)
                }
                _ => true,
            }),
            EventInterest::new(
                EventResource::Node,
                [
                    ActionType::Add,
                    ActionType::Delete,
                    ActionType::UpdateNodeLabel,
                    ActionType::UpdateNodeTaint,
                ],
            )
            .if_in(move |cluster, pod, change| match change {
                Change::Node(before, after) => {
                    node_change_helps(&hard_constraints(cluster, pod, &of_nodes), *before, *after)
                }
                _ => true,
            }),
        ]
    }
}

/// The hard constraints of a pod: its own, or if it has none, the defaults for its services and its owner.
fn hard_constraints(cluster: &Cluster, pod: &Pod, defaults: &[SpreadConstraint]) -> Vec<Constraint> {
    if pod.spec.spread_constraints.is_empty() {
        constraints::defaults(cluster, pod, defaults, WhenUnsatisfiable::DoNotSchedule)
    } else {
        constraints::own(&pod.spec, WhenUnsatisfiable::DoNotSchedule)
    }
}

fn pod_change_helps(
    hard: impl Fn() -> Vec<Constraint>,
    pod: &Pod,
    before: Option<&Pod>,
    after: Option<&Pod>,
) -> bool {
    let involved = |other: &Pod| {
        other.uid == pod.uid
            || ((other.node.is_some() || other.nominated_node.is_some()) && other.namespace == pod.namespace)
    };
    if !before.is_none_or(involved) || !after.is_none_or(involved) {
        return false;
    }
    let hard = hard();
    let matches = |c: &Constraint, pod: &Pod| c.selector.matches(&pod.spec.labels);
    match (before, after) {
        (Some(before), Some(after)) => {
            let tolerates_anew = after.uid == pod.uid
                && before.spec.tolerations != after.spec.tolerations
                && hard.iter().any(Constraint::honors_taints);
            tolerates_anew || hard.iter().any(|c| matches(c, before) != matches(c, after))
        }
        (Some(one), None) | (None, Some(one)) => hard.iter().any(|c| matches(c, one)),
        (None, None) => false,
    }
}

fn node_change_helps(hard: &[Constraint], before: Option<&Node>, after: Option<&Node>) -> bool {
    let counts = |node: &Node| has_all_keys(&node.labels, hard);
    match (before, after) {
        (Some(before), Some(after)) if counts(before) && counts(after) => {
            let moved =
                |c: &Constraint| before.labels.get(&c.topology_key) != after.labels.get(&c.topology_key);
            hard.iter().any(moved) || before.taints != after.taints
        }
        (Some(before), Some(after)) => counts(before) != counts(after),
        (Some(one), None) | (None, Some(one)) => counts(one),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests;
