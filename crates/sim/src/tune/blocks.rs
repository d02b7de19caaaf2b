//! Cuts a trace into blocks of time, each of which can be replayed alone.

use std::{collections::HashMap, sync::Arc, time::Duration};

use supercargo_model::{
    Key,
    object::{Kind, Object},
};

use crate::trace::{TimedEvent, Trace, TraceEvent};

/// Cuts a trace into as many blocks with about as many arrivals each. A block begins with what is there at that time; the
/// pods that run then come again at once, and are placed by whoever is being judged.
pub(super) fn blocks(trace: &Trace, count: usize) -> Vec<Trace> {
    let arrivals = trace.pods();
    let mut there = Present::default();
    let (mut blocks, mut block, mut seen): (Vec<Trace>, Trace, usize) = (Vec::new(), Trace::default(), 0);
    let mut begin = Duration::ZERO;
    for timed in &trace.events {
        let is_arrival = matches!(timed.event, TraceEvent::Arrival(_));
        let full = seen >= (blocks.len() + 1) * arrivals / count && blocks.len() + 1 < count;
        if is_arrival && full {
            begin = timed.at;
            let next = Trace { origin_seconds: trace.origin_seconds, events: there.events() };
            blocks.push(std::mem::replace(&mut block, next));
        }
        seen += usize::from(is_arrival);
        there.take_in(&timed.event);
        block.events.push(TimedEvent { at: timed.at - begin, event: timed.event.clone() });
    }
    blocks.push(block);
    blocks
}

/// What is there at a moment, in the order in which it came.
#[derive(Default)]
struct Present {
    objects: HashMap<(Kind, Key), (usize, TraceEvent)>,
    count: usize,
}

impl Present {
    fn take_in(&mut self, event: &TraceEvent) {
        let key = match event {
            TraceEvent::Arrival(pod) => (Kind::Pod, pod.key()),
            TraceEvent::Put(object) => (object.kind(), object.key()),
            TraceEvent::Remove(kind, key) => {
                self.objects.remove(&(*kind, key.clone()));
                return;
            }
        };
        if matches!(event, TraceEvent::Put(object) if matches!(&**object, Object::Pod(pod) if pod.finished)) {
            self.objects.remove(&key);
            return;
        }
        self.count += 1;
        match self.objects.get_mut(&key) {
            Some((_, known)) => *known = newer(known, event),
            None => drop(self.objects.insert(key, (self.count, event.clone()))),
        }
    }

    fn events(&self) -> Vec<TimedEvent> {
        let mut events: Vec<&(usize, TraceEvent)> = self.objects.values().collect();
        events.sort_by_key(|(order, _)| *order);
        events.into_iter().map(|(_, event)| TimedEvent { at: Duration::ZERO, event: event.clone() }).collect()
    }
}

/// A pod that came without a node is one that comes without a node, wherever the recording has put it since.
fn newer(known: &TraceEvent, event: &TraceEvent) -> TraceEvent {
    match (known, event) {
        (TraceEvent::Arrival(_), TraceEvent::Put(object)) => match &**object {
            Object::Pod(pod) => TraceEvent::Arrival(Arc::new(supercargo_model::Pod {
                node: None,
                nominated_node: None,
                not_scheduled: None,
                started: None,
                ..pod.clone()
            })),
            _ => event.clone(),
        },
        _ => event.clone(),
    }
}

#[cfg(test)]
mod tests {
    use supercargo_manifest::Source;
    use supercargo_model::Declared;

    use super::*;

    fn event(at: u32, op: &str, kind: &str, name: &str) -> String {
        match op {
            "delete" => format!(r#"{{"at":{at},"op":"delete","kind":"{kind}","name":"{name}"}}"#),
            _ => format!(
                r#"{{"at":{at},"op":"{op}","object":{{"apiVersion":"v1","kind":"{kind}","metadata":{{"name":"{name}"}}}}}}"#
            ),
        }
    }

    #[test]
    fn a_block_begins_with_what_is_there() {
        let lines = [
            event(0, "add", "Node", "n"),
            event(1, "add", "Pod", "a"),
            event(2, "add", "Pod", "b"),
            event(3, "delete", "Pod", "a"),
            event(4, "add", "Pod", "c"),
            event(9, "add", "Pod", "d"),
        ];
        let trace = Trace::read(&Source::new("trace", lines.join("\n")), &Declared::default()).unwrap();
        let cut = blocks(&trace, 2);
        let outline = |block: &Trace| -> Vec<String> {
            let name = |timed: &TimedEvent| match &timed.event {
                TraceEvent::Arrival(pod) => format!("{}:+{}", timed.at.as_secs(), pod.name),
                TraceEvent::Put(object) => format!("{}:{}", timed.at.as_secs(), object.key().name),
                TraceEvent::Remove(_, key) => format!("{}:-{}", timed.at.as_secs(), key.name),
            };
            block.events.iter().map(name).collect()
        };
        assert_eq!(outline(&cut[0]), ["0:n", "1:+a", "2:+b", "3:-a"]);
        // b runs when the second block begins, and comes again; c came at 4, which is now 0.
        assert_eq!(outline(&cut[1]), ["0:n", "0:+b", "0:+c", "5:+d"]);
    }
}
