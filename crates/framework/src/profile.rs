//! A profile: a choice of plugins in their order, with weights. It runs them and combines what they say.

mod assembly;
mod binding;
mod compiled;
mod filtering;
mod objections;
mod post_filter;
mod scoring;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use supercargo_model::{ApiResource, Key, Name, Pod, object::Kind};

use crate::{
    fast::{FastFilter, FastScore},
    handle::{Handle, HandleRef},
    points::{
        Bind, CycleStart, Filter, NormalizeScore, Observe, Observed, Permit, PostBind, PostFilter, PreBind,
        PreFilter, PreScore, Reserve, Score,
    },
    preemption::Rejection,
    queueing::{QueueRules, QueueView},
    registry::{Plugin, Point},
    status::{Code, Status},
    stopwatch::{Stopwatch, Taken},
};

pub use compiled::CompiledProfile;
pub use filtering::{PreFilterEnd, PreFiltered};
pub use objections::{Examination, Objection};
pub use post_filter::ProfileRunner;
pub use scoring::{ScoreColumn, Scores};

/// A plugin at an extension point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The plugin's name.
    pub plugin: Name,
    /// How much its score counts; 0 for not at all. Other points do not look at it.
    pub weight: i32,
}

/// What a profile is made of.
#[derive(Default)]
pub struct ProfileSpec {
    /// The scheduler name that pods ask for it by.
    pub scheduler_name: Name,
    /// The plugins at each point, in their order.
    pub points: BTreeMap<Point, Vec<Choice>>,
    /// The plugins themselves, by name.
    pub plugins: BTreeMap<Name, Plugin>,
}

/// Why a profile cannot be made.
#[derive(Debug, PartialEq, Eq)]
pub enum ProfileError {
    /// A plugin was chosen that is not there, or does not serve the point.
    NotServed {
        /// The plugin.
        plugin: Name,
        /// The point.
        point: &'static str,
    },
    /// The queue must be ordered by one plugin, no more and no less.
    QueueSort {
        /// How many there are.
        count: usize,
    },
    /// Nobody would bind the pods.
    NoBinder,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotServed { plugin, point } => {
                write!(f, "plugin {plugin} does not serve {point}")
            }
            Self::QueueSort { count } => {
                write!(f, "a profile needs exactly one queueSort plugin, and has {count}")
            }
            Self::NoBinder => write!(f, "a profile needs at least one bind plugin"),
        }
    }
}

impl std::error::Error for ProfileError {}

/// Something that ended a pod's cycle: a fault of a plugin, not a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleError(pub String);

impl fmt::Display for CycleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CycleError {}

struct Named<T: ?Sized> {
    name: Name,
    plugin: Arc<T>,
}

struct FilterStep {
    name: Name,
    plugin: Arc<dyn Filter>,
    fast: Option<Arc<dyn FastFilter>>,
    /// Where its prepared state is kept; `None` if its PreFilter is switched off or does not exist.
    prepared: Option<usize>,
}

struct ScoreStep {
    name: Name,
    weight: i32,
    plugin: Arc<dyn Score>,
    fast: Option<Arc<dyn FastScore>>,
    normalize: Option<Arc<dyn NormalizeScore>>,
    prepared: Option<usize>,
}

/// The plugins of a scheduler name, ready to run.
pub struct Profile {
    stopwatch: Taken,
    queue_rules: Arc<QueueRules>,
    cycle_start: Vec<Arc<dyn CycleStart>>,
    pre_filter: Vec<Named<dyn PreFilter>>,
    filter: Vec<FilterStep>,
    post_filter: Vec<Named<dyn PostFilter>>,
    pre_score: Vec<Named<dyn PreScore>>,
    score: Vec<ScoreStep>,
    reserve: Vec<Named<dyn Reserve>>,
    permit: Vec<Named<dyn Permit>>,
    pre_bind: Vec<Named<dyn PreBind>>,
    bind: Vec<Named<dyn Bind>>,
    post_bind: Vec<Named<dyn PostBind>>,
    handles: Vec<HandleRef>,
    kinds: Vec<&'static ApiResource>,
    observe: Vec<Named<dyn Observe>>,
    reads_time: bool,
    /// The plugins whose effects never block their thread.
    give_way: BTreeSet<Name>,
}

impl Profile {
    /// The scheduler name that pods ask for it by.
    pub fn scheduler_name(&self) -> &Name {
        self.queue_rules.scheduler_name()
    }

    /// What the queue asks: who comes first, who is held back, and which events help whom.
    pub fn queue_rules(&self) -> &Arc<QueueRules> {
        &self.queue_rules
    }

    /// Whether anything scores nodes.
    pub fn has_score_plugins(&self) -> bool {
        !self.score.is_empty()
    }

    /// Whether a plugin is asked before nodes are looked at.
    pub fn has_pre_filter_plugin(&self, plugin: &str) -> bool {
        position(&self.pre_filter, plugin).is_some()
    }

    /// Whether anything tries to make room.
    pub fn has_post_filter_plugins(&self) -> bool {
        !self.post_filter.is_empty()
    }

    /// Whether a pod may enter the queue.
    pub fn pre_enqueue(&self, view: &QueueView<'_>, pod: &Pod) -> Result<(), Rejection> {
        self.queue_rules.pre_enqueue(view, pod, None)
    }

    /// Tells the plugins that want to know it that a cycle begins. Whether any of them judges otherwise from here on.
    pub fn cycle_starts(&self) -> bool {
        let mut changed = false;
        for plugin in &self.cycle_start {
            changed |= plugin.cycle_starts();
        }
        changed
    }

    /// Takes the times of plugins from here on; the first stopwatch stays.
    pub fn time_with(&self, stopwatch: Arc<dyn Stopwatch>) {
        let _ = self.stopwatch.set(stopwatch);
    }

    /// What takes the times of plugins, if anything does.
    pub fn stopwatch(&self) -> Option<&dyn Stopwatch> {
        self.stopwatch.get().map(|stopwatch| &**stopwatch)
    }

    /// Takes the time of a plugin.
    fn timed<T>(
        &self,
        plugin: &str,
        point: Point,
        run: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        self.timed_plugin(plugin, point, run, |status| status.code)
    }

    fn timed_plugin<T, E>(
        &self,
        plugin: &str,
        point: Point,
        run: impl FnOnce() -> Result<T, E>,
        code: impl Fn(&E) -> Code,
    ) -> Result<T, E> {
        let Some(stopwatch) = self.stopwatch.get() else {
            return run();
        };
        let start = stopwatch.now();
        let result = run();
        let code = result.as_ref().err().map(code);
        stopwatch.plugin(self.scheduler_name(), plugin, point, code, stopwatch.now() - start);
        result
    }

    /// Takes the time of a whole point.
    pub fn timed_point<T>(
        &self,
        point: Point,
        run: impl FnOnce() -> T,
        code: impl Fn(&T) -> Option<Code>,
    ) -> T {
        let Some(stopwatch) = self.stopwatch.get() else {
            return run();
        };
        let start = stopwatch.now();
        let result = run();
        stopwatch.point(self.scheduler_name(), point, code(&result), stopwatch.now() - start);
        result
    }

    /// Tells the plugins that want to know it what the API server tells.
    pub fn observe(&self, observed: &Observed<'_>) {
        let observers = self.observe.iter();
        observers.for_each(|named| named.plugin.observe(self.scheduler_name(), observed));
    }

    /// Single objects that have to be watched, each with the plugin that wants it.
    pub fn watched(&self) -> Vec<(Name, Kind, Key)> {
        let observers = self.observe.iter();
        let watched = |named: &Named<dyn Observe>| {
            let name = named.name.clone();
            named.plugin.watched().into_iter().map(move |(kind, key)| (name.clone(), kind, key))
        };
        observers.flat_map(watched).collect()
    }

    /// Whether a plugin reads the time that the cluster was told last.
    pub fn reads_time(&self) -> bool {
        self.reads_time
    }

    /// Connects all plugins with what their effects go through.
    pub fn connect(&self, handle: &Arc<dyn Handle>) {
        self.handles.iter().for_each(|plugin| plugin.connect(handle));
    }

    /// The custom kinds that its plugins read.
    pub fn kinds(&self) -> &[&'static ApiResource] {
        &self.kinds
    }

    /// For how many pods its plugins keep something at the moment.
    pub fn kept(&self) -> usize {
        let by_reserve = self.reserve.iter().map(|named| named.plugin.kept());
        by_reserve.chain(self.post_filter.iter().map(|named| named.plugin.kept())).sum()
    }

    /// Whether a plugin's effects never block their thread.
    pub fn gives_way(&self, plugin: &str) -> bool {
        self.give_way.contains(plugin)
    }
}

fn position<T: ?Sized>(all: &[Named<T>], name: &str) -> Option<usize> {
    all.iter().position(|named| &*named.name == name)
}

fn rejection(plugin: &Name, status: Status) -> Rejection {
    Rejection { plugin: plugin.clone(), status }
}
