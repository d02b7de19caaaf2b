//! All extenders, in the order in which they are asked, and the calls to them.

use std::{
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::future::{BoxFuture, Either, select};
use supercargo_config as config;
use supercargo_engine::extender_calls::{ExtenderFailure, ExtenderRole};
use supercargo_framework::bugs::{self, Bug};
use supercargo_manifest::clip;
use supercargo_model::{Name, Pod};
use tokio::sync::Semaphore;

use crate::{
    answer::{self, Anomaly, Strictness, Wrong},
    breaker::{Breaker, CircuitChange},
    call::max_answer_bytes,
    client::{Reply, Transport, TransportError},
    repeats::Repeats,
    request::{self, Body},
};

/// The time, as whoever runs extenders has it.
pub trait Clock: Send + Sync + 'static {
    /// Time since some moment in the past.
    fn uptime(&self) -> Duration;

    /// Ends after a span of it.
    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()>;
}

/// What an extender is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum CallVerb {
    Filter,
    Prioritize,
    Preempt,
    Bind,
}

impl fmt::Display for CallVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Filter => "filter",
            Self::Prioritize => "prioritize",
            Self::Preempt => "preempt",
            Self::Bind => "bind",
        })
    }
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// It answered.
    Answered,
    /// It answered that it failed.
    Refused,
    /// It could not be reached, broke off, or answered with another status than 200.
    Failed,
    /// It took longer than it may.
    TimedOut,
    /// Its response is invalid.
    Invalid,
}

/// Hears what is done, and counts it. Everything may be left out.
pub trait Watcher: Send + Sync + 'static {
    /// A call has ended.
    fn called(&self, _extender: &str, _verb: CallVerb, _how: How, _took: Duration) {}

    /// An extender that rests was not called.
    fn skipped(&self, _extender: &str, _verb: CallVerb) {}

    /// A pod goes without the points of a prioritizer that failed.
    fn left_out(&self, _extender: &str) {}

    /// Scores were passed over that kube-scheduler passes over, so many.
    fn tolerated(&self, _extender: &str, _anomaly: Anomaly, _count: u64) {}

    /// An ignorable extender is left alone from now on, or is back.
    fn rests(&self, _extender: &str, _rests: bool) {}
}

/// Counts nothing.
pub struct NoWatcher;

impl Watcher for NoWatcher {}

/// One extender.
pub struct Extender {
    config: config::Extender,
    role: ExtenderRole,
    transport: Arc<dyn Transport>,
    timeout: Duration,
    breaker: Mutex<Breaker>,
    lines: Mutex<Lines>,
    /// One question at a time.
    lane: Semaphore,
    load: Arc<AtomicUsize>,
}

/// What is logged of an extender, sort by sort.
#[derive(Default)]
struct Lines {
    failed: Repeats,
    left_out: Repeats,
    tolerated: Repeats,
}

/// A question that an extender has, or is to have.
pub(crate) struct Load(Arc<AtomicUsize>);

impl Load {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Extender {
    fn new(config: config::Extender, transport: Arc<dyn Transport>) -> Self {
        Self {
            role: role(&config),
            timeout: config.http_timeout.to_std().unwrap_or_default(),
            transport,
            breaker: Mutex::default(),
            lines: Mutex::default(),
            lane: Semaphore::new(1),
            load: Arc::default(),
            config,
        }
    }

    /// Its name: where it is.
    pub fn name(&self) -> &str {
        &self.role.name
    }

    /// What the cycle knows of it.
    pub fn role(&self) -> &ExtenderRole {
        &self.role
    }

    /// How many questions it has, or is to have.
    pub fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    pub(crate) fn add_load(&self) -> Load {
        Load::new(&self.load)
    }

    pub(crate) fn knows_nodes(&self) -> bool {
        self.config.node_cache_capable
    }

    pub(crate) fn is_ignorable(&self) -> bool {
        self.config.ignorable
    }

    fn url(&self, verb: CallVerb) -> String {
        let path = match verb {
            CallVerb::Filter => &self.config.filter_verb,
            CallVerb::Prioritize => &self.config.prioritize_verb,
            CallVerb::Preempt => &self.config.preempt_verb,
            CallVerb::Bind => &self.config.bind_verb,
        };
        format!("{}/{path}", self.config.url_prefix.trim_end_matches('/'))
    }

    fn breaker(&self) -> std::sync::MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many lines of a sort were left out, if it is time for the next.
    fn next_line(&self, now: Duration, sort: impl Fn(&mut Lines) -> &mut Repeats) -> Option<u64> {
        sort(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner)).next(now)
    }
}

/// The ignorable ones come last, as in kube-scheduler.
fn in_order(extenders: &[config::Extender]) -> impl Iterator<Item = &config::Extender> {
    let counting = extenders.iter().filter(|extender| !extender.ignorable);
    counting.chain(extenders.iter().filter(|extender| extender.ignorable))
}

fn role(config: &config::Extender) -> ExtenderRole {
    let weight = i32::try_from(config.weight).unwrap_or(i32::MAX);
    ExtenderRole {
        name: Name::from(&*config.name()),
        filters: !config.filter_verb.is_empty(),
        weight: (!config.prioritize_verb.is_empty()).then_some(weight),
        preempts: !config.preempt_verb.is_empty(),
        ignorable: config.ignorable,
        managed_resources: (config.managed_resources.iter())
            .map(|resource| Name::from(&*resource.name))
            .collect(),
    }
}

/// Why a binding by an extender failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindError {
    /// The extender says that it did not bind the pod.
    Refused(String),
    /// Nobody knows whether it did.
    Unknown(String),
}

/// All extenders, in the order in which they are asked.
pub struct Extenders {
    all: Vec<Extender>,
    clock: Arc<dyn Clock>,
    watcher: Arc<dyn Watcher>,
    strictness: Strictness,
}

impl Extenders {
    /// Extenders as they are configured, each with the way to it.
    ///
    /// # Errors
    ///
    /// What `way` says about an extender that cannot be called.
    pub fn new<E>(
        extenders: &[config::Extender],
        way: impl Fn(&config::Extender) -> Result<Arc<dyn Transport>, E>,
        clock: Arc<dyn Clock>,
        watcher: Arc<dyn Watcher>,
    ) -> Result<Self, E> {
        let all = in_order(extenders).map(|config| Ok(Extender::new(config.clone(), way(config)?)));
        let all = all.collect::<Result<_, E>>()?;
        Ok(Self { all, clock, watcher, strictness: Strictness::default() })
    }

    /// The same extenders, whose answers are looked at more or less strictly.
    #[must_use]
    pub fn with(self, strictness: Strictness) -> Self {
        Self { strictness, ..self }
    }

    pub(crate) fn strictness(&self) -> Strictness {
        self.strictness
    }

    /// Each of them.
    pub fn all(&self) -> &[Extender] {
        &self.all
    }

    /// Those that have a say in where a pod goes, by their places.
    pub fn of<'e>(&'e self, pod: &'e Pod) -> impl Iterator<Item = usize> + 'e {
        let has_say = |role: &ExtenderRole| role.decides() && role.is_interested(pod);
        (self.all.iter().enumerate()).filter(move |(_, e)| has_say(&e.role)).map(|(index, _)| index)
    }

    /// The one that binds a pod instead of the bind plugins.
    pub fn binder_of(&self, pod: &Pod) -> Option<&Extender> {
        self.all.iter().find(|e| !e.config.bind_verb.is_empty() && e.role.is_interested(pod))
    }

    /// A pod goes without the points of a prioritizer that failed.
    pub(crate) fn tell_left_out(&self, extender: &Extender, why: &str) {
        if let Some(suppressed) = extender.next_line(self.clock.uptime(), |lines| &mut lines.left_out) {
            tracing::warn!(extender = extender.name(), why, suppressed, "its scores are left out");
        }
        self.watcher.left_out(extender.name());
    }

    /// Something about scores is passed over; with the first of them as an example.
    pub(crate) fn tell_tolerated(&self, extender: &Extender, anomaly: Anomaly, count: u64, example: &str) {
        if let Some(suppressed) = extender.next_line(self.clock.uptime(), |lines| &mut lines.tolerated) {
            let what = match anomaly {
                Anomaly::UnknownHost => "scores of nodes that it was not asked about count for nothing",
                Anomaly::OutOfRange => "scores outside 0 to 10 count as they are",
            };
            tracing::warn!(
                extender = extender.name(),
                example,
                count,
                suppressed,
                "{what}; hint: mend the extender; --strict-extenders refuses such answers"
            );
        }
        self.watcher.tolerated(extender.name(), anomaly, count);
    }

    /// Lets an extender bind a pod, and says whether it is ignorable when it fails.
    pub async fn bind(&self, extender: &Extender, pod: &Pod, node: &str) -> Result<(), (BindError, bool)> {
        let outcome = self.call(extender, CallVerb::Bind, request::binding(pod, node), answer::bind).await;
        outcome.map_err(|problem| {
            let error = match &problem.how {
                How::Refused => BindError::Refused(problem.message),
                _ => BindError::Unknown(problem.message),
            };
            (error, extender.is_ignorable())
        })
    }

    /// Asks one extender, when its turn has come.
    pub(crate) async fn one<T>(
        &self,
        extender: &Extender,
        verb: CallVerb,
        body: Body,
        read: impl Fn(&[u8]) -> Result<T, Wrong>,
    ) -> Result<T, ExtenderFailure> {
        let _turn = extender.lane.acquire().await;
        let answer = self.call(extender, verb, body, read).await;
        answer.map_err(|problem| ExtenderFailure {
            message: problem.message,
            invalid: problem.how == How::Invalid,
        })
    }

    async fn call<T>(
        &self,
        extender: &Extender,
        verb: CallVerb,
        body: Body,
        read: impl Fn(&[u8]) -> Result<T, Wrong>,
    ) -> Result<T, CallProblem> {
        let started = self.clock.uptime();
        if extender.is_ignorable() && !extender.breaker().may_call(started) {
            self.watcher.skipped(extender.name(), verb);
            let message = format!("extender {:?}: circuit open after repeated failures", extender.name());
            return Err(CallProblem { how: How::Failed, message });
        }
        let max_bytes = max_answer_bytes(&body);
        let post = extender.transport.post(&extender.url(verb), body, max_bytes);
        let patience = match bugs::is_on(Bug::ExtenderWaitedForEver) {
            true => Duration::MAX,
            false => extender.timeout,
        };
        let reply = match select(post, self.clock.sleep(patience)).await {
            Either::Left((reply, _)) => Some(reply),
            Either::Right(_) => None,
        };
        let outcome = judge(extender, verb, max_bytes, reply, read);
        let how = outcome.as_ref().map_or_else(|problem| problem.how, |_| How::Answered);
        self.watcher.called(extender.name(), verb, how, self.clock.uptime().saturating_sub(started));
        self.learn(extender, how);
        if let Err(problem) = &outcome
            && let Some(suppressed) = extender.next_line(self.clock.uptime(), |lines| &mut lines.failed)
        {
            let why = &problem.message;
            tracing::warn!(extender = extender.name(), %verb, why, suppressed, "an extender failed");
        }
        outcome
    }

    /// Remembers how an ignorable extender fares. One that says that it failed is alive.
    fn learn(&self, extender: &Extender, how: How) {
        if !extender.is_ignorable() {
            return;
        }
        let turn = match how {
            How::Answered | How::Refused => extender.breaker().succeeded(),
            How::Failed | How::TimedOut | How::Invalid => extender.breaker().failed(self.clock.uptime()),
        };
        match turn {
            CircuitChange::Same => return,
            CircuitChange::Rests => {
                tracing::warn!(extender = extender.name(), "circuit open: it failed repeatedly")
            }
            CircuitChange::IsBack => {
                tracing::info!(extender = extender.name(), "circuit closed: the extender answers again")
            }
        }
        self.watcher.rests(extender.name(), turn == CircuitChange::Rests);
    }
}

/// Why a call came to nothing.
struct CallProblem {
    how: How,
    message: String,
}

/// Makes an answer of what came back, or says what is wrong with it.
fn judge<T>(
    extender: &Extender,
    verb: CallVerb,
    max_bytes: usize,
    reply: Option<Result<Reply, TransportError>>,
    read: impl Fn(&[u8]) -> Result<T, Wrong>,
) -> Result<T, CallProblem> {
    let url = extender.url(verb);
    // What is told of a call reaches logs, statuses and events.
    let url = config::without_password(&url);
    let failed = |how, what: String| {
        Err(CallProblem { how, message: format!("extender {:?}, {verb}: {}", extender.name(), clip(&what)) })
    };
    match reply {
        None => {
            let seconds = extender.timeout.as_secs_f32();
            failed(How::TimedOut, format!("{url} has not answered for {seconds} s"))
        }
        Some(Err(TransportError::Broken(why))) => failed(How::Failed, format!("{url}: {why}")),
        Some(Err(TransportError::TooLong)) => {
            failed(How::Invalid, format!("the answer is longer than {max_bytes} bytes"))
        }
        Some(Ok(Reply { status: 200, body })) => match read(&body) {
            Ok(answer) => Ok(answer),
            // In its own words, as kube-scheduler tells them.
            Err(Wrong::Refused(why)) => {
                Err(CallProblem { how: How::Refused, message: clip(&why).into_owned() })
            }
            Err(Wrong::Untrue(why)) => failed(How::Invalid, why),
        },
        Some(Ok(Reply { status, body })) => {
            let said = String::from_utf8_lossy(&body);
            let said = match said.trim() {
                "" => String::new(),
                said => format!(": {said}"),
            };
            failed(How::Failed, format!("failed {verb} with extender at URL {url}, code {status}{said}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Http;

    struct NoTime;

    impl Clock for NoTime {
        fn uptime(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn ignorable_extenders_are_asked_last_and_verbs_follow_the_prefix() {
        let extender = |url: &str, ignorable| config::Extender {
            url_prefix: url.to_owned(),
            filter_verb: "filter".to_owned(),
            ignorable,
            ..config::Extender::default()
        };
        let given =
            [extender("http://a/x/", true), extender("http://b", false), extender("http://c//", false)];
        let way = |extender: &config::Extender| Http::new(extender).map(|http| Arc::new(http) as _);
        let extenders = Extenders::new(&given, way, Arc::new(NoTime), Arc::new(NoWatcher)).unwrap();
        let urls: Vec<String> =
            extenders.all().iter().map(|extender| extender.url(CallVerb::Filter)).collect();
        assert_eq!(urls, ["http://b/filter", "http://c/filter", "http://a/x/filter"]);
    }

    #[test]
    fn a_password_is_in_nothing_that_is_told_of_a_call() {
        let url_prefix = "http://user:hunter2@a/x".to_owned();
        let given = config::Extender { url_prefix, filter_verb: "filter".to_owned(), ..Default::default() };
        let way = |extender: &config::Extender| Http::new(extender).map(|http| Arc::new(http) as _);
        let extenders = Extenders::new(&[given], way, Arc::new(NoTime), Arc::new(NoWatcher)).unwrap();
        let replies = [
            None,
            Some(Err(TransportError::Broken("no connection".to_owned()))),
            Some(Ok(Reply { status: 500, body: "out of order".into() })),
        ];
        for reply in replies {
            let told =
                judge(&extenders.all()[0], CallVerb::Filter, 1, reply, |_| Ok(())).err().unwrap().message;
            assert!(told.contains("@a/x/filter") && !told.contains("hunter2"), "{told}");
        }
    }

    #[test]
    fn a_password_is_used_and_not_told() {
        let url_prefix = "http://user:hunter2@a/x".to_owned();
        let given = [config::Extender { url_prefix, filter_verb: "filter".to_owned(), ..Default::default() }];
        let way = |extender: &config::Extender| Http::new(extender).map(|http| Arc::new(http) as _);
        let extenders = Extenders::new(&given, way, Arc::new(NoTime), Arc::new(NoWatcher)).unwrap();
        let extender = &extenders.all()[0];
        assert_eq!(extender.url(CallVerb::Filter), "http://user:hunter2@a/x/filter");
        assert_eq!((extender.name(), &*extender.role().name), (&*given[0].name(), &*given[0].name()));
        assert!(!extender.name().contains("hunter2"));
    }
}
