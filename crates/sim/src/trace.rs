//! The history of a cluster: objects that came, changed and went, each at its time.
//!
//! One JSON object a line, in the order of time: `{"at": SECONDS, "op": "add"|"update", "object": {…}}` or
//! `{"at": SECONDS, "op": "delete", "kind": …, "namespace": …, "name": …}`.

mod check;
mod quick;

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use supercargo_manifest::{self as manifest, Problem, Problems, Source, UnknownFields, Value};
use supercargo_model::{
    Declared, Key, Pod,
    object::{Kind, Object, read_declared_object},
};

pub use check::{CheckedReplay, ExpectedAnswer, check, replay};

/// One thing that happened.
#[derive(Clone)]
pub enum TraceEvent {
    /// A pod came that asks for a node.
    Arrival(Arc<Pod>),
    /// An object was made or changed.
    Put(Arc<Object>),
    /// An object is gone.
    Remove(Kind, Key),
}

/// Something that happened, and when.
#[derive(Clone)]
pub struct TimedEvent {
    /// The time since the first event.
    pub at: Duration,
    /// What happened.
    pub event: TraceEvent,
}

/// A history: what happened, in the order of time.
#[derive(Clone, Default)]
pub struct Trace {
    /// The time of the first event, in seconds from the trace's own origin.
    pub origin_seconds: f64,
    /// The events.
    pub events: Vec<TimedEvent>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Op {
    Add,
    Update,
    Delete,
}

/// A line whose fields have been read.
struct Line {
    at_seconds: f64,
    /// `None` for an object that a scheduler does not read.
    event: Option<TraceEvent>,
}

impl Trace {
    /// Reads a trace, with what plugins have declared to read besides. What is wrong with it is told with its place.
    pub fn read(source: &Source, declared: &Declared) -> Result<Self, Problems> {
        match quick::lines(&source.text, declared).and_then(Self::of_lines) {
            Some(trace) => Ok(trace),
            None => located(source, declared),
        }
    }

    /// `None` if time goes backwards, or nothing happens at all.
    fn of_lines(lines: Vec<Line>) -> Option<Self> {
        let origin_seconds = lines.first()?.at_seconds;
        let mut events = Vec::with_capacity(lines.len());
        let mut latest = Duration::ZERO;
        for (index, Line { at_seconds, event }) in lines.into_iter().enumerate() {
            let at = Duration::try_from_secs_f64(at_seconds - origin_seconds).ok()?;
            if at < latest {
                return None;
            }
            latest = at;
            events.extend(event.map(|event| TimedEvent { at, event: with_identity(event, index) }));
        }
        Some(Self { origin_seconds, events })
    }

    /// A cluster without history: everything is there from the beginning, and the pending pods come in this order.
    pub fn of_cluster(
        objects: impl IntoIterator<Item = Object>,
        pending: impl IntoIterator<Item = Arc<Pod>>,
    ) -> Self {
        let objects = objects.into_iter().map(|object| TraceEvent::Put(Arc::new(object)));
        let events = objects.chain(pending.into_iter().map(TraceEvent::Arrival)).enumerate();
        let events =
            events.map(|(i, event)| TimedEvent { at: Duration::ZERO, event: with_identity(event, i) });
        Self { origin_seconds: 0.0, events: events.collect() }
    }

    /// Adds a trace that goes on where this one ends. `None` if it begins before that, or after the end of time.
    pub fn and(mut self, next: Self) -> Option<Self> {
        let begins = Duration::try_from_secs_f64(next.origin_seconds - self.origin_seconds).ok()?;
        if begins < self.length() {
            return None;
        }
        for timed in next.events {
            self.events.push(TimedEvent { at: timed.at.checked_add(begins)?, ..timed });
        }
        Some(self)
    }

    /// How many pods came.
    pub fn pods(&self) -> usize {
        self.arrivals().count()
    }

    /// The pods that came, in their order.
    pub fn arrivals(&self) -> impl Iterator<Item = &Arc<Pod>> {
        self.events.iter().filter_map(|timed| match &timed.event {
            TraceEvent::Arrival(pod) => Some(pod),
            TraceEvent::Put(_) | TraceEvent::Remove(..) => None,
        })
    }

    /// From the first event to the last.
    pub fn length(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, |last| last.at)
    }
}

/// Pods are told apart by uid, and a trace that was made up may have none.
fn with_identity(event: TraceEvent, index: usize) -> TraceEvent {
    match event {
        TraceEvent::Arrival(pod) if pod.uid.is_empty() => {
            TraceEvent::Arrival(Arc::new(Pod { uid: format!("arrival-{index}").into(), ..(*pod).clone() }))
        }
        other => other,
    }
}

fn event_of(op: Op, object: Object) -> TraceEvent {
    match object {
        Object::Pod(pod) if pod.node.is_none() && !pod.finished && op == Op::Add => {
            TraceEvent::Arrival(Arc::new(pod))
        }
        other => TraceEvent::Put(Arc::new(other)),
    }
}

/// Reads a trace in which something is out of the ordinary, and tells where that is.
fn located(source: &Source, declared: &Declared) -> Result<Trace, Problems> {
    let (mut lines, mut problems) = (Vec::new(), Problems::default());
    let mut latest = f64::NEG_INFINITY;
    for value in &manifest::read(source)? {
        match line(source, value, declared) {
            Ok(line) => {
                if line.at_seconds < latest {
                    let message = format!("time goes backwards: {} after {latest}", line.at_seconds);
                    let hint = "the lines of a trace stand in the order of time; `sort` them by `at`";
                    let at = value.get("at").unwrap_or(value).at;
                    problems.push(Problem::error(message).at(source, at).path("at").hint(hint));
                }
                latest = latest.max(line.at_seconds);
                lines.push(line);
            }
            Err(more) => problems.extend(more),
        }
    }
    if problems.has_errors() {
        return Err(problems);
    }
    let is_empty = lines.is_empty();
    Trace::of_lines(lines).ok_or_else(|| {
        let mut problem = if is_empty {
            let hint = "give what `supercargo record` writes: one JSON object a line";
            Problem::error("there are no events in this trace").hint(hint)
        } else {
            Problem::error("the times of this trace are too far apart").hint("`at` counts seconds")
        };
        problem.source = Some(source.clone());
        problem.into()
    })
}

fn line(source: &Source, value: &Value, declared: &Declared) -> Result<Line, Problems> {
    #[derive(Deserialize)]
    struct Written {
        at: f64,
        op: Op,
        #[serde(default)]
        kind: Option<String>,
        #[serde(default)]
        namespace: String,
        #[serde(default)]
        name: String,
    }
    let line: Written = manifest::decode(source, value, "", UnknownFields::Ignore)?;
    let missing =
        |field: &str| Problem::error(format!("this line needs a field `{field}`")).at(source, value.at);
    let event = if line.op == Op::Delete {
        let kind = line.kind.ok_or_else(|| missing("kind"))?;
        if line.name.is_empty() {
            return Err(missing("name").into());
        }
        removal(&kind, &line.namespace, &line.name, declared)
    } else {
        let object = value.get("object").ok_or_else(|| missing("object"))?;
        let object = read_declared_object(source, object, "object", declared)?;
        if object.as_ref().is_some_and(|object| object.key().name.is_empty()) {
            return Err(missing("object.metadata.name").into());
        }
        object.map(|object| event_of(line.op, object))
    };
    Ok(Line { at_seconds: line.at, event })
}

/// `None` for an object that a scheduler does not read.
fn removal(kind: &str, namespace: &str, name: &str, declared: &Declared) -> Option<TraceEvent> {
    let custom = || declared.kinds.iter().find(|api| api.kind == kind).map(|api| Kind::Custom(api));
    let kind = Kind::named(kind).or_else(custom)?;
    let namespace = match namespace {
        _ if !kind.is_namespaced() => "",
        "" => "default",
        given => given,
    };
    Some(TraceEvent::Remove(kind, Key::new(namespace, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(lines: &str) -> Trace {
        Trace::read(&Source::new("trace.jsonl", lines), &Declared::default()).unwrap()
    }

    fn arrival(at: &str, name: &str) -> String {
        format!(
            r#"{{"at":{at},"op":"add","object":{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}"}}}}}}"#
        )
    }

    #[test]
    fn times_that_no_clock_can_count_are_told_as_such() {
        let lines = format!("{}\n{}", arrival("-1e19", "a"), arrival("1e19", "b"));
        let problems = Trace::read(&Source::new("trace.jsonl", lines), &Declared::default()).err().unwrap();
        assert!(problems.to_string().contains("the times of this trace are too far apart"), "{problems}");
    }

    #[test]
    fn a_trace_does_not_go_on_after_the_end_of_time() {
        let long = |from: &str, to: &str| trace(&format!("{}\n{}", arrival(from, "a"), arrival(to, "b")));
        let (first, second) = (long("-1e19", "-9e18"), long("0", "1e19"));
        assert!(first.and(second).is_none());
    }
}
