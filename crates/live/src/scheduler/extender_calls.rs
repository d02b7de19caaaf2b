//! Pods that extenders have a say about: they are asked beside everything else, and their answers come back as reports.
//!
//! An extender has one question at a time. A pod whose extenders are busy waits here, the most important first; all other
//! pods pass it by.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use supercargo_engine::{
    AttemptFailure, Popped,
    extender_calls::{CycleStep, ExtenderAnswer, ExtenderAnswers, ExtenderCall, PlaceStep},
};
use supercargo_extender::Extenders;
use supercargo_framework::preemption::Claim;
use supercargo_model::Name;

use super::{HashMap, Report, Scheduler, attempt::log_scores};
use crate::status::Reason;

/// How many questions may wait for an extender that a pod will only need later.
const MAX_LOAD_LATER: usize = 4;
/// How often a pod may change while extenders are asked about it, before it is tried again later.
const MAX_FRESH_STARTS: u32 = 8;

/// The pods that extenders are asked about, or will be.
#[derive(Default)]
pub(super) struct ExtenderCalls {
    /// By the pod's uid.
    under_way: HashMap<Name, PodInCalls>,
    /// The most important first, then by arrival.
    waiting: BTreeMap<(Reverse<i32>, u64), Popped>,
    count: u64,
}

/// An attempt that waits for an answer.
struct PodInCalls {
    number: u64,
    popped: Popped,
    /// The pod as the extenders were shown it.
    text: Option<Bytes>,
    answers: ExtenderAnswers,
    started: Duration,
    fresh_starts: u32,
}

/// What came of a question.
pub(super) struct Answered {
    uid: Name,
    number: u64,
    question: ExtenderCall,
    answer: ExtenderAnswer,
}

impl ExtenderCalls {
    /// How many pods wait for busy extenders.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl Scheduler {
    /// Asks the extenders about a pod, as soon as they are free.
    pub(super) fn call_extenders_when_possible(&mut self, popped: Popped) {
        self.extender_calls.count += 1;
        if are_free(&self.extenders, &popped) {
            return self.begin(popped);
        }
        self.queue.set_aside(&popped.pod.uid);
        let turn = (Reverse(popped.pod.spec.priority), self.extender_calls.count);
        self.extender_calls.waiting.insert(turn, popped);
    }

    /// Something has become free: whoever can go on does.
    pub(super) fn call_for_those_who_wait(&mut self) {
        let extenders = self.extenders.clone();
        let is_any_free = || extenders.all().iter().any(|extender| extender.load() == 0);
        let mut after = None;
        while is_any_free() {
            let mut rest = match after {
                Some(turn) => self
                    .extender_calls
                    .waiting
                    .range((std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded)),
                None => self.extender_calls.waiting.range(..),
            };
            let Some((turn, _)) = rest.find(|(_, popped)| are_free(&extenders, popped)) else {
                return;
            };
            let turn = *turn;
            let popped = self.extender_calls.waiting.remove(&turn);
            if let Some(popped) = popped.filter(|popped| self.queue.take_up(&popped.pod.uid).is_some()) {
                self.begin(popped);
            }
            after = Some(turn);
        }
    }

    /// Begins an attempt, with the pod as it is now.
    fn begin(&mut self, popped: Popped) {
        let started = self.world.uptime();
        let number = self.extender_calls.count;
        self.extender_calls.count += 1;
        let answers = ExtenderAnswers::default();
        self.go_on_if_there(
            PodInCalls { number, popped, text: None, answers, started, fresh_starts: 0 },
            true,
        );
    }

    /// Goes on with an attempt if its pod is still to be scheduled; from its beginning if the pod has changed.
    fn go_on_if_there(&mut self, calls: PodInCalls, afresh: bool) {
        let uid = &calls.popped.pod.uid;
        let pod = match self.queue.find(uid) {
            Some(pending) if !pending.pod.terminating => pending.pod.clone(),
            // It is gone, somebody else has bound it, or it is about to go.
            _ => return self.queue.done(uid),
        };
        let text = self.originals.pod(uid).cloned();
        let same = pod == calls.popped.pod && text == calls.text;
        if same && !afresh {
            return self.go_on(calls);
        }
        let fresh_starts = calls.fresh_starts + 1;
        if fresh_starts > MAX_FRESH_STARTS {
            let message = "the pod changes faster than the extenders answer";
            let (failure, reason) = (AttemptFailure::Error, Reason::SchedulerError);
            return self.failed(&pod, failure, reason, Claim::Kept, message, calls.started);
        }
        let popped = Popped { pod, ..calls.popped };
        self.go_on(PodInCalls { popped, text, answers: ExtenderAnswers::default(), fresh_starts, ..calls });
    }

    /// Decides, or asks what has to be known first.
    fn go_on(&mut self, mut calls: PodInCalls) {
        let now = self.world.uptime();
        let pod = calls.popped.pod.clone();
        self.tell_time();
        self.meter.tries(&pod, calls.popped.attempts);
        let step = match self.needs_records() {
            false => self.engine.place_with(&pod, &mut calls.answers),
            true => self.engine.decide_with(&pod, &mut calls.answers).map(in_full),
        };
        match step {
            None => self.queue.done(&pod.uid),
            Some(PlaceStep::Placed(placement)) => {
                let took = self.world.uptime() - now;
                self.carry_on(calls.popped, placement, calls.started, took);
            }
            Some(PlaceStep::Call(question)) => self.ask(calls, question),
        }
    }

    fn ask(&mut self, calls: PodInCalls, question: ExtenderCall) {
        let pod = &calls.popped.pod;
        tracing::debug!(pod = %pod.key(), "extenders are asked");
        let call = self.extenders.prepare(pod, question, &self.originals);
        let (uid, number) = (pod.uid.clone(), calls.number);
        let (extenders, report_to) = (self.extenders.clone(), self.report_to.clone());
        self.extender_calls.under_way.insert(uid.clone(), calls);
        self.world.spawn(Box::pin(async move {
            let freed = || drop(report_to.send(Report::Freed));
            let (question, answer) = extenders.ask(call, &freed).await;
            // Nobody listens any more when the scheduler has stopped.
            let _ = report_to.send(Report::Answered(Answered { uid, number, question, answer }));
        }));
    }

    pub(super) fn extender_calls_ended(&mut self, answered: Answered) {
        let Answered { uid, number, question, answer } = answered;
        let is_this = |calls: &PodInCalls| calls.number == number;
        if !self.extender_calls.under_way.get(&uid).is_some_and(is_this) {
            return;
        }
        if let Some(mut calls) = self.extender_calls.under_way.remove(&uid) {
            calls.answers.add(self.engine.extenders(), question, answer);
            self.go_on_if_there(calls, false);
        }
        self.call_for_those_who_wait();
    }
}

/// A step of which there is a record.
fn in_full(step: CycleStep) -> PlaceStep {
    if let CycleStep::Decided(decision) = &step {
        log_scores(decision);
    }
    step.into()
}

/// Whether the extender that a pod is asked about first is free, and the others have not too much to do.
fn are_free(extenders: &Arc<Extenders>, popped: &Popped) -> bool {
    let load = |index: usize| extenders.all()[index].load();
    let filters = |index: &usize| extenders.all()[*index].role().filters;
    let first = extenders.of(&popped.pod).find(filters).or_else(|| extenders.of(&popped.pod).next());
    first.is_none_or(|first| load(first) == 0)
        && extenders.of(&popped.pod).all(|index| load(index) < MAX_LOAD_LATER)
}
