//! Faults: what goes wrong on purpose, which requests it happens to, and how often.

use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::api::locked;
use crate::random::ServerRandom;
use crate::signal::{Signal, SignalReceiver};

/// What goes wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fault {
    /// The request waits before anything is done with it.
    Delay {
        /// How long.
        millis: u64,
    },
    /// Nothing is done; the answer is this code.
    Answer {
        /// Such as 409, 429 or 500.
        code: u16,
        /// Told with 429, unless 0.
        #[serde(default)]
        retry_after_seconds: u64,
    },
    /// The connection is closed before anything is done, without an answer.
    HangUp,
    /// It is done, but the answer is this code.
    CommitThenAnswer {
        /// Such as 500.
        code: u16,
    },
    /// It is done, but the answer comes late.
    CommitThenDelay {
        /// How late.
        millis: u64,
    },
    /// It is done, but the connection is closed without an answer.
    CommitThenHangUp,
}

/// A fault, and the requests it happens to. What is left open matches everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FaultRule {
    /// Such as `create`, `list` or `watch`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verbs: Vec<String>,
    /// Such as `pods`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Such as `binding`; empty is the resource itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// Only user agents that contain this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// Every n-th of the matching requests; 1, which is the default, is each.
    #[serde(default = "one")]
    pub every: u64,
    /// This share of them, by chance: 0.1 is one in ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Only so many times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// What goes wrong.
    pub fault: Fault,
}

fn one() -> u64 {
    1
}

impl FaultRule {
    /// A fault that happens to every request.
    pub fn new(fault: Fault) -> Self {
        Self {
            verbs: Vec::new(),
            resource: None,
            subresource: None,
            user_agent: None,
            every: 1,
            share: None,
            times: None,
            fault,
        }
    }

    /// Only to this verb (and others given before).
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verbs.push(verb.into());
        self
    }

    /// Only to this resource: `pods`, or `pods/binding`.
    pub fn resource(mut self, resource: &str) -> Self {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        self.resource = Some(resource.to_owned());
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only to every n-th of them.
    pub fn every(mut self, n: u64) -> Self {
        self.every = n;
        self
    }

    /// Only to this share of them, by chance.
    pub fn share(mut self, share: f64) -> Self {
        self.share = Some(share);
        self
    }

    /// Only so many times.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self
    }

    fn matches(&self, request: &RequestKind<'_>) -> bool {
        (self.verbs.is_empty() || self.verbs.iter().any(|verb| verb == request.verb))
            && self.resource.as_ref().is_none_or(|resource| resource == request.resource)
            && self.subresource.as_ref().is_none_or(|subresource| subresource == request.subresource)
            && self.user_agent.as_ref().is_none_or(|agent| request.user_agent.contains(agent.as_str()))
    }
}

/// All that goes wrong, as it stands at `/testcluster/faults`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FaultPlan {
    /// Where chance begins.
    pub seed: u64,
    /// In this order; delays add up, and of the others the first that happens counts.
    pub rules: Vec<FaultRule>,
    /// The share of all watches that is cut in each second.
    pub watches_cut_per_second: f64,
    /// Watches from a forgotten version are refused with the status 410, not with an event in a stream.
    pub gone_as_status: bool,
}

/// What is done to the whole server, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ServerAction {
    /// Cuts all watches.
    CutWatches,
    /// Forgets the history: watches from before are too late.
    Compact,
    /// Closes the port and all connections, and comes back on the same port with the same objects.
    Restart {
        /// How long it is away.
        #[serde(default)]
        down_millis: u64,
        /// Whether the history is forgotten.
        #[serde(default)]
        forget_history: bool,
    },
}

/// What a request is, as far as faults and counters tell requests apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestKind<'a> {
    pub(crate) verb: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) user_agent: &'a str,
}

/// What happens to one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fate {
    pub(crate) delay: Duration,
    pub(crate) fault: Option<Fault>,
}

struct State {
    plan: FaultPlan,
    random: ServerRandom,
    /// For each rule: how many requests matched, and how often it happened.
    counts: Vec<(u64, u64)>,
}

/// The faults of a running server.
pub(crate) struct Faults {
    state: Mutex<State>,
    /// All watches are cut.
    cuts: Signal,
    /// The plan was replaced.
    replans: Signal,
    actions: mpsc::UnboundedSender<ServerAction>,
}

impl Faults {
    pub(crate) fn new(actions: mpsc::UnboundedSender<ServerAction>) -> Self {
        let state = State { plan: FaultPlan::default(), random: ServerRandom::new(0), counts: Vec::new() };
        Self { state: Mutex::new(state), cuts: Signal::default(), replans: Signal::default(), actions }
    }

    pub(crate) fn plan(&self) -> FaultPlan {
        locked(&self.state).plan.clone()
    }

    /// Replaces the plan, and starts counting and chance anew.
    pub(crate) fn set_plan(&self, plan: FaultPlan) {
        let counts = plan.rules.iter().map(|_| (0, 0)).collect();
        *locked(&self.state) = State { random: ServerRandom::new(plan.seed), counts, plan };
        self.replans.give();
    }

    pub(crate) fn add_rule(&self, rule: FaultRule) {
        let mut state = locked(&self.state);
        state.plan.rules.push(rule);
        state.counts.push((0, 0));
    }

    pub(crate) fn act(&self, action: ServerAction) {
        if action == ServerAction::CutWatches {
            self.cuts.give();
        } else if self.actions.send(action).is_err() {
            tracing::debug!(?action, "the server has been shut down");
        }
    }

    pub(crate) fn watch_cuts(&self) -> SignalReceiver {
        self.cuts.subscribe()
    }

    /// Whether chance has a say at all: watches need not look every second if it has not.
    pub(crate) fn cuts_by_chance(&self) -> bool {
        locked(&self.state).plan.watches_cut_per_second > 0.0
    }

    /// Wakes when the plan was replaced.
    pub(crate) fn replans(&self) -> SignalReceiver {
        self.replans.subscribe()
    }

    /// Whether a watch is cut in this second.
    pub(crate) fn cuts_watch_now(&self) -> bool {
        let state = &mut *locked(&self.state);
        state.plan.watches_cut_per_second > 0.0 && state.random.chance(state.plan.watches_cut_per_second)
    }

    pub(crate) fn gone_as_status(&self) -> bool {
        locked(&self.state).plan.gone_as_status
    }

    pub(crate) fn fate(&self, request: &RequestKind<'_>) -> Fate {
        let state = &mut *locked(&self.state);
        let mut fate = Fate::default();
        for (rule, (matched, happened)) in state.plan.rules.iter().zip(&mut state.counts) {
            if !rule.matches(request) || rule.times.is_some_and(|times| *happened >= times) {
                continue;
            }
            *matched += 1;
            let by_count = rule.every <= 1 || matched.is_multiple_of(rule.every);
            if !by_count || rule.share.is_some_and(|share| !state.random.chance(share)) {
                continue;
            }
            match &rule.fault {
                Fault::Delay { millis } => fate.delay += Duration::from_millis(*millis),
                fault if fate.fault.is_none() => fate.fault = Some(fault.clone()),
                _ => continue,
            }
            *happened += 1;
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(rules: Vec<FaultRule>) -> Faults {
        let faults = Faults::new(mpsc::unbounded_channel().0);
        faults.set_plan(FaultPlan { seed: 1, rules, ..FaultPlan::default() });
        faults
    }

    fn request(
        verb: &'static str,
        resource: &'static str,
        subresource: &'static str,
    ) -> RequestKind<'static> {
        RequestKind { verb, resource, subresource, user_agent: "tester/1" }
    }

    #[test]
    fn rules_pick_requests() {
        let answer = Fault::Answer { code: 500, retry_after_seconds: 0 };
        let faults = faults(vec![
            FaultRule::new(answer.clone()).verb("create").resource("pods/binding").every(3).times(2),
            FaultRule::new(Fault::Delay { millis: 5 }).verb("list"),
        ]);
        let happens = |request: RequestKind<'_>| faults.fate(&request).fault.is_some();
        let bind = request("create", "pods", "binding");
        let seen: Vec<bool> = (0..12).map(|_| happens(bind)).collect();
        assert_eq!(seen.iter().filter(|happened| **happened).count(), 2);
        assert!(seen[2] && seen[5], "every third");
        assert!(!happens(request("create", "pods", "")));
        assert_eq!(faults.fate(&request("list", "nodes", "")).delay, Duration::from_millis(5));
    }

    #[test]
    fn a_share_is_the_same_for_the_same_seed() {
        let rule = || FaultRule::new(Fault::HangUp).share(0.5);
        let run = || {
            let faults = faults(vec![rule()]);
            (0..64).map(|_| faults.fate(&request("get", "pods", "")).fault.is_some()).collect::<Vec<_>>()
        };
        assert_eq!(run(), run());
        assert!(run().contains(&true) && run().contains(&false));
    }

    #[test]
    fn a_plan_reads_as_it_is_written() {
        let text = json!({
            "seed": 7,
            "rules": [
                {"verbs": ["create"], "resource": "pods", "subresource": "binding", "every": 10,
                 "fault": {"do": "answer", "code": 429, "retryAfterSeconds": 1}},
                {"share": 0.01, "times": 3, "fault": {"do": "commitThenDelay", "millis": 5000}},
                {"fault": {"do": "hangUp"}},
            ],
            "watchesCutPerSecond": 0.1,
        });
        let plan: FaultPlan = serde_json::from_value(text).expect("it reads");
        assert_eq!(plan.rules[0].fault, Fault::Answer { code: 429, retry_after_seconds: 1 });
        assert_eq!((plan.rules[0].every, plan.rules[1].every), (10, 1));
        let again: FaultPlan = serde_json::from_str(&serde_json::to_string(&plan).expect("it is written"))
            .expect("it reads again");
        assert_eq!(plan, again);
    }
}
