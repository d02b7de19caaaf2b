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
        _max_bytes: usize,
    ) -> BoxFuture<'static, Result<Reply, TransportError>> {
        let mode = *self.mode.lock().unwrap_or_else(PoisonError::into_inner);
        let (clock, filters) = (self.clock.clone(), url.ends_with("filter"));
        let asked: Value = serde_json::from_slice(&body.concat()).unwrap_or_default();
        Box::pin(async move {
            match mode {
                ExtenderMode::Hangs => std::future::pending().await,
                ExtenderMode::Dies => return Err(TransportError::Broken("connection reset".to_owned())),
                ExtenderMode::Slow => clock.sleep(SLOWLY).await,
                ExtenderMode::Fine | ExtenderMode::Nonsense | ExtenderMode::Refuses => {
                    clock.sleep(ANSWERS_AFTER).await
                }
            }
            let names = asked["NodeNames"].as_array().cloned().unwrap_or_default();
            let answer = match (mode, filters) {
                (ExtenderMode::Nonsense, true) => {
                    json!({"NodeNames": ["no-such-node", 7], "FailedNodes": []})
                }
                (ExtenderMode::Nonsense, false) => json!([{"Host": "no-such-node", "Score": -5}, "?"]),
                (ExtenderMode::Refuses, true) => {
                    let failed = names
                        .iter()
                        .filter_map(Value::as_str)
                        .map(|name| (name.to_owned(), json!("not now")));
                    json!({"NodeNames": [], "FailedNodes": failed.collect::<serde_json::Map<_, _>>()})
                }
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
