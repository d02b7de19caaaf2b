//! An explanation as a document: JSON for programs, and what tables for people are made from, wherever it came from.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use supercargo_engine::{Allotment, Decision, Explained, Influence, Reweighed, TieBreak, Victim};
use supercargo_framework::profile::Objection;
use supercargo_model::Name;

use crate::report::PodReport;

mod why_not;
pub use why_not::{DetailReport, ObjectionReport, PluginGap, WhyNot};

/// Why a pod goes where it goes, or nowhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Explanation {
    /// The decision in the fields of the conformance data.
    #[serde(flatten)]
    pub report: PodReport,
    /// What it was decided on: [`DECIDED`], or [`WHAT_IF`].
    pub basis: String,
    /// How many nodes the cluster has.
    pub node_count: usize,
    /// How many of them were looked at.
    pub evaluated: usize,
    /// The search ended with enough feasible nodes before all were looked at.
    pub stopped_early: bool,
    /// How many pods were placed before it.
    pub pods_before: usize,
    /// The node that the pod runs on in fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_to: Option<String>,
    /// How equals are told apart: `Random`, by the seed, or `First`.
    pub tie_break: String,
    /// The plugins that scored, in their order.
    pub score_plugins: Vec<ScorePlugin>,
    /// The plugins that could have scored, and skipped this pod.
    pub skipped_plugins: Vec<String>,
    /// The feasible nodes with their scores, the best first.
    pub nodes: Vec<NodeScores>,
    /// The refused nodes by plugin and reason, the most frequent first.
    pub rejections: Vec<RejectionGroup>,
    /// What the nodes are like that share a reason.
    pub kinds: Vec<KindCount>,
    /// Why nodes were ruled out unseen, and which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ruled_out: Option<RuledOut>,
    /// The nodes that were asked about.
    pub why_not: Vec<WhyNot>,
    /// What the pod is allotted on the chosen node, and on those that were asked about and would do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allotments: Vec<AllotmentReport>,
    /// What each plugin's weight decides.
    pub influence: Vec<InfluenceReport>,
    /// Whom preemption would evict.
    pub victims: Vec<VictimReport>,
    /// The attempt before this one that room was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_attempt: Option<Box<Explanation>>,
}

/// The basis of a decision that was made.
pub const DECIDED: &str = "decided";
/// The basis of one that would be made in the present state.
pub const WHAT_IF: &str = "what-if";

/// A plugin that scored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScorePlugin {
    /// Its name.
    pub name: String,
    /// How much it counts.
    pub weight: i32,
}

/// A feasible node with its scores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeScores {
    /// Its name.
    pub name: String,
    /// The sum of all points.
    pub total: i64,
    /// One more than the number of nodes with a higher total.
    pub rank: usize,
    /// What each plugin gave.
    pub plugins: BTreeMap<String, PluginPoints>,
}

/// What a plugin gave a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginPoints {
    /// Before normalizing.
    pub raw: i64,
    /// In 0..=100.
    pub normalized: i64,
    /// How much it counts.
    pub weight: i32,
    /// Normalized × weight.
    pub points: i64,
}

/// Nodes that a plugin refused for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RejectionGroup {
    /// The plugin.
    pub plugin: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub count: usize,
    /// Their names.
    pub nodes: Vec<String>,
}

/// How many nodes of a kind were refused for a reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindCount {
    /// Why.
    pub reason: String,
    /// What they have in common: "have none", "are full".
    pub kind: String,
    /// How many.
    pub count: usize,
}

/// Nodes that a PreFilter plugin ruled out unseen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuledOut {
    /// Why.
    pub reason: String,
    /// Their names.
    pub nodes: Vec<String>,
}

/// What a plugin allots a pod on a node, such as devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AllotmentReport {
    /// The node.
    pub node: String,
    /// The plugin.
    pub plugin: String,
    /// What it is, by name.
    pub details: Vec<DetailReport>,
}

/// What a plugin's weight decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct InfluenceReport {
    /// The plugin.
    pub plugin: String,
    /// Its weight.
    pub weight: i32,
    /// If it did not score.
    pub without: ReweighedReport,
    /// With half of its weight.
    pub half: ReweighedReport,
    /// With twice its weight.
    pub twice: ReweighedReport,
}

/// How the nodes would stand with another weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReweighedReport {
    /// Whether another node would be chosen.
    pub changes: bool,
    /// The node that would have the highest total; the first of them by name, if the chosen one is not among them.
    pub best: String,
    /// How many nodes would share it.
    pub ties: usize,
    /// The rank of the node that is chosen now.
    pub rank: usize,
}

/// A pod that preemption would evict.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VictimReport {
    /// `namespace/name`.
    pub pod: String,
    /// Its priority.
    pub priority: i32,
    /// Who manages it, as `Kind/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The disruption budgets that protect it.
    pub budgets: Vec<BudgetReport>,
}

/// What evicting all victims does to a disruption budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetReport {
    /// `namespace/name`.
    pub name: String,
    /// How many of the victims it protects.
    pub victims: usize,
    /// How many disruptions it allows.
    pub disruptions_allowed: i32,
    /// More are evicted than it allows.
    pub violated: bool,
}

impl Explanation {
    /// The document of a decision. `scoring` are the plugins that the profile scores with, in their order.
    pub fn new<'p>(
        explained: &Explained,
        tie_break: TieBreak,
        scoring: impl IntoIterator<Item = &'p str>,
    ) -> Self {
        let decision = &explained.decision;
        let columns = &decision.scores.columns;
        let scored = |name: &str| columns.iter().any(|column| &*column.plugin == name);
        let nodes = node_scores(decision);
        let seen = decision.evaluated() + decision.ruled_out.len();
        Self {
            basis: DECIDED.to_owned(),
            node_count: decision.node_count,
            evaluated: decision.evaluated(),
            stopped_early: !decision.feasible.is_empty() && seen < decision.node_count,
            tie_break: format!("{tie_break:?}"),
            score_plugins: (columns.iter())
                .map(|column| ScorePlugin { name: column.plugin.to_string(), weight: column.weight })
                .collect(),
            skipped_plugins: match columns.is_empty() {
                true => Vec::new(),
                false => scoring.into_iter().filter(|name| !scored(name)).map(str::to_owned).collect(),
            },
            why_not: why_not::all(explained, &nodes),
            nodes,
            rejections: rejections(decision),
            kinds: (explained.kinds.iter())
                .map(|(kind, count)| KindCount {
                    reason: kind.reason.to_string(),
                    kind: kind.kind.to_string(),
                    count: *count,
                })
                .collect(),
            ruled_out: (!decision.ruled_out.is_empty()).then(|| RuledOut {
                reason: decision.verdicts.others.message(),
                nodes: decision.ruled_out.iter().map(ToString::to_string).collect(),
            }),
            allotments: explained.allotments.iter().map(AllotmentReport::new).collect(),
            influence: explained.influence.iter().map(InfluenceReport::new).collect(),
            victims: explained.victims.iter().map(VictimReport::new).collect(),
            report: PodReport::new(decision),
            ..Self::default()
        }
    }
}

/// The feasible nodes, the best first; equals by name.
fn node_scores(decision: &Decision) -> Vec<NodeScores> {
    let totals = &decision.scores.totals;
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by_key(|i| (Reverse(totals[*i]), &decision.feasible[*i]));
    let mut nodes: Vec<NodeScores> = Vec::with_capacity(order.len());
    for (place, i) in order.into_iter().enumerate() {
        let rank = match nodes.last() {
            Some(before) if before.total == totals[i] => before.rank,
            _ => place + 1,
        };
        let points = |column: &supercargo_framework::profile::ScoreColumn| {
            let (normalized, weight) = (column.normalized[i], column.weight);
            let points = normalized.saturating_mul(i64::from(weight));
            (column.plugin.to_string(), PluginPoints { raw: column.raw[i], normalized, weight, points })
        };
        nodes.push(NodeScores {
            name: decision.feasible[i].to_string(),
            total: totals[i],
            rank,
            plugins: decision.scores.columns.iter().map(points).collect(),
        });
    }
    nodes
}

fn rejections(decision: &Decision) -> Vec<RejectionGroup> {
    let mut groups: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
    // Thousands of nodes may share a refusal, and its text is long.
    let mut texts: HashMap<*const std::borrow::Cow<'static, str>, String> = HashMap::new();
    for (node, rejection) in &decision.rejected {
        let reasons = &rejection.status.reasons;
        let text = texts.entry(reasons.as_ptr()).or_insert_with(|| rejection.status.message());
        groups.entry((&*rejection.plugin, text.clone())).or_default().push(node.to_string());
    }
    let group = |((plugin, reason), nodes): ((&str, String), Vec<String>)| RejectionGroup {
        plugin: plugin.to_owned(),
        reason,
        count: nodes.len(),
        nodes,
    };
    let mut groups: Vec<RejectionGroup> = groups.into_iter().map(group).collect();
    groups.sort_by_key(|group| Reverse(group.count));
    groups
}

impl AllotmentReport {
    fn new(allotment: &Allotment) -> Self {
        Self {
            node: allotment.node.to_string(),
            plugin: allotment.plugin.to_string(),
            details: allotment.details.iter().map(DetailReport::new).collect(),
        }
    }
}

impl InfluenceReport {
    fn new(influence: &Influence) -> Self {
        let report = |at: &Reweighed| ReweighedReport {
            changes: at.rank > 1,
            best: at.best.to_string(),
            ties: at.ties,
            rank: at.rank,
        };
        Self {
            plugin: influence.plugin.to_string(),
            weight: influence.weight,
            without: report(&influence.without),
            half: report(&influence.half),
            twice: report(&influence.twice),
        }
    }
}

impl VictimReport {
    fn new(victim: &Victim) -> Self {
        Self {
            pod: victim.pod.to_string(),
            priority: victim.priority,
            owner: victim.owner.as_ref().map(|owner| format!("{}/{}", owner.kind, owner.name)),
            budgets: (victim.budgets.iter())
                .map(|budget| BudgetReport {
                    name: budget.budget.to_string(),
                    victims: budget.victims,
                    disruptions_allowed: budget.allowed,
                    violated: budget.is_violated(),
                })
                .collect(),
        }
    }
}
