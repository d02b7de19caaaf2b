//! What a decision's record leaves out, for whoever asks why: everybody who refuses a node, what would have to change for
//! another one to win, and whom preemption hurts. Nothing here decides.

use std::collections::BTreeMap;

use supercargo_framework::{
    details::{Detail, RefusalKind},
    profile::{Examination, Objection, Profile, ScoreColumn},
};
use supercargo_model::{Cluster, Key, Name, Pod, meta::Owner, pod_owner::PodDisruptionBudget};

use crate::{cluster_state::ClusterState, decision::Decision};

/// A decision with what explains it further.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// The record.
    pub decision: Decision,
    /// How many of the refused nodes are of each kind, where a reason tells some apart.
    pub kinds: BTreeMap<RefusalKind, usize>,
    /// Everybody who refuses the nodes that were asked about, in the order in which they were given. `None` for a node that
    /// does not exist.
    pub objections: Vec<(Name, Option<Vec<Objection>>)>,
    /// What the pod is allotted on the chosen node, and on those that were asked about and would do.
    pub allotments: Vec<Allotment>,
    /// The pods that would be evicted to make room.
    pub victims: Vec<Victim>,
    /// What each plugin's weight decides.
    pub influence: Vec<Influence>,
}

/// What a plugin allots a pod on a node, such as devices.
#[derive(Clone, Debug, PartialEq)]
pub struct Allotment {
    /// The node.
    pub node: Name,
    /// The plugin.
    pub plugin: Name,
    /// What it is, by name.
    pub details: Vec<Detail>,
}

/// A pod that would be evicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The pod.
    pub pod: Key,
    /// Its priority.
    pub priority: i32,
    /// Who manages it.
    pub owner: Option<Owner>,
    /// The disruption budgets that protect it.
    pub budgets: Vec<BudgetUse>,
}

/// What evicting all victims does to a disruption budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetUse {
    /// The budget.
    pub budget: Key,
    /// How many of the victims it protects.
    pub victims: usize,
    /// How many disruptions it allows.
    pub allowed: i32,
}

impl BudgetUse {
    /// Whether more are evicted than it allows.
    pub fn is_violated(&self) -> bool {
        self.victims as i64 > i64::from(self.allowed)
    }
}

/// What a plugin's weight decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Influence {
    /// The plugin.
    pub plugin: Name,
    /// Its weight.
    pub weight: i32,
    /// If it did not score.
    pub without: Reweighed,
    /// With half of its weight.
    pub half: Reweighed,
    /// With twice its weight.
    pub twice: Reweighed,
}

/// How the nodes would stand with another weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reweighed {
    /// The rank of the node that was chosen: one more than the number of nodes ahead of it.
    pub rank: usize,
    /// How many nodes would share the highest total.
    pub ties: usize,
    /// The first of them, by name; the chosen one if it is among them.
    pub best: Name,
}

impl From<Decision> for Explained {
    /// A decision that nobody can say more about.
    fn from(decision: Decision) -> Self {
        Self {
            decision,
            kinds: BTreeMap::new(),
            objections: Vec::new(),
            allotments: Vec::new(),
            victims: Vec::new(),
            influence: Vec::new(),
        }
    }
}

impl Explained {
    pub(crate) fn new(
        state: &ClusterState,
        profile: &Profile,
        pod: &Pod,
        decision: Decision,
        nodes: &[Name],
    ) -> Self {
        let examination = profile.examine(&state.cluster, pod);
        let asking = Asking { state, profile, examination, pod };
        let objections: Vec<_> = nodes.iter().map(|node| asking.objections(node)).collect();
        Self {
            kinds: asking.kinds(&decision),
            allotments: asking.allotments(&decision, &objections),
            objections,
            victims: victims(&state.cluster, &decision),
            influence: influence(&decision),
            decision,
        }
    }
}

/// Whoever asks, what about, and in which state.
struct Asking<'a> {
    state: &'a ClusterState,
    profile: &'a Profile,
    examination: Examination,
    pod: &'a Pod,
}

impl Asking<'_> {
    fn kinds(&self, decision: &Decision) -> BTreeMap<RefusalKind, usize> {
        let cluster = &self.state.cluster;
        let mut kinds = BTreeMap::new();
        for (node, rejection) in &decision.rejected {
            let Some(node) = cluster.node(node) else { continue };
            let of_node = self.profile.refusal_kinds(&self.examination, cluster, self.pod, node, rejection);
            for kind in of_node {
                *kinds.entry(kind).or_default() += 1;
            }
        }
        kinds
    }

    fn allotments(
        &self,
        decision: &Decision,
        objections: &[(Name, Option<Vec<Objection>>)],
    ) -> Vec<Allotment> {
        let cluster = &self.state.cluster;
        let would_do = |(_, objections): &&(Name, Option<Vec<Objection>>)| {
            objections.as_ref().is_some_and(Vec::is_empty)
        };
        let asked = objections.iter().filter(would_do).map(|(node, _)| node);
        let nodes = decision.node().into_iter().chain(asked.filter(|node| decision.node() != Some(node)));
        let mut all = Vec::new();
        for node in nodes {
            let Some(info) = cluster.node(node) else { continue };
            for (plugin, details) in self.profile.allotments(&self.examination, cluster, self.pod, info) {
                all.push(Allotment { node: node.clone(), plugin, details });
            }
        }
        all
    }

    fn objections(&self, name: &Name) -> (Name, Option<Vec<Objection>>) {
        let ClusterState { cluster, nominations } = self.state;
        let objections = cluster
            .node(name)
            .map(|node| self.profile.objections(&self.examination, cluster, nominations, self.pod, node));
        (name.clone(), objections)
    }
}

fn victims(cluster: &Cluster, decision: &Decision) -> Vec<Victim> {
    let victims = decision.victims();
    let protects = |budget: &PodDisruptionBudget, pod: &Pod| {
        budget.protects(pod) && !budget.disrupted_pods.contains(&pod.name)
    };
    let budget_use = |budget: &PodDisruptionBudget| BudgetUse {
        budget: budget.key(),
        victims: victims.iter().filter(|victim| protects(budget, victim)).count(),
        allowed: budget.disruptions_allowed,
    };
    let victim = |pod: &Pod| Victim {
        pod: pod.key(),
        priority: pod.spec.priority,
        owner: pod.spec.controller.clone(),
        budgets: cluster.budgets().filter(|budget| protects(budget, pod)).map(budget_use).collect(),
    };
    victims.iter().map(|pod| victim(pod)).collect()
}

/// What each plugin's weight decides about the choice of a node.
pub fn influence(decision: &Decision) -> Vec<Influence> {
    let feasible = &decision.feasible;
    let chosen = decision.node().and_then(|node| feasible.iter().position(|name| name == node));
    let Some(chosen) = chosen.filter(|_| !decision.scores.totals.is_empty()) else {
        return Vec::new();
    };
    let influence = |column: &ScoreColumn| {
        let reweighed = |halves: i128| reweighed(decision, chosen, column, halves);
        Influence {
            plugin: column.plugin.clone(),
            weight: column.weight,
            without: reweighed(0),
            half: reweighed(1),
            twice: reweighed(4),
        }
    };
    decision.scores.columns.iter().map(influence).collect()
}

/// How the nodes stand if a plugin has so many halves of its weight. Totals are doubled, so that they stay whole.
fn reweighed(decision: &Decision, chosen: usize, column: &ScoreColumn, halves: i128) -> Reweighed {
    let weight = i128::from(column.weight);
    let total = |i: usize| {
        let points = i128::from(column.normalized[i]) * weight;
        2 * i128::from(decision.scores.totals[i]) + (halves - 2) * points
    };
    let totals: Vec<i128> = (0..decision.feasible.len()).map(total).collect();
    let highest = totals.iter().copied().max().unwrap_or_default();
    let best = (0..totals.len()).filter(|i| totals[*i] == highest);
    let names = best.clone().map(|i| &decision.feasible[i]);
    let first = if totals[chosen] == highest { Some(&decision.feasible[chosen]) } else { names.min() };
    Reweighed {
        rank: 1 + totals.iter().filter(|total| **total > totals[chosen]).count(),
        ties: best.count(),
        best: first.cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use supercargo_framework::profile::Scores;
    use supercargo_model::testing::pod;

    use super::*;
    use crate::decision::Outcome;

    /// Scores of the nodes a, b, c by plugin with its weight.
    fn decision(columns: &[(&str, i32, [i64; 3])]) -> Decision {
        let mut scores = Scores { columns: Vec::new(), totals: vec![0; 3] };
        for (plugin, weight, normalized) in columns {
            for (total, score) in scores.totals.iter_mut().zip(normalized) {
                *total += score * i64::from(*weight);
            }
            let normalized = normalized.to_vec();
            let column = ScoreColumn {
                plugin: (*plugin).into(),
                weight: *weight,
                raw: normalized.clone(),
                normalized,
            };
            scores.columns.push(column);
        }
        let feasible: Vec<Name> = ["a", "b", "c"].map(Name::from).to_vec();
        let best = (0..3).max_by_key(|i| scores.totals[*i]).expect("a node");
        let outcome = Outcome::Scheduled { node: feasible[best].clone() };
        Decision { feasible, scores, outcome, ..Decision::new(&pod("p").pod(), "default".into(), 0, 3) }
    }

    #[test]
    fn influence_is_what_another_weight_would_change() {
        // Totals: a 100×1+0×2 = 100, b 50×1+60×2 = 170, c 0×1+70×2 = 140: b is chosen.
        let decision = decision(&[("Near", 1, [100, 50, 0]), ("Wide", 2, [0, 60, 70])]);
        let told: Vec<_> = influence(&decision)
            .into_iter()
            .map(|Influence { plugin, without, half, twice, .. }| {
                let [without, half, twice] =
                    [without, half, twice].map(|at| (at.rank, at.best.to_string(), at.ties));
                (plugin.to_string(), without, half, twice)
            })
            .collect();
        let at = |rank: usize, best: &str, ties: usize| (rank, best.to_owned(), ties);
        assert_eq!(
            told,
            [
                // Without: 0, 120, 140. Half: 50, 145, 140. Twice: 200, 220, 140.
                ("Near".to_owned(), at(2, "c", 1), at(1, "b", 1), at(1, "b", 1)),
                // Without: 100, 50, 0. Half: 100, 110, 70. Twice: 100, 290, 280.
                ("Wide".to_owned(), at(2, "a", 1), at(1, "b", 1), at(1, "b", 1)),
            ]
        );
    }

    #[test]
    fn a_tie_is_no_change_and_an_odd_weight_is_halved_exactly() {
        // Totals: a 10×3 = 30, b 20, c 0. With half of 3: a 15, b 20; without: a 0.
        let decision = decision(&[("Odd", 3, [10, 0, 0]), ("Even", 1, [0, 20, 0])]);
        let [odd, even] = &influence(&decision)[..] else { panic!("two plugins") };
        assert_eq!((odd.half.rank, &*odd.half.best), (2, "b"));
        // Without Even a 30, b 0; twice as much: a 30, b 40.
        assert_eq!((even.without.rank, &*even.twice.best), (1, "b"));
        // Without Odd b and c have 5 each, and a, which is chosen, has 5, too.
        let tied = self::decision(&[("Odd", 3, [10, 0, 0]), ("Even", 1, [5, 5, 5])]);
        let without = influence(&tied).remove(0).without;
        assert_eq!((without.rank, without.ties, &*without.best), (1, 3, "a"));
    }
}
