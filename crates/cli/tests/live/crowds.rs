//! Crowds: far more pods at once than there is room for, or than may stay.

use std::time::Duration;

use serde_json::{Value, json};
use supercargo_testcluster::TestCluster;

use crate::{
    draft::{Draft, node, pod},
    process::{SchedulerProcess, wait_until},
    stage::Stage,
};

const UNSCHEDULABLE: usize = 20_000;
/// Each with a node selector of its own, of which a few are satisfied later.
const ZONES: usize = 100;
const PODS_IN_A_ZONE: usize = UNSCHEDULABLE / ZONES;
const ZONES_OPENED: usize = 5;
/// Pods that fit at once.
const OTHERS: usize = 100;

const PODS_ON_A_NODE: usize = 4;

fn create_all(stage: &Stage, drafts: impl IntoIterator<Item = Draft>) {
    let objects = drafts.into_iter().map(|draft| stage.placed(draft).1);
    stage.cluster().create_many(objects).expect("objects");
}

fn waiting(scheduler: &SchedulerProcess, queue: &str) -> f64 {
    scheduler.metric("scheduler_pending_pods", &format!("queue=\"{queue}\""))
}

/// Whether so many bindings have been made.
fn has_bound(cluster: &TestCluster, count: usize) -> bool {
    !cluster.bindings_from(count - 1).is_empty()
}

/// How many pods there are with such a name.
fn named(cluster: &TestCluster, prefix: &str) -> usize {
    let pods = cluster.list("pods", "").expect("pods");
    let is = |pod: &&Value| pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix));
    pods.iter().filter(is).count()
}

fn in_zone(draft: Draft, zone: usize) -> Draft {
    draft.with("/spec/nodeSelector", json!({"zone": zone.to_string()}))
}

#[test]
fn twenty_thousand_unschedulable_pods_then_the_others_are_bound_and_none_is_forgotten() {
    let stage = Stage::in_memory();
    let cluster = stage.cluster();
    create_all(&stage, (0..20).map(|i| node(&format!("open-{i}"))));
    let scheduler = stage.scheduler();
    create_all(&stage, (0..UNSCHEDULABLE).map(|i| in_zone(pod(&format!("closed-{i}")), i % ZONES)));
    // Those that fit need not wait until the others have been tried.
    create_all(&stage, (0..OTHERS).map(|i| pod(&format!("open-{i}")).cpu("100m")));
    wait_until("the others are bound", || has_bound(cluster, OTHERS));
    wait_until("all have been tried", || waiting(&scheduler, "unschedulable") == UNSCHEDULABLE as f64);
    let room = PODS_IN_A_ZONE.to_string();
    let opened = (0..ZONES_OPENED).map(|zone| {
        let node = node(&format!("zone-{zone}")).label("zone", &zone.to_string());
        node.with("/status/allocatable/pods", room.as_str().into())
    });
    create_all(&stage, opened);
    let fit = ZONES_OPENED * PODS_IN_A_ZONE;
    wait_until("all that fit are bound", || has_bound(cluster, OTHERS + fit));
    wait_until("the others wait", || waiting(&scheduler, "unschedulable") == (UNSCHEDULABLE - fit) as f64);
    assert_eq!(waiting(&scheduler, "active") + waiting(&scheduler, "backoff"), 0.0);
    assert_eq!((cluster.bindings().len(), cluster.pods_bound()), (OTHERS + fit, OTHERS + fit));
    assert_eq!(cluster.violations(), []);
    assert_eq!(scheduler.metric("scheduler_pod_scheduled_after_flush_total", ""), 0.0);
}

/// Pods that evict others: more than half of those that fill the nodes.
struct Preemptors {
    stage: Stage,
    low: usize,
    high: usize,
}

impl Preemptors {
    /// Nodes that are full with unimportant pods, and the scheduler that has bound them.
    fn new(high: usize) -> (Self, SchedulerProcess) {
        let stage = Stage::in_memory();
        stage.make_priority_classes();
        let nodes = high * 6 / 5 / PODS_ON_A_NODE;
        let low = nodes * PODS_ON_A_NODE;
        create_all(&stage, (0..nodes).map(|i| node(&format!("{i}"))));
        let scheduler = Self::scheduler(&stage);
        create_all(&stage, (0..low).map(|i| pod(&format!("low-{i}")).cpu("1").class("low")));
        wait_until("the nodes are full", || has_bound(stage.cluster(), low));
        (Self { stage, low, high }, scheduler)
    }

    /// A scheduler that looks for victims on a few nodes only: it is their number that counts here.
    fn scheduler(stage: &Stage) -> SchedulerProcess {
        stage.scheduler_of(&format!(
            "profiles: [{{schedulerName: {}, pluginConfig: [{{name: DefaultPreemption, \
             args: {{minCandidateNodesPercentage: 1, minCandidateNodesAbsolute: 10}}}}]}}]",
            stage.name
        ))
    }

    fn come(&self) {
        create_all(&self.stage, (0..self.high).map(|i| pod(&format!("high-{i}")).cpu("1").class("high")));
    }

    fn evicted(&self) -> usize {
        self.low - named(self.stage.cluster(), "low-")
    }

    /// All are bound, exactly once, with room for all, and nobody waits.
    #[track_caller]
    fn have_landed(&self, scheduler: &SchedulerProcess) {
        let cluster = self.stage.cluster();
        wait_until("all important pods are bound", || has_bound(cluster, self.low + self.high));
        wait_until("nobody waits", || scheduler.metric("scheduler_pending_pods", "") == 0.0);
        assert_eq!(cluster.bindings().len(), self.low + self.high);
        assert_eq!(cluster.pods_bound(), named(cluster, ""), "nobody is forgotten");
        assert_eq!(named(cluster, "high-"), self.high);
        assert_eq!(cluster.violations(), []);
    }
}

#[test]
fn a_thousand_preemptors_at_once_then_as_many_go_as_come() {
    let (preemptors, scheduler) = Preemptors::new(1000);
    preemptors.come();
    preemptors.have_landed(&scheduler);
    assert_eq!(preemptors.evicted(), 1000);
}

#[test]
fn killed_among_many_preemptors_then_all_land_and_no_room_is_made_twice() {
    let (preemptors, mut scheduler) = Preemptors::new(300);
    let (cluster, low) = (preemptors.stage.cluster(), preemptors.low);
    preemptors.come();
    wait_until("a third is bound", || has_bound(cluster, low + 100));
    scheduler.kill();
    let mut version = 0;
    wait_until("what it had sent is done", || {
        std::thread::sleep(Duration::from_millis(100));
        std::mem::replace(&mut version, cluster.resource_version()) == version
    });
    let (bound, evicted) = (cluster.bindings().len() - low, preemptors.evicted());
    let scheduler = Preemptors::scheduler(&preemptors.stage);
    preemptors.have_landed(&scheduler);
    // Nominations whose victims had not gone yet stand in the way of those whose room is free, for kube-scheduler as well:
    // what was free at that moment may be left over. Everything else that was evicted was needed.
    let too_many = preemptors.evicted() - preemptors.high;
    assert!(too_many <= evicted - bound, "{too_many} too many; {evicted} evicted, {bound} bound when killed");
}
