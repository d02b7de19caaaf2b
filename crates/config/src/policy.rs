//! The legacy `Policy`: predicates and priorities, translated to a profile.

mod extenders;
mod profile;
mod tables;

use serde::{Deserialize, de::IgnoredAny};
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields, Value, nearest};

use crate::{
    header::{API_VERSION, KIND},
    place::Text,
    tree::{self, At},
};
use tables::{Predicate, Priority};

const HERE: At = At::NOWHERE;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "some fields are named only so that they are known")]
struct Policy {
    api_version: Option<String>,
    kind: Option<String>,
    predicates: Option<Vec<PredicateFields>>,
    priorities: Option<Vec<PriorityFields>>,
    /// Their keys are read without regard to case, so they are left to the translation of extenders.
    extenders: Option<IgnoredAny>,
    hard_pod_affinity_symmetric_weight: Option<i32>,
    always_check_all_predicates: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PredicateFields {
    name: String,
    argument: Option<PredicateArgument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PredicateArgument {
    service_affinity: Option<IgnoredAny>,
    labels_presence: Option<LabelsPresence>,
}

#[derive(Deserialize)]
struct LabelsPresence {
    labels: Vec<String>,
    #[serde(default)]
    presence: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PriorityFields {
    name: String,
    #[serde(default)]
    weight: i32,
    argument: Option<PriorityArgument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PriorityArgument {
    service_anti_affinity: Option<LabelPreference>,
    label_preference: Option<LabelPreference>,
    requested_to_capacity_ratio_arguments: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct LabelPreference {
    label: String,
    #[serde(default)]
    presence: bool,
}

/// What a policy amounts to, as far as it is translated.
#[derive(Default)]
struct Translation {
    filters: Vec<&'static str>,
    scores: Vec<(&'static str, i32)>,
    /// Ways to score resources with their weights and paths, of which a profile of v1 has one.
    strategies: Vec<(Strategy, i32, String)>,
    required_labels: Vec<Value>,
    preferred_labels: Vec<Value>,
    spread_by: Vec<Value>,
    spread_by_system: bool,
    problems: Problems,
}

#[derive(Clone)]
enum Strategy {
    Least,
    Most,
    Ratio(Value),
}

/// Translates a policy to a KubeSchedulerConfiguration; warnings tell what is not quite the same.
///
/// # Errors
///
/// What is wrong with the policy, and what has no counterpart.
pub(crate) fn translate(source: &Source, root: &Value) -> Result<(Value, Problems), Problems> {
    let policy: Policy = manifest::decode(source, root, "", UnknownFields::Deny)?;
    let text = Text { source, root };
    let mut translation = Translation::default();
    translation.filters.extend(tables::MANDATORY_FILTERS);
    match &policy.predicates {
        Some(predicates) => translation.predicates(predicates, text),
        None => tables::DEFAULT_PREDICATES.iter().for_each(|name| translation.predicate_by_name(name)),
    }
    match &policy.priorities {
        Some(priorities) => translation.priorities(priorities, text),
        None => tables::DEFAULT_PRIORITIES
            .iter()
            .for_each(|(name, weight)| translation.priority_by_name(name, *weight, "priorities")),
    }
    translation.keep_one_strategy(text);
    if policy.always_check_all_predicates == Some(true) {
        let warning = text.warning(
            "alwaysCheckAllPredicates",
            "a node is refused by the first plugin that refuses it; this is left out",
        );
        translation.problems.push(warning.hint("ask for all reasons with: supercargo explain"));
    }
    let extenders = extenders::translate(text, &mut translation.problems);
    let profile =
        translation.profile(policy.hard_pod_affinity_symmetric_weight.filter(|weight| *weight != 0));
    if translation.problems.has_errors() {
        return Err(translation.problems);
    }
    let mut configuration = HERE.map([
        ("apiVersion", HERE.text(API_VERSION)),
        ("kind", HERE.text(KIND)),
        ("profiles", HERE.list([profile])),
    ]);
    if !extenders.is_empty() {
        tree::set(&mut configuration, "extenders", HERE.list(extenders));
    }
    Ok((configuration, translation.problems))
}

impl Translation {
    fn predicates(&mut self, predicates: &[PredicateFields], text: Text<'_>) {
        for (index, predicate) in predicates.iter().enumerate() {
            let path = format!("predicates[{index}]");
            match &predicate.argument {
                Some(PredicateArgument { service_affinity: Some(_), .. }) => {
                    let message =
                        "no plugin keeps the pods of a service together on nodes of equal labels any more";
                    let hint =
                        "remove the predicate, and give the pods a podAffinity with the label as topologyKey";
                    self.problems
                        .push(text.error(format!("{path}.argument.serviceAffinity"), message).hint(hint));
                }
                Some(PredicateArgument { labels_presence: Some(labels), .. }) => {
                    let demands = labels.labels.iter().map(|label| expression(label, labels.presence));
                    self.required_labels.extend(demands);
                    self.filter("NodeAffinity");
                }
                _ if tables::predicate(&predicate.name).is_some() => self.predicate_by_name(&predicate.name),
                _ => {
                    let known = tables::PREDICATES.iter().map(|(name, _)| *name);
                    self.problems.push(unknown("predicate", &path, &predicate.name, known, text));
                }
            }
        }
    }

    fn predicate_by_name(&mut self, name: &str) {
        if let Some(Predicate(plugins)) = tables::predicate(name) {
            plugins.iter().for_each(|plugin| self.filter(plugin));
        }
    }

    fn filter(&mut self, plugin: &'static str) {
        if !self.filters.contains(&plugin) {
            self.filters.push(plugin);
        }
    }

    fn priorities(&mut self, priorities: &[PriorityFields], text: Text<'_>) {
        for (index, priority) in priorities.iter().enumerate() {
            let path = format!("priorities[{index}]");
            if priority.weight <= 0 && priority.name != tables::EQUAL {
                let message = format!("the priority {} needs a positive weight", priority.name);
                self.problems.push(
                    text.error(format!("{path}.weight"), message).hint("write 1, or remove the priority"),
                );
                continue;
            }
            match &priority.argument {
                Some(argument) => self.priority_with_argument(argument, priority.weight, &path, text),
                None if tables::priority(&priority.name).is_some() => {
                    self.priority_by_name(&priority.name, priority.weight, &path);
                    if let Some(Priority::Gone(why)) = tables::priority(&priority.name) {
                        self.problems
                            .push(text.warning(path, format!("{} is left out: {why}", priority.name)));
                    }
                }
                None => {
                    let known = tables::PRIORITIES.iter().map(|(name, _)| *name);
                    self.problems.push(unknown("priority", &path, &priority.name, known, text));
                }
            }
        }
    }

    fn priority_by_name(&mut self, name: &str, weight: i32, path: &str) {
        match tables::priority(name) {
            Some(Priority::Score(plugin)) => self.score(plugin, weight),
            Some(Priority::LeastAllocated) => {
                self.strategies.push((Strategy::Least, weight, path.to_owned()));
            }
            Some(Priority::MostAllocated) => {
                self.strategies.push((Strategy::Most, weight, path.to_owned()));
            }
            Some(Priority::SystemSpread) => {
                self.spread_by_system = true;
                self.score("PodTopologySpread", weight);
            }
            Some(Priority::Gone(_)) | None => {}
        }
    }

    fn priority_with_argument(
        &mut self,
        argument: &PriorityArgument,
        weight: i32,
        path: &str,
        text: Text<'_>,
    ) {
        if let Some(LabelPreference { label, presence }) = &argument.label_preference {
            let preference = HERE.map([("matchExpressions", HERE.list([expression(label, *presence)]))]);
            // A term weighs 1 to 100; what the term counts beside other plugins is the plugin's weight.
            self.preferred_labels
                .push(HERE.map([("weight", HERE.number(weight.min(100))), ("preference", preference)]));
            self.score("NodeAffinity", weight);
            let message =
                "the label becomes a preference of NodeAffinity, and is scored together with the pods' own";
            let hint = "compare the scores with: supercargo simulate";
            self.problems.push(text.warning(format!("{path}.argument.labelPreference"), message).hint(hint));
        } else if let Some(LabelPreference { label, .. }) = &argument.service_anti_affinity {
            self.spread_by.push(HERE.map([
                ("maxSkew", HERE.number(1)),
                ("topologyKey", HERE.text(label)),
                ("whenUnsatisfiable", HERE.text("ScheduleAnyway")),
            ]));
            self.score("PodTopologySpread", weight);
            let message =
                "the label becomes a default constraint of PodTopologySpread, which counts differently";
            let hint = "compare the scores with: supercargo simulate";
            self.problems
                .push(text.warning(format!("{path}.argument.serviceAntiAffinity"), message).hint(hint));
        } else if argument.requested_to_capacity_ratio_arguments.is_some() {
            let place = format!("{path}.argument.requestedToCapacityRatioArguments");
            let given = text.find(&place).cloned().unwrap_or_else(|| HERE.map([]));
            self.strategies.push((Strategy::Ratio(given), weight, path.to_owned()));
        } else {
            let message = "the argument says nothing";
            let hint = "give labelPreference, serviceAntiAffinity or requestedToCapacityRatioArguments";
            self.problems.push(text.error(format!("{path}.argument"), message).hint(hint));
        }
    }

    /// Of several ways to score resources, the one that counts most; of equal ones, the first.
    fn keep_one_strategy(&mut self, text: Text<'_>) {
        self.strategies.sort_by_key(|(_, weight, _)| std::cmp::Reverse(*weight));
        for (strategy, weight, path) in self.strategies.split_off(self.strategies.len().min(1)) {
            let plugin = strategy.plugin();
            let message = format!(
                "this is left out, and with it the weight {weight}: in v1 a profile has one way to score resources"
            );
            let hint = format!(
                "Supercargo has {plugin}: enable it at score if kube-scheduler need not read the file"
            );
            self.problems.push(text.warning(path, message).hint(hint));
        }
    }

    /// A plugin that is asked for twice counts with the larger weight.
    fn score(&mut self, plugin: &'static str, weight: i32) {
        match self.scores.iter_mut().find(|(scored, _)| *scored == plugin) {
            Some((_, known)) => *known = weight.max(*known),
            None => self.scores.push((plugin, weight)),
        }
    }
}

fn expression(label: &str, present: bool) -> Value {
    let operator = if present { "Exists" } else { "DoesNotExist" };
    HERE.map([("key", HERE.text(label)), ("operator", HERE.text(operator))])
}

fn unknown<'k>(
    what: &str,
    path: &str,
    name: &str,
    known: impl Iterator<Item = &'k str>,
    text: Text<'_>,
) -> Problem {
    let mut problem = text.error(format!("{path}.name"), format!("there is no {what} {name:?}"));
    problem.hint = nearest(name, known).map(|nearest| format!("did you mean {nearest}?"));
    problem
}
