//! Replays a trace one pod at a time, and compares with what kube-scheduler made of it.

use std::sync::Arc;

use serde::Deserialize;
use supercargo_engine::{Decision, Engine, Survey};
use supercargo_manifest::{self as manifest, Problems, Source, UnknownFields};
use supercargo_model::{Name, Pod};

use super::{Trace, TraceEvent};
use crate::conformance::{Comparison, Mismatch};

/// Replays a trace. `arrived` sees every pod that comes and says where it goes; a pod that goes nowhere is dropped.
pub fn replay(
    trace: &Trace,
    engine: &mut Engine,
    mut arrived: impl FnMut(&mut Engine, &Arc<Pod>) -> Option<Name>,
) {
    for timed in &trace.events {
        match &timed.event {
            TraceEvent::Put(object) => engine.cluster_mut().put((**object).clone()),
            TraceEvent::Remove(kind, key) => engine.cluster_mut().remove(*kind, key),
            TraceEvent::Arrival(pod) => {
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
pub struct ExpectedAnswer {
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

impl ExpectedAnswer {
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
        let report = crate::report::PodReport::new(decision);
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
pub struct CheckedReplay {
    /// Pods whose answer is kube-scheduler's.
    pub passed: usize,
    /// Pods whose answer is another.
    pub failed: usize,
    /// Where.
    pub differences: Vec<Mismatch>,
}

/// Replays a trace and compares every pod. After each the expected node is taken, so that one difference does not make
/// others.
pub fn check(
    trace: &Trace,
    expected: &[ExpectedAnswer],
    engine: &mut Engine,
    mut progress: impl FnMut(),
) -> CheckedReplay {
    let mut checked = CheckedReplay::default();
    let mut next = expected.iter();
    replay(trace, engine, |engine, pod| {
        progress();
        let before = checked.differences.len();
        let got = ExpectedAnswer::of(engine, pod)?;
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
