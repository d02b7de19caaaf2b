//! Why not this node: who refuses it, or how far it is behind.

use supercargo_engine::Outcome;
use supercargo_framework::{details::Detail, preemption::Rejection, registry::Point};

use super::{Decision, Deserialize, Explained, Map, Name, NodeScores, Objection, Serialize, Value};

/// A node that was asked about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WhyNot {
    /// Its name.
    pub node: String,
    /// Whether there is such a node.
    pub exists: bool,
    /// It is the one.
    pub chosen: bool,
    /// The search got to it.
    pub looked_at: bool,
    /// It would do.
    pub feasible: bool,
    /// Its rank among the feasible nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
    /// Its total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<i64>,
    /// How many points it is behind the highest total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<i64>,
    /// Where it lost or won points against the chosen node, the greatest loss first.
    pub plugins: Vec<PluginGap>,
    /// Everybody who refuses it, in the order in which they are asked.
    pub objections: Vec<ObjectionReport>,
}

/// The points of a node and of the chosen one by the same plugin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PluginGap {
    /// The plugin.
    pub plugin: String,
    /// What it gave the node.
    pub points: i64,
    /// What it gave the chosen one.
    pub chosen: i64,
    /// How many fewer.
    pub behind: i64,
}

/// Somebody who refuses a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectionReport {
    /// The plugin.
    pub plugin: String,
    /// Where: `preFilter` is about all nodes, or all but some.
    pub point: String,
    /// The kind of refusal.
    pub code: String,
    /// Why, in kube-scheduler's words.
    pub reasons: Vec<String>,
    /// The one that kube-scheduler reports: it asks no further.
    pub reported: bool,
    /// It is about the room for pods that are nominated to the node; without them it would do.
    pub for_nominated: bool,
    /// What is in the way, with numbers and names.
    pub details: Vec<DetailReport>,
}

/// One thing that is in the way, or that is allotted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DetailReport {
    /// For people.
    pub text: String,
    /// The same for programs.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

pub(super) fn all(explained: &Explained, nodes: &[NodeScores]) -> Vec<WhyNot> {
    let asked = explained.objections.iter();
    asked.map(|(name, objections)| why_not(&explained.decision, name, objections.as_deref(), nodes)).collect()
}

fn why_not(
    decision: &Decision,
    name: &Name,
    objections: Option<&[Objection]>,
    nodes: &[NodeScores],
) -> WhyNot {
    let scores = nodes.iter().find(|node| *node.name == **name);
    let chosen = decision.node().and_then(|node| nodes.iter().find(|other| *other.name == **node));
    let objections = objections.map(|objections| reports(decision, name, objections));
    let is_gated = decision.outcome == Outcome::Gated;
    WhyNot {
        node: name.to_string(),
        exists: objections.is_some(),
        chosen: decision.node() == Some(name),
        looked_at: decision.feasible.contains(name) || decision.rejected.contains_key(name),
        feasible: objections.as_ref().is_some_and(|all| all.is_empty() && !is_gated),
        rank: scores.map(|node| node.rank),
        total: scores.map(|node| node.total),
        behind: scores.and_then(|node| Some(decision.best_total()?.saturating_sub(node.total))),
        plugins: scores.zip(chosen).map(|(node, chosen)| gaps(node, chosen)).unwrap_or_default(),
        objections: objections.unwrap_or_default(),
    }
}

fn gaps(node: &NodeScores, chosen: &NodeScores) -> Vec<PluginGap> {
    let gap = |(plugin, points): (&String, &super::PluginPoints)| {
        let (points, chosen) = (points.points, chosen.plugins.get(plugin)?.points);
        let behind = chosen.saturating_sub(points);
        (behind != 0).then(|| PluginGap { plugin: plugin.clone(), points, chosen, behind })
    };
    let mut gaps: Vec<PluginGap> = node.plugins.iter().filter_map(gap).collect();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.behind));
    gaps
}

/// With the refusal that the decision has on record, also if it is not a plugin's.
fn reports(decision: &Decision, node: &Name, objections: &[Objection]) -> Vec<ObjectionReport> {
    let mut reports: Vec<ObjectionReport> = objections.iter().map(ObjectionReport::new).collect();
    let on_record = |report: &ObjectionReport, point: Point, plugin: &str| {
        report.point == point.name() && report.plugin == plugin
    };
    let reported = if let Some(refused) = &decision.refused {
        let found = reports.iter().position(|report| on_record(report, Point::PreFilter, &refused.plugin));
        Some((found, refused.clone(), Point::PreFilter))
    } else if let Some(rejection) = decision.rejected.get(node) {
        let found = reports.iter().position(|report| on_record(report, Point::Filter, &rejection.plugin));
        Some((found, rejection.clone(), Point::Filter))
    } else if decision.ruled_out.contains(node) {
        let narrowing =
            |report: &ObjectionReport| decision.narrowed_by.iter().any(|plugin| **plugin == *report.plugin);
        let status = decision.verdicts.others.clone();
        let plugin = decision.narrowed_by.first().cloned().unwrap_or_default();
        Some((reports.iter().position(narrowing), Rejection { plugin, status }, Point::PreFilter))
    } else {
        None
    };
    match reported {
        Some((Some(found), ..)) => reports[found].reported = true,
        Some((None, Rejection { plugin, status }, point)) => {
            let objection = Objection { plugin, point, status, details: Vec::new(), for_nominated: false };
            reports.insert(0, ObjectionReport { reported: true, ..ObjectionReport::new(&objection) });
        }
        None => {}
    }
    reports
}

impl DetailReport {
    pub(super) fn new(detail: &Detail) -> Self {
        Self { text: detail.text.clone(), facts: detail.facts.clone() }
    }
}

impl ObjectionReport {
    fn new(objection: &Objection) -> Self {
        let details = objection.details.iter();
        Self {
            plugin: objection.plugin.to_string(),
            point: objection.point.name().to_owned(),
            code: objection.status.code.name().to_owned(),
            reasons: objection.status.reasons.iter().map(ToString::to_string).collect(),
            reported: false,
            for_nominated: objection.for_nominated,
            details: details.map(DetailReport::new).collect(),
        }
    }
}
