//! A decision in the fields of the conformance data, for machines to read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use supercargo_engine::{Decision, Outcome};
use supercargo_framework::preemption::{Nomination, Rejection};
use supercargo_model::Name;

/// What came of a pod.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodReport {
    /// `namespace/name`.
    pub pod: String,
    /// `Scheduled`, `Unschedulable`, `Gated` or `Error`.
    pub result: String,
    /// Who refused the pod for every node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_filter: Option<NodeRejection>,
    /// Who refused a node, by node.
    pub rejected: BTreeMap<String, NodeRejection>,
    /// The feasible nodes, by name. All scores follow their order.
    pub feasible: Vec<String>,
    /// What each plugin gave.
    pub plugins: BTreeMap<String, PluginScores>,
    /// The weighted sums.
    pub total: Vec<i64>,
    /// The nodes with the highest total, by name.
    pub best: Vec<String>,
    /// The node that was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placed: Option<String>,
    /// Why no node is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What came of making room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<PreemptionReport>,
    /// The profile that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// What ties were broken by.
    #[serde(skip_serializing_if = "Option::is_none", with = "seed_text")]
    pub seed: Option<u64>,
    /// How many times the pod was tried, if more than once. This is the last attempt; but `preemption` is what room was made
    /// by for an earlier one, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
    /// The pod had to leave later for a more important one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub evicted: bool,
}

/// Who refused, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeRejection {
    /// The plugin.
    pub plugin: String,
    /// The kind of refusal.
    pub code: String,
    /// The reasons, sorted.
    #[serde(serialize_with = "never_null")]
    pub reasons: Option<Vec<String>>,
}

/// A plugin's normalized scores, before weighing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginScores {
    /// How much they count.
    pub weight: i32,
    /// One for each feasible node.
    pub scores: Vec<i64>,
}

/// What came of making room.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PreemptionReport {
    /// The node; empty for none.
    pub nominated_node: String,
    /// Who has to go, sorted.
    #[serde(serialize_with = "never_null")]
    pub victims: Option<Vec<String>>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The recorded data has `null` where there is nothing; readers of ours get an empty list.
fn never_null<S: Serializer>(list: &Option<Vec<String>>, serializer: S) -> Result<S::Ok, S::Error> {
    list.as_deref().unwrap_or_default().serialize(serializer)
}

/// A seed as a text: as a number it would lose digits in most readers of JSON.
mod seed_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(seed: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match seed {
            Some(seed) => serializer.collect_str(seed),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        let text: Option<String> = Option::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Stands for a plugin where a node was not looked at.
const RULED_OUT: &str = "PreFilterResult";

impl NodeRejection {
    fn new(rejection: &Rejection) -> Self {
        let mut reasons: Vec<String> =
            (rejection.status.reasons.iter()).map(|reason| reason.clone().into_owned()).collect();
        reasons.sort();
        Self {
            plugin: rejection.plugin.to_string(),
            code: rejection.status.code.name().to_owned(),
            reasons: Some(reasons),
        }
    }

    /// A node that a PreFilter step left out of the list.
    fn ruled_out() -> Self {
        Self { plugin: RULED_OUT.to_owned(), code: "UnschedulableAndUnresolvable".to_owned(), reasons: None }
    }

    /// Whether a PreFilter step left the node out of the list.
    pub fn is_ruled_out(&self) -> bool {
        self.plugin == RULED_OUT
    }
}

impl PodReport {
    /// The report of a decision.
    pub fn new(decision: &Decision) -> Self {
        let (result, placed) = match &decision.outcome {
            Outcome::Scheduled { node } => ("Scheduled", Some(node.to_string())),
            Outcome::Unschedulable => ("Unschedulable", None),
            Outcome::Gated => ("Gated", None),
            Outcome::Error { .. } => ("Error", None),
        };
        let mut rejected: BTreeMap<String, NodeRejection> = (decision.rejected.iter())
            .map(|(node, rejection)| (node.to_string(), NodeRejection::new(rejection)))
            .collect();
        let ruled_out = decision.ruled_out.iter();
        rejected.extend(ruled_out.map(|node| (node.to_string(), NodeRejection::ruled_out())));
        let order = sorted(&decision.feasible);
        let arrange = |column: &[i64]| order.iter().map(|i| column[*i]).collect();
        let scored = !decision.scores.totals.is_empty();
        Self {
            pod: decision.pod.to_string(),
            result: result.to_owned(),
            pre_filter: decision.refused.as_ref().map(NodeRejection::new),
            rejected,
            feasible: order.iter().map(|i| decision.feasible[*i].to_string()).collect(),
            plugins: (decision.scores.columns.iter())
                .map(|column| {
                    let scores = PluginScores { weight: column.weight, scores: arrange(&column.normalized) };
                    (column.plugin.to_string(), scores)
                })
                .collect(),
            total: if scored { arrange(&decision.scores.totals) } else { Vec::new() },
            best: sorted_names(&decision.best),
            placed,
            message: match &decision.outcome {
                Outcome::Error { message } => Some(message.clone()),
                _ => decision.unschedulable_message(),
            },
            preemption: preemption(decision),
            scheduler_name: Some(decision.scheduler_name.to_string()),
            seed: Some(decision.seed),
            attempts: None,
            evicted: false,
        }
    }

    /// The same, as the last of several attempts, with the room that was made for an earlier one.
    #[must_use]
    pub fn after(mut self, attempts: u32, made_room: Option<&Nomination>) -> Self {
        self.attempts = (attempts > 1).then_some(attempts);
        if let Some(nomination) = made_room
            && self.preemption.as_ref().is_none_or(|preemption| preemption.nominated_node.is_empty())
        {
            self.preemption = Some(PreemptionReport::new(nomination));
        }
        self
    }
}

impl PreemptionReport {
    fn new(nomination: &Nomination) -> Self {
        let mut victims: Vec<String> = (nomination.victims.iter()).map(|pod| pod.key().to_string()).collect();
        victims.sort();
        Self { nominated_node: nomination.node.to_string(), victims: Some(victims), message: None }
    }
}

fn preemption(decision: &Decision) -> Option<PreemptionReport> {
    Some(match decision.preemption.as_ref()? {
        Ok(nomination) => PreemptionReport::new(nomination),
        Err(status) => PreemptionReport { message: Some(status.message()), ..PreemptionReport::default() },
    })
}

/// The places of names, in the order of the names.
fn sorted(names: &[Name]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|i| &names[*i]);
    order
}

fn sorted_names(names: &[Name]) -> Vec<String> {
    sorted(names).into_iter().map(|i| names[i].to_string()).collect()
}
