//! A profile in its fast form.

use std::sync::Arc;

use supercargo_model::{Cluster, Name, Pod};

use super::{FilterStep, Named, Profile, ScoreStep};
use crate::{
    fast::{Claims, Compiled, FilterPart, RawScores, ScorePart},
    opaque::{CompiledForEach, PluginFilter, PluginScore},
    points::PreFilter,
};

/// The fast form of a profile for pods of one signature.
pub struct CompiledProfile {
    /// The filters that have something to say, in the profile's order; those without a fast form come last.
    pub filters: Vec<(Name, FilterPart)>,
    /// The scores that have something to say: plugin, weight, part.
    pub scores: Vec<(Name, i32, ScorePart)>,
}

impl Profile {
    /// The profile for pods like this one, which name the same claims or claims of their own: plugins in their fast form where
    /// they have one, the others as they are. `None` if only the full path can run it.
    pub fn compile(&self, cluster: &Cluster, pod: &Arc<Pod>, claims: Claims) -> Option<CompiledProfile> {
        // A PreFilter without its Filter can still refuse pods.
        let filtered = |named: &Named<dyn PreFilter>| self.filter.iter().any(|step| step.name == named.name);
        if !self.pre_filter.iter().all(filtered) {
            return None;
        }
        let mut filters = Vec::new();
        let mut opaque = Vec::new();
        for step in &self.filter {
            if claims == Claims::Differ
                && let Some(fast) = step.fast.clone().filter(|fast| fast.reads_claims())
            {
                let filter = CompiledForEach { fast, otherwise: self.plugin_filter(step) };
                opaque.push((step.name.clone(), FilterPart::Opaque(Box::new(filter))));
                continue;
            }
            match step.fast.clone().map_or(Compiled::NoFastForm, |fast| fast.compile_filter(cluster, pod)) {
                Compiled::Idle => {}
                Compiled::Part(part) => filters.push((step.name.clone(), part)),
                Compiled::NoFastForm => opaque.push((step.name.clone(), self.opaque_filter(step))),
            }
        }
        // These come last: they are asked only about the nodes that the others leave open.
        filters.extend(opaque);
        let mut scores = Vec::new();
        for step in &self.score {
            let fast = step.fast.clone();
            let part = match fast.map_or(Compiled::NoFastForm, |fast| fast.compile_score(cluster, pod)) {
                Compiled::Idle => continue,
                Compiled::Part(part) => part,
                Compiled::NoFastForm => self.opaque_score(step),
            };
            scores.push((step.name.clone(), step.weight, part));
        }
        Some(CompiledProfile { filters, scores })
    }

    fn opaque_filter(&self, step: &FilterStep) -> FilterPart {
        FilterPart::Opaque(Box::new(self.plugin_filter(step)))
    }

    fn plugin_filter(&self, step: &FilterStep) -> PluginFilter {
        PluginFilter {
            prepare: step.prepared.map(|index| self.pre_filter[index].plugin.clone()),
            filter: step.plugin.clone(),
        }
    }

    fn opaque_score(&self, step: &ScoreStep) -> ScorePart {
        let scores = RawScores::Opaque(Box::new(PluginScore {
            prepare: step.prepared.map(|index| self.pre_score[index].plugin.clone()),
            score: step.plugin.clone(),
            normalize: step.normalize.clone(),
        }));
        scores.in_range()
    }
}
