//! Small plugins that do one thing, and a profile of them.

use std::{collections::BTreeMap, sync::Arc};

use supercargo_framework::{
    Code, Prepared, ScoreInput, Status, Verdict,
    handle::Effect,
    points::{
        Bind, BindOutcome, Filter, NormalizeScore, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome,
        QueueSort, QueuedPod, ScoreNode,
    },
    profile::{Choice, Profile, ProfileError, ProfileSpec},
    registry::{Args, Point, Registration, define},
};
use supercargo_model::{Cluster, Name, NodeInfo, Pod};

/// Orders by arrival.
pub(crate) struct ByArrival;

impl QueueSort for ByArrival {
    fn before(&self, one: &QueuedPod, other: &QueuedPod) -> bool {
        one.arrival < other.arrival
    }
}

/// Binds whatever it is given.
pub(crate) struct Binds;

impl Bind for Binds {
    fn bind<'a>(&'a self, _: &'a Arc<Pod>, _: &'a Name) -> Effect<'a, Result<BindOutcome, Status>> {
        Box::pin(std::future::ready(Ok(BindOutcome::Done)))
    }
}

/// Gives each node the number in its label `score`.
pub(crate) struct ByLabel;

impl ScoreNode for ByLabel {
    fn score_node(&self, _: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        let label = node.node.labels.get("score").ok_or_else(|| Status::error("no label"))?;
        label.parse().map_err(|_| Status::error("no number"))
    }
}

/// As [`ByLabel`], and normalizes.
pub(crate) struct Normalizes(pub(crate) fn(&mut [i64]) -> Verdict);

impl ScoreNode for Normalizes {
    fn score_node(&self, input: ScoreInput<'_>, node: &NodeInfo) -> Result<i64, Status> {
        ByLabel.score_node(input, node)
    }
}

impl NormalizeScore for Normalizes {
    fn normalize(&self, _: ScoreInput<'_>, column: &mut [i64]) -> Verdict {
        (self.0)(column)
    }
}

/// Scores what it prepared; `None` skips, and an error is one.
pub(crate) struct Prepares(pub(crate) Result<Option<i64>, &'static str>);

impl PreScore for Prepares {
    fn pre_score(&self, _: &Cluster, _: &Pod, _: &[&NodeInfo]) -> Result<PreScoreOutcome, Status> {
        match self.0 {
            Ok(None) => Ok(PreScoreOutcome::Skip),
            Ok(Some(score)) => Ok(PreScoreOutcome::go(score)),
            Err(message) => Err(Status::error(message)),
        }
    }
}

impl ScoreNode for Prepares {
    fn score_node(&self, input: ScoreInput<'_>, _: &NodeInfo) -> Result<i64, Status> {
        input.prepared.get::<i64>().copied()
    }
}

/// Finds this before the nodes are looked at, and refuses the nodes that have what it prepared as their name.
pub(crate) struct Finds(pub(crate) Found);

/// What [`Finds`] finds.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    /// Nothing to say.
    Skip,
    /// Refuses the node of this name.
    Refuses(&'static str),
    /// Only these nodes.
    Only(&'static [&'static str]),
    /// Refuses the pod.
    Not(Code, &'static str),
}

impl PreFilter for Finds {
    fn pre_filter(&self, _: &Cluster, _: &Pod) -> Result<PreFilterOutcome, Status> {
        match self.0 {
            Found::Skip => Ok(PreFilterOutcome::Skip),
            Found::Refuses(name) => Ok(PreFilterOutcome::go(name)),
            Found::Only(names) => Ok(PreFilterOutcome::Go {
                nodes: Some(names.iter().map(|name| Name::from(*name)).collect()),
                prepared: Prepared::new(""),
            }),
            Found::Not(code, reason) => Err(Status::new(code, [reason.into()])),
        }
    }
}

impl Filter for Finds {
    fn filter(&self, prepared: &Prepared, _: &Cluster, _: &Pod, node: &NodeInfo) -> Verdict {
        let refused: &&str = prepared.get()?;
        if **refused == **node.name() {
            return Err(Status::unschedulable("node(s) had that name"));
        }
        Ok(())
    }
}

/// A profile on its way.
#[derive(Default)]
pub(crate) struct Setup(pub(crate) ProfileSpec);

impl Setup {
    /// With what every profile needs.
    pub(crate) fn new() -> Self {
        Self::default()
            .with(define("ByArrival", |_| Ok(ByArrival)).queue_sort(), 0)
            .with(define("Binds", |_| Ok(Binds)).bind(), 0)
    }

    /// With a plugin at all the points that it serves.
    pub(crate) fn with(mut self, plugin: impl Into<Registration>, weight: i32) -> Self {
        let plugin = plugin.into();
        for point in plugin.points() {
            self = self.choose(*point, plugin.name(), weight);
        }
        self.know(plugin)
    }

    /// With a plugin that is there, but at no point.
    pub(crate) fn know(mut self, plugin: impl Into<Registration>) -> Self {
        let plugin = plugin.into();
        let built = plugin.build(&Args::none()).unwrap();
        self.0.plugins.insert(plugin.name().into(), built);
        self
    }

    /// With a choice of a plugin at a point.
    pub(crate) fn choose(mut self, point: Point, plugin: &str, weight: i32) -> Self {
        let choice = Choice { plugin: plugin.into(), weight };
        let points: &mut BTreeMap<_, Vec<_>> = &mut self.0.points;
        points.entry(point).or_default().push(choice);
        self
    }

    /// Without a plugin at a point.
    pub(crate) fn without(mut self, point: Point, plugin: &str) -> Self {
        let choices = self.0.points.get_mut(&point).expect("a point that is served");
        choices.retain(|choice| &*choice.plugin != plugin);
        self
    }

    /// The profile.
    pub(crate) fn profile(self) -> Result<Profile, ProfileError> {
        Profile::new(self.0)
    }

    /// The profile, which can be made.
    pub(crate) fn ready(self) -> Profile {
        self.profile().unwrap_or_else(|error| panic!("{error}"))
    }
}

/// A plugin that finds something before the nodes are looked at.
pub(crate) fn finds(name: &'static str, found: Found) -> Registration {
    define(name, move |_| Ok(Finds(found))).pre_filter().filter().into()
}
