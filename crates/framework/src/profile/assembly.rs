//! Putting a profile together from the plugins that were chosen.

use std::sync::Arc;

use supercargo_model::Name;

use super::{Choice, FilterStep, Named, Profile, ProfileError, ProfileSpec, ScoreStep, position};
use crate::{
    points::PreScore,
    queueing::QueueRules,
    registry::{Plugin, Point},
    stopwatch::Taken,
};

impl Profile {
    /// Puts a profile together.
    pub fn new(spec: ProfileSpec) -> Result<Self, ProfileError> {
        let pick = Picker(&spec);
        let pre_filter = pick.all(Point::PreFilter, |p| p.pre_filter.clone())?;
        let pre_score = pick.all(Point::PreScore, |p| p.pre_score.clone())?;
        let queue_sort = pick.all(Point::QueueSort, |p| p.queue_sort.clone())?;
        let bind = pick.all(Point::Bind, |p| p.bind.clone())?;
        if bind.is_empty() {
            return Err(ProfileError::NoBinder);
        }
        let [Named { plugin: queue_sort, .. }] = &queue_sort[..] else {
            return Err(ProfileError::QueueSort { count: queue_sort.len() });
        };
        let filter = pick
            .all(Point::Filter, |p| p.filter.clone())?
            .into_iter()
            .map(|Named { name, plugin }| {
                let prepared = position(&pre_filter, &name);
                // A filter whose preparing step is switched off fails; only the full path does that right.
                let whole = |p: &&Plugin| p.pre_filter.is_none() || prepared.is_some();
                let fast = spec.plugins.get(&name).filter(whole).and_then(|p| p.fast_filter.clone());
                FilterStep { prepared, fast, name, plugin }
            })
            .collect();
        let pre_enqueue = pick.all(Point::PreEnqueue, |p| p.pre_enqueue.clone())?;
        let queue_rules = QueueRules::new(
            spec.scheduler_name.clone(),
            queue_sort.clone(),
            pre_enqueue.into_iter().map(|named| (named.name, named.plugin)).collect(),
            &spec.plugins,
        );
        Ok(Self {
            stopwatch: Taken::default(),
            queue_rules: Arc::new(queue_rules),
            cycle_start: spec.plugins.values().filter_map(|plugin| plugin.cycle_start.clone()).collect(),
            filter,
            post_filter: pick.all(Point::PostFilter, |p| p.post_filter.clone())?,
            score: score_steps(&pick, &pre_score)?,
            reserve: pick.all(Point::Reserve, |p| p.reserve.clone())?,
            permit: pick.all(Point::Permit, |p| p.permit.clone())?,
            pre_bind: pick.all(Point::PreBind, |p| p.pre_bind.clone())?,
            bind,
            post_bind: pick.all(Point::PostBind, |p| p.post_bind.clone())?,
            handles: spec.plugins.values().map(|plugin| plugin.handle.clone()).collect(),
            kinds: spec.plugins.values().flat_map(|plugin| plugin.kinds.iter().copied()).collect(),
            observe: {
                let observe = |(name, plugin): (&Name, &Plugin)| {
                    Some(Named { name: name.clone(), plugin: plugin.observe.clone()? })
                };
                spec.plugins.iter().filter_map(observe).collect()
            },
            reads_time: spec.plugins.values().any(|plugin| plugin.reads_time),
            give_way: {
                let give_way = spec.plugins.iter().filter(|(_, plugin)| plugin.gives_way);
                give_way.map(|(name, _)| name.clone()).collect()
            },
            pre_filter,
            pre_score,
        })
    }
}

struct Picker<'a>(&'a ProfileSpec);

impl Picker<'_> {
    fn choices(&self, point: Point) -> &[Choice] {
        self.0.points.get(&point).map_or(&[], |choices| choices)
    }

    fn one<T: ?Sized>(
        &self,
        point: Point,
        choice: &Choice,
        served: impl Fn(&Plugin) -> Option<Arc<T>>,
    ) -> Result<Named<T>, ProfileError> {
        let plugin = self.0.plugins.get(&choice.plugin).and_then(served);
        plugin
            .map(|plugin| Named { name: choice.plugin.clone(), plugin })
            .ok_or_else(|| ProfileError::NotServed { plugin: choice.plugin.clone(), point: point.name() })
    }

    fn all<T: ?Sized>(
        &self,
        point: Point,
        served: impl Fn(&Plugin) -> Option<Arc<T>>,
    ) -> Result<Vec<Named<T>>, ProfileError> {
        let choices = self.choices(point).iter();
        choices.map(|choice| self.one(point, choice, &served)).collect()
    }
}

/// A weight of 0 was given on purpose: the plugin does not score at all.
fn score_steps(pick: &Picker<'_>, pre_score: &[Named<dyn PreScore>]) -> Result<Vec<ScoreStep>, ProfileError> {
    let choices = pick.choices(Point::Score).iter();
    choices
        .filter(|choice| choice.weight != 0)
        .map(|choice| {
            let Named { name, plugin } = pick.one(Point::Score, choice, |p| p.score.clone())?;
            let prepared = position(pre_score, &name);
            let whole = |p: &&Plugin| p.pre_score.is_none() || prepared.is_some();
            Ok(ScoreStep {
                prepared,
                fast: pick.0.plugins.get(&name).filter(whole).and_then(|p| p.fast_score.clone()),
                normalize: pick.0.plugins.get(&name).and_then(|p| p.normalize.clone()),
                weight: choice.weight,
                name,
                plugin,
            })
        })
        .collect()
}
