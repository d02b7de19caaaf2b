//! Calls extenders: the way to each of them, and what simulate and explain do with their answers.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use supercargo_config::Configuration;
use supercargo_engine::{
    Decision, Engine, Placement,
    extender_calls::{self, ExtenderAnswer, ExtenderCall, ExtenderRole},
};
use supercargo_extender::{Anomaly, CallVerb, Clock, Extenders, How, Originals, Watcher, prepared};
use supercargo_manifest::Problem;
use supercargo_model::{
    Key, Pod,
    object::{Kind, Object, Objects},
};
use supercargo_scheduler::{extenders, over_http, roles};
use supercargo_server::BoxFuture;
use tokio::runtime::Runtime;

use crate::{output::Console, run::runtime};

/// Decides a pod, with the extenders' say if there is somebody to ask them; on the fast path if no full record is needed.
pub(crate) fn decide(
    engine: &mut Engine,
    pod: &Arc<Pod>,
    in_full: bool,
    extender_caller: Option<&mut ExtenderCaller>,
) -> Option<Placement> {
    let decided = |decision: Decision| Placement::Decided(Box::new(decision));
    match extender_caller {
        Some(extender_caller) if extender_calls::take_part(engine.extenders(), pod) => {
            extender_calls::decide_calling(engine, pod, |pod, call| extender_caller.ask(pod, call))
                .map(decided)
        }
        _ if in_full => engine.decide(pod).map(decided),
        _ => engine.place(pod),
    }
}

/// Asks extenders, and waits for their answers.
pub(crate) struct ExtenderCaller {
    runtime: Runtime,
    extenders: Extenders,
    originals: Originals,
    texts: HashMap<(Kind, Key), String>,
    failures: Arc<Failures>,
    /// What was answered, for a run that is played again.
    answers: VecDeque<ExtenderAnswer>,
    plays_again: bool,
}

impl ExtenderCaller {
    /// For the extenders of a configuration, with the objects as they were written.
    pub(crate) fn new(configuration: &Configuration, objects: &Objects) -> Result<Self, Problem> {
        let failures = Arc::new(Failures::default());
        let clock = Arc::new(WallClock(Instant::now()));
        let mut originals = Originals::default();
        for object in &objects.objects {
            let text = objects.texts.get(&(object.kind(), object.key()));
            originals.put(object, text.and_then(|text| prepared(text)));
        }
        Ok(Self {
            runtime: runtime()?,
            extenders: extenders(configuration, &over_http(), clock, failures.clone())?,
            originals,
            texts: objects.texts.clone(),
            failures,
            answers: VecDeque::new(),
            plays_again: false,
        })
    }

    /// What the engine has to know.
    pub(crate) fn roles(&self) -> Vec<ExtenderRole> {
        roles(&self.extenders)
    }

    /// Shows a pod to extenders as if it were not bound.
    pub(crate) fn unbind(&mut self, pod: &Pod) {
        let text = self.texts.get(&(Kind::Pod, pod.key()));
        let read = text.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
        if let Some(mut read) = read {
            if let Some(spec) = read["spec"].as_object_mut() {
                spec.remove("nodeName");
            }
            read["status"] = serde_json::json!({"phase": "Pending"});
            self.originals.put(&Object::Pod(pod.clone()), prepared(&read.to_string()));
        }
    }

    /// From here on the same questions come again, in the same order: nobody is bothered with them twice.
    pub(crate) fn play_again(&mut self) {
        self.plays_again = true;
    }

    fn ask(&mut self, pod: &Pod, question: &ExtenderCall) -> ExtenderAnswer {
        if self.plays_again
            && let Some(answer) = self.answers.pop_front()
        {
            return answer;
        }
        let call = self.extenders.prepare(pod, question.clone(), &self.originals);
        let answer = self.runtime.block_on(self.extenders.ask(call, &|| ())).1;
        if !self.plays_again {
            self.answers.push_back(answer.clone());
        }
        answer
    }

    /// Says who has failed, and how often: where that is passed over, nothing else does.
    pub(crate) fn tell_failures(&self, console: &mut Console) {
        let failures = self.failures.0.lock().unwrap_or_else(PoisonError::into_inner);
        for ((extender, verb, how), count) in failures.iter() {
            console.note(format!("extender {extender}, {verb}: {how} × {count}"));
        }
    }
}

/// Failures by extender, verb and kind.
#[derive(Default)]
struct Failures(Mutex<BTreeMap<(String, String, &'static str), usize>>);

impl Failures {
    fn count(&self, extender: &str, verb: CallVerb, how: &'static str) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((extender.to_owned(), verb.to_string(), how)).or_default() += 1;
    }
}

impl Watcher for Failures {
    fn called(&self, extender: &str, verb: CallVerb, how: How, _: Duration) {
        match how {
            How::Answered => {}
            How::Refused => self.count(extender, verb, "said that it failed"),
            How::Failed => self.count(extender, verb, "failed"),
            How::TimedOut => self.count(extender, verb, "did not answer in time"),
            How::Invalid => self.count(extender, verb, "gave an invalid response"),
        }
    }

    fn tolerated(&self, extender: &str, anomaly: Anomaly, _: u64) {
        let what = match anomaly {
            Anomaly::UnknownHost => "scored nodes that it was not asked about",
            Anomaly::OutOfRange => "gave scores outside 0 to 10",
        };
        self.count(extender, CallVerb::Prioritize, what);
    }

    fn skipped(&self, extender: &str, verb: CallVerb) {
        self.count(extender, verb, "was skipped: circuit open after repeated failures");
    }
}

struct WallClock(Instant);

impl Clock for WallClock {
    fn uptime(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(span))
    }
}
