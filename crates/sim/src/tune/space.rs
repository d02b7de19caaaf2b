//! What can be changed in a configuration: the weights of score plugins, how resources are scored, and by which shape.

use serde_json::{Value, json};
use supercargo_config::{self as config, Configuration};
use supercargo_framework::registry::{Point, Registry};
use supercargo_manifest::{Problems, Source};
use supercargo_model::{Name, random::Random};

/// Scores what is requested.
const FIT: &str = "NodeResourcesFit";
/// Scores how even the use of resources is on a node.
const BALANCED: &str = "NodeResourcesBalancedAllocation";
const ARGS_VERSION: &str = "kubescheduler.config.k8s.io/v1";

/// Only relations between weights matter, so that a few steps are enough. 0 takes the plugin's score away.
const WEIGHTS: [u32; 8] = [0, 1, 2, 3, 5, 10, 20, 50];
const RESOURCE_WEIGHTS: [u32; 6] = [0, 1, 2, 3, 5, 10];

/// How what is requested is scored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Strategy {
    LeastAllocated,
    MostAllocated,
    /// Points of a shape: utilization in percent, and a score of 0 to 10.
    RequestedToCapacityRatio(Vec<(u32, u32)>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fit {
    strategy: Strategy,
    /// The weight of each resource; 0: it is not looked at.
    resources: Vec<u32>,
}

/// A configuration as what it changes in the base. What it does not name stays as it is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TuningCandidate {
    /// By plugin, in the order of the space.
    weights: Vec<Option<u32>>,
    fit: Option<Fit>,
    /// Which resources the balance looks at.
    balanced: Option<Vec<bool>>,
}

impl TuningCandidate {
    /// Whether it changes nothing.
    pub fn is_base(&self) -> bool {
        self.weights.iter().all(Option::is_none) && self.fit.is_none() && self.balanced.is_none()
    }
}

fn one_of<T: Copy>(random: &mut Random, of: &[T]) -> T {
    of[random.below(of.len())]
}

/// All that may be changed in one base configuration, for a trace.
pub(super) struct Space<'s> {
    base: Value,
    registry: &'s Registry,
    /// The score plugins, those about resources first.
    plugins: Vec<String>,
    /// How many of them are about resources.
    about_resources: usize,
    resources: Vec<Name>,
    has_fit: bool,
    has_balanced: bool,
}

impl<'s> Space<'s> {
    pub(super) fn new(base: &Configuration, registry: &'s Registry, resources: &[Name]) -> Self {
        let on = base.profiles.iter().flat_map(|profile| profile.at(Point::Score));
        let mut plugins: Vec<String> = on.map(|choice| choice.plugin.to_string()).collect();
        plugins.sort();
        plugins.dedup();
        // What requests decide about comes first: it is changed more often.
        plugins.sort_by_key(|name| name != FIT && name != BALANCED);
        let has = |name: &str| plugins.iter().any(|plugin| plugin == name);
        let (has_fit, has_balanced) = (has(FIT), has(BALANCED));
        Self {
            base: serde_json::from_str(&base.to_json(registry)).unwrap_or_default(),
            registry,
            about_resources: usize::from(has_fit) + usize::from(has_balanced),
            has_fit,
            has_balanced,
            plugins,
            resources: resources.to_vec(),
        }
    }

    pub(super) fn base(&self) -> TuningCandidate {
        TuningCandidate { weights: vec![None; self.plugins.len()], ..TuningCandidate::default() }
    }

    /// Candidates that are worth a try whatever the trace: each strategy on all resources and on each alone.
    pub(super) fn first(&self) -> Vec<TuningCandidate> {
        let mut first = Vec::new();
        let all = vec![1; self.resources.len()];
        let alone = |i: usize| (0..self.resources.len()).map(|j| u32::from(i == j)).collect::<Vec<_>>();
        if self.has_fit {
            let packing = Strategy::RequestedToCapacityRatio(vec![(0, 0), (100, 10)]);
            for strategy in [Strategy::MostAllocated, Strategy::LeastAllocated, packing] {
                let weights = std::iter::once(all.clone()).chain((0..self.resources.len()).map(alone));
                for resources in weights {
                    let fit = Some(Fit { strategy: strategy.clone(), resources });
                    first.push(TuningCandidate { fit: fit.clone(), ..self.base() });
                    // Without the balance, which pulls the other way.
                    if self.has_balanced {
                        let mut weights = self.base().weights;
                        weights[self.place(BALANCED)] = Some(0);
                        first.push(TuningCandidate { fit, weights, ..self.base() });
                    }
                }
            }
        }
        if self.has_balanced {
            first.push(TuningCandidate { balanced: Some(vec![true; self.resources.len()]), ..self.base() });
        }
        first
    }

    fn place(&self, plugin: &str) -> usize {
        self.plugins.iter().position(|name| name == plugin).unwrap_or(0)
    }

    /// A neighbour of a candidate: one or two things are changed.
    pub(super) fn mutated(&self, parent: &TuningCandidate, random: &mut Random) -> TuningCandidate {
        let mut child = parent.clone();
        for _ in 0..=random.below(2) {
            match random.below(6) {
                0 | 1 => self.change_weight(&mut child, random),
                2 if self.has_fit => self.fit(&mut child).strategy = strategy(random),
                3 | 4 if self.has_fit => {
                    let place = random.below(self.resources.len());
                    let weight = one_of(random, &RESOURCE_WEIGHTS);
                    let resources = &mut self.fit(&mut child).resources;
                    resources[place] = weight;
                    if resources.iter().all(|weight| *weight == 0) {
                        resources[place] = 1;
                    }
                }
                5 if self.has_balanced => {
                    let place = random.below(self.resources.len());
                    let all = child.balanced.get_or_insert_with(|| vec![true; self.resources.len()]);
                    all[place] = !all[place];
                    if !all.contains(&true) {
                        all[place] = true;
                    }
                }
                _ => self.change_weight(&mut child, random),
            }
        }
        child
    }

    fn change_weight(&self, child: &mut TuningCandidate, random: &mut Random) {
        let among = match self.about_resources {
            some if some > 0 && random.below(3) > 0 => some,
            _ => self.plugins.len(),
        };
        if among > 0 {
            child.weights[random.below(among)] = Some(one_of(random, &WEIGHTS));
        }
    }

    fn fit<'c>(&self, child: &'c mut TuningCandidate) -> &'c mut Fit {
        child.fit.get_or_insert_with(|| Fit {
            strategy: Strategy::LeastAllocated,
            resources: vec![1; self.resources.len()],
        })
    }

    /// The candidate with one of its changes taken back, for each of them.
    pub(super) fn simpler(&self, candidate: &TuningCandidate) -> Vec<TuningCandidate> {
        let mut all = Vec::new();
        for (i, _) in candidate.weights.iter().enumerate().filter(|(_, weight)| weight.is_some()) {
            let mut one = candidate.clone();
            one.weights[i] = None;
            all.push(one);
        }
        all.extend(candidate.fit.is_some().then(|| TuningCandidate { fit: None, ..candidate.clone() }));
        all.extend(
            candidate.balanced.is_some().then(|| TuningCandidate { balanced: None, ..candidate.clone() }),
        );
        all
    }

    /// The configuration that a candidate stands for, read from the text that it is written as.
    pub(super) fn configuration(&self, candidate: &TuningCandidate) -> Result<Configuration, Problems> {
        let mut written = self.base.clone();
        for profile in written["profiles"].as_array_mut().into_iter().flatten() {
            self.set_weights(profile, candidate);
            if let Some(fit) = &candidate.fit {
                set_arguments(profile, FIT, "scoringStrategy", self.scoring_strategy(fit));
            }
            if let Some(balanced) = &candidate.balanced {
                let on = self.resources.iter().zip(balanced).filter(|(_, on)| **on);
                let on: Vec<Value> = on.map(|(name, _)| json!({"name": name, "weight": 1})).collect();
                set_arguments(profile, BALANCED, "resources", on.into());
            }
        }
        let source = Source::new("<candidate>", written.to_string());
        config::load(&source, self.registry).map(|loaded| loaded.configuration)
    }

    fn set_weights(&self, profile: &mut Value, candidate: &TuningCandidate) {
        let Some(enabled) = profile["plugins"]["score"]["enabled"].as_array_mut() else { return };
        for (name, weight) in self.plugins.iter().zip(&candidate.weights) {
            match weight {
                None => {}
                Some(0) => enabled.retain(|plugin| plugin["name"] != **name),
                Some(weight) => {
                    let named = enabled.iter_mut().filter(|plugin| plugin["name"] == **name);
                    named.for_each(|plugin| plugin["weight"] = (*weight).into());
                }
            }
        }
    }

    fn scoring_strategy(&self, fit: &Fit) -> Value {
        let looked_at = self.resources.iter().zip(&fit.resources).filter(|(_, weight)| **weight > 0);
        let resources: Vec<Value> =
            looked_at.map(|(name, weight)| json!({"name": name, "weight": weight})).collect();
        match &fit.strategy {
            Strategy::LeastAllocated => json!({"type": "LeastAllocated", "resources": resources}),
            Strategy::MostAllocated => json!({"type": "MostAllocated", "resources": resources}),
            Strategy::RequestedToCapacityRatio(shape) => {
                let point = |(at, score): &(u32, u32)| json!({"utilization": at, "score": score});
                let shape: Vec<Value> = shape.iter().map(point).collect();
                json!({
                    "type": "RequestedToCapacityRatio",
                    "resources": resources,
                    "requestedToCapacityRatio": {"shape": shape},
                })
            }
        }
    }

    /// What a candidate changes, in words.
    pub(super) fn describe(&self, candidate: &TuningCandidate) -> Vec<String> {
        let weights = self.plugins.iter().zip(&candidate.weights);
        let weights = weights.filter_map(|(name, weight)| match (*weight)? {
            0 => Some(format!("{name} does not score")),
            weight => Some(format!("{name} has weight {weight}")),
        });
        let fit = candidate.fit.iter().map(|fit| {
            let resources = self.resources.iter().zip(&fit.resources).filter(|(_, weight)| **weight > 0);
            let resources: Vec<String> =
                resources.map(|(name, weight)| format!("{name} × {weight}")).collect();
            let by = match &fit.strategy {
                Strategy::LeastAllocated => "LeastAllocated".to_owned(),
                Strategy::MostAllocated => "MostAllocated".to_owned(),
                Strategy::RequestedToCapacityRatio(shape) => {
                    let points: Vec<String> =
                        shape.iter().map(|(at, score)| format!("{at} %: {score}")).collect();
                    format!("RequestedToCapacityRatio ({})", points.join(", "))
                }
            };
            format!("{FIT} scores by {by} over {}", resources.join(", "))
        });
        let balanced = candidate.balanced.iter().map(|balanced| {
            let on = self.resources.iter().zip(balanced).filter(|(_, on)| **on);
            let on: Vec<&str> = on.map(|(name, _)| &**name).collect();
            format!("{BALANCED} looks at {}", on.join(", "))
        });
        weights.chain(fit).chain(balanced).collect()
    }
}

/// Sets a field of a plugin's arguments; the others stay.
fn set_arguments(profile: &mut Value, plugin: &str, field: &str, value: Value) {
    if !profile["pluginConfig"].is_array() {
        profile["pluginConfig"] = json!([]);
    }
    let Some(all) = profile["pluginConfig"].as_array_mut() else { return };
    let place = all.iter().position(|entry| entry["name"] == plugin).unwrap_or_else(|| {
        let args = json!({"apiVersion": ARGS_VERSION, "kind": format!("{plugin}Args")});
        all.push(json!({"name": plugin, "args": args}));
        all.len() - 1
    });
    all[place]["args"][field] = value;
}

fn strategy(random: &mut Random) -> Strategy {
    match random.below(4) {
        0 => Strategy::LeastAllocated,
        1 => Strategy::MostAllocated,
        _ => {
            let inner = 10 * (1 + random.below(9)) as u32;
            let score = |random: &mut Random| random.below(11) as u32;
            let shape = [(0, score(random)), (inner, score(random)), (100, score(random))];
            Strategy::RequestedToCapacityRatio(shape.to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources() -> Vec<Name> {
        ["cpu", "memory", "example.com/gpu"].into_iter().map(Name::from).collect()
    }

    #[test]
    fn every_candidate_is_a_valid_configuration() {
        let registry = supercargo_plugins::registry();
        let base = config::default_configuration(&registry).unwrap();
        let space = Space::new(&base, &registry, &resources());
        let mut random = Random(7);
        let mut candidates = space.first();
        assert!(candidates.len() > 10);
        for i in 0..200 {
            let parent = candidates[i % candidates.len()].clone();
            candidates.push(space.mutated(&parent, &mut random));
        }
        for candidate in candidates {
            let configuration =
                space.configuration(&candidate).unwrap_or_else(|problems| panic!("{problems}"));
            configuration.profiles(&registry).map(|_| ()).unwrap_or_else(|problems| panic!("{problems}"));
            // What is written is read as the same.
            let text = configuration.to_yaml(&registry);
            let again = config::load(&Source::new("again", text.as_str()), &registry).unwrap().configuration;
            assert_eq!(again.to_yaml(&registry), text);
        }
    }

    #[test]
    fn what_is_changed_is_told_and_can_be_taken_back() {
        let registry = supercargo_plugins::registry();
        let base = config::default_configuration(&registry).unwrap();
        let space = Space::new(&base, &registry, &resources());
        let mut candidate = space.base();
        assert!(candidate.is_base() && space.describe(&candidate).is_empty());
        candidate.weights[space.place(BALANCED)] = Some(0);
        candidate.fit = Some(Fit { strategy: Strategy::MostAllocated, resources: vec![1, 0, 5] });
        assert_eq!(
            space.describe(&candidate),
            [
                "NodeResourcesBalancedAllocation does not score",
                "NodeResourcesFit scores by MostAllocated over cpu × 1, example.com/gpu × 5",
            ]
        );
        let configuration = space.configuration(&candidate).unwrap();
        assert!(configuration.profiles[0].at(Point::Score).iter().all(|choice| &*choice.plugin != BALANCED));
        assert_eq!(space.simpler(&candidate).len(), 2);
    }
}
