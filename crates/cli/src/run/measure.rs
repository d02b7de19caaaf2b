//! Counts what the scheduler does, by kube-scheduler's names.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use supercargo_config::Configuration;
use supercargo_extender::{Anomaly, CallVerb, How, Watcher};
use supercargo_framework::{Code, event::ClusterEvent, handle::AwaitOutcome, registry::Point};
use supercargo_live::{
    real::RealWorld,
    scheduler::meter::{self, Attempted, DecidedBy, Meter, QueueStats},
    world::{self, Lines, Refused, Reply, Request, SharedWorld, Unanswered, World},
};
use supercargo_model::{Name, Pod};
use supercargo_server::{
    BoxFuture, Clock,
    metrics::{
        ApiClient, Attempt, AwaitedStatus, BuildInfo, Cached, ExtenderResult, ExtenderVerb, ExtensionPoint,
        Hint, Method, Metrics, Operation, Path, ProfileMetrics, Queue, ScoreAnomaly, Status, Success, Task,
        VolumeStage,
    },
};

use super::{feature_gates::FeatureGates, spans::Spans};
use crate::version::{COMMIT, VERSION};

/// What kube-scheduler counts a pod in flight as, among the events that are kept for such pods.
const POD_POPPED: &str = "PodPopped";

/// Measures.
pub(crate) struct MetricsMeter {
    metrics: Arc<Metrics>,
    profiles: HashMap<String, ProfileMetrics>,
    lease: String,
    last: Mutex<Last>,
    /// Of attempts, if somebody collects them.
    spans: Option<Spans>,
}

/// What was told last: counters grow by the difference.
#[derive(Default)]
struct Last {
    stats: QueueStats,
    refused: HashMap<(String, String), i64>,
}

impl MetricsMeter {
    /// Nothing yet.
    pub(crate) fn new(configuration: &Configuration, gates: &FeatureGates, disabled: &[String]) -> Self {
        let build = BuildInfo::new(VERSION, COMMIT);
        let metrics = Arc::new(Metrics::new(&build, Clock::system()).without(disabled));
        for (name, stage, on) in gates.all() {
            metrics.feature(name, stage, on);
        }
        let profile = |profile: &supercargo_config::ProfileConfiguration| {
            let mut plugins: Vec<&str> =
                profile.points.values().flatten().map(|choice| &*choice.plugin).collect();
            plugins.sort_unstable();
            plugins.dedup();
            (profile.scheduler_name.to_string(), metrics.profile(&profile.scheduler_name, &plugins))
        };
        Self {
            profiles: configuration.profiles.iter().map(profile).collect(),
            lease: configuration.leader_election.resource_name.clone(),
            last: Mutex::default(),
            spans: None,
            metrics,
        }
    }

    /// The same, and spans are made of what is told.
    #[must_use]
    pub(super) fn with_spans(self, spans: Option<Spans>) -> Self {
        Self { spans, ..self }
    }

    /// For whoever serves them.
    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// Counts how the refusals of each plugin have changed.
    fn refused(&self, last: &mut Last, stats: &QueueStats) {
        let mut now: HashMap<(String, String), i64> = HashMap::new();
        for (profile, plugin, pods) in &stats.refused {
            now.insert((profile.to_string(), plugin.to_string()), *pods as i64);
        }
        for profile in self.profiles.values() {
            for plugin in profile.plugins() {
                let key = (profile.name().to_owned(), plugin.name().to_owned());
                let count = |counts: &HashMap<_, i64>| counts.get(&key).copied().unwrap_or(0);
                let change = count(&now) - count(&last.refused);
                if change != 0 {
                    plugin.unschedulable_pods(change);
                }
            }
        }
        last.refused = now;
    }
}

impl Meter for MetricsMeter {
    fn tries(&self, pod: &Pod, attempt: u32) {
        if let Some(spans) = &self.spans {
            spans.tries(pod, attempt);
        }
    }

    fn binding_step(&self, pod: &Pod, point: Point, code: Option<Code>, took: Duration) {
        if let Some(spans) = &self.spans {
            spans.binding_step(pod, point, code, took);
        }
    }

    fn ended(&self, pod: &Pod, node: Option<&Name>, how: Attempted, _took: Duration) {
        if let Some(spans) = &self.spans {
            spans.ended(pod, node, how);
        }
    }

    fn decided(&self, _profile: &str, by: DecidedBy, took: Duration) {
        let path = match by {
            DecidedBy::Memory => Path::Fast,
            DecidedBy::Asking => Path::Slow,
        };
        self.metrics.scheduling.decided(path, took);
        if let Some(spans) = &self.spans {
            spans.decided(by);
        }
    }

    fn attempted(&self, profile: &str, how: Attempted, took: Duration) {
        let result = match how {
            Attempted::Scheduled => Attempt::Scheduled,
            Attempted::Unschedulable => Attempt::Unschedulable,
            Attempted::Error => Attempt::Error,
        };
        if let Some(profile) = self.profiles.get(profile) {
            profile.attempted(result, took);
        }
    }

    fn scheduled(&self, attempts: u32, since_first_seen: Duration) {
        self.metrics.scheduling.pod_scheduled(attempts, since_first_seen);
    }

    fn gave_way(&self, after: Duration) {
        self.metrics.own.looked_again(after);
    }

    fn waited_on_permit(&self, code: Option<Code>, took: Duration) {
        self.metrics.scheduling.waited_on_permit(status(code), took);
    }

    fn claim_created(&self, success: bool) {
        let status = if success { AwaitedStatus::Success } else { AwaitedStatus::Failure };
        self.metrics.scheduling.claim_created(status);
    }

    fn device_awaited(
        &self,
        profile: &str,
        driver: &str,
        has_conditions: bool,
        outcome: AwaitOutcome,
        took: Duration,
    ) {
        let status = match outcome {
            AwaitOutcome::Ready => AwaitedStatus::Success,
            AwaitOutcome::Failed => AwaitedStatus::Failure,
            AwaitOutcome::TimedOut => AwaitedStatus::Timeout,
            AwaitOutcome::Unknown => AwaitedStatus::Error,
        };
        self.metrics.scheduling.device_awaited(profile, driver, has_conditions, status, took);
    }

    fn volumes_failed(&self, stage: meter::VolumeStage) {
        self.metrics.scheduling.volume_error(match stage {
            meter::VolumeStage::Assume => VolumeStage::Assume,
            meter::VolumeStage::Bind => VolumeStage::Bind,
        });
    }

    fn handled(&self, event: ClusterEvent, took: Duration) {
        self.metrics.queues.handled(&event.label(), took);
    }

    fn hinted(&self, plugin: &str, event: ClusterEvent, helps: bool, took: Duration) {
        let hint = if helps { Hint::Queue } else { Hint::QueueSkip };
        self.metrics.queues.hinted(plugin, &event.label(), hint, took);
    }

    fn task(&self, task: meter::Task) -> meter::Counted {
        let task = match task {
            meter::Task::Binding => Task::Binding,
            meter::Task::Preemption => Task::Preemption,
        };
        Some(Box::new(self.metrics.scheduling.task(task)))
    }

    fn preemption_attempted(&self) {
        self.metrics.scheduling.preemption_attempted();
    }

    fn preempts(&self, victims: usize) {
        self.metrics.scheduling.preemption_chose(victims);
    }

    fn evicted(&self, success: bool, took: Duration) {
        let result = if success { Success::Success } else { Success::Error };
        self.metrics.scheduling.preemption_ended(result, took);
    }

    fn plugin(&self, profile: &str, plugin: &str, point: Point, code: Option<Code>, took: Duration) {
        let (Some(profile), Some(point)) = (self.profiles.get(profile), extension_point(point)) else {
            return;
        };
        if let Some(plugin) = profile.plugins().iter().find(|known| known.name() == plugin) {
            plugin.ran(point, status(code), took);
            plugin.evaluated(point);
        }
    }

    fn normalized(&self, profile: &str, plugin: &str, code: Option<Code>, took: Duration) {
        let plugins = self.profiles.get(profile).into_iter().flat_map(|profile| profile.plugins());
        if let Some(plugin) = plugins.into_iter().find(|known| known.name() == plugin) {
            plugin.ran(ExtensionPoint::ScoreExtensionNormalize, status(code), took);
        }
    }

    fn point(&self, profile: &str, point: Point, code: Option<Code>, took: Duration) {
        if let (Some(profile), Some(point)) = (self.profiles.get(profile), extension_point(point)) {
            profile.ran(point, status(code), took);
        }
        if let Some(spans) = &self.spans {
            spans.point(point, code, took);
        }
        let operation = match point {
            Point::Filter => Operation::PredicateEvaluation,
            Point::Score => Operation::PriorityEvaluation,
            Point::PostFilter => Operation::PreemptionEvaluation,
            Point::Bind => Operation::Binding,
            _ => return,
        };
        self.metrics.scheduling.step(operation, took);
    }

    fn input_is_unreadable(&self) {
        self.metrics.own.input_is_unreadable();
    }

    fn input_is_missing(&self, is_missing: bool) {
        self.metrics.own.input_is_missing(is_missing);
    }

    fn queue_stats(&self, stats: &QueueStats) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let queues = &self.metrics.queues;
        queues.pending(Queue::Active, stats.waiting.active);
        queues.pending(Queue::Backoff, stats.waiting.backoff);
        queues.pending(Queue::Unschedulable, stats.waiting.unschedulable);
        queues.pending(Queue::Gated, stats.waiting.gated);
        for ((queue, cause), count) in &stats.incoming {
            let before = last.stats.incoming.get(&(*queue, *cause)).copied().unwrap_or(0);
            queues.incoming(queue.name(), &cause.label(), count - before);
        }
        for cause in last.stats.in_flight.keys().filter(|cause| !stats.in_flight.contains_key(cause)) {
            queues.in_flight(&cause.label(), 0);
        }
        for (cause, count) in &stats.in_flight {
            queues.in_flight(&cause.label(), *count);
        }
        queues.in_flight(POD_POPPED, stats.waiting.in_flight);
        for _ in last.stats.after_flush..stats.after_flush {
            self.metrics.scheduling.scheduled_after_flush();
        }
        let scheduling = &self.metrics.scheduling;
        scheduling.cached(Cached::Nodes, stats.nodes);
        scheduling.cached(Cached::Pods, stats.pods);
        scheduling.cached(Cached::AssumedPods, stats.assumed);
        self.metrics.own.events_dropped(stats.events_dropped - last.stats.events_dropped);
        self.refused(&mut last, stats);
        last.stats = stats.clone();
    }

    fn leads(&self, leads: bool) {
        self.metrics.api.leading(&self.lease, leads);
    }
}

impl Watcher for MetricsMeter {
    fn called(&self, extender: &str, verb: CallVerb, how: How, took: Duration) {
        let result = match how {
            How::Answered => ExtenderResult::Answered,
            How::Refused => ExtenderResult::Refused,
            How::Failed => ExtenderResult::Failed,
            How::TimedOut => ExtenderResult::TimedOut,
            How::Invalid => ExtenderResult::Invalid,
        };
        self.metrics.extenders.called(extender, extender_verb(verb), result, took);
    }

    fn skipped(&self, extender: &str, verb: CallVerb) {
        self.metrics.extenders.skipped(extender, extender_verb(verb));
    }

    fn left_out(&self, extender: &str) {
        self.metrics.extenders.left_out(extender);
    }

    fn tolerated(&self, extender: &str, anomaly: Anomaly, count: u64) {
        let anomaly = match anomaly {
            Anomaly::UnknownHost => ScoreAnomaly::UnknownHost,
            Anomaly::OutOfRange => ScoreAnomaly::OutOfRange,
        };
        self.metrics.extenders.anomalous(extender, anomaly, count);
    }

    fn rests(&self, extender: &str, rests: bool) {
        self.metrics.extenders.circuit_open(extender, rests);
    }
}

fn extender_verb(verb: CallVerb) -> ExtenderVerb {
    match verb {
        CallVerb::Filter => ExtenderVerb::Filter,
        CallVerb::Prioritize => ExtenderVerb::Prioritize,
        CallVerb::Preempt => ExtenderVerb::Preempt,
        CallVerb::Bind => ExtenderVerb::Bind,
    }
}

fn extension_point(point: Point) -> Option<ExtensionPoint> {
    Some(match point {
        Point::PreEnqueue | Point::QueueSort => return None,
        Point::PreFilter => ExtensionPoint::PreFilter,
        Point::Filter => ExtensionPoint::Filter,
        Point::PostFilter => ExtensionPoint::PostFilter,
        Point::PreScore => ExtensionPoint::PreScore,
        Point::Score => ExtensionPoint::Score,
        Point::Reserve => ExtensionPoint::Reserve,
        Point::Permit => ExtensionPoint::Permit,
        Point::PreBind => ExtensionPoint::PreBind,
        Point::Bind => ExtensionPoint::Bind,
        Point::PostBind => ExtensionPoint::PostBind,
    })
}

fn status(code: Option<Code>) -> Status {
    match code {
        None => Status::Success,
        Some(Code::Error) => Status::Error,
        Some(Code::Unschedulable) => Status::Unschedulable,
        Some(Code::UnschedulableAndUnresolvable) => Status::UnschedulableAndUnresolvable,
        Some(Code::Pending) => Status::Pending,
    }
}

/// The world, with every request counted.
pub(crate) struct MeteredWorld {
    world: SharedWorld,
    client: Arc<ApiClient>,
    metrics: Arc<Metrics>,
    /// What has been watched so far, by path.
    watched: Mutex<HashSet<String>>,
}

impl MeteredWorld {
    /// Counts what goes through a world, to the API server at this address.
    pub(crate) fn new(world: SharedWorld, server: &str, measured: &MetricsMeter) -> Self {
        let host = server.trim_start_matches("https://").trim_start_matches("http://");
        let client = Arc::new(measured.metrics.api.client(host));
        Self { world, client, metrics: measured.metrics.clone(), watched: Mutex::default() }
    }

    /// The same for the real world.
    pub(crate) fn real(world: RealWorld, measured: &MetricsMeter) -> Self {
        let server = world.server().to_owned();
        Self::new(Arc::new(world), &server, measured)
    }

    /// Whatever is watched for the second time is watched again.
    fn count_watch(&self, request: &Request) {
        let path = request.path.split('?').next().unwrap_or_default();
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if !watched.contains(path) {
            watched.insert(path.to_owned());
        } else {
            self.metrics.own.watch_restarted(path.rsplit('/').next().unwrap_or_default());
        }
    }
}

impl World for MeteredWorld {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn uptime(&self) -> Duration {
        self.world.uptime()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.world.sleep(span)
    }

    fn random(&self) -> u64 {
        self.world.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn(task);
    }

    fn spawn_aside(&self, task: BoxFuture<'static, ()>) {
        self.world.spawn_aside(task);
    }

    fn yield_now(&self) -> BoxFuture<'static, ()> {
        self.world.yield_now()
    }

    fn send(&self, request: Request) -> BoxFuture<'static, Result<Reply, Unanswered>> {
        let (method, client, started) = (method(request.method), self.client.clone(), Instant::now());
        let sent = request.body.len();
        let answer = self.world.send(request);
        Box::pin(async move {
            let answer = answer.await;
            client.requested(method, answer.as_ref().ok().map(|reply| reply.status), started.elapsed());
            if let Ok(reply) = &answer {
                client.transferred(method, sent, reply.body.len());
            }
            answer
        })
    }

    fn watch(&self, request: Request) -> BoxFuture<'static, Result<Lines, Refused>> {
        self.count_watch(&request);
        let (method, client, started) = (method(request.method), self.client.clone(), Instant::now());
        let answer = self.world.watch(request);
        Box::pin(async move {
            let answer = answer.await;
            let status = match &answer {
                Ok(_) => Some(200),
                Err(Refused::Reply(reply)) => Some(reply.status),
                Err(Refused::Unanswered(_)) => None,
            };
            client.requested(method, status, started.elapsed());
            answer
        })
    }
}

fn method(method: world::Method) -> Method {
    match method {
        world::Method::Get => Method::Get,
        world::Method::Post => Method::Post,
        world::Method::Put => Method::Put,
        world::Method::Patch => Method::Patch,
        world::Method::Delete => Method::Delete,
    }
}
