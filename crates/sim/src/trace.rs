//! Replays the history of a cluster, and compares with what kube-scheduler made of it.

use std::sync::Arc;

use serde::Deserialize;
use supercargo_engine::{Decision, Engine, Survey};
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields, Value};
use supercargo_model::{
    Key, Name, Pod,
    object::{Kind, Object, read_object},
};

use crate::conformance::{Comparison, Difference};

/// One thing that happened.
pub enum Event {
    /// A pod came that asks for a node.
    Arrival(Arc<Pod>),
    /// An object was made or changed.
    Put(Box<Object>),
    /// An object is gone.
    Remove(Kind, Key),
}

/// A history: what happened, in the order of time.
pub struct Trace {
    /// The events.
    pub events: Vec<Event>,
}

#[derive(Deserialize)]
struct Line {
    /// When, in seconds from any origin; the order of the lines is what counts.
    #[serde(rename = "at", default)]
    _at: f64,
    op: Op,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Add,
    Update,
    Delete,
}

impl Trace {
    /// Reads a trace: one JSON object a line.
    pub fn read(source: &Source) -> Result<Self, Problems> {
        let mut events = Vec::new();
        let mut problems = Problems::default();
        for line in &manifest::read(source)? {
            match event(source, line) {
                Ok(event) => events.extend(event),
                Err(more) => problems.extend(more),
            }
        }
        if problems.has_errors() { Err(problems) } else { Ok(Self { events }) }
    }

    /// How many pods came.
    pub fn pods(&self) -> usize {
        let arrivals = self.events.iter().filter(|e| matches!(e, Event::Arrival(_)));
        arrivals.count()
    }
}

/// `None` for an object that a scheduler does not read.
fn event(source: &Source, value: &Value) -> Result<Option<Event>, Problems> {
    let line: Line = manifest::decode(source, value, "", UnknownFields::Ignore)?;
    let missing =
        |field: &str| Problem::error(format!("this line needs a field `{field}`")).at(source, value.at);
    if line.op == Op::Delete {
        let kind = line.kind.ok_or_else(|| missing("kind"))?;
        let key = Key::new(line.namespace, line.name);
        return Ok(Kind::named(&kind).map(|kind| Event::Remove(kind, key)));
    }
    let object = value.get("object").ok_or_else(|| missing("object"))?;
    Ok(read_object(source, object, "object")?.map(|object| match object {
        Object::Pod(pod) if pod.node.is_none() && line.op == Op::Add => Event::Arrival(Arc::new(pod)),
        other => Event::Put(Box::new(other)),
    }))
}

/// Replays a trace. `arrived` sees every pod that comes and says where it goes; a pod that goes nowhere is dropped.
pub fn replay(
    trace: &Trace,
    engine: &mut Engine,
    mut arrived: impl FnMut(&mut Engine, &Arc<Pod>) -> Option<Name>,
) {
    for event in &trace.events {
        match event {
            Event::Put(object) => engine.cluster_mut().put((**object).clone()),
            Event::Remove(kind, key) => engine.cluster_mut().remove(*kind, key),
            Event::Arrival(pod) => {
                let pod = engine.admit(pod.clone());
                if let Some(node) = arrived(engine, &pod) {
                    engine.assume(&pod, node);
                }
            }
        }
    }
}

/// What kube-scheduler made of one pod of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Expectation {
    /// `namespace/name`.
    pub pod: String,
    /// `Scheduled`, …
    pub result: String,
    /// How many nodes were feasible.
    pub feasible: usize,
    /// The highest total.
    pub best: i64,
    /// How many nodes share it.
    pub ties: usize,
    /// The sum of all totals.
    pub sum: i64,
    /// The first of the best by name; empty for none.
    pub placed: String,
    /// Why no node is left; empty if one is.
    #[serde(default)]
    pub message: String,
}

impl Expectation {
    /// Reads expectations: one JSON object a line.
    pub fn read(source: &Source) -> Result<Vec<Self>, Problems> {
        let lines = manifest::read(source)?;
        (lines.iter()).map(|line| manifest::decode(source, line, "", UnknownFields::Ignore)).collect()
    }

    /// What we make of the pod: on the fast path where it applies, else with a whole decision.
    pub fn of(engine: &mut Engine, pod: &Arc<Pod>) -> Option<Self> {
        let held = engine.held(pod);
        if held.is_none()
            && let Some(Survey { feasible, best, ties, sum, first }) = engine.inspect().survey(pod)
        {
            return Some(Self {
                pod: pod.key().to_string(),
                result: "Scheduled".to_owned(),
                feasible,
                best,
                ties,
                sum,
                placed: first.to_string(),
                message: String::new(),
            });
        }
        held.or_else(|| engine.decide(pod)).map(|decision| Self::of_decision(&decision))
    }

    fn of_decision(decision: &Decision) -> Self {
        let report = crate::report::Report::new(decision);
        Self {
            pod: report.pod,
            result: report.result,
            feasible: report.feasible.len(),
            best: decision.best_total().unwrap_or(0),
            ties: decision.best.len(),
            sum: report.total.iter().sum(),
            placed: report.best.first().cloned().unwrap_or_default(),
            message: report.message.unwrap_or_default(),
        }
    }
}

/// How a replay compares.
#[derive(Debug, Default)]
pub struct Checked {
    /// Pods whose answer is kube-scheduler's.
    pub passed: usize,
    /// Pods whose answer is another.
    pub failed: usize,
    /// Where.
    pub differences: Vec<Difference>,
}

/// Replays a trace and compares every pod. After each the expected node is taken, so that one difference does not make
/// others.
pub fn check(
    trace: &Trace,
    expected: &[Expectation],
    engine: &mut Engine,
    mut progress: impl FnMut(),
) -> Checked {
    let mut checked = Checked::default();
    let mut next = expected.iter();
    replay(trace, engine, |engine, pod| {
        progress();
        let before = checked.differences.len();
        let got = Expectation::of(engine, pod)?;
        let key = pod.key().to_string();
        let mut about = Comparison::new(&key, &mut checked.differences);
        let placed = match next.next() {
            None => {
                about.equal(None, "expectation", &"one more line", &"the end of the expectations");
                got.placed
            }
            Some(want) => {
                about.equal(None, "pod", &want.pod, &got.pod);
                about.equal(None, "result", &want.result, &got.result);
                about.equal(None, "feasible", &want.feasible, &got.feasible);
                about.equal(None, "best", &want.best, &got.best);
                about.equal(None, "ties", &want.ties, &got.ties);
                about.equal(None, "sum", &want.sum, &got.sum);
                about.equal(None, "placed", &want.placed, &got.placed);
                about.equal(None, "message", &want.message, &got.message);
                want.placed.clone()
            }
        };
        if checked.differences.len() == before {
            checked.passed += 1;
        } else {
            checked.failed += 1;
        }
        (!placed.is_empty()).then(|| placed.into())
    });
    for missing in next {
        checked.failed += 1;
        let mut about = Comparison::new(&missing.pod, &mut checked.differences);
        about.equal(None, "pod", &"in the trace", &"not in the trace");
    }
    checked
}
