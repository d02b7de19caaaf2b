//! A profile: a choice of plugins in their order, with weights. It runs them and combines what they say.

mod objections;

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use supercargo_model::{ApiResource, Cluster, Key, Name, NodeInfo, Pod, object::Kind};

use crate::{
    assumed::ReserveCycle,
    fast::{Compiled, FastFilter, FastScore, FilterPart, RawScores, ScorePart},
    handle::{Handle, HandleRef},
    opaque::{PluginFilter, PluginScore},
    points::{
        Bind, CycleStart, Filter, MAX_SCORE, MIN_SCORE, NormalizeScore, Observe, Observed, Permission,
        Permit, PostBind, PostFilter, PreBind, PreFilter, PreFilterOutcome, PreScore, PreScoreOutcome,
        Prepared, Reserve, Score, ScoreInput,
    },
    preemption::{
        Adviser, Candidate, FilterRunner, FilterState, NodeVerdicts, Nomination, Nominations, NotNominated,
        PreemptionCycle, Rejection, Resolvable,
    },
    queueing::{QueueRules, QueueView},
    registry::{Plugin, Point},
    status::{Code, Status, Verdict},
    stopwatch::{Stopwatch, Taken},
    waiting::{MAX_PERMIT_WAIT, PermitWait},
};

pub use objections::{Examination, Objection};

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

/// What came of the PreFilter plugins, if none refused the pod.
pub struct PreFiltered {
    /// What they prepared.
    pub state: FilterState,
    /// The only nodes worth looking at; `None` for all.
    pub nodes: Option<BTreeSet<Name>>,
    /// The plugins that narrowed the nodes to those.
    pub narrowed_by: BTreeSet<Name>,
    /// What is said of every other node.
    pub others: Status,
}

/// How PreFilter can end.
pub enum PreFilterEnd {
    /// The nodes are looked at next.
    Go(PreFiltered),
    /// The pod is refused for every node.
    Rejected {
        /// By whom, and why. The plugin's name is empty where several narrowed the nodes to none.
        rejection: Rejection,
        /// The plugins that had narrowed the nodes until then.
        narrowed_by: BTreeSet<Name>,
        /// What was prepared until then.
        state: FilterState,
    },
}

/// A plugin's scores of the feasible nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreColumn {
    /// The plugin.
    pub plugin: Name,
    /// How much it counts.
    pub weight: i32,
    /// As the plugin gave them.
    pub raw: Vec<i64>,
    /// In 0..=100.
    pub normalized: Vec<i64>,
}

/// What all plugins make of the feasible nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scores {
    /// A column for each plugin that scored, in the profile's order.
    pub columns: Vec<ScoreColumn>,
    /// The weighted sum for each node.
    pub totals: Vec<i64>,
}

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

    /// Runs all PreFilter plugins.
    pub fn pre_filter(&self, cluster: &Cluster, pod: &Pod) -> Result<PreFilterEnd, CycleError> {
        let mut state = FilterState(Vec::with_capacity(self.pre_filter.len()));
        let mut nodes: Option<BTreeSet<Name>> = None;
        let mut narrowed_by = BTreeSet::new();
        let mut refused = None;
        for Named { name, plugin } in &self.pre_filter {
            match self.timed(name, Point::PreFilter, || plugin.pre_filter(cluster, pod)) {
                Ok(PreFilterOutcome::Skip) => state.0.push(None),
                Ok(PreFilterOutcome::Go { nodes: only, prepared }) => {
                    state.0.push(Some(prepared));
                    if let Some(only) = only {
                        narrowed_by.insert(name.clone());
                        nodes = Some(match nodes {
                            None => only,
                            Some(nodes) => &nodes & &only,
                        });
                    }
                    if nodes.as_ref().is_some_and(BTreeSet::is_empty) {
                        let rejection = narrowed_to_nothing(&narrowed_by);
                        return Ok(PreFilterEnd::Rejected { rejection, narrowed_by, state });
                    }
                }
                Err(status) if matches!(status.code, Code::Error | Code::Pending) => {
                    let message = status.message();
                    return Err(CycleError(format!("running PreFilter plugin {name:?}: {message}")));
                }
                Err(status) => {
                    state.0.push(None);
                    let ends_here = status.code == Code::UnschedulableAndUnresolvable;
                    refused = Some(rejection(name, status));
                    if ends_here {
                        // Nothing but this plugin's mind can change the outcome.
                        narrowed_by.clear();
                        break;
                    }
                }
            }
        }
        Ok(match refused {
            Some(rejection) => PreFilterEnd::Rejected { rejection, narrowed_by, state },
            None => PreFilterEnd::Go(PreFiltered {
                state,
                others: others_status(nodes.is_some(), &narrowed_by),
                nodes,
                narrowed_by,
            }),
        })
    }

    /// Whether all filters agree to a node.
    pub fn filter(
        &self,
        state: &FilterState,
        cluster: &Cluster,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Result<(), Rejection> {
        let nothing = Prepared::nothing();
        for step in &self.filter {
            let prepared = match step.prepared {
                None => &nothing,
                Some(index) => match state.0.get(index) {
                    Some(Some(prepared)) => prepared,
                    _ => continue,
                },
            };
            let verdict =
                self.timed(&step.name, Point::Filter, || step.plugin.filter(prepared, cluster, pod, node));
            if let Err(mut status) = verdict {
                if status.code == Code::Error {
                    let message = status.message();
                    status = Status::error(format!("running {:?} filter plugin: {message}", step.name));
                }
                return Err(rejection(&step.name, status));
            }
        }
        Ok(())
    }

    /// As [`Self::filter`]; and if more important pods are nominated to the node, also as if they ran there.
    pub fn filter_with_nominated(
        &self,
        state: &FilterState,
        cluster: &Cluster,
        nominations: &Nominations,
        pod: &Pod,
        node: &NodeInfo,
    ) -> Result<(), Rejection> {
        let mut ahead = nominations.ahead_of(pod, node.name()).peekable();
        if ahead.peek().is_some() {
            let mut with_them = node.clone();
            let mut state = state.clone();
            for other in ahead {
                with_them.add_pod(other.clone());
                self.tell_added(&mut state, pod, other, &with_them)
                    .map_err(|status| rejection(&"".into(), status))?;
            }
            self.filter(&state, cluster, pod, &with_them)?;
        }
        self.filter(state, cluster, pod, node)
    }

    fn tell_added(&self, state: &mut FilterState, pod: &Pod, added: &Pod, node: &NodeInfo) -> Verdict {
        self.tell(state, |plugin, prepared| plugin.add_pod(prepared, pod, added, node))
    }

    fn tell(
        &self,
        state: &mut FilterState,
        tell: impl Fn(&dyn PreFilter, &mut Prepared) -> Verdict,
    ) -> Verdict {
        for (named, prepared) in self.pre_filter.iter().zip(&mut state.0) {
            if let Some(prepared) = prepared {
                tell(&*named.plugin, prepared)?;
            }
        }
        Ok(())
    }

    /// Runs the PostFilter plugins until one finds a way to make room, or fails, or says that nobody can. The last that
    /// takes an earlier nomination back decides about it.
    pub fn post_filter(
        &self,
        runner: &dyn FilterRunner,
        pod: &Pod,
        verdicts: &NodeVerdicts,
    ) -> Result<Nomination, NotNominated> {
        let mut merged = MergedPostFilter::default();
        for Named { name, plugin } in &self.post_filter {
            let run = || plugin.post_filter(runner, pod, verdicts);
            let code = |refused: &NotNominated| refused.status.code;
            let answer = self.timed_plugin(name, Point::PostFilter, run, code);
            self.count_preemption(&**plugin);
            match answer {
                Ok(nomination) => return Ok(Nomination { plugin: name.clone(), ..nomination }),
                Err(refused) => merged.add(refused)?,
            }
        }
        Err(merged.refused())
    }

    fn count_preemption(&self, plugin: &dyn PostFilter) {
        if let Some(stopwatch) = self.stopwatch.get().filter(|_| plugin.preempts()) {
            stopwatch.preemption_attempted();
        }
    }

    /// Lets the plugin that found room for a pod begin to make it.
    pub fn preempt(&self, cycle: &mut dyn PreemptionCycle, pod: &Arc<Pod>, nomination: &Nomination) {
        let found = self.post_filter.iter().find(|named| named.name == nomination.plugin);
        if let Some(Named { plugin, .. }) = found {
            plugin.preempt(cycle, pod, nomination);
        }
    }

    /// What [`Self::post_filter`] says of a pod that fits nowhere, if that follows without trying anything.
    pub fn foregone_post_filter(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        resolvable: &Resolvable<'_>,
    ) -> Option<NotNominated> {
        let plugins = self.post_filter.iter();
        let foregone: Vec<NotNominated> = plugins
            .map(|Named { plugin, .. }| plugin.foregone(cluster, pod, resolvable))
            .collect::<Option<_>>()?;
        let mut merged = MergedPostFilter::default();
        for (Named { name, plugin }, refused) in self.post_filter.iter().zip(foregone) {
            let code = |refused: &NotNominated| refused.status.code;
            // They were asked, and it is counted.
            let answer = self.timed_plugin(name, Point::PostFilter, || Err::<(), _>(refused), code);
            self.count_preemption(&**plugin);
            if let Err(last) = answer.or_else(|refused| merged.add(refused)) {
                return Some(last);
            }
        }
        Some(merged.refused())
    }

    /// Scores the feasible nodes: prepare, score, normalize, weigh and sum.
    pub fn score(&self, cluster: &Cluster, pod: &Pod, nodes: &[&NodeInfo]) -> Result<Scores, CycleError> {
        let failed = |failed: bool| failed.then_some(Code::Error);
        let prepared = self.timed_point(
            Point::PreScore,
            || self.prepare_scores(cluster, pod, nodes),
            |result| failed(result.is_err()),
        )?;
        let scores = || self.give_scores(&prepared, cluster, pod, nodes);
        self.timed_point(Point::Score, scores, |result| failed(result.is_err()))
    }

    fn give_scores(
        &self,
        prepared: &[Option<Prepared>],
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> Result<Scores, CycleError> {
        let nothing = Prepared::nothing();
        let mut scores =
            Scores { columns: Vec::with_capacity(self.score.len()), totals: vec![0; nodes.len()] };
        for step in &self.score {
            let prepared = match step.prepared {
                None => &nothing,
                Some(index) => match &prepared[index] {
                    Some(prepared) => prepared,
                    None => continue,
                },
            };
            let input = ScoreInput { prepared, cluster, pod, nodes };
            let column = self.score_column(step, input)?;
            for (total, score) in scores.totals.iter_mut().zip(&column.normalized) {
                *total = total.saturating_add(score * i64::from(step.weight));
            }
            scores.columns.push(column);
        }
        Ok(scores)
    }

    /// A plugin's scores. Scoring and normalizing are taken time of apart, as kube-scheduler does.
    fn score_column(&self, step: &ScoreStep, input: ScoreInput<'_>) -> Result<ScoreColumn, CycleError> {
        let raw = self.timed_plugin(&step.name, Point::Score, || step.run(input), |_| Code::Error)?;
        let normalize = || step.normalize(input, &raw);
        let normalized = match (self.stopwatch.get(), &step.normalize) {
            (Some(stopwatch), Some(_)) => {
                let start = stopwatch.now();
                let normalized = normalize();
                let code = normalized.as_ref().err().map(|_| Code::Error);
                stopwatch.normalized(self.scheduler_name(), &step.name, code, stopwatch.now() - start);
                normalized?
            }
            _ => normalize()?,
        };
        Ok(ScoreColumn { plugin: step.name.clone(), weight: step.weight, raw, normalized })
    }

    fn prepare_scores(
        &self,
        cluster: &Cluster,
        pod: &Pod,
        nodes: &[&NodeInfo],
    ) -> Result<Vec<Option<Prepared>>, CycleError> {
        self.pre_score
            .iter()
            .map(|Named { name, plugin }| {
                match self.timed(name, Point::PreScore, || plugin.pre_score(cluster, pod, nodes)) {
                    Ok(PreScoreOutcome::Skip) => Ok(None),
                    Ok(PreScoreOutcome::Go(prepared)) => Ok(Some(prepared)),
                    Err(status) => {
                        let message = status.message();
                        Err(CycleError(format!("running PreScore plugin {name:?}: {message}")))
                    }
                }
            })
            .collect()
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

    /// Whether a plugin's effects never block their thread.
    pub fn gives_way(&self, plugin: &str) -> bool {
        self.give_way.contains(plugin)
    }

    /// Runs all Reserve plugins; if one refuses, all are told to forget the pod again.
    pub fn reserve(
        &self,
        cycle: &mut ReserveCycle<'_>,
        pod: &Arc<Pod>,
        node: &Name,
    ) -> Result<(), Rejection> {
        for Named { name, plugin } in &self.reserve {
            if let Err(status) = plugin.reserve(cycle, pod, node) {
                self.unreserve(pod, node);
                return Err(rejection(name, status));
            }
        }
        Ok(())
    }

    /// Tells all Reserve plugins, in the opposite order, that the pod will not be placed after all.
    pub fn unreserve(&self, pod: &Pod, node: &str) {
        for Named { plugin, .. } in self.reserve.iter().rev() {
            plugin.unreserve(pod, node);
        }
    }

    /// Asks the Permit plugins, all of them unless one refuses. Those that make the pod wait.
    pub fn ask_permission(
        &self,
        cluster: &Cluster,
        pod: &Arc<Pod>,
        node: &Name,
    ) -> Result<Vec<PermitWait>, Rejection> {
        let mut waits = Vec::new();
        for Named { name, plugin } in &self.permit {
            match plugin.permit(cluster, pod, node) {
                Ok(Permission::Granted) => {}
                Ok(Permission::Wait { timeout, word }) => {
                    let timeout = timeout.min(MAX_PERMIT_WAIT);
                    waits.push(PermitWait { plugin: name.clone(), timeout, word });
                }
                Err(status) => return Err(rejection(name, status)),
            }
        }
        Ok(waits)
    }

    /// The first PreBind plugin that has something to do for a pod.
    pub fn first_to_pre_bind(&self, pod: &Pod, node: &str) -> Option<Name> {
        let mut plugins = self.pre_bind.iter();
        plugins.find(|named| named.plugin.is_needed(pod, node)).map(|named| named.name.clone())
    }

    /// The PreBind plugins, in their order.
    pub fn pre_binders(&self) -> impl Iterator<Item = (&Name, &Arc<dyn PreBind>)> {
        self.pre_bind.iter().map(|named| (&named.name, &named.plugin))
    }

    /// The Bind plugins, in their order.
    pub fn binders(&self) -> impl Iterator<Item = (&Name, &Arc<dyn Bind>)> {
        self.bind.iter().map(|named| (&named.name, &named.plugin))
    }

    /// The PostBind plugins, in their order.
    pub fn post_binders(&self) -> impl Iterator<Item = (&Name, &Arc<dyn PostBind>)> {
        self.post_bind.iter().map(|named| (&named.name, &named.plugin))
    }
}

/// The fast form of a profile for pods of one signature.
pub struct CompiledProfile {
    /// The filters that have something to say, in the profile's order; those without a fast form come last.
    pub filters: Vec<(Name, FilterPart)>,
    /// The scores that have something to say: plugin, weight, part.
    pub scores: Vec<(Name, i32, ScorePart)>,
}

impl Profile {
    /// The profile for pods like this one: plugins in their fast form where they have one, the others as they are.
    /// `None` if only the full path can run it.
    pub fn compile(&self, cluster: &Cluster, pod: &Arc<Pod>) -> Option<CompiledProfile> {
        // A PreFilter without its Filter can still refuse pods.
        let filtered = |named: &Named<dyn PreFilter>| self.filter.iter().any(|step| step.name == named.name);
        if !self.pre_filter.iter().all(filtered) {
            return None;
        }
        let mut filters = Vec::new();
        let mut opaque = Vec::new();
        for step in &self.filter {
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
        FilterPart::Opaque(Box::new(PluginFilter {
            prepare: step.prepared.map(|index| self.pre_filter[index].plugin.clone()),
            filter: step.plugin.clone(),
        }))
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

impl ScoreStep {
    fn failed(&self, step: &str, status: &Status) -> CycleError {
        CycleError(format!("{step}: plugin {:?} failed with: {}", self.name, status.message()))
    }

    fn run(&self, input: ScoreInput<'_>) -> Result<Vec<i64>, CycleError> {
        let mut raw = vec![0; input.nodes.len()];
        let scored = self.plugin.score(input, &mut raw);
        scored.map_err(|status| self.failed("running Score plugins", &status))?;
        Ok(raw)
    }

    /// The scores in their range; one that is not is an error.
    fn normalize(&self, input: ScoreInput<'_>, raw: &[i64]) -> Result<Vec<i64>, CycleError> {
        let mut normalized = raw.to_vec();
        if let Some(normalize) = &self.normalize {
            (normalize.normalize(input, &mut normalized))
                .map_err(|status| self.failed("running Normalize on Score plugins", &status))?;
        }
        let invalid = (normalized.iter()).position(|s| !(MIN_SCORE..=MAX_SCORE).contains(s));
        if let Some(index) = invalid {
            return Err(CycleError(format!(
                "plugin {:?} gives node {:?} the score {}, which is not in {MIN_SCORE}..={MAX_SCORE} after normalizing",
                self.name,
                input.nodes[index].name(),
                normalized[index],
            )));
        }
        Ok(normalized)
    }
}

/// Runs a profile's filters for PostFilter plugins.
pub struct ProfileRunner<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Pods for which room is being made.
    pub nominations: &'a Nominations,
    /// What was prepared for the pod.
    pub state: &'a FilterState,
    /// For choices that are otherwise equal.
    pub seed: u64,
    /// Whoever else has a say, besides the plugins.
    pub adviser: Option<&'a dyn Adviser>,
}

impl FilterRunner for ProfileRunner<'_> {
    fn cluster(&self) -> &Cluster {
        self.cluster
    }

    fn state(&self) -> FilterState {
        self.state.clone()
    }

    fn was_pre_filtered_by(&self, plugin: &str) -> bool {
        self.profile.pre_filter.iter().take(self.state.0.len()).any(|step| *step.name == *plugin)
    }

    fn filter(&self, state: &FilterState, pod: &Pod, node: &NodeInfo) -> Result<(), Rejection> {
        self.profile.filter_with_nominated(state, self.cluster, self.nominations, pod, node)
    }

    fn add_pod(&self, state: &mut FilterState, pod: &Pod, added: &Pod, node: &NodeInfo) -> Verdict {
        self.profile.tell_added(state, pod, added, node)
    }

    fn remove_pod(&self, state: &mut FilterState, pod: &Pod, removed: &Pod, node: &NodeInfo) -> Verdict {
        self.profile.tell(state, |plugin, prepared| plugin.remove_pod(prepared, pod, removed, node))
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn narrow(&self, candidates: Vec<Candidate>) -> Result<Vec<Candidate>, Status> {
        match self.adviser {
            Some(adviser) => adviser.narrow(self.cluster, candidates),
            None => Ok(candidates),
        }
    }
}

/// What several PostFilter plugins that cannot help come to.
#[derive(Default)]
struct MergedPostFilter {
    reasons: Vec<Cow<'static, str>>,
    clears: bool,
}

impl MergedPostFilter {
    /// Goes on after a refusal; ends with anything else.
    fn add(&mut self, refused: NotNominated) -> Result<(), NotNominated> {
        if refused.status.code != Code::Unschedulable {
            return Err(refused);
        }
        self.clears |= refused.clears;
        self.reasons.extend(refused.status.reasons.iter().cloned());
        Ok(())
    }

    fn refused(self) -> NotNominated {
        let status = Status::new(Code::Unschedulable, self.reasons);
        NotNominated { status, clears: self.clears }
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

fn position<T: ?Sized>(all: &[Named<T>], name: &str) -> Option<usize> {
    all.iter().position(|named| &*named.name == name)
}

fn rejection(plugin: &Name, status: Status) -> Rejection {
    Rejection { plugin: plugin.clone(), status }
}

fn list(names: &BTreeSet<Name>) -> String {
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.join(" ")
}

fn narrowed_to_nothing(by: &BTreeSet<Name>) -> Rejection {
    let message = if by.len() == 1 {
        format!("node(s) didn't satisfy plugin {}", list(by))
    } else {
        format!("node(s) didn't satisfy plugin(s) [{}] simultaneously", list(by))
    };
    rejection(&"".into(), Status::unresolvable(message))
}

fn others_status(narrowed: bool, by: &BTreeSet<Name>) -> Status {
    if narrowed {
        Status::unresolvable(format!("node(s) didn't satisfy plugin(s) [{}]", list(by)))
    } else {
        Status::new(Code::UnschedulableAndUnresolvable, [])
    }
}
