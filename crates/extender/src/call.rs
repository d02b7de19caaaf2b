//! A question on its way: whom it goes to, with which body, and how its answer is read.

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use supercargo_engine::extender_calls::{ExtenderAnswer, ExtenderCall, ExtenderFailure};
use supercargo_model::{Name, Pod};

use crate::{
    answer::{self, Prioritized, Strictness, Wrong},
    extenders::{CallVerb, Extender, Extenders, Load},
    originals::Originals,
    request::{self, Body, Missing},
};

/// How long an answer may be beyond twice what was sent: room for reasons, and for whatever else an extender says. An
/// extender that is sent nodes in full may send them all back.
pub const ANSWER_ALLOWANCE_BYTES: usize = 16 << 20;

/// A question that is ready to be sent.
pub struct Call {
    pub(crate) question: ExtenderCall,
    /// One for each extender that is asked.
    parts: Vec<Part>,
}

/// What one extender is sent; or what is missing for that.
struct Part {
    body: Result<Body, ExtenderFailure>,
    load: Load,
}

impl Extenders {
    /// Puts the bodies of a question together, from the texts as they are now. Its extenders count as busy from here on.
    pub fn prepare(&self, pod: &Pod, question: ExtenderCall, originals: &Originals) -> Call {
        let part = |extender: usize| {
            let extender = &self.all()[extender];
            let unasked = |Missing(what)| ExtenderFailure {
                message: format!(
                    "extender {:?} cannot be asked: nothing is known of {what}",
                    extender.name()
                ),
                invalid: false,
            };
            let body = body(extender, pod, &question, originals).map_err(unasked);
            Part { body, load: extender.add_load() }
        };
        let parts = match &question {
            ExtenderCall::Filter { extender, .. } | ExtenderCall::Preempt { extender, .. } => {
                vec![part(*extender)]
            }
            ExtenderCall::Prioritize { extenders, .. } => extenders.iter().copied().map(part).collect(),
        };
        Call { question, parts }
    }

    /// Asks, and waits for what comes of it. Those that are asked together are asked at once; whenever one of them is done
    /// before the last, `freed` is told.
    pub async fn ask(&self, call: Call, freed: &(dyn Fn() + Send + Sync)) -> (ExtenderCall, ExtenderAnswer) {
        let Call { question, parts } = call;
        let mut parts = parts.into_iter();
        let mut next = || parts.next().expect("a part for each extender");
        let answer = match &question {
            ExtenderCall::Filter { extender, nodes, .. } => {
                let extender = &self.all()[*extender];
                let names_only = extender.knows_nodes();
                let read = |body: &[u8]| answer::filter(body, nodes, names_only, self.strictness());
                ExtenderAnswer::Filter(self.part(extender, CallVerb::Filter, next(), read).await)
            }
            ExtenderCall::Preempt { extender, candidates } => {
                let extender = &self.all()[*extender];
                let read = |body: &[u8]| answer::preempt(body, candidates);
                ExtenderAnswer::Preempt(self.part(extender, CallVerb::Preempt, next(), read).await)
            }
            ExtenderCall::Prioritize { extenders, nodes } => {
                let left = AtomicUsize::new(extenders.len());
                let left = &left;
                let calls = extenders.iter().map(|extender| {
                    let (extender, part) = (&self.all()[*extender], next());
                    async move {
                        let answer = self.points(extender, part, nodes).await;
                        if left.fetch_sub(1, Ordering::Relaxed) > 1 {
                            freed();
                        }
                        answer
                    }
                });
                ExtenderAnswer::Prioritize(futures_util::future::join_all(calls).await)
            }
        };
        (question, answer)
    }

    async fn part<T>(
        &self,
        extender: &Extender,
        verb: CallVerb,
        part: Part,
        read: impl Fn(&[u8]) -> Result<T, Wrong>,
    ) -> Result<T, ExtenderFailure> {
        let Part { body, load: _until_the_end } = part;
        self.one(extender, verb, body?, read).await
    }

    /// A prioritizer's points. One that fails is left out, as in kube-scheduler; but for those who are strict, what cannot be
    /// true counts.
    async fn points(
        &self,
        extender: &Extender,
        part: Part,
        nodes: &[Name],
    ) -> Result<Vec<i64>, ExtenderFailure> {
        let strictness = self.strictness();
        let read = |body: &[u8]| answer::prioritize(body, nodes, strictness);
        match self.part(extender, CallVerb::Prioritize, part, read).await {
            Ok(Prioritized { points, anomalies }) => {
                for (anomaly, (count, example)) in &anomalies {
                    self.tell_tolerated(extender, *anomaly, *count, example);
                }
                Ok(points)
            }
            Err(trouble) => {
                let invalid = trouble.invalid && strictness == Strictness::Strict;
                if !invalid || extender.is_ignorable() {
                    self.tell_left_out(extender, &trouble.message);
                }
                Err(ExtenderFailure { invalid, ..trouble })
            }
        }
    }
}

fn body(
    extender: &Extender,
    pod: &Pod,
    question: &ExtenderCall,
    originals: &Originals,
) -> Result<Body, Missing> {
    match (question, extender.knows_nodes()) {
        (ExtenderCall::Filter { nodes, .. } | ExtenderCall::Prioritize { nodes, .. }, true) => {
            request::with_names(pod, nodes, originals)
        }
        (ExtenderCall::Filter { nodes, .. } | ExtenderCall::Prioritize { nodes, .. }, false) => {
            request::with_nodes(pod, nodes, originals)
        }
        (ExtenderCall::Preempt { candidates, .. }, true) => request::with_uids(pod, candidates, originals),
        (ExtenderCall::Preempt { candidates, .. }, false) => {
            request::with_victims(pod, candidates, originals)
        }
    }
}

/// How many bytes an answer to a body may have.
pub(crate) fn max_answer_bytes(body: &[Bytes]) -> usize {
    let sent: usize = body.iter().map(Bytes::len).sum();
    sent.saturating_mul(2).saturating_add(ANSWER_ALLOWANCE_BYTES)
}
