//! A translated policy, written as a profile.

use supercargo_manifest::Value;

use super::{HERE, Strategy, Translation, tables};
use crate::{merge::ALL, tree};

impl Translation {
    pub(super) fn profile(&mut self, hard_pod_affinity_weight: Option<i32>) -> Value {
        let mut config = self.strategy_config();
        let affinity = self.added_affinity();
        config.extend(affinity.map(|affinity| ("NodeAffinity", HERE.map([("addedAffinity", affinity)]))));
        if let Some(weight) = hard_pod_affinity_weight.filter(|_| self.uses("InterPodAffinity")) {
            config.push(("InterPodAffinity", HERE.map([("hardPodAffinityWeight", HERE.number(weight))])));
        }
        config.extend(self.spread_config());
        let named = |name: &&str| HERE.map([("name", HERE.text(name))]);
        let everything = || HERE.list([named(&ALL)]);
        let only =
            |enabled: Vec<Value>| HERE.map([("disabled", everything()), ("enabled", HERE.list(enabled))]);
        let weighed = |(name, weight): &(&str, i32)| {
            HERE.map([("name", HERE.text(name)), ("weight", HERE.number(weight))])
        };
        let always = tables::ALWAYS.iter().chain(&self.filters).chain(&tables::ALWAYS_LAST);
        let prepared =
            self.scores.iter().map(|(name, _)| name).filter(|name| tables::PREPARES_SCORE.contains(name));
        let plugins = HERE.map([
            ("multiPoint", only(always.map(named).collect())),
            ("preScore", only(prepared.map(named).collect())),
            ("score", only(self.scores.iter().map(weighed).collect())),
        ]);
        let mut profile = HERE.map([("schedulerName", HERE.text("default-scheduler")), ("plugins", plugins)]);
        for (name, args) in config {
            tree::append(&mut profile, "pluginConfig", HERE.map([("name", HERE.text(name)), ("args", args)]));
        }
        profile
    }

    fn uses(&self, plugin: &str) -> bool {
        self.filters.contains(&plugin) || self.scores.iter().any(|(name, _)| *name == plugin)
    }

    /// The way to score resources is NodeResourcesFit's.
    fn strategy_config(&mut self) -> Vec<(&'static str, Value)> {
        let Some((strategy, weight, _)) = self.strategies.pop() else { return Vec::new() };
        self.score("NodeResourcesFit", weight);
        vec![("NodeResourcesFit", HERE.map([("scoringStrategy", strategy.of_fit())]))]
    }

    fn added_affinity(&mut self) -> Option<Value> {
        let mut affinity = HERE.map([]);
        if !self.required_labels.is_empty() {
            let term = HERE.map([("matchExpressions", HERE.list(std::mem::take(&mut self.required_labels)))]);
            let terms = HERE.map([("nodeSelectorTerms", HERE.list([term]))]);
            tree::set(&mut affinity, "requiredDuringSchedulingIgnoredDuringExecution", terms);
        }
        for term in std::mem::take(&mut self.preferred_labels) {
            tree::append(&mut affinity, "preferredDuringSchedulingIgnoredDuringExecution", term);
        }
        (!affinity.entries().is_empty()).then_some(affinity)
    }

    /// Without a priority for services, only the pods' own constraints spread them.
    fn spread_config(&mut self) -> Option<(&'static str, Value)> {
        let used = self.uses("PodTopologySpread");
        let constraints = std::mem::take(&mut self.spread_by);
        let args = match (constraints.is_empty(), self.spread_by_system) {
            (false, _) => HERE
                .map([("defaultingType", HERE.text("List")), ("defaultConstraints", HERE.list(constraints))]),
            (true, true) => HERE.map([("defaultingType", HERE.text("System"))]),
            (true, false) => HERE.map([("defaultingType", HERE.text("List"))]),
        };
        used.then_some(("PodTopologySpread", args))
    }
}

impl Strategy {
    /// The plugin of its own that it once had, and still has here.
    pub(super) fn plugin(&self) -> &'static str {
        match self {
            Self::Least => "NodeResourcesLeastAllocated",
            Self::Most => "NodeResourcesMostAllocated",
            Self::Ratio(_) => "RequestedToCapacityRatio",
        }
    }

    fn of_fit(&self) -> Value {
        let mut strategy = match self {
            Self::Least => HERE.map([("type", HERE.text("LeastAllocated"))]),
            Self::Most => HERE.map([("type", HERE.text("MostAllocated"))]),
            Self::Ratio(given) => {
                let shape = given.get("shape").cloned().unwrap_or_else(|| HERE.list([]));
                let ratio = HERE.map([("shape", shape)]);
                HERE.map([
                    ("type", HERE.text("RequestedToCapacityRatio")),
                    ("requestedToCapacityRatio", ratio),
                ])
            }
        };
        let given = if let Self::Ratio(given) = self { given.get("resources").cloned() } else { None };
        let both = || {
            let resource = |name| HERE.map([("name", HERE.text(name)), ("weight", HERE.number(1))]);
            HERE.list(["cpu", "memory"].map(resource))
        };
        tree::set(&mut strategy, "resources", given.unwrap_or_else(both));
        strategy
    }
}
