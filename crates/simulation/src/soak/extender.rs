//! An extender that behaves, or does not.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use supercargo_extender::{Reply, Transport, TransportError};
use supercargo_framework::virtual_time::VirtualClock;

use super::plan::ExtenderMode;

/// What it says to refuse a node.
pub(super) const NOT_NOW: &str = "not now";
/// How long a good answer takes, and a slow one.
const ANSWERS_AFTER: Duration = Duration::from_millis(5);
const SLOWLY: Duration = Duration::from_secs(3);

/// An extender whose behaviour can be changed while it is asked.
#[derive(Clone)]
pub(super) struct SimulatedExtender {
    clock: VirtualClock,
    mode: Arc<Mutex<ExtenderMode>>,
}

impl SimulatedExtender {
    pub(super) fn new(clock: VirtualClock) -> Self {
        Self { clock, mode: Arc::default() }
    }

    pub(super) fn set(&self, mode: ExtenderMode) {
        *self.mode.lock().unwrap_or_else(PoisonError::into_inner) = mode;
    }
}

impl Transport for SimulatedExtender {
    fn post(
        &self,
        url: &str,
        body: Vec<Bytes>,
        max_bytes: usize,
    ) -> BoxFuture<'static, Result<Reply, TransportError>> {
        let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock, filters) = (self.clock.clone(), url.ends_with("filter"));
        let asked: Value = serde_json::from_slice(&body.concat()).unwrap_or_default();
        Box::pin(async move {
            match mode {
                ExtenderMode::Hangs => std::future::pending().await,
                ExtenderMode::Dies => return Err(TransportError::Broken("connection reset".to_owned())),
                ExtenderMode::Slow => clock.sleep(SLOWLY).await,
                _ => clock.sleep(ANSWERS_AFTER).await,
            }
            let names = asked["NodeNames"].as_array().cloned().unwrap_or_default();
            let answer = match (mode, filters) {
                (ExtenderMode::Nonsense, true) => {
                    json!({"NodeNames": ["no-such-node", 7], "FailedNodes": []})
                }
                (ExtenderMode::Nonsense, false) => json!([{"Host": "no-such-node", "Score": -5}, "?"]),
                (ExtenderMode::Refuses, true) => refusing(names, |_| true),
                (ExtenderMode::RefusesSome, true) => refusing(names, |place| place.is_multiple_of(2)),
                (ExtenderMode::Endless, true) => json!({"Error": "x".repeat(max_bytes + 1)}),
                (_, true) => json!({"NodeNames": names, "FailedNodes": {}}),
                (_, false) => {
                    let scores = names.iter().map(|name| json!({"Host": name, "Score": 1}));
                    Value::Array(scores.collect())
                }
            };
            Ok(Reply { status: 200, body: answer.to_string().into() })
        })
    }
}

/// Some nodes are refused, the others are not.
fn refusing(names: Vec<Value>, is_refused: impl Fn(usize) -> bool) -> Value {
    let (mut kept, mut failed) = (Vec::new(), serde_json::Map::new());
    for (place, name) in names.into_iter().enumerate() {
        match name.as_str().filter(|_| is_refused(place)) {
            Some(name) => drop(failed.insert(name.to_owned(), json!(NOT_NOW))),
            None => kept.push(name),
        }
    }
    json!({"NodeNames": kept, "FailedNodes": failed})
}
