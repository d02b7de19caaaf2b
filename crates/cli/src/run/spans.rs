//! Spans of scheduling attempts, for `--tracing-endpoint`: made where the scheduler tells what it does, and kept until
//! [`otlp`](super::otlp) sends them off. Nothing here waits, and everything is bounded.

use std::{
    collections::{HashMap, VecDeque},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use supercargo_framework::{Code, registry::Point};
use supercargo_live::scheduler::meter::{Attempted, DecidedBy};
use supercargo_model::{Name, Pod};
use supercargo_server::metrics::Metrics;

/// How many spans may wait to be sent.
const MAX_WAITING: usize = 4096;
/// How many attempts may be under way; of pods that were deleted meanwhile nobody tells the end, so the oldest give way.
const MAX_OPEN: usize = 4096;
/// How many steps of one attempt are kept: extenders can make it go on very often.
const MAX_STEPS: usize = 64;
const MILLION: u64 = 1_000_000;

/// A piece of work, with its beginning and its end.
#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) trace_id: u128,
    pub(super) id: u64,
    /// The span that it is a part of.
    pub(super) parent: Option<u64>,
    pub(super) name: &'static str,
    pub(super) began: SystemTime,
    pub(super) ended: SystemTime,
    pub(super) attributes: Vec<(&'static str, String)>,
    pub(super) is_error: bool,
}

/// Makes spans of what it is told. Clones share them.
#[derive(Clone)]
pub(super) struct Spans {
    state: Arc<Mutex<State>>,
    metrics: Arc<Metrics>,
    per_million: u32,
    random: RandomState,
}

#[derive(Default)]
struct State {
    /// Whose scheduling cycle runs.
    current: Option<Name>,
    open: HashMap<Name, Attempt>,
    waiting: VecDeque<Span>,
    /// What ids are made of.
    count: u64,
}

/// An attempt that is under way.
struct Attempt {
    trace_id: u128,
    id: u64,
    number: u32,
    began: SystemTime,
    decided: Option<(DecidedBy, SystemTime)>,
    steps: Vec<Step>,
}

struct Step {
    point: Point,
    code: Option<Code>,
    is_binding: bool,
    ended: SystemTime,
    took: Duration,
}

impl Spans {
    /// Of so many attempts in a million.
    pub(super) fn new(metrics: Arc<Metrics>, per_million: u32) -> Self {
        Self { state: Arc::default(), metrics, per_million, random: RandomState::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins, or goes on.
    pub(super) fn tries(&self, pod: &Pod, number: u32) {
        let mut state = self.state();
        state.current = None;
        if !state.open.contains_key(&pod.uid) {
            let id = self.id(&mut state);
            if id % MILLION >= u64::from(self.per_million) {
                return;
            }
            if state.open.len() >= MAX_OPEN {
                self.give_up_oldest(&mut state);
            }
            let trace_id = u128::from(self.id(&mut state)) << 64 | u128::from(id);
            let began = SystemTime::now();
            let attempt = Attempt { trace_id, id, number, began, decided: None, steps: Vec::new() };
            state.open.insert(pod.uid.clone(), attempt);
        }
        state.current = Some(pod.uid.clone());
    }

    /// The scheduling cycle of the current attempt has decided.
    pub(super) fn decided(&self, by: DecidedBy) {
        self.in_current(|attempt| attempt.decided = Some((by, SystemTime::now())));
    }

    /// A point of the current attempt's scheduling cycle has ended.
    pub(super) fn point(&self, point: Point, code: Option<Code>, took: Duration) {
        if !matches!(point, Point::PreBind | Point::Bind | Point::PostBind) {
            self.in_current(|attempt| attempt.step(point, code, took, false));
        }
    }

    /// A step of a pod's binding cycle has ended.
    pub(super) fn binding_step(&self, pod: &Pod, point: Point, code: Option<Code>, took: Duration) {
        if let Some(attempt) = self.state().open.get_mut(&pod.uid) {
            attempt.step(point, code, took, true);
        }
    }

    /// An attempt has ended: its spans wait to be sent.
    pub(super) fn ended(&self, pod: &Pod, node: Option<&Name>, how: Attempted) {
        let mut state = self.state();
        let Some(attempt) = state.open.remove(&pod.uid) else { return };
        let spans = attempt.spans(pod, node, how, || self.id(&mut state));
        let room = MAX_WAITING - state.waiting.len();
        // All of an attempt or nothing: a part of a trace misleads.
        if spans.len() <= room {
            state.waiting.extend(spans);
        } else {
            self.metrics.own.spans_dropped(spans.len());
        }
    }

    /// The spans that wait, at most so many.
    pub(super) fn take(&self, most: usize) -> Vec<Span> {
        let mut state = self.state();
        let count = state.waiting.len().min(most);
        state.waiting.drain(..count).collect()
    }

    /// A random number that is not 0, which stands for no id.
    fn id(&self, state: &mut State) -> u64 {
        state.count += 1;
        self.random.hash_one(state.count).max(1)
    }

    fn in_current(&self, change: impl FnOnce(&mut Attempt)) {
        let mut state = self.state();
        let State { current, open, .. } = &mut *state;
        if let Some(attempt) = current.as_ref().and_then(|uid| open.get_mut(uid)) {
            change(attempt);
        }
    }

    fn give_up_oldest(&self, state: &mut State) {
        let oldest = state.open.iter().min_by_key(|(_, attempt)| attempt.began).map(|(uid, _)| uid.clone());
        if let Some(attempt) = oldest.and_then(|uid| state.open.remove(&uid)) {
            self.metrics.own.spans_dropped(attempt.steps.len() + 1);
        }
    }
}

impl Attempt {
    fn step(&mut self, point: Point, code: Option<Code>, took: Duration, is_binding: bool) {
        if self.steps.len() < MAX_STEPS {
            self.steps.push(Step { point, code, is_binding, ended: SystemTime::now(), took });
        }
    }

    /// The attempt, the binding in it, and the points of both.
    fn spans(self, pod: &Pod, node: Option<&Name>, how: Attempted, mut id: impl FnMut() -> u64) -> Vec<Span> {
        let now = SystemTime::now();
        let binding = self.steps.iter().any(|step| step.is_binding).then(&mut id);
        let span = |id, parent, name, began, ended| Span {
            trace_id: self.trace_id,
            id,
            parent,
            name,
            began,
            ended,
            attributes: Vec::new(),
            is_error: false,
        };
        let mut spans = vec![Span {
            attributes: self.attributes(pod, node, how),
            is_error: how == Attempted::Error,
            ..span(self.id, None, "scheduling attempt", self.began, now)
        }];
        if let Some(binding) = binding {
            let began = self.decided.map_or(self.began, |(_, at)| at);
            spans.push(span(binding, Some(self.id), "binding", began, now));
        }
        for step in &self.steps {
            let parent = if step.is_binding { binding } else { Some(self.id) };
            let began = step.ended.checked_sub(step.took).unwrap_or(step.ended);
            spans.push(Span {
                attributes: vec![("supercargo.status", step.code.map_or("Success", Code::name).to_owned())],
                is_error: step.code == Some(Code::Error),
                ..span(id(), parent, step.point.name(), began, step.ended)
            });
        }
        spans
    }

    fn attributes(&self, pod: &Pod, node: Option<&Name>, how: Attempted) -> Vec<(&'static str, String)> {
        let result = match how {
            Attempted::Scheduled => "scheduled",
            Attempted::Unschedulable => "unschedulable",
            Attempted::Error => "error",
        };
        let path = self.decided.map(|(by, _)| match by {
            DecidedBy::Memory => "fast",
            DecidedBy::Asking => "full",
        });
        let mut attributes = vec![
            ("k8s.pod.name", pod.name.to_string()),
            ("k8s.namespace.name", pod.namespace.to_string()),
            ("k8s.pod.uid", pod.uid.to_string()),
            ("supercargo.profile", pod.spec.scheduler_name.to_string()),
            ("supercargo.attempt", self.number.to_string()),
            ("supercargo.result", result.to_owned()),
        ];
        attributes.extend(path.map(|path| ("supercargo.path", path.to_owned())));
        attributes.extend(node.map(|node| ("k8s.node.name", node.to_string())));
        attributes
    }
}

#[cfg(test)]
mod tests {
    use supercargo_model::testing::pod;
    use supercargo_server::{Clock, metrics::BuildInfo};

    use super::*;

    fn spans(per_million: u32) -> Spans {
        Spans::new(Arc::new(Metrics::new(&BuildInfo::new("0", ""), Clock::system())), per_million)
    }

    fn dropped(spans: &Spans) -> String {
        let text = spans.metrics.text();
        let line = text.lines().find(|line| line.starts_with("supercargo_trace_spans_dropped_total "));
        line.and_then(|line| line.split(' ').nth(1)).expect("the counter").to_owned()
    }

    fn uid(name: &str) -> Arc<Pod> {
        pod(name).set("/metadata/uid", name).pod()
    }

    #[test]
    fn an_attempt_has_its_points_and_its_binding() {
        let spans = spans(1_000_000);
        let (one, other) = (uid("one"), uid("other"));
        spans.tries(&one, 3);
        spans.point(Point::Filter, None, Duration::from_millis(1));
        spans.decided(DecidedBy::Memory);
        spans.tries(&other, 1);
        spans.point(Point::Filter, Some(Code::Unschedulable), Duration::from_millis(1));
        // The binding of the first goes on beside the cycle of the second; what counts all points is told as well.
        spans.point(Point::Bind, None, Duration::from_millis(2));
        spans.binding_step(&one, Point::Bind, None, Duration::from_millis(2));
        spans.ended(&one, Some(&"n".into()), Attempted::Scheduled);
        let made = spans.take(100);
        let [root, binding, filter, bind] = &made[..] else { panic!("{made:#?}") };
        assert_eq!(
            [root.name, binding.name, filter.name, bind.name],
            ["scheduling attempt", "binding", "filter", "bind"]
        );
        assert_eq!(
            [root.parent, binding.parent, filter.parent, bind.parent],
            [None, Some(root.id), Some(root.id), Some(binding.id)]
        );
        assert!(made.iter().all(|span| span.trace_id == root.trace_id && span.began <= span.ended));
        for attribute in [("k8s.node.name", "n"), ("supercargo.attempt", "3"), ("supercargo.path", "fast")] {
            let found = root.attributes.iter().any(|(key, value)| (*key, &**value) == attribute);
            assert!(found, "{attribute:?} of {:?}", root.attributes);
        }
        spans.ended(&other, None, Attempted::Error);
        let made = spans.take(100);
        assert_eq!(made.len(), 2);
        assert!(made[0].is_error && !made[1].is_error);
        assert!(spans.state().open.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let spans = spans(1_000_000);
        for i in 0..MAX_WAITING + 7 {
            let pod = uid(&format!("p{i}"));
            spans.tries(&pod, 1);
            spans.ended(&pod, None, Attempted::Unschedulable);
        }
        assert_eq!(dropped(&spans), "7");
        assert_eq!(spans.take(usize::MAX).len(), MAX_WAITING);
        // Those that never end: the oldest give way.
        for i in 0..MAX_OPEN + 2 {
            spans.tries(&uid(&format!("q{i}")), 1);
        }
        assert_eq!((spans.state().open.len(), dropped(&spans)), (MAX_OPEN, "9".to_owned()));
    }

    #[test]
    fn some_in_a_million() {
        let none = spans(0);
        none.tries(&uid("p"), 1);
        none.point(Point::Filter, None, Duration::ZERO);
        none.ended(&uid("p"), None, Attempted::Scheduled);
        assert!(none.take(1).is_empty());
        let half = spans(500_000);
        (0..2000).for_each(|i| half.tries(&uid(&format!("p{i}")), 1));
        // Twenty standard deviations of √(2000 × ½ × ½) ≈ 22 either way.
        assert!((560..1440).contains(&half.state().open.len()));
    }
}
