//! What is measured about scheduling as a whole: latency, preemption, the queues, the cache, work in flight.

use std::time::Duration;

use prometheus::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, core::Collector,
};

use super::{
    define::{Define, exponential},
    figures::DecisionTimes,
    labels::{AwaitedStatus, Cached, Hint, Operation, Path, Queue, Status, Success, Task, VolumeStage},
    summary::Summary,
    supercargo::Own,
};
use crate::clock::Clock;

/// Attempts from this one on are counted together, as kube-scheduler does.
const MANY_ATTEMPTS: u32 = 15;

/// What is measured about scheduling as a whole.
pub struct Scheduling {
    algorithm: Histogram,
    sli: HistogramVec,
    attempts: Histogram,
    after_flush: IntCounter,
    preemption_attempts: IntCounter,
    preemption_victims: Histogram,
    preemption_runs: IntCounterVec,
    preemption_duration: HistogramVec,
    permit_wait: HistogramVec,
    volume_errors: IntCounterVec,
    claims_created: IntCounterVec,
    conditions_awaited: IntCounterVec,
    device_wait: HistogramVec,
    cached: Vec<IntGauge>,
    tasks: Vec<IntGauge>,
    steps: Summary,
    decisions: Vec<IntCounter>,
    /// How long decisions took, for [`DecisionTimes`]' readers.
    pub decision_times: DecisionTimes,
}

impl Scheduling {
    pub(super) fn new(registry: &Registry, clock: Clock, own: &Own) -> Self {
        let define = Define(registry);
        let cached = define.gauges(
            "scheduler_cache_size",
            "Nodes, pods and assumed pods in the scheduler's cache.",
            &["type"],
        );
        let tasks = define.gauges(
            "scheduler_goroutines",
            "Tasks running beside the cycle, by what they do. The name is kube-scheduler's; there are no goroutines here.",
            &["operation"],
        );
        Self {
            algorithm: define.histogram(
                "scheduler_scheduling_algorithm_duration_seconds",
                "How long choosing a node took.",
                exponential(0.001, 2.0, 15),
            ),
            sli: define.histograms(
                "scheduler_pod_scheduling_sli_duration_seconds",
                "From a pod's first attempt to its being scheduled, by the number of attempts; time behind gates is left out.",
                exponential(0.01, 2.0, 20),
                &["attempts"],
            ),
            attempts: define.histogram(
                "scheduler_pod_scheduling_attempts",
                "Attempts that a pod needed until it was scheduled.",
                exponential(1.0, 2.0, 5),
            ),
            after_flush: define.counter(
                "scheduler_pod_scheduled_after_flush_total",
                "Pods scheduled only after they had lain unschedulable for too long: an event or a hint was missed.",
            ),
            preemption_attempts: define
                .counter("scheduler_preemption_attempts_total", "Attempts to make room by preemption."),
            preemption_victims: define.histogram(
                "scheduler_preemption_victims",
                "Pods chosen to go, by preemption.",
                exponential(1.0, 2.0, 7),
            ),
            preemption_runs: define.counters(
                "scheduler_preemption_goroutines_execution_total",
                "Preemptions carried out beside the cycle, by how they ended.",
                &["result"],
            ),
            preemption_duration: define.histograms(
                "scheduler_preemption_goroutines_duration_seconds",
                "How long a preemption beside the cycle took.",
                exponential(0.01, 2.0, 20),
                &["result"],
            ),
            permit_wait: define.histograms(
                "scheduler_permit_wait_duration_seconds",
                "How long pods waited for a permit, by what came of it.",
                exponential(0.001, 2.0, 15),
                &["result"],
            ),
            volume_errors: define.counters(
                "scheduler_volume_scheduling_stage_error_total",
                "Failed steps of volume scheduling.",
                &["operation"],
            ),
            claims_created: define.counters(
                "scheduler_resourceclaim_creates_total",
                "Claims made for the extended resources of pods, by how that ended.",
                &["status"],
            ),
            conditions_awaited: define.counters(
                "scheduler_dra_bindingconditions_allocations_total",
                "Devices that had to become ready before their pod was bound, by how that ended.",
                &["profile", "driver", "status"],
            ),
            device_wait: define.histograms(
                "scheduler_dra_bindingconditions_wait_duration_seconds",
                "How long pods waited for their devices to become ready, by how that ended.",
                exponential(0.1, 2.0, 14),
                &["profile", "driver", "status"],
            ),
            cached: Cached::ALL.iter().map(|kind| cached.with_label_values(&[kind.as_str()])).collect(),
            tasks: Task::ALL.iter().map(|task| tasks.with_label_values(&[task.as_str()])).collect(),
            steps: define.known(Summary::new(clock)),
            decisions: own.decisions(),
            decision_times: DecisionTimes::default(),
        }
    }

    /// A node was chosen, or none found, after this long.
    pub fn decided(&self, path: Path, took: Duration) {
        self.decisions[path as usize].inc();
        self.algorithm.observe(took.as_secs_f64());
        self.decision_times.add(took);
    }

    /// A pod is bound: after so many attempts, this long after the first.
    pub fn pod_scheduled(&self, attempts: u32, since_first_attempt: Duration) {
        let label = if attempts >= MANY_ATTEMPTS { "15+".to_owned() } else { attempts.to_string() };
        self.sli.with_label_values(&[&label]).observe(since_first_attempt.as_secs_f64());
        self.attempts.observe(f64::from(attempts));
    }

    /// A claim for a pod's extended resources was made, or could not be.
    pub fn claim_created(&self, status: AwaitedStatus) {
        self.claims_created.with_label_values(&[status.as_str()]).inc();
    }

    /// A pod has waited for a device; whether it was this one that had to become ready.
    pub fn device_awaited(
        &self,
        profile: &str,
        driver: &str,
        has_conditions: bool,
        status: AwaitedStatus,
        took: Duration,
    ) {
        let labels = [profile, driver, status.as_str()];
        self.device_wait.with_label_values(&labels).observe(took.as_secs_f64());
        if has_conditions {
            self.conditions_awaited.with_label_values(&labels).inc();
        }
    }

    /// Takes away what pods of a profile have waited for. Which drivers these were is known to the series alone.
    pub(super) fn forget_profile(&self, profile: &str) {
        let families = self.device_wait.collect().into_iter().chain(self.conditions_awaited.collect());
        for metric in families.flat_map(|mut family| family.take_metric()) {
            let value = |name: &str| {
                let label = metric.get_label().iter().find(|label| label.name() == name);
                label.map_or("", |label| label.value())
            };
            if value("profile") == profile {
                let labels = [profile, value("driver"), value("status")];
                // Each series is of one of the two.
                let _ = self.device_wait.remove_label_values(&labels);
                let _ = self.conditions_awaited.remove_label_values(&labels);
            }
        }
    }

    /// That pod had been flushed from the unschedulable ones because of its time there.
    pub fn scheduled_after_flush(&self) {
        self.after_flush.inc();
    }

    /// Preemption looked for room.
    pub fn preemption_attempted(&self) {
        self.preemption_attempts.inc();
    }

    /// Preemption chose this many pods to go.
    pub fn preemption_chose(&self, victims: usize) {
        self.preemption_victims.observe(victims as f64);
    }

    /// A preemption beside the cycle has ended.
    pub fn preemption_ended(&self, result: Success, took: Duration) {
        self.preemption_runs.with_label_values(&[result.as_str()]).inc();
        self.preemption_duration.with_label_values(&[result.as_str()]).observe(took.as_secs_f64());
    }

    /// A pod waited for its permit.
    pub fn waited_on_permit(&self, result: Status, took: Duration) {
        self.permit_wait.with_label_values(&[result.as_str()]).observe(took.as_secs_f64());
    }

    /// A step of volume scheduling failed.
    pub fn volume_error(&self, stage: VolumeStage) {
        self.volume_errors.with_label_values(&[stage.as_str()]).inc();
    }

    /// The scheduler's cache has this many of them now.
    pub fn cached(&self, kind: Cached, count: usize) {
        self.cached[kind as usize].set(count as i64);
    }

    /// A task begins; it ends when the answer is dropped.
    #[must_use = "the task counts as running for as long as this is held"]
    pub fn task(&self, task: Task) -> TaskInFlight {
        let gauge = self.tasks[task as usize].clone();
        gauge.inc();
        TaskInFlight(gauge)
    }

    /// A step took this long, for the older summary.
    pub fn step(&self, operation: Operation, took: Duration) {
        self.steps.observe(operation, took);
    }
}

/// A task in flight.
#[must_use]
pub struct TaskInFlight(IntGauge);

impl Drop for TaskInFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What is measured about the queues and the events that move pods between them.
pub struct Queues {
    pending: Vec<IntGauge>,
    incoming: IntCounterVec,
    in_flight: IntGaugeVec,
    handling: HistogramVec,
    hints: HistogramVec,
}

impl Queues {
    pub(super) fn new(registry: &Registry) -> Self {
        let define = Define(registry);
        let pending = define.gauges(
            "scheduler_pending_pods",
            "Pods that wait: ready, backing off, tried and unschedulable, or never tried because of a gate.",
            &["queue"],
        );
        Self {
            pending: Queue::ALL.iter().map(|queue| pending.with_label_values(&[queue.as_str()])).collect(),
            incoming: define.counters(
                "scheduler_queue_incoming_pods_total",
                "Pods that came to a queue, by what brought them.",
                &["queue", "event"],
            ),
            in_flight: define.gauges(
                "scheduler_inflight_events",
                "Events kept for the pods that are in their cycle.",
                &["event"],
            ),
            handling: define.histograms(
                "scheduler_event_handling_duration_seconds",
                "How long taking in an event took.",
                exponential(0.0001, 2.0, 12),
                &["event"],
            ),
            hints: define.histograms(
                "scheduler_queueing_hint_execution_duration_seconds",
                "Duration of queueing hints, by plugin, event and hint.",
                exponential(0.00001, 1.5, 20),
                &["plugin", "event", "hint"],
            ),
        }
    }

    /// So many pods wait there now.
    pub fn pending(&self, queue: Queue, pods: usize) {
        self.pending[queue as usize].set(pods as i64);
    }

    /// So many pods more have come to a queue, by what brought them: an event's label.
    pub fn incoming(&self, queue: &str, event: &str, pods: u64) {
        self.incoming.with_label_values(&[queue, event]).inc_by(pods);
    }

    /// So many events of this kind are kept now.
    pub fn in_flight(&self, event: &str, count: usize) {
        self.in_flight.with_label_values(&[event]).set(count as i64);
    }

    /// An event has been taken in.
    pub fn handled(&self, event: &str, took: Duration) {
        self.handling.with_label_values(&[event]).observe(took.as_secs_f64());
    }

    /// A plugin said whether an event helps a pod. The plugin is one of a profile's.
    pub fn hinted(&self, plugin: &str, event: &str, hint: Hint, took: Duration) {
        let labels = [plugin, event, hint.as_str()];
        self.hints.with_label_values(&labels).observe(took.as_secs_f64());
    }
}
